//! Operations whose inputs must fit each other.

use super::Rule;
use crate::ops::LayerKind;
use crate::symbols::walk::{Dims, Length};
use crate::symbols::{Noticed, Reads};

pub(super) fn elementwise(rule: &mut Rule) -> Option<()> {
    let (a, b) = (rule.dims(0)?, rule.dims(1)?);
    let mode = match rule.operation.kind {
        LayerKind::ConvertPromoteTypes => {
            rule.put(a)?;
            return rule.put(b);
        }
        _ => rule.attributes.word("auto_broadcast").ok()?,
    };
    let dims = combined(rule, mode, &a, &b, 1)?;
    rule.put(dims)
}

/// Combines the dimensions of two operands by `auto_broadcast`.
fn combined(rule: &mut Rule, mode: &str, a: &[Length], b: &[Length], input: usize) -> Option<Dims> {
    match mode {
        "numpy" => Some(rule.broadcast_dims(a, b, input)),
        "pdpd" => {
            let axis = rule.attributes.int("auto_broadcast.auto_broadcast_axis").ok()?;
            let start = if axis == -1 { a.len().checked_sub(b.len())? } else { usize::try_from(axis).ok()? };
            let mut dims = Dims::from_slice(a);
            for (at, &other) in b.iter().enumerate() {
                let slot = *dims.get(start + at)?;
                let (Some(own), Some(other)) = (slot, other) else { continue };
                let one = rule.number(1);
                let tests = [rule.arena().equal(own, other)?, rule.arena().equal(other, one)?];
                let test = rule.arena().any(&tests);
                rule.demand(test, Noticed::Load, input);
            }
            dims.truncate(a.len());
            Some(dims)
        }
        _ => {
            let pairs = a.iter().zip(b);
            Some(pairs.map(|(&a, &b)| rule.same(a, b, Noticed::Load, input)).collect())
        }
    }
}

pub(super) fn select(rule: &mut Rule) -> Option<()> {
    let mode = rule.attributes.word("auto_broadcast").ok()?;
    let (condition, then, otherwise) = (rule.dims(0)?, rule.dims(1)?, rule.dims(2)?);
    let dims = if mode == "pdpd" {
        let dims = combined(rule, mode, &then, &otherwise, 2)?;
        combined(rule, mode, &dims, &condition, 0)?
    } else {
        let dims = combined(rule, mode, &otherwise, &then, 1)?;
        combined(rule, mode, &dims, &condition, 0)?
    };
    rule.put(dims)
}

pub(super) fn prelu(rule: &mut Rule) -> Option<()> {
    let (dims, slopes) = (rule.dims(0)?, rule.dims(1)?);
    if let ([slopes], Some(channels)) = (&slopes[..], dims.get(1).or(dims.first())) {
        let test = slopes.zip(*channels).and_then(|(slopes, channels)| {
            let one = rule.number(1);
            let tests = [rule.arena().equal(slopes, channels)?, rule.arena().equal(slopes, one)?];
            rule.arena().any(&tests)
        });
        rule.demand(test, Noticed::Run, 1);
    }
    rule.put(dims)
}

pub(super) fn matmul(rule: &mut Rule) -> Option<()> {
    let (mut a, mut b) = (rule.dims(0)?, rule.dims(1)?);
    let (transpose_a, transpose_b) =
        (rule.attributes.bool("transpose_a").ok()?, rule.attributes.bool("transpose_b").ok()?);
    let (is_row, is_column) = (a.len() == 1, b.len() == 1);
    let one = Some(rule.number(1));
    match (is_row, transpose_a && a.len() > 1) {
        (true, _) => a.insert(0, one),
        (false, true) => {
            let last = a.len() - 1;
            a.swap(last - 1, last);
        }
        _ => {}
    }
    match (is_column, transpose_b && b.len() > 1) {
        (true, _) => b.push(one),
        (false, true) => {
            let last = b.len() - 1;
            b.swap(last - 1, last);
        }
        _ => {}
    }
    let (rows, inner) = (a[a.len() - 2], a[a.len() - 1]);
    let (inner_b, columns) = (b[b.len() - 2], b[b.len() - 1]);
    // The CPU plugin multiplies by weights without a check.
    let is_weighted = rule.stored(0).is_some() || rule.stored(1).is_some();
    let left = is_weighted.then_some((Reads::ForeignMemory, None));
    rule.same_with(inner, inner_b, Noticed::Load, 1, left);
    let mut dims = rule.broadcast_dims(&a[..a.len() - 2], &b[..b.len() - 2], 1);
    dims.extend((!is_row).then_some(rows));
    dims.extend((!is_column).then_some(columns));
    rule.put(dims)
}

pub(super) fn einsum(rule: &mut Rule) -> Option<()> {
    let equation = rule.attributes.text("equation").ok()?.replace(' ', "");
    let (left, right) = equation.split_once("->")?;
    if equation.contains('.') {
        return None;
    }
    let mut labels: Vec<(char, Length)> = Vec::new();
    for (input, letters) in left.split(',').enumerate() {
        let dims = rule.dims(input)?;
        for (label, &dim) in letters.chars().zip(&dims) {
            match labels.iter().position(|(known, _)| *known == label) {
                Some(at) => labels[at].1 = rule.broadcast_length(labels[at].1, dim, input),
                None => labels.push((label, dim)),
            }
        }
    }
    let dims = right.chars().map(|label| labels.iter().find(|(known, _)| *known == label).and_then(|(_, dim)| *dim));
    rule.put(dims.collect())
}

pub(super) fn concat(rule: &mut Rule) -> Option<()> {
    let mut dims = (0..rule.inputs.len()).find_map(|input| rule.dims(input))?;
    let axis = rule.axis(rule.attributes.int("axis").ok()?, dims.len())?;
    let mut parts = Vec::new();
    let known: Vec<(usize, Dims)> =
        (0..rule.inputs.len()).filter_map(|input| Some((input, rule.dims(input)?))).collect();
    let is_whole = known.len() == rule.inputs.len();
    for (input, next) in known {
        for (at, &dim) in next.iter().enumerate() {
            if at == axis {
                parts.push(dim);
            } else if let Some(slot) = dims.get(at).copied() {
                dims[at] = rule.same(slot, dim, Noticed::Load, input);
            }
        }
    }
    dims[axis] = if is_whole { rule.sum(parts) } else { None };
    rule.put(dims)
}

pub(super) fn attention(rule: &mut Rule) -> Option<()> {
    let (query, key, value) = (rule.dims(0)?, rule.dims(1)?, rule.dims(2)?);
    let split = |dims: &Dims| Some((Dims::from_slice(dims.get(..dims.len().checked_sub(2)?)?), dims.len()));
    let ((batch, rank), (key_batch, key_rank), (value_batch, value_rank)) =
        (split(&query)?, split(&key)?, split(&value)?);
    let (length, depth) = (query[rank - 2], query[rank - 1]);
    rule.same(depth, key[key_rank - 1], Noticed::Load, 1);
    let keys = rule.same(key[key_rank - 2], value[value_rank - 2], Noticed::Load, 2);
    let mut dims = rule.broadcast_dims(&batch, &key_batch, 1);
    dims = rule.broadcast_dims(&dims, &value_batch, 2);
    if let Some(mask) = rule.dims(3).filter(|mask| !mask.is_empty()) {
        let mut scores = dims.clone();
        scores.extend([length, keys]);
        let scores = rule.broadcast_dims(&scores, &mask, 3);
        let _ = scores;
    }
    dims.push(length);
    dims.push(value[value_rank - 1]);
    rule.put(dims)
}
