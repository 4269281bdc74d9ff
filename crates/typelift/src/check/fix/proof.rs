//! The decision if a fix is safe. It needs a ground, and every similar change must fail.
//!
//! A trial by types and shapes can show that a fix is wrong. It cannot prove one, because `axis="1"` and `axis="2"`
//! may both pass. A fix is safe if the file itself shows that it is intended, and if similar values were tried and
//! fail. Otherwise it is possible, and a person must choose.
//!
//! ```text
//! axis="(-1)"              text        every character is accounted for: safe
//! axis="2", ports say 1    neighbours  0, 2 and -1 do not give what the ports declare: safe
//! from-port="3"            possible    a lost Convert explains the edge as well
//! ```

use super::fitting::Fitting;
use super::relation;
use super::site::{Case, Ground};
use super::trial::{Needs, Soundness};
use crate::check::Declared;
use crate::findings::{Proof, Text, message};
use crate::model::graph::{Layer, OutputPort};
use crate::ops::{self, Attr, AttrKind, LayerKind};

impl Case<'_> {
    /// Decides if the only candidate that passed its trial is safe. No other function decides this.
    ///
    /// `after` is the state of the text after the trial. Returns the proof, with the similar changes that were tried
    /// and fail.
    pub(super) fn prove(&self, ground: &Ground, after: &Soundness) -> Option<Proof> {
        match ground {
            Ground::None => None,
            Ground::Text(slips) => Some(Proof::new(message!("text: {}"; Text(slips.join(", "))))),
            Ground::File(says, needs) => after.satisfies(*needs, &self.before).then(|| Proof::new(*says)),
            Ground::Outputs { layer, name, value } => {
                let layer = self.graph.layer(*layer)?;
                // OpenVINO accepts the layer, so a contradiction that is left may have the same cause.
                let is_all = self.is_error || after.satisfies(Needs::NoDeviations, &self.before);
                (is_all && self.is_in_question(layer, name, value))
                    .then(|| self.by_outputs(layer, name, value))
                    .flatten()
            }
        }
    }

    fn is_in_question(&self, layer: &Layer, name: &str, value: &str) -> bool {
        let Some(row) = layer.operation().and_then(|operation| operation.attribute(name)) else { return false };
        let inputs = self.graph.tensors(layer.id());
        // A Convert to the type of its input has no purpose, so that the Convert itself is in question.
        let is_idle =
            ops::kind(layer) == LayerKind::Convert && inputs.iter().any(|it| it.element_type().name() == value);
        // A valid flag is intended, and a layer is not the cause if its input is wrong.
        let is_flag =
            matches!(row.kind, AttrKind::Bool) && layer.attribute(name).is_some_and(|text| row.is_clear(text));
        let is_text = matches!(row.kind, AttrKind::Text | AttrKind::Texts);
        let feeds = self.graph.feeds(layer.id());
        let is_given_other = layer.inputs().iter().zip(&feeds).any(|(port, feed)| {
            let declared = Declared::read(self.source(), port.declared, port.content);
            let tensor = feed.and_then(|(source, at)| source.outputs().get(at));
            tensor.is_none_or(|tensor| declared.contradicts(tensor, true))
        });
        !is_idle && !is_flag && !is_text && !is_given_other && (self.is_error || self.is_said_twice(layer))
    }

    /// Proves a value by the declared outputs: no similar value, swap, other attribute or other value of an input gives
    /// them.
    fn by_outputs(&self, layer: &Layer, name: &str, value: &str) -> Option<Proof> {
        let operation = layer.operation()?;
        let row = operation.attribute(name)?;
        let mut fitting = Fitting::new(self.model, self.graph, layer.id());
        let is_readable = layer.attribute(name).is_some_and(|text| row.is_clear(text));
        // Without any attribute, the others are lost too.
        if layer.attributes().is_empty() && operation.attribute_names().nth(1).is_some() {
            return None;
        }
        if fitting.fits(name, value) != Some(true) || is_readable && fitting.has_lists() {
            return None;
        }
        let mut rivals = Vec::new();
        for other in operation.attribute_names().filter_map(|name| operation.attribute(name)) {
            let is_same = other.name == name;
            let now = if is_same { Some(value) } else { layer.attribute(other.name).or(other.default) };
            let Some(now) = now else { continue };
            // The old value may be right if another attribute is wrong.
            for rival in relation::neighbours(now, words_of(other)) {
                let fits = fitting.fits(other.name, &rival);
                let is_refuted = if is_same { fits == Some(false) } else { fits != Some(true) };
                is_refuted.then(|| rivals.push(format!("{}=\"{rival}\"", other.name)))?;
            }
        }
        for (one, other) in relation::pairs(layer) {
            let exchanged = fitting.fits_both((one, layer.attribute(other)?), (other, layer.attribute(one)?));
            (exchanged != Some(true)).then(|| rivals.push(format!("{one} and {other} swapped")))?;
        }
        (!rivals.is_empty())
            .then(|| Proof { rivals, ..Proof::new("ports: only this value gives the declared outputs") })
    }

    /// OpenVINO accepts the file, so the port may be what is wrong.
    fn is_said_twice(&self, layer: &Layer) -> bool {
        layer.outputs().iter().enumerate().any(|(at, port)| {
            let declared = Declared::read(self.source(), port.declared, port.content);
            let inputs = self.graph.consumers(layer.id().output(at));
            let mut ports = inputs.filter_map(|input| self.graph.layer(input.layer)?.inputs().get(input.port));
            !declared.dims.is_empty()
                && ports.any(|port| Declared::read(self.source(), port.declared, port.content).dims == declared.dims)
        })
    }
}

/// True if a missing layer can explain that an input is given another tensor than its port declares: a Convert if the
/// types differ, or a Reshape or Transpose if the shapes have as many elements.
pub(super) fn is_explained(declared: &Declared, tensor: &OutputPort) -> bool {
    let Some(found) = tensor.shape().dims() else { return true };
    let found: Vec<i64> = found.iter().map(|dim| dim.value().unwrap_or(-1)).collect();
    let count = |dims: &[i64]| dims.iter().map(|&dim| i128::from(dim)).product::<i128>().abs();
    count(&declared.dims) == count(&found)
}

fn words_of(row: &Attr) -> &'static [&'static str] {
    match row.kind {
        AttrKind::Bool => &["true", "false"],
        AttrKind::Enum(words) => words,
        AttrKind::Type => {
            &["f32", "f16", "bf16", "f64", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8", "boolean"]
        }
        _ => &[],
    }
}
