//! The rule sets. Each is one file with its table, its settings and an `impl` of [`Rules`], and is listed here.

pub mod jax;
pub mod numpy;
pub mod numpy_1;
pub mod openvino;
pub mod paddle;
pub mod pytorch;

use crate::Rules;

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
            /// Returns every rule set with each of the settings that comparisons cover, and a label for each. With
            /// default settings the label is the name.
            pub fn variants() -> impl Iterator<Item = (&'static str, Self)> + Clone {
                let none = core::iter::empty();
                none$(.chain(<$settings>::VARIANTS.iter().map(|&(words, settings)| (words, Self::$variant(settings)))))*
            }

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
