//! Built-in rules, by name.

use super::{Right, Rule, Script};
use crate::rewrite::notation::NotationError;

/// Set of rules under one name.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Set {
    /// The name for `typelift rewrite --use NAME`.
    pub name: &'static str,
    /// The set that does the opposite.
    pub inverse: Option<&'static str>,
    /// The text of the rules; its first comment describes the set. The rules may use [`COMMON`].
    pub source: &'static str,
}

/// Definitions that several sets use.
pub const COMMON: &str = include_str!("common.rules");

macro_rules! set {
    ($name:literal, $inverse:expr) => {
        Set { name: $name, inverse: $inverse, source: include_str!(concat!($name, ".rules")) }
    };
}

/// Every set, in the recommended order of application.
pub const SETS: &[Set] = &[
    set!("no-ops", None),
    set!("common-subexpressions", None),
    set!("constant-folding", None),
    set!("constant-ifs", None),
    set!("fuse-sdpa", Some("split-sdpa")),
    set!("fuse-gelu", Some("split-gelu")),
    set!("fuse-hswish", Some("split-hswish")),
    set!("activations", None),
    set!("norms", None),
    set!("fuse-rms", Some("split-rms")),
    set!("affine", None),
    set!("slices", None),
    set!("movement", None),
    set!("converts-below-movement", None),
    set!("reciprocals", None),
    set!("split-hswish", Some("fuse-hswish")),
    set!("split-gelu", Some("fuse-gelu")),
    set!("split-rms", Some("fuse-rms")),
    set!("split-sdpa", Some("fuse-sdpa")),
];

impl Set {
    /// Returns the description of the set, one sentence.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.source.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// Returns the rules; those without their own name are named after the set.
    ///
    /// # Errors
    /// [`NotationError`], if [`source`](Self::source) was changed and cannot be parsed.
    pub fn rules(&self) -> Result<Vec<Rule>, NotationError> {
        match self.name {
            "common-subexpressions" => return Ok(vec![self.built_in(Right::Same)]),
            "constant-folding" => return Ok(vec![self.built_in(Right::Known)]),
            "constant-ifs" => return Ok(vec![self.built_in(Right::Branch)]),
            "slices" => return Ok(vec![self.built_in(Right::Split)]),
            _ => {}
        }
        let script: Script = format!("{COMMON}{}", self.source).parse()?;
        let rules = script.rules().iter().cloned();
        Ok(rules.map(|rule| if rule.name.is_none() { rule.named(self.name) } else { rule }).collect())
    }

    fn built_in(&self, replacement: Right) -> Rule {
        Rule::built_in(self.description(), replacement).named(self.name)
    }
}

/// Returns the set of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static Set> {
    SETS.iter().find(|set| set.name == name)
}

/// Iterates over every set except those that expand operations for older releases.
pub fn all() -> impl Iterator<Item = &'static Set> {
    SETS.iter().filter(|set| !set.name.starts_with("split-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_read() {
        for set in SETS {
            let rules = set.rules().unwrap_or_else(|error| panic!("{}: {error}", set.name));
            assert!(!rules.is_empty(), "{}", set.name);
            assert!(set.inverse.is_none_or(|inverse| get(inverse).is_some()));
        }
    }

    #[test]
    fn a_source_that_cannot_be_read_is_an_error() {
        let mut set = SETS[0];
        set.source = "Relu(x => x";
        assert!(set.rules().is_err_and(|error| error.to_string().contains("expected")));
    }
}
