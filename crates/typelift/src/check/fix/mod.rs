//! Fixes: edits of the text that are tried before they are suggested.
//!
//! Candidates are derived from the file: from declarations of ports, other layers and revisions of the operation,
//! names with similar spelling, and unused tensors. Each candidate is applied to the text in memory, and the result is
//! read, inferred and checked.

pub(crate) mod actions;
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

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

pub(crate) use self::actions::try_actions;
use self::site::{Candidate, Case, Evidence, Ground, Site};
use self::syntax::damaged_lines;
use self::trial::Soundness;
use crate::base::hash::{self, HashSet};
use crate::base::span::Span;
use crate::findings::{
    About, Applicability, Cause, Code, Diagnostic, FindingKey, Fix, FixAction, Label, Severity, TextEdit, message,
};
use crate::model::graph::{Direction, Graph, Model};

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

/// True if both candidates set the same axis, counted from one end and from the other.
fn is_same_axis(graph: &Graph, one: &Ground, other: &Ground) -> bool {
    let (Ground::Outputs { layer, name, value }, Ground::Outputs { layer: owner, name: same, value: earlier }) =
        (one, other)
    else {
        return false;
    };
    let (Ok(a), Ok(b)) = (value.parse::<i64>(), earlier.parse::<i64>()) else { return false };
    let rank = graph.tensors(*layer).first().and_then(|data| data.shape().rank());
    let is_one = layer == owner && name == same && name.ends_with("axis") && (a < 0) != (b < 0);
    is_one && rank.is_some_and(|rank| a.abs_diff(b) == rank as u64)
}

fn is_one_off(graph: &Graph, change: &Ground) -> bool {
    let Ground::Outputs { layer, name, value } = change else { return false };
    let written = graph.layer(*layer).and_then(|layer| layer.attribute(name)?.trim().parse::<i64>().ok());
    written.zip(value.parse().ok()).is_some_and(|(written, value)| written.abs_diff(value) == 1)
}

struct FixSearch<'a> {
    model: &'a Model,
    before: Rc<Soundness>,
    /// Number of bytes that may still be read.
    budget: &'a mut usize,
    /// True if the budget prevented a trial.
    is_spent: bool,
    /// The candidates for damaged lines of the text, found when a finding needs them.
    damaged: OnceCell<Vec<Candidate>>,
}

/// Candidate that passed its trial, with the state of the text after it.
type Accepted = (Candidate, Soundness);

impl<'a> FixSearch<'a> {
    /// Starts a search for fixes; `None` if there are no findings to fix, or too many.
    fn new(model: &'a Model, found: &[Diagnostic], budget: &'a mut usize) -> Option<Self> {
        let fixable = found.iter().filter(|it| is_fixable(it)).count();
        let is_few = (1..=MOST_FINDINGS).contains(&fixable);
        is_few.then(|| Self {
            model,
            before: Rc::new(Soundness::new(model, found)),
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

    fn try_all(&mut self, found: &Diagnostic) -> (Vec<Fix>, HashSet<FindingKey>) {
        let source = &self.model.source;
        let targets = HashSet::from_iter([found.key()]);
        let case = self.case(found);
        let mut candidates = self.candidates(found, &case);
        // Among equally likely candidates, an edit at the position of the finding is tried first.
        let points = |edit: &TextEdit| {
            found.labels.iter().any(|label| label.span.start <= edit.span.start && edit.span.end <= label.span.end)
        };
        candidates.sort_by_key(|candidate| (candidate.evidence, !candidate.edits.iter().any(points)));
        // Maximum number of possible fixes to collect; two are enough to show that none is safe.
        let most = if is_worth_naming(found) { NAMED } else { 2 };
        // Hashes of the texts, which together may be much longer than the file.
        let mut seen = HashSet::<u64>::default();
        let mut accepted = Vec::<Accepted>::new();
        let mut complete = true;
        for (trials, mut it) in candidates.into_iter().enumerate() {
            // A candidate with similar spelling or an unused target is accepted without trying weaker ones.
            let is_settled =
                accepted.iter().any(|(best, _)| best.evidence <= Evidence::Unused && it.evidence > best.evidence);
            let whole = accepted.iter().filter(|(it, _)| it.evidence < Evidence::Part);
            // Later candidates are weaker, so the search ends when enough of them leave no faults.
            let is_decided = whole.clone().filter(|(_, after)| after.faults() == 0).count() >= most;
            let is_outdone = it.evidence == Evidence::Part && whole.count() > 0;
            if is_settled || is_decided || is_outdone {
                break;
            }
            if trials >= TRIALS || *self.budget < source.len() {
                self.is_spent |= trials < TRIALS;
                complete = false;
                break;
            }
            let text = Arc::new(TextEdit::apply(&it.edits, source));
            if text == *source || !seen.insert(hash::of(&*text)) {
                continue;
            }
            *self.budget -= source.len();
            if let Some(after) = Soundness::without(&targets, &self.before, &text, &self.model.weights) {
                it.evidence = self.weighed(&it, &after);
                accepted.push((it, after));
            }
        }
        self.narrow(found, case.graph, &mut accepted);
        accepted.sort_by_key(|(it, after)| (after.leaves_unused(&self.before), it.evidence));
        let proof = match &accepted[..] {
            [(it, after)] if it.evidence <= Evidence::Unused || complete && it.evidence < Evidence::Part => {
                case.prove(&it.ground, after)
            }
            _ => None,
        };
        // OpenVINO accepts this file, so only fixes are shown for which the file itself is evidence.
        if !found.is_error() && accepted.iter().any(|(it, _)| it.evidence < Evidence::Table) {
            accepted.retain(|(it, _)| it.evidence < Evidence::Table);
        }
        accepted.truncate(NAMED);
        let home = found.layer.as_ref().and_then(|layer| site::find(self.model, layer)?.1.span());
        let fixed = accepted.first().map(|(_, after)| after.fixed.clone()).unwrap_or_default();
        let mut fixes: Vec<_> =
            accepted.into_iter().map(|(it, _)| Fix::edit(source, home, it.edits, proof.clone())).collect();
        // Edits of several places can have the same words, and one of them is enough to find the others.
        let mut words = HashSet::default();
        fixes.retain(|fix| words.insert(fix.to_string()));
        (fixes, fixed)
    }

    fn weighed(&self, candidate: &Candidate, after: &Soundness) -> Evidence {
        match (candidate.evidence, &candidate.ground) {
            // A text that is explained letter for letter may show what else is wrong.
            (Evidence::Near, Ground::Text(_)) => Evidence::Near,
            _ if after.ports.deviate_newly(&self.before.ports) => Evidence::Part,
            // A layer may be rejected only because its constant has wrong bytes. Such candidates are weaker.
            (Evidence::File | Evidence::Table, _) if after.findings.has(Code::OverlappingConstants) => Evidence::Part,
            (evidence, _) => evidence,
        }
    }

    /// Keeps the accepted candidates with the best evidence and the fewest faults.
    fn narrow(&self, found: &Diagnostic, graph: &Graph, accepted: &mut Vec<Accepted>) {
        if accepted.iter().any(|(it, _)| it.evidence < Evidence::Part) {
            accepted.retain(|(it, _)| it.evidence < Evidence::Part);
        }
        let least = accepted.iter().map(|(_, after)| after.faults()).min();
        accepted.retain(|(_, after)| Some(after.faults()) == least);
        // If a missing Convert explains the error, an edge to a tensor of another type is not suggested.
        let is_aligned = found.fixes.iter().any(|fix| matches!(fix.action, FixAction::Align));
        // Nor does a wrong shape ask for an edge that leaves one.
        let is_of_tensors = is_aligned || found.code == Code::ShapeMismatch;
        accepted.retain(|(_, after)| !(is_of_tensors && after.leaves_unused(&self.before)));
        let mut kept = Vec::<Accepted>::new();
        for (it, after) in accepted.drain(..) {
            match kept.iter_mut().find(|(other, _)| is_same_axis(graph, &it.ground, &other.ground)) {
                // A lost sign and a number that is one off explain the text alike.
                Some((other, _)) if is_one_off(graph, &it.ground) => other.evidence = Evidence::Part,
                Some(_) => {}
                None => kept.push((it, after)),
            }
        }
        *accepted = kept;
    }

    /// The graph that a finding is in, with its edges.
    fn case(&self, it: &Diagnostic) -> Case<'a> {
        let model = self.model;
        let located = it.layer.as_ref().and_then(|layer| site::find(model, layer)).map(|(graph, _)| graph);
        let graph = located.or_else(|| Some(site::graph_at(model, it.labels.first()?.span))).unwrap_or(&model.graph);
        let edges = site::edges(&model.source, graph);
        Case { model, graph, edges, before: self.before.clone(), is_error: it.is_error() }
    }

    fn candidates(&self, it: &Diagnostic, case: &Case) -> Vec<Candidate> {
        let model = self.model;
        let places: Vec<Span> = it.labels.iter().map(|label| label.span).collect();
        let mut found = wiring::ids_in_guise(&model.source, &places);
        let layer = it.layer.as_ref().and_then(|layer| case.graph.layer(layer.id));
        // An unknown operation can only be corrected by its name and version.
        if matches!(it.code, Code::UnknownOperation | Code::MisnamedOperation | Code::WrongOpset) {
            return layer.and_then(|layer| case.site(layer)).map_or(found, |site| site.operations());
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
        if it.code.has(Cause::Id) {
            found.extend(case.ids());
        }
        if it.code.has(Cause::Graph) {
            found.extend(case.hypotheses());
        }
        found.extend(case.edge_ends(&places, it.code == Code::Cycle));
        let Some(layer) = layer else { return found };
        found.extend(case.site(layer).iter().flat_map(|site| self.of_layer(it, site)));
        let producers = case.graph.feeds(layer.id()).into_iter().flatten().map(|(layer, _)| layer);
        let mut producers: Vec<_> = producers.collect();
        producers.dedup_by_key(|layer| layer.id());
        let is_about_inputs = !matches!(&*it.about, About::Refusal { attribute: Some(_), .. } | About::Unknown { .. });
        let producers = producers.into_iter().take(4).filter(|_| is_about_inputs).filter_map(|layer| case.site(layer));
        found.extend(producers.flat_map(|site| site.attributes(&|_| true, None)));
        found
    }

    fn ports_at(&self, it: &Diagnostic, site: &Site) -> Vec<Candidate> {
        let mut found = Vec::new();
        for direction in [Direction::Input, Direction::Output] {
            let feeds = site.graph.feeds(site.layer.id());
            for (at, tag) in site.ports(direction).into_iter().enumerate() {
                let whole = site::element(site.source(), tag);
                let output = match direction {
                    Direction::Output => site.layer.outputs().get(at),
                    Direction::Input => feeds.get(at).copied().flatten().and_then(|(it, port)| it.outputs().get(port)),
                };
                let is_meant =
                    it.labels.iter().any(|label| whole.start <= label.span.start && label.span.end <= whole.end);
                let Some(output) = output.filter(|_| is_meant) else { continue };
                let Some(edits) = site.refresh(direction, at, output) else { continue };
                // An unexpected tensor at a port may be the consequence of an error elsewhere.
                let may_follow = !it.is_error() && self.before.has_errors;
                let evidence = if site.is_misread() || may_follow { Evidence::Part } else { Evidence::File };
                let precision = tag.value(site.source(), "precision");
                let read = precision.and_then(|span| reading::port_type(span.text(site.source())));
                let is_type = matches!(&edits[..], [only] if Some(only.span) == precision);
                let ground = read.filter(|read| is_type && read.value == edits[0].text).map(Ground::from);
                found.push(Candidate::new(evidence, ground.unwrap_or(Ground::None), edits));
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
        found.extend(site.inputs());
        found.extend(site.port_ids());
        found.extend(site.new_ports());
        if !site.layer.bodies().is_empty() {
            found.extend(site.port_maps());
        }
        found
    }
}
