//! Complete comparison of two models: loading, running, comparing, and locating the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;
use serde::{Deserialize, Deserializer};
use typelift::edit::inputs_outputs::End;
use typelift::explain::{Change, ChangeKind};
use typelift::findings::LayerRef;
use typelift::graph::numbered_prefix;
use typelift::host::options;
use typelift::host::progress::each;
use typelift::ops::{self, LayerKind};
use typelift::promote::ElementType;
use typelift::shape::{self, Shape};
use typelift::{Graph, Layer, LayerId, Model, Output, diff};

use super::Tensor;
use super::compare::{Difference, is_finite};
use super::conditions::{PRECISION, RunOptions, THREADS};
use super::coverage::{self, NotTested, Short, Spread};
use super::error::{Side, VerifyError};
use super::given::{self, Arrays, Expected};
use super::inputs::shapes::{Shapes, Sizing};
use super::inputs::{Choice, Sample, Shaped, distributions};
use super::locate::{self, CLEAR, Located, Search, Start, Target, in_chunks, is_at};
use super::narrow::{self, Ranged};
use super::pairing::{Pair, ids, paired};
use super::report::{First, Growth, OutputReport, Report, Run, SampleReport};
use super::runner::{RunError, Runner, Runtime, Setting};
use super::session::{Outputs, Session};
use super::tolerance::{self, Tolerance};
use typelift::explain::map::{Role, roles};

/// Maximum number of shapes that are tried for one sample, and of those that crash the device.
const MOST_RUN: usize = 24;
const MOST_CRASHES: usize = 4;
/// Default number of steps of a model with state.
const STEPS: usize = 3;

/// Settings of a comparison of two models.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Verification {
    /// How A and B run.
    #[serde(rename = "run", deserialize_with = "settings")]
    pub settings: [Setting; 2],
    /// The shapes of inputs, by name.
    #[serde(deserialize_with = "shape::pairs")]
    pub shapes: Vec<(String, Shape)>,
    /// The `.npz` file or the folder of `.npy` files with the inputs. Arrays that are named like outputs are expected.
    pub inputs: Option<PathBuf>,
    /// The `.npz` file or the folder of `.npy` files with the outputs that are expected.
    pub expect: Option<PathBuf>,
    /// The seed of random values.
    pub seed: u64,
    /// The number of samples. The first has the smallest shapes, the others larger ones. A model with an If, or
    /// with a Loop that values may end, gets four times as many, so that all branches are likely to run.
    pub samples: usize,
    /// The number of steps. By default it is 3 for models with state, otherwise 1.
    pub steps: Option<usize>,
    /// The tolerance relative to the largest value of a tensor; by default it depends on the narrowest type.
    #[serde(rename = "rtol")]
    pub relative: Option<f64>,
    /// The absolute tolerance; by default it depends on the narrowest type.
    #[serde(rename = "atol")]
    pub absolute: Option<f64>,
    /// True if the error of each block is reported.
    pub layers: bool,
    /// True if the layer is searched at which a difference starts.
    #[serde(skip)]
    pub locates: bool,
}

fn settings<'de, D: Deserializer<'de>>(from: D) -> Result<[Setting; 2], D::Error> {
    RunOptions::deserialize(from).map(RunOptions::settings)
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            settings: RunOptions::default().settings(),
            shapes: Vec::new(),
            inputs: None,
            expect: None,
            seed: 0,
            samples: 2,
            steps: None,
            relative: None,
            absolute: None,
            layers: false,
            locates: true,
        }
    }
}

impl Verification {
    /// Reads the settings from the options of a comparison, as a JSON object: `{"device": "CPU", "rtol": 1e-3}`.
    ///
    /// # Errors
    /// A sentence about an unknown option, or about the option whose value does not fit.
    pub fn from_options(json: &str) -> Result<Self, String> {
        let options = serde_json::from_str(json).map_err(|error| error.to_string())?;
        options::read("verify", options, &[("run", options::names_of::<RunOptions>)])
    }

    /// Runs two inferred models on the same inputs and compares their outputs. Without `b`, runs `a` with both settings,
    /// or compares it with the expected outputs. If they differ, finds the layer at which the difference starts.
    ///
    /// # Errors
    /// [`VerifyError`]: there is no runtime, or a model cannot be run, or their inputs cannot be paired.
    ///
    /// # Examples
    /// See [the module](super).
    pub fn run(&self, a: &Model, b: Option<&Model>, runner: &mut dyn Runner) -> Result<Report, VerifyError> {
        let two_runs = b.is_some() || self.settings[0] != self.settings[1];
        if !two_runs && self.expect.is_none() && self.inputs.is_none() {
            return Err(VerifyError::NothingDiffers);
        }
        let b = b.unwrap_or(a);
        let mut describe = |side: usize| runner.describe(&self.settings[side]).map_err(VerifyError::Runtime);
        let runtimes = [describe(0)?, describe(1)?];
        let inputs = paired(End::Input, a, b).map_err(VerifyError::Unpaired)?;
        let outputs = paired(End::Output, a, b).map_err(VerifyError::Unpaired)?;
        let mut work = Work {
            verification: self,
            models: [a, b],
            two_runs,
            inputs,
            outputs,
            expected: Vec::new(),
            configs: Default::default(),
            tolerance: Tolerance::default(),
            notes: Vec::new(),
            unsteady: BTreeSet::new(),
        };
        if self.hides_range(a, b) {
            let note = "the CPU computes f16 as f32: checks were added that make values beyond 65504 infinite, as on other devices";
            work.notes.push(note.to_owned());
        }
        let samples = work.samples(runner)?;
        work.report(runner, runtimes, samples)
    }

    /// True if checks of the f16 range are needed: the device computes f16 as f32, and only one model uses f16.
    fn hides_range(&self, a: &Model, b: &Model) -> bool {
        self.settings.iter().all(|setting: &Setting| {
            setting.device.eq_ignore_ascii_case("CPU") && setting.config.get(PRECISION).is_none_or(|hint| hint != "f16")
        }) && narrow::computed(a) != narrow::computed(b)
    }

    fn ranged(&self, models: [&Model; 2]) -> Result<[Ranged; 2], VerifyError> {
        let hides_range = self.hides_range(models[0], models[1]);
        let [a, b] = [0, 1].map(|side| match self.settings[side].simulates_f16 {
            true => narrow::with_f16(models[side]),
            false if hides_range => narrow::with_range(models[side]),
            false => Ok(Ranged::plain(models[side])),
        });
        Ok([a?, b?])
    }
}

/// Loaded models with dynamic shapes.
type Open = (Session, Arc<[Ranged; 2]>);

struct Work<'w> {
    verification: &'w Verification,
    models: [&'w Model; 2],
    /// False if A runs once, and is compared with expected outputs.
    two_runs: bool,
    inputs: Vec<Pair>,
    outputs: Vec<Pair>,
    expected: Vec<Expected>,
    /// Properties of both devices, as they report them.
    configs: [BTreeMap<String, String>; 2],
    tolerance: Tolerance,
    notes: Vec<String>,
    /// Outputs of A that differ from run to run.
    unsteady: BTreeSet<usize>,
}

/// Sample with the outputs of both models.
struct Done {
    sample: Sample,
    outputs: [Outputs; 2],
    /// The models that were run, with dynamic shapes or with those of the sample.
    ran: Arc<[Ranged; 2]>,
    /// The layers of A that mix values along an axis of length 1.
    short: Short,
}

impl Work<'_> {
    fn samples(&mut self, runner: &mut dyn Runner) -> Result<Vec<Done>, VerifyError> {
        let given = self.read_arrays(runner)?;
        let ran = Arc::new(self.verification.ranged(self.models)?);
        let (inputs, [a, b]) = (self.inputs.clone(), self.models);
        let asked = self.asked_shapes()?;
        let sizing = Sizing::new(a, b, &inputs, &asked)?;
        if let Some(samples) = given {
            let session = self.load(runner, &ran)?;
            let done = samples.into_iter().map(|sample| {
                let dims = inputs.iter().map(|pair| sample.a[0][pair.a].dims.clone()).collect();
                let fixed =
                    sizing.fixed(&dims).map_err(|error| given::misshapen(a, &inputs, &sample).unwrap_or(error))?;
                let outputs = session.run_both(runner, &sample)?;
                self.check_shapes([&fixed[0], &fixed[1]], &outputs)?;
                Ok(Done { sample, outputs, ran: ran.clone(), short: coverage::short(&fixed[0], a, 2) })
            });
            let done = done.collect();
            session.release(runner);
            return done;
        }
        // If the device does not support dynamic shapes, the models get the shapes of each sample.
        match self.load(runner, &ran) {
            Ok(session) => {
                let open = (session, ran);
                let done = self.each_sample(runner, &sizing, Some(&open));
                open.0.release(runner);
                done
            }
            Err(refusal @ VerifyError::Run { .. }) if sizing.is_open() => {
                let note = "the device refuses open shapes, so the models were run with the shapes of each sample";
                self.notes.push(note.to_owned());
                let done = self.each_sample(runner, &sizing, None);
                done.map_err(|error| if matches!(error, VerifyError::NoShapes) { refusal } else { error })
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the inputs and the expected outputs of the user. Returns the samples, if there are any.
    fn read_arrays(&mut self, runner: &mut dyn Runner) -> Result<Option<Vec<Sample>>, VerifyError> {
        let (mut samples, model) = (None, self.models[0]);
        if let Some(path) = &self.verification.inputs {
            let mut arrays = Arrays::read(runner, path, model)?;
            samples = Some(arrays.samples(self.models, &self.inputs)?);
            self.expected = arrays.expected(model, false);
            arrays.check_all_used(model, "input or output")?;
        }
        if let Some(path) = &self.verification.expect {
            let mut arrays = Arrays::read(runner, path, model)?;
            self.expected.extend(arrays.expected(model, true));
            arrays.check_all_used(model, "output")?;
        }
        if !self.two_runs && self.expected.is_empty() { Err(VerifyError::NothingDiffers) } else { Ok(samples) }
    }

    /// Loads both models, and keeps what their devices say about themselves.
    fn load(&mut self, runner: &mut dyn Runner, ran: &[Ranged; 2]) -> Result<Session, VerifyError> {
        let session =
            Session::load(runner, [&ran[0].model, &ran[1].model], &self.verification.settings, self.two_runs)?;
        self.configs = [0, 1].map(|side| session.config(side).clone());
        let silent = (0..2).filter(|&side| self.configs[side].get(THREADS).is_some_and(|it| it == "1")).find(|&side| {
            let mut ports = self.models[side].graph().layers().flat_map(Layer::outputs);
            ports.any(|port| !port.shape().is_static())
        });
        if let Some(side) = silent {
            session.release(runner);
            return Err(VerifyError::OneThread(Side::of(side)));
        }
        Ok(session)
    }

    fn each_sample(
        &mut self,
        runner: &mut dyn Runner,
        sizing: &Sizing<'_>,
        mut open: Option<&Open>,
    ) -> Result<Vec<Done>, VerifyError> {
        let mut done: Vec<Done> = Vec::new();
        let mut smallest: Option<Shapes> = None;
        let factor = if self.has_branches() { 4 } else { 1 };
        for at in each("run", 0..self.verification.samples.max(1).saturating_mul(factor)) {
            let candidates: Box<dyn Iterator<Item = Shapes>> = match &smallest {
                Some(smallest) if sizing.is_open() => {
                    Box::new(sizing.larger(smallest).into_iter().chain([smallest.clone()]))
                }
                Some(smallest) => Box::new(iter::once(smallest.clone())),
                None => Box::new(sizing.smallest()),
            };
            let (shapes, found) = self.first_that_runs(runner, sizing, &mut open, candidates, smallest.as_ref(), at)?;
            smallest.get_or_insert(shapes);
            done.push(found);
        }
        Ok(done)
    }

    /// Runs both models with each assignment of shapes, until one runs. A crash ends the process that had loaded `open`.
    fn first_that_runs(
        &mut self,
        runner: &mut dyn Runner,
        sizing: &Sizing<'_>,
        open: &mut Option<&Open>,
        candidates: impl Iterator<Item = Shapes>,
        smallest: Option<&Shapes>,
        at: usize,
    ) -> Result<(Shapes, Done), VerifyError> {
        let mut refused = None;
        let mut crashes = 0;
        for shapes in candidates.take(MOST_RUN) {
            // Shapes that only A takes are a difference, which the smallest ones would hide.
            if smallest == Some(&shapes) && matches!(refused, Some(VerifyError::Run { side: Side::B, .. })) {
                break;
            }
            let Ok((shaped, fixed)) = Shaped::new(sizing, &self.inputs, shapes) else { continue };
            if let Err(error) = shaped.check_memory(&self.inputs, self.steps(), self.models[0].weights()) {
                refused = refused.or(Some(error));
                continue;
            }
            let fixed = [&fixed[0], &fixed[1]];
            let mut done = match open {
                Some((session, ran)) => self.run_shaped(runner, session, &shaped, fixed, at, ran.clone()),
                None => self.run_fixed(runner, &shaped, fixed, at),
            };
            if let Err(VerifyError::Run { error: error @ (RunError::Crashed(_) | RunError::TimedOut(_)), .. }) = &done {
                let is_crash = matches!(error, RunError::Crashed(_));
                // A timeout with the smallest inputs ends the search, because others take no less time.
                crashes += if is_crash || smallest.is_some() { 1 } else { MOST_CRASHES };
                // The device may support these shapes if they are fixed.
                if open.take().is_some() && is_crash {
                    done = self.run_fixed(runner, &shaped, fixed, at);
                }
            }
            match done {
                Ok(done) => return Ok((shaped.shapes, done)),
                Err(error) if crashes >= MOST_CRASHES => return Err(error),
                Err(error @ VerifyError::Run { side: Side::B, .. }) => refused = Some(error),
                Err(error @ (VerifyError::Run { .. } | VerifyError::WrongShape { .. })) => {
                    refused = refused.or(Some(error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| sizing.refusal()))
    }

    fn run_fixed(
        &mut self,
        runner: &mut dyn Runner,
        shaped: &Shaped,
        fixed: [&Model; 2],
        at: usize,
    ) -> Result<Done, VerifyError> {
        let ran = Arc::new(self.verification.ranged(fixed)?);
        let session = self.load(runner, &ran)?;
        let done = self.run_shaped(runner, &session, shaped, fixed, at, ran);
        session.release(runner);
        done
    }

    /// Runs both models with fixed shapes. Values are chosen so that the outputs of A are finite, if possible.
    fn run_shaped(
        &self,
        runner: &mut dyn Runner,
        session: &Session,
        shaped: &Shaped,
        fixed: [&Model; 2],
        at: usize,
        ran: Arc<[Ranged; 2]>,
    ) -> Result<Done, VerifyError> {
        let seed = self.verification.seed.wrapping_add(1 + at as u64).wrapping_mul(0x2545_F491_4F6C_DD1D);
        let mut chosen: Option<(Sample, Outputs)> = None;
        let has_range = self.verification.settings.iter().any(|setting| setting.simulates_f16)
            || self.verification.hides_range(self.models[0], self.models[1]);
        for floats in distributions(at, has_range, self.has_branches()) {
            let (sample, outputs) = self.run_a(runner, session, shaped, seed, floats)?;
            let is_good = outputs.iter().flatten().all(is_finite);
            if is_good || chosen.is_none() {
                chosen = Some((sample, outputs));
            }
            if is_good {
                break;
            }
        }
        let (sample, a) = chosen.ok_or(VerifyError::NoShapes)?;
        let b = if self.two_runs { session.run(runner, Side::B, &sample)? } else { a.clone() };
        let outputs = [a, b];
        self.check_shapes(fixed, &outputs)?;
        Ok(Done { sample, outputs, ran, short: coverage::short(fixed[0], self.models[0], 2) })
    }

    /// Checks that the outputs of the first step have the shapes that inference finds.
    fn check_shapes(&self, fixed: [&Model; 2], outputs: &[Outputs; 2]) -> Result<(), VerifyError> {
        for (side, model) in fixed.into_iter().enumerate() {
            let graph = model.graph();
            for (at, (layer, tensor)) in model.outputs().zip(outputs[side].iter().flatten()).enumerate() {
                let Some(source) = graph.producer(layer.id().input(0)) else { continue };
                let Some(inferred) = graph.output(source).map(|port| port.shape()) else { continue };
                // A Loop without a step has no lengths for what it puts together.
                let is_no_step = graph.layer(source.layer).map(ops::kind) == Some(LayerKind::Loop)
                    && tensor.dims.contains(&0)
                    && !inferred.is_static();
                if !is_no_step && inferred.merge(&tensor.shape()).is_err() {
                    let pair = self.outputs.iter().find(|pair| at == if side == 0 { pair.a } else { pair.b });
                    return Err(VerifyError::WrongShape {
                        side: Side::of(side),
                        output: pair.map_or_else(String::new, |pair| pair.name.clone()),
                        inferred: inferred.clone(),
                        got: tensor.shape(),
                    });
                }
            }
        }
        Ok(())
    }

    /// Runs A. With state, tries all steps with masks that grow, then with masks that do not grow, then a single step.
    fn run_a(
        &self,
        runner: &mut dyn Runner,
        session: &Session,
        shaped: &Shaped,
        seed: u64,
        floats: usize,
    ) -> Result<(Sample, Outputs), VerifyError> {
        let steps = self.steps();
        let plans = [(steps, true), (steps, false), (1, false)];
        let plans = if steps > 1 { &plans[..] } else { &plans[2..] };
        let mut refused = VerifyError::NoShapes;
        for (at, &(steps, grows)) in plans.iter().enumerate() {
            let sample =
                shaped.sample(&self.inputs, Choice { seed, steps, grows, floats }).ok_or(VerifyError::NoShapes)?;
            match session.run(runner, Side::A, &sample) {
                Ok(outputs) => return Ok((sample, outputs)),
                Err(error) if at == 0 => refused = error,
                Err(_) => {}
            }
        }
        Err(refused)
    }

    /// True if values decide which layers run, or how often: there is an If, or a Loop that a condition may end.
    fn has_branches(&self) -> bool {
        self.models.iter().any(|model| {
            let mut layers = model.walk().flat_map(|(_, graph)| graph.layers());
            layers.any(|layer| ops::kind(layer) == LayerKind::If) || coverage::may_end(model)
        })
    }

    fn steps(&self) -> usize {
        let mut layers = self.models.iter().flat_map(|model| model.graph().layers());
        let default = if layers.any(|layer| ops::kind(layer) == LayerKind::ReadValue) { STEPS } else { 1 };
        self.verification.steps.unwrap_or(default).max(1)
    }

    /// Finds the input pairs for which the user gave shapes.
    fn asked_shapes(&self) -> Result<BTreeMap<usize, Shape>, VerifyError> {
        let mut asked = BTreeMap::new();
        for (name, shape) in &self.verification.shapes {
            let ends =
                self.models[0].ends_named(End::Input, name).map_err(|error| VerifyError::Inputs(error.to_string()))?;
            let ids = ids(End::Input, self.models[0]);
            for end in ends {
                let id = self.models[0].find_input(&end).map_err(|error| VerifyError::Inputs(error.to_string()))?;
                let at = self.inputs.iter().position(|pair| ids.get(pair.a) == Some(&id));
                asked.extend(at.map(|at| (at, shape.clone())));
            }
        }
        Ok(asked)
    }

    fn report(
        mut self,
        runner: &mut dyn Runner,
        runtimes: [Runtime; 2],
        samples: Vec<Done>,
    ) -> Result<Report, VerifyError> {
        let settings = &self.verification.settings;
        let precisions = [0, 1].map(|side| self.configs[side].get(PRECISION).cloned());
        let computed = [0, 1].map(|side| match settings[side].simulates_f16 {
            true => Some("f16"),
            false => precisions[side].as_deref(),
        });
        let (narrowest, mut tolerance) = tolerance::narrowest(self.models[0], self.models[1], computed);
        tolerance.relative = self.verification.relative.unwrap_or(tolerance.relative);
        tolerance.absolute = self.verification.absolute.unwrap_or(tolerance.absolute);
        self.tolerance = tolerance;
        let mut by_sample: Vec<Vec<Difference>> = samples.iter().map(|done| self.differences(done)).collect();
        let mut unsteady = Vec::new();
        for (done, _) in samples.iter().zip(&by_sample).filter(|(_, found)| found.iter().any(|it| !it.same)) {
            unsteady.extend(self.unsteady(runner, done)?);
        }
        for differences in &mut by_sample {
            unsteady.iter().for_each(|&at| differences[at] = Difference { same: true, ..Difference::default() });
        }
        let size = |at: usize| {
            by_sample[at].iter().fold((true, 0.0_f64), |most, it| (most.0 && it.same, most.1.max(it.size())))
        };
        let worst =
            (0..samples.len()).max_by(|&a, &b| (!size(a).0).cmp(&!size(b).0).then(size(a).1.total_cmp(&size(b).1)));
        let (mut first, mut blocks) = (None, Vec::new());
        if let Some((done, differences)) = worst.and_then(|at| Some((&samples[at], by_sample.get_mut(at)?))) {
            (first, blocks) = self.locate(runner, done, differences, &unsteady)?;
            let is_rounding = differences.iter().all(|it| it.same);
            by_sample.iter_mut().flatten().for_each(|it| it.same |= is_rounding);
        }
        let same = by_sample.iter().flatten().all(|it| it.same);
        let ends = self.not_compared(&by_sample, &unsteady);
        let (not_tested, layers) = match same && self.verification.locates {
            true => self.coverage(runner, &samples, ends.clone())?,
            false => (Vec::new(), 0),
        };
        if let (Some(first), true) = (not_tested.first(), self.verification.inputs.is_none()) {
            let changes = diff(self.models[0], self.models[1]).changes;
            let unseen = coverage::first_unseen(self.models[0], &changes, &not_tested);
            let what = unseen.map(|(change, reason)| (format!("`{}`, which differs", change.path), reason));
            let all = || (format!("any of {layers} layers"), ends.values().min().unwrap_or(&first.reason).as_str());
            if let Some((what, reason)) = what.or_else(|| (not_tested.len() == layers).then(all)) {
                return Err(VerifyError::NotTested { what, reason: reason.to_owned() });
            }
        }
        let mut outputs = if self.two_runs { self.output_reports(&samples, &by_sample) } else { Vec::new() };
        outputs.extend(self.expected_reports(&samples)?);
        let runs = [0, 1].map(|side| {
            let Runtime { version, full_name } = runtimes[side].clone();
            Run {
                openvino: version,
                device: settings[side].device.clone(),
                full_name,
                precision: precisions[side].clone(),
                simulates_f16: settings[side].simulates_f16,
                config: self.configs[side].clone(),
            }
        });
        let runs = runs.into_iter().take(if self.two_runs { 2 } else { 1 }).collect();
        Ok(Report {
            same: outputs.iter().all(|output| output.difference.same),
            runs,
            narrowest,
            tolerance: self.tolerance,
            fed: self.fed(&samples),
            samples: samples
                .into_iter()
                .map(|done| SampleReport { steps: done.sample.a.len(), inputs: done.sample.fed })
                .collect(),
            outputs,
            first,
            tested: layers - not_tested.len(),
            layers,
            not_tested,
            blocks,
            notes: self.notes,
        })
    }

    /// The inputs of all samples, with the names by which they are read again.
    fn fed(&self, samples: &[Done]) -> Vec<(String, Tensor)> {
        let is_plain = samples.len() == 1 && samples[0].sample.a.len() == 1;
        let mut fed = Vec::new();
        for (at, done) in samples.iter().enumerate() {
            for (step, tensors) in done.sample.a.iter().enumerate() {
                for (pair, tensor) in self.inputs.iter().filter_map(|pair| Some((pair, tensors.get(pair.a)?))) {
                    let name = if is_plain { pair.name.clone() } else { given::key(at, step, &pair.name) };
                    fed.push((name, tensor.for_numpy()));
                }
            }
        }
        fed
    }

    fn expected_reports(&self, samples: &[Done]) -> Result<Vec<OutputReport>, VerifyError> {
        let mut reports: Vec<OutputReport> = Vec::new();
        for expected in &self.expected {
            let pair = self.outputs.iter().find(|pair| pair.a == expected.output);
            let name = pair.map_or_else(String::new, |pair| pair.name.clone());
            let step = samples.get(expected.sample).and_then(|done| done.outputs[0].get(expected.step));
            let Some(own) = step.and_then(|step| step.get(expected.output)) else {
                let (sample, step) = (expected.sample + 1, expected.step + 1);
                return Err(VerifyError::Inputs(format!(
                    "sample {sample} has no step {step}, for which `{name}` is expected"
                )));
            };
            let difference = Difference::between(own, &expected.tensor, self.tolerance);
            let [ty, ty_in_b] = [own, &expected.tensor].map(|tensor| tensor.element_type.name());
            match reports.iter_mut().find(|report| report.name == name) {
                Some(report) => {
                    report.finite &= is_finite(own);
                    report.difference = report.difference.clone().or_worse(difference);
                }
                None => reports.push(OutputReport {
                    name,
                    expected: true,
                    element_type: ty.to_owned(),
                    element_type_in_b: (ty != ty_in_b).then(|| ty_in_b.to_owned()),
                    finite: is_finite(own),
                    difference,
                }),
            }
        }
        Ok(reports)
    }

    /// Compares the outputs of a sample. The largest difference over all steps is returned for each.
    fn differences(&self, done: &Done) -> Vec<Difference> {
        let [in_a, in_b] = &done.outputs;
        let found = self.outputs.iter().map(|pair| {
            let steps = in_a.iter().zip(in_b).filter_map(|(a, b)| Some((a.get(pair.a)?, b.get(pair.b)?)));
            let differences = steps.map(|(a, b)| Difference::between(a, b, self.tolerance));
            differences.reduce(Difference::or_worse).unwrap_or_default()
        });
        found.collect()
    }

    /// Runs A a few more times. Returns the outputs that differ from run to run, which cannot be compared.
    fn unsteady(&mut self, runner: &mut dyn Runner, done: &Done) -> Result<Vec<usize>, VerifyError> {
        const TIMES: usize = 3;
        let models = [&done.ran[0].model, &done.ran[1].model];
        let session = Session::load(runner, models, &self.verification.settings, false)?;
        let again: Result<Vec<Outputs>, _> = (0..TIMES).map(|_| session.run(runner, Side::A, &done.sample)).collect();
        session.release(runner);
        let again = again?;
        let differs = |pair: &Pair, again: &Outputs| {
            let mut steps =
                done.outputs[0].iter().zip(again).filter_map(|(a, b)| Some((a.get(pair.a)?, b.get(pair.a)?)));
            steps.any(|(a, b)| !Difference::between(a, b, self.tolerance).same)
        };
        let found = (0..self.outputs.len()).filter(|&at| again.iter().any(|again| differs(&self.outputs[at], again)));
        let found: Vec<usize> = found.collect();
        for &at in &found {
            let name = &self.outputs[at].name;
            let note = format!("`{name}` was not compared, because A computes different values in each run");
            if self.unsteady.insert(at) {
                self.notes.push(note);
            }
        }
        Ok(found)
    }

    fn output_reports(&self, samples: &[Done], by_sample: &[Vec<Difference>]) -> Vec<OutputReport> {
        let found = self.outputs.iter().enumerate().map(|(at, pair)| {
            let all = by_sample.iter().filter_map(|sample| sample.get(at).cloned());
            let [own, other] = [(0, pair.a), (1, pair.b)].map(|(side, at)| {
                let outputs = samples.first().and_then(|done| done.outputs[side].first());
                let tensor = outputs.and_then(|outputs| outputs.get(at));
                tensor.map_or(String::new(), |tensor| tensor.element_type.name().to_owned())
            });
            let mut values = samples.iter().flat_map(|done| &done.outputs[0]).filter_map(|step| step.get(pair.a));
            OutputReport {
                name: pair.name.clone(),
                expected: false,
                element_type_in_b: (own != other).then_some(other),
                element_type: own,
                finite: values.all(is_finite),
                difference: all.reduce(Difference::or_worse).unwrap_or_default(),
            }
        });
        found.collect()
    }

    /// Finds the layer at which outputs start to differ. An output within the tolerance is also examined if it differs
    /// by more than rounding, and the difference starts at a single layer.
    fn locate(
        &mut self,
        runner: &mut dyn Runner,
        done: &Done,
        differences: &mut [Difference],
        unsteady: &[usize],
    ) -> Result<(Option<First>, Vec<Growth>), VerifyError> {
        let is_given = self.verification.relative.is_some() || self.verification.absolute.is_some();
        let is_suspect = |it: &Difference| {
            !it.same || !is_given && it.size() > CLEAR * self.tolerance.noise && it.size().is_finite()
        };
        let is_wanted = self.verification.locates && self.two_runs && differences.iter().any(is_suspect);
        if !is_wanted && !self.verification.layers {
            return Ok((None, Vec::new()));
        }
        let located = match self.search(done, unsteady).compare(runner, self.verification.layers) {
            Ok(located) => located,
            Err(VerifyError::Run { side, error }) => {
                self.notes.push(format!(
                    "inner tensors were not compared: OpenVINO cannot run model {side} with them as outputs: {error}"
                ));
                return Ok((None, Vec::new()));
            }
            Err(error) => return Err(error),
        };
        if let [first, ..] = &located.left_out[..] {
            let graph = self.models[0].graph();
            let name = graph.layer(first.a.layer).map_or("", |layer| layer.name());
            let note = match located.left_out.len() {
                1 => format!("the tensor `{name}` was not compared, because the device does not give it as an output"),
                count => format!(
                    "{count} tensors were not compared, because the device does not give them as outputs: `{name}` and others"
                ),
            };
            self.notes.push(note);
        }
        let graph = self.models[0].graph();
        let blocks = if self.verification.layers { growth(graph, &located) } else { Vec::new() };
        let changes = diff(self.models[0], self.models[1]).changes;
        let failing: Vec<usize> = (0..differences.len()).filter(|&at| !differences[at].same).collect();
        let search = self.search(done, unsteady);
        let start = search
            .start(&located, &|around| changes.iter().any(|change| is_at(change, around)))
            .or_else(|| search.moved_output(&located, &failing));
        let is_sure = |start: &Start| {
            let is_real =
                |it: &Difference| !it.same || !is_given && self.is_in_f32(start) && it.exceeds(tolerance::F32);
            start.is_clear && start.difference.as_ref().is_none_or(is_real)
        };
        if !is_given
            && !failing.is_empty()
            && !start.as_ref().is_some_and(is_sure)
            && failing.iter().all(|at: &usize| differences[*at].size() <= tolerance::OFTEN_ROUNDED)
            && tolerance::round(self.models[0], self.models[1])
        {
            self.notes.push("no layer changes its values by more than the rounding to bf16".to_owned());
            failing.iter().for_each(|&at| differences[at].same = true);
            return Ok((None, blocks));
        }
        if failing.is_empty() {
            let Some(start) = start.filter(is_sure) else { return Ok((None, blocks)) };
            differences.iter_mut().filter(|it| is_suspect(it)).for_each(|it| it.same = false);
            return Ok((Some(self.first(runner, done, start, &located, changes)?), blocks));
        }
        if located.outputs_agree {
            let note = "the outputs agree if inner tensors are outputs too, so the device causes the difference by fusing layers";
            self.notes.push(note.to_owned());
        }
        let first = start.map(|start| self.first(runner, done, start, &located, changes)).transpose()?;
        Ok((first, blocks))
    }

    /// Models that round to bf16 may have layers in f32, whose values no rounding explains.
    fn is_in_f32(&self, start: &Start) -> bool {
        let mut layers = self.models.iter().zip(&start.around).flat_map(|(model, around)| {
            let graph = model.graph();
            around.iter().map(|id| graph.layer(*id))
        });
        self.tolerance.relative <= tolerance::ROUNDED
            && layers.all(|layer| {
                layer.is_some_and(|layer| layer.outputs().iter().all(|port| port.element_type() == ElementType::F32))
            })
    }

    fn search<'s>(&'s self, done: &'s Done, unsteady: &[usize]) -> Search<'s> {
        let ends = [ids(End::Output, self.models[0]), ids(End::Output, self.models[1])];
        let makers = unsteady
            .iter()
            .filter_map(|&at| self.models[0].graph().producer(ends[0].get(self.outputs[at].a)?.input(0)));
        let outputs = self.outputs.iter().filter_map(|pair| Some((*ends[0].get(pair.a)?, *ends[1].get(pair.b)?)));
        Search {
            models: self.models,
            ranged: [&done.ran[0], &done.ran[1]],
            settings: &self.verification.settings,
            tolerance: self.tolerance,
            sample: &done.sample,
            unsteady: makers.collect(),
            outputs: outputs.collect(),
        }
    }

    fn first(
        &self,
        runner: &mut dyn Runner,
        done: &Done,
        start: Start,
        located: &Located,
        changes: Vec<Change>,
    ) -> Result<First, VerifyError> {
        // A body that does not run alone leaves the layer that has it.
        let inside = match self.search(done, &[]).inside(runner, &start, located.step) {
            Err(VerifyError::Runtime(error)) => return Err(VerifyError::Runtime(error)),
            found => found.ok().flatten(),
        };
        let mut changes: Vec<Change> = changes.into_iter().filter(|change| is_at(change, &start.around)).collect();
        let start = match inside {
            Some(inside) => {
                changes.retain(|change: &Change| {
                    let side = usize::from(change.kind != ChangeKind::Removed);
                    change.layer.place == inside.places[side] && inside.around[side].contains(&change.layer.id)
                });
                inside
            }
            None => start,
        };
        changes.iter_mut().for_each(|change| change.follows.clear());
        let [in_a, in_b] = [(0, start.a), (1, start.b)].map(|(side, id)| {
            let layer = self.models[side].graph_at(&start.places[side])?.layer(id)?;
            let types = layer.outputs().iter().map(ToString::to_string).collect();
            Some((LayerRef::of(&start.places[side], layer), layer.ty().to_owned(), types))
        });
        let (layer, operation, types) = in_a.ok_or(VerifyError::NoShapes)?;
        let (in_b, operation_in_b, types_in_b) = in_b.ok_or(VerifyError::NoShapes)?;
        Ok(First {
            layer,
            operation,
            types,
            in_b,
            operation_in_b,
            types_in_b,
            inputs_agree: start.is_clear,
            difference: start.difference,
            step: located.step + 1,
            changes,
        })
    }

    /// The Results of A whose values were compared in no sample, with the reason.
    fn not_compared(&self, by_sample: &[Vec<Difference>], unsteady: &[usize]) -> HashMap<LayerId, String> {
        let Tolerance { relative, absolute, .. } = self.tolerance;
        let found = self.outputs.iter().enumerate().filter_map(|(at, pair)| {
            let mut differences = by_sample.iter().map(|sample| &sample[at]);
            let why = if unsteady.contains(&at) {
                "has other values in each run"
            } else if differences.all(|it| it.max_relative > relative && it.max_absolute <= absolute) {
                "differs by less than the absolute tolerance"
            } else {
                return None;
            };
            Some((*ids(End::Output, self.models[0]).get(pair.a)?, format!("`{}` {why}", pair.name)))
        });
        found.collect()
    }

    /// Finds the layers of A that the samples did not test, and the number of all layers. `ends` has the Results that
    /// were not compared.
    fn coverage(
        &mut self,
        runner: &mut dyn Runner,
        samples: &[Done],
        ends: HashMap<LayerId, String>,
    ) -> Result<(Vec<NotTested>, usize), VerifyError> {
        let model = self.models[0];
        let shorts = samples.iter().map(|done| done.short.clone());
        let short = shorts.reduce(|mut all, other| {
            all.retain(|layer, _| other.contains_key(layer));
            all
        });
        let mut spreads: HashMap<Output, Spread> = HashMap::default();
        let mut add = |tensor: Output, value: &Tensor| {
            let Some(spread) = Spread::of(value) else { return };
            let known = spreads.get(&tensor).copied();
            spreads.insert(tensor, known.map_or(spread, |known| known.and(spread)));
        };
        for step in samples.iter().flat_map(|done| &done.sample.a) {
            model.inputs().zip(step).for_each(|(input, value)| add(input.id().output(0), value));
        }
        let targets = all_targets(model.graph());
        in_chunks(model.graph(), &targets, &mut |chunk| {
            type Loaded<'a> = (Session, &'a Arc<[Ranged; 2]>, Vec<usize>);
            let mut loaded: Option<Loaded<'_>> = None;
            for done in samples {
                if !loaded.as_ref().is_some_and(|(_, ran, _)| Arc::ptr_eq(ran, &done.ran)) {
                    if let Some((session, ..)) = loaded.take() {
                        session.release(runner);
                    }
                    let ranged = &done.ran[0];
                    let tensors = chunk.iter().map(|target| ranged.of(target.a));
                    let (exposed, places) = locate::exposed(&ranged.model, tensors)?;
                    let models = [&exposed, &exposed];
                    let session = Session::load(runner, models, &self.verification.settings, false)?;
                    loaded = Some((session, &done.ran, places));
                }
                let Some((session, _, places)) = &loaded else { continue };
                for step in session.run(runner, Side::A, &done.sample)? {
                    for (target, value) in chunk.iter().zip(places).filter_map(|(it, &at)| Some((it, step.get(at)?))) {
                        add(target.a, value);
                    }
                }
            }
            if let Some((session, ..)) = loaded {
                session.release(runner);
            }
            Ok(false)
        })?;
        Ok(coverage::not_tested(model, &spreads, &short.unwrap_or_default(), ends))
    }
}

fn all_targets(graph: &Graph) -> Vec<Target> {
    let roles = roles(graph);
    let layers = graph.layers().filter(|layer| {
        let is_end = matches!(ops::kind(layer), LayerKind::Parameter | LayerKind::Result | LayerKind::Assign);
        let mut conditions = graph.consumers(layer.id().output(0)).filter(|input| input.port == 0);
        // The condition of an If may be computed from shapes.
        !is_end
            && (roles.get(layer.id()) == Some(&Role::Data)
                || conditions.any(|input| graph.layer(input.layer).map(ops::kind) == Some(LayerKind::If)))
    });
    let used = layers.flat_map(narrow::outputs).filter(|tensor| {
        graph.consumers(*tensor).next().is_some()
            && graph.output(*tensor).is_some_and(|port| port.element_type() != ElementType::Dynamic)
    });
    used.map(|tensor| Target { a: tensor, b: tensor }).collect()
}

fn growth(graph: &Graph, located: &Located) -> Vec<Growth> {
    let mut blocks: Vec<Growth> = Vec::new();
    for (target, difference) in located.targets.iter().zip(&located.differences) {
        let name = graph.layer(target.a.layer).map_or("", |layer| layer.name());
        let block = numbered_prefix(name).unwrap_or_default();
        let at = blocks.iter().position(|known| known.block == block).unwrap_or_else(|| {
            blocks.push(Growth { block: block.to_owned(), tensors: 0, max_relative: 0.0, layer: name.to_owned() });
            blocks.len() - 1
        });
        let known = &mut blocks[at];
        known.tensors += 1;
        if difference.size() > known.max_relative {
            known.max_relative = difference.size();
            name.clone_into(&mut known.layer);
        }
    }
    blocks
}
