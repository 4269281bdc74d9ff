//! Messages of findings: templates with typed arguments, which become words only when they are shown.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::{Serialize, Serializer};
use typelift_promote::ElementType;

use super::LayerRef;
use crate::model::graph::{self, LayerId, OutputPort};
use crate::model::shape::{Dim, Shape, ShapeMismatch};

/// Sentence or clause of a finding, without a full stop: a template and its typed arguments.
///
/// `Display` and `Serialize` render the words. A program that groups findings compares templates.
///
/// ```
/// use typelift::findings::Kind;
///
/// let text = "<net name='n' version='11'><layers><layer id='0' name='x'/></layers></net>";
/// let found = typelift::xml::parse(std::sync::Arc::new(text.to_owned())).diagnostics;
/// let message = &found[0].message;
/// assert_eq!(message.to_string(), "<layer> has no attribute `type`");
/// assert_eq!(message.template(), "<{}> has no attribute `{}`");
/// assert_eq!(message.arguments().map(|it| it.text).collect::<Vec<_>>(), ["layer", "type"]);
/// assert_eq!(message.arguments().next().map(|it| it.kind), Some(Kind::Name));
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Message {
    template: &'static str,
    /// For each argument the number of its kind, the length of its text, a colon and the text. This is smaller than
    /// the words, and a damaged file has many findings.
    arguments: Box<str>,
}

/// Argument of a [`Message`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument<'a> {
    /// The kind.
    pub kind: Kind,
    /// The text as it appears in the words.
    pub text: &'a str,
}

/// Kind of an [`Argument`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A number.
    Number,
    /// An element type, alone or with a shape.
    Type,
    /// A shape or one dimension.
    Shape,
    /// A layer: its id, or its id and name.
    Layer,
    /// A name or word: of a layer, operation or attribute, or any text of the file.
    Name,
    /// Other values, such as lists, floats and errors.
    Text,
    /// A message inside this one.
    Message,
}

impl Kind {
    const ALL: [Self; 7] = [Self::Number, Self::Type, Self::Shape, Self::Layer, Self::Name, Self::Text, Self::Message];
}

impl Message {
    /// Creates a message. Each `{}` of the template is the place of one argument.
    ///
    /// ```
    /// use typelift::findings::Message;
    ///
    /// assert_eq!(Message::new("layer `{}` has {} inputs", &[&"sum", &2_usize]).to_string(), "layer `sum` has 2 inputs");
    /// ```
    #[cold]
    pub fn new(template: &'static str, arguments: &[&dyn Value]) -> Self {
        let mut packed = String::new();
        for argument in arguments {
            let text = argument.to_string();
            // Writing to a string cannot fail.
            let _ = write!(packed, "{}{}:{text}", argument.kind() as u8, text.len());
        }
        Self { template, arguments: packed.into() }
    }

    /// Returns the template, in which `{}` is the place of an argument.
    pub fn template(&self) -> &'static str {
        self.template
    }

    /// Returns the arguments in the order of the template.
    pub fn arguments(&self) -> impl Iterator<Item = Argument<'_>> {
        let mut rest = &*self.arguments;
        std::iter::from_fn(move || {
            let (head, tail) = rest.split_once(':')?;
            let (kind, length) = head.split_at_checked(1)?;
            let (text, after) = tail.split_at_checked(length.parse().ok()?)?;
            rest = after;
            Some(Argument { kind: *Kind::ALL.get(kind.parse::<usize>().ok()?)?, text })
        })
    }

    /// True if there are no words.
    pub fn is_empty(&self) -> bool {
        self.template.is_empty()
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(test)]
        if garbled::GARBLED.get() {
            return f.write_str(&garbled::words(self));
        }
        let mut pieces = self.template.split("{}");
        f.write_str(pieces.next().unwrap_or_default())?;
        self.arguments().zip(pieces).try_for_each(|(argument, piece)| {
            f.write_str(argument.text)?;
            f.write_str(piece)
        })
    }
}

/// The words in quotes.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<&'static str> for Message {
    fn from(template: &'static str) -> Self {
        Self { template, arguments: Box::default() }
    }
}

/// A message that is one value, such as an error of another module.
impl<T: fmt::Display> From<Text<T>> for Message {
    fn from(text: Text<T>) -> Self {
        Self::new("{}", &[&text])
    }
}

/// Creates a [`Message`] from a template and its arguments, in the order of the places `{}`.
macro_rules! message {
    ($template:literal; $($argument:expr),+) => {{
        // The compiler counts the arguments; `concat!` forbids names in the template.
        let _ = || { let _ = ::std::format_args!(concat!($template) $(, stringify!($argument))+); };
        $crate::findings::Message::new($template, &[$(&$argument),+])
    }};
}
pub(crate) use message;

/// Value that can be an argument of a message. Other values need a [`Text`] around them.
pub trait Value: fmt::Display {
    /// The kind of the argument.
    fn kind(&self) -> Kind;
}

/// Value of another kind, such as a list or an error, as an argument or as a whole message.
#[derive(Clone, Copy, Debug)]
pub struct Text<T>(pub T);

macro_rules! values {
    ($($ty:ty: $kind:ident,)*) => {
        $(impl Value for $ty {
            fn kind(&self) -> Kind {
                Kind::$kind
            }
        })*
    };
}

values! {
    i32: Number,
    i64: Number,
    u8: Number,
    u32: Number,
    u64: Number,
    u128: Number,
    usize: Number,
    f64: Number,
    ElementType: Type,
    OutputPort: Type,
    Dim: Shape,
    Shape: Shape,
    ShapeMismatch: Text,
    LayerId: Layer,
    LayerRef: Layer,
    str: Name,
    String: Name,
    Cow<'_, str>: Name,
    graph::Text: Name,
    Message: Message,
}

impl<T: Value + ?Sized> Value for &mut T {
    fn kind(&self) -> Kind {
        (**self).kind()
    }
}

impl<T: Value + ?Sized> Value for &T {
    fn kind(&self) -> Kind {
        (**self).kind()
    }
}

impl<T: fmt::Display> Value for Text<T> {
    fn kind(&self) -> Kind {
        Kind::Text
    }
}

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Words that are garbled on purpose, to prove that no code depends on them.
#[cfg(test)]
pub(super) mod garbled {
    use super::Message;

    std::thread_local! {
        pub(super) static GARBLED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }

    pub(in crate::findings) fn garbled<T>(work: impl FnOnce() -> T) -> T {
        GARBLED.set(true);
        let result = work();
        GARBLED.set(false);
        result
    }

    pub(super) fn words(message: &Message) -> String {
        format!("{}{}", message.arguments, message.template).chars().rev().collect::<String>().to_uppercase()
    }
}
