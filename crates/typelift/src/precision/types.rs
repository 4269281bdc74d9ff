//! Changes of element types in a whole model: the new types of each layer's inputs and outputs.

use smallvec::SmallVec;
use typelift_promote::{ElementType, fidelity};

use super::plan::{Action, Constant, Loss, Plan, Reason};
use super::{Kept, TypeMap};
use crate::base::hash::{HashMap, HashSet};
use crate::edit::precision_marks::Marks;
use crate::infer::Probe;
use crate::model::graph::{Graph, Input, Layer, LayerId, Model, Output, OutputPort, Place};
use crate::ops::values::conversion::Audit;
use crate::ops::{self, AttributeValues, LayerKind, Operation, Outputs, Subject};
use crate::promotion::passes::{self, Change, PassError};

/// Change of element types in a whole model, except in some layers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retyping {
    pub(crate) types: TypeMap,
    pub(crate) kept: Kept,
    /// True if the inputs and outputs of the model keep their types, and also variables with a declared type.
    pub(crate) keep_io: bool,
}

/// Reason why a layer keeps a type that should change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exception {
    /// The layer is to be kept, is an end of the model or a variable that is to be kept, is unknown, or is a Convert
    /// that would no longer round.
    Kept,
    /// It is a constant with a precision mark.
    Marked,
    /// The operation does not support the new types, or its results have other types.
    Refused,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RetypingPlan {
    pub(super) types: TypeMap,
    pub(super) graphs: Vec<GraphPlan>,
}

#[derive(Clone, Debug)]
pub(super) struct GraphPlan {
    pub(super) place: Place,
    /// Attributes that name another type; for a constant also its element type.
    pub(super) attributes: Vec<(LayerId, &'static str, ElementType)>,
    pub(super) borders: Vec<Border>,
    exceptions: Vec<(LayerId, Exception)>,
}

/// Input whose new type differs from that of its tensor, so that it needs a Convert.
#[derive(Clone, Copy, Debug)]
pub(super) struct Border {
    pub(super) tensor: Output,
    pub(super) input: Input,
    /// The new type of the tensor.
    pub(super) from: ElementType,
    /// The new type of the input.
    pub(super) to: ElementType,
}

#[derive(Debug)]
struct LayerPlan {
    /// Type of each input; `None` if the operation accepts any type.
    takes: SmallVec<[Option<ElementType>; 3]>,
    makes: SmallVec<[ElementType; 2]>,
    attributes: SmallVec<[(&'static str, ElementType); 1]>,
    exception: Option<Exception>,
}

impl Retyping {
    /// Computes the new types of each layer of an inferred model.
    ///
    /// An operation that does not support the new types keeps its types.
    pub(crate) fn plan(&self, model: &Model) -> RetypingPlan {
        self.plan_with(model, true)
    }

    /// Plans the change of a model. If promotions keep layers from it, these are replaced by Converts, unless the
    /// layers after them can take the result type of the promotion, as in OpenVINO's pass.
    pub(crate) fn plan_and_lower(
        &self,
        model: &mut Model,
        is_traced: bool,
    ) -> Result<(RetypingPlan, Vec<Change>), PassError> {
        let plan = self.plan(model);
        let promotions = plan.promotions(model);
        if promotions.is_empty() {
            return Ok((plan, Vec::new()));
        }
        let following = self.plan_with(model, false);
        if following.apply(&mut model.clone()).is_ok() {
            return Ok((following, Vec::new()));
        }
        let changes = passes::lower(model, &promotions, is_traced)?;
        Ok((self.plan(model), changes))
    }

    /// Computes the new types as [`plan`](Self::plan) does. With `asks_promotions` false, the result types of
    /// promotions are not computed here, but when the plan is applied.
    pub(crate) fn plan_with(&self, model: &Model, asks_promotions: bool) -> RetypingPlan {
        let mut plan = RetypingPlan { types: self.types.clone(), graphs: Vec::new() };
        let changes = |port: &OutputPort| self.types.of(port.element_type()) != port.element_type();
        if !model.walk().any(|(_, graph)| graph.unordered().any(|layer| layer.outputs().iter().any(changes))) {
            return plan;
        }
        let kept = self.kept.with_promotions(model);
        let variables = self.kept_variables(model);
        let mut whole = Vec::<(Place, LayerId)>::new();
        for (place, graph) in model.walk() {
            if whole.iter().any(|(outer, owner)| place.is_inside(outer, *owner)) {
                continue;
            }
            let probe = Probe::new(model.weights());
            let variables = &variables;
            let (retyping, kept) = (self, &kept);
            let mut planner =
                Planner { retyping, kept, asks_promotions, model, graph, place: &place, variables, probe };
            let layers = graph.layers().filter_map(|layer| Some((layer.id(), planner.plan(layer)?)));
            let mut layers = layers.collect();
            leave_borders(graph, &mut layers);
            let owners = graph.owners().filter(|owner| self.kept.covers_whole(&place, owner.id()));
            whole.extend(owners.map(|owner| (place.clone(), owner.id())));
            plan.graphs.push(GraphPlan::new(graph, place, layers));
        }
        plan
    }

    fn kept_variables(&self, model: &Model) -> HashSet<String> {
        let mut variables = HashSet::default();
        for (place, graph) in model.walk() {
            for layer in graph.unordered() {
                let is_kept = self.kept.covers(&place, layer.id())
                    || self.keep_io && layer.operation().is_some_and(|row| row.type_attributes().next().is_some());
                let name = layer
                    .attribute("variable_id")
                    .filter(|_| is_kept && [LayerKind::ReadValue, LayerKind::Assign].contains(&ops::kind(layer)));
                variables.extend(name.map(str::to_owned));
            }
        }
        variables
    }
}

impl RetypingPlan {
    pub(crate) fn is_empty(&self) -> bool {
        self.graphs.is_empty()
    }

    pub(crate) fn changes_nothing(&self) -> bool {
        self.graphs.iter().all(|plan| plan.attributes.is_empty() && plan.borders.is_empty())
    }

    /// Promotions whose new result type is not the new type of their old one. For example, bf16 with f16 gives
    /// f32, which is mapped to f16.
    pub(crate) fn promotions(&self, model: &Model) -> Vec<(Place, Vec<LayerId>)> {
        let found = self.graphs.iter().filter_map(|plan| {
            let graph = model.graph_at(&plan.place)?;
            let refused = plan.exceptions.iter().filter(|(_, exception)| *exception == Exception::Refused);
            let promotions = refused.map(|(id, _)| *id).filter(|&id| graph.layer(id).is_some_and(ops::is_promotion));
            Some((plan.place.clone(), promotions.collect::<Vec<_>>())).filter(|(_, promotions)| !promotions.is_empty())
        });
        found.collect()
    }

    /// The plan for the constants whose type changes, with the loss of their values.
    pub(crate) fn constants(&self, model: &Model) -> Plan {
        let mut constants = Vec::new();
        for GraphPlan { place, attributes, exceptions, .. } in &self.graphs {
            let Some(graph) = model.graph_at(place) else { continue };
            let layer = |id| graph.layer(id).filter(|layer| ops::is_constant(layer));
            let kept = exceptions.iter().filter_map(|(id, exception)| {
                let layer = layer(*id)?;
                let to = self.types.of(layer.outputs().first()?.element_type());
                let reason = if *exception == Exception::Marked { Reason::Marked } else { Reason::Kept };
                Some((layer, to, Action::Keep(reason)))
            });
            let converted = attributes.iter().filter_map(|&(id, _, to)| Some((layer(id)?, to, Action::Convert)));
            for (layer, to, action) in converted.chain(kept) {
                let Some(mut constant) = Constant::of(place, graph, layer, to) else { continue };
                constant.loss =
                    Audit::stored(graph, layer, model.weights(), to).as_ref().map(Loss::from).unwrap_or_default();
                constants.push(Constant { action, ..constant });
            }
        }
        Plan { constants, ..Plan::default() }
    }
}

impl GraphPlan {
    /// The plan of a graph. Layers that are not in the list keep their types.
    fn new(graph: &Graph, place: Place, layers: Vec<(LayerId, LayerPlan)>) -> Self {
        let by_id: HashMap<_, _> = layers.iter().map(|(id, plan)| (*id, plan)).collect();
        let borders = graph.wires().filter_map(|(tensor, input)| {
            let was = graph.output(tensor)?.element_type();
            let from = by_id.get(&tensor.layer).map_or(Some(was), |plan| plan.makes.get(tensor.port).copied())?;
            let to = by_id.get(&input.layer).map_or(Some(was), |plan| plan.takes.get(input.port).copied().flatten())?;
            let is_known = from != ElementType::Dynamic && to != ElementType::Dynamic;
            (is_known && from != to).then_some(Border { tensor, input, from, to })
        });
        let borders = borders.collect();
        let attributes = layers.iter().flat_map(|(id, plan)| plan.attributes.iter().map(|&(name, ty)| (*id, name, ty)));
        let attributes = attributes.collect();
        let exceptions = layers.into_iter().filter_map(|(id, plan)| Some((id, plan.exception?))).collect();
        Self { place, attributes, borders, exceptions }
    }
}

struct Planner<'a> {
    retyping: &'a Retyping,
    /// Layers that keep their types, including promotions.
    kept: &'a Kept,
    asks_promotions: bool,
    model: &'a Model,
    graph: &'a Graph,
    place: &'a Place,
    variables: &'a HashSet<String>,
    probe: Probe,
}

type Types = SmallVec<[ElementType; 3]>;

impl Planner<'_> {
    /// The new types of a layer; `None` if it has no type that changes.
    fn plan(&mut self, layer: &Layer) -> Option<LayerPlan> {
        let takes: Types = self.graph.tensors(layer.id()).into_iter().map(OutputPort::element_type).collect();
        let makes: Types = layer.outputs().iter().map(OutputPort::element_type).collect();
        if takes.iter().chain(&makes).all(|&ty| self.retyping.types.of(ty) == ty) {
            return None;
        }
        let exception = self.exception(layer, &takes);
        if let Some(exception) = exception {
            let mut plan = same(&takes, &makes, Some(exception));
            // If the new type represents all values of the old one, the input needs no Convert back.
            let is_widened = takes.first().is_some_and(|&ty| is_exact(self.retyping.types.of(ty), ty));
            let converts = [LayerKind::Convert, LayerKind::ConvertLike].contains(&ops::kind(layer));
            if let Some(first) = plan.takes.first_mut().filter(|_| converts && is_widened) {
                *first = None;
            }
            return Some(plan);
        }
        let attributes = self.attributes(layer);
        let mapped = |types: &Types| types.iter().map(|&ty| self.retyping.types.of(ty)).collect::<Types>();
        let plan = LayerPlan {
            takes: mapped(&takes).into_iter().map(Some).collect(),
            makes: mapped(&makes).into_iter().collect(),
            attributes,
            exception: None,
        };
        Some(match ops::kind(layer) {
            LayerKind::Convert => LayerPlan { takes: plan.takes.iter().map(|_| None).collect(), ..plan },
            LayerKind::Other if layer.bodies().is_empty() => self.ask(layer, &takes, &makes, plan),
            LayerKind::ConvertPromoteTypes if self.asks_promotions => self.ask(layer, &takes, &makes, plan),
            _ => plan,
        })
    }

    /// The reason why a layer keeps its types, if it is known without inference.
    fn exception(&self, layer: &Layer, takes: &Types) -> Option<Exception> {
        let Retyping { types, keep_io, .. } = self.retyping;
        let is_of_model = self.place.is_model();
        let is_kept = match is_of_model || ![LayerKind::Parameter, LayerKind::Result].contains(&ops::kind(layer)) {
            true => self.kept.covers(self.place, layer.id()),
            false => self.kept.restricts_ends(self.place),
        };
        if is_kept {
            return Some(Exception::Kept);
        }
        match ops::kind(layer) {
            LayerKind::Parameter | LayerKind::Result if *keep_io && is_of_model => Some(Exception::Kept),
            LayerKind::ReadValue | LayerKind::Assign => {
                let variable = layer.attribute("variable_id").filter(|name| self.variables.contains(*name));
                variable.map(|_| Exception::Kept)
            }
            LayerKind::Constant if self.is_marked(layer) => Some(Exception::Marked),
            LayerKind::Convert | LayerKind::ConvertLike => {
                let to = layer.outputs().first()?.element_type();
                rounds(*takes.first()?, to, types.of(to)).then_some(Exception::Kept)
            }
            _ if layer.operation().is_none() && layer.bodies().is_empty() => Some(Exception::Kept),
            _ => None,
        }
    }

    fn is_marked(&self, constant: &Layer) -> bool {
        let Some(from) = constant.outputs().first().map(OutputPort::element_type) else { return false };
        let to = self.retyping.types.of(from);
        to.is_float() && !is_exact(from, to) && Marks::of(constant, self.model.version()).keeps_precision()
    }

    /// The attributes whose type changes. An omitted attribute is included if its default changes.
    fn attributes(&self, layer: &Layer) -> SmallVec<[(&'static str, ElementType); 1]> {
        let rows = layer.operation().into_iter().flat_map(Operation::output_type_attributes);
        let changed = rows.filter_map(|row| {
            let written = layer.attribute(row.name).or(row.default)?;
            let from = ElementType::from_name(written.trim())?;
            let to = self.retyping.types.of(from);
            (to != from).then_some((row.name, to))
        });
        changed.collect()
    }

    /// Infers a layer with its planned types. Returns as many of them as the operation supports: all, those of inputs,
    /// those of attributes, or none.
    fn ask(&mut self, layer: &Layer, takes: &Types, makes: &Types, plan: LayerPlan) -> LayerPlan {
        let new: Types = plan.takes.iter().copied().flatten().collect();
        let attempts = [(&new, &plan.attributes[..]), (&new, &[]), (takes, &plan.attributes[..])];
        let mut is_refused = false;
        for (takes, attributes) in attempts {
            if attributes.is_empty() && (is_refused || takes != &new) {
                continue;
            }
            match self.outputs(layer, takes, attributes) {
                Some(outputs) => {
                    let made: SmallVec<[ElementType; 2]> = outputs.iter().map(|output| output.element_type).collect();
                    let differs = made.iter().zip(&plan.makes).any(|(made, wanted)| made != wanted);
                    let exception = (is_refused || differs).then_some(Exception::Refused);
                    let takes = takes.iter().copied().map(Some).collect();
                    return LayerPlan { takes, makes: made, attributes: attributes.into(), exception };
                }
                None => is_refused = true,
            }
        }
        same(takes, makes, is_refused.then_some(Exception::Refused))
    }

    /// Infers a layer with these input types and attributes; `None` if the rule refuses them.
    fn outputs(&mut self, layer: &Layer, takes: &Types, attributes: &[(&'static str, ElementType)]) -> Option<Outputs> {
        let operation = layer.operation()?;
        let layer = with_attributes(layer, attributes);
        let tensors = self.graph.tensors(layer.id());
        let ports: Vec<_> =
            tensors.iter().zip(takes).map(|(port, &ty)| OutputPort::new(ty, port.shape().clone())).collect();
        let values = AttributeValues::checked(&layer, operation).ok()?;
        let subject = Subject { graph: self.graph, layer: &layer, operation, values: &values, given: None };
        self.probe.ask(&subject, &ports.iter().collect::<Vec<_>>()).ok()
    }
}

/// Keeps Converts that an earlier change inserted, and that would have no effect if all their consumers keep the type.
fn leave_borders(graph: &Graph, layers: &mut Vec<(LayerId, LayerPlan)>) {
    let by_id: HashMap<_, _> = layers.iter().map(|(id, plan)| (*id, plan)).collect();
    let is_border = |id: LayerId| {
        let convert = graph.layer(id).filter(|layer| ops::kind(layer) == LayerKind::Convert)?;
        let (source, old) = (graph.producer(id.input(0))?, convert.outputs().first()?.element_type());
        let new = by_id.get(&id)?.makes.first().copied()?;
        let made = by_id.get(&source.layer).and_then(|plan| plan.makes.get(source.port).copied());
        let is_noop = new != old && made.or_else(|| Some(graph.output(source)?.element_type()))? == new;
        let takes_old = |input: Input| {
            by_id.get(&input.layer).is_some_and(|plan| plan.takes.get(input.port).copied().flatten() == Some(old))
        };
        (is_noop && graph.consumers(id.output(0)).all(takes_old)).then_some(id)
    };
    let borders: HashSet<_> = layers.iter().filter_map(|(id, _)| is_border(*id)).collect();
    layers.retain(|(id, _)| !borders.contains(id));
}

fn same(takes: &Types, makes: &Types, exception: Option<Exception>) -> LayerPlan {
    LayerPlan {
        takes: takes.iter().copied().map(Some).collect(),
        makes: makes.iter().copied().collect(),
        attributes: SmallVec::new(),
        exception,
    }
}

fn rounds(from: ElementType, to: ElementType, new: ElementType) -> bool {
    new != to && !is_exact(from, to) && is_exact(to, new)
}

fn is_exact(from: ElementType, to: ElementType) -> bool {
    fidelity(from, to).is_some_and(|fidelity| fidelity.is_exact())
}

fn with_attributes(layer: &Layer, attributes: &[(&'static str, ElementType)]) -> Layer {
    let is_other = |name: &str| attributes.iter().any(|(other, _)| *other == name);
    let mut changed = layer.clone();
    changed.attributes = layer.attributes().iter().filter(|attribute| !is_other(attribute.name())).cloned().collect();
    attributes.iter().fold(changed, |layer, (name, ty)| layer.with_attribute(name, ty.name()))
}
