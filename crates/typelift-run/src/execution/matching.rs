//! Matching of a model's layers with executed layers by name.
//!
//! A plugin keeps the name of a layer, or lists it among those that it fused. Low-precision passes add a suffix. A
//! layer without such a name is between named ones. If all its consumers reach the same executed layer, it is part of
//! that layer.
//!
//! A plugin may compute a layer by several: a sequence of two directions by two of one, or a LogSoftmax by its terms. The last of
//! them has the name. The others have no name of the model, and lead to nothing but that one.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use typelift::ops::{self, LayerKind};
use typelift::{Graph, Layer, LayerId, Model};

use super::graph::{Executed, Execution, bits};
use super::{AddedLayer, Became, Counts, Kernels, Led, Part, Ran, RanLayer};

/// Kinds of executed layers that cannot represent the layer before a Result.
const MOVES: [&str; 3] = ["Convert", "Reorder", "Const"];
/// Kinds of executed layers whose names low-precision passes change.
const RENAMED: [&str; 4] = ["FullyConnected", "Convolution", "MatMul", "Deconvolution"];
/// Kinds of executed layers at the inputs and outputs of a graph.
const ENDS: [&str; 4] = ["Input", "Output", "MemoryInput", "MemoryOutput"];

/// An error if an execution graph belongs to another model. Common names are not enough evidence: variants of a model
/// share up to 80 % of them.
///
/// # Errors
/// A sentence that says what differs.
pub(super) fn refuse_other_model(model: &Model, execution: &Execution) -> Result<(), String> {
    let graph = model.graph();
    let own: BTreeSet<&str> =
        graph.layers().filter(|layer: &&Layer| ops::kind(layer) == LayerKind::Parameter).map(Layer::name).collect();
    let ran: BTreeSet<&str> =
        execution.layers.iter().filter(|layer| layer.ty == "Input").map(|layer| layer.name.as_str()).collect();
    if let Some(other) = ran.difference(&own).next() {
        return Err(format!("the execution graph is not of this model: the model has no input `{other}`"));
    }
    if let Some(missing) = own.difference(&ran).next().filter(|_| !ran.is_empty()) {
        return Err(format!("the execution graph is not of this model: it has no input `{missing}`"));
    }
    let constants: HashMap<&str, &Layer> = graph
        .layers()
        .filter(|layer| ops::kind(layer) == LayerKind::Constant)
        .map(|layer| (layer.name(), layer))
        .collect();
    // A plugin numbers its own constants as OpenVINO numbers those of models, so that such a name can be of either.
    for executed in execution.layers.iter().filter(|layer| layer.ty == "Const" && !is_numbered(&layer.name)) {
        let Some(port) = constants.get(executed.name.as_str()).and_then(|layer| layer.outputs().first()) else {
            continue;
        };
        // Transposed integer constants keep their dimensions, and f16 scales become f32.
        let [own, ran] = [port.shape().to_static(), executed.shapes.first().cloned()].map(|dims| {
            let mut dims = dims?;
            dims.retain(|&dim| dim != 1);
            dims.sort_unstable();
            Some(dims)
        });
        let is_other = own.zip(ran).is_some_and(|(own, ran)| own != ran);
        let stored = port.element_type().bits();
        let is_wider = stored <= 8 && executed.outputs.first().is_some_and(|ty| bits(ty) > stored);
        if is_other || is_wider {
            let name = &executed.name;
            return Err(format!("the execution graph is not of this model: `{name}` has another shape or type in it"));
        }
    }
    Ok(())
}

/// True for names that OpenVINO makes up: `Constant_123`.
fn is_numbered(name: &str) -> bool {
    name.strip_prefix("Constant_").is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Model graph and execution graph, with the names that connect them.
pub(super) struct Matching<'a> {
    pub(super) graph: &'a Graph,
    pub(super) execution: &'a Execution,
    pub(super) layers: Vec<&'a Layer>,
    pub(super) places: HashMap<LayerId, usize>,
    /// For each layer of the model: the executed layers with its name, with or without a suffix.
    pub(super) own: Vec<Vec<usize>>,
    /// For each layer of the model: the executed layers that list its name.
    pub(super) listed: Vec<Vec<usize>>,
    /// For each layer of the model that no executed layer names: the names of executed layers that its consumers
    /// reach.
    ahead: Vec<Rc<BTreeSet<&'a str>>>,
    /// For each executed layer: those that it consists of, without a name of the model.
    parts: Vec<Vec<usize>>,
}

impl<'a> Matching<'a> {
    pub(super) fn new(graph: &'a Graph, execution: &'a Execution) -> Self {
        let layers: Vec<&Layer> = graph.layers().collect();
        let places = layers.iter().enumerate().map(|(at, layer)| (layer.id(), at)).collect();
        let mut matching = Self {
            graph,
            execution,
            own: Vec::new(),
            listed: Vec::new(),
            ahead: vec![Rc::default(); layers.len()],
            parts: vec![Vec::new(); execution.layers.len()],
            layers,
            places,
        };
        matching.find_names();
        matching.look_ahead();
        matching.find_parts();
        matching
    }

    fn find_names(&mut self) {
        let known: HashSet<&str> = self.layers.iter().map(|layer| layer.name()).collect();
        let (mut named, mut listed) = (HashMap::<&str, Vec<usize>>::default(), HashMap::<&str, Vec<usize>>::default());
        for (at, executed) in self.execution.layers.iter().enumerate() {
            named.entry(&executed.name).or_default().push(at);
            for name in names_in(&executed.listed, &known) {
                listed.entry(name).or_default().push(at);
            }
        }
        let executed = &self.execution.layers;
        let with_suffix = |layer: &Layer| {
            let name = layer.name();
            let mut found = Vec::new();
            for port in 0..layer.outputs().len().max(1) {
                let all = named.get(format!("{name}.{port}").as_str()).into_iter().flatten().copied();
                found.extend(all.filter(|&at| !MOVES.contains(&executed[at].ty.as_str())));
            }
            for step in ["DequantizationMultiply", "DequantizationSubtract"] {
                let all = named.get(format!("{name}/{step}").as_str()).into_iter().flatten().copied();
                found.extend(all.filter(|&at| RENAMED.contains(&executed[at].ty.as_str())));
            }
            found
        };
        for layer in &self.layers {
            let own = named.get(layer.name()).cloned();
            let mentioned = listed.get(layer.name()).cloned().unwrap_or_default();
            let own = own.unwrap_or_else(|| if mentioned.is_empty() { with_suffix(layer) } else { Vec::new() });
            self.own.push(own);
            self.listed.push(mentioned);
        }
    }

    pub(super) fn trace(&self, at: usize) -> Option<usize> {
        self.own[at].first().or(self.listed[at].first()).copied()
    }

    pub(super) fn users(&self, at: usize) -> impl Iterator<Item = usize> {
        self.graph.users(self.layers[at].id()).filter_map(|id| self.places.get(&id).copied())
    }

    /// Finds, for each layer that no executed layer names, the executed layers that its consumers reach.
    fn look_ahead(&mut self) {
        let order = self.graph.topological_order().unwrap_or_default();
        for at in order.iter().rev().filter_map(|id| self.places.get(id).copied()) {
            let mut found = BTreeSet::new();
            let users: Vec<_> = self.users(at).collect();
            if let ([user], true) = (&users[..], users.iter().all(|&user| self.trace(user).is_none())) {
                self.ahead[at] = self.ahead[*user].clone();
                continue;
            }
            for user in users {
                match self.trace(user) {
                    Some(executed) => drop(found.insert(self.execution.layers[executed].name.as_str())),
                    None => found.extend(self.ahead[user].iter().copied()),
                }
            }
            self.ahead[at] = Rc::new(found);
        }
    }

    /// Finds for each executed layer without a name of the model the only layer with a name that it leads to.
    fn find_parts(&mut self) {
        let executed = &self.execution.layers;
        let nameless: HashSet<usize> = self.nameless().collect();
        let mut users = vec![Vec::new(); executed.len()];
        for (at, layer) in executed.iter().enumerate().filter(|(_, layer)| !ENDS.contains(&layer.ty.as_str())) {
            layer.feeds.iter().flatten().for_each(|&feed| users[feed].push(at));
        }
        for &part in nameless.iter().filter(|&&at| !MOVES.contains(&executed[at].ty.as_str())) {
            let (mut pending, mut seen, mut ends) = (vec![part], HashSet::default(), HashSet::default());
            while let Some(at) = pending.pop().filter(|_| ends.len() < 2) {
                for &user in &users[at] {
                    if !nameless.contains(&user) {
                        ends.insert(user);
                    } else if seen.insert(user) {
                        pending.push(user);
                    }
                }
            }
            if let (Some(&end), 1) = (ends.iter().next(), ends.len()) {
                self.parts[end].push(part);
            }
        }
        self.parts.iter_mut().for_each(|parts| parts.sort_unstable());
    }

    /// The executed layers that correspond to no layer of the model.
    fn nameless(&self) -> impl Iterator<Item = usize> {
        let stand_ins: HashSet<&str> =
            self.own.iter().flatten().map(|&at| self.execution.layers[at].name.as_str()).collect();
        let known: HashSet<&str> = self.layers.iter().map(|layer| layer.name()).collect();
        let all = self.execution.layers.iter().enumerate().filter(move |(_, layer)| {
            let lists = names_in(&layer.listed, &known).iter().any(|name| known.contains(name));
            !layer.is_constant
                && !stand_ins.contains(layer.name.as_str())
                && !lists
                && !ENDS.contains(&layer.ty.as_str())
        });
        all.map(|(at, _)| at)
    }

    /// The name of the executed layer that a layer's consumers reach, if there is exactly one.
    pub(super) fn only_ahead(&self, at: usize) -> Option<&'a str> {
        let mut names = self.ahead[at].iter();
        names.next().copied().filter(|_| names.next().is_none())
    }

    fn ends_of(&self, inner: &HashSet<usize>) -> HashSet<usize> {
        let found = inner.iter().copied().filter(|&start| {
            let (mut pending, mut seen) = (self.users(start).collect::<Vec<_>>(), HashSet::default());
            while let Some(at) = pending.pop() {
                if inner.contains(&at) {
                    return false;
                }
                if seen.insert(at) && self.trace(at).is_none() {
                    pending.extend(self.users(at));
                }
            }
            true
        });
        found.collect()
    }

    pub(super) fn ran(&self) -> Ran {
        let mut inner: HashMap<&str, HashSet<usize>> = HashMap::default();
        for at in 0..self.layers.len() {
            let first = self.own[at].first().into_iter();
            for &executed in first.chain(&self.listed[at]) {
                inner.entry(&self.execution.layers[executed].name).or_default().insert(at);
            }
        }
        let ends: HashMap<&str, HashSet<usize>> =
            inner.iter().map(|(name, inner)| (*name, self.ends_of(inner))).collect();
        let layers: Vec<_> = (0..self.layers.len()).map(|at| self.layer(at, &ends)).collect();
        let weights = self.used_weights();
        let stored = self.stored_weights(&weights);
        let counts = self.counts(&layers);
        Ran { layers, weights, stored, added: self.added(), counts, kernels: self.kernels() }
    }

    fn layer(&self, at: usize, ends: &HashMap<&str, HashSet<usize>>) -> RanLayer {
        let layer = self.layers[at];
        let place = self.trace(at);
        let executed = place.map(|executed| &self.execution.layers[executed]);
        let became = self.became(at, executed);
        let parts = place.filter(|_| became == Became::Ran).map_or(&[][..], |place| &self.parts[place]);
        let parts = parts.iter().map(|&part| &self.execution.layers[part]);
        // The part that takes longest, or that has weights, says what the layer is.
        let weight = |it: &&Executed| (it.time().unwrap_or(0), it.has_weights());
        let main = executed
            .map(|last| parts.clone().filter(|part| weight(part) > weight(&last)).max_by_key(weight).unwrap_or(last));
        let (exec, exec_type) = match (executed, self.ahead[at].len()) {
            (Some(executed), _) => (Some(Led::To(executed.name.clone())), main.map(|main| main.ty.clone())),
            (None, 0) => (None, None),
            (None, 1) => {
                let name = self.only_ahead(at).unwrap_or_default();
                let found = self.execution.layers.iter().find(|layer| layer.name == name);
                (Some(Led::To(name.to_owned())), found.map(|layer| layer.ty.clone()))
            }
            (None, _) => (Some(Led::ToAll(self.ahead[at].iter().map(|name| (*name).to_owned()).collect())), None),
        };
        RanLayer {
            id: layer.id().0,
            name: layer.name().to_owned(),
            ty: layer.ty().to_owned(),
            gives: layer.outputs().iter().map(|port| port.element_type().name()).collect(),
            became,
            exec,
            exec_type,
            exec_in: executed.map(|executed| executed.inputs.clone()),
            precision: main.map(|main| main.precision().to_owned()),
            exec_gives: executed
                .filter(|executed| ends.get(executed.name.as_str()).is_some_and(|ends| ends.contains(&at)))
                .map(|executed| executed.outputs.clone()),
            us: executed
                .filter(|_| became == Became::Ran)
                .into_iter()
                .chain(parts.clone())
                .filter_map(Executed::time)
                .reduce(|a, b| a + b),
            parts: parts.map(|part| Part { exec: part.name.clone(), ty: part.ty.clone(), us: part.time() }).collect(),
            bodies_not_shown: layer.bodies().iter().map(|body| body.graph.len()).collect(),
        }
    }

    fn became(&self, at: usize, executed: Option<&Executed>) -> Became {
        match (executed, self.own[at].is_empty(), self.ahead[at].len()) {
            (Some(executed), false, _) => match executed.ty.as_str() {
                "Const" if ops::kind(self.layers[at]) == LayerKind::Constant => Became::Constant,
                "Const" => Became::Folded,
                "Input" => Became::Input,
                "Output" => Became::Output,
                _ => Became::Ran,
            },
            (Some(_), true, _) => Became::Fused,
            (None, _, 0) => Became::Gone,
            (None, _, 1) => Became::Inside,
            (None, ..) => Became::Spread,
        }
    }

    fn added(&self) -> Vec<AddedLayer> {
        let parts: HashSet<usize> = self.parts.iter().flatten().copied().collect();
        let found = self.nameless().filter(|at| !parts.contains(at)).map(|at| &self.execution.layers[at]);
        let all = found.map(|layer| AddedLayer {
            exec: layer.name.clone(),
            ty: layer.ty.clone(),
            from: layer.inputs.clone(),
            to: layer.outputs.clone(),
            us: layer.time(),
        });
        all.collect()
    }

    fn counts(&self, layers: &[RanLayer]) -> Counts {
        let mut counts = Counts::default();
        for layer in layers {
            *counts.ir.entry(layer.became.name()).or_default() += 1;
        }
        for executed in &self.execution.layers {
            *counts.exec.entry(executed.ty.clone()).or_default() += 1;
            counts.us += executed.time().unwrap_or(0);
            counts.us_once += executed.us.filter(|_| executed.is_constant).unwrap_or(0);
            counts.us_reorders += executed.time().filter(|_| executed.ty == "Reorder").unwrap_or(0);
        }
        counts
    }

    fn kernels(&self) -> Vec<Kernels> {
        let mut kernels: BTreeMap<(&str, &str), (usize, u64)> = BTreeMap::new();
        for layer in
            self.execution.layers.iter().filter(|layer| !layer.is_constant && !ENDS.contains(&layer.ty.as_str()))
        {
            let count = kernels.entry((&layer.ty, layer.precision())).or_default();
            *count = (count.0 + 1, count.1 + layer.time().unwrap_or(0));
        }
        let kernels = kernels.into_iter().map(|((ty, precision), (count, us))| Kernels {
            ty: ty.to_owned(),
            precision: precision.to_owned(),
            count,
            us,
        });
        let mut kernels: Vec<_> = kernels.collect();
        kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.us));
        kernels
    }
}

/// Splits a comma-separated list of names. Names may contain commas, so the longest sequence that is a known name is
/// taken.
fn names_in<'t>(list: &'t str, known: &HashSet<&str>) -> Vec<&'t str> {
    let mut names = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let ends = std::iter::once(rest.len()).chain(rest.rmatch_indices(',').map(|(at, _)| at));
        let first = rest.find(',').unwrap_or(rest.len());
        let end = ends.into_iter().find(|&end| known.contains(&rest[..end])).unwrap_or(first);
        names.push(&rest[..end]);
        rest = rest[end..].strip_prefix(',').unwrap_or("");
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_known_name_is_one() {
        let known: HashSet<&str> = ["conv,a", "a", "conv"].into_iter().collect();
        assert_eq!(names_in("conv,a,a,conv", &known), ["conv,a", "a", "conv"]);
        assert_eq!(names_in("b,conv", &known), ["b", "conv"]);
        assert!(names_in("", &known).is_empty());
    }
}
