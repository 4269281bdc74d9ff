//! Reading a long text on two threads.

use std::sync::{Arc, mpsc};
use std::thread;

use memchr::memmem;

use super::{Read, Reading, parse_with};
use crate::graph::{Graph, IrVersion, Layer, LayerId};
use crate::span::Span;
use crate::xml::STACK;

pub(super) fn parse_in_halves(source: &Arc<String>, start: u32) -> Reading {
    thread::scope(|scope| {
        let (sender, layers) = mpsc::channel();
        let read = move || drop(sender.send(LayersOnly::read(source, start)));
        let started = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        parse_with(source, started.is_ok().then_some(SecondHalf { start, layers }))
    })
}

/// Where the second half of the layers of a long text could begin: after the end of some layer.
pub(super) fn second_half(source: &str) -> Option<u32> {
    const END_TAG: &str = "</layer>";
    // Four fifths of a text are layers, as a rule.
    let middle = source.len() / 5 * 2;
    let start = middle + memmem::find(&source.as_bytes()[middle..], END_TAG.as_bytes())? + END_TAG.len();
    u32::try_from(start).ok()
}

/// The second half of the layers, which another thread reads.
pub(super) struct SecondHalf {
    start: u32,
    layers: mpsc::Receiver<Option<LayersOnly>>,
}

/// What a text has from some place on, where that is layers to the end of its `<layers>`, and nothing to report.
struct LayersOnly {
    /// In short lists: to free a long one makes the allocator of glibc keep more memory from then on.
    layers: Vec<Vec<Layer>>,
    unnamed: Vec<LayerId>,
    end: u32,
}

impl LayersOnly {
    fn read(source: &Arc<String>, start: u32) -> Option<Self> {
        let mut read = Read::new(source, Span { start, ..Span::new(0, source.len()) });
        const SHORT: usize = 512;
        let mut layers = Vec::<Vec<_>>::new();
        while !read.tokens.is_before("</layers>") {
            let element = read.tokens.child(None).ok()??;
            if element.name() != "layer" {
                return None;
            }
            read.layer(&element, |layer| match layers.last_mut() {
                Some(list) if list.len() < SHORT => list.push(layer),
                _ => layers.push(vec![layer]),
            })
            .ok()?;
            if !read.diagnostics.is_empty() {
                return None;
            }
        }
        let end = u32::try_from(read.tokens.position()).ok()?;
        Some(Self { layers, unnamed: read.unnamed, end })
    }
}

impl<'a> Read<'a> {
    /// Takes over what another thread has read, where this one has come to it. As both stand between two layers, they read
    /// the same there.
    pub(super) fn take_second_half(&mut self, graph: &mut Graph) {
        let here = self.tokens.position();
        let is_here = |half: &mut SecondHalf| half.start as usize == here;
        let Some(half) = self.second_half.take_if(is_here) else { return };
        // What metadata may say depends on the version, and how deep bodies nest on the place.
        if self.version == IrVersion::V11
            && self.place.is_model()
            && let Ok(Some(LayersOnly { layers, unnamed, end })) = half.layers.recv()
        {
            layers.into_iter().flatten().for_each(|layer| graph.append(layer));
            self.unnamed.extend(unnamed);
            self.tokens.pass_to(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::xml::{WriteOptions, parse_alone, write};

    /// What can be seen of a reading.
    fn seen(reading: &Reading) -> String {
        let text = reading.model.as_ref().map(|model| {
            let layers: Vec<_> = model.graph.layers().map(|layer| (layer, layer.span, &layer.name)).collect();
            let wires: Vec<_> = model.graph.wires().collect();
            let options = WriteOptions { canonical: true, ..Default::default() };
            format!("{layers:?} {wires:?} {}", write(model, options))
        });
        format!("{text:?} {:?}", reading.diagnostics)
    }

    /// Reads a text in both ways, and whether the second half of it was layers and nothing else.
    fn is_read_alike(text: String) -> bool {
        let source = Arc::new(text);
        let Some(half) = second_half(&source) else { return false };
        assert!(seen(&parse_in_halves(&source, half)) == seen(&parse_alone(source.clone())), "{source}");
        LayersOnly::read(&source, half).is_some()
    }

    #[test]
    fn halves_are_read_as_the_whole_is() {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/models");
        let texts = std::fs::read_dir(models).into_iter().flatten().flatten().map(|entry| entry.path());
        let texts = texts.filter(|path| path.extension().is_some_and(|extension| extension == "xml"));
        let (mut random, mut halves, mut damaged_halves) = (7_usize, 0, 0);
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % limit
        };
        for text in texts.filter_map(|path| std::fs::read_to_string(path).ok()).filter(|text| text.len() < 1 << 17) {
            halves += usize::from(is_read_alike(text.clone()));
            for _ in 0..8 {
                let lines: Vec<_> = text.lines().collect();
                let at = below(lines.len());
                let damaged = match below(4) {
                    0 => lines[..at].join("\n"),
                    1 => [&lines[..at], &lines[at + 1..]].concat().join("\n"),
                    2 => [&lines[..at], &["<!--"], &lines[at..]].concat().join("\n"),
                    _ => [&lines[..=at], &lines[at..]].concat().join("\n"),
                };
                damaged_halves += usize::from(is_read_alike(damaged));
            }
        }
        assert!(halves > 10 && damaged_halves > 50, "{halves} and {damaged_halves} were read in halves");
    }
}
