//! What is known of each layer of a graph.

use rustc_hash::FxHashMap;

use super::{Graph, LayerId};

/// Something for layers of a graph, by their ids. Files number their layers from zero on, so most are in an array, which is
/// several times as fast as a hash map where there are a million.
#[derive(Clone, Debug)]
pub struct LayerMap<T> {
    first: Vec<Option<T>>,
    others: FxHashMap<LayerId, T>,
}

impl<T> LayerMap<T> {
    /// An empty one for a graph.
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        let first = std::iter::repeat_with(|| None).take(graph.len() + graph.len() / 2).collect();
        Self { first, others: FxHashMap::default() }
    }

    /// Puts something in for a layer; gives what was there.
    pub fn insert(&mut self, layer: LayerId, value: T) -> Option<T> {
        match usize::try_from(layer.0).ok().and_then(|at| self.first.get_mut(at)) {
            Some(place) => place.replace(value),
            None => self.others.insert(layer, value),
        }
    }

    /// What there is for a layer.
    #[must_use]
    pub fn get(&self, layer: LayerId) -> Option<&T> {
        match usize::try_from(layer.0).ok().and_then(|at| self.first.get(at)) {
            Some(place) => place.as_ref(),
            None => self.others.get(&layer),
        }
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
