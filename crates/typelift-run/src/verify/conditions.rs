//! Options that say how the models of a comparison run: on which installation and device, and with which properties.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use typelift::host::options;

use super::runner::Setting;

pub(super) const PRECISION: &str = "INFERENCE_PRECISION_HINT";
/// Properties that turn off the approximations of plugins, with their values.
const EXACT: [(&str, &str); 3] =
    [(PRECISION, "f32"), ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"), ("KV_CACHE_PRECISION", "f32")];
pub(super) const THREADS: &str = "INFERENCE_NUM_THREADS";
/// Hint that leaves a device its own properties.
const OWN: &str = "default";

/// Options that say how both models run, and with a suffix how one of them does.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Device on which models run; CPU unless given
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE"))]
    pub device: Option<String>,
    /// Device on which A runs
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE"))]
    pub device_a: Option<String>,
    /// Device on which B runs
    #[cfg_attr(feature = "clap", arg(long, value_name = "DEVICE"))]
    pub device_b: Option<String>,
    /// The Python that has openvino installed. Without it TYPELIFT_PYTHON, else python3
    #[cfg_attr(feature = "clap", arg(long, value_name = "PYTHON"))]
    pub python: Option<PathBuf>,
    /// The Python on whose openvino A runs, which may be another release
    #[cfg_attr(feature = "clap", arg(long, value_name = "PYTHON"))]
    pub python_a: Option<PathBuf>,
    /// The Python on whose openvino B runs
    #[cfg_attr(feature = "clap", arg(long, value_name = "PYTHON"))]
    pub python_b: Option<PathBuf>,
    /// Property of the device, such as KV_CACHE_PRECISION=u8; repeatable
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE", value_parser = parse_property))]
    #[serde(deserialize_with = "options::pairs")]
    pub config: Vec<(String, String)>,
    /// Property of the device for A
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE", value_parser = parse_property))]
    #[serde(deserialize_with = "options::pairs")]
    pub config_a: Vec<(String, String)>,
    /// Property of the device for B
    #[cfg_attr(feature = "clap", arg(long, value_name = "KEY=VALUE", value_parser = parse_property))]
    #[serde(deserialize_with = "options::pairs")]
    pub config_b: Vec<(String, String)>,
    /// Precision in which the device computes: f32, bf16, f16, or default for what the device does by itself
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE"))]
    pub hint: Option<String>,
    /// Precision in which the device computes A
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE"))]
    pub hint_a: Option<String>,
    /// Precision in which the device computes B
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE"))]
    pub hint_b: Option<String>,
    /// Round every value to this type, whatever the device computes in
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE", value_parser = ["f16"]))]
    pub simulate: Option<String>,
    /// Round every value of A to this type
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE", value_parser = ["f16"]))]
    pub simulate_a: Option<String>,
    /// Round every value of B to this type
    #[cfg_attr(feature = "clap", arg(long, value_name = "TYPE", value_parser = ["f16"]))]
    pub simulate_b: Option<String>,
}

#[cfg(feature = "clap")]
fn parse_property(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl RunOptions {
    /// Returns the settings of A and of B. An option for one side replaces the one for both.
    #[must_use]
    pub fn settings(self) -> [Setting; 2] {
        let swapped = Self {
            device_a: self.device_b.clone(),
            python_a: self.python_b.clone(),
            config_a: self.config_b.clone(),
            hint_a: self.hint_b.clone(),
            simulate_a: self.simulate_b.clone(),
            ..self.clone()
        };
        [self.of_a(), swapped.of_a()]
    }

    fn of_a(self) -> Setting {
        let hint = self.hint_a.or(self.hint);
        let is_own = hint.as_deref() == Some(OWN);
        let hint = hint.filter(|_| !is_own).map(|hint| (PRECISION.to_owned(), hint));
        let config: BTreeMap<_, _> = self.config.into_iter().chain(self.config_a).chain(hint).collect();
        let exact = EXACT.iter().filter(|_| !is_own).map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Setting {
            python: self.python_a.or(self.python),
            device: self.device_a.or(self.device).map_or_else(|| "CPU".to_owned(), |name| name.to_uppercase()),
            defaults: exact.filter(|(name, _)| !config.contains_key(name)).collect(),
            config,
            simulates_f16: self.simulate_a.or(self.simulate).is_some(),
        }
    }
}

pub(super) fn is_exact(name: &str, value: &str) -> bool {
    EXACT.contains(&(name, value))
}

/// True if a device took the value of a property that was asked for. Devices spell numbers, flags and names in their own way.
pub(super) fn is_taken(asked: &str, answered: &str) -> bool {
    plain(asked) == plain(answered)
}

fn plain(value: &str) -> String {
    let value = value.trim().to_ascii_lowercase();
    if let Ok(number) = value.parse::<f64>() {
        return number.to_string();
    }
    match value.as_str() {
        "yes" | "true" | "on" => "1".to_owned(),
        "no" | "false" | "off" => "0".to_owned(),
        "undefined" => "dynamic".to_owned(),
        _ => value,
    }
}
