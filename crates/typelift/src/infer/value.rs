//! The values of small tensors, as far as they are known: shapes that are computed as data.
//!
//! As in OpenVINO, what is known of a tensor's values is two whole tensors, its lower and its upper end, found by running
//! the operation on the ends of its inputs. Nothing is computed before a rule asks for it, nothing twice, and not more
//! than a budget for the whole model allows; what lies beyond it is not known.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use petgraph::stable_graph::NodeIndex;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Walk;
use super::array::{Array, MAX_ELEMENTS};
use crate::graph::{Graph, OutputPort};
use crate::ops::{self, Attributes, Fault, Operation, evaluate};
use crate::weights::Weights;

/// How many elements may go into and come out of all evaluations for one model.
pub(crate) const BUDGET: u64 = 1 << 22;

/// The two ends of what the values of a tensor can be, element by element. As ends are found by evaluating, the lower
/// need not be the smaller one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) lower: Array,
    /// `None` where it is the same as `lower`: the values are known exactly.
    pub(crate) upper: Option<Array>,
}

impl Bounds {
    pub(crate) fn new(lower: Array, upper: Array) -> Self {
        Self { upper: (upper != lower).then_some(upper), lower }
    }

    /// Values that are known exactly.
    pub(crate) fn exactly(values: Array) -> Self {
        Self { lower: values, upper: None }
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.upper.is_none()
    }

    pub(crate) fn upper(&self) -> &Array {
        self.upper.as_ref().unwrap_or(&self.lower)
    }

    /// What is known of them after a conversion.
    pub(crate) fn converted(&self, to: ElementType) -> Option<Self> {
        let lower = evaluate::converted(&self.lower, to)?;
        match &self.upper {
            None => Some(Self::exactly(lower)),
            Some(upper) => Some(Self::new(lower, evaluate::converted(upper, to)?)),
        }
    }

    /// The values, where they are known exactly.
    pub(crate) fn exact(&self) -> Option<&Array> {
        self.is_exact().then_some(&self.lower)
    }
}

/// How to find the values of an operation's outputs. All ways need to know something of every input.
#[derive(Clone, Copy)]
pub(crate) enum Evaluate {
    /// Not at all.
    Never,
    /// From attributes and the shapes of the inputs alone.
    Source(fn(&Evaluation) -> Option<Bounds>),
    /// From inputs that are all known exactly.
    Exact(Evaluator),
    /// As `Exact`, and once for each end where of the inputs in this set, bit by position, only bounds are known.
    Ends(u32, Evaluator),
    /// Two inputs element by element: where only bounds are known, the least and the greatest of what the ends give.
    Interval(Evaluator),
    /// From the bounds of the inputs.
    Bounds(fn(&Evaluation, &[&Bounds]) -> Option<Bounds>),
}

/// Finds the values of an output from those of the inputs.
pub(crate) type Evaluator = fn(&Evaluation, &[&Array]) -> Option<Array>;

/// The first input, as a set for [`Evaluate::Ends`].
pub(crate) const DATA: u32 = 1;
/// Every input, as a set for [`Evaluate::Ends`].
pub(crate) const ALL: u32 = !0;

/// An output whose values are to be found.
pub(crate) struct Evaluation<'a> {
    attributes: Attributes<'a>,
    /// The tensors that come in.
    pub(crate) inputs: SmallVec<[&'a OutputPort; 4]>,
    /// Which output it is.
    pub(crate) port: usize,
    pub(crate) weights: &'a Weights,
    fault: RefCell<Option<Fault>>,
}

impl Evaluation<'_> {
    /// The element type of the output.
    pub(crate) fn element_type(&self) -> ElementType {
        self.layer.outputs().get(self.port).map_or(ElementType::Dynamic, OutputPort::element_type)
    }

    /// Tells that OpenVINO refuses a model in which this must be evaluated.
    pub(crate) fn refuse(&self, fault: Fault) -> Option<Array> {
        *self.fault.borrow_mut() = Some(fault);
        None
    }
}

impl<'a> Deref for Evaluation<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Self::Target {
        &self.attributes
    }
}

/// An output of a layer.
type Tensor = (NodeIndex, usize);

/// What was found in one graph so far, by output.
pub(crate) type Cache = HashMap<Tensor, State>;

/// What was found of the values of an output.
pub(crate) enum State {
    Unknown,
    /// Every operation that they are computed by can be evaluated.
    Possible,
    Known(Rc<Bounds>),
}

type Feeds = SmallVec<[Tensor; 4]>;

/// What is known of the values of an output. Walks back through the graph without recursion.
pub(crate) fn bounds(walk: &mut Walk, graph: &Graph, cache: &mut Cache, output: Tensor) -> Option<Rc<Bounds>> {
    mark_possible(graph, cache, output);
    let mut pending = vec![output];
    while let Some(&tensor) = pending.last() {
        if !matches!(cache.get(&tensor), Some(State::Possible)) {
            pending.pop();
            continue;
        }
        let Some((operation, feeds)) = open(graph, tensor) else { return None };
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
/// constant is read before that is known: most often the way ends at a Parameter.
fn mark_possible(graph: &Graph, cache: &mut Cache, output: Tensor) {
    let mut path: Vec<(Tensor, Feeds, usize)> = Vec::new();
    let mut next = output;
    loop {
        let possible = match cache.get(&next) {
            None => open(graph, next).map(|(_, feeds)| path.push((next, feeds, 0))).is_some(),
            Some(State::Unknown) => false,
            Some(State::Possible | State::Known(_)) => true,
        };
        if !possible {
            // Nor can what is computed from it.
            cache.insert(next, State::Unknown);
            cache.extend(path.into_iter().map(|(tensor, ..)| (tensor, State::Unknown)));
            return;
        }
        next = loop {
            let Some((tensor, feeds, at)) = path.last_mut() else { return };
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
    let evaluation = Evaluation {
        attributes: Attributes { layer, operation },
        inputs: feeds.into_iter().flatten().filter_map(|(node, port)| graph.weight(node)?.outputs.get(port)).collect(),
        port,
        weights: &walk.weights,
        fault: RefCell::default(),
    };
    let lowers = || known.iter().map(|bounds| &bounds.lower).collect::<SmallVec<[_; 4]>>();
    let found = match operation.evaluator() {
        Evaluate::Never => None,
        Evaluate::Source(by) => by(&evaluation),
        Evaluate::Bounds(by) => by(&evaluation, known),
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
                true => ends(&evaluation, known, by),
                false => None,
            }
        }
    };
    if let Some(fault) = evaluation.fault.into_inner() {
        let diagnostic = walk.diagnose(graph, node, &fault);
        walk.diagnostics.push(diagnostic);
    }
    walk.budget = walk.budget.saturating_sub(found.as_ref().map_or(0, |bounds| bounds.lower.len() as u64));
    found
}

/// Evaluates once for each end.
pub(crate) fn ends(evaluation: &Evaluation, known: &[&Bounds], by: Evaluator) -> Option<Bounds> {
    let lower: SmallVec<[_; 4]> = known.iter().map(|bounds| &bounds.lower).collect();
    let upper: SmallVec<[_; 4]> = known.iter().map(|bounds| bounds.upper()).collect();
    Some(Bounds::new(by(evaluation, &lower)?, by(evaluation, &upper)?))
}
