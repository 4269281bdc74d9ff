//! Interface between inference and the insertion of Converts: inference runs as if the Converts existed.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::Walk;
use super::alignment::Alignments;
use crate::model::graph::{Body, Layer, LayerId, OutputPort};
use crate::ops::{Fault, Outputs, Subject};

/// Source of changed input types during inference. The methods refer to the current graph: the model's own, or the
/// body that was entered last.
pub(crate) trait Retyper {
    /// Called when inference enters a body of a layer.
    fn enter(&mut self, owner: LayerId, at: usize);

    /// Called when inference leaves that body. `by_itself` is true if its Parameters kept their own types.
    fn leave(&mut self, by_itself: bool);

    fn alignments(&self) -> &Alignments;

    fn alignments_of(&self, owner: LayerId, at: usize) -> Option<&Alignments>;

    fn prepares(&self, subject: &Subject, inputs: &[&OutputPort]) -> bool;

    /// Chooses other types for inputs before the rule of their layer is applied.
    fn prepare(&mut self, subject: &Subject, inputs: &[&OutputPort]);

    /// Chooses other types for inputs that the rule does not accept. Returns false if no type can be changed.
    ///
    /// # Errors
    /// Inputs that cannot be aligned, with the reason.
    fn repair(&mut self, subject: &Subject, inputs: &[&OutputPort], fault: &Fault) -> Result<bool, Fault>;

    /// The type that a Parameter of the body has instead of its own.
    fn parameter_type(&self, parameter: &Layer) -> Option<ElementType>;

    fn retyped_parameters(&self) -> usize;

    /// Chooses one type for each input of a layer and the Parameters that it feeds. This is needed if the layer or a
    /// body has an error (`is_wrong`), or if inputs were converted there. Returns true if types differed.
    ///
    /// # Errors
    /// An input and its Parameters that have no common type.
    fn tie_parameters(
        &mut self,
        subject: &Subject,
        inputs: &[&OutputPort],
        bodies: &[Body],
        is_wrong: bool,
    ) -> Result<bool, Fault>;

    /// Chooses one type for the corresponding Results of two bodies.
    fn tie_results(&mut self, owner: &Layer, bodies: &[Body], results: [(usize, LayerId); 2]) -> Option<ElementType>;
}

impl Walk<'_> {
    /// Applies the rule of a layer, with other types for inputs that need them.
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

    /// Applies the rule of a layer. While the rule fails, changes input types and tries again.
    fn attempt(&mut self, subject: &Subject, inputs: &[&OutputPort], bodies: &mut [Body]) -> Result<Outputs, Fault> {
        let start = self.scope.diagnostics.len();
        let id = subject.layer.id;
        if self.retyper.as_ref().is_some_and(|retyper| retyper.prepares(subject, inputs))
            && self.is_read(subject.graph, id)
            && let Some(retyper) = &mut self.retyper
        {
            retyper.prepare(subject, inputs);
        }
        // The inputs that share a type with Parameters take a round, and so does each input.
        let mut rounds = inputs.len() + 1;
        let mut found_before = Vec::new();
        loop {
            let retyped = self.retyped(id, inputs);
            let mut taken: SmallVec<[&OutputPort; 4]> = inputs.into();
            for (at, port) in &retyped {
                taken[*at] = port;
            }
            let outputs = subject.infer(&taken, bodies, self);
            // Findings of computed values are not repeated in later rounds; those of the rule are.
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

    fn retyped(&self, layer: LayerId, inputs: &[&OutputPort]) -> SmallVec<[(usize, OutputPort); 2]> {
        let ports = self.retyped_inputs(layer).iter().filter_map(|&(at, element_type)| {
            let &port = inputs.get(at)?;
            Some((at, OutputPort { element_type, ..port.clone() }))
        });
        ports.collect()
    }

    pub(super) fn retyped_inputs(&self, layer: LayerId) -> &[(usize, ElementType)] {
        let planned = self.retyper.as_ref().and_then(|retyper| retyper.alignments().get(&layer));
        planned.map_or(&[], |alignment| &alignment.inputs)
    }

    /// Keeps the types of a layer that OpenVINO drops, and of its bodies.
    pub(super) fn without_retyping<T>(&mut self, infer: impl FnOnce(&mut Self) -> T) -> T {
        let retyper = self.retyper.take();
        let inferred = infer(self);
        self.retyper = retyper;
        inferred
    }
}
