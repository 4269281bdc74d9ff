//! Location of a graph in a model: the model's own graph, or a body.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::{Graph, Layer, LayerId};

/// Location of a graph in a model: the model's own graph, or that of a body. It lists the layers around the body,
/// outermost first, each with the number of its body.
///
/// ```
/// # use typelift::LayerId;
/// # use typelift::graph::Place;
/// let inner = Place::default().body(LayerId(7), 0).body(LayerId(3), 1);
/// assert_eq!(inner.to_string(), "7.0/3.1");
/// assert_eq!("7.0/3.1".parse(), Ok(inner));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// `None` for the model's own graph. Shared, because every finding has a copy.
    inner: Option<Arc<Steps>>,
}

/// Steps from the model's own graph to a body.
#[derive(Debug)]
struct Steps {
    steps: Vec<(LayerId, usize)>,
    /// Names of the layers and bodies, or their ids if the names were not given. Comparison ignores this text.
    path: String,
}

impl Place {
    /// Returns the place of a layer's body in this graph.
    pub fn body(&self, layer: LayerId, at: usize) -> Self {
        self.step((layer, at), format_args!("{layer}.{at}"))
    }

    pub(crate) fn inside(&self, owner: &Layer, at: usize, body: &str) -> Self {
        self.step((owner.id, at), format_args!("{}/{body}", &*owner.name))
    }

    fn step(&self, step: (LayerId, usize), name: fmt::Arguments<'_>) -> Self {
        let inner = Steps { steps: [self.steps(), &[step]].concat(), path: self.path_to(name) };
        Self { inner: Some(Arc::new(inner)) }
    }

    /// True for the model's own graph.
    pub fn is_model(&self) -> bool {
        self.inner.is_none()
    }

    pub(crate) fn is_inside(&self, outer: &Self, layer: LayerId) -> bool {
        self.steps().starts_with(outer.steps())
            && self.steps().get(outer.steps().len()).is_some_and(|step| step.0 == layer)
    }

    /// Returns the surrounding layers, outermost first, each with the number of its body.
    pub fn steps(&self) -> &[(LayerId, usize)] {
        self.inner.as_deref().map_or(&[], |inner| &inner.steps)
    }

    /// Returns the names of the surrounding layers and bodies, outermost first: `loop/body`; empty for the model's own
    /// graph. A place that was created from ids has ids instead. Names may repeat, so different places may have the
    /// same path.
    pub fn path(&self) -> &str {
        self.inner.as_deref().map_or("", |inner| &inner.path)
    }

    /// Returns the path of a layer in the graph: `loop/body/add`.
    pub fn path_to(&self, name: impl fmt::Display) -> String {
        if self.is_model() { name.to_string() } else { format!("{}/{name}", self.path()) }
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.steps() == other.steps()
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.steps().hash(state);
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        self.steps().cmp(other.steps())
    }
}

/// Formats the steps: `7.0/3.1`.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (layer, body)) in self.steps().iter().enumerate() {
            write!(f, "{}{layer}.{body}", if at == 0 { "" } else { "/" })?;
        }
        Ok(())
    }
}

impl FromStr for Place {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<Self, ParsePlaceError> {
        let mut steps = text.split('/').filter(|_| !text.is_empty());
        let place = steps.try_fold(Self::default(), |place, step| {
            let (layer, at) = step.split_once('.')?;
            Some(place.body(layer.parse().ok()?, at.parse().ok()?))
        });
        place.ok_or_else(|| ParsePlaceError(text.to_owned()))
    }
}

/// Text that is not a [`Place`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` does not identify a graph: write the id of each surrounding layer and the number of its body, as in 7.0/3.1"
)]
pub struct ParsePlaceError(String);

impl Graph {
    /// `None` if a layer or body does not exist.
    pub(crate) fn named_place(&self, steps: &[(LayerId, usize)]) -> Option<Place> {
        let mut graph = self;
        let mut place = Place::default();
        for &(owner, at) in steps {
            let owner = graph.layer(owner)?;
            let body = owner.bodies.get(at)?;
            (graph, place) = (&body.graph, place.inside(owner, at, body.name()));
        }
        Some(place)
    }
}
