//! Explanation of the result type of a ConvertPromoteTypes, with the attributes that decide it.

use std::fmt;

use serde::Serialize;
use typelift_promote::openvino::{self, Options};
use typelift_promote::{ElementType, Step};

use super::{Attr, Attributes, Operation, promotion};
use crate::findings::list;
use crate::model::graph::{Layer, OutputPort};

/// Attribute that influences a promotion.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Setting {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// True if the layer has the attribute; otherwise the value is the default.
    pub written: bool,
}

/// Formats as `destination_type="f32"`.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, written } = self;
        if *written {
            write!(f, "{name}=\"{value}\"")
        } else {
            write!(f, "{name}, which is \"{value}\" where the file does not say")
        }
    }
}

pub(crate) fn setting(layer: &Layer, attribute: &Attr) -> Setting {
    let written = layer.attribute(attribute.name);
    let value = written.or(attribute.default).unwrap_or_default().to_owned();
    Setting { name: attribute.name.to_owned(), value, written: written.is_some() }
}

/// Types for testing an operation. Each operation accepts one of these in addition to the type that an input has.
pub(crate) const OTHER_TYPES: [ElementType; 7] = [
    ElementType::F32,
    ElementType::F16,
    ElementType::I64,
    ElementType::I32,
    ElementType::U8,
    ElementType::Boolean,
    ElementType::String,
];

/// Reason for the result type of a ConvertPromoteTypes. `Display` writes a clause: `f16 with f32 gives f32: the wider
/// float`.
pub(crate) struct PromotionRule {
    pub(crate) step: Option<Step>,
    /// Attributes that decide: with another value the result would differ or be an error.
    pub(crate) attributes: Vec<Setting>,
}

impl fmt::Display for PromotionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(step) = self.step {
            step.fmt(f)?;
        }
        write_deciding(f, &self.attributes)
    }
}

/// Writes `; decided by promote_unsafe="true"` if there are attributes that decide.
pub(crate) fn write_deciding(f: &mut fmt::Formatter<'_>, attributes: &[Setting]) -> fmt::Result {
    if attributes.is_empty() {
        Ok(())
    } else {
        write!(f, "; decided by {}", list(attributes.iter().map(ToString::to_string).collect(), "and"))
    }
}

pub(crate) fn promotion_rule(
    layer: &Layer,
    operation: &'static Operation,
    ports: &[&OutputPort],
) -> Option<PromotionRule> {
    let (options, [left, right]) = promotion(&Attributes::new(layer, operation), ports).ok()?;
    let mut last = None;
    let found = openvino::trace(left, right, &options, &mut |step| last = Some(step)).ok()?;
    let changes = |other: Options| openvino::promote(left, right, &other) != Ok(found);
    let names = operation.attribute_names().filter(|&name| match name {
        "promote_unsafe" => changes(Options { promote_unsafe: !options.promote_unsafe, ..options }),
        "pytorch_scalar_promotion" => {
            changes(Options { pytorch_scalar_promotion: !options.pytorch_scalar_promotion, ..options })
        }
        "u64_integer_promotion_target" => {
            OTHER_TYPES.iter().any(|&target| changes(Options { u64_integer_promotion_target: target, ..options }))
        }
        _ => false,
    });
    let attributes = names.filter_map(|name| Some(setting(layer, operation.attribute(name)?))).collect();
    Some(PromotionRule { step: last, attributes })
}
