//! Pairing of the inputs and outputs of two models.

use typelift::edit::inputs_outputs::End;
use typelift::{Layer, LayerId, Model};

/// Input or output that both models have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The name in A: that of the tensor, otherwise that of the layer.
    pub(super) name: String,
    /// The position in A.
    pub(super) a: usize,
    /// The position in B.
    pub(super) b: usize,
}

/// Pairs the inputs or outputs of two models: first by the names of tensors and layers, then by position.
///
/// # Errors
/// The numbers differ.
pub(super) fn paired(end: End, a: &Model, b: &Model) -> Result<Vec<Pair>, String> {
    let (names, others) = (names(end, a), names(end, b));
    if names.len() != others.len() {
        let (count, other) = (names.len(), others.len());
        return Err(format!("A has {count} {end}s, B has {other}: they cannot be paired"));
    }
    let mut free: Vec<usize> = (0..others.len()).collect();
    let mut pairs: Vec<Option<usize>> = vec![None; names.len()];
    let mut pair_by = |fits: &dyn Fn(&[String], &[String]) -> bool| {
        for (own, pair) in names.iter().zip(&mut pairs).filter(|(_, pair)| pair.is_none()) {
            if let Some(at) = free.iter().position(|&at| fits(own, &others[at])) {
                *pair = Some(free.remove(at));
            }
        }
    };
    pair_by(&|own, others| !own.is_empty() && own.first() == others.first());
    pair_by(&|own, others| own.iter().any(|name| others.contains(name)));
    pair_by(&|_, _| true);
    let named = pairs.into_iter().zip(&names).enumerate();
    Ok(named
        .filter_map(|(a, (b, names))| Some(Pair { name: names.first().cloned().unwrap_or_default(), a, b: b? }))
        .collect())
}

/// The layers of all inputs or outputs, in order.
pub(super) fn ends(end: End, model: &Model) -> Vec<&Layer> {
    match end {
        End::Input => model.inputs().collect(),
        End::Output => model.outputs().collect(),
    }
}

/// The ids of all inputs or outputs, in order.
pub(super) fn ids(end: End, model: &Model) -> Vec<LayerId> {
    ends(end, model).into_iter().map(Layer::id).collect()
}

pub(super) fn names(end: End, model: &Model) -> Vec<Vec<String>> {
    let graph = model.graph();
    let found = ends(end, model).into_iter().map(|layer| {
        let mut names = model.interface_names(layer);
        let maker = graph.producer(layer.id().input(0)).and_then(|source| graph.layer(source.layer));
        names.extend(maker.filter(|_| end == End::Output && names.is_empty()).map(|maker| maker.name().to_owned()));
        names.push(layer.name().to_owned());
        names
    });
    found.collect()
}
