//! Operations with bodies: If, Loop, TensorIterator.

use typelift_promote::ElementType;

use super::common::{check_rank, normalize_axis};
use super::evaluate::Bounds;
use super::{BodyInput, Context, Fault, Given, LayerKind, Operation, kind};
use crate::base::hash::{HashMap, HashSet};
use crate::findings::{Code, Message, Text, described, message};
use crate::model::graph::{Body, Direction, Graph, Layer, LayerId, LayerMap, Output, OutputPort, PortMapEntry};
use crate::model::shape::{Dim, Shape, TensorType};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("If", 8, if_).kind(LayerKind::If).inputs(1, usize::MAX),
    Operation::new("Loop", 5, loop_).kind(LayerKind::Loop).inputs(2, usize::MAX),
    Operation::new("TensorIterator", 0, tensor_iterator).kind(LayerKind::TensorIterator).inputs(0, usize::MAX),
];

/// Connections between a body and its layer: its port map as OpenVINO's reader interprets it.
struct BodyPorts {
    body: usize,
    inputs: Vec<BodyLink>,
    outputs: Vec<Exit>,
    /// The Parameter that receives the iteration count.
    iteration: Option<LayerId>,
    /// The Result with the condition for another iteration.
    condition: Option<LayerId>,
}

/// Connection of an input of the layer to a Parameter of the body.
struct BodyLink {
    input: usize,
    parameter: LayerId,
    slices: Option<Slices>,
    /// The Result whose value the Parameter gets from the second iteration on, if there is a back edge.
    carried: Option<LayerId>,
}

impl BodyLink {
    fn cut(&self, mut shape: Shape) -> Result<Shape, Fault> {
        if let (Some(slices), Some(_)) = (self.slices, shape.rank()) {
            let axis = usize::try_from(slices.axis).ok();
            match axis.and_then(|axis| shape.dims_mut()?.get_mut(axis)) {
                Some(dim) => *dim = Dim::from(slices.part_size),
                None => return Err(no_axis(&[self.input], slices.axis, &shape)),
            }
        }
        Ok(shape)
    }

    /// If an empty tensor is passed between iterations, its shape becomes unknown, because the loop may append to it.
    fn cut_or_open(&self, shape: Shape) -> Result<Shape, Fault> {
        let mut shape = self.cut(shape)?;
        if self.carried.is_some() {
            let dims = shape.dims_mut().unwrap_or_default().iter_mut();
            dims.filter(|dim| dim.value() == Some(0)).for_each(|dim| *dim = Dim::ANY);
        }
        Ok(shape)
    }
}

/// Connection of a Result of the body to an output of the layer.
struct Exit {
    result: LayerId,
    slices: Option<Slices>,
}

/// Slices of a tensor, one for each iteration: of an input, or to concatenate in an output.
#[derive(Clone, Copy)]
struct Slices {
    axis: i64,
    start: i64,
    end: i64,
    part_size: i64,
}

fn if_(cx: &mut Context) -> Result<(), Fault> {
    let (then, otherwise) = (BodyPorts::new(cx, "then_body")?, BodyPorts::new(cx, "else_body")?);
    check_rank(cx, 0, "condition", &[0, 1])?;
    // OpenVINO's reader creates as many outputs as the first branch has. An output that the executed branch does not
    // set remains unknown.
    let count = then.outputs.len();
    if let Some(taken) = truth(cx.exact(0).as_deref(), "condition of an If")? {
        let taken = if taken { then } else { otherwise };
        taken.run(cx, &taken.given(cx, |_, shape| Ok(shape))?)?;
        for exit in &taken.outputs {
            let TensorType { element_type, shape } = taken.value(cx, exit.result);
            cx.output(element_type, shape);
        }
        for _ in taken.outputs.len()..count {
            cx.output(ElementType::Dynamic, Shape::dynamic());
        }
        return Ok(());
    }
    for branch in [&then, &otherwise] {
        branch.run(cx, &branch.given(cx, |_, shape| Ok(shape))?)?;
        branch.check_distinct_results(cx)?;
    }
    for (output, left) in then.outputs.iter().enumerate() {
        let Some(right) = otherwise.outputs.get(output) else {
            return Err(invalid(
                message!("output {} is missing in the port map of `else_body`, but `then_body` has it"; output),
            )
            .help("add the <output> to the <else_port_map>: both branches must have the same outputs"));
        };
        let TensorType { element_type: left_type, shape: left } = then.value(cx, left.result);
        let TensorType { element_type: right_type, shape: right } = otherwise.value(cx, right.result);
        let element_type = match (left_type, right_type) {
            (left, right) if left == right || right == ElementType::Dynamic => left,
            (ElementType::Dynamic, right) => right,
            (left, right) => {
                let results = [&then, &otherwise].map(|side| (side.body, side.outputs[output].result));
                let message = message!(
                    "output {} is {} from {} in `then_body` and {} from {} in `else_body`";
                    output, left, then.producer(cx, results[0].1), right, otherwise.producer(cx, results[1].1)
                );
                let fault = Fault::types(&[], message).rule("both branches must have the same element type");
                cx.align_results(results).ok_or_else(|| fault.help("insert a Convert before one of the Results"))?
            }
        };
        cx.output(element_type, either(&left, &right));
    }
    Ok(())
}

/// Checks that the port maps of an unknown operation refer to layers of its bodies.
pub(crate) fn check_port_maps(bodies: &[Body]) -> Result<(), Fault> {
    bodies.iter().enumerate().try_for_each(|(at, body)| BodyPorts::of(body, at).map(drop))
}

/// Unlike [`Dim::hull`], it omits bounds.
fn either(left: &Shape, right: &Shape) -> Shape {
    match (left.dims(), right.dims()) {
        (Some(left), Some(right)) if left.len() == right.len() => {
            let pairs = left.iter().zip(right);
            pairs.map(|(a, b)| if a.is_fixed() && b.is_fixed() { a.hull(*b) } else { Dim::ANY }).collect()
        }
        // A scalar matches a list of one element.
        (Some([]), Some([list])) | (Some([list]), Some([])) => {
            [if *list == Dim::ONE { Dim::ONE } else { Dim::ANY }].into_iter().collect()
        }
        _ => Shape::dynamic(),
    }
}

fn loop_(cx: &mut Context) -> Result<(), Fault> {
    let joints = BodyPorts::new(cx, "body")?;
    check_rank(cx, 1, "execution condition", &[0, 1])?;
    let never = truth(cx.exact(1).as_deref(), "execution condition of a Loop")? == Some(false);
    let Some(condition) = joints.condition else {
        // OpenVINO accepts a condition that is always false, and the outputs are then unknown.
        return cx.finish(ElementType::Dynamic, Shape::dynamic());
    };
    joints.check_inputs(cx, 2)?;
    let given = joints.given(cx, BodyLink::cut_or_open)?;
    // The condition may depend on shapes inside the body, which are not updated yet, so it is read before.
    let expected = joints.iterations(cx, condition)?;
    joints.settle(cx, given.clone(), expected)?;
    let iterations = joints.iterations(cx, condition)?;
    if iterations != expected {
        joints.settle(cx, given, iterations)?;
    }
    for exit in &joints.outputs {
        let TensorType { element_type, mut shape } = joints.value(cx, exit.result);
        if let Some(slices) = exit.slices {
            if never {
                shape = Shape::fixed([0]);
            } else if let Some(rank) = shape.rank() {
                let axis = normalize_axis(slices.axis, rank).ok_or_else(|| no_axis(&[], slices.axis, &shape))?;
                if rank == 0 {
                    shape = Shape::fixed([1]);
                }
                if let Some(dim) = shape.dims_mut().and_then(|dims| dims.get_mut(axis)) {
                    let part = dim.value().zip(iterations);
                    *dim = part.map_or(Dim::ANY, |(part, iterations)| Dim::from(part.wrapping_mul(iterations)));
                }
            }
        } else if never && shape.is_static() {
            match shape.dims_mut().and_then(|dims| dims.first_mut()) {
                Some(first) => *first = Dim::fixed(0),
                None => {
                    return Err(Fault::value(&[1], "this Loop has no iteration, so a scalar output has no value")
                        .rule("the outputs of a Loop without iterations are empty"));
                }
            }
        }
        cx.output(element_type, shape);
    }
    if joints.outputs.is_empty() {
        return Err(invalid("the port map of this Loop has no output"));
    }
    Ok(())
}

fn tensor_iterator(cx: &mut Context) -> Result<(), Fault> {
    let joints = BodyPorts::new(cx, "body")?;
    joints.check_inputs(cx, 0)?;
    if joints.outputs.is_empty() {
        return Err(invalid("the port map of this TensorIterator has no output"));
    }
    let used = leading_to_results(&cx.bodies[joints.body].graph);
    let is_inner = |layer: &&Layer| kind(layer) == LayerKind::TensorIterator && used.get(layer.id()).is_some();
    if let Some(inner) = cx.bodies[joints.body].graph.unordered().find(is_inner) {
        return Err(invalid(
            message!("the body of this TensorIterator contains the TensorIterator `{}`"; inner.name()),
        )
        .rule("OpenVINO allows no TensorIterator in the body of another")
        .help("make one of them a Loop"));
    }
    let mut given = joints.given(cx, BodyLink::cut)?;
    // OpenVINO keeps the declared element types of the body here. It ignores Parameters on which no Result depends.
    given.values_mut().for_each(|input| input.element_type = None);
    given.retain(|parameter, _| used.get(*parameter).is_some());
    let mut iterations = None;
    for entrance in &joints.inputs {
        let Some(Slices { axis, start, end, part_size }) = entrance.slices else { continue };
        let dim = usize::try_from(axis).ok().and_then(|axis| cx.shape(entrance.input).dims()?.get(axis));
        if let Some(length) = dim.and_then(|dim| dim.value()) {
            let [start, end] = [start, end].map(|at| if at < 0 { length.wrapping_add(at) } else { at });
            let reach = end.wrapping_sub(start).wrapping_abs().wrapping_add(1);
            iterations = Some(parts(reach, part_size)?);
        }
    }
    joints.run(cx, &given)?;
    if joints.inputs.iter().all(|entrance| entrance.slices.is_none())
        && let Some(slices) = joints.outputs.iter().find_map(|exit| exit.slices)
    {
        iterations = Some(parts(slices.end.wrapping_sub(slices.start).wrapping_abs(), slices.part_size)?);
    }
    for exit in &joints.outputs {
        let TensorType { element_type, mut shape } = joints.value(cx, exit.result);
        if let (Some(slices), Some(rank)) = (exit.slices, shape.rank()) {
            let mut axis = normalize_axis(slices.axis, rank);
            if rank == 0 {
                shape = Shape::of_rank(1);
                axis = axis.filter(|_| slices.axis == 0);
            }
            let dim = axis.and_then(|axis| shape.dims_mut()?.get_mut(axis));
            let Some(dim) = dim else { return Err(no_axis(&[], slices.axis, &joints.value(cx, exit.result).shape)) };
            // As in OpenVINO, -1 means an unknown number of iterations.
            let iterations = iterations.filter(|&iterations| iterations != -1);
            *dim = iterations.map_or(Dim::ANY, |count| Dim::from(count.wrapping_mul(slices.part_size)));
        }
        cx.output(element_type, shape);
    }
    Ok(())
}

/// Maximum number of layers that a fix lists.
const SHOWN: usize = 8;

fn leading_to_results(graph: &Graph) -> LayerMap<()> {
    let results = graph.unordered().filter(|layer| kind(layer) == LayerKind::Result);
    let mut used = LayerMap::new(graph);
    graph.mark_upstream(results.map(Layer::id), &mut used);
    used
}

fn parts(length: i64, part_size: i64) -> Result<i64, Fault> {
    length.checked_div(part_size).ok_or_else(|| {
        invalid(message!("`part_size` is {} in the port map"; part_size))
            .help("write the length of one slice, usually 1")
    })
}

impl BodyPorts {
    fn new(cx: &Context, name: &'static str) -> Result<Self, Fault> {
        match cx.bodies.iter().position(|body| body.name() == name) {
            Some(at) => Self::of(&cx.bodies[at], at),
            None => Err(invalid(message!("this {} has no `{}`"; cx.ty(), name))
                .help(message!("add <{}> with its <layers> and <edges>"; name))),
        }
    }

    /// Reads the connections of a body as OpenVINO does: one for each external port, in the order of their ids.
    fn of(body: &Body, at: usize) -> Result<Self, Fault> {
        let mut joints = Self { body: at, inputs: Vec::new(), outputs: Vec::new(), iteration: None, condition: None };
        let name = body.name();
        for entry in entries(body, Direction::Input) {
            let id = entry.internal_layer_id;
            let back_edge = body.back_edges.iter().find(|edge| edge.to == id);
            let slices = slices(entry);
            if entry.purpose() == Some("current_iteration") {
                joints.iteration = Some(check_joint(body, id, LayerKind::Parameter)?);
            }
            if slices.is_none() && back_edge.is_none() && entry.external_port_id < 0 {
                continue;
            }
            let parameter = check_joint(body, id, LayerKind::Parameter)?;
            let carried = back_edge.filter(|_| slices.is_none());
            let carried = carried.map(|edge| check_joint(body, edge.from, LayerKind::Result)).transpose()?;
            let input = usize::try_from(entry.external_port_id).unwrap_or(usize::MAX);
            if slices.is_some_and(|slices| slices.axis < 0) {
                return Err(invalid(
                    message!("the port map of `{}` slices Parameter {} along a negative axis"; name, id),
                )
                .help("count the axis from 0"));
            }
            joints.inputs.push(BodyLink { input, parameter, slices, carried });
        }
        for entry in entries(body, Direction::Output) {
            let id = entry.internal_layer_id;
            if entry.purpose() == Some("execution_condition") {
                joints.condition = Some(check_joint(body, id, LayerKind::Result)?);
            }
            if entry.external_port_id >= 0 {
                joints.outputs.push(Exit { result: check_joint(body, id, LayerKind::Result)?, slices: slices(entry) });
            }
        }
        Ok(joints)
    }

    /// `shape` computes the shape from that of the input. If several inputs of the layer feed one Parameter, the last
    /// one is used.
    fn given(&self, cx: &Context, shape: impl Fn(&BodyLink, Shape) -> Result<Shape, Fault>) -> Result<Given, Fault> {
        let given = self.inputs.iter().map(|entrance| {
            let Some(input) = cx.inputs.get(entrance.input) else {
                let (parameter, count) = (entrance.parameter, cx.inputs.len());
                let message = message!(
                    "the port map connects Parameter {} to input {} of the layer, which has only {} inputs";
                    parameter, entrance.input as i64, count
                );
                return Err(invalid(message)
                    .joint(&cx.bodies[self.body], Direction::Input, parameter)
                    .rule("`external_port_id` counts the inputs of the layer from 0")
                    .help(message!("write an external_port_id from 0 to {}"; count.saturating_sub(1))));
            };
            let shape = shape(entrance, input.shape().clone())?;
            Ok((entrance.parameter, BodyInput { shape, element_type: Some(input.element_type()) }))
        });
        given.collect()
    }

    /// Checks that every input of the layer feeds a Parameter. The first `own` inputs belong to the layer itself.
    fn check_inputs(&self, cx: &Context, own: usize) -> Result<(), Fault> {
        let shared = self.inputs.iter().filter(|entrance| entrance.input < own).count();
        let expected = self.inputs.len() + own - shared;
        match cx.inputs.len() {
            count if count == expected => Ok(()),
            count => {
                let free: Vec<_> = (own..count).filter(|at| self.inputs.iter().all(|it| it.input != *at)).collect();
                let entries = cx.bodies[self.body].port_map.iter().filter(|it| it.direction == Direction::Input);
                let ports: Vec<_> = entries.map(|it| it.external_port_id).filter(|&port| port >= 0).collect();
                let twice = ports.iter().enumerate().find(|(at, port)| ports[at + 1..].contains(port));
                let twice = twice.map(|(_, port)| message!(": two entries name input {}"; *port)).unwrap_or_default();
                let message =
                    message!("`{}` has {} inputs, but its port map uses {}{}"; cx.ty(), count, expected, twice);
                let help = "map every input to a Parameter of the body, or take its edge out";
                Err(Fault { inputs: free.into(), ..invalid(message).help(help) })
            }
        }
    }

    /// An error if a Result feeds two outputs.
    fn check_distinct_results(&self, cx: &Context) -> Result<(), Fault> {
        let mut seen = HashSet::default();
        match self.outputs.iter().find(|exit| !seen.insert(exit.result)) {
            Some(exit) => {
                let name = cx.bodies[self.body].name();
                Err(invalid(message!("the port map of `{}` uses the Result {} for two outputs"; name, exit.result))
                    .help("add another Result of the same tensor"))
            }
            None => Ok(()),
        }
    }

    fn run(&self, cx: &mut Context, given: &Given) -> Result<(), Fault> {
        cx.infer_body(self.body, given)
    }

    fn source(&self, cx: &Context, result: LayerId) -> Option<Output> {
        cx.bodies[self.body].graph.producer(result.input(0))
    }

    fn value(&self, cx: &Context, result: LayerId) -> TensorType {
        let port = self.source(cx, result).and_then(|source| cx.bodies[self.body].graph.output(source));
        port.map_or_else(TensorType::dynamic, OutputPort::tensor_type)
    }

    fn producer(&self, cx: &Context, result: LayerId) -> Message {
        let source = self.source(cx, result).and_then(|source| cx.bodies[self.body].graph.layer(source.layer));
        source.map_or_else(|| "nothing".into(), described)
    }

    /// The number of iterations of a Loop, if it is known now or was known in an earlier inference.
    fn iterations(&self, cx: &mut Context, condition: LayerId) -> Result<Option<i64>, Fault> {
        let body = &cx.bodies[self.body].graph;
        let counter = self.iteration.and_then(|parameter| body.layer(parameter)?.outputs().first());
        if counter.and_then(|port| port.shape().rank()).is_some_and(|rank| rank > 1) {
            return Err(invalid("the Parameter that counts the iterations is not a single number"));
        }
        let (value, shape) = (self.source(cx, condition), self.value(cx, condition).shape);
        if shape.rank().is_some_and(|rank| rank > 1) {
            return Err(Fault::shapes(&[], message!("the body's execution condition has the shape {}"; shape))
                .rule("it must be a scalar or a list of one number"));
        }
        let bounds = value.and_then(|output| cx.body_bounds(self.body, output));
        let mut goes_on =
            truth(bounds.filter(|bounds| bounds.is_exact()).as_deref(), "execution condition in the body")?;
        if goes_on.is_none() {
            // The condition can be a Parameter, whose value comes from outside.
            let parameter = value.map(|source| source.layer);
            for entrance in &self.inputs {
                if Some(entrance.parameter) == parameter {
                    goes_on = truth(cx.exact(entrance.input).as_deref(), "execution condition of a Loop")?.or(goes_on);
                }
            }
        }
        check_rank(cx, 0, "trip count", &[0, 1])?;
        if cx.is_constant(0) && cx.element_type(0) == ElementType::String {
            return Err(Fault::unsupported(0, "the trip count of a Loop is a string").help("make it i64"));
        }
        let trips = cx.integers(0);
        if trips.as_ref().is_some_and(|trips| trips.len() != 1) {
            return Err(Fault::shapes(&[0], "the trip count of a Loop must be one number"));
        }
        let known = match (goes_on, trips.as_deref()) {
            (Some(false), _) => Some(1),
            (Some(true), Some(&[trips])) => Some(trips),
            _ => None,
        };
        let (layer, body) = (cx.layer, self.body);
        let kept = cx.around_mut().iterations(layer, body);
        *kept = known.or(*kept);
        // As in OpenVINO, -1 means an unknown number of iterations.
        Ok(kept.filter(|&iterations| iterations != -1))
    }

    /// Infers the body again and again until the shapes for the next iteration no longer change. Dimensions that
    /// change become unknown. Stops after the known number of iterations.
    fn settle(&self, cx: &mut Context, mut given: Given, iterations: Option<i64>) -> Result<(), Fault> {
        self.run(cx, &given)?;
        let carried: HashMap<_, _> = self.inputs.iter().filter_map(|e| Some((e.carried?, e.parameter))).collect();
        let mut left = iterations.map_or(u64::MAX, |iterations| iterations as u64);
        while left > 0 {
            left -= 1;
            let mut settled = true;
            for exit in self.outputs.iter().filter(|exit| exit.slices.is_none()) {
                let input = carried.get(&exit.result).and_then(|parameter| given.get_mut(parameter));
                let Some(input) = input else { continue };
                let found = self.value(cx, exit.result).shape;
                if input.shape.relaxes(&found) {
                    continue;
                }
                input.shape = match (input.shape.dims(), found.dims()) {
                    (Some(taken), Some(found)) if taken.len() == found.len() => {
                        let pairs = taken.iter().zip(found);
                        pairs.map(|(&taken, &found)| if taken.relaxes(found) { taken } else { Dim::ANY }).collect()
                    }
                    _ => Shape::dynamic(),
                };
                settled = false;
            }
            if settled {
                break;
            }
            self.run(cx, &given)?;
        }
        Ok(())
    }
}

/// The entries of a port map in one direction, one for each external port, in the order of the ports. Inputs without a
/// port are last.
fn entries(body: &Body, direction: Direction) -> Vec<&PortMapEntry> {
    let mut entries: Vec<_> = body.port_map.iter().filter(|entry| entry.direction == direction).collect();
    match direction {
        Direction::Input => entries.sort_by_key(|entry| entry.external_port_id as u64),
        Direction::Output => entries.sort_by_key(|entry| entry.external_port_id),
    }
    entries.dedup_by_key(|entry| entry.external_port_id);
    entries
}

fn slices(entry: &PortMapEntry) -> Option<Slices> {
    entry.axis.map(|axis| Slices {
        axis,
        start: entry.start.unwrap_or(0),
        end: entry.end.unwrap_or(-1),
        part_size: entry.part_size.unwrap_or(1),
    })
}

/// Checks that a layer in a port map or back edge is a Parameter or Result of the body.
fn check_joint(body: &Body, id: LayerId, wanted: LayerKind) -> Result<LayerId, Fault> {
    match body.graph.layer(id) {
        Some(layer) if kind(layer) == wanted => Ok(id),
        layer => {
            let is = layer
                .map_or_else(|| "does not exist".into(), |layer| message!("is the {} `{}`"; layer.ty(), layer.name()));
            let fitting = body.graph.layers().filter(|layer| kind(layer) == wanted);
            let fitting: Vec<_> =
                fitting.map(|layer| format!("{} `{}`", layer.id(), layer.name())).take(SHOWN).collect();
            let direction = if wanted == LayerKind::Parameter { Direction::Input } else { Direction::Output };
            let help = if fitting.is_empty() {
                message!("add a {} to the body"; Text(format_args!("{wanted:?}")))
            } else {
                message!("write the id of a {} of the body: {}"; Text(format_args!("{wanted:?}")), fitting.join(", "))
            };
            Err(invalid(message!(
                "layer {} of `{}` should be a {}, and {}";
                id, body.name(), Text(format_args!("{wanted:?}")), is
            ))
                .joint(body, direction, id)
                .rule("inputs and the ends of back edges must be Parameters; outputs and the starts of back edges must be Results")
                .help(help))
        }
    }
}

/// The value of a condition, if it is known.
fn truth(values: Option<&Bounds>, what: &'static str) -> Result<Option<bool>, Fault> {
    match values.map(|values| values.lower.truths()).as_deref() {
        None => Ok(None),
        Some(&[value]) => Ok(Some(value)),
        Some(values) => Err(Fault::value(&[], message!("the {} has {} values, not one"; what, values.len()))),
    }
}

fn invalid(message: impl Into<Message>) -> Fault {
    Fault::other(Code::InvalidBody, message)
}

fn no_axis(inputs: &[usize], axis: i64, shape: &Shape) -> Fault {
    Fault::shapes(inputs, message!("the port map names axis {} of a tensor of shape {}"; axis, shape))
}
