//! Names of inputs, as OpenVINO's Python functions and specification spell them.

use std::sync::LazyLock;

use super::Operation;
use crate::base::hash::HashMap;

/// Lists of names, each with the operations that have it. `Interpolate-11` is one revision.
const NAMES: &str = include_str!("inputs.txt");

/// The lists by operation, and by revision where it differs from the others.
static LISTS: LazyLock<HashMap<(&str, Option<u8>), &str>> = LazyLock::new(|| {
    let lists = NAMES.split(['\n', ';']).filter_map(|list| list.split_once(": "));
    let operations = lists.flat_map(|(names, operations)| operations.split(' ').map(move |it| (it, names.trim())));
    let rows = operations.map(|(operation, names)| match operation.split_once('-') {
        Some((name, revision)) => ((name, revision.parse().ok()), names),
        None => ((operation, None), names),
    });
    rows.collect()
});

impl Operation {
    /// Returns the name of an input: `axis`. Equal operands, such as those of Add, and inputs of bodies have none.
    pub fn input_name(&self, input: usize) -> Option<&'static str> {
        self.input_names().nth(input)
    }

    /// Returns the names of the first inputs.
    pub fn input_names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let own = LISTS.get(&(self.name, Some(self.revision)));
        own.or_else(|| LISTS.get(&(self.name, None))).into_iter().flat_map(|names| names.split(' '))
    }
}
