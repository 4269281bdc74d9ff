//! Index of names, for fast lookup of many layers.

use smallvec::SmallVec;

use super::{FindError, Graph, Layer, LayerId, Model, Output, Place};
use crate::base::hash::{self, HashMap};

/// Names of the layers and tensors of a model's own graph. A lookup takes constant time, while [`Model::find`] searches
/// the graph.
///
/// ```
/// # use typelift::graph::{Names, Place};
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let names = Names::of(&model);
/// assert_eq!(names.find(&model, "relu"), model.find("relu"));
/// assert_eq!(names.tensor(&model, "y"), model.graph().tensor("y"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Layers by the hash of their names and tensor names, past and present. A lookup compares the name again.
    layers: HashMap<u64, SmallVec<[LayerId; 1]>>,
    /// Length of the batch's journal up to which the index is current.
    seen: usize,
    /// The next number to try after a name of a layer that is taken.
    next: HashMap<String, u64>,
}

impl Names {
    /// Indexes the names in a model.
    pub fn of(model: &Model) -> Self {
        Self::of_graph(model.graph())
    }

    fn of_graph(graph: &Graph) -> Self {
        let mut names = Self { seen: graph.batch_len(), ..Self::default() };
        graph.unordered().for_each(|layer| names.add(layer));
        names
    }

    /// Adds the names that the current [batch](crate::edit::Batch) has set since the last update.
    pub fn update(&mut self, model: &Model) {
        self.follow(model.graph());
    }

    fn follow(&mut self, graph: &Graph) {
        graph.touched_since(self.seen).filter_map(|id| graph.layer(id)).for_each(|layer| self.add(layer));
        self.seen = graph.batch_len();
    }

    /// Adds the names that undone changes gave back to these layers. The journal has this length again.
    pub(super) fn rewind(&mut self, graph: &Graph, mark: usize, touched: &[LayerId]) {
        touched.iter().filter_map(|&id| graph.layer(id)).for_each(|layer| self.add(layer));
        self.seen = self.seen.min(mark);
    }

    fn add(&mut self, layer: &Layer) {
        let of_tensors = layer.outputs.iter().filter_map(|port| port.names.as_deref());
        let of_tensors = of_tensors.chain(layer.output_names());
        let of_tensors: SmallVec<[_; 1]> = of_tensors.flat_map(super::split_names).collect();
        for name in of_tensors.iter().map(String::as_str).chain([&*layer.name]) {
            let known = self.layers.entry(hash::of(name)).or_default();
            if !known.contains(&layer.id) {
                known.push(layer.id);
            }
        }
    }

    fn candidates<'g>(&self, graph: &'g Graph, name: &str) -> impl Iterator<Item = &'g Layer> + use<'_, 'g> {
        self.layers.get(&hash::of(name)).into_iter().flatten().filter_map(|&id| graph.layer(id))
    }

    /// Returns the result of [`Model::find`] in the indexed model.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn find(&self, model: &Model, path: &str) -> Result<(Place, LayerId), FindError> {
        match model.graph().find_among(path, &|name| self.candidates(model.graph(), name)) {
            Ok(id) => Ok((Place::default(), id)),
            Err(FindError::Unknown(_)) => model.find(path),
            Err(error) => Err(error),
        }
    }

    /// Returns the result of [`Graph::tensor`] in the model's own graph.
    ///
    /// # Errors
    /// [`FindError`] if there is none, or more than one.
    pub fn tensor(&self, model: &Model, name: &str) -> Result<Output, FindError> {
        model.graph().tensor_among(name, &|name| self.candidates(model.graph(), name))
    }
}

impl Graph {
    /// Looks names up in the index of the batch, which the first search makes.
    fn with_names<T>(&mut self, look: impl FnOnce(&mut Names, &Self) -> T) -> T {
        let mut names = self.journal.names.take().unwrap_or_else(|| Box::new(Names::of_graph(self)));
        names.follow(self);
        let found = look(&mut names, self);
        self.journal.names = Some(names);
        found
    }

    /// Does the same as [`unused_name`](Self::unused_name), in constant time.
    pub(crate) fn free_name(&mut self, name: String) -> String {
        self.with_names(|names, graph| {
            let is_taken = |known: &Names, name: &str| known.candidates(graph, name).any(|it| *it.name == *name);
            if !is_taken(names, &name) {
                return name;
            }
            let first = names.next.get(&name).copied().unwrap_or(2);
            let mut free = (first..).filter(|number| !is_taken(names, &format!("{name}_{number}")));
            let number = free.next().unwrap_or(first);
            let found = format!("{name}_{number}");
            names.next.insert(name, number + 1);
            found
        })
    }

    /// Does the same as [`tensor_named`](Self::tensor_named), in constant time.
    pub(crate) fn tensor_called(&mut self, name: &str) -> Result<Option<Output>, FindError> {
        self.with_names(|names, graph| graph.tensor_named_among(name, names.candidates(graph, name)))
    }
}

/// Returns the start of a name up to its first numeric section, which identifies a repeated block: `model.layers.12`
/// of `model.layers.12.mlp/Add_3`.
///
/// ```
/// use typelift::graph::numbered_prefix;
/// assert_eq!(numbered_prefix("model.layers.12.mlp/Add_3"), Some("model.layers.12"));
/// assert_eq!(numbered_prefix("Add_3"), None);
/// ```
#[must_use]
pub fn numbered_prefix(name: &str) -> Option<&str> {
    numeric_words(name).next().map(|end| &name[..end])
}

/// The ends of the words of a name that are numbers: not the first word, and not the last.
pub(crate) fn numeric_words(name: &str) -> impl Iterator<Item = usize> {
    let mut start = 0;
    let ends = name.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'.' | b'/'));
    ends.filter_map(move |(end, _)| {
        let from = std::mem::replace(&mut start, end + 1);
        let is_number = from > 0 && from < end && name.as_bytes()[from..end].iter().all(u8::is_ascii_digit);
        is_number.then_some(end)
    })
}

#[cfg(test)]
mod tests {
    use super::numbered_prefix;

    #[test]
    fn a_number_in_a_name_is_that_of_a_block() {
        assert_eq!(numbered_prefix("model.layers.12.mlp/Add_3"), Some("model.layers.12"));
        assert_eq!(numbered_prefix("Add_3"), None);
        assert_eq!(numbered_prefix("12"), None);
    }
}
