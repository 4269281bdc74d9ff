//! Layers that were read before, in a text of which this one is an edited copy.

use std::mem::take;
use std::sync::Arc;

use super::super::tokens::Element;
use super::{Read, Reading, read};
use crate::graph::{Graph, InputPort, Layer};
use crate::span::Span;

/// The layers of a text of which edited copies are read: what a copy has unchanged is read once. Those of its own graph of which
/// nothing was reported, as far as the first copy has them.
pub(crate) struct Original {
    length: usize,
    layers: Vec<Layer>,
    is_read: bool,
}

impl Original {
    pub(crate) fn new(source: &str) -> Self {
        Self { length: source.len(), layers: Vec::new(), is_read: false }
    }

    /// As [`parse`](super::parse), for a copy of the text that differs from it only in what it has for `changed`.
    pub(crate) fn parse_copy(&mut self, source: Arc<String>, changed: Span) -> Reading {
        let end = source.len() + changed.end as usize - self.length;
        let here = Change { from: changed, to: end };
        let back = Change { from: Span::new(changed.start as usize, end), to: changed.end as usize };
        let shared = Shared { layers: take(&mut self.layers), next: 0, change: here, keeps: !self.is_read };
        let (reading, Shared { layers, .. }) = read(source, shared);
        self.layers = if self.is_read { layers } else { layers.iter().filter_map(|layer| back.moved(layer)).collect() };
        self.is_read = true;
        reading
    }
}

/// A piece of a text that is another one in a second text, and ends elsewhere there.
#[derive(Clone, Copy, Default)]
struct Change {
    from: Span,
    to: usize,
}

impl Change {
    /// Where a piece of the text is in the other, if it is there unchanged.
    fn place(self, span: Span) -> Option<Span> {
        let to = |at: u32| self.to + (at - self.from.end) as usize;
        match () {
            () if span.end <= self.from.start => Some(span),
            () if span.start >= self.from.end => Some(Span::new(to(span.start), to(span.end))),
            () => None,
        }
    }

    /// A layer as it is read in the other text, if it is there unchanged, and what its ports share with others as well.
    fn moved(self, layer: &Layer) -> Option<Layer> {
        let span = self.place(layer.span?)?;
        if layer.span? == span && span.end <= self.from.start {
            return Some(layer.clone());
        }
        // The places in bodies are many.
        if !layer.bodies.is_empty() {
            return None;
        }
        let mut moved = layer.clone();
        moved.span = Some(span);
        for port in &mut moved.outputs {
            port.content = self.place(port.content)?;
        }
        if !moved.inputs.iter().all(|port| self.place(port.content) == Some(port.content)) {
            let input = |port: &InputPort| Some(InputPort { content: self.place(port.content)?, ..port.clone() });
            moved.inputs = moved.inputs.iter().map(input).collect::<Option<_>>()?;
        }
        Some(moved)
    }
}

/// What is known of a text before it is read: layers of its original, or that they are to be kept for other copies.
#[derive(Default)]
pub(super) struct Shared {
    layers: Vec<Layer>,
    /// The first of them that was not looked for yet.
    next: usize,
    change: Change,
    keeps: bool,
}

impl<'a> Read<'a> {
    /// Passes over layers of the model's own graph that are known, in their list.
    pub(super) fn pass_known_layers(&mut self, list: &Element<'a>, graph: &mut Graph) {
        let Shared { layers, next, change, keeps: false } = &mut self.shared else { return };
        while let Some(layer) = layers.get(*next).filter(|_| self.place.steps().is_empty()) {
            let ahead = self.tokens.ahead(list);
            let here = self.tokens.position() + ahead.len() - ahead.trim_ascii_start().len();
            let place = layer.span.and_then(|span| change.place(span));
            if place.is_some_and(|place| place.start as usize > here) {
                return;
            }
            *next += 1;
            let is_here = place.is_some_and(|place| place.start as usize == here);
            if let Some(layer) = change.moved(layer).filter(|_| is_here) {
                self.tokens.pass_to(layer.span.unwrap_or_default().end as usize);
                graph.append(layer);
            }
        }
    }

    /// Whether layers of the graph that is read are kept for other copies.
    pub(super) fn keeps_layers(&self) -> bool {
        self.shared.keeps && self.place.steps().is_empty()
    }

    /// Keeps a layer.
    pub(super) fn keep(&mut self, layer: Option<Layer>) {
        self.shared.layers.extend(layer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::TextEdit;

    #[test]
    fn a_copy_is_read_as_if_nothing_were_known() {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"));
        let tags = crate::xml::tags(text, Span::new(0, text.len()));
        let values = tags.iter().flat_map(|tag| &tag.attributes).map(|&(_, value)| value);
        let mut original = Original::new(text);
        for (at, value) in values.enumerate() {
            // Shorter, longer and, for many numbers, as long as what was there.
            let copy = Arc::new(TextEdit::apply(&[TextEdit::new(value, ["", "12345", "1"][at % 3])], text));
            let answers = [super::super::parse(copy.clone()), original.parse_copy(copy, value)].map(|reading| {
                let Reading { model, mut diagnostics } = reading;
                if let Some(mut model) = model {
                    diagnostics.extend(crate::infer(&mut model));
                    diagnostics = crate::check_after(&model, diagnostics);
                }
                diagnostics
            });
            assert_eq!(answers[0], answers[1]);
        }
        assert!(!original.layers.is_empty());
    }
}
