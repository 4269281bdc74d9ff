//! Values of constants as they are shown.

use typelift_promote::ElementType;

use crate::model::graph::{Layer, OutputPort};
use crate::model::weights::Weights;

/// The largest number of values of a constant whose values are shown.
pub(crate) const FEW: u64 = 8;

/// Formats the values of a small constant: ` = [1, 2]`.
pub(crate) fn shown(constant: &Layer, weights: &Weights) -> String {
    let count = constant.outputs().first().and_then(|port| port.shape().element_count());
    let numbers = count.filter(|&count| count <= FEW).and_then(|_| constant.numbers(weights));
    numbers.map_or_else(String::new, |numbers| {
        let element_type = constant.outputs().first().map_or(ElementType::Dynamic, OutputPort::element_type);
        let numbers: Vec<_> = numbers.iter().map(|&number| digits(number, element_type)).collect();
        format!(" = [{}]", numbers.join(", "))
    })
}

/// Formats a value with the digits that tell it apart in its element type.
pub(super) fn digits(value: f64, element_type: ElementType) -> String {
    let is_narrow = element_type.bits() <= 32 && element_type.is_float();
    if is_narrow { (value as f32).to_string() } else { value.to_string() }
}
