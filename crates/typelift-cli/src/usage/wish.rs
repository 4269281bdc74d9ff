//! Wishes in words, such as `set the batch to 1`, and the commands that fulfil them.

use std::path::Path;

use clap::Command;
use typelift::{Layer, ops};

use super::Asked;
use super::words::{dashed, quoted, rows, scoped};
use crate::input::{element_type, is_xml};

/// A place of a pattern, such as `LAYER` or `OP2`, with the word of the wish for it, and what a command takes.
type Given<'w> = (&'w str, &'w str, String);

impl<'a> Asked<'a> {
    /// The command for the words that are no options and no models, if they are a wish.
    pub(super) fn wish(&self) -> Option<String> {
        let words = self.others().filter(|word| !is_xml(word)).flat_map(tokens);
        let words: Vec<_> = words.map(|word| word.trim_end_matches(['?', '!'])).collect();
        // `convert MODEL.xml batch=1`.
        let is_frame = self.verb.is_some_and(|verb| ["convert", "infer", "rewrite"].contains(&verb.get_name()));
        let tip = self.wish_of(&words).or_else(|| self.wish_of(words.get(1..).filter(|_| is_frame)?));
        self.is_wish.set(tip.is_some());
        tip
    }

    /// The command for an option that does not exist, if its name and its value are a wish: `--to onnx`.
    pub(super) fn wish_of_option(&self, name: &str) -> Option<String> {
        let (long, value) = (dashed(name), self.value_of(name)?.replace("->", " "));
        let parts = long.split('-').filter(|part| !part.is_empty());
        self.wish_of(&parts.chain(tokens(&value)).collect::<Vec<_>>())
    }

    fn wish_of(&self, words: &[&str]) -> Option<String> {
        let asked = self.of_options();
        let is_explained = self.verb.is_some_and(|verb| verb.get_name() == "explain");
        let is_wish = words.len() > 1 && (is_explained || !self.models().is_empty());
        let own = self.verb.map_or("", Command::get_name);
        let wishes = self.wishes(words).filter(|_| is_wish);
        // `infer` has options of `convert`.
        let wishes = wishes.flat_map(|meant| [meant.replacen("convert", own, usize::from(own == "infer")), meant]);
        let tip = wishes.into_iter().find_map(|meant| asked.said(&meant));
        self.dropped.replace(asked.dropped.take());
        tip
    }

    /// The command line without the words that are no options and no models.
    pub(super) fn of_options(&self) -> Asked<'a> {
        self.only(|(name, value)| !name.is_empty() || value.as_deref().is_some_and(is_xml))
    }

    /// The command line with some of its words.
    pub(super) fn only(&self, is_kept: impl Fn(&(String, Option<String>)) -> bool) -> Asked<'a> {
        let words = self.words.iter().filter(|word| is_kept(word)).cloned().collect();
        let (model, is_wish, dropped) = Default::default();
        Asked { words, model, is_wish, dropped, ..*self }
    }

    /// The commands for a wish in words, the likeliest first. No word of the wish is left out.
    pub(super) fn wishes(&self, words: &[&str]) -> impl Iterator<Item = String> {
        // A call is an operation to add, or a value.
        let has_call = words.iter().any(|word| word.contains('('));
        let rows = rows().filter_map(|(row, meant)| Some((row.strip_prefix("WISH: ")?, meant)));
        let rows = rows.filter(move |(_, meant)| !has_call || meant.contains("(_)") || meant.contains("$VALUE"));
        let patterns = rows.flat_map(|(row, meant)| row.split(", ").map(move |pattern| (pattern, meant)));
        let given = patterns.filter_map(|(pattern, meant)| Some((self.given(pattern, words)?, meant)));
        given.flat_map(move |(given, meant)| alternatives(meant).filter_map(move |meant| self.with(meant, &given)))
    }

    /// The words for the places of a pattern. `None` if one is missing, or if a word of the wish is not in the pattern.
    fn given<'w>(&self, pattern: &'static str, words: &[&'w str]) -> Option<Vec<Given<'w>>> {
        let (mut left, mut given) = (words.to_vec(), Vec::new());
        let (places, names): (Vec<_>, Vec<_>) =
            pattern.split(' ').partition(|part| part.starts_with(char::is_uppercase));
        for part in names.into_iter().chain(places) {
            let name = part.trim_end_matches('?');
            // A word that adds nothing comes last.
            let fits = left.iter().enumerate().filter_map(|(at, word)| Some((at, self.value(name, word)?)));
            match fits.min_by_key(|(at, _)| is_filler(&left[*at])) {
                Some((at, value)) => given.push((name, left.remove(at), value)),
                None if part.ends_with('?') => {}
                None => return None,
            }
        }
        left.iter().all(is_filler).then_some(given)
    }

    /// The form of a word that a command takes, if the word can be what a part of a pattern stands for.
    pub(super) fn value(&self, part: &str, word: &str) -> Option<String> {
        let is_fit = match part.trim_end_matches('2') {
            // `remove output 2`.
            "OUTPUT"
                if let Ok(at) = word.trim_matches(['[', ']']).parse::<usize>()
                    && let Some((name, _)) = self.ends("output").into_iter().nth(at) =>
            {
                return Some(quoted(&name));
            }
            "TYPE" => return element_type(word).ok().map(|ty| ty.to_string()),
            "TENSOR" => return element_type(word.split('[').next()?).ok().map(|ty| ty.to_string()),
            "CONSTANT" => self.operation_of(word).is_some_and(|it| it.starts_with("Constant(")),
            "LENGTH" => return self.lengths(word),
            "OP" => return operation(word).map(str::to_owned),
            "RANGE" => return range(word),
            "MODE" if Path::new(word).extension().is_some() => false,
            "MODE" => return self.fitted(self.program.find_subcommand("convert")?, "--quantize", word)?.pop(),
            "INPUT" | "OUTPUT" => {
                self.model().is_none() || self.ends(&part.to_lowercase()).iter().any(|(name, _)| name == word)
            }
            "LAYER" => self.model().map_or(!Path::new(word).exists(), |model| model.find(word).is_ok()),
            "LAYOUT" => word.len() > 2 && word.to_uppercase().chars().all(|letter| "NCDHWTL".contains(letter)),
            "NUMBER" => word.parse::<f64>().is_ok(),
            "SHAPE" if word.starts_with('[') => return Some(word.to_owned()),
            "VALUE" if word.contains('(') || word.starts_with(|it: char| it.is_numeric() || "[-".contains(it)) => {
                return Some(word.to_owned());
            }
            "MODULE" => return self.end_of(word),
            "SHAPE" | "VALUE" => false,
            "FILE" => is_xml(word),
            "CODE" => self.is_accepted(&["explain", word].map(str::to_owned)),
            names => names == "NEW" || names.split('/').any(|name| name == dashed(word) || name == canonical(word)),
        };
        is_fit.then(|| quoted(word))
    }

    /// The open lengths of a name: `*batch` for `batch` and `mask_batch`.
    pub(super) fn lengths(&self, name: &str) -> Option<String> {
        let symbols = typelift::shapes(self.model()?).symbols.into_iter().map(|symbol| symbol.name);
        let is_own = |own: &String| own.strip_suffix(name).is_some_and(|it| it.is_empty() || it.ends_with('_'));
        let mut own: Vec<_> = symbols.filter(is_own).collect();
        if own.len() > 1 { Some(format!("*{name}")) } else { own.pop() }
    }

    /// A number of the rank of an input: `[[0]]`.
    pub(super) fn of_rank(&self, input: &str, number: &str) -> Option<String> {
        let rank = self.ends("").into_iter().find(|it| it.0 == input)?.1.len();
        Some(format!("{}{number}{}", "[".repeat(rank), "]".repeat(rank)))
    }

    /// The last layer in a module: `backbone.layer2.3/Relu` for `layer2`.
    fn end_of(&self, module: &str) -> Option<String> {
        let names = self.model()?.graph().layers().map(Layer::name);
        names.filter(|name| name.split(['.', '/']).any(|part| part == module)).last().map(quoted)
    }

    /// A command with the words that were given in its places.
    fn with(&self, meant: &str, given: &[Given<'_>]) -> Option<String> {
        let end = given.iter().find(|it| ["INPUT", "OUTPUT", "LAYER"].contains(&it.0)).map_or("", |it| it.1);
        let op = given.iter().find(|it| it.0 == "OP").and_then(|it| self.operation_of(it.1)).unwrap_or_default();
        let inputs = op.find('(').map_or("(x)", |at| &op[at..]);
        let mut text = meant.to_owned();
        // `OP2` begins like `OP`.
        for (place, word, value) in given.iter().rev() {
            let form = if word.contains('(') { (*word).to_owned() } else { format!("{value}(_)") };
            text = text.replace(&format!("${place}(_)"), &form);
            text = text.replace(&format!("${place}(x)"), &format!("{value}{inputs}"));
            text = text.replace(&format!("${place}"), value);
        }
        if let Some((start, option)) = text.split_once("$TRANSPOSED ") {
            let layouts = given.iter().filter(|it| it.0.starts_with("LAYOUT")).map(|it| it.1).collect::<Vec<_>>();
            text = format!("{start}{option} {}", self.layout(option, &format!("{end}:{}", layouts.join(":")))?);
        }
        let only = |kind: &str| self.ends(kind).pop().filter(|_| self.ends(kind).len() == 1).map(|it| quoted(&it.0));
        let shape = given.iter().find(|it| it.0 == "SHAPE").and_then(|it| self.shape(it.1));
        let others = |kind: &str| {
            let is_given = |name: &String| given.iter().any(|it| it.0.starts_with("OUTPUT") && it.1 == name);
            let names = self.ends(kind).into_iter().map(|it| it.0).filter(|name| !is_given(name)).collect();
            self.globbed(kind, names).iter().map(|name| quoted(name)).collect::<Vec<_>>()
        };
        let others = Some(others("output")).filter(|names| meant.contains("$OTHERS") && !names.is_empty());
        for (place, value) in [
            ("$OTHERS", others.map(|names| names.join("' -e 'remove output "))),
            ("$FITTED", shape.map(|shape| format!("'{shape}'"))),
            ("$BEFORE", self.before(end).map(|name| quoted(&name))),
            ("$FROM", self.type_of(end)),
            // A mask of ones masks nothing.
            ("$NEUTRAL", self.of_rank(end, if end.contains("mask") { "1" } else { "0" })),
            ("$NESTED", given.iter().find(|it| it.0 == "VALUE").and_then(|it| self.of_rank(end, it.1))),
            ("$LAST", only("output")),
        ] {
            text = if text.contains(place) { text.replace(place, &value?) } else { text };
        }
        Some(text)
    }
}

/// The commands of a row, of which one that pipes is the only one.
fn alternatives(meant: &str) -> impl Iterator<Item = &str> {
    meant.split(if meant.contains(" | ") { '\0' } else { '|' })
}

/// The words of a text. A list in brackets is one word.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    // `aten::relu` is a name.
    let (mut depth, signs) = (0, if text.contains("::") { "=,\"" } else { "=:,\"" });
    let words = text.split(move |letter: char| {
        depth += i32::from("[(".contains(letter)) - i32::from("])".contains(letter));
        depth == 0 && (letter.is_whitespace() || signs.contains(letter))
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The numbers of blocks as a statement takes them: `0..3` for `0-3`.
fn range(word: &str) -> Option<String> {
    let (first, last) = word.split_once("..").or_else(|| word.split_once('-'))?;
    [first, last].iter().all(|number| number.parse::<usize>().is_ok()).then(|| format!("{first}..{last}"))
}

/// True for a word that adds nothing to a wish, such as `the`.
pub(super) fn is_filler(word: &&str) -> bool {
    scoped("FILLER", |filler| filler == word.to_lowercase()).is_some()
}

/// The word of the patterns for one of the same meaning: `delete` for `drop`.
fn canonical(word: &str) -> String {
    let word = dashed(word);
    scoped("SAME", |same| same == word).map_or(word, str::to_owned)
}

/// The operation of a name or of a call.
pub(super) fn operation(word: &str) -> Option<&'static str> {
    let name = word.split('(').next().unwrap_or(word);
    let same = canonical(name);
    let own = ops::all().map(|row| row.name).find(|own| own.eq_ignore_ascii_case(&same));
    own.or_else(|| ops::meant(name).filter(|meant| meant.is_same)?.operation)
}
