//! Effect of a Convert on values.

use typelift_promote::{ElementType, Fidelity, fidelity};

use super::kind::{LayerKind, kind};
use super::values::conversion::Audit;
use crate::model::graph::{Graph, Layer};
use crate::model::weights::Weights;

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
        let known = self.from.iter().filter_map(|&from| Some((from, fidelity(from, self.to)?)));
        known.filter(|(_, fidelity)| !fidelity.is_exact())
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
/// # Ok::<(), typelift::findings::Diagnostics>(())
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

/// Limit on the values of a constant that are compared.
const MOST_COMPARED: u64 = 1 << 21;

/// Limit on the Converts before another that are followed. An exact one widens its type or keeps it, and few are wider.
const MOST_PASSED: usize = 8;

/// Counts the values of a constant that a Convert changes, directly after it or after a few other Converts. `None` for
/// a Convert of a computed tensor, and for a constant that is large or cannot be read.
///
/// # Examples
/// ```
/// let text = "x = Const([-1]) : i32[1]\ny = Convert(x) {destination_type=f32}\nz = Result(y)\n";
/// let mut model = typelift::Model::from_text(text)?;
/// typelift::infer(&mut model);
/// let convert = model.graph().layer(model.graph().find("y")?).unwrap();
/// assert_eq!(typelift::ops::converted_values(model.graph(), model.weights(), convert).unwrap().changed(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn converted_values(graph: &Graph, weights: &Weights, layer: &Layer) -> Option<Audit> {
    let to = conversion(graph, layer)?.to;
    let mut at = layer;
    for _ in 0..MOST_PASSED {
        let Conversion { from, .. } = conversion(graph, at)?;
        let [from] = from[..] else { return None };
        let (source, _) = graph.feeds(at.id()).into_iter().next()??;
        if kind(source) == LayerKind::Constant {
            let is_small = source.outputs().first()?.shape().element_count()? <= MOST_COMPARED;
            if fidelity(from, to)?.is_exact() {
                return Some(Audit::default());
            }
            return if is_small { Audit::of(source, weights, to) } else { None };
        }
        if at.id() != layer.id() && conversion(graph, at)?.lossy().next().is_some() {
            return None;
        }
        at = source;
    }
    None
}
