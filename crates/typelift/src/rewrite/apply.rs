//! Application of rules until none matches.

use std::cell::Cell;
use std::collections::VecDeque;

use typelift_promote::ElementType;

use super::bound::{Bindings, Bound, same_value};
use super::build::{Added, Build, Key, Matched};
use super::builtin::Builtin;
use super::matching::{self, Depth};
use super::operations::{operation_of, operations, root_of, root_operations};
use super::roots::Limits;
use super::subject::Subject;
use super::swap::{Found, OnRefusal, Placed, Scan, all_outputs, pairs, swap};
use super::term::{LayerTerm, Rest, Side, TermKind};
use super::{Code, Match, New, Pattern, Replacement, Report, RewriteError, Rule, RuleReplacement, Site, values};
use crate::base::hash::{HashMap, HashSet};
use crate::base::progress::each;
use crate::edit::Edit;
use crate::edit::precision_marks::Marks;
use crate::findings::{Diagnostic, Known, LayerRef};
use crate::model::graph::{Attribute, EditError, Graph, Layer, LayerId, Model, Output, OutputPort, Place};
use crate::model::shape::TensorType;
use crate::ops::{self, LayerKind};

/// Maximum depth of rule applications on their own output.
const MOST_GENERATIONS: u32 = 32;
/// Maximum growth of a graph, as a factor, by rules that match their own output.
const MOST_GROWTH: usize = 8;

impl Model {
    /// Applies rules until none matches, in bodies too. If several match, the earlier rule is applied. Types and shapes
    /// are inferred.
    ///
    /// # Errors
    /// [`RewriteError`] with the rule and the layer; the model is unchanged.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let mut model = Model::from_text("
    ///     x = Parameter : f32[2]
    ///     c = Const([2, 4]) : f32[2]
    ///     y = Divide(x, c)
    ///     r = Result(y)
    /// ")?;
    /// model.rewrite(&["Divide(x, c: const f32) => Multiply(x, 1 / c)".parse()?])?;
    /// assert!(model.to_string().contains("= Const([0.5, 0.25]) : f32[2]\n2 y = Multiply(0, "));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rewrite(&mut self, rules: &[Rule]) -> Result<Report, RewriteError> {
        if !may_match(self, rules) {
            return Ok(Report::default());
        }
        let before = self.clone();
        rewrite(self, rules).inspect_err(|_| *self = before)
    }

    /// Applies rules as [`rewrite`](Self::rewrite) does, but leaves a match unchanged if its replacement is not
    /// possible. Also returns these matches with the reasons.
    pub(crate) fn rewrite_where_possible(
        &mut self,
        rules: &[Rule],
    ) -> Result<(Report, Vec<RewriteError>), RewriteError> {
        let before = self.clone();
        apply_all(self, rules, OnRefusal::Skips, &HashMap::default()).inspect_err(|_| *self = before)
    }

    /// Applies rules as [`rewrite`](Self::rewrite) does. The model is lost on failure, which halves the memory. Rules
    /// can use these tensors of the model's own graph by name.
    pub(crate) fn rewritten(
        mut self,
        rules: &[Rule],
        named: &HashMap<String, Output>,
    ) -> Result<(Self, Report), RewriteError> {
        if !may_match(&self, rules) {
            return Ok((self, Report::default()));
        }
        let (report, _) = apply_all(&mut self, rules, OnRefusal::Fails, named)?;
        Ok((self, report))
    }
}

/// Rules by the operations of their roots.
pub(super) struct Index<'r> {
    rules: &'r [Rule],
    by_operation: HashMap<&'r str, Vec<usize>>,
    /// The first of each.
    builtins: Vec<(Builtin, usize)>,
}

impl<'r> Index<'r> {
    pub(super) fn new(rules: &'r [Rule], is_possible: impl Fn(&Pattern) -> bool) -> Self {
        let mut by_operation = HashMap::<_, Vec<_>>::default();
        for (at, rule) in rules.iter().enumerate().filter(|(_, rule)| is_possible(&rule.pattern)) {
            let mut operations = root_operations(&rule.pattern);
            operations.sort_unstable();
            operations.dedup();
            for operation in operations {
                by_operation.entry(operation).or_default().push(at);
            }
        }
        let position = |own: Builtin| {
            rules
                .iter()
                .position(|rule| matches!(rule.replacement, RuleReplacement::Builtin(builtin) if builtin == own))
        };
        let builtins = Builtin::ALL.into_iter().filter_map(|builtin| Some((builtin, position(builtin)?))).collect();
        Self { rules, by_operation, builtins }
    }

    fn is_empty(&self) -> bool {
        self.by_operation.is_empty() && self.builtins.is_empty()
    }

    /// The rules whose patterns can match at a layer.
    fn of(&self, layer: &Layer) -> impl Iterator<Item = usize> {
        self.by_operation.get(operation_of(layer)).into_iter().flatten().copied()
    }
}

fn is_possible(pattern: &Pattern, present: &HashSet<&str>) -> bool {
    let mut roots = pattern.side.roots.iter();
    roots.len() > 0
        && roots.all(|&root| operations(pattern, root).iter().all(|any| any.iter().any(|name| present.contains(name))))
}

fn present(model: &Model) -> HashSet<&str> {
    model.walk().flat_map(|(_, graph)| graph.unordered()).map(operation_of).collect()
}

/// True if any rule may match, judged without types and shapes.
fn may_match(model: &Model, rules: &[Rule]) -> bool {
    let present = present(model);
    let index = Index::new(rules, |pattern| is_possible(pattern, &present));
    let graphs: Vec<_> = model.walk().collect();
    // Most rules that cannot match require an operation that the model lacks. Arithmetic is decided by shapes.
    let has_arithmetic =
        |&at: &usize| rules[at].pattern.side.terms.iter().any(|term| matches!(term.kind, TermKind::Chain(_)));
    !index.builtins.is_empty()
        || index.by_operation.values().flatten().any(has_arithmetic)
        || graphs.iter().any(|(_, graph)| {
            let mut subject = Subject::new(graph, model.weights());
            subject.is_inferred = false;
            !index.by_operation.is_empty()
                && graph.unordered().any(|layer| {
                    let mut patterns = index.of(layer).map(|at| &rules[at].pattern);
                    patterns.any(|pattern| matching::at(&subject, pattern, layer, Depth::Structure).is_some())
                })
        })
}

fn rewrite(model: &mut Model, rules: &[Rule]) -> Result<Report, RewriteError> {
    Ok(apply_all(model, rules, OnRefusal::Fails, &HashMap::default())?.0)
}

/// Applies rules until none matches. Returns the applications and the skipped matches.
fn apply_all(
    model: &mut Model,
    rules: &[Rule],
    refusal: OnRefusal,
    named: &HashMap<String, Output>,
) -> Result<(Report, Vec<RewriteError>), RewriteError> {
    let known = Known::errors(&crate::infer(model));
    let mut report = Report::default();
    let mut all_skipped = Vec::new();
    let mut memory = Memory::default();
    let first_size = size(model);
    // Length of the report at the start of each sweep.
    let mut sweeps = Vec::new();
    loop {
        let found = find_all(model, rules, &memory);
        if found.iter().all(|(_, found)| found.is_empty()) {
            if memory.tries_again() {
                report.skipped.clear();
                all_skipped.clear();
                continue;
            }
            report.skipped.extend(memory.limits.to_skipped(rules));
            return Ok((report, all_skipped));
        }
        let mut sweep = Sweep {
            rules,
            refusal,
            named,
            memory: &mut memory,
            sites: Vec::new(),
            constants: Added::default(),
            skipped: Vec::new(),
            tries_others: false,
            oldest: 0,
        };
        let result =
            model.edit_or(|edit| found.into_iter().try_for_each(|(place, found)| sweep.graph(edit, &place, found)));
        let Sweep { sites, skipped, oldest, tries_others, .. } = sweep;
        result.map_err(|refusal| match refusal {
            Refusal::Impossible(error) => error,
            Refusal::Edit(error) => breaks(&sites, error.to_string()),
            Refusal::Same => breaks(&sites, "nothing changes".to_owned()),
        })?;
        report.skipped.extend(skipped.iter().filter_map(RewriteError::to_skipped));
        let tries_others = tries_others || !skipped.is_empty();
        all_skipped.extend(skipped);
        let Some(last) = sites.last() else {
            // Another rule may match where this one was skipped.
            if tries_others {
                continue;
            }
            report.skipped.extend(memory.limits.to_skipped(rules));
            return Ok((report, all_skipped));
        };
        memory.has_applied = true;
        if oldest > MOST_GENERATIONS || oldest > 1 && size(model) > MOST_GROWTH * first_size + 1000 {
            // Rules that enable each other may alternate, so growth is measured over several sweeps.
            let recent = sweeps.iter().rev().nth(rules.len()).copied().unwrap_or_default();
            let rules = names(report.applied[recent..].iter().chain(&sites));
            return Err(RewriteError::Endless { rules, layer: last.layer.clone() });
        }
        let errors = crate::infer(model);
        if let Some(new) = known.compare(&errors).new.first() {
            return Err(breaks(&sites, new.message.to_string()));
        }
        report.errors = Some(count(&errors));
        memory.gave_way.clear();
        sweeps.push(report.applied.len());
        report.applied.extend(sites);
    }
}

/// State between sweeps.
#[derive(Default)]
struct Memory {
    /// Number of rule applications that led to each layer.
    generations: HashMap<(Place, LayerId), u32>,
    /// Layers that a rule with `once` created. The rule is not applied to them again.
    made_once: HashSet<(Place, LayerId, usize)>,
    /// Layers at which a rule was not possible, with the position of the rule.
    refused: HashSet<(Place, LayerId, usize)>,
    /// True if a rule was applied after another one was not possible.
    has_applied: bool,
    /// Layers at which a rule was not applied because an output would lose its name. The list is cleared when the
    /// graph changes.
    gave_way: HashSet<(Place, LayerId, usize)>,
    /// Limits that were reached in the last sweep.
    limits: Limits,
}

impl Memory {
    fn is_settled(&self, place: &Place, id: LayerId, rule: usize) -> bool {
        let has = |set: &HashSet<_>| !set.is_empty() && set.contains(&(place.clone(), id, rule));
        has(&self.made_once) || has(&self.refused) || has(&self.gave_way)
    }

    /// Clears the list of layers at which rules were not possible, if the graph has changed since. Returns false if
    /// the list is empty.
    fn tries_again(&mut self) -> bool {
        let is_due = self.has_applied && !self.refused.is_empty();
        if is_due {
            self.refused.clear();
            self.has_applied = false;
        }
        is_due
    }
}

fn find_all(model: &Model, rules: &[Rule], memory: &Memory) -> Vec<(Place, Vec<Found>)> {
    memory.limits.clear();
    let present = present(model);
    let index = Index::new(rules, |pattern| is_possible(pattern, &present));
    if index.is_empty() {
        return Vec::new();
    }
    let graphs = model.walk().rev();
    graphs.map(|(place, graph)| (place.clone(), find(model, graph, &index, &place, memory))).collect()
}

pub(super) fn count(findings: &[Diagnostic]) -> usize {
    findings.iter().filter(|found| found.is_error()).count()
}

fn size(model: &Model) -> usize {
    model.walk().map(|(_, graph)| graph.len()).sum()
}

fn names<'s>(sites: impl IntoIterator<Item = &'s Site>) -> Vec<String> {
    let mut names: Vec<_> = sites.into_iter().map(|site| site.rule.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn breaks(sites: &[Site], error: String) -> RewriteError {
    RewriteError::Breaks { rules: names(sites), error }
}

/// Matches in one graph that do not overlap. Those nearest to the outputs are preferred.
fn find(model: &Model, graph: &Graph, index: &Index, place: &Place, memory: &Memory) -> Vec<Found> {
    let subject = Subject::new(graph, model.weights());
    let order = subject.order();
    let mut found = Vec::new();
    for &id in each("match", order.iter().rev()) {
        let Some(layer) = graph.layer(id).filter(|layer| !subject.is_taken(layer.id())) else { continue };
        for rule in index.of(layer) {
            if memory.is_settled(place, id, rule) {
                continue;
            }
            let bound = matching::at(&subject, &index.rules[rule].pattern, layer, Depth::Whole);
            let limit = subject.limit.take();
            let Some(bound) = bound else {
                limit.into_iter().for_each(|reason| memory.limits.note(rule, LayerRef::of(place, layer), reason));
                continue;
            };
            if bound.layers.iter().any(|(layer, _)| subject.is_taken(*layer)) {
                continue;
            }
            subject.taken.borrow_mut().extend(bound.layers.iter().map(|(layer, _)| *layer));
            found.push(Found { rule, bound });
            break;
        }
    }
    let mut taken = subject.taken.take();
    for &(builtin, rule) in &index.builtins {
        let is_settled = |id| memory.is_settled(place, id, rule);
        let mut scan = Scan { model, graph, order, rule, taken: &mut taken, is_settled: &is_settled };
        found.extend(builtin.find(&mut scan));
    }
    found
}

enum Refusal {
    /// The replacement would change nothing, or an output of the model would lose its name.
    Same,
    Impossible(RewriteError),
    /// The graph cannot be edited as the result needs.
    Edit(EditError),
}

impl From<EditError> for Refusal {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

impl Refusal {
    fn of(error: EditError, rule: &Rule, layer: LayerRef) -> Self {
        let rule = rule.name().to_owned();
        Self::Impossible(match error {
            EditError::NamesResult { .. } => return Self::Same,
            EditError::Incompatible { from_type, to_type, .. } => {
                RewriteError::Changes { rule, layer, was: to_type, becomes: from_type }
            }
            error => RewriteError::Refused { rule, layer, reason: error.to_string() },
        })
    }
}

struct Sweep<'s> {
    rules: &'s [Rule],
    refusal: OnRefusal,
    /// Tensors of the model's own graph that rules can name.
    named: &'s HashMap<String, Output>,
    memory: &'s mut Memory,
    sites: Vec<Site>,
    constants: Added,
    skipped: Vec<RewriteError>,
    /// True if a rule was not applied, so that another rule may match there.
    tries_others: bool,
    oldest: u32,
}

impl Sweep<'_> {
    /// Applies the matches in one graph.
    fn graph(&mut self, edit: &mut Edit<'_>, place: &Place, found: Vec<Found>) -> Result<(), Refusal> {
        if found.is_empty() {
            return Ok(());
        }
        self.forget_constants(place);
        let mut edit = edit.at(place)?;
        each("rewrite", found).try_for_each(|found| self.apply(&mut edit, place, &found))
    }

    /// Forgets which constants were added, but not the tensors with a name.
    fn forget_constants(&mut self, place: &Place) {
        self.constants.clear();
        if place.is_model() {
            let named = self.named.iter().map(|(name, tensor)| (Key::Named(name.clone()), *tensor));
            self.constants.extend(named);
        }
    }

    fn apply(&mut self, edit: &mut Edit<'_>, place: &Place, found: &Found) -> Result<(), Refusal> {
        let Some(layer) = found.bound.layers.first().and_then(|&(root, _)| edit.layer(root).cloned()) else {
            return Ok(());
        };
        let skips = self.refusal == OnRefusal::Skips || self.rules[found.rule].tries;
        let settled = (place.clone(), layer.id(), found.rule);
        match edit.attempt_or(|edit| self.replace(edit, place, found, &layer)) {
            Err(Refusal::Same) => {
                self.constants.retain(|_, constant| edit.layer(constant.layer).is_some());
                self.tries_others |= self.memory.gave_way.insert(settled);
            }
            Err(Refusal::Impossible(error)) if skips => {
                self.skipped.push(error);
                self.memory.refused.insert(settled);
                // Added constants may have been removed.
                self.forget_constants(place);
            }
            done => return done,
        }
        Ok(())
    }

    fn replace(&mut self, edit: &mut Edit<'_>, place: &Place, found: &Found, layer: &Layer) -> Result<(), Refusal> {
        let (root, rule) = (layer.id(), &self.rules[found.rule]);
        let refer = |layer: &Layer| LayerRef::of(place, layer);
        let before = LayerBefore::of(edit, layer);
        let marks = MatchMarks::of(edit, &rule.pattern, &found.bound);
        let refused = |error| Refusal::of(error, rule, refer(layer));
        let placed = replace(edit, rule, found, root, &mut self.constants).map_err(refused)?;
        placed.swaps.iter().try_for_each(|&(old, new)| swap(edit, old, new, self.refusal)).map_err(refused)?;
        let Placed { added, root_stays, losses, edited, .. } = placed;
        if root_stays && !edited && before.is_same(edit, &added) {
            return Err(Refusal::Same);
        }
        if let Some((was, becomes)) = before.changed_tensor(edit, self.refusal) {
            let rule = rule.name().to_owned();
            return Err(Refusal::Impossible(RewriteError::Changes { rule, layer: refer(layer), was, becomes }));
        }
        marks.hand_on(edit, added.iter().copied().chain(root_stays.then_some(root)))?;
        let generation = |id: LayerId| self.memory.generations.get(&(place.clone(), id)).copied().unwrap_or_default();
        // Shared layers are kept and not counted; the others are removed with the match.
        let consumed = found.bound.layers.iter().filter(|&&(id, at)| id == root || !is_shared(&rule.pattern, at));
        let generation = consumed.map(|&(id, _)| generation(id)).min().unwrap_or_default() + 1;
        self.oldest = self.oldest.max(generation);
        for &id in added.iter().chain([&root]) {
            self.memory.generations.insert((place.clone(), id), generation);
            if rule.once {
                self.memory.made_once.insert((place.clone(), id, found.rule));
            }
        }
        let inside = found.bound.layers.iter().map(|&(id, _)| id).filter(|&id| id != root || !root_stays);
        let unused = inside.chain(before.sources.into_iter().flatten().map(|source| source.layer));
        let (mut removed, mut is_spare) = (Vec::new(), false);
        if matches!(rule.replacement, RuleReplacement::Builtin(Builtin::Same)) {
            // The kept layer has the same inputs. Checking all uses of each input would take quadratic time.
            let goes = !root_stays && edit.users(root).next().is_none();
            if let Some(layer) = edit.layer(root).filter(|layer| goes && !ops::is_own(layer)) {
                removed.push(refer(layer));
                edit.remove(root)?;
            }
        } else {
            edit.sweep(unused.collect(), |_, layer| removed.push(refer(layer)))?;
        }
        edit.sweep(added.clone(), |_, _| is_spare = true)?;
        if is_spare {
            self.constants.retain(|_, constant| edit.layer(constant.layer).is_some());
        }
        let added: Vec<_> = added.iter().filter_map(|&id| edit.layer(id)).map(refer).collect();
        self.sites.push(Site { rule: rule.name().to_owned(), layer: refer(layer), added, removed, losses });
        Ok(())
    }
}

/// Precision marks of the layers that a rule replaces.
#[derive(Default)]
struct MatchMarks {
    layers: Marks,
    constants: Marks,
}

impl MatchMarks {
    fn of(edit: &Edit<'_>, pattern: &Pattern, bound: &Bindings) -> Self {
        let mut marks = Self::default();
        for &(id, _) in bound.layers.iter().filter(|&&(_, at)| !is_shared(pattern, at)) {
            marks.layers = marks.layers.and(&edit.marks(id));
        }
        for tensor in bound.names.iter().flatten().flat_map(Bound::tensors) {
            if edit.layer(tensor.layer).is_some_and(|layer| ops::kind(layer) == LayerKind::Constant) {
                marks.constants = marks.constants.and(&edit.marks(tensor.layer));
            }
        }
        marks
    }

    /// Transfers the marks to the replacement: marks of constants to its constants, and others to its layers.
    fn hand_on(&self, edit: &mut Edit<'_>, new: impl Iterator<Item = LayerId>) -> Result<(), EditError> {
        for id in new {
            let marks = match edit.layer(id).map(ops::kind) {
                None => continue,
                // The Convert keeps the decompression mark of the one it replaces.
                Some(LayerKind::Convert) if edit.marks(id).is_decompression() && widens_constant(edit, id) => continue,
                Some(LayerKind::Constant) => self.constants.clone(),
                Some(LayerKind::Convert) => self.layers.clone(),
                Some(_) => self.layers.clone().of_computation(),
            };
            if edit.marks(id) != marks {
                edit.set_marks(id, &marks)?;
            }
        }
        Ok(())
    }
}

fn widens_constant(graph: &Graph, id: LayerId) -> bool {
    let source = graph.producer(id.input(0)).and_then(|source| graph.layer(source.layer));
    source.is_some_and(|layer| ops::kind(layer) == LayerKind::Constant)
}

fn is_shared(pattern: &Pattern, at: usize) -> bool {
    matches!(pattern.side.terms.get(at).map(|term| &term.kind), Some(TermKind::Layer(term)) if term.shared)
}

struct LayerBefore {
    layer: Layer,
    sources: Vec<Option<Output>>,
    /// For a Result: type and shape of its input.
    given: Option<TensorType>,
}

impl LayerBefore {
    fn of(graph: &Graph, layer: &Layer) -> Self {
        let sources = graph.producers(layer.id());
        let given = if ops::kind(layer) == LayerKind::Result { given(graph, layer.id()) } else { None };
        Self { layer: layer.clone(), sources, given }
    }

    fn is_same(&self, edit: &Edit<'_>, added: &[LayerId]) -> bool {
        let Some(new) = edit.layer(self.layer.id()) else { return false };
        let sources = edit.producers(new.id());
        if !is_copy(edit, &self.layer, new) || sources.len() != self.sources.len() {
            return false;
        }
        let mut pending: VecDeque<_> = self.sources.iter().copied().zip(sources).collect();
        let mut seen = HashSet::default();
        while let Some(pair) = pending.pop_front() {
            if pair.0 == pair.1 || !seen.insert(pair) {
                continue;
            }
            let (Some(old), Some(new)) = pair else { return false };
            let (Some(was), Some(is)) = (edit.layer(old.layer), edit.layer(new.layer)) else { return false };
            let (before, now) = (edit.producers(was.id()), edit.producers(is.id()));
            let is_added = added.contains(&is.id()) && old.port == new.port;
            if !is_added || before.len() != now.len() || !is_copy(edit, was, is) {
                return false;
            }
            pending.extend(before.into_iter().zip(now));
        }
        true
    }

    /// A tensor that is used or is a model output, and whose type or shape has changed.
    fn changed_tensor(&self, graph: &Graph, refusal: OnRefusal) -> Option<(String, String)> {
        let id = self.layer.id();
        let used = graph.used_ports(id);
        let outputs = self.layer.outputs().iter().zip(graph.layer(id)?.outputs()).enumerate();
        let outputs = outputs
            .filter(|(port, _)| used.contains(port))
            .map(|(_, (old, new))| (old.tensor_type(), new.tensor_type()));
        let given = self.given.clone().and_then(|was| Some((was, given(graph, id)?)));
        let keeps = |(was, is): &(TensorType, TensorType)| {
            let same_type = [ElementType::Dynamic, is.element_type].contains(&was.element_type);
            same_type && refusal.allows(&was.shape, &is.shape)
        };
        let changed = outputs.chain(given).find(|pair| !keeps(pair));
        changed.map(|(was, is)| (was.to_string(), is.to_string()))
    }
}

fn is_copy(edit: &Edit<'_>, old: &Layer, new: &Layer) -> bool {
    if (new.ty(), new.version()) != (old.ty(), old.version()) {
        return false;
    }
    if ops::kind(old) != LayerKind::Constant {
        let row = new.operation();
        let mut names = old.attributes().iter().chain(new.attributes()).map(Attribute::name);
        return names.all(|name| {
            let known = row.and_then(|row| row.attribute(name));
            let default = known.and_then(|known| known.default);
            match [old, new].map(|layer| layer.attribute(name).or(default)) {
                [Some(was), Some(is)] => same_value(was, is, known.map(|known| known.kind)),
                [was, is] => was == is,
            }
        });
    }
    let stored = |layer: &Layer| {
        let values = values::values(edit, edit.weights(), layer.id().output(0))?;
        Some((values.element_type, values.encode()?, values.dims))
    };
    old.stored_as() == new.stored_as() && stored(old).is_some() && stored(old) == stored(new)
}

fn given(graph: &Graph, result: LayerId) -> Option<TensorType> {
    graph.output(graph.producers(result).first().copied().flatten()?).map(OutputPort::tensor_type)
}

/// Replaces a match by the rule's replacement. The consumers of its outputs are connected later.
fn replace(
    edit: &mut Edit<'_>,
    rule: &Rule,
    found: &Found,
    root: LayerId,
    constants: &mut Added,
) -> Result<Placed, EditError> {
    match &rule.replacement {
        RuleReplacement::Code(code) => run(edit, rule, code, found, root),
        RuleReplacement::Written(write) => {
            let matched = Match::new(edit, edit.weights(), &rule.pattern, &found.bound);
            let side = rule.written(write, &matched)?;
            build(edit, rule, &side, found, root, constants)
        }
        RuleReplacement::Side(side) => build(edit, rule, side, found, root, constants),
        RuleReplacement::Builtin(builtin) => builtin.replace(edit, found, constants),
    }
}

fn run(edit: &mut Edit<'_>, rule: &Rule, code: &Code, found: &Found, root: LayerId) -> Result<Placed, EditError> {
    let matched = Match::new(edit, edit.weights(), &rule.pattern, &found.bound);
    let start = edit.batch_len();
    let replacement = code(&matched, &mut New { edit })?;
    let added = edit.added_since(start).collect();
    let edited = edit.batch_len() > start;
    let roots = rule.pattern.side.roots.len();
    let swaps = match replacement {
        Replacement::Tensors(tensors) => {
            let named = found.named_outputs(&rule.pattern);
            let swaps = pairs(if named.is_empty() { all_outputs(edit, root) } else { named }, tensors)?;
            return Ok(Placed { added, swaps, edited, ..Placed::default() });
        }
        Replacement::Tensor(tensor) if tensor == root.output(0) => Vec::new(),
        _ if roots > 1 => {
            return Err(EditError::Other(format!(
                "the pattern has {roots} roots, so the replacement needs one tensor for each"
            )));
        }
        Replacement::Layer(new, inputs) => edit.replace_in_place(root, *new, &inputs).map(|()| Vec::new())?,
        Replacement::Tensor(tensor) => vec![(root.output(0), tensor)],
    };
    Ok(Placed { added, root_stays: swaps.is_empty(), swaps, edited, ..Placed::default() })
}

fn build(
    edit: &mut Edit<'_>,
    rule: &Rule,
    side: &Side,
    found: &Found,
    root: LayerId,
    constants: &mut Added,
) -> Result<Placed, EditError> {
    let expected = edit.layer(root).and_then(|layer| layer.outputs().first()).map(|port| port.element_type());
    // Term of the pattern from which the replacement copies attributes, the revision or inputs.
    let is_source = |at: usize, old: &LayerTerm| {
        side.terms.iter().any(|term| match &term.kind {
            TermKind::Layer(new) => {
                new.operation == old.operation || [new.more_attributes, new.more_inputs].contains(&Rest::Of(at))
            }
            _ => false,
        })
    };
    let matched = found.bound.layers.iter().filter_map(|&(id, at)| {
        let TermKind::Layer(term) = &rule.pattern.side.terms[at].kind else { return None };
        if !is_source(at, term) {
            return None;
        }
        let inputs = edit.producers(id).into_iter().flatten().collect();
        Some(Matched { at, term, layer: edit.layer(id)?.clone(), inputs, is_root: id == root })
    });
    let matched: Vec<_> = matched.collect();
    let scope = edit.layer(root).map(|layer| layer.name().to_owned()).filter(|name| !name.is_empty());
    let mut build = Build {
        edit,
        side,
        names: &rule.pattern.names,
        bound: &found.bound.names,
        variables: &found.bound.variables,
        matched: &matched,
        constants,
        added: Vec::new(),
        shared: Vec::new(),
        takes_newest: false,
        may_overflow: rule.pattern.allowed.overflow,
        losses: Cell::default(),
        scope,
    };
    let outputs = found.named_outputs(&rule.pattern);
    let is_layer = !side.outputs.is_empty();
    let is_one = rule.pattern.side.roots.len() == 1 && (outputs.is_empty() || is_layer);
    if let (&[term], true) = (&side.roots[..], is_one) {
        let tensor = build.build_root(term, root, expected)?;
        let own = root_of(&rule.pattern).map_or(0, |term| term.output);
        let swaps = tensor.map(|tensor| (root.output(own), tensor)).into_iter().collect();
        let (added, losses) = (build.added, build.losses.get());
        return Ok(Placed { added, swaps, root_stays: tensor.is_none(), edited: false, losses });
    }
    let mut tensors = build.build_all(expected)?;
    let (added, losses) = (build.added, build.losses.get());
    if let (&[first], true) = (&tensors[..], is_layer) {
        tensors = (0..outputs.len()).map(|port| first.layer.output(port)).collect();
    }
    Ok(Placed { added, swaps: pairs(outputs, tensors)?, root_stays: false, edited: false, losses })
}
