//! Types that must agree between a layer and its bodies: its inputs with Parameters, and Results of its branches.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use smallvec::SmallVec;
use typelift_promote::{Category, ElementType, Operand, PromotedAs, RuleSet};

use super::group::{common_type, operand, other_rules};
use super::{Aligner, Retyped};
use crate::findings::{Code, Text, message};
use crate::infer::{Alignment, Alignments};
use crate::model::graph::{Body, Direction, Layer, LayerId, OutputPort, Place, PortMapEntry};
use crate::ops::{Fault, Subject};

impl Aligner {
    /// The type that was chosen for a Parameter of a body instead of its own.
    pub(super) fn retyped_as(&self, body: &Place, parameter: LayerId) -> Option<ElementType> {
        self.retyped.get(&(body.clone(), parameter)).map(|retyped| retyped.types[1])
    }

    /// Two flags: true if bodies of the layer were changed, and true if OpenVINO requires these changes.
    pub(super) fn repairs_inside(&self, layer: &Layer, bodies: &[Body]) -> (bool, bool) {
        let places = (0..bodies.len()).map(|at| self.scope.place.body(layer.id(), at));
        let alignments = places.flat_map(|place| [self.alone.get(&place), self.bodies.get(&place)]).flatten();
        let mut wanted = alignments.flat_map(Alignments::values).peekable();
        (wanted.peek().is_some(), wanted.any(|alignment| !alignment.optional))
    }

    /// Chooses one type for an input of a layer and the Parameters that it feeds. Returns true if they differed.
    /// OpenVINO does not require equal types. But it infers a body with the declared types of its Parameters, and then
    /// again with those of the inputs. A Convert in the body may be right for only one of these.
    ///
    /// # Errors
    /// The types, if the rules define no common type for them.
    pub(super) fn align_parameters(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &[Body],
    ) -> Result<bool, Fault> {
        let layer = subject.layer;
        let place = self.scope.place.clone();
        let mut alignment = Alignment::default();
        let mut differ = false;
        let mut entered = Vec::new();
        for (input, port) in inputs.iter().enumerate() {
            let mut reached = parameters(bodies, input);
            for (at, parameter, ty) in &mut reached {
                *ty = self.retyped_as(&place.body(layer.id(), *at), *parameter).unwrap_or(*ty);
            }
            let declared: SmallVec<[ElementType; 2]> = reached.iter().map(|parameter| parameter.2).collect();
            let outside = operand(subject.producer(input), port);
            let entrance = FedParameters { layer, input, given: port.element_type() };
            let Some((common, reason)) = entrance.common_type(&self.rules, outside, &declared)? else { continue };
            differ = true;
            if port.element_type() != common {
                alignment.inputs.push((input, common));
                alignment.because(format_args!("{reason}"));
            }
            for (at, parameter, declared) in reached.into_iter().filter(|&(.., declared)| declared != common) {
                let body = place.body(layer.id(), at);
                entered.push(Retyped { body, parameter, types: [declared, common], reason: reason.clone() });
            }
        }
        if differ {
            forget_inside(&mut self.alone, &place, layer.id());
            forget_inside(&mut self.bodies, &place, layer.id());
            entered.into_iter().for_each(|retyped| self.retype(retyped));
            self.scope.alignments.insert(layer.id(), alignment);
        }
        Ok(differ)
    }

    fn retype(&mut self, retyped: Retyped) {
        self.retypings += 1;
        match self.retyped.entry((retyped.body.clone(), retyped.parameter)) {
            Entry::Vacant(entry) => drop(entry.insert(retyped)),
            Entry::Occupied(mut entry) => {
                let first = entry.get_mut();
                first.types[1] = retyped.types[1];
                first.reason += &format!("; {}", retyped.reason);
            }
        }
    }

    /// Chooses the common type of two branches' Results, and converts their inputs to it. `None` if there is none.
    pub(super) fn align_results(
        &mut self,
        owner: &Layer,
        bodies: &[Body],
        results: [(usize, LayerId); 2],
    ) -> Option<ElementType> {
        let rules = self.rules;
        let mut operands = SmallVec::<[Operand; 2]>::new();
        for (body, result) in results {
            let graph = &bodies.get(body)?.graph;
            let source = graph.producer(result.input(0))?;
            operands.push(operand(graph.layer(source.layer), graph.output(source)?));
        }
        let types = [operands[0].element_type, operands[1].element_type];
        let mut reason = format!("If {} `{}` gives {} and {}: ", owner.id(), owner.name(), types[0], types[1]);
        let common = common_type(&rules, PromotedAs::Ordinary, &operands, &mut reason)
            .ok()
            .filter(|ty| ty.port_name().is_some())?;
        for ((body, result), _) in results.into_iter().zip(types).filter(|&(_, ty)| ty != common) {
            let inputs = SmallVec::from_iter([(0, common)]);
            let alignment = Alignment { inputs, reason: reason.clone(), optional: false };
            self.bodies.entry(self.scope.place.body(owner.id(), body)).or_default().insert(result, alignment);
        }
        Some(common)
    }
}

/// Input of a layer, and the Parameters of its bodies that it feeds.
struct FedParameters<'a> {
    layer: &'a Layer,
    input: usize,
    given: ElementType,
}

impl FedParameters<'_> {
    /// `None` if they agree, or if one is unknown.
    ///
    /// # Errors
    /// The types, if the rules define no common type for them.
    fn common_type(
        &self,
        rules: &RuleSet,
        outside: Operand,
        declared: &[ElementType],
    ) -> Result<Option<(ElementType, String)>, Fault> {
        let &Self { layer: layer @ Layer { id, name, .. }, input, given } = self;
        let ty = layer.ty();
        let category = if outside.is_number() { Category::ZeroDim } else { outside.category };
        let mut operands = vec![outside];
        for &element_type in declared {
            if operands.iter().all(|operand| operand.element_type != element_type) {
                operands.push(Operand::new(element_type, category));
            }
        }
        if operands.len() == 1 || operands.iter().any(|operand| operand.element_type == ElementType::Dynamic) {
            return Ok(None);
        }
        let declared: Vec<_> = operands[1..].iter().map(|operand| operand.element_type.to_string()).collect();
        let declared = declared.join(" and ");
        let mut reason = format!(
            "input {input} of {ty} {id} `{name}` has type {given}, but the Parameter in its body has {declared}: "
        );
        let common = common_type(rules, PromotedAs::Ordinary, &operands, &mut reason);
        let common = common.map_err(|refusal| {
            let message = message!(
                "input {} of `{}` has type {}, but the Parameter in its body has {}: {}";
                input, ty, given, Text(declared), Text(refusal)
            );
            let fault = Fault { inputs: SmallVec::from_iter([input]), ..Fault::other(Code::NoCommonType, message) };
            let common = |other: &_| common_type(other, PromotedAs::Ordinary, &operands, &mut String::new()).ok();
            match other_rules(rules, true, common) {
                others if others.is_empty() => fault.help("convert one of the inputs first"),
                other_rules => Fault { other_rules: other_rules.into(), ..fault },
            }
        })?;
        Ok(Some((common, reason)))
    }
}

fn parameters(bodies: &[Body], input: usize) -> Vec<(usize, LayerId, ElementType)> {
    let mut found = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let enters =
            |entry: &&PortMapEntry| entry.direction == Direction::Input && entry.external_port_id == input as i64;
        for entry in body.port_map.iter().filter(enters) {
            let parameter = body.graph.layer(entry.internal_layer_id);
            let declared = parameter.and_then(|layer| layer.named_type("element_type"));
            found.extend(declared.map(|declared| (at, entry.internal_layer_id, declared)));
        }
    }
    found
}

/// Removes the chosen types in all bodies of a layer, at any depth. They are adjacent in the map.
fn forget_inside(wanted: &mut BTreeMap<Place, Alignments>, place: &Place, layer: LayerId) {
    let from_first = wanted.range(place.body(layer, 0)..).map(|(body, _)| body);
    let inside: Vec<Place> = from_first.take_while(|body| body.is_inside(place, layer)).cloned().collect();
    for body in &inside {
        wanted.remove(body);
    }
}
