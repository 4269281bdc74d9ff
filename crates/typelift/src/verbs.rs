//! The verbs that know what operations do: what they add has its types and shapes.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::array;
use crate::graph::{Edit, EditError, Input, LayerId, NewLayer, Output};
use crate::infer;
use crate::ops;
use crate::shape::Shape;

impl Edit<'_> {
    /// Adds a layer fed by `inputs` and gives its new id: one more than any the graph ever had. Its outputs follow from its
    /// inputs and attributes. In the file it comes just before the first layer that uses it.
    ///
    /// # Errors
    /// [`EditError::NoLayer`] or [`EditError::NoOutput`] where an input does not exist, [`EditError::Refused`] where the
    /// operation refuses its inputs or attributes, [`EditError::NoRule`] where nothing is known of it and `new` does not say
    /// its outputs.
    pub fn add(&mut self, new: NewLayer, inputs: &[Output]) -> Result<LayerId, EditError> {
        self.attempt(|edit| {
            let id = edit.add_unfed(&new, inputs.len());
            edit.feed_and_infer(id, &new, inputs)?;
            Ok(id)
        })
    }

    /// Adds a layer whose first input is `tensor`, with `others` behind it, and lets every consumer that the tensor had take
    /// the first output of the new layer instead. The names of the tensor go with a Result that used it, unless it comes out
    /// of a Parameter.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn insert_after(&mut self, tensor: Output, new: NewLayer, others: &[Output]) -> Result<LayerId, EditError> {
        let consumers: Vec<_> = self.consumers(tensor).collect();
        self.attempt(|edit| {
            let id = edit.add(new, &[&[tensor], others].concat())?;
            let is = |layer: LayerId, ty: &str| edit.layer(layer).is_some_and(|layer| layer.is(ty));
            let names_result =
                consumers.iter().any(|input| is(input.layer, "Result")) && !is(tensor.layer, "Parameter");
            for input in consumers {
                edit.connect(id.output(0), input)?;
            }
            if names_result {
                edit.move_names(tensor, id.output(0))?;
            }
            Ok(id)
        })
    }

    /// Adds a layer whose first input is what feeds `input`, with `others` behind it, and feeds `input` from its first
    /// output. The names of the tensor go with a Result, unless it comes out of a Parameter.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`EditError::NoInput`] where nothing feeds it.
    pub fn insert_before(&mut self, input: Input, new: NewLayer, others: &[Output]) -> Result<LayerId, EditError> {
        let tensor = self.producers(input.layer).get(input.port).copied().flatten().ok_or(EditError::NoInput(input))?;
        self.attempt(|edit| {
            let id = edit.add(new, &[&[tensor], others].concat())?;
            edit.connect(id.output(0), input)?;
            let is = |layer: LayerId, ty: &str| edit.layer(layer).is_some_and(|layer| layer.is(ty));
            if is(input.layer, "Result") && !is(tensor.layer, "Parameter") {
                edit.move_names(tensor, id.output(0))?;
            }
            Ok(id)
        })
    }

    /// Lets a layer do something else with other inputs. It keeps its id, its place in the file, its name unless `new` has
    /// one, its metadata, the names of its outputs and whatever uses them; of its text, what stays the same keeps its bytes.
    ///
    /// # Errors
    /// As [`add`](Self::add); [`EditError::InUse`] where an output that something uses would go.
    pub fn morph(&mut self, id: LayerId, new: NewLayer, inputs: &[Output]) -> Result<(), EditError> {
        self.attempt(|edit| {
            let layer = edit.changed(id)?;
            layer.ty = new.ty.clone();
            layer.version = new.version.clone();
            layer.attributes = new.attributes.clone();
            if let Some(name) = &new.name {
                layer.name = name.clone();
            }
            edit.graph.resize_inputs(id, inputs.len());
            edit.feed_and_infer(id, &new, inputs)
        })
    }

    /// Adds a constant, little-endian bytes as OpenVINO stores them, and gives its tensor. Equal bytes are stored once.
    ///
    /// # Errors
    /// [`EditError::WrongLength`]; [`EditError::NoWeights`] where the model has constants and their bytes are not there.
    pub fn constant(&mut self, ty: ElementType, dims: &[u64], bytes: &[u8]) -> Result<Output, EditError> {
        let count = dims.iter().try_fold(1, |count: u64, &dim| count.checked_mul(dim));
        let expected = count.and_then(|count| array::byte_size(ty, count)?.try_into().ok()).unwrap_or(u64::MAX);
        if expected != bytes.len() as u64 {
            return Err(EditError::WrongLength { expected, found: bytes.len() as u64 });
        }
        if self.weights.len().is_none() && self.layers().any(|layer| layer.is("Const") || layer.is("Constant")) {
            return Err(EditError::NoWeights);
        }
        let offset = self.weights.add(bytes);
        let shape = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let constant = NewLayer::new("Const", "opset1")
            .with_attribute("element_type", ty.name())
            .with_attribute("shape", shape)
            .with_attribute("offset", offset)
            .with_attribute("size", expected)
            .with_output(ty, Shape::fixed(dims.iter().map(|&dim| dim as i64)));
        Ok(self.add(constant, &[])?.output(0))
    }

    /// Removes those of these layers that nothing uses, and what only they used. Parameters, Results and Assigns stay: they
    /// are the model's own.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn remove_unused(&mut self, layers: impl IntoIterator<Item = LayerId>) -> Result<Vec<LayerId>, EditError> {
        let mut pending: Vec<_> = layers.into_iter().collect();
        let mut removed = Vec::new();
        while let Some(id) = pending.pop() {
            let keeps = ["Parameter", "Result", "Assign"];
            if self.layer(id).is_none_or(|layer| keeps.iter().any(|ty| layer.is(ty))) {
                continue;
            }
            let producers = self.producers(id);
            if self.remove(id).is_ok() {
                removed.push(id);
                pending.extend(producers.into_iter().flatten().map(|output| output.layer));
            }
        }
        Ok(removed)
    }

    /// Makes a tensor an output of the model, named after it, and removes what was computed from it, other outputs
    /// included, and whatever nothing uses then. Gives the Result.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`].
    pub fn cut(&mut self, tensor: Output) -> Result<LayerId, EditError> {
        self.output(tensor).ok_or(EditError::NoOutput(tensor))?;
        self.attempt(|edit| {
            let mut dead = Vec::new();
            let mut seen = rustc_hash::FxHashSet::default();
            let mut pending: Vec<_> = edit.consumers(tensor).map(|input| input.layer).collect();
            while let Some(id) = pending.pop() {
                if seen.insert(id) {
                    let outputs = edit.layer(id).map_or(0, |layer| layer.outputs().len());
                    pending.extend((0..outputs).flat_map(|port| edit.consumers(id.output(port))).map(|to| to.layer));
                    dead.push(id);
                }
            }
            let result = edit.add(NewLayer::new("Result", "opset1"), &[tensor])?;
            let sources: Vec<_> = dead.iter().flat_map(|&id| edit.producers(id)).flatten().collect();
            for &id in &dead {
                edit.graph.resize_inputs(id, 0);
            }
            for id in dead {
                edit.remove(id)?;
            }
            edit.remove_unused(sources.into_iter().map(|output| output.layer))?;
            Ok(result)
        })
    }

    /// Renames a layer. The name of a Parameter or a Result is what OpenVINO calls an input or output that has no other.
    ///
    /// # Errors
    /// [`EditError::NoLayer`].
    pub fn rename(&mut self, id: LayerId, name: &str) -> Result<(), EditError> {
        self.changed(id)?.name = name.into();
        Ok(())
    }

    fn add_unfed(&mut self, new: &NewLayer, inputs: usize) -> LayerId {
        self.graph.add_layer(new, inputs)
    }

    /// Feeds all inputs of a layer, and finds the types and shapes of its outputs.
    fn feed_and_infer(&mut self, id: LayerId, new: &NewLayer, inputs: &[Output]) -> Result<(), EditError> {
        for (port, &source) in inputs.iter().enumerate() {
            self.connect(source, id.input(port))?;
        }
        let node = self.graph.node(id).ok_or(EditError::NoLayer(id))?;
        let outputs = match infer::outputs_of(self.graph, node, (self.source, self.weights, self.version)) {
            Some(Ok(outputs)) => outputs,
            Some(Err(reason)) => return Err(EditError::Refused { operation: new.ty.to_string(), reason }),
            None if new.outputs.is_empty() && ops::lookup(&new.ty, &new.version).is_none() => {
                return Err(EditError::NoRule(format!("{}-{}", new.ty, new.version)));
            }
            None => new.outputs.iter().cloned().collect::<SmallVec<_>>(),
        };
        self.graph.set_outputs(id, outputs)
    }
}
