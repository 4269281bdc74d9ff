//! Names by the parts between their signs.

use std::cmp::Reverse;

/// The name of which the most parts begin as parts of a word: `fuse-gelu` for `gelu-fusion`, `seq` for `sequence-length`.
pub(crate) fn by_parts<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let ranked = names.map(|name| (shared(name, word) * 2, Reverse(parts(name).count()), name));
    Some(ranked.filter(|(shared, Reverse(all), _)| shared > all).max()?.2.to_owned())
}

/// The number of parts of a name that begin as parts of a word.
fn shared(name: &str, word: &str) -> usize {
    parts(name).filter(|own| own.len() > 2 && parts(word).any(|part| own.get(..3) == part.get(..3))).count()
}

pub(crate) fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(|letter: char| !letter.is_ascii_alphanumeric())
}
