//! The first screen of `stats`: totals, blocks, the largest tensors, operations.

use std::collections::BTreeSet;

use typelift::explain::map::Row;
use typelift::explain::{LargeTensor, Stats};
use typelift::findings::grouped;
use typelift::{Model, Shapes};

use super::{AtLengths, FAINT, HEAD, PLAIN, blocks, differences, headline, schemes, share};
use crate::columns::{Columns, GAP, Side, count};
use crate::fit::{self, ShortNames};
use crate::gate::Clean;
use crate::lengths;

/// The most inputs and outputs, blocks, large constants and large tensors, and operations that are listed.
const ENDS: usize = 3;
const BLOCKS: usize = 8;
const LARGEST: usize = 5;
const OPERATIONS: usize = 12;

pub(super) fn text(
    file: &str,
    stats: &Stats,
    map: &[Row],
    (names, shown): &(ShortNames, Ends),
    at: Option<&AtLengths>,
) -> String {
    let mut text = headline(file, stats);
    if stats.macs > 0 {
        let least = if stats.macs_is_least { "at least " } else { "" };
        text += &format!(", {least}{} MACs", short(stats.macs));
    }
    text += "\n";
    text += &ends("inputs", &shown.inputs);
    text += &ends("outputs", &shown.outputs);
    text += &formulas(stats, at);
    if let Some(made_by) = &stats.made_by {
        text += &format!("{}\n", fit::hanging(&format!("made by  {}", Clean(made_by)), 9));
    }
    text += &weights(stats);
    text += &schemes(stats);
    text += &most(map);
    text += &largest("largest constants", &stats.largest_constants, names);
    text += &largest("largest tensors", &stats.largest_tensors, names);
    text += &operations(stats);
    text + &format!("{FAINT}`--all` lists every input, output, data path, loss and operation{FAINT:#}\n")
}

/// Formats `inputs  input_ids i64[?,?], attention_mask i64[?,?], and 64 more`.
fn ends(title: &str, ends: &[String]) -> String {
    let mut shown: Vec<String> = ends.iter().take(ENDS).map(|end| Clean(end).to_string()).collect();
    if ends.len() > ENDS {
        shown.push(format!("and {} more", grouped((ends.len() - ENDS) as u64)));
    }
    let text = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    format!("{}\n", fit::hanging(&format!("{title:<8} {text}"), 9))
}

/// Inputs and outputs with the names of open lengths: `input_ids i64[batch,seq]`.
pub(super) struct Ends {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl Ends {
    pub(super) fn new(model: &Model, shapes: &Shapes) -> Self {
        let inputs = model.inputs().map(|layer| (layer, Some(layer.id().output(0))));
        let outputs = model.outputs().map(|layer| (layer, model.graph().producer(layer.id().input(0))));
        let [inputs, outputs] = [inputs.collect::<Vec<_>>(), outputs.collect()].map(|ends| {
            let named = ends.into_iter().map(|(layer, tensor)| {
                let what = tensor.map_or_else(String::new, |tensor| lengths::tensor(model, shapes, tensor));
                format!("{} {what}", model.end_name(layer))
            });
            named.collect()
        });
        Self { inputs, outputs }
    }
}

/// Formats multiply-adds and bytes of state as expressions, and at the lengths that were given.
fn formulas(stats: &Stats, at: Option<&AtLengths>) -> String {
    let mut rows: Vec<String> = Vec::new();
    let is_open = stats.macs_is_least && stats.macs > 0;
    rows.extend(stats.macs_formula.as_ref().filter(|_| is_open).map(|formula| format!("MACs     {formula}")));
    if let Some(state) = &stats.state {
        let bytes = state.bytes_formula.clone().unwrap_or_else(|| format!("at least {}", grouped(state.bytes)));
        rows.push(format!("state    {bytes} bytes in {}", count(state.variables, "variable")));
    }
    if let Some(AtLengths { lengths, macs, state_bytes }) = at {
        // `max(` is not a length.
        let formula = stats.macs_formula.as_deref().unwrap_or_default().replace('(', "( ");
        let words = formula.split(' ').filter(|it| it.starts_with(char::is_alphabetic) && !it.ends_with('('));
        let words = words.map(|it| it.trim_end_matches([',', ')'])).filter(|it| !lengths.contains_key(*it));
        let other = words.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ");
        let lengths: Vec<String> = lengths.iter().map(|(name, length)| format!("{name} = {length}")).collect();
        let [macs, state] = [*macs, *state_bytes].map(|number| u64::try_from(number?).ok());
        let macs = macs.map(|macs| format!("{} MACs", short(macs)));
        let state = state.filter(|&bytes| bytes > 0).map(|bytes| format!("{} bytes of state", grouped(bytes)));
        let numbers: Vec<String> = macs.into_iter().chain(state).collect();
        let numbers = match &*other {
            _ if !numbers.is_empty() => numbers.join(", "),
            "" => "unknown: no formula of the lengths gives it".to_owned(),
            other => format!("unknown: it depends on {other}, too"),
        };
        rows.push(format!("at       {}: {numbers}", lengths.join(", ")));
    }
    rows.iter().map(|row| format!("{}\n", fit::hanging(row, 9))).collect()
}

/// Formats `weights  12,345,678 bytes: u4 91.2 %, f16 8.8 %`.
fn weights(stats: &Stats) -> String {
    let types = stats.weights.iter().filter(|weight| weight.bytes > 0);
    let types: Vec<_> = types.map(|weight| format!("{} {}", weight.element_type, share(weight.bytes, stats))).collect();
    let list = if types.is_empty() { String::new() } else { format!(": {}", types.join(", ")) };
    let text = format!("weights  {} bytes{list}", grouped(stats.weight_bytes));
    let mut text = format!("{}\n", fit::hanging(&text, 9));
    for found in &stats.decompressed {
        let (constants, bytes) = (count(found.constants, "constant"), share(found.bytes, stats));
        text += &format!("         {constants} stored in {}, used in {} ({bytes})\n", found.from, found.to);
    }
    text
}

/// Formats a line for each block or run of equal blocks. Runs and blocks that differ come before large ones if there are
/// too many.
fn most(map: &[Row]) -> String {
    let mut chosen: Vec<usize> = (0..map.len()).collect();
    if map.len() > BLOCKS {
        chosen
            .sort_by_key(|&at| (map[at].blocks == 1 && map[at].differs.is_empty(), std::cmp::Reverse(map[at].layers)));
        chosen.truncate(BLOCKS);
        chosen.sort_unstable();
    }
    let mut text = blocks(map, &chosen, differences);
    if map.len() > chosen.len() {
        text += &format!("{FAINT}and {}{FAINT:#}\n", count(map.len() - chosen.len(), "more line"));
    }
    text
}

fn largest(title: &str, tensors: &[LargeTensor], names: &ShortNames) -> String {
    if tensors.is_empty() {
        return String::new();
    }
    let mut columns = Columns::headed([Side::Left, Side::Right, Side::Left], [title, "bytes", "type"]);
    let rows = tensors.iter().take(LARGEST);
    let rows: Vec<_> =
        rows.map(|it| (&it.path, grouped(it.bytes), format!("{}{}", it.element_type, it.shape))).collect();
    let beside = rows.iter().map(|(_, bytes, ty)| bytes.len().max("bytes".len()) + ty.len()).max().unwrap_or(0);
    let room = fit::width().saturating_sub(beside + 2 * GAP);
    for (path, bytes, ty) in rows {
        columns.push(PLAIN, [Clean(&names.within(path, room)).to_string(), bytes, ty]);
    }
    "\n".to_owned() + &columns.print()
}

/// Formats `operations  Const 321, Convert 120, and 14 more kinds`.
fn operations(stats: &Stats) -> String {
    let list = stats.operations.iter().take(OPERATIONS);
    let mut list: Vec<_> = list.map(|of| format!("{} {}", Clean(&of.ty), grouped(of.count as u64))).collect();
    if stats.operations.len() > OPERATIONS {
        list.push(format!("and {} more kinds", stats.operations.len() - OPERATIONS));
    }
    let text = fit::hanging(&format!("operations  {}", list.join(", ")), 12);
    format!("\n{}\n", text.replacen("operations", &format!("{HEAD}operations{HEAD:#}"), 1))
}

/// Formats a large number in three digits: `1.23 G`.
fn short(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["", " k", " M", " G", " T"] {
        if value < 999.5 {
            let digits = if unit.is_empty() || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
            return format!("{value:.digits$}{unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.0} P")
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn large_numbers_have_three_digits() {
        let texts = [0, 999, 1_000, 12_345, 999_600, 1_234_567_890].map(short);
        assert_eq!(texts, ["0", "999", "1.00 k", "12.3 k", "1.00 M", "1.23 G"]);
    }
}
