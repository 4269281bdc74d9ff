//! What layers that are written alike have in common, found once: what their attributes say, and what their rule gives for
//! inputs of the same types and shapes. Most layers of a model repeat another one.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::graph::{AttributeList, Layer, OutputPort};
use crate::ops::{AttributeValues, Operation, Outputs};
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
    /// What the rule gave for the latest ones where it looked at nothing but what is compared here.
    latest: SmallVec<[Inferred; 1]>,
}

struct Inferred {
    inputs: SmallVec<[(ElementType, Shape); 2]>,
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
        self.groups.push(Group { _attributes: attributes, values: Rc::new(values), latest: SmallVec::new() });
        Some(self.groups.len() - 1)
    }

    /// What the attributes of a group say.
    pub(super) fn values(&self, group: usize) -> Option<Rc<AttributeValues>> {
        self.groups.get(group).map(|group| group.values.clone())
    }

    /// What the rule gives for a layer of a group with these inputs, if that is known.
    pub(super) fn outputs(&self, group: usize, layer: &Layer, inputs: &[&OutputPort]) -> Option<Outputs> {
        let is_same = |known: &&Inferred| {
            let mut pairs = known.inputs.iter().zip(inputs);
            known.ports == layer.outputs.len()
                && known.inputs.len() == inputs.len()
                && pairs.all(|((ty, shape), port)| *ty == port.element_type && *shape == port.shape)
        };
        self.groups.get(group)?.latest.iter().find(is_same).map(|known| known.outputs.clone())
    }

    /// Keeps what the rule gave for a layer of a group, having looked at nothing but inputs, attributes and the number of
    /// outputs.
    pub(super) fn keep(&mut self, group: usize, layer: &Layer, inputs: &[&OutputPort], outputs: &Outputs) {
        const MOST: usize = 4;
        // What is wrong with the number of outputs is found of each layer.
        if let Some(group) = self.groups.get_mut(group).filter(|_| layer.outputs.len() <= outputs.len()) {
            if group.latest.len() == MOST {
                group.latest.remove(0);
            }
            let inputs = inputs.iter().map(|port| (port.element_type, port.shape.clone())).collect();
            group.latest.push(Inferred { inputs, ports: layer.outputs.len(), outputs: outputs.clone() });
        }
    }
}
