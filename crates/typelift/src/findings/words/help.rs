//! What the author of a file can do, in words.

use std::fmt;

use super::list;
use crate::findings::{Help, OtherRules, Owner, Remedy};

impl fmt::Display for Help {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advice(advice) => f.write_str(advice),
            Self::Mend(mend) => write!(f, "{mend}"),
            Self::OneOf(mends) => {
                let all: Vec<_> = mends.iter().map(ToString::to_string).collect();
                match &all[..] {
                    [only] => write!(f, "perhaps {only}"),
                    all => write!(f, "one of these is meant: {}", all.join("; or ")),
                }
            }
            Self::Add { attributes, to } => {
                let written = |(name, value): &(String, Option<String>)| {
                    format!("{name}=\"{}\"", value.as_deref().unwrap_or("…"))
                };
                let written = attributes.iter().map(written).collect::<Vec<_>>().join(" ");
                match to {
                    Owner::Here => write!(f, "add {written}"),
                    Owner::Data => write!(f, "add {written} to its <data>"),
                    Owner::NewData => write!(f, "add <data {written}/>; `?` is a dim that is not fixed"),
                    Owner::Element(element) => write!(f, "add {written} to <{element}>"),
                }
            }
            Self::AddEdge { from, to, producer } => write!(
                f,
                "add <edge from-layer=\"{}\" from-port=\"{}\" to-layer=\"{}\" to-port=\"{}\"/>: the output of {producer} is what \
                 the port declares, and nothing uses it",
                from.0, from.1, to.0, to.1
            ),
        }
    }
}

impl Remedy {
    /// What can be done in words, where the help of the diagnostic does not say it.
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Align | Self::RefreshPorts => None,
            Self::OtherRules(others) => Some(others.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
            Self::Retarget => Some("write the model for the release: the text becomes what it reads".to_owned()),
            Self::Keep(layers) => {
                let layers = layers.iter().map(|layer| format!("`{layer}`")).collect();
                Some(format!("let {} keep their types", list(layers, "and")))
            }
            Self::ConvertInput => {
                Some("convert the input after its Parameter: what follows computes as before".to_owned())
            }
        }
    }
}

impl OtherRules {
    /// What `choice` leads to: ``` `choice` would make them f32 ```.
    pub fn describe(&self, choice: &str) -> String {
        let them = if self.several { "them" } else { "it" };
        format!("`{choice}` would make {them} {}", self.element_type)
    }
}

/// Says it of the setting or the rule set.
impl fmt::Display for OtherRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(self.setting.unwrap_or(self.rules)))
    }
}
