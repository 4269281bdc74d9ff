//! Options that say how the models of a comparison run: on which installation and device, and with which properties.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::runner::Setting;

/// Property that sets the precision in which a device computes.
pub(super) const PRECISION: &str = "INFERENCE_PRECISION_HINT";
/// Properties that turn off the approximations of plugins, with their values.
const EXACT: [(&str, &str); 3] =
    [(PRECISION, "f32"), ("DYNAMIC_QUANTIZATION_GROUP_SIZE", "0"), ("KV_CACHE_PRECISION", "f32")];
/// Property with the number of threads.
pub(super) const THREADS: &str = "INFERENCE_NUM_THREADS";
/// Hint that leaves a device its own properties.
const OWN: &str = "default";

/// Options that say how both models run, and with a suffix how one of them does.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "the names are those of the options")]
pub struct RunOptions {
    pub device: Option<String>,
    pub device_a: Option<String>,
    pub device_b: Option<String>,
    pub python: Option<PathBuf>,
    pub python_a: Option<PathBuf>,
    pub python_b: Option<PathBuf>,
    pub config: BTreeMap<String, String>,
    pub config_a: BTreeMap<String, String>,
    pub config_b: BTreeMap<String, String>,
    pub hint: Option<String>,
    pub hint_a: Option<String>,
    pub hint_b: Option<String>,
    pub simulate: Option<String>,
    pub simulate_a: Option<String>,
    pub simulate_b: Option<String>,
}

impl RunOptions {
    /// Returns the settings of A and of B. An option for one side replaces the one for both.
    #[must_use]
    pub fn settings(self) -> [Setting; 2] {
        let Self { device, python, config, hint, simulate, .. } = self;
        let setting = |own: (Option<String>, Option<PathBuf>, BTreeMap<_, _>, Option<String>, Option<String>)| {
            let (own_device, own_python, own_config, own_hint, own_simulate) = own;
            let hint = own_hint.or_else(|| hint.clone());
            let is_own = hint.as_deref() == Some(OWN);
            let hint = hint.filter(|_| !is_own).map(|hint| (PRECISION.to_owned(), hint));
            let config: BTreeMap<_, _> = config.clone().into_iter().chain(own_config).chain(hint).collect();
            let exact = EXACT.iter().filter(|_| !is_own).map(|&(name, value)| (name.to_owned(), value.to_owned()));
            Setting {
                python: own_python.or_else(|| python.clone()),
                device: own_device.or_else(|| device.clone()).unwrap_or_else(|| "CPU".to_owned()),
                defaults: exact.filter(|(name, _)| !config.contains_key(name)).collect(),
                config,
                simulates_f16: own_simulate.or_else(|| simulate.clone()).is_some(),
            }
        };
        [
            setting((self.device_a, self.python_a, self.config_a, self.hint_a, self.simulate_a)),
            setting((self.device_b, self.python_b, self.config_b, self.hint_b, self.simulate_b)),
        ]
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
