//! Storage types of a model's constants, and the permitted loss.

use typelift_promote::ElementType;

use super::Kept;
use super::compress::{Compression, Like};
use super::plan::{Action, Constant, Loss, Plan, Reason};
use crate::findings::{Code, Diagnostic, LayerRef, Message, Severity, Text, message, short};
use crate::model::graph::Model;
use crate::text::xml;

/// Storage of the constants of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Storage {
    /// Compresses to 16 bits, with Converts that restore the type: [`Plan::compress`].
    Compress {
        /// The type, f16 or bf16.
        to: ElementType,
        /// The rules that select the constants.
        like: Like,
    },
    /// Stores compressed constants of these types in the type in which they are used: [`Plan::decompress`].
    Decompress(Vec<ElementType>),
    /// Stores quantized constants as plain values in this type or, if `None`, in the type in which they are used:
    /// [`Plan::dequantize`].
    Dequantize(Option<ElementType>),
}

impl Storage {
    pub(crate) fn plan(&self, model: &Model, kept: Kept) -> Plan {
        match self {
            Self::Compress { to, like } => Plan::compress(model, &Compression { to: *to, like: *like, kept }),
            Self::Decompress(types) => Plan::decompress(model, types),
            Self::Dequantize(to) => Plan::dequantize(model, *to, &kept),
        }
    }
}

impl Plan {
    /// An error for each constant with a value whose relative error would exceed `limit`, worst first.
    pub(crate) fn beyond(&self, model: &Model, limit: f64) -> Vec<Diagnostic> {
        let worst = self.worst(usize::MAX).into_iter();
        let errors = worst.take_while(|constant| constant.loss.max_rel > limit).map(|constant| {
            let message = message!(
                "the relative error of `{}` in {} would be up to {}, more than {}";
                constant.path, constant.to, Text(short(constant.loss.max_rel)), limit
            );
            let found = finding(model, constant, message);
            Diagnostic { severity: Severity::Error, ..found.help("keep the constant, or allow a larger error") }
        });
        errors.collect()
    }

    /// Returns a warning for each constant with values out of the type's range, or NaN, and for each one that is left
    /// unchanged because its values exceed the memory limit.
    pub fn warnings(&self, model: &Model) -> Vec<Diagnostic> {
        let damaged = self.changed().filter(|constant| constant.loss.to_inf + constant.loss.nan > 0);
        let warning = |constant: &Constant| {
            let Loss { n, to_inf, nan, .. } = constant.loss;
            let (path, to) = (&constant.path, constant.to);
            let message = match (to_inf, nan) {
                (0, _) => message!("`{}` has {} of {} values that are NaN"; path, nan, n),
                _ => {
                    message!(
                        "{} of {} values of `{}` are out of the range of {} and become its largest number";
                        to_inf, n, path, to
                    )
                }
            };
            finding(model, constant, message).help("if these values matter, do not change the constant")
        };
        let too_large = self.constants.iter().filter(|constant| constant.action == Action::Keep(Reason::TooLarge));
        let unchanged = |constant: &Constant| {
            let reason = model.weights().hold(constant.loss.n).err()?;
            let message = message!("the values of `{}` cannot be computed: {}"; constant.path, Text(reason));
            Some(finding(model, constant, message).help("raise the memory limit"))
        };
        damaged.map(warning).chain(too_large.filter_map(unchanged)).collect()
    }
}

fn finding(model: &Model, constant: &Constant, message: Message) -> Diagnostic {
    let layer = model.graph_at(&constant.place).and_then(|graph| graph.layer(constant.layer));
    let span = xml::locate(model.source(), layer.and_then(|it| it.span()).unwrap_or_default(), "layer", "name");
    let reference = layer.map(|layer| LayerRef::of(&constant.place, layer));
    let label = message!("{} as {}"; constant.from, constant.to);
    Diagnostic { layer: reference, ..Diagnostic::new(Code::LossyConversion, message).at(span, label) }
}
