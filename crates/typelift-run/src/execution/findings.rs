//! Findings about a run: layers that a plugin computed in another way than their model suggests.

use std::collections::BTreeMap;

use foldhash::HashMap;
use typelift::findings::{Code, Diagnostic, LayerRef, Message, Text, grouped};
use typelift::graph::Place;
use typelift::promote::ElementType;
use typelift::{Graph, Layer, Model, xml};

use super::graph::bits;
use super::{Became, Ran, RanLayer, StoredWeights};

/// Executed layers of this kind have no code for the machine.
const REFERENCE: &str = "Reference";

/// Limit on the pairs of types that one finding names.
const PAIRS: usize = 4;

impl Ran {
    /// Returns findings about the layers of a model that a plugin computed in another way than the model suggests: weights that it
    /// unfolded, quantized layers that it computed in floats, layers without a kernel, and narrower types than declared.
    ///
    /// `model` is the model that was matched.
    pub fn findings(&self, model: &Model) -> Vec<Diagnostic> {
        let graph = model.graph();
        let layers = graph.layers().map(|layer| (layer.name(), layer)).collect();
        let view = View { ran: self, model, graph, layers };
        let mut found: Vec<_> = self.stored.iter().filter_map(|weights| view.unfolded(weights)).collect();
        found.extend(self.layers.iter().filter_map(|layer| view.not_quantized(layer)));
        found.extend(self.layers.iter().filter_map(|layer| view.reference(layer)));
        found.extend(view.narrower());
        found
    }
}

struct View<'a> {
    ran: &'a Ran,
    model: &'a Model,
    graph: &'a Graph,
    layers: HashMap<&'a str, &'a Layer>,
}

impl View<'_> {
    fn finding(&self, code: Code, name: &str, message: Message, label: impl Into<Message>) -> Option<Diagnostic> {
        let layer = self.layers.get(name)?;
        let span = xml::name_span(self.model, layer);
        let mut finding = Diagnostic::new(code, message).at(span, label);
        finding.layer = Some(LayerRef::of(&Place::default(), layer));
        Some(finding)
    }

    /// Warns of weights that arrived in more bits than the model stores.
    fn unfolded(&self, weights: &StoredWeights) -> Option<Diagnostic> {
        let used = weights.used_as?;
        let (before, after) = (bytes(weights.elements, weights.stored_as)?, bytes(weights.elements, used)?);
        if after <= before {
            return None;
        }
        let message = Message::new(
            "`{}` was unfolded from {} to {} for `{}`: {} bytes became {}",
            &[
                &weights.constant,
                &weights.stored_as,
                &used,
                &weights.user,
                &Text(grouped(before)),
                &Text(grouped(after)),
            ],
        );
        self.finding(Code::RanUnfolded, &weights.constant, message, Message::new("used as {}", &[&used]))
    }

    /// Warns of a layer that FakeQuantize prepares for 8 bits and that ran in floats.
    fn not_quantized(&self, layer: &RanLayer) -> Option<Diagnostic> {
        let precision = layer.precision.as_deref().and_then(ElementType::from_name)?;
        let is_matrix = ["MatMul", "Convolution", "GroupConvolution"].contains(&layer.ty.as_str());
        let id = self.layers.get(layer.name.as_str()).filter(|_| is_matrix && precision.is_float())?.id();
        let are_quantized = [0, 1].map(|input| {
            let feed = self.graph.producer(id.input(input)).and_then(|output| self.graph.layer(output.layer));
            feed.is_some_and(|feed| feed.ty() == "FakeQuantize")
        });
        let inputs = match are_quantized {
            [true, true] => "data and weights",
            [true, false] => "data",
            [false, true] => "weights",
            [false, false] => return None,
        };
        let message =
            Message::new("`{}` ran in {}, although FakeQuantize quantizes its {}", &[&layer.name, &precision, &inputs]);
        self.finding(Code::RanNotQuantized, &layer.name, message, Message::new("ran in {}", &[&precision]))
    }

    /// Warns of a layer for which the plugin has no kernel.
    fn reference(&self, layer: &RanLayer) -> Option<Diagnostic> {
        let is_own = layer.became == Became::Ran && layer.exec_type.as_deref() == Some(REFERENCE);
        let message = Message::new(
            "the plugin has no kernel for `{}` ({}) and ran its reference code",
            &[&layer.name, &layer.ty],
        );
        is_own.then(|| self.finding(Code::RanReference, &layer.name, message, "ran as Reference"))?
    }

    /// Notes results that were computed in fewer bits than the model declares, once for all.
    fn narrower(&self) -> Option<Diagnostic> {
        let mut pairs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut first = None;
        for layer in self.ran.layers.iter().filter(|layer| matches!(layer.became, Became::Ran | Became::Fused)) {
            let computed = layer.exec_gives.as_ref().and_then(|gives| gives.first().copied());
            let (Some(computed), Some(declared)) = (computed, layer.gives.first().copied()) else { continue };
            if bits(computed) > 0 && bits(computed) < bits(declared) {
                *pairs.entry((declared, computed)).or_default() += 1;
                first = first.or(Some(layer));
            }
        }
        let mut sorted: Vec<_> = pairs.into_iter().collect();
        sorted.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let words = sorted.iter().take(PAIRS);
        let words: Vec<_> =
            words.map(|((from, to), count)| format!("{} from {from} to {to}", grouped(*count as u64))).collect();
        let more = if sorted.len() > PAIRS { ", …" } else { "" };
        let message =
            Message::new("results were computed in fewer bits than declared: {}{}", &[&Text(words.join(", ")), &more]);
        let finding = self.finding(Code::RanNarrower, &first?.name, message, "the first one")?;
        Some(finding.help("ask for f32 with the hint INFERENCE_PRECISION_HINT, if floats are to keep their bits"))
    }
}

fn bytes(elements: u64, ty: &str) -> Option<u64> {
    let bits = u64::from(ElementType::from_name(ty)?.bits());
    Some((elements * bits).div_ceil(8))
}
