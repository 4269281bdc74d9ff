//! Suggestions for invalid command lines.

mod code;
mod forms;
mod habits;
mod line;
mod statements;
mod values;
mod wish;
mod words;

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, Error};
use typelift::findings::{Diagnostic, shell_word};
use typelift::rewrite::{Script, library};
use typelift::{Layer, Model};

use crate::failure::Failure;
use crate::input::is_xml;
use crate::{input, not_a_model, parts, whole_command};
pub(crate) use habits::is_no_file;
use habits::{is_path, of_habit};
use line::{argument, has, has_example, has_place, is_changing, refused, shown, split, takes, valued};
use statements::sed;
use wish::is_filler;
use words::{
    dashed, is_like, is_model_option, is_negated, is_off, is_output, is_program, is_slip, known_words, meanings,
    scoped, similar, within,
};

/// An option with its value.
type Typed<'a> = (&'a str, Option<&'a str>);

/// A command line that is refused.
struct Asked<'a> {
    program: &'a Command,
    arguments: &'a [OsString],
    verb: Option<&'a Command>,
    /// Options with their values, and other words without a name.
    words: Vec<(String, Option<String>)>,
    model: OnceCell<Option<Model>>,
    /// True if a word was read otherwise than by the parser.
    is_moved: bool,
    /// True if the tip fulfils a wish, which has all words.
    is_wish: Cell<bool>,
    /// Options that were typed and are not in the last line.
    dropped: RefCell<Vec<String>>,
}

/// Options with which no model is written elsewhere.
const DONE: [&str; 5] = ["--diff", "--dry-run", "--audit", "--in-place", "--list-rules"];

/// Commands that are tried before they are printed, and options with which they write a file or run OpenVINO.
const READING: [&str; 9] = ["check", "convert", "diff", "explain", "infer", "promote", "show", "stats", "why"];
const WRITING: [&str; 8] = ["output", "in_place", "fix", "npy", "report", "save_weights", "verify", "write_plan"];

const STATEMENT: [&str; 2] = ["-e", "--statement"];

/// The limit on the weights of models for which a command is tried.
const MOST_BYTES: u64 = 1 << 26;

/// The number of names in a command that are corrected one after the other.
const ROUNDS: usize = 5;

const PICTURES: [&str; 3] = [".pdf", ".png", ".svg"];

/// Values of `--format` that are no files.
const FORMATS: [&str; 3] = ["github", "json", "sarif"];

/// An example of a conversion, for options that belong to one.
const COMPRESS: &str = "convert --compress f16";

/// A model without a command asks for an overview.
pub(crate) fn is_overview(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|word| is_xml(&word.to_string_lossy()))
}

/// The failure for a long option after one dash, which would be read as a value of `-o`, or as a request for help, and
/// for a format in place of a file: `-out`, `-hint`, `-o json`.
pub(crate) fn of_one_dash(arguments: &[OsString]) -> Option<Failure> {
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let is_help = |word: &str| word.len() > 2 && (word.starts_with("-h") || word.starts_with("-V"));
    let is_option = |word: &str| word == "-output" || !meanings(&format!("-{word}")).is_empty();
    let is_format = |word: &str| FORMATS.contains(&word.trim_start_matches("--output="));
    let is_wrong =
        |word: &&str| is_help(word) || is_format(word) || word.len() > 2 && word.starts_with("-o") && is_option(word);
    let word = words.into_iter().find(is_wrong)?;
    let program = whole_command();
    let asked = Asked::new(&program, arguments);
    // The command of another program is refused first.
    let first = arguments.get(1).and_then(|word| word.to_str()).unwrap_or_default();
    let is_verb = first.starts_with('-') || is_xml(first) || program.find_subcommand(first).is_some();
    if !is_verb || is_format(word) && !asked.is_moved {
        return None;
    }
    let moved = || Some(format!("write `{}`", asked.line(asked.verb.filter(|_| asked.is_moved)?.get_name())?));
    let tip = of_habit(arguments).or_else(moved);
    let is_own = asked.verb.is_some_and(|verb| has(verb, &dashed(word)));
    let tip = tip.or_else(|| asked.option_tip(word).filter(|_| !is_output(word) && (is_own || !is_help(word))));
    let advice = || asked.options().flat_map(|it| meanings(it.0)).find(|meant| meant.contains('`'));
    let tip = tip.or_else(|| asked.said(advice().filter(|_| asked.verb.is_none())?));
    let tip = tip.unwrap_or_else(|| match is_help(word) {
        true => format!("a long option has two dashes: `-{word}`, and help is `-h`"),
        false => "write `-o OUT.xml` or `--output OUT.xml`".to_owned(),
    });
    Some(Failure::new(format!("unexpected argument `{word}` found")).help(tip))
}

/// Formats a usage error like every other error, with a suggestion.
pub(crate) fn failure(error: &Error, program: &mut Command, arguments: &[OsString]) -> Failure {
    program.build();
    let rendered = error.render().to_string();
    let said = rendered.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "there is no command".to_owned()
        }
        ErrorKind::InvalidSubcommand => {
            format!("`{}` is not a command", text(error, ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => {
            said.replace("the following required arguments were not provided:", "missing:")
        }
        ErrorKind::UnknownArgument => {
            let short = text(error, ContextKind::InvalidArg).unwrap_or_default();
            with_backticks(&said).replace(&format!("`{short}`"), &format!("`{}`", whole(&short, arguments)))
        }
        _ => with_backticks(&said)
            .replace("invalid float literal", "expected a number, such as 0.01")
            .replace("invalid digit found in string", "expected a whole number"),
    };
    // The parser of a value may have found what was meant.
    let (message, meant) = match message.split_once("; did you mean ") {
        Some((message, near)) => (message.to_owned(), Some(near.trim_end_matches('?').trim_matches('`').to_owned())),
        None => (message, None),
    };
    let other = || match arguments.iter().skip(1).find_map(|word| program.find_subcommand(word)) {
        Some(verb) if verb.get_name() == "explain" || said.contains("CODE") => {
            "`typelift explain` lists the codes, and `typelift check MODEL.xml` prints those of a model".to_owned()
        }
        Some(verb) if verb.get_name() != "help" => format!("`typelift {} -h` lists the options", verb.get_name()),
        _ => "`typelift -h` lists the commands".to_owned(),
    };
    let failure = Failure::new(message);
    let near = of_habit(arguments).or_else(|| near_file(&failure, arguments));
    match (near.or_else(|| tip(error, program, arguments)), meant) {
        (Some(tip), _) => failure.help(tip),
        (None, Some(near)) => {
            let wrong = text(error, ContextKind::InvalidValue).unwrap_or_default();
            completed(failure.did_you_mean(&wrong, &near), arguments)
        }
        (None, None) => failure.help(other()),
    }
}

pub(crate) fn after_run(failure: Failure, arguments: &[OsString]) -> Failure {
    match near_file(&failure, arguments).or_else(|| of_run(arguments)) {
        Some(advice) => failure.helped(advice),
        None => completed(failure, arguments),
    }
}

/// The command with a file of a similar name, for one that does not exist.
fn near_file(failure: &Failure, arguments: &[OsString]) -> Option<String> {
    let path = failure.unread()?;
    let file = path.to_str()?;
    let is_other =
        path.is_symlink() || path.ancestors().skip(1).any(Path::is_file) || not_a_model::is_other_format(file);
    let ending = path.extension().filter(|_| !is_other)?;
    let near = input::near_file(path, |name| Path::new(name).extension() == Some(ending)).filter(|_| !path.exists())?;
    line_with(file, &near.to_string_lossy(), arguments)
}

/// Advice about words that the parser accepts, for a command that failed.
fn of_run(arguments: &[OsString]) -> Option<String> {
    if let Some(advice) = of_habit(arguments) {
        return Some(advice);
    }
    let mut program = whole_command();
    program.build();
    let asked = Asked::new(&program, arguments);
    let verb = asked.verb?.get_name();
    // `--hint latency` is a property.
    let is_row = |(name, value): Typed| value.is_some_and(|value| scoped(name, |word| word == value).is_some());
    let is_length = |(name, value): Typed| {
        let meant = value.and_then(|value| asked.fitted(asked.verb?, name, value));
        ["--at", "--keep", "--only", "--set-length"].contains(&name)
            && meant.is_some_and(|meant| meant.get(1).map(String::as_str) != value)
    };
    let is_operation = || asked.value_of("--only").is_some_and(|word| asked.operation(word).is_some());
    match verb {
        _ if asked.is_moved => asked.said(verb),
        "view" if asked.is_picture() => asked.said(scoped("view", |name| name == "--png")?),
        "show" if let Some(tip) = asked.one_model() => Some(tip),
        "convert" | "infer" | "stats" if asked.options().any(is_length) => asked.said(verb),
        "verify" if asked.options().any(is_row) => asked.said(verb),
        "rewrite" if let Some(tip) = asked.statement().and_then(|wrong| asked.restated(wrong)) => Some(tip),
        "show" if is_operation() => asked.said(verb),
        "show" if let Some(word) = asked.rest().next().filter(|_| asked.value_of("--npy").is_none()) => {
            let words = asked.operation(word).unwrap_or_else(|| ["--around", word].map(str::to_owned).into());
            let other = || asked.said(&format!("show {}", shown(&words)));
            if is_path(word) { asked.verb_tip(word) } else { asked.wish().or_else(other) }
        }
        // The model comes first.
        "show" if asked.value_of("--npy").is_some() => asked.said("show MODEL.xml NAME --npy FILE.npy"),
        // `logits[1]`.
        "why"
            if let Some((name, axis)) = asked.rest().find_map(|word| {
                word.strip_suffix(']')?.split_once('[').filter(|it| it.1.parse::<usize>().is_ok())
            }) =>
        {
            asked.said(&format!("why --shape --axis {axis} MODEL.xml {name}"))
        }
        "why" if asked.others().nth(1).is_some_and(|first| !is_xml(first)) => asked.said("why MODEL.xml LAYER"),
        // `check MODEL.xml -o report.sarif`.
        "check"
            if let Some((file, (_, ending))) = asked.output().and_then(|it| Some((it, it.rsplit_once('.')?)))
                && ending != "xml"
                && asked.options().all(|(name, _)| name != "--fix") =>
        {
            let format = if FORMATS.contains(&ending) { format!("--format {ending} ") } else { String::new() };
            let model = shell_word(asked.models().first()?);
            Some(format!("write `typelift check {format}{model} > {}`", shell_word(file)))
        }
        "convert" | "rewrite" | "check" | "stats" | "infer" => {
            let is_unknown = |word: &&str| *word != verb && !is_xml(word) && !Path::new(word).exists();
            let word = asked.others().find(is_unknown)?;
            if let Some(tip) = asked.wish() {
                return Some(tip);
            }
            let is_word = !meanings(word).is_empty() || library::get(word).is_some() || is_path(word);
            asked.verb_tip(word).filter(|_| is_word)
        }
        _ => None,
    }
}

/// Writes the whole command in place of the word that is meant, if the parser accepts it.
pub(crate) fn completed(failure: Failure, arguments: &[OsString]) -> Failure {
    match failure.slip().and_then(|(wrong, near)| line_with(wrong, near, arguments)) {
        Some(line) => failure.helped(line),
        None => failure,
    }
}

/// The command with `meant` in place of the wrong text.
fn line_with(wrong: &str, meant: &str, arguments: &[OsString]) -> Option<String> {
    let texts = typed(arguments);
    let words = replaced(wrong, meant, &texts);
    let (words, lost) = if words.starts_with(&texts) { None } else { tried(words, arguments) }?;
    let lost = lost.map_or(String::new(), |lost| format!(", without `{lost}`"));
    Some(format!("did you mean `typelift {}`{lost}?", shown(&words)))
}

fn typed(arguments: &[OsString]) -> Vec<String> {
    arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A command that may be printed, with the option that it had to lose: it is not the one that was typed, the parser takes it,
/// and it runs, perhaps with names that its refusals propose.
fn tried(mut words: Vec<String>, arguments: &[OsString]) -> Option<(Vec<String>, Option<String>)> {
    for _ in 0..ROUNDS {
        let is_place = words.iter().any(|word| !is_xml(word) && (has_example(word) || has_place(word)));
        if is_place || words == typed(arguments) {
            return Some((words, None)).filter(|_| is_place);
        }
        let Err(failure) = trial(&words) else { return Some((words, None)) };
        match failure.slip() {
            Some((wrong, near)) => words = replaced(wrong, near, &words),
            None => return without_one(&words),
        }
    }
    None
}

/// Runs a command that writes nothing. A large model is not read again, and a file that was typed may be missing.
fn trial(words: &[String]) -> Result<(), Failure> {
    let typed = ["typelift"].into_iter().chain(words.iter().map(String::as_str));
    let matches = match whole_command().try_get_matches_from(typed) {
        Err(error) if !is_xml(&words[0]) => return Err(Failure::new(error.to_string())),
        matches => matches.ok(),
    };
    let pairs = words.windows(2).filter(|pair| STATEMENT.contains(&&*pair[0]) && !has_example(&pair[1]));
    if let Err(error) = pairs.map(|pair| format!("{}\n", pair[1])).collect::<String>().parse::<Script>() {
        return Err(Failure::new(error.to_string()));
    }
    let (verb, options) = matches.as_ref().and_then(ArgMatches::subcommand).unzip();
    let is_given = |id: &str| {
        options.is_some_and(|it| {
            it.try_contains_id(id).unwrap_or(false) && it.value_source(id) == Some(ValueSource::CommandLine)
        })
    };
    // A conversion is tried without its output.
    let is_writing = WRITING.iter().skip(if verb == Some("convert") { 2 } else { 0 }).any(|id| is_given(id));
    let length = |file: &String| std::fs::metadata(Path::new(file).with_extension("bin")).map_or(0, |it| it.len());
    let is_read = verb.is_none_or(|verb| READING.contains(&verb)) && !is_writing;
    if !is_read || words.iter().map(length).sum::<u64>() > MOST_BYTES {
        return Ok(());
    }
    match crate::try_out(words) {
        Err(failure) if failure.slip().is_some() || !failure.is_of_file() => Err(failure),
        _ => Ok(()),
    }
}

/// The command without the option for which it is refused, if another option is left.
fn without_one(words: &[String]) -> Option<(Vec<String>, Option<String>)> {
    let options: Vec<_> = (1..words.len()).filter(|at| words[*at].starts_with("--")).collect();
    options.iter().skip(1).rev().find_map(|&at| {
        let is_value = words.get(at + 1).is_some_and(|next| !next.starts_with('-') && !is_xml(next));
        let end = at + 1 + usize::from(is_value);
        let rest = [&words[..at], &words[end..]].concat();
        trial(&rest).is_ok().then(|| (rest, Some(words[at..end].join(" "))))
    })
}

/// A command with `meant` in place of the wrong text, or of the part of it that is similar.
fn replaced(wrong: &str, meant: &str, texts: &[String]) -> Vec<String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let part = typelift::near(meant, wrong.split(|letter| !is_part(letter)).filter(|part| *part != meant))
        .filter(|_| meant.chars().all(is_part) && (wrong.contains('=') || !texts.iter().any(|text| text == wrong)));
    let wrong = part.as_deref().unwrap_or(wrong);
    let replaced = |text: &String| match text.split_once(wrong) {
        Some((before, after)) if !before.ends_with(is_part) && !after.starts_with(is_part) => {
            format!("{before}{meant}{after}")
        }
        _ => text.clone(),
    };
    let mut words: Vec<_> = texts.iter().map(replaced).collect();
    let is_written = words.iter().any(|word| DONE.contains(&&**word) || is_output(word));
    if words.first().is_some_and(|verb| verb == "convert" || verb == "rewrite") && !is_written {
        words.extend(["-o", "OUT.xml"].map(str::to_owned));
    }
    words
}

/// Advice for a usage error, with the options that the command of the advice lacks.
fn tip(error: &Error, program: &Command, arguments: &[OsString]) -> Option<String> {
    let words = habits::meant(arguments).filter(|words| *words != typed(arguments));
    let words: Vec<_> =
        ["typelift".to_owned()].into_iter().chain(words.into_iter().flatten()).map(OsString::from).collect();
    let other = program.clone().try_get_matches_from(&words).err().filter(|_| words.len() > 1);
    let (error, arguments) = other.as_ref().map_or((error, arguments), |other| (other, &words));
    let asked = Asked::new(program, arguments);
    let tip = asked.tip(error)?;
    let mut dropped = asked.dropped.take();
    // The option that is wrong is not lost if the tip has its value.
    let wrong = text(error, ContextKind::InvalidArg).map(|option| whole(&option, arguments));
    let has_value = |name: &str| asked.value_of(name).is_none_or(|value| asked.is_in(&tip, value));
    dropped.retain(|name| !tip.contains(&**name) && (wrong.as_ref() != Some(name) || !has_value(name)));
    // The words of a command of the shell, and of an example, are other words.
    let is_line = tip.contains("typelift ") && !tip.contains(" | ") && !has_example(&tip) && !asked.is_wish.get();
    let words = asked.rest().filter(|word| is_line && !is_filler(word) && !asked.is_in(&tip, word));
    let words = words.filter(|word| meanings(word).is_empty() || asked.model().is_some_and(|it| it.find(word).is_ok()));
    dropped.extend(words.map(str::to_owned));
    let is_told = dropped.is_empty() || !tip.contains(".xml");
    Some(if is_told { tip } else { format!("{tip}, without `{}`", dropped.join("` and `")) })
}

impl Asked<'_> {
    /// True if a tip has a word that was typed, perhaps in the spelling of this program.
    fn is_in(&self, tip: &str, word: &str) -> bool {
        let tip = tip.to_lowercase();
        let mut parts = word.split(['=', ':', ',', '[', '{', '>', '/', '|', '#']).map(str::to_lowercase);
        parts.any(|part| part.len() > 1 && tip.contains(&part) || parts::parts(&tip).any(|word| word == part))
    }

    fn tip(&self, error: &Error) -> Option<String> {
        // `-m model.onnx -o out`.
        let mut files = self.values().filter(|file| not_a_model::is_other_format(file));
        if let Some(file) = files.next().filter(|_| self.models().is_empty()) {
            return not_a_model::file(file);
        }
        let wrong = text(error, ContextKind::InvalidArg);
        match error.kind() {
            ErrorKind::InvalidSubcommand => {
                let word = text(error, ContextKind::InvalidSubcommand)?;
                if let Some(tip) = self.wish() {
                    return Some(tip);
                }
                // `run --rm MODEL.xml check`.
                let own = self.verb.filter(|_| !is_program(&word) && !self.models().is_empty());
                own.and_then(|verb| self.said(verb.get_name())).or_else(|| self.verb_tip(&word))
            }
            ErrorKind::UnknownArgument => self.option_tip(&whole(&wrong?, self.arguments)),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                let (option, value) = (wrong?, text(error, ContextKind::InvalidValue)?);
                let name = option.split(' ').next()?.split("[=").next()?;
                if self.is_moved
                    && let Some(tip) = self.said(self.verb?.get_name())
                {
                    return Some(tip);
                }
                if self.verb.is_some_and(|verb| self.fitted(verb, name, &value).is_some()) {
                    return self.said(self.verb?.get_name());
                }
                let known = match error.get(ContextKind::ValidValue) {
                    Some(ContextValue::Strings(known)) => known.first(),
                    _ => None,
                };
                match known.filter(|_| value.is_empty()) {
                    Some(known) => Some(format!("write `{name} {known}`")),
                    None if value.is_empty() || option.contains('=') && !value.contains(['=', ':']) => {
                        Some(format!("write `{}`", plain(&option)))
                    }
                    None if option.contains("<KEY=") => Some(format!("write `{name} KEY=VALUE` for each property")),
                    None => self.of_error(name, &value).or_else(|| self.value_tip(name, &value.to_lowercase(), error)),
                }
            }
            ErrorKind::MissingRequiredArgument => {
                let verb = self.verb?.get_name();
                match missing(error) {
                    Some(group) if group.starts_with("<--") && verb == "convert" => self.said(COMPRESS),
                    Some(option) if option.starts_with("--") => {
                        let example = format!("{verb} {}", plain(option));
                        let meant = if option.starts_with("--output") { verb } else { &example };
                        self.said(meant).or_else(|| Some(format!("write `{}`", plain(option))))
                    }
                    _ if error.render().to_string().contains("<NAME>") => {
                        let file = self.value_of("--npy").unwrap_or("FILE.npy");
                        let stem = Path::new(file).file_stem()?.to_str()?;
                        let graph = self.model()?.graph();
                        let stem = graph.find(stem).is_ok().then_some(stem);
                        let is_constant = |layer: &&Layer| layer.operation().is_some_and(|it| it.name == "Constant");
                        let name = stem.or_else(|| Some(graph.layers().find(is_constant)?.name()))?;
                        self.said(&format!("show MODEL.xml {} --npy {}", shell_word(name), shell_word(file)))
                    }
                    _ => self.said(verb),
                }
            }
            ErrorKind::ArgumentConflict => {
                let is_tensor = |name: &&str| self.model().is_some_and(|model| model.find(name).is_ok());
                let tensor = self.value_of("--output").filter(is_tensor);
                let cut = tensor.and_then(|tensor| self.said(&format!("rewrite -e 'cut {tensor}'")));
                cut.or_else(|| Some("leave one of the two out".to_owned()))
            }
            ErrorKind::TooManyValues => self.said(self.verb?.get_name()),
            _ => None,
        }
    }

    /// The tip for an option, or for a word too many, that the parser does not know.
    fn option_tip(&self, option: &str) -> Option<String> {
        let name = option.split('=').next().unwrap_or(option);
        let Some(verb) = self.verb else { return self.without_command(name) };
        let own = verb.get_name();
        if is_overview(self.arguments) && option == own || self.is_moved && option.starts_with('-') {
            return self.said(own);
        }
        if !option.starts_with('-') {
            if let Some(tip) = self.one_model().or_else(|| self.wish()) {
                return Some(tip);
            }
            let code = self.others().skip(1).collect::<Vec<_>>().join("-");
            if own == "explain" && self.is_accepted(&[own, &code].map(str::to_owned)) {
                return Some(format!("write `typelift explain {code}`"));
            }
            let row = |scope| scoped(scope, |name| name == own);
            let help = || Some(format!("`typelift help {own}` explains the command"));
            return row("MORE").or_else(|| row("EXAMPLE")).map_or_else(help, |more| self.said(more));
        }
        let fits = |own: String| self.fitted(verb, &own, self.value_of(name)?);
        let is_own = has(verb, name) || self.own_or_similar(verb, name).and_then(fits).is_some();
        let dashed = dashed(name);
        let is_row = scoped(own, |word| word == dashed).is_some();
        if let Some(tip) = self.wish_of_option(name).filter(|_| !is_own && !is_row) {
            return Some(tip);
        }
        // `--no-names` of `diff`.
        let kind = dashed.rsplit('-').next().filter(|_| is_negated(name) || dashed.starts_with("--ignore-"));
        if let Some(words) = kind.filter(|_| has(verb, "--ignore")).and_then(|kind| self.fitted(verb, "--ignore", kind))
        {
            return self.said(&format!("{own} {} BEFORE.xml AFTER.xml", words.join(" ")));
        }
        let only_asked = || Some(format!("leave `{name}` out: `typelift {own}` does only what its options say"));
        if is_off(self.value_of(name)) {
            return only_asked();
        }
        // Advice is followed by the command without the option.
        let meaning = |meant: &str| {
            let advice = self.meaning(verb, name, meant)?;
            let is_whole = ["write `", "an error"].iter().any(|start| advice.starts_with(start))
                || advice.contains(".xml")
                || self.models().is_empty();
            let line = if is_whole { None } else { self.line(own) };
            Some(line.map_or(advice.clone(), |line| format!("{advice}: `{line}`")))
        };
        let negated = || is_negated(name).then(only_asked).flatten();
        // A similar word of another command is too little, unless both change a model.
        let is_near = |other: &String| {
            is_changing(own) || self.own(verb, other).is_some() || scoped(own, |word| word == other).is_some()
        };
        let is_typed = |word: &str| is_xml(word) || self.values().any(|value| value == word);
        let is_whole = |tip: &String| split(tip).iter().all(|it| is_typed(it.trim_matches('`')) || !has_place(it));
        let near =
            || similar(verb, name).into_iter().filter(is_near).find_map(|other| meaning(&other).filter(is_whole));
        // The command without the option would answer another question.
        meaning(&dashed).or_else(negated).or_else(near).or_else(|| self.of_value(verb, self.value_of(name)?))
    }

    /// The meaning of an option of this name here, or in another command.
    fn meaning(&self, verb: &Command, given: &str, name: &str) -> Option<String> {
        let is_named = |word: &str| word == name || is_output(name) && word == "--output";
        if let Some(meant) = scoped(verb.get_name(), is_named) {
            return self.said(meant);
        }
        // `--sarif` is a value of `--format`.
        let values = |arg: &Arg| arg.get_possible_values().into_iter().any(|value| value.get_name() == &name[2..]);
        if let Some(option) =
            verb.get_arguments().find(|arg| name.starts_with("--") && values(arg)).and_then(Arg::get_long)
        {
            let line = self.line(&format!("{} --{option} {}", verb.get_name(), &name[2..]))?;
            // A file that exists may be what is read.
            let file =
                self.value_of(given).filter(|file| option == "format" && !is_xml(file) && !Path::new(file).exists());
            let to = file.map_or(String::new(), |file| format!(" > {}", shell_word(file)));
            return Some(format!("write `{line}{to}`"));
        }
        let is_report = ["--log", "--report"].contains(&name) || is_output(name) || verb.get_name() == "schema";
        if is_report && !has(verb, "--output") && verb.get_name() != "explain" {
            if self.is_picture() {
                return self.said(scoped("view", |name| name == "--png")?);
            }
            let file = self.output().unwrap_or("FILE");
            let formatted = format!("{} --format {}", verb.get_name(), file.rsplit('.').next().unwrap_or_default());
            let line = self.output().and_then(|_| self.line(&formatted)).or_else(|| self.line(verb.get_name()));
            let line = line.unwrap_or_default();
            return Some(format!("the answer goes to standard output: write `{line} > {}`", shell_word(file)));
        }
        let (meanings, long) = (meanings(name), name.trim_start_matches('-'));
        let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let is_positional = values.filter(|value| value.split('_').any(|word| word == long.to_uppercase())).count() > 0;
        let is_here = argument(verb, given).is_some() || is_model_option(name) || is_positional;
        if let Some(meant) = self.own(verb, name).or_else(|| is_here.then(|| name.to_owned())) {
            let option = meant.split(' ').next().unwrap_or_default();
            if let Some(advice) = self.value_of(given).and_then(|value| self.of_error(option, value)) {
                return Some(advice);
            }
            let (line, place) = (self.line(verb.get_name()), valued(verb, &meant));
            let is_kept = is_here || !self.dropped.borrow().iter().any(|name| name == given);
            if let Some(line) = line.as_ref().filter(|_| !is_kept && place == option) {
                return Some(format!("leave `{given}` out: `{line}`"));
            }
            let written = || self.with_value(verb, &meant, self.value_of(given)).map(|words| shown(&words));
            return Some(format!("write `{}`", line.filter(|_| is_kept).or_else(written).unwrap_or(place)));
        }
        let is_lost = |meant: &str| meant == verb.get_name() && self.value_of(given).is_some();
        let is_other = |meant: &&&str| !meant.starts_with("--") && !is_lost(meant);
        if let Some(tip) = meanings.iter().filter(is_other).find_map(|meant| self.said(meant)) {
            return Some(tip);
        }
        // The same letter means other things elsewhere.
        let is_long = name.starts_with("--");
        let having = || self.verbs().filter(|other| is_long && given.starts_with("--") && has(other, name));
        if having().next().is_some() {
            let is_whole = |other: &&Command| self.value_of(given).is_some() || valued(other, name) == name;
            let line = self.best(having().filter(is_whole).map(Command::get_name)).and_then(|other| self.line(other));
            let names: Vec<_> = having().map(Command::get_name).collect();
            return Some(
                line.map_or(format!("`{name}` is an option of {}", names.join(", ")), |it| format!("write `{it}`")),
            );
        }
        if let Some(set) = library::get(long) {
            return self.said(&format!("rewrite --use {}", set.name));
        }
        let of_other = |meant| Some((self.verbs().find(|other| has(other, meant))?, meant));
        let (other, meant) = meanings.into_iter().find_map(of_other).filter(|_| is_long)?;
        let option = valued(other, meant);
        let is_alone = refused(self.program, other, &split(&option)).is_none_or(|error| missing(&error).is_none());
        self.said(&format!("{} {option}", if is_alone { other.get_name() } else { COMPRESS }))
    }

    /// The command for a value that only one option takes, such as a release, in place of an unknown option.
    fn of_value(&self, verb: &Command, value: &str) -> Option<String> {
        let options = verb.get_arguments().filter_map(Arg::get_long).map(|long| format!("--{long}"));
        let is_choice = |option: &String| {
            takes(self.program, verb, option, value)
                && ["x", "x=1", "1"].iter().all(|it| !takes(self.program, verb, option, it))
        };
        let [option] = &options.filter(is_choice).collect::<Vec<_>>()[..] else { return None };
        let mut asked = self.only(|_| true);
        let own = asked.words.iter_mut().filter(|(_, own)| own.as_deref() == Some(value));
        own.for_each(|(name, _)| name.clone_from(option));
        asked.said(verb.get_name())
    }

    /// The command for the first of several models.
    fn one_model(&self) -> Option<String> {
        let (models, own) = (self.models(), self.verb?.get_name());
        let mut one = self.only(|(_, value)| value.as_deref().is_none_or(|it| !is_xml(it)));
        one.words.extend(models.first().map(|model| (String::new(), Some((*model).to_owned()))));
        if own == "show" && models.len() > 1 { one.said(own) } else { None }
    }

    fn value_tip(&self, option: &str, value: &str, error: &Error) -> Option<String> {
        if let Some(meant) = scoped(option, |text| is_like(text, value)) {
            return if meant.starts_with("--") { Some(format!("write `{meant}`")) } else { self.said(meant) };
        }
        let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else { return None };
        let near = typelift::near(value, known.iter().map(String::as_str));
        near.map(|near| line_with(value, &near, self.arguments).unwrap_or_else(|| format!("did you mean `{near}`?")))
    }

    /// Advice for the code of an error, which `--allow` refuses.
    fn of_error(&self, option: &str, code: &str) -> Option<String> {
        let is_refused = self.verb.is_some_and(|verb| option == "--allow" && !takes(self.program, verb, option, code));
        let is_code = is_refused && self.is_accepted(&["explain".to_owned(), code.to_owned()]);
        is_code.then(|| format!("an error cannot be left out: `typelift explain {code}` says how to fix it"))
    }

    /// The tip for an option in a line without a command.
    fn without_command(&self, option: &str) -> Option<String> {
        let is_overview = is_overview(self.arguments);
        if let Some(model) = self.models().first().filter(|_| option.starts_with("-o") || !is_overview) {
            let meant = self.conversion().or_else(|| self.output().map(|_| "convert"));
            let check = || self.line("check").filter(|line| line.contains("--") && self.dropped.borrow().is_empty());
            let line = meant.and_then(|meant| self.line(meant)).or_else(check);
            let mut advice = self.options().flat_map(|it| meanings(it.0)).filter(|meant| meant.contains('`'));
            if let (None, Some(advice)) = (&line, advice.next()) {
                self.dropped.take();
                return self.said(advice);
            }
            let line = line.unwrap_or_else(|| format!("typelift {}", shell_word(model)));
            return Some(format!("the command comes first: `{line}`"));
        }
        let verb = self.program.find_subcommand(option.trim_start_matches('-')).map(Command::get_name);
        let meant = meanings(option).first().copied();
        let meant = meant.filter(|meant| !is_model_option(option) && !is_output(meant));
        let having = || self.best(self.verbs().filter(|verb| has(verb, option)).map(Command::get_name));
        let writing = || self.output().map(|_| "convert");
        match verb.or(meant).or_else(|| self.conversion()).or_else(writing).or_else(having) {
            Some(meant) => self.said(meant),
            None if option.starts_with('-') => None,
            None if is_xml(option) && !Path::new(option).exists() => self.said("convert"),
            None => self.said("diff"),
        }
    }

    fn verb_tip(&self, word: &str) -> Option<String> {
        if word == "sed" {
            let text = self.values().find(|text| sed(text).is_some());
            return text.map_or_else(|| self.said("show | sed"), |text| self.restated(text));
        }
        if is_path(word) && !Path::new(word).exists() {
            let of_key = scoped("jq", |key| word.starts_with(key));
            return self.said(of_key.or_else(|| meanings("jq").first().copied())?);
        }
        // `torch.onnx.export`.
        let (module, call) = word.split_once('.').unwrap_or_default();
        let call = call.split('(').next().and_then(|call| call.rsplit('.').next());
        let word = call.filter(|_| is_program(module) && not_a_model::file(word).is_none()).unwrap_or(word);
        if self.output().is_some_and(|output| output.ends_with(".onnx")) {
            return meanings("tf2onnx").pop().map(str::to_owned);
        }
        if let Some(set) = library::get(&dashed(word)) {
            return self.said(&format!("rewrite --use {}", set.name));
        }
        if let Some(tip) = self.meant(word).and_then(|meant| self.said(meant)) {
            return Some(tip);
        }
        let is_whole = |meant: &&str| !meant.starts_with("--");
        if let Some(tip) = meanings(word).into_iter().filter(is_whole).find_map(|other| self.said(other)) {
            return Some(tip);
        }
        if let Some(advice) = not_a_model::file(word) {
            return Some(advice);
        }
        if Path::new(word).is_dir() {
            return Some(format!("`typelift check {}` checks all models in it", shell_word(word)));
        }
        let files = [format!("{word}.xml"), Path::new(word).with_extension("xml").display().to_string()];
        if let Some(file) = files.iter().find(|file| Path::new(file).is_file()) {
            return Some(format!("write `typelift {}`", shell_word(file)));
        }
        let names = || self.verbs().map(Command::get_name);
        let is_start = names().filter(|name| name.starts_with(word)).count() == 1;
        let near = |name: &&str| is_slip(word, name) || is_start && name.starts_with(word);
        let nearest = typelift::near(word, names()).filter(|name| near(&&**name));
        if let Some(name) = nearest.or_else(|| names().find(near).map(str::to_owned)) {
            let is_alone = self.models().is_empty() && self.rest().all(|it| it == word);
            return if is_alone { Some(format!("did you mean `{name}`?")) } else { self.said(&name) };
        }
        let lower = dashed(word);
        let within = within(word, known_words()).into_iter().next().filter(|other| other != word);
        let slip = typelift::near(word, known_words()).filter(|name| near(&&**name));
        let is_word = within.is_some() || slip.as_ref().is_some_and(|slip| slip.len().abs_diff(word.len()) < 2);
        let mut sets = library::SETS.iter().map(|set| set.name);
        if let Some(set) = sets.find(|set| lower.len() > 3 && set.contains(&lower)).filter(|_| !is_word) {
            return self.said(&format!("rewrite --use {set}"));
        }
        let other = within.or(slip);
        other.filter(|other| other != word).and_then(|other| self.verb_tip(&other))
    }

    /// The row for a word in place of a command, with what the options of the line say about it.
    fn meant(&self, word: &str) -> Option<&str> {
        let named = |word: &str| {
            let meanings = meanings(word);
            let first = meanings.iter().find(|meant| !meant.starts_with("--")).or(meanings.first()).copied();
            self.program.find_subcommand(word).map(Command::get_name).or(first)
        };
        // The command of another program follows its name: `surgeon extract`.
        let words = || self.others().skip_while(|it| *it != word).take_while(|it| !is_xml(it));
        let of_program = || words().filter(|it| !is_program(it)).find_map(named).or_else(|| words().find_map(named));
        let of_program = || of_program().or_else(|| self.conversion());
        let meant = is_program(word).then(of_program).flatten().or_else(|| named(word))?;
        let (is_run, is_import) = (meanings("run").contains(&meant), meanings("ovc").contains(&meant));
        if is_import && !self.models().is_empty() {
            let other = if word == "trtexec" { meanings("run").pop() } else { Some("convert") };
            return self.conversion().or(other.filter(|_| word != "export").or(Some(meant)));
        }
        let is_close = self.options().any(|(name, _)| meanings(name).iter().any(|it| it.starts_with("verify ")));
        let is_verified = is_run && self.models().len() == 2 || is_close && meant.starts_with("diff");
        let meant = if is_verified { "verify BEFORE.xml AFTER.xml" } else { meant };
        let picture = scoped("view", |name| name == "--png").filter(|_| meant == "view" && self.is_picture());
        let meant = picture.unwrap_or(meant);
        // `compare --html`, `quantize --preset`.
        let other = self.options().filter_map(|(name, value)| {
            let of_value = value.and_then(|value| scoped(&dashed(name), |word| word == value));
            let scoped = scoped(meant.split(' ').next()?, |word| word == dashed(name));
            let of_value = of_value.filter(|it| !it.starts_with('-') && meant == "MODEL.xml");
            let of_data = || meanings(name).first().copied().filter(|it| meanings("pot").contains(it));
            scoped.or(of_value).filter(|it| !it.contains('`')).or_else(of_data)
        });
        let meant = other.last().unwrap_or(meant);
        // A text with errors is corrected before Converts are inserted.
        let is_read = |model: &Model| typelift::infer(&mut model.clone()).iter().any(Diagnostic::is_error);
        Some(if meant == "check --fix" && self.model().is_some_and(is_read) { "convert" } else { meant })
    }

    fn is_picture(&self) -> bool {
        self.output().is_some_and(|it| PICTURES.iter().any(|end| it.ends_with(end)))
    }

    /// The command for a program that converts: what the first known option belongs to.
    fn conversion(&self) -> Option<&'static str> {
        let convert = self.program.find_subcommand("convert")?;
        let is_tensor = |name: &str| self.model().is_some_and(|model| model.graph().find(name).is_ok());
        if self.value_of("--output").is_some_and(is_tensor) {
            return meanings("cut").pop();
        }
        let options =
            self.options().filter(|(name, value)| !is_output(name) && !is_model_option(name) && !is_off(*value));
        let options: Vec<_> = options.map(|(name, _)| name).collect();
        let mut statements =
            options.iter().map(|name| meanings(name)).filter(|it| it.iter().any(|it| it.starts_with("rewrite ")));
        // The last meaning is advice for a model that no statement fits.
        if let Some(other) = statements
            .clone()
            .find(|it| it.iter().all(|meant| !meant.starts_with("rewrite ") || self.draft(meant).is_none()))
        {
            return other.last().copied();
        }
        let statements = statements.by_ref().flatten().filter(|meant| meant.starts_with("rewrite "));
        let is_own = |name: &&str| self.own_or_similar(convert, name).is_some_and(|own| !own.starts_with("--for"));
        let own = options.iter().any(is_own).then_some("convert");
        self.best(own.into_iter().chain(statements))
    }

    /// The command that keeps the most of what was typed, and the first one of those.
    fn best<'m>(&self, commands: impl IntoIterator<Item = &'m str>) -> Option<&'m str> {
        let lost = |command: &'m str| {
            let (words, lost) = self.draft(command)?;
            let is_written = self.output().is_none_or(|output| words.iter().any(|word| word == output));
            Some((lost.len() + usize::from(!is_written), command))
        };
        Some(commands.into_iter().filter_map(lost).min_by_key(|(lost, _)| *lost)?.1)
    }
}

/// The error of the parser for words after the name of the program.
fn fault<'w>(program: &Command, words: impl IntoIterator<Item = &'w str>) -> Option<Error> {
    program.clone().try_get_matches_from(["typelift"].into_iter().chain(words)).err()
}

/// The first option that an error names as missing.
fn missing(error: &Error) -> Option<&String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => missing.first().filter(|arg| arg.contains("--")),
        _ => None,
    }
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

/// An option with the word for its value: `--quantize MODE` for `--quantize <MODE|@FILE>`.
fn plain(option: &str) -> String {
    option.split('|').next().unwrap_or(option).replace(['<', '>'], "")
}

/// An option as it was typed, where only its first letter is read: `-shape` for `-s`.
fn whole(option: &str, arguments: &[OsString]) -> String {
    let is_short = option.len() == 2 && option.starts_with('-') && option != "--";
    let mut words = arguments.iter().filter_map(|word| word.to_str()?.split('=').next());
    let long = words.find(|word| is_short && word.len() > 2 && word.starts_with(option));
    long.unwrap_or(option).to_owned()
}

/// Replaces the quotes around words: `'x'` becomes `` `x` ``.
fn with_backticks(said: &str) -> String {
    let quotes: Vec<usize> = said.match_indices('\'').map(|(at, _)| at).collect();
    if quotes.len().is_multiple_of(2) { said.replace('\'', "`") } else { said.to_owned() }
}
