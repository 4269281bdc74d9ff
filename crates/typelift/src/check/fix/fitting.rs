//! Search for attribute values that give a layer its declared outputs.

use typelift_promote::ElementType;

use crate::infer::{Probe, declared};
use crate::model::graph::{Attribute, Graph, Layer, LayerId, Model};
use crate::model::shape::Shape;
use crate::ops::{self, Attr, AttrKind, AttributeValues, Outputs, Subject, Surroundings};

/// Maximum number of elements of an input that is taken for a list.
const ELEMENTS: usize = 8;

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

    pub(super) fn fits(&mut self, name: &str, value: &str) -> Option<bool> {
        let layer = with_value(self.layer?, name, value);
        self.are_as_declared(&layer)
    }

    pub(super) fn fits_both(&mut self, one: (&str, &str), other: (&str, &str)) -> Option<bool> {
        let layer = with_value(&with_value(self.layer?, one.0, one.1), other.0, other.1);
        self.are_as_declared(&layer)
    }

    /// True if the layer gets a short list of integers, which may be wrong in place of an attribute.
    pub(super) fn has_lists(&mut self) -> bool {
        let Some(layer) = self.layer else { return false };
        let mut inputs =
            (0..layer.inputs().len()).filter_map(|at| self.probe.input_bounds(self.graph, layer.id().input(at)));
        inputs.any(|bounds| {
            let values = &bounds.lower;
            bounds.is_exact() && values.element_type.is_integer() && (1..=ELEMENTS).contains(&values.len())
        })
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

fn with_value(layer: &Layer, name: &str, value: &str) -> Layer {
    let others = layer.attributes.iter().filter(|written| written.name != name).cloned();
    let mut new = layer.clone();
    new.attributes = others.chain([Attribute { name: name.into(), value: value.into() }]).collect();
    new
}

/// `false` if no port declares a shape.
fn are_as_declared(source: &str, layer: &Layer, outputs: &Outputs) -> bool {
    let same_shape = |declared: &Shape, found: &Shape| {
        let (Some(declared), Some(found)) = (declared.dims(), found.dims()) else { return false };
        declared.len() == found.len()
            && declared.iter().zip(found).all(|(declared, found)| declared.value() == found.value())
    };
    let declared: Vec<_> = layer.outputs.iter().map(|port| declared(source, port)).collect();
    let pairs = declared.iter().zip(outputs);
    !declared.is_empty()
        && outputs.len() >= declared.len()
        && pairs.into_iter().all(|(declared, found)| {
            [ElementType::Dynamic, found.element_type].contains(&declared.element_type)
                && same_shape(&declared.shape, &found.shape)
        })
}

/// Maximum length to which a list of numbers is shortened as a candidate. No operation accepts more numbers for the
/// dimensions of a tensor.
const LONGEST_CUT: usize = 16;

pub(super) fn candidates(attribute: &Attr, layer: &Layer) -> Vec<String> {
    let written = layer.attribute(attribute.name);
    let text = written.or(attribute.default).unwrap_or_default().to_owned();
    let numbers = || text.split(',').filter_map(|number| number.trim().parse::<i64>().ok()).collect::<Vec<_>>();
    let lists = |lists: Vec<Vec<i64>>| {
        let texts = lists.into_iter().map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        texts.collect::<Vec<_>>()
    };
    let mut values = match attribute.kind {
        AttrKind::Bool => vec!["true".to_owned(), "false".to_owned()],
        AttrKind::Enum(words) => words.iter().map(|&word| word.to_owned()).collect(),
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => {
            let now = numbers().first().copied();
            let near = |value: &i64| (value.abs_diff(now.unwrap_or_default()), now.is_none() && *value < 0);
            let mut values: Vec<i64> = (-4..=16).chain([24, 32, 64, 128, 256]).collect();
            // A lost sign comes first: of two equal axes, the one with the digits that are written is meant.
            values.sort_by_key(|value| (now.is_none_or(|now| now != -value), near(value)));
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
