//! Normal form of arithmetic in graphs: products and sums, independent of order, grouping and spelling.

use smallvec::{SmallVec, smallvec};
use typelift_promote::ElementType;

use super::subject::Subject;
use super::term::ChainKind;
use crate::model::graph::{Layer, LayerId, Output};

/// Maximum number of forms of one layer.
const MOST_FORMS: usize = 24;
const MOST_LEAVES: usize = 8;

/// Factor of a product with its exponent, or summand with its sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) what: What,
    pub(super) power: f64,
    /// True if the leaf does not change the shape of the other operands by broadcasting.
    pub(super) keeps_shape: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum What {
    Tensor(Output),
    Constant(Output),
    Number(f64),
}

/// Form of a tensor: a product or a sum of leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    pub(super) leaves: SmallVec<[Leaf; 4]>,
    /// The layers that compute it, the last one first.
    pub(super) layers: SmallVec<[LayerId; 4]>,
}

impl Form {
    pub(super) fn closed(tensor: Output) -> Self {
        let leaf = Leaf { what: What::Tensor(tensor), power: 1.0, keeps_shape: true };
        Self { leaves: smallvec![leaf], layers: SmallVec::new() }
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = (Output, f64)> + Clone {
        self.leaves.iter().filter_map(|leaf| match leaf.what {
            What::Tensor(tensor) => Some((tensor, leaf.power)),
            _ => None,
        })
    }

    pub(super) fn constants(&self) -> impl Iterator<Item = &Leaf> + Clone {
        self.leaves.iter().filter(|leaf| !matches!(leaf.what, What::Tensor(_)))
    }

    /// Equal leaves are combined: `x * x` becomes `x^2`. `x / x` is not 1, because `x` may be 0.
    fn push(&mut self, leaf: Leaf) {
        let is_whole = |leaf: &Leaf| leaf.power.fract() == 0.0;
        let is_tensor = matches!(leaf.what, What::Tensor(_)) && is_whole(&leaf);
        let joins = |other: &Leaf| is_whole(other) && other.power * leaf.power > 0.0;
        match self.leaves.iter_mut().find(|other| is_tensor && other.what == leaf.what && joins(other)) {
            Some(other) => other.power += leaf.power,
            None => self.leaves.push(leaf),
        }
    }
}

impl Subject<'_> {
    /// Calls a function with each form of a tensor until it accepts one, beginning with those of the fewest layers.
    /// The number of leaves that are not constant is limited.
    pub(super) fn any_form(
        &self,
        kind: ChainKind,
        tensor: Output,
        most: usize,
        mut accepts: impl FnMut(&Form) -> bool,
    ) -> bool {
        // Each form has the position of the first leaf to expand. Earlier leaves are expanded in other forms.
        let mut forms: SmallVec<[(Form, usize); 2]> = smallvec![(Form::closed(tensor), 0)];
        let mut at = 0;
        while at < forms.len() && forms.len() < MOST_FORMS {
            for place in forms[at].1..forms[at].0.leaves.len() {
                let form = &forms[at].0;
                let Some((layer, parts)) = self.open(kind, form.leaves[place], form.layers.is_empty()) else {
                    continue;
                };
                let mut opened = Form { leaves: SmallVec::new(), layers: form.layers.clone() };
                opened.layers.push(layer);
                let (before, after) = (&form.leaves[..place], &form.leaves[place + 1..]);
                before.iter().chain(&parts).chain(after).for_each(|leaf| opened.push(*leaf));
                if opened.leaves.len() > MOST_LEAVES || opened.tensors().count() > most + 2 {
                    continue;
                }
                if accepts(&opened) {
                    return true;
                }
                forms.push((opened, place));
            }
            at += 1;
        }
        false
    }

    /// The operands of a layer, if it has an operation of this kind and no other consumer.
    fn open(&self, kind: ChainKind, leaf: Leaf, is_root: bool) -> Option<(LayerId, SmallVec<[Leaf; 2]>)> {
        let What::Tensor(tensor) = leaf.what else { return None };
        let layer = self.graph.layer(tensor.layer)?;
        let row = layer.operation().filter(|row| kind.operations().contains(&row.name))?;
        if !is_root && self.graph.consumers(tensor).nth(1).is_some() {
            return None;
        }
        if layer.attribute("auto_broadcast").is_some_and(|mode| mode.eq_ignore_ascii_case("pdpd")) {
            return None;
        }
        let feeds = self.graph.feeds(layer.id());
        let input = |at: usize| feeds.get(at).copied().flatten().map(|(layer, port)| layer.id().output(port));
        let part = |at: usize, power: f64| self.part(layer, input(at)?, input(1 - at.min(1)), power);
        let is_whole = leaf.power.fract() == 0.0;
        let is_float = layer
            .outputs()
            .first()
            .is_none_or(|port| port.element_type().is_float() || port.element_type() == ElementType::Dynamic);
        let minus = Leaf { what: What::Number(-1.0), power: leaf.power, keeps_shape: true };
        let power = leaf.power;
        let parts: SmallVec<[Leaf; 2]> = match (kind, row.name) {
            (ChainKind::Product, "Multiply") if is_whole => smallvec![part(0, power)?, part(1, power)?],
            (ChainKind::Product, "Divide")
                if is_float && (is_whole || self.is_constant(input(0)?) && self.number(input(0)?) == Some(1.0)) =>
            {
                smallvec![part(0, power)?, part(1, -power)?]
            }
            (ChainKind::Product, "Power") if is_float => {
                let exponent = self.number(input(1)?).filter(|_| self.keeps(layer, input(1), input(0)))?;
                smallvec![part(0, composed(exponent, power)?)?]
            }
            (ChainKind::Product, "Sqrt") if is_float => {
                smallvec![self.part(layer, input(0)?, None, composed(0.5, power)?)?]
            }
            (ChainKind::Product, _) if is_whole && row.name == "Negative" => {
                smallvec![self.part(layer, input(0)?, None, power)?, minus]
            }
            (ChainKind::Sum, "Add") => smallvec![part(0, power)?, part(1, power)?],
            (ChainKind::Sum, "Subtract") => smallvec![part(0, power)?, part(1, -power)?],
            (ChainKind::Sum, "Negative") => smallvec![self.part(layer, input(0)?, None, -power)?],
            (ChainKind::Sum, "Multiply") => {
                let is_minus = |at: usize| {
                    input(at).and_then(|tensor| self.number(tensor)) == Some(-1.0)
                        && self.keeps(layer, input(at), input(1 - at))
                };
                let other = if is_minus(1) {
                    0
                } else if is_minus(0) {
                    1
                } else {
                    return None;
                };
                smallvec![part(other, -power)?]
            }
            _ => return None,
        };
        Some((layer.id(), parts))
    }

    fn part(&self, layer: &Layer, tensor: Output, other: Option<Output>, power: f64) -> Option<Leaf> {
        let (what, keeps_shape) = if self.is_constant(tensor) {
            (What::Constant(tensor), self.keeps(layer, Some(tensor), other))
        } else {
            (What::Tensor(tensor), true)
        };
        Some(Leaf { what, power, keeps_shape })
    }

    fn keeps(&self, layer: &Layer, constant: Option<Output>, other: Option<Output>) -> bool {
        let shape = |tensor: Option<Output>| self.graph.output(tensor?).map(|port| port.shape());
        let (Some(constant), Some(other), true) = (shape(constant), shape(other), self.is_inferred) else {
            return true;
        };
        let Some(result) = layer.outputs().first().map(|port| port.shape()) else { return true };
        let fits = match (constant.dims(), other.dims()) {
            (Some(constant), Some(other)) if constant.len() <= other.len() => {
                let mut pairs =
                    constant.iter().rev().zip(other.iter().rev()).map(|(dim, own)| (dim.value(), own.value()));
                pairs.all(|(dim, own)| dim == Some(1) || dim.is_some() && dim == own)
            }
            _ => false,
        };
        fits || constant.rank() == Some(0) || result.rank().is_none()
    }
}

/// The exponent of `(x^inner)^outer`, if it is a power of `x` for every `x`. `(x^0.5)^2` is not `x` for negative
/// values, and `(x^2)^0.5` is `|x|`.
fn composed(inner: f64, outer: f64) -> Option<f64> {
    let is_whole = |power: f64| power.fract() == 0.0;
    let power = inner * outer;
    let keeps_domain = match (is_whole(inner), is_whole(outer)) {
        (true, true) => true,
        (true, false) => inner % 2.0 != 0.0 && !is_whole(power),
        (false, _) => !is_whole(power),
    };
    keeps_domain.then_some(power)
}
