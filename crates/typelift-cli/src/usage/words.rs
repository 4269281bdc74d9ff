//! Words of other programs, and what they mean here.

use std::cmp::Reverse;
use std::sync::LazyLock;

use clap::{Arg, Command};

/// Things and actions that are in names of many kinds.
const OBJECTS: [&str; 11] =
    ["list", "print", "data", "errors", "layer", "layers", "name", "node", "nodes", "status", "tensor"];

/// The rows of the table: words of other programs, and what they mean here.
///
/// A meaning is commands or advice, the likeliest first. One that begins with an option counts for each command that has
/// it; one that begins with a command counts elsewhere, too. `IN.xml` is a model, which is given without an option. A word
/// that begins with a dash is an option only. `_` and capitals are written as `-` and small letters. Words after the name of a
/// command or an option, as in `diff: --stat`, count only there; `*.bin` is the end of a value. `EXAMPLE` has complete lines for
/// commands that need more than a model, `MORE` what to write instead of further words, `PROGRAM` programs whose own command
/// follows, and `-e` statements: `A` and `B` are any words, and `…` is the rest.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    static ROWS: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| include_str!("words.txt").lines().filter_map(|row| row.split_once(" = ")).collect());
    ROWS.iter().copied()
}

/// The rows that count for all commands.
pub(super) fn general() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows().filter(|(words, _)| !words.contains(": "))
}

/// Meanings of a word of other programs; a word that begins with a dash is an option.
pub(super) fn meanings(word: &str) -> Vec<&'static str> {
    let whole = dashed(word);
    let long = whole.trim_start_matches("--");
    let exact = general().filter(|(words, _)| has_word(words, &whole));
    let other = general().filter(|(words, _)| whole != long && has_word(words, long));
    let rows = exact.chain(other).map(|(_, meanings)| meanings);
    rows.flat_map(|row| row.split(if row.contains('`') || row.contains(" | ") { '\0' } else { '|' })).collect()
}

/// The meaning of an option of a command, or of a value of an option.
pub(super) fn scoped(scope: &str, is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
    let words = |words: &'static str| words.strip_prefix(scope)?.strip_prefix(": ");
    let mut rows = rows().filter_map(|(row, meant)| Some((words(row)?, meant)));
    rows.find(|(words, _)| words.split(' ').any(&is_meant)).map(|(_, meant)| meant)
}

/// Options with names that are similar to one: of the command, and of other programs.
pub(super) fn similar(verb: &Command, name: &str) -> Vec<String> {
    let dashed = dashed(name);
    let own: Vec<&str> = verb.get_arguments().filter_map(Arg::get_long).collect();
    let names: Vec<&str> = own.iter().copied().chain(known_words()).collect();
    let long = dashed.trim_start_matches('-');
    let is_near = |near: &String| long.len() > 1 && is_slip(long, near);
    let near_own = typelift::near(long, own.iter().copied()).filter(is_near);
    let near = typelift::near(long, known_words()).filter(is_near);
    let slip = near_own.clone().filter(|own: &String| own.len().abs_diff(long.len()) < 2);
    let all = slip.into_iter().chain(within(name, names.iter().copied())).chain(near_own).chain(near);
    all.map(|name| format!("--{name}")).collect()
}

/// The names whose words are all in an option, that of the most words first: `input-shape` for `--overwriteInputShape`. The last one
/// counts: `shape` for `--data-shape`.
pub(super) fn within<'n>(option: &str, names: impl Iterator<Item = &'n str>) -> Vec<String> {
    // A plural counts as its singular.
    let whole = |name: &str| format!("-{}-", name.trim_start_matches('-')).replace("s-", "-");
    let words = whole(&dashed(option));
    let is_within = |name: &&str| name.len() > 3 && words.contains(&whole(name));
    // The action is the first word of a command, and the thing is the last one of an option.
    let place = |name: &str| {
        words.find(&whole(name)).unwrap_or_default() as isize * if option.starts_with('-') { 1 } else { -1 }
    };
    let rank = |name: &&str| (!OBJECTS.contains(name), name.matches('-').count(), place(name));
    let mut found: Vec<_> = names.filter(is_within).collect();
    found.sort_by_key(|name| Reverse(rank(name)));
    let parts = found.first().map_or(0, |name| name.matches('-').count());
    found.into_iter().filter(|name| name.matches('-').count() == parts).map(str::to_owned).collect()
}

/// True if a word differs from a name in one place, or in its end, or is its beginning.
pub(super) fn is_slip(word: &str, name: &str) -> bool {
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    let (longest, shortest) = (word.chars().count().max(name.chars().count()), word.len().min(name.len()));
    let before = same(&mut word.chars().zip(name.chars()));
    let after = same(&mut word.chars().rev().zip(name.chars().rev())).min(longest - before);
    let is_beginning = before >= 3 && before == shortest || before > 3 && before + 1 >= name.len();
    let sorted = |word: &str| {
        let mut letters: Vec<_> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    // `phyton` has the letters of `python`.
    let is_moved = before > 0 && sorted(&word) == sorted(&name);
    let is_changed = (before > 0 || after + 1 == longest) && before + after + 2 >= longest;
    is_beginning || is_moved || longest > 3 && is_changed
}

/// A word in small letters with dashes between its parts: `--save-engine` for `--saveEngine` and `--shape` for `-shape`.
pub(super) fn dashed(name: &str) -> String {
    let is_short = name.starts_with('-') && name.len() == 2;
    // `-O` is not `-o`.
    if is_short {
        return name.to_owned();
    }
    let is_long = name.starts_with('-') && !name.starts_with("--");
    let mut words = String::from(if is_long { "-" } else { "" });
    let mut is_small = false;
    for letter in name.chars() {
        words.extend((is_small && letter.is_uppercase()).then_some('-'));
        words.push(if letter == '_' { '-' } else { letter.to_ascii_lowercase() });
        is_small = letter.is_lowercase();
    }
    words
}

/// The words of other programs without dashes.
pub(super) fn known_words<'n>() -> impl Iterator<Item = &'n str> {
    general().flat_map(|(words, _)| words.split(' ').map(|word| word.trim_start_matches('-')))
}

/// True for an option that turns something off, such as `--disable-fusing`.
pub(super) fn is_negated(name: &str) -> bool {
    let long = dashed(name);
    ["no-", "skip-", "disable-", "without-"].iter().any(|start| long.trim_start_matches('-').starts_with(start))
}

pub(super) fn has_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

/// True if a text begins like a pattern, in which `*` stands for any text.
pub(super) fn is_like(pattern: &str, text: &str) -> bool {
    let found = pattern.split('*').try_fold((text, true), |(rest, is_first), part| {
        let at = rest.find(part).filter(|at| *at == 0 || !is_first)?;
        Some((&rest[at + part.len()..], false))
    });
    found.is_some()
}

pub(super) fn is_program(word: &str) -> bool {
    scoped("PROGRAM", |known| known == word).is_some()
}

pub(super) fn is_model_option(name: &str) -> bool {
    meanings(name).first() == Some(&"IN.xml")
}

pub(super) fn is_output(name: &str) -> bool {
    ["-o", "--output"].contains(&&*dashed(name)) || meanings(name).first() == Some(&"--output")
}

/// A switch of other programs may have a value that turns it off: `--fp16=False`.
pub(super) fn is_off(value: Option<&str>) -> bool {
    value.is_some_and(|value| ["false", "no", "off"].contains(&&*value.to_lowercase()))
}

/// A name as a statement takes it.
pub(super) fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_alphanumeric() || "_./:*?".contains(letter));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// `NAME=[1..8,3]` for two shapes of one input, such as the smallest and the largest.
pub(super) fn ranged(one: &str, other: &str) -> Option<String> {
    let (name, dims) = one.strip_suffix(']')?.split_once("=[")?;
    let others = other.strip_suffix(']')?.strip_prefix(name)?.strip_prefix("=[")?;
    let dims = dims.split(',').zip(others.split(',')).map(|(one, other)| match one.split("..").next() {
        _ if one == other => one.to_owned(),
        least => format!("{}..{other}", least.unwrap_or_default()),
    });
    Some(format!("{name}=[{}]", dims.collect::<Vec<_>>().join(",")))
}
