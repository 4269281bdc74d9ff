//! Why an edit is refused.

use thiserror::Error;

use super::{FindError, Input, LayerId, Output};

/// Why an edit was not made.
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
        /// Which one, counted from 0.
        at: usize,
    },
    /// The tensors cannot replace each other.
    #[error("{from_type} of layer {} cannot take the place of {to_type} of layer {}", .from.layer, .to.layer)]
    Incompatible {
        /// The tensor that would be used.
        from: Output,
        /// Its type and shape.
        from_type: String,
        /// The tensor that is used.
        to: Output,
        /// Its type and shape.
        to_type: String,
    },
    /// Something still uses the layer.
    #[error("layer {layer} still feeds layer {consumer}")]
    InUse {
        /// The layer that would go.
        layer: LayerId,
        /// A layer that uses it.
        consumer: LayerId,
    },
    /// Layers would form a cycle.
    #[error("layers {} would form a cycle", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Cycle(Vec<LayerId>),
    /// A Result would take a Parameter, or a tensor that has other uses and other names: it would lose its name.
    #[error("Result {result} would lose its name")]
    NamesResult {
        /// The Result.
        result: LayerId,
    },
    /// The operation refuses these inputs or attributes.
    #[error("{operation} refuses this: {reason}")]
    Refused {
        /// The operation.
        operation: String,
        /// Why.
        reason: String,
    },
    /// The operation has no rule here, and the new layer does not say its outputs.
    #[error("nothing is known of {0}: give its outputs with `with_output`")]
    NoRule(String),
    /// A constant whose bytes are not as many as its type and shape take.
    #[error("a constant of {expected} bytes cannot hold {found}")]
    WrongLength {
        /// The bytes that type and shape take.
        expected: u64,
        /// The bytes that were given.
        found: u64,
    },
    /// The model has constants, and its weights are not there: nobody knows where a new constant could go.
    #[error(
        "the weights of the model are not there, so no constant can be added after them: put the .bin beside the .xml, or \
         say which file it is"
    )]
    NoWeights,
    /// A layer keeps the bodies that it has: one that is there does not get other ones.
    #[error("layer {0} keeps its bodies; add a layer for other ones")]
    HasBodies(LayerId),
    /// What joins a layer and its bodies would break.
    #[error("layer {layer}: {reason}")]
    Joined {
        /// The layer with the body, or the one in it.
        layer: LayerId,
        /// What would not be there.
        reason: String,
    },
    /// Another tensor has this name.
    #[error("the tensor of layer {layer} is called `{name}` already")]
    NameTaken {
        /// The name.
        name: String,
        /// The layer that makes the tensor.
        layer: LayerId,
    },
    /// A tensor would get a name without letters.
    #[error("the name of a tensor must not be empty: OpenVINO would drop it")]
    EmptyName,
    /// Both models have something of these names.
    #[error("both models have {}; give the names of the other one a prefix", some(.names))]
    NamesCollide {
        /// The names, sorted.
        names: Vec<String>,
    },
    /// Something else, which whoever edits has to say.
    #[error("{0}")]
    Other(String),
    /// There is no such layer or tensor.
    #[error(transparent)]
    Find(#[from] FindError),
}

/// How many names an error lists.
const LISTED: usize = 8;

/// The first of these names, and how many more there are.
fn some(names: &[String]) -> String {
    let listed = names.iter().take(LISTED).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{listed} and {} more", names.len() - LISTED) } else { listed }
}
