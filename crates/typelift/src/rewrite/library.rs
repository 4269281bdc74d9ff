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

/// The Convert makes the data larger.
fn widens(m: &Match) -> Result<(), String> {
    let wide = m.root().outputs().first().map(|port| port.element_type().bits());
    match (m.element_type("x"), wide) {
        (Some(narrow), Some(wide)) if narrow.bits() < wide => Ok(()),
        _ => Err("the Convert does not make the data larger".to_owned()),
    }
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
            ("Concat(x) => x", always),
        ],
    },
    Set {
        name: "converts-below-movement",
        description: "Moves Converts to wider types below operations that only move data, so that less data is moved",
        inverse: None,
        rules: &[
            ("Transpose(Convert(x), ...) => Convert(Transpose(x, ...))", widens),
            ("Reshape(Convert(x), ...) => Convert(Reshape(x, ...))", widens),
            ("Squeeze(Convert(x), ...) => Convert(Squeeze(x, ...))", widens),
            ("Unsqueeze(Convert(x), ...) => Convert(Unsqueeze(x, ...))", widens),
            ("Slice(Convert(x), ...) => Convert(Slice(x, ...))", widens),
            ("StridedSlice(Convert(x), ...) => Convert(StridedSlice(x, ...))", widens),
            ("Gather(Convert(x), ...) => Convert(Gather(x, ...))", widens),
            ("Tile(Convert(x), ...) => Convert(Tile(x, ...))", widens),
            ("Broadcast(Convert(x), ...) => Convert(Broadcast(x, ...))", widens),
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
        rules: &[("Divide(x, c: const f32|f16|bf16|f64) => Multiply(x, 1 / c)", always)],
    },
    Set {
        name: "fuse-hswish",
        description: "Makes HSwish of x * min(max(x + 3, 0), 6) / 6",
        inverse: Some("split-hswish"),
        rules: &[
            ("Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6) => HSwish-4(x)", always),
            ("Multiply(x, Divide(Clamp(Add(x, 3)) {min=0, max=6}, 6)) => HSwish-4(x)", always),
            ("Multiply(x, Multiply(Clamp(Add(x, 3)) {min=0, max=6}, 0.16666666666666666)) => HSwish-4(x)", always),
            ("Multiply(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 0.16666666666666666) => HSwish-4(x)", always),
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
        description: "Makes Gelu of 0.5 * x * (1 + erf(x / sqrt(2))), and of the approximation by tanh",
        inverse: Some("split-gelu"),
        rules: &[
            (
                "Multiply(Multiply(x, 0.5), Add(Erf(Divide(x, 1.4142135623730951)), 1)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, 0.5), Add(Erf(Multiply(x, 0.7071067811865476)), 1)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, Add(Erf(Divide(x, 1.4142135623730951)), 1)), 0.5) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, Add(Erf(Multiply(x, 0.7071067811865476)), 1)), 0.5) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(x, Multiply(Add(Erf(Divide(x, 1.4142135623730951)), 1), 0.5)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(x, Multiply(Add(Erf(Multiply(x, 0.7071067811865476)), 1), 0.5)) => Gelu-7(x) {approximation_mode=erf}",
                always,
            ),
            (
                "Multiply(Multiply(x, 0.5), Add(Tanh(Multiply(Add(x, Multiply(Power(x, 3), 0.044715)), 0.7978845608028654)), 1)) => Gelu-7(x) {approximation_mode=tanh}",
                always,
            ),
            (
                "Multiply(Multiply(x, Add(Tanh(Multiply(Add(x, Multiply(Power(x, 3), 0.044715)), 0.7978845608028654)), 1)), 0.5) => Gelu-7(x) {approximation_mode=tanh}",
                always,
            ),
        ],
    },
    Set {
        name: "split-gelu",
        description: "Writes Gelu out, for releases before 2021.4",
        inverse: Some("fuse-gelu"),
        rules: &[
            (
                "Gelu-7(x) {approximation_mode=erf} => Multiply(Multiply(x, 0.5), Add(Erf(Divide(x, 1.4142135623730951)), 1))",
                always,
            ),
            ("Gelu-2(x) => Multiply(Multiply(x, 0.5), Add(Erf(Divide(x, 1.4142135623730951)), 1))", always),
            (
                "Gelu-7(x) {approximation_mode=tanh} => Multiply(Multiply(x, 0.5), Add(Tanh(Multiply(Add(x, Multiply(Power(x, 3), 0.044715)), 0.7978845608028654)), 1))",
                always,
            ),
        ],
    },
    Set {
        name: "fuse-rms",
        description: "Writes root mean square normalization as plugins of OpenVINO recognize it: x * (1 / sqrt(mean(x^2) + e))",
        inverse: Some("split-rms"),
        rules: &[
            (
                "Divide(x, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Divide(x, Sqrt(Add(ReduceMean(Multiply(x, x), a) {keep_dims=true}, e))) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Multiply(x, x), a) {keep_dims=true}, e)))) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Multiply(x, Power(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e), -0.5)) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Multiply(x, Power(Add(ReduceMean(Multiply(x, x), a) {keep_dims=true}, e), -0.5)) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Multiply(x, Power(Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e)), -1)) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
            (
                "Multiply(x, Power(Sqrt(Add(ReduceMean(Multiply(x, x), a) {keep_dims=true}, e)), -1)) => Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e))))",
                always,
            ),
        ],
    },
    Set {
        name: "split-rms",
        description: "Divides by the root mean square instead of multiplying by its reciprocal",
        inverse: Some("fuse-rms"),
        rules: &[(
            "Multiply(x, Divide(1, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e)))) => Divide(x, Sqrt(Add(ReduceMean(Power(x, 2), a) {keep_dims=true}, e)))",
            always,
        )],
    },
    Set {
        name: "fuse-sdpa",
        description: "Makes ScaledDotProductAttention of softmax(scale * q k + mask) v",
        inverse: Some("split-sdpa"),
        rules: &[
            (
                "MatMul(Softmax(Add(Multiply(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const), m)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m, s) {causal=false}",
                scalar_scale,
            ),
            (
                "MatMul(Softmax(Add(Divide(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const f32|f16|bf16|f64), m)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m, 1 / s) {causal=false}",
                scalar_scale,
            ),
            (
                "MatMul(Softmax(Multiply(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, 0, s) {causal=false}",
                scalar_scale,
            ),
            (
                "MatMul(Softmax(Divide(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const f32|f16|bf16|f64)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, 0, 1 / s) {causal=false}",
                scalar_scale,
            ),
            (
                "MatMul(Softmax(Select(m, Multiply(MatMul(q, k) {transpose_a=false, transpose_b=true}, s: const), -inf)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m, s) {causal=false}",
                scalar_scale,
            ),
            (
                "MatMul(Softmax(Divide(MatMul(q, k) {transpose_a=false, transpose_b=true}, Sqrt(Convert(Gather(ShapeOf(q), -1, 0))))) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v) {causal=false}",
                always,
            ),
            (
                "MatMul(Softmax(Add(Divide(MatMul(q, k) {transpose_a=false, transpose_b=true}, Sqrt(Convert(Gather(ShapeOf(q), -1, 0)))), m)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m) {causal=false}",
                always,
            ),
            (
                "MatMul(Softmax(Select(m, Divide(MatMul(q, k) {transpose_a=false, transpose_b=true}, Sqrt(Convert(Gather(ShapeOf(q), -1, 0)))), -inf)) {axis=-1}, v) {transpose_a=false, transpose_b=false} => ScaledDotProductAttention-13(q, k, v, m) {causal=false}",
                always,
            ),
        ],
    },
    Set {
        name: "split-sdpa",
        description: "Writes ScaledDotProductAttention out, for releases before 2024.0",
        inverse: Some("fuse-sdpa"),
        rules: &[
            (
                "ScaledDotProductAttention(q: $t, k, v, 0, s) {causal=false} => MatMul(Softmax-8(Multiply(MatMul(q, k) {transpose_b=true}, s)) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v, m: f64|f32|f16|bf16, s) {causal=false} => MatMul(Softmax-8(Add(Multiply(MatMul(q, k) {transpose_b=true}, s), m)) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v, m: boolean, s) {causal=false} => MatMul(Softmax-8(Select(m, Multiply(MatMul(q, k) {transpose_b=true}, s), -inf)) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v) {causal=false} => MatMul(Softmax-8(Divide(MatMul(q, k) {transpose_b=true}, Sqrt(Convert(Gather(ShapeOf-1(q), -1, 0)) {destination_type=$t}))) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v, 0) {causal=false} => MatMul(Softmax-8(Divide(MatMul(q, k) {transpose_b=true}, Sqrt(Convert(Gather(ShapeOf-1(q), -1, 0)) {destination_type=$t}))) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v, m: f64|f32|f16|bf16) {causal=false} => MatMul(Softmax-8(Add(Divide(MatMul(q, k) {transpose_b=true}, Sqrt(Convert(Gather(ShapeOf-1(q), -1, 0)) {destination_type=$t})), m)) {axis=-1}, v)",
                always,
            ),
            (
                "ScaledDotProductAttention(q: $t, k, v, m: boolean) {causal=false} => MatMul(Softmax-8(Select(m, Divide(MatMul(q, k) {transpose_b=true}, Sqrt(Convert(Gather(ShapeOf-1(q), -1, 0)) {destination_type=$t})), -inf)) {axis=-1}, v)",
                always,
            ),
        ],
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
