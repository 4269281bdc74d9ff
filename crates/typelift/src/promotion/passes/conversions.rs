//! Tensors of a graph that hold the same values because one is a conversion of the other.

use typelift_promote::{ElementType, Loss, fidelity};

use crate::base::hash::HashMap;
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{EditError, Graph, LayerId, Output};
use crate::ops::{LayerKind, kind};

/// Constants with at most this many elements may be used to compute shapes.
const SMALL: u64 = 8;

#[derive(Default)]
pub(super) struct Conversions {
    /// For the output of a Convert: the first tensor of a chain of Converts without loss.
    origins: HashMap<Output, Output>,
    /// For a tensor and a type: the tensor with the same values in that type.
    known: HashMap<(Output, ElementType), Output>,
}

impl Conversions {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut conversions = Self::default();
        for id in graph.topological_order().unwrap_or_default() {
            let Some(layer) = graph.layer(id).filter(|layer| kind(layer) == LayerKind::Convert) else { continue };
            let (Some(from), Some(port)) = (graph.producer(id.input(0)), layer.outputs().first()) else { continue };
            conversions.add(graph, from, port.element_type(), id.output(0));
        }
        conversions
    }

    /// The earliest tensor whose conversion to `to` has the same result as that of `tensor`. It is the first of a chain
    /// of conversions without loss.
    ///
    /// The results differ if a float exceeds the range of an integer type: the converted value then depends on the type
    /// of the float.
    pub(super) fn origin(&self, graph: &Graph, tensor: Output, to: ElementType) -> Output {
        let origin = self.origins.get(&tensor).copied().unwrap_or(tensor);
        let wraps = |from| fidelity(from, to).is_none_or(|fidelity| fidelity.can(Loss::Wraps));
        match (element_type(graph, tensor), element_type(graph, origin)) {
            (Some(from), Some(origin)) if from.is_float() && wraps(origin) => tensor,
            _ => origin,
        }
    }

    pub(super) fn find(&self, graph: &Graph, tensor: Output, to: ElementType) -> Option<Output> {
        let origin = self.origin(graph, tensor, to);
        if element_type(graph, origin) == Some(to) {
            return Some(origin);
        }
        self.known.get(&(origin, to)).copied()
    }

    pub(super) fn add(&mut self, graph: &Graph, tensor: Output, to: ElementType, made: Output) {
        let origin = self.origin(graph, tensor, to);
        let Some(from) = element_type(graph, origin).filter(|_| to != ElementType::Dynamic) else { return };
        self.known.entry((origin, to)).or_insert(made);
        if fidelity(from, to).is_some_and(|fidelity| fidelity.is_exact()) {
            self.origins.insert(made, origin);
        }
    }
}

/// Adds the mark `decompression` to a new Convert from a narrow to a wide floating-point type, if it follows a
/// constant. Plugins then keep the constant narrow in memory. A small one-dimensional constant is not marked, because
/// it may be used to compute a shape, and OpenVINO does not compute values of marked Converts.
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

fn element_type(graph: &Graph, tensor: Output) -> Option<ElementType> {
    graph.output(tensor).map(|port| port.element_type).filter(|&ty| ty != ElementType::Dynamic)
}
