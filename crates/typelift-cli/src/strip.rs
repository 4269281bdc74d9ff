//! The way of a value as a strip, from where it is stored to where it is used.

use std::fmt::Write as _;

use typelift::map::{ValuePath, ValueStep};
use unicode_width::UnicodeWidthStr;

use crate::columns::count;
use crate::listing::{Clean, MOST_LINES, at};
use crate::render;

/// One line where it fits, else a line a step, of which the first and the last are on a screen; then what can be lost.
pub(crate) fn text(path: &ValuePath, all: bool) -> String {
    let strip = strip(path);
    let mut lines = if all || strip.width() > render::width() { steps(path) } else { vec![strip] };
    // A screen has the losses, the other uses, and what is left out.
    let most = MOST_LINES - 3;
    if !all && lines.len() > most {
        let left_out = lines.len() - most;
        let note = format!("… {}: `--all` shows them", count(left_out, "more step"));
        lines.splice(most / 2..most / 2 + left_out, [note]);
    }
    let losses: Vec<&str> = path.loses.iter().map(|loss| loss.name()).collect();
    match (&losses[..], path.steps.iter().any(|step| step.loses.is_some())) {
        ([], false) => lines.push("no Convert on the way".to_owned()),
        ([], true) => lines.push("the Converts lose nothing".to_owned()),
        _ => lines.push(format!("the Converts can lose: {}", losses.join(", "))),
    }
    if path.other_uses > 0 {
        lines.push(format!("and {} not on this way", count(path.other_uses, "use")));
    }
    lines.join("\n") + "\n"
}

/// `` f16[2,2] `w` → Convert f32 (exact) → MatMul f32[?,2] `mm` ``
fn strip(path: &ValuePath) -> String {
    let mut text = String::new();
    for (at, step) in path.steps.iter().enumerate() {
        let is_end = at == 0 || at + 1 == path.steps.len();
        let changes = at.checked_sub(1).is_none_or(|before| path.steps[before].element_type != step.element_type);
        if at > 0 {
            let _ = write!(text, " → {}", Clean(&step.operation));
        }
        text.push_str(if at > 0 && (is_end || changes) { " " } else { "" });
        let _ = match (is_end, changes) {
            (true, _) => write!(text, "{}{} `{}`", step.element_type, step.shape, Clean(&step.layer.name)),
            (_, true) => write!(text, "{}", step.element_type),
            _ => Ok(()),
        };
        let _ = step.loses.map_or(Ok(()), |loses| write!(text, " ({loses})"));
    }
    text
}

/// `` → f32[2,2] `w_f32` (Convert 2, line 23): exact ``
fn steps(path: &ValuePath) -> Vec<String> {
    let line = |(number, step): (usize, &ValueStep)| {
        let arrow = if number == 0 { "" } else { "→ " };
        let place = at(&step.layer, &step.operation, step.output, step.line);
        let loses = step.loses.map_or(String::new(), |loses| format!(": {loses}"));
        format!("{arrow}{}{} {place}{loses}", step.element_type, step.shape)
    };
    path.steps.iter().enumerate().map(line).collect()
}
