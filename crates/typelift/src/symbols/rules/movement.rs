//! Operations that move elements: reshapes, slices, gathers, scatters.

use super::Rule;
use crate::symbols::expression::Expr;
use crate::symbols::walk::{Dims, Length};
use crate::symbols::{Noticed, Reads};

pub(super) fn reshape(rule: &mut Rule) -> Option<()> {
    let data = rule.dims(0);
    let special_zero = rule.attributes.bool("special_zero").ok()?;
    let pattern = rule.values(1)?;
    let mut rest = None;
    let mut copies = false;
    let mut dims = Dims::new();
    for (position, &value) in pattern.iter().enumerate() {
        dims.push(match value.map(|value| rule.walk.arena.value(value)) {
            Some(Some(-1)) => {
                rest = Some(position);
                None
            }
            Some(Some(0)) if special_zero => {
                copies = true;
                data.as_ref().and_then(|data| data.get(position).copied().flatten())
            }
            Some(_) => value,
            None => None,
        });
    }
    let Some(data) = data else { return rule.put(dims) };
    let others = dims.iter().enumerate().filter(|(position, _)| rest != Some(*position)).map(|(_, dim)| *dim);
    let others: Vec<Length> = others.collect();
    let (total, given) = cancelled(rule, &data, &others);
    match rest {
        Some(rest) => {
            if let (Some(total), Some(given)) = (total, given) {
                dims[rest] = rule.divided(total, given, 1);
                rule.walk.note_swallow(rule.layer, &data, &dims, rest);
            }
        }
        None => {
            rule.same(total, given, if copies { Noticed::Run } else { Noticed::Load }, 1);
            solve_unknown(rule, &data, &mut dims);
        }
    }
    rule.put(dims)
}

/// The products of both shapes of a Reshape without the lengths that both have.
fn cancelled(rule: &mut Rule, data: &[Length], pattern: &[Length]) -> (Length, Length) {
    let mut left: Vec<Length> = pattern.to_vec();
    let mut kept = Vec::new();
    for &dim in data {
        let is_same =
            |other: &Length| other.is_some() && *other == dim && dim.is_some_and(|it| rule.walk.arena.range(it).0 > 0);
        match left.iter().position(is_same) {
            Some(at) => drop(left.swap_remove(at)),
            None => kept.push(dim),
        }
    }
    (rule.product(kept), rule.product(left))
}

/// Finds the only unknown length of a pattern from the number of elements.
fn solve_unknown(rule: &mut Rule, data: &[Length], dims: &mut Dims) {
    let mut unknown = dims.iter().enumerate().filter(|(_, dim)| dim.is_none()).map(|(at, _)| at);
    if let (Some(at), None) = (unknown.next(), unknown.next()) {
        let others: Vec<Length> = dims.iter().copied().filter(Option::is_some).collect();
        let (total, given) = cancelled(rule, data, &others);
        dims[at] = total.zip(given).and_then(|(total, given)| rule.arena().exact_quotient(total, given));
    }
}

pub(super) fn squeeze(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let axes = if rule.inputs.len() > 1 { rule.ints(1)? } else { Vec::new() };
    if axes.is_empty() {
        let numbers = dims.iter().map(|dim| rule.walk.arena.value((*dim)?)).collect::<Option<Vec<_>>>()?;
        return rule.put(dims.iter().zip(numbers).filter(|(_, number)| *number != 1).map(|(dim, _)| *dim).collect());
    }
    let mut chosen = vec![false; dims.len()];
    for axis in axes {
        chosen[rule.axis(axis, dims.len())?] = true;
    }
    let mut kept = Dims::new();
    for (&dim, chosen) in dims.iter().zip(chosen) {
        if !chosen {
            kept.push(dim);
            continue;
        }
        if let Some(dim) = dim {
            if rule.walk.arena.value(dim).is_some_and(|number| number != 1) {
                kept.push(Some(dim));
                continue;
            }
            let one = rule.number(1);
            rule.same(Some(dim), Some(one), Noticed::Run, 0);
        }
    }
    rule.put(kept)
}

pub(super) fn unsqueeze(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let axes = rule.ints(1)?;
    let rank = dims.len() + axes.len();
    let mut places: Vec<usize> = axes.into_iter().map(|axis| rule.axis(axis, rank)).collect::<Option<_>>()?;
    places.sort_unstable();
    let one = rule.number(1);
    let mut dims = dims;
    for place in places {
        if place > dims.len() {
            return None;
        }
        dims.insert(place, Some(one));
    }
    rule.put(dims)
}

pub(super) fn transpose(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let order = rule.ints(1)?;
    if order.is_empty() {
        return rule.put(dims.into_iter().rev().collect());
    }
    let moved = order.into_iter().map(|axis| dims.get(usize::try_from(axis).ok()?).copied());
    let moved = moved.collect::<Option<Dims>>()?;
    rule.put(moved)
}

pub(super) fn split(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let axis = rule.ints(1)?.first().copied()?;
    let axis = rule.axis(axis, dims.len())?;
    let count = rule.attributes.int("num_splits").ok()?;
    let parts = rule.number(count);
    if let Some(dim) = dims[axis] {
        dims[axis] = rule.divided(dim, parts, 0);
    }
    for _ in rule.layer.outputs() {
        rule.put(dims.clone())?;
    }
    Some(())
}

pub(super) fn variadic_split(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let axis = rule.ints(1)?.first().copied()?;
    let axis = rule.axis(axis, dims.len())?;
    let mut lengths = rule.values(2)?;
    let rest = lengths.iter().position(|length| length.is_some_and(|length| rule.walk.arena.value(length) == Some(-1)));
    let others: Vec<Length> =
        lengths.iter().enumerate().filter(|(at, _)| rest != Some(*at)).map(|(_, length)| *length).collect();
    let sum = rule.sum(others);
    if let (Some(sum), Some(total)) = (sum, dims[axis]) {
        match rest {
            Some(rest) => {
                // OpenVINO adds the -1 to the other lengths when it compares them with the axis.
                let (less, zero) = (rule.arena().plus(sum, -1)?, rule.number(0));
                let test = rule.arena().at_least(total, less);
                rule.demand(test, Noticed::Run, 2);
                let left = rule.arena().sub(total, sum)?;
                lengths[rest] = rule.arena().max(left, zero);
            }
            None => drop(rule.same(Some(total), Some(sum), Noticed::Load, 2)),
        }
    } else if let Some(rest) = rest {
        lengths[rest] = None;
    }
    for length in lengths {
        let mut part = dims.clone();
        part[axis] = length;
        rule.put(part)?;
    }
    Some(())
}

/// A negative one counts from the end.
fn place(rule: &mut Rule, index: Expr, length: Expr, (least, most): (Expr, Expr)) -> Length {
    let (low, high) = rule.walk.arena.range(index);
    let zero = rule.number(0);
    if low >= 0 {
        if low >= i64::from(i32::MAX) {
            return Some(most);
        }
        rule.arena().min(index, most)
    } else if high < 0 {
        if high <= -i64::from(i32::MAX) {
            return Some(least);
        }
        let index = rule.arena().add(length, index)?;
        rule.arena().max(index, least)
    } else {
        // The sign depends on lengths.
        let from_end = rule.arena().add(length, index)?;
        let from_end = rule.arena().max(from_end, least)?;
        let from_start = rule.arena().min(index, most)?;
        let is_positive = rule.arena().at_least(index, zero)?;
        rule.arena().choose(is_positive, from_start, from_end)
    }
}

fn sliced(rule: &mut Rule, length: Expr, start: Expr, stop: Expr, step: i64) -> Length {
    let zero = rule.number(0);
    let (last, before) = (rule.arena().plus(length, -1)?, rule.number(-1));
    let start = place(rule, start, length, (zero, if step < 0 { last } else { length }))?;
    let stop = place(rule, stop, length, (if step < 0 { before } else { zero }, length))?;
    let (from, to) = if step < 0 { (stop, start) } else { (start, stop) };
    let span = rule.arena().sub(to, from)?;
    let span = rule.arena().max(span, zero)?;
    let step = rule.number(step.checked_abs()?);
    rule.arena().div_up(span, step)
}

pub(super) fn slice(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let (starts, stops, steps) = (rule.values(1), rule.values(2), rule.ints(3));
    let count = rule.dim(1, 0).and_then(|count| rule.walk.arena.value(count))?;
    let axes = if rule.inputs.len() > 4 { rule.ints(4)? } else { (0..count).collect() };
    for (at, axis) in axes.into_iter().enumerate() {
        let axis = rule.axis(axis, dims.len())?;
        let [start, stop] = [&starts, &stops].map(|list| list.as_ref()?.get(at).copied().flatten());
        let step = steps.as_ref().and_then(|steps| steps.get(at).copied());
        dims[axis] = match (dims[axis], start, stop, step) {
            (Some(dim), Some(start), Some(stop), Some(step)) => sliced(rule, dim, start, stop, step),
            _ => None,
        };
    }
    rule.put(dims)
}

pub(super) fn strided_slice(rule: &mut Rule) -> Option<()> {
    let data = rule.dims(0)?;
    let count = rule.dim(1, 0).and_then(|count| rule.walk.arena.value(count))?;
    let count = usize::try_from(count).ok()?;
    let (begin, end) = (rule.values(1), rule.values(2));
    let strides = if rule.inputs.len() > 3 { rule.ints(3)? } else { vec![1; count] };
    let masks = ["begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask"];
    let [begin_mask, end_mask, new_axis, shrink, ellipsis] = masks.map(|name| rule.attributes.ints(name).ok());
    let (begin_mask, end_mask, new_axis, shrink, ellipsis) = (begin_mask?, end_mask?, new_axis?, shrink?, ellipsis?);
    let set = |mask: &[i64], at: usize| mask.get(at) == Some(&1);
    let consumed = (0..count).filter(|&at| !set(&new_axis, at) && !set(&ellipsis, at)).count();
    let one = rule.number(1);
    let mut dims = Dims::new();
    let mut axis = 0;
    for at in 0..count {
        if set(&ellipsis, at) {
            let skipped = data.len().checked_sub(consumed)?;
            dims.extend(data.iter().skip(axis).take(skipped).copied());
            axis += skipped;
        } else if set(&new_axis, at) {
            dims.push(Some(one));
        } else {
            let dim = *data.get(axis)?;
            axis += 1;
            if set(&shrink, at) {
                continue;
            }
            let [start, stop] = [&begin, &end].map(|list| list.as_ref()?.get(at).copied().flatten());
            let step = strides.get(at).copied()?;
            let far = rule.number(i64::MAX);
            let near = rule.number(i64::MIN + 1);
            let first = if step < 0 { far } else { rule.number(0) };
            let start = if set(&begin_mask, at) { Some(first) } else { start };
            let last = if step < 0 { near } else { far };
            let stop = if set(&end_mask, at) { Some(last) } else { stop };
            dims.push(match (dim, start, stop) {
                (Some(dim), Some(start), Some(stop)) => sliced(rule, dim, start, stop, step),
                _ => None,
            });
        }
    }
    dims.extend(data.iter().skip(axis).copied());
    rule.put(dims)
}

pub(super) fn pad(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let (begin, end) = (rule.values(1)?, rule.values(2)?);
    let mode = rule.attributes.word("pad_mode").ok()?;
    for (axis, dim) in dims.iter_mut().enumerate() {
        let (Some(length), Some(Some(begin)), Some(Some(end))) = (*dim, begin.get(axis), end.get(axis)) else {
            *dim = None;
            continue;
        };
        let (before, after) = (rule.walk.arena.range(*begin), rule.walk.arena.range(*end));
        let pads = rule.arena().add(*begin, *end)?;
        let padded = rule.arena().add(length, pads);
        if before.0 < 0 || after.0 < 0 {
            let zero = rule.number(0);
            let test = padded.and_then(|padded| rule.arena().at_least(padded, zero));
            rule.demand(test, Noticed::Run, 1);
        }
        let longest = rule.arena().max(*begin, *end)?;
        let least = match mode {
            "reflect" if rule.walk.arena.range(longest).1 > 0 => rule.arena().plus(longest, 1),
            "symmetric" => Some(longest),
            _ => None,
        };
        let test = least.and_then(|least| rule.arena().at_least(length, least));
        rule.demand(test, Noticed::Load, 1);
        *dim = padded;
    }
    rule.put(dims)
}

pub(super) fn gather(rule: &mut Rule) -> Option<()> {
    let (data, indices) = (rule.dims(0)?, rule.dims(1)?);
    let axis = rule.ints(2)?.first().copied()?;
    let axis = rule.axis(axis, data.len())?;
    let batch = match rule.operation.attribute("batch_dims") {
        Some(_) => rule.attributes.int("batch_dims").ok()?,
        None => 0,
    };
    let batch = usize::try_from(if batch < 0 { batch + indices.len() as i64 } else { batch }).ok()?;
    let mut dims = Dims::new();
    for at in 0..batch.min(data.len()).min(indices.len()) {
        let dim = rule.same(data[at], indices[at], Noticed::Load, 1);
        dims.push(dim);
    }
    if let Some(length) = data[axis] {
        let last = rule.inputs.get(1).and_then(|input| input.last).or_else(|| largest(rule, 1));
        let needed = last.and_then(|last| rule.arena().plus(last, 1));
        let test = needed.and_then(|needed| rule.arena().at_least(length, needed));
        let table = rule.table();
        rule.demand_with(test, Noticed::Run, 1, Some((Reads::Zeros, table)));
    }
    dims.extend(data.get(batch..axis)?.iter().copied());
    dims.extend(indices.get(batch..)?.iter().copied());
    dims.extend(data.get(axis + 1..)?.iter().copied());
    rule.put(dims)
}

/// Negative ones count from the end.
fn largest(rule: &mut Rule, input: usize) -> Length {
    if rule.inputs.get(input).is_some_and(|input| input.value.is_some()) {
        let values = rule.values(input)?;
        let mut values = values.into_iter();
        let first = values.next()??;
        return values.try_fold(first, |max, next| rule.arena().max(max, next?));
    }
    let output = rule.output(input)?;
    let count = rule.graph.output(output)?.shape().element_count()?;
    if count > 1 << 14 {
        return None;
    }
    let exact = rule.walk.exact(rule.graph, output)?;
    let integers = exact.to_integers();
    let most = integers.iter().map(|&index| if index < 0 { -index - 1 } else { index }).max()?;
    Some(rule.number(most))
}

pub(super) fn gather_elements(rule: &mut Rule) -> Option<()> {
    let (data, indices) = (rule.dims(0)?, rule.dims(1)?);
    let axis = rule.axis(rule.attributes.int("axis").ok()?, data.len())?;
    let mut dims = Dims::new();
    for at in 0..data.len().min(indices.len()) {
        let dim = if at == axis { indices[at] } else { rule.same(data[at], indices[at], Noticed::Load, 1) };
        dims.push(dim);
    }
    if let (Some(length), Some(last)) = (data[axis], rule.inputs.get(1).and_then(|input| input.last)) {
        let needed = rule.arena().plus(last, 1);
        let test = needed.and_then(|needed| rule.arena().at_least(length, needed));
        rule.demand(test, Noticed::Run, 1);
    }
    rule.put(dims)
}

pub(super) fn gather_nd(rule: &mut Rule) -> Option<()> {
    let (data, indices) = (rule.dims(0)?, rule.dims(1)?);
    let batch = usize::try_from(rule.attributes.int("batch_dims").ok()?).ok()?;
    let depth = rule.walk.arena.value((*indices.last()?)?)?;
    let depth = usize::try_from(depth).ok()?;
    let mut batches = Dims::new();
    for at in 0..batch {
        let dim = rule.same(*data.get(at)?, *indices.get(at)?, Noticed::Load, 1);
        batches.push(dim);
    }
    let last = rule.inputs.get(1).and_then(|input| input.last);
    if let (Some(last), 1, Some(length)) = (last, depth, data.get(batch).copied().flatten()) {
        let needed = rule.arena().plus(last, 1);
        let test = needed.and_then(|needed| rule.arena().at_least(length, needed));
        let table = rule.table();
        rule.demand_with(test, Noticed::Run, 1, Some((Reads::ForeignMemory, table)));
    }
    let mut dims = Dims::new();
    if batch > 1 && rule.operation.revision == 5 {
        let joined = rule.product(batches);
        dims.push(joined);
    } else {
        dims.extend(batches);
    }
    dims.extend(indices.get(batch..indices.len() - 1)?.iter().copied());
    dims.extend(data.get(batch + depth..)?.iter().copied());
    rule.put(dims)
}

pub(super) fn scatter_nd(rule: &mut Rule) -> Option<()> {
    let (data, indices, updates) = (rule.dims(0)?, rule.dims(1)?, rule.dims(2)?);
    let depth = (*indices.last()?).and_then(|depth| rule.walk.arena.value(depth));
    if let Some(depth) = depth.and_then(|depth| usize::try_from(depth).ok()) {
        let mut wanted = Dims::from_slice(&indices[..indices.len() - 1]);
        wanted.extend(data.get(depth..).unwrap_or_default().iter().copied());
        same_updates(rule, &wanted, &updates);
    }
    rule.put(data)
}

fn same_updates(rule: &mut Rule, wanted: &[Length], updates: &[Length]) {
    if wanted.len() == updates.len() {
        for (&wanted, &update) in wanted.iter().zip(updates) {
            rule.same(wanted, update, Noticed::Load, 2);
        }
    }
}

pub(super) fn scatter_elements(rule: &mut Rule) -> Option<()> {
    let (data, indices, updates) = (rule.dims(0)?, rule.dims(1)?, rule.dims(2)?);
    for (&index, &update) in indices.iter().zip(&updates) {
        rule.same(index, update, Noticed::Load, 2);
    }
    rule.put(data)
}

pub(super) fn scatter(rule: &mut Rule) -> Option<()> {
    let (data, indices, updates) = (rule.dims(0)?, rule.dims(1)?, rule.dims(2)?);
    let axis = rule.ints(3)?.first().copied()?;
    let axis = rule.axis(axis, data.len())?;
    let wanted: Dims = data[..axis].iter().chain(&indices).chain(&data[axis + 1..]).copied().collect();
    same_updates(rule, &wanted, &updates);
    rule.put(data)
}

pub(super) fn broadcast(rule: &mut Rule) -> Option<()> {
    let target: Dims = match rule.values(1) {
        Some(values) => values.into_iter().collect(),
        None => {
            let count = rule.dim(1, 0).and_then(|count| rule.walk.arena.value(count))?;
            std::iter::repeat_n(None, usize::try_from(count).ok()?).collect()
        }
    };
    let mode = rule.attributes.word("mode").ok()?;
    let Some(data) = rule.dims(0) else { return if mode == "bidirectional" { None } else { rule.put(target) } };
    match mode {
        "bidirectional" => {
            let dims = rule.broadcast_dims(&data, &target, 1);
            rule.put(dims)
        }
        "numpy" | "none" if rule.inputs.len() < 3 => {
            let start = target.len().checked_sub(data.len())?;
            for (&dim, &target) in data.iter().zip(&target[start..]) {
                stretches(rule, dim, target);
            }
            rule.put(target)
        }
        "explicit" | "none" => {
            for (axis, &dim) in rule.ints(2)?.into_iter().zip(&data) {
                let target = *target.get(usize::try_from(axis).ok()?)?;
                stretches(rule, dim, target);
            }
            rule.put(target)
        }
        _ => None,
    }
}

/// Demands that a length is that of the target, or 1.
fn stretches(rule: &mut Rule, dim: Length, target: Length) {
    let (Some(dim), Some(target)) = (dim, target) else { return };
    let one = rule.number(1);
    let tests = (rule.arena().equal(dim, target), rule.arena().equal(dim, one));
    if let (Some(equal), Some(is_one)) = tests {
        let test = rule.arena().any(&[equal, is_one]);
        rule.demand(test, Noticed::Load, 1);
    }
}

pub(super) fn tile(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let mut repeats: Vec<Length> = rule.values(1)?;
    let one = rule.number(1);
    while dims.len() < repeats.len() {
        dims.insert(0, Some(one));
    }
    while repeats.len() < dims.len() {
        repeats.insert(0, Some(one));
    }
    let pairs: Vec<_> = dims.into_iter().zip(repeats).collect();
    let dims = pairs.into_iter().map(|(dim, count)| rule.product([dim, count])).collect();
    rule.put(dims)
}

pub(super) fn range(rule: &mut Rule) -> Option<()> {
    let (start, stop, step) = (rule.single(0), rule.single(1), rule.single(2));
    let length = (|| {
        let (start, stop, step) = (start?, stop?, step?);
        let zero = rule.number(0);
        let span = rule.arena().sub(stop, start)?;
        let (span, step) = match rule.walk.arena.value(step)? {
            1.. => (span, step),
            _ => (rule.arena().scale(span, -1)?, rule.arena().scale(step, -1)?),
        };
        let count = rule.arena().div_up(span, step)?;
        rule.arena().max(count, zero)
    })();
    rule.put(Dims::from_slice(&[length]))
}

pub(super) fn top_k(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let axis = rule.axis(rule.attributes.int("axis").ok()?, dims.len())?;
    let count = rule.single(1);
    if let (Some(length), Some(count)) = (dims[axis], count) {
        let test = rule.arena().at_least(length, count);
        rule.demand(test, Noticed::Run, 1);
    }
    let whole = dims[axis].filter(|_| count == dims[axis]);
    rule.last_of_second = whole.and_then(|length| rule.arena().plus(length, -1));
    dims[axis] = count;
    rule.put(dims.clone())?;
    rule.put(dims)
}

pub(super) fn one_hot(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let axis = rule.axis(rule.attributes.int("axis").ok()?, dims.len() + 1)?;
    let depth = rule.single(1);
    dims.insert(axis, depth);
    rule.put(dims)
}

pub(super) fn depth_and_space(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let block = rule.attributes.int("block_size").ok()?;
    let spatial = u32::try_from(dims.len().checked_sub(2)?).ok()?;
    let to_depth = rule.operation.name == "SpaceToDepth";
    let (side, all) = (rule.number(block), rule.number(block.checked_pow(spatial)?));
    for (axis, dim) in dims.iter_mut().enumerate().skip(1) {
        let Some(length) = *dim else { continue };
        let by = if axis == 1 { all } else { side };
        *dim = if (axis == 1) == to_depth { rule.arena().mul(length, by) } else { rule.divided(length, by, 0) };
    }
    rule.put(dims)
}

pub(super) fn batch_and_space(rule: &mut Rule) -> Option<()> {
    let mut dims = rule.dims(0)?;
    let (blocks, begin, end) = (rule.ints(1)?, rule.ints(2)?, rule.ints(3)?);
    let all = blocks.iter().try_fold(1_i64, |product, &block| product.checked_mul(block))?;
    let all = rule.number(all);
    let to_batch = rule.operation.name == "SpaceToBatch";
    for (axis, dim) in dims.iter_mut().enumerate() {
        let Some(length) = *dim else { continue };
        let block = rule.number(*blocks.get(axis)?);
        let pads = begin.get(axis)? + end.get(axis)?;
        *dim = match (axis, to_batch) {
            (0, true) => rule.arena().mul(length, all),
            (0, false) => rule.divided(length, all, 1),
            (_, true) => {
                let padded = rule.arena().plus(length, pads)?;
                rule.divided(padded, block, 1)
            }
            (_, false) => {
                let whole = rule.arena().mul(length, block)?;
                let cropped = rule.arena().plus(whole, -pads)?;
                let zero = rule.number(0);
                let test = rule.arena().at_least(cropped, zero);
                rule.demand(test, Noticed::Load, 2);
                Some(cropped)
            }
        };
    }
    rule.put(dims)
}

pub(super) fn shuffle_channels(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let axis = rule.axis(rule.attributes.int("axis").ok()?, dims.len())?;
    let group = rule.attributes.int("group").ok()?;
    let group = rule.number(group);
    let test = dims[axis].and_then(|dim| rule.arena().divides(dim, group));
    rule.demand(test, Noticed::Load, 0);
    rule.put(dims)
}

pub(super) fn non_zero(rule: &mut Rule) -> Option<()> {
    let rank = rule.dims(0)?.len();
    let rank = rule.number(rank as i64);
    rule.put(Dims::from_slice(&[Some(rank), None]))
}

pub(super) fn eye(rule: &mut Rule) -> Option<()> {
    let mut dims: Dims = if rule.inputs.len() > 3 { rule.values(3)?.into_iter().collect() } else { Dims::new() };
    let (rows, columns) = (rule.single(0), rule.single(1));
    dims.extend([rows, columns]);
    rule.put(dims)
}

pub(super) fn reduce(rule: &mut Rule) -> Option<()> {
    let dims = rule.dims(0)?;
    let axes = rule.ints(1)?;
    let keep = rule.attributes.bool("keep_dims").ok()?;
    let mut chosen = vec![false; dims.len()];
    for axis in axes {
        chosen[rule.axis(axis, dims.len())?] = true;
    }
    let one = rule.number(1);
    let kept = dims.iter().zip(chosen).filter_map(|(&dim, chosen)| match (chosen, keep) {
        (false, _) => Some(dim),
        (true, true) => Some(Some(one)),
        (true, false) => None,
    });
    rule.put(kept.collect())
}
