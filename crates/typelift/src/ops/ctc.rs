//! Connectionist temporal classification: decoders and the loss.

use typelift_promote::ElementType;

use super::common::{check_rank, check_type, dim, merge_dims};
use super::{Accepts, Attr, AttrKind, Context, Fault, Operation};
use crate::findings::message;
use crate::model::shape::{Dim, Shape};

pub(super) const ROWS: &[Operation] = &[
    Operation::new("CTCGreedyDecoder", 0, decoder).inputs(2, 2).attributes(&[MERGES]),
    Operation::new("CTCGreedyDecoderSeqLen", 6, decoder_seq_len).inputs(2, 3).attributes(&[
        Attr::new("merge_repeated", AttrKind::Bool).default("true"),
        Attr::new("classes_index_type", AttrKind::Type).default("i32"),
        Attr::new("sequence_length_type", AttrKind::Type).default("i32"),
    ]),
    Operation::new("CTCLoss", 4, loss).inputs(4, 5).accepts(Accepts::Real).attributes(&[
        Attr::new("preprocess_collapse_repeated", AttrKind::Bool).default("false"),
        Attr::new("ctc_merge_repeated", AttrKind::Bool).default("true"),
        Attr::new("unique", AttrKind::Bool).default("false"),
    ]),
];

const MERGES: Attr = Attr::new("ctc_merge_repeated", AttrKind::Bool).default("true");

fn decoder(cx: &mut Context) -> Result<(), Fault> {
    check_rank(cx, 0, "logits", &[3])?;
    check_rank(cx, 1, "sequence mask", &[2])?;
    let (logits, mask) = (cx.shape(0), cx.shape(1));
    let time = merge_dims(&[0, 1], "time of logits and sequence mask", dim(logits, 0), dim(mask, 0))?;
    let batch = merge_dims(&[0, 1], "batch of logits and sequence mask", dim(logits, 1), dim(mask, 1))?;
    cx.finish(cx.element_type(0), [batch, time, Dim::ONE, Dim::ONE].into_iter().collect())
}

fn decoder_seq_len(cx: &mut Context) -> Result<(), Fault> {
    if cx.inputs.len() == 3 {
        check_type(cx, 2, "blank index values", Accepts::Integer)?;
        let blank = cx.shape(2);
        if blank.is_static() && blank.rank() != Some(0) && *blank != Shape::fixed([1]) {
            return Err(Fault::shapes(&[2], message!("the blank index must be one number, but has shape {}"; blank)));
        }
    }
    check_rank(cx, 0, "logits", &[3])?;
    check_rank(cx, 1, "sequence lengths", &[1])?;
    let (logits, lengths) = (cx.shape(0), cx.shape(1));
    let batch = merge_dims(&[0, 1], "batch of logits and sequence lengths", dim(logits, 0), dim(lengths, 0))?;
    let (classes, length) = (cx.type_attribute("classes_index_type")?, cx.type_attribute("sequence_length_type")?);
    cx.output(classes, [batch, dim(logits, 1)].into_iter().collect());
    cx.finish(length, [batch].into_iter().collect())
}

fn loss(cx: &mut Context) -> Result<(), Fault> {
    let element_type = cx.element_type(0);
    if element_type == ElementType::Dynamic {
        return Err(Fault::unsupported(0, "`CTCLoss` takes floating-point numbers, but gets a dynamic type"));
    }
    cx.check_accepted(0, element_type)?;
    const NAMES: [&str; 5] = ["logits", "logit lengths", "labels", "label lengths", "blank index"];
    for (input, (&name, rank)) in NAMES.iter().zip([3, 1, 2, 1, 0]).enumerate().take(cx.inputs.len()) {
        if input > 0 {
            check_type(cx, input, name, Accepts::Integer)?;
        }
        check_rank(cx, input, name, &[rank])?;
    }
    let mut batch = Dim::ANY;
    for input in 0..4 {
        batch = merge_dims(&[0, input], "batch of all inputs", batch, dim(cx.shape(input), 0))?;
    }
    merge_dims(&[0, 2], "time of logits and labels", dim(cx.shape(0), 1), dim(cx.shape(2), 1))?;
    cx.finish(element_type, [batch].into_iter().collect())
}
