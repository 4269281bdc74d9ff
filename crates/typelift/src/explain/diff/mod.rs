//! Differences in meaning between two models, as data.

pub(crate) mod alike;
mod compare;
mod info;
mod matching;
mod quantized;
mod side;
pub(crate) mod story;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::base::hash::HashSet;
pub(crate) use crate::edit::metadata::InfoChange;
use crate::findings::LayerRef;
use crate::infer::infer;
use crate::model::graph::{LayerId, Model};
use crate::ops::{LayerKind, kind};
use crate::text::xml::{self, WriteOptions};

pub(crate) use alike::Alike;
use alike::{alike, ranges};
pub(crate) use values::{ValueChange, ValueError};

/// Differences in meaning between two models.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Diff {
    /// The changes, in the order of the second model.
    pub changes: Vec<Change>,
    /// The number of constants whose values could not be compared because weights are missing.
    pub unread: usize,
    /// Repeated blocks that only one of the models has, in the models' own graphs.
    pub blocks: Vec<BlockChange>,
    /// Metadata that differs.
    pub info: Vec<InfoChange>,
    /// Versions of the programs that wrote the models, if they differ. They change nothing.
    pub versions: Vec<InfoChange>,
    /// The constants with several values that are stored as before although others of their type are not: the stored type,
    /// and the path of each.
    pub kept: BTreeMap<String, Vec<String>>,
    /// The layers of these blocks; the flag is true for added ones.
    whole: HashSet<(bool, LayerId)>,
}

/// Repeated block that was added or removed completely.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockChange {
    /// [`ChangeKind::Added`] or [`ChangeKind::Removed`].
    pub kind: ChangeKind,
    /// The name: `model.layers.5`.
    pub name: String,
    /// The layers of the block, in the model that has it.
    pub layers: Vec<LayerId>,
    /// The size of its constants in bytes.
    pub bytes: u64,
}

impl Diff {
    /// True if the models compute the same and have the same names and metadata.
    pub fn is_same(&self) -> bool {
        self.changes.is_empty() && self.info.is_empty()
    }
}

impl Serialize for Diff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Diff", 4)?;
        object.serialize_field("same", &self.is_same())?;
        object.serialize_field("story", &self.story())?;
        object.serialize_field("unread_constants", &self.unread)?;
        let info = self.info.iter().map(|change| Item::Model { kind: ChangeKind::Info, layer: None, change });
        let changes: Vec<Item<'_>> = self.changes.iter().map(Item::Layer).chain(info).collect();
        object.serialize_field("changes", &changes)?;
        object.end()
    }
}

/// A change of a layer, or of the metadata, which belongs to none.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Layer(&'a Change),
    Model {
        kind: ChangeKind,
        layer: Option<()>,
        #[serde(flatten)]
        change: &'a InfoChange,
    },
}

/// Kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// A layer that only the second model has.
    Added,
    /// A layer that only the first model has.
    Removed,
    /// The operation or its revision differs.
    Operation,
    /// An attribute, or the connections of a body.
    Attribute,
    /// The element type of an output.
    Type,
    /// The shape of an output.
    Shape,
    /// The tensor that feeds an input.
    Input,
    /// The values of a constant.
    Constant,
    /// The precision marks.
    Mark,
    /// The name of a layer or of its tensors.
    Names,
    /// The metadata of the model, or the layout of an input or output.
    Info,
}

impl ChangeKind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Added,
        Self::Removed,
        Self::Operation,
        Self::Attribute,
        Self::Type,
        Self::Shape,
        Self::Input,
        Self::Constant,
        Self::Mark,
        Self::Names,
        Self::Info,
    ];

    /// Returns the name in JSON and on the command line, such as `added`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Operation => "operation",
            Self::Attribute => "attribute",
            Self::Type => "type",
            Self::Shape => "shape",
            Self::Input => "input",
            Self::Constant => "constant",
            Self::Mark => "mark",
            Self::Names => "names",
            Self::Info => "info",
        }
    }
}

/// A difference that is not a consequence of another one.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The kind of difference.
    pub kind: ChangeKind,
    /// The layer in the second model; a removed layer in the first model.
    pub layer: LayerRef,
    /// The path of the layer for [`Model::find`]: the names of the bodies around it, then its own, `loop/body/x`.
    pub path: String,
    /// The numbered block of the layer: `model.layers.12`; `None` outside of blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// The operation, as the file spells it.
    pub operation: String,
    /// The attribute, the input or the output that differs, if there are several: `axis`, `input 1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The value in the first model; `None` if there is none.
    pub before: Option<String>,
    /// The value in the second model; `None` if there is none.
    pub after: Option<String>,
    /// The difference of a constant's values, if both have the same shape and are numeric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<ValueChange>,
    /// The error of a constant that is stored in another type. Values are compared in the type in which they are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ValueError>,
    /// The line of the layer in the first file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_line: Option<usize>,
    /// The line of the layer in the second file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_line: Option<usize>,
    /// True for a layer that computes from constants alone. If it was removed, its value was folded into a constant.
    #[serde(skip)]
    pub(crate) is_stored: bool,
    /// True for an input that leads to another constant of the same values, and for the constant that it led to.
    #[serde(skip)]
    pub(crate) is_merged: bool,
    /// For a removed layer: the layer of the second model that computes what its consumers read now, if it is added or
    /// changed. For weights into which the next layer was folded: what else this layer was folded into.
    #[serde(skip)]
    pub(crate) into: Option<LayerId>,
    /// For an input that led to a block which no other block of the second model reads: this block.
    #[serde(skip)]
    pub bypassed: Option<String>,
    /// The consequences of this change, in the order of the graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<Consequence>,
}

impl Change {
    /// Returns the types in which a constant is stored in both models: `f32` and `f16`, or `int8 symmetric`.
    pub fn stored_types(&self) -> [&str; 2] {
        let text = [&self.before, &self.after].map(|side| side.as_deref().unwrap_or_default());
        text.map(|text| text.split('[').next().unwrap_or_default().trim_end())
    }

    /// Returns the figure by which changes of constants are compared; 0 for other changes.
    pub fn loss(&self) -> f64 {
        let largest = self.values.as_ref().map_or(0.0, |values| values.largest);
        self.error.map_or(largest, |error| error.size())
    }
}

/// Difference that a [`Change`] causes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Consequence {
    /// The kind of difference.
    pub kind: ChangeKind,
    /// The path of the layer.
    pub path: String,
    /// The input or the output that differs, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The value in the first model; `None` if there is none.
    pub before: Option<String>,
    /// The value in the second model; `None` if there is none.
    pub after: Option<String>,
}

/// Compares two inferred models.
///
/// Ids, the order of layers and edges, port numbers, the layout of the file and the `rt_info` of layers are ignored, except
/// for [precision marks](crate::edit::precision_marks). The metadata of the models is compared. Layers on which no Result depends are ignored too, because OpenVINO
/// drops them. Layers are matched by name if it is unique in both graphs, otherwise by operation and neighbours. If
/// the weights of one model are missing, those of the other are ignored too. Constants that are quantized differently
/// are compared by their computed values. A consequence is listed with the change that causes it.
///
/// The time is linear in the size of both models.
///
/// # Examples
/// ```
/// let model = |ty| typelift::Model::from_text(&format!("x = Parameter : {ty}[?]\ny = Relu(x)"));
/// let (before, after) = (model("f16")?, model("f32")?);
/// let diff = typelift::diff(&before, &after);
/// assert_eq!(diff.changes.len(), 1);
/// assert_eq!(diff.changes[0].path, "x");
/// assert_eq!(diff.changes[0].follows[0].path, "y");
/// assert_eq!(typelift::matched_layers(&before, &after).len(), 2);
/// # Ok::<(), typelift::rewrite::notation::NotationError>(())
/// ```
#[must_use]
pub fn diff(before: &Model, after: &Model) -> Diff {
    let compare = |before: &Model, after: &Model| compare::Comparison::new(&quantized::plain(before, after)).run();
    let forgetful = match (lacks_weights(before), lacks_weights(after)) {
        (true, false) => without_weights(after),
        (false, true) => without_weights(before),
        _ => None,
    };
    let mut diff = match forgetful {
        Some(after) if lacks_weights(before) => compare(before, &after),
        Some(before) => compare(&before, after),
        None => compare(before, after),
    };
    diff.measure_blocks(before, after);
    (diff.info, diff.versions) = info::compare(before, after);
    diff
}

/// Returns the pairs of layers in the models' own graphs that [`diff()`] matches.
#[must_use]
pub fn matched_layers(before: &Model, after: &Model) -> Vec<(LayerId, LayerId)> {
    let before = side::Side::new(before.graph(), before, None);
    let after = side::Side::new(after.graph(), after, None);
    let pairs = matching::matched(&before, &after).of_before;
    let pairs = pairs.into_iter().enumerate().filter_map(|(a, b)| Some((a, b?)));
    pairs.map(|(a, b)| (before.layers[a].id(), after.layers[b].id())).collect()
}

fn lacks_weights(model: &Model) -> bool {
    model.weights().len().is_none()
        && model.walk().any(|(_, graph)| graph.layers().any(|layer| kind(layer) == LayerKind::Constant))
}

/// Infers a copy of the model without its weights. Otherwise shapes that depend on values would differ from those of
/// the other model. The copy is read again, because inference has replaced the declared ports.
fn without_weights(model: &Model) -> Option<Model> {
    let text = xml::write(model, WriteOptions::default());
    let mut model = xml::parse(Arc::new(text)).model?;
    // Errors were already found when the model was inferred with its weights.
    let _found_before = infer(&mut model);
    Some(model)
}
