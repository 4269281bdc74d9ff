//! State of the walk over a model's layers: tensors, ties of symbols, constraints.

use std::rc::Rc;

use smallvec::SmallVec;

use super::expression::{Arena, Expr, Node};
use super::{Constraint, Noticed, Reads, Reason, Shapes, Swallow, Symbol, names};
use crate::base::hash::{HashMap, HashSet};
use crate::findings::LayerRef;
use crate::infer::{Evaluator, Probe, Values};
use crate::model::graph::{Graph, Layer, LayerId, Model, Output, Place};
use crate::model::shape::Dim as Interval;
use crate::ops::values::array::{Array, Data, Few};
use crate::ops::{self, LayerKind};

/// A dimension or a value; `None` if it is unknown.
pub(super) type Length = Option<Expr>;
/// The dimensions of a tensor of known rank.
pub(super) type Dims = SmallVec<[Length; 6]>;

#[derive(Clone, Default)]
pub(super) struct Tensor {
    /// `None` if the rank is unknown.
    pub(super) dims: Option<Rc<Dims>>,
    /// The values, if they depend on lengths.
    pub(super) value: Option<Rc<Value>>,
    /// Largest value of integers that grow along each axis, such as positions.
    pub(super) last: Option<Expr>,
}

/// Most nodes of a dimension that is shown as it is.
const MOST_NODES: usize = 5;

/// Most elements of a tensor whose values are known.
pub(super) const MAX_ITEMS: usize = 64;

/// A fraction: an expression and the number by which it is divided. Integers are divided by 1.
pub(super) type Fraction = (Expr, i64);

/// A small tensor whose elements depend on lengths.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) dims: Few<usize>,
    pub(super) items: Vec<Option<Fraction>>,
}

/// A constraint while the walk is under way.
struct OpenConstraint {
    test: Expr,
    at: Noticed,
    because: Vec<Reason>,
    reads: Option<Reads>,
    table: Option<Reason>,
}

impl OpenConstraint {
    fn close(self, arena: &Arena, symbols: &[Symbol]) -> Constraint {
        let Self { test, at, because, reads, table } = self;
        let (text, named) = (arena.text(test, &|at| &symbols[at].id), arena.text(test, &|at| &symbols[at].name));
        let (symbols, is_never) = (arena.symbols(test), arena.value(test) == Some(0));
        Constraint { test, symbols, text, named, is_never, at, because, reads, table }
    }
}

pub(super) struct Walk<'m> {
    pub(super) model: &'m Model,
    pub(super) arena: Arena,
    pub(super) evaluator: Evaluator,
    /// Exact values of the current graph.
    pub(super) values: Values,
    pub(super) place: Place,
    pub(super) tensors: HashMap<Output, Tensor>,
    /// Conditions under which the current graph runs.
    pub(super) guard: Vec<Expr>,
    /// True in a body whose constraints are not checked at load.
    pub(super) is_unchecked: bool,
    /// True while a body is walked only for its dimensions.
    pub(super) is_silent: bool,
    /// Expression of each symbol: itself, or the symbol with which it is tied.
    replaced: Vec<Expr>,
    /// Replaced expressions that are known.
    resolved: HashMap<Expr, Option<Expr>>,
    axes: Vec<OpenAxis>,
    /// The number of symbols of inputs; those of the state come after them.
    inputs: usize,
    demands: Vec<OpenConstraint>,
    demanded: HashSet<(Expr, Noticed)>,
    has_ties: bool,
    /// Asks rules of inference in the current graph.
    pub(super) probe: Option<Probe>,
    swallows: Vec<Swallow>,
}

/// The Assigns of a graph by their variables.
type Assigns<'a> = HashMap<Option<&'a str>, &'a Layer>;

struct OpenAxis {
    layer: LayerId,
    axis: usize,
    bounds: (i64, i64),
    /// Why it is tied with another symbol.
    because: Vec<Reason>,
}

impl<'m> Walk<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let mut walk = Self {
            model,
            arena: Arena::default(),
            evaluator: Evaluator::new(model.weights()),
            values: Values::default(),
            place: Place::default(),
            tensors: HashMap::default(),
            guard: Vec::new(),
            is_unchecked: false,
            is_silent: false,
            replaced: Vec::new(),
            resolved: HashMap::default(),
            axes: Vec::new(),
            inputs: 0,
            demands: Vec::new(),
            demanded: HashSet::default(),
            has_ties: false,
            probe: None,
            swallows: Vec::new(),
        };
        walk.add_symbols(model.graph());
        walk
    }

    /// Adds a symbol for each open length of an input, then for those of the state: an Assign changes them between
    /// inferences. The first axis of a state is unknown until it meets the batch of an input.
    fn add_symbols(&mut self, graph: &Graph) {
        let of = |kind| graph.layers().filter(move |layer| ops::kind(layer) == kind);
        for layer in of(LayerKind::Parameter).chain(of(LayerKind::ReadValue)) {
            let Some(dims) = layer.outputs().first().and_then(|port| port.shape().dims()) else { continue };
            let first = usize::from(ops::kind(layer) == LayerKind::ReadValue);
            let open = dims.iter().enumerate().filter(|&(axis, dim)| axis >= first && !dim.is_fixed());
            let mut list: Dims = dims.iter().map(|dim| self.fixed(*dim)).collect();
            for (axis, dim) in open {
                let symbol = self.arena.symbol(self.axes.len());
                self.replaced.push(symbol);
                let bounds = (dim.lower().max(1), dim.upper().unwrap_or(i64::MAX));
                self.axes.push(OpenAxis { layer: layer.id(), axis, bounds, because: Vec::new() });
                self.inputs += 1 - first;
                list[axis] = Some(symbol);
            }
            let tensor = Tensor { dims: Some(Rc::new(list)), ..Tensor::default() };
            self.tensors.insert(layer.id().output(0), tensor);
        }
    }

    fn fixed(&mut self, dim: Interval) -> Length {
        dim.value().map(|length| self.arena.number(length))
    }

    /// Takes the dimensions that inference knows.
    pub(super) fn keep_inferred(&mut self, layer: &Layer) {
        for port in 0..layer.outputs().len() {
            self.store(layer, port, None, None, None);
        }
    }

    pub(super) fn is_number(&self, dim: Length) -> bool {
        dim.is_some_and(|dim| self.arena.value(dim).is_some())
    }

    /// Stores a tensor. A length that inference knows is that number.
    pub(super) fn store(
        &mut self,
        layer: &Layer,
        port: usize,
        dims: Option<Dims>,
        value: Option<Value>,
        last: Option<Expr>,
    ) {
        let inferred = layer.outputs().get(port).and_then(|port| port.shape().dims());
        let dims = match (inferred, dims) {
            (Some(inferred), Some(mut dims)) if inferred.len() == dims.len() => {
                for (dim, inferred) in dims.iter_mut().zip(inferred) {
                    if inferred.is_fixed() {
                        *dim = self.fixed(*inferred);
                    }
                }
                Some(dims)
            }
            (Some(inferred), _) => Some(inferred.iter().map(|dim| self.fixed(*dim)).collect()),
            (None, dims) => dims,
        };
        let tensor = Tensor { dims: dims.map(Rc::new), value: value.map(Rc::new), last };
        self.tensors.insert(layer.id().output(port), tensor);
    }

    pub(super) fn resolved_tensor(&mut self, tensor: Tensor) -> Tensor {
        if !self.has_ties {
            return tensor;
        }
        let Tensor { mut dims, mut value, last } = tensor;
        // Nearly all dimensions stay what they are, and are not copied.
        if let Some(list) = &mut dims
            && list.iter().any(|&dim| self.resolve(dim) != dim)
        {
            for dim in Rc::make_mut(list) {
                *dim = self.resolve(*dim);
            }
        }
        if let Some(value) = &mut value {
            for item in &mut Rc::make_mut(value).items {
                *item = item.and_then(|(expr, by)| Some((self.resolve(Some(expr))?, by)));
            }
        }
        Tensor { dims, value, last: self.resolve(last) }
    }

    /// Replaces tied symbols.
    pub(super) fn resolve(&mut self, length: Length) -> Length {
        if !self.has_ties {
            return length;
        }
        self.arena.replaced(length?, &self.replaced, &mut self.resolved)
    }

    /// Ties two symbols, because they must be equal for the model to load.
    fn tie(&mut self, a: usize, b: usize, because: Vec<Reason>) {
        let (keep, give) = (a.min(b), a.max(b));
        let kept = self.arena.symbol(keep);
        let given = self.arena.symbol(give);
        for symbol in &mut self.replaced {
            if *symbol == given {
                *symbol = kept;
            }
        }
        self.axes[give].because = because;
        self.resolved.clear();
        self.has_ties = true;
    }

    pub(super) fn demand(
        &mut self,
        test: Length,
        at: Noticed,
        because: impl FnOnce(&Self) -> Vec<Reason>,
        left: Option<(Reads, Option<Reason>)>,
    ) {
        let Some(test) = self.resolve(test) else { return };
        if self.arena.value(test).is_some_and(|value| value != 0) || self.is_silent {
            return;
        }
        // Static inference knows no length of the state.
        let tied = self.arena.tied_symbols(test).filter(|&(a, b)| (a < self.inputs) == (b < self.inputs));
        let is_of_state = tied.is_none() && self.arena.symbols(test).iter().any(|&symbol| symbol >= self.inputs);
        let at = if self.is_unchecked || is_of_state { Noticed::Run } else { at };
        if let (Some((a, b)), true, Noticed::Load) = (tied, self.guard.is_empty(), at) {
            let because = because(self);
            return self.tie(a, b, because);
        }
        let mut tests = Vec::new();
        for guard in self.guard.clone() {
            let Some(not) = self.arena.not(guard) else { return };
            tests.push(not);
        }
        tests.push(test);
        let Some(test) = self.arena.any(&tests) else { return };
        if !self.demanded.insert((test, at)) {
            return;
        }
        let because = because(self);
        let (reads, table) = left.map_or((None, None), |(reads, table)| (Some(reads), table));
        self.demands.push(OpenConstraint { test, at, because, reads, table });
    }

    /// Records a Reshape to a first length of 1 whose -1 takes a symbol of the data's first axis, and that keeps other
    /// lengths.
    pub(super) fn note_swallow(&mut self, layer: &Layer, data: &[Length], to: &[Length], axis: usize) {
        let is_rank_1 = data.len() < 2 || axis == 0 || self.is_silent || !self.place.is_model();
        let (Some(&Some(first)), Some(&Some(rest)), false) = (data.first(), to.get(axis), is_rank_1) else { return };
        let is_one = |length: &Length| length.and_then(|it| self.arena.value(it)) == Some(1);
        let is_scrambled = !to[..axis].iter().all(is_one);
        // A length that only moves behind a new axis stays what it is.
        if rest == first && !is_scrambled || !is_one(&to[0]) || self.arena.value(first).is_some() {
            return;
        }
        for symbol in self.arena.symbols(first) {
            let expr = self.arena.symbol(symbol);
            let is_first = self.axes[symbol].axis == 0;
            if is_first && [first, rest].iter().all(|&length| self.arena.exact_quotient(length, expr).is_some()) {
                self.swallows.push(Swallow { layer: layer.id(), symbol, axis, is_scrambled });
            }
        }
    }

    pub(super) fn reasons(&self, graph: &Graph, layer: &Layer, input: usize) -> Vec<Reason> {
        chain(graph, layer, input).into_iter().map(|layer| reason(&self.place, layer)).collect()
    }

    /// Ties lengths of the state that begin alike and grow alike, such as those of the caches of all layers.
    fn tie_states(&mut self) {
        let mut known: HashMap<[Expr; 2], usize> = HashMap::default();
        let tests: Vec<_> = self.demands.iter().map(|it| (it.test, it.at)).collect();
        let tests: Vec<_> = tests.into_iter().filter_map(|(test, at)| Some((self.resolve(Some(test))?, at))).collect();
        let merged = merged(&mut self.arena, self.axes.len(), &tests);
        let assigns = self.model.graph().layers().filter(|layer| ops::kind(layer) == LayerKind::Assign);
        let assigns: HashMap<_, _> = assigns.map(|layer| (layer.attribute("variable_id"), layer)).collect();
        for at in self.inputs..self.axes.len() {
            let Some(course) = self.course(at, &merged, &assigns) else { continue };
            let kept = self.arena.symbol_of(self.replaced[at]).unwrap_or(at);
            let first = *known.entry(course).or_insert(kept);
            if first != kept {
                self.tie(first, kept, Vec::new());
            }
        }
    }

    /// The initial length of a state, and the length that one inference adds to it.
    fn course(&mut self, at: usize, merged: &[Expr], assigns: &Assigns<'_>) -> Option<[Expr; 2]> {
        let (graph, axis) = (self.model.graph(), self.axes[at].axis);
        let read = graph.layer(self.axes[at].layer)?;
        let assign = assigns.get(&read.attribute("variable_id"))?;
        let [initial, next] = [read, assign].map(|layer| {
            let tensor = self.tensors.get(&graph.producer(layer.id().input(0))?)?;
            tensor.dims.as_ref()?.get(axis).copied().flatten()
        });
        let next = self.resolve(next)?;
        let growth = self.arena.sub(next, self.replaced[at])?;
        Some([self.resolve(initial)?, self.arena.replaced(growth, merged, &mut HashMap::default())?])
    }

    pub(super) fn finish(mut self) -> Shapes {
        self.tie_states();
        let graph = self.model.graph();
        // Tied symbols become one, and the symbols that are left are numbered.
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut numbers: Vec<usize> = vec![0; self.axes.len()];
        for (at, axis) in self.axes.iter().enumerate() {
            let kept = self.arena.symbol_of(self.replaced[at]).unwrap_or(at);
            let layer = graph.layer(axis.layer);
            let variable = layer.and_then(|layer| layer.attribute("variable_id")).filter(|_| at >= self.inputs);
            let input = variable.map(str::to_owned).or_else(|| Some(self.model.end_name(layer?))).unwrap_or_default();
            if kept == at {
                numbers[at] = symbols.len();
                symbols.push(Symbol {
                    id: format!("s{}", symbols.len()),
                    name: String::new(),
                    axes: Vec::new(),
                    inputs: Vec::new(),
                    because: Vec::new(),
                    bounds: (1, i64::MAX),
                });
            } else {
                numbers[at] = numbers[kept];
            }
            let symbol = &mut symbols[numbers[at]];
            symbol.axes.push((axis.layer, axis.axis));
            symbol.inputs.push(input);
            symbol.because.extend(axis.because.iter().cloned());
            symbol.bounds = (symbol.bounds.0.max(axis.bounds.0), symbol.bounds.1.min(axis.bounds.1));
        }
        names::name(&mut symbols, graph);
        let inputs = numbers[..self.inputs].iter().map(|number| number + 1).max().unwrap_or(0);
        let numbered: Vec<Expr> = (0..self.axes.len()).map(|at| self.arena.symbol(numbers[at])).collect();
        let mut known = HashMap::default();
        let mut constraints: Vec<Constraint> = Vec::new();
        for (at, symbol) in symbols[..inputs].iter().enumerate() {
            let expr = self.arena.symbol(at);
            let because: Vec<Reason> = symbol
                .axes
                .iter()
                .filter_map(|&(id, _)| graph.layer(id))
                .map(|layer| reason(&self.place, layer))
                .collect();
            let (low, high) = (self.arena.number(symbol.bounds.0), self.arena.number(symbol.bounds.1));
            let least = self.arena.at_least(expr, low).filter(|_| symbol.bounds.0 > 1);
            let most = self.arena.at_least(high, expr).filter(|_| symbol.bounds.1 < i64::MAX);
            for test in [least, most].into_iter().flatten() {
                let open =
                    OpenConstraint { test, at: Noticed::Run, because: because.clone(), reads: None, table: None };
                constraints.push(open.close(&self.arena, &symbols));
            }
        }
        let mut found = HashSet::default();
        for open in std::mem::take(&mut self.demands) {
            let (Some(test), at) = (self.arena.replaced(open.test, &numbered, &mut known), open.at) else { continue };
            let is_known = at == Noticed::Run && found.contains(&(test, Noticed::Load)) || !found.insert((test, at));
            if self.arena.value(test).is_none_or(|value| value == 0) && !is_known {
                constraints.push(OpenConstraint { test, ..open }.close(&self.arena, &symbols));
            }
        }
        let (mut dims, mut lists) = (Vec::<Box<[Length]>>::new(), HashMap::<Rc<Dims>, usize>::default());
        let mut tensors = HashMap::<Output, usize>::default();
        for (output, tensor) in std::mem::take(&mut self.tensors) {
            let Some(list) = tensor.dims else { continue };
            let list = lists.entry(list).or_insert_with_key(|list| {
                dims.push(list.iter().map(|dim| self.arena.replaced((*dim)?, &numbered, &mut known)).collect());
                dims.len() - 1
            });
            tensors.insert(output, *list);
        }
        let mut swallows = self.swallows;
        swallows.iter_mut().for_each(|it| it.symbol = numbers[it.symbol]);
        let tests: Vec<_> = constraints.iter().map(|it| (it.test, it.at)).collect();
        let merged = merged(&mut self.arena, symbols.len(), &tests);
        // The inputs of one inference do not decide a length of the state.
        constraints.retain(|it| it.symbols.iter().all(|&symbol| symbol < inputs));
        let state = symbols.split_off(inputs);
        let mut brief = HashMap::default();
        let mut known = HashMap::default();
        for &dim in dims.iter().flatten().flatten() {
            if self.arena.size(dim) > MOST_NODES
                && let Some(usual) = self.arena.replaced(dim, &merged, &mut known)
            {
                brief.insert(dim, usual);
            }
        }
        Shapes { arena: self.arena, symbols, state, constraints, dims, tensors, swallows, merged, brief }
    }
}

impl Walk<'_> {
    pub(super) fn value(&mut self, graph: &Graph, output: Output) -> Option<Value> {
        if let Some(value) = self.tensors.get(&output).and_then(|tensor| tensor.value.clone()) {
            return Some((*value).clone());
        }
        let count = graph.output(output)?.shape().element_count()?;
        if count > MAX_ITEMS as u64 {
            return None;
        }
        let bounds = self.evaluator.bounds(graph, &mut self.values, None, output)?;
        let exact = bounds.exact()?;
        let items = match &exact.data {
            Data::Ints(_) => exact.to_integers().iter().map(|&value| Some((self.arena.number(value), 1))).collect(),
            Data::Floats(values) => values.iter().map(|&value| fraction(&mut self.arena, value)).collect(),
        };
        Some(Value { dims: exact.dims.clone(), items })
    }

    pub(super) fn exact(&mut self, graph: &Graph, output: Output) -> Option<Array> {
        let bounds = self.evaluator.bounds(graph, &mut self.values, None, output)?;
        bounds.exact().cloned()
    }
}

/// Each symbol, or the first of those that are equal where inputs that broadcast have equal lengths.
fn merged(arena: &mut Arena, count: usize, tests: &[(Expr, Noticed)]) -> Vec<Expr> {
    let mut first: Vec<Expr> = (0..count).map(|symbol| arena.symbol(symbol)).collect();
    for symbols in tests.iter().filter_map(|&(test, _)| arena.broadcast_symbols(test)) {
        merge(&mut first, &symbols);
    }
    let (broadcast, mut known) = (first.clone(), HashMap::default());
    for &(test, _) in tests.iter().filter(|(_, at)| *at == Noticed::Load) {
        if !matches!(arena.node(test), Node::IsZero(_)) {
            continue;
        }
        let equation = arena.replaced(test, &broadcast, &mut known);
        if let Some((a, b)) = equation.and_then(|equation| arena.tied_symbols(equation)) {
            merge(&mut first, &[a, b]);
        }
    }
    first
}

fn merge(first: &mut [Expr], symbols: &[usize]) {
    let group: Vec<Expr> = symbols.iter().map(|&symbol| first[symbol]).collect();
    let Some(&least) = group.iter().min() else { return };
    first.iter_mut().filter(|it| group.contains(it)).for_each(|it| *it = least);
}

fn fraction(arena: &mut Arena, value: f64) -> Option<Fraction> {
    (0..=20).map(|bits| 1_i64 << bits).find_map(|by| {
        let above = value * by as f64;
        (above.fract() == 0.0 && above.abs() < 1e12).then(|| (arena.number(above as i64), by))
    })
}

pub(super) fn reason(place: &Place, layer: &Layer) -> Reason {
    Reason {
        layer: LayerRef::of(place, layer),
        operation: layer.ty().to_owned(),
        span: layer.span().unwrap_or_default(),
    }
}

/// A layer, then the layers above its input up to the constant that has a number, or to a Parameter.
pub(super) fn chain<'g>(graph: &'g Graph, layer: &'g Layer, input: usize) -> Vec<&'g Layer> {
    const MOST: usize = 12;
    let mut found = vec![layer];
    let mut next = graph.producer(layer.id().input(input)).and_then(|output| graph.layer(output.layer));
    while let Some(above) = next.filter(|_| found.len() < MOST) {
        if ops::kind(above) == LayerKind::Parameter {
            break;
        }
        found.push(above);
        let feeds = graph.feeds(above.id());
        // A list that is joined from lengths and a constant has its number from the constant.
        let mut constants =
            feeds.iter().flatten().filter(|(layer, _)| above.ty() == "Concat" && ops::is_constant(layer));
        next = constants.next().or_else(|| feeds.first()?.as_ref()).map(|(layer, _)| *layer);
    }
    found
}
