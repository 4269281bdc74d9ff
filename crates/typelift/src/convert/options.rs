//! Options of a conversion by name, as packages in other languages and the web page pass them.
//!
//! Each field of [`Conversion`] is an option. Three settings have several options: [`Conversion::align`],
//! [`Conversion::unneeded`] and [`Conversion::storage`].

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use thiserror::Error;
use typelift_promote::{ElementType, openvino};

use super::strip::Values;
use super::{Conversion, Unneeded};
use crate::base::foreign;
use crate::base::options::{self, Composed, Options, deserialize_as_text, one_of};
use crate::edit::inputs_outputs::LayoutChange;
use crate::precision::quantize::{Choice, Quantization, Request};
use crate::precision::{Like, Storage, TypeMap};
use crate::promotion::passes::Align;

/// Error in the options of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct OptionError(String);

const EXCLUSIVE: [&[&str]; 2] =
    [&["compress", "decompress", "quantize", "dequantize"], &["keep_noop_converts", "eliminate_converts"]];

const COMPOSED: Composed = &[
    ("align", options::names_of::<AlignmentOptions>),
    ("unneeded", options::names_of::<Converts>),
    ("storage", options::names_of::<StorageOptions>),
];

impl Conversion {
    /// Returns the names of all options.
    #[must_use]
    pub fn option_names() -> Vec<&'static str> {
        options::names_with::<Self>(COMPOSED)
    }

    /// Reads the settings from the options of a conversion, as a JSON object.
    ///
    /// # Errors
    /// [`OptionError`] for an unknown option, with the nearest known name, and for a value that does not fit.
    ///
    /// # Examples
    /// ```
    /// use typelift::convert::Conversion;
    /// let conversion = Conversion::from_options(r#"{"set_types": {"x": "f16"}, "target": "2023.3"}"#)?;
    /// assert_eq!(conversion.target.unwrap().to_string(), "2023.3");
    /// let error = Conversion::from_options(r#"{"set_type": {"x": "f16"}}"#).unwrap_err();
    /// assert_eq!(error.to_string(), "convert has no option `set_type`; did you mean `set_types`?");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_options(json: &str) -> Result<Self, OptionError> {
        let options: Options = serde_json::from_str(json).map_err(|error| OptionError(error.to_string()))?;
        EXCLUSIVE.iter().try_for_each(|names| options::refuse_both(&options, names)).map_err(OptionError)?;
        options::read("convert", options, COMPOSED).map_err(OptionError)
    }
}

/// Element type by its name, or by that of another program.
struct Type(ElementType);

impl std::str::FromStr for Type {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = foreign::named_element_type(text).filter(|ty| ty.port_name().is_some());
        known.map(Self).ok_or_else(|| {
            let meant = foreign::element_type(text).map(|ty| format!("; did you mean `{ty}`?")).unwrap_or_default();
            format!("`{text}` is not an element type{meant}")
        })
    }
}

deserialize_as_text!(Type, Values);

impl std::str::FromStr for Values {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(text, &[("zero", Self::Zero), ("random", Self::Random)])
    }
}

pub(super) fn types<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, ElementType)>, D::Error> {
    Ok(options::pairs(from)?.into_iter().map(|(name, Type(ty))| (name, ty)).collect())
}

/// Reads layouts by name: `NHWC` or `NCHW:NHWC`.
pub(super) fn layouts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, LayoutChange)>, D::Error> {
    let pairs = options::pairs::<_, String>(from)?.into_iter();
    pairs.map(|(name, layout)| Ok((name, layout.parse().map_err(D::Error::custom)?))).collect()
}

/// Reads a mapping of types: `f64=f32,i64=i32`, or pairs.
pub(super) fn type_map<'de, D: Deserializer<'de>>(from: D) -> Result<TypeMap, D::Error> {
    match Value::deserialize(from)? {
        Value::String(text) => text.parse().map_err(D::Error::custom),
        pairs => {
            let pairs = options::pairs::<_, Type>(pairs).map_err(D::Error::custom)?.into_iter();
            let pairs = pairs.map(|(from, Type(to))| from.parse().map(|Type(from)| (from, to)));
            TypeMap::new(pairs.collect::<Result<Vec<_>, String>>().map_err(D::Error::custom)?).map_err(D::Error::custom)
        }
    }
}

/// Options for the type of inputs that must agree.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AlignmentOptions {
    align: Option<String>,
    promote_unsafe: bool,
    pytorch_scalar_promotion: bool,
    u64_integer_promotion_target: Option<Type>,
}

pub(super) fn align<'de, D: Deserializer<'de>>(from: D) -> Result<Align, D::Error> {
    let options = AlignmentOptions::deserialize(from)?;
    let default = openvino::Options::default().u64_integer_promotion_target;
    let attributes = openvino::Options {
        promote_unsafe: options.promote_unsafe,
        pytorch_scalar_promotion: options.pytorch_scalar_promotion,
        u64_integer_promotion_target: options.u64_integer_promotion_target.map_or(default, |Type(target)| target),
    };
    let name = options.align.as_deref().unwrap_or("declared");
    let known = Align::names().filter_map(|name| Some((name, Align::named(name, attributes)?)));
    one_of(name, &known.collect::<Vec<_>>()).map_err(D::Error::custom)
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Converts {
    keep_noop_converts: bool,
    eliminate_converts: bool,
}

pub(super) fn unneeded<'de, D: Deserializer<'de>>(from: D) -> Result<Unneeded, D::Error> {
    Ok(match Converts::deserialize(from)? {
        Converts { keep_noop_converts: true, .. } => Unneeded::Kept,
        Converts { eliminate_converts: true, .. } => Unneeded::Redundant,
        _ => Unneeded::Noops,
    })
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct StorageOptions {
    compress: Option<Type>,
    decompress: Value,
    dequantize: Value,
    like: Like,
}

deserialize_as_text!(Like);

impl std::str::FromStr for Like {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        one_of(text, &[("2026.4", Self::OpenVino2026), ("2025.2", Self::OpenVino2025), ("all", Self::All)])
    }
}

pub(super) fn storage<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Storage>, D::Error> {
    let StorageOptions { compress, decompress, dequantize, like } = StorageOptions::deserialize(from)?;
    let chosen = |value| chosen_types(value).map_err(D::Error::custom);
    if let Some(Type(to)) = compress {
        return Ok(Some(Storage::Compress { to, like }));
    }
    Ok(match (chosen(decompress)?, chosen(dequantize)?) {
        (Some(types), _) if types.is_empty() => Some(Storage::Decompress(vec![ElementType::F16, ElementType::Bf16])),
        (Some(types), _) => Some(Storage::Decompress(types)),
        (None, Some(types)) => Some(Storage::Dequantize(types.first().copied())),
        (None, None) => None,
    })
}

/// The types of a flag that can name types. `true` gives none of them, and `None` stands for `false`.
fn chosen_types(value: Value) -> Result<Option<Vec<ElementType>>, String> {
    let one = |text: &str| text.parse().map(|Type(ty)| ty);
    match value {
        Value::Null | Value::Bool(false) => Ok(None),
        Value::Bool(true) => Ok(Some(Vec::new())),
        Value::String(text) => Ok(Some(vec![one(&text)?])),
        Value::Array(list) => {
            list.iter().map(|it| one(it.as_str().unwrap_or_default())).collect::<Result<_, _>>().map(Some)
        }
        other => Err(format!("expected true, false or element types, not {other}")),
    }
}

/// Reads a request for quantization: a mode, the options of [`Quantization`], or `plan` with the text of a plan file.
pub(super) fn quantize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Request>, D::Error> {
    let request = match Value::deserialize(from)? {
        Value::Null => return Ok(None),
        Value::String(mode) => mode.parse().map(|mode| Request::Settings(Quantization::to(mode))),
        Value::Object(options) => match options.get("plan").and_then(Value::as_str) {
            Some(plan) => Choice::parse(plan).map(Request::Plan).map_err(|error| error.to_string()),
            None => Quantization::from_options(options).map(Request::Settings),
        },
        other => Err(format!("expected a mode, not {other}")),
    };
    request.map(Some).map_err(D::Error::custom)
}

impl Quantization {
    fn from_options(options: Options) -> Result<Self, String> {
        if !options.contains_key("mode") {
            return Err("a mode is missing".to_owned());
        }
        let settings: Self = options::read("it", options, &[])?;
        settings.check().map(|()| settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_fill_the_settings_in_any_form() {
        let options = r#"{
            "align": "pytorch", "eliminate_converts": true, "set_types": [["b", "f16"], ["a", "float32"]],
            "set_shapes": {"x": "[1,?]"}, "types": {"f64": "f32"}, "decompress": ["bf16"], "keep": "auto", "target": null,
            "quantize": null, "max_error": 1, "strip_weights": "zero", "compress": null
        }"#;
        let conversion = Conversion::from_options(options).unwrap();
        assert!(matches!(conversion.align, Align::Rules(rules) if rules.name() == "pytorch"));
        assert_eq!(conversion.unneeded, Unneeded::Redundant);
        assert_eq!(conversion.set_types, [("b".to_owned(), ElementType::F16), ("a".to_owned(), ElementType::F32)]);
        assert_eq!(conversion.set_shapes[0].1.to_string(), "[1,?]");
        assert_eq!(conversion.types.to_string(), "f64=f32");
        assert_eq!(conversion.storage, Some(Storage::Decompress(vec![ElementType::Bf16])));
        assert_eq!((conversion.keep.len(), conversion.max_error), (1, Some(1.0)));
        assert_eq!((conversion.target, conversion.strip), (None, Some(Values::Zero)));
        let same = Conversion::from_options(r#"{"types": "f64=f32", "dequantize": "f16", "like": "all"}"#).unwrap();
        assert_eq!(same.types, conversion.types);
        assert_eq!(same.storage, Some(Storage::Dequantize(Some(ElementType::F16))));
    }

    #[test]
    fn a_wrong_option_is_named_with_the_reason() {
        let refusal = |options: &str| Conversion::from_options(options).unwrap_err().to_string();
        let it_has = "; it has mode, group_size, ratio, all_layers, backup, group_fallback";
        let grid = format!("quantize: it has no option `grid`{it_has}");
        let refusals = [
            (r#"{"kepp": "x"}"#, "convert has no option `kepp`; did you mean `keep`?"),
            (r#"{"storage": 1}"#, "convert has no option `storage`; it has align, promote_unsafe, "),
            (
                r#"{"keep_io": true, "set_types": {"x": "f23"}}"#,
                "set_types: `f23` is not an element type; did you mean `f32`?",
            ),
            (r#"{"like": "2027"}"#, "like: expected one of 2026.4, 2025.2, all, not `2027`"),
            (r#"{"max_error": "small"}"#, "max_error: invalid type: string \"small\", expected f64"),
            (r#"{"quantize": {"mode": "nf4", "grid": 3}}"#, &grid),
            (
                r#"{"quantize": {"mode": "nf4", "group_size": "all"}}"#,
                "quantize: group_size: expected a number of values, ",
            ),
            (r#"{"compress": "f16", "dequantize": true}"#, "compress and dequantize exclude each other"),
            (
                r#"{"keep_noop_converts": true, "eliminate_converts": true}"#,
                "keep_noop_converts and eliminate_converts exclude",
            ),
            ("[]", "invalid type: sequence, expected a map"),
        ];
        for (options, expected) in refusals {
            let refused = refusal(options);
            assert!(refused.starts_with(expected), "{options}: {refused}");
        }
    }
}
