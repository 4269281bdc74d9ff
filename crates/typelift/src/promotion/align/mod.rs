//! Alignment: chooses other types for inputs so that the types of a model agree. The choice follows promotion rules
//! during inference, or the declared types of ports. It does not change the model; [`passes`](super::passes) inserts
//! the Converts.

mod bodies;
pub(crate) mod declared;
mod group;

use std::collections::BTreeMap;

use typelift_promote::{ElementType, PromotedAs, RuleSet};

use self::group::{Group, asks_for_indices, is_number, other_rules, permits, types};
use crate::findings::{Code, Diagnostic};
use crate::infer::{self, Alignment, Alignments, Retyper};
use crate::model::graph::{Body, Layer, LayerId, Model, OutputPort, Place};
use crate::model::weights::Weights;
use crate::ops::values::conversion;
use crate::ops::{Fault, Subject, is_constant};

/// Changes that make the types of a model agree.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) alignments: BTreeMap<Place, Alignments>,
    pub(crate) retyped: Vec<Retyped>,
    /// True if a body was last inferred with other types than the final ones, so that its types are outdated.
    pub(crate) is_outdated: bool,
}

/// Parameter of a body whose type changes.
pub(crate) struct Retyped {
    pub(crate) body: Place,
    pub(crate) parameter: LayerId,
    pub(crate) types: [ElementType; 2],
    pub(crate) reason: String,
}

/// Infers a model as if Converts gave inputs that must agree their common type by these rules. Returns all errors and
/// the changes.
pub(crate) fn infer_by_rules(model: &mut Model, rules: RuleSet) -> (Vec<Diagnostic>, Wanted) {
    let mut aligner = Aligner::new(rules, model.weights.clone());
    let diagnostics = infer::infer_as_retyped(model, &mut aligner);
    (diagnostics, aligner.finish())
}

/// Chooser of common input types during inference.
struct Aligner {
    rules: RuleSet,
    weights: Weights,
    scope: AlignedGraph,
    /// States of the surrounding graphs, outermost first.
    outer: Vec<AlignedGraph>,
    /// Changes in each body when inferred with the declared types of its own Parameters.
    alone: BTreeMap<Place, Alignments>,
    /// Changes in each body when inferred with the types of the layer's inputs.
    bodies: BTreeMap<Place, Alignments>,
    /// Parameters of bodies whose type changed, and the number of such changes.
    retyped: BTreeMap<(Place, LayerId), Retyped>,
    retypings: usize,
    /// True if a body must be valid both with its declared types and with those of the inputs.
    leaves_parameters: bool,
}

#[derive(Default)]
struct AlignedGraph {
    place: Place,
    alignments: Alignments,
}

impl Retyper for Aligner {
    fn enter(&mut self, owner: LayerId, at: usize) {
        let inner = AlignedGraph { place: self.scope.place.body(owner, at), alignments: Alignments::default() };
        self.outer.push(std::mem::replace(&mut self.scope, inner));
    }

    fn leave(&mut self, by_itself: bool) {
        let outer = self.outer.pop().unwrap_or_default();
        let AlignedGraph { place, alignments } = std::mem::replace(&mut self.scope, outer);
        if by_itself {
            self.alone.insert(place.clone(), alignments.clone());
        }
        self.bodies.insert(place, alignments);
    }

    fn alignments(&self) -> &Alignments {
        &self.scope.alignments
    }

    fn alignments_of(&self, owner: LayerId, at: usize) -> Option<&Alignments> {
        self.bodies.get(&self.scope.place.body(owner, at))
    }

    /// True if inputs may need other types although OpenVINO accepts them. PyTorch computes some operations only in
    /// floating point, and OpenVINO cannot run some operations that it reads.
    fn prepares(&self, subject: &Subject, inputs: &[&OutputPort]) -> bool {
        let first = inputs.first().map_or(ElementType::Dynamic, |port| port.element_type);
        let promoted_as = subject.operation.promoted_as;
        subject.operation.tied_when_run
            || match promoted_as {
                PromotedAs::FloatFunction => self.rules.works_on_floats(promoted_as, first),
                PromotedAs::Negation => is_number(first) && self.rules.takes_numbers_for_truth(),
                _ => false,
            }
    }

    fn prepare(&mut self, subject: &Subject, inputs: &[&OutputPort]) {
        if !self.scope.alignments.contains_key(&subject.layer.id)
            // An error is ignored here, because OpenVINO accepts the inputs as they are.
            && let Ok(Some(alignment)) = self.align(subject, inputs)
        {
            self.scope.alignments.insert(subject.layer.id, Alignment { optional: true, ..alignment });
        }
    }

    fn repair(&mut self, subject: &Subject, inputs: &[&OutputPort], fault: &Fault) -> Result<bool, Fault> {
        let known = self.scope.alignments.get(&subject.layer.id).cloned();
        let found = match &known {
            None if !asks_for_indices(fault, inputs) => self.align(subject, inputs)?,
            _ => None,
        };
        let alignment = match found {
            Some(alignment) => Some(alignment),
            None => self.convert(subject, inputs, fault, known.unwrap_or_default())?,
        };
        let Some(alignment) = alignment else { return Ok(false) };
        self.scope.alignments.insert(subject.layer.id, Alignment { optional: false, ..alignment });
        Ok(true)
    }

    fn parameter_type(&self, parameter: &Layer) -> Option<ElementType> {
        let is_parameter = !self.retyped.is_empty() && parameter.inputs().is_empty();
        is_parameter.then(|| self.retyped_as(&self.scope.place, parameter.id()))?
    }

    fn retyped_parameters(&self) -> usize {
        self.retypings
    }

    fn tie_parameters(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &[Body],
        is_wrong: bool,
    ) -> Result<bool, Fault> {
        let (is_repaired, is_needed) = self.repairs_inside(subject.layer, bodies);
        if !is_wrong && !is_repaired {
            return Ok(false);
        }
        match self.align_parameters(subject, inputs, bodies) {
            // OpenVINO's reader does not require these changes, only its plugins do.
            Err(_) if !is_wrong && !is_needed => {
                self.leaves_parameters = true;
                Ok(false)
            }
            tied => tied,
        }
    }

    fn tie_results(&mut self, owner: &Layer, bodies: &[Body], results: [(usize, LayerId); 2]) -> Option<ElementType> {
        self.align_results(owner, bodies, results)
    }
}

impl Aligner {
    fn new(rules: RuleSet, weights: Weights) -> Self {
        Self {
            rules,
            weights,
            scope: AlignedGraph::default(),
            outer: Vec::new(),
            alone: BTreeMap::new(),
            bodies: BTreeMap::new(),
            retyped: BTreeMap::new(),
            retypings: 0,
            leaves_parameters: false,
        }
    }

    fn finish(self) -> Wanted {
        let is_outdated = self.is_outdated();
        let mut alignments = self.alone;
        for (place, more) in self.bodies {
            alignments.entry(place).or_default().extend(more);
        }
        alignments.insert(self.scope.place, self.scope.alignments);
        let retyped = self.retyped.into_values().filter(|retyped| retyped.types[0] != retyped.types[1]);
        Wanted { alignments, retyped: retyped.collect(), is_outdated }
    }

    fn is_outdated(&self) -> bool {
        self.leaves_parameters
            || self.alone.iter().any(|(place, alignments)| {
                let last = self.bodies.get(place);
                alignments.iter().any(|(layer, alone)| {
                    let last = last.and_then(|last| last.get(layer));
                    last.is_none_or(|last| last.inputs != alone.inputs)
                })
            })
    }

    /// The new types of a layer's inputs that must agree or have the wrong kind of type; `None` if the error has
    /// another cause.
    ///
    /// # Errors
    /// Inputs for which the rules define no type that the operation accepts.
    fn align(&self, subject: &Subject, inputs: &[&OutputPort]) -> Result<Option<Alignment>, Fault> {
        let operands = group::operands(subject, inputs);
        let mut alignment = Alignment::default();
        for inputs in subject.operation.input_groups(&types(inputs)) {
            let group = Group { subject, operands: &operands, inputs: &inputs };
            let common = group.common_type(&self.rules).or_else(|why| {
                match group.type_by_values(&self.rules, |input, to| {
                    let constant = subject.producer(input).filter(|layer| is_constant(layer));
                    constant.is_some_and(|constant| conversion::survives(constant, &self.weights, to))
                }) {
                    Some(found) => Ok(Some(found)),
                    None => Err(group.fault(&self.rules, &why)),
                }
            });
            let Some((target, rule)) = common? else { continue };
            let is_other = |&input: &usize| ![target, ElementType::Dynamic].contains(&group.element_type(input));
            alignment.inputs.extend(inputs.iter().copied().filter(is_other).map(|input| (input, target)));
            alignment.because(format_args!("{}: {rule}", group.describe(&group.distinct())));
        }
        Ok((!alignment.inputs.is_empty()).then_some(alignment))
    }

    /// Adds new types: an input, and those that must agree with it, get the only type that the layer accepts. `None` if
    /// there is nothing to add.
    ///
    /// # Errors
    /// A conversion that could lose values, which the rules do not permit.
    fn convert(
        &self,
        subject: &Subject,
        inputs: &[&OutputPort],
        fault: &Fault,
        mut alignment: Alignment,
    ) -> Result<Option<Alignment>, Fault> {
        let Some(&wrong) = fault.inputs.first() else { return Ok(None) };
        let groups = subject.operation.input_groups(&types(inputs));
        let tied = groups.into_iter().find(|group| group.contains(&wrong)).unwrap_or_default();
        let operands = group::operands(subject, inputs);
        let group = Group { subject, operands: &operands, inputs: &tied };
        let Some(to) = fault.wants else {
            let other_rules = group.other_rules(&self.rules);
            return match fault.code {
                Code::UnsupportedType if !other_rules.is_empty() => {
                    Err(Fault { other_rules: other_rules.into(), help: None, ..fault.clone() })
                }
                _ => Ok(None),
            };
        };
        let given = |input: usize| inputs.get(input).map_or(ElementType::Dynamic, |port| port.element_type);
        let current = |input: usize| {
            let aligned = alignment.inputs.iter().find(|(aligned, _)| *aligned == input);
            aligned.map_or_else(|| given(input), |&(_, ty)| ty)
        };
        let changed: Vec<usize> =
            tied.iter().copied().filter(|&input| ![to, ElementType::Dynamic].contains(&current(input))).collect();
        let refused = |rules: &RuleSet| changed.iter().any(|&input| !permits(rules, given(input), to));
        if refused(&self.rules) {
            let other_rules = other_rules(&self.rules, false, |other| (!refused(other)).then_some(to));
            return Err(Fault { other_rules: other_rules.into(), ..fault.clone() });
        }
        if changed.is_empty() {
            return Ok(None);
        }
        for &input in &changed {
            alignment.inputs.retain(|(aligned, _)| *aligned != input);
            alignment.inputs.push((input, to));
        }
        alignment.because(format_args!("{}: {}", group.describe(&changed), fault.message));
        Ok(Some(alignment))
    }
}
