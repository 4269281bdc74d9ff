//! Storing of quantized constants as plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::Kept;
use super::plan::{Action, Constant, Loss, Plan, Reason};
use super::schemes::{self, Dequantized, QuantizedConstant, Values};
use crate::base::hash::HashSet;
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::model::graph::{EditError, Graph, LayerId, Model, NewLayer, Place};
use crate::model::weights::Weights;

impl Plan {
    /// Returns the plan that stores quantized constants as plain values: `(code - zero point) * scale`, computed in
    /// f32. They are stored in `to` or, if it is `None`, in the type in which they are used. Types and shapes must be
    /// [inferred](crate::infer()).
    #[must_use]
    pub fn dequantize(model: &Model, to: Option<ElementType>, kept: &Kept) -> Self {
        let mut constants = Vec::new();
        for (place, graph) in model.walk() {
            let mut seen = HashSet::default();
            for quantized in schemes::find(graph, model.weights()) {
                let Some(layer) = graph.layer(quantized.codes) else { continue };
                let used = graph.output(quantized.value).map(|port| port.element_type());
                let Some(to) = to.or(used).filter(|&to| Dequantized::takes(to)) else { continue };
                let is_named = quantized.layers.iter().any(|&id| kept.names(&place, id));
                if is_named || kept.covers(&place, layer.id()) || !seen.insert(layer.id()) {
                    continue;
                }
                if let Some(mut constant) = Constant::of(&place, graph, layer, to) {
                    // Reordered values are computed all at once.
                    let fits = quantized.order.is_none() || model.weights().hold(constant.loss.n).is_ok();
                    constant.action = if fits { Action::Dequantize } else { Action::Keep(Reason::TooLarge) };
                    constant.loss = Loss { n: constant.loss.n, ..Loss::default() };
                    if fits && to.bits() < ElementType::F32.bits() {
                        let values = Values::of(&quantized, graph, model.weights());
                        let made = values.map(|values| Dequantized { values: Arc::new(values), to });
                        constant.loss = made.and_then(|made| made.loss()).unwrap_or(constant.loss);
                    }
                    constants.push(constant);
                }
            }
        }
        Self { constants, ..Self::default() }
    }
}

pub(super) fn apply(graph: &mut Edit<'_>, plan: &Plan, weights: &Arc<Weights>) -> Result<(), EditError> {
    let mut places: BTreeMap<&Place, BTreeMap<LayerId, ElementType>> = BTreeMap::new();
    for constant in plan.changed().filter(|constant| constant.action == Action::Dequantize) {
        places.entry(&constant.place).or_default().insert(constant.layer, constant.to);
    }
    for (place, constants) in places {
        let mut graph = graph.at(place)?;
        for quantized in schemes::find(&graph, weights) {
            if let Some(&to) = constants.get(&quantized.codes) {
                replace(&mut graph, &quantized, to, weights)?;
            }
        }
    }
    Ok(())
}

/// Replaces a quantized constant by one with plain values, and removes the layers that computed them. The constant of
/// the codes is reused if it has no other consumer.
fn replace(
    graph: &mut Edit<'_>,
    quantized: &QuantizedConstant,
    to: ElementType,
    weights: &Arc<Weights>,
) -> Result<(), EditError> {
    let (codes, old) = (quantized.codes, quantized.value);
    let used = graph.output(old).map_or(to, |port| port.element_type());
    let consumers: Vec<_> = graph.consumers(old).collect();
    let feed = |graph: &mut Edit<'_>, from| graph.connect_all(consumers.iter().map(|&input| (from, input)));
    let new = content(graph, quantized, to, weights)?;
    let name = name(graph, quantized);
    let is_free = graph.users(codes).all(|user| quantized.layers.contains(&user));
    let constant = if is_free { codes } else { graph.add(new.clone(), &[])? };
    feed(graph, constant.output(0))?;
    graph.move_names(old, constant.output(0))?;
    graph.remove_unused([old.layer])?;
    let name = if is_free {
        graph.replace_in_place(codes, new, &[])?;
        name
    } else {
        graph.unused_name(name)
    };
    if to == used {
        return graph.set_name(constant, &name);
    }
    graph.set_name(constant, &format!("{name}_compressed"))?;
    let convert = graph.add(NewLayer::convert(used).named(&name), &[constant.output(0)])?;
    graph.set_marks(convert, &Marks::decompression())?;
    feed(graph, convert.output(0))?;
    graph.move_names(constant.output(0), convert.output(0))
}

fn content(
    graph: &mut Edit<'_>,
    quantized: &QuantizedConstant,
    to: ElementType,
    weights: &Arc<Weights>,
) -> Result<NewLayer, EditError> {
    let values = Values::of(quantized, graph, weights).ok_or(EditError::NoWeights)?;
    let made = Dequantized { values: Arc::new(values), to };
    let shape = graph.output(quantized.value).and_then(|port| port.shape().to_static()).ok_or(EditError::NoWeights)?;
    Ok(graph.made_constant(to, &shape, made))
}

/// The name that the constant had before quantization: that of the marked Convert at the end, or else that of
/// the codes.
fn name(graph: &Graph, quantized: &QuantizedConstant) -> String {
    let last = graph.layer(quantized.value.layer).filter(|layer| schemes::is_convert(layer));
    let marked = last.filter(|layer| layer.rt_info("decompression").is_some());
    marked.or(graph.layer(quantized.codes)).map(|layer| layer.name().to_owned()).unwrap_or_default()
}
