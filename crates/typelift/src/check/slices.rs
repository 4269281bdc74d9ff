//! Checks of the slices of a Loop or TensorIterator, and of Parameters without an input.

use super::GraphCheck;
use crate::base::hash::HashMap;
use crate::findings::{Code, Message, message};
use crate::model::graph::{Body, Direction, Layer, LayerId, OutputPort, PortMapEntry};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};
use crate::text::xml;

/// Tensor outside of a body that a port map slices, or concatenates from slices.
struct Sliced<'a> {
    entry: &'a PortMapEntry,
    /// Description for messages: `input 1`.
    what: Message,
    outer: &'a Shape,
    /// Shape of the tensor in the body in one iteration.
    inner: &'a Shape,
}

impl Sliced<'_> {
    fn parts(&self) -> Option<(i64, [i64; 3])> {
        let entry = self.entry;
        let axis = usize::try_from(entry.axis?).ok()?;
        let length = self.outer.dims()?.get(axis)?.value()?;
        Some((length, [entry.start.unwrap_or(0), entry.end.unwrap_or(-1), entry.stride.unwrap_or(1)]))
    }

    /// The number of slices, by the rule of OpenVINO's CPU plugin; `None` if the length is unknown.
    fn count(&self) -> Option<Result<i64, Message>> {
        let (length, [start, end, stride]) = self.parts()?;
        let from_start = |place: i64| if place < 0 { length.saturating_add(place).saturating_add(1) } else { place };
        let (start, end) = (from_start(start), from_start(end));
        let (first, last) = if stride < 0 { (end, start) } else { (start, end) };
        let (reach, step) = (last.saturating_sub(first), stride.saturating_abs());
        Some(if stride == 0 {
            Err("a stride of 0 never reaches the end".into())
        } else if first < 0 || first >= last || last > length || reach < step {
            Err(message!("there is no slice from {} to {} in length {} with stride {}"; first, last, length, stride))
        } else if reach % step != 0 {
            Err(message!("{} is not divisible by the stride {}"; reach, step))
        } else {
            Ok(reach / step)
        })
    }

    /// True if a Loop slices the tensor exactly as its entry declares. It ignores other strides of inputs.
    fn is_exact(&self) -> bool {
        self.entry.direction == Direction::Output || matches!(self.entry.stride, None | Some(1 | -1))
    }

    /// The shape of a slice, if it differs from that of the tensor in the body.
    fn mismatch(&self) -> Option<Shape> {
        let (_, [.., stride]) = self.parts()?;
        let mut slice = self.outer.clone();
        let axis = usize::try_from(self.entry.axis?).ok()?;
        *slice.dims_mut()?.get_mut(axis)? = stride.saturating_abs().into();
        (!slice.is_compatible(self.inner)).then_some(slice)
    }
}

impl<'a> GraphCheck<'a> {
    /// Checks all slices of a loop, up to the first error.
    pub(super) fn check_slices(
        &mut self,
        layer: &'a Layer,
        body: &'a Body,
        inputs: &[Option<(&'a Layer, &'a OutputPort)>],
    ) {
        let mut first: Option<(Message, i64)> = None;
        let counts = ops::kind(layer) == LayerKind::TensorIterator;
        for sliced in slices(layer, body, inputs) {
            let what = &sliced.what;
            let fault = match sliced.count() {
                Some(Err(fault)) if counts || sliced.entry.stride == Some(0) => Some(fault),
                Some(Ok(count)) if counts => match &first {
                    Some((other, number)) if *number != count => {
                        Some(message!("{} has {} slices, but {} has {}"; what, count, other, number))
                    }
                    Some(_) => None,
                    None => {
                        first = Some((what.clone(), count));
                        None
                    }
                },
                _ => None,
            };
            let mismatch = || {
                let is_other = counts || sliced.is_exact();
                let slice = sliced.mismatch().filter(|_| is_other)?;
                Some(message!("a slice of {} is {}, but the body has {} there"; what, slice, sliced.inner))
            };
            let Some(fault) = fault.or_else(mismatch) else { continue };
            let message = message!("`{}` cannot run: {}"; layer.name(), fault);
            let help = message!(
                "correct axis, start, end, stride and part_size of {} in <port_map>: stride and part_size are the \
                 length of one slice";
                what
            );
            self.port_map_lint(
                layer,
                sliced.entry.internal_layer_id,
                message,
                "OpenVINO reads it, but fails to compile it",
                help,
            );
            return;
        }
    }

    /// Reports Parameters of a body without an input, or with several.
    pub(super) fn check_fed_parameters(&mut self, layer: &'a Layer, body: &'a Body) {
        let mut entries = HashMap::<LayerId, usize>::default();
        for entry in body.port_map.iter().filter(|entry| entry.direction == Direction::Input) {
            *entries.entry(entry.internal_layer_id).or_default() += 1;
        }
        let graph = &body.graph;
        let is_parameter =
            |id: &LayerId| graph.layer(*id).is_some_and(|layer| ops::kind(layer) == LayerKind::Parameter);
        if !entries.keys().all(is_parameter) {
            return;
        }
        for parameter in graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Parameter) {
            let id = parameter.id();
            let is_used = graph.users(id).next().is_some();
            let (fault, help) = match entries.get(&id) {
                None if is_used => ("is not connected", "add an <input> for it to the port map"),
                Some(2..) => (
                    "has several inputs, of which OpenVINO uses only one",
                    "connect each <input> to a different Parameter",
                ),
                _ => continue,
            };
            let message = message!("Parameter {} `{}` of `{}` {}"; id, parameter.name(), body.name(), fault);
            self.port_map_lint(layer, id, message, "OpenVINO accepts it silently", help.into());
        }
    }

    /// Reports outputs in a port map that are no port of the layer, and back edges that end at no Parameter.
    pub(super) fn check_ends(&mut self, layer: &'a Layer, body: &'a Body) {
        let outputs =
            || body.port_map.iter().filter(|it| it.direction == Direction::Output && it.external_port_id >= 0);
        let has_port = |id: i64| layer.outputs().iter().any(|port| u64::try_from(id) == Ok(port.id()));
        for entry in outputs().filter(|entry| !has_port(entry.external_port_id)) {
            let is_free = |id: &u64| outputs().all(|it| u64::try_from(it.external_port_id) != Ok(*id));
            let free: Vec<_> = layer.outputs().iter().map(OutputPort::id).filter(is_free).collect();
            let id = entry.external_port_id;
            let message =
                message!("the port map of `{}` names output port {}, which the layer does not have"; layer.name(), id);
            let help = match free[..] {
                [only] => message!("write external_port_id=\"{}\""; only),
                _ => "write the id of an output port of the layer".into(),
            };
            let label = "OpenVINO uses the order of the outputs instead";
            self.port_map_lint(layer, entry.internal_layer_id, message, label, help);
        }
        self.check_back_edge_ends(layer, body);
    }

    fn port_map_lint(&mut self, layer: &Layer, inner: LayerId, message: Message, label: &'static str, help: Message) {
        let place = layer.span().unwrap_or_default();
        let span = xml::locate_joint(self.source, place, inner).unwrap_or_else(|| self.locate(layer, "layer", "name"));
        let lint = self.lint(Code::IncompletePortMap, layer, message).at(span, label);
        self.diagnostics.push(lint.help(help));
    }
}

fn slices<'a>(layer: &'a Layer, body: &'a Body, inputs: &[Option<(&'a Layer, &'a OutputPort)>]) -> Vec<Sliced<'a>> {
    let graph = &body.graph;
    let mut outputs: Vec<_> = body.port_map.iter().filter(|it| it.direction == Direction::Output).collect();
    outputs.retain(|entry| entry.external_port_id >= 0);
    outputs.sort_by_key(|entry| entry.external_port_id);
    outputs.dedup_by_key(|entry| entry.external_port_id);
    let entering = body.port_map.iter().filter(|it| it.direction == Direction::Input).filter_map(|entry| {
        let input = usize::try_from(entry.external_port_id).ok()?;
        let (_, outer) = (*inputs.get(input)?)?;
        let inner = graph.layer(entry.internal_layer_id)?.outputs().first()?;
        Some(Sliced { entry, what: message!("input {}"; input), outer: outer.shape(), inner: inner.shape() })
    });
    let leaving = outputs.iter().enumerate().filter_map(|(output, entry)| {
        let inner = graph.output(graph.producer(entry.internal_layer_id.input(0))?)?;
        let outer = layer.outputs().get(output)?;
        Some(Sliced { entry, what: message!("output {}"; output), outer: outer.shape(), inner: inner.shape() })
    });
    entering.chain(leaving).filter(|sliced| sliced.entry.axis.is_some()).collect()
}
