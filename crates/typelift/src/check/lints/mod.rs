//! Lints: checks for probable mistakes that OpenVINO accepts silently.
//!
//! A lint of a graph is one file with its condition, message and fix, and one row of [`OF_GRAPHS`]. Its code is a row of
//! [`Code`], its page a section of `diagnostics.md`, and its case a fixture with the name of the code. Lints of single
//! layers, which need the types of inputs, are methods below.
//!
//! ```text
//! padded_name.rs    find(check, graph)  pushes  warning[padded-name]: the name ` sum` has spaces around it
//!                                               with a fix that is possible: write name="sum"
//! ```

mod bare_bracket;
mod clamp_of_integers;
mod duplicate_layer_name;
mod duplicate_tensor_name;
pub(super) mod nameless_input;
mod padded_name;
mod unreachable_layer;

use smallvec::SmallVec;
use typelift_promote::{ElementType, Kind, Loss, fidelity};

use super::GraphCheck;
use crate::base::foreign;
use crate::findings::{About, Code, Fix, Message, Owner, Related, Text, described, message};
use crate::model::graph::{Body, Direction, Graph, Layer, OutputPort, split_names};
use crate::ops::values::conversion::Audit;
use crate::ops::{self, LayerKind, Operation};
use crate::text::xml;

/// Maximum number of bytes of constants that are searched for infinities, NaN, and values that a Convert destroys.
pub(super) const BUDGET: u64 = 64 << 20;

/// Valid values of `purpose` in an entry of a port map.
const PURPOSES: [&str; 2] = ["current_iteration", "execution_condition"];

pub(super) struct Lint {
    pub(super) code: Code,
    /// Adds its findings about a graph, without those about its bodies.
    pub(super) find: fn(&mut GraphCheck<'_>, &Graph),
}

pub(super) const OF_GRAPHS: &[Lint] = &[
    Lint { code: Code::DuplicateLayerName, find: duplicate_layer_name::find },
    Lint { code: Code::DuplicateTensorName, find: duplicate_tensor_name::find },
    Lint { code: Code::UnreachableLayer, find: unreachable_layer::find },
    Lint { code: Code::BareAmpersand, find: bare_bracket::find },
    Lint { code: Code::PaddedName, find: padded_name::find },
    Lint { code: Code::IntegerResult, find: clamp_of_integers::find },
];

impl<'a> GraphCheck<'a> {
    /// Checks an inferred layer of a known operation.
    pub(super) fn check_behavior(&mut self, graph: &'a Graph, layer: &'a Layer, operation: &'static Operation) {
        let inputs = inputs_of(graph, layer);
        self.required_attributes(layer, operation, &inputs);
        match operation.kind {
            LayerKind::If => {
                self.check_condition(layer, &inputs, 0);
                layer.bodies().iter().for_each(|body| self.check_fed_parameters(layer, body));
            }
            LayerKind::Result => self.check_result(graph, layer),
            LayerKind::Loop => {
                self.check_trip_count(layer, &inputs);
                self.check_condition(layer, &inputs, 1);
                self.check_loop_body(layer, &inputs);
            }
            LayerKind::TensorIterator => self.check_loop_body(layer, &inputs),
            LayerKind::Convert => self.find_destroyed_values(layer, &inputs),
            LayerKind::Constant => {
                self.check_name_length(layer);
                self.find_non_finite_values(layer);
            }
            _ if operation.attribute("levels").is_some() => self.check_levels(graph, layer),
            _ if operation.attribute("hidden_size").is_some() => self.check_hidden_size(layer, &inputs),
            _ => {}
        }
    }

    fn required_attributes(
        &mut self,
        layer: &Layer,
        operation: &'static Operation,
        inputs: &[Option<(&Layer, &OutputPort)>],
    ) {
        for name in operation.missing_attributes(layer) {
            let Some(assumed) = operation.default_of(name) else { continue };
            let message = message!("`{}` has no attribute `{}`, which it requires"; layer.ty(), name);
            let span = self.locate(layer, "data", name);
            let size = || inputs.get(1).copied().flatten()?.1.shape().dims()?.last()?.value();
            let declared = layer.outputs().first().and_then(|port| port.declared);
            let (label, help): (Message, Fix) = match (name, assumed) {
                ("destination_type", _) => (
                    "OpenVINO reads it, but cannot run a conversion without a destination type".into(),
                    match declared.filter(|&ty| ty != ElementType::Dynamic) {
                        Some(ty) => message!("add destination_type=\"{}\", the type its port declares"; ty).into(),
                        None => "add destination_type=\"f32\", \"f16\", \"i64\" or another element type".into(),
                    },
                ),
                ("hidden_size", _) if size().is_some() => (
                    message!("OpenVINO assumes {}"; assumed),
                    message!("add hidden_size=\"{}\", the size of its hidden state"; size().unwrap_or_default()).into(),
                ),
                ("levels", _) => (
                    message!("OpenVINO assumes {}, but its plugins do not accept it"; assumed),
                    "add levels=\"256\" for 8 bits, or another number of levels".into(),
                ),
                (_, "") => ("OpenVINO assumes that it is empty".into(), Fix::add([name], Owner::Here)),
                (_, "0") => ("OpenVINO assumes 0".into(), Fix::add([name], Owner::Here)),
                (_, assumed) => {
                    let help = message!("add {}=\"{}\" if you mean this value"; name, assumed);
                    (message!("OpenVINO assumes {}"; assumed), help.into())
                }
            };
            let about = About::Assumed { attribute: name, value: assumed };
            let lint = self.lint(Code::AssumedAttribute, layer, message).at(span, label).about(about);
            self.diagnostics.push(lint.help(help));
        }
    }

    fn check_result(&mut self, graph: &Graph, layer: &Layer) {
        self.check_result_names(graph, layer);
        let Some(user) = graph.users(layer.id()).next().and_then(|id| graph.layer(id)) else { return };
        let message = message!("Result {} `{}` feeds `{}`"; layer.id(), layer.name(), user.name());
        let lint = self.lint(Code::UsedResult, layer, message);
        let lint =
            lint.at(self.locate(layer, "layer", "name"), "OpenVINO reads it, but its CPU plugin does not accept it");
        self.diagnostics.push(lint.help("start the edge at the layer that feeds the Result"));
    }

    /// Finds tensor names at the input of a Result. OpenVINO reads them at the output of the layer before.
    fn check_result_names(&mut self, graph: &Graph, layer: &Layer) {
        let port = xml::locate_port(self.source, layer.span().unwrap_or_default(), Direction::Input, 0);
        if !port.text(self.source).contains("names") {
            return;
        }
        let names = xml::tags(self.source, port).first().and_then(|tag| tag.value(self.source, "names"));
        let Some((names, &Some((producer, output)))) = names.zip(inputs_of(graph, layer).first()) else { return };
        let given = output.names();
        let names_text = names.text(self.source);
        if split_names(names_text).iter().all(|name| given.contains(name)) {
            return;
        }
        let message = message!("`names` of the input of Result {} `{}` is ignored"; layer.id(), layer.name());
        let lint = self.lint(Code::UnknownAttribute, layer, message);
        let producer = described(producer);
        let label = "OpenVINO reads the names of a tensor at the output port of the layer that computes it";
        let help = message!("move names=\"{}\" to output port {} of {}"; names_text, output.id(), producer);
        self.diagnostics.push(lint.at(names, label).help(help));
    }

    fn check_trip_count(&mut self, layer: &Layer, inputs: &[Option<(&Layer, &OutputPort)>]) {
        let Some(&Some((producer, port))) = inputs.first() else { return };
        if port.element_type().is_integer() || port.element_type() == ElementType::Dynamic {
            return;
        }
        let message = message!("the trip count of `{}` is {}, not an integer"; layer.ty(), port.element_type());
        let lint = self.lint(Code::ConditionType, layer, message);
        let label = "OpenVINO reads it, but its CPU plugin does not accept it";
        let mut lint = lint.at(self.locate(layer, "layer", "name"), label);
        lint.related.push(Related::of(&self.place, layer, 0, producer, port));
        self.diagnostics.push(lint.help("insert a Convert to i64 before it"));
    }

    fn check_condition(&mut self, layer: &Layer, inputs: &[Option<(&Layer, &OutputPort)>], at: usize) {
        let Some(&Some((producer, port))) = inputs.get(at) else { return };
        if [ElementType::Boolean, ElementType::Dynamic].contains(&port.element_type()) {
            return;
        }
        let message = message!("the condition of `{}` is {}, not boolean"; layer.ty(), port.element_type());
        let lint = self.lint(Code::ConditionType, layer, message);
        let is_loop = ops::kind(layer) == LayerKind::Loop && port.element_type() != ElementType::U8;
        let label = if is_loop {
            "OpenVINO reads it, but its CPU plugin does not accept it"
        } else {
            "OpenVINO treats every number except 0 as true"
        };
        let mut lint = lint.at(self.locate(layer, "layer", "name"), label);
        lint.related.push(Related::of(&self.place, layer, at, producer, port));
        self.diagnostics
            .push(lint.help("start the edge at the right comparison, or insert a Convert to boolean before it"));
    }

    /// Checks the Result with the condition for another iteration in a loop's body.
    fn check_condition_inside(&mut self, layer: &Layer, body: &Body) {
        let entry = body.port_map.iter().find(|it| it.purpose() == Some("execution_condition"));
        let Some(id) = entry.map(|entry| entry.internal_layer_id) else { return };
        let source = body.graph.producer(id.input(0));
        let Some(port) = source.and_then(|source| body.graph.output(source)) else { return };
        if [ElementType::Boolean, ElementType::U8, ElementType::Dynamic].contains(&port.element_type()) {
            return;
        }
        let message =
            message!("the condition in the body of `{}` is {}, not boolean"; layer.name(), port.element_type());
        let place = layer.span().unwrap_or_default();
        let span = xml::locate_joint(self.source, place, id).unwrap_or(place);
        let lint = self.lint(Code::ConditionType, layer, message);
        let lint = lint.at(span, "OpenVINO reads it, but its CPU plugin does not accept it");
        self.diagnostics.push(lint.help("insert a Convert to boolean before the Result"));
    }

    fn check_loop_body(&mut self, layer: &'a Layer, inputs: &[Option<(&'a Layer, &'a OutputPort)>]) {
        let Some(body) = layer.bodies().first() else { return };
        self.check_purposes(layer, body);
        self.check_slices(layer, body, inputs);
        self.check_fed_parameters(layer, body);
        self.check_ends(layer, body);
        self.check_condition_inside(layer, body);
        let is_condition = |purpose: Option<&str>| purpose == Some("execution_condition");
        let misspelt = body.port_map.iter().any(|it| it.purpose().is_some_and(|purpose| !PURPOSES.contains(&purpose)));
        let decides =
            misspelt || body.port_map.iter().any(|it| it.direction == Direction::Output && is_condition(it.purpose()));
        if ops::kind(layer) == LayerKind::Loop && !decides {
            let message = message!("the port map of `{}` has no execution_condition"; layer.name());
            let lint = self.lint(Code::IncompletePortMap, layer, message);
            let lint = lint
                .at(self.locate(layer, "layer", "name"), "OpenVINO reads it, but its CPU plugin does not accept it");
            self.diagnostics.push(lint.help(
                "add <output external_port_id=\"-1\" internal_layer_id=\"ID\" purpose=\"execution_condition\"/> with the id of the Result that is true for another iteration",
            ));
        }
        for at in 0..body.back_edges.len() {
            self.check_back_edge(layer, body, at, inputs);
        }
    }

    fn check_purposes(&mut self, layer: &Layer, body: &Body) {
        for entry in &body.port_map {
            let Some(purpose) = entry.purpose().filter(|purpose| !PURPOSES.contains(purpose)) else { continue };
            let message = message!("`{}` is not a valid purpose: OpenVINO ignores it"; purpose);
            let place = layer.span().unwrap_or_default();
            let span = xml::locate_joint_with(self.source, place, |name, value| name == "purpose" && value == purpose)
                .unwrap_or(place);
            let lint = self.lint(Code::IncompletePortMap, layer, message).at(span, "in this entry");
            let meant =
                PURPOSES.iter().max_by_key(|known| known.bytes().zip(purpose.bytes()).filter(|(a, b)| a == b).count());
            let meant = foreign::word(purpose, &PURPOSES).or(meant.copied()).unwrap_or_default();
            self.diagnostics.push(lint.help(message!("write purpose=\"{}\""; meant)));
        }
    }

    /// Compares the tensor that a loop passes to its next iteration with its initial value.
    fn check_back_edge(&mut self, layer: &Layer, body: &'a Body, at: usize, inputs: &[Option<(&Layer, &OutputPort)>]) {
        let Some(edge) = body.back_edges.get(at) else { return };
        let graph = &body.graph;
        let (Some(result), Some(parameter)) = (graph.layer(edge.from), graph.layer(edge.to)) else { return };
        let entry = body.port_map.iter().find(|it| it.direction == Direction::Input && it.internal_layer_id == edge.to);
        let start = entry.and_then(|it| *inputs.get(usize::try_from(it.external_port_id).ok()?)?);
        let source = graph.producer(edge.from.input(0));
        let next = source.and_then(|source| graph.layer(source.layer)?.outputs().get(source.port));
        let (Some((_, start)), Some(next)) = (start, next) else { return };
        let ranks = (start.shape().rank(), next.shape().rank());
        if !matches!(ranks, (Some(a), Some(b)) if a != b) {
            return;
        }
        let message = message!(
            "the state `{}` of `{}` is {}{} in the first iteration and {}{} in the next";
            parameter.name(), layer.name(), start.element_type(), start.shape(), next.element_type(), next.shape()
        );
        let span = xml::locate_back_edge(self.source, layer.span().unwrap_or_default(), at);
        let label = message!("it starts at Result {} `{}`"; result.id(), result.name());
        let lint = self.lint(Code::UnstableState, layer, message).at(span, label);
        let lint = lint.note("the rank of a state cannot change: OpenVINO reads the loop, and fails when it runs");
        self.diagnostics.push(lint.help("start the back edge at the Result of the new state"));
    }

    /// Compares the attribute `hidden_size` with the shape of the weights.
    fn check_hidden_size(&mut self, layer: &Layer, inputs: &[Option<(&Layer, &OutputPort)>]) {
        let Some(said) = layer.attribute("hidden_size").and_then(|text| text.trim().parse::<i64>().ok()) else {
            return;
        };
        let Some(&Some((producer, state))) = inputs.get(1) else { return };
        let size = state.shape().dims().and_then(|dims| dims.last()?.value());
        let Some(size) = size.filter(|&size| size != said) else { return };
        let message =
            message!("hidden_size is {}, but the hidden state of `{}` has {} elements"; said, layer.ty(), size);
        let span = self.locate(layer, "data", "hidden_size");
        let lint = self.lint(Code::InconsistentSize, layer, message);
        let mut lint = lint.at(span, "OpenVINO's reader uses the size of the weights; its plugins may use hidden_size");
        lint.related.push(Related::of(&self.place, layer, 1, producer, state));
        self.diagnostics.push(lint.help(message!("write hidden_size=\"{}\""; size)));
    }

    /// OpenVINO reads the data of a constant only if its type is exactly `Const`.
    fn check_name_length(&mut self, layer: &Layer) {
        if layer.ty().eq_ignore_ascii_case("Constant") {
            let message = message!("`{}` is a constant without data: its type must be `Const`"; layer.name());
            let lint = self.lint(Code::MisnamedOperation, layer, message);
            let label = "OpenVINO reads data only for the type `Const`; this constant has undefined values";
            self.diagnostics.push(lint.at(self.locate(layer, "layer", "type"), label).help("write type=\"Const\""));
        }
    }

    fn find_non_finite_values(&mut self, layer: &'a Layer) {
        let ty = layer.named_type("element_type");
        let Some(ty) = ty.filter(|ty| [ElementType::F16, ElementType::Bf16].contains(ty)) else { return };
        let (Some(offset), Some(size)) = (layer.byte_count("offset"), layer.byte_count("size")) else { return };
        if size > self.budget {
            return;
        }
        self.budget -= size;
        let Some(bytes) = usize::try_from(size).ok().and_then(|size| self.weights.read(offset, size)) else { return };
        let (exponent, sign) = if ty == ElementType::F16 { (0x7C00_u16, 0x8000) } else { (0x7F80, 0x8000) };
        let bits = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair));
        // Minus infinity is normal in masks.
        let odd = bits.filter(|bits| bits & exponent == exponent && *bits != sign | exponent).count();
        if odd > 0 {
            let message = message!("{} values of `{}` are infinite or not a number"; odd, layer.name());
            let lint = self.lint(Code::NonFiniteConstant, layer, message);
            let lint = lint.at(
                self.locate(layer, "data", "element_type"),
                message!("the original values may have been too large for {}"; ty),
            );
            self.diagnostics
                .push(lint.help("export the constant again as f32, or clamp its values before converting them"));
        }
    }

    /// Reports values of a constant that are beyond the range of a Convert's type.
    fn find_destroyed_values(&mut self, layer: &Layer, inputs: &[Option<(&Layer, &OutputPort)>]) {
        let Some(&Some((constant, from))) = inputs.first() else { return };
        let Some(to) = layer.outputs().first().map(OutputPort::element_type) else { return };
        let overflows = fidelity(from.element_type(), to)
            .is_some_and(|fidelity| fidelity.losses().any(|loss| loss != Loss::Rounds));
        if !ops::is_constant(constant) || !overflows || to.kind() == Kind::Boolean {
            return;
        }
        let size = constant.byte_count("size").unwrap_or(0);
        if size > self.budget {
            return;
        }
        self.budget -= size;
        let Some(audit) = Audit::of(constant, self.weights, to).filter(|audit| audit.destroyed() > 0) else { return };
        let message = message!(
            "`{}` has values beyond the range of {}: {} of {}";
            constant.name(), to, audit.destroyed(), audit.values
        );
        let lint = self.lint(Code::DestroyedValues, layer, message);
        let lint = lint.at(self.locate(layer, "data", "destination_type"), Text(audit));
        self.diagnostics.push(
            lint.help(message!("keep the type {} of the constant, or convert it to a wider type"; from.element_type())),
        );
    }
}

fn inputs_of<'a>(graph: &'a Graph, layer: &Layer) -> SmallVec<[Option<(&'a Layer, &'a OutputPort)>; 4]> {
    let feeds = graph.feeds(layer.id()).into_iter();
    feeds.map(|feed| feed.and_then(|(layer, port)| Some((layer, layer.outputs().get(port)?)))).collect()
}
