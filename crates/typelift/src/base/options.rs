//! Settings that are read from options: a JSON object with the names of the options and their values as text.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use super::names;

/// Options of a command by name.
pub type Options = Map<String, Value>;

/// Returns the names of a type's settings, which are those of its fields.
pub fn names_of<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &[&str] = &[];
    // Reading ends when the names are known, so there is no value.
    let _nothing = T::deserialize(Fields(&mut names));
    names
}

/// Deserializer without a value, which records the names of a struct's fields.
struct Fields<'n>(&'n mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = NoValue;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoValue> {
        *self.0 = fields;
        Err(NoValue::custom("the names are known"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoValue> {
        Err(NoValue::custom("settings are a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// Settings that are made of several options: the name of each, and the names of its options.
pub type Composed = &'static [(&'static str, fn() -> &'static [&'static str])];

pub(crate) fn names_with<T: DeserializeOwned>(composed: Composed) -> Vec<&'static str> {
    let names = names_of::<T>().iter().flat_map(|setting| match composed.iter().find(|(name, _)| name == setting) {
        Some((_, names)) => names().to_vec(),
        None => vec![*setting],
    });
    names.collect()
}

/// Reads settings from options. `owner` stands in messages for the command. A missing option, or one that is `null`, has
/// its default.
///
/// # Errors
/// A sentence about an unknown option, with the nearest known name, or about the option whose value does not fit.
pub fn read<T: DeserializeOwned>(owner: &str, mut options: Options, composed: Composed) -> Result<T, String> {
    let names = names_with::<T>(composed);
    options.retain(|_, value| !value.is_null());
    if let Some(unknown) = options.keys().find(|name| !names.contains(&name.as_str())) {
        let near = names::near(unknown, names.iter().copied());
        return Err(match near {
            Some(near) => format!("{owner} has no option `{unknown}`; did you mean `{near}`?"),
            None => format!("{owner} has no option `{unknown}`; it has {}", names.join(", ")),
        });
    }
    let read = |options| T::deserialize(Value::Object(compose(options, composed)));
    read(options.clone()).map_err(|error| {
        let alone = options.into_iter().find_map(|(name, value)| {
            let error = read(Map::from_iter([(name.clone(), value)])).err()?;
            Some(format!("{name}: {error}"))
        });
        alone.unwrap_or_else(|| error.to_string())
    })
}

/// Moves options that are parts of one setting into it.
fn compose(mut options: Options, composed: Composed) -> Options {
    for (setting, names) in composed {
        let parts: Map<_, _> = names().iter().filter_map(|name| options.remove_entry(*name)).collect();
        if !parts.is_empty() {
            options.insert((*setting).to_owned(), Value::Object(parts));
        }
    }
    options
}

/// Refuses options that exclude each other. A flag that is `false` is not given.
pub(crate) fn refuse_both(options: &Options, exclusive: &[&str]) -> Result<(), String> {
    let is_given =
        |name: &&&str| options.get(**name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    let given: Vec<_> = exclusive.iter().filter(is_given).collect();
    match given[..] {
        [first, second, ..] => Err(format!("{first} and {second} exclude each other")),
        _ => Ok(()),
    }
}

pub(crate) fn one_of<T: Copy>(name: &str, values: &[(&str, T)]) -> Result<T, String> {
    let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    value.ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|(name, _)| *name).collect();
        format!("expected one of {}, not `{name}`", names.join(", "))
    })
}

/// Value with a text form. A number in its place is read as its text.
pub(crate) fn text<'de, D: Deserializer<'de>, T: FromStr<Err: Display>>(from: D) -> Result<T, D::Error> {
    let text = match Value::deserialize(from)? {
        Value::String(text) => text,
        number @ Value::Number(_) => number.to_string(),
        other => return Err(D::Error::custom(format!("expected a text, not {other}"))),
    };
    text.parse().map_err(D::Error::custom)
}

macro_rules! deserialize_as_text {
    ($($type:ty),* $(,)?) => {
        $(impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::base::options::text(from)
            }
        })*
    };
}

pub(crate) use deserialize_as_text;

/// Reads a list, or the only value of one.
pub(crate) fn list<'de, D: Deserializer<'de>, T: DeserializeOwned>(from: D) -> Result<Vec<T>, D::Error> {
    match Value::deserialize(from)? {
        list @ Value::Array(_) => Vec::deserialize(list),
        only => T::deserialize(only).map(|it| vec![it]),
    }
    .map_err(D::Error::custom)
}

/// Reads values by name: an object, or a list of pairs, which keeps their order.
///
/// # Errors
/// A value that is neither.
pub fn pairs<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<(String, T)>, D::Error> {
    from.deserialize_any(PairsVisitor(PhantomData))
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by name, as an object or as a list of pairs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| list.next_element().transpose()).collect()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}
