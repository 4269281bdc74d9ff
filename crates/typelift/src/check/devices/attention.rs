//! Attention of CPU plugins: masks that older releases refuse, and caches that are stored in fewer bits.

use typelift_promote::ElementType;

use super::{MEASURED, View, and_others, name};
use crate::findings::{Code, Diagnostic, Fix, FixAction, Text, message};
use crate::model::graph::{Layer, LayerId};
use crate::ops::{self, LayerKind, Release};

impl<'a> View<'a> {
    fn attentions(&self) -> impl Iterator<Item = &'a Layer> {
        self.layers().filter(|layer| name(layer) == "ScaledDotProductAttention")
    }

    fn source(&self, id: LayerId, input: usize) -> Option<&'a Layer> {
        self.graph.layer(self.graph.producer(id.input(input))?.layer)
    }

    /// Refuses boolean masks of attention with open lengths, for releases that make numbers of them.
    pub(super) fn masks(&self, target: Option<Release>, found: &mut Vec<Diagnostic>) {
        const GROUND: &str =
            "measured on x86-64: refused by OpenVINO 2023.3, and in stateful models by 2024.0 to 2024.6";
        let Some(target) = target else { return };
        let mut refused = self.boolean_masks(target);
        let Some((first, mask)) = refused.next() else { return };
        let message =
            message!("the mask of `{}` is boolean, which the CPU plugin of {} refuses"; first.name(), Text(target));
        let finding = self.finding(Code::BooleanMask, mask, message, "boolean", GROUND);
        let finding = and_others(finding, refused.map(|(layer, _)| layer));
        let finding = finding.help("select between 0 and minus infinity by the mask, and use that as the mask");
        found.push(finding.help(Fix::untried(FixAction::Retarget)));
    }

    /// Iterates over the attentions whose boolean mask a release refuses, each with the producer of the mask.
    pub(super) fn boolean_masks(&self, target: Release) -> impl Iterator<Item = (&'a Layer, &'a Layer)> {
        let mask = |layer: &'a Layer| self.source(layer.id(), 3).filter(|mask| is_boolean(mask));
        let refused = self.attentions().filter(move |layer| {
            let is_open = layer.outputs().first().is_some_and(|port| port.shape().to_static().is_none());
            let is_old = target < Release::WITH_BOOLEAN_MASKS;
            is_open && (is_old || target <= Release::WITHOUT_STATEFUL_MASKS && self.is_stateful(layer, is_state))
        });
        refused.filter_map(move |layer| Some((layer, mask(layer)?)))
    }

    /// Notes that keys and values of a stateful model are stored in 8 bits.
    pub(super) fn caches(&self, found: &mut Vec<Diagnostic>) {
        if self.model.rt_info("runtime_options/KV_CACHE_PRECISION").is_some() {
            return;
        }
        // The plugin has one layer for both only if beams are reordered by a Gather.
        let is_cache = |layer: &Layer| name(layer) == "Gather" && self.source(layer.id(), 0).is_some_and(is_state);
        let mut cached = self.attentions().filter(|layer| self.is_stateful(layer, is_cache));
        let Some(first) = cached.next() else { return };
        let message =
            message!("the CPU plugin stores keys and values of `{}` as u8, with any precision hint"; first.name());
        let finding = self.finding(Code::CacheU8, first, message, "keys and values come from a state", MEASURED);
        found.push(and_others(finding, cached).help("set the metadata `runtime_options/KV_CACHE_PRECISION` to f16"));
    }

    fn is_stateful(&self, attention: &Layer, is_past: impl Fn(&Layer) -> bool) -> bool {
        [1, 2].into_iter().all(|input| {
            let present = self.source(attention.id(), input).and_then(|layer| self.before_moves(layer));
            let past = present.filter(|present| name(present) == "Concat").and_then(|it| self.source(it.id(), 0));
            past.is_some_and(|past| {
                is_past(past) || name(past) == "Gather" && self.source(past.id(), 0).is_some_and(&is_past)
            })
        })
    }

    /// The layer whose values the layers up to this one only move.
    fn before_moves(&self, mut layer: &'a Layer) -> Option<&'a Layer> {
        const MOVES: [&str; 5] = ["Reshape", "Squeeze", "Unsqueeze", "Transpose", "Broadcast"];
        while MOVES.contains(&name(layer)) {
            layer = self.source(layer.id(), 0)?;
        }
        Some(layer)
    }
}

fn is_state(layer: &Layer) -> bool {
    ops::kind(layer) == LayerKind::ReadValue
}

fn is_boolean(layer: &Layer) -> bool {
    layer.outputs().first().is_some_and(|port| port.element_type() == ElementType::Boolean)
}
