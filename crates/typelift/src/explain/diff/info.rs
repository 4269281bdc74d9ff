//! Differences between the metadata of two models.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ChangeKind;
use crate::edit::inputs_outputs::End;
use crate::model::graph::Model;

/// A metadata value that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct InfoChange {
    /// Always [`ChangeKind::Info`].
    pub kind: ChangeKind,
    /// Always `None`: metadata belongs to the model.
    pub layer: Option<()>,
    /// The keys, `model_info/labels`, or the input or output with the layout, `images: layout`.
    pub path: String,
    /// The value in the first model; `None` if there is none.
    pub before: Option<String>,
    /// The value in the second model; `None` if there is none.
    pub after: Option<String>,
}

/// Compares the metadata of two models. Returns the values that programs may read, and versions of the programs that
/// wrote the models.
pub(super) fn compare(before: &Model, after: &Model) -> (Vec<InfoChange>, Vec<InfoChange>) {
    let mut pairs = BTreeMap::<String, [Option<String>; 2]>::new();
    for (side, model) in [before, after].into_iter().enumerate() {
        for (path, value) in model.rt_info_entries().into_iter().chain(layouts(model)) {
            pairs.entry(path).or_default()[side] = Some(value);
        }
    }
    let different = pairs.into_iter().filter(|(_, [before, after])| before != after);
    let changes = different.map(|(path, [before, after])| InfoChange {
        kind: ChangeKind::Info,
        layer: None,
        path,
        before,
        after,
    });
    changes.partition(|change| !is_version(&change.path))
}

/// True for a key that says who made a model, and how. No program reads it to decide what a model computes.
fn is_version(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default().trim_matches('"');
    let last = path.rsplit('/').next().unwrap_or_default().trim_matches('"');
    last == "version"
        || last.to_lowercase().ends_with("_version")
        || ["conversion_parameters", "OpenVINO Runtime"].contains(&first)
}

fn layouts(model: &Model) -> Vec<(String, String)> {
    let of = |end: End| {
        let ends = model.ends_with_names(end).into_iter();
        ends.filter_map(|(id, name)| Some((format!("{name}: layout"), model.layout(id)?)))
    };
    of(End::Input).chain(of(End::Output)).collect()
}
