//! Choice of the input types of one layer.

use std::rc::Rc;

use typelift_promote::{ElementType, Fidelity, fidelity};

use super::TypeSearch;
use super::scope::Scope;
use super::ties::wider;
use crate::base::hash::HashSet;
use crate::findings::{Code, Text, described, message};
use crate::infer;
use crate::model::graph::{Input, Layer, Output, OutputPort};
use crate::ops::values::conversion;
use crate::ops::{AttributeValues, Fault, LayerKind, Operation, Outputs, Subject, kind};

/// A layer, and the input types that were chosen so far.
pub(super) struct Case<'a> {
    pub(super) scope: usize,
    pub(super) layer: &'a Layer,
    pub(super) operation: &'static Operation,
    pub(super) ports: Vec<OutputPort>,
    pub(super) tensors: Vec<Output>,
    pub(super) declared: Vec<Option<ElementType>>,
}

impl Case<'_> {
    pub(super) fn types(&self) -> Vec<ElementType> {
        self.ports.iter().map(OutputPort::element_type).collect()
    }

    fn groups(&self) -> Vec<Vec<usize>> {
        self.operation.input_groups(&self.types())
    }

    /// Outputs without a declaration are ignored.
    pub(super) fn matches(&self, outputs: &Outputs) -> bool {
        let declared = self.declared.iter().zip(outputs);
        declared.into_iter().all(|(declared, output)| declared.is_none_or(|declared| declared == output.element_type))
    }

    /// The declared types of its outputs, without duplicates.
    fn declared_types(&self) -> Vec<ElementType> {
        let mut types: Vec<_> = self.declared.iter().copied().flatten().collect();
        types.dedup();
        types
    }

    pub(super) fn disagree(&self, group: &[usize]) -> bool {
        let mut known = group.iter().filter_map(|&input| Some(self.ports.get(input)?.element_type()));
        known.next().is_some_and(|first| known.any(|other| other != first))
    }

    /// Describes a layer and its inputs: ``Add 2 `sum` takes f32 from `x` and f64 from `c` ``.
    pub(super) fn takes(&self, scope: &Scope, group: &[usize]) -> String {
        format!("{} takes {}", described(self.layer), scope.origins(self.sources(group)))
    }

    fn sources(&self, group: &[usize]) -> impl Iterator<Item = Output> {
        group.iter().filter_map(|&input| self.tensors.get(input).copied())
    }
}

pub(super) struct Choice {
    pub(super) group: Vec<usize>,
    pub(super) to: ElementType,
    pub(super) ground: String,
}

pub(super) enum Verdict {
    Give(Choice),
    /// Any of these types is possible for the inputs; the one with the fewest Converts is chosen later.
    Tied(Vec<usize>, Vec<ElementType>),
    /// The only possible type would convert floating-point numbers to integers, which is an error.
    Refuse(Choice),
    Leave,
}

/// Result of inferring a layer after a group of its inputs got one type.
#[derive(Clone, Debug)]
struct GroupTrial {
    pub(super) to: ElementType,
    /// True if all inputs of the group may be converted to it.
    permitted: bool,
    fit: TypeFit,
    pub(super) makes: Vec<ElementType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypeFit {
    /// The outputs have the declared types.
    AsDeclared,
    /// The layer accepts the type, but its outputs have other types than declared.
    Taken,
    /// The layer accepts the type, but not the types of other inputs.
    Further,
    Refused,
}

impl<'a> TypeSearch<'a> {
    pub(super) fn case(&self, scope: usize, layer: &'a Layer, operation: &'static Operation) -> Option<Case<'a>> {
        let Scope { graph, .. } = &self.scopes[scope];
        let tensors: Vec<Output> = graph.producers(layer.id()).into_iter().map_while(|feed| feed).collect();
        let port = |&tensor: &Output| {
            let shape = graph.output(tensor)?.shape().clone();
            Some(OutputPort::new(self.scopes[scope].element_type(tensor), shape))
        };
        let ports = tensors.iter().map(port).collect::<Option<_>>()?;
        let is_stale = self.is_stale((scope, layer.id()));
        let trusted = |port: &OutputPort| port.declared.filter(|ty| *ty != ElementType::Dynamic).filter(|_| !is_stale);
        let declared = layer.outputs().iter().map(trusted).collect();
        Some(Case { scope, layer, operation, ports, tensors, declared })
    }

    /// Infers the layer with inputs of these types.
    pub(super) fn ask(&mut self, case: &Case, ports: &[OutputPort]) -> Result<Outputs, Fault> {
        let Scope { graph, probe, .. } = &mut self.scopes[case.scope];
        let &Case { layer, operation, .. } = case;
        let values = AttributeValues::of(layer, operation);
        let subject = Subject { graph, layer, operation, values: &values, given: None };
        probe.ask(&subject, &ports.iter().collect::<Vec<_>>())
    }

    /// Infers the layer as [`ask`](Self::ask) does, after one group of inputs got another type.
    pub(super) fn ask_with(&mut self, case: &Case, group: &[usize], to: ElementType) -> Result<Outputs, Fault> {
        let mut ports = case.ports.clone();
        for &input in group {
            ports[input].element_type = to;
        }
        self.ask(case, &ports)
    }

    /// Checks a layer that accepts its inputs: another input type may give it the declared outputs.
    pub(super) fn reconsider(&mut self, case: &Case, outputs: &Outputs, follows: bool) -> Verdict {
        if case.operation.tied_when_run
            && let Some(group) = case.groups().into_iter().find(|group| case.disagree(group))
        {
            return match self.type_of_data(case, &group) {
                Some(to) => Verdict::Give(Choice {
                    group,
                    to,
                    ground: "OpenVINO computes it in the type of its data".to_owned(),
                }),
                None => self.decide(case, &Fault::types(&group, "")),
            };
        }
        if follows || case.matches(outputs) {
            return Verdict::Leave;
        }
        let is_relaxed = self.known.relaxed.contains(&(self.scopes[case.scope].place.clone(), case.layer.id()));
        for group in case.groups() {
            let tensors: HashSet<_> = case.sources(&group).collect();
            // A constant or Convert with the same type as another input shows that the declaration of the port is
            // outdated.
            let scope = &self.scopes[case.scope];
            let says_type =
                |&tensor: &Output| scope.is_of(tensor, LayerKind::Constant) || scope.is_of(tensor, LayerKind::Convert);
            if tensors.len() > 1 && tensors.iter().any(says_type) && !is_relaxed && !case.disagree(&group) {
                continue;
            }
            for to in case.declared_types() {
                let permits = tensors.iter().all(|&tensor| self.scopes[case.scope].permits(tensor, to));
                if permits && self.ask_with(case, &group, to).is_ok_and(|outputs| case.matches(&outputs)) {
                    let ground = format!("the file declares {to} for its output");
                    return Verdict::Give(Choice { group, to, ground });
                }
            }
        }
        Verdict::Leave
    }

    /// The type of the first input of a group, if it holds all values of the others.
    fn type_of_data(&self, case: &Case, group: &[usize]) -> Option<ElementType> {
        let types = group.iter().map(|&input| case.ports.get(input).map(OutputPort::element_type));
        let (types, scope) = (types.collect::<Option<Vec<_>>>()?, &self.scopes[case.scope]);
        let to = *types.first().filter(|_| group.contains(&0))?;
        let fits = types.iter().all(|&from| from == to || fidelity(from, to).is_some_and(Fidelity::is_exact))
            && case.sources(group).all(|tensor| scope.permits(tensor, to));
        fits.then_some(to)
    }

    /// Chooses types for a layer that does not accept its inputs.
    pub(super) fn decide(&mut self, case: &Case, fault: &Fault) -> Verdict {
        if kind(case.layer) == LayerKind::ConvertPromoteTypes {
            // An attribute of the layer forbids the promotion, as its author wants.
            return Verdict::Leave;
        }
        let groups = case.groups();
        let found = groups.iter().find(|group| fault.inputs.iter().any(|input| group.contains(input)));
        let found = found.or_else(|| groups.iter().find(|group| case.disagree(group)));
        let Some(group) = found.cloned() else { return Verdict::Leave };
        let asked = group.iter().filter_map(|&input| case.layer.inputs().get(input)?.declared);
        let asked = asked.filter(|&ty| ty != ElementType::Dynamic);
        let is_stale = self.is_stale((case.scope, case.layer.id()));
        let asked = asked.filter(|_| !is_stale).chain(fault.wants);
        let given = group.iter().filter_map(|&input| Some(case.ports.get(input)?.element_type()));
        let mentioned: Vec<_> = asked.chain(given).filter(|&ty| ty != ElementType::Dynamic).collect();
        let mut trials: Vec<GroupTrial> = Vec::new();
        for to in case.declared_types().into_iter().chain(mentioned.iter().copied()) {
            if trials.iter().all(|trial| trial.to != to) {
                trials.push(self.try_type(case, &group, to));
            }
        }
        let fitting = |fit: TypeFit, permitted: bool| {
            let fits = trials.iter().filter(move |trial| trial.fit == fit && trial.permitted == permitted);
            let (mut named, others): (Vec<_>, Vec<_>) = fits.partition(|trial| mentioned.contains(&trial.to));
            if named.is_empty() {
                named = others;
            }
            named.into_iter().cloned().collect::<Vec<GroupTrial>>()
        };
        let as_declared = fitting(TypeFit::AsDeclared, true);
        let forbidden = fitting(TypeFit::AsDeclared, false);
        let options =
            if as_declared.is_empty() && forbidden.is_empty() { fitting(TypeFit::Taken, true) } else { as_declared };
        if let [option] = &options[..] {
            let to = option.to;
            let ground = match case.declared_types().contains(&to) {
                true => format!("the file declares {to} for its output"),
                false if fault.wants == Some(to) => fault.message.to_string(),
                false => format!("the layer accepts only {to}"),
            };
            return Verdict::Give(Choice { group, to, ground });
        }
        if !options.is_empty() {
            return self.weigh(case, group, &options);
        }
        match (forbidden.first(), fitting(TypeFit::Further, true).first()) {
            (Some(trial), _) => Verdict::Refuse(Choice { group, to: trial.to, ground: String::new() }),
            (None, Some(trial)) => {
                let ground = format!("the layer accepts only {}", trial.to);
                Verdict::Give(Choice { group, to: trial.to, ground })
            }
            (None, None) => Verdict::Leave,
        }
    }

    fn try_type(&mut self, case: &Case, group: &[usize], to: ElementType) -> GroupTrial {
        let scope = &self.scopes[case.scope];
        let survives = |tensor| group.len() > 1 && self.survives(case.scope, tensor, to);
        let permitted = case.sources(group).all(|tensor| scope.permits(tensor, to) || survives(tensor));
        let answer = self.ask_with(case, group, to);
        let fit = match &answer {
            Ok(outputs) if case.matches(outputs) => TypeFit::AsDeclared,
            Ok(_) => TypeFit::Taken,
            Err(next) if next.inputs.iter().all(|input| !group.contains(input)) => TypeFit::Further,
            Err(_) => TypeFit::Refused,
        };
        let makes = answer.unwrap_or_default().into_iter().map(|output| output.element_type).collect();
        GroupTrial { to, permitted, fit, makes }
    }

    fn survives(&self, scope: usize, tensor: Output, to: ElementType) -> bool {
        let constant = self.scopes[scope].graph.layer(tensor.layer).filter(|layer| kind(layer) == LayerKind::Constant);
        constant.is_some_and(|constant| conversion::survives(constant, &self.model.weights, to))
    }

    /// Chooses one of several possible types. If the outputs do not depend on the choice, it is deferred. Otherwise
    /// the most frequent type of the inputs is chosen, where constants count less. OpenVINO's rules decide between
    /// equally frequent ones.
    fn weigh(&mut self, case: &Case, group: Vec<usize>, options: &[GroupTrial]) -> Verdict {
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
            [to] => {
                (to, format!("most of these inputs have type {to}, and constants get the type of the other inputs"))
            }
            _ => {
                let common = leading.iter().copied().try_fold(leading[0], wider).filter(|to| leading.contains(to));
                let to = common.unwrap_or(leading[0]);
                (to, format!("the declared types permit several types, and OpenVINO's rules give {to}"))
            }
        };
        Verdict::Give(Choice { group, to, ground })
    }

    pub(super) fn give(&mut self, case: &mut Case, choice: &Choice) {
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

    /// Reports that floating-point numbers would have to become integers.
    pub(super) fn refuse(&mut self, case: &Case, choice: &Choice) {
        let scope = &self.scopes[case.scope];
        let to = choice.to;
        let floats: Vec<usize> =
            choice.group.iter().filter(|input| case.ports[**input].element_type().is_float()).copied().collect();
        let message = message!(
            "`{}` would need {} as {}, but floating-point numbers are not converted to integers or booleans automatically";
            case.layer.ty(), Text(scope.origins(case.sources(&floats))), to
        );
        let fault = Fault { inputs: floats.into(), ..Fault::types(&[], message) };
        let fault =
            Fault { code: Code::NoCommonType, ..fault }.rule("the declared types of the file require this").help(
                message!("insert a Convert to {} if rounding is intended, or change the type of the other input"; to),
            );
        self.refusals.push(infer::diagnose(self.model.source(), &scope.place, scope.graph, case.layer.id(), &fault));
    }
}
