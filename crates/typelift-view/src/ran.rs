//! The layers that a plugin ran, as the page shows them: in the type in which they were computed.

use foldhash::HashMap;
use serde::Serialize;
use typelift::promote::{ElementType, fidelity};
use typelift::{Graph, Layer};
use typelift_run::execution::{AddedLayer, Became, Kernels, Led, Ran, RanLayer};

#[derive(Serialize)]
pub(crate) struct Run<'a> {
    /// The layers of the model's own graph.
    layers: Vec<Computed<'a>>,
    /// The layers that the plugin added, such as Reorders and Converts.
    added: Vec<Added<'a>>,
    /// The kernels, with those of added layers.
    kernels: &'a [Kernels],
    /// The time of all executed layers in microseconds.
    us: u64,
    /// The time of those that ran once, for constants.
    once: u64,
}

/// The result of compilation for a layer.
#[derive(Serialize)]
struct Computed<'a> {
    path: &'a str,
    /// A sentence: `ran as FullyConnected in bf16 · 12 µs`.
    text: String,
    became: &'static str,
    /// The time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<u64>,
    /// The type that gives the box its colour.
    #[serde(skip_serializing_if = "Option::is_none", rename = "type")]
    element_type: Option<&'a str>,
    /// The executed layer, if it has another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<&'a str>,
    /// The other kernels that it consists of: `RNNSeq 215 µs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<String>,
    /// The types in which its weights are stored and arrive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    weights: Vec<(&'a str, &'a str)>,
}

#[derive(Serialize)]
struct Added<'a> {
    /// The layers of the model around it, if its name tells them.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<&'a str>,
    exec: &'a str,
    text: String,
    /// The types of the input and the output.
    types: (&'static str, &'static str),
    /// The possible loss, empty if nothing is lost; `None` if the type stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    loses: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    us: Option<u64>,
}

impl<'a> Run<'a> {
    pub(crate) fn of(graph: &'a Graph, ran: &'a Ran) -> Self {
        let precisions: HashMap<&str, &str> = ran
            .layers
            .iter()
            .filter_map(|layer| {
                let Some(Led::To(exec)) = &layer.exec else { return None };
                Some((exec.as_str(), layer.precision.as_deref()?))
            })
            .collect();
        let mut weights = HashMap::<&str, Vec<_>>::default();
        for it in &ran.stored {
            weights.entry(it.user.as_str()).or_default().push((it.stored_as, it.used_as.unwrap_or("?")));
        }
        let layers = ran.layers.iter().filter(|it| !matches!(it.became, Became::Constant | Became::Output));
        let layers = layers.map(|layer| {
            let arriving = weights.get(layer.name.as_str()).cloned().unwrap_or_default();
            Computed::of(layer, &precisions, arriving)
        });
        Self {
            layers: layers.collect(),
            added: added(graph, ran),
            kernels: &ran.kernels,
            us: ran.counts.us,
            once: ran.counts.us_once,
        }
    }
}

impl<'a> Computed<'a> {
    fn of(layer: &'a RanLayer, precisions: &HashMap<&str, &'a str>, weights: Vec<(&'a str, &'a str)>) -> Self {
        let exec = match &layer.exec {
            Some(Led::To(exec)) => Some(exec.as_str()),
            _ => None,
        };
        let gives = layer.exec_gives.as_ref().and_then(|gives| gives.first().copied());
        let precision = layer.precision.as_deref().or_else(|| precisions.get(exec?).copied());
        // The type of a kernel says nothing about indices that went into it, and that of a body's layer is not one of
        // values.
        let is_of_others = layer.became == Became::Inside
            && !layer.gives.iter().any(|ty| is_float(ty))
            && precision.is_some_and(is_float);
        let precision = precision.filter(|_| !is_of_others && layer.bodies_not_shown.is_empty());
        let kind = layer.exec_type.as_deref().unwrap_or("layer");
        let within = precision.map_or_else(String::new, |precision| format!(" in {precision}"));
        let time = layer.us.map_or_else(String::new, |us| format!(" · {us} µs"));
        let text = match layer.became {
            Became::Ran => format!("ran as {kind}{within}{time}"),
            Became::Fused => format!("fused into {kind}{within}, which lists it"),
            Became::Inside => format!("went into {kind}{within}, by its place between named layers"),
            Became::Spread => "went into several layers, by its place".to_owned(),
            Became::Folded => format!("computed when the model was compiled{within}"),
            Became::Gone => "left no trace".to_owned(),
            became => became.name().to_owned(),
        };
        Self {
            path: &layer.name,
            text,
            became: layer.became.name(),
            us: layer.us,
            element_type: gives.filter(|_| layer.bodies_not_shown.is_empty() && !is_of_others).or(precision),
            exec: exec.filter(|exec| *exec != layer.name),
            parts: layer.parts.iter().map(ToString::to_string).collect(),
            weights,
        }
    }
}

fn is_float(ty: &str) -> bool {
    ElementType::from_name(ty).is_some_and(ElementType::is_float)
}

/// The layers that the plugin added. It names those on edges of the model `PRODUCER_from_to_CONSUMER`.
fn added<'a>(graph: &'a Graph, ran: &'a Ran) -> Vec<Added<'a>> {
    let known: HashMap<&str, &Layer> = graph.layers().map(|layer| (layer.name(), layer)).collect();
    let added = ran.added.iter().map(|layer| {
        let ends = ends(graph, &known, layer);
        let [from, to] = [&layer.from, &layer.to].map(|types| types.first().copied().unwrap_or("?"));
        let text = format!("{} {from} → {to}", layer.ty);
        let loss = ElementType::from_name(from).zip(ElementType::from_name(to)).filter(|_| from != to);
        // A ShapeOf reads no values.
        let is_read = ends.and_then(|ends| known.get(ends.1)).is_none_or(|layer| layer.ty() != "ShapeOf");
        let loses = loss.and_then(|(from, to)| fidelity(from, to)).map(|loss| match loss.is_exact() || !is_read {
            true => String::new(),
            false => loss.to_string(),
        });
        let [from_layer, to_layer] = [ends.map(|ends| ends.0), ends.map(|ends| ends.1)];
        Added { from: from_layer, to: to_layer, exec: &layer.exec, text, types: (from, to), loses, us: layer.us }
    });
    added.collect()
}

/// The producer and the consumer around an added layer.
fn ends<'a>(graph: &Graph, known: &HashMap<&str, &'a Layer>, layer: &AddedLayer) -> Option<(&'a str, &'a str)> {
    let cuts: Vec<usize> = layer.exec.match_indices('_').map(|(at, _)| at).collect();
    let producer = *cuts.iter().rev().find_map(|&at| known.get(&layer.exec[..at]))?;
    let consumer = *cuts.iter().find_map(|&at| known.get(&layer.exec[at + 1..]))?;
    graph.users(producer.id()).any(|user| user == consumer.id()).then(|| (producer.name(), consumer.name()))
}
