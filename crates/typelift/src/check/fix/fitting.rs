//! Search for attribute values that give a layer its declared outputs.

use typelift_promote::ElementType;

use crate::infer::{Probe, declared};
use crate::model::graph::{Attribute, Graph, Layer, LayerId, Model};
use crate::model::shape::{Dim, Shape};
use crate::ops::{self, Attr, AttrKind, AttributeValues, Outputs, Subject};

/// Test of attribute values: does a layer of an inferred graph get the declared types and shapes of its outputs?
pub(super) struct Fitting<'a> {
    model: &'a Model,
    graph: &'a Graph,
    layer: Option<&'a Layer>,
    probe: Probe,
}

impl<'a> Fitting<'a> {
    pub(super) fn new(model: &'a Model, graph: &'a Graph, id: LayerId) -> Self {
        let declares = |layer: &&Layer| {
            let port = |port| declared(&model.source, port).shape.rank().is_some();
            layer.bodies().is_empty() && !ops::is_constant(layer) && layer.outputs().iter().any(port)
        };
        Self { model, graph, layer: graph.layer(id).filter(declares), probe: Probe::new(&model.weights) }
    }

    /// Returns true if the value gives the declared outputs; `None` if that is unknown.
    pub(super) fn fits(&mut self, name: &str, value: &str) -> Option<bool> {
        let layer = with_value(self.layer?, name, value);
        self.are_as_declared(&layer)
    }

    /// Returns true if two values together give the declared outputs; `None` if that is unknown.
    pub(super) fn fits_both(&mut self, one: (&str, &str), other: (&str, &str)) -> Option<bool> {
        let layer = with_value(&with_value(self.layer?, one.0, one.1), other.0, other.1);
        self.are_as_declared(&layer)
    }

    fn are_as_declared(&mut self, layer: &Layer) -> Option<bool> {
        let original = self.layer?;
        let operation = original.operation()?;
        let values = AttributeValues::of(layer, operation);
        let subject = Subject { graph: self.graph, layer, operation, values: &values, given: None };
        let inputs = self.graph.tensors(original.id());
        let outputs = self.probe.ask(&subject, &inputs);
        Some(outputs.is_ok_and(|outputs| are_as_declared(&self.model.source, original, &outputs)))
    }
}

/// Returns the layer with another value of an attribute.
fn with_value(layer: &Layer, name: &str, value: &str) -> Layer {
    let others = layer.attributes.iter().filter(|written| written.name != name).cloned();
    let mut new = layer.clone();
    new.attributes = others.chain([Attribute { name: name.into(), value: value.into() }]).collect();
    new
}

/// True if outputs have the declared types and shapes; `false` if no port declares a shape.
fn are_as_declared(source: &str, layer: &Layer, outputs: &Outputs) -> bool {
    let same_shape = |declared: &Shape, found: &Shape| {
        let (Some(declared), Some(found)) = (declared.dims(), found.dims()) else { return false };
        let same_dim = |(declared, found): (&Dim, &Dim)| declared.value() == found.value();
        declared.len() == found.len() && declared.iter().zip(found).all(same_dim)
    };
    let same_type = |declared, found| [ElementType::Dynamic, found].contains(&declared);
    let declared: Vec<_> = layer.outputs.iter().map(|port| declared(source, port)).collect();
    let pairs = declared.iter().zip(outputs);
    !declared.is_empty()
        && outputs.len() >= declared.len()
        && pairs.into_iter().all(|(declared, found)| {
            same_type(declared.element_type, found.element_type) && same_shape(&declared.shape, &found.shape)
        })
}

/// Maximum length to which a list of numbers is shortened as a candidate. No operation accepts more numbers for the
/// dimensions of a tensor.
const LONGEST_CUT: usize = 16;

/// Returns other values that the author may have intended for an attribute, the most likely first.
pub(super) fn candidates(attribute: &Attr, layer: &Layer) -> Vec<String> {
    let written = layer.attribute(attribute.name);
    let text = written.or(attribute.default).unwrap_or_default().to_owned();
    let numbers = || text.split(',').filter_map(|number| number.trim().parse::<i64>().ok()).collect::<Vec<_>>();
    let lists = |lists: Vec<Vec<i64>>| {
        let join = |list: Vec<i64>| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        lists.into_iter().map(join).collect::<Vec<_>>()
    };
    let mut values = match attribute.kind {
        AttrKind::Bool => vec!["true".to_owned(), "false".to_owned()],
        AttrKind::Enum(words) => words.iter().map(|&word| word.to_owned()).collect(),
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => {
            let now = numbers().first().copied();
            let near = |value: &i64| (value.abs_diff(now.unwrap_or_default()), now.is_none() && *value < 0);
            let mut values: Vec<i64> = (-4..=16).chain([24, 32, 64, 128, 256]).collect();
            values.sort_by_key(near);
            values.iter().map(ToString::to_string).collect()
        }
        AttrKind::Type => ["i64", "i32", "f32", "f16"].map(str::to_owned).to_vec(),
        AttrKind::Ints | AttrKind::UnsignedInts => {
            let now = numbers();
            let other =
                layer.attribute("strides").and_then(|text| text.split(',').map(|it| it.trim().parse().ok()).collect());
            let repeated = now.first().into_iter().flat_map(|&first| (1..=4).map(move |length| vec![first; length]));
            let cut = (1..now.len()).take(LONGEST_CUT).map(|length| now[..length].to_vec());
            let all = (0..=7).flat_map(|value| (1..=3).map(move |length| vec![value; length]));
            lists(other.into_iter().chain(repeated).chain(cut).chain(all).collect())
        }
        _ => Vec::new(),
    };
    values.retain(|value| Some(value.as_str()) != written);
    values
}
