//! Conversion of version 10 models into version 11, with the inputs and outputs that OpenVINO's reader gives them.

use typelift_promote::fidelity;

use super::Edit;
use crate::edit::changes::Change;
use crate::model::graph::{EditError, IrVersion, LayerId, Model, Output};
use crate::ops::{self, LayerKind};

impl Model {
    /// Turns a version 10 model into version 11 with the same inputs and outputs. As in `Core.read_model`, they also get
    /// the names of their layers, f16 inputs become f32, integer outputs i32, and other outputs f32. Types must be
    /// [inferred](crate::infer()), and are inferred on return. Returns the changes; nothing for version 11.
    ///
    /// # Errors
    /// [`EditError`]: an edit was refused.
    pub(crate) fn upgrade(&mut self) -> Result<Vec<Change>, EditError> {
        if self.version == IrVersion::V11 {
            return Ok(Vec::new());
        }
        self.drop_output_names()?;
        self.name_ends()?;
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (id, tensor) in self.interface_types() {
            let from = tensor.element_type;
            let is_input = self.graph.layer(id).is_some_and(|layer| ops::kind(layer) == LayerKind::Parameter);
            let to = if is_input { self.version.input_type(from) } else { self.version.output_type(from) };
            // OpenVINO's reader also adds a Convert from string to f32, which no device runs.
            if from == to || fidelity(from, to).is_none() {
                continue;
            }
            if is_input { inputs.push((id, [from, to], false)) } else { outputs.push((id, [from, to])) }
        }
        let mut changes = self.retype_inputs(&inputs)?;
        changes.extend(self.retype_outputs(&outputs)?);
        self.version = IrVersion::V11;
        if !changes.is_empty() {
            let _ = crate::infer(self);
        }
        Ok(changes)
    }

    /// Removes `output_names`, which version 10 does not read.
    fn drop_output_names(&mut self) -> Result<(), EditError> {
        let named: Vec<_> = self.outputs().filter(|layer| layer.output_names().is_some()).map(|it| it.id()).collect();
        self.edit(|graph| named.into_iter().try_for_each(|id| graph.set_output_names(id, Vec::new())))
    }

    fn name_ends(&mut self) -> Result<(), EditError> {
        let graph = self.graph();
        let inputs = self.inputs().map(|layer| layer.id().output(0));
        let outputs = self.outputs().filter_map(|layer| graph.producer(layer.id().input(0)));
        let ends: Vec<_> = inputs.chain(outputs).collect();
        self.edit(|graph| {
            for tensor in ends {
                let Some((name, port)) = graph.version_10_name(tensor).zip(graph.output(tensor)) else { continue };
                let names = port.names();
                if !names.contains(&name) && graph.tensor_named(&name)?.is_none() {
                    graph.set_names(tensor, [names, vec![name]].concat())?;
                }
            }
            Ok(())
        })
    }
}

impl Edit<'_> {
    /// Gives a layer that was inserted before an output of a version 10 model the name by which OpenVINO finds the
    /// output.
    pub(crate) fn take_version_10_name(&mut self, output: Output, inserted: LayerId) -> Result<(), EditError> {
        let Some(name) = self.version_10_name(output) else { return Ok(()) };
        let own = self.layer(inserted).map_or_else(String::new, |layer| layer.name().to_owned());
        if self.layer(output.layer).is_some_and(|layer| layer.outputs().len() == 1) {
            self.set_name(output.layer, &own)?;
        }
        self.set_name(inserted, &name)
    }
}
