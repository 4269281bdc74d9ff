//! Globs, and the known name that is nearest to a misspelled one.

use std::borrow::Cow;

use super::name_pattern::NamePattern;

pub(crate) fn matches_glob(glob: &str, name: &str) -> bool {
    glob == name || captures(glob, name).is_some()
}

pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?']) || text.contains(['[', '{']) && NamePattern::new(text).is_open()
}

/// `None` if the name does not match.
pub(crate) fn captures(glob: &str, name: &str) -> Option<Vec<String>> {
    NamePattern::new(glob).captures(name, &|_| None)
}

/// The nearest of `names`, if it differs from `text` in at most a third of the letters.
pub(crate) fn nearest<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    nearest_within(text.chars().count().min(60) / 3, text, names)
}

fn nearest_within<'n>(limit: usize, text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let near = names.into_iter().filter(|name| name.len().abs_diff(text.len()) <= limit);
    let near = near.filter(|name| least_distance(text, name) <= limit);
    // Of names that are equally near, one of the same length is likelier: two letters are exchanged.
    let distances = near.map(|name| ((distance(text, name), name.len().abs_diff(text.len())), name));
    let ((distance, _), name) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= limit).then_some(name)
}

/// A lower bound of the distance: the ASCII letters that only one of the two has. Unlike the distance it allocates nothing, and most
/// names need no more.
fn least_distance(text: &str, name: &str) -> usize {
    let mut more = [0_i32; 128];
    for byte in text.bytes().filter(u8::is_ascii) {
        more[usize::from(byte.to_ascii_lowercase())] += 1;
    }
    for byte in name.bytes().filter(u8::is_ascii) {
        more[usize::from(byte.to_ascii_lowercase())] -= 1;
    }
    let only = |sign: i32| more.iter().map(|&count| (count * sign).max(0)).sum::<i32>();
    only(1).max(only(-1)) as usize
}

/// The least number of letters that are taken for a part of a name.
const BEGINNING: usize = 3;

/// Maximum length of a name that is suggested for a pattern. Both lengths multiplied give the steps and the memory.
const LONGEST: usize = 2000;

/// Returns the nearest of the known names, if it differs in at most a third of the letters or in one of two, the
/// shortest that begins with the text or contains it, or the only one that has a word of the text. For a text with `*` or `?`, returns a similar pattern that matches a known name.
///
/// # Examples
/// ```
/// let names = ["head/add", "head/norm", "tail"];
/// assert_eq!(typelift::near("hed/add", names), Some("head/add".to_owned()));
/// assert_eq!(typelift::near("my norm", names), Some("head/norm".to_owned()));
/// assert_eq!(typelift::near("hed/*", names), Some("head/*".to_owned()));
/// assert_eq!(typelift::near("dx", ["d", "ex"]), Some("ex".to_owned()));
/// assert_eq!(typelift::near("body/*", names), None);
/// ```
#[must_use]
pub fn near<'n>(text: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    if !is_glob(text) {
        let names: Vec<_> = names.into_iter().collect();
        let whole = names.iter().copied().filter(|name| text.len() >= BEGINNING && name.contains(text));
        return nearest(text, names.iter().copied())
            .or_else(|| whole.min_by_key(|name| (!name.starts_with(text), name.len())))
            .or_else(|| sharing(text, &names))
            .or_else(|| nearest_within(usize::from(text.chars().count() == 2), text, names))
            .map(str::to_owned);
    }
    let limit = text.chars().filter(|letter| !['*', '?'].contains(letter)).count().min(60) / 3;
    let names = names.into_iter().filter(|name| name.len() <= LONGEST);
    let tables = names.map(|name| GlobDistance::of(text, name));
    let best = tables.min_by_key(GlobDistance::distance).filter(|best| best.distance() <= limit)?;
    Some(best.glob())
}

/// The only name that has a word of the text.
fn sharing<'n>(text: &str, names: &[&'n str]) -> Option<&'n str> {
    let is_in_text = |word: &str| word.len() >= BEGINNING && words(text).any(|known| known == word);
    let mut sharing = names.iter().copied().filter(|name| words(name).any(is_in_text));
    sharing.next().filter(|_| sharing.next().is_none())
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric())
}

/// Edit distance between a glob and a name: the number of letters to change, add or remove until they match.
struct GlobDistance {
    glob: Vec<char>,
    name: Vec<char>,
    /// Edit distances between the first letters of the glob (row) and the first letters of the name (column).
    rows: Vec<Vec<usize>>,
}

impl GlobDistance {
    fn of(glob: &str, name: &str) -> Self {
        let (glob, name): (Vec<_>, Vec<_>) = (glob.chars().collect(), name.chars().collect());
        let mut rows = vec![(0..=name.len()).collect::<Vec<_>>()];
        for (above, &letter) in glob.iter().enumerate() {
            let (above, cost) = (&rows[above], usize::from(letter != '*'));
            let mut row = vec![above[0] + cost];
            for (at, &other) in name.iter().enumerate() {
                let changed = above[at] + usize::from(!stands_for(letter, other));
                row.push(changed.min(above[at + 1] + cost).min(row[at] + cost));
            }
            rows.push(row);
        }
        Self { glob, name, rows }
    }

    fn distance(&self) -> usize {
        self.rows[self.glob.len()][self.name.len()]
    }

    /// The glob with differing letters replaced by those of the name. Each `*` matches as few letters as possible.
    fn glob(&self) -> String {
        let (mut row, mut at, mut letters) = (self.glob.len(), self.name.len(), Vec::new());
        while row > 0 || at > 0 {
            let here = self.rows[row][at];
            let [above, before] = [row, at].map(|it| it.checked_sub(1));
            let letter = above.map(|above| self.glob[above]);
            let other = before.map(|before| self.name[before]);
            let cost = usize::from(letter != Some('*'));
            let is = |row: Option<usize>, at: Option<usize>, cost: usize| {
                row.zip(at).is_some_and(|(row, at)| self.rows[row][at] + cost == here)
            };
            let fits = letter.zip(other).is_some_and(|(letter, other)| stands_for(letter, other));
            let (up, left, kept) = match () {
                () if cost == 0 && is(above, Some(at), 0) => (1, 0, letter),
                () if cost == 1 && fits && is(above, before, 0) => {
                    (1, 1, if letter == Some('?') { letter } else { other })
                }
                () if is(Some(row), before, cost) => (0, 1, other.filter(|_| cost == 1)),
                () if is(above, Some(at), cost) => (1, 0, None),
                () => (1, 1, other),
            };
            (row, at) = (row - up, at - left);
            letters.extend(kept);
        }
        letters.into_iter().rev().collect()
    }
}

/// Case is ignored.
fn stands_for(letter: char, other: char) -> bool {
    ['*', '?'].contains(&letter) || letter.eq_ignore_ascii_case(&other)
}

/// True if the distance is at most the limit. For most names the letters alone refute it.
pub(crate) fn is_within(limit: usize, a: &str, b: &str) -> bool {
    least_distance(a, b) <= limit && distance(a, b) <= limit
}

/// Case is ignored.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

pub(crate) fn on_one_line(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escaped = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    Cow::Owned(escaped.collect())
}

/// Replaces each number in a name by `*`, so that layers of sibling blocks have one pattern.
///
/// ```
/// assert_eq!(typelift::host::without_numbers("layers.12.norm_3"), "layers.*.norm_*");
/// ```
#[must_use]
pub fn without_numbers(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            false => pattern.push(letter),
            true if pattern.ends_with('*') => {}
            true => pattern.push('*'),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        let cases = [
            ("add*", "add", true),
            ("add*", "add_1/x", true),
            ("*/add", "loop/body/add", true),
            ("a?d", "and", true),
            ("a?d", "ad", false),
            ("a*b*c", "axbxbxc", true),
            ("a*b*c", "axbxbx", false),
            ("add", "add_1", false),
            ("", "", true),
            ("*", "", true),
            ("gr\u{fc}?", "gr\u{fc}n", true),
        ];
        for (glob, name, matches) in cases {
            assert_eq!(matches_glob(glob, name), matches, "{glob} {name}");
        }
    }

    #[test]
    fn a_glob_says_what_it_stands_for() {
        assert_eq!(captures("past.*.?.key*", "past.12.a.keys"), Some(vec!["12".into(), "a".into(), "s".into()]));
        assert_eq!(captures("a*b*", "axbxb"), Some(vec!["x".into(), "xb".into()]));
        assert_eq!(captures("a", "a"), Some(vec![]));
        assert_eq!(captures("a*", "b"), None);
    }

    #[test]
    fn misspellings_find_what_was_meant() {
        let nearest = |text| nearest(text, crate::ops::all().map(|row| row.name));
        assert_eq!(nearest("Rellu"), Some("Relu"));
        assert_eq!(nearest("convolutoin"), Some("Convolution"));
        assert_eq!(nearest("BatchNormInferense"), Some("BatchNormInference"));
        assert_eq!(nearest("RegexSplit"), None);
        assert_eq!(nearest("ab"), None);
        assert_eq!(nearest(""), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn a_misspelt_glob_becomes_one_that_a_name_fits() {
        let names = ["model/layers.0/norm", "model/layers.0/attention/Softmax", "model/layers.12/mlp", "Result"];
        let cases = [
            ("modle/layers.0/*", Some("model/layers.0/*")),
            ("model/layer.*/norm", Some("model/layers.*/norm")),
            ("*/attnetion/*", Some("*/attention/*")),
            ("*/sofmax", Some("*/Softmax")),
            ("model/layrs.??/mlp", Some("model/layers.??/mlp")),
            ("MODEL/layers.*/NORM", Some("model/layers.*/norm")),
            ("model/layers.12/mlps*", Some("model/layers.12/mlp*")),
            ("encoder*", None),
            ("x*", None),
            ("", None),
        ];
        for (text, meant) in cases {
            let found = near(text, names);
            assert_eq!(found.as_deref(), meant, "{text}");
            assert!(found.is_none_or(|glob| names.iter().any(|name| matches_glob(&glob, name))), "{text}");
        }
        assert_eq!(near("*", []), None);
    }
}
