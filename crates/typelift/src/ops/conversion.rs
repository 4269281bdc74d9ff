//! Effect of a Convert on values.

use typelift_promote::{ElementType, Fidelity, fidelity};

use super::kind::{LayerKind, kind};
use crate::model::graph::{Graph, Layer};

/// Element types of a Convert, ConvertLike or ConvertPromoteTypes: those of its inputs and of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The source types.
    pub from: Vec<ElementType>,
    /// The destination type.
    pub to: ElementType,
}

impl Conversion {
    /// Returns the input types whose values can change, with the possible loss of each.
    pub fn lossy(&self) -> impl Iterator<Item = (ElementType, Fidelity)> {
        let lost = |&from: &ElementType| Some((from, fidelity(from, self.to)?));
        self.from.iter().filter_map(lost).filter(|(_, fidelity)| !fidelity.is_exact())
    }
}

/// Returns the conversion that a layer of an inferred graph performs; `None` for other layers.
///
/// # Examples
/// ```
/// use typelift::promote::ElementType;
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?" element_type="f32"/>
///         <output><port id="0" precision="FP32"/></output></layer>
///     <layer id="1" name="y" type="Convert" version="opset1"><data destination_type="f16"/><input><port id="0"/></input>
///         <output><port id="1" precision="FP16"/></output></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#)?;
/// typelift::infer(&mut model);
/// let y = model.graph().layers().last().unwrap();
/// let conversion = typelift::ops::conversion(model.graph(), y).unwrap();
/// let (from, lost) = conversion.lossy().next().unwrap();
/// assert_eq!((from, conversion.to), (ElementType::F32, ElementType::F16));
/// assert_eq!(lost.to_string(), "rounds, overflows");
/// # Ok::<(), typelift::Diagnostics>(())
/// ```
#[must_use]
pub fn conversion(graph: &Graph, layer: &Layer) -> Option<Conversion> {
    let inputs = match kind(layer) {
        // ConvertLike has a second input, whose type is the destination type.
        LayerKind::Convert | LayerKind::ConvertLike => 1,
        LayerKind::ConvertPromoteTypes => 2,
        _ => return None,
    };
    let feeds = graph.producers(layer.id()).into_iter().take(inputs).flatten();
    let mut from: Vec<_> = feeds.filter_map(|feed| Some(graph.output(feed)?.element_type())).collect();
    from.dedup();
    Some(Conversion { from, to: layer.outputs().first()?.element_type() })
}
