//! Conversion to IR version 10, and the losses that it causes.

use crate::base::hash::HashSet;
use crate::findings::{Code, Diagnostic, LayerRef, message};
use crate::model::graph::{Graph, Input, IrVersion, Layer, LayerId, Model, NewLayer, Output, OutputPort, Place, Start};
use crate::text::xml;

/// Maximum number of positions in one finding.
const PLACES: usize = 8;

/// Converts a model to version 10, and reports the losses.
pub(super) fn write(model: &mut Model) -> Vec<Diagnostic> {
    model.version = IrVersion::V10;
    let mut found = Vec::new();
    found.extend(metadata(model));
    separate_outputs(model);
    found.extend(output_names(model));
    found
}

/// Reports metadata of layers and ports. It is kept in the file, but ignored in version 10.
fn metadata(model: &Model) -> Option<Diagnostic> {
    let (mut found, mut count) = (Diagnostic::new(Code::Version10Loss, ""), 0);
    for (_, graph) in model.walk() {
        for layer in graph.layers() {
            let ports = layer.outputs().iter().filter_map(|port| port.rt_info.as_ref());
            for rt_info in layer.rt_info.iter().chain(ports) {
                count += 1;
                if count <= PLACES {
                    let place = rt_info.place_in(&model.source).or(layer.span).unwrap_or_default();
                    found = found.at(place, message!("metadata of `{}`"; layer.name()));
                }
            }
        }
    }
    let what = if count == 1 { "layer or port is" } else { "layers and ports is" };
    found.message = message!("IR version 10 has no `rt_info` of layers and ports: that of {} {} ignored"; count, what);
    (count > 0)
        .then(|| found.help("no action is needed, unless a tool relies on this metadata, for example on `fused_names`"))
}

/// Makes outputs distinct. Version 10 identifies an output by the layer before it. If one tensor has several outputs,
/// or an input is an output, additional layers are inserted.
fn separate_outputs(model: &mut Model) {
    let mut seen = Vec::new();
    for (result, tensor) in results(&model.graph) {
        let source = model.graph.layer(tensor.layer);
        let is_input = source.is_some_and(|layer| layer.start() == Some(Start::Parameter));
        if !is_input && !seen.contains(&tensor) {
            seen.push(tensor);
            continue;
        }
        let Some(ty) = model.graph.output(tensor).map(|port| port.element_type()) else { continue };
        let name = model.graph.layer(result).map(|layer| layer.name().to_owned()).unwrap_or_default();
        let done = model.edit(|graph| {
            let name = graph.unused_name(name);
            let convert = NewLayer::new("Convert", "opset1").with_attribute("destination_type", ty);
            let convert = graph.add(convert, &[tensor])?;
            graph.set_name(convert, &name)?;
            graph.connect(convert.output(0), Input { layer: result, port: 0 })
        });
        // Tensors of unknown type were reported as errors before.
        debug_assert!(done.is_ok(), "{done:?}");
    }
}

/// Moves names from outputs to the tensors that feed them, because version 10 ignores the names of outputs.
fn output_names(model: &mut Model) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let ports = model.graph.layers().flat_map(Layer::outputs);
    let mut taken: HashSet<String> = ports.flat_map(OutputPort::names).collect();
    for (result, tensor) in results(&model.graph) {
        let Some(layer) = model.graph.layer(result) else { continue };
        let Some(names) = layer.output_names().map(crate::model::graph::split_names) else { continue };
        let known = model.graph.output(tensor).map(|port| port.names()).unwrap_or_default();
        let missing: Vec<_> = names.iter().filter(|name| !taken.contains(*name)).cloned().collect();
        taken.extend(missing.iter().cloned());
        let lost: Vec<_> = known.iter().filter(|name| !names.contains(name)).cloned().collect();
        if missing.is_empty() && lost.is_empty() {
            continue;
        }
        found.push(loss(model, layer, &missing, &lost));
        let named = model.edit(|graph| graph.set_names(tensor, [known, missing].concat()));
        // The edit cannot fail, because the tensor exists.
        debug_assert!(named.is_ok(), "{named:?}");
    }
    found
}

fn loss(model: &Model, layer: &Layer, missing: &[String], lost: &[String]) -> Diagnostic {
    let list = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let message = match (missing.is_empty(), lost.is_empty()) {
        (false, _) => {
            let becomes = if missing.len() == 1 { "becomes a name" } else { "become names" };
            message!("IR version 10 has no `output_names`: {} {} of the tensor"; list(missing), becomes)
        }
        (true, _) => {
            message!("IR version 10 has no `output_names`: the output can also be found as {}"; list(lost))
        }
    };
    let span = xml::locate(&model.source, layer.span().unwrap_or_default(), "layer", "output_names");
    let mut found = Diagnostic::new(Code::Version10Loss, message).at(span, "ignored in IR version 10");
    found.layer = Some(LayerRef::of(&Place::default(), layer));
    found
}

fn results(graph: &Graph) -> Vec<(LayerId, Output)> {
    let results = graph.layers().filter(|layer| layer.start() == Some(Start::Result));
    results.filter_map(|layer| Some((layer.id(), graph.producers(layer.id()).first().copied().flatten()?))).collect()
}
