//! What layers that are written alike have in common, found once: what their attributes say, and what their rule gives for
//! inputs of the same types, shapes and constants. Most layers of a model repeat another one.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::value::port_of_small_constant;
use crate::graph::{AttributeList, Graph, Layer, OutputPort};
use crate::ops::{AttributeValues, Operation, Outputs, Subject};
use crate::shape::Shape;

/// What was found in one run of inference.
#[derive(Default)]
pub(super) struct AlikeLayers {
    /// The position of each group, by the place of the attributes that its layers share, and the operation.
    places: FxHashMap<(*const (), *const Operation), usize>,
    groups: Vec<Group>,
}

/// Layers of one operation that share their attributes, with nothing wrong about these.
struct Group {
    /// Kept, so that no other attributes come to their place.
    _attributes: AttributeList,
    values: Rc<AttributeValues>,
    /// What the rule gave for the latest ones where it looked at nothing but what is compared then.
    latest: Vec<Inferred>,
    /// How many were kept before, which says whose place the next one takes.
    kept: usize,
}

struct Inferred {
    inputs: SmallVec<[(ElementType, Shape); 2]>,
    /// The attributes of the constants that feed the inputs of which the rule asked, with the positions of these.
    constants: SmallVec<[(usize, AttributeList); 1]>,
    /// How many outputs the layer has.
    ports: usize,
    outputs: Outputs,
}

impl AlikeLayers {
    /// The group of a layer, if it shares its attributes.
    pub(super) fn group(&mut self, layer: &Layer, operation: &'static Operation) -> Option<usize> {
        let attributes = if layer.attributes.is_empty() { std::ptr::null() } else { layer.attributes.shared_at()? };
        let place = (attributes, std::ptr::from_ref(operation));
        if let Some(&group) = self.places.get(&place) {
            return Some(group);
        }
        let mut values = AttributeValues::default();
        if !values.read(layer, operation).is_empty() {
            return None;
        }
        self.places.insert(place, self.groups.len());
        let attributes = layer.attributes.clone();
        self.groups.push(Group { _attributes: attributes, values: Rc::new(values), latest: Vec::new(), kept: 0 });
        Some(self.groups.len() - 1)
    }

    /// What the attributes of a group say.
    pub(super) fn values(&self, group: usize) -> Option<Rc<AttributeValues>> {
        self.groups.get(group).map(|group| group.values.clone())
    }

    /// What the rule gives for a layer of a group with these inputs, if that is known.
    pub(super) fn outputs(
        &self,
        group: usize,
        graph: &Graph,
        layer: &Layer,
        inputs: &[&OutputPort],
    ) -> Option<Outputs> {
        let feeds = |(input, attributes): &(usize, AttributeList)| {
            constant(graph, layer, *input).is_some_and(|found| found.shared_at() == attributes.shared_at())
        };
        let is_same = |known: &&Inferred| {
            let mut pairs = known.inputs.iter().zip(inputs);
            known.ports == layer.outputs.len()
                && known.inputs.len() == inputs.len()
                && pairs.all(|((ty, shape), port)| *ty == port.element_type && *shape == port.shape)
                && known.constants.iter().all(feeds)
        };
        self.groups.get(group)?.latest.iter().find(is_same).map(|known| known.outputs.clone())
    }

    /// Keeps what the rule gave for a layer of a group, if all that it asked for are shared constants.
    pub(super) fn keep(
        &mut self,
        group: usize,
        subject: &Subject,
        asked: u32,
        inputs: &[&OutputPort],
        outputs: &Outputs,
    ) {
        const MOST: usize = 8;
        let &Subject { graph, layer, .. } = subject;
        let ports = layer.outputs.len();
        let asked =
            (0..inputs.len()).filter(|&input| asked.checked_shr(input as u32).is_some_and(|bits| bits & 1 == 1));
        let constants = asked.map(|input| Some((input, constant(graph, layer, input)?.clone()))).collect();
        // What is wrong with the number of outputs is found of each layer.
        if let Some(group) = self.groups.get_mut(group)
            && let Some(constants) = constants
            && ports <= outputs.len()
        {
            let inputs = inputs.iter().map(|port| (port.element_type, port.shape.clone())).collect();
            let inferred = Inferred { inputs, constants, ports, outputs: outputs.clone() };
            match group.latest.get_mut(group.kept % MOST) {
                Some(oldest) => *oldest = inferred,
                None => group.latest.push(inferred),
            }
            group.kept += 1;
        }
    }
}

/// The attributes of the small constant that feeds an input, if it shares them.
fn constant<'a>(graph: &'a Graph, layer: &Layer, input: usize) -> Option<&'a AttributeList> {
    let producer = graph.layer(graph.producer(layer.id.input(input))?.layer)?;
    port_of_small_constant(producer)?;
    producer.attributes.shared_at().map(|_| &producer.attributes)
}
