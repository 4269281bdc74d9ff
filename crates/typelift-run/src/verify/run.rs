//! Complete comparison of two models: loading, running, comparing, and locating the difference.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::iter;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashSet;
use serde::{Deserialize, Deserializer};
use typelift::edit::inputs_outputs::End;
use typelift::explain::diff::{self, Change, ChangeKind};
use typelift::findings::LayerRef;
use typelift::model::graph::{Graph, LayerId, Model, Place, numbered_prefix};
use typelift::model::shape::{self, Shape};
use typelift::ops::{self, LayerKind};
use typelift::options;
use typelift::promote::ElementType;

use super::compare::{Difference, is_finite};
use super::error::{Side, VerifyError};
use super::inputs::shapes::{Shapes, Sizing};
use super::inputs::{Choice, DISTRIBUTIONS, Fed, Sample, Shaped};
use super::locate::{CLEAR, Located, Search, Start};
use super::narrow::{self, Ranged};
use super::pairing::{self, Pair, ids, paired};
use super::report::{First, Growth, OutputReport, Report, SampleReport};
use super::runner::{RunError, Runner, Runtime, Setting};
use super::session::{Outputs, Session};
use super::tolerance::{self, Tolerance};

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
    /// The device: `CPU`.
    pub device: String,
    /// The precision in which A and B run, by hint: `f32`, `bf16`, `f16`. Without hints both run in f32.
    #[serde(deserialize_with = "hints")]
    pub hints: [Option<String>; 2],
    /// The shapes of inputs, by name.
    #[serde(deserialize_with = "shape::pairs")]
    pub shapes: Vec<(String, Shape)>,
    /// The `.npz` file or the folder of `.npy` files with the inputs.
    pub inputs: Option<PathBuf>,
    /// The seed of random values.
    pub seed: u64,
    /// The number of samples. The first has the smallest shapes, the others larger ones. A model with an If gets four
    /// times as many, so that both branches are likely to run.
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

/// Options for the precision in which the models run.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Hints {
    hint_a: Option<String>,
    hint_b: Option<String>,
}

fn hints<'de, D: Deserializer<'de>>(from: D) -> Result<[Option<String>; 2], D::Error> {
    Hints::deserialize(from).map(|Hints { hint_a, hint_b }| [hint_a, hint_b])
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            device: "CPU".to_owned(),
            hints: [None, None],
            shapes: Vec::new(),
            inputs: None,
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
        options::read("verify", options, &[("hints", options::names_of::<Hints>)])
    }

    /// Runs two inferred models on the same inputs and compares their outputs. If they differ, finds the layer at which the
    /// difference starts.
    ///
    /// # Errors
    /// [`VerifyError`]: there is no runtime, or a model cannot be run, or their inputs cannot be paired.
    ///
    /// # Examples
    /// See [the module](super).
    pub fn run(&self, a: &Model, b: &Model, runner: &mut dyn Runner) -> Result<Report, VerifyError> {
        let mut runtime = runner.describe(&self.device).map_err(VerifyError::Runtime)?;
        runtime.device.clone_from(&self.device);
        let inputs = paired(End::Input, a, b).map_err(VerifyError::Unpaired)?;
        let outputs = paired(End::Output, a, b).map_err(VerifyError::Unpaired)?;
        let hints = [self.hints[0].as_deref(), self.hints[1].as_deref()];
        let (narrowest, mut tolerance) = tolerance::narrowest(a, b, hints);
        tolerance.relative = self.relative.unwrap_or(tolerance.relative);
        tolerance.absolute = self.absolute.unwrap_or(tolerance.absolute);
        let mut notes = Vec::new();
        if self.hides_range(a, b) {
            let note = "the CPU computes f16 as f32: checks were added that make values beyond 65504 infinite, as on other devices";
            notes.push(note.to_owned());
        }
        let settings = self.settings();
        let mut work = Work {
            verification: self,
            models: [a, b],
            inputs,
            outputs,
            settings,
            tolerance,
            notes,
            unsteady: BTreeSet::new(),
        };
        let samples = work.samples(runner)?;
        work.report(runner, runtime, narrowest, samples)
    }

    fn settings(&self) -> [Setting; 2] {
        let is_hinted = self.hints.iter().any(Option::is_some);
        let default = (!is_hinted).then(|| "f32".to_owned());
        self.hints.clone().map(|hint| Setting { device: self.device.clone(), hint: hint.or_else(|| default.clone()) })
    }

    /// True if checks of the f16 range are needed: the device computes f16 as f32, and only one model uses f16.
    fn hides_range(&self, a: &Model, b: &Model) -> bool {
        let is_cpu = self.device.eq_ignore_ascii_case("CPU") && self.hints.iter().flatten().all(|hint| hint != "f16");
        is_cpu && narrow::computed(a) != narrow::computed(b)
    }

    fn ranged(&self, [a, b]: [&Model; 2]) -> Result<[Ranged; 2], VerifyError> {
        if self.hides_range(a, b) {
            Ok([narrow::with_range(a)?, narrow::with_range(b)?])
        } else {
            Ok([Ranged::plain(a), Ranged::plain(b)])
        }
    }
}

/// Loaded models with dynamic shapes.
type Open = (Session, Arc<[Ranged; 2]>);

/// State of a comparison.
struct Work<'w> {
    verification: &'w Verification,
    models: [&'w Model; 2],
    inputs: Vec<Pair>,
    outputs: Vec<Pair>,
    settings: [Setting; 2],
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
}

/// True if a graph or one of its bodies has an If.
fn has_branches(graph: &Graph) -> bool {
    graph
        .layers()
        .any(|layer| ops::kind(layer) == LayerKind::If || layer.bodies().iter().any(|body| has_branches(body.graph())))
}

impl Work<'_> {
    fn samples(&mut self, runner: &mut dyn Runner) -> Result<Vec<Done>, VerifyError> {
        let ran = Arc::new(self.verification.ranged(self.models)?);
        if let Some(path) = &self.verification.inputs {
            let sample = self.given(runner, path)?;
            let session = Session::load(runner, [&ran[0].model, &ran[1].model], &self.settings)?;
            let outputs = session.run_both(runner, &sample);
            session.release(runner);
            return Ok(vec![Done { sample, outputs: outputs?, ran }]);
        }
        let (inputs, [a, b]) = (self.inputs.clone(), self.models);
        let asked = self.asked_shapes()?;
        let sizing = Sizing::new(a, b, &inputs, &asked);
        // If the device does not support dynamic shapes, the models get the shapes of each sample.
        match Session::load(runner, [&ran[0].model, &ran[1].model], &self.settings) {
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

    fn each_sample(
        &self,
        runner: &mut dyn Runner,
        sizing: &Sizing<'_>,
        mut open: Option<&Open>,
    ) -> Result<Vec<Done>, VerifyError> {
        let mut done: Vec<Done> = Vec::new();
        let mut smallest: Option<Shapes> = None;
        let factor = if self.models.iter().any(|model| has_branches(model.graph())) { 4 } else { 1 };
        for at in 0..self.verification.samples.max(1) * factor {
            let candidates: Box<dyn Iterator<Item = Shapes>> = match &smallest {
                Some(smallest) if sizing.is_open() => Box::new(sizing.larger(smallest).chain([smallest.clone()])),
                Some(smallest) => Box::new(iter::once(smallest.clone())),
                None => Box::new(sizing.smallest()),
            };
            let (shapes, found) = self.first_that_runs(runner, sizing, &mut open, candidates, at)?;
            smallest.get_or_insert(shapes);
            done.push(found);
        }
        Ok(done)
    }

    /// Runs both models with each assignment of shapes, until one runs. A crash ends the process that had loaded `open`.
    fn first_that_runs(
        &self,
        runner: &mut dyn Runner,
        sizing: &Sizing<'_>,
        open: &mut Option<&Open>,
        candidates: impl Iterator<Item = Shapes>,
        at: usize,
    ) -> Result<(Shapes, Done), VerifyError> {
        let mut refused = None;
        let mut crashes = 0;
        for shapes in candidates.take(MOST_RUN) {
            let Some((shaped, fixed)) = Shaped::new(sizing, &self.inputs, shapes) else { continue };
            if let Err(error) = shaped.check_memory(&self.inputs, self.steps(), self.models[0].weights()) {
                refused = refused.or(Some(error));
                continue;
            }
            let mut done = match open {
                Some((session, ran)) => self.run_shaped(runner, session, &shaped, at, ran.clone()),
                None => self.run_fixed(runner, &shaped, [&fixed[0], &fixed[1]], at),
            };
            if let Err(VerifyError::Run { error: error @ (RunError::Crashed(_) | RunError::TimedOut(_)), .. }) = &done {
                let is_crash = matches!(error, RunError::Crashed(_));
                crashes += 1;
                // The device may support these shapes if they are fixed.
                if open.take().is_some() && is_crash {
                    done = self.run_fixed(runner, &shaped, [&fixed[0], &fixed[1]], at);
                }
            }
            match done {
                Ok(done) => return Ok((shaped.shapes, done)),
                Err(error) if crashes == MOST_CRASHES => return Err(error),
                Err(error @ VerifyError::Run { .. }) => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or(VerifyError::NoShapes))
    }

    fn run_fixed(
        &self,
        runner: &mut dyn Runner,
        shaped: &Shaped,
        fixed: [&Model; 2],
        at: usize,
    ) -> Result<Done, VerifyError> {
        let ran = Arc::new(self.verification.ranged(fixed)?);
        let session = Session::load(runner, [&ran[0].model, &ran[1].model], &self.settings)?;
        let done = self.run_shaped(runner, &session, shaped, at, ran);
        session.release(runner);
        done
    }

    /// Runs both models with fixed shapes. Values are chosen so that the outputs of A are finite, if possible.
    fn run_shaped(
        &self,
        runner: &mut dyn Runner,
        session: &Session,
        shaped: &Shaped,
        at: usize,
        ran: Arc<[Ranged; 2]>,
    ) -> Result<Done, VerifyError> {
        let seed = self.verification.seed.wrapping_add(1 + at as u64).wrapping_mul(0x2545_F491_4F6C_DD1D);
        let mut chosen: Option<(Sample, Outputs)> = None;
        for floats in 0..DISTRIBUTIONS {
            let (sample, outputs) = self.run_a(runner, session, shaped, seed, floats)?;
            let is_good = outputs.iter().flatten().all(is_finite);
            if is_good || chosen.is_none() {
                chosen = Some((sample, outputs));
            }
            if is_good {
                break;
            }
        }
        let (sample, outputs) = chosen.ok_or(VerifyError::NoShapes)?;
        let other = session.run(runner, Side::B, &sample)?;
        Ok(Done { sample, outputs: [outputs, other], ran })
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

    fn steps(&self) -> usize {
        let has_state = |model: &Model| model.graph().layers().any(|layer| ops::kind(layer) == LayerKind::ReadValue);
        let default = if self.models.iter().any(|model| has_state(model)) { STEPS } else { 1 };
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

    /// Reads the inputs from the user: by name, otherwise in the order of the file.
    fn given(&self, runner: &mut dyn Runner, path: &std::path::Path) -> Result<Sample, VerifyError> {
        let arrays = runner.arrays(path).map_err(|error| VerifyError::Inputs(error.to_string()))?;
        let names = pairing::names(End::Input, self.models[0]);
        let mut sample = Sample::default();
        let mut in_order = Vec::new();
        for (at, pair) in self.inputs.iter().enumerate() {
            let known = |(name, _): &&(String, super::Tensor)| {
                names[pair.a].contains(name) || *name == format!("input_{}", pair.a)
            };
            let by_name = arrays.iter().find(known);
            let by_place = || arrays.get(at).filter(|_| arrays.len() == self.inputs.len());
            let Some((_, tensor)) = by_name.or_else(by_place) else {
                let has: Vec<_> = arrays.iter().map(|(name, _)| format!("`{name}`")).collect();
                let (name, has) = (&pair.name, has.join(", "));
                return Err(VerifyError::Inputs(format!(
                    "`{}` has no array for input `{name}`; it has {has}",
                    path.display()
                )));
            };
            in_order.push(tensor);
        }
        let (mut in_a, mut in_b) = (vec![None; in_order.len()], vec![None; in_order.len()]);
        for (pair, tensor) in self.inputs.iter().zip(in_order) {
            for (side, (at, inputs)) in [(pair.a, &mut in_a), (pair.b, &mut in_b)].into_iter().enumerate() {
                let ids = ids(End::Input, self.models[side]);
                let ty = ids
                    .get(at)
                    .and_then(|id| self.models[side].graph().output(id.output(0)))
                    .map(|port| port.element_type());
                let converted = tensor.as_type(ty.unwrap_or(tensor.element_type));
                let refusal = || {
                    VerifyError::Inputs(format!(
                        "the array for input `{}` is {}, which does not match the model",
                        pair.name, tensor.element_type
                    ))
                };
                inputs[at] = Some(converted.ok_or_else(refusal)?);
            }
            sample.fed.push(Fed::given(&pair.name, tensor));
        }
        sample.a.push(in_a.into_iter().flatten().collect());
        sample.b.push(in_b.into_iter().flatten().collect());
        Ok(sample)
    }

    fn report(
        mut self,
        runner: &mut dyn Runner,
        runtime: Runtime,
        narrowest: ElementType,
        samples: Vec<Done>,
    ) -> Result<Report, VerifyError> {
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
        let outputs = self.output_reports(&samples, &by_sample);
        let reports =
            samples.into_iter().map(|done| SampleReport { steps: done.sample.a.len(), inputs: done.sample.fed });
        Ok(Report {
            same: outputs.iter().all(|output| output.difference.same),
            runtime,
            precision: self.settings.map(|setting| setting.hint),
            narrowest,
            tolerance: self.tolerance,
            samples: reports.collect(),
            outputs,
            first,
            blocks,
            notes: self.notes,
        })
    }

    /// Compares the outputs of a sample. The largest difference over all steps is returned for each.
    fn differences(&self, done: &Done) -> Vec<Difference> {
        let [in_a, in_b] = &done.outputs;
        let of = |pair: &Pair| {
            let steps = in_a.iter().zip(in_b).filter_map(|(a, b)| Some((a.get(pair.a)?, b.get(pair.b)?)));
            let differences = steps.map(|(a, b)| Difference::between(a, b, self.tolerance));
            differences.reduce(Difference::or_worse).unwrap_or_default()
        };
        self.outputs.iter().map(of).collect()
    }

    /// Runs A a few more times. Returns the outputs that differ from run to run, which cannot be compared.
    fn unsteady(&mut self, runner: &mut dyn Runner, done: &Done) -> Result<Vec<usize>, VerifyError> {
        const TIMES: usize = 3;
        let session = Session::load(runner, [&done.ran[0].model, &done.ran[1].model], &self.settings)?;
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
        let ty = |side: usize, at: usize| {
            let outputs = samples.first().and_then(|done| done.outputs[side].first());
            let tensor = outputs.and_then(|outputs| outputs.get(at));
            tensor.map_or(String::new(), |tensor| tensor.element_type.name().to_owned())
        };
        let of = |(at, pair): (usize, &Pair)| {
            let all = by_sample.iter().filter_map(|sample| sample.get(at).cloned());
            let (own, other) = (ty(0, pair.a), ty(1, pair.b));
            let mut values = samples.iter().flat_map(|done| &done.outputs[0]).filter_map(|step| step.get(pair.a));
            OutputReport {
                name: pair.name.clone(),
                element_type_in_b: (own != other).then_some(other),
                element_type: own,
                finite: values.all(is_finite),
                difference: all.reduce(Difference::or_worse).unwrap_or_default(),
            }
        };
        self.outputs.iter().enumerate().map(of).collect()
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
        let is_wanted = self.verification.locates && differences.iter().any(is_suspect);
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
        let graph = self.models[0].graph();
        let blocks = if self.verification.layers { growth(graph, &located) } else { Vec::new() };
        let changes = diff::diff(self.models[0], self.models[1]).changes;
        let is_changed = |around: &[HashSet<LayerId>; 2]| changes.iter().any(|change| is_at(change, around));
        let failing: Vec<usize> = (0..differences.len()).filter(|&at| !differences[at].same).collect();
        let search = self.search(done, unsteady);
        let start = search.start(&located, &is_changed).or_else(|| search.moved_output(&located, &failing));
        let is_sure = |start: &Start| start.is_clear && start.difference.as_ref().is_none_or(|it| !it.same);
        let is_rounding = |at: &usize| differences[*at].size() <= tolerance::OFTEN_ROUNDED;
        if !is_given
            && !failing.is_empty()
            && !start.as_ref().is_some_and(is_sure)
            && failing.iter().all(is_rounding)
            && tolerance::round(self.models[0], self.models[1])
        {
            self.notes.push("no layer changes its values by more than the rounding to bf16".to_owned());
            failing.iter().for_each(|&at| differences[at].same = true);
            return Ok((None, blocks));
        }
        if failing.is_empty() {
            let Some(start) = start.filter(is_sure) else { return Ok((None, blocks)) };
            differences.iter_mut().filter(|it| is_suspect(it)).for_each(|it| it.same = false);
            return Ok((Some(self.first(start, &located, changes)), blocks));
        }
        if start.is_none() {
            let note =
                "the difference disappears if inner tensors are outputs, so the device causes it by fusing layers";
            self.notes.push(note.to_owned());
        }
        Ok((start.map(|start| self.first(start, &located, changes)), blocks))
    }

    fn search<'s>(&'s self, done: &'s Done, unsteady: &[usize]) -> Search<'s> {
        let maker = |at: &usize| {
            self.models[0].graph().producer(ids(End::Output, self.models[0]).get(self.outputs[*at].a)?.input(0))
        };
        let ends = [ids(End::Output, self.models[0]), ids(End::Output, self.models[1])];
        let outputs = self.outputs.iter().filter_map(|pair| Some((*ends[0].get(pair.a)?, *ends[1].get(pair.b)?)));
        Search {
            models: self.models,
            ranged: [&done.ran[0], &done.ran[1]],
            settings: &self.settings,
            tolerance: self.tolerance,
            sample: &done.sample,
            unsteady: unsteady.iter().filter_map(maker).collect(),
            outputs: outputs.collect(),
        }
    }

    fn first(&self, start: Start, located: &Located, changes: Vec<Change>) -> First {
        let described = |side: usize, id: LayerId| {
            let layer = self.models[side].graph().layer(id);
            let name = layer.map(|layer| LayerRef::of(&Place::default(), layer));
            let ports = layer.map(|layer| layer.outputs()).unwrap_or_default();
            let types = ports.iter().map(ToString::to_string).collect();
            (
                name.unwrap_or_else(|| LayerRef::named(&Place::default(), id, "")),
                layer.map_or("", |layer| layer.ty()).to_owned(),
                types,
            )
        };
        let (layer, operation, types) = described(0, start.a);
        let (in_b, operation_in_b, types_in_b) = described(1, start.b);
        let mut changes: Vec<Change> = changes.into_iter().filter(|change| is_at(change, &start.around)).collect();
        changes.iter_mut().for_each(|change| change.follows.clear());
        First {
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
        }
    }
}

/// True if a change is at one of these layers of A or B, or in one of their bodies.
fn is_at(change: &Change, [in_a, in_b]: &[HashSet<LayerId>; 2]) -> bool {
    let id = change.layer.place.steps().first().map_or(change.layer.id, |&(owner, _)| owner);
    match change.kind {
        ChangeKind::Names => false,
        ChangeKind::Removed => in_a.contains(&id),
        _ => in_b.contains(&id),
    }
}

/// Returns the largest error of each block, in topological order.
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
