//! Checks for features of a model that an OpenVINO release does not support.

use typelift_promote::ElementType;

use crate::base::hash::HashSet;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, Fix, FixAction, LayerRef, Message, Text, message};
use crate::model::graph::{Graph, IrVersion, Layer, Model, Place, Start};
use crate::ops::{self, Feature, Release, Requirement, Requirements};
use crate::text::xml;

/// An error for each feature of a model that an OpenVINO release does not support, in the order of the file, bodies
/// included. It considers the IR version, operations, attribute values, element types, the text of ports, and the start
/// of the file.
pub(crate) fn check_target(model: &Model, target: Release) -> Vec<Diagnostic> {
    let mut found = unread(model, target);
    found.extend(opening(model, target));
    found.extend(ports(model, target));
    found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    found
}

/// The findings about features that a release does not support, for a model that will be written anew.
pub(crate) fn unread(model: &Model, target: Release) -> Vec<Diagnostic> {
    let long_name = long_tag(model, target).map(|tag| unrecognized(LONG_TAG, tag, target));
    let mut found: Vec<_> = long_name.map(|it| it.help("give the model a shorter name")).into_iter().collect();
    let format = Release::of_format(model.version());
    if format > target {
        let span = xml::locate(model.source(), model.graph.span.unwrap_or_default(), "net", "version");
        found
            .push(refusal(message!("version {} of the format"; model.version().number()), format, target).at(span, ""));
    }
    for (place, graph) in model.walk() {
        if target < Release::WITH_REPEATED_NAMES {
            found.extend(repeated_names(graph).into_iter().map(|layer| repeated(model, layer, &place, target)));
        }
        let requirements = Requirements::new(graph);
        for layer in graph.layers() {
            let newer = requirements.of(layer).filter(|requirement| requirement.release > target);
            // If the operation is not supported, its attributes and outputs are not reported.
            let first = newer.min_by_key(|requirement| !matches!(requirement.feature, Feature::Operation { .. }));
            found.extend(first.map(|requirement| of_layer(model, layer, &place, requirement, target)));
        }
    }
    found.sort_by_key(|diagnostic| diagnostic.labels.first().map(|label| label.span.start));
    found
}

/// Removes errors about operations that OpenVINO no longer has and the target still reads.
pub(crate) fn forgive_removed(model: &Model, target: Release, found: &mut Vec<Diagnostic>) {
    found.retain(|it| {
        let place = it.layer.as_ref().filter(|_| it.code == Code::WrongOpset);
        let layer = place.and_then(|at| model.graph_at(&at.place)?.layer(at.id));
        let removal = layer.and_then(|layer| Release::of_removal(layer.ty(), layer.version()));
        removal.is_none_or(|removal| removal <= target)
    });
}

/// The tag of the root, if the release must find it within the first bytes of a file and does not.
fn root_tag(model: &Model, target: Release) -> Option<Span> {
    let root = model.graph.span.filter(|_| target < Release::WITH_ANY_OPENING)?;
    Some(xml::locate(model.source(), root, "net", ""))
}

fn unrecognized(what: &'static str, tag: Span, target: Release) -> Diagnostic {
    let found = refusal(what, Release::WITH_ANY_OPENING, target).at(tag, "");
    found.note("older releases recognize IR by the first 512 bytes of the file")
}

const LONG_TAG: &str = "a `<net>` tag of this length";

/// The root tag if it is longer than the first bytes that older releases read.
fn long_tag(model: &Model, target: Release) -> Option<Span> {
    root_tag(model, target).filter(|tag| (tag.end - tag.start) as usize > xml::OPENING - xml::DECLARATION.len())
}

/// The problem if other text is before the root tag, or if the file is too short.
fn odd_opening(model: &Model, target: Release) -> Option<(&'static str, Span)> {
    let tag = root_tag(model, target)?;
    if tag.end as usize > xml::OPENING {
        Some(("a `<net>` tag this far from the start of the file", tag))
    } else {
        (model.graph.span?.end as usize <= xml::OPENING).then_some(("a model of so few bytes", tag))
    }
}

fn opening(model: &Model, target: Release) -> Option<Diagnostic> {
    let (what, tag) = odd_opening(model, target).filter(|_| long_tag(model, target).is_none())?;
    Some(unrecognized(what, tag, target).help(Fix::untried(FixAction::Retarget)))
}

/// Feature of a model, apart from its layers, that needs a release.
pub(super) struct Beside {
    pub(super) release: Release,
    pub(super) what: Message,
    pub(super) span: Span,
    pub(super) layer: Option<LayerRef>,
}

/// A feature, apart from the layers, that a release does not support. If there are several, returns the one that needs
/// the newest release.
pub(super) fn beside_layers(model: &Model, release: Release) -> Option<Beside> {
    let opening = || {
        let long = long_tag(model, release).map(|tag| (LONG_TAG, tag));
        let (what, span) = long.or_else(|| odd_opening(model, release))?;
        Some(Beside { release: Release::WITH_ANY_OPENING, what: what.into(), span, layer: None })
    };
    let of_layer = |place: &Place, layer: &Layer, what, release| {
        let span = xml::locate(model.source(), layer.span().unwrap_or_default(), "layer", "name");
        Beside { release, what, span, layer: Some(LayerRef::of(place, layer)) }
    };
    let found = opening().or_else(|| {
        let mut graphs = model.walk().filter(|_| release < Release::WITH_REPEATED_NAMES);
        graphs.find_map(|(place, graph)| {
            let layer = *repeated_names(graph).first()?;
            let what = message!("a second layer with the name `{}`"; layer.name());
            Some(of_layer(&place, layer, what, Release::WITH_REPEATED_NAMES))
        })
    });
    found.or_else(|| {
        let graphs = model.walk().filter(|_| release < Release::WITH_OPEN_TYPES);
        let layers = graphs.flat_map(|(place, graph)| graph.layers().map(move |layer| (place.clone(), layer)));
        let found = layers.filter_map(|(place, layer)| {
            let (what, needed) = port(model, layer, release)?;
            Some(of_layer(&place, layer, what.into(), needed))
        });
        // If several need the newest release, the first is returned.
        found.reduce(|first, next| if next.release > first.release { next } else { first })
    })
}

fn ports(model: &Model, target: Release) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (place, graph) in model.walk().filter(|_| target < Release::WITH_OPEN_TYPES) {
        for layer in graph.layers() {
            let Some((what, needed)) = port(model, layer, target) else { continue };
            let span = xml::locate(model.source(), layer.span().unwrap_or_default(), "layer", "name");
            let mut error = refusal(message!("{} of `{}`"; what, layer.name()), needed, target).at(span, "");
            error.fixes.push(Fix::untried(FixAction::Retarget));
            error.layer = Some(LayerRef::of(&place, layer));
            found.push(error);
        }
    }
    found
}

/// The problem is an output port without an element type, or a dimension of -1 in version 10.
fn port(model: &Model, layer: &Layer, target: Release) -> Option<(&'static str, Release)> {
    let is_open = |ty| ty == ElementType::Dynamic;
    let mut outputs = layer.outputs().iter();
    if outputs.any(|port| port.declared.is_some_and(is_open) && !is_open(port.element_type())) {
        return Some(("a port without an element type", Release::WITH_OPEN_TYPES));
    }
    if target >= Release::WITH_OPEN_SHAPES || model.version() != IrVersion::V10 {
        return None;
    }
    let inputs = layer.inputs().iter().map(|port| port.content);
    let mut ports = inputs.chain(layer.outputs().iter().map(|port| port.content));
    let open = ports.any(|port| xml::declared_dims(model.source(), port).iter().any(|&dim| dim < 0));
    open.then_some(("a dimension of -1 in a port", Release::WITH_OPEN_SHAPES))
}

/// Layers with the name of an earlier one, except Results.
pub(crate) fn repeated_names(graph: &Graph) -> Vec<&Layer> {
    let mut names = HashSet::default();
    names.reserve(graph.len());
    let named = graph.layers().filter(|layer| layer.start() != Some(Start::Result));
    named.filter(|layer| !names.insert(layer.name())).collect()
}

fn repeated(model: &Model, layer: &Layer, place: &Place, target: Release) -> Diagnostic {
    let span = xml::locate(model.source(), layer.span().unwrap_or_default(), "layer", "name");
    let what = message!("a second layer with the name `{}`"; layer.name());
    let found = refusal(what, Release::WITH_REPEATED_NAMES, target).at(span, "an earlier layer has the same name");
    let layer = LayerRef::of(place, layer);
    Diagnostic { layer: Some(layer), ..found }.help("give it a unique name")
}

fn of_layer(model: &Model, layer: &Layer, place: &Place, requirement: Requirement, target: Release) -> Diagnostic {
    let Requirement { release, feature } = requirement;
    let (element, attribute) = match feature {
        Feature::Attribute(attribute) => ("data", attribute.name()),
        Feature::OpenShape | Feature::EmptyTensor if !layer.outputs().is_empty() => ("data", "shape"),
        _ => ("layer", "version"),
    };
    let span = xml::locate(model.source(), layer.span().unwrap_or_default(), element, attribute);
    let what: Message = match feature {
        Feature::Operation { .. } => Text(feature).into(),
        _ => message!("{} of `{}`"; Text(feature), layer.name()),
    };
    let mut diagnostic = refusal(what, release, target).at(span, message!("`{}` needs it"; layer.name()));
    diagnostic.layer = Some(LayerRef::of(place, layer));
    if matches!(feature, Feature::Operation { .. }) {
        diagnostic.fixes.extend(older(layer, target).map(Fix::from));
    }
    if feature == Feature::OpenShape && !layer.outputs().is_empty() {
        diagnostic.fixes.push("give the input a fixed shape".into());
    }
    diagnostic
}

fn older(layer: &Layer, target: Release) -> Option<Message> {
    let own = layer.operation()?;
    let rows = ops::revisions(layer.ty()).iter();
    let (row, opset) = rows
        .flat_map(|row| row.opsets().map(move |opset| (row, opset)))
        .filter(|(row, opset)| Release::of_operation(row, *opset).is_some_and(|release| release <= target))
        .max_by_key(|(row, opset)| (row.revision, *opset))?;
    let same = row.revision == own.revision;
    let revision = if same { "the same revision of it" } else { "an earlier revision of it" };
    Some(message!("OpenVINO {} has {} in opset{}"; Text(target), revision, opset))
}

fn refusal(what: impl Into<Message>, needed: Release, target: Release) -> Diagnostic {
    Diagnostic::new(
        Code::NewerThanTarget,
        message!("{} needs OpenVINO {}, and the target is {}"; what.into(), Text(needed), Text(target)),
    )
}
