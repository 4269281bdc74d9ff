//! Finding where a pattern fits.

use std::cell::RefCell;
use std::ops::Range;

use compact_str::CompactString;
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::Rule;
use super::parse::rows_of;
use super::term::{AttributeTerm, AttributeValue, LayerTerm, Rest, Side, Term, TermKind};
use crate::array::{self, Array};
use crate::graph::{Graph, Layer, LayerId, Output};
use crate::notation::Literal;
use crate::ops::{self, AttrKind, LayerKind, Operation};
use crate::weights::Weights;

/// Constants with more elements are not kept in memory.
const MOST_KEPT: usize = 64;
/// Limit on the steps of one attempt to fit a pattern.
const MOST_STEPS: usize = 1 << 14;

/// What a match binds.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    /// By name.
    pub(super) tensors: SmallVec<[Option<Output>; 4]>,
    /// By variable.
    pub(super) variables: SmallVec<[Option<CompactString>; 2]>,
    /// The layers that were matched, with the term of each; the root first.
    pub(super) layers: SmallVec<[(LayerId, usize); 4]>,
}

/// Where a pattern stops to fit, and why.
#[derive(Clone, Debug)]
pub(super) struct Miss {
    pub(super) progress: usize,
    pub(super) span: Range<usize>,
    pub(super) reason: String,
}

/// A graph with what matching finds out about it.
pub(super) struct Subject<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    /// Whether the graph is a body.
    in_body: bool,
    constants: RefCell<FxHashMap<LayerId, Option<Array>>>,
}

impl<'a> Subject<'a> {
    pub(super) fn new(graph: &'a Graph, weights: &'a Weights) -> Self {
        Self { graph, weights, in_body: false, constants: RefCell::default() }
    }

    /// The same for a graph that is a body, or not.
    pub(super) fn in_body(self, in_body: bool) -> Self {
        Self { in_body, ..self }
    }

    /// Why a pattern ends at a layer that another graph feeds, or that has graphs of its own.
    fn border(&self, layer: &Layer) -> &'static str {
        match ops::kind(layer) {
            LayerKind::Parameter if self.in_body => "; a pattern does not cross the border of a body",
            _ if !layer.bodies().is_empty() => "; a pattern does not cross the border of its bodies",
            _ => "",
        }
    }

    fn holds(&self, layer: &Layer, literal: &Literal) -> bool {
        let Some((ty, dims)) = layer.stored_as() else { return false };
        let Some(count) = dims.iter().try_fold(1_usize, |count, &dim| count.checked_mul(dim)) else { return false };
        if count <= MOST_KEPT {
            let mut constants = self.constants.borrow_mut();
            let array = constants.entry(layer.id()).or_insert_with(|| layer.values(self.weights, ty, dims));
            return array.as_ref().is_some_and(|array| literal.is_held_by(array));
        }
        // Of a large constant the first value decides most of the time.
        let holds = |dims| layer.values(self.weights, ty, dims).is_some_and(|array| literal.is_held_by(&array));
        if literal.dims.is_empty() {
            holds(smallvec![1]) && holds(dims)
        } else {
            literal.numbers.len() == count && holds(dims)
        }
    }
}

/// The values of a constant that has few enough to be worth a look.
pub(super) fn small_constant(layer: &Layer, weights: &Weights) -> Option<Array> {
    let (element_type, dims) = layer.stored_as()?;
    array::count(&dims)?;
    layer.values(weights, element_type, dims)
}

/// How closely to look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// Everything that a rule asks for.
    Whole,
    /// What can be seen before types and shapes are inferred.
    Structure,
}

/// Whether the pattern of a rule fits with its root at this layer, and what it binds then.
pub(super) fn at(subject: &Subject, rule: &Rule, layer: &Layer, look: Look) -> Option<Bindings> {
    let mut search = Search::new(subject, rule, look, false);
    search.run(layer).then_some(search.bound)
}

/// Why the pattern does not fit there; `None` if it does.
pub(super) fn miss(subject: &Subject, rule: &Rule, layer: &Layer) -> Option<Miss> {
    let mut search = Search::new(subject, rule, Look::Whole, true);
    if search.run(layer) { None } else { search.miss }
}

/// One attempt to fit a pattern.
struct Search<'a> {
    subject: &'a Subject<'a>,
    rule: &'a Rule,
    look: Look,
    explains: bool,
    bound: Bindings,
    /// What must still fit, the next last.
    goals: SmallVec<[(usize, Output); 4]>,
    /// How many terms fit so far.
    progress: usize,
    steps: usize,
    miss: Option<Miss>,
}

impl<'a> Search<'a> {
    fn new(subject: &'a Subject<'a>, rule: &'a Rule, look: Look, explains: bool) -> Self {
        let bound = Bindings {
            tensors: SmallVec::from_elem(None, rule.names.len()),
            variables: SmallVec::from_elem(None, rule.variables.len()),
            layers: SmallVec::new(),
        };
        Self { subject, rule, look, explains, bound, goals: SmallVec::new(), progress: 0, steps: 0, miss: None }
    }

    fn side(&self) -> &'a Side {
        &self.rule.pattern
    }

    fn run(&mut self, layer: &Layer) -> bool {
        let Some(&root) = self.side().roots.first() else { return false };
        let TermKind::Layer(term) = &self.side().terms[root].kind else { return false };
        let outputs = &self.side().outputs;
        if !outputs.is_empty() && outputs.len() != layer.outputs().len() {
            let found = layer.outputs().len();
            return self.refuse(term.head.clone(), || format!("has {found} outputs"));
        }
        for (port, &name) in outputs.iter().enumerate() {
            self.bound.tensors[name] = Some(layer.id().output(port));
        }
        if outputs.is_empty() && layer.outputs().len() > 1 {
            let used = (0..layer.outputs().len()).filter(|&port| port != term.output);
            let other =
                used.into_iter().find(|&port| self.subject.graph.consumers(layer.id().output(port)).next().is_some());
            if let Some(other) = other {
                return self
                    .refuse(term.head.clone(), || format!("has an output {other} that is used; write `(a, b) = …`"));
            }
        }
        self.match_layer(root, term, layer, layer.id().output(term.output))
    }

    /// Records why a term does not fit, if it got as far as any other.
    fn refuse(&mut self, span: Range<usize>, reason: impl FnOnce() -> String) -> bool {
        if self.explains && self.miss.as_ref().is_none_or(|miss| miss.progress < self.progress) {
            self.miss = Some(Miss { progress: self.progress, span, reason: reason() });
        }
        false
    }

    fn refuse_no_constant(&mut self, term: &Term, layer: &Layer) -> bool {
        let border = self.subject.border(layer);
        self.refuse(term.span.clone(), || format!("{} is not a constant{border}", self_describe(layer)))
    }

    /// Fits what is left. Where it cannot, everything is as before.
    fn solve(&mut self) -> bool {
        let Some((at, tensor)) = self.goals.pop() else { return self.finish() };
        self.steps += 1;
        self.progress += 1;
        let fits = self.steps < MOST_STEPS && self.match_goal(at, tensor);
        self.progress -= 1;
        if !fits {
            self.goals.push((at, tensor));
        }
        fits
    }

    fn match_goal(&mut self, at: usize, tensor: Output) -> bool {
        let variables = self.side().terms[at].type_variable.map(|_| self.bound.variables.clone());
        let fits = self.match_term(at, tensor);
        if let (false, Some(variables)) = (fits, variables) {
            self.bound.variables = variables;
        }
        fits
    }

    fn match_term(&mut self, at: usize, tensor: Output) -> bool {
        let term = &self.side().terms[at];
        let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
        match &term.kind {
            TermKind::Any => self.meets_constraints(at, tensor) && self.solve(),
            TermKind::Name { constant: true, .. } | TermKind::Literal(_) if ops::kind(layer) != LayerKind::Constant => {
                self.refuse_no_constant(term, layer)
            }
            TermKind::Name { name, .. } => self.meets_constraints(at, tensor) && self.match_name(term, *name, tensor),
            TermKind::Literal(literal) => self.match_literal(term, literal, layer) && self.solve(),
            TermKind::Layer(inner) => self.match_layer(at, inner, layer, tensor) || self.match_without(inner, tensor),
            TermKind::Compute(..) => false,
        }
    }

    /// Binds a name to a tensor, or compares the tensor with the one that the name has.
    fn match_name(&mut self, term: &Term, name: usize, tensor: Output) -> bool {
        match self.bound.tensors[name] {
            Some(bound) if bound != tensor => {
                let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
                let text = &self.rule.names[name].text;
                self.refuse(term.span.clone(), || {
                    format!("{} is another tensor than the other `{text}`", self_describe(layer))
                })
            }
            Some(_) => self.solve(),
            None => {
                self.bound.tensors[name] = Some(tensor);
                let fits = self.solve();
                if !fits {
                    self.bound.tensors[name] = None;
                }
                fits
            }
        }
    }

    fn match_literal(&mut self, term: &Term, literal: &Literal, layer: &Layer) -> bool {
        if self.subject.holds(layer, literal) {
            return true;
        }
        let weights = self.subject.weights;
        // Another constant is nearer to a match than what is not one.
        self.progress += 1;
        self.refuse(term.span.clone(), || format!("{} holds {}", self_describe(layer), value_of(layer, weights)));
        self.progress -= 1;
        false
    }

    /// Whether a layer that may be left out is, so that its first input is the tensor.
    fn match_without(&mut self, term: &LayerTerm, tensor: Output) -> bool {
        let Some(&first) = term.inputs.first().filter(|_| term.optional) else { return false };
        self.goals.push((first, tensor));
        let fits = self.solve();
        if !fits {
            self.goals.pop();
        }
        fits
    }

    /// Whether a tensor has the type and the shape that a term asks for.
    fn meets_constraints(&mut self, at: usize, tensor: Output) -> bool {
        let term = &self.side().terms[at];
        let asks = !term.element_types.is_empty() || term.type_variable.is_some() || term.shape.is_some();
        if self.look == Look::Structure || !asks {
            return true;
        }
        let Some(port) = self.subject.graph.output(tensor) else { return false };
        let ty = port.element_type();
        let mut fits = (term.element_types.is_empty() || term.element_types.contains(&ty))
            && term.shape.as_ref().is_none_or(|shape| shape.relaxes(port.shape()));
        if let (true, Some(variable)) = (fits, term.type_variable) {
            let bound = self.bound.variables[variable].get_or_insert_with(|| ty.name().into());
            fits = same_value(bound, ty.name(), Some(AttrKind::Type));
        }
        fits || {
            let layer = self.subject.graph.layer(tensor.layer);
            let shape = port.shape().clone();
            self.refuse(term.span.clone(), || {
                format!("{} is {ty}{shape}", layer.map(self_describe).unwrap_or_default())
            })
        }
    }

    fn match_layer(&mut self, at: usize, term: &LayerTerm, layer: &Layer, tensor: Output) -> bool {
        let marks = (self.goals.len(), self.bound.layers.len(), self.bound.variables.clone());
        let fits = self.match_layer_alone(at, term, layer, tensor) && self.match_inputs(term, layer);
        if !fits {
            self.goals.truncate(marks.0);
            self.bound.layers.truncate(marks.1);
            self.bound.variables = marks.2;
        }
        fits
    }

    /// Everything about the layer but what feeds it.
    fn match_layer_alone(&mut self, at: usize, term: &LayerTerm, layer: &Layer, tensor: Output) -> bool {
        let row = layer.operation();
        if !is_operation(term, layer, row) {
            let border = self.subject.border(layer);
            return self.refuse(term.head.clone(), || match row.filter(|row| row.name() == term.operation) {
                Some(row) => format!("{} is {}-{}", self_describe(layer), row.name(), row.revision()),
                None => format!("{} is here{border}", self_describe(layer)),
            });
        }
        if tensor.port != term.output {
            return self.refuse(term.head.clone(), || {
                format!("output {} of {} is used here", tensor.port, self_describe(layer))
            });
        }
        // A layer of the right operation is nearer to a match than one of another.
        self.progress += 1;
        let fits = term.attributes.iter().all(|attribute| self.match_attribute(attribute, layer, row))
            && self.meets_constraints(at, tensor);
        self.progress -= 1;
        if !fits {
            return false;
        }
        self.bound.layers.push((layer.id(), at));
        true
    }

    fn match_attribute(&mut self, term: &AttributeTerm, layer: &Layer, row: Option<&'static Operation>) -> bool {
        let default = row.and_then(|row| row.default_of(&term.name));
        let Some(value) = layer.attribute(&term.name).or(default) else {
            return self.refuse(term.span.clone(), || format!("{} does not have it", self_describe(layer)));
        };
        let kind = row.and_then(|row| row.attribute(&term.name)).map(|attribute| attribute.kind);
        let same = match &term.value {
            AttributeValue::Text(text) => same_value(text, value, kind),
            &AttributeValue::Variable(at) => match &self.bound.variables[at] {
                Some(bound) => same_value(bound, value, kind),
                None => {
                    self.bound.variables[at] = Some(value.into());
                    true
                }
            },
        };
        let name = &term.name;
        same || self.refuse(term.span.clone(), || format!("{} has {name}={value}", self_describe(layer)))
    }

    /// The inputs, those of a commutative operation in both orders.
    fn match_inputs(&mut self, term: &LayerTerm, layer: &Layer) -> bool {
        let producers = self.subject.graph.feeds(layer.id());
        let output = |feed: &Option<(&Layer, usize)>| feed.map(|(layer, port)| layer.id().output(port));
        let feeds: Option<SmallVec<[Output; 4]>> = producers.iter().map(output).collect();
        let open = term.more_inputs != Rest::None;
        let counts = |feeds: &SmallVec<[Output; 4]>| match feeds.len().checked_sub(term.inputs.len()) {
            Some(more) => more == 0 || open,
            None => false,
        };
        let Some(feeds) = feeds.filter(counts) else {
            let found = producers.iter().flatten().count();
            return self.refuse(term.head.clone(), || format!("{} has {found} inputs", self_describe(layer)));
        };
        let row = layer.operation();
        let commutes = row.is_some_and(Operation::is_commutative) && term.inputs.len() == 2 && feeds[0] != feeds[1];
        let orders: &[[usize; 2]] = if commutes { &[[0, 1], [1, 0]] } else { &[[0, 1]] };
        let mark = self.goals.len();
        for order in orders {
            // The first input is looked at first.
            for (at, &input) in term.inputs.iter().enumerate().rev() {
                let feed = order.get(at).map_or(feeds[at], |&at| feeds[at]);
                self.goals.push((input, feed));
            }
            if self.solve() {
                return true;
            }
            self.goals.truncate(mark);
        }
        false
    }

    /// Whether layers inside the match are used by nothing else, and the rule's own condition holds.
    fn finish(&mut self) -> bool {
        let graph = self.subject.graph;
        for &(layer, at) in self.bound.layers.iter().skip(1) {
            let TermKind::Layer(term) = &self.side().terms[at].kind else { continue };
            if term.shared {
                continue;
            }
            let outputs = graph.layer(layer).map_or(0, |layer| layer.outputs().len());
            let mut uses = (0..outputs).flat_map(|port| graph.consumers(layer.output(port)));
            let other = uses.find(|input| self.bound.layers.iter().all(|(inside, _)| *inside != input.layer));
            if let Some(other) = other {
                self.progress += self.side().terms.len();
                let describe = |id| graph.layer(id).map(self_describe).unwrap_or_default();
                let (head, operation) = (term.head.clone(), &term.operation);
                self.refuse(head, || {
                    format!(
                        "{} is also used by {}; write `{operation}&` to allow it",
                        describe(layer),
                        describe(other.layer)
                    )
                });
                self.progress -= self.side().terms.len();
                return false;
            }
        }
        if self.look == Look::Structure {
            return true;
        }
        let Some(condition) = &self.rule.condition else { return true };
        match condition(&super::Match::new(self.subject.graph, self.subject.weights, self.rule, &self.bound)) {
            Ok(()) => true,
            Err(reason) => {
                self.progress += 2 * self.side().terms.len();
                let root = self.side().roots.first().map_or(0..0, |&root| self.side().terms[root].span.clone());
                self.refuse(root, || reason);
                self.progress -= 2 * self.side().terms.len();
                false
            }
        }
    }
}

/// Whether a layer is what a term asks for.
fn is_operation(term: &LayerTerm, layer: &Layer, row: Option<&'static Operation>) -> bool {
    match (row, &term.version) {
        (Some(row), None) => row.name() == term.operation,
        (Some(row), Some(version)) => {
            row.name() == term.operation
                && ops::lookup(&term.operation, version).is_some_and(|wanted| wanted.revision() == row.revision())
        }
        (None, version) => {
            layer.ty() == term.operation
                && version.as_ref().is_none_or(|version| version == layer.version())
                && (version.is_some() || rows_of(term).is_empty())
        }
    }
}

/// Whether two texts are one value of an attribute.
pub(super) fn same_value(wanted: &str, value: &str, kind: Option<AttrKind>) -> bool {
    if wanted == value {
        return true;
    }
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    };
    match kind {
        Some(AttrKind::Bool) => truth(wanted).is_some() && truth(wanted) == truth(value),
        Some(AttrKind::Text) => false,
        Some(AttrKind::Enum(_) | AttrKind::Type) => wanted.eq_ignore_ascii_case(value),
        _ => {
            let items = |text: &str| text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>();
            let (wanted, value) = (items(wanted), items(value));
            let same = |(a, b): (&String, &String)| {
                a == b
                    || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b || a as f32 == b as f32)
            };
            wanted.len() == value.len() && wanted.iter().zip(&value).all(same)
        }
    }
}

/// ``Clamp 27 `Clamp_37` ``
pub(super) fn self_describe(layer: &Layer) -> String {
    format!("{} {} `{}`", layer.ty(), layer.id(), layer.name())
}

fn value_of(layer: &Layer, weights: &Weights) -> String {
    match small_constant(layer, weights) {
        Some(array) if array.len() <= 16 => crate::notation::print_values(&array),
        Some(_) => "other values".to_owned(),
        None => "values that are not known".to_owned(),
    }
}
