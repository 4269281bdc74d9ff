//! Which types inputs that disagree are to get, by what the ports of the file declare: it is what its author had.
//!
//! One walk gives every tensor its type as if each repair before it had been made. A layer that refuses its inputs, or
//! makes something else than its ports declare, asks for other types; the types are then given where they are odd: by an
//! attribute that says the wrong one, by the Parameter of a body, or by a Convert directly behind the tensor.

use std::collections::BTreeMap;
use std::rc::Rc;

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use typelift_promote::{ElementType, Operand, fidelity, openvino};

use crate::diagnostic::{Code, Diagnostic, list};
use crate::graph::{Direction, Graph, Input, Layer, LayerId, Model, Output, OutputPort, Place};
use crate::infer::{self, Alignments, Probe};
use crate::loss;
use crate::ops::{self, AttributeValues, Fault, LayerKind, Operation, Outputs, Subject, kind};

/// What to change so that types agree.
#[derive(Default)]
pub(crate) struct Repair {
    /// The inputs that get another type, for the model and each body.
    pub(crate) alignments: BTreeMap<Place, Alignments>,
    /// Attributes that say the wrong type.
    pub(crate) corrections: Vec<Correction>,
    /// What is left alone because a number would become an index or an integer.
    pub(crate) refusals: Vec<Diagnostic>,
    /// How many edits it takes: Converts, which are shared, and attributes.
    cost: usize,
    /// How many of them are of constants and Converts of the file.
    contradictions: usize,
}

/// An attribute of a layer that is to say another type.
pub(crate) struct Correction {
    pub(crate) place: Place,
    pub(crate) layer: LayerId,
    pub(crate) attribute: &'static str,
    pub(crate) types: [ElementType; 2],
    pub(crate) reason: String,
}

/// Layers of which more is known than the file says.
#[derive(Default)]
pub(crate) struct Known {
    /// Inputs of the model whose type was changed, so that what follows from them is not what the file declares.
    pub(crate) changed: Vec<LayerId>,
    /// Layers that took inputs of any types and made what they declare.
    pub(crate) relaxed: HashSet<(Place, LayerId)>,
}

/// Finds what to change in a model that was inferred. Ports of the file that are themselves out of date do not count: where
/// going by what comes into their layers takes fewer edits, and contradicts fewer constants and Converts.
pub(crate) fn find(model: &Model, known: &Known) -> Repair {
    let (mut best, _) = Search::new(model, known, Stale::default()).run();
    if best.contradictions < 2 || !known.changed.is_empty() || !known.relaxed.is_empty() {
        return best;
    }
    let (by_inputs, regions) = Search::new(model, known, Stale::All).run();
    let is_better = |other: &Repair, best: &Repair| {
        let is_cheaper = (1..best.cost).contains(&other.cost) && other.contradictions < best.contradictions;
        other.refusals.is_empty() && is_cheaper
    };
    let mut stale = HashSet::default();
    for region in regions.into_iter().take(MOST_REGIONS) {
        let with_region: HashSet<_> = stale.iter().copied().chain(region).collect();
        let (found, _) = Search::new(model, known, Stale::Of(with_region.clone())).run();
        if is_better(&found, &best) {
            (best, stale) = (found, with_region);
        }
    }
    if is_better(&by_inputs, &best) { by_inputs } else { best }
}

/// How many parts of a model are tried whose ports may be out of date, large ones first.
const MOST_REGIONS: usize = 8;

/// A layer, by its scope.
type Member = (usize, LayerId);

/// The layers whose ports do not count.
enum Stale {
    Of(HashSet<Member>),
    All,
}

impl Default for Stale {
    fn default() -> Self {
        Self::Of(HashSet::default())
    }
}

impl Stale {
    fn has(&self, member: Member) -> bool {
        match self {
            Self::Of(members) => members.contains(&member),
            Self::All => true,
        }
    }
}

/// What a layer asks of one of its inputs.
struct Demand {
    input: Input,
    tensor: Output,
    from: ElementType,
    to: ElementType,
    /// Why, as a clause.
    reason: Rc<str>,
}

/// Inputs of a layer that must agree, where what it makes does not depend on their type.
struct Tie {
    layer: LayerId,
    inputs: Vec<(usize, Output)>,
    /// The types that the layer takes.
    takes: Vec<ElementType>,
}

/// A graph of the model.
struct Scope<'a> {
    graph: &'a Graph,
    place: Place,
    /// `loop/body`.
    path: String,
    /// The scope of each body in it.
    bodies: HashMap<(LayerId, usize), usize>,
    /// The type that each tensor has when everything before it is repaired.
    types: HashMap<Output, ElementType>,
    /// Tensors that follow from a changed input.
    follow: HashSet<Output>,
    demands: Vec<Demand>,
    /// The latest demand of each input.
    asked: HashMap<Input, usize>,
    ties: Vec<Tie>,
    variables: HashMap<String, ElementType>,
    probe: Probe,
}

impl Scope<'_> {
    fn element_type(&self, tensor: Output) -> ElementType {
        self.types.get(&tensor).copied().unwrap_or(ElementType::Dynamic)
    }

    fn source(&self, layer: LayerId, input: usize) -> Option<Output> {
        self.graph.producer(layer.input(input))
    }

    /// The type of what a Result takes, as it asks for it.
    fn result_type(&self, result: LayerId) -> ElementType {
        let asked = self.asked.get(&Input { layer: result, port: 0 }).map(|&at| self.demands[at].to);
        asked.or_else(|| Some(self.element_type(self.source(result, 0)?))).unwrap_or(ElementType::Dynamic)
    }

    fn demand(&mut self, input: Input, tensor: Output, to: ElementType, reason: Rc<str>) {
        let from = self.element_type(tensor);
        self.asked.insert(input, self.demands.len());
        self.demands.push(Demand { input, tensor, from, to, reason });
    }

    /// Whether a tensor is a constant, or one that was converted.
    fn is_constant(&self, tensor: Output) -> bool {
        let is = |tensor: Output| self.graph.layer(tensor.layer).is_some_and(ops::is_constant);
        let converted = || self.source(tensor.layer, 0).filter(|_| self.is_of(tensor, LayerKind::Convert));
        is(tensor) || converted().is_some_and(is)
    }

    fn is_of(&self, tensor: Output, wanted: LayerKind) -> bool {
        self.graph.layer(tensor.layer).is_some_and(|layer| kind(layer) == wanted)
    }

    /// Whether a tensor can be given another type: no floating-point number becomes an integer, an index or a truth value,
    /// unless an attribute says what the tensor is.
    fn permits(&self, tensor: Output, to: ElementType) -> bool {
        let from = self.element_type(tensor);
        let has_type = || type_attributes(self.graph.layer(tensor.layer)).next().is_some();
        from == to || fidelity(from, to).is_some() && (!from.is_float() || to.is_float() || has_type())
    }

    /// ``f32 from `x` and f64 from `c` ``, each type once.
    fn origins(&self, tensors: impl Iterator<Item = Output>) -> String {
        let mut seen = Vec::new();
        let origin = |tensor: Output| {
            let ty = self.element_type(tensor);
            (!seen.contains(&ty)).then(|| seen.push(ty))?;
            Some(format!("{ty} from `{}`", self.graph.layer(tensor.layer)?.name()))
        };
        list(tensors.filter_map(origin).collect(), "and")
    }
}

fn type_attributes(layer: Option<&Layer>) -> impl Iterator<Item = &'static ops::Attr> {
    let layer = layer.filter(|layer| ![LayerKind::Parameter, LayerKind::Constant].contains(&kind(layer)));
    let operation = layer.and_then(|layer| layer.operation());
    operation.into_iter().flat_map(Operation::type_attributes)
}

/// A layer whose inputs are being looked at, with the types that they are to have so far.
struct Case<'a> {
    scope: usize,
    layer: &'a Layer,
    operation: &'static Operation,
    ports: Vec<OutputPort>,
    /// The tensors that come in.
    tensors: Vec<Output>,
    /// What its ports say that it makes.
    declared: Vec<Option<ElementType>>,
}

impl Case<'_> {
    fn types(&self) -> Vec<ElementType> {
        self.ports.iter().map(OutputPort::element_type).collect()
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        self.operation.input_groups(&self.types())
    }

    /// Whether outputs are what the ports declare, as far as they declare anything.
    fn matches(&self, outputs: &Outputs) -> bool {
        let declared = self.declared.iter().zip(outputs);
        declared.into_iter().all(|(declared, output)| declared.is_none_or(|declared| declared == output.0))
    }

    /// The types that its outputs declare, each once.
    fn declared_types(&self) -> Vec<ElementType> {
        let mut types: Vec<_> = self.declared.iter().copied().flatten().collect();
        types.dedup();
        types
    }

    /// Whether these inputs have more than one type.
    fn disagree(&self, group: &[usize]) -> bool {
        let mut known = group.iter().filter_map(|&input| Some(self.ports.get(input)?.element_type()));
        known.next().is_some_and(|first| known.any(|other| other != first))
    }

    /// ``Add 2 `sum` takes f32 from `x` and f64 from `c` ``
    fn takes(&self, scope: &Scope, group: &[usize]) -> String {
        format!("{} takes {}", describe(self.layer), scope.origins(self.sources(group)))
    }

    fn sources(&self, group: &[usize]) -> impl Iterator<Item = Output> {
        group.iter().filter_map(|&input| self.tensors.get(input).copied())
    }
}

/// ``Add 2 `sum` ``
fn describe(layer: &Layer) -> String {
    format!("{} {} `{}`", layer.ty(), layer.id(), layer.name())
}

/// Inputs of a layer, and the type that all of them get.
struct Choice {
    group: Vec<usize>,
    to: ElementType,
    ground: String,
}

/// What can be done about a layer.
enum Verdict {
    Give(Choice),
    /// The inputs get one of these types, whichever costs least.
    Tied(Vec<usize>, Vec<ElementType>),
    /// The only type that would do makes integers of floating-point numbers.
    Refuse(Choice),
    Leave,
}

struct Search<'a> {
    scopes: Vec<Scope<'a>>,
    model: &'a Model,
    known: &'a Known,
    stale: Stale,
    /// Layers that make something else than they declare of inputs that nothing was decided about.
    differing: Vec<Member>,
    /// Tensors whose types follow from a decision.
    decided: HashSet<(usize, Output)>,
    refusals: Vec<Diagnostic>,
}

impl<'a> Search<'a> {
    fn new(model: &'a Model, known: &'a Known, stale: Stale) -> Self {
        let mut scopes = vec![Scope::new(model, &model.graph, Place::default(), String::new())];
        let mut next = 0;
        while let Some(scope) = scopes.get(next) {
            let (graph, place, path) = (scope.graph, scope.place.clone(), scope.path.clone());
            for layer in graph.unordered() {
                for (at, body) in layer.bodies().iter().enumerate() {
                    let separator = if path.is_empty() { "" } else { "/" };
                    let inner_path = format!("{path}{separator}{}/{}", layer.name(), body.name());
                    let inner_place = place.body(layer.id(), at);
                    let inner = scopes.len();
                    scopes[next].bodies.insert((layer.id(), at), inner);
                    scopes.push(Scope::new(model, &body.graph, inner_place, inner_path));
                }
            }
            next += 1;
        }
        Self { scopes, model, known, stale, differing: Vec::new(), decided: HashSet::default(), refusals: Vec::new() }
    }

    /// What to change, and the parts of the model whose ports may be out of date, large ones first.
    fn run(mut self) -> (Repair, Vec<Vec<Member>>) {
        // Bodies come after the layers around them in the list.
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

    /// Which ports do not count, and why, as a clause; `None` if all of them do.
    fn out_of_date(&self) -> Option<String> {
        let whose = match &self.stale {
            Stale::All => "the ports of the file".to_owned(),
            Stale::Of(members) => {
                let &(scope, first) = members.iter().min()?;
                let layer = describe(self.scopes[scope].graph.layer(first)?);
                match members.len() {
                    1 => format!("the ports of {layer}"),
                    count => format!("the ports of {layer} and {} more layers", count - 1),
                }
            }
        };
        Some(format!("{whose} are out of date: constants and Converts contradict them"))
    }

    /// The differing layers, those together that feed each other.
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

    /// Parameters, constants and the like.
    fn settle_source(&mut self, scope: usize, layer: &Layer) {
        let scope = &mut self.scopes[scope];
        let written = layer.attribute("element_type").and_then(ElementType::from_name);
        for (port, output) in layer.outputs().iter().enumerate() {
            let tensor = Output { layer: layer.id(), port };
            scope.types.insert(tensor, written.unwrap_or(output.element_type()));
            if scope.place.is_model() && self.known.changed.contains(&layer.id()) {
                scope.follow.insert(tensor);
            }
        }
    }

    /// An operation that is not known makes what it declares.
    fn settle_declared(&mut self, scope: usize, layer: &Layer) {
        for (port, output) in layer.outputs().iter().enumerate() {
            let ty = output.declared.unwrap_or(output.element_type());
            self.scopes[scope].types.insert(Output { layer: layer.id(), port }, ty);
        }
    }

    /// A Result of the model takes what its port declares.
    fn settle_result(&mut self, scope: usize, layer: &Layer) {
        let trusts = !self.stale.has((scope, layer.id()));
        let scope = &mut self.scopes[scope];
        let (Some(declared), Some(tensor)) =
            (layer.inputs().first().and_then(|port| port.declared), scope.source(layer.id(), 0))
        else {
            return;
        };
        let is_other = ![declared, ElementType::Dynamic].contains(&scope.element_type(tensor));
        // What an operation makes of sound inputs is not odd: the port of the Result is out of date.
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

    /// An Assign takes what the ReadValue of its variable gives.
    fn settle_assign(&mut self, scope: usize, layer: &Layer) {
        let scope = &mut self.scopes[scope];
        let Some(tensor) = scope.source(layer.id(), 0) else { return };
        let given = scope.element_type(tensor);
        let variable = layer.attribute("variable_id").unwrap_or_default();
        let wanted = scope.variables.get(variable).copied().unwrap_or(given);
        if wanted != given && scope.permits(tensor, wanted) {
            let reason = format!("{} takes {given}, and variable `{variable}` is {wanted}", describe(layer));
            scope.demand(Input { layer: layer.id(), port: 0 }, tensor, wanted, reason.into());
        }
        scope.types.insert(Output { layer: layer.id(), port: 0 }, wanted);
    }

    /// A layer with bodies: what goes in has the types of their Parameters, what comes out those of their Results.
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
                let reason = format!("it is {wanted} in the next iteration of {}", describe(layer));
                self.merge(inner, edge.from, given, wanted, reason);
            }
        }
        for port in 0..layer.outputs().len() {
            self.leave(scope, layer, port);
        }
    }

    /// Gives an input of a layer with bodies the type of the Parameter that it goes to.
    fn enter(&mut self, scope: usize, layer: &Layer, port: usize, wanted: ElementType) {
        let scope = &mut self.scopes[scope];
        let Some(tensor) = scope.source(layer.id(), port) else { return };
        let given = scope.element_type(tensor);
        let input = Input { layer: layer.id(), port };
        let known = ![given, wanted].contains(&ElementType::Dynamic);
        if known && given != wanted && !scope.asked.contains_key(&input) && scope.permits(tensor, wanted) {
            let reason = format!("input {port} of {} is {given}, and its body takes {wanted}", describe(layer));
            scope.demand(input, tensor, wanted, reason.into());
        }
    }

    /// Gives what a Result of a body takes the type that it meets.
    fn merge(&mut self, inner: usize, result: LayerId, given: ElementType, wanted: ElementType, reason: String) {
        let scope = &mut self.scopes[inner];
        let Some(tensor) = scope.source(result, 0) else { return };
        let known = ![given, wanted].contains(&ElementType::Dynamic);
        if known && given != wanted && scope.permits(tensor, wanted) {
            scope.demand(Input { layer: result, port: 0 }, tensor, wanted, reason.into());
        }
    }

    /// Finds the type of an output of a layer with bodies, which its branches must agree on.
    fn leave(&mut self, scope: usize, layer: &Layer, port: usize) {
        let results: Vec<(usize, LayerId)> = layer
            .bodies()
            .iter()
            .enumerate()
            .filter_map(|(at, body)| {
                let leaves = |entry: &&crate::graph::PortMapEntry| {
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
            .filter(|_| !self.stale.has((scope, layer.id())));
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
            let reason = format!("{} gives {given}, and its output is {common}", describe(layer));
            self.merge(inner, result, ty, common, reason);
        }
        self.scopes[scope].types.insert(Output { layer: layer.id(), port }, common);
    }

    /// Gives inputs of a layer other types until it takes them and makes what it declares, one group at a time.
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
            let found = outputs.as_ref().and_then(|outputs| outputs.get(port)).map(|output| output.0);
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

    fn case(&self, scope: usize, layer: &'a Layer, operation: &'static Operation) -> Option<Case<'a>> {
        let Scope { graph, .. } = &self.scopes[scope];
        let tensors: Vec<Output> = graph.producers(layer.id()).into_iter().map_while(|feed| feed).collect();
        let port = |&tensor: &Output| {
            let shape = graph.output(tensor)?.shape().clone();
            Some(OutputPort::new(self.scopes[scope].element_type(tensor), shape))
        };
        let ports = tensors.iter().map(port).collect::<Option<_>>()?;
        let is_stale = self.stale.has((scope, layer.id()));
        let trusted = |port: &OutputPort| port.declared.filter(|_| !is_stale);
        let declared = layer.outputs().iter().map(trusted).collect();
        Some(Case { scope, layer, operation, ports, tensors, declared })
    }

    /// What the rule of the layer makes of inputs of these types.
    fn ask(&mut self, case: &Case, ports: &[OutputPort]) -> Result<Outputs, Fault> {
        let Scope { graph, probe, .. } = &mut self.scopes[case.scope];
        let &Case { layer, operation, .. } = case;
        let values = AttributeValues::of(layer, operation);
        let subject = Subject { graph, layer, operation, values: &values, given: None };
        probe.ask(&subject, &ports.iter().collect::<Vec<_>>())
    }

    /// As [`ask`](Self::ask), with a group of inputs of another type.
    fn ask_with(&mut self, case: &Case, group: &[usize], to: ElementType) -> Result<Outputs, Fault> {
        let mut ports = case.ports.clone();
        for &input in group {
            ports[input].element_type = to;
        }
        self.ask(case, &ports)
    }

    /// What to do about a layer that takes its inputs.
    fn reconsider(&mut self, case: &Case, outputs: &Outputs, follows: bool) -> Verdict {
        if case.operation.is_tied_when_run()
            && let Some(group) = case.groups().into_iter().find(|group| case.disagree(group))
        {
            return self.decide(case, &Fault::types(&group, ""));
        }
        if follows || case.matches(outputs) {
            return Verdict::Leave;
        }
        let is_relaxed = self.known.relaxed.contains(&(self.scopes[case.scope].place.clone(), case.layer.id()));
        for group in case.groups() {
            let tensors: HashSet<_> = case.sources(&group).collect();
            // Constants and Converts that agree with another tensor contradict the port.
            let scope = &self.scopes[case.scope];
            let says_type =
                |&tensor: &Output| scope.is_of(tensor, LayerKind::Constant) || scope.is_of(tensor, LayerKind::Convert);
            if tensors.len() > 1 && tensors.iter().any(says_type) && !is_relaxed && !case.disagree(&group) {
                continue;
            }
            for to in case.declared_types() {
                let permits = tensors.iter().all(|&tensor| self.scopes[case.scope].permits(tensor, to));
                let makes = |outputs: Outputs| case.matches(&outputs);
                if permits && self.ask_with(case, &group, to).is_ok_and(makes) {
                    let ground = format!("the file declares {to} for what it makes");
                    return Verdict::Give(Choice { group, to, ground });
                }
            }
        }
        Verdict::Leave
    }

    /// What to do about a layer that refuses its inputs.
    fn decide(&mut self, case: &Case, fault: &Fault) -> Verdict {
        if kind(case.layer) == LayerKind::ConvertPromoteTypes {
            // Its attributes say which promotions its author wants refused.
            return Verdict::Leave;
        }
        let groups = case.groups();
        let is_about = |group: &&Vec<usize>| fault.inputs.iter().any(|input| group.contains(input));
        let found = groups.iter().find(is_about).or_else(|| groups.iter().find(|group| case.disagree(group)));
        let Some(group) = found.cloned() else { return Verdict::Leave };
        let asked = group.iter().filter_map(|&input| case.layer.inputs().get(input)?.declared);
        let is_stale = self.stale.has((case.scope, case.layer.id()));
        let asked = asked.filter(|_| !is_stale).chain(fault.wants);
        let given = group.iter().filter_map(|&input| Some(case.ports.get(input)?.element_type()));
        let mentioned: Vec<_> = asked.chain(given).filter(|&ty| ty != ElementType::Dynamic).collect();
        let mut trials: Vec<Trial> = Vec::new();
        for to in case.declared_types().into_iter().chain(mentioned.iter().copied()) {
            if trials.iter().all(|trial| trial.to != to) {
                trials.push(self.try_type(case, &group, to));
            }
        }
        let fitting = |fit: Fit, permitted: bool| {
            let fits = trials.iter().filter(move |trial| trial.fit == fit && trial.permitted == permitted);
            let (mut named, others): (Vec<_>, Vec<_>) = fits.partition(|trial| mentioned.contains(&trial.to));
            if named.is_empty() {
                named = others;
            }
            named.into_iter().cloned().collect::<Vec<Trial>>()
        };
        let as_declared = fitting(Fit::AsDeclared, true);
        let forbidden = fitting(Fit::AsDeclared, false);
        let options =
            if as_declared.is_empty() && forbidden.is_empty() { fitting(Fit::Taken, true) } else { as_declared };
        if let [option] = &options[..] {
            let to = option.to;
            let ground = match case.declared_types().contains(&to) {
                true => format!("the file declares {to} for what it makes"),
                false if fault.wants == Some(to) => fault.message.to_string(),
                false => format!("{to} is the one that it takes"),
            };
            return Verdict::Give(Choice { group, to, ground });
        }
        if !options.is_empty() {
            return self.weigh(case, group, &options);
        }
        match (forbidden.first(), fitting(Fit::Further, true).first()) {
            (Some(trial), _) => Verdict::Refuse(Choice { group, to: trial.to, ground: String::new() }),
            (None, Some(trial)) => {
                let ground = format!("{} is the one that it takes", trial.to);
                Verdict::Give(Choice { group, to: trial.to, ground })
            }
            (None, None) => Verdict::Leave,
        }
    }

    /// Asks a layer with a group of inputs of another type.
    fn try_type(&mut self, case: &Case, group: &[usize], to: ElementType) -> Trial {
        let scope = &self.scopes[case.scope];
        let survives = |tensor| group.len() > 1 && self.survives(case.scope, tensor, to);
        let permitted = case.sources(group).all(|tensor| scope.permits(tensor, to) || survives(tensor));
        let answer = self.ask_with(case, group, to);
        let fit = match &answer {
            Ok(outputs) if case.matches(outputs) => Fit::AsDeclared,
            Ok(_) => Fit::Taken,
            Err(next) if next.inputs.iter().all(|input| !group.contains(input)) => Fit::Further,
            Err(_) => Fit::Refused,
        };
        let makes = answer.unwrap_or_default().into_iter().map(|output| output.0).collect();
        Trial { to, permitted, fit, makes }
    }

    /// Whether every value of a constant is the same number in another type.
    fn survives(&self, scope: usize, tensor: Output, to: ElementType) -> bool {
        let constant = self.scopes[scope].graph.layer(tensor.layer).filter(|layer| kind(layer) == LayerKind::Constant);
        constant.is_some_and(|constant| loss::survives(constant, &self.model.weights, to))
    }

    /// Chooses among several types that a layer takes: later, where what it makes does not depend on them, and otherwise
    /// the one that most tensors have; constants follow, and OpenVINO's rules decide between equals.
    fn weigh(&mut self, case: &Case, group: Vec<usize>, options: &[Trial]) -> Verdict {
        if options.iter().all(|option| option.makes == options[0].makes) {
            return Verdict::Tied(group, options.iter().map(|option| option.to).collect());
        }
        let scope = &self.scopes[case.scope];
        let votes = |to: ElementType| {
            let tensors = case.sources(&group).filter(|&tensor| scope.element_type(tensor) == to);
            tensors.map(|tensor| if scope.is_constant(tensor) { 1 } else { group.len() }).sum::<usize>()
        };
        let most = options.iter().map(|option| votes(option.to)).max().unwrap_or(0);
        let leading: Vec<_> = options.iter().map(|option| option.to).filter(|&to| votes(to) == most).collect();
        let (to, ground) = match leading[..] {
            [to] => (to, format!("{to} is what most of them are, and constants follow the tensors that they meet")),
            _ => {
                let common = leading.iter().copied().try_fold(leading[0], wider).filter(|to| leading.contains(to));
                let to = common.unwrap_or(leading[0]);
                (to, format!("the file declares nothing else, and {to} is what OpenVINO's rules give"))
            }
        };
        Verdict::Give(Choice { group, to, ground })
    }

    /// Gives a group of inputs their type, and notes those for which that is another one.
    fn give(&mut self, case: &mut Case, choice: &Choice) {
        let scope = &mut self.scopes[case.scope];
        let reason: Rc<str> = format!("{}: {}", case.takes(scope, &choice.group), choice.ground).into();
        for &input in &choice.group {
            if ![choice.to, ElementType::Dynamic].contains(&case.ports[input].element_type()) {
                let slot = Input { layer: case.layer.id(), port: input };
                scope.demand(slot, case.tensors[input], choice.to, reason.clone());
            }
            case.ports[input].element_type = choice.to;
        }
    }

    /// Refuses to make integers of floating-point numbers.
    fn refuse(&mut self, case: &Case, choice: &Choice) {
        let scope = &self.scopes[case.scope];
        let to = choice.to;
        let is_float = |input: &&usize| case.ports[**input].element_type().is_float();
        let floats: Vec<usize> = choice.group.iter().filter(is_float).copied().collect();
        let message = format!(
            "`{}` would need {} as {to}, and a floating-point number never becomes an integer or a truth value by itself",
            case.layer.ty(),
            scope.origins(case.sources(&floats)),
        );
        let fault = Fault { inputs: floats.into(), ..Fault::types(&[], message) };
        let fault = Fault { code: Code::NoCommonType, ..fault }.rule("what the file declares asks for this").help(
            format!("put a Convert to {to} there where rounding is meant, or change the type of the other input"),
        );
        self.refusals.push(infer::diagnose(self.model.source(), &scope.path, scope.graph, case.layer.id(), &fault));
    }

    /// Chooses the types of inputs that must agree and on which nothing depends: the one that takes the fewest Converts, of
    /// all layers together that share a tensor.
    fn untie(&mut self, scope: usize) {
        let scope = &mut self.scopes[scope];
        let ties = std::mem::take(&mut scope.ties);
        let asked: HashMap<Output, ElementType> =
            scope.demands.iter().map(|demand| (demand.tensor, demand.to)).collect();
        let mut clusters = petgraph::unionfind::UnionFind::new(ties.len());
        let mut first = HashMap::<Output, usize>::default();
        for (at, tie) in ties.iter().enumerate() {
            for (_, tensor) in &tie.inputs {
                clusters.union(at, *first.entry(*tensor).or_insert(at));
            }
        }
        let mut members = BTreeMap::<usize, Vec<&Tie>>::new();
        for (at, tie) in ties.iter().enumerate() {
            members.entry(clusters.find(at)).or_default().push(tie);
        }
        for ties in members.values() {
            let Some((to, ground)) = cheapest(scope, ties, &asked) else { continue };
            for tie in ties {
                let Some(layer) = scope.graph.layer(tie.layer) else { continue };
                let origins = scope.origins(tie.inputs.iter().map(|(_, tensor)| *tensor));
                let reason: Rc<str> = format!("{} takes {origins}: {ground}", describe(layer)).into();
                for &(port, tensor) in &tie.inputs {
                    if scope.element_type(tensor) != to {
                        scope.demand(Input { layer: tie.layer, port }, tensor, to, reason.clone());
                    }
                }
            }
        }
    }

    /// Gives Parameters of a body the type that everything in it asks for.
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

    /// Adds what is to be done in a scope.
    fn collect(&mut self, scope: usize, repair: &mut Repair) {
        let demands = std::mem::take(&mut self.scopes[scope].demands);
        let ground = self.out_of_date();
        let mut by_tensor = BTreeMap::<Output, Vec<Demand>>::new();
        for demand in demands {
            by_tensor.entry(demand.tensor).or_default().push(demand);
        }
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
                        if !alignment.reason.ends_with(&*reason) {
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

    /// The attribute that says the wrong type of a tensor, where everything that uses the tensor takes the right one.
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
            made.is_some_and(|made| made.get(tensor.port).is_some_and(|output| output.0 == to))
        })?;
        let asking: HashSet<Input> = demands.iter().map(|demand| demand.input).collect();
        let others: Vec<Input> = graph.consumers(tensor).filter(|input| !asking.contains(input)).collect();
        others.into_iter().all(|input| self.takes(scope, input, to)).then_some(attribute.name)
    }

    /// Whether a layer makes what it declares when one of its inputs has another type.
    fn takes(&mut self, scope: usize, input: Input, to: ElementType) -> bool {
        let graph = self.scopes[scope].graph;
        let Some(layer) = graph.layer(input.layer) else { return false };
        if kind(layer) == LayerKind::Result {
            return layer.inputs().first().is_some_and(|port| port.declared == Some(to));
        }
        let operation = layer.operation().filter(|_| layer.bodies().is_empty());
        let Some(case) = operation.and_then(|operation| self.case(scope, layer, operation)) else { return false };
        let makes = self.ask_with(&case, &[input.port], to);
        makes.is_ok_and(|outputs| case.matches(&outputs))
    }
}

/// How a layer takes a group of inputs in one type.
#[derive(Clone, Debug)]
struct Trial {
    to: ElementType,
    /// Whether all of them may be converted to it.
    permitted: bool,
    fit: Fit,
    makes: Vec<ElementType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// It makes what the file declares.
    AsDeclared,
    /// It makes something else.
    Taken,
    /// It refuses other inputs.
    Further,
    Refused,
}

/// The type that OpenVINO's rules give two types.
fn wider(left: ElementType, right: ElementType) -> Option<ElementType> {
    let [left, right] = [left, right].map(Operand::dimensioned);
    openvino::promote(left, right, &openvino::Options::default()).ok()
}

/// The type that ties with common tensors get, and why.
fn cheapest(scope: &Scope, ties: &[&Tie], asked: &HashMap<Output, ElementType>) -> Option<(ElementType, String)> {
    let tensors: HashSet<Output> = ties.iter().flat_map(|tie| tie.inputs.iter().map(|(_, tensor)| *tensor)).collect();
    let type_of = |tensor: &Output| asked.get(tensor).copied().unwrap_or(scope.element_type(*tensor));
    let declared = ties.iter().flat_map(|tie| {
        let inputs = scope.graph.layer(tie.layer).map(Layer::inputs).unwrap_or_default();
        tie.inputs.iter().filter_map(|(input, _)| inputs.get(*input)?.declared)
    });
    let declared: Vec<_> = declared.collect();
    let mut best: Option<((usize, std::cmp::Reverse<usize>), ElementType)> = None;
    let mut equal = Vec::new();
    let options = ties.iter().flat_map(|tie| tie.takes.iter().copied());
    for to in options.filter(|to| ties.iter().all(|tie| tie.takes.contains(to))) {
        if !tensors.iter().all(|&tensor| scope.permits(tensor, to)) {
            continue;
        }
        let converts = tensors.iter().filter(|tensor| type_of(tensor) != to).count();
        let votes = tensors.iter().filter(|tensor| type_of(tensor) == to);
        let votes: usize = votes.map(|&tensor| if scope.is_constant(tensor) { 1 } else { 2 }).sum();
        let votes = votes + declared.iter().filter(|&&ty| ty == to).count();
        let key = (converts, std::cmp::Reverse(votes));
        match &best {
            Some((known, _)) if *known < key => {}
            Some((known, _)) if *known == key => equal.push(to),
            _ => {
                best = Some((key, to));
                equal = vec![to];
            }
        }
    }
    let (_, first) = best?;
    let common = equal.iter().copied().try_fold(first, wider).filter(|to| equal.contains(to)).unwrap_or(first);
    let ground = format!("{common} takes the fewest Converts, and most of what is tied to them is {common}");
    Some((common, ground))
}

impl<'a> Scope<'a> {
    fn new(model: &Model, graph: &'a Graph, place: Place, path: String) -> Self {
        Self {
            graph,
            place,
            path,
            bodies: HashMap::default(),
            types: HashMap::default(),
            follow: HashSet::default(),
            demands: Vec::new(),
            asked: HashMap::default(),
            ties: Vec::new(),
            variables: HashMap::default(),
            probe: Probe::new(model.source(), &model.weights),
        }
    }
}
