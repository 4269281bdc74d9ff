//! Checks for probable mistakes that OpenVINO accepts silently, and for the OpenVINO release that a file requires.

mod causes;
mod constants;
pub(crate) mod devices;
pub(crate) mod fix;
mod lengths;
mod lints;
mod order;
mod ports;
mod precision;
mod slices;
mod states;
mod target;

pub(crate) use devices::Device;
pub(crate) use devices::{boolean_masks, check_device};
pub(crate) use lengths::left_tables;
pub(crate) use ports::Declared;
pub(crate) use precision::check_precision;
pub(crate) use target::{check_target, forgive_removed};
pub(crate) use target::{repeated_names, unread};

use std::collections::BTreeMap;
use std::hash::Hash;

use typelift_promote::ElementType;

use self::constants::Constant;
use self::order::Errors;
use self::target::Beside;
use crate::base::foreign;
use crate::base::hash::{HashMap, HashSet};
use crate::base::progress::poll;
use crate::base::span::Span;
use crate::findings::{About, Cause, Code, Diagnostic, LayerRef, Message, Severity, Text, message};
use crate::model::graph::{Attribute, Graph, IrVersion, Layer, LayerId, Model, OutputPort, Place, Start};
use crate::model::weights::Weights;
use crate::ops::{self, Feature, LayerKind, Operation, Release, Requirement, Requirements};
use crate::symbols::Shapes;
use crate::text::xml;

/// Maximum number of positions of one finding, and of unknown attributes that are reported of one layer.
const PLACES: usize = 8;

/// Maximum number of references in a file that are checked.
const MAX_BARE: usize = 1000;

/// Returns warnings about a model that was read and [inferred](crate::infer()), in the order of the file, bodies
/// included. Each has its layer, its position and a fix. One note names the oldest OpenVINO release that supports the
/// model.
///
/// Findings of reading and inference are not repeated.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f16"/>
///         <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
///     <layer id="1" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#)?;
/// typelift::infer(&mut model);
/// let lints = typelift::check(&model);
/// assert_eq!(lints[0].code, typelift::findings::Code::RequiredRelease);
/// assert_eq!(lints[1].to_string(), "warning[stale-port]: output 0 of `x` declares f32[2], and is f16[2]");
/// # Ok::<(), typelift::findings::Diagnostics>(())
/// ```
#[must_use]
pub fn check(model: &Model) -> Vec<Diagnostic> {
    let errors = Errors::default();
    GraphCheck::new(model, &errors).lints(model)
}

/// Adds the findings of [`check`] to those of reading and inference. The result is sorted: errors, warnings, notes; in
/// each group causes before consequences. Lints that are consequences of an error are removed.
pub(crate) fn check_after(model: &Model, shapes: Option<&Shapes>, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut found = joined(model, shapes, found, true);
    order::sort(model, &mut found);
    found
}

/// Adds findings as [`check_after`] does, but unsorted and without new notes, for callers that only count them.
pub(crate) fn faults_after(model: &Model, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    joined(model, None, found, false)
}

fn joined(model: &Model, shapes: Option<&Shapes>, mut found: Vec<Diagnostic>, has_notes: bool) -> Vec<Diagnostic> {
    let errors = Errors::new(model, &found);
    let mut check = GraphCheck { shapes, ..GraphCheck::new(model, &errors) };
    check.has_notes = has_notes;
    check.checks_lengths = !found.iter().any(Diagnostic::is_error);
    check.has_values &= found.iter().all(|diagnostic| diagnostic.code != Code::WrongWeights);
    let mut lints = check.lints(model);
    if found.iter().any(|it| it.code == Code::WrongWeights) {
        // The bytes are not the values of the constants.
        lints.retain(|lint| !lint.code.has(Cause::Values));
    }
    if found.iter().any(Diagnostic::is_error) {
        // A model with errors is supported by no release and loaded by no program, and its types may be wrong.
        lints.retain(|lint| ![Code::RequiredRelease, Code::NamelessInput].contains(&lint.code));
    }
    // A missing or wrong edge makes layers seem unreachable.
    let disconnects = |found: &Diagnostic| match found.code {
        Code::WrongInputCount | Code::UnconnectedInput | Code::InputFedTwice | Code::DuplicateLayerId => true,
        Code::UnknownLayer | Code::UnknownPort => true,
        Code::MissingAttribute | Code::InvalidValue => found.layer.is_none(),
        Code::Cycle | Code::InvalidBody => true,
        _ => false,
    };
    if found.iter().any(disconnects) {
        lints.retain(|lint| lint.code != Code::UnreachableLayer);
    }
    // The bytes of a constant that could not be read seem unused.
    if found.iter().any(|found| disconnects(found) || found.code == Code::InvalidConstant) {
        lints.retain(|lint| lint.code != Code::UnreferencedWeights);
    }
    found.append(&mut lints);
    causes::join(model, &mut found);
    found
}

/// Returns one warning for each unknown operation. OpenVINO can load the model only with an extension that provides
/// it.
#[must_use]
pub fn unknown_operations(model: &Model) -> Vec<Diagnostic> {
    let errors = Errors::default();
    let mut check = GraphCheck::new(model, &errors);
    for (place, graph) in model.walk() {
        if !graph.unordered().any(|layer| layer.operation().is_none() || !layer.bodies().is_empty()) {
            continue;
        }
        check.place = place;
        graph.layers().for_each(|layer| check.note_unknown(layer));
    }
    check.report_unknown_operations(Severity::Warning);
    check.diagnostics
}

pub(crate) fn legacy_types(model: &Model) -> Option<Diagnostic> {
    let errors = Errors::default();
    let mut check = GraphCheck::new(model, &errors);
    check.find_legacy_types(model);
    check.diagnostics.pop()
}

struct Located<'a> {
    layer: &'a Layer,
    reference: LayerRef,
}

struct GraphCheck<'a> {
    /// Errors of reading and inference.
    errors: &'a Errors<'a>,
    source: &'a str,
    place: Place,
    diagnostics: Vec<Diagnostic>,
    constants: Vec<Constant<'a>>,
    /// Layers with unknown operations, by name and version.
    unknown_operations: BTreeMap<(&'a str, &'a str), Vec<Located<'a>>>,
    newest: Option<Newest<'a>>,
    /// True if a constant does not declare its offset and size.
    has_misplaced_constants: bool,
    weights: &'a Weights,
    /// Number of bytes of constants that may still be searched.
    budget: u64,
    /// True if the weights were known in inference, so that it found every error.
    has_values: bool,
    has_notes: bool,
    /// True if inference found no error.
    checks_lengths: bool,
    /// Lengths of the model, if they are known already.
    shapes: Option<&'a Shapes>,
}

impl<'a> GraphCheck<'a> {
    fn new(model: &'a Model, errors: &'a Errors<'a>) -> Self {
        Self {
            errors,
            source: &model.source,
            place: Place::default(),
            diagnostics: Vec::new(),
            constants: Vec::new(),
            unknown_operations: BTreeMap::new(),
            newest: None,
            has_misplaced_constants: false,
            weights: &model.weights,
            budget: lints::BUDGET,
            has_values: model.weights.len().is_some(),
            has_notes: true,
            checks_lengths: true,
            shapes: None,
        }
    }

    fn lints(mut self, model: &'a Model) -> Vec<Diagnostic> {
        self.check_graph(&model.graph, true);
        self.report_unknown_operations(Severity::Error);
        self.check_constants(model);
        self.find_unassigned_variables(model);
        self.find_bare_ampersands(model);
        self.find_runtime_options(model);
        lints::nameless_input::find(&mut self, model);
        if self.has_notes {
            self.report_required_release(model);
            self.find_legacy_types(model);
            self.diagnostics.extend(precision::beyond_i32(model));
            if self.checks_lengths {
                self.check_lengths(model);
            }
        }
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.labels.first().map_or(u32::MAX, |label| label.span.start));
        self.diagnostics
    }

    /// Checks a graph and its bodies. Compares ports with tensors only if the types of the graph's inputs are `known`.
    fn check_graph(&mut self, graph: &'a Graph, known: bool) {
        for lint in lints::OF_GRAPHS {
            let before = self.diagnostics.len();
            (lint.find)(self, graph);
            debug_assert!(self.diagnostics[before..].iter().all(|it| it.code == lint.code));
        }
        let unknown = if known { self.find_stale_ports(graph) } else { HashSet::default() };
        let requirements = Requirements::new(graph);
        for layer in graph.unordered() {
            poll();
            match layer.operation() {
                Some(operation) => {
                    if self.has_notes {
                        self.note_requirements(&requirements, layer);
                    }
                    self.check_operation(layer, operation);
                    self.check_behavior(graph, layer, operation);
                }
                None => self.note_unknown(layer),
            }
            for (at, body) in layer.bodies().iter().enumerate() {
                let inside = self.place.inside(layer, at, body.name());
                let outside = std::mem::replace(&mut self.place, inside);
                self.check_graph(&body.graph, known && !unknown.contains(&layer.id()));
                self.place = outside;
            }
        }
    }

    /// Records a layer with an unknown operation. An empty type or version was reported by the reader.
    fn note_unknown(&mut self, layer: &'a Layer) {
        let unknown = layer.operation().is_none();
        if unknown && !layer.ty().is_empty() && !layer.version().is_empty() {
            let place = self.place(layer);
            self.unknown_operations.entry((layer.ty(), layer.version())).or_default().push(place);
        }
    }

    fn place(&self, layer: &'a Layer) -> Located<'a> {
        Located { layer, reference: self.reference(layer) }
    }

    fn reference(&self, layer: &Layer) -> LayerRef {
        LayerRef::of(&self.place, layer)
    }

    /// A finding about a layer of the current graph, without a position.
    #[cold]
    fn lint(&self, code: Code, layer: &Layer, message: impl Into<Message>) -> Diagnostic {
        Diagnostic { layer: Some(self.reference(layer)), ..Diagnostic::new(code, message) }
    }

    fn locate(&self, layer: &Layer, element: &str, attribute: &str) -> Span {
        xml::locate(self.source, layer.span().unwrap_or_default(), element, attribute)
    }

    /// Reports references that are no XML entities, and `&` without a reference.
    fn find_bare_ampersands(&mut self, model: &Model) {
        let text = self.source;
        let mut bare = memchr::memchr_iter(b'&', text.as_bytes()).filter(|&at| !is_entity(&text[at..])).peekable();
        if bare.peek().is_none() || text.contains("<!ENTITY") {
            return;
        }
        let bare: Vec<_> = bare.take(MAX_BARE).filter(|&at| !is_in_comment(&text[..at])).take(PLACES).collect();
        for at in bare {
            let word: String = text[at + 1..].chars().take_while(char::is_ascii_alphanumeric).collect();
            let is_named = !word.is_empty() && text[at + 1 + word.len()..].starts_with(';');
            let (message, length) = if is_named {
                (message!("`&{};` is not an entity of XML: OpenVINO keeps it as text"; word), word.len() + 2)
            } else {
                ("a bare `&` is not XML: OpenVINO keeps it as text".into(), 1)
            };
            let place = Span::new(at, at + length);
            let around = |layer: &&Layer| layer.span().is_some_and(|it| it.start <= place.start && place.end <= it.end);
            let layer = model.graph.layers().find(around).map(|layer| self.reference(layer));
            let lint = Diagnostic { layer, ..Diagnostic::new(Code::BareAmpersand, message) };
            let help: Message = match &*word {
                "nbsp" => "write `&#160;` for a space that does not break, or `&amp;nbsp;` for this text".into(),
                _ if is_named => message!("write the character itself, or `&amp;{};` for this text"; word),
                _ => "write `&amp;` for the character itself".into(),
            };
            self.diagnostics.push(lint.at(place, "other programs cannot read the file because of it").help(help));
        }
    }

    /// Reports values of `runtime_options` with which OpenVINO does not compile the model.
    fn find_runtime_options(&mut self, model: &Model) {
        let is_type = |value: &str| {
            let known = ElementType::from_name(value).or_else(|| ElementType::from_port_name(&value.to_uppercase()));
            known.is_some() || ["undefined", "dynamic"].contains(&value)
        };
        for (path, value) in model.rt_info_entries() {
            let (is_right, wanted) = match path.strip_prefix("runtime_options/") {
                Some(key) if key.ends_with("CACHE_PRECISION") || key == "INFERENCE_PRECISION_HINT" => {
                    (is_type(&value), "an element type, such as f16 or u8")
                }
                Some("ACTIVATIONS_SCALE_FACTOR") => (value.parse::<f64>().is_ok(), "a number"),
                Some("DYNAMIC_QUANTIZATION_GROUP_SIZE") => (value.parse::<u64>().is_ok(), "a number of values"),
                _ => continue,
            };
            if !is_right {
                let message = message!("`{}` is `{}`, with which OpenVINO does not compile the model"; path, value);
                let lint = Diagnostic::new(Code::InvalidValue, message);
                let lint = lint.at(model.graph.rt_info_span.unwrap_or_default(), "in this metadata");
                self.diagnostics.push(lint.help(message!("write {}"; wanted)));
            }
        }
    }

    fn check_operation(&mut self, layer: &'a Layer, operation: &'static Operation) {
        if operation.kind == LayerKind::Constant {
            match (layer.byte_count("offset"), layer.byte_count("size"), layer.attribute("value")) {
                (Some(start), Some(size), _) if size > 0 => {
                    self.constants.push(Constant { place: self.place(layer), start, end: start.saturating_add(size) });
                }
                (Some(_), Some(_), _) | (_, _, Some(_)) => {}
                _ => self.has_misplaced_constants = true,
            }
        }
        // Attributes that OpenVINO's writer adds to any layer are not reported.
        let is_known =
            |name| operation.attribute(name).is_some() || ["PrimitivesPriority", "alt_width"].contains(&name);
        let unknown: Vec<_> = layer.attributes().iter().map(Attribute::name).filter(|name| !is_known(name)).collect();
        for &name in unknown.iter().take(PLACES) {
            let message = message!("`{}` has no attribute `{}`: OpenVINO ignores it"; layer.ty(), name);
            let known: Vec<_> = operation.attribute_names().collect();
            let meant = foreign::attribute(name, known.iter().copied());
            let about = About::Unknown { attribute: name.to_owned(), meant: meant.map(str::to_owned) };
            let lint = self.lint(Code::UnknownAttribute, layer, message).about(about);
            let lint = lint.at(self.locate(layer, "data", name), "ignored");
            let revisions = ops::all().filter(|it| it.name == operation.name && it.attribute(name).is_some());
            let opset = revisions.filter_map(|it| it.opsets().min()).min();
            let help = match (meant, known.is_empty()) {
                (Some(meant), _) => message!("write `{}` if you mean this attribute"; meant),
                (None, _) if let Some(opset) = opset => {
                    message!("remove it, or write version=\"opset{}\", where `{}` has it"; opset, layer.ty())
                }
                (None, true) => "the operation has no attributes: remove it".into(),
                (None, false) => {
                    message!("remove it; the attributes of `{}` are {}"; layer.ty(), Text(known.join(", ")))
                }
            };
            self.diagnostics.push(lint.help(help));
        }
        if let Some(more @ 1..) = unknown.len().checked_sub(PLACES) {
            let message = message!("`{}` has {} more attributes that OpenVINO ignores"; layer.ty(), more);
            let lint =
                self.lint(Code::UnknownAttribute, layer, message).at(self.locate(layer, "layer", "name"), "here");
            self.diagnostics.push(lint);
        }
    }

    /// Reports each unknown operation. It is a warning if an extension may provide the operation. It has the severity
    /// `severe` if the version is one of OpenVINO's own sets.
    fn report_unknown_operations(&mut self, severe: Severity) {
        for ((ty, version), places) in std::mem::take(&mut self.unknown_operations) {
            let Some(Located { layer, reference }) = places.first() else { continue };
            let unknown = ops::describe_unknown(ty, version);
            // The other codes are errors that inference reports.
            if unknown.code != Code::UnknownOperation {
                continue;
            }
            let lint = Diagnostic::new(unknown.code, unknown.message);
            let mut lint = Diagnostic { layer: Some(reference.clone()), ..lint };
            let span = self.locate(layer, "layer", unknown.attribute);
            if ops::is_own_opset(version) {
                lint.severity = severe;
            }
            let label = match lint.severity {
                Severity::Error => "OpenVINO does not accept this operation",
                _ => "the layer is kept, with its declared types and shapes",
            };
            lint = lint.at(span, label);
            if places.len() > 1 {
                lint = lint.note(message!("{} similar layers"; places.len()));
            }
            self.diagnostics.push(lint.help(unknown.help));
        }
    }

    /// Records the release that a layer requires, if it is the newest one so far.
    fn note_requirements(&mut self, requirements: &Requirements<'_>, layer: &'a Layer) {
        for Requirement { release, feature } in requirements.of(layer) {
            if self.newest.as_ref().is_none_or(|newest| release > newest.release) {
                self.newest = Some(Newest { release, layers: Vec::new(), all: Vec::new() });
            }
            let Some(newest) = self.newest.as_mut().filter(|newest| newest.release == release) else { continue };
            newest.all.push((self.place.clone(), layer.id()));
            if newest.layers.len() < PLACES {
                newest.layers.push((Located { layer, reference: LayerRef::of(&self.place, layer) }, feature));
            }
        }
    }

    /// Adds the note on the oldest release that supports the model, with the layers that require it. There is none if
    /// no release has all operations.
    fn report_required_release(&mut self, model: &Model) {
        if model.walk().any(|(_, graph)| graph.unordered().any(|layer| layer.operation().is_none())) {
            return;
        }
        let format = Release::of_format(model.version);
        let newest = self.newest.take().filter(|newest| newest.release > format);
        let none = |release| Newest { release, layers: Vec::new(), all: Vec::new() };
        let newest = newest.unwrap_or_else(|| none(format));
        let beside = target::beside_layers(model, newest.release);
        let Newest { release, layers, all } = beside.as_ref().map_or(newest, |beside| none(beside.release));
        let message = match release {
            Release::OLDEST => message!("every OpenVINO release from {} on supports this model"; Text(release)),
            release => message!("OpenVINO {} is the oldest release that supports this model"; Text(release)),
        };
        let mut note = Diagnostic::new(Code::RequiredRelease, message);
        note.layer = layers.first().map(|(place, _)| place.reference.clone());
        if let Some(Beside { what, span, layer, .. }) = beside {
            note = note.at(span, message!("{} requires it"; what));
            note.layer = layer;
        } else if layers.is_empty() {
            let version = xml::locate(self.source, model.graph.span.unwrap_or_default(), "net", "version");
            note = note.at(version, message!("version {} of the format requires it"; model.version.number()));
        }
        for (Located { layer, .. }, feature) in &layers {
            let span = match feature {
                Feature::Attribute(attribute) => self.locate(layer, "data", attribute.name()),
                _ => self.locate(layer, "layer", "version"),
            };
            note = note.at(span, message!("{} requires it"; Text(feature)));
        }
        if let Some(more @ 1..) = all.len().checked_sub(layers.len()) {
            note = note.note(message!("{} more layers require it"; more));
        }
        self.diagnostics.push(note.about(About::Layers(all)));
    }

    fn find_legacy_types(&mut self, model: &'a Model) {
        if model.version == IrVersion::V11 {
            return;
        }
        let mut converted = Vec::new();
        for layer in model.graph.layers() {
            let to: fn(IrVersion, ElementType) -> ElementType = match layer.start() {
                Some(Start::Parameter) => IrVersion::input_type,
                Some(Start::Result) => IrVersion::output_type,
                _ => continue,
            };
            let ty = model.end_tensor(layer).map(OutputPort::element_type);
            let Some(ty) = ty.filter(|&ty| ty != ElementType::Dynamic) else { continue };
            let to = to(model.version, ty);
            if to != ty {
                converted.push((layer, message!("{} to {}"; ty, to)));
            }
        }
        let Some((first, _)) = converted.first() else { return };
        let tensors = if converted.len() == 1 { "an input or output" } else { "inputs and outputs" };
        let message = message!("OpenVINO converts {} of this version 10 model when it reads the file"; tensors);
        let mut note = self.lint(Code::LegacyTypes, first, message);
        for (layer, types) in converted.iter().take(PLACES) {
            note = note.at(
                self.locate(layer, "layer", "name"),
                message!("`Core.read_model` inserts a Convert here: {}"; types),
            );
        }
        self.diagnostics.push(note);
    }
}

fn is_entity(text: &str) -> bool {
    let Some((name, _)) = text[1..].split_once(';') else { return false };
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).is_ok();
    match name.strip_prefix('#').map(|digits| (digits, digits.strip_prefix('x'))) {
        Some((_, Some(digits))) => number(digits, 16),
        Some((digits, None)) => number(digits, 10),
        None => ["amp", "lt", "gt", "quot", "apos"].contains(&name),
    }
}

fn is_in_comment(before: &str) -> bool {
    let is_open = |start: &str, end: &str| before.rfind(start).is_some_and(|at| !before[at..].contains(end));
    is_open("<!--", "-->") || is_open("<![CDATA[", "]]>")
}

/// The newest release that layers require.
struct Newest<'a> {
    release: Release,
    /// The first layers that require it, each with the feature.
    layers: Vec<(Located<'a>, Feature<'a>)>,
    /// The layers of all cases.
    all: Vec<(Place, LayerId)>,
}

/// True if OpenVINO keeps a layer whose outputs are unused. Operations of extensions are treated as kept.
fn is_kept(layer: &Layer) -> bool {
    match layer.operation() {
        Some(_) => layer.start().is_some(),
        None => layer.outputs().is_empty(),
    }
}

/// The keys that have several values, each with these values, in the order of first occurrence.
fn repeated<K: Eq + Hash + Copy, V>(pairs: impl Iterator<Item = (K, V)>) -> impl Iterator<Item = Vec<V>> {
    let pairs: Vec<_> = pairs.collect();
    let mut seen = HashSet::default();
    seen.reserve(pairs.len());
    // Nearly every key occurs only once.
    let several: HashSet<K> = pairs.iter().map(|(key, _)| *key).filter(|key| !seen.insert(*key)).collect();
    let mut index = HashMap::<K, usize>::default();
    let mut groups = Vec::<Vec<V>>::new();
    for (key, value) in pairs.into_iter().filter(|(key, _)| several.contains(key)) {
        let at = *index.entry(key).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(value),
            None => groups.push(vec![value]),
        }
    }
    groups.into_iter()
}
