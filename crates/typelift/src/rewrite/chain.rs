//! Matching of products and sums.

use std::sync::Arc;

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::bound::{Bound, self_describe};
use super::constant::compute;
use super::losses::Losses;
use super::matching::Search;
use super::normal::{Form, Leaf, What};
use super::operations::operation_of;
use super::subject::Subject;
use super::term::{Chain, ChainKind, Factor, Function, TermKind};
use super::values;
use crate::base::names::on_one_line;
use crate::model::graph::{Layer, Output};
use crate::model::weights::Weights;
use crate::ops::values::array::Array;
use crate::rewrite::notation::number;

/// Maximum depth of nested layers in a description.
const DEEPEST_DESCRIPTION: usize = 4;
/// Maximum number of parts of a tensor that are checked before its forms are computed.
const MOST_PARTS: usize = 24;
/// Largest integer up to which a floating-point number represents all integers exactly.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum number of parts in the description of a chain.
const MOST_DESCRIBED: usize = 8;

/// Product or sum of the constants of a form.
#[derive(Clone)]
enum Folded {
    Number(f64),
    Tensor(Output),
    Values(Arc<Array>),
}

impl Search<'_> {
    /// Matches a chain of the pattern with the arithmetic that computes a tensor, in any order and grouping.
    pub(super) fn match_chain(&mut self, at: usize, chain: &Chain, tensor: Output) -> bool {
        let required = chain.factors.iter().filter(|factor| !factor.optional).count();
        let may_be_closed = match &chain.literal {
            // A single number is a constant, and an optional part may be absent.
            Some(_) => chain.factors.is_empty(),
            None => required <= 1,
        };
        if chain.factors.is_empty() || self.subject.is_constant(tensor) {
            return self.match_constant(chain, tensor);
        }
        if !self.explains && !self.may_have(chain, tensor) {
            return false;
        }
        let subject = self.subject;
        if subject.any_form(chain.kind, tensor, chain.factors.len(), |form| self.match_form(at, chain, form, tensor))
            || may_be_closed && self.match_form(at, chain, &Form::closed(tensor), tensor)
        {
            return true;
        }
        let span = self.side().terms[at].span.clone();
        self.refuse(span, || {
            let layer = subject.graph.layer(tensor.layer).map(self_describe).unwrap_or_default();
            format!("{layer} is {}", subject.describe(tensor, DEEPEST_DESCRIPTION))
        })
    }

    /// Matches a number of the pattern, or a chain with one constant, with a constant of the graph.
    fn match_constant(&mut self, chain: &Chain, tensor: Output) -> bool {
        let ty = self.type_of(tensor);
        let is_constant = self.subject.is_constant(tensor);
        let number = if is_constant { self.subject.number(tensor) } else { None };
        match (&chain.literal, &chain.factors[..]) {
            (Some(literal), []) if number.is_some_and(|number| literal.is(number, ty)) => self.solve(),
            (None, [factor]) if is_constant && factor.power == 1.0 => self.attempt(|search| {
                search.goals.push((factor.term, tensor));
                search.solve()
            }),
            (Some(literal), _) => {
                let subject = self.subject;
                let span = literal.span.clone();
                self.refuse(span, || {
                    let layer = subject.graph.layer(tensor.layer).map(self_describe).unwrap_or_default();
                    match number {
                        Some(number) => format!("{layer} is {}; {}", printed(number), unlike(number, literal)),
                        None => format!("{layer} is not the number {}", printed(literal.value)),
                    }
                })
            }
            _ => false,
        }
    }

    fn type_of(&self, tensor: Output) -> ElementType {
        self.subject.graph.output(tensor).map_or(ElementType::Dynamic, |port| port.element_type())
    }

    fn match_form(&mut self, at: usize, chain: &Chain, form: &Form, tensor: Output) -> bool {
        let tensors: SmallVec<[(Output, f64); 4]> = form.tensors().collect();
        let Some(folded) = self.fold(chain.kind, form, tensor) else { return false };
        let constant = chain.factors.iter().position(|factor| self.is_constant_factor(factor));
        let (folded, takes) = match (constant, &chain.literal) {
            // The pattern's constant is the constant of the graph divided by the pattern's number.
            (Some(factor), literal) => {
                let Some(rest) = self.without(chain.kind, folded, literal.as_ref().map(|it| it.value), tensor) else {
                    return false;
                };
                let is_neutral = matches!(rest, Folded::Number(number) if number == chain.kind.neutral());
                let is_missing = is_neutral && form.constants().next().is_none();
                if is_missing && !chain.factors[factor].optional {
                    return false;
                }
                (rest, Some(factor).filter(|_| !is_neutral || !chain.factors[factor].optional))
            }
            (None, Some(literal)) => {
                let found = match folded {
                    Folded::Number(number) => Some(number),
                    _ => None,
                };
                if !found.is_some_and(|number| literal.is(number, self.type_of(tensor))) {
                    // Only a form with as many parts as the pattern counts as nearly matching.
                    let is_near = tensors.len() == chain.factors.len() && form.constants().next().is_some();
                    return is_near && self.refuse_number(tensor, found, literal);
                }
                (Folded::Number(chain.kind.neutral()), None)
            }
            (None, None) => (folded, None),
        };
        let folded = match (&chain.literal, single_constant(form)) {
            (None, Some(tensor)) if takes.is_some() => Folded::Tensor(tensor),
            _ => folded,
        };
        self.attempt(|search| {
            if let Some(factor) = takes
                && !search.bind_constant(&chain.factors[factor], chain.kind, &folded, tensor)
            {
                return false;
            }
            let left = match folded {
                Folded::Number(number) if number == chain.kind.neutral() => None,
                _ if takes.is_some() => None,
                folded => Some(folded),
            };
            search.bound.layers.extend(form.layers.iter().map(|&layer| (layer, at)));
            let factors: SmallVec<[&Factor; 4]> =
                chain.factors.iter().enumerate().filter(|(at, _)| constant != Some(*at)).map(|(_, it)| it).collect();
            search.assign(chain.kind, &factors, &tensors, 0, left.as_ref(), tensor)
        })
    }

    fn is_constant_factor(&self, factor: &Factor) -> bool {
        match self.side().terms[factor.term].kind {
            TermKind::Name { name, constant } => constant || self.name(name).constant,
            _ => false,
        }
    }

    /// Tries each part of the graph that is not `used` as the next factor.
    fn assign(
        &mut self,
        kind: ChainKind,
        factors: &[&Factor],
        tensors: &[(Output, f64)],
        used: u32,
        folded: Option<&Folded>,
        whole: Output,
    ) -> bool {
        let Some((factor, rest)) = factors.split_first() else {
            return used.count_ones() as usize == tensors.len() && folded.is_none() && self.solve();
        };
        for (at, &(tensor, power)) in tensors.iter().enumerate() {
            if used >> at & 1 == 1 || power != factor.power || !self.may_fit(factor.term, tensor) {
                continue;
            }
            let fits = self.attempt(|search| {
                search.goals.push((factor.term, tensor));
                search.assign(kind, rest, tensors, used | 1 << at, folded, whole)
            });
            if fits {
                return true;
            }
        }
        if let Some(constant) = folded {
            let fits = self.attempt(|search| {
                search.bind_constant(factor, kind, constant, whole)
                    && search.assign(kind, rest, tensors, used, None, whole)
            });
            if fits {
                return true;
            }
        }
        factor.optional && self.assign(kind, rest, tensors, used, folded, whole)
    }

    /// True if each required part of a chain can match a part of a tensor, judged by operations only. This is much
    /// cheaper than computing the forms.
    fn may_have(&self, chain: &Chain, tensor: Output) -> bool {
        let graph = self.subject.graph;
        let mut parts: SmallVec<[Output; MOST_PARTS]> = SmallVec::new();
        parts.push(tensor);
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            at += 1;
            let opens = graph.layer(part.layer).is_some_and(|layer| is_of(chain.kind, layer));
            if opens {
                let feeds = graph.feeds(part.layer);
                parts.extend(feeds.iter().flatten().map(|&(from, port)| from.id().output(port)));
            }
            if parts.len() > MOST_PARTS {
                return true;
            }
        }
        let required = chain.factors.iter().filter(|factor| !factor.optional);
        required.map(|factor| factor.term).all(|term| parts.iter().any(|&part| self.may_fit(term, part)))
    }

    pub(super) fn may_fit(&self, term: usize, tensor: Output) -> bool {
        let Some(layer) = self.subject.graph.layer(tensor.layer) else { return false };
        match &self.side().terms[term].kind {
            TermKind::Layer(term) if !term.optional => operation_of(layer) == term.operation,
            TermKind::Name { name, .. } => match (&self.bound.names[*name], &self.name(*name).definition) {
                (Some(Bound::Tensor(bound)), _) => *bound == tensor || self.subject.is_constant(tensor),
                (None, Some(definition)) => self.may_fit(definition.term, tensor),
                _ => true,
            },
            TermKind::Either(branches) => branches.iter().any(|branch| self.may_fit(branch.term, tensor)),
            TermKind::Chain(chain) => {
                let required = chain.factors.iter().filter(|factor| !factor.optional).count();
                let is_open = required <= 1 && chain.literal.is_none();
                is_open || is_of(chain.kind, layer) && (self.explains || self.may_have(chain, tensor))
            }
            _ => true,
        }
    }

    fn bind_constant(&mut self, factor: &Factor, kind: ChainKind, folded: &Folded, whole: Output) -> bool {
        let term = &self.side().terms[factor.term];
        let folded = if factor.power == 1.0 {
            folded.clone()
        } else {
            let Some(values) = self.raised(kind, folded, factor.power, whole) else { return false };
            Folded::Values(Arc::new(values))
        };
        let bound = match folded {
            Folded::Tensor(tensor) => Bound::Tensor(tensor),
            Folded::Values(values) => Bound::Values(values),
            Folded::Number(number) => match scalar(self.type_of(whole), number) {
                Some(values) => Bound::Values(Arc::new(values)),
                None => return false,
            },
        };
        let ty = match &bound {
            Bound::Tensor(tensor) => self.type_of(*tensor),
            Bound::Values(values) => values.element_type,
            Bound::Number(_) | Bound::List(_) => ElementType::Dynamic,
        };
        if !term.element_types.is_empty() && !term.element_types.contains(&ty) {
            return false;
        }
        match term.kind {
            TermKind::Name { name, .. } if self.name(name).definition.is_none() => self.binds(name, bound),
            TermKind::Any => true,
            _ => false,
        }
    }

    fn raised(&self, kind: ChainKind, folded: &Folded, power: f64, whole: Output) -> Option<Array> {
        let ty = self.type_of(whole);
        let array = match folded {
            Folded::Number(number) => return scalar(ty, kind.raise(*number, power)),
            Folded::Tensor(tensor) => values::values(self.subject.graph, self.subject.weights, *tensor)?,
            Folded::Values(values) => (**values).clone(),
        };
        raise(kind, array, power)
    }

    /// Combines the constants of a form: to a number if they do not change the shape. `None` if they are too large to
    /// compute.
    fn fold(&self, kind: ChainKind, form: &Form, whole: Output) -> Option<Folded> {
        let ty = self.type_of(whole);
        let mut number = Some(kind.neutral());
        for leaf in form.constants() {
            let value = match leaf.what {
                What::Number(value) => Some(value),
                What::Constant(tensor) if leaf.keeps_shape => {
                    self.subject.number(tensor).filter(|number| ty.is_float() || number.abs() <= MOST_EXACT)
                }
                _ => None,
            };
            number = number.zip(value).map(|(number, value)| kind.join(number, kind.raise(value, leaf.power)));
        }
        let mut constants = form.constants();
        match (number, constants.next(), constants.next()) {
            (_, Some(Leaf { what: What::Constant(tensor), power: 1.0, keeps_shape }), None)
                if !keeps_shape || number.is_none() =>
            {
                Some(Folded::Tensor(*tensor))
            }
            (Some(number), ..) => Some(Folded::Number(number)),
            _ => self.fold_values(kind, form, whole).map(|values| Folded::Values(Arc::new(values))),
        }
    }

    fn fold_values(&self, kind: ChainKind, form: &Form, whole: Output) -> Option<Array> {
        let ty = self.type_of(whole);
        let mut all: Option<Array> = None;
        for leaf in form.constants() {
            let array = match leaf.what {
                What::Number(value) => scalar(ty, kind.raise(value, leaf.power))?,
                What::Constant(tensor) => {
                    raise(kind, values::values(self.subject.graph, self.subject.weights, tensor)?, leaf.power)?
                }
                What::Tensor(_) => continue,
            };
            all = Some(match all {
                None => array,
                Some(all) => joined(self.subject.weights, kind, all, array)?,
            });
        }
        all
    }

    /// Divides the constants of a chain by a number of the pattern. In a sum, subtracts the number.
    fn without(&self, kind: ChainKind, folded: Folded, literal: Option<f64>, whole: Output) -> Option<Folded> {
        let Some(literal) = literal else { return Some(folded) };
        let inverse = kind.raise(literal, -1.0);
        Some(match folded {
            Folded::Number(number) => Folded::Number(kind.join(number, inverse)),
            other => {
                let values = self.raised(kind, &other, 1.0, whole)?;
                let inverse = Array::scalar(values.element_type, inverse);
                Folded::Values(Arc::new(joined(self.subject.weights, kind, values, inverse)?))
            }
        })
    }

    fn refuse_number(&mut self, tensor: Output, found: Option<f64>, literal: &super::term::Number) -> bool {
        let subject = self.subject;
        self.progress += 1;
        self.refuse(literal.span.clone(), || {
            let layer = subject.graph.layer(tensor.layer).map(self_describe).unwrap_or_default();
            let form = subject.describe(tensor, DEEPEST_DESCRIPTION);
            match found {
                Some(found) => format!("{layer} is {form}; {}", unlike(found, literal)),
                None => format!("{layer} is {form}, without the number {}", printed(literal.value)),
            }
        });
        self.progress -= 1;
        false
    }
}

fn is_of(kind: ChainKind, layer: &Layer) -> bool {
    kind.operations().contains(&operation_of(layer))
}

/// The only constant of a form, if it is an unchanged tensor.
fn single_constant(form: &Form) -> Option<Output> {
    let mut constants = form.constants();
    match (constants.next(), constants.next()) {
        (Some(Leaf { what: What::Constant(tensor), power: 1.0, .. }), None) => Some(*tensor),
        _ => None,
    }
}

fn unlike(found: f64, literal: &super::term::Number) -> String {
    format!("{} is not {}{}", printed(found), printed(literal.value), if literal.tolerant { "~" } else { "" })
}

fn printed(value: f64) -> String {
    number(ElementType::F32, crate::ops::values::array::round(ElementType::F32, value))
}

fn function_of(kind: ChainKind) -> Function {
    match kind {
        ChainKind::Product => Function::Multiply,
        ChainKind::Sum => Function::Add,
    }
}

/// Combines two constants; `None` if values overflow their type.
fn joined(weights: &Weights, kind: ChainKind, left: Array, right: Array) -> Option<Array> {
    let mut losses = Losses::default();
    let found = compute(weights, function_of(kind), &[left, right], &mut losses).ok()?;
    (!losses.leaves_range()).then_some(found)
}

/// Raises constants to a power; in a sum, multiplies them. `None` if values overflow their type.
fn raise(kind: ChainKind, array: Array, power: f64) -> Option<Array> {
    let raised = match kind {
        _ if power == 1.0 => return Some(array),
        ChainKind::Product if array.element_type.is_float() => array.map(|v| v, |v| kind.raise(v, power)),
        ChainKind::Product => return None,
        ChainKind::Sum => array.map(|v| v * power as i128, |v| v * power),
    };
    let mut losses = Losses::default();
    if raised.element_type.is_float() {
        for (before, after) in array.to_floats().into_iter().zip(raised.to_floats()) {
            losses.count(raised.element_type, &[before], after, false);
        }
    }
    (!losses.leaves_range()).then_some(raised)
}

/// `None` if the type cannot represent it.
fn scalar(ty: ElementType, number: f64) -> Option<Array> {
    let found = Array::scalar(ty, number);
    let mut losses = Losses::default();
    if ty.is_float() {
        losses.count(ty, &[number], found.to_floats()[0], false);
    }
    let is_held = ty.is_float() || found.saturated(ty)? == found && number.fract() == 0.0 && number.abs() <= MOST_EXACT;
    (is_held && !losses.leaves_range()).then_some(found)
}

impl Subject<'_> {
    /// Describes a tensor in the notation of rules: arithmetic, operations, and the names of its sources.
    fn describe(&self, tensor: Output, depth: usize) -> String {
        let Some(layer) = self.graph.layer(tensor.layer) else { return String::new() };
        if self.is_constant(tensor) {
            return self.number(tensor).map_or_else(|| on_one_line(layer.name()).into_owned(), printed);
        }
        let form = |kind| {
            let mut last = None;
            self.any_form(kind, tensor, MOST_DESCRIBED, |form| {
                last = Some(form.clone());
                false
            });
            Some((kind, last?))
        };
        match self.chain_kind(tensor).filter(|_| depth > 0).and_then(form) {
            Some((kind, form)) => self.describe_form(kind, &form, depth),
            None if layer.inputs().is_empty() || depth == 0 => on_one_line(layer.name()).into_owned(),
            None => self.describe_call(layer, operation_of(layer), depth),
        }
    }

    fn chain_kind(&self, tensor: Output) -> Option<ChainKind> {
        let operation = operation_of(self.graph.layer(tensor.layer)?);
        [ChainKind::Product, ChainKind::Sum].into_iter().find(|&kind| kind.operations().contains(&operation))
    }

    fn describe_call(&self, layer: &Layer, operation: &str, depth: usize) -> String {
        let feeds = self.graph.feeds(layer.id());
        let inputs = feeds.iter().flatten().map(|&(from, port)| self.describe(from.id().output(port), depth - 1));
        format!("{operation}({})", inputs.collect::<Vec<_>>().join(", "))
    }

    fn describe_form(&self, kind: ChainKind, form: &Form, depth: usize) -> String {
        let mut text = String::new();
        for leaf in &form.leaves {
            let mut power = leaf.power;
            let part = match leaf.what {
                What::Number(value) => printed(kind.raise(value, std::mem::replace(&mut power, 1.0))),
                What::Constant(tensor) => match self.number(tensor) {
                    Some(value) => printed(kind.raise(value, std::mem::replace(&mut power, 1.0))),
                    None => self.describe(tensor, depth - 1),
                },
                What::Tensor(tensor) => {
                    let part = self.describe(tensor, depth - 1);
                    let is_sum = kind == ChainKind::Product && self.chain_kind(tensor) == Some(ChainKind::Sum);
                    if is_sum && depth > 1 { format!("({part})") } else { part }
                }
            };
            let sign = match kind {
                ChainKind::Product if text.is_empty() => "",
                ChainKind::Product => " * ",
                ChainKind::Sum if text.is_empty() && power >= 0.0 => "",
                ChainKind::Sum if power < 0.0 => " - ",
                ChainKind::Sum => " + ",
            };
            text += sign;
            text += &part;
            if kind == ChainKind::Product && power != 1.0 {
                text += &format!("^{power}");
            }
        }
        text
    }
}
