//! Fixes: edits of the text that are tried before they are suggested.
//!
//! Candidates are derived from the file: from declarations of ports, other layers and revisions of the operation,
//! names with similar spelling, and unused tensors. Each candidate is applied to the text in memory, and the result is
//! read, inferred and checked.

pub(crate) mod actions;
mod change;
pub(crate) mod checking;
mod fitting;
mod proof;
mod reading;
mod relation;
mod site;
mod syntax;
mod trial;
mod values;
mod whole;
mod wiring;
mod words;

use std::cell::OnceCell;
use std::sync::Arc;

use typelift_promote::ElementType;

pub(crate) use self::actions::try_actions;
use self::change::Change;
use self::proof::Case;
use self::site::{Candidate, Evidence, Site};
use self::syntax::{damaged_lines, offer_syntax};
use self::trial::Soundness;
pub(crate) use self::trial::examine;
use crate::base::hash::{self, HashSet};
use crate::base::span::Span;
use crate::findings::{
    About, Applicability, Cause, Code, Diagnostic, FindingKey, Fix, FixAction, Label, Proof, Severity, TextEdit,
    message,
};
use crate::model::graph::{Direction, Graph, Model, OutputPort};
use crate::model::weights::Weights;

/// Maximum number of findings for which edits are tried, and of candidates per finding.
const FINDINGS: usize = 8;
const TRIALS: usize = 40;
/// Maximum number of findings in a text for which edits are tried. More findings have no simple cause, and each trial
/// would repeat them.
const MOST_FINDINGS: usize = 500;
/// Maximum number of bytes that all trials for a model read together. For a large model it is the minimum number of
/// trials that counts.
const EFFORT: usize = 16 << 20;
const LEAST_TRIALS: usize = 6;
/// Budget of all rounds of fixing, as a multiple of one round's.
const LOOKS: usize = 2;
/// Maximum number of consequences that are shown with a finding.
const CONSEQUENCES: usize = 4;
/// Maximum number of possible fixes that are shown if none is safe.
const NAMED: usize = 4;

/// Adds fixes to the findings of a model: edits of its text. Each edit is applied in memory, and the result is read,
/// inferred and checked.
///
/// A fix is safe if the finding disappears, no finding is new, no further port deviates from its declaration, and no
/// other candidate does as well. If no fix is safe, possible ones may be shown. The work is limited for models of any
/// size.
pub(crate) fn offer_edits(model: &Model, found: &mut Vec<Diagnostic>) {
    if let Some(mut search) = FixSearch::new(model, found, &mut effort(&model.source)) {
        search.find_fixes(found);
    }
}

fn effort(source: &str) -> usize {
    EFFORT.max(LEAST_TRIALS * source.len())
}

/// Merges all findings that the fix of one finding also removes. Returns the positions of the others.
fn join(found: &mut [Diagnostic], at: usize, fixed: &HashSet<FindingKey>) -> Vec<usize> {
    let follows = |&other: &usize| other != at && is_fixable(&found[other]) && fixed.contains(&found[other].key());
    let others: Vec<_> = (0..found.len()).filter(follows).collect();
    let severity = others.iter().map(|&other| found[other].severity).max();
    let count = others.len();
    let labels: Vec<_> = others.iter().filter_map(|&other| Some((found[other].labels.first()?.span, other))).collect();
    let labels: Vec<_> =
        labels.into_iter().take(CONSEQUENCES).map(|(span, at)| (span, found[at].message.clone())).collect();
    let consequences: Vec<_> = others.iter().filter_map(|&other| found[other].layer.clone()).collect();
    let it = &mut found[at];
    it.severity = it.severity.max(severity.unwrap_or(it.severity));
    it.labels.extend(labels.into_iter().map(|(span, message)| Label { span, message }));
    it.consequences.extend(consequences.into_iter().filter(|layer| Some(layer) != it.layer.as_ref()));
    if count > CONSEQUENCES {
        it.notes.push(message!("it also causes {} more findings"; count - CONSEQUENCES));
    }
    others
}

/// Applies safe edits to a text, in rounds, until none is left. Returns the new text, the fixed findings and the
/// remaining ones.
fn fix(source: &Arc<String>, weights: &Weights) -> Fixed {
    let mut fixed =
        Fixed { text: source.clone(), model: None, removed: Vec::new(), left: Vec::new(), is_unfinished: false };
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
        fixed.left = found;
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
        fixed.removed.append(&mut certain);
    }
}

/// Text after safe edits were applied.
struct Fixed {
    text: Arc<String>,
    /// The inferred model of the text; `None` if the text is not a model.
    model: Option<Model>,
    /// The findings that were fixed, with positions in the text of their round.
    removed: Vec<Diagnostic>,
    left: Vec<Diagnostic>,
    /// True if the limit ended the search early, so that another run may fix more.
    is_unfinished: bool,
}

fn is_fixable(it: &Diagnostic) -> bool {
    it.severity > Severity::Note && !it.code.has(Cause::NotText)
}

/// For a file that OpenVINO accepts, they are shown only if the file contradicts itself.
fn is_worth_naming(it: &Diagnostic) -> bool {
    it.is_error() || it.code.has(Cause::Contradiction)
}

/// Puts fixes that were tried before those that were only guessed.
fn offer(it: &mut Diagnostic, source: &str, tried: Vec<Fix>) {
    match &tried[..] {
        [] => {}
        [only] if only.applicability == Applicability::Safe => {
            it.replace_help(vec![only.clone()]);
            // A Convert of a constant whose place or size is wrong converts the wrong bytes.
            if it.edits().unwrap_or_default().iter().any(|edit| {
                let before = source.get(..edit.span.start as usize).unwrap_or_default();
                [" size=\"", " offset=\""].iter().any(|name| before.ends_with(name))
            }) {
                it.remove_actions();
            }
            // If the edits are on other lines than the finding, the mistake is at the edits.
            let line = |span: Span| source.get(..span.start as usize).unwrap_or_default().rfind('\n');
            for edit in it.edits().unwrap_or_default().to_vec() {
                if it.labels.iter().all(|label| line(label.span) != line(edit.span)) {
                    it.labels.push(Label { span: edit.span, message: "the mistake is here".into() });
                }
            }
        }
        _ if !is_worth_naming(it) => {}
        _ => {
            // Values that were tried are more useful than the list of permitted values.
            let tells_values =
                it.code == Code::ShapeMismatch || matches!(&*it.about, About::Refusal { attribute: Some(_), .. });
            it.fixes.retain(|fix| !(tells_values && matches!(fix.action, FixAction::Advise(_))));
            it.fixes.splice(0..0, tried);
        }
    }
}

fn is_same_axis(graph: &Graph, one: &Change, other: &Change) -> bool {
    let (Change::Value { layer, name, value }, Change::Value { layer: owner, name: same, value: earlier }) =
        (one, other)
    else {
        return false;
    };
    let (Ok(a), Ok(b)) = (value.parse::<i64>(), earlier.parse::<i64>()) else { return false };
    let is_one = layer == owner && name == same && name.ends_with("axis") && (a < 0) != (b < 0);
    let rank = graph.tensors(*layer).first().and_then(|data| data.shape().rank());
    is_one && rank.is_some_and(|rank| a.abs_diff(b) == rank as u64)
}

fn is_one_off(graph: &Graph, change: &Change) -> bool {
    let Change::Value { layer, name, value } = change else { return false };
    let written = graph.layer(*layer).and_then(|layer| layer.attribute(name)?.trim().parse::<i64>().ok());
    written.zip(value.parse().ok()).is_some_and(|(written, value)| written.abs_diff(value) == 1)
}

struct FixSearch<'a> {
    model: &'a Model,
    before: Soundness,
    /// Number of bytes that may still be read.
    budget: &'a mut usize,
    /// True if the budget prevented a trial.
    is_spent: bool,
    /// The candidates for damaged lines of the text, found when a finding needs them.
    damaged: OnceCell<Vec<Candidate>>,
}

/// Candidate that passed its trial.
struct Accepted {
    edits: Vec<TextEdit>,
    evidence: Evidence,
    faults: usize,
    change: Change,
    /// State of the text after the trial.
    after: Soundness,
}

impl<'a> FixSearch<'a> {
    /// Starts a search for fixes; `None` if there are no findings to fix, or too many.
    fn new(model: &'a Model, found: &[Diagnostic], budget: &'a mut usize) -> Option<Self> {
        let fixable = found.iter().filter(|it| is_fixable(it)).count();
        let is_few = (1..=MOST_FINDINGS).contains(&fixable);
        is_few.then(|| Self {
            model,
            before: Soundness::new(model, found),
            budget,
            is_spent: false,
            damaged: OnceCell::new(),
        })
    }

    fn find_fixes(&mut self, found: &mut Vec<Diagnostic>) {
        let places: Vec<_> = (0..found.len()).filter(|&at| is_fixable(&found[at])).take(FINDINGS).collect();
        let mut gone = HashSet::default();
        for at in places {
            if gone.contains(&at) {
                continue;
            }
            let (tried, fixed) = self.try_all(&found[at]);
            offer(&mut found[at], &self.model.source, tried);
            if found[at].edits().is_some() {
                gone.extend(join(found, at, &fixed));
            }
        }
        let mut at = 0..;
        found.retain(|_| at.next().is_none_or(|at| !gone.contains(&at)));
        // Errors are tried before findings that may be consequences.
        found.sort_by_key(|it| (std::cmp::Reverse(it.severity), it.edits().is_none()));
    }

    /// Tries all candidates for a finding.
    fn try_all(&mut self, it: &Diagnostic) -> (Vec<Fix>, HashSet<FindingKey>) {
        let source = &self.model.source;
        let targets = HashSet::from_iter([it.key()]);
        let mut candidates = self.candidates(it);
        // Among equally likely candidates, an edit at the position of the finding is tried first.
        let points = |edit: &TextEdit| {
            it.labels.iter().any(|label| label.span.start <= edit.span.start && edit.span.end <= label.span.end)
        };
        candidates.sort_by_key(|candidate| (candidate.evidence, !candidate.edits.iter().any(points)));
        // Maximum number of possible fixes to collect; two are enough to show that none is safe.
        let most = if is_worth_naming(it) { NAMED } else { 2 };
        // Hashes of the texts, which together may be much longer than the file.
        let mut seen = HashSet::<u64>::default();
        let mut accepted = Vec::<Accepted>::new();
        let mut complete = true;
        for (trials, Candidate { edits, evidence, change }) in candidates.into_iter().enumerate() {
            // A candidate with similar spelling or an unused target is accepted without trying weaker ones.
            let is_settled = accepted.iter().any(|it| it.evidence <= Evidence::Unused && evidence > it.evidence);
            let whole = accepted.iter().filter(|it| it.evidence < Evidence::Part);
            // Later candidates are weaker, so the search ends when enough of them leave no faults.
            let is_decided = whole.clone().filter(|it| it.faults == 0).count() >= most;
            let is_outdone = evidence == Evidence::Part && whole.count() > 0;
            if is_settled || is_decided || is_outdone {
                break;
            }
            if trials >= TRIALS || *self.budget < source.len() {
                self.is_spent |= trials < TRIALS;
                complete = false;
                break;
            }
            let text = Arc::new(TextEdit::apply(&edits, source));
            if text == *source || !seen.insert(hash::of(&*text)) {
                continue;
            }
            *self.budget -= source.len();
            if let Some(after) = Soundness::without(&targets, &self.before, &text, &self.model.weights) {
                let evidence = self.weighed(evidence, &change, &after);
                accepted.push(Accepted { edits, evidence, faults: after.faults(), change, after });
            }
        }
        self.narrow(it, &mut accepted);
        accepted.sort_by_key(|it| (it.after.leaves_unused(&self.before), it.evidence));
        let is_whole = |it: &Accepted| it.evidence <= Evidence::Unused || complete && it.evidence < Evidence::Part;
        let only = accepted.first().filter(|it| accepted.len() == 1 && is_whole(it));
        let proof = only.and_then(|only| self.prove(it, only));
        // OpenVINO accepts this file, so only fixes are shown for which the file itself is evidence.
        if !it.is_error() && accepted.iter().any(|it| it.evidence < Evidence::Table) {
            accepted.retain(|it| it.evidence < Evidence::Table);
        }
        accepted.truncate(NAMED);
        let home = it.layer.as_ref().and_then(|layer| site::find(self.model, layer)?.1.span());
        let fixed = accepted.first().map(|it| it.after.fixed.clone()).unwrap_or_default();
        let mut fixes: Vec<_> =
            accepted.into_iter().map(|it| Fix::edit(source, home, it.edits, proof.clone())).collect();
        // Edits of several places can have the same words, and one of them is enough to find the others.
        let mut words = HashSet::default();
        fixes.retain(|fix| words.insert(fix.to_string()));
        (fixes, fixed)
    }

    fn weighed(&self, evidence: Evidence, change: &Change, after: &Soundness) -> Evidence {
        // A text that is explained letter for letter may show what else is wrong.
        let is_spelling = evidence == Evidence::Near && change.is_spelling();
        match evidence {
            _ if !is_spelling && after.ports.deviate_newly(&self.before.ports) => Evidence::Part,
            // A layer may be rejected only because its constant has wrong bytes. Such candidates are weaker.
            Evidence::File | Evidence::Table if after.findings.has(Code::OverlappingConstants) => Evidence::Part,
            evidence => evidence,
        }
    }

    /// Keeps the accepted candidates with the best evidence and the fewest faults.
    fn narrow(&self, it: &Diagnostic, accepted: &mut Vec<Accepted>) {
        if accepted.iter().any(|it| it.evidence < Evidence::Part) {
            accepted.retain(|it| it.evidence < Evidence::Part);
        }
        let least = accepted.iter().map(|it| it.faults).min();
        accepted.retain(|it| Some(it.faults) == least);
        // If a missing Convert explains the error, an edge to a tensor of another type is not suggested.
        let is_aligned = it.fixes.iter().any(|fix| matches!(fix.action, FixAction::Align));
        // Nor does a wrong shape ask for an edge that leaves one.
        let is_of_tensors = is_aligned || it.code == Code::ShapeMismatch;
        accepted.retain(|it| !(is_of_tensors && it.after.leaves_unused(&self.before)));
        self.drop_equal(it, accepted);
    }

    /// Drops candidates that count the axis of an earlier one from the other end.
    fn drop_equal(&self, found: &Diagnostic, accepted: &mut Vec<Accepted>) {
        let Some(graph) = self.graph_of(found) else { return };
        let mut kept = Vec::<Accepted>::new();
        for it in accepted.drain(..) {
            match kept.iter_mut().find(|other| is_same_axis(graph, &it.change, &other.change)) {
                // A lost sign and a number that is one off explain the text alike.
                Some(other) if is_one_off(graph, &it.change) => other.evidence = Evidence::Part,
                Some(_) => {}
                None => kept.push(it),
            }
        }
        *accepted = kept;
    }

    fn prove(&self, it: &Diagnostic, accepted: &Accepted) -> Option<Proof> {
        let graph = self.graph_of(it)?;
        let edges = site::edges(&self.model.source, graph);
        let (model, before) = (self.model, &self.before);
        let case = Case { model, graph, edges: &edges, before, is_error: it.is_error() };
        case.prove(&accepted.change, &accepted.after)
    }

    fn graph_of(&self, it: &Diagnostic) -> Option<&'a Graph> {
        let located = it.layer.as_ref().and_then(|layer| site::find(self.model, layer)).map(|(graph, _)| graph);
        located.or_else(|| Some(site::graph_at(self.model, it.labels.first()?.span)))
    }

    fn candidates(&self, it: &Diagnostic) -> Vec<Candidate> {
        let model = self.model;
        let places: Vec<Span> = it.labels.iter().map(|label| label.span).collect();
        let mut found = wiring::ids_in_guise(&model.source, &places);
        let located = it.layer.as_ref().and_then(|layer| site::find(model, layer));
        // An unknown operation can only be corrected by its name and version.
        if matches!(it.code, Code::UnknownOperation | Code::MisnamedOperation | Code::WrongOpset) {
            let site = located.and_then(|(graph, layer)| Site::new(model, graph, &[], layer));
            return site.map_or(found, |site| site.operations());
        }
        if it.code.has(Cause::Text) {
            found.extend(self.damaged.get_or_init(|| damaged_lines(&model.source)).iter().cloned());
        }
        if it.code.has(Cause::Offsets) {
            found.extend(whole::shifted_offsets(model));
        }
        if it.code.has(Cause::Types) {
            found.extend(whole::retyped(model));
        }
        let graph = located.map(|(graph, _)| graph).or_else(|| Some(site::graph_at(model, *places.first()?)));
        let edges = graph.map(|graph| site::edges(&model.source, graph)).unwrap_or_default();
        if let Some(graph) = graph {
            if it.code.has(Cause::Id) {
                found.extend(wiring::ids(&model.source, graph, &edges));
            }
            if it.code.has(Cause::Graph) {
                found.extend(whole::hypotheses(model, graph, &edges));
            }
            found.extend(wiring::edge_ends(model, graph, &edges, &places));
            if it.code == Code::Cycle {
                found.extend(wiring::cycle_edges(model, graph, &edges, &places));
            }
        }
        let Some((graph, layer)) = located else { return found };
        if let Some(site) = Site::new(model, graph, &edges, layer) {
            found.extend(self.of_layer(it, &site));
        }
        let producers = graph.feeds(layer.id()).into_iter().flatten().map(|(layer, _)| layer);
        let mut producers: Vec<_> = producers.collect();
        producers.dedup_by_key(|layer| layer.id());
        let is_about_inputs = !matches!(&*it.about, About::Refusal { attribute: Some(_), .. } | About::Unknown { .. });
        for producer in producers.into_iter().take(4).filter(|_| is_about_inputs) {
            if let Some(site) = Site::new(model, graph, &edges, producer) {
                found.extend(site.attributes(&|_| true, None));
            }
        }
        found
    }

    fn ports_at(&self, it: &Diagnostic, site: &Site) -> Vec<Candidate> {
        let mut found = Vec::new();
        for direction in [Direction::Input, Direction::Output] {
            let feeds = site.graph.feeds(site.layer.id());
            for (at, tag) in site.ports(direction).into_iter().enumerate() {
                let whole = site.element(tag);
                let output = match direction {
                    Direction::Output => site.layer.outputs().get(at),
                    Direction::Input => feeds.get(at).copied().flatten().and_then(|(it, port)| it.outputs().get(port)),
                };
                let is_meant =
                    it.labels.iter().any(|label| whole.start <= label.span.start && label.span.end <= whole.end);
                let output = output.filter(|_| is_meant);
                let edits = output.and_then(|output| site.refresh(direction, at, output));
                // An unexpected tensor at a port may be the consequence of an error elsewhere.
                let may_follow = !it.is_error() && self.before.has_errors;
                let evidence = if site.is_misread() || may_follow { Evidence::Part } else { Evidence::File };
                let precision = tag.value(site.source(), "precision");
                let change = |edits: &[TextEdit]| Change::Port {
                    written: precision.map(|span| span.text(site.source()).to_owned()),
                    ty: output.map_or(ElementType::Dynamic, OutputPort::element_type),
                    is_type_alone: edits.len() == 1 && precision == Some(edits[0].span),
                };
                found.extend(edits.map(|edits| Candidate::new(evidence, change(&edits), edits)));
            }
        }
        found
    }

    fn of_layer(&self, it: &Diagnostic, site: &Site) -> Vec<Candidate> {
        let mut found = Vec::new();
        let named = match &*it.about {
            About::Refusal { attribute, .. } => attribute.map(str::to_owned),
            About::Assumed { attribute, .. } => Some((*attribute).to_owned()),
            _ => None,
        };
        found.extend(self.ports_at(it, site));
        found.extend(site.attribute_names());
        let is_named = |name: &str| named.as_deref().is_none_or(|named| relation::are_related(named, name));
        found.extend(site.attributes(&is_named, named.as_deref()));
        found.extend(site.operations());
        found.extend(site.missing_head());
        found.extend(site.inputs());
        found.extend(site.port_ids());
        found.extend(site.new_ports());
        if !site.layer.bodies().is_empty() {
            found.extend(site.port_maps());
        }
        found
    }
}
