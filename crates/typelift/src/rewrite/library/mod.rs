//! Built-in rules, by name.

use std::sync::LazyLock;

use super::builtin::Builtin;
use super::{Match, Pattern, Rule, Script};
use crate::edit::precision_marks::Marks;
use crate::model::shape::Shape;
use crate::precision::fake_quantize;
use crate::rewrite::notation::NotationError;

/// Named set of rules.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Set {
    /// The name for `typelift rewrite --use NAME`.
    pub name: &'static str,
    /// The set that does the opposite.
    pub inverse: Option<&'static str>,
    /// The text of the rules. Its first comment describes the set. Definitions of [`COMMON`] can be used.
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
    set!("fake-quantize-weights", None),
    set!("keep-compressed", None),
    set!("split-hswish", Some("fuse-hswish")),
    set!("split-gelu", Some("fuse-gelu")),
    set!("split-rms", Some("fuse-rms")),
    set!("split-sdpa", Some("fuse-sdpa")),
];

impl Set {
    /// Returns the description of the set, one sentence.
    pub fn description(&self) -> &'static str {
        self.source.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// Returns the rules; those without their own name are named after the set.
    ///
    /// # Errors
    /// [`NotationError`], if [`source`](Self::source) was changed and cannot be parsed.
    pub fn rules(&self) -> Result<Vec<Rule>, NotationError> {
        match self.name {
            "common-subexpressions" => return Ok(vec![self.built_in(Builtin::Same)]),
            "constant-folding" => return Ok(vec![self.built_in(Builtin::Known)]),
            "constant-ifs" => return Ok(vec![self.built_in(Builtin::Branch)]),
            "slices" => return Ok(vec![self.built_in(Builtin::Split)]),
            "fake-quantize-weights" => return Ok(vec![integers_of_fake_quantize()?.named(self.name)]),
            _ => {}
        }
        static DEFINITIONS: LazyLock<Result<Script, NotationError>> = LazyLock::new(|| COMMON.parse());
        let mut script = DEFINITIONS.clone()?;
        script.read_lines(self.source)?;
        let marked = (self.name == "keep-compressed").then(mark_half_weights).transpose()?;
        let rules = script.rules().iter().cloned().chain(marked);
        Ok(rules.map(|rule| if rule.name.is_none() { rule.named(self.name) } else { rule }).collect())
    }

    fn built_in(&self, builtin: Builtin) -> Rule {
        Rule::built_in(self.description(), builtin).named(self.name)
    }
}

fn integers_of_fake_quantize() -> Result<Rule, NotationError> {
    let pattern = "FakeQuantize(w: const, a: const, b: const, c: const, d: const) {levels=$n}".parse::<Pattern>()?;
    let pattern = pattern.when(|found| match found.attribute("n")?.parse() {
        Ok(levels) if fake_quantize::LEVELS.contains(&levels) => Ok(()),
        _ => Err("it has more levels than integers of 8 bits".to_owned()),
    });
    let rule = pattern.to(|found, graph| Ok(fake_quantize::to_integers(graph, found.root.id())?.into()));
    Ok(rule.tried())
}

fn mark_half_weights() -> Result<Rule, NotationError> {
    let is_unmarked = |found: &Match| match found.root.rt_info("decompression") {
        _ if found.shape("w").and_then(Shape::rank).unwrap_or(0) < 2 => Err("it has no rows and columns".to_owned()),
        Some(_) => Err("it has the mark".to_owned()),
        None => Ok(()),
    };
    let pattern = "Convert(w: const f16|bf16) {destination_type=f32}".parse::<Pattern>()?.when(is_unmarked);
    let rule = pattern.to(|found, graph| {
        graph.set_marks(found.root.id(), &Marks::decompression())?;
        Ok(found.root.id().output(0).into())
    });
    Ok(rule.named("mark"))
}

/// Returns the set of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static Set> {
    SETS.iter().find(|set| set.name == name)
}

/// Sets that change how weights are stored, for one plugin or for good.
const ON_REQUEST: [&str; 2] = ["fake-quantize-weights", "keep-compressed"];

/// Iterates over every set except those that expand operations for older releases, and those that change stored weights.
pub fn all() -> impl Iterator<Item = &'static Set> {
    SETS.iter().filter(|set| !set.name.starts_with("split-") && !ON_REQUEST.contains(&set.name))
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
