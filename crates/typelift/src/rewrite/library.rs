//! Rules that ship with Typelift, by name.

use super::Match;
use super::Rule;

/// Rules under one name.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// Its name, for `typelift rewrite --use NAME`.
    pub name: &'static str,
    /// What it does, one sentence.
    pub description: &'static str,
    /// The set that does the opposite.
    pub inverse: Option<&'static str>,
    rules: &'static [(&'static str, Check)],
}

type Check = fn(&Match) -> Result<(), String>;

fn always(_: &Match) -> Result<(), String> {
    Ok(())
}

/// The tensor that takes the root's place has its shape: the other operand does not broadcast it.
fn same_shape(m: &Match) -> Result<(), String> {
    let root = m.root().outputs().first();
    match (root, m.shape("x"), m.element_type("x")) {
        (Some(root), Some(shape), Some(ty)) if root.shape() == shape && root.element_type() == ty => Ok(()),
        _ => Err("the type or the shape of its result is another".to_owned()),
    }
}

/// The order of axes leaves them where they are.
fn keeps_order(m: &Match) -> Result<(), String> {
    let order = m.constant("p").ok_or("the order of axes is not known")?;
    let keeps = !order.is_empty() && order.iter().enumerate().all(|(axis, &at)| at == axis as f64);
    if keeps { same_shape(m) } else { Err("the axes change places".to_owned()) }
}

/// The result has the shape of the input, which is known.
fn static_shape(m: &Match) -> Result<(), String> {
    same_shape(m)?;
    if m.shape("x").is_some_and(|shape| shape.is_static()) { Ok(()) } else { Err("the shape is not known".to_owned()) }
}

/// The scale is one number.
fn scalar_scale(m: &Match) -> Result<(), String> {
    match m.constant("s") {
        Some([_]) => Ok(()),
        _ => Err("the scale is not one number".to_owned()),
    }
}

/// Every set, in the order in which they are best applied.
pub const SETS: &[Set] = &[
    Set {
        name: "no-ops",
        description: "Removes operations that give their input back: additions of 0, multiplications by 1, Converts, \
                      Transposes and Reshapes that change nothing",
        inverse: None,
        rules: &[
            ("Add(x, 0) => x", same_shape),
            ("Subtract(x, 0) => x", same_shape),
            ("Multiply(x, 1) => x", same_shape),
            ("Divide(x, 1) => x", same_shape),
            ("Power(x, 1) => x", same_shape),
            ("Convert(x) => x", same_shape),
            ("Transpose(x, p: const) => x", keeps_order),
            ("Reshape(x, s: const) => x", static_shape),
        ],
    },
    Set {
        name: "converts-below-movement",
        description: "Moves Converts below operations that only move data, so that less data is moved where the type grows",
        inverse: None,
        rules: &[
            (
                "Transpose(Convert(x: f16) {destination_type=f32}, p) => Convert(Transpose(x, p)) {destination_type=f32}",
                always,
            ),
            (
                "Reshape(Convert(x: f16) {destination_type=f32}, p) {special_zero=$z} => Convert(Reshape(x, p) {special_zero=$z}) {destination_type=f32}",
                always,
            ),
            (
                "Squeeze(Convert(x: f16) {destination_type=f32}, p) => Convert(Squeeze(x, p)) {destination_type=f32}",
                always,
            ),
            (
                "Unsqueeze(Convert(x: f16) {destination_type=f32}, p) => Convert(Unsqueeze(x, p)) {destination_type=f32}",
                always,
            ),
            (
                "Transpose(Convert(x: u8) {destination_type=$t}, p) => Convert(Transpose(x, p)) {destination_type=$t}",
                always,
            ),
            (
                "Reshape(Convert(x: u8) {destination_type=$t}, p) {special_zero=$z} => Convert(Reshape(x, p) {special_zero=$z}) {destination_type=$t}",
                always,
            ),
            (
                "Squeeze(Convert(x: u8) {destination_type=$t}, p) => Convert(Squeeze(x, p)) {destination_type=$t}",
                always,
            ),
            (
                "Unsqueeze(Convert(x: u8) {destination_type=$t}, p) => Convert(Unsqueeze(x, p)) {destination_type=$t}",
                always,
            ),
        ],
    },
    Set {
        name: "common-subexpressions",
        description: "Lets layers that compute the same be one",
        inverse: None,
        rules: &[],
    },
    Set {
        name: "reciprocals",
        description: "Multiplies by the reciprocal of a constant instead of dividing by it; results can differ in the last bit",
        inverse: None,
        rules: &[
            ("Divide(x, c: const f32) => Multiply(x, 1 / c)", always),
            ("Divide(x, c: const f16) => Multiply(x, 1 / c)", always),
        ],
    },
    Set {
        name: "fuse-hswish",
        description: "Makes HSwish of x * min(max(x + 3, 0), 6) / 6",
        inverse: Some("split-hswish"),
        rules: &[
            ("Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6) => HSwish-4(x)", always),
            ("Multiply(x, Divide(Clamp(Add(x, 3)) {min=0, max=6}, 6)) => HSwish-4(x)", always),
            ("Multiply(x, HSigmoid(x)) => HSwish-4(x)", always),
        ],
    },
    Set {
        name: "split-hswish",
        description: "Writes HSwish out, for releases before 2020.4",
        inverse: Some("fuse-hswish"),
        rules: &[("HSwish(x) => Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6)", always)],
    },
    Set {
        name: "fuse-gelu",
        description: "Makes Gelu of 0.5 * x * (1 + erf(x / sqrt(2)))",
        inverse: Some("split-gelu"),
        rules: &[
            (
                "Multiply(Multiply(x, 0.5), Add(Erf(Divide(x, 1.4142135623730951)), 1)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, Add(Erf(Divide(x, 1.4142135623730951)), 1)), 0.5) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(x, Multiply(Add(Erf(Divide(x, 1.4142135623730951)), 1), 0.5)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, 0.5), Add(Erf(Multiply(x, 0.7071067811865476)), 1)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, Add(Erf(Multiply(x, 0.7071067811865476)), 1)), 0.5) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
        ],
    },
    Set {
        name: "split-gelu",
        description: "Writes Gelu out, for releases before 2021.4",
        inverse: Some("fuse-gelu"),
        rules: &[(
            "Gelu-7(x) {approximation_mode=erf} => Multiply(Multiply(x, 0.5), Add(Erf(Divide(x, 1.4142135623730951)), 1))",
            always,
        )],
    },
    Set {
        name: "fuse-sdpa",
        description: "Makes ScaledDotProductAttention of softmax(q k) v",
        inverse: Some("split-sdpa"),
        rules: &[(
            "MatMul(Softmax(Add(Multiply(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const), m)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m, s) {causal=false}",
            scalar_scale,
        )],
    },
    Set {
        name: "split-sdpa",
        description: "Writes ScaledDotProductAttention with a mask and a scale out, for releases before 2024.0",
        inverse: Some("fuse-sdpa"),
        rules: &[(
            "ScaledDotProductAttention(q, k, v, m: f32, s) {causal=false} => MatMul(Softmax-8(Add(Multiply(MatMul(q, k) {transpose_b=true}, s), m)) {axis=-1}, v)",
            always,
        )],
    },
];

impl Set {
    /// The rules, named after the set.
    #[must_use]
    pub fn rules(&self) -> Vec<Rule> {
        if self.name == "common-subexpressions" {
            return vec![Rule::same().named(self.name)];
        }
        let read = |(text, check): &(&str, Check)| Some(text.parse::<Rule>().ok()?.named(self.name).when(*check));
        self.rules.iter().filter_map(read).collect()
    }
}

/// The set of this name.
#[must_use]
pub fn get(name: &str) -> Option<&'static Set> {
    SETS.iter().find(|set| set.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_can_be_read() {
        for set in SETS {
            for (text, _) in set.rules {
                text.parse::<Rule>().unwrap_or_else(|error| panic!("{error}"));
            }
            assert!(!set.rules().is_empty(), "{}", set.name);
            assert!(set.inverse.is_none_or(|inverse| get(inverse).is_some()));
        }
    }
}
