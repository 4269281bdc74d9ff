//! Values of shape computations that depend on lengths.
//!
//! Operations that only move values run on the evaluator of inference: the moved numbers are positions in a list of
//! items, and exact inputs such as indices stay what they are. Only arithmetic has rules of its own.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Rule;
use crate::ops::evaluate::{Evaluate, Evaluation};
use crate::ops::values::array::{self, Array, Few};
use crate::symbols::expression::{Arena, Expr};
use crate::symbols::walk::{Fraction, Length, MAX_ITEMS, Value};

/// Inputs that are moved, by operation; the others must be known exactly.
fn moved_inputs(name: &str, evaluate: Evaluate) -> Option<u32> {
    match (name, evaluate) {
        (
            "Concat"
            | "Gather"
            | "Slice"
            | "Reshape"
            | "Squeeze"
            | "Unsqueeze"
            | "Transpose"
            | "Broadcast"
            | "Tile"
            | "Split"
            | "VariadicSplit"
            | "Pad"
            | "ScatterNDUpdate"
            | "ScatterElementsUpdate"
            | "ScatterUpdate"
            | "Select",
            Evaluate::Ends(set, _),
        ) => Some(set),
        ("StridedSlice" | "GatherElements" | "GatherND" | "Reverse" | "Roll", _) => Some(1),
        _ => None,
    }
}

impl Rule<'_, '_> {
    /// The values of the first output, if they depend on lengths.
    pub(super) fn value_of_output(&mut self) -> Option<Value> {
        let name = self.operation.name;
        if name == "ShapeOf" {
            let items = self.dims(0)?.iter().map(|dim| dim.map(|dim| (dim, 1))).collect::<Vec<_>>();
            return Some(Value { dims: Few::from_slice(&[items.len()]), items });
        }
        if !self.inputs.iter().any(|input| input.value.is_some()) {
            return None;
        }
        let count = self.layer.outputs().first()?.shape().element_count();
        if count.is_none_or(|count| count > MAX_ITEMS as u64) {
            return None;
        }
        self.moved_value(0).or_else(|| self.computed_value())
    }

    pub(super) fn moved_value(&mut self, port: usize) -> Option<Value> {
        let evaluate = self.operation.evaluate;
        let moved = moved_inputs(self.operation.name, evaluate)?;
        let (Evaluate::Ends(_, by) | Evaluate::Exact(by) | Evaluate::FromBounds(by, _)) = evaluate else {
            return None;
        };
        let zero = self.walk.arena.number(0);
        let mut items = vec![Some((zero, 1))];
        let mut arrays: SmallVec<[Array; 4]> = SmallVec::new();
        for input in 0..self.inputs.len() {
            let output = self.output(input)?;
            if moved >> input & 1 == 1 {
                let value = self.walk.value(self.graph, output)?;
                let start = items.len() as i128;
                items.extend(value.items);
                let places = start..items.len() as i128;
                arrays.push(Array::ints(ElementType::I64, value.dims, places));
            } else {
                match self.walk.exact(self.graph, output) {
                    Some(exact) => arrays.push(exact),
                    None if self.operation.name == "Select" && input == 0 => return None,
                    None => {
                        let ints = self.ints(input)?;
                        let dims = Few::from_slice(&[ints.len()]);
                        arrays.push(Array::ints(ElementType::I64, dims, ints.into_iter().map(i128::from)));
                    }
                }
            }
        }
        let evaluation = Evaluation::new(self.attributes, self.graph, port, self.walk.evaluator.weights());
        let result = by(&evaluation, &arrays.iter().collect::<SmallVec<[_; 4]>>())?;
        let places = result.to_integers();
        let found = places.iter().map(|&place| items.get(usize::try_from(place).ok()?).copied().flatten()).collect();
        Some(Value { dims: result.dims, items: found })
    }

    fn computed_value(&mut self) -> Option<Value> {
        let name = self.operation.name;
        match name {
            "Add" | "Subtract" | "Multiply" | "Divide" | "FloorMod" | "Mod" | "Maximum" | "Minimum" | "Power"
            | "Equal" | "NotEqual" | "Less" | "LessEqual" | "Greater" | "GreaterEqual" | "LogicalAnd" | "LogicalOr"
            | "BitwiseAnd" | "BitwiseOr" | "SquaredDifference" => {
                let (a, b) = (self.input_value(0)?, self.input_value(1)?);
                self.zipped(&[a, b], |rule, items| rule.binary(name, items[0]?, items[1]?))
            }
            "Select" => {
                let values = [self.input_value(0)?, self.input_value(1)?, self.input_value(2)?];
                self.zipped(&values, |rule, items| {
                    let ((test, _), (a, over_a), (b, over_b)) = (items[0]?, items[1]?, items[2]?);
                    (over_a == over_b).then_some(())?;
                    Some((rule.walk.arena.choose(test, a, b)?, over_a))
                })
            }
            "Convert" | "ConvertLike" | "Floor" | "Ceiling" | "Round" | "Abs" | "Relu" | "Negative" | "LogicalNot"
            | "Sqrt" | "Clamp" | "Identity" => {
                let value = self.input_value(0)?;
                self.zipped(&[value], |rule, items| rule.unary(name, items[0]?))
            }
            "ReduceProd" | "ReduceSum" | "ReduceMax" | "ReduceMin" => {
                let value = self.input_value(0)?;
                let dims = self.output_dims()?;
                (array::count(&dims)? == 1).then_some(())?;
                let step = match name {
                    "ReduceProd" => "Multiply",
                    "ReduceSum" => "Add",
                    "ReduceMax" => "Maximum",
                    _ => "Minimum",
                };
                let mut items = value.items.into_iter();
                let mut total = items.next()?;
                for item in items {
                    total = total.zip(item).and_then(|(a, b)| self.binary(step, a, b));
                }
                Some(Value { dims, items: vec![total] })
            }
            _ => None,
        }
    }

    fn output_dims(&self) -> Option<Few<usize>> {
        let dims = self.layer.outputs().first()?.shape().to_static()?;
        dims.into_iter().map(|dim| usize::try_from(dim).ok()).collect()
    }

    /// Combines the elements of tensors that broadcast to the inferred shape.
    fn zipped(
        &mut self,
        values: &[Value],
        mut by: impl FnMut(&mut Self, &[Option<Fraction>]) -> Option<Fraction>,
    ) -> Option<Value> {
        let dims = self.output_dims()?;
        let count = array::count(&dims)?;
        let places = values.iter().map(|value| {
            let own = Array::ints(ElementType::I64, value.dims.clone(), 0..value.items.len() as i128);
            let start = dims.len().checked_sub(value.dims.len())?;
            Some(own.stretched(&dims, start..dims.len())?.to_integers())
        });
        let places: Vec<_> = places.collect::<Option<_>>()?;
        let mut items = Vec::with_capacity(count);
        for at in 0..count {
            let given: SmallVec<[Option<Fraction>; 3]> = values
                .iter()
                .zip(&places)
                .map(|(value, places)| value.items.get(usize::try_from(*places.get(at)?).ok()?).copied().flatten())
                .collect();
            items.push(by(self, &given));
        }
        Some(Value { dims, items })
    }

    fn is_float(&self) -> bool {
        self.layer.outputs().first().is_some_and(|port| port.element_type().is_float())
    }

    fn unary(&mut self, name: &str, (above, by): Fraction) -> Option<Fraction> {
        let is_float = self.is_float();
        let arena = &mut self.walk.arena;
        let below = arena.number(by);
        let low = arena.range(above).0;
        Some(match name {
            "Floor" => (arena.div(above, below)?, 1),
            "Ceiling" => (arena.div_up(above, below)?, 1),
            "Convert" | "ConvertLike" if is_float || by == 1 => (above, by),
            "Convert" | "ConvertLike" if low >= 0 => (arena.div(above, below)?, 1),
            "Round" if by == 1 => (above, 1),
            "Identity" => (above, by),
            "Abs" | "Relu" if low >= 0 => (above, by),
            "Negative" => (arena.scale(above, -1)?, by),
            "LogicalNot" => (arena.not(above)?, 1),
            "Clamp" if by == 1 => {
                let (min, max) = (self.attributes.float("min").ok()?, self.attributes.float("max").ok()?);
                (min.fract() == 0.0 && max.fract() == 0.0).then_some(())?;
                let (min, max) = (arena.number(min as i64), arena.number(max as i64));
                let raised = arena.max(above, min)?;
                (arena.min(raised, max)?, 1)
            }
            _ => return None,
        })
    }

    fn binary(&mut self, name: &str, (a, over_a): Fraction, (b, over_b): Fraction) -> Option<Fraction> {
        let is_float = self.is_float();
        let arena = &mut self.walk.arena;
        if over_a != over_b && !matches!(name, "Multiply" | "Divide" | "Power") {
            let (left, right) = (arena.scale(a, over_b)?, arena.scale(b, over_a)?);
            let over = over_a.checked_mul(over_b)?;
            return self.binary(name, (left, over), (right, over));
        }
        let test = |test: Length| Some((test?, 1));
        match name {
            "Add" => Some((arena.add(a, b)?, over_a)),
            "Subtract" => Some((arena.sub(a, b)?, over_a)),
            "Maximum" => Some((arena.max(a, b)?, over_a)),
            "Minimum" => Some((arena.min(a, b)?, over_a)),
            "Multiply" => {
                let product = arena.mul(a, b)?;
                reduced(arena, product, over_a.checked_mul(over_b)?)
            }
            "Divide" if is_float => {
                let (above, below) = (arena.scale(a, over_b)?, arena.scale(b, over_a)?);
                match arena.value(below) {
                    Some(number @ 1..) => reduced(arena, above, number),
                    Some(_) => None,
                    None => Some((arena.exact_quotient(above, below)?, 1)),
                }
            }
            "Divide" => Some((arena.div(a, b)?, 1)),
            "FloorMod" if over_a == 1 => Some((arena.remainder(a, b)?, 1)),
            "Mod" if over_a == 1 && arena.range(a).0 >= 0 => Some((arena.remainder(a, b)?, 1)),
            "Power" if over_b == 1 => match arena.value(b)? {
                exponent @ 1..=3 => {
                    let above = arena.product((0..exponent).map(|_| a).collect::<Vec<_>>())?;
                    Some((above, over_a.checked_pow(u32::try_from(exponent).ok()?)?))
                }
                _ => None,
            },
            "Equal" => test(arena.equal(a, b)),
            "NotEqual" => {
                let equal = arena.equal(a, b)?;
                test(arena.not(equal))
            }
            "GreaterEqual" => test(arena.at_least(a, b)),
            "LessEqual" => test(arena.at_least(b, a)),
            "Greater" => {
                let not = arena.at_least(b, a)?;
                test(arena.not(not))
            }
            "Less" => {
                let not = arena.at_least(a, b)?;
                test(arena.not(not))
            }
            "LogicalAnd" => test(arena.all(&[a, b])),
            "LogicalOr" => test(arena.any(&[a, b])),
            _ => None,
        }
    }

    /// The largest value of an output whose integers grow along each axis, such as positions.
    pub(super) fn last_of_output(&mut self) -> Length {
        let of = |rule: &Self, input: usize| rule.inputs.get(input).and_then(|input| input.last);
        match self.operation.name {
            "Range" => {
                let (start, stop, step) = (self.single(0)?, self.single(1)?, self.single(2)?);
                let arena = &mut self.walk.arena;
                (arena.value(step)? > 0).then_some(())?;
                let length = arena.sub(stop, start)?;
                let steps = arena.div_up(length, step)?;
                let steps = arena.plus(steps, -1)?;
                let way = arena.mul(steps, step)?;
                arena.add(start, way)
            }
            "Convert" | "ConvertLike" | "Unsqueeze" | "Squeeze" | "Reshape" | "Broadcast" | "Transpose" | "Tile" => {
                of(self, 0)
            }
            "Slice" | "StridedSlice" => {
                let is_whole = self.outputs.first().is_some_and(|dims| dims.is_some() && *dims == self.dims(0));
                of(self, 0).filter(|_| is_whole)
            }
            // A mask of tokens, whose running sum numbers them.
            "Equal" | "NotEqual" | "Less" | "LessEqual" | "Greater" | "GreaterEqual" => {
                let is_large = self.layer.outputs().first()?.shape().element_count().is_none();
                is_large.then(|| self.number(1))
            }
            "CumSum" => {
                let (last, axis) = (of(self, 0)?, self.ints(1)?.first().copied()?);
                let axis = self.axis(axis, self.dims(0)?.len())?;
                let length = self.dim(0, axis)?;
                self.walk.arena.mul(last, length)
            }
            name @ ("Add" | "Subtract" | "Multiply" | "Minimum") => {
                let has_one = of(self, 0).is_some() || of(self, 1).is_some();
                has_one.then_some(())?;
                let (a, b) = (self.last_of(0)?, self.last_of(1)?);
                let is_fixed = of(self, 1).is_none();
                let arena = &mut self.walk.arena;
                match name {
                    "Add" => arena.add(a, b),
                    "Minimum" => arena.min(a, b),
                    "Subtract" if is_fixed => arena.sub(a, b),
                    "Multiply" if arena.range(a).0 >= 0 && arena.range(b).0 >= 0 => arena.mul(a, b),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn last_of(&mut self, input: usize) -> Length {
        self.inputs.get(input).and_then(|input| input.last).or_else(|| self.single(input))
    }
}

fn reduced(arena: &mut Arena, above: Expr, by: i64) -> Option<Fraction> {
    let below = arena.number(by);
    if let Some(quotient) = arena.exact_quotient(above, below) {
        return Some((quotient, 1));
    }
    let mut by = by;
    let mut above = above;
    for prime in [2, 3, 5, 7] {
        let factor = arena.number(prime);
        while by % prime == 0 {
            let Some(quotient) = arena.exact_quotient(above, factor) else { break };
            (above, by) = (quotient, by / prime);
        }
    }
    Some((above, by))
}
