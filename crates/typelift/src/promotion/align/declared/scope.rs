//! State of one graph: the types of its tensors after all earlier changes.

use std::rc::Rc;

use typelift_promote::{ElementType, fidelity};

use super::type_attributes;
use crate::base::hash::{HashMap, HashSet};
use crate::findings::list;
use crate::infer::Probe;
use crate::model::graph::{Graph, Input, LayerId, Model, Output, Place};
use crate::ops::{self, LayerKind, kind};

/// Type that a layer requires for one of its inputs.
pub(super) struct Demand {
    pub(super) input: Input,
    pub(super) tensor: Output,
    pub(super) from: ElementType,
    pub(super) to: ElementType,
    /// Reason for the requirement, as a clause.
    pub(super) reason: Rc<str>,
}

/// Inputs of a layer that must agree, if the outputs do not depend on their type.
pub(super) struct Tie {
    pub(super) layer: LayerId,
    pub(super) inputs: Vec<(usize, Output)>,
    pub(super) takes: Vec<ElementType>,
}

/// State of one graph.
pub(super) struct Scope<'a> {
    pub(super) graph: &'a Graph,
    pub(super) place: Place,
    /// Number of the state of each body.
    pub(super) bodies: HashMap<(LayerId, usize), usize>,
    /// Type of each tensor after all earlier changes.
    pub(super) types: HashMap<Output, ElementType>,
    /// Tensors that depend on an input whose type was changed.
    pub(super) follow: HashSet<Output>,
    pub(super) demands: Vec<Demand>,
    /// Position of the latest requirement for each input.
    pub(super) asked: HashMap<Input, usize>,
    pub(super) ties: Vec<Tie>,
    pub(super) variables: HashMap<String, ElementType>,
    pub(super) probe: Probe,
}

impl Scope<'_> {
    pub(super) fn element_type(&self, tensor: Output) -> ElementType {
        self.types.get(&tensor).copied().unwrap_or(ElementType::Dynamic)
    }

    pub(super) fn source(&self, layer: LayerId, input: usize) -> Option<Output> {
        self.graph.producer(layer.input(input))
    }

    pub(super) fn result_type(&self, result: LayerId) -> ElementType {
        let asked = self.asked.get(&Input { layer: result, port: 0 }).map(|&at| self.demands[at].to);
        asked.or_else(|| Some(self.element_type(self.source(result, 0)?))).unwrap_or(ElementType::Dynamic)
    }

    pub(super) fn demand(&mut self, input: Input, tensor: Output, to: ElementType, reason: Rc<str>) {
        let from = self.element_type(tensor);
        self.asked.insert(input, self.demands.len());
        self.demands.push(Demand { input, tensor, from, to, reason });
    }

    pub(super) fn is_constant(&self, tensor: Output) -> bool {
        let is = |tensor: Output| self.graph.layer(tensor.layer).is_some_and(ops::is_constant);
        is(tensor) || self.source(tensor.layer, 0).filter(|_| self.is_of(tensor, LayerKind::Convert)).is_some_and(is)
    }

    pub(super) fn is_of(&self, tensor: Output, wanted: LayerKind) -> bool {
        self.graph.layer(tensor.layer).is_some_and(|layer| kind(layer) == wanted)
    }

    /// Floating-point numbers must not become integers, indices or booleans, unless an attribute names the type of the
    /// tensor.
    pub(super) fn permits(&self, tensor: Output, to: ElementType) -> bool {
        let from = self.element_type(tensor);
        let has_type = || type_attributes(self.graph.layer(tensor.layer)).next().is_some();
        from == to || fidelity(from, to).is_some() && (!from.is_float() || to.is_float() || has_type())
    }

    /// Describes tensors: ``f32 from `x` and f64 from `c` ``, each type once.
    pub(super) fn origins(&self, tensors: impl Iterator<Item = Output>) -> String {
        let mut seen = Vec::new();
        let origin = |tensor: Output| {
            let ty = self.element_type(tensor);
            (!seen.contains(&ty)).then(|| seen.push(ty))?;
            Some(format!("{ty} from `{}`", self.graph.layer(tensor.layer)?.name()))
        };
        list(tensors.filter_map(origin).collect(), "and")
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(model: &Model, graph: &'a Graph, place: Place) -> Self {
        Self {
            graph,
            place,
            bodies: HashMap::default(),
            types: HashMap::default(),
            follow: HashSet::default(),
            demands: Vec::new(),
            asked: HashMap::default(),
            ties: Vec::new(),
            variables: HashMap::default(),
            probe: Probe::new(&model.weights),
        }
    }
}
