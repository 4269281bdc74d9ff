//! Edits that change the inputs and outputs of a model.

use super::Edit;
use super::refuse::check_names;
use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{EditError, Layer, LayerId, NewLayer, Output, split_names};
use crate::ops::LayerKind;

impl Edit<'_> {
    /// Makes a tensor an output of the model, in addition to the others. The tensor also gets this name; if it has no
    /// name at all, it gets that of its layer. Returns the new Result, or the existing one of the tensor.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`]; [`EditError::NameTaken`] if another tensor has the name;
    /// [`EditError::EmptyName`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scaled = model.graph().tensor("scaled")?;
    /// let result = model.edit(|graph| graph.expose(scaled, Some("features")))?;
    /// assert_eq!(model.find_output("features")?, result);
    /// assert_eq!(model.outputs().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expose(&mut self, tensor: Output, name: Option<&str>) -> Result<LayerId, EditError> {
        check_names(name.as_slice())?;
        self.attempt(|edit| {
            if let Some(name) = name
                && let Some(other) = edit.graph.tensor_called(name)?.filter(|other| *other != tensor)
            {
                return Err(EditError::NameTaken { name: name.to_owned(), layer: other.layer });
            }
            edit.end_at(tensor, name)
        })
    }

    /// The Result of a tensor, or creates one. The tensor gets this name; if it has no name at all, it gets
    /// that of its layer.
    fn end_at(&mut self, tensor: Output, name: Option<&str>) -> Result<LayerId, EditError> {
        self.check_source(tensor)?;
        let mut names = self.checked_output(tensor)?.names();
        let wanted = name.map_or_else(|| self.name_of(tensor), str::to_owned);
        if !wanted.is_empty() && !names.contains(&wanted) {
            names.push(wanted.clone());
            self.set_names(tensor, names)?;
        }
        let found = self.consumers(tensor).map(|input| input.layer).find(|&user| self.is(user, LayerKind::Result));
        let Some(result) = found else {
            let result = NewLayer::new("Result", "opset1").named(&format!("{wanted}/sink_port_0"));
            return self.add(result, &[tensor]);
        };
        let mut names = self.checked(result)?.output_names().map(split_names).unwrap_or_default();
        if !names.is_empty() && !names.contains(&wanted) {
            names.push(wanted);
            self.set_output_names(result, names)?;
        }
        Ok(result)
    }

    /// The first name of a tensor, or the name of its layer if it has none.
    fn name_of(&self, tensor: Output) -> String {
        let own = self.output(tensor).and_then(|port| port.names().into_iter().next());
        let maker = self.layer(tensor.layer);
        own.unwrap_or_else(|| {
            let name = maker.map(Layer::name).unwrap_or_default();
            let is_only = maker.is_none_or(|layer| layer.outputs().len() == 1);
            if is_only { name.to_owned() } else { format!("{name}:{}", tensor.port) }
        })
    }

    /// Makes a tensor an output of the model. Removes all layers that depend on it, including other outputs, and all
    /// layers that are unused then. Layers that write variables which are still read are kept. A tensor without a name
    /// gets that of its layer. Returns the Result.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scaled = model.graph().tensor("scaled")?;
    /// model.edit(|graph| graph.cut(scaled))?;
    /// assert_eq!(model.graph().len(), 4);
    /// assert_eq!(model.outputs().next().unwrap().name(), "scaled/sink_port_0");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cut(&mut self, tensor: Output) -> Result<LayerId, EditError> {
        self.cut_all(&[tensor]).map(|results| results[0])
    }

    /// Cuts at many tensors. The time grows linearly with the graph.
    ///
    /// # Errors
    /// The errors of [`cut`](Self::cut); [`EditError::Other`] if a tensor depends on another one.
    pub(crate) fn cut_all(&mut self, tensors: &[Output]) -> Result<Vec<LayerId>, EditError> {
        tensors.iter().try_for_each(|&tensor| self.checked_output(tensor).map(drop))?;
        let uses = tensors.iter().flat_map(|&tensor| self.consumers(tensor)).map(|input| input.layer);
        let others = uses.filter(|&layer| !self.is(layer, LayerKind::Result)).collect();
        self.attempt(|edit| {
            let results = tensors.iter().map(|&tensor| edit.end_at(tensor, None)).collect::<Result<Vec<_>, _>>()?;
            let mut after: HashSet<_> = edit.following(others).into_iter().collect();
            // An Assign that is kept may read other variables, whose writers are needed then.
            let is_end = |id: LayerId| edit.is(id, LayerKind::Result) || edit.is(id, LayerKind::Assign);
            let ends = edit.layers().map(Layer::id).filter(|&id| is_end(id) && !after.contains(&id)).collect();
            let needed = edit.leading_to(ends);
            let is_lost = |tensor: &&Output| after.contains(&tensor.layer) && !needed.contains(&tensor.layer);
            if let Some(&lost) = tensors.iter().find(is_lost) {
                let name = edit.name_of(lost);
                let message = format!("`{name}` depends on another tensor of the list and would be removed with it");
                return Err(EditError::Other(message));
            }
            for result in &results {
                after.remove(result);
            }
            let dead: Vec<_> = after.difference(&needed).copied().collect();
            let sources: HashSet<_> = dead.iter().flat_map(|&id| edit.producers(id)).flatten().collect();
            edit.remove_all(&dead)?;
            let left = sources.into_iter().map(|output| output.layer);
            let left: Vec<_> = left.filter(|&id| edit.layer(id).is_some()).collect();
            edit.remove_unused(left)?;
            Ok(results)
        })
    }

    /// Reduces the model to the layers between tensors. Each of `from` becomes an input of its type and shape and
    /// keeps its names; each of `to` becomes an output. The layers between them are kept, including further inputs
    /// that they need. Without `to`, the outputs of the model that depend on `from` are kept. Without `from`, its
    /// inputs are kept as far as they are needed. Layers that write the variables that these layers read are kept too.
    ///
    /// # Errors
    /// [`EditError::NoLayer`], [`EditError::NoOutput`]; [`EditError::Other`] if no kept layer uses one of `from`.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let scaled = model.graph().tensor("scaled")?;
    /// model.edit(|graph| graph.extract(&[scaled], &[]))?;
    /// assert_eq!(model.to_string(), "\
    /// 5 scaled = Parameter : f32[?,4]
    /// 3 relu = ReLU(5) : f32[?,4]
    /// 4 y/sink_port_0 = Result(3)
    /// ");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn extract(&mut self, from: &[Output], to: &[Output]) -> Result<(), EditError> {
        self.attempt(|edit| {
            let given = from.iter().map(|&tensor| edit.enter_at(tensor)).collect::<Result<Vec<_>, _>>()?;
            let entered: HashMap<_, _> =
                from.iter().zip(&given).map(|(tensor, (id, _))| (*tensor, id.output(0))).collect();
            let current = |tensor: &Output| entered.get(tensor).copied().unwrap_or(*tensor);
            let ends = match to {
                [] => {
                    let after = edit.following(given.iter().map(|(id, _)| *id).collect());
                    after.into_iter().filter(|&id| edit.is(id, LayerKind::Result)).collect()
                }
                _ => to.iter().map(|tensor| edit.end_at(current(tensor), None)).collect::<Result<Vec<_>, _>>()?,
            };
            let stay = edit.leading_to(ends);
            if let Some((_, name)) = given.iter().find(|(id, _)| !stay.contains(id)) {
                return Err(EditError::Other(format!("no remaining layer depends on `{name}`")));
            }
            let dead: Vec<_> = edit.layers().map(Layer::id).filter(|id| !stay.contains(id)).collect();
            edit.remove_all(&dead)?;
            given.into_iter().try_for_each(|(id, name)| match edit.layer(id) {
                Some(layer) if layer.name() != name => {
                    let name = edit.unused_name(name);
                    edit.set_name(id, &name)
                }
                _ => Ok(()),
            })
        })
    }

    /// Makes a tensor an input of the model, unless it is one. Returns the Parameter, and the name that it must get.
    fn enter_at(&mut self, tensor: Output) -> Result<(LayerId, String), EditError> {
        let name = self.name_of(tensor);
        if self.is(tensor.layer, LayerKind::Parameter) {
            return Ok((tensor.layer, self.checked(tensor.layer)?.name().to_owned()));
        }
        let port = self.checked_output(tensor)?;
        let parameter = NewLayer::new("Parameter", "opset1")
            .with_attribute("shape", port.shape().to_attribute())
            .with_attribute("element_type", port.element_type().name());
        let uses: Vec<_> = self.consumers(tensor).filter(|input| !self.is(input.layer, LayerKind::Result)).collect();
        let id = self.add(parameter, &[])?;
        self.connect_all(uses.into_iter().map(|input| (id.output(0), input)))?;
        self.set_names(id.output(0), Vec::new())?;
        if self.checked_output(tensor)?.names().is_empty() {
            let names = if name.is_empty() { Vec::new() } else { vec![name.clone()] };
            self.set_names(id.output(0), names)?;
        } else {
            self.move_names(tensor, id.output(0))?;
        }
        Ok((id, name))
    }

    /// Layers with all their direct and indirect producers. For a variable that is read, this includes
    /// the layers that write it.
    pub(super) fn leading_to(&self, mut pending: Vec<LayerId>) -> HashSet<LayerId> {
        let mut found = HashSet::default();
        let mut writers: Vec<_> = self.layers().filter(|layer| self.is(layer.id(), LayerKind::Assign)).collect();
        let mut read = HashSet::default();
        while !pending.is_empty() {
            while let Some(id) = pending.pop() {
                if found.insert(id) {
                    pending.extend(self.producers(id).into_iter().flatten().map(|source| source.layer));
                    read.extend(self.layer(id).and_then(|layer| layer.attribute("variable_id")));
                }
            }
            let is_read = |layer: &mut &Layer| layer.attribute("variable_id").is_some_and(|id| read.contains(id));
            pending.extend(writers.extract_if(.., is_read).map(Layer::id));
        }
        found
    }

    fn following(&self, mut pending: Vec<LayerId>) -> Vec<LayerId> {
        let mut seen = HashSet::default();
        let mut found = Vec::new();
        while let Some(id) = pending.pop() {
            if seen.insert(id) {
                found.push(id);
                pending.extend(self.users(id));
            }
        }
        found
    }
}
