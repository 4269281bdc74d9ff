//! A map from the layers of a graph to values.

use super::{Graph, LayerId};
use crate::base::hash::HashMap;

/// Map from the layers of a graph to values, by id. Files number their layers from zero, so most entries are in an
/// array. This is several times as fast as a hash map for a million layers.
#[derive(Clone, Debug)]
pub struct LayerMap<T> {
    first: Vec<Option<T>>,
    others: HashMap<LayerId, T>,
}

impl<T> LayerMap<T> {
    /// Creates an empty map for a graph.
    pub fn new(graph: &Graph) -> Self {
        let first = std::iter::repeat_with(|| None).take(graph.len() + graph.len() / 2).collect();
        Self { first, others: HashMap::default() }
    }

    /// Inserts a value for a layer, and returns the former one.
    pub fn insert(&mut self, layer: LayerId, value: T) -> Option<T> {
        match usize::try_from(layer.0).ok().and_then(|at| self.first.get_mut(at)) {
            Some(place) => place.replace(value),
            None => self.others.insert(layer, value),
        }
    }

    /// Returns the value of a layer.
    pub fn get(&self, layer: LayerId) -> Option<&T> {
        match usize::try_from(layer.0).ok().and_then(|at| self.first.get(at)) {
            Some(place) => place.as_ref(),
            None => self.others.get(&layer),
        }
    }
}

impl<T> Extend<(LayerId, T)> for LayerMap<T> {
    fn extend<I: IntoIterator<Item = (LayerId, T)>>(&mut self, values: I) {
        values.into_iter().for_each(|(layer, value)| drop(self.insert(layer, value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_with_large_ids_have_places_too() {
        let graph = crate::Model::from_text("x = Parameter : f32[2]\nr = Result(x)\n").unwrap();
        let mut map = LayerMap::new(graph.graph());
        for id in [0, 1, 5, u64::MAX] {
            assert_eq!(map.insert(LayerId(id), id), None);
            assert_eq!(map.insert(LayerId(id), id + u64::from(id < 2)), Some(id));
        }
        assert_eq!([0, 1, 5, u64::MAX].map(|id| map.get(LayerId(id)).copied()), [1, 2, 5, u64::MAX].map(Some));
        assert_eq!(map.get(LayerId(2)), None);
    }
}
