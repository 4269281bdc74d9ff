//! Matching of patterns.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::bound::{Bindings, Bound, same_value, self_describe};
use super::evaluate::{Evaluator, Lack};
use super::pattern::Pattern;
use super::strict;
use super::subject::Subject;
use super::term::{
    AttributeTerm, AttributeValue, Branch, LayerTerm, Name, Rest, Setting, Side, Term, TermKind, rows_of,
};
use crate::model::graph::{Graph, Input, Layer, LayerId, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::{self, Array};
use crate::ops::{self, AttrKind, Operation};
use crate::rewrite::notation::Literal;

/// Maximum number of steps of one attempt to match a pattern.
pub(super) const MOST_STEPS: usize = 1 << 14;

/// Reason why a pattern does not match, with the failing section.
#[derive(Clone, Debug)]
pub(super) struct Miss {
    pub(super) progress: usize,
    pub(super) span: Range<usize>,
    pub(super) reason: String,
}

pub(super) fn small_constant(layer: &Layer, weights: &Weights) -> Option<Array> {
    let (element_type, dims) = layer.stored_as()?;
    array::count(&dims)?;
    layer.values(weights, element_type, dims)
}

impl Pattern {
    /// The number of terms that match at a layer, and the reason why the others do not; `None` if all match.
    pub(crate) fn miss(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> Option<(usize, String)> {
        let miss = miss(&Subject::new(graph, weights), self, layer)?;
        Some((miss.progress, miss.reason))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Whole,
    /// The requirements that can be checked before types and shapes are inferred.
    Structure,
}

/// Matches a pattern with its root at this layer, and returns the bindings.
pub(super) fn at(subject: &Subject, pattern: &Pattern, layer: &Layer, depth: Depth) -> Option<Bindings> {
    let mut search = Search::new(subject, pattern, depth, false);
    search.run(layer).then_some(search.bound)
}

/// The reason why the pattern does not match at this layer; `None` if it does.
pub(super) fn miss(subject: &Subject, pattern: &Pattern, layer: &Layer) -> Option<Miss> {
    let mut search = Search::new(subject, pattern, Depth::Whole, true);
    if search.run(layer) { None } else { search.miss }
}

pub(super) struct Search<'a> {
    pub(super) subject: &'a Subject<'a>,
    pub(super) pattern: &'a Pattern,
    pub(super) depth: Depth,
    pub(super) explains: bool,
    pub(super) bound: Bindings,
    /// Terms and tensors that must still be matched, the next one last.
    pub(super) goals: SmallVec<[(usize, Output); 4]>,
    /// The number of matched terms.
    pub(super) progress: usize,
    pub(super) steps: usize,
    miss: Option<Miss>,
}

impl<'a> Search<'a> {
    fn new(subject: &'a Subject<'a>, pattern: &'a Pattern, depth: Depth, explains: bool) -> Self {
        let bound = Bindings {
            names: SmallVec::from_elem(None, pattern.names.len()),
            variables: SmallVec::from_elem(None, pattern.variables.len()),
            layers: SmallVec::new(),
        };
        Self { subject, pattern, depth, explains, bound, goals: SmallVec::new(), progress: 0, steps: 0, miss: None }
    }

    pub(super) fn side(&self) -> &'a Side {
        &self.pattern.side
    }

    pub(super) fn name(&self, name: usize) -> &'a Name {
        &self.pattern.names[name]
    }

    fn run(&mut self, layer: &Layer) -> bool {
        let Some(&root) = self.side().roots.first() else { return false };
        let span = self.head_of(root);
        let port = self.port_of(root);
        let count = layer.outputs().len();
        let tensors = (0..count).map(|port| layer.id().output(port));
        // With several roots, each has one output.
        let outputs = match &self.side().outputs[..] {
            [first, ..] if !self.pattern.links.is_empty() => std::slice::from_ref(first),
            outputs => outputs,
        };
        let mut takes_one = false;
        match *outputs {
            [name] if self.name(name).is_list => self.bound.names[name] = Some(Bound::List(tensors.collect())),
            [] | [_] => {
                let tensor = Bound::Tensor(layer.id().output(port));
                outputs.iter().for_each(|&name| self.bound.names[name] = Some(tensor.clone()));
                takes_one = true;
            }
            _ if outputs.len() != count => return self.refuse(span, || format!("has {count} outputs")),
            _ => {
                for (&name, tensor) in outputs.iter().zip(tensors) {
                    self.bound.names[name] = Some(Bound::Tensor(tensor));
                }
            }
        }
        if takes_one && count > 1 {
            let used = self.subject.graph.uses(layer.id()).map(|(other, _)| other);
            if let Some(other) = used.filter(|&other| other != port && other < count).min() {
                return self.refuse(span, || format!("also has a used output {other}; write `(a, b) = …`"));
            }
        }
        if let Some(root) = self.pattern.names.iter().position(|name| name.text == "root" && name.definition.is_none())
        {
            self.bound.names[root].get_or_insert(Bound::Tensor(layer.id().output(port)));
        }
        self.match_goal(root, layer.id().output(port))
    }

    pub(super) fn port_of(&self, root: usize) -> usize {
        match &self.side().terms[root].kind {
            TermKind::Layer(term) => term.output,
            _ => 0,
        }
    }

    fn head_of(&self, term: usize) -> Range<usize> {
        match &self.side().terms[term].kind {
            TermKind::Layer(layer) => layer.head.clone(),
            _ => self.side().terms[term].span.clone(),
        }
    }

    /// Records the reason why a term does not match, if more terms matched than in any earlier attempt.
    pub(super) fn refuse(&mut self, span: Range<usize>, reason: impl FnOnce() -> String) -> bool {
        if self.explains && self.miss.as_ref().is_none_or(|miss| miss.progress < self.progress) {
            self.miss = Some(Miss { progress: self.progress, span, reason: reason() });
        }
        false
    }

    fn refuse_no_constant(&mut self, term: &Term, layer: &Layer) -> bool {
        let border = self.subject.border(layer);
        self.refuse(term.span.clone(), || format!("{} is not a constant{border}", self_describe(layer)))
    }

    /// Tries a step. If it fails, restores the state.
    pub(super) fn attempt(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        let goals = self.goals.clone();
        let bound = self.bound.clone();
        let done = fits(self);
        if !done {
            self.goals = goals;
            self.bound = bound;
        }
        done
    }

    /// Matches the remaining terms. If that fails, restores the state.
    pub(super) fn solve(&mut self) -> bool {
        let Some((at, tensor)) = self.goals.pop() else { return self.match_next_root() };
        self.steps += 1;
        self.progress += 1;
        let fits = self.steps < MOST_STEPS && self.match_goal(at, tensor);
        self.progress -= 1;
        if !fits {
            self.goals.push((at, tensor));
        }
        fits
    }

    pub(super) fn match_goal(&mut self, at: usize, tensor: Output) -> bool {
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
            TermKind::Name { constant: true, .. } | TermKind::Literal(_) if !self.subject.is_constant(tensor) => {
                self.refuse_no_constant(term, layer)
            }
            TermKind::Name { name, .. } => {
                self.meets_constraints(at, tensor) && self.match_name(term, *name, Bound::Tensor(tensor))
            }
            TermKind::Literal(literal) => self.match_literal(term, literal, tensor) && self.solve(),
            TermKind::Layer(inner) => self.match_layer(at, inner, layer, tensor) || self.match_without(inner, tensor),
            TermKind::Chain(chain) => self.match_chain(at, chain, tensor),
            TermKind::Either(branches) => branches.iter().any(|branch| self.match_branch(branch, tensor)),
            // The others occur only in replacements and conditions.
            _ => false,
        }
    }

    fn match_branch(&mut self, branch: &Branch, tensor: Output) -> bool {
        self.attempt(|search| {
            for setting in &branch.with {
                let holds = match setting {
                    Setting::Never => false,
                    Setting::Variable(variable, value) => match &search.bound.variables[*variable] {
                        Some(bound) => same_value(bound, value, None),
                        None => {
                            search.bound.variables[*variable] = Some(value.as_str().into());
                            true
                        }
                    },
                    Setting::Name(name, number) => search.binds(*name, Bound::Number(*number)),
                };
                if !holds {
                    return false;
                }
            }
            search.match_goal(branch.term, tensor)
        })
    }

    /// If it has one, compares both.
    pub(super) fn binds(&mut self, name: usize, to: Bound) -> bool {
        match &self.bound.names[name] {
            Some(bound) => self.subject.is_same(bound, &to),
            None => {
                self.bound.names[name] = Some(to);
                true
            }
        }
    }

    /// If it has a value, compares both.
    fn match_name(&mut self, term: &Term, name: usize, to: Bound) -> bool {
        if self.bound.names[name].is_some() {
            return match to {
                _ if self.binds(name, to.clone()) => self.solve(),
                Bound::Tensor(tensor) => {
                    let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
                    let text = &self.name(name).text;
                    self.refuse(term.span.clone(), || {
                        format!("{} is not the same tensor as the other `{text}`", self_describe(layer))
                    })
                }
                _ => self.refuse(term.span.clone(), || "the constants differ".to_owned()),
            };
        }
        let Some(definition) = &self.name(name).definition else {
            self.bound.names[name] = Some(to);
            let fits = self.solve();
            if !fits {
                self.bound.names[name] = None;
            }
            return fits;
        };
        let Bound::Tensor(tensor) = to else { return false };
        let outputs = &definition.outputs;
        let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
        if !outputs.is_empty() && (layer.outputs().len() != outputs.len() || outputs.get(tensor.port) != Some(&name)) {
            return self.refuse(term.span.clone(), || {
                format!("the tensor is output {} of {} of {}", tensor.port, layer.outputs().len(), self_describe(layer))
            });
        }
        self.attempt(|search| {
            for (port, &other) in outputs.iter().enumerate() {
                search.bound.names[other] = Some(Bound::Tensor(layer.id().output(port)));
            }
            search.bound.names[name] = Some(Bound::Tensor(tensor));
            let first = if outputs.is_empty() { tensor } else { layer.id().output(0) };
            search.goals.push((definition.term, first));
            search.solve()
        })
    }

    fn match_literal(&mut self, term: &Term, literal: &Literal, tensor: Output) -> bool {
        if self.subject.holds(tensor, literal) {
            return true;
        }
        let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
        // A wrong constant is a closer match than a tensor that is no constant.
        self.progress += 1;
        let values = self.subject.small(tensor);
        let values = values.or_else(|| small_constant(layer, self.subject.weights).map(Arc::new));
        self.refuse(term.span.clone(), || format!("{} holds {}", self_describe(layer), value_of(values.as_deref())));
        self.progress -= 1;
        false
    }

    /// Matches a pattern whose optional layer is absent, so that its first input matches the tensor itself.
    fn match_without(&mut self, term: &LayerTerm, tensor: Output) -> bool {
        let Some(&first) = term.inputs.first().filter(|_| term.optional) else { return false };
        self.goals.push((first, tensor));
        let fits = self.solve();
        if !fits {
            self.goals.pop();
        }
        fits
    }

    fn meets_constraints(&mut self, at: usize, tensor: Output) -> bool {
        let term = &self.side().terms[at];
        let asks = !term.element_types.is_empty() || term.type_variable.is_some() || term.shape.is_some();
        if self.depth == Depth::Structure || !asks {
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

    /// Matches a layer without its inputs.
    fn match_layer_alone(&mut self, at: usize, term: &LayerTerm, layer: &Layer, tensor: Output) -> bool {
        let row = layer.operation();
        if !is_operation(term, layer, row) {
            let border = self.subject.border(layer);
            return self.refuse(term.head.clone(), || match row.filter(|row| row.name == term.operation) {
                Some(row) => format!("{} is {}-{}", self_describe(layer), row.name, row.revision),
                None => format!("{} is here{border}", self_describe(layer)),
            });
        }
        if tensor.port != term.output {
            return self.refuse(term.head.clone(), || {
                format!("the tensor is output {} of {}", tensor.port, self_describe(layer))
            });
        }
        // The right operation with other attributes is a closer match than another operation.
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
            &AttributeValue::Term(at) => self.match_number(at, value),
        };
        let name = &term.name;
        same || self.refuse(term.span.clone(), || format!("{} has {name}={value}", self_describe(layer)))
    }

    /// Matches the number of an attribute with the pattern's value.
    fn match_number(&mut self, at: usize, value: &str) -> bool {
        let Ok(number) = value.trim().parse::<f64>() else { return false };
        match &self.side().terms[at].kind {
            TermKind::Name { name, .. } => self.binds(*name, Bound::Number(number)),
            TermKind::Literal(literal) => literal.is_number(number),
            TermKind::Chain(chain) => {
                let ty = typelift_promote::ElementType::F32;
                chain.factors.is_empty() && chain.literal.as_ref().is_some_and(|literal| literal.is(number, ty))
            }
            _ => false,
        }
    }

    /// Matches the inputs of a layer, in both orders if the operation is commutative.
    fn match_inputs(&mut self, term: &LayerTerm, layer: &Layer) -> bool {
        let producers = self.subject.graph.feeds(layer.id());
        let feeds: Option<SmallVec<[Output; 4]>> =
            producers.iter().map(|feed| feed.map(|(layer, port)| layer.id().output(port))).collect();
        let lists = term.inputs.iter().filter(|&&input| self.list_of(input).is_some()).count();
        let (most, open) = (term.inputs.len() - lists, term.more_inputs != Rest::None || lists > 0);
        let counts =
            |feeds: &SmallVec<[Output; 4]>| feeds.len() + term.optional_inputs >= most && (feeds.len() <= most || open);
        let Some(feeds) = feeds.filter(counts) else {
            let found = producers.iter().flatten().count();
            return self.refuse(term.head.clone(), || format!("{} has {found} inputs", self_describe(layer)));
        };
        let row = layer.operation();
        let commutes = row.is_some_and(|row| row.commutative) && term.inputs.len() == 2 && feeds[0] != feeds[1];
        let orders: &[[usize; 2]] = if commutes { &[[0, 1], [1, 0]] } else { &[[0, 1]] };
        let mark = self.goals.len();
        if lists > 0 {
            return self.match_lists(&term.inputs, &feeds.into_iter().collect(), 0);
        }
        for order in orders {
            // The first input is matched first.
            for (at, &input) in term.inputs.iter().enumerate().rev() {
                let feed = order.get(at).map_or(at, |&at| at);
                if let Some(&feed) = feeds.get(if commutes { feed } else { at }) {
                    self.goals.push((input, feed));
                }
            }
            if self.solve() {
                return true;
            }
            self.goals.truncate(mark);
        }
        false
    }

    /// Checks that inner layers have no other consumers, and that the conditions are true.
    pub(super) fn finish(&mut self) -> bool {
        let graph = self.subject.graph;
        let outputs = self.side().outputs.iter().skip(1).filter_map(|&name| self.bound.names[name].as_ref()?.tensor());
        let roots: SmallVec<[LayerId; 2]> =
            self.bound.layers.first().map(|&(root, _)| root).into_iter().chain(outputs.map(|it| it.layer)).collect();
        for &(layer, at) in self.bound.layers.iter().filter(|(layer, _)| !roots.contains(layer)) {
            let term = &self.side().terms[at];
            let (head, operation) = match &term.kind {
                TermKind::Layer(layer) if layer.shared => continue,
                TermKind::Layer(layer) => (layer.head.clone(), Some(&layer.operation)),
                _ => (term.span.clone(), None),
            };
            let is_outside =
                |(_, input): &(usize, Input)| self.bound.layers.iter().all(|(inside, _)| *inside != input.layer);
            if let Some((_, other)) = graph.uses(layer).filter(is_outside).min_by_key(|&(port, _)| port) {
                let describe = |id| graph.layer(id).map(self_describe).unwrap_or_default();
                let help = operation.map_or_else(String::new, |it| format!("; write `{it}&` to allow it"));
                let reason = || format!("{} is also used by {}{help}", describe(layer), describe(other.layer));
                return self.refuse_late(1, head, reason);
            }
        }
        if self.pattern.links.is_empty() || self.is_free_of_cycles(&roots) {
            self.depth == Depth::Structure || self.meets_conditions()
        } else {
            let root = self.side().terms[self.side().roots[0]].span.clone();
            self.refuse_late(1, root, || "one of the roots depends on another".to_owned())
        }
    }

    /// Records a reason that is more important than any term that does not match.
    pub(super) fn refuse_late(&mut self, stage: usize, span: Range<usize>, reason: impl FnOnce() -> String) -> bool {
        let ahead = stage * self.side().terms.len();
        self.progress += ahead;
        self.refuse(span, reason);
        self.progress -= ahead;
        false
    }

    fn meets_conditions(&mut self) -> bool {
        if let Some(reason) = strict::objection(self.subject, self.pattern, &self.bound) {
            let root = self.side().roots.first().map_or(0..0, |&root| self.head_of(root));
            return self.refuse_late(2, root, || reason);
        }
        for predicate in &self.pattern.predicates {
            let (subject, pattern, bound) = (self.subject, self.pattern, &self.bound);
            let of = (subject.graph, subject.weights);
            let evaluator = Evaluator {
                variable_names: &pattern.variables,
                plain: true,
                blocks: Some(&subject.blocks),
                ..Evaluator::new(of, &pattern.side, &pattern.names, &bound.names, &bound.variables)
            };
            match evaluator.decide(predicate.term) {
                Ok(found) => {
                    for (name, number) in found.numbers {
                        self.bound.names[name] = Some(Bound::Number(number));
                    }
                    for (variable, text) in found.texts {
                        self.bound.variables[variable] = Some(text.into());
                    }
                }
                Err(Lack::Absent) => {}
                Err(Lack::Reason(reason) | Lack::False(reason)) => {
                    let span = self.side().terms[predicate.term].span.clone();
                    return self
                        .refuse_late(2, span, || format!("the condition `{}` is false: {reason}", predicate.text));
                }
            }
        }
        let Some(condition) = &self.pattern.condition else { return true };
        match condition(&super::Match::new(self.subject.graph, self.subject.weights, self.pattern, &self.bound)) {
            Ok(()) => true,
            Err(reason) => {
                let root = self.side().roots.first().map_or(0..0, |&root| self.side().terms[root].span.clone());
                self.refuse_late(2, root, || reason)
            }
        }
    }
}

fn is_operation(term: &LayerTerm, layer: &Layer, row: Option<&'static Operation>) -> bool {
    match (row, &term.version) {
        (Some(row), None) => row.name == term.operation,
        (Some(row), Some(version)) => {
            row.name == term.operation
                && ops::lookup(&term.operation, version).is_some_and(|wanted| wanted.revision == row.revision)
        }
        (None, version) => {
            layer.ty() == term.operation
                && version.as_ref().is_none_or(|version| version == layer.version())
                && (version.is_some() || rows_of(term).is_empty())
        }
    }
}

fn value_of(values: Option<&Array>) -> String {
    match values {
        Some(array) if array.len() <= 16 => crate::rewrite::notation::print_values(array),
        Some(_) => "other values".to_owned(),
        None => "unknown values".to_owned(),
    }
}
