//! Search for the layer of a body at which a difference starts: the body runs as a model, with the values that its owner got.

use typelift::promote::ElementType;

use super::Tensor;
use super::error::{Side, VerifyError};
use super::inputs::Sample;
use super::locate::{Search, Start, exposed, is_at};
use super::narrow::Ranged;
use super::runner::Runner;
use super::session::Session;
use foldhash::{HashMap, HashSet};
use typelift::graph::{Body, Direction, Place};
use typelift::ops::{self, LayerKind};
use typelift::{LayerId, Model, diff};

/// Limit on the steps of a loop that are compared.
const MOST_STEPS: usize = 16;

/// A body of both models, as models of their own.
struct Inner {
    models: [Model; 2],
    /// The layers of the bodies, by those of the models.
    originals: [HashMap<LayerId, LayerId>; 2],
    /// The Parameters and Results of both models, in order, by their ids in the bodies.
    inputs: [Vec<LayerId>; 2],
    outputs: [Vec<LayerId>; 2],
}

impl Inner {
    fn of(models: [&Model; 2], owners: [LayerId; 2], at: usize) -> Option<Self> {
        let (a, ids_a) = models[0].body_alone(owners[0], at)?;
        let (b, ids_b) = models[1].body_alone(owners[1], at)?;
        let originals = [ids_a, ids_b].map(|ids| ids.into_iter().map(|(old, new)| (new, old)).collect());
        let models = [a, b];
        let ends = |side: usize, is_input: bool| {
            let model: &Model = &models[side];
            let layers: Vec<_> = if is_input { model.inputs().collect() } else { model.outputs().collect() };
            let originals: &HashMap<LayerId, LayerId> = &originals[side];
            layers.into_iter().map(|layer| originals.get(&layer.id()).copied()).collect::<Option<Vec<_>>>()
        };
        let (inputs, outputs) = ([ends(0, true)?, ends(1, true)?], [ends(0, false)?, ends(1, false)?]);
        Some(Self { models, originals, inputs, outputs })
    }
}

impl Search<'_> {
    /// The start in a body of the layer at which a difference starts; `None` if the body cannot be run alone, or if
    /// its tensors agree.
    pub(super) fn inside(
        &self,
        runner: &mut dyn Runner,
        start: &Start,
        step: usize,
    ) -> Result<Option<Start>, VerifyError> {
        let owners = [start.a, start.b];
        let [a, b] = [0, 1].map(|side| self.models[side].graph().layer(owners[side]));
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        let sources: Option<Vec<_>> = self.models[0].graph().producers(start.a).into_iter().collect();
        let is_alike = ops::kind(a) == ops::kind(b)
            && a.bodies().len() == b.bodies().len()
            && self.models[1].graph().producers(start.b).len() == sources.as_ref().map_or(0, Vec::len);
        let Some(sources) = sources.filter(|_| is_alike && !a.bodies().is_empty()) else { return Ok(None) };
        let (model, places) = exposed(&self.ranged[0].model, sources.iter().map(|&source| self.ranged[0].of(source)))?;
        let session = Session::load(runner, [&model, &model], self.settings, false)?;
        let outputs = session.run(runner, Side::A, self.sample);
        session.release(runner);
        let outputs = outputs?.into_iter().nth(step).unwrap_or_default();
        let fed: Option<Vec<Tensor>> = places.iter().map(|&place| outputs.get(place).cloned()).collect();
        let Some(fed) = fed else { return Ok(None) };
        let at = match ops::kind(a) {
            LayerKind::If => usize::from(fed[0].floats().is_some_and(|values| values.first() == Some(&0.0))),
            _ => 0,
        };
        let (Some(inner), Some(in_a), Some(in_b)) =
            (Inner::of(self.models, owners, at), a.bodies().get(at), b.bodies().get(at))
        else {
            return Ok(None);
        };
        let found = self.in_steps(runner, &inner, [in_a, in_b], &fed)?;
        Ok(found.map(|found| found.moved_into(&inner.originals, owners, at)))
    }

    fn in_steps(
        &self,
        runner: &mut dyn Runner,
        inner: &Inner,
        bodies: [&Body; 2],
        fed: &[Tensor],
    ) -> Result<Option<Start>, VerifyError> {
        let mut carried: HashMap<LayerId, Tensor> = HashMap::default();
        let changes = diff(&inner.models[0], &inner.models[1]).changes;
        for step in 0..MOST_STEPS {
            let [a, b] = [0, 1].map(|side| {
                let inputs = inner.inputs[side].iter().zip(inner.models[side].inputs());
                let tensors = inputs.map(|(&id, layer)| {
                    let ty = layer.outputs().first()?.element_type();
                    // Both sides get what A carries from step to step.
                    let own = (side == 0).then_some(id).or_else(|| paired_parameter(bodies, id));
                    let tensor = own
                        .and_then(|own| carried.get(&own).cloned())
                        .or_else(|| entered(bodies[side], id, fed, step))?;
                    tensor.as_type(ty)
                });
                tensors.collect::<Option<Vec<_>>>()
            });
            let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
            let sample = Sample { fed: Vec::new(), a: vec![a], b: vec![b] };
            let ranged = [Ranged::plain(&inner.models[0]), Ranged::plain(&inner.models[1])];
            let search = Search {
                models: [&inner.models[0], &inner.models[1]],
                ranged: [&ranged[0], &ranged[1]],
                settings: self.settings,
                tolerance: self.tolerance,
                sample: &sample,
                unsteady: HashSet::default(),
                outputs: Vec::new(),
            };
            let located = search.compare(runner, false)?;
            if let Some(start) = search.start(&located, &|around| changes.iter().any(|change| is_at(change, around))) {
                return Ok(Some(search.inside(runner, &start, 0)?.unwrap_or(start)));
            }
            if bodies[0].back_edges.is_empty() {
                return Ok(None);
            }
            let session = Session::load(runner, search.models, self.settings, false)?;
            let outputs = session.run(runner, Side::A, &sample);
            session.release(runner);
            let outputs: HashMap<LayerId, Tensor> =
                inner.outputs[0].iter().copied().zip(outputs?.into_iter().flatten()).collect();
            let next = bodies[0].back_edges.iter().filter_map(|edge| Some((edge.to, outputs.get(&edge.from)?.clone())));
            carried = next.collect();
        }
        Ok(None)
    }
}

/// The Parameter of A's body that gets the same input of the owner, or the same position, as one of B's body.
fn paired_parameter([a, b]: [&Body; 2], id: LayerId) -> Option<LayerId> {
    let [mut inputs_a, mut inputs_b] =
        [a, b].map(|body| body.port_map.iter().filter(|entry| entry.direction == Direction::Input));
    let port = inputs_b.find(|entry| entry.internal_layer_id == id)?.external_port_id;
    inputs_a.find(|entry| entry.external_port_id == port).map(|entry| entry.internal_layer_id)
}

/// The value that a Parameter of a body has in a step, from the inputs of the owner.
fn entered(body: &Body, id: LayerId, fed: &[Tensor], step: usize) -> Option<Tensor> {
    let entry =
        body.port_map.iter().find(|entry| entry.direction == Direction::Input && entry.internal_layer_id == id)?;
    let Ok(port) = usize::try_from(entry.external_port_id) else {
        // The loop itself feeds the number of the step.
        let dims = body.graph.output(id.output(0))?.shape().to_static().unwrap_or_default();
        let dims: Vec<usize> = dims.into_iter().map(|dim| dim as usize).collect();
        return Some(Tensor::new(ElementType::I64, dims, (step as i64).to_le_bytes().to_vec()));
    };
    let tensor = fed.get(port)?;
    let Some(axis) = entry.axis else { return Some(tensor.clone()) };
    let axis = if axis < 0 { axis + tensor.dims.len() as i64 } else { axis };
    let length = *tensor.dims.get(usize::try_from(axis).ok()?)? as i64;
    let (stride, size) = (entry.stride.unwrap_or(1), entry.part_size.unwrap_or(1));
    let begin = entry.start.unwrap_or(0);
    let begin = if begin < 0 { begin + length } else { begin } + step as i64 * stride;
    let begin = if stride < 0 { begin + 1 - size } else { begin };
    slice(tensor, axis as usize, usize::try_from(begin).ok()?, usize::try_from(size).ok()?)
}

/// A part of a tensor along an axis; `None` if the tensor is shorter.
fn slice(tensor: &Tensor, axis: usize, begin: usize, size: usize) -> Option<Tensor> {
    let length = tensor.dims[axis];
    let width = tensor.dims[axis + 1..].iter().product::<usize>() * tensor.element_type.bits() as usize / 8;
    if begin + size > length || width == 0 {
        return None;
    }
    let rows = tensor.bytes.chunks(length * width);
    let bytes = rows.flat_map(|row| &row[begin * width..(begin + size) * width]).copied().collect();
    let mut dims = tensor.dims.clone();
    dims[axis] = size;
    Some(Tensor::new(tensor.element_type, dims, bytes))
}

impl Start {
    /// The start in a body, seen from the model that the body is in.
    fn moved_into(self, originals: &[HashMap<LayerId, LayerId>; 2], owners: [LayerId; 2], at: usize) -> Self {
        let is_outermost = self.places[0].is_model();
        let original = |side: usize, id: LayerId| originals[side].get(&id).copied().unwrap_or(id);
        let places = [0, 1].map(|side| {
            let own = Place::default().body(owners[side], at);
            let mut steps = self.places[side].steps().iter().enumerate();
            steps.by_ref().fold(own, |place, (depth, &(layer, at))| {
                place.body(if depth == 0 { original(side, layer) } else { layer }, at)
            })
        });
        if !is_outermost {
            return Self { places, ..self };
        }
        let around = [0, 1].map(|side| self.around[side].iter().map(|&id| original(side, id)).collect());
        Self { a: original(0, self.a), b: original(1, self.b), around, places, ..self }
    }
}
