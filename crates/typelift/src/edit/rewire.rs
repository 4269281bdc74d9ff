//! Edits that change the edges of a graph, or its inputs and outputs and their order.

use super::Edit;
use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{EditError, Layer, LayerId, Output};
use crate::ops::LayerKind;

impl Edit<'_> {
    /// Connects all consumers of `old` to `new`, and removes layers, inputs and variables on which no output depends
    /// any more. Layers on which `new` depends keep `old`. If a Result uses `old`, the names of `old` move to `new`.
    /// Returns the layers that were removed.
    ///
    /// # Errors
    /// [`EditError::Incompatible`] if the types differ or the shapes have nothing in common; [`EditError::NamesResult`] if a
    /// Result would use a Parameter.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (relu, scaled) = (model.graph().tensor("y")?, model.graph().tensor("scaled")?);
    /// let removed = model.edit(|graph| graph.redirect(relu, scaled))?;
    /// assert_eq!(removed, [relu.layer]);
    /// assert_eq!(model.graph().tensor("y")?, scaled);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn redirect(&mut self, old: Output, new: Output) -> Result<Vec<LayerId>, EditError> {
        self.redirect_all(&[old], &HashSet::default(), |_, _| Ok(new))
    }

    /// Redirects tensors one after the other, as [`redirect`](Self::redirect) does, each to the tensor that `new` returns
    /// for its position. The layers of `kept` keep the old tensors too.
    pub(crate) fn redirect_all(
        &mut self,
        old: &[Output],
        kept: &HashSet<LayerId>,
        mut new: impl FnMut(&mut Edit<'_>, usize) -> Result<Output, EditError>,
    ) -> Result<Vec<LayerId>, EditError> {
        let order = self.topological_order().unwrap_or_default();
        let mut ranks = order.into_iter().zip(0..).collect();
        self.trimmed(|edit| {
            old.iter().enumerate().try_for_each(|(at, &old)| {
                let new = new(edit, at)?;
                edit.redirect_one(old, new, kept, &mut ranks)
            })
        })
    }

    /// Redirects one tensor. `ranks` are the positions of layers after their producers, and are cleared if the new edges
    /// violate this order.
    fn redirect_one(
        &mut self,
        old: Output,
        new: Output,
        kept: &HashSet<LayerId>,
        ranks: &mut HashMap<LayerId, usize>,
    ) -> Result<(), EditError> {
        self.graph.check_compatible(old, new)?;
        let rank = |id: &LayerId| ranks.get(id);
        // No layer before `old` can use it, so the search ends there.
        let computed_from = self
            .computed_from(new.layer, |id| *id == old.layer || rank(id).is_some_and(|at| Some(at) < rank(&old.layer)));
        let keeps = |layer: &LayerId| computed_from.contains(layer) || kept.contains(layer);
        let uses: Vec<_> = self.consumers(old).filter(|input| !keeps(&input.layer)).collect();
        let result = uses.iter().map(|input| input.layer).find(|&user| self.is(user, LayerKind::Result));
        if let Some(result) = result.filter(|_| self.is(new.layer, LayerKind::Parameter)) {
            return Err(EditError::NamesResult { result });
        }
        let last = computed_from.iter().filter_map(rank).max();
        if uses.iter().any(|input| rank(&input.layer) <= last) {
            ranks.clear();
        }
        self.connect_all(uses.into_iter().map(|input| (new, input)))?;
        let is_output = result.is_some() && !self.is(old.layer, LayerKind::Parameter);
        if is_output { self.move_names(old, new) } else { Ok(()) }
    }

    fn computed_from(&self, layer: LayerId, is_before: impl Fn(&LayerId) -> bool) -> HashSet<LayerId> {
        let (mut found, mut pending) = (HashSet::default(), vec![layer]);
        while let Some(id) = pending.pop() {
            if !is_before(&id) && found.insert(id) {
                pending.extend(self.producers(id).into_iter().flatten().map(|source| source.layer));
            }
        }
        found
    }

    /// Removes outputs of the model, and the layers, inputs and variables that only they depend on. Returns the
    /// removed layers.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::Other`] if a layer is not a Result.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let (y, scaled) = (model.find_output("y")?, model.graph().tensor("scaled")?);
    /// model.edit(|graph| {
    ///     graph.expose(scaled, None)?;
    ///     graph.remove_outputs(&[y])
    /// })?;
    /// assert!(model.graph().find("relu").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn remove_outputs(&mut self, results: &[LayerId]) -> Result<Vec<LayerId>, EditError> {
        self.check_ends(results, LayerKind::Result)?;
        self.trimmed(|edit| edit.remove_all(results))
    }

    /// Makes edits, and then removes layers on which no output depends any more.
    pub(crate) fn trimmed(
        &mut self,
        edits: impl FnOnce(&mut Edit<'_>) -> Result<(), EditError>,
    ) -> Result<Vec<LayerId>, EditError> {
        self.attempt(|edit| {
            let results = edit.unordered().map(Layer::id).filter(|&id| edit.is(id, LayerKind::Result)).collect();
            let needed = edit.leading_to(results);
            // Layers that were unused before the edit are kept.
            let unused: HashSet<_> = edit.unordered().map(Layer::id).filter(|id| !needed.contains(id)).collect();
            edits(edit)?;
            let is_kept = |id: &LayerId| unused.contains(id) || edit.is(*id, LayerKind::Result);
            let kept = edit.leading_to(edit.unordered().map(Layer::id).filter(is_kept).collect());
            let dead: Vec<_> = edit.layers().map(Layer::id).filter(|id| !kept.contains(id)).collect();
            edit.remove_all(&dead)?;
            Ok(dead)
        })
    }

    /// Moves these inputs or outputs of the model to the front, in this order. The others follow in their old order.
    /// An input or output that must move in the file gets a new id.
    ///
    /// # Errors
    /// [`EditError::NoLayer`]; [`EditError::Other`] if the layers are not all Parameters or all Results, or one comes twice.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let mut model = Model::from_text("
    ///     a = Parameter : f32[2]
    ///     b = Parameter : f32[2]
    ///     c = Add(a, b)
    ///     r = Result(c)
    /// ")?;
    /// let b = model.find_input("b")?;
    /// model.edit(|graph| graph.order(&[b]))?;
    /// assert_eq!(model.inputs().map(|input| input.name()).collect::<Vec<_>>(), ["b", "a"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn order(&mut self, ends: &[LayerId]) -> Result<(), EditError> {
        let Some(&first) = ends.first() else { return Ok(()) };
        let kind = if self.is(first, LayerKind::Result) { LayerKind::Result } else { LayerKind::Parameter };
        self.check_ends(ends, kind)?;
        let now: Vec<_> = self.layers().map(Layer::id).filter(|&id| self.is(id, kind)).collect();
        let first: HashSet<_> = ends.iter().copied().collect();
        let rest = now.iter().copied().filter(|id| !first.contains(id));
        let wanted: Vec<_> = ends.iter().copied().chain(rest).collect();
        let place: HashMap<_, _> = now.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let stay =
            wanted.windows(2).position(|pair| place[&pair[0]] >= place[&pair[1]]).map_or(wanted.len(), |at| at + 1);
        self.attempt(|edit| wanted[stay..].iter().try_for_each(|&id| edit.put_last(id)))
    }

    /// Moves an input or output to the end of its kind. It loses its position in the file.
    fn put_last(&mut self, id: LayerId) -> Result<(), EditError> {
        let copy = self.checked(id)?.clone();
        let uses: Vec<_> = self.uses(id).collect();
        let sources = self.producers(id);
        let new = self.graph.adopt(copy);
        self.connect_all(uses.into_iter().map(|(_, input)| (new.output(0), input)))?;
        for (port, source) in sources.into_iter().enumerate() {
            source.map_or(Ok(()), |source| self.connect(source, new.input(port)))?;
        }
        self.remove(id)
    }

    fn check_ends(&self, ends: &[LayerId], kind: LayerKind) -> Result<(), EditError> {
        let mut seen = HashSet::default();
        for &id in ends {
            let layer = self.checked(id)?;
            if !self.is(id, kind) {
                return Err(EditError::Other(format!(
                    "layer {id} `{}` is a {}, not a {kind:?}",
                    layer.name(),
                    layer.ty()
                )));
            }
            if !seen.insert(id) {
                return Err(EditError::Other(format!("layer {id} `{}` is given twice", layer.name())));
            }
        }
        Ok(())
    }
}
