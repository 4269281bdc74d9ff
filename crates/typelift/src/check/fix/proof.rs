//! The decision if a fix is safe. It needs one named proof, and every similar change must fail.
//!
//! A trial by types and shapes can show that a fix is wrong. It cannot prove one, because `axis="1"` and `axis="2"`
//! may both pass. A fix is safe if the file itself shows that it is intended, and if similar values were tried and
//! fail. Otherwise it is possible, and a person must choose.
//!
//! ```text
//! axis="(-1)"              text        every character is accounted for: safe
//! axis="2", ports say 1    neighbours  0, 2 and -1 do not give what the ports declare: safe
//! from-port="3"            possible    a lost Convert explains the edge as well
//! ```

use typelift_promote::ElementType;

use super::change::{Change, Needs};
use super::fitting::Fitting;
use super::reading::{self, Kind, Reading};
use super::site::{EdgeText, Site};
use super::trial::Soundness;
use super::{relation, words};
use crate::base::{foreign, names};
use crate::check::Declared;
use crate::findings::{Proof, Text, message};
use crate::model::graph::{Attribute, Direction, Graph, InputPort, Layer, LayerId, Model, OutputPort, split_names};
use crate::ops::{self, Attr, AttrKind, LayerKind};

/// Maximum number of inputs whose orders are compared.
const MOST_INPUTS: usize = 6;

/// Model and findings for which candidates are tried.
pub(super) struct Case<'a> {
    pub(super) model: &'a Model,
    pub(super) graph: &'a Graph,
    pub(super) edges: &'a [EdgeText],
    /// The state of the text before the change.
    pub(super) before: &'a Soundness,
    /// True if OpenVINO cannot load the file because of the finding.
    pub(super) is_error: bool,
}

impl Case<'_> {
    /// Decides if a change that passed its trial is safe. No other function decides this.
    ///
    /// `after` is the state of the text after the trial. Returns the proof, with the similar changes that were tried
    /// and fail. `None` if there is no proof, or if a similar change passes too.
    pub(super) fn prove(&self, change: &Change, after: &Soundness) -> Option<Proof> {
        match change {
            Change::Value { layer, name, value } => self.value(self.graph.layer(*layer)?, name, value, after),
            Change::Declared { layer, names, fills: true } if self.is_error => {
                let is_said = !names.contains(&"shape")
                    || self.graph.layer(*layer).and_then(|layer| self.of_source(layer, "shape")).is_some();
                is_said.then(|| Proof::new("port, and the offset of the next constant"))
            }
            Change::Declared { layer, names, .. } => self.declared(self.graph.layer(*layer)?, names),
            Change::Exchange { layer, names: [one, other] } => {
                let is_exchanged = relation::are_exchanged(self.graph.layer(*layer)?, one, other);
                is_exchanged.then(|| Proof::new("swap: each value is valid only for the other attribute"))
            }
            Change::Place { layer, is_only_one } => {
                let is_readable = self.graph.layer(*layer)?.byte_count("offset").is_some();
                (!is_readable && *is_only_one).then(|| Proof::new("the only unused range of its size"))
            }
            Change::AttributeName { is_only } => {
                is_only.then(|| Proof::new("text: one letter, the case of letters, or another word for it"))
            }
            Change::Operation { layer, written, meant } => match operation(written) {
                Some(read) => (read.value == *meant).then(|| text(read)),
                None => self.by_attributes(self.graph.layer(*layer)?, meant),
            },
            Change::Version { layer, value } => self.version(self.graph.layer(*layer)?, value),
            Change::Number(slips) => Some(text(Reading { value: String::new(), slips: slips.clone() })),
            Change::Source { layer, input, from } => self.source(*layer, *input, *from, after),
            Change::OutputPort { from } => {
                let has_one = self.graph.layer(*from)?.outputs().len() == 1;
                (has_one && self.is_sound(&[*from], after)).then(|| Proof::new("the only output of the layer"))
            }
            Change::Target { layer } => {
                self.is_sound(&[*layer], after).then(|| Proof::new("the only input without an edge"))
            }
            Change::Order { layer } => self.order(*layer, after),
            Change::Turned { from, to } => self.turned(*from, *to, after),
            Change::LayerId => {
                after.is_well_wired().then(|| Proof::new("ids: consecutive, and no other layer is without an edge"))
            }
            Change::PortId { layer } => {
                let layer = self.graph.layer(*layer)?;
                let is_shifted = self.is_shifted(layer);
                (!is_shifted && after.is_well_wired()).then(|| Proof::new("ids: the port ids are consecutive"))
            }
            Change::NewPort { layer, direction } => self.new_port(self.graph.layer(*layer)?, *direction, after),
            Change::Port { written, ty, is_type_alone } => {
                let read = port_type(written.as_deref()?)?;
                let is_it = ty.port_name() == Some(&*read.value);
                (*is_type_alone && is_it && !read.slips.is_empty()).then(|| text(read))
            }
            Change::Joint { is_only } => {
                (*is_only && self.is_error).then(|| Proof::new("the only two ends without an entry"))
            }
            Change::Whole { proof, needs } => {
                let is_all = match needs {
                    Needs::Trial => true,
                    Needs::NoErrors => !after.has_errors,
                    Needs::NoDeviations => !after.has_errors && after.has_no_deviations(),
                    Needs::Explanation => !after.has_errors && (self.is_error || after.has_no_deviations()),
                };
                is_all.then(|| Proof::new(*proof))
            }
            Change::Text { slip, is_only } => (*is_only && !after.has_errors).then(|| Proof::new(*slip)),
            // A text whose elements are not nested is not a model, and has a trial of its own.
            Change::Nested(_) | Change::Other => None,
        }
    }

    /// Proves the value of an attribute: by its old text, by the declaration of the only port, or by trials of similar
    /// values.
    fn value(&self, layer: &Layer, name: &str, value: &str, after: &Soundness) -> Option<Proof> {
        let row = layer.operation()?.attribute(name)?;
        let written = layer.attribute(name);
        let is_readable = written.is_some_and(|text| row.is_clear(text));
        if let Some(read) = written.filter(|_| !is_readable).and_then(|text| read(row, text)) {
            return (is_same(&read.value, value) && !read.slips.is_empty()).then(|| text(read));
        }
        if exchanged_with(layer, name).is_some() {
            return None;
        }
        if is_source(layer) {
            let is_meant = self.is_declared(layer, name, value)
                && (!is_readable || self.is_contradicted(layer, name) || self.is_flattened(layer, name, after));
            return self.of_source(layer, name).filter(|_| is_meant);
        }
        // A Convert to the type of its input has no purpose, so that the Convert itself is in question.
        let is_idle = || self.graph.tensors(layer.id()).iter().any(|input| input.element_type().name() == value);
        if ops::kind(layer) == LayerKind::Convert && is_idle() {
            return None;
        }
        // A valid flag is intended, and a layer is not the cause if its input is wrong.
        let is_flag = matches!(row.kind, AttrKind::Bool) && is_readable;
        if is_flag || self.is_given_other(layer) || matches!(row.kind, AttrKind::Text | AttrKind::Texts) {
            return None;
        }
        // OpenVINO accepts the layer, so a contradiction that is left may have the same cause.
        let is_all = self.is_error || !after.has_errors && after.has_no_deviations() && self.is_said_twice(layer);
        is_all.then(|| self.by_neighbours(layer, row, value)).flatten()
    }

    /// Proves a value by the declared outputs: no similar value, swap, other attribute or other value of an input gives
    /// them.
    fn by_neighbours(&self, layer: &Layer, row: &Attr, value: &str) -> Option<Proof> {
        let mut fitting = Fitting::new(self.model, self.graph, layer.id());
        let is_readable = layer.attribute(row.name).is_some_and(|text| row.is_clear(text));
        // Without any attribute, the others are lost too.
        if layer.attributes().is_empty() && layer.operation()?.attribute_names().nth(1).is_some() {
            return None;
        }
        if fitting.fits(row.name, value) != Some(true) || is_readable && fitting.fits_other_inputs() {
            return None;
        }
        let mut rivals = Vec::new();
        for other in relation::neighbours(value, words_of(row)) {
            let is_refuted = fitting.fits(row.name, &other) == Some(false);
            is_refuted.then(|| rivals.push(format!("{}=\"{other}\"", row.name)))?;
        }
        let operation = layer.operation()?;
        for other in operation.attribute_names().filter_map(|name| operation.attribute(name)) {
            let Some(now) = layer.attribute(other.name).or(other.default).filter(|_| other.name != row.name) else {
                continue;
            };
            // The old value may be right if another attribute is wrong.
            for rival in relation::neighbours(now, words_of(other)) {
                let is_refuted = fitting.fits(other.name, &rival) != Some(true);
                is_refuted.then(|| rivals.push(format!("{}=\"{rival}\"", other.name)))?;
            }
        }
        for (one, other) in relation::pairs(layer) {
            let exchanged = fitting.fits_both((one, layer.attribute(other)?), (other, layer.attribute(one)?));
            (exchanged != Some(true)).then(|| rivals.push(format!("{one} and {other} swapped")))?;
        }
        (!rivals.is_empty())
            .then(|| Proof { rivals, ..Proof::new("ports: only this value gives the declared outputs") })
    }

    /// OpenVINO accepts the file, so the port may be what is wrong.
    fn is_said_twice(&self, layer: &Layer) -> bool {
        let source = &self.model.source;
        layer.outputs().iter().enumerate().any(|(at, port)| {
            let declared = Declared::read(source, port.declared, port.content);
            let inputs = self.graph.consumers(layer.id().output(at));
            let mut ports = inputs.filter_map(|input| self.graph.layer(input.layer)?.inputs().get(input.port));
            !declared.dims.is_empty()
                && ports.any(|port| Declared::read(source, port.declared, port.content).dims == declared.dims)
        })
    }

    /// Proves an attribute of a Parameter or constant by the declaration of its only port.
    fn of_source(&self, layer: &Layer, name: &str) -> Option<Proof> {
        let port = layer.outputs().first()?;
        let declared = Declared::read(&self.model.source, port.declared, port.content);
        let site = Site::new(self.model, self.graph, self.edges, layer)?;
        match name {
            // A port without dimensions declares no shape, and one with dynamic dimensions declares no bounds.
            "shape" => {
                let is_whole = !declared.dims.is_empty() && declared.dims.iter().all(|&dim| dim >= 0);
                is_whole.then(|| Proof::new("port: it declares the shape"))
            }
            "element_type" => declared.element_type.map(|_| Proof::new("port: it declares the type")),
            "size" => {
                let (written, by_port) = (site.written_bytes()?, site.declared_bytes()?);
                let is_exchanged = layer.byte_count("offset").map(u128::from) == Some(written);
                (written == by_port && !is_exchanged).then(|| Proof::new("type, shape and port agree on the size"))
            }
            _ => None,
        }
    }

    fn is_declared(&self, layer: &Layer, name: &str, value: &str) -> bool {
        let Some(port) = layer.outputs().first() else { return false };
        let declared = Declared::read(&self.model.source, port.declared, port.content);
        match name {
            "shape" => {
                value.split(',').map(|dim| dim.trim().parse().ok()).eq(declared.dims.iter().map(|&dim| Some(dim)))
            }
            "element_type" => declared.element_type.is_some_and(|ty| ty.name() == value),
            "size" => {
                let site = Site::new(self.model, self.graph, self.edges, layer);
                site.and_then(|site| site.declared_bytes()).is_some_and(|bytes| bytes.to_string() == value)
            }
            _ => false,
        }
    }

    /// Either the size of a constant agrees with the port, or the wrong type of a Parameter causes errors. Otherwise
    /// the author may want a new shape of the Parameter.
    fn is_contradicted(&self, layer: &Layer, name: &str) -> bool {
        let Some(site) = Site::new(self.model, self.graph, self.edges, layer) else { return false };
        if !ops::is_constant(layer) {
            return self.is_error;
        }
        let size = layer.byte_count("size").map(u128::from);
        self.is_error && name == "size" || site.declared_bytes() == size && site.written_bytes() != size
    }

    /// The bytes are the same.
    fn is_flattened(&self, layer: &Layer, name: &str, after: &Soundness) -> bool {
        let source = &self.model.source;
        let is_all = self.is_error && !after.has_errors && after.has_no_deviations();
        let Some(port) = layer.outputs().first().filter(|_| is_all && name == "shape" && ops::is_constant(layer))
        else {
            return false;
        };
        let declared = Declared::read(source, port.declared, port.content);
        let consumers = self.graph.consumers(layer.id().output(0));
        let mut taken = consumers.filter_map(|input| self.graph.layer(input.layer)?.inputs().get(input.port));
        let agrees = |input: &InputPort| Declared::read(source, input.declared, input.content) == declared;
        let now = port.shape().to_static().unwrap_or_default();
        let long = |dims: &[i64]| dims.iter().copied().filter(|dim| *dim != 1).collect::<Vec<_>>();
        !declared.dims.is_empty() && long(&declared.dims) == long(&now) && taken.all(agrees)
    }

    /// Proves several attributes of a Parameter or constant by its only port, if none of them is valid.
    fn declared(&self, layer: &Layer, names: &[&str]) -> Option<Proof> {
        let operation = layer.operation()?;
        let is_alone = names.iter().all(|name| exchanged_with(layer, name).is_none());
        let all = is_alone
            && names.iter().filter(|name| **name != "size").all(|name| {
                let row = operation.attribute(name);
                layer.attribute(name).is_none_or(|text| row.is_some_and(|row| !row.is_clear(text)))
            });
        let proofs: Option<Vec<_>> =
            names.iter().filter(|name| **name != "size").map(|name| self.of_source(layer, name)).collect();
        (all && proofs.is_some()).then(|| Proof::new("port: it declares type and shape"))
    }

    /// Proves an operation: no other one that has all attributes of the layer passes the trial.
    fn by_attributes(&self, layer: &Layer, meant: &str) -> Option<Proof> {
        let alike = ops::with_attributes(layer.attributes().iter().map(Attribute::name));
        let rivals = alike.iter().filter(|name| **name != meant).map(|name| format!("type=\"{name}\"")).collect();
        alike.contains(&meant).then(|| Proof { rivals, ..Proof::new("attributes: only this operation has them") })
    }

    /// Proves an operation set: its number was misspelled, no other set has the operation, or all other layers of the
    /// operation have it.
    fn version(&self, layer: &Layer, value: &str) -> Option<Proof> {
        let written = layer.version().to_lowercase().replace([' ', '_', '-'], "");
        if layer.operation().is_some() {
            return None;
        }
        if written == value || format!("opset{written}") == value {
            return Some(Proof::new("text: the number of the operation set"));
        }
        if ops::revisions(layer.ty()).len() == 1 {
            return Some(Proof::new("the only revision of the operation"));
        }
        let mut siblings =
            self.graph.unordered().filter(|it| it.ty() == layer.ty() && it.id() != layer.id()).peekable();
        let are_some = siblings.peek().is_some();
        (are_some && siblings.all(|it| it.version() == value)).then(|| Proof::new("the version of all sibling layers"))
    }

    /// The ports of these layers have to be numbered as OpenVINO numbers them.
    fn is_sound(&self, layers: &[LayerId], after: &Soundness) -> bool {
        let is_regular = |id: &LayerId| {
            let layer = self.graph.layer(*id)?;
            Some(Site::new(self.model, self.graph, self.edges, layer)?.is_numbered_with(None))
        };
        after.is_well_wired()
            && !after.leaves_unused(self.before)
            && layers.iter().all(|id| is_regular(id) == Some(true))
    }

    fn is_shifted(&self, layer: &Layer) -> bool {
        let inputs = layer.inputs().iter().map(InputPort::id);
        let ids: Vec<u64> = inputs.chain(layer.outputs().iter().map(OutputPort::id)).collect();
        ids.first()
            .is_some_and(|&first| first > 0 && (0..).zip(&ids).all(|(at, &id)| id.checked_sub(first) == Some(at)))
    }

    /// Proves the producer of an input: it is the only unused tensor, and the port contradicts the present one.
    fn source(&self, id: LayerId, input: usize, from: (u64, u64), after: &Soundness) -> Option<Proof> {
        let layer = self.graph.layer(id)?;
        let port = layer.inputs().get(input)?;
        let declared = Declared::read(&self.model.source, port.declared, port.content);
        let feed = self.graph.feeds(id).get(input).copied().flatten();
        let is_contradicted = match feed.and_then(|(source, at)| source.outputs().get(at)) {
            Some(now) => declared.contradicts(now, true) && !is_explained(&declared, now),
            None => true,
        };
        // A body may leave a Parameter unused.
        let producer = self.graph.layer(LayerId(from.0))?;
        let is_optional = ops::kind(producer) == LayerKind::Parameter && !std::ptr::eq(self.graph, &self.model.graph);
        let is_unused = !is_optional && self.edges.iter().all(|edge| edge.from.0 != from.0);
        let is_proved = is_contradicted
            && (is_unused || self.is_named(layer, from))
            && self.is_sound(&[id, LayerId(from.0)], after);
        is_proved.then(|| Proof::new("the only unused layer, or the tensor with the name of the Result"))
    }

    fn is_named(&self, result: &Layer, from: (u64, u64)) -> bool {
        let names_of = |layer: &Layer| layer.output_names().map(split_names).unwrap_or_default();
        let given = names_of(result);
        let is_rival = |other: &Layer| other.id() != result.id() && names_of(other).iter().any(|it| given.contains(it));
        if self.graph.unordered().any(is_rival) {
            return false;
        }
        let outputs = self.graph.layer(LayerId(from.0)).map(Layer::outputs).unwrap_or_default();
        let names: Vec<String> =
            outputs.iter().filter(|port| port.id() == from.1).flat_map(OutputPort::names).collect();
        !given.is_empty() && given.iter().all(|name| names.contains(name))
    }

    /// Proves a swap of inputs: no other order agrees with the declarations of all ports, and the present one
    /// contradicts two.
    fn order(&self, id: LayerId, after: &Soundness) -> Option<Proof> {
        let layer = self.graph.layer(id)?;
        let feeds = self.graph.feeds(id);
        let tensors: Vec<&OutputPort> =
            feeds.iter().filter_map(|feed| feed.and_then(|(source, port)| source.outputs().get(port))).collect();
        let count = layer.inputs().len();
        if tensors.len() != count || count > MOST_INPUTS || !self.is_sound(&[id], after) {
            return None;
        }
        let ports: Vec<Declared> =
            layer.inputs().iter().map(|port| Declared::read(&self.model.source, port.declared, port.content)).collect();
        let wrong: Vec<_> =
            ports.iter().zip(&tensors).filter(|(port, tensor)| port.contradicts(tensor, true)).collect();
        let is_explained = wrong.iter().any(|(port, tensor)| is_explained(port, tensor));
        let orders = orders(&ports, &tensors);
        (wrong.len() == 2 && !is_explained && orders == 1)
            .then(|| Proof::new("ports: only this order agrees with their declarations"))
    }

    /// Proves that the ends of an edge were swapped: each names a port that only the other layer has.
    fn turned(&self, from: (u64, u64), to: (u64, u64), after: &Soundness) -> Option<Proof> {
        let (source, target) = (self.graph.layer(LayerId(from.0))?, self.graph.layer(LayerId(to.0))?);
        let has_output = |layer: &Layer, id| layer.outputs().iter().any(|port| port.id() == id);
        let has_input = |layer: &Layer, id| layer.inputs().iter().any(|port| port.id() == id);
        let is_turned = !has_output(source, from.1) && has_input(source, from.1) && !has_input(target, to.1);
        let is_proved = is_turned && has_output(target, to.1) && self.is_sound(&[source.id(), target.id()], after);
        is_proved.then(|| Proof::new("swap: each end names a port of the other layer"))
    }

    /// Proves a new port that an edge refers to. The names of its tensor cannot be restored.
    fn new_port(&self, layer: &Layer, direction: Direction, after: &Soundness) -> Option<Proof> {
        let is_end = matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result);
        let loses_names = direction == Direction::Output
            && self.graph.unordered().any(|layer| layer.outputs().iter().any(|port| !port.names().is_empty()));
        (!is_end && !loses_names && after.is_well_wired()).then(|| Proof::new("ids: the port ids are consecutive"))
    }

    fn is_given_other(&self, layer: &Layer) -> bool {
        let feeds = self.graph.feeds(layer.id());
        layer.inputs().iter().zip(&feeds).any(|(port, feed)| {
            let declared = Declared::read(&self.model.source, port.declared, port.content);
            let tensor = feed.and_then(|(source, at)| source.outputs().get(at));
            tensor.is_none_or(|tensor| declared.contradicts(tensor, true))
        })
    }
}

fn exchanged_with<'l>(layer: &'l Layer, name: &str) -> Option<&'l str> {
    layer.attributes().iter().map(Attribute::name).find(|other| relation::are_exchanged(layer, name, other))
}

/// True for a Parameter or constant, which has only one port.
fn is_source(layer: &Layer) -> bool {
    ops::is_constant(layer) || ops::kind(layer) == LayerKind::Parameter
}

/// True if a missing layer can explain the difference: a Convert if the types differ, or a Reshape or Transpose if the
/// shapes have as many elements.
fn is_explained(declared: &Declared, tensor: &OutputPort) -> bool {
    let Some(found) = tensor.shape().dims() else { return true };
    let found: Vec<i64> = found.iter().map(|dim| dim.value().unwrap_or(-1)).collect();
    let count = |dims: &[i64]| dims.iter().map(|&dim| i128::from(dim)).product::<i128>().abs();
    count(&declared.dims) == count(&found)
}

fn orders(ports: &[Declared], tensors: &[&OutputPort]) -> usize {
    fn count(ports: &[Declared], tensors: &[&OutputPort], taken: &mut Vec<usize>) -> usize {
        let Some(port) = ports.get(taken.len()) else { return 1 };
        let mut found = 0;
        for at in 0..tensors.len() {
            if !taken.contains(&at) && !port.contradicts(tensors[at], true) {
                taken.push(at);
                found += count(ports, tensors, taken);
                taken.pop();
            }
        }
        found
    }
    count(ports, tensors, &mut Vec::new())
}

/// The only value that the text of an attribute can mean, if there is exactly one.
pub(super) fn read(row: &Attr, text: &str) -> Option<Reading> {
    match row.kind {
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => reading::number(text, Kind::Integer),
        AttrKind::Float => reading::number(text, Kind::Real),
        AttrKind::Ints | AttrKind::UnsignedInts | AttrKind::Shape => reading::integers(text),
        AttrKind::Bool => reading::word(text, &["true", "false"], words::BOOLEANS),
        AttrKind::Enum(known) => reading::word(text, known, &[]),
        AttrKind::Type => {
            let names: Vec<_> = ElementType::all().map(|ty| ty.name()).collect();
            let word = text.trim().to_lowercase();
            let meant = certain_type(&word).map(|ty| (&*word, ty.name()));
            reading::word(text, &names, meant.as_slice())
        }
        AttrKind::Text | AttrKind::Texts | AttrKind::Floats => None,
    }
}

/// The element type of a word of another framework that has one meaning: `fp16`, but not `int`.
fn certain_type(word: &str) -> Option<ElementType> {
    let kind = word.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_certain = match kind {
        "float" | "fp" | "int" | "uint" | "bfloat" => kind != word,
        "half" | "double" | "bool" | "str" => true,
        _ => false,
    };
    foreign::named_element_type(word).filter(|_| is_certain)
}

/// The only operation that a name can mean, if there is exactly one.
pub(super) fn operation(written: &str) -> Option<Reading> {
    let names = ops::all().map(|row| row.name).map(ops::file_spelling);
    let mut names: Vec<_> = names.filter(|it| !it.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    reading::word(written, &names, words::OPERATIONS).filter(|it| !it.slips.is_empty())
}

pub(super) fn attribute<'n>(written: &str, free: &[&'n str]) -> Option<&'n str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-'], "");
    let mut listed = words::ATTRIBUTES.iter().filter(|(other, _)| *other == plain(written)).map(|(_, meant)| meant);
    let listed = listed.next().filter(|_| listed.next().is_none());
    let mut near = free.iter().filter(|name| names::distance(&plain(written), &plain(name)) <= 1);
    let near = near.next().filter(|_| near.next().is_none());
    free.iter().find(|name| listed == Some(*name)).or(near).copied()
}

/// The only port precision that a text can mean, if there is exactly one.
fn port_type(written: &str) -> Option<Reading> {
    let names: Vec<_> = ElementType::all().filter_map(|ty| ty.port_name()).collect();
    // The tensor of the port must agree, so a word may have several meanings elsewhere.
    let word = written.trim().to_lowercase();
    let meant = foreign::named_element_type(&word).and_then(|ty| Some((&*word, ty.port_name()?)));
    reading::word(written, &names, meant.as_slice())
}

/// True if two texts are the same value, such as lists with and without spaces after commas.
fn is_same(one: &str, other: &str) -> bool {
    one.split(',').map(str::trim).eq(other.split(',').map(str::trim))
}

fn words_of(row: &Attr) -> &'static [&'static str] {
    match row.kind {
        AttrKind::Bool => &["true", "false"],
        AttrKind::Enum(words) => words,
        AttrKind::Type => {
            &["f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean"]
        }
        _ => &[],
    }
}

fn text(read: Reading) -> Proof {
    Proof::new(message!("text: {}"; Text(read.slips.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_between_two_attributes_is_not_read() {
        assert_eq!(attribute("axes", &["axis", "keep_dims"]), Some("axis"));
        assert_eq!(attribute("kernel_size", &["kernel", "strides"]), Some("kernel"));
        assert_eq!(attribute("transpose_c", &["transpose_a", "transpose_b"]), None);
        assert_eq!(attribute("transpose_c", &["transpose_a"]), Some("transpose_a"));
    }
}
