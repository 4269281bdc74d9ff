//! Choice of types by the declared types of the file's ports, which show the types that the author used.
//!
//! Each layer is visited after its producers, with the types that earlier changes give. If a layer does not accept its
//! inputs, or its outputs differ from the declaration, other input types are chosen. The change is then made at the
//! tensor with the wrong type. The change is an attribute that names the wrong type, a Parameter of a body, or a
//! Convert directly after the tensor.

mod decide;
mod scope;
mod ties;

use std::collections::BTreeMap;

use typelift_promote::ElementType;

use self::decide::{Case, Verdict};
use self::scope::{Demand, Scope, Tie};
use self::ties::wider;
use crate::base::hash::{HashMap, HashSet};
use crate::findings::{Diagnostic, described, list};
use crate::infer::Alignments;
use crate::model::graph::{Direction, Input, Layer, LayerId, Model, Output, Place};
use crate::ops::{self, LayerKind, Operation, kind};

/// Changes that make the types agree.
#[derive(Default)]
pub(crate) struct Repair {
    pub(crate) alignments: BTreeMap<Place, Alignments>,
    pub(crate) corrections: Vec<Correction>,
    /// Errors about inputs that were not changed, because numbers would become integers or indices.
    pub(crate) refusals: Vec<Diagnostic>,
    /// Number of changes: Converts, each counted once, and attributes.
    cost: usize,
    /// Number of changes that contradict a constant or Convert of the file.
    contradictions: usize,
}

/// Attribute of a layer that names the wrong type.
pub(crate) struct Correction {
    pub(crate) place: Place,
    pub(crate) layer: LayerId,
    pub(crate) attribute: &'static str,
    pub(crate) types: [ElementType; 2],
    pub(crate) reason: String,
}

/// Facts that are stronger than the declared types.
#[derive(Default)]
pub(crate) struct Overrides {
    /// Inputs of the model whose type was changed, so that the declared types of the layers after them are outdated.
    pub(crate) changed: Vec<LayerId>,
    /// Layers that accept any input types and always have their declared output types.
    pub(crate) relaxed: HashSet<(Place, LayerId)>,
}

/// Finds the changes that an inferred model needs. Declared types are ignored where that leads to fewer changes, and
/// to fewer contradictions with constants and Converts.
pub(crate) fn find(model: &Model, known: &Overrides) -> Repair {
    let (mut best, _) = TypeSearch::new(model, known, Some(HashSet::default())).run();
    if best.contradictions < 2 || !known.changed.is_empty() || !known.relaxed.is_empty() {
        return best;
    }
    let (by_inputs, regions) = TypeSearch::new(model, known, None).run();
    let is_better = |other: &Repair, best: &Repair| {
        let is_cheaper = (1..best.cost).contains(&other.cost) && other.contradictions < best.contradictions;
        other.refusals.is_empty() && is_cheaper
    };
    let mut stale = HashSet::default();
    for region in regions.into_iter().take(MOST_REGIONS) {
        let with_region: HashSet<_> = stale.iter().copied().chain(region).collect();
        let (found, _) = TypeSearch::new(model, known, Some(with_region.clone())).run();
        if is_better(&found, &best) {
            (best, stale) = (found, with_region);
        }
    }
    if is_better(&by_inputs, &best) { by_inputs } else { best }
}

/// Maximum number of regions with possibly outdated declarations that are tried, large ones first.
const MOST_REGIONS: usize = 8;

/// A layer: the number of its graph, and its id.
type Member = (usize, LayerId);

fn type_attributes(layer: Option<&Layer>) -> impl Iterator<Item = &'static ops::Attr> {
    let layer = layer.filter(|layer| ![LayerKind::Parameter, LayerKind::Constant].contains(&kind(layer)));
    let operation = layer.and_then(|layer| layer.operation());
    operation.into_iter().flat_map(Operation::type_attributes)
}

struct TypeSearch<'a> {
    scopes: Vec<Scope<'a>>,
    model: &'a Model,
    known: &'a Overrides,
    /// Layers whose declared types are ignored; `None` for all.
    stale: Option<HashSet<Member>>,
    /// Layers whose outputs differ from the declaration although their inputs were not changed.
    differing: Vec<Member>,
    /// Tensors whose type depends on a choice.
    decided: HashSet<(usize, Output)>,
    refusals: Vec<Diagnostic>,
}

impl<'a> TypeSearch<'a> {
    fn new(model: &'a Model, known: &'a Overrides, stale: Option<HashSet<Member>>) -> Self {
        let mut scopes = vec![Scope::new(model, &model.graph, Place::default())];
        let mut next = 0;
        while let Some(scope) = scopes.get(next) {
            let (graph, place) = (scope.graph, scope.place.clone());
            for layer in graph.unordered() {
                for (at, body) in layer.bodies().iter().enumerate() {
                    let inner = scopes.len();
                    scopes[next].bodies.insert((layer.id(), at), inner);
                    scopes.push(Scope::new(model, &body.graph, place.inside(layer, at, body.name())));
                }
            }
            next += 1;
        }
        Self { scopes, model, known, stale, differing: Vec::new(), decided: HashSet::default(), refusals: Vec::new() }
    }

    /// The changes, and the regions whose declared types may be outdated, large ones first.
    fn run(mut self) -> (Repair, Vec<Vec<Member>>) {
        // Reverse order: bodies are listed after the layers around them, and must be visited before.
        for scope in (0..self.scopes.len()).rev() {
            self.walk_scope(scope);
        }
        let mut repair = Repair::default();
        for scope in 0..self.scopes.len() {
            self.collect(scope, &mut repair);
        }
        let regions = self.regions();
        repair.refusals = self.refusals;
        (repair, regions)
    }

    fn is_stale(&self, member: Member) -> bool {
        self.stale.as_ref().is_none_or(|members| members.contains(&member))
    }

    /// Explains which declared types are ignored, as a clause; `None` if none are.
    fn out_of_date(&self) -> Option<String> {
        let whose = match &self.stale {
            None => "the ports of the file".to_owned(),
            Some(members) => {
                let &(scope, first) = members.iter().min()?;
                let layer = described(self.scopes[scope].graph.layer(first)?);
                match members.len() {
                    1 => format!("the ports of {layer}"),
                    count => format!("the ports of {layer} and {} more layers", count - 1),
                }
            }
        };
        Some(format!("{whose} are outdated: constants and Converts contradict them"))
    }

    /// Groups layers with wrong declarations into connected regions.
    fn regions(&self) -> Vec<Vec<Member>> {
        let places: HashMap<Member, usize> = self.differing.iter().copied().zip(0..).collect();
        let mut regions = petgraph::unionfind::UnionFind::new(self.differing.len());
        for (&(scope, layer), &at) in &places {
            let producers = self.scopes[scope].graph.producers(layer).into_iter().flatten();
            for producer in producers.filter_map(|source| places.get(&(scope, source.layer))) {
                regions.union(at, *producer);
            }
        }
        let mut members = BTreeMap::<usize, Vec<Member>>::new();
        for (at, &member) in self.differing.iter().enumerate() {
            members.entry(regions.find(at)).or_default().push(member);
        }
        let mut members: Vec<_> = members.into_values().collect();
        members.sort_by_key(|region| std::cmp::Reverse(region.len()));
        members
    }

    fn walk_scope(&mut self, scope: usize) {
        let graph = self.scopes[scope].graph;
        let Ok(order) = graph.topological_order() else { return };
        for id in order {
            let Some(layer) = graph.layer(id) else { continue };
            let operation = layer.operation();
            match (operation, kind(layer)) {
                _ if !layer.bodies().is_empty() => self.settle_owner(scope, layer),
                (Some(_), _) if layer.inputs().is_empty() => self.settle_source(scope, layer),
                (Some(_), LayerKind::Assign) => self.settle_assign(scope, layer),
                (Some(_), LayerKind::Result) => self.settle_result(scope, layer),
                (Some(operation), _) => self.settle(scope, layer, operation),
                (None, _) => self.settle_declared(scope, layer),
            }
        }
        self.untie(scope);
        self.retype_parameters(scope);
    }

    /// Sets the types of Parameters, constants and other layers without inputs.
    fn settle_source(&mut self, scope: usize, layer: &Layer) {
        let scope = &mut self.scopes[scope];
        let written = layer.named_type("element_type");
        for (port, output) in layer.outputs().iter().enumerate() {
            let tensor = Output { layer: layer.id(), port };
            scope.types.insert(tensor, written.unwrap_or(output.element_type()));
            if scope.place.is_model() && self.known.changed.contains(&layer.id()) {
                scope.follow.insert(tensor);
            }
        }
    }

    fn settle_declared(&mut self, scope: usize, layer: &Layer) {
        for (port, output) in layer.outputs().iter().enumerate() {
            let ty = output.declared.unwrap_or(output.element_type());
            self.scopes[scope].types.insert(Output { layer: layer.id(), port }, ty);
        }
    }

    /// Requires that the input of a model's Result has the declared type.
    fn settle_result(&mut self, scope: usize, layer: &Layer) {
        let trusts = !self.is_stale((scope, layer.id()));
        let scope = &mut self.scopes[scope];
        let (Some(declared), Some(tensor)) =
            (layer.inputs().first().and_then(|port| port.declared), scope.source(layer.id(), 0))
        else {
            return;
        };
        let is_other = ![declared, ElementType::Dynamic].contains(&scope.element_type(tensor));
        // The output type of an operation is certain if its inputs are, so then the declaration of the Result is
        // outdated.
        let can_be_odd = [LayerKind::Parameter, LayerKind::Constant, LayerKind::Convert];
        let can_be_odd = can_be_odd.into_iter().any(|kind| scope.is_of(tensor, kind));
        if trusts
            && is_other
            && can_be_odd
            && scope.place.is_model()
            && !scope.follow.contains(&tensor)
            && scope.permits(tensor, declared)
        {
            let reason = format!("output `{}` is declared as {declared}", layer.name());
            scope.demand(Input { layer: layer.id(), port: 0 }, tensor, declared, reason.into());
        }
    }

    /// Requires that the input of an Assign has the type of the ReadValue of its variable.
    fn settle_assign(&mut self, scope: usize, layer: &Layer) {
        let scope = &mut self.scopes[scope];
        let Some(tensor) = scope.source(layer.id(), 0) else { return };
        let given = scope.element_type(tensor);
        let variable = layer.attribute("variable_id").unwrap_or_default();
        let wanted = scope.variables.get(variable).copied().unwrap_or(given);
        if wanted != given && scope.permits(tensor, wanted) {
            let reason = format!(
                "{} has an input of type {given}, but the variable `{variable}` has type {wanted}",
                described(layer)
            );
            scope.demand(Input { layer: layer.id(), port: 0 }, tensor, wanted, reason.into());
        }
        scope.types.insert(Output { layer: layer.id(), port: 0 }, wanted);
    }

    fn settle_owner(&mut self, scope: usize, layer: &Layer) {
        for (at, body) in layer.bodies().iter().enumerate() {
            let Some(&inner) = self.scopes[scope].bodies.get(&(layer.id(), at)) else { continue };
            for entry in body.port_map.iter().filter(|entry| entry.direction == Direction::Input) {
                let parameter = Output { layer: entry.internal_layer_id, port: 0 };
                let wanted = self.scopes[inner].element_type(parameter);
                let Ok(port) = usize::try_from(entry.external_port_id) else { continue };
                self.enter(scope, layer, port, wanted);
            }
            for edge in &body.back_edges {
                let wanted = self.scopes[inner].element_type(Output { layer: edge.to, port: 0 });
                let given = self.scopes[inner].result_type(edge.from);
                let reason = format!("its type is {wanted} in the next iteration of {}", described(layer));
                self.merge(inner, edge.from, given, wanted, reason);
            }
        }
        for port in 0..layer.outputs().len() {
            self.leave(scope, layer, port);
        }
    }

    /// Requires that an input of a layer with bodies has the type of the Parameter that it feeds.
    fn enter(&mut self, scope: usize, layer: &Layer, port: usize, wanted: ElementType) {
        let scope = &mut self.scopes[scope];
        let Some(tensor) = scope.source(layer.id(), port) else { return };
        let given = scope.element_type(tensor);
        let input = Input { layer: layer.id(), port };
        let known = ![given, wanted].contains(&ElementType::Dynamic);
        if known && given != wanted && !scope.asked.contains_key(&input) && scope.permits(tensor, wanted) {
            let reason = format!(
                "input {port} of {} has type {given}, but the Parameter in its body has {wanted}",
                described(layer)
            );
            scope.demand(input, tensor, wanted, reason.into());
        }
    }

    /// Requires that the input of a body's Result has the type that the layer needs.
    fn merge(&mut self, inner: usize, result: LayerId, given: ElementType, wanted: ElementType, reason: String) {
        let scope = &mut self.scopes[inner];
        let Some(tensor) = scope.source(result, 0) else { return };
        let known = ![given, wanted].contains(&ElementType::Dynamic);
        if known && given != wanted && scope.permits(tensor, wanted) {
            scope.demand(Input { layer: result, port: 0 }, tensor, wanted, reason.into());
        }
    }

    /// Sets the type of an output of a layer with bodies, on which its branches must agree.
    fn leave(&mut self, scope: usize, layer: &Layer, port: usize) {
        let results: Vec<(usize, LayerId)> = layer
            .bodies()
            .iter()
            .enumerate()
            .filter_map(|(at, body)| {
                let leaves = |entry: &&crate::model::graph::PortMapEntry| {
                    entry.direction == Direction::Output && entry.external_port_id >= 0
                };
                let entry = body.port_map.iter().filter(leaves).nth(port)?;
                Some((*self.scopes[scope].bodies.get(&(layer.id(), at))?, entry.internal_layer_id))
            })
            .collect();
        let types: Vec<_> = results.iter().map(|&(inner, result)| self.scopes[inner].result_type(result)).collect();
        let declared = layer
            .outputs()
            .get(port)
            .and_then(|output| output.declared)
            .filter(|_| !self.is_stale((scope, layer.id())));
        let common = match types[..] {
            [first, second] if first != second => {
                let given = declared.filter(|declared| types.contains(declared));
                given.or_else(|| wider(first, second)).unwrap_or(first)
            }
            [first, ..] => first,
            [] => declared.unwrap_or(ElementType::Dynamic),
        };
        for (&(inner, result), &ty) in results.iter().zip(&types) {
            let given = list(types.iter().map(ToString::to_string).collect(), "and");
            let reason = format!("the branches of {} give {given}, and its output has type {common}", described(layer));
            self.merge(inner, result, ty, common, reason);
        }
        self.scopes[scope].types.insert(Output { layer: layer.id(), port }, common);
    }

    /// Changes input types of a layer group by group, until it accepts them and its outputs have the declared types.
    fn settle(&mut self, scope: usize, layer: &'a Layer, operation: &'static Operation) {
        let Some(mut case) = self.case(scope, layer, operation) else { return };
        let follows = case.tensors.iter().any(|tensor| self.scopes[scope].follow.contains(tensor));
        let mut outputs = None;
        let mut decides = case.tensors.iter().any(|&tensor| self.decided.contains(&(scope, tensor)));
        for _ in 0..=case.ports.len() {
            let (verdict, found) = match self.ask(&case, &case.ports) {
                Ok(found) => (self.reconsider(&case, &found, follows), Some(found)),
                Err(fault) => (self.decide(&case, &fault), None),
            };
            outputs = found;
            decides |= !matches!(verdict, Verdict::Leave);
            match verdict {
                Verdict::Give(choice) => self.give(&mut case, &choice),
                Verdict::Tied(group, takes) => {
                    for &input in &group {
                        case.ports[input].element_type = takes[0];
                    }
                    let inputs = group.into_iter().map(|input| (input, case.tensors[input])).collect();
                    self.scopes[scope].ties.push(Tie { layer: layer.id(), inputs, takes });
                }
                Verdict::Refuse(choice) => {
                    self.refuse(&case, &choice);
                    break;
                }
                Verdict::Leave => break,
            }
        }
        for (port, output) in layer.outputs().iter().enumerate() {
            let found = outputs.as_ref().and_then(|outputs| outputs.get(port)).map(|output| output.element_type);
            let ty = found.or(output.declared).unwrap_or(ElementType::Dynamic);
            let tensor = Output { layer: layer.id(), port };
            self.scopes[scope].types.insert(tensor, ty);
            if decides {
                self.decided.insert((scope, tensor));
            } else if output.declared.is_some_and(|declared| declared != ty)
                && self.differing.last() != Some(&(scope, layer.id()))
            {
                self.differing.push((scope, layer.id()));
            }
            if follows && output.declared.is_some_and(|declared| declared != ty) {
                self.scopes[scope].follow.insert(tensor);
            }
        }
        if kind(layer) == LayerKind::ReadValue {
            let variable = layer.attribute("variable_id").unwrap_or_default().to_owned();
            let ty = self.scopes[scope].element_type(Output { layer: layer.id(), port: 0 });
            self.scopes[scope].variables.insert(variable, ty);
        }
    }

    /// Changes the types of a body's Parameters, if all their uses require the same other type.
    fn retype_parameters(&mut self, scope: usize) {
        let scope = &mut self.scopes[scope];
        if scope.place.is_model() {
            return;
        }
        let mut wanted = HashMap::<Output, Option<ElementType>>::default();
        for demand in &scope.demands {
            let to = wanted.entry(demand.tensor).or_insert(Some(demand.to));
            *to = to.filter(|&to| to == demand.to);
        }
        for (tensor, to) in wanted {
            if let Some(to) = to.filter(|_| scope.is_of(tensor, LayerKind::Parameter)) {
                scope.types.insert(tensor, to);
            }
        }
    }

    fn collect(&mut self, scope: usize, repair: &mut Repair) {
        let demands = std::mem::take(&mut self.scopes[scope].demands);
        let ground = self.out_of_date();
        let mut by_tensor = BTreeMap::<Output, Vec<Demand>>::new();
        for demand in demands {
            by_tensor.entry(demand.tensor).or_default().push(demand);
        }
        let mut said = HashSet::default();
        for (tensor, mut demands) in by_tensor {
            if let Some(ground) = &ground {
                for demand in &mut demands {
                    demand.reason = format!("{}; {ground}", demand.reason).into();
                }
            }
            let place = self.scopes[scope].place.clone();
            match self.culprit(scope, tensor, &demands) {
                Some(attribute) => repair.corrections.push(Correction {
                    place,
                    layer: tensor.layer,
                    attribute,
                    types: [demands[0].from, demands[0].to],
                    reason: demands[0].reason.to_string(),
                }),
                None => {
                    let types: HashSet<_> = demands.iter().map(|demand| demand.to).collect();
                    repair.cost += types.len() - 1;
                    let alignments = repair.alignments.entry(place).or_default();
                    for Demand { input, to, reason, .. } in demands {
                        let alignment = alignments.entry(input.layer).or_default();
                        alignment.inputs.push((input.port, to));
                        if said.insert((input.layer, reason.clone())) {
                            alignment.because(format_args!("{reason}"));
                        }
                    }
                }
            }
            repair.cost += 1;
            let scope = &self.scopes[scope];
            repair.contradictions +=
                usize::from(scope.is_of(tensor, LayerKind::Constant) || scope.is_of(tensor, LayerKind::Convert));
        }
    }

    /// The attribute that names the wrong type of a tensor, if all consumers accept the right one.
    fn culprit(&mut self, scope: usize, tensor: Output, demands: &[Demand]) -> Option<&'static str> {
        let graph = self.scopes[scope].graph;
        let to = demands.first()?.to;
        if demands.iter().any(|demand| demand.to != to) {
            return None;
        }
        if !self.scopes[scope].place.is_model() && self.scopes[scope].is_of(tensor, LayerKind::Parameter) {
            return Some("element_type");
        }
        let layer = graph.layer(tensor.layer)?;
        let attribute = type_attributes(Some(layer)).find(|attribute| {
            let mut other = Layer::new(layer.ty(), layer.version(), layer.name());
            other.attributes = layer.attributes.iter().filter(|a| a.name() != attribute.name).cloned().collect();
            let other = other.with_attribute(attribute.name, to.name());
            let operation = layer.operation();
            let made = operation.and_then(|operation| {
                let case = self.case(scope, layer, operation)?;
                let case = Case { layer: &other, ..case };
                self.ask(&case, &case.ports).ok()
            });
            made.is_some_and(|made| made.get(tensor.port).is_some_and(|output| output.element_type == to))
        })?;
        let asking: HashSet<Input> = demands.iter().map(|demand| demand.input).collect();
        let others: Vec<Input> = graph.consumers(tensor).filter(|input| !asking.contains(input)).collect();
        others.into_iter().all(|input| self.takes(scope, input, to)).then_some(attribute.name)
    }

    fn takes(&mut self, scope: usize, input: Input, to: ElementType) -> bool {
        let graph = self.scopes[scope].graph;
        let Some(layer) = graph.layer(input.layer) else { return false };
        if kind(layer) == LayerKind::Result {
            return layer.inputs().first().is_some_and(|port| port.declared == Some(to));
        }
        let operation = layer.operation().filter(|_| layer.bodies().is_empty());
        let case = operation.and_then(|operation| self.case(scope, layer, operation));
        // A layer has as many inputs as precede its first unconnected one.
        let Some(case) = case.filter(|case| input.port < case.ports.len()) else { return false };
        let makes = self.ask_with(&case, &[input.port], to);
        makes.is_ok_and(|outputs| case.matches(&outputs))
    }
}
