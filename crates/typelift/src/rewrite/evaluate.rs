//! Evaluation of expressions in replacements and conditions of rules.

use std::cell::{Cell, OnceCell};

use smallvec::{SmallVec, smallvec};
use typelift_promote::ElementType;

use super::bound::{Bound, self_describe};
use super::constant::{compute, default_type, is_same};
use super::losses::Losses;
use super::shapes::{self, Part};
use super::term::{DimPattern, DimsPart, Function, Name, Side, TermKind, Times};
use super::values;
use crate::infer::blocks::BlockNumbers;
use crate::model::graph::{Graph, Layer, LayerId, Output};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::ops::values::array::{Array, Data};
use crate::rewrite::notation::{Literal, print_values};

/// Reason why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Lack {
    /// A name in the expression is absent in this match.
    Absent,
    /// The values are not known, or there are none.
    Reason(String),
    /// A condition is known not to hold.
    False(String),
}

impl From<String> for Lack {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

pub(super) struct Evaluator<'a> {
    pub(super) graph: &'a Graph,
    pub(super) weights: &'a Weights,
    pub(super) side: &'a Side,
    pub(super) names: &'a [Name],
    pub(super) names_bound: &'a [Option<Bound>],
    pub(super) variables: &'a [Option<compact_str::CompactString>],
    pub(super) variable_names: &'a [String],
    /// True if numbers have no element type, as in conditions.
    pub(super) plain: bool,
    pub(super) losses: Cell<Losses>,
    /// The numbers of the blocks of the layers, if they are kept for several matches.
    pub(super) blocks: Option<&'a OnceCell<BlockNumbers>>,
}

/// Properties of a tensor that are known without its values.
struct KnownProperties {
    element_type: ElementType,
    shape: Shape,
    tensor: Option<Output>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        (graph, weights): (&'a Graph, &'a Weights),
        side: &'a Side,
        names: &'a [Name],
        names_bound: &'a [Option<Bound>],
        variables: &'a [Option<compact_str::CompactString>],
    ) -> Self {
        let losses = Cell::default();
        let (variable_names, plain, blocks) = (&[][..], false, None);
        Self { graph, weights, side, names, names_bound, variables, variable_names, plain, losses, blocks }
    }

    /// Evaluates a condition. If it is true, returns the values of names that it binds.
    pub(super) fn holds(&self, term: usize) -> Result<Vec<(usize, f64)>, Lack> {
        if let TermKind::DimsLike(list, parts) = &self.side.terms[term].kind {
            return self.dims_like(*list, parts);
        }
        if let TermKind::Compute(Function::Equal | Function::Same, of) = &self.side.terms[term].kind
            && let [a, b] = &of[..]
            && let (Some(a), Some(b)) = (self.shape_of(*a), self.shape_of(*b))
        {
            let (a, b) = (a?, b?);
            let reason = || format!("one is {a}, the other {b}");
            return match a == b && a.rank().is_some() {
                true => Ok(Vec::new()),
                false if a.is_compatible(&b) => Err(Lack::Reason(reason())),
                false => Err(Lack::False(reason())),
            };
        }
        let truths = self.array(term, None)?.truths();
        match truths[..] {
            [true] => return Ok(Vec::new()),
            [false] => {}
            _ => {
                return Err(Lack::Reason(format!(
                    "the condition is a list of {}; write `all(…)`, `any(…)` or `same(a, b)`",
                    truths.len()
                )));
            }
        }
        Err(Lack::False(match &self.side.terms[term].kind {
            TermKind::Compute(_, of) if of.len() > 1 => {
                format!("it is {}", print_values(&self.array(of[0], None)?))
            }
            _ => "the condition is false".to_owned(),
        }))
    }

    pub(super) fn with<'b>(
        &'b self,
        names_bound: &'b [Option<Bound>],
        variables: &'b [Option<compact_str::CompactString>],
    ) -> Evaluator<'b> {
        Evaluator { names_bound, variables, losses: Cell::default(), ..*self }
    }

    pub(super) fn layer_name(&self, term: usize) -> Result<&str, Lack> {
        let layer = self.known(term)?.tensor.and_then(|tensor| self.graph.layer(tensor.layer));
        layer.map(Layer::name).ok_or_else(|| Lack::Reason(format!("no layer produces {}", self.text(term))))
    }

    /// Matches a list with a test such as `[1?, C, 1...]`. Returns the values of its names.
    fn dims_like(&self, list: usize, parts: &[DimsPart]) -> Result<Vec<(usize, f64)>, Lack> {
        let (dims, text) = match self.shape_of(list) {
            Some(shape) => {
                let shape = shape?;
                let dims = shape.dims().ok_or_else(|| Lack::Reason("the rank is not known".to_owned()))?;
                (dims.iter().map(|dim| dim.value()).collect(), shape.to_string())
            }
            None => {
                let values = self.array(list, Some(ElementType::I64))?;
                (values.to_integers().iter().copied().map(Some).collect::<Vec<_>>(), print_values(&values))
            }
        };
        let mut found = Vec::new();
        if self.fits(&dims, parts, false, &mut found) {
            return Ok(found);
        }
        let could_fit = self.fits(&dims, parts, true, &mut found);
        let reason = format!("it is {text}");
        Err(if could_fit { Lack::Reason(reason) } else { Lack::False(reason) })
    }

    /// With `open`, an unknown dimension matches any number.
    fn fits(&self, dims: &[Option<i64>], parts: &[DimsPart], open: bool, found: &mut Vec<(usize, f64)>) -> bool {
        let Some((part, others)) = parts.split_first() else { return dims.is_empty() };
        let (least, most) = match part.times {
            Times::Once => (1, 1),
            Times::AtMostOnce => (0, 1),
            Times::Any => (0, dims.len()),
        };
        let known = found.len();
        for count in 0..=most.min(dims.len()) {
            if count > 0 && !(open && dims[count - 1].is_none() || self.is_dim(dims[count - 1], part.dim, found)) {
                break;
            }
            if count >= least && self.fits(&dims[count..], others, open, found) {
                return true;
            }
        }
        found.truncate(known);
        false
    }

    fn is_dim(&self, dim: Option<i64>, pattern: DimPattern, found: &mut Vec<(usize, f64)>) -> bool {
        match (pattern, dim) {
            (DimPattern::Any, _) => true,
            (DimPattern::Number(number), dim) => dim == Some(number),
            (DimPattern::Name(_), None) => false,
            (DimPattern::Name(name), Some(dim)) => {
                let earlier = found.iter().find(|(known, _)| *known == name).map(|&(_, number)| number);
                let bound = || self.named(name, None).ok().map(|array| array.to_floats()[..].to_vec());
                match earlier {
                    Some(number) => number == dim as f64,
                    None if self.names_bound[name].is_some() => bound().is_some_and(|it| it == [dim as f64]),
                    None => {
                        found.push((name, dim as f64));
                        true
                    }
                }
            }
        }
    }

    fn shape_of(&self, term: usize) -> Option<Result<Shape, Lack>> {
        match &self.side.terms[term].kind {
            TermKind::Compute(Function::Shape, of) => Some(self.known(of[0]).map(|known| known.shape)),
            _ => None,
        }
    }

    /// Numbers get the `expected` type unless their operands determine another one.
    pub(super) fn array(&self, term: usize, expected: Option<ElementType>) -> Result<Array, Lack> {
        let array = match &self.side.terms[term].kind {
            TermKind::Literal(literal) => literal_array(literal, expected)?,
            TermKind::File(file) => file.read(self.weights)?.clone(),
            TermKind::Type(ty) => Array::ints(ElementType::I64, SmallVec::new(), [*ty as i128]),
            TermKind::Variable(variable) => self.variable(*variable, expected)?,
            TermKind::Name { name, .. } => self.named(*name, expected)?,
            TermKind::Else { name, otherwise } => match self.names_bound[*name] {
                Some(_) => self.named(*name, expected)?,
                None => self.array(*otherwise, expected)?,
            },
            TermKind::NameLike(of, pattern) => truth(self.parts_of_name(*of, pattern)?.is_some()),
            TermKind::DimsLike(of, parts) => truth(self.dims_like(*of, parts).is_ok()),
            TermKind::Compute(function, of) if function.measures() => self.measure(*function, of)?,
            TermKind::Compute(function, of) => self.compute(*function, of, expected)?,
            _ => return Err(Lack::Reason("arithmetic needs constants".to_owned())),
        };
        Ok(if self.plain { plain(array) } else { array })
    }

    /// Checks that a term is present in this match.
    pub(super) fn array_or_tensor(&self, term: usize) -> Result<(), Lack> {
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } | TermKind::List(name) if self.names_bound[*name].is_none() => {
                Err(Lack::Absent)
            }
            TermKind::Compute(_, of) => of.iter().try_for_each(|&term| match &self.side.terms[term].kind {
                // An absent operand of arithmetic is replaced by a neutral number.
                TermKind::Name { name, .. } if self.names[*name].neutral.is_some() => Ok(()),
                _ => self.array_or_tensor(term),
            }),
            _ => Ok(()),
        }
    }

    fn compute(&self, function: Function, of: &[usize], expected: Option<ElementType>) -> Result<Array, Lack> {
        match function {
            Function::Axis => return self.axes(of),
            Function::In => return self.is_in(of),
            Function::Channel => {
                self.array(of[0], None)?;
                self.rank_of(of[1])?;
                self.array(of[2], None)?;
                return Ok(truth(self.along(of).is_ok()));
            }
            Function::Along => return self.along(of),
            Function::On => return self.on(of),
            Function::Sorted => {
                let values = self.array(of[0], None)?.to_floats();
                return Ok(truth(values.is_sorted_by(|a, b| a < b)));
            }
            Function::All => return Ok(truth(self.array(of[0], None)?.truths().iter().all(|&truth| truth))),
            Function::Any => return Ok(truth(self.array(of[0], None)?.truths().contains(&true))),
            _ => {}
        }
        // A number gets the type of the operand that it is combined with.
        let typed = of.iter().position(|&at| !self.is_free(at));
        let mut first = typed.map(|position| self.array(of[position], None)).transpose()?;
        let wanted = first.as_ref().map(|array| array.element_type).or(expected);
        let indices = matches!(
            function,
            Function::Transpose | Function::Reshape | Function::Gather | Function::Slice(_) | Function::Without
        );
        let of =
            of.iter().enumerate().map(|(position, &at)| match (position, first.take_if(|_| typed == Some(position))) {
                (1.., None) if indices => self.array(at, Some(ElementType::I64)),
                (_, Some(array)) => Ok(array),
                _ => self.array(at, wanted),
            });
        let of = of.collect::<Result<Vec<_>, _>>()?;
        let function = match (function, expected) {
            (Function::Convert(None), Some(to)) => Function::Convert(Some(to)),
            (Function::ConvertTo(variable), _) => Function::Convert(Some(self.type_named_by(variable)?)),
            (function, _) => function,
        };
        let of = if self.plain { alike(of) } else { of };
        let mut losses = self.losses.get();
        let found = compute(self.weights, function, &of, &mut losses)?;
        self.losses.set(losses);
        Ok(found)
    }

    pub(super) fn type_named_by(&self, variable: usize) -> Result<ElementType, String> {
        let name = self.variables[variable].as_deref().unwrap_or_default();
        ElementType::from_name(name).ok_or_else(|| format!("`{name}` is not an element type"))
    }

    fn variable(&self, variable: usize, expected: Option<ElementType>) -> Result<Array, Lack> {
        let text = self.variables[variable].as_deref().ok_or(Lack::Absent)?;
        let items: Vec<_> = text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect();
        let dims = if text.contains(',') || items.is_empty() { smallvec![items.len()] } else { SmallVec::new() };
        let whole = items.iter().map(|item| item.parse().ok()).collect::<Option<Vec<i128>>>();
        let array = match whole {
            Some(values) => Array::ints(ElementType::I64, dims, values),
            None => {
                let values = items.iter().map(|item| match item.to_ascii_lowercase().as_str() {
                    "true" => Some(1.0),
                    "false" => Some(0.0),
                    number => number.parse().ok(),
                });
                let values = values.collect::<Option<SmallVec<_>>>();
                let values = values.ok_or_else(|| format!("`{text}` is not a number"))?;
                Array::floats(ElementType::F64, dims, values)
            }
        };
        let array = match expected {
            Some(ty) if !self.plain => array.converted(ty).ok_or_else(|| format!("{ty} cannot represent {text}"))?,
            _ => array,
        };
        Ok(array)
    }

    fn named(&self, name: usize, expected: Option<ElementType>) -> Result<Array, Lack> {
        let number = match (&self.names_bound[name], self.names[name].neutral) {
            (Some(Bound::Tensor(tensor)), _) => {
                return Ok(values::values(self.graph, self.weights, *tensor).ok_or_else(|| {
                    let layer = self.graph.layer(tensor.layer).map_or("it", |layer| layer.name());
                    match self
                        .graph
                        .output(*tensor)
                        .and_then(|port| port.shape().element_count())
                        .map(|it| self.weights.hold(it))
                    {
                        Some(Err(reason)) => format!("the constant `{layer}` is too large: {reason}"),
                        _ => format!("the values of the constant `{layer}` are unknown, or not numeric"),
                    }
                })?);
            }
            (Some(Bound::Values(values)), _) => return Ok((**values).clone()),
            (Some(Bound::Number(number)), _) => *number,
            (Some(Bound::List(_)), _) => return Err(Lack::Reason("a list has no values".to_owned())),
            (None, Some(number)) => number,
            (None, None) => return Err(Lack::Absent),
        };
        let ty = expected.unwrap_or(if self.plain { ElementType::F64 } else { ElementType::F32 });
        Ok(Array::scalar(ty, number))
    }

    /// True if a term consists only of numbers without a type.
    pub(super) fn is_free(&self, at: usize) -> bool {
        match &self.side.terms[at].kind {
            TermKind::Literal(_) | TermKind::Variable(_) | TermKind::Type(_) => true,
            TermKind::Name { name, .. } => match &self.names_bound[*name] {
                Some(Bound::Number(_)) => true,
                None => self.names[*name].neutral.is_some(),
                _ => false,
            },
            TermKind::Else { name, otherwise } => match &self.names_bound[*name] {
                Some(Bound::Number(_)) => true,
                Some(_) => false,
                None => self.is_free(*otherwise),
            },
            TermKind::NameLike(..) | TermKind::DimsLike(..) => true,
            TermKind::Compute(function, _) if function.measures() || *function == Function::Axis => true,
            TermKind::Compute(Function::Convert(to), of) => to.is_none() || of.iter().all(|&at| self.is_free(at)),
            TermKind::Compute(_, of) => of.iter().all(|&at| self.is_free(at)),
            _ => false,
        }
    }

    pub(super) fn is_whole(&self, at: usize) -> bool {
        match &self.side.terms[at].kind {
            TermKind::Literal(literal) => literal.is_whole(),
            TermKind::Variable(_) => self.array(at, None).is_ok_and(|array| array.element_type.is_integer()),
            TermKind::Compute(function, _) if function.measures() || *function == Function::Axis => true,
            TermKind::Compute(Function::Divide | Function::Sqrt | Function::Exp, _) => false,
            TermKind::Compute(_, of) => of.iter().all(|&at| self.is_whole(at)),
            TermKind::Else { name, otherwise } if self.names_bound[*name].is_none() => self.is_whole(*otherwise),
            TermKind::Name { name, .. } => {
                matches!(self.names_bound[*name], Some(Bound::Number(number)) if number.fract() == 0.0)
            }
            _ => false,
        }
    }

    fn known(&self, term: usize) -> Result<KnownProperties, Lack> {
        let TermKind::Name { name, .. } = &self.side.terms[term].kind else {
            let array = self.array(term, None)?;
            return Ok(KnownProperties { element_type: array.element_type, shape: array.shape(), tensor: None });
        };
        match &self.names_bound[*name] {
            Some(Bound::Tensor(tensor)) => {
                let port = self.graph.output(*tensor).ok_or_else(|| "the layer was removed".to_owned())?;
                Ok(KnownProperties {
                    element_type: port.element_type(),
                    shape: port.shape().clone(),
                    tensor: Some(*tensor),
                })
            }
            Some(Bound::Values(values)) => {
                Ok(KnownProperties { element_type: values.element_type, shape: values.shape(), tensor: None })
            }
            Some(Bound::List(_)) => Err(Lack::Reason("a list has no type".to_owned())),
            Some(Bound::Number(_)) => {
                Ok(KnownProperties { element_type: ElementType::F32, shape: Shape::scalar(), tensor: None })
            }
            None => Err(Lack::Absent),
        }
    }

    fn text(&self, term: usize) -> String {
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } => format!("`{}`", self.names[*name].text),
            _ => "it".to_owned(),
        }
    }

    fn measure(&self, function: Function, of: &[usize]) -> Result<Array, Lack> {
        if let TermKind::List(name) = self.side.terms[of[0]].kind {
            let count = self.names_bound[name].as_ref().ok_or(Lack::Absent)?.tensors().len();
            return Ok(Array::ints(ElementType::I64, SmallVec::new(), [count as i128]));
        }
        let known = self.known(of[0])?;
        let name = || self.text(of[0]);
        let number = |value: i128| Array::ints(ElementType::I64, SmallVec::new(), [value]);
        let rank = || known.shape.rank().ok_or_else(|| Lack::Reason(format!("the rank of {} is not known", name())));
        Ok(match function {
            Function::Rank => number(rank()? as i128),
            Function::Size => {
                let count = known.shape.element_count();
                number(count.ok_or_else(|| format!("the size of {} is not known", name()))?.into())
            }
            Function::Dim => {
                let axis = self.array(of[1], Some(ElementType::I64))?.first_integer().unwrap_or(0);
                let at = if axis < 0 { axis + rank()? as i64 } else { axis };
                let dim = known.shape.dims().and_then(|dims| dims.get(usize::try_from(at).ok()?)?.value());
                number(dim.ok_or_else(|| format!("dimension {axis} of {} is not known", name()))?.into())
            }
            Function::Shape => {
                let dims = known.shape.to_static();
                let dims = dims.ok_or_else(|| format!("the shape of {} is not known", name()))?;
                Array::ints(ElementType::I64, smallvec![dims.len()], dims.into_iter().map(i128::from))
            }
            Function::Type | Function::Bits if known.element_type == ElementType::Dynamic => {
                return Err(Lack::Reason(format!("the type of {} is not known", name())));
            }
            Function::Type => number(known.element_type as i128),
            Function::Static => truth(known.shape.is_static()),
            Function::Block => {
                let layer = known.tensor.and_then(|tensor| self.graph.layer(tensor.layer));
                let outside = || format!("{} is in no numbered block", layer.map_or_else(name, self_describe));
                number(layer.and_then(|layer| self.block_of(layer.id())).ok_or_else(outside)?.into())
            }
            Function::Bits => number(known.element_type.bits().into()),
            Function::Dims => self.dims(&known.shape, &of[1..])?,
            Function::Constant => {
                truth(known.tensor.is_none_or(|it| values::values(self.graph, self.weights, it).is_some()))
            }
            Function::Unknown => {
                rank()?;
                let dims = known.shape.dims().unwrap_or_default();
                number(dims.iter().filter(|dim| dim.value().is_none()).count() as i128)
            }
            _ => number(known.tensor.map_or(0, |tensor| self.graph.consumers(tensor).count()) as i128),
        })
    }

    fn block_of(&self, layer: LayerId) -> Option<u64> {
        let numbers = || BlockNumbers::new(self.graph);
        match self.blocks {
            Some(blocks) => blocks.get_or_init(numbers).of(layer),
            None => numbers().of(layer),
        }
    }

    fn dims(&self, shape: &Shape, of: &[usize]) -> Result<Array, Lack> {
        let dims = shape.dims().ok_or_else(|| "the rank is not known".to_owned())?;
        let tensors = of.iter().map(|&term| Ok(self.known(term)?.tensor)).collect::<Result<Vec<_>, Lack>>()?;
        let (parts, source) = match &tensors[..] {
            [Some(list), Some(source)] => (shapes::parts(self.graph, self.weights, *list), Some(*source)),
            _ => (None, None),
        };
        let parts = parts.filter(|parts| parts.len() == dims.len()).unwrap_or_default();
        let list = dims.iter().enumerate().map(|(at, dim)| match (dim.value(), parts.get(at)) {
            (Some(dim), _) => i128::from(dim),
            (None, Some(Part::Dim(of, axis))) if Some(*of) == source && *axis == at => 0,
            _ => -1,
        });
        let list: Vec<_> = list.collect();
        if dims.iter().any(|dim| dim.value() == Some(0)) || list.iter().filter(|&&dim| dim == -1).count() > 1 {
            return Err(Lack::Reason("more than one dimension is unknown".to_owned()));
        }
        Ok(Array::ints(ElementType::I64, smallvec![list.len()], list))
    }

    fn axes(&self, of: &[usize]) -> Result<Array, Lack> {
        let rank = self.rank_of(of[1])? as i64;
        let axes = self.array(of[0], Some(ElementType::I64))?;
        let counted = axes.to_integers().into_iter().map(|axis| i128::from(if axis < 0 { axis } else { axis - rank }));
        Ok(Array::ints(ElementType::I64, axes.dims.clone(), counted.collect::<Vec<_>>()))
    }

    fn rank_of(&self, term: usize) -> Result<usize, Lack> {
        let rank = self.known(term)?.shape.rank();
        Ok(rank.ok_or_else(|| format!("the rank of {} is not known", self.text(term)))?)
    }

    fn axis_of(&self, term: usize, rank: usize) -> Result<usize, Lack> {
        let axis = self.array(term, Some(ElementType::I64))?.first_integer().unwrap_or(0);
        let axis = usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok().filter(|&axis| axis < rank);
        Ok(axis.ok_or_else(|| format!("there are {rank} axes"))?)
    }

    fn along(&self, of: &[usize]) -> Result<Array, Lack> {
        let array = self.array(of[0], None)?;
        let (shape, rank) = (self.known(of[1])?.shape, self.rank_of(of[1])?);
        let axis = self.axis_of(of[2], rank)?;
        let first = rank.checked_sub(array.dims.len());
        let first = first.ok_or_else(|| format!("{} has more axes", self.text(of[0])))?;
        if array.dims.iter().enumerate().any(|(at, &dim)| dim != 1 && at + first != axis) {
            return Err(Lack::Reason(format!("{} varies along other axes", self.text(of[0]))));
        }
        let length = shape.dims().and_then(|dims| dims[axis].value()).and_then(|dim| usize::try_from(dim).ok());
        let flat = array.reshaped(smallvec![array.len()]).unwrap_or(array);
        Ok(match length {
            Some(length) if flat.len() == 1 => flat.stretched(&[length], [0]).unwrap_or(flat),
            _ => flat,
        })
    }

    /// Broadcasts a list along one or two axes of a tensor.
    fn on(&self, of: &[usize]) -> Result<Array, Lack> {
        let list = self.array(of[0], None)?;
        let (shape, rank) = (self.known(of[1])?.shape, self.rank_of(of[1])?);
        let mut dims: SmallVec<[usize; 4]> = smallvec![1; rank];
        let known = |at: usize| shape.dims().and_then(|dims| usize::try_from(dims[at].value()?).ok());
        let axes = of[2..].iter().map(|&axis| self.axis_of(axis, rank)).collect::<Result<SmallVec<[usize; 2]>, _>>()?;
        for &at in &axes {
            dims[at] = if axes.len() == 1 { list.len() } else { known(at).unwrap_or(1) };
        }
        Ok(list.reshaped(dims).ok_or_else(|| format!("{} values do not fill the axes", list.len()))?)
    }

    fn is_in(&self, of: &[usize]) -> Result<Array, Lack> {
        let value = self.array(of[0], None)?;
        for &other in &of[1..] {
            if is_same(&value, &self.array(other, Some(value.element_type))?) {
                return Ok(truth(true));
            }
        }
        Ok(truth(false))
    }
}

fn truth(holds: bool) -> Array {
    Array::booleans(SmallVec::new(), [holds])
}

/// Converts numbers to `i64` if they are integers, else to `f64`.
fn plain(array: Array) -> Array {
    let to = match &array.data {
        _ if array.element_type == ElementType::Boolean => return array,
        Data::Ints(_) => ElementType::I64,
        Data::Floats(_) => ElementType::F64,
    };
    array.converted(to).unwrap_or(array)
}

/// Converts numbers without a type to a common type.
fn alike(arrays: Vec<Array>) -> Vec<Array> {
    let is_float = arrays.iter().any(|array| array.element_type.is_float());
    let to = if is_float { ElementType::F64 } else { ElementType::I64 };
    arrays.into_iter().map(|array| array.converted(to).unwrap_or(array)).collect()
}

pub(super) fn literal_array(literal: &Literal, expected: Option<ElementType>) -> Result<Array, Lack> {
    let ty = expected.unwrap_or_else(|| default_type(literal.is_whole()));
    let array = literal
        .to_array(ty, &literal.dims)
        .or_else(|| literal.to_array(ElementType::F64, &literal.dims).filter(|_| expected.is_none()));
    Ok(array.ok_or_else(|| format!("a number of the rule must have type {ty} here, which cannot represent it"))?)
}
