//! Fixes for shapes and values that a rule refuses: small changes of the layer and its constants, each of them tested.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::recover::declared;
use super::{Probe, Walk};
use crate::model::graph::{Attribute, Graph, Layer, LayerId, Model, OutputPort};
use crate::model::shape::{Dim, Shape};
use crate::ops::{Attr, AttrKind, AttributeValues, Fault, Outputs, Subject, is_constant};

/// Limit on the errors of a model for which fixes are tested.
const MAX_TRIED: usize = 32;
/// The largest rank of a constant whose dimensions are rearranged.
const MAX_RANK: usize = 5;

impl Walk<'_> {
    /// Returns a fix for a fault of shapes or values: a change that the rule accepts and after which the outputs have
    /// their declared shapes. Without one, it returns the place to change.
    #[cold]
    pub(super) fn suggest(&mut self, subject: &Subject, inputs: &[OutputPort], fault: &Fault) -> String {
        if self.scope.diagnostics.len() < MAX_TRIED {
            let found =
                self.try_attributes(subject, inputs, fault).or_else(|| self.try_constants(subject, inputs, fault));
            if let Some(found) = found {
                return found;
            }
        }
        let constants =
            fault.inputs.iter().filter_map(|&input| subject.producer(input)).filter(|layer| is_constant(layer));
        let constants: Vec<_> = constants.map(|layer| format!("Const {} `{}`", layer.id(), layer.name())).collect();
        match (fault.attribute, constants.is_empty()) {
            (Some(name), _) => match subject.operation.attribute(name) {
                Some(attribute) => attribute.usual_value(),
                None => format!("correct `{name}`"),
            },
            (None, false) => format!("correct {}, or the attributes of this layer", constants.join(" or ")),
            (None, true) => {
                "correct the attributes of this layer, or put a Reshape or Transpose before the input that is wrong"
                    .to_owned()
            }
        }
    }

    /// Searches an attribute value that gives the outputs their declared types and shapes.
    fn try_attributes(&mut self, subject: &Subject, inputs: &[OutputPort], fault: &Fault) -> Option<String> {
        // The offset of a constant's bytes cannot be guessed.
        if is_constant(subject.layer) {
            return None;
        }
        let names: Vec<_> = match fault.attribute {
            Some(name) => vec![name],
            None => subject.operation.attribute_names().collect(),
        };
        let inputs: SmallVec<[&OutputPort; 4]> = inputs.iter().collect();
        let source = self.source.clone();
        let found = find_value(&source, subject, &names, |changed| self.attempt_quietly(changed, &inputs))?;
        Some(format!("write {found}"))
    }

    /// Searches a constant with reordered or regrouped dimensions that gives the outputs their declared types and
    /// shapes.
    fn try_constants(&mut self, subject: &Subject, inputs: &[OutputPort], fault: &Fault) -> Option<String> {
        for &input in &fault.inputs {
            let Some(constant) = subject.producer(input).filter(|layer| is_constant(layer)) else { continue };
            let Some(dims) = inputs.get(input).and_then(|port| port.shape().to_static()) else { continue };
            for (verb, dims) in rearranged(&dims) {
                let mut ports = inputs.to_vec();
                ports[input].shape = Shape::fixed(dims.iter().copied());
                let taken: SmallVec<[&OutputPort; 4]> = ports.iter().collect();
                let outputs = self.attempt_quietly(subject, &taken);
                if outputs.is_some_and(|outputs| are_as_declared(&self.source, subject.layer, &outputs)) {
                    let (id, name, shape) = (constant.id(), constant.name(), &ports[input].shape);
                    return Some(format!("{verb} Const {id} `{name}` to {shape}"));
                }
            }
        }
        None
    }

    fn attempt_quietly(&mut self, subject: &Subject, inputs: &[&OutputPort]) -> Option<Outputs> {
        let found = self.scope.diagnostics.len();
        let outputs = subject.infer(inputs, &mut [], self).ok();
        self.scope.diagnostics.truncate(found);
        outputs
    }
}

/// Searches another value of one of these attributes that gives the outputs their declared types and shapes: `axis="0":
/// that gives [2], the shape its port declares`.
fn find_value(
    source: &str,
    subject: &Subject,
    names: &[&'static str],
    mut attempt: impl FnMut(&Subject) -> Option<Outputs>,
) -> Option<String> {
    for attribute in names.iter().filter_map(|name| subject.operation.attribute(name)) {
        for value in candidates(attribute, subject.layer) {
            let layer = with_value(subject.layer, attribute.name, &value);
            let values = AttributeValues::of(&layer, subject.operation);
            let outputs = attempt(&Subject { layer: &layer, values: &values, ..*subject });
            if let Some(outputs) = outputs.filter(|outputs| are_as_declared(source, subject.layer, outputs)) {
                let shape = outputs.first().map(|output| output.shape.to_string()).unwrap_or_default();
                let name = attribute.name;
                return Some(format!("{name}=\"{value}\": that gives {shape}, the shape its port declares"));
            }
        }
    }
    None
}

/// Returns the attribute value that would give the outputs of a layer without bodies their declared types and shapes.
///
/// `name` is the attribute, if only one can be wrong.
pub(crate) fn value_as_declared(model: &Model, graph: &Graph, id: LayerId, name: Option<&str>) -> Option<String> {
    let layer = graph.layer(id)?;
    let operation = layer.operation().filter(|_| !is_constant(layer))?;
    let inputs = graph.tensors(id);
    let values = AttributeValues::of(layer, operation);
    let subject = Subject { graph, layer, operation, values: &values, given: None };
    let mut probe = Probe::new(&model.weights);
    let names: Vec<_> = operation.attribute_names().filter(|it| name.is_none_or(|name| name == *it)).collect();
    find_value(&model.source, &subject, &names, |changed| probe.ask(changed, &inputs).ok())
}

/// Returns the layer with another value of an attribute.
pub(crate) fn with_value(layer: &Layer, name: &str, value: &str) -> Layer {
    let others = layer.attributes.iter().filter(|written| written.name != name).cloned();
    let mut new = layer.clone();
    new.attributes = others.chain([Attribute { name: name.into(), value: value.into() }]).collect();
    new
}

/// True if outputs have the types and shapes that the ports declare; `false` if no port declares a shape.
pub(crate) fn are_as_declared(source: &str, layer: &Layer, outputs: &Outputs) -> bool {
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

/// The length to which a long list of numbers is cut: no operation accepts more numbers for the dimensions of a tensor.
const LONGEST_CUT: usize = 16;

/// Returns other values that an attribute of a layer may be meant to have, the likeliest first.
pub(crate) fn candidates(attribute: &Attr, layer: &Layer) -> Vec<String> {
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

/// Returns the dimensions of a constant in every other order, with a 1 added or removed, and with the elements in two
/// other dimensions.
fn rearranged(dims: &[i64]) -> Vec<(&'static str, Vec<i64>)> {
    if dims.len() > MAX_RANK {
        return Vec::new();
    }
    let mut orders = vec![Vec::new()];
    for _ in dims {
        orders = orders
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                let left: Vec<_> = (0..dims.len()).filter(|axis| !order.contains(axis)).collect();
                left.into_iter().map(move |axis| [&order[..], &[axis]].concat())
            })
            .collect();
    }
    let permuted = orders.into_iter().map(|order| ("transpose", order.into_iter().map(|axis| dims[axis]).collect()));
    let longer = (0..=dims.len()).map(|at| ("reshape", [&dims[..at], &[1], &dims[at..]].concat()));
    let without = |at: &usize| dims[*at] == 1;
    let shorter = (0..dims.len()).filter(without).map(|at| ("reshape", [&dims[..at], &dims[at + 1..]].concat()));
    let count = dims.iter().product::<i64>();
    let factors = (1..=count.min(64)).filter(|factor| dims.len() == 2 && count % factor == 0);
    let grouped = factors.map(|factor| ("reshape", vec![factor, count / factor]));
    let all = permuted.chain(longer).chain(shorter).chain(grouped);
    all.filter(|(_, other): &(_, Vec<i64>)| other != dims).collect()
}
