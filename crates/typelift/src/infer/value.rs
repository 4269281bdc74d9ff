//! The values of small tensors, as far as they are known: shapes that are computed as data.
//!
//! As in OpenVINO, what is known of a tensor's values is two whole tensors, its lower and its upper end, found by running
//! the operation on the ends of its inputs. Nothing is computed before a rule asks for it, nothing twice, and not more
//! than a budget for the whole model allows; what lies beyond it is not known.

use std::rc::Rc;

use petgraph::stable_graph::NodeIndex;
use rustc_hash::FxHashMap as HashMap;
use smallvec::SmallVec;

use super::Walk;
use crate::array::MAX_ELEMENTS;
use crate::graph::Graph;
use crate::ops::evaluate::{self, Bounds, Evaluate, Evaluation};
use crate::ops::{self, Attributes, LayerKind, Operation};

/// How many elements may go into and come out of all evaluations for one model.
pub(crate) const BUDGET: u64 = 1 << 22;

/// An output of a layer.
type Tensor = (NodeIndex, usize);

/// What was found in one graph so far, by output.
pub(crate) type Cache = HashMap<Tensor, State>;

/// What was found of the values of an output.
pub(crate) enum State {
    Unknown,
    /// They come out of a ConvertPromoteTypes, which OpenVINO does not evaluate.
    Withheld,
    /// Every operation that they are computed by can be evaluated.
    Possible,
    Known(Rc<Bounds>),
}

type Feeds = SmallVec<[Tensor; 4]>;

/// What is known of the values of an output. Walks back through the graph without recursion.
pub(crate) fn bounds(walk: &mut Walk, graph: &Graph, cache: &mut Cache, output: Tensor) -> Option<Rc<Bounds>> {
    if mark_possible(graph, cache, output) {
        walk.withheld.insert(walk.root);
    }
    let mut pending = vec![output];
    while let Some(&tensor) = pending.last() {
        if !matches!(cache.get(&tensor), Some(State::Possible)) {
            pending.pop();
            continue;
        }
        let (operation, feeds) = open(graph, tensor)?;
        let waiting = pending.len();
        pending.extend(feeds.iter().rev().filter(|feed| matches!(cache.get(feed), Some(State::Possible))));
        if pending.len() > waiting {
            continue;
        }
        let known = feeds.iter().map(|feed| match cache.get(feed) {
            Some(State::Known(bounds)) => Some(&**bounds),
            _ => None,
        });
        let known: Option<SmallVec<[&Bounds; 4]>> = known.collect();
        let found = known.and_then(|known| find(walk, graph, tensor, operation, &known));
        cache.insert(tensor, found.map_or(State::Unknown, |bounds| State::Known(Rc::new(bounds))));
        pending.pop();
    }
    match cache.get(&output) {
        Some(State::Known(bounds)) => Some(bounds.clone()),
        _ => None,
    }
}

/// Finds out, for an output and all that it is computed from, whether every operation on the way can be evaluated. No
/// constant is read before that is known: most often the way ends at a Parameter. Tells whether it ends at a
/// ConvertPromoteTypes.
fn mark_possible(graph: &Graph, cache: &mut Cache, output: Tensor) -> bool {
    let mut path: Vec<(Tensor, Feeds, usize)> = Vec::new();
    let mut next = output;
    loop {
        let withheld = match cache.get(&next) {
            None => match open(graph, next) {
                Some((_, feeds)) => {
                    path.push((next, feeds, 0));
                    None
                }
                None => {
                    let layer = graph.weight(next.0);
                    Some(layer.is_some_and(|layer| ops::kind(layer) == LayerKind::ConvertPromoteTypes))
                }
            },
            Some(State::Unknown) => Some(false),
            Some(State::Withheld) => Some(true),
            Some(State::Possible | State::Known(_)) => None,
        };
        if let Some(withheld) = withheld {
            // Nor can what is computed from it.
            let state = || if withheld { State::Withheld } else { State::Unknown };
            cache.insert(next, state());
            cache.extend(path.into_iter().map(|(tensor, ..)| (tensor, state())));
            return withheld;
        }
        next = loop {
            let Some((tensor, feeds, at)) = path.last_mut() else { return false };
            if let Some(&feed) = feeds.get(*at) {
                *at += 1;
                break feed;
            }
            cache.insert(*tensor, State::Possible);
            path.pop();
        };
    }
}

/// The operation of an output that can be evaluated, and what must be known for that.
fn open(graph: &Graph, (node, port): Tensor) -> Option<(&'static Operation, Feeds)> {
    let layer = graph.weight(node)?;
    let count = layer.outputs.get(port)?.shape.element_count();
    let operation = ops::lookup(&layer.ty, &layer.version)?;
    match operation.evaluator() {
        _ if count.is_some_and(|count| count > MAX_ELEMENTS as u64) => None,
        Evaluate::Never => None,
        Evaluate::Source(_) => Some((operation, Feeds::new())),
        _ => Some((operation, graph.feeds(node).into_iter().collect::<Option<_>>()?)),
    }
}

fn find(
    walk: &mut Walk,
    graph: &Graph,
    (node, port): Tensor,
    operation: &'static Operation,
    known: &[&Bounds],
) -> Option<Bounds> {
    let layer = graph.weight(node)?;
    let aligned: Option<SmallVec<[_; 2]>> =
        walk.aligned(node).iter().map(|&(input, to)| Some((input, known.get(input)?.converted(to)?))).collect();
    let aligned = aligned?;
    let mut known: SmallVec<[&Bounds; 4]> = known.into();
    for (input, bounds) in &aligned {
        known[*input] = bounds;
    }
    let known = &known[..];
    let inputs: u64 = known.iter().map(|bounds| bounds.lower.len() as u64).sum();
    let output = layer.outputs.get(port)?.shape.element_count().unwrap_or(0);
    walk.budget = walk.budget.checked_sub(inputs + output)?;
    let feeds = graph.feeds(node);
    let inputs = feeds.into_iter().flatten().filter_map(|(node, port)| graph.weight(node)?.outputs.get(port)).collect();
    let attributes = Attributes { layer, operation };
    let evaluation = Evaluation::new(attributes, inputs, port, &walk.weights, &walk.source);
    let lowers = || known.iter().map(|bounds| &bounds.lower).collect::<SmallVec<[_; 4]>>();
    let found = match operation.evaluator() {
        Evaluate::Never => None,
        Evaluate::Source(by) => by(&evaluation),
        Evaluate::FromBounds(by) => by(&evaluation, known),
        Evaluate::Exact(by) | Evaluate::Ends(_, by) | Evaluate::Interval(by)
            if known.iter().all(|bounds| bounds.is_exact()) =>
        {
            by(&evaluation, &lowers()).map(Bounds::exactly)
        }
        Evaluate::Exact(_) => None,
        Evaluate::Interval(by) => evaluate::interval(&evaluation, known, by),
        Evaluate::Ends(set, by) => {
            let mut inexact = known.iter().enumerate().filter(|(_, bounds)| !bounds.is_exact());
            match inexact.all(|(input, _)| set >> input.min(31) & 1 == 1) {
                true => evaluate::ends(&evaluation, known, by),
                false => None,
            }
        }
    };
    if let Some(fault) = evaluation.into_fault() {
        let diagnostic = walk.diagnose(graph, node, &fault);
        walk.diagnostics.push(diagnostic);
    }
    walk.budget = walk.budget.saturating_sub(found.as_ref().map_or(0, |bounds| bounds.lower.len() as u64));
    found
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use crate::graph::{LayerId, Model};
    use crate::infer;
    use crate::weights::Weights;

    /// A model whose layers are `type attributes inputs`, each of one output from opset3, numbered in order.
    fn model(layers: &[(&str, &str, &[usize])], weights: &[u8]) -> Model {
        let (mut text, mut edges) = (String::new(), String::new());
        for (id, (ty, attributes, inputs)) in layers.iter().enumerate() {
            write!(text, r#"<layer id="{id}" name="n{id}" type="{ty}" version="opset3"><data {attributes}/><input>"#)
                .unwrap();
            for (port, from) in inputs.iter().enumerate() {
                write!(text, r#"<port id="{port}"/>"#).unwrap();
                write!(edges, r#"<edge from-layer="{from}" from-port="9" to-layer="{id}" to-port="{port}"/>"#).unwrap();
            }
            text += r#"</input><output><port id="9" precision="UNSPECIFIED"/></output></layer>"#;
        }
        let text = format!(r#"<net name="n" version="11"><layers>{text}</layers><edges>{edges}</edges></net>"#);
        let mut model = Model::from_xml(text).unwrap();
        model.weights = Weights::from_bytes(weights);
        model
    }

    fn shape(model: &Model, id: usize) -> String {
        model.graph.layer(LayerId(id as u64)).unwrap().outputs()[0].shape().to_string()
    }

    const SCALAR: (&str, &str, &[usize]) = ("Parameter", r#"shape="" element_type="f32""#, &[]);

    #[test]
    fn chains_of_any_length_are_evaluated_without_recursion() {
        let mut layers = vec![SCALAR, ("Const", r#"element_type="i8" shape="1" offset="0" size="1""#, &[])];
        let links: Vec<[usize; 1]> = (1..30_000).map(|link| [link]).collect();
        layers.extend(links.iter().map(|link| ("Abs", "", &link[..])));
        layers[2] = ("Convert", r#"destination_type="i64""#, &[1]);
        let target = [0, layers.len() - 1];
        layers.push(("Broadcast", "", &target));
        let mut model = model(&layers, &[7]);
        assert_eq!(infer(&mut model), []);
        assert_eq!(shape(&model, target[1] + 1), "[7]");
    }

    #[test]
    fn a_model_cannot_ask_for_more_than_a_budget_of_values() {
        let mut layers = vec![
            SCALAR,
            ("Const", r#"element_type="i8" shape="512, 512" offset="0" size="262144""#, &[]),
            ("Convert", r#"destination_type="i64""#, &[1]),
            ("Const", r#"element_type="i8" shape="1" offset="262144" size="1""#, &[]),
        ];
        let asked: Vec<[usize; 2]> = (0..40).flat_map(|ask| [[2, 3], [0, 4 + ask * 2]]).collect();
        for inputs in asked.chunks(2) {
            layers.push(("ReduceMax", "", &inputs[0]));
            layers.push(("Broadcast", "", &inputs[1]));
        }
        let mut weights = vec![5; 1 << 18];
        weights.push(0);
        let mut model = model(&layers, &weights);
        assert_eq!(infer(&mut model), []);
        assert!(shape(&model, 5).starts_with("[5,5,"), "{}", shape(&model, 5));
        assert!(shape(&model, layers.len() - 1).starts_with("[?,?,"));
    }

    #[test]
    fn what_is_too_large_to_be_a_shape_has_no_values() {
        let mut layers = vec![SCALAR, ("Const", r#"element_type="i64" shape="2" offset="0" size="16""#, &[])];
        let doubled: Vec<[usize; 2]> = (1..60).map(|link| [link, link]).collect();
        layers.extend(doubled.iter().map(|link| ("Concat", r#"axis="0""#, &link[..])));
        let target = [0, layers.len() - 1];
        layers.push(("Broadcast", "", &target));
        let mut model = model(&layers, &[1; 16]);
        assert_eq!(infer(&mut model), []);
        assert_eq!(shape(&model, target[1] + 1), "[...]");
    }

    #[test]
    fn an_integer_divided_by_zero_is_one_error_and_is_where_it_happens() {
        let layers: &[(&str, &str, &[usize])] = &[
            SCALAR,
            ("Parameter", r#"shape="2..7" element_type="f32""#, &[]),
            ("ShapeOf", r#"output_type="i64""#, &[1]),
            ("Const", r#"element_type="i64" shape="1" offset="0" size="8""#, &[]),
            ("Divide", "", &[2, 3]),
            ("Broadcast", "", &[0, 4]),
            ("Broadcast", "", &[0, 4]),
        ];
        let mut model = model(layers, &[0; 8]);
        let diagnostics = infer(&mut model);
        let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
        assert!(diagnostic.is_error());
        assert_eq!(diagnostic.layer.as_ref().map(|layer| layer.name.as_str()), Some("n4"));
    }
}
