//! Errors of edits.

use thiserror::Error;

use super::{FindError, Graph, Input, Layer, LayerId, Output};

/// Reason why an edit was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// There is no such layer.
    #[error("the graph has no layer {0}")]
    NoLayer(LayerId),
    /// The layer has no such output.
    #[error("layer {} has no output {}", .0.layer, .0.port)]
    NoOutput(Output),
    /// The layer has no such input.
    #[error("layer {} has no input {}", .0.layer, .0.port)]
    NoInput(Input),
    /// The layer has no such body.
    #[error("layer {layer} has no body {at}")]
    NoBody {
        /// The layer.
        layer: LayerId,
        /// The number of the body, from 0.
        at: usize,
    },
    /// The tensors cannot replace each other.
    #[error("layer {} has type {from_type} and cannot replace layer {} of type {to_type}", .from.layer, .to.layer)]
    Incompatible {
        /// The replacement.
        from: Output,
        /// The type and shape of the new tensor.
        from_type: String,
        /// The tensor that would be replaced.
        to: Output,
        /// The type and shape of the replaced tensor.
        to_type: String,
    },
    /// The layer cannot be removed, because another layer uses it.
    #[error("layer {layer} still feeds layer {consumer}")]
    InUse {
        /// The layer that would be removed.
        layer: LayerId,
        /// The layer that uses an output.
        consumer: LayerId,
    },
    /// Layers would form a cycle.
    #[error("layers {} would form a cycle", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle(Vec<LayerId>),
    /// A Result would be connected to a Parameter, or to a tensor with other uses and names, and would lose its name.
    #[error("Result {result} would lose its name")]
    NamesResult {
        /// The Result.
        result: LayerId,
    },
    /// The operation refuses these inputs or attributes.
    #[error("{operation} does not accept its inputs or attributes: {reason}")]
    Refused {
        /// The operation.
        operation: String,
        /// The reason.
        reason: String,
    },
    /// The operation has no inference rule, and the new layer does not declare its outputs.
    #[error("{0} has no inference rule: declare its outputs with `with_output`")]
    NoRule(String),
    /// The length of a constant's bytes does not match its type and shape.
    #[error("a constant of {expected} bytes cannot hold {found}")]
    WrongLength {
        /// The required number of bytes.
        expected: u64,
        /// The given number of bytes.
        found: u64,
    },
    /// The weights of a model with constants are missing, so the offset of a new constant is unknown.
    #[error(
        "the weights of the model are missing, so no constant can be added: put the .bin next to the .xml, or name its file"
    )]
    NoWeights,
    /// The bodies of an existing layer cannot be replaced.
    #[error("the bodies of layer {0} cannot be replaced; add a new layer with the new bodies")]
    HasBodies(LayerId),
    /// The edit would break the connection between a layer and its bodies.
    #[error("layer {layer}: {reason}")]
    Joined {
        /// The layer with the body, or the one in it.
        layer: LayerId,
        /// Description of the broken connection.
        reason: String,
    },
    /// Another tensor has this name.
    #[error("an output of layer {layer} already has the tensor name `{name}`")]
    NameTaken {
        /// The name.
        name: String,
        /// The layer that produces the tensor.
        layer: LayerId,
    },
    /// The new name of a tensor is empty.
    #[error("the name of a tensor must not be empty: OpenVINO would drop it")]
    EmptyName,
    /// Both models use the same names.
    #[error("both models have {}; give the names of the other one a prefix", some(.names))]
    NamesCollide {
        /// The names, sorted.
        names: Vec<String>,
    },
    /// Any other reason, given by the caller.
    #[error("{0}")]
    Other(String),
    /// No layer or tensor has the given name.
    #[error(transparent)]
    Find(#[from] FindError),
}

impl EditError {
    /// Returns the message with the names of layers, as this graph has them.
    ///
    /// # Examples
    /// ```
    /// # use typelift::Model;
    /// # let mut model = Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let x = model.graph().find("x")?;
    /// let error = model.edit(|graph| graph.remove(x)).unwrap_err();
    /// assert_eq!(error.describe(model.graph()), "layer 0 `x` still feeds layer 2 `scaled`");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn describe(&self, graph: &Graph) -> String {
        let layer = |id: LayerId| match graph.layer(id) {
            Some(layer) => format!("layer {id} `{}`", layer.name()),
            None => format!("layer {id}"),
        };
        match self {
            Self::NoOutput(output) => format!("{} has no output {}", layer(output.layer), output.port),
            Self::NoInput(input) => format!("{} has no input {}", layer(input.layer), input.port),
            Self::NoBody { layer: id, at } => format!("{} has no body {at}", layer(*id)),
            Self::InUse { layer: id, consumer } => format!("{} still feeds {}", layer(*id), layer(*consumer)),
            Self::NamesResult { result } => {
                format!("Result {result} `{}` would lose its name", graph.layer(*result).map_or("", Layer::name))
            }
            Self::Incompatible { from, from_type, to, to_type } => {
                let (from, to) = (layer(from.layer), layer(to.layer));
                format!("{from} has type {from_type} and cannot replace {to} of type {to_type}")
            }
            Self::Cycle(layers) => {
                let listed: Vec<_> = layers.iter().take(LISTED).map(|&id| layer(id)).collect();
                let more = layers.len().saturating_sub(LISTED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("{}{more} would form a cycle", listed.join(", "))
            }
            Self::HasBodies(id) => format!("{} keeps its bodies; add a layer for other ones", layer(*id)),
            Self::Joined { layer: id, reason } => format!("{}: {reason}", layer(*id)),
            Self::NameTaken { name, layer: id } => {
                format!("an output of {} already has the tensor name `{name}`", layer(*id))
            }
            _ => self.to_string(),
        }
    }
}

/// The number of names that an error lists.
const LISTED: usize = 8;

/// Lists the first of these names, and the number of the others.
fn some(names: &[String]) -> String {
    let listed = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{listed} and {} more", names.len() - LISTED) } else { listed }
}
