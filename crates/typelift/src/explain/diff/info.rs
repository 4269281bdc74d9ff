//! Differences between the metadata of two models.

use crate::edit::inputs_outputs::End;
use crate::edit::metadata::InfoChange;
use crate::model::graph::Model;

/// Compares the metadata of two models. Returns the values that programs may read, and versions of the programs that
/// wrote the models.
pub(super) fn compare(before: &Model, after: &Model) -> (Vec<InfoChange>, Vec<InfoChange>) {
    let [before, after] = [before, after].map(|model| model.rt_info_entries().into_iter().chain(layouts(model)));
    InfoChange::between(before, after).partition(|change| !is_version(&change.path))
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
