//! Two models that are loaded, run on the same inputs, and released.

use typelift::model::graph::Model;
use typelift::progress::poll;

use super::Tensor;
use super::error::{Side, VerifyError};
use super::inputs::Sample;
use super::runner::{RunError, Runner, Setting, Source};

/// Two loaded models, by the keys of the runtime.
pub(super) struct Session {
    keys: [u64; 2],
}

/// The outputs of a model, by step.
pub(super) type Outputs = Vec<Vec<Tensor>>;

impl Session {
    /// Loads both models. [`release`](Self::release) unloads them.
    pub(super) fn load(
        runner: &mut dyn Runner,
        models: [&Model; 2],
        settings: &[Setting; 2],
    ) -> Result<Self, VerifyError> {
        let mut load = |side: Side, model: &Model, setting: &Setting| {
            poll();
            let source = Source::of(model).map_err(|error| RunError::Broken(error.to_string()));
            let key = source.and_then(|source| runner.load(&source, setting));
            key.map_err(|error| VerifyError::of_run(side, error))
        };
        let a = load(Side::A, models[0], &settings[0])?;
        match load(Side::B, models[1], &settings[1]) {
            Ok(b) => Ok(Self { keys: [a, b] }),
            Err(error) => {
                runner.release(a);
                Err(error)
            }
        }
    }

    /// Runs one of the models on all steps of a sample.
    pub(super) fn run(&self, runner: &mut dyn Runner, side: Side, sample: &Sample) -> Result<Outputs, VerifyError> {
        let (key, steps) = match side {
            Side::A => (self.keys[0], &sample.a),
            Side::B => (self.keys[1], &sample.b),
        };
        let run = |(step, inputs): (usize, &Vec<Tensor>)| {
            poll();
            runner.run(key, inputs, step == 0).map_err(|error| VerifyError::of_run(side, error))
        };
        steps.iter().enumerate().map(run).collect()
    }

    /// Runs both models on a sample.
    pub(super) fn run_both(&self, runner: &mut dyn Runner, sample: &Sample) -> Result<[Outputs; 2], VerifyError> {
        Ok([self.run(runner, Side::A, sample)?, self.run(runner, Side::B, sample)?])
    }

    /// Unloads both models.
    pub(super) fn release(self, runner: &mut dyn Runner) {
        self.keys.iter().for_each(|&key| runner.release(key));
    }
}
