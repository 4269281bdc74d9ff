//! Matrix products, and operations that contain them.

use typelift_promote::ElementType;

use super::common::{INDEX_OR_DYNAMIC, check_rank, check_type_in, merge_dims};
use super::evaluate::Evaluate::Exact;
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation, Ties, evaluate};
use crate::findings::{Text, message};
use crate::model::shape::{AutoBroadcast, Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("MatMul", 0, matmul)
        .wraps()
        .evaluate(Exact(evaluate::mat_mul))
        .inputs(2, 2)
        .ties(Ties::All)
        .attributes(&[
            Attr::new("transpose_a", AttrKind::Bool).default("false"),
            Attr::new("transpose_b", AttrKind::Bool).default("false"),
        ]),
    Operation::new("Einsum", 7, einsum)
        .wraps()
        .requires(&["equation"])
        .inputs(1, usize::MAX)
        .ties(Ties::All)
        .accepts(Accepts::NotBoolean)
        .attributes(&[Attr::new("equation", AttrKind::Text).default("")]),
    Operation::new("GroupedMatMul", 17, grouped_matmul).inputs(2, 3).ties(Ties::Inputs(&[0, 1])),
    Operation::new("ScaledDotProductAttention", 13, attention)
        .inputs(3, 6)
        .ties(Ties::Mask { inputs: &[0, 1, 2, 4], mask: 3 })
        .accepts(Accepts::Real)
        .attributes(&[Attr::new("causal", AttrKind::Bool).default("false")]),
];

fn matmul(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    let (left, right) = (cx.shape(0), cx.shape(1));
    let (Some(a), Some(b)) = (left.dims(), right.dims()) else { return cx.finish(element_type, Shape::dynamic()) };
    let transposed = (cx.bool("transpose_a")?, cx.bool("transpose_b")?);
    let (a_batch, a_rows, a_inner) = matrix(cx, 0, a, transposed.0)?;
    // The second operand is read as if transposed: rows first, then the inner dimension.
    let (b_batch, b_columns, b_inner) = matrix(cx, 1, b, !transposed.1)?;
    let unfit = |what: &'static str, a: Dim, b: Dim| {
        let message =
            message!("the {} dimensions {} and {} of `MatMul` with shapes {} and {} differ"; what, a, b, left, right);
        Fault::shapes(&[0, 1], message)
    };
    // OpenVINO accepts any dimension that is not a single length.
    let open = |a: Dim, b: Dim| !a.is_fixed() || !b.is_fixed();
    if !a_inner.is_compatible(b_inner) && !open(a_inner, b_inner) {
        return Err(unfit("inner", a_inner, b_inner).rule(match transposed {
            (false, false) => "the columns of input 0 must equal the rows of input 1",
            (false, true) => "`transpose_b` is true: both inputs must have the same number of columns",
            (true, false) => "`transpose_a` is true: both inputs must have the same number of rows",
            (true, true) => "both inputs are transposed: the rows of input 0 must equal the columns of input 1",
        }));
    }
    let rank = a_batch.len().max(b_batch.len());
    let batch_dim = |batch: &[Dim], axis: usize| match (axis + batch.len()).checked_sub(rank) {
        Some(axis) => batch[axis],
        None => Dim::ONE,
    };
    let batch = (0..rank).map(|axis| match (batch_dim(a_batch, axis), batch_dim(b_batch, axis)) {
        (a, b) if open(a, b) => Ok(a.broadcast(b).unwrap_or(Dim::ANY)),
        (a, b) => a.broadcast(b).ok_or_else(|| unfit("batch", a, b)),
    });
    let mut dims = batch.collect::<Result<Vec<_>, _>>()?;
    dims.extend(a_rows.into_iter().chain(b_columns));
    cx.finish(element_type, dims.into_iter().collect())
}

/// The inner dimension is the last one, or the one before if the matrix is transposed.
fn matrix<'a>(
    cx: &Context,
    input: usize,
    dims: &'a [Dim],
    transposed: bool,
) -> Result<(&'a [Dim], Option<Dim>, Dim), Fault> {
    match *dims {
        [] => {
            let fault = Fault::shapes(&[input], message!("`{}` does not accept scalars"; cx.ty()));
            Err(fault.help("use Multiply for scalars"))
        }
        [length] => Ok((&[], None, length)),
        [ref batch @ .., inner, rows] if transposed => Ok((batch, Some(rows), inner)),
        [ref batch @ .., rows, inner] => Ok((batch, Some(rows), inner)),
    }
}

fn grouped_matmul(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.merge_types(&[0, 1])?;
    if cx.inputs.len() == 3 {
        check_type_in(cx, 2, "offsets", INDEX_OR_DYNAMIC)?;
    }
    let (a, b) = (cx.shape(0), cx.shape(1));
    let shape = match (a.dims(), b.dims()) {
        (None, _) | (_, None) => Shape::dynamic(),
        (Some(&[a_group, rows, a_inner]), Some(&[b_group, columns, b_inner])) => {
            let group = merge_dims(&[0, 1], "number of groups", a_group, b_group)?;
            merge_dims(&[0, 1], "inner dim", a_inner, b_inner)?;
            Shape::from_iter([group, rows, columns])
        }
        (Some(&[rows, a_inner]), Some(&[_, columns, b_inner])) => {
            if cx.inputs.len() < 3 {
                let message =
                    message!("`GroupedMatMul` of {} and {} needs a third input, the offsets of the groups"; a, b);
                return Err(Fault::shapes(&[0, 1], message));
            }
            check_rank(cx, 2, "offsets", &[1])?;
            merge_dims(&[0, 1], "inner dim", a_inner, b_inner)?;
            Shape::from_iter([rows, columns])
        }
        _ => {
            let fault = Fault::shapes(&[0, 1], message!("`GroupedMatMul` does not multiply {} and {}"; a, b));
            return Err(fault.rule("the ranks must be 2 and 3, or 3 and 3"));
        }
    };
    cx.finish(element_type, shape)
}

/// Character that represents the ellipsis; labels are letters.
const ELLIPSIS: u8 = b'.';

fn einsum(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.element_type(0);
    cx.check_accepted(0, element_type)?;
    for input in 1..cx.inputs.len() {
        cx.merge_types(&[0, input])?;
    }
    let (subscripts, output) = parse_equation(cx.text("equation")?)?;
    if subscripts.len() != cx.inputs.len() {
        let message =
            message!("`equation` has {} subscripts, but there are {} inputs"; subscripts.len(), cx.inputs.len());
        return Err(Fault::attribute("equation", message));
    }
    let mut labels = Labels { lengths: [None; 128], ellipsis: None };
    for (input, subscript) in subscripts.iter().enumerate() {
        if cx.shape(input).dims().is_none() && [subscript, &output].iter().all(|labels| labels.contains(&ELLIPSIS)) {
            return cx.finish(element_type, Shape::dynamic());
        }
        labels.meet(cx, input, subscript)?;
    }
    let shape = labels.shape_of(&output)?;
    cx.finish(element_type, shape)
}

/// Known dimensions of the labels of an equation.
struct Labels {
    lengths: [Option<Dim>; 128],
    ellipsis: Option<Shape>,
}

impl Labels {
    /// Merges an input's shape into the dimensions of its labels.
    fn meet(&mut self, cx: &Context, input: usize, subscript: &[u8]) -> Result<(), Fault> {
        let has_ellipsis = subscript.contains(&ELLIPSIS);
        let Some(dims) = cx.shape(input).dims() else {
            for label in subscript.iter().filter(|&&label| label != ELLIPSIS) {
                self.lengths[usize::from(*label)].get_or_insert(Dim::ANY);
            }
            return Ok(());
        };
        let letters = subscript.len() - usize::from(has_ellipsis);
        if dims.len() < letters || (dims.len() > letters && !has_ellipsis) {
            let message =
                message!("subscript {} has {} labels, but the input has shape {}"; input, letters, cx.shape(input));
            return Err(Fault::shapes(&[input], message));
        }
        let mut own: [Option<Dim>; 128] = [None; 128];
        let mut rest = dims;
        for &label in subscript {
            if label == ELLIPSIS && !rest.is_empty() {
                let (covered, after) = rest.split_at(dims.len() - letters);
                self.widen_ellipsis(input, Shape::from_iter(covered.iter().copied()))?;
                rest = after;
            } else if let [length, after @ ..] = rest {
                let both = own[usize::from(label)].map_or(Some(*length), |before| before & *length);
                own[usize::from(label)] = Some(both.ok_or_else(|| unequal(label, input))?);
                rest = after;
            }
        }
        for (label, (length, own)) in self.lengths.iter_mut().zip(own).enumerate() {
            let Some(own) = own else { continue };
            let both = length.map_or(Some(own), |before| before.broadcast(own));
            *length = Some(both.ok_or_else(|| unequal(label as u8, input))?);
        }
        Ok(())
    }

    fn widen_ellipsis(&mut self, input: usize, covered: Shape) -> Result<(), Fault> {
        self.ellipsis = Some(match &self.ellipsis {
            None => covered,
            Some(shape) => AutoBroadcast::Numpy.combine(shape, &covered).map_err(|mismatch| {
                Fault::shapes(
                    &[input],
                    message!(
                        "the dimensions of the ellipses, {} and {}, contradict each other: {}";
                        shape, covered, mismatch
                    ),
                )
            })?,
        });
        Ok(())
    }

    fn shape_of(&self, output: &[u8]) -> Result<Shape, Fault> {
        let mut dims = Vec::with_capacity(output.len());
        for &label in output {
            match (label, self.lengths[usize::from(label)]) {
                (ELLIPSIS, _) => dims.extend(self.ellipsis.as_ref().and_then(Shape::dims).unwrap_or_default()),
                (_, Some(length)) => dims.push(length),
                (_, None) => {
                    let message =
                        message!("label {} of the output is in no input of `equation`"; Text(char::from(label)));
                    return Err(Fault::attribute("equation", message));
                }
            }
        }
        Ok(dims.into_iter().collect())
    }
}

fn unequal(label: u8, input: usize) -> Fault {
    let message = message!(
        "the dimensions with label {} of `equation` differ, the last one in input {}";
        Text(char::from(label)), input
    );
    Fault::shapes(&[input], message)
}

/// Parses an equation into the labels of the inputs and those of the output.
fn parse_equation(equation: &str) -> Result<(Vec<Vec<u8>>, Vec<u8>), Fault> {
    let (inputs, output) = match equation.split_once("->") {
        Some((inputs, output)) => (inputs, Some(output)),
        None => (equation, None),
    };
    let mut subscripts = Vec::new();
    for subscript in output.into_iter().chain(inputs.split(',')) {
        subscripts.push(parse_subscript(subscript).ok_or_else(|| {
            let message = message!("`{}` in `equation` is not a valid subscript"; subscript);
            Fault::attribute("equation", message)
                .rule("a subscript consists of letters and at most one `...`, without spaces")
        })?);
    }
    if output.is_some() {
        let output = subscripts.remove(0);
        return Ok((subscripts, output));
    }
    // Without `->` the output has the ellipsis and then all labels that occur once, in alphabetical order.
    let mut counts = [0_usize; 128];
    for subscript in &subscripts {
        let mut labels = subscript.clone();
        labels.sort_unstable();
        labels.dedup();
        labels.into_iter().for_each(|label| counts[usize::from(label)] += 1);
    }
    let labels = subscripts.iter().flatten().copied();
    let mut output: Vec<u8> = labels.filter(|&label| label != ELLIPSIS && counts[usize::from(label)] == 1).collect();
    output.sort_unstable();
    if counts[usize::from(ELLIPSIS)] > 0 {
        output.insert(0, ELLIPSIS);
    }
    Ok((subscripts, output))
}

fn parse_subscript(text: &str) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut rest = text;
    while let Some(&first) = rest.as_bytes().first() {
        if let Some(after) = rest.strip_prefix("...").filter(|_| !labels.contains(&ELLIPSIS)) {
            labels.push(ELLIPSIS);
            rest = after;
        } else if first.is_ascii_alphabetic() {
            labels.push(first);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(labels)
}

/// Infers attention: query, key, value, and optionally a mask, a scale and a sink.
fn attention(cx: &mut Context) -> Result<(), Fault> {
    let count = cx.inputs.len();
    let causal = cx.bool("causal")?;
    // A mask may also be boolean, and of any type if it is not used.
    let ignores_mask = causal || count > 3 && cx.element_type(3) == ElementType::Boolean;
    let inputs: Vec<usize> = (0..count).filter(|&input| input != 3 || !ignores_mask).collect();
    let element_type = cx.merge_types(&inputs)?;
    cx.check_accepted(0, element_type)?;
    let mut query = Sequences::of(cx, 0, "query")?;
    let key = Sequences::of(cx, 1, "key")?;
    let value = Sequences::of(cx, 2, "value")?;
    for (input, operand) in [(1, &key), (2, &value)] {
        query.batch = broadcast(&[0, input], &query.batch, &operand.batch)?;
    }
    merge_dims(&[0, 1], "last dim of query and key", query.last, key.last)?;
    let length = merge_dims(&[1, 2], "length of key and value", key.length, value.length)?;
    if count > 3 && !causal {
        mask(cx, &mut query, length)?;
    }
    match cx.try_shape(4).and_then(Shape::dims) {
        None | Some([]) => {}
        Some([length]) if length.contains(1) => {}
        Some(_) => {
            return Err(Fault::shapes(&[4], message!("the scale must be one number, but has shape {}"; cx.shape(4))));
        }
    }
    check_sink(cx, &query)?;
    let dims = query.batch.dims().map(|dims| dims.iter().copied().chain([query.length, value.last]));
    let shape = dims.map_or_else(Shape::dynamic, Iterator::collect);
    cx.finish(element_type, shape)
}

/// Operand of attention: a batch of sequences of vectors.
struct Sequences {
    batch: Shape,
    length: Dim,
    last: Dim,
}

impl Sequences {
    fn of(cx: &Context, input: usize, name: &'static str) -> Result<Self, Fault> {
        match cx.shape(input).dims() {
            None => Ok(Self { batch: Shape::dynamic(), length: Dim::ANY, last: Dim::ANY }),
            Some([batch @ .., length, last]) if !batch.is_empty() => {
                Ok(Self { batch: batch.iter().copied().collect(), length: *length, last: *last })
            }
            Some(_) => {
                let message = message!("the {} must have rank 3 or more, but has shape {}"; name, cx.shape(input));
                Err(Fault::shapes(&[input], message))
            }
        }
    }
}

/// Broadcasts the batch of the query with that of another input, unless that input has dynamic rank.
fn broadcast(inputs: &[usize], query: &Shape, other: &Shape) -> Result<Shape, Fault> {
    if other.rank().is_none() {
        return Ok(query.clone());
    }
    AutoBroadcast::Numpy.combine(query, other).map_err(|mismatch| {
        Fault::shapes(inputs, message!("the batches {} and {} cannot be broadcast: {}"; query, other, mismatch))
    })
}

/// Combines the query's batch and length with those of the mask. `length` is that of the keys.
fn mask(cx: &Context, query: &mut Sequences, length: Dim) -> Result<(), Fault> {
    let mask = cx.shape(3);
    let (batch, &rows, &columns) = match mask.dims() {
        None | Some([]) => return Ok(()),
        Some([batch @ .., rows, columns]) => (batch, rows, columns),
        Some(_) => {
            return Err(Fault::shapes(&[3], message!("the mask must have rank 2 or more, but has shape {}"; mask)));
        }
    };
    match (query.length.broadcast(rows), length.broadcast(columns)) {
        (Some(rows), Some(_)) => query.length = rows,
        _ => {
            let message = message!("the mask {} does not fit {} queries and {} keys"; mask, query.length, length);
            return Err(Fault::shapes(&[0, 1, 3], message));
        }
    }
    if !batch.is_empty() {
        query.batch = broadcast(&[0, 3], &query.batch, &batch.iter().copied().collect())?;
    }
    Ok(())
}

/// An error if a sink cannot be broadcast to one number for each query.
fn check_sink(cx: &Context, query: &Sequences) -> Result<(), Fault> {
    let (Some([sink @ .., last]), Some(batch)) = (cx.try_shape(5).and_then(Shape::dims), query.batch.dims()) else {
        return match cx.try_shape(5).and_then(Shape::rank) {
            Some(0) => Err(Fault::shapes(&[5], "the sink must have the rank of the query, but is a scalar")),
            _ => Ok(()),
        };
    };
    let queries: Shape = batch.iter().copied().chain([query.length]).collect();
    let fits = sink.len() == batch.len() + 1 && last.contains(1);
    match AutoBroadcast::Numpy.combine(&queries, &sink.iter().copied().collect()) {
        Ok(_) if fits => Ok(()),
        _ => {
            let message = message!("the sink {} cannot be broadcast to the {} queries"; cx.shape(5), queries);
            Err(Fault::shapes(&[0, 5], message)
                .rule("the sink must have the rank of the query, and its last dimension must be 1"))
        }
    }
}
