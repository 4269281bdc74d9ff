//! Graphs of two models as one, in which each layer that both have is one box.

use foldhash::HashMap;
use typelift::LayerId;

use crate::folded::Text;
use crate::graphs::{Drawn, Edge, Group, Node, Side};

/// Pairs of layers in the models' own graphs that are the same: from the earlier to the later one.
pub(crate) type Twins = HashMap<LayerId, LayerId>;

/// Boxes, arrows and groups that one model lacks name the other side.
pub(crate) fn union<'a>(mut graphs: Vec<Drawn<'a>>, before: Vec<Drawn<'a>>, twins: &Twins) -> Vec<Drawn<'a>> {
    let mut seen = vec![false; graphs.len()];
    // The place of each graph of the earlier model, and of its boxes.
    let mut places: Vec<(usize, Vec<usize>)> = Vec::new();
    for old in before {
        let holder = old.holder.and_then(|(graph, node)| {
            let (at, nodes) = places.get(graph)?;
            Some((*at, *nodes.get(node)?))
        });
        let at = graphs[..seen.len()].iter().position(|graph| graph.path == old.path);
        let at = at.unwrap_or_else(|| {
            let path = old.path.clone();
            graphs.push(Drawn { path, holder, ..Drawn::default() });
            graphs.len() - 1
        });
        if let Some(seen) = seen.get_mut(at) {
            *seen = true;
        }
        places.push((at, merge(&mut graphs[at], old, twins)));
    }
    for (graph, _) in graphs.iter_mut().zip(seen).filter(|(_, seen)| !seen) {
        graph.nodes.iter_mut().for_each(|node| node.more.only = Some(Side::After));
    }
    graphs
}

fn merge<'a>(graph: &mut Drawn<'a>, old: Drawn<'a>, twins: &Twins) -> Vec<usize> {
    let groups = merge_groups(&mut graph.groups, old.groups);
    let of_id: HashMap<LayerId, usize> =
        graph.nodes.iter().enumerate().filter_map(|(at, node)| Some((node.id?, at))).collect();
    let of_path: HashMap<Text, usize> = graph.nodes.iter().enumerate().map(|(at, node)| (node.path, at)).collect();
    let is_own = graph.path.is_empty();
    graph.nodes.iter_mut().for_each(|node| node.more.only = Some(Side::After));
    let mut places = Vec::new();
    for mut node in old.nodes {
        node.group = node.group.map(|group| groups[group]);
        let twin = match node.id.filter(|_| is_own) {
            Some(id) => twins.get(&id).and_then(|id| of_id.get(id)),
            None => of_path.get(&node.path),
        };
        let twin = twin.copied().filter(|&at| graph.nodes[at].more.only == Some(Side::After));
        places.push(twin.unwrap_or(graph.nodes.len()));
        match twin {
            Some(at) => join(&mut graph.nodes[at], node),
            None => {
                node.more.only = Some(Side::Before);
                graph.nodes.push(node);
            }
        }
    }
    merge_edges(&mut graph.edges, old.edges, &places);
    places
}

/// Makes one box of a layer that both models have. The earlier one is kept if it differs.
fn join(node: &mut Node, old: Node) {
    node.more.only = None;
    let same = Node { id: node.id, line: node.line, group: node.group, ..old.clone() };
    if same != *node {
        node.more.was = Some(Box::new(old));
    }
}

fn merge_groups<'a>(groups: &mut Vec<Group<'a>>, old: Vec<Group<'a>>) -> Vec<usize> {
    let known: HashMap<String, usize> =
        groups.iter().enumerate().map(|(at, group)| (group.path.to_string(), at)).collect();
    groups.iter_mut().for_each(|group| group.only = Some(Side::After));
    let mut places = Vec::new();
    for group in old {
        match known.get(&*group.path) {
            Some(&at) => {
                places.push(at);
                let parent = groups[at].parent;
                groups[at].only = None;
                if (Group { parent, ..group.clone() }) != groups[at] {
                    groups[at].was = Some(Box::new(group));
                }
            }
            None => {
                let parent = group.parent.map(|parent| places[parent]);
                places.push(groups.len());
                groups.push(Group { parent, only: Some(Side::Before), ..group });
            }
        }
    }
    places
}

fn key_of(edge: &Edge) -> (usize, usize, Text) {
    (edge.from, edge.to, edge.text)
}

fn merge_edges(edges: &mut Vec<Edge>, old: Vec<Edge>, places: &[usize]) {
    let known: HashMap<_, usize> = edges.iter().enumerate().map(|(at, edge)| (key_of(edge), at)).collect();
    edges.iter_mut().for_each(|edge| edge.only = Some(Side::After));
    for edge in old {
        let edge = Edge { from: places[edge.from], to: places[edge.to], only: Some(Side::Before), ..edge };
        match known.get(&key_of(&edge)) {
            Some(&at) => edges[at].only = None,
            None => edges.push(edge),
        }
    }
}
