//! Names that tell the module of each layer. A layer that lost its name, such as a Convolution with a fused batch
//! normalization, borrows the module of its neighbours.
//!
//! Worked example: in a ResNet, `Multiply_9972` is the first Convolution of `layer1.2`. It reads the end of `layer1.1`,
//! and `layer1.2.act1/Relu` is its only consumer. It borrows `layer1.2`. The last Convolution of a MobileNet's block
//! leads to another Convolution without a name, so it borrows the block that it reads.

use std::collections::BTreeSet;

use crate::model::graph::{Graph, Layer, LayerId, LayerMap, numeric_words};
use crate::ops::{self, LayerKind};

pub(crate) const SEPARATORS: [char; 2] = ['.', '/'];

/// The name of each data layer with a module: its own, or the common start of its neighbours' names, which ends in a
/// separator.
pub(crate) struct Names<'a>(LayerMap<&'a str>);

/// Name of the next layers in the direction of the data.
#[derive(Clone, Copy)]
struct Next<'a> {
    name: &'a str,
    /// True if another layer without a name that multiplies by weights is in between.
    is_far: bool,
    /// True if the layer, or the one that its value is converted for, multiplies by weights.
    is_weighted: bool,
}

impl<'a> Names<'a> {
    /// Finds the names of the data layers of a graph; `order` are these layers in topological order.
    pub(crate) fn new(graph: &'a Graph, order: &[&'a Layer]) -> Self {
        let mut names = Self(LayerMap::new(graph));
        let named = order.iter().filter(|layer| has_module(layer));
        names.0.extend(named.map(|layer| (layer.id(), layer.name())));
        let next = names.next(graph, order);
        for layer in order {
            if let Some(next) = next.get(layer.id())
                && let Some(name) = names.borrowed(graph, layer, *next)
            {
                names.0.insert(layer.id(), name);
            }
        }
        names
    }

    /// `None` if nothing tells its module.
    pub(crate) fn get(&self, layer: LayerId) -> Option<&'a str> {
        self.0.get(layer).copied()
    }

    /// True if layers have names of the source framework, all of the same module.
    pub(super) fn are_of_one_module<'l>(&self, layers: impl Iterator<Item = &'l Layer>) -> bool {
        let named = layers.filter_map(|layer| self.get(layer.id())).filter(|name| name.contains("::"));
        let mut modules = named.map(|name| module_of(name, ""));
        modules.next().flatten().is_some_and(|first| modules.all(|module| module == Some(first)))
    }

    /// Finds the next names below each layer without a name.
    fn next(&self, graph: &Graph, order: &[&'a Layer]) -> LayerMap<Next<'a>> {
        let mut found = LayerMap::<Next<'a>>::new(graph);
        for layer in order.iter().rev().filter(|layer| self.get(layer.id()).is_none() && is_inside(layer)) {
            let converts = is_conversion(layer);
            let below = graph.users(layer.id()).filter_map(|id| match (self.get(id), found.get(id)) {
                (Some(name), _) => Some(Next { name, is_far: false, is_weighted: false }),
                (None, Some(next)) => Some(Next {
                    name: next.name,
                    is_far: next.is_far || next.is_weighted && !converts,
                    is_weighted: next.is_weighted && converts,
                }),
                (None, None) => None,
            });
            let joint = below.reduce(|one, other| Next {
                name: common(one.name, other.name),
                is_far: one.is_far || other.is_far,
                is_weighted: one.is_weighted || other.is_weighted,
            });
            if let Some(joint) = joint {
                let is_weighted = joint.is_weighted || ops::has_macs(layer);
                found.insert(layer.id(), Next { is_weighted, ..joint });
            }
        }
        found
    }

    /// The start of a neighbour's name that names the module of a layer without a name.
    fn borrowed(&self, graph: &Graph, layer: &Layer, next: Next<'a>) -> Option<&'a str> {
        let producers: BTreeSet<LayerId> =
            graph.feeds(layer.id()).into_iter().flatten().map(|(it, _)| it.id()).collect();
        let before: Vec<&str> = producers.into_iter().filter_map(|id| self.get(id)).collect();
        let nearest = before.iter().copied().max_by_key(|name| common(name, next.name).len())?;
        let joint = common(nearest, next.name);
        let [own, other] = [nearest, next.name].map(numbered);
        // Two tensors of one block that meet end the block, and so does a conversion for several layers.
        let meets = before.iter().filter(|name| numbered(name) == own).count() > 1;
        let users: BTreeSet<LayerId> = graph.users(layer.id()).collect();
        let is_end = next.is_far || !next.is_weighted && meets || is_conversion(layer) && users.len() > 1;
        let name = if own.len() > joint.len() && is_end {
            own
        } else if other.len() > joint.len() && !next.is_far {
            other
        } else {
            joint
        };
        (!name.is_empty()).then_some(name)
    }
}

/// True for a layer inside the model. Its ends keep their place.
fn is_inside(layer: &Layer) -> bool {
    layer.start().is_none() && !layer.outputs().is_empty()
}

/// The names of Converts that a tool inserted do not. `norm/aten::to/Convert` is an operation of the source framework.
fn has_module(layer: &Layer) -> bool {
    let name = layer.name();
    let is_inserted = || is_conversion(layer) && numbered(name).is_empty() && !name.contains("::");
    is_inside(layer) && name.contains(SEPARATORS) && !is_inserted()
}

fn is_conversion(layer: &Layer) -> bool {
    matches!(ops::kind(layer), LayerKind::Convert | LayerKind::ConvertLike | LayerKind::ConvertPromoteTypes)
}

/// The number at the end of a name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// Removes the prefix that PyTorch's frontend adds: `__module.` to modules and `self.` to their weights.
pub(crate) fn plain(name: &str) -> &str {
    ["__module.", "self."].iter().find_map(|word| name.strip_prefix(word)).unwrap_or(name)
}

/// The start of a name that ends after its last numeric word: `m.layers.3.` of `m.layers.3.mlp/Add`.
fn numbered(name: &str) -> &str {
    numeric_words(name).last().map_or("", |end| &name[..=end])
}

fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let end = one.as_bytes()[..same].iter().rposition(|&byte| SEPARATORS.contains(&char::from(byte)));
    &one[..end.map_or(0, |at| at + 1)]
}

/// The module in a name inside of a block: `layers.3.mlp` of `layers.3.mlp/aten::add/Add`. The name of the whole model
/// as a block is empty.
pub(crate) fn module_of<'a>(name: &'a str, block: &str) -> Option<&'a str> {
    let name = plain(name);
    let rest = name.strip_prefix(block).filter(|rest| block.is_empty() || rest.starts_with(SEPARATORS))?;
    // A word with `::` is an operation of the source framework.
    let end = match rest.find("::") {
        Some(at) => rest[..at].rfind(SEPARATORS)?,
        None => rest.rfind(SEPARATORS)?,
    };
    Some(&name[..block.len() + end])
}

#[cfg(test)]
mod tests {
    use super::{common, module_of, numbered};

    #[test]
    fn modules_are_whole_words_of_names() {
        assert_eq!(module_of("__module.m.layers.3.mlp/aten::add/Add", "m.layers.3"), Some("m.layers.3.mlp"));
        assert_eq!(module_of("m.layers.3/Add", "m.layers.3"), Some("m.layers.3"));
        assert_eq!(module_of("m.layers.30/Add", "m.layers.3"), None);
        assert_eq!(
            (numbered("m.layers.3.mlp.0/Add"), numbered("m.layers/Add_3"), numbered("3.a")),
            ("m.layers.3.mlp.0/", "", "")
        );
        assert_eq!((common("a.b.c", "a.b.d"), common("a.bc", "a.bd"), common("a", "b")), ("a.b.", "a.", ""));
    }
}
