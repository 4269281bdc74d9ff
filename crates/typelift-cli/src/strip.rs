//! Data path of a value as text, from where it is stored to where it is used.

use std::fmt::Write as _;

use typelift::explain::map::{ValuePath, ValueStep};
use unicode_width::UnicodeWidthStr;

use crate::columns::count;
use crate::fit::{self, ShortNames};
use crate::gate::Clean;
use crate::listing::{MOST_LINES, at};

const MOST_USES: usize = 4;

/// Formats the path on one line if it fits. Otherwise each step is a line, and the first and last ones are on a screen.
/// The possible losses follow.
pub(crate) fn text(path: &ValuePath, all: bool, names: &ShortNames) -> String {
    let strip = strip(path);
    let mut lines = if all || strip.width() > fit::width() { steps(path) } else { vec![strip] };
    lines.iter_mut().for_each(|line| *line = names.fit(line));
    // The other lines of a screen show the losses, the other uses, and the number of omitted steps.
    let most = MOST_LINES - 3;
    let lengths: Vec<usize> = lines.iter().map(|line| line.lines().count()).collect();
    let middle = lines.len() / 2;
    let (mut start, mut end) = (middle, middle);
    let (mut before, mut after): (usize, usize) = (lengths[..middle].iter().sum(), lengths[middle..].iter().sum());
    if !all && before + after > most {
        while before + after > most {
            if before >= after {
                start -= 1;
                before -= lengths[start];
            } else {
                after -= lengths[end];
                end += 1;
            }
        }
        let note = format!("… {}: `--all` shows them", count(end - start, "more step"));
        lines.splice(start..end, [note]);
    }
    lines.push(losses(path));
    let others = &path.other_uses;
    let shown = if all || others.len() <= MOST_USES { others.len() } else { MOST_USES - 1 };
    let words = others[..shown].iter().map(|user| format!("`{}`", Clean(&user.name)));
    let more = (shown < others.len()).then(|| count(others.len() - shown, "more layer"));
    let words: Vec<String> = words.chain(more).collect();
    lines.extend((!words.is_empty()).then(|| names.fit(&format!("also used by {}", words.join(", ")))));
    lines.join("\n") + "\n"
}

fn losses(path: &ValuePath) -> String {
    let converts: Vec<_> = path.steps.iter().filter_map(|step| step.effect).collect();
    let counted = converts.iter().filter(|effect| effect.audit.is_some()).count();
    let by_types = converts.iter().filter(|effect| effect.audit.is_none()).filter_map(|effect| effect.losses);
    let losses = path.loses.iter().filter(|loss| by_types.clone().any(|losses| losses.can(**loss)));
    let losses: Vec<&str> = losses.map(|loss| loss.name()).collect();
    // Converts of unknown types.
    let unknown = converts.iter().filter(|effect| effect.losses.is_none()).count();
    let known = match &losses[..] {
        [] if converts.is_empty() => return "no Convert on the way".to_owned(),
        [] if unknown > 0 => String::new(),
        [] if counted > 0 => "the Converts change values of constants".to_owned(),
        [] => "the Converts lose nothing".to_owned(),
        losses => format!("the Converts can lose: {}", losses.join(", ")),
    };
    match unknown {
        0 => known,
        _ if known.is_empty() => "what the Converts can lose is not known".to_owned(),
        _ => format!("{known}; what those of unknown types lose is not known"),
    }
}

/// Formats `` f16[2,2] `w` → Convert f32 (exact) → MatMul f32[?,2] `mm` ``.
fn strip(path: &ValuePath) -> String {
    let mut text = String::new();
    for (at, step) in path.steps.iter().enumerate() {
        let is_end = at == 0 || at == path.asked || at + 1 == path.steps.len();
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
        text += &lost(step).map_or(String::new(), |lost| format!(" ({lost})"));
    }
    text
}

/// `None` for other layers.
fn lost(step: &ValueStep) -> Option<String> {
    step.effect.map(|effect| effect.to_string())
}

/// Formats `` → f32[2,2] `w_f32` (Convert 2, line 23): exact ``.
fn steps(path: &ValuePath) -> Vec<String> {
    let lines = path.steps.iter().enumerate().map(|(number, step)| {
        let arrow = if number == 0 { "" } else { "→ " };
        let place = at(&step.layer, &step.operation, step.output, step.line);
        let loses = lost(step).map_or(String::new(), |lost| format!(": {lost}"));
        format!("{arrow}{}{} {place}{loses}", step.element_type, step.shape)
    });
    lines.collect()
}
