//! The door between inference and alignment: inputs that are inferred as if Converts gave them other types.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Walk;
use super::alignment::Alignments;
use crate::model::graph::{Body, Layer, LayerId, OutputPort};
use crate::ops::{Fault, Outputs, Subject};

/// Gives inputs other types while inference goes through a model. What it is asked is about the graph that inference is in:
/// the model's own at first, then the body that was entered last.
pub(crate) trait Retyper {
    /// Inference goes into a body of a layer.
    fn enter(&mut self, owner: LayerId, at: usize);

    /// Inference comes out of that body, which it went through by itself or with what it is given from outside.
    fn leave(&mut self, by_itself: bool);

    /// Which inputs got which type.
    fn alignments(&self) -> &Alignments;

    /// Which inputs got which type in a body of a layer, when inference last went through it.
    fn alignments_of(&self, owner: LayerId, at: usize) -> Option<&Alignments>;

    /// Whether inputs of a layer can get other types before its rule is asked.
    fn prepares(&self, subject: &Subject, inputs: &[&OutputPort]) -> bool;

    /// Plans other types for inputs before the rule of their layer is asked.
    fn prepare(&mut self, subject: &Subject, inputs: &[&OutputPort]);

    /// Plans other types for inputs because of what the rule refuses, and returns whether there was anything to change.
    ///
    /// # Errors
    /// What is wrong with the inputs, if that cannot be repaired.
    fn repair(&mut self, subject: &Subject, inputs: &[&OutputPort], fault: &Fault) -> Result<bool, Fault>;

    /// The type that a Parameter of the body got instead of its own.
    fn parameter_type(&self, parameter: &Layer) -> Option<ElementType>;

    /// How many times Parameters of any bodies got another type so far.
    fn retyped_parameters(&self) -> usize;

    /// Plans one type for each input of a layer and the Parameters of its bodies that it goes to, if the bodies need it:
    /// something is wrong with the layer or in them (`is_wrong`), or was repaired. Returns whether any types differed.
    ///
    /// # Errors
    /// The input and the Parameters have no common type.
    fn tie_parameters(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &[Body],
        is_wrong: bool,
    ) -> Result<bool, Fault>;

    /// Plans a common type for Results in two bodies of a layer.
    fn tie_results(&mut self, owner: &Layer, bodies: &[Body], results: [(usize, LayerId); 2]) -> Option<ElementType>;
}

impl Walk<'_> {
    /// What the rule of a layer gives, with other types for inputs that need them.
    pub(super) fn apply(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &mut [Body],
    ) -> Result<Outputs, Fault> {
        let retyped = self.retyper.as_ref().map_or(0, |retyper| retyper.retyped_parameters());
        let mut outputs = self.attempt(subject, inputs, bodies);
        let is_wrong = outputs.is_err()
            || self.retyper.as_ref().is_some_and(|retyper| retyper.retyped_parameters() > retyped)
            || (0..bodies.len()).any(|at| self.run(subject.layer, at).failed());
        if !bodies.is_empty()
            && let Some(retyper) = &mut self.retyper
            && retyper.tie_parameters(subject, inputs, bodies, is_wrong)?
        {
            self.runs_inside(subject.layer.id).iter().for_each(|body| drop(self.runs.remove(body)));
            self.infer_bodies(subject.layer, bodies)?;
            outputs = self.attempt(subject, inputs, bodies);
        }
        let mut outputs = outputs?;
        let retyped = self.retyper.as_ref().and_then(|retyper| retyper.parameter_type(subject.layer));
        if let Some((output, ty)) = outputs.first_mut().zip(retyped) {
            output.element_type = ty;
        }
        Ok(outputs)
    }

    /// Applies the rule of a layer, and again to inputs of other types while it refuses and they can be changed.
    fn attempt(&mut self, subject: &Subject, inputs: &[&OutputPort], bodies: &mut [Body]) -> Result<Outputs, Fault> {
        let start = self.scope.diagnostics.len();
        let id = subject.layer.id;
        if self.retyper.as_ref().is_some_and(|retyper| retyper.prepares(subject, inputs))
            && self.is_read(subject.graph, id)
            && let Some(retyper) = &mut self.retyper
        {
            retyper.prepare(subject, inputs);
        }
        // The tied inputs, and then one input or group a round.
        let mut rounds = inputs.len() + 1;
        let mut found_before = Vec::new();
        loop {
            let retyped = self.retyped(id, inputs);
            let mut taken: SmallVec<[&OutputPort; 4]> = inputs.into();
            for (at, port) in &retyped {
                taken[*at] = port;
            }
            let outputs = subject.infer(&taken, bodies, self);
            // What was evaluated on the way is not found a second time, what the rule itself says is.
            found_before.retain(|diagnostic| !self.scope.diagnostics[start..].contains(diagnostic));
            self.scope.diagnostics.append(&mut found_before);
            let fault = match outputs {
                Err(fault) => fault,
                outputs => return outputs,
            };
            let repaired = self.is_read(subject.graph, id)
                && match &mut self.retyper {
                    Some(retyper) => retyper.repair(subject, inputs, &fault)?,
                    None => false,
                };
            if !repaired || rounds == 0 {
                return Err(fault);
            }
            rounds -= 1;
            found_before = self.scope.diagnostics.split_off(start);
        }
    }

    /// The inputs of a layer that got another type, by position, as they are after their Converts.
    fn retyped(&self, layer: LayerId, inputs: &[&OutputPort]) -> SmallVec<[(usize, OutputPort); 2]> {
        let types = self.retyped_inputs(layer).iter();
        let port = |&(at, element_type): &(usize, ElementType)| {
            let &port = inputs.get(at)?;
            Some((at, OutputPort { element_type, ..port.clone() }))
        };
        types.filter_map(port).collect()
    }

    /// The positions of the inputs of a layer that got another type, with that type.
    pub(super) fn retyped_inputs(&self, layer: LayerId) -> &[(usize, ElementType)] {
        let planned = self.retyper.as_ref().and_then(|retyper| retyper.alignments().get(&layer));
        planned.map_or(&[], |alignment| &alignment.inputs)
    }

    /// Does without other types for what OpenVINO drops, and all that is in it.
    pub(super) fn without_retyping<T>(&mut self, infer: impl FnOnce(&mut Self) -> T) -> T {
        let retyper = self.retyper.take();
        let inferred = infer(self);
        self.retyper = retyper;
        inferred
    }
}
