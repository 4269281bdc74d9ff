//! Which type inputs get that must agree and do not, or that an operation does not take as they are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;

use smallvec::SmallVec;
use typelift_promote::openvino::Attributes;
use typelift_promote::{Category, ElementType, Operand, Refusal, RuleSet, fidelity, pytorch};

use super::Walk;
use super::plan::{Alignment, Plan};
use super::scope::Run;
use crate::diagnostic::{Code, list};
use crate::graph::{Body, Direction, Layer, LayerId, OutputPort, Place, PortMapEntry};
use crate::loss;
use crate::ops::{Accepts, Fault, Operation, PromotedAs, Subject, is_constant};
use crate::weights::Weights;

/// Inputs by position, as they are after their Converts.
pub(super) type Aligned = SmallVec<[(usize, OutputPort); 2]>;

/// What has to happen to a model that was inferred as if it had happened.
#[derive(Default)]
pub(crate) struct Wanted {
    /// For the model and for each body.
    pub(crate) plans: BTreeMap<Place, Plan>,
    /// Parameters of bodies that are to have another type.
    pub(crate) retyped: Vec<Retyped>,
    /// Whether a body was last walked with something else than is wanted in it by itself, or with other types, so that its
    /// types need not be those that it gets.
    pub(crate) is_outdated: bool,
}

/// Gives inputs their common types while a graph is walked.
pub(crate) struct Aligner {
    rules: RuleSet,
    /// What is wanted in each body by itself, as OpenVINO reads it before it knows of anything around it.
    alone: BTreeMap<Place, Plan>,
    /// What was wanted in each body when it was last walked.
    bodies: BTreeMap<Place, Plan>,
    /// The Parameters of bodies that got another type.
    retyped: Vec<Retyped>,
    /// Whether a body is given other types than it declares, and both must be valid.
    leaves_entrances: bool,
}

/// A Parameter of a body that got another type.
pub(crate) struct Retyped {
    pub(crate) body: Place,
    pub(crate) parameter: LayerId,
    pub(crate) types: [ElementType; 2],
    pub(crate) reason: String,
}

impl Subject<'_> {
    pub(super) fn producer(&self, input: usize) -> Option<&Layer> {
        self.graph.feeds(self.layer.id).get(input).copied().flatten().map(|(layer, _)| layer)
    }

    /// What the promotion rules see of its inputs.
    fn operands(&self, inputs: &[&OutputPort]) -> Vec<Operand> {
        // The ranges of a FakeQuantize are not numbers that follow a tensor: narrower ones would quantize differently.
        let in_full = self.operation.is_tied_when_run();
        let category =
            |category| if in_full && category != Category::UnknownRank { Category::Dimensioned } else { category };
        let operands = inputs.iter().enumerate().map(|(input, port)| operand(self.producer(input), port));
        operands.map(|operand| Operand { category: category(operand.category), ..operand }).collect()
    }

    /// Where the types of these inputs come from: ``f16 from `a` and i64 from `w` ``.
    fn origins(&self, operands: &[Operand], inputs: &[usize]) -> String {
        let origin = |&input: &usize| {
            let name = self.producer(input).map(Layer::name).unwrap_or_default();
            Some(format!("{} from `{name}`", operands.get(input)?.element_type))
        };
        list(inputs.iter().filter_map(origin).collect(), "and")
    }
}

impl Aligner {
    pub(super) fn new(rules: RuleSet) -> Self {
        Self { rules, alone: BTreeMap::new(), bodies: BTreeMap::new(), retyped: Vec::new(), leaves_entrances: false }
    }

    /// Keeps what is wanted in a body after a walk through it.
    pub(super) fn keep(&mut self, place: Place, plan: Plan, alone: bool) {
        if alone {
            self.alone.insert(place.clone(), plan.clone());
        }
        self.bodies.insert(place, plan);
    }

    fn is_outdated(&self) -> bool {
        self.leaves_entrances
            || self.alone.iter().any(|(place, plan)| {
                let walked = self.bodies.get(place);
                plan.iter().any(|(layer, alone)| {
                    let walked = walked.and_then(|walked| walked.get(layer));
                    walked.is_none_or(|walked| walked.inputs != alone.inputs)
                })
            })
    }

    /// What was wanted in a body when it was last walked.
    pub(super) fn plan_of(&self, place: &Place) -> Option<&Plan> {
        self.bodies.get(place)
    }

    /// The type that a Parameter of a body got instead of its own.
    fn retyped_as(&self, body: &Place, parameter: LayerId) -> Option<ElementType> {
        let is_it = |retyped: &&Retyped| retyped.parameter == parameter && retyped.body == *body;
        self.retyped.iter().rev().find(is_it).map(|retyped| retyped.types[1])
    }

    /// What is wanted in the model, whose own plan this is, and in its bodies.
    pub(super) fn finish(self, plan: Plan) -> Wanted {
        let is_outdated = self.is_outdated();
        let mut plans = self.alone;
        for (place, plan) in self.bodies {
            plans.entry(place).or_default().extend(plan);
        }
        plans.insert(Place::default(), plan);
        let mut retyped = BTreeMap::<_, Retyped>::new();
        for next in self.retyped {
            match retyped.entry((next.body.clone(), next.parameter)) {
                Entry::Vacant(entry) => drop(entry.insert(next)),
                Entry::Occupied(mut entry) => {
                    let first = entry.get_mut();
                    first.types[1] = next.types[1];
                    first.reason += &format!("; {}", next.reason);
                }
            }
        }
        let retyped = retyped.into_values().filter(|retyped| retyped.types[0] != retyped.types[1]);
        Wanted { plans, retyped: retyped.collect(), is_outdated }
    }

    /// Whether a layer gets inputs of other types although its rule takes those that it has: PyTorch has operations on
    /// floating point only, the frameworks negate truth values, and OpenVINO has operations that it reads and cannot run.
    pub(super) fn wants(&self, subject: &Subject, inputs: &[&OutputPort]) -> bool {
        let first = inputs.first().map_or(ElementType::Dynamic, |port| port.element_type);
        let promoted_as = subject.operation.promotion();
        subject.operation.is_tied_when_run()
            || match self.rules {
                RuleSet::PyTorch(_) if is_whole(first) && promoted_as == PromotedAs::FloatFunction => true,
                RuleSet::PyTorch(_) | RuleSet::Paddle(_) => is_number(first) && promoted_as == PromotedAs::Negation,
                _ => false,
            }
    }

    /// The inputs of a layer that must agree in type and do not, or are not of the kind that it takes; `None` where it is
    /// not that what is wrong.
    ///
    /// # Errors
    /// The rules give no type that the operation takes.
    fn align(&self, subject: &Subject, inputs: &[&OutputPort], weights: &Weights) -> Result<Option<Alignment>, Fault> {
        let operation = subject.operation;
        let operands = subject.operands(inputs);
        let mut alignment = Alignment::default();
        for inputs in operation.input_groups(&types(inputs)) {
            let group = Group { operation, operands: &operands, inputs: &inputs };
            let Layer { id, name, ty, .. } = subject.layer;
            let survives = |input, to| {
                let constant = subject.producer(input).filter(|layer| is_constant(layer));
                constant.is_some_and(|constant| loss::survives(constant, weights, to))
            };
            let common =
                group.common_type(&self.rules).or_else(|trouble| match group.type_by_values(&self.rules, survives) {
                    Some(found) => Ok(Some(found)),
                    None => Err(group.fault(&self.rules, ty, &trouble)),
                });
            let Some((target, rule)) = common? else { continue };
            let is_other = |&input: &usize| ![target, ElementType::Dynamic].contains(&group.element_type(input));
            alignment.inputs.extend(inputs.iter().copied().filter(is_other).map(|input| (input, target)));
            let origins = subject.origins(&operands, &group.distinct());
            alignment.because(format_args!("{ty} {id} `{name}` takes {origins}: {rule}"));
        }
        Ok((!alignment.inputs.is_empty()).then_some(alignment))
    }

    /// Adds to the alignment of a layer that an input, and what is tied to it, gets the one type in which the layer would
    /// take it, and returns whether there was anything to add.
    ///
    /// # Errors
    /// Values could be lost, and the rules do not allow that.
    fn convert(
        &self,
        subject: &Subject,
        inputs: &[&OutputPort],
        fault: &Fault,
        alignment: &mut Alignment,
    ) -> Result<bool, Fault> {
        let Some(&wrong) = fault.inputs.first() else { return Ok(false) };
        let operation = subject.operation;
        let groups = operation.input_groups(&types(inputs));
        let group = groups.into_iter().find(|group| group.contains(&wrong)).unwrap_or_default();
        let Some(to) = fault.wants else {
            let operands = subject.operands(inputs);
            let ways = Group { operation, operands: &operands, inputs: &group }.ways(&self.rules);
            return match ways.filter(|_| fault.code == Code::UnsupportedType) {
                Some(ways) => Err(fault.clone().help(ways)),
                None => Ok(false),
            };
        };
        let current = |input: usize| {
            let aligned = alignment.inputs.iter().find(|(aligned, _)| *aligned == input).map(|&(_, ty)| ty);
            aligned.or_else(|| Some(inputs.get(input)?.element_type)).unwrap_or(ElementType::Dynamic)
        };
        let is_other = |&input: &usize| ![to, ElementType::Dynamic].contains(&current(input));
        let changed: Vec<usize> = group.into_iter().filter(is_other).collect();
        let given = |input: usize| inputs.get(input).map_or(ElementType::Dynamic, |port| port.element_type);
        let refused = |rules: &RuleSet| changed.iter().any(|&input| !permits(rules, given(input), to));
        if refused(&self.rules) {
            let ways = ways(&self.rules, "it", |other| (!refused(other)).then_some(to));
            let help = fault.help.iter().map(ToString::to_string).chain(ways);
            return Err(fault.clone().help(help.collect::<Vec<_>>().join(", ")));
        }
        let Layer { id, name, ty, .. } = subject.layer;
        for &input in &changed {
            alignment.inputs.retain(|(aligned, _)| *aligned != input);
            alignment.inputs.push((input, to));
        }
        if !changed.is_empty() {
            let origins = subject.origins(&subject.operands(inputs), &changed);
            alignment.because(format_args!("{ty} {id} `{name}` takes {origins}: {}", fault.message));
        }
        Ok(!changed.is_empty())
    }
}

fn is_whole(ty: ElementType) -> bool {
    ty.is_integer() || ty == ElementType::Boolean
}

fn is_number(ty: ElementType) -> bool {
    ty.is_integer() || ty.is_float()
}

fn types(inputs: &[&OutputPort]) -> Vec<ElementType> {
    inputs.iter().map(|port| port.element_type).collect()
}

/// Whether a rule asks for indices, and gets anything but integers. Their common type with others does not count then.
fn asks_for_indices(fault: &Fault, inputs: &[&OutputPort]) -> bool {
    let given = fault.inputs.first().and_then(|&input| inputs.get(input));
    fault.wants.is_some_and(ElementType::is_integer) && given.is_some_and(|port| !port.element_type.is_integer())
}

/// Whether rules let a tensor be converted to a type that the operation alone asks for: where that keeps every value, where
/// OpenVINO's unsafe rules are chosen, or where PyTorch would store the one in a tensor of the other. Numbers never
/// become indices.
fn permits(rules: &RuleSet, from: ElementType, to: ElementType) -> bool {
    let allowed = |lossy: bool| fidelity(from, to).is_some_and(|fidelity| lossy || fidelity.is_exact());
    let becomes_index = to.is_integer() && !from.is_integer();
    !becomes_index
        && match rules {
            RuleSet::OpenVino(attributes) => allowed(attributes.promote_unsafe),
            RuleSet::PyTorch(_) => pytorch::can_cast(from, to),
            _ => allowed(false),
        }
}

/// What the promotion rules see of a tensor: a constant of rank 0 counts as a number.
fn operand(producer: Option<&Layer>, port: &OutputPort) -> Operand {
    let category = match port.shape.rank() {
        None => Category::UnknownRank,
        Some(0) if producer.is_some_and(is_constant) => Category::Number,
        Some(0) => Category::ZeroDim,
        Some(_) => Category::Dimensioned,
    };
    Operand { element_type: port.element_type, category }
}

impl Walk {
    /// Whether a layer is aligned before its rule is asked.
    pub(super) fn wants_alignment(&self, subject: &Subject, inputs: &[&OutputPort]) -> bool {
        let wants =
            |aligner: &Aligner| self.scope.plan.contains_key(&subject.layer.id) || aligner.wants(subject, inputs);
        self.aligner.as_ref().is_some_and(wants)
    }

    /// The inputs of a layer that the aligner gives another type, with that type: those that it found earlier, or else those
    /// that must agree, and then those that the rule asks for in its `fault`.
    pub(super) fn align(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        fault: Option<&Fault>,
    ) -> Result<Option<Aligned>, Fault> {
        if !self.is_read(subject.graph, subject.layer.id) {
            return Ok(None);
        }
        let Some(aligner) = self.aligner.as_mut() else { return Ok(None) };
        let known = self.scope.plan.get(&subject.layer.id).cloned();
        let found = match &known {
            None if fault.is_none_or(|fault| !asks_for_indices(fault, inputs)) => {
                aligner.align(subject, inputs, self.evaluator.weights())?
            }
            _ => None,
        };
        let is_new = found.is_some();
        let mut alignment = found.or(known).unwrap_or_default();
        let added = match fault {
            Some(fault) if !is_new => aligner.convert(subject, inputs, fault, &mut alignment)?,
            _ => false,
        };
        alignment.optional = fault.is_none() && (is_new || alignment.optional);
        if is_new || added {
            self.scope.plan.insert(subject.layer.id, alignment.clone());
        } else if fault.is_some() || alignment.inputs.is_empty() {
            return Ok(None);
        }
        let ports = alignment.inputs.iter().filter_map(|&(at, element_type)| {
            Some((at, OutputPort { element_type, ..OutputPort::clone(inputs.get(at)?) }))
        });
        Ok(Some(ports.collect()))
    }

    /// The inputs of a layer to which the aligner gave another type, with that type.
    pub(crate) fn aligned(&self, layer: LayerId) -> &[(usize, ElementType)] {
        self.scope.plan.get(&layer).map_or(&[], |alignment| &alignment.inputs)
    }

    /// The type that a layer of the graph being walked got instead of its own, where it is a Parameter of a body.
    pub(super) fn retyped_as(&self, layer: &Layer) -> Option<ElementType> {
        let aligner = self.aligner.as_ref().filter(|aligner| !aligner.retyped.is_empty() && layer.inputs.is_empty())?;
        aligner.retyped_as(&self.place().collect(), layer.id)
    }

    /// How many Parameters of bodies got another type so far.
    pub(super) fn retyped(&self) -> usize {
        self.aligner.as_ref().map_or(0, |aligner| aligner.retyped.len())
    }

    /// Whether bodies of a layer, which was inferred, were repaired or cannot be, and whether OpenVINO asks for that.
    pub(super) fn repairs_inside(&self, layer: &Layer, bodies: &[Body]) -> (bool, bool) {
        let Some(aligner) = &self.aligner else { return (false, false) };
        let outside: Place = self.place().collect();
        let (mut any, mut needed) = (false, false);
        for at in 0..bodies.len() {
            let place = outside.body(layer.id, at);
            let failed = self.runs.get(&place).is_some_and(Run::failed);
            let plans = [&aligner.alone, &aligner.bodies].into_iter().filter_map(|plans| plans.get(&place));
            let mut wanted = plans.flat_map(Plan::values).peekable();
            any |= failed || wanted.peek().is_some();
            needed |= failed || wanted.any(|alignment| !alignment.optional);
        }
        (any, needed)
    }

    /// Records that a body is given other types than it declares.
    pub(super) fn leave_entrances(&mut self) {
        if let Some(aligner) = &mut self.aligner {
            aligner.leaves_entrances = true;
        }
    }

    /// Gives inputs of a layer and the Parameters of its bodies that they go to one type, and returns whether any differed.
    /// OpenVINO does not ask for that, but it reads a body with the types that its Parameters declare, and most often
    /// once more with those that come in: what repairs the one need not repair the other.
    ///
    /// # Errors
    /// The rules give them no common type.
    pub(super) fn tie_entrances(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &mut [Body],
    ) -> Result<bool, Fault> {
        let place: Place = self.place().collect();
        let layer = subject.layer;
        let Some(aligner) = &mut self.aligner else { return Ok(false) };
        let mut alignment = Alignment::default();
        let mut differ = false;
        let mut entered = Vec::new();
        for (input, port) in inputs.iter().enumerate() {
            let mut reached = parameters(bodies, input);
            for (at, parameter, ty) in &mut reached {
                *ty = aligner.retyped_as(&place.body(layer.id, *at), *parameter).unwrap_or(*ty);
            }
            let declared: SmallVec<[ElementType; 2]> = reached.iter().map(|parameter| parameter.2).collect();
            let outside = operand(subject.producer(input), port);
            let entrance = Entrance { layer, input, given: port.element_type };
            let Some((common, reason)) = entrance.common_type(&aligner.rules, outside, &declared)? else { continue };
            differ = true;
            if port.element_type != common {
                alignment.inputs.push((input, common));
                alignment.because(format_args!("{reason}"));
            }
            for (at, parameter, declared) in reached.into_iter().filter(|&(.., declared)| declared != common) {
                let body = place.body(layer.id, at);
                entered.push(Retyped { body, parameter, types: [declared, common], reason: reason.clone() });
            }
        }
        aligner.retyped.extend(entered);
        if differ {
            self.scope.plan.insert(layer.id, alignment);
            let inside = |body: &Place| body.is_inside(&place, layer.id);
            aligner.alone.retain(|body, _| !inside(body));
            aligner.bodies.retain(|body, _| !inside(body));
            self.runs.retain(|body, _| !inside(body));
        }
        Ok(differ)
    }

    /// Gives the Results of two bodies of a layer the common type of what they take, and returns that type; `None` where
    /// nothing is aligned, or there is none.
    pub(crate) fn align_results(
        &mut self,
        owner: &Layer,
        bodies: &[Body],
        results: [(usize, LayerId); 2],
    ) -> Option<ElementType> {
        let rules = self.aligner.as_ref()?.rules;
        let mut operands = SmallVec::<[Operand; 2]>::new();
        for (body, result) in results {
            let graph = &bodies.get(body)?.graph;
            let source = graph.producer(result.input(0))?;
            operands.push(operand(graph.layer(source.layer), graph.output(source)?));
        }
        let mut reason = format!(
            "If {} `{}` gives {} and {}: ",
            owner.id, owner.name, operands[0].element_type, operands[1].element_type
        );
        let common = common_type(&rules, rules.ordinary_operation(), &operands, &mut reason)
            .ok()
            .filter(|ty| ty.port_name().is_some())?;
        for ((body, result), operand) in results.into_iter().zip(operands) {
            let place: Place = self.place().chain([(owner.id, body)]).collect();
            if operand.element_type != common {
                let inputs = SmallVec::from_iter([(0, common)]);
                self.aligner
                    .as_mut()?
                    .bodies
                    .entry(place)
                    .or_default()
                    .insert(result, Alignment { inputs, reason: reason.clone(), optional: false });
            }
        }
        Some(common)
    }
}

/// An input of a layer that goes into its bodies.
struct Entrance<'a> {
    layer: &'a Layer,
    input: usize,
    given: ElementType,
}

impl Entrance<'_> {
    /// The type that the tensor and the Parameters that declare these types get, and why; `None` where they have one type,
    /// or not all of them are known.
    ///
    /// # Errors
    /// The rules give them no common type.
    fn common_type(
        &self,
        rules: &RuleSet,
        outside: Operand,
        declared: &[ElementType],
    ) -> Result<Option<(ElementType, String)>, Fault> {
        let &Self { layer: Layer { id, name, ty, .. }, input, given } = self;
        let category = if outside.is_number() { Category::ZeroDim } else { outside.category };
        let mut operands = vec![outside];
        for &element_type in declared {
            if operands.iter().all(|operand| operand.element_type != element_type) {
                operands.push(Operand { element_type, category });
            }
        }
        if operands.len() == 1 || operands.iter().any(|operand| operand.element_type == ElementType::Dynamic) {
            return Ok(None);
        }
        let declared: Vec<_> = operands[1..].iter().map(|operand| operand.element_type.to_string()).collect();
        let declared = declared.join(" and ");
        let mut reason = format!("input {input} of {ty} {id} `{name}` is {given}, and its body takes {declared}: ");
        let common = common_type(rules, rules.ordinary_operation(), &operands, &mut reason);
        let common = common.map_err(|refusal| {
            let message = format!("input {input} of `{ty}` is {given}, and its body takes {declared}: {refusal}");
            let fault = Fault { inputs: SmallVec::from_iter([input]), ..Fault::other(Code::NoCommonType, message) };
            let common = |other: &_| common_type(other, other.ordinary_operation(), &operands, &mut String::new()).ok();
            let help = ways(rules, "them", common);
            fault.help(help.unwrap_or_else(|| "convert one of the inputs first".to_owned()))
        })?;
        Ok(Some((common, reason)))
    }
}

/// The Parameters of bodies that an input of their layer goes to, each with the position of its body and the type that it
/// declares.
fn parameters(bodies: &[Body], input: usize) -> Vec<(usize, LayerId, ElementType)> {
    let mut found = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let enters =
            |entry: &&PortMapEntry| entry.direction == Direction::Input && entry.external_port_id == input as i64;
        for entry in body.port_map.iter().filter(enters) {
            let parameter = body.graph.layer(entry.internal_layer_id);
            let declared = parameter.and_then(|layer| ElementType::from_name(layer.attribute("element_type")?));
            found.extend(declared.map(|declared| (at, entry.internal_layer_id, declared)));
        }
    }
    found
}

/// The options of the program under which `common` gives a type, each with what it makes of `them`.
fn ways(rules: &RuleSet, them: &str, common: impl Fn(&RuleSet) -> Option<ElementType>) -> Option<String> {
    let way = |(option, other)| Some(format!("`{option}` would make {them} {}", common(&other)?));
    let ways: Vec<_> = alternatives(rules).filter_map(way).collect();
    (!ways.is_empty()).then(|| ways.join(", "))
}

/// The common type of tensors; what leads to it is written to `reason`.
fn common_type(rules: &RuleSet, name: &str, operands: &[Operand], reason: &mut String) -> Result<ElementType, Refusal> {
    let mut steps = Vec::new();
    let found = rules.promote_all(name, operands, &mut |step| {
        let step = rules.describe(step).to_string();
        if !steps.contains(&step) {
            steps.push(step);
        }
    });
    let _ = write!(reason, "{} rules, {}", rules.name(), steps.join("; "));
    Ok(found?.unwrap_or(ElementType::Dynamic))
}

/// Inputs of one operation that must have one type, or one input that is tied to none.
struct Group<'a> {
    operation: &'static Operation,
    /// Every input of the layer.
    operands: &'a [Operand],
    /// The positions of those of the group.
    inputs: &'a [usize],
}

/// Why a group of inputs gets no common type.
enum Trouble {
    /// The rules refuse.
    Refused(Refusal),
    /// The rules give a type that the operation does not take.
    NotTaken(ElementType),
    /// It depends on a type or a rank that is not known.
    Unknown,
}

impl Group<'_> {
    /// The type that the operation works on under these rules, where it is not what the input has: floating point
    /// instead of integers, truth values instead of numbers.
    fn required(&self, rules: &RuleSet, ty: ElementType) -> Option<(ElementType, &'static str)> {
        let input = *self.inputs.first()?;
        let operation = self.operation;
        match rules {
            _ if is_whole(ty) && operation.takes_only_floats(input) => {
                Some((rules.default_float(), "the operation takes floating-point numbers only"))
            }
            RuleSet::PyTorch(_)
                if is_whole(ty) && operation.promotion() == PromotedAs::FloatFunction
                    || ty == ElementType::Boolean && operation.promotion() == PromotedAs::Division =>
            {
                Some((rules.default_float(), "pytorch does the operation on floating-point numbers only"))
            }
            RuleSet::PyTorch(_) | RuleSet::Paddle(_)
                if is_number(ty)
                    && (operation.accepted() == Accepts::Boolean || operation.promotion() == PromotedAs::Negation)
                    && operation.is_main(input) =>
            {
                Some((ElementType::Boolean, "the operation takes what is not zero for true"))
            }
            _ => None,
        }
    }

    /// The type that the inputs are to have, and the rule that says so; `None` where they are well as they are.
    fn common_type(&self, rules: &RuleSet) -> Result<Option<(ElementType, String)>, Trouble> {
        let required = |ty| self.required(rules, ty);
        let types = self.inputs.iter().map(|&input| self.element_type(input));
        let mut known = types.clone().filter(|&ty| ty != ElementType::Dynamic);
        if let Some((boolean, rule)) = known.clone().find_map(required).filter(|found| found.0 == ElementType::Boolean)
        {
            return Ok(Some((boolean, rule.to_owned())));
        }
        let Some(ty) = known.next() else { return Ok(None) };
        let agree = known.all(|other| other == ty);
        if agree && required(ty).is_none() {
            return Ok(None);
        }
        if !agree && types.into_iter().any(|ty| ty == ElementType::Dynamic) {
            return Err(Trouble::Unknown);
        }
        let mut rule = String::new();
        let mut common = ty;
        if !agree {
            let operands: SmallVec<[Operand; 4]> =
                self.inputs.iter().filter_map(|&input| self.operands.get(input).copied()).collect();
            common = common_type(rules, self.promotion_name(rules), &operands, &mut rule).map_err(Trouble::Refused)?;
        }
        if let Some((float, because)) = required(common) {
            let separator = if rule.is_empty() { "" } else { "; " };
            let _ = write!(rule, "{separator}{common} becomes {float}: {because}");
            common = float;
        }
        let main = self.inputs.first().is_some_and(|&input| self.operation.is_main(input));
        if common == ElementType::Dynamic {
            return Err(Trouble::Unknown);
        }
        if common.port_name().is_none() || main && !self.operation.accepted().takes(common) {
            return Err(Trouble::NotTaken(common));
        }
        Ok(Some((common, rule)))
    }

    /// The type that the inputs get where OpenVINO's safe rules refuse, because of values that a type can have: only constants
    /// change, and every value that they do have survives.
    fn type_by_values(
        &self,
        rules: &RuleSet,
        survives: impl Fn(usize, ElementType) -> bool,
    ) -> Option<(ElementType, String)> {
        let RuleSet::OpenVino(attributes) = rules else { return None };
        let unsafely = RuleSet::OpenVino(Attributes { promote_unsafe: true, ..*attributes });
        let (to, rule) = self.common_type(&unsafely).ok()??;
        let mut others = self.inputs.iter().filter(|&&input| self.element_type(input) != to);
        others.all(|&input| survives(input, to)).then(|| (to, format!("{rule}; every value of the constant survives")))
    }

    fn element_type(&self, input: usize) -> ElementType {
        self.operands.get(input).map_or(ElementType::Dynamic, |operand| operand.element_type)
    }

    /// The rule set's name for the way the operation promotes: true division for `Divide`, no booleans for differences,
    /// the ordinary way for all others.
    fn promotion_name(&self, rules: &RuleSet) -> &'static str {
        match (rules, self.operation.promotion()) {
            (RuleSet::PyTorch(_), PromotedAs::Division) => "div",
            (RuleSet::PyTorch(_), PromotedAs::Difference) => "sub",
            (RuleSet::Paddle(_), PromotedAs::Division) => "operator /",
            (rules, _) => rules.ordinary_operation(),
        }
    }

    /// The types of the inputs, each once: `f16 and f32`.
    fn types(&self) -> String {
        list(self.distinct().iter().map(|&input| self.element_type(input).to_string()).collect(), "and")
    }

    /// The first input of each type.
    fn distinct(&self) -> SmallVec<[usize; 2]> {
        let mut first = SmallVec::<[usize; 2]>::new();
        for &input in self.inputs {
            if !first.iter().any(|&seen| self.element_type(seen) == self.element_type(input)) {
                first.push(input);
            }
        }
        first
    }

    /// The options of the program with which the operation takes the inputs.
    fn ways(&self, rules: &RuleSet) -> Option<String> {
        let them = if self.inputs.len() > 1 { "them" } else { "it" };
        ways(rules, them, |other| Some(self.common_type(other).ok()??.0))
    }

    #[cold]
    fn fault(&self, rules: &RuleSet, ty: &str, trouble: &Trouble) -> Fault {
        let message = match trouble {
            Trouble::Refused(refusal) => refusal.to_string(),
            Trouble::NotTaken(common) => format!(
                "`{ty}` takes {}, and its inputs are {}, which make {common} under {} rules",
                self.operation.accepted().description(),
                self.types(),
                rules.name()
            ),
            Trouble::Unknown => {
                format!("the common type of the inputs of `{ty}` depends on a type or a rank that is not known")
            }
        };
        let help = self.ways(rules).unwrap_or_else(|| match trouble {
            Trouble::Unknown => "give the inputs of the model types and ranks".to_owned(),
            Trouble::Refused(_) | Trouble::NotTaken(_) => {
                "put a Convert before the input whose type should change".to_owned()
            }
        });
        let fault = Fault { inputs: self.distinct(), ..Fault::other(Code::NoCommonType, message) };
        fault.rule("these inputs must have one element type").help(help)
    }
}

/// The rules to choose instead, with the options of the program that choose them.
fn alternatives(rules: &RuleSet) -> impl Iterator<Item = (String, RuleSet)> {
    let unsafely = match rules {
        RuleSet::OpenVino(attributes) if !attributes.promote_unsafe => {
            Some(("--promote-unsafe".to_owned(), RuleSet::OpenVino(Attributes { promote_unsafe: true, ..*attributes })))
        }
        _ => None,
    };
    let name = rules.name();
    let others = RuleSet::for_models().filter(move |other| other.name() != name);
    let others = others.map(|other| (format!("--align {}", other.name()), other));
    unsafely.into_iter().chain(others)
}
