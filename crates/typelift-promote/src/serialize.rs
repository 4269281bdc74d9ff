//! `serde` support for types that are written as text.

use core::fmt;

use serde::de::{Error, Visitor};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Dim, ElementType, Fidelity, Refusal};

/// Writes the [name](ElementType::name) of the type.
impl Serialize for ElementType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Reads the [name](ElementType::name) of the type, or its framework name. No name is ambiguous.
impl<'de> Deserialize<'de> for ElementType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Named)
    }
}

struct Named;

impl Visitor<'_> for Named {
    type Value = ElementType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an element type")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ElementType, E> {
        let found = ElementType::from_name(name).or_else(|| ElementType::from_framework_name(name));
        found.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(name), &self))
    }
}

/// Writes the dimension as it prints: `3`, `?`, `1..5`.
impl Serialize for Dim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes the losses as they print: `exact`, `rounds, overflows`.
impl Serialize for Fidelity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes the code, the sentence, the types and the system.
impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Refusal", 4)?;
        fields.serialize_field("code", self.code())?;
        fields.serialize_field("message", &format_args!("{self}"))?;
        fields.serialize_field("types", &self.types)?;
        fields.serialize_field("system", self.system.title)?;
        fields.end()
    }
}
