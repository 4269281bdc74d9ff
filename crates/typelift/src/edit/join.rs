//! Joining two models: the outputs of one feed the inputs of the other.

use std::collections::{BTreeSet, HashMap};

use crate::edit::inputs_outputs::InterfaceError;
use crate::model::graph::{EditError, LayerId, Model, Output};
use crate::ops::{self, LayerKind};

impl Model {
    /// Appends another model to this one. Each pair in `joints` connects an output or any other tensor of this model
    /// to an input of the other one, both by name. Outputs that feed an input are no longer outputs; other inputs and
    /// outputs are kept. Without joints, equal names are connected or, if there are none, the only output and the only
    /// input. Names, bodies, constants and metadata are copied as by
    /// [`Edit::inline_model`](crate::edit::Edit::inline_model). Metadata of the model is added where this one has none. A
    /// model of IR version 10 and one of 11 give one of 11. Types and shapes are those of both models until
    /// [`infer`](crate::infer()) updates them. Returns the new id of each layer of the other model.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such output or input, and the errors of [`Edit::inline_model`](crate::edit::Edit::inline_model).
    /// Nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let head = Model::from_text("
    ///     features = Parameter : f32[8,4]
    ///     scores = Softmax-8(features) {axis=-1}
    ///     r = Result(scores)
    /// ")?;
    /// model.join(&head, &[("y", "features")], "")?;
    /// assert_eq!(typelift::infer(&mut model), []);
    /// assert_eq!(model.outputs().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(
        &mut self,
        other: &Self,
        joints: &[(&str, &str)],
        prefix: &str,
    ) -> Result<HashMap<LayerId, LayerId>, InterfaceError> {
        if self.version() != other.version() {
            return self.join_upgraded(other, joints, prefix);
        }
        let mut feeds = Vec::new();
        for &(output, input) in joints {
            feeds.push((other.find_input(input)?, self.given(output)?));
        }
        if joints.is_empty() {
            feeds = self.matching_ends(other);
        }
        let inputs: BTreeSet<_> = feeds.iter().map(|(input, _)| *input).collect();
        if feeds.is_empty() || inputs.len() < feeds.len() {
            return Err(EditError::Other(self.not_joined(other, feeds.is_empty())).into());
        }
        let moved = self.edit(|edit| {
            let tensors = feeds.iter().flat_map(|(_, tensor)| edit.consumers(*tensor)).map(|input| input.layer);
            let ends = tensors.filter(|id| edit.layer(*id).is_some_and(|layer| ops::kind(layer) == LayerKind::Result));
            let ends: BTreeSet<_> = ends.collect();
            edit.remove_all(&ends.into_iter().collect::<Vec<_>>())?;
            edit.inline_model(other, &feeds, prefix)
        })?;
        self.add_rt_info(other);
        Ok(moved)
    }

    /// Joins models of different versions, as [`join`](Self::join) does, after converting both to version 11.
    fn join_upgraded(
        &mut self,
        other: &Self,
        joints: &[(&str, &str)],
        prefix: &str,
    ) -> Result<HashMap<LayerId, LayerId>, InterfaceError> {
        let (mut own, mut other) = (self.clone(), other.clone());
        for model in [&mut own, &mut other] {
            model.upgrade()?;
        }
        let moved = own.join(&other, joints, prefix)?;
        *self = own;
        Ok(moved)
    }

    /// If there is no such output, the tensor with this name.
    fn given(&self, name: &str) -> Result<Output, InterfaceError> {
        match self.find_output(name) {
            Ok(result) => Ok(self.graph().producer(result.input(0)).ok_or(EditError::NoInput(result.input(0)))?),
            Err(unknown @ InterfaceError::Unknown { .. }) => self.graph().tensor(name).map_err(|_| unknown),
            Err(error) => Err(error),
        }
    }

    /// If there are none, returns the only input and the only output.
    fn matching_ends(&self, other: &Self) -> Vec<(LayerId, Output)> {
        let mut feeds = Vec::new();
        for input in other.inputs() {
            let own = std::iter::once(input.name().to_owned());
            let names = own.chain(input.outputs().iter().flat_map(|port| port.names()));
            let result = names.filter_map(|name| self.find_output(&name).ok()).next();
            let tensor = result.and_then(|result| self.graph().producer(result.input(0)));
            feeds.extend(tensor.map(|tensor| (input.id(), tensor)));
        }
        let (outputs, inputs): (Vec<_>, Vec<_>) = (self.outputs().collect(), other.inputs().collect());
        if let (true, [output], [input]) = (feeds.is_empty(), &outputs[..], &inputs[..]) {
            feeds.extend(self.graph().producer(output.id().input(0)).map(|tensor| (input.id(), tensor)));
        }
        feeds
    }

    fn not_joined(&self, other: &Self, has_none: bool) -> String {
        if !has_none {
            return "an input of the other model is connected twice".to_owned();
        }
        let listed = |names: Vec<String>| names.join(", ");
        let outputs = self.outputs().map(|layer| {
            let source = self.end_tensor(layer);
            let name = source.and_then(|port| port.names().into_iter().next());
            format!("`{}`", name.unwrap_or_else(|| layer.name().to_owned()))
        });
        let inputs = other.inputs().map(|layer| format!("`{}`", layer.name()));
        let (outputs, inputs) = (listed(outputs.collect()), listed(inputs.collect()));
        format!(
            "the outputs and inputs to connect are not clear; name them: this model has the outputs {outputs}, the other one the inputs {inputs}"
        )
    }
}
