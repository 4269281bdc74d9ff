//! The rule sets. Each is one file with its table, its settings and an `impl` of [`Rules`], and is listed here.

pub mod jax;
pub mod numpy;
pub mod numpy_1;
pub mod openvino;
pub mod paddle;
pub mod pytorch;

use crate::ElementType::{F32, I16};
use crate::{ElementType, Kind, Rules};

const HIGHER_KIND: &str = "the higher kind wins: boolean, integer, floating point, complex";

/// The common type of two different types that are not complex, and the reason. Of unequal integers of one width, one
/// is `u8`.
fn of_numbers(a: ElementType, b: ElementType) -> (ElementType, &'static str) {
    let wider = if a.bits() > b.bits() { a } else { b };
    match (a.kind(), b.kind()) {
        (Kind::Float, Kind::Float) if a.bits() == b.bits() => (F32, "neither float holds the other"),
        (Kind::Float, Kind::Float) => (wider, "the wider float"),
        (Kind::Float, _) | (_, Kind::Boolean) => (a, HIGHER_KIND),
        (_, Kind::Float) | (Kind::Boolean, _) => (b, HIGHER_KIND),
        _ if a.bits() == b.bits() => (I16, "the signed integer that holds both"),
        _ => (wider, "the wider integer"),
    }
}

macro_rules! registry {
    ($($(#[$doc:meta])* $variant:ident($settings:ty);)*) => {
        /// Returns the rule set with its settings.
        ///
        /// ```
        /// use typelift_promote::RuleSet;
        /// let rules = RuleSet::from_name("pytorch").unwrap();
        /// let operands = [rules.operand("u8[2]").unwrap(), rules.operand("int").unwrap()];
        /// assert_eq!(rules.type_name(rules.promote("add", &operands).unwrap().result), "u8");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum RuleSet {
            $($(#[$doc])* $variant($settings),)*
        }

        impl RuleSet {
            pub(crate) fn rules(&self) -> &dyn Rules {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }

            pub(crate) fn rules_mut(&mut self) -> &mut dyn Rules {
                match self {
                    $(Self::$variant(settings) => settings,)*
                }
            }
        }
    };
}

registry! {
    /// OpenVINO's `ConvertPromoteTypes`.
    OpenVino(openvino::Options);
    /// PyTorch.
    PyTorch(pytorch::Options);
    /// Paddle.
    Paddle(paddle::Version);
    /// NumPy.
    NumPy(numpy::NumPy);
    /// NumPy 1, where scalars count by their value.
    NumPy1(numpy_1::NumPy1);
    /// JAX.
    Jax(jax::Options);
}

impl RuleSet {
    /// Returns every rule set with each of the settings that comparisons cover, and a label for each. With default
    /// settings the label is the name.
    pub fn variants() -> impl Iterator<Item = (&'static str, Self)> + Clone {
        let jax = jax::Options::default();
        let variants = [
            ("openvino", Self::OpenVino(openvino::Options::with(false, false))),
            ("unsafe", Self::OpenVino(openvino::Options::with(true, false))),
            ("unsafe, scalars", Self::OpenVino(openvino::Options::with(true, true))),
            ("pytorch", Self::PyTorch(pytorch::Options { default_dtype: F32 })),
            ("paddle", Self::Paddle(paddle::Version::V3_3)),
            ("paddle-2.6", Self::Paddle(paddle::Version::Published2_6)),
            ("numpy", Self::NumPy(numpy::NumPy)),
            ("numpy-1", Self::NumPy1(numpy_1::NumPy1)),
            ("jax", Self::Jax(jax)),
            ("jax --no-x64", Self::Jax(jax::Options { no_x64: true, ..jax })),
            ("jax-strict", Self::Jax(jax::Options { strict: true, ..jax })),
        ];
        variants.into_iter()
    }
}
