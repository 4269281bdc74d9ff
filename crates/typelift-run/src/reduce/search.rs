//! Search for the layers that must be kept.

use std::collections::HashMap;
use std::thread;

use foldhash::HashSet;
use typelift::findings::Code;
use typelift::{LayerId, Model, infer};

use super::{Judge, Reduced, Reduction, Step, Stopped, keep, layers};

pub(super) struct Search<'a, J: Judge> {
    settings: &'a Reduction,
    judge: &'a J,
    /// The codes of the original's errors.
    known: HashSet<Code>,
    pub(super) best: Model,
    runs: usize,
    refused: usize,
    steps: Vec<Step>,
}

/// Reason why the search stopped early.
pub(super) type Halt<J> = Stopped<<J as Judge>::Stop>;

impl<'a, J: Judge> Search<'a, J> {
    pub(super) fn new(settings: &'a Reduction, judge: &'a J, best: Model, known: HashSet<Code>) -> Self {
        Self { settings, judge, known, best, runs: 1, refused: 0, steps: Vec::new() }
    }

    pub(super) fn finish(self, original: &Model, stopped: Option<Halt<J>>) -> Reduced<J::Stop> {
        let (layers_before, layers_after) = (layers(original), layers(&self.best));
        Reduced {
            model: self.best,
            layers_before,
            layers_after,
            runs: self.runs,
            refused: self.refused,
            steps: self.steps,
            stopped,
        }
    }

    /// Infers candidates, and judges those without new errors, several at the same time.
    pub(super) fn judge_all(&mut self, candidates: Vec<Option<Model>>) -> Result<Vec<Option<Model>>, Halt<J>> {
        let mut typed: Vec<Option<Model>> = Vec::new();
        for candidate in candidates {
            let is_given = candidate.is_some();
            let candidate = candidate.and_then(|mut candidate| {
                let errors = infer(&mut candidate);
                errors.iter().all(|it| !it.is_error() || self.known.contains(&it.code)).then_some(candidate)
            });
            self.refused += usize::from(is_given && candidate.is_none());
            typed.push(candidate);
        }
        let count = typed.iter().flatten().count();
        if self.runs + count > self.settings.most_runs {
            return Err(Stopped::AtLimit);
        }
        self.runs += count;
        let judge = self.judge;
        let ask = |candidate: &Option<Model>| candidate.as_ref().map_or(Ok(false), |it| judge.is_interesting(it));
        let verdicts: Vec<Result<bool, J::Stop>> = match &typed[..] {
            [one] => vec![ask(one)],
            several => thread::scope(|scope| {
                let started: Vec<_> = several.iter().map(|candidate| scope.spawn(move || ask(candidate))).collect();
                started
                    .into_iter()
                    .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            }),
        };
        let kept = typed.into_iter().zip(verdicts).map(|(candidate, verdict)| {
            Ok(candidate.filter(|_| matches!(verdict, Ok(true)))).and_then(|kept| verdict.map(|_| kept))
        });
        kept.collect::<Result<_, _>>().map_err(Stopped::ByJudge)
    }

    /// Judges one candidate, and keeps it if it is interesting.
    pub(super) fn accept(&mut self, what: &'static str, candidate: Option<Model>) -> Result<bool, Halt<J>> {
        if candidate.is_none() {
            return Ok(false);
        }
        let kept = self.judge_all(vec![candidate])?.pop().flatten();
        let is_kept = kept.is_some();
        if let Some(kept) = kept {
            self.keep(what, kept);
        }
        Ok(is_kept)
    }

    pub(super) fn keep(&mut self, what: &'static str, model: Model) {
        self.best = model;
        self.steps.push(Step { what, layers: layers(&self.best), runs: self.runs });
    }

    /// Judges candidates, several at the same time, and keeps the first interesting one. Returns its position.
    pub(super) fn accept_first(
        &mut self,
        what: &'static str,
        candidates: Vec<Option<Model>>,
    ) -> Result<Option<usize>, Halt<J>> {
        let mut given: Vec<(usize, Option<Model>)> =
            candidates.into_iter().enumerate().filter(|(_, it)| it.is_some()).collect();
        let jobs = self.settings.jobs.max(1);
        while !given.is_empty() {
            let (places, some): (Vec<_>, Vec<_>) = given.drain(..jobs.min(given.len())).unzip();
            let kept = self.judge_all(some)?;
            if let Some((place, kept)) = places.into_iter().zip(kept).find_map(|(place, kept)| Some((place, kept?))) {
                self.keep(what, kept);
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    /// Removes as many layers as possible from the model's own graph.
    pub(super) fn fewer_layers(&mut self) -> Result<(), Halt<J>> {
        let order = keep::in_order(self.best.graph());
        let whole = self.best.clone();
        let mut parts = Parts { whole: &whole, essential: HashSet::default(), known: HashMap::new() };
        let mut rest = order;
        loop {
            if !parts.essential.is_empty() && parts.test(self, &[], "fewer layers")? {
                return Ok(());
            }
            if rest.is_empty() {
                return Ok(());
            }
            // The last necessary layer is found first.
            let count = parts.least_prefix(self, &rest)?;
            rest.truncate(count);
            parts.essential.extend(rest.pop());
            // The other necessary layers are usually near it.
            rest = parts.least_window(self, rest)?;
        }
    }
}

/// Layers of a model, and those that are known to be necessary.
struct Parts<'m> {
    whole: &'m Model,
    essential: HashSet<LayerId>,
    /// Results for sets of layers, so that none is judged twice.
    known: HashMap<Vec<LayerId>, bool>,
}

impl Parts<'_> {
    fn set(&self, more: &[LayerId]) -> HashSet<LayerId> {
        self.essential.iter().chain(more).copied().collect()
    }

    /// Judges the necessary layers together with each of these sets, several at the same time. Keeps the smallest
    /// interesting one.
    fn test_all<J: Judge>(
        &mut self,
        search: &mut Search<'_, J>,
        sets: &[&[LayerId]],
        what: &'static str,
    ) -> Result<Vec<bool>, Halt<J>> {
        let keys: Vec<Vec<LayerId>> = sets.iter().map(|set| keep::sorted(&self.set(set))).collect();
        let mut asked: Vec<Vec<LayerId>> = keys.iter().filter(|key| !self.known.contains_key(*key)).cloned().collect();
        asked.dedup();
        let candidates = asked.iter().map(|key| keep::part(self.whole, &key.iter().copied().collect())).collect();
        let kept = search.judge_all(candidates)?;
        for (key, kept) in asked.into_iter().zip(kept) {
            self.known.insert(key, kept.is_some());
            if let Some(kept) = kept.filter(|kept| layers(kept) < layers(&search.best)) {
                search.keep(what, kept);
            }
        }
        Ok(keys.iter().map(|key| self.known.get(key).copied().unwrap_or(false)).collect())
    }

    fn test<J: Judge>(
        &mut self,
        search: &mut Search<'_, J>,
        more: &[LayerId],
        what: &'static str,
    ) -> Result<bool, Halt<J>> {
        Ok(self.test_all(search, &[more], what)?.first() == Some(&true))
    }

    fn least_prefix<J: Judge>(&mut self, search: &mut Search<'_, J>, rest: &[LayerId]) -> Result<usize, Halt<J>> {
        let (mut low, mut high) = (0, rest.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            // If jobs are free, the next midpoints are judged in advance.
            let ahead = [middle, low + (middle - low) / 2, middle + (high - middle) / 2];
            let count = search.settings.jobs.clamp(1, ahead.len());
            let points = ahead[..count].iter().filter(|&&point| point > low && point < high);
            let sets: Vec<&[LayerId]> = points.map(|&point| &rest[..point]).collect();
            if self.test_all(search, &sets, "fewer layers at the end")?.first() == Some(&true) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
    }

    /// The length is doubled until it is.
    fn least_window<J: Judge>(
        &mut self,
        search: &mut Search<'_, J>,
        rest: Vec<LayerId>,
    ) -> Result<Vec<LayerId>, Halt<J>> {
        let mut length = 0;
        while length < rest.len() {
            if self.test(search, &rest[rest.len() - length..], "fewer layers at the start")? {
                return Ok(rest[rest.len() - length..].to_vec());
            }
            length = if length == 0 { 1 } else { length * 2 };
        }
        Ok(rest)
    }
}
