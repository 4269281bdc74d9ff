//! Plan files, with one line for each constant: its mode, its group size and its name.
//!
//! ```text
//! int4_sym 128 layers.0.mlp.up_proj.weight
//! int8_asym -1 embed_tokens.weight
//! keep - lm_head.weight
//! ```
//! A name extends to the end of its line. Empty lines and lines that begin with `#` are ignored.

use std::fmt::Write as _;

use thiserror::Error;

use super::mode::{Group, Mode};
use super::plan::{Choice, QuantizationPlan};
use crate::base::hash::HashSet;

/// Error in a line of a plan file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line} of the plan: {reason}")]
#[non_exhaustive]
pub struct PlanError {
    /// The line, counted from 1.
    pub line: usize,
    /// The reason.
    pub reason: String,
}

impl Choice {
    /// Parses the lines of a plan file.
    ///
    /// # Errors
    /// [`PlanError`] for the first line that cannot be read, or that names a constant a second time.
    ///
    /// # Examples
    /// ```
    /// use typelift::precision::quantize::{Choice, Group, Mode};
    /// let choices = Choice::parse("# four bits\nint4_sym 64 up_proj\nkeep - head\n")?;
    /// assert_eq!(choices[0].to, Some((Mode::Int4Sym, Group::Of(64))));
    /// assert_eq!(choices[1].to, None);
    /// # Ok::<(), typelift::precision::quantize::PlanError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Vec<Self>, PlanError> {
        if text.trim_start().starts_with(['{', '[']) {
            let reason = "it is JSON; a plan is text with a mode, a group size and a constant in each line, such as \
                          `int4_sym 128 NAME`, and --write-plan FILE writes one";
            return Err(PlanError { line: 1, reason: reason.to_owned() });
        }
        let (mut choices, mut known) = (Vec::new(), HashSet::default());
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let choice = Self::parse_line(line).and_then(|choice| match known.insert(choice.constant.clone()) {
                true => Ok(choice),
                false => Err(format!("`{}` occurs twice", choice.constant)),
            });
            choices.push(choice.map_err(|reason| PlanError { line: at + 1, reason })?);
        }
        Ok(choices)
    }

    fn parse_line(line: &str) -> Result<Self, String> {
        let mut words = line.trim_start().splitn(3, ' ');
        let (Some(mode), Some(group), Some(constant)) = (words.next(), words.next(), words.next()) else {
            return Err("expected a mode, a group size and a name, such as `int4_sym 128 NAME`".to_owned());
        };
        let to = if mode == "keep" { None } else { Some((mode.parse::<Mode>()?, group.parse::<Group>()?)) };
        match to {
            Some((mode, Group::Of(size))) if mode.is_int8() => {
                Err(format!("{mode} does not support groups; write -1, not {size}"))
            }
            Some((mode, group)) if mode.has_powers_of_two() && group != Group::Of(32) => {
                Err(format!("the group size of {mode} must be 32"))
            }
            _ => Ok(Self { constant: constant.to_owned(), to }),
        }
    }
}

impl QuantizationPlan {
    /// Returns the text of a plan file for [`Choice::parse`]. The rule and the loss of each constant are in comments.
    pub fn to_text(&self) -> String {
        let mut text = String::from("# mode group constant\n");
        for constant in &self.constants {
            let (mode, group) = match constant.to {
                Some((mode, group)) => (mode.name(), group.to_string()),
                None => ("keep", "-".to_owned()),
            };
            // A name with line breaks cannot be written to the file, so its constant becomes a comment and is not
            // quantized.
            let comment = if constant.name.contains(['\n', '\r']) { "# " } else { "" };
            let _ = writeln!(text, "{comment}{mode} {group} {}", constant.name.replace(['\n', '\r'], " "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let reason = |text| Choice::parse(text).unwrap_err().to_string();
        assert!(reason("\nint5 128 w").starts_with("line 2 of the plan: expected one of int8_asym"));
        assert!(reason("int4_sym w").contains("expected a mode, a group size and a name"));
        assert!(reason("int4_sym 0 w").contains("-1 for whole channels"));
        assert!(reason("int8_sym 32 w").contains("does not support groups"));
        assert!(reason("mxfp4 64 w").contains("must be 32"));
        assert!(reason("keep - w\nkeep - w").contains("occurs twice"));
    }

    #[test]
    fn a_name_may_hold_spaces() {
        assert_eq!(Choice::parse("keep - a b  c").unwrap()[0].constant, "a b  c");
    }
}
