//! The check of a model: from settings and a text to findings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use typelift_promote::ElementType;

use super::syntax::offer_syntax;
use super::trial::{Soundness, examine};
use super::{FixSearch, effort, offer_edits, try_actions};
use crate::base::hash::HashSet;
use crate::check::{Device, check_after, check_device, check_precision, check_target, forgive_removed};
use crate::findings::{Code, Diagnostic, FindingKey, Fix, FixAction, Severity, TextEdit};
use crate::infer::infer_read;
use crate::model::graph::Model;
use crate::model::weights::Weights;
use crate::ops::Release;
use crate::symbols::Shapes;
use crate::text::xml;

/// Budget of all rounds of fixing, as a multiple of one round's.
const LOOKS: usize = 2;

/// Settings of a check. [`run`](Self::run) reads, infers and checks a text.
///
/// The program, the page and the Python package all use it.
///
/// ```
/// use typelift::{Checking, Weights};
///
/// let text = r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f16"/>
///         <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
///     <layer id="1" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#;
/// let checked = Checking::default().run(&text.to_owned().into(), &Weights::none());
/// assert_eq!(checked.findings[0].to_string(), "warning[stale-port]: output 0 of `x` declares f32[2], and is f16[2]");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checking {
    /// The OpenVINO release that the model must support. Everything that the release does not support is an error.
    pub target: Option<Release>,
    /// The element types in which the model might be computed: f16, bf16 or i32. Problems that this would cause are
    /// warnings.
    pub precisions: Vec<ElementType>,
    /// The devices that must run the model. Everything that a device does not support is an error, and everything
    /// that it executes in another way is a warning.
    pub devices: Vec<Device>,
    /// The severity of a missing weights file for a model with constants.
    pub weights: NeedForWeights,
    /// True if safe fixes are applied to the text.
    pub fix: bool,
}

/// The severity of a missing weights file for a model with constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NeedForWeights {
    /// An error, because OpenVINO cannot load the model.
    #[default]
    Required,
    /// A warning, because the user keeps the weights elsewhere.
    Optional,
    /// A warning that names the file which most likely contains the weights.
    Elsewhere(PathBuf),
}

impl NeedForWeights {
    /// Returns the severity for the `.xml` at a path. Several models may share one `.bin`: `bert.lowered.xml` and
    /// `bert.bin`.
    pub fn of(file: &Path) -> Self {
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let parents = stem.match_indices('.').map(|(at, _)| file.with_file_name(format!("{}.bin", &stem[..at])));
        parents.rev().find(|bin| bin.is_file()).map_or(Self::Required, Self::Elsewhere)
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The inferred model; `None` if the text is not a model at all.
    pub model: Option<Model>,
    /// The findings: errors, then warnings, then notes, each with causes before consequences.
    pub findings: Vec<Diagnostic>,
    /// The text that the findings refer to. If fixes were applied, it is the fixed text.
    pub text: Arc<String>,
    /// The findings that were fixed, in order. Each refers to the text before its own fix.
    pub fixed: Vec<Diagnostic>,
    /// True if the budget did not suffice to try all fixes, so that another run may fix more.
    pub is_unfinished: bool,
}

impl Checking {
    /// Reads, infers and checks a text, and applies safe fixes if requested.
    pub fn run(&self, source: &Arc<String>, weights: &Weights) -> Checked {
        let mut reading = xml::parse(source.clone());
        match reading.model {
            Some(mut model) => {
                model.set_weights(weights.clone());
                self.check_read(Some(model), reading.diagnostics, source.clone())
            }
            None if self.fix => self.fixed(source, weights),
            None => {
                offer_syntax(source, weights, &mut reading.diagnostics, &mut effort(source));
                self.check_read(None, reading.diagnostics, source.clone())
            }
        }
    }

    fn fixed(&self, source: &Arc<String>, weights: &Weights) -> Checked {
        let mut checked = fix(source, weights);
        self.complete(checked.model.as_ref(), &mut checked.findings);
        checked
    }

    /// Infers and checks a model after reading, and applies safe fixes to the text if requested. `found` are the
    /// findings of the reader.
    pub fn check_read(&self, mut model: Option<Model>, mut found: Vec<Diagnostic>, text: Arc<String>) -> Checked {
        if let (true, Some(model)) = (self.fix, &model) {
            return self.fixed(&text, model.weights());
        }
        if let Some(model) = &mut model {
            infer_read(model, &mut found);
        }
        let findings = match &model {
            Some(model) => self.check_inferred(model, None, found, true),
            None => found,
        };
        Checked { model, findings, text, fixed: Vec::new(), is_unfinished: false }
    }

    /// Checks a model after reading and inference. No fixes are applied.
    ///
    /// Edits of the text are tried only if `is_as_read` is true. After edits of the model, its text is outdated. `shapes`
    /// are the model's [lengths](crate::shapes), if they are known already.
    pub fn check_inferred(
        &self,
        model: &Model,
        shapes: Option<&Shapes>,
        found: Vec<Diagnostic>,
        is_as_read: bool,
    ) -> Vec<Diagnostic> {
        let mut found = check_after(model, shapes, found);
        if is_as_read {
            offer_edits(model, &mut found);
        }
        self.complete(Some(model), &mut found);
        found
    }

    fn complete(&self, model: Option<&Model>, found: &mut Vec<Diagnostic>) {
        let Some(model) = model else { return };
        if let Some(target) = self.target {
            forgive_removed(model, target, found);
            found.extend(check_target(model, target));
        }
        let has_errors = found.iter().any(Diagnostic::is_error);
        // Without the values of constants nothing is known about them.
        let has_values = found.iter().all(|it| it.code != Code::WrongWeights);
        for &to in self.precisions.iter().filter(|_| has_values) {
            found.retain(|it| it.code != Code::BeyondI32);
            found.extend(check_precision(model, to, has_errors));
        }
        for &device in self.devices.iter().filter(|_| has_values) {
            found.retain(|it| it.code != Code::BeyondI32);
            found.extend(check_device(model, device, self.target, has_errors));
        }
        for it in found.iter_mut().filter(|it| it.code == Code::MissingWeights) {
            match &self.weights {
                NeedForWeights::Required => it.severity = Severity::Error,
                NeedForWeights::Optional => {}
                NeedForWeights::Elsewhere(bin) => it.fixes.push(Fix::untried(FixAction::ReadWeights(bin.clone()))),
            }
        }
        found.sort_by_key(|it| std::cmp::Reverse(it.severity));
        try_actions(model, found);
    }
}

/// Applies safe edits to a text, in rounds, until none is left.
fn fix(source: &Arc<String>, weights: &Weights) -> Checked {
    let mut fixed =
        Checked { text: source.clone(), model: None, fixed: Vec::new(), findings: Vec::new(), is_unfinished: false };
    let mut rest = LOOKS * effort(source);
    // Each round must leave fewer findings than the one before, or it is the last.
    loop {
        // Each round has the budget of a check without fixes, so it finds the same edits.
        let mut budget = rest.min(effort(source));
        let is_short = budget < effort(source);
        rest -= budget;
        let (model, mut found) = examine(&fixed.text, weights);
        fixed.model = model;
        if fixed.model.is_none() {
            offer_syntax(&fixed.text, weights, &mut found, &mut budget);
        }
        let mut search = fixed.model.as_ref().and_then(|model| FixSearch::new(model, &found, &mut budget));
        if let Some(search) = &mut search {
            search.find_fixes(&mut found);
            fixed.is_unfinished = is_short && search.is_spent;
        }
        let mut certain: Vec<_> = found.iter().filter(|it| it.edits().is_some()).cloned().collect();
        fixed.findings = found;
        if certain.is_empty() {
            return fixed;
        }
        let apply = |these: &[Diagnostic]| {
            let edits: Vec<_> = these.iter().filter_map(Diagnostic::edits).flatten().cloned().collect();
            Arc::new(TextEdit::apply(&edits, &fixed.text))
        };
        let mut text = apply(&certain);
        // Each edit was tried alone, but all together might cause new findings.
        let targets: HashSet<FindingKey> = certain.iter().map(Diagnostic::key).collect();
        let fails = |search: &FixSearch| Soundness::without(&targets, &search.before, &text, weights).is_none();
        if certain.len() > 1 && search.as_ref().is_some_and(fails) {
            certain.truncate(1);
            text = apply(&certain);
        }
        rest += budget;
        fixed.text = text;
        fixed.fixed.append(&mut certain);
    }
}
