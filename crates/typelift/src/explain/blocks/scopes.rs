//! Scopes inside a block: `model.layers.17.mlp` of `model.layers.17.mlp.down_proj/MatMul`.

use std::collections::BTreeMap;

use super::Block;
use super::figures::Figures;
use crate::base::hash::HashMap;
use crate::infer::blocks::{Names, SEPARATORS, module_of, number_of, plain};
use crate::model::graph::{Graph, LayerId};

/// The smallest number of layers of a scope.
const LEAST: usize = 2;
/// The smallest number of layers of a graph without blocks that is divided into scopes.
const LEAST_OF_GRAPH: usize = 100;

/// The scopes of a block's layers, as far as several layers share them and others do not; or of a large graph's layers,
/// if it has no blocks.
pub(super) fn scopes<'a>(figures: &Figures<'a>, names: &Names<'a>, block: &Block) -> Vec<Block> {
    if block.number.is_none() && block.layers.len() < LEAST_OF_GRAPH {
        return Vec::new();
    }
    let name = if block.number.is_some() { plain(&block.name) } else { "" };
    let scopes = scopes_of_layers(figures, names, name, &block.layers);
    let module = if name.is_empty() { "" } else { &block.name[..block.name.len() - name.len()] };
    inside(figures, block, &scopes, &NamePrefix { module, name })
}

/// Prefix of names: the word of PyTorch's frontend before it, and the rest.
struct NamePrefix<'a> {
    module: &'a str,
    name: &'a str,
}

fn inside(figures: &Figures, block: &Block, scopes: &HashMap<LayerId, &str>, around: &NamePrefix) -> Vec<Block> {
    let mut order: Vec<&str> = Vec::new();
    let mut groups = BTreeMap::<&str, Vec<LayerId>>::new();
    for &id in &block.layers {
        if let Some(scope) = scopes.get(&id).and_then(|scope| next(scope, around.name)) {
            let layers = groups.entry(scope).or_default();
            if layers.is_empty() {
                order.push(scope);
            }
            layers.push(id);
        }
    }
    let mut found = Vec::new();
    for name in order {
        let Some(layers) = groups.remove(name).filter(|layers| layers.len() >= LEAST) else { continue };
        let scope = NamePrefix { module: around.module, name };
        if layers.len() == block.layers.len() {
            return inside(figures, block, scopes, &scope);
        }
        // A scope of nearly all layers of a graph tells nothing.
        let is_whole = around.name.is_empty() && layers.len() * 5 > block.layers.len() * 4;
        if is_whole || comes_back(figures, &block.layers, &layers) {
            let part = Block { layers, ..block.clone() };
            found.extend(inside(figures, &part, scopes, &scope));
            continue;
        }
        let is_number = name[around.name.len()..].trim_start_matches(SEPARATORS).bytes().all(|b| b.is_ascii_digit());
        let mut inner = figures.block(&block.place, &format!("{}{name}", scope.module), layers);
        inner.number = number_of(name).filter(|_| is_number);
        inner.family = inner.number.map(|_| 0);
        inner.blocks = inside(figures, &inner, scopes, &scope);
        found.push(inner);
    }
    found
}

/// True if data that leaves the layers of a scope comes back through other layers of the block. As one box, such a
/// scope would be before and after them: `attentions` of a UNet, which alternates with `resnets`.
fn comes_back(figures: &Figures, block: &[LayerId], scope: &[LayerId]) -> bool {
    let is_data = |id: &LayerId| figures.is_data(*id);
    let data: Vec<LayerId> = scope.iter().copied().filter(is_data).collect();
    // The layers are in topological order, so that nothing leads back between neighbours.
    let first = data.first().and_then(|first| block.iter().position(|id| id == first));
    if first.is_none_or(|first| block[first..].starts_with(&data)) {
        return false;
    }
    // A layer has a mark of this search, so that the marks of the search before need not be removed.
    let mut marks = figures.marks.borrow_mut();
    marks.0 += 2;
    let (own, other) = (marks.0, marks.0 + 1);
    marks.1.extend(block.iter().copied().filter(is_data).map(|id| (id, other)));
    marks.1.extend(scope.iter().map(|&id| (id, own)));
    let mut pending: Vec<(LayerId, bool)> = data.into_iter().map(|id| (id, true)).collect();
    while let Some((id, is_own)) = pending.pop() {
        for user in figures.graph.users(id) {
            let mark = marks.1.get(user).copied();
            if mark == Some(own) && !is_own {
                return true;
            }
            if mark == Some(other) {
                marks.1.insert(user, 0);
                pending.push((user, false));
            }
        }
    }
    false
}

/// The scope one step deeper than `outer`: `a.b` of `a.b.c` in `a`.
fn next<'a>(scope: &'a str, outer: &str) -> Option<&'a str> {
    let rest = scope.strip_prefix(outer)?;
    let start = if outer.is_empty() { 0 } else { outer.len() + rest.starts_with(SEPARATORS).then_some(1)? };
    let length = scope[start..].find(SEPARATORS).unwrap_or(scope.len() - start);
    Some(&scope[..start + length])
}

/// A layer that computes data has that of its name; a constant and what is computed from it have the common scope of
/// their consumers.
fn scopes_of_layers<'a>(
    figures: &Figures<'a>,
    names: &Names<'a>,
    block: &str,
    layers: &[LayerId],
) -> HashMap<LayerId, &'a str> {
    let mut scopes = HashMap::default();
    let graph = figures.graph;
    for &id in layers.iter().filter(|&&id| figures.is_data(id)) {
        if let Some(scope) = names.get(id).and_then(|name| module_of(name, block)) {
            scopes.insert(id, scope);
        }
    }
    // Consumers come before the constants that they use.
    for &id in layers.iter().filter(|&&id| !figures.is_data(id)) {
        if let Some(scope) = common_scope(graph, id, &scopes) {
            scopes.insert(id, scope);
        }
    }
    scopes
}

fn common_scope<'a>(graph: &Graph, id: LayerId, scopes: &HashMap<LayerId, &'a str>) -> Option<&'a str> {
    let mut users = graph.users(id).map(|user| scopes.get(&user).copied());
    let first = users.next()??;
    users.try_fold(first, |all, scope| Some(common(all, scope?)))
}

fn common<'a>(one: &'a str, other: &str) -> &'a str {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let ends = |text: &str| text.len() == same || text[same..].starts_with(SEPARATORS);
    if one.is_char_boundary(same) && other.is_char_boundary(same) && ends(one) && ends(other) {
        return &one[..same];
    }
    one.get(..same).or_else(|| one.get(..same - 1)).map_or("", |start| &start[..start.rfind(SEPARATORS).unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::{common, next};

    #[test]
    fn scopes_are_whole_words_of_names() {
        assert_eq!(next("a.b.c", "a"), Some("a.b"));
        assert_eq!(next("a.b", "a.b"), None);
        assert_eq!((common("a.b.c", "a.b.d"), common("a.bc", "a.bd"), common("a.b", "a.b.c")), ("a.b", "a", "a.b"));
    }
}
