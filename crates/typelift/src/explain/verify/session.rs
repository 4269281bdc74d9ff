//! Two models on a runtime: loaded, run on the same inputs, and released.

use super::Tensor;
use super::error::{Side, VerifyError};
use super::inputs::Sample;
use super::runner::{RunError, Runner, Setting, Source};
use crate::base::progress::poll;
use crate::model::graph::Model;

/// A loaded pair of models.
pub(super) struct Session<'r> {
    runner: &'r mut dyn Runner,
    keys: Vec<u64>,
}

/// The outputs of a model, by step.
pub(super) type Outputs = Vec<Vec<Tensor>>;

impl<'r> Session<'r> {
    /// Loads both models.
    pub(super) fn load(
        runner: &'r mut dyn Runner,
        models: [&Model; 2],
        settings: &[Setting; 2],
    ) -> Result<Self, VerifyError> {
        let mut session = Self { runner, keys: Vec::new() };
        for (side, (model, setting)) in [Side::A, Side::B].into_iter().zip(models.into_iter().zip(settings)) {
            poll();
            let source = Source::of(model).map_err(|error| RunError::Broken(error.to_string()));
            let key = source.and_then(|source| session.runner.load(&source, setting));
            session.keys.push(key.map_err(|error| VerifyError::Run { side, error })?);
        }
        Ok(session)
    }

    /// Runs one of the models on all steps of a sample.
    pub(super) fn run(&mut self, side: Side, sample: &Sample) -> Result<Outputs, RunError> {
        let (at, steps) = match side {
            Side::A => (0, &sample.a),
            Side::B => (1, &sample.b),
        };
        let key = self.keys.get(at).copied().unwrap_or_default();
        let run = |(step, inputs): (usize, &Vec<Tensor>)| {
            poll();
            self.runner.run(key, inputs, step == 0)
        };
        steps.iter().enumerate().map(run).collect()
    }

    /// Runs both models on a sample.
    pub(super) fn run_both(&mut self, sample: &Sample) -> Result<[Outputs; 2], VerifyError> {
        let mut run = |side: Side| self.run(side, sample).map_err(|error| VerifyError::Run { side, error });
        Ok([run(Side::A)?, run(Side::B)?])
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.keys.iter().for_each(|&key| self.runner.release(key));
    }
}
