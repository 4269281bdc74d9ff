//! Which tensors of a graph hold the same values, one being a conversion of the other.

use rustc_hash::FxHashMap as HashMap;
use typelift_promote::{ElementType, Loss, fidelity};

use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{EditError, Graph, LayerId, Output};
use crate::ops::{LayerKind, kind};

/// Shapes are computed from constants of at most this many elements, as a rule.
const SMALL: u64 = 8;

/// The conversions of a graph, each found under the tensor that the values come from.
#[derive(Default)]
pub(super) struct Conversions {
    /// For the output of a Convert, the first tensor of a chain of Converts that keep every value of that tensor.
    origins: HashMap<Output, Output>,
    /// The tensor that holds another one's values in another type.
    known: HashMap<(Output, ElementType), Output>,
}

impl Conversions {
    /// Those of all the Converts that are in the graph.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut conversions = Self::default();
        for id in graph.topological_order().unwrap_or_default() {
            let Some(layer) = graph.layer(id).filter(|layer| kind(layer) == LayerKind::Convert) else { continue };
            let (Some(from), Some(port)) = (graph.producer(id.input(0)), layer.outputs().first()) else { continue };
            conversions.add(graph, from, port.element_type(), id.output(0));
        }
        conversions
    }

    /// The tensor to convert to `to` instead of `tensor`: the first one of a chain of conversions that keep every value,
    /// where what comes out is the same.
    ///
    /// It is not where a float beyond the range of an integer type would be converted to it: what that gives depends on
    /// the type of the float.
    pub(super) fn origin(&self, graph: &Graph, tensor: Output, to: ElementType) -> Output {
        let origin = self.origins.get(&tensor).copied().unwrap_or(tensor);
        let wraps = |from| fidelity(from, to).is_none_or(|fidelity| fidelity.can(Loss::Wraps));
        let depends = |from: ElementType, origin| from.is_float() && wraps(origin);
        match (element_type(graph, tensor), element_type(graph, origin)) {
            (Some(from), Some(origin)) if depends(from, origin) => tensor,
            _ => origin,
        }
    }

    /// A tensor that is there and holds what a conversion of `tensor` to `to` would give.
    pub(super) fn find(&self, graph: &Graph, tensor: Output, to: ElementType) -> Option<Output> {
        let origin = self.origin(graph, tensor, to);
        if element_type(graph, origin) == Some(to) {
            return Some(origin);
        }
        self.known.get(&(origin, to)).copied()
    }

    /// Takes in `made`, the conversion of `tensor` to `to`, where there was none.
    pub(super) fn add(&mut self, graph: &Graph, tensor: Output, to: ElementType, made: Output) {
        let origin = self.origin(graph, tensor, to);
        let Some(from) = element_type(graph, origin).filter(|_| to != ElementType::Dynamic) else { return };
        self.known.entry((origin, to)).or_insert(made);
        if fidelity(from, to).is_some_and(|fidelity| fidelity.is_exact()) {
            self.origins.insert(made, origin);
        }
    }
}

/// Marks a new Convert to a wide floating-point type if it starts at a constant of a narrow one, which plugins then keep
/// narrow in memory. No shape is computed from values that pass such a Convert, and a small constant may be there for that:
/// one of a few elements in a row stays unmarked.
pub(super) fn mark_decompression(graph: &mut Edit<'_>, convert: LayerId) -> Result<(), EditError> {
    use ElementType::{Bf16, F16, F32, F64};
    let source = graph.producer(convert.input(0));
    let constant = source.filter(|it| graph.layer(it.layer).is_some_and(|layer| kind(layer) == LayerKind::Constant));
    let Some((stored, wide)) = constant.and_then(|it| graph.output(it)).zip(graph.output(convert.output(0))) else {
        return Ok(());
    };
    let is_large = match stored.shape.dims() {
        Some([]) | None => false,
        Some([dim]) => dim.value().is_some_and(|dim| dim.unsigned_abs() > SMALL),
        Some(_) => true,
    };
    let widens = [Bf16, F16].contains(&stored.element_type) && [F32, F64].contains(&wide.element_type);
    if !widens || !is_large {
        return Ok(());
    }
    let marks = graph.marks(convert).and(&Marks::decompression());
    graph.set_marks(convert, &marks)
}

/// The element type of a tensor, where it is known.
fn element_type(graph: &Graph, tensor: Output) -> Option<ElementType> {
    graph.output(tensor).map(|port| port.element_type).filter(|&ty| ty != ElementType::Dynamic)
}
