//! Comparison of two matched graphs: records differences, causes before their consequences.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::matching::{Pairs, matched};
use super::quantized::Plain;
use super::side::{Feed, Ports, Side, Use};
use super::story::whole_blocks;
use super::{Change, ChangeKind, Consequence, Diff, ValueChange, ValueError, values};
use crate::base::hash::{HashMap, HashSet};
use crate::base::progress::each;
use crate::base::span::Lines;
use crate::edit::precision_marks::Marks;
use crate::explain::shown::{digits, shown};
use crate::findings::{LayerRef, grouped};
use crate::infer::blocks;
use crate::model::graph::{Body, Direction, Layer, LayerId, Model, Place, numbered_prefix};
use crate::ops::{self, Operation};
use crate::precision::schemes::Scheme;

type ChangeIndex = usize;

pub(super) struct Comparison<'a> {
    before: &'a Model,
    after: &'a Model,
    plain: &'a [Plain<'a>; 2],
    lines: [Lines; 2],
    /// The changes, each with the positions in the second model by which they are sorted at the end.
    changes: Vec<(SmallVec<[usize; 4]>, Change)>,
    unread: usize,
    /// The constants that are stored in the same type, by this type.
    kept: BTreeMap<String, Vec<String>>,
}

struct GraphPair<'a> {
    before: Side<'a>,
    after: Side<'a>,
    pairs: Pairs,
    /// The place of the graphs in the second model.
    place: Place,
    rank: SmallVec<[usize; 4]>,
    /// The change that affects the inputs of the body, if there is one.
    outer: Option<ChangeIndex>,
    /// The change that explains each removed layer.
    removed: Vec<Option<ChangeIndex>>,
    /// The change that affects the outputs of each layer of the second graph.
    causes: Vec<Option<ChangeIndex>>,
    /// For each layer of the second graph: true if an output has another type or shape.
    retyped: Vec<bool>,
    /// Differences whose cause may be a layer that is compared later, because a back edge leads to it.
    deferred: Vec<(usize, Consequence)>,
    first: Option<ChangeIndex>,
}

struct Difference {
    kind: ChangeKind,
    subject: Option<String>,
    before: Option<String>,
    after: Option<String>,
    values: Option<ValueChange>,
    error: Option<ValueError>,
}

impl Difference {
    fn new(kind: ChangeKind, before: impl ToString, after: impl ToString) -> Self {
        Self::between(kind, Some(before.to_string()), Some(after.to_string()))
    }

    fn between(kind: ChangeKind, before: Option<String>, after: Option<String>) -> Self {
        Self { kind, subject: None, before, after, values: None, error: None }
    }

    fn of(mut self, subject: impl ToString) -> Self {
        self.subject = Some(subject.to_string());
        self
    }

    fn follows(self, path: String) -> Consequence {
        Consequence { kind: self.kind, path, subject: self.subject, before: self.before, after: self.after }
    }
}

impl<'a> Comparison<'a> {
    pub(super) fn new(plain: &'a [Plain<'a>; 2]) -> Self {
        let [before, after] = plain.each_ref().map(|plain| &*plain.model);
        let lines = [before, after].map(|model| Lines::new(model.source().clone()));
        Self { before, after, plain, lines, changes: Vec::new(), unread: 0, kept: BTreeMap::new() }
    }

    pub(super) fn run(mut self) -> Diff {
        let before = Side::new(self.before.graph(), self.before, None);
        let after = Side::new(self.after.graph(), self.after, None);
        let pairs = matched(&before, &after);
        let unmatched = |side: &Side<'_>, pairs: &[Option<usize>]| {
            let unmatched = pairs.iter().enumerate().filter(|(_, pair)| pair.is_none());
            unmatched.flat_map(|(at, _)| [side.layers[at].id(), side.holder(at).id()]).collect::<HashSet<_>>()
        };
        let (removed, added) = (unmatched(&before, &pairs.of_before), unmatched(&after, &pairs.of_after));
        self.graphs((before, after, pairs), Place::default(), SmallVec::new(), None);
        self.changes.sort_by(|a, b| a.0.cmp(&b.0));
        self.name_blocks();
        let mut blocks = whole_blocks(ChangeKind::Removed, self.before, &removed);
        blocks.extend(whole_blocks(ChangeKind::Added, self.after, &added));
        let whole = blocks.iter().flat_map(|block| {
            let is_added = block.kind == ChangeKind::Added;
            block.layers.iter().map(|&id| (is_added, id)).collect::<Vec<_>>()
        });
        let whole = whole.collect();
        let changes: Vec<Change> = self.changes.into_iter().map(|(_, change)| change).collect();
        let lost: HashSet<_> =
            changes.iter().filter(|change| change.error.is_some()).map(|it| it.stored_types()[0]).collect();
        self.kept.retain(|stored, _| lost.contains(stored.as_str()));
        Diff { kept: self.kept, changes, unread: self.unread, blocks, whole, ..Diff::default() }
    }

    /// Compares two graphs, and returns the first change in them.
    fn graphs(
        &mut self,
        (before, after, pairs): (Side<'a>, Side<'a>, Pairs),
        place: Place,
        rank: SmallVec<[usize; 4]>,
        outer: Option<ChangeIndex>,
    ) -> Option<ChangeIndex> {
        let removed = vec![None; before.len()];
        let (causes, retyped) = (vec![None; after.len()], vec![false; after.len()]);
        let (deferred, first) = (Vec::new(), None);
        let mut scope =
            GraphPair { before, after, pairs, place, rank, outer, removed, causes, retyped, deferred, first };
        self.report_removed_layers(&mut scope);
        self.report_added_layers(&mut scope);
        for b in each("compare", 0..scope.after.len()) {
            if let Some(a) = scope.pairs.of_after[b] {
                self.compare_pair(&mut scope, a, b);
            }
        }
        self.find_successors(&scope);
        for (b, consequence) in std::mem::take(&mut scope.deferred) {
            match scope.first {
                Some(cause) => self.follow(cause, consequence),
                None => {
                    let Consequence { kind, subject, before, after, .. } = consequence;
                    self.add(&mut scope, b, Difference { subject, ..Difference::between(kind, before, after) });
                }
            }
        }
        scope.first
    }

    /// Finds the layers that compute what removed layers did: added ones, and consumers that have changed, too.
    fn find_successors(&mut self, scope: &GraphPair<'a>) {
        let kinds = [ChangeKind::Added, ChangeKind::Operation, ChangeKind::Attribute, ChangeKind::Input];
        let here = |change: &Change| change.layer.place == scope.place;
        let changes = self.changes.iter().map(|(_, change)| change).filter(|change| here(change));
        let changed = changes.filter(|change| kinds.contains(&change.kind) && !change.is_merged);
        let changed: HashSet<LayerId> = changed.map(|change| change.layer.id).collect();
        let mut found = HashMap::<LayerId, LayerId>::default();
        for (b, a) in scope.pairs.of_after.iter().enumerate().filter_map(|(b, a)| Some((b, (*a)?))) {
            for (old, new) in scope.before.feeds[a].iter().zip(&scope.after.feeds[b]) {
                let added = new.filter(|&(there, _)| scope.pairs.of_after[there].is_none());
                let successor = scope.after.layers[added.map_or(b, |(there, _)| there)].id();
                let mut pending: Vec<Feed> = if changed.contains(&successor) { vec![*old] } else { Vec::new() };
                while let Some(Some((at, _))) = pending.pop() {
                    let id = scope.before.layers[at].id();
                    if scope.pairs.of_before[at].is_none() && !found.contains_key(&id) {
                        found.insert(id, successor);
                        pending.extend(&scope.before.feeds[at]);
                    }
                }
            }
        }
        // A Multiply after a Convolution or a MatMul is folded into the weights.
        let mut weights = HashMap::<LayerId, LayerId>::default();
        let changes = self.changes.iter().map(|(_, change)| change).filter(|change| here(change));
        let constants = changes.filter(|change| change.kind == ChangeKind::Constant).map(|change| change.layer.id);
        let constants: HashSet<LayerId> = constants.collect();
        for (b, layer) in scope.after.layers.iter().enumerate().filter(|(_, layer)| constants.contains(&layer.id())) {
            let user = scope.pairs.of_after[b].and_then(|a| scope.before.uses[a].first());
            if let Some([next]) = user.map(|user| &scope.before.uses[user.layer][..])
                && ["Multiply", "Divide"].contains(&scope.before.operation(next.layer))
                && scope.pairs.of_before[next.layer].is_none()
            {
                let successor = *found.entry(scope.before.layers[next.layer].id()).or_insert(layer.id());
                weights.extend((successor != layer.id()).then_some((layer.id(), successor)));
            }
        }
        for (_, change) in self.changes.iter_mut().filter(|(_, change)| here(change)) {
            change.into = match change.kind {
                ChangeKind::Removed => found.get(&change.layer.id).copied(),
                ChangeKind::Constant => weights.get(&change.layer.id).copied(),
                _ => None,
            };
        }
    }

    fn report_removed_layers(&mut self, scope: &mut GraphPair<'a>) {
        let folded = scope.before.find_folded();
        let mut ranks = vec![usize::MAX; scope.before.len()];
        for a in (0..scope.before.len()).rev() {
            let uses = &scope.before.uses[a];
            let rank_of = |user: usize| scope.pairs.of_before[user].map_or(ranks[user], |b| 2 * b);
            ranks[a] = uses.iter().map(|use_| rank_of(use_.layer)).min().unwrap_or(usize::MAX);
            if scope.pairs.of_before[a].is_none() {
                scope.removed[a] = self.report_lone_layer(scope, ChangeKind::Removed, a, folded[a], ranks[a]);
            }
        }
        scope.first = scope.first.or(scope.removed.iter().flatten().copied().next());
    }

    fn report_added_layers(&mut self, scope: &mut GraphPair<'a>) {
        let folded = scope.after.find_folded();
        for b in (0..scope.after.len()).rev() {
            if scope.pairs.of_after[b].is_none() {
                scope.causes[b] = self.report_lone_layer(scope, ChangeKind::Added, b, folded[b], 2 * b + 1);
            }
        }
        scope.first = scope.first.or(scope.causes.iter().flatten().copied().next());
    }

    /// Reports a layer that only one model has. Returns the change that explains it.
    fn report_lone_layer(
        &mut self,
        scope: &GraphPair<'_>,
        kind: ChangeKind,
        at: usize,
        is_folded: bool,
        rank: usize,
    ) -> Option<ChangeIndex> {
        let is_added = kind == ChangeKind::Added;
        let (side, pairs, causes) = match is_added {
            true => (&scope.after, &scope.pairs.of_after, &scope.causes),
            false => (&scope.before, &scope.pairs.of_before, &scope.removed),
        };
        let (layer, uses) = (side.layers[at], &side.uses[at]);
        let is_lone = uses.iter().all(|use_| pairs[use_.layer].is_none());
        let of_side = |text| if is_added { (None, Some(text)) } else { (Some(text), None) };
        if is_lone && is_folded && !uses.is_empty() {
            // A constant that only an added or removed layer uses is shown as a part of that layer.
            let cause = causes[uses[0].layer]?;
            let (before, after) = of_side(expression(side, at));
            let difference = Difference::between(kind, before, after);
            self.follow(cause, difference.follows(scope.place.path_to(layer.name())));
            return Some(cause);
        }
        if is_lone && !side.alive[at] || !is_lone && is_replaced_by(scope, kind, at, Side::is_equal_constant) {
            return None;
        }
        let (before, after) = of_side(expression(side, at));
        let layers = if is_added { (None, Some(layer)) } else { (Some(layer), None) };
        let change = self.push(scope, rank, layers, Difference::between(kind, before, after));
        // Layers before the same consumer are in the order of their own graph.
        self.changes[change].0.push(at);
        self.changes[change].1.is_merged = !is_lone && is_replaced_by(scope, kind, at, Side::has_values_of);
        Some(change)
    }

    /// Notes the block of each changed layer.
    fn name_blocks(&mut self) {
        let is_of = |change: &Change, model: usize| (change.kind == ChangeKind::Removed) == (model == 0);
        for (at, model) in [self.before, self.after].into_iter().enumerate() {
            let changed = self.changes.iter().map(|(_, change)| change).filter(|change| is_of(change, at));
            let places: HashSet<Place> = changed.map(|change| change.layer.place.clone()).collect();
            for (place, graph) in model.walk().filter(|(place, _)| places.contains(place)) {
                let facts = blocks::GraphFacts::new(graph);
                let parts = blocks::parts(&facts).parts;
                let numbered = parts.iter().filter(|part| part.number.is_some());
                let names: HashMap<LayerId, &str> =
                    numbered.flat_map(|part| part.layers.iter().map(|&id| (id, part.name.as_str()))).collect();
                let is_read =
                    |(id, name): &(&LayerId, &&str)| graph.users(**id).any(|user| names.get(&user) != Some(name));
                let read: HashSet<&str> = names.iter().filter(is_read).map(|(_, name)| *name).collect();
                let unread: HashSet<&str> = names.values().copied().filter(|name| !read.contains(name)).collect();
                for (_, change) in self.changes.iter_mut().filter(|(_, change)| change.layer.place == place) {
                    if is_of(change, at) {
                        change.block = names.get(&change.layer.id).map(|&name| name.to_owned());
                        change.is_stored = facts.roles.get(change.layer.id) == Some(&blocks::Role::Stored);
                        let old = change.before.as_deref().filter(|_| change.kind == ChangeKind::Input);
                        let old = old.and_then(numbered_prefix).filter(|&old| unread.contains(old));
                        change.bypassed = old.filter(|_| change.block.as_deref() != old).map(str::to_owned);
                    }
                }
            }
        }
    }

    fn push(
        &mut self,
        scope: &GraphPair<'_>,
        rank: usize,
        (before, after): (Option<&Layer>, Option<&Layer>),
        difference: Difference,
    ) -> ChangeIndex {
        let line = |layer: Option<&Layer>, lines: &Lines| Some(lines.line_at(layer?.span()?.start));
        let (before_line, after_line) = (line(before, &self.lines[0]), line(after, &self.lines[1]));
        let Some(layer) = after.or(before) else { return self.changes.len() };
        let Difference { kind, subject, before, after, values, error } = difference;
        let mut place = scope.rank.clone();
        place.push(rank);
        let change = Change {
            kind,
            path: scope.place.path_to(layer.name()),
            layer: LayerRef::of(&scope.place, layer),
            block: None,
            operation: layer.ty().to_owned(),
            subject,
            before,
            after,
            values,
            error,
            before_line,
            after_line,
            is_stored: false,
            is_merged: false,
            into: None,
            bypassed: None,
            follows: Vec::new(),
        };
        self.changes.push((place, change));
        self.changes.len() - 1
    }

    /// Records a difference of a matched layer that no other change explains.
    fn add(&mut self, scope: &mut GraphPair<'a>, b: usize, difference: Difference) -> ChangeIndex {
        let before = scope.pairs.of_after[b].map(|a| scope.before.layers[a]);
        let counts = difference.kind != ChangeKind::Names;
        let cause = self.push(scope, 2 * b + 1, (before, Some(scope.after.layers[b])), difference);
        if counts {
            scope.first = scope.first.or(Some(cause));
        }
        cause
    }

    /// Adds a consequence to a change. Most changes have one, so little memory is reserved.
    fn follow(&mut self, cause: ChangeIndex, consequence: Consequence) {
        let follows = &mut self.changes[cause].1.follows;
        if follows.is_empty() {
            follows.reserve_exact(1);
        }
        follows.push(consequence);
    }

    /// Records a difference: as consequence of the change `cause` or, if there is none, as a new change.
    fn explain(
        &mut self,
        scope: &mut GraphPair<'a>,
        b: usize,
        cause: Option<ChangeIndex>,
        difference: Difference,
    ) -> ChangeIndex {
        match cause {
            Some(cause) => {
                let path = scope.place.path_to(scope.after.layers[b].name());
                self.follow(cause, difference.follows(path));
                cause
            }
            None => self.add(scope, b, difference),
        }
    }

    fn compare_pair(&mut self, scope: &mut GraphPair<'a>, a: usize, b: usize) {
        let mut own = None;
        let operations = [(&scope.before, a), (&scope.after, b)].map(|(side, at)| operation(side, at));
        let is_same = operations[0] == operations[1];
        let mut found = Vec::new();
        if !is_same {
            // The revision is compared only if nothing else differs.
            let names = [scope.before.operation(a), scope.after.operation(b)];
            let names = if names[0] == names[1] { operations } else { names.map(str::to_owned) };
            let [before, after] = reciprocal(scope, a, b).unwrap_or(names);
            found.push(Difference::new(ChangeKind::Operation, before, after));
        } else if scope.after.is_constant(b) {
            // Divide by 2 and Multiply by 0.5 are told as one change.
            let user = match scope.before.uses[a][..] {
                [Use { layer, .. }] => scope.pairs.of_before[layer].and_then(|user| reciprocal(scope, layer, user)),
                _ => None,
            };
            if user.is_none() {
                found.extend(self.compare_constants(scope, a, b));
            }
        } else {
            found.extend(attributes(scope, a, b));
        }
        found.extend(self.compare_marks(scope, a, b));
        for difference in found {
            own = own.or(Some(self.add(scope, b, difference)));
        }
        let inherited = inherited(scope, a, b);
        own = self.inputs(scope, a, b, is_same, own);
        own = self.bodies(scope, a, b, own, inherited);
        let cause = own.or(inherited);
        let cause = self.compare_outputs(scope, a, b, cause);
        scope.causes[b] = cause;
        // The tensor names of a compressed constant are at the Convert after it.
        let is_compressed = scope.before.is_compressed(a) || scope.after.is_compressed(b);
        let [old, new] = [scope.before.layers[a], scope.after.layers[b]];
        if let Some(difference) = names(scope, a, b).filter(|_| !is_compressed || old.name() != new.name()) {
            self.add(scope, b, difference);
        }
    }

    fn compare_marks(&self, scope: &GraphPair<'_>, a: usize, b: usize) -> Option<Difference> {
        let [mut before, mut after] =
            [(&scope.before, a, self.before), (&scope.after, b, self.after)].map(|(side, at, model)| {
                let marks = Marks::of(side.holder(at), model.version());
                if Marks::of(side.layers[at], model.version()).is_decompression() {
                    marks.and(&Marks::decompression())
                } else {
                    marks
                }
            });
        if scope.before.is_compressed(a) != scope.after.is_compressed(b) {
            (before, after) = (before.of_computation(), after.of_computation());
        }
        let text = |marks: Marks| Some(marks.to_string()).filter(|_| !marks.is_empty());
        (before != after).then(|| Difference::between(ChangeKind::Mark, text(before), text(after)))
    }

    fn compare_constants(&mut self, scope: &GraphPair<'_>, a: usize, b: usize) -> Vec<Difference> {
        let (used, used_now) = (scope.before.layers[a].outputs().first(), scope.after.layers[b].outputs().first());
        let (Some(before), Some(after)) = (used, used_now) else { return Vec::new() };
        let (old, new) = (scope.before.holder(a), scope.after.holder(b));
        let stored = [old, new].map(|layer| layer.outputs().first().map(|port| port.element_type()));
        let schemes = [0, 1].map(|side| {
            let layer = [old, new][side].id();
            self.plain[side].scheme(layer).filter(|_| scope.place.is_model())
        });
        let [scheme, scheme_now] = schemes.each_ref().map(|scheme| scheme.as_ref().map(|(scheme, _)| *scheme));
        let is_stored_alike = stored[0] == stored[1] && scheme == scheme_now;
        let bytes = (values::bytes_of(old, scope.before.weights), values::bytes_of(new, scope.after.weights));
        if let Some(port) =
            old.outputs().first().filter(|_| is_stored_alike && before.shape().element_count() > Some(1))
        {
            let stored = scheme.map_or_else(|| port.element_type().name().to_owned(), |scheme| scheme.to_string());
            self.kept.entry(stored).or_default().push(scope.place.path_to(new.name()));
        }
        let differs = match &bytes {
            (Some(before), Some(after)) => before != after,
            _ => {
                self.unread += 1;
                false
            }
        };
        let figures = || match &bytes {
            (Some(before), Some(after)) if differs || !is_stored_alike => values::compare((old, before), (new, after)),
            _ => None,
        };
        // The values are equal, but stored in another type, so only the precision differs.
        let precision = |values: Option<&ValueChange>| {
            let is_other = !is_stored_alike && before.shape() == after.shape();
            let rows = schemes.iter().flatten().find_map(|(_, rows)| rows.as_ref());
            let of_range = || match (rows, &bytes) {
                (Some(rows), (Some(before), Some(after))) => values::error_of_range(rows, (old, before), (new, after)),
                _ => None,
            };
            let error = values.filter(|_| is_other).map(ValueChange::error);
            error.map(|error| ValueError { max_of_range: of_range(), ..error })
        };
        let mut found = Vec::new();
        if before.element_type() != after.element_type() {
            let difference = Difference::new(ChangeKind::Type, before.element_type(), after.element_type());
            let values = figures();
            found.push(Difference { error: precision(values.as_ref()), values, ..difference });
        }
        if before.shape() != after.shape() {
            found.push(Difference::new(ChangeKind::Shape, before.shape(), after.shape()));
        }
        let is_bigger = bytes.0.as_ref().map(Vec::len) != bytes.1.as_ref().map(Vec::len);
        let is_comparable = found.is_empty() || !is_bigger;
        if (differs || !is_stored_alike) && before.element_type() == after.element_type() && is_comparable {
            let text = |layer: &Layer, side: &Side<'_>, scheme: Option<Scheme>| {
                let port = layer.outputs().first();
                let stored = scheme.zip(port).map(|(scheme, port)| format!("{scheme} {}", port.shape()));
                let stored = stored.or_else(|| port.map(ToString::to_string));
                stored.unwrap_or_default() + &shown(layer, side.weights)
            };
            let (before, after) = (text(old, &scope.before, scheme), text(new, &scope.after, scheme_now));
            let difference = Difference::new(ChangeKind::Constant, before, after);
            let values = figures();
            found.push(Difference { error: precision(values.as_ref()), values, ..difference });
        }
        found
    }

    /// Compares the producers of a layer. An added or removed producer is the cause, if its inputs lead to the other
    /// producer.
    fn inputs(
        &mut self,
        scope: &mut GraphPair<'a>,
        a: usize,
        b: usize,
        is_same: bool,
        mut own: Option<ChangeIndex>,
    ) -> Option<ChangeIndex> {
        let (mut old, mut new) = (scope.before.feeds[a].clone(), scope.after.feeds[b].clone());
        let common = old.len().min(new.len());
        if (common..old.len()).all(|input| scope.before.is_default_input(a, input))
            && (common..new.len()).all(|input| scope.after.is_default_input(b, input))
        {
            old.truncate(common);
            new.truncate(common);
        }
        if old.len() != new.len() {
            let all = |side: &Side<'_>, feeds: &[Feed]| {
                feeds.iter().map(|&feed| tensor(side, feed)).collect::<Vec<_>>().join(", ")
            };
            if is_same {
                let difference =
                    Difference::new(ChangeKind::Input, all(&scope.before, &old), all(&scope.after, &new)).of("inputs");
                own = own.or(Some(self.add(scope, b, difference)));
            }
            return own;
        }
        let pairs = old.iter().copied().zip(new.iter().copied()).enumerate();
        let others: Vec<_> = pairs.filter(|(_, (old, new))| !is_same_feed(scope, *old, *new)).collect();
        if let [(first, one), (second, other)] = others[..]
            && is_same_feed(scope, one.0, other.1)
            && is_same_feed(scope, other.0, one.1)
        {
            let texts = [one.0, other.0].map(|feed| tensor(&scope.before, feed));
            let layer = scope.after.layers[b];
            let is_equal = scope.after.operations[b].is_some_and(|it| it.commutative)
                && layer.attribute("auto_broadcast") != Some("pdpd");
            let same = if is_equal { ", which computes the same" } else { "" };
            let difference = Difference::new(ChangeKind::Input, texts.join(", "), format!("swapped{same}"));
            let change = self.add(scope, b, difference.of(format_args!("inputs {first} and {second}")));
            return own.or(Some(change));
        }
        for (input, (old, new)) in others {
            let added = new.filter(|&(b, _)| scope.pairs.of_after[b].is_none()).and_then(|(b, _)| scope.causes[b]);
            let removed = old.filter(|&(a, _)| scope.pairs.of_before[a].is_none()).and_then(|(a, _)| scope.removed[a]);
            let texts = (tensor(&scope.before, old), tensor(&scope.after, new));
            let difference = Difference::new(ChangeKind::Input, texts.0, texts.1).of(format_args!("input {input}"));
            let (is_rewired, is_merged) = match (old, new) {
                (Some(old), Some(new)) => {
                    (is_rewired(scope, old, new), scope.before.has_values_of(old.0, &scope.after, new.0))
                }
                _ => (false, false),
            };
            let cause = added.or(removed).filter(|_| !is_rewired);
            let change = self.explain(scope, b, cause, difference);
            self.changes[change].1.is_merged |= is_merged && cause.is_none();
            if cause.is_none() {
                own = own.or(Some(change));
            }
        }
        own
    }

    fn bodies(
        &mut self,
        scope: &mut GraphPair<'a>,
        a: usize,
        b: usize,
        mut own: Option<ChangeIndex>,
        inherited: Option<ChangeIndex>,
    ) -> Option<ChangeIndex> {
        let (old, new) = (scope.before.layers[a], scope.after.layers[b]);
        for (at, body) in new.bodies().iter().enumerate() {
            let Some(other) = old.bodies().iter().find(|other| other.name() == body.name()) else { continue };
            let before = Side::new(&other.graph, self.before, Some((old, other)));
            let after = Side::new(&body.graph, self.after, Some((new, body)));
            let pairs = matched(&before, &after);
            for difference in wiring((old, other, &before), (new, body, &after), &pairs) {
                own = own.or(Some(self.add(scope, b, difference)));
            }
            let place = scope.place.inside(new, at, body.name());
            let mut rank = scope.rank.clone();
            rank.push(2 * b + 1);
            let inside = self.graphs((before, after, pairs), place, rank, own.or(inherited));
            own = own.or(inside);
        }
        scope.first = scope.first.or(own);
        own
    }

    /// Compares the types and shapes of the outputs, and returns the cause of their difference.
    fn compare_outputs(
        &mut self,
        scope: &mut GraphPair<'a>,
        a: usize,
        b: usize,
        mut cause: Option<ChangeIndex>,
    ) -> Option<ChangeIndex> {
        let (old, new) = (scope.before.layers[a], scope.after.layers[b]);
        if scope.after.is_constant(b) && scope.before.is_constant(a) || scope.after.is_result(b) {
            return cause;
        }
        let is_entry = scope.after.in_body && scope.after.is_parameter(b);
        let cause_of_entry = if is_entry { scope.outer } else { None };
        let mut found = Vec::new();
        if old.outputs().len() != new.outputs().len() {
            let difference = Difference::new(ChangeKind::Attribute, old.outputs().len(), new.outputs().len());
            found.push(difference.of("outputs"));
        }
        for (port, (before, after)) in old.outputs().iter().zip(new.outputs()).enumerate() {
            let subject = (new.outputs().len() > 1).then(|| format!("output {port}"));
            if before.element_type() != after.element_type() {
                let difference = Difference::new(ChangeKind::Type, before.element_type(), after.element_type());
                found.push(Difference { subject: subject.clone(), ..difference });
            }
            if before.shape() != after.shape() {
                let difference = Difference::new(ChangeKind::Shape, before.shape(), after.shape());
                found.push(Difference { subject, ..difference });
            }
        }
        scope.retyped[b] = !found.is_empty();
        for difference in found {
            let known = cause.or(cause_of_entry);
            if known.is_none() && scope.after.in_body {
                // The cause of a difference at a back edge may be a layer that is compared later.
                let path = scope.place.path_to(new.name());
                scope.deferred.push((b, difference.follows(path)));
                continue;
            }
            let found = self.explain(scope, b, known, difference);
            cause = cause.or(Some(found));
        }
        cause.or(cause_of_entry)
    }
}

/// True if two inputs read the same tensor, or equal constants.
fn is_same_feed(scope: &GraphPair<'_>, old: Feed, new: Feed) -> bool {
    match (old, new) {
        (Some((a, from)), Some((b, to))) => {
            let is_pair = scope.pairs.of_before[a] == Some(b);
            from == to && (is_pair || scope.before.is_equal_constant(a, &scope.after, b))
        }
        (None, None) => true,
        _ => false,
    }
}

/// Describes a Divide by a constant that became a Multiply by its reciprocal, or the other way round.
fn reciprocal(scope: &GraphPair<'_>, a: usize, b: usize) -> Option<[String; 2]> {
    let operations = [scope.before.operation(a), scope.after.operation(b)];
    if operations != ["Divide", "Multiply"] && operations != ["Multiply", "Divide"] {
        return None;
    }
    let constant = |side: &Side<'_>, at: usize| {
        let (source, _) = side.feeds[at].get(1).copied()??;
        let ty = side.layers[source].outputs().first()?.element_type();
        Some((ty, side.layers[source].numbers(side.weights)?)).filter(|(ty, _)| ty.is_float())
    };
    let ((ty, old), (ty_now, new)) = (constant(&scope.before, a)?, constant(&scope.after, b)?);
    let precision = 2_f64.powi(-i32::from(ty.float_format()?.mantissa));
    let is_reciprocal = |(old, new): (&f64, &f64)| (old * new - 1.0).abs() <= precision;
    if ty != ty_now || old.len() != new.len() || !old.iter().zip(&new).all(is_reciprocal) {
        return None;
    }
    let text = |operation: &str, numbers: &[f64]| match numbers {
        [number] => format!("{operation} by {}", digits(*number, ty)),
        _ => format!("{operation} by {} values", grouped(numbers.len() as u64)),
    };
    let is_exact = old.iter().zip(&new).all(|(old, new)| old * new == 1.0);
    let rounds = if is_exact { "the same" } else { "the same but for rounding" };
    Some([text(operations[0], &old), format!("{}, {rounds}", text(operations[1], &new))])
}

/// Limit on the added or removed layers between two producers of an input.
const MOST_BETWEEN: usize = 1000;

fn is_rewired(scope: &GraphPair<'_>, old: (usize, usize), new: (usize, usize)) -> bool {
    let (was, is) = (scope.pairs.of_before[old.0], scope.pairs.of_after[new.0]);
    let (side, pairs, from, goal) = match (was, is) {
        (None, Some(a)) => (&scope.before, &scope.pairs.of_before, old, (a, new.1)),
        (Some(b), None) => (&scope.after, &scope.pairs.of_after, new, (b, old.1)),
        _ => return false,
    };
    let (mut pending, mut seen) = (vec![from.0], HashSet::default());
    while let Some(at) = pending.pop() {
        for &feed in side.feeds[at].iter().flatten() {
            if feed == goal || seen.len() > MOST_BETWEEN {
                return false;
            }
            if pairs[feed.0].is_none() && seen.insert(feed.0) {
                pending.push(feed.0);
            }
        }
    }
    true
}

/// The change that affects the inputs of a layer. An input with another type or shape is preferred.
fn inherited(scope: &GraphPair<'_>, a: usize, b: usize) -> Option<ChangeIndex> {
    let of_after = |retyped: bool| {
        let feeds = scope.after.feeds[b].iter().flatten();
        feeds.filter(|&&(from, _)| !retyped || scope.retyped[from]).find_map(|&(from, _)| scope.causes[from])
    };
    let of_before = || scope.before.feeds[a].iter().flatten().find_map(|&(from, _)| scope.removed[from]);
    of_after(true).or_else(|| of_after(false)).or_else(of_before)
}

/// Formats an operation. Its operation set is included only if revisions differ.
fn operation(side: &Side<'_>, at: usize) -> String {
    let layer = side.layers[at];
    match side.operations[at] {
        Some(operation) => match operation.revision {
            0 => ops::file_spelling(operation.name).to_owned(),
            revision => format!("{}-{revision}", ops::file_spelling(operation.name)),
        },
        None => format!("{} {}", layer.version(), layer.ty()),
    }
}

/// Formats a tensor: `x`, or `x.1` if the layer has several outputs; `-` for an unconnected input.
fn tensor(side: &Side<'_>, feed: Feed) -> String {
    match feed {
        None => "-".to_owned(),
        Some((at, port)) if side.layers[at].outputs().len() > 1 => format!("{}.{port}", side.layers[at].name()),
        Some((at, _)) => side.layers[at].name().to_owned(),
    }
}

/// Formats an added or removed layer: `Convert(x) {destination_type=f32} : f32[2]`.
fn expression(side: &Side<'_>, at: usize) -> String {
    let layer = side.layers[at];
    let mut text = layer.ty().to_owned();
    let inputs: Vec<_> = side.feeds[at].iter().map(|&feed| tensor(side, feed)).collect();
    if !inputs.is_empty() {
        text += &format!("({})", inputs.join(", "));
    }
    let attributes: Vec<_> = side
        .attributes(at)
        .filter(|&(name, value)| side.operations[at].and_then(|operation| operation.default_of(name)) != Some(value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if !attributes.is_empty() {
        text += &format!(" {{{}}}", attributes.join(", "));
    }
    if !layer.outputs().is_empty() {
        let outputs: Vec<_> = layer.outputs().iter().map(ToString::to_string).collect();
        text += &format!(" : {}", outputs.join(", "));
    }
    if side.is_constant(at) { text + &shown(layer, side.weights) } else { text }
}

fn attributes(scope: &GraphPair<'_>, a: usize, b: usize) -> Vec<Difference> {
    let mut written = BTreeMap::<&str, (Option<&str>, Option<&str>)>::new();
    for (name, value) in scope.before.attributes(a) {
        written.entry(name).or_default().0.get_or_insert(value);
    }
    for (name, value) in scope.after.attributes(b) {
        written.entry(name).or_default().1.get_or_insert(value);
    }
    let mut found = Vec::new();
    for (name, (old, new)) in written {
        let (before, after) = (scope.before.meaning(a, name, old), scope.after.meaning(b, name, new));
        let is_read = scope.after.operations[b].is_none_or(|operation| operation.attribute(name).is_some());
        // OpenVINO ignores attributes that the operation does not have.
        let is_same = before.unwrap_or_default() == after.unwrap_or_default() || old.is_some() && old == new;
        if is_same || !is_read && (old.is_none() || new.is_none()) {
            continue;
        }
        let default = scope.after.operations[b].and_then(|operation: &Operation| operation.default_of(name));
        let [before, after] = [old, new].map(|value| value.or(default).map(str::to_owned));
        found.push(Difference::between(ChangeKind::Attribute, before, after).of(name));
    }
    found
}

/// The connections between a layer and a body that exist in only one model: entries of the port map and back
/// edges.
fn wiring(before: (&Layer, &Body, &Side<'_>), after: (&Layer, &Body, &Side<'_>), pairs: &Pairs) -> Vec<Difference> {
    let in_after = |at: usize| pairs.of_before[at].map_or(before.2.layers[at], |b| after.2.layers[b]);
    let (old, new) = (entries(before, in_after), entries(after, |at| after.2.layers[at]));
    let mut gone = old.difference(&new).cloned();
    let mut come = new.difference(&old).cloned();
    let mut found = Vec::new();
    loop {
        let (before, after) = (gone.next(), come.next());
        if before.is_none() && after.is_none() {
            return found;
        }
        found.push(Difference::between(ChangeKind::Attribute, before, after).of("connections"));
    }
}

/// Formats the connections of a body: `input 1 to x`, `y to output 0`, `y back to x`.
fn entries<'a>(
    (layer, body, side): (&Layer, &Body, &Side<'a>),
    shown_as: impl Fn(usize) -> &'a Layer,
) -> BTreeSet<String> {
    let by_id: HashMap<_, _> = side.layers.iter().enumerate().map(|(at, layer)| (layer.id(), at)).collect();
    let inner = |id: LayerId| by_id.get(&id).map_or("-", |&at| shown_as(at).name());
    let ports = Ports::of(layer);
    let back = body.back_edges.iter().map(|edge| format!("{} back to {}", inner(edge.from), inner(edge.to)));
    let entries = body.port_map.iter().map(|entry| {
        let outer = ports.outer(entry).map_or("-".to_owned(), |port| port.to_string());
        let inner = inner(entry.internal_layer_id);
        let mut text = match entry.direction {
            Direction::Input => format!("input {outer} to {inner}"),
            Direction::Output => format!("{inner} to output {outer}"),
        };
        if let Some(axis) = entry.axis {
            let (start, end) = (entry.start.unwrap_or(0), entry.end.unwrap_or(-1));
            let (stride, part) = (entry.stride.unwrap_or(1), entry.part_size.unwrap_or(1));
            text += &format!(" {{axis={axis}, start={start}, end={end}, stride={stride}, part_size={part}}}");
        }
        text + &entry.purpose().map_or(String::new(), |purpose| format!(" ({purpose})"))
    });
    entries.chain(back).collect()
}

/// The difference between the names of two layers and of their tensors. The name of a Result counts only if its
/// tensor has no name. Names that differ at the producer of a Result are not repeated.
fn names(scope: &GraphPair<'_>, a: usize, b: usize) -> Option<Difference> {
    let (before, after) = (scope.before.layers[a], scope.after.layers[b]);
    let (mut old, mut new) = (scope.before.tensor_names(a), scope.after.tensor_names(b));
    // A constant that got a Convert is known by its own name or by that of the Convert.
    let is_known =
        |name: &str, side: &Side<'_>, at: usize| [side.layers[at], side.holder(at)].iter().any(|it| it.name() == name);
    let mut is_renamed = !is_known(before.name(), &scope.after, b) && !is_known(after.name(), &scope.before, a);
    if scope.after.is_result(b) {
        is_renamed &= [&old, &new].into_iter().flatten().all(Vec::is_empty);
        let of_producer = |side: &Side<'_>, at: usize| {
            let (source, port) = side.feeds[at].first().copied().flatten()?;
            Some(vec![side.tensor_names(source).swap_remove(port)])
        };
        if of_producer(&scope.before, a).as_ref() == Some(&old) && of_producer(&scope.after, b).as_ref() == Some(&new) {
            (old, new) = (Vec::new(), Vec::new());
        }
    }
    let text = |name: &str, tensors: &[Vec<String>]| {
        let tensors = tensors.iter().map(|names| names.join(", ")).collect::<Vec<_>>().join("; ");
        match (is_renamed, old != new) {
            (true, true) => format!("{name} ({tensors})"),
            (true, false) => name.to_owned(),
            _ => tensors,
        }
    };
    if !is_renamed && old == new {
        return None;
    }
    let difference = Difference::new(ChangeKind::Names, text(before.name(), &old), text(after.name(), &new));
    Some(if is_renamed { difference } else { difference.of("tensors") })
}

/// True if a constant that only one model has needs no change of its own: each of its consumers is missing in the other
/// model too, or uses an equal constant there.
fn is_replaced_by<'a>(
    scope: &GraphPair<'a>,
    kind: ChangeKind,
    at: usize,
    is_equal: fn(&Side<'a>, usize, &Side<'_>, usize) -> bool,
) -> bool {
    let (side, other, pairs) = match kind {
        ChangeKind::Added => (&scope.after, &scope.before, &scope.pairs.of_after),
        _ => (&scope.before, &scope.after, &scope.pairs.of_before),
    };
    side.is_constant(at)
        && side.uses[at].iter().all(|use_| {
            let Some(user) = pairs[use_.layer] else { return true };
            match other.feeds[user].get(use_.input as usize) {
                Some(feed) => feed.is_some_and(|(there, _)| is_equal(side, at, other, there)),
                None => side.is_default_input(use_.layer, use_.input as usize),
            }
        })
}
