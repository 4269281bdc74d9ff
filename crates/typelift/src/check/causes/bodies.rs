//! Explains a wrong tensor inside a body by the entry of the port map that brings it.

use std::collections::HashSet;

use super::{Aspect, Causes};
use crate::base::span::Span;
use crate::check::Declared;
use crate::findings::{Code, Diagnostic, Label, LayerRef, Message, Text, message};
use crate::model::graph::{Direction, Layer, OutputPort, Place};
use crate::ops::{self, LayerKind};
use crate::text::xml;

/// An entry of a port map that brings a Parameter another tensor than its port declares.
pub(super) struct Entry {
    owner: LayerRef,
    span: Span,
    message: Message,
    help: Message,
}

impl Causes<'_> {
    /// The entry that brings a Parameter its tensor, if another input of the layer is what the port declares.
    pub(super) fn wrong_entry(&self, place: &Place, parameter: &Layer, port: &OutputPort) -> Option<Entry> {
        if ops::kind(parameter) != LayerKind::Parameter {
            return None;
        }
        let (outside, owner, body) = self.model.owner_of(place)?;
        let graph = self.model.graph_at(&outside)?;
        let mut entries = body.port_map.iter().filter(|it| {
            it.direction == Direction::Input && it.internal_layer_id == parameter.id() && it.axis.is_none()
        });
        let entry = entries.next().filter(|_| entries.next().is_none())?;
        let now = u64::try_from(entry.external_port_id).ok()?;
        let declared = Declared::read(self.source, port.declared, port.content);
        let feeds = graph.feeds(owner.id());
        let tensor = |at: usize| {
            let tensor = feeds.get(at).copied().flatten().and_then(|(source, port)| source.outputs().get(port))?;
            (!self.deviates(tensor, Aspect::Any)).then_some(tensor)
        };
        // The tensor itself is as its port declares, so the entry is what is wrong.
        let is_wrong = tensor(usize::try_from(now).ok()?).is_some_and(|tensor| !declared.fits(tensor));
        let is_free = |at: &usize| body.port_map.iter().all(|it| usize::try_from(it.external_port_id) != Ok(*at));
        let fits = |at: &usize| tensor(*at).is_some_and(|tensor| declared.fits(tensor));
        let mut fitting = (0..owner.inputs().len()).filter(is_free).filter(fits);
        let meant = fitting.next().filter(|_| is_wrong && fitting.next().is_none())?;
        let span = xml::locate_entry(self.source, owner.span()?, body.name(), Direction::Input, parameter.id())?;
        let message = message!(
            "the port map gives Parameter {} `{}` of `{}` input {} of the layer, which is {}, but its port declares \
             {}";
            parameter.id(), parameter.name(), body.name(), now, port, Text(&declared)
        );
        let help =
            message!("write external_port_id=\"{}\": input {} of the layer is {}"; meant, meant, Text(&declared));
        Some(Entry { owner: LayerRef::of(&outside, owner), span, message, help })
    }
}

impl Entry {
    /// Makes one finding of the errors that lead back to the Parameter.
    pub(super) fn explain(self, members: &[usize], found: &mut [Diagnostic], suppressed: &mut HashSet<usize>) {
        let Some((&first, others)) = members.split_first() else { return };
        let labels: Vec<_> = members.iter().filter_map(|&at| super::label_of(&found[at])).collect();
        let consequences = members.iter().filter_map(|&at| found[at].layer.clone()).collect();
        let mut joined = Diagnostic::new(Code::InvalidBody, self.message).at(self.span, "this entry").help(self.help);
        joined.labels.extend::<Vec<Label>>(labels);
        joined.layer = Some(self.owner);
        found[first] = Diagnostic { consequences, ..joined };
        suppressed.extend(others);
    }
}
