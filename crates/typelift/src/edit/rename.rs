//! Edits of names.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::Edit;
use super::refuse::check_names;
use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{EditError, FindError, Graph, Layer, LayerId, Output, split_names};
use crate::ops::LayerKind;

impl Edit<'_> {
    /// Renames the layer, tensor, input or output called `old`, under all its names of this kind. These are the `names`
    /// of the port, the `output_names` of a Result, and the Result's own name if it is derived from the tensor's.
    /// Afterwards OpenVINO finds it by the new name only.
    ///
    /// # Errors
    /// [`FindError`] if nothing has this name or several things have it; [`EditError::NameTaken`] if another tensor has
    /// the new name; [`EditError::EmptyName`].
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// model.edit(|graph| graph.rename("y", "scores"))?;
    /// let output = model.outputs().next().unwrap();
    /// assert_eq!((output.name(), output.output_names()), ("scores/sink_port_0", Some("scores")));
    /// assert_eq!(model.graph().tensor("scores")?.layer, model.graph().find("relu")?);
    /// // Both at the same time: two names are exchanged.
    /// model.edit(|graph| graph.rename_all([("x", "scores"), ("scores", "x")]))?;
    /// assert_eq!(model.graph().tensor("x")?.layer, model.graph().find("relu")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rename(&mut self, old: &str, new: &str) -> Result<(), EditError> {
        self.rename_all([(old, new)])
    }

    /// Gives everything with one of the first names the second name of the pair, as [`rename`](Self::rename) does. All
    /// renames take place at the same time: `a` to `b` and `b` to `a` exchanges two names.
    ///
    /// # Errors
    /// The errors of [`rename`](Self::rename).
    pub fn rename_all<'n>(&mut self, pairs: impl IntoIterator<Item = (&'n str, &'n str)>) -> Result<(), EditError> {
        let mut new: HashMap<&str, &str> = pairs.into_iter().collect();
        let mut all = Named::all(self, &new, &|layer| self.is(layer, LayerKind::Result))?;
        new.retain(|old, new| old != new);
        // A layer that keeps its name may give it to its tensor, if that has none.
        all.retain(|(old, new, named)| old != new || !named.layers.is_empty());
        all.iter().try_for_each(|(_, new, _)| check_names(&[new]))?;
        let mut taken = self.taken_by_tensors(&all)?;
        let sinks = self.named_after_tensors(&all, &new);
        let changed = || all.iter().filter(|(old, new, _)| old != new).map(|(_, _, named)| named);
        let tensors: BTreeSet<Output> = changed().flat_map(|named| named.tensors.iter().copied()).collect();
        let results: BTreeSet<LayerId> = changed().flat_map(|named| named.results.iter().copied()).collect();
        let replaced = |names: Vec<String>| -> Vec<String> {
            names.into_iter().map(|name| new.get(name.as_str()).map_or(name, |&new| new.to_owned())).collect()
        };
        self.attempt(|edit| {
            for (old, new, named) in &all {
                for &id in &named.layers {
                    if old != new {
                        edit.set_name(id, new)?;
                    }
                    edit.name_end(id, new, &mut taken)?;
                }
            }
            for tensor in tensors {
                let names = edit.output(tensor).map(|port| port.names()).unwrap_or_default();
                edit.set_names(tensor, replaced(names))?;
            }
            sinks.iter().try_for_each(|(id, name)| edit.set_name(*id, name))?;
            for id in results {
                let names = edit.layer(id).and_then(|layer| layer.output_names()).map(split_names).unwrap_or_default();
                if names.iter().any(|name| new.contains_key(name.as_str())) {
                    edit.set_output_names(id, replaced(names))?;
                }
            }
            Ok(())
        })
    }

    /// Fails if a tensor would get the name of another.
    fn taken_by_tensors(&self, renamed: &[(&str, &str, Named)]) -> Result<HashMap<String, LayerId>, EditError> {
        let of = |layer: &Layer| {
            let names: Vec<_> = layer.outputs().iter().flat_map(|port| port.names()).collect();
            let id = layer.id();
            names.into_iter().map(move |name| (name, id))
        };
        let mut taken: HashMap<String, LayerId> = self.unordered().flat_map(of).collect();
        let with_tensors = || renamed.iter().filter(|(_, _, named)| !named.tensors.is_empty());
        for (old, ..) in with_tensors() {
            taken.remove(*old);
        }
        for (_, new, named) in with_tensors() {
            let owner = named.tensors.first().map_or(LayerId(0), |tensor| tensor.layer);
            if let Some(layer) = taken.insert((*new).to_owned(), owner) {
                return Err(EditError::NameTaken { name: (*new).to_owned(), layer });
            }
        }
        Ok(taken)
    }

    fn named_after_tensors(
        &self,
        renamed: &[(&str, &str, Named)],
        direct: &HashMap<&str, &str>,
    ) -> Vec<(LayerId, String)> {
        let all = renamed.iter().flat_map(|(old, new, named)| named.results.iter().map(move |&id| (old, new, id)));
        let found = all.filter_map(|(old, new, id)| {
            let name = self.layer(id)?.name();
            let sink = name.strip_prefix(old).filter(|rest| rest.starts_with("/sink_port_"))?;
            (!direct.contains_key(name)).then(|| (id, format!("{new}{sink}")))
        });
        found.collect()
    }

    /// Names an unnamed tensor of the Parameter or Result with this id, or the only one between a layer and a Result.
    /// Users find inputs and outputs by the names of tensors. Names that are `taken` are not used again.
    fn name_end(&mut self, id: LayerId, name: &str, taken: &mut HashMap<String, LayerId>) -> Result<(), EditError> {
        let tensor = if self.is(id, LayerKind::Result) { self.producer(id.input(0)) } else { Some(id.output(0)) };
        let is_only = tensor.and_then(|tensor| self.layer(tensor.layer)).is_some_and(|it| it.outputs().len() == 1);
        let Some(tensor) = tensor.filter(|tensor| is_only || tensor.layer != id) else { return Ok(()) };
        let is_end = self.is(id, LayerKind::Parameter)
            || self.is(id, LayerKind::Result)
            || self.consumers(tensor).any(|input| self.is(input.layer, LayerKind::Result));
        let is_nameless = self.output(tensor).is_some_and(|port| port.names().is_empty());
        if !is_end || !is_nameless || taken.contains_key(name) {
            return Ok(());
        }
        taken.insert(name.to_owned(), tensor.layer);
        self.set_names(tensor, vec![name.to_owned()])
    }
}

/// Layers, tensors and Results with the same name in a graph.
#[derive(Default)]
struct Named {
    layers: SmallVec<[LayerId; 1]>,
    tensors: SmallVec<[Output; 1]>,
    /// The Results that use one of the tensors, or whose output has the name.
    results: SmallVec<[LayerId; 1]>,
    /// Producers of all of these, in order.
    makers: SmallVec<[LayerId; 1]>,
}

impl Named {
    /// Everything that has one of these names, with the old and the new name, in the order of the old names.
    fn all<'n>(
        graph: &Graph,
        wanted: &HashMap<&'n str, &'n str>,
        is_result: &dyn Fn(LayerId) -> bool,
    ) -> Result<Vec<(&'n str, &'n str, Self)>, FindError> {
        let mut all: Vec<_> = wanted.iter().map(|(&old, &new)| (old, new, Self::default())).collect();
        all.sort_unstable_by_key(|(old, ..)| *old);
        let mut results: HashMap<Output, Vec<LayerId>> = HashMap::default();
        for layer in graph.layers() {
            let source = graph.producer(layer.id().input(0)).filter(|_| is_result(layer.id()));
            if let Some(source) = source {
                results.entry(source).or_default().push(layer.id());
            }
            let mut note = |name: &str, add: &dyn Fn(&mut Self)| {
                if let Ok(at) = all.binary_search_by_key(&name, |(old, ..)| *old) {
                    let named = &mut all[at].2;
                    named.makers.push(source.map_or(layer.id(), |source| source.layer));
                    add(named);
                }
            };
            note(layer.name(), &|named| named.layers.push(layer.id()));
            let outputs = layer.output_names().map(split_names).unwrap_or_default();
            outputs.iter().for_each(|name| note(name, &|named| named.results.push(layer.id())));
            for (port, output) in layer.outputs().iter().enumerate() {
                let names: HashSet<_> = output.names().into_iter().collect();
                names.iter().for_each(|name| note(name, &|named| named.tensors.push(layer.id().output(port))));
            }
        }
        for (name, _, named) in &mut all {
            named.makers.sort_unstable();
            named.makers.dedup();
            match named.makers.len() {
                0 => return Err(FindError::Unknown((*name).to_owned())),
                1 => named
                    .results
                    .extend(named.tensors.iter().filter_map(|tensor| results.get(tensor)).flatten().copied()),
                _ => {
                    let addresses = named.makers.iter().map(|id| format!("id:{id}")).collect();
                    return Err(FindError::Ambiguous { name: (*name).to_owned(), addresses });
                }
            }
        }
        Ok(all)
    }
}
