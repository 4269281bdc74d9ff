//! Two models that are loaded, run on the same inputs, and released.

use std::collections::BTreeMap;

use super::Tensor;
use super::conditions::is_taken;
use super::error::{Side, VerifyError};
use super::inputs::Sample;
use super::runner::{Loaded, RunError, Runner, Setting, Source};
use typelift::Model;
use typelift::host::progress::poll;

/// Two loaded models.
pub(super) struct Session {
    loaded: [Loaded; 2],
    outputs: [usize; 2],
}

/// The outputs of a model, by step.
pub(super) type Outputs = Vec<Vec<Tensor>>;

impl Session {
    /// Loads both models. Without `two_runs` the first one stands for both. [`release`](Self::release) unloads them.
    pub(super) fn load(
        runner: &mut dyn Runner,
        models: [&Model; 2],
        settings: &[Setting; 2],
        two_runs: bool,
    ) -> Result<Self, VerifyError> {
        let outputs = models.map(|model| model.outputs().count());
        let a = load(runner, Side::A, models[0], &settings[0])?;
        if !two_runs {
            return Ok(Self { loaded: [a.clone(), a], outputs });
        }
        match load(runner, Side::B, models[1], &settings[1]) {
            Ok(b) => Ok(Self { loaded: [a, b], outputs }),
            Err(error) => {
                runner.release(a.key);
                Err(error)
            }
        }
    }

    pub(super) fn config(&self, side: usize) -> &BTreeMap<String, String> {
        &self.loaded[side].config
    }

    pub(super) fn run(&self, runner: &mut dyn Runner, side: Side, sample: &Sample) -> Result<Outputs, VerifyError> {
        let (key, steps, expected) = match side {
            Side::A => (self.loaded[0].key, &sample.a, self.outputs[0]),
            Side::B => (self.loaded[1].key, &sample.b, self.outputs[1]),
        };
        let runs = steps.iter().enumerate().map(|(step, inputs)| {
            poll();
            let outputs = runner.run(key, inputs, step == 0).and_then(|outputs| match outputs.len() {
                found if found == expected => Ok(outputs),
                found => Err(RunError::Broken(format!("OpenVINO gave {found} outputs, and the model has {expected}"))),
            });
            outputs.map_err(|error| VerifyError::of_run(side, error))
        });
        runs.collect()
    }

    pub(super) fn run_both(&self, runner: &mut dyn Runner, sample: &Sample) -> Result<[Outputs; 2], VerifyError> {
        let a = self.run(runner, Side::A, sample)?;
        let b = if self.loaded[0].key == self.loaded[1].key { a.clone() } else { self.run(runner, Side::B, sample)? };
        Ok([a, b])
    }

    pub(super) fn release(self, runner: &mut dyn Runner) {
        self.loaded.iter().for_each(|loaded| runner.release(loaded.key));
    }
}

/// Loads a model.
///
/// # Errors
/// The device refuses it, or does not take a property that was asked for.
fn load(runner: &mut dyn Runner, side: Side, model: &Model, setting: &Setting) -> Result<Loaded, VerifyError> {
    poll();
    let source = Source::of(model).map_err(|error| RunError::Broken(error.to_string()));
    let loaded = source.and_then(|source| runner.load(&source, setting));
    let loaded = loaded.map_err(|error| VerifyError::of_run(side, error))?;
    let is_refused = |(name, asked): &(&String, &String)| {
        loaded.config.get(*name).is_some_and(|answered| !is_taken(asked, answered))
    };
    let Some((name, asked)) = setting.config.iter().find(is_refused) else { return Ok(loaded) };
    runner.release(loaded.key);
    let answered = loaded.config[name].clone();
    Err(VerifyError::NotTaken {
        side,
        device: setting.device.clone(),
        name: name.clone(),
        asked: asked.clone(),
        answered,
    })
}
