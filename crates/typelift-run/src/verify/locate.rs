//! Search for the layer at which the difference between two models starts.

use foldhash::{HashMap, HashSet};
use typelift::edit::inputs_outputs::End;
use typelift::explain::map::{Role, roles};
use typelift::graph::{NewLayer, Place};
use typelift::ops::{self, LayerKind};
use typelift::promote::ElementType;
use typelift::{Graph, LayerId, Model, Output};

use super::compare::Difference;
use super::error::{Side, VerifyError};
use super::inputs::Sample;
use super::narrow::Ranged;
use super::pairing::ids;
use super::runner::{Runner, Setting};
use super::session::{Outputs, Session};
use super::tolerance::Tolerance;
use typelift::explain::{Change, ChangeKind};
use typelift::matched_layers;

/// Maximum number of tensors that are exposed as outputs at a time, and of their bytes.
const CHUNK: usize = 512;
const CHUNK_BYTES: u64 = 256 << 20;
/// Maximum number of chunks that the runtime may refuse.
const MOST_REFUSALS: usize = 64;
/// Maximum number of values of a constant tensor that is compared.
const MOST_STORED: u64 = 1 << 20;
/// Factor by which an error must exceed rounding noise to be the start of a difference.
pub(super) const CLEAR: f64 = 5.0;
/// Fraction of the largest error below which a start is treated as noise of a harmless change.
const MINOR: f64 = 0.01;

/// Tensor that both models have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) a: Output,
    pub(super) b: Output,
}

/// Differences of all compared tensors, in the order of A.
pub(super) struct Located {
    pub(super) targets: Vec<Target>,
    pub(super) differences: Vec<Difference>,
    /// The step in which these differences were measured, from 0.
    pub(super) step: usize,
    /// Tensors that the runtime does not give as outputs.
    pub(super) left_out: Vec<Target>,
    /// True if the outputs of the models agreed while these tensors were outputs too.
    pub(super) outputs_agree: bool,
}

/// Layer at which the difference starts, in both models.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub(super) a: LayerId,
    pub(super) b: LayerId,
    pub(super) difference: Option<Difference>,
    /// True if the inputs of the layer agree and its output differs. Otherwise the error grows most at this layer.
    pub(super) is_clear: bool,
    /// Layers of A and of B between this layer and the nearest tensors that both models have, including constants.
    pub(super) around: [HashSet<LayerId>; 2],
    pub(super) places: [Place; 2],
}

/// Two models whose inner tensors are compared.
pub(super) struct Search<'a> {
    pub(super) models: [&'a Model; 2],
    pub(super) ranged: [&'a Ranged; 2],
    pub(super) settings: &'a [Setting; 2],
    pub(super) tolerance: Tolerance,
    pub(super) sample: &'a Sample,
    /// Tensors of A that have other values each time.
    pub(super) unsteady: HashSet<Output>,
    /// Paired Results.
    pub(super) outputs: Vec<(LayerId, LayerId)>,
}

impl Search<'_> {
    /// Compares inner tensors, in the order of A. Without `all`, stops after the chunk in which the difference starts.
    pub(super) fn compare(&self, runner: &mut dyn Runner, all: bool) -> Result<Located, VerifyError> {
        let mut by_step: Vec<Vec<Difference>> = vec![Vec::new(); self.sample.a.len()];
        let (mut targets, mut outputs_agree) = (Vec::new(), false);
        let left_out = in_chunks(self.models[0].graph(), &self.targets(), &mut |chunk| {
            let (found, agree) = self.compare_chunk(runner, chunk)?;
            outputs_agree = agree;
            by_step.iter_mut().zip(found).for_each(|(step, found)| step.extend(found));
            targets.extend_from_slice(chunk);
            Ok(!all && by_step.iter().flatten().any(|it| !it.same))
        })?;
        // With state, a difference in an early step also causes differences in later steps, so the first one counts.
        let found = by_step.iter().position(|step| step.iter().any(|it| !it.same));
        let step = found.or_else(|| by_step.iter().position(|step| step.iter().any(|it| it.changed > 0)));
        let step = step.unwrap_or(0);
        let differences = by_step.into_iter().nth(step).unwrap_or_default();
        Ok(Located { targets, differences, step, left_out, outputs_agree })
    }

    /// Compares tensors as outputs. Returns their differences by step, and if the outputs of the models agreed.
    fn compare_chunk(
        &self,
        runner: &mut dyn Runner,
        chunk: &[Target],
    ) -> Result<(Vec<Vec<Difference>>, bool), VerifyError> {
        let [exposed_a, exposed_b] = [0, 1].map(|side| {
            let ends = chunk.iter().map(|target| if side == 0 { target.a } else { target.b });
            exposed(&self.ranged[side].model, ends.map(|tensor| self.ranged[side].of(tensor)))
        });
        let ((a, in_a), (b, in_b)) = (exposed_a?, exposed_b?);
        let session = Session::load(runner, [&a, &b], self.settings, true)?;
        let outputs = session.run_both(runner, self.sample);
        let again = (!self.unsteady.is_empty()).then(|| session.run(runner, Side::A, self.sample));
        session.release(runner);
        let (outputs, again) = (outputs?, again.transpose()?);
        let tensor =
            |outputs: &Outputs, step: usize, at: usize| outputs.get(step).and_then(|step| step.get(at)).cloned();
        let difference = |step: usize, at_a: usize, at_b: usize| {
            let own = tensor(&outputs[0], step, at_a)?;
            // If a tensor of A differs from run to run, it is not compared.
            let is_steady = again.as_ref().is_none_or(|again| tensor(again, step, at_a).as_ref() == Some(&own));
            let other = tensor(&outputs[1], step, at_b).filter(|_| is_steady).unwrap_or_else(|| own.clone());
            Some(Difference::between(&own, &other, self.tolerance))
        };
        let (ids_a, ids_b) = (ids(End::Output, &a), ids(End::Output, &b));
        let plain = self.outputs.iter().filter_map(|(own, other)| {
            Some((ids_a.iter().position(|id| id == own)?, ids_b.iter().position(|id| id == other)?))
        });
        let plain: Vec<_> = plain.collect();
        let steps = 0..self.sample.a.len();
        let mut differences = steps.clone().flat_map(|step| plain.iter().map(move |&(own, other)| (step, own, other)));
        let agree = differences.all(|(step, own, other)| difference(step, own, other).is_none_or(|it| it.same));
        let by_step = steps.map(|step| {
            let places = in_a.iter().zip(&in_b);
            places.map(|(&at_a, &at_b)| difference(step, at_a, at_b).unwrap_or_default()).collect()
        });
        Ok((by_step.collect(), agree))
    }

    /// The tensors that both models have and that are worth comparing, in the order of A.
    fn targets(&self) -> Vec<Target> {
        let [a, b] = self.models.map(Model::graph);
        let pairs: HashMap<LayerId, LayerId> = matched_layers(self.models[0], self.models[1]).into_iter().collect();
        let roles = [roles(a), roles(b)];
        let is_worth = |graph: &Graph, side: usize, id: LayerId, port: usize| {
            let Some(layer) = graph.layer(id) else { return false };
            let is_end = matches!(
                ops::kind(layer),
                LayerKind::Parameter | LayerKind::Result | LayerKind::Assign | LayerKind::Constant
            );
            let is_small = layer.outputs()[port].shape().element_count().is_some_and(|count| count <= MOST_STORED);
            let is_used = graph.consumers(id.output(port)).next().is_some();
            let is_known = layer.outputs()[port].element_type() != ElementType::Dynamic;
            let is_steady = side == 1 || !self.unsteady.contains(&id.output(port));
            !is_end && is_used && is_known && is_steady && (roles[side].get(id) != Some(&Role::Stored) || is_small)
        };
        let mut targets = Vec::new();
        for id in a.topological_order().unwrap_or_default() {
            let Some((&other, layer)) = pairs.get(&id).zip(a.layer(id)) else { continue };
            let count = b.layer(other).map_or(0, |layer| layer.outputs().len());
            let ports = (0..layer.outputs().len()).filter(|_| layer.outputs().len() == count);
            let ports = ports.filter(|&port| is_worth(a, 0, id, port) && is_worth(b, 1, other, port));
            // Weights in groups of another size have other shapes until they are put together.
            let shape =
                |graph: &Graph, id: LayerId, port: usize| graph.output(id.output(port)).map(|it| it.shape().clone());
            let is_stored = roles[0].get(id) == Some(&Role::Stored);
            let ports = ports.filter(|&port| !is_stored || shape(a, id, port) == shape(b, other, port));
            targets.extend(ports.map(|port| Target { a: id.output(port), b: other.output(port) }));
        }
        targets
    }

    /// Finds the start of the difference among the compared tensors; `None` if no tensor differs.
    pub(super) fn start(&self, located: &Located, changed: &dyn Fn(&[HashSet<LayerId>; 2]) -> bool) -> Option<Start> {
        let mut errors = [HashMap::default(), HashMap::default()];
        for (target, difference) in located.targets.iter().zip(&located.differences) {
            errors[0].insert(target.a, difference);
            errors[1].insert(target.b, difference);
        }
        let noise = self.tolerance.noise;
        let mut best: Option<(f64, Start)> = None;
        let mut candidates: Vec<(f64, Start)> = Vec::new();
        for (target, difference) in located.targets.iter().zip(&located.differences) {
            let size = difference.size();
            if difference.same && size <= CLEAR * noise {
                continue;
            }
            let [in_a, in_b] = [(0, target.a), (1, target.b)]
                .map(|(side, tensor)| Inputs::of(self.models[side].graph(), tensor.layer, &errors[side]));
            let before = in_a.largest.max(in_b.largest);
            let around = [in_a.around, in_b.around];
            let is_clear = before <= noise && (!difference.same || changed(&around));
            let start = Start {
                a: target.a.layer,
                b: target.b.layer,
                difference: Some(difference.clone()),
                is_clear,
                around,
                places: Default::default(),
            };
            let growth = size.min(1e6) / before.max(noise);
            if is_clear {
                candidates.push((size, start));
            } else if !difference.same && best.as_ref().is_none_or(|(most, _)| growth > *most) {
                best = Some((growth, start));
            }
        }
        let largest = candidates.iter().fold(0.0_f64, |most, (size, _)| most.max(*size)).min(1.0);
        let first = candidates.into_iter().find(|(size, _)| *size >= MINOR * largest);
        first.or(best).map(|(_, start)| start)
    }

    /// The output that another tensor feeds in B; `None` if each output differs because its tensor does.
    pub(super) fn moved_output(&self, located: &Located, failing: &[usize]) -> Option<Start> {
        let [a, b] = self.models.map(Model::graph);
        failing.iter().find_map(|&at| {
            let &(result_a, result_b) = self.outputs.get(at)?;
            let (from_a, from_b) = (a.producer(result_a.input(0))?, b.producer(result_b.input(0))?);
            let target = located.targets.iter().position(|target| target.a == from_a || target.b == from_b);
            // A tensor that both outputs have agrees only if reading it changes what the device computes.
            let agrees = target.is_none_or(|at| (located.targets[at].a, located.targets[at].b) != (from_a, from_b));
            let around = [HashSet::from_iter([result_a]), HashSet::from_iter([result_b])];
            agrees.then_some(Start {
                a: result_a,
                b: result_b,
                difference: None,
                is_clear: true,
                around,
                places: Default::default(),
            })
        })
    }
}

/// Nearest compared tensors before a layer.
struct Inputs {
    /// The largest difference of these tensors.
    largest: f64,
    /// The layer itself, and the layers between these tensors and it.
    around: HashSet<LayerId>,
}

impl Inputs {
    fn of(graph: &Graph, layer: LayerId, errors: &HashMap<Output, &Difference>) -> Self {
        let mut found = Self { largest: 0.0, around: HashSet::default() };
        let mut pending = vec![layer];
        while let Some(id) = pending.pop() {
            if !found.around.insert(id) {
                continue;
            }
            for source in graph.producers(id).into_iter().flatten() {
                match errors.get(&source) {
                    Some(difference) => found.largest = found.largest.max(difference.size()),
                    None => pending.push(source.layer),
                }
            }
        }
        found
    }
}

/// Passes tensors to `work` in chunks, until it returns true. A chunk that the runtime refuses is split, down to single
/// tensors, which are returned.
pub(super) fn in_chunks(
    graph: &Graph,
    targets: &[Target],
    work: &mut dyn FnMut(&[Target]) -> Result<bool, VerifyError>,
) -> Result<Vec<Target>, VerifyError> {
    let (mut left_out, mut refusals) = (Vec::new(), 0);
    let mut pending = vec![targets];
    while let Some(rest) = pending.pop() {
        let (chunk, later) = rest.split_at(chunk(graph, rest));
        if !later.is_empty() {
            pending.push(later);
        }
        match work(chunk) {
            Ok(true) => break,
            Ok(false) => {}
            Err(VerifyError::Run { .. }) if refusals < MOST_REFUSALS => {
                refusals += 1;
                match chunk {
                    [single] => left_out.push(*single),
                    _ => {
                        let (first, second) = chunk.split_at(chunk.len() / 2);
                        pending.extend([second, first]);
                    }
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(left_out)
}

fn chunk(graph: &Graph, targets: &[Target]) -> usize {
    let mut bytes = 0;
    let found = targets.iter().take(CHUNK).take_while(|target| {
        let port = graph.output(target.a);
        let count: u64 = port.map_or(0, |port| {
            port.shape().dims().map_or(1, |dims| dims.iter().map(|dim| dim.lower().max(16) as u64).product())
        });
        bytes += count.saturating_mul(4);
        bytes <= CHUNK_BYTES
    });
    found.count().max(1).min(targets.len())
}

/// True if a change is at one of these layers of A or B, or in one of their bodies.
pub(super) fn is_at(change: &Change, [in_a, in_b]: &[HashSet<LayerId>; 2]) -> bool {
    let id = change.layer.place.steps().first().map_or(change.layer.id, |&(owner, _)| owner);
    match change.kind {
        ChangeKind::Names => false,
        ChangeKind::Removed => in_a.contains(&id),
        _ => in_b.contains(&id),
    }
}

/// A model with these tensors as additional outputs, and the position of each among the outputs.
pub(super) fn exposed(
    model: &Model,
    tensors: impl Iterator<Item = Output>,
) -> Result<(Model, Vec<usize>), VerifyError> {
    let mut model = model.clone();
    let results: Vec<LayerId> = model.edit(|graph| {
        let mut at = 0;
        let mut name = || {
            at += 1;
            format!("typelift/{at}")
        };
        tensors.map(|tensor| graph.add(NewLayer::new("Result", "opset1").named(&name()), &[tensor])).collect()
    })?;
    let places: HashMap<LayerId, usize> = model.outputs().enumerate().map(|(at, layer)| (layer.id(), at)).collect();
    let places = results.iter().map(|id| places.get(id).copied().unwrap_or(usize::MAX)).collect();
    Ok((model, places))
}
