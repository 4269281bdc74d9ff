//! Wishes in words, such as `set the batch to 1`, and the commands that fulfil them.

use std::cell::{OnceCell, RefCell};

use typelift::ops;

use super::Asked;
use super::words::{dashed, quoted, rows, scoped};
use crate::input::{element_type, is_xml};

/// A place of a pattern, such as `LAYER` or `OP2`, and the word of the wish for it.
type Given<'w> = (&'w str, &'w str);

impl<'a> Asked<'a> {
    /// The command for the words that are no options and no models, if they are a wish.
    pub(super) fn wish(&self) -> Option<String> {
        self.wish_of(&self.others().filter(|word| !is_xml(word)).flat_map(tokens).collect::<Vec<_>>())
    }

    /// The command for an option that does not exist, if its name and its value are a wish: `--to onnx`.
    pub(super) fn wish_of_option(&self, name: &str) -> Option<String> {
        let (long, value) = (dashed(name), self.value_of(name)?);
        let parts = long.split('-').filter(|part| !part.is_empty());
        self.wish_of(&parts.chain(tokens(value)).collect::<Vec<_>>())
    }

    fn wish_of(&self, words: &[&str]) -> Option<String> {
        let asked = self.of_options();
        let is_wish = words.len() > 1 && !self.models().is_empty();
        let tip = self.wishes(words).filter(|_| is_wish).find_map(|meant| asked.said(&meant));
        self.dropped.replace(asked.dropped.take());
        tip
    }

    /// The command line without the words that are no options and no models.
    pub(super) fn of_options(&self) -> Asked<'a> {
        let is_kept =
            |(name, value): &&(String, Option<String>)| !name.is_empty() || value.as_deref().is_some_and(is_xml);
        let words = self.words.iter().filter(is_kept).cloned().collect();
        let Self { program, arguments, verb, is_moved, .. } = *self;
        Asked { program, arguments, verb, words, model: OnceCell::new(), is_moved, dropped: RefCell::default() }
    }

    /// The commands for a wish in words, the likeliest first. No word of the wish is left out.
    pub(super) fn wishes(&self, words: &[&str]) -> impl Iterator<Item = String> {
        let rows = rows().filter_map(|(row, meant)| Some((row.strip_prefix("WISH: ")?, meant)));
        let patterns = rows.flat_map(|(row, meant)| row.split(", ").map(move |pattern| (pattern, meant)));
        // A call is an operation to add, or a value.
        let has_call = words.iter().any(|word| word.contains('('));
        let is_fit = move |meant: &str| !has_call || ["(_)", "$VALUE"].iter().any(|place| meant.contains(place));
        let patterns = patterns.filter(move |(_, meant)| is_fit(meant));
        let given = patterns.filter_map(|(pattern, meant)| Some((self.given(pattern, words)?, meant)));
        given.flat_map(move |(given, meant)| meant.split('|').filter_map(move |meant| self.with(meant, &given)))
    }

    /// The words for the places of a pattern. `None` if one is missing, or if a word of the wish is not in the pattern.
    fn given<'w>(&self, pattern: &'static str, words: &[&'w str]) -> Option<Vec<Given<'w>>> {
        let (mut left, mut given) = (words.to_vec(), Vec::new());
        let (places, names): (Vec<_>, Vec<_>) =
            pattern.split(' ').partition(|part| part.starts_with(char::is_uppercase));
        for part in names.into_iter().chain(places) {
            let name = part.trim_end_matches('?');
            let is_meant = |word: &&str| match name.starts_with(char::is_uppercase) {
                true => self.is_kind(name, word),
                false => name.split('/').any(|name| name == dashed(word)),
            };
            let at = left.iter().position(|word| is_meant(word) && !is_filler(word));
            match at.or_else(|| left.iter().position(is_meant)) {
                Some(at) => given.push((name, left.remove(at))),
                None if part.ends_with('?') => {}
                None => return None,
            }
        }
        left.iter().all(is_filler).then_some(given)
    }

    /// True if a word can be what a place stands for.
    fn is_kind(&self, place: &str, word: &str) -> bool {
        let is_end = |option: &str| self.model().is_none() || self.ends(option).iter().any(|(name, _)| name == word);
        match place.trim_end_matches('2') {
            "INPUT" => is_end("input"),
            "OUTPUT" => is_end("output"),
            "LAYER" => self.model().is_none_or(|model| model.find(word).is_ok()),
            "LENGTH" => !self.lengths(word).is_empty(),
            "TYPE" => element_type(word).is_ok(),
            "OP" => operation(word).is_some(),
            "LAYOUT" => word.len() > 2 && word.to_uppercase().chars().all(|letter| "NCDHWTL".contains(letter)),
            "NUMBER" => word.parse::<f64>().is_ok(),
            "SHAPE" => word.starts_with('['),
            "VALUE" => word.contains('(') || word.starts_with(|first: char| first.is_numeric() || "[-".contains(first)),
            "FILE" => is_xml(word),
            "RANGE" => range(word).is_some(),
            "MODE" => self.mode(word).is_some(),
            "CODE" => self.is_accepted(&["explain", word].map(str::to_owned)),
            _ => true,
        }
    }

    /// The open lengths of a name: `batch` and `mask_batch` for `batch`.
    fn lengths(&self, name: &str) -> Vec<String> {
        let symbols = self.model().map(|model| typelift::shapes(model).symbols).unwrap_or_default();
        let is_meant = |own: &str| own.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
        symbols.into_iter().map(|symbol| symbol.name).filter(|own| is_meant(own)).collect()
    }

    fn mode(&self, word: &str) -> Option<String> {
        self.fitted(self.program.find_subcommand("convert")?, "--quantize", word)?.into_iter().nth(1)
    }

    /// A command with the words that were given in its places.
    fn with(&self, meant: &str, given: &[Given<'_>]) -> Option<String> {
        let word = |place: &str| given.iter().find(|(name, _)| *name == place).map(|(_, word)| *word);
        let end = ["INPUT", "OUTPUT", "LAYER"].into_iter().find_map(word).unwrap_or_default();
        let inputs = word("OP").and_then(|op| self.operation_of(op));
        let inputs = inputs.as_deref().and_then(|op| Some(op.split_at(op.find('(')?).1)).unwrap_or("(x)");
        let layouts = given.iter().filter(|(place, _)| place.starts_with("LAYOUT")).map(|(_, word)| *word);
        let layouts: Vec<_> = layouts.collect();
        let mut text = meant.to_owned();
        // `OP2` begins like `OP`.
        for (place, word) in given.iter().rev() {
            let value = match place.trim_end_matches('2') {
                "TYPE" => element_type(word).ok()?.to_string(),
                "OP" => operation(word)?.to_owned(),
                "LENGTH" => self.lengths(word).join("=$NUMBER --set-length "),
                "RANGE" => range(word)?,
                "MODE" => self.mode(word)?,
                "SHAPE" | "VALUE" => (*word).to_owned(),
                "LAYOUT" if let Some(option) = meant.split(' ').find(|option| option.ends_with("-layout")) => {
                    self.layout(option, &format!("{end}:{}", layouts.join(":")))?
                }
                _ => quoted(word),
            };
            let form = if word.contains('(') { (*word).to_owned() } else { format!("{value}(_)") };
            text = text
                .replace(&format!("${place}(_)"), &form)
                .replace(&format!("${place}(x)"), &format!("{value}{inputs}"));
            text = text.replace(&format!("${place}"), &value);
        }
        let only =
            |option: &str| Some(self.ends(option)).filter(|ends| ends.len() == 1)?.pop().map(|(name, _)| quoted(&name));
        let derived = [
            ("$BEFORE", self.before(end).map(|name| quoted(&name))),
            ("$FROM", self.type_of(end)),
            ("$FIRST", only("input")),
            ("$LAST", only("output")),
        ];
        derived
            .into_iter()
            .filter(|(place, _)| meant.contains(place))
            .try_fold(text, |text, (place, value)| Some(text.replace(place, &value?)))
    }
}

/// The words of a text. A list in brackets is one word.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let words = text.split(move |letter: char| {
        depth += i32::from("[(".contains(letter)) - i32::from("])".contains(letter));
        depth == 0 && (letter.is_whitespace() || "=:,\"".contains(letter))
    });
    words.filter(|word| !word.is_empty()).collect()
}

/// The numbers of blocks as a statement takes them: `0..3` for `0-3`.
fn range(word: &str) -> Option<String> {
    let (first, last) = word.split_once("..").or_else(|| word.split_once('-'))?;
    [first, last].iter().all(|number| number.parse::<usize>().is_ok()).then(|| format!("{first}..{last}"))
}

/// True for a word that adds nothing to a wish, such as `the`.
fn is_filler(word: &&str) -> bool {
    scoped("FILLER", |filler| filler == word.to_lowercase()).is_some()
}

/// The operation of a name or of a call.
pub(super) fn operation(word: &str) -> Option<&'static str> {
    let name = word.split('(').next().unwrap_or(word);
    let own = ops::all().map(|row| row.name).find(|own| own.eq_ignore_ascii_case(name));
    own.or_else(|| ops::meant(name).filter(|meant| meant.is_same)?.operation)
}
