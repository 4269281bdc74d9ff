//! Errors of operations that refuse their inputs or attributes.

use std::ops::Range;

use smallvec::SmallVec;
use thiserror::Error;
use typelift_promote::ElementType;

use crate::findings::{About, Code, Fix, Message, Text, message};
use crate::model::graph::{Body, Direction, LayerId};
use crate::model::shape::{ParseShapeError, Shape};

/// Error of an inference rule: the operation does not accept its inputs or attributes.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub(crate) struct Fault {
    pub(crate) code: Code,
    /// The message, one sentence without a full stop.
    pub(crate) message: Message,
    /// The inputs concerned, by position.
    pub(crate) inputs: SmallVec<[usize; 2]>,
    pub(crate) attribute: Option<&'static str>,
    /// Facts that do not follow from `inputs` and `attribute`.
    pub(crate) detail: Option<Box<Detail>>,
    /// The violated rule, if the message does not state it.
    pub(crate) rule: Option<Box<Message>>,
    pub(crate) help: Option<Box<Fix>>,
    /// Other promotion rules under which the inputs are accepted.
    pub(crate) other_rules: Box<[Fix]>,
    /// The type that the operation requires for the first of `inputs`, if there is a single one.
    pub(crate) wants: Option<ElementType>,
}

/// Position of an error inside an attribute or port map, or the details of its finding.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    /// The byte range in the attribute's value.
    Bytes(Range<usize>),
    /// The entry of a body's port map, or the back edge, that names this layer of the body.
    Joint { body: String, direction: Direction, id: LayerId },
    /// The details of the finding.
    About(About),
}

impl Fault {
    fn new(code: Code, message: Message) -> Self {
        Self {
            code,
            message,
            inputs: SmallVec::new(),
            attribute: None,
            detail: None,
            rule: None,
            help: None,
            other_rules: Box::default(),
            wants: None,
        }
    }

    #[cold]
    pub(crate) fn types(inputs: &[usize], message: impl Into<Message>) -> Self {
        Self::new(Code::TypeMismatch, message.into()).about(inputs)
    }

    #[cold]
    pub(crate) fn unsupported(input: usize, message: impl Into<Message>) -> Self {
        Self::new(Code::UnsupportedType, message.into()).about(&[input])
    }

    #[cold]
    pub(crate) fn shapes(inputs: &[usize], message: impl Into<Message>) -> Self {
        Self::new(Code::ShapeMismatch, message.into()).about(inputs)
    }

    #[cold]
    pub(crate) fn value(inputs: &[usize], message: impl Into<Message>) -> Self {
        Self::new(Code::InvalidValue, message.into()).about(inputs)
    }

    #[cold]
    pub(crate) fn attribute(name: &'static str, message: impl Into<Message>) -> Self {
        Self { attribute: Some(name), ..Self::new(Code::InvalidValue, message.into()) }
    }

    #[cold]
    pub(crate) fn shape_text(name: &'static str, text: &str, error: ParseShapeError) -> Self {
        let fault = Self::attribute(name, message!("`{}` is `{}`: {}"; name, text, Text(&error)));
        Self { detail: Some(Box::new(Detail::Bytes(error.span))), ..fault }.help(help_with_shape(name, text))
    }

    #[cold]
    pub(crate) fn other(code: Code, message: impl Into<Message>) -> Self {
        Self::new(code, message.into())
    }

    pub(super) fn about(mut self, inputs: &[usize]) -> Self {
        self.inputs = inputs.into();
        self
    }

    pub(crate) fn joint(mut self, body: &Body, direction: Direction, id: LayerId) -> Self {
        self.detail = Some(Box::new(Detail::Joint { body: body.name().to_owned(), direction, id }));
        self
    }

    /// Sets the details of the finding, instead of those that follow from inputs and attribute.
    pub(crate) fn concerning(mut self, about: About) -> Self {
        self.detail = Some(Box::new(Detail::About(about)));
        self
    }

    /// Marks the error: a list's length differs from the number of spatial axes.
    pub(crate) fn counts_axes(self) -> Self {
        let about = About::Refusal { inputs: self.inputs.clone(), attribute: self.attribute, counts_axes: true };
        self.concerning(about)
    }

    pub(crate) fn to_about(&self) -> About {
        match self.detail.as_deref() {
            Some(Detail::About(about)) => about.clone(),
            _ => About::Refusal { inputs: self.inputs.clone(), attribute: self.attribute, counts_axes: false },
        }
    }

    pub(crate) fn rule(mut self, rule: impl Into<Message>) -> Self {
        self.rule = Some(Box::new(rule.into()));
        self
    }

    pub(crate) fn wants(mut self, ty: ElementType) -> Self {
        self.wants = Some(ty);
        self.help(message!("insert a Convert to {} before it"; ty))
    }

    pub(crate) fn help(mut self, help: impl Into<Fix>) -> Self {
        self.help = Some(Box::new(help.into()));
        self
    }
}

/// Suggests a shape for a text that cannot be parsed.
fn help_with_shape(name: &'static str, text: &str) -> Message {
    // Other frameworks write `(1, 3)` and `[1, 3]`; `1.0` is an integer written as a float.
    let text = text.trim().trim_matches(|c| "()[]{}".contains(c));
    let by_cross: Option<Vec<i64>> = text.split(['x', 'X', ' ', ';']).map(|dim| dim.parse().ok()).collect();
    match by_cross {
        Some(dims) => {
            let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
            message!("write {}=\"{}\": dimensions are separated by commas"; name, Text(dims.join(",")))
        }
        None => {
            let dims = text.split(',').map(|dim| {
                let dim = dim.trim();
                let dim = dim.strip_suffix(".0").unwrap_or(dim);
                if !dim.trim().is_empty() && Shape::parse_lenient(dim).is_ok() {
                    dim.to_owned()
                } else {
                    "?".to_owned()
                }
            });
            let dims: Vec<_> = dims.collect();
            let rule = if dims.iter().any(|dim| dim == "?") { ": `?` is a dimension that is not fixed" } else { "" };
            message!("write {}=\"{}\"{}"; name, Text(dims.join(",")), rule)
        }
    }
}
