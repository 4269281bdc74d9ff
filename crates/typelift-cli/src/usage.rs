//! Suggestions for invalid command lines.

use std::cell::{OnceCell, RefCell};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::{Diagnostic, shell_word};
use typelift::ops::{self, Release};
use typelift::rewrite::{Script, library};
use typelift::{Layer, LayerId, Model};

use crate::failure::Failure;
use crate::input::{Input, element_type, is_xml, parse_size};
use crate::not_a_model;
use crate::whole_command;

/// The rows of the table: words of other programs, and what they mean here.
///
/// A meaning is commands or advice, the likeliest first. One that begins with an option counts for each command that has
/// it; one that begins with a command counts elsewhere, too. `IN.xml` is a model, which is given without an option. A word
/// that begins with a dash is an option only. `_` and capitals are written as `-` and small letters. Words after the name of a
/// command or an option, as in `diff: --stat`, count only there; `*.bin` is the end of a value. `EXAMPLE` has complete lines for
/// commands that need more than a model, `MORE` what to write instead of further words, `PROGRAM` programs whose own command
/// follows, and `-e` statements: `A` and `B` are any words, and `…` is the rest.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("words.txt").lines().filter_map(|row| row.split_once(" = "))
}

/// An example of a conversion, for options that belong to one.
const COMPRESS: &str = "convert --compress f16";

/// Things and actions that are in names of many kinds.
const OBJECTS: [&str; 11] =
    ["list", "print", "data", "errors", "layer", "layers", "name", "node", "nodes", "status", "tensor"];

/// Words in rows of tables that stand for what was typed.
const PLACES: &str =
    "FROM UNTIL OLD NEW LAYER CONSTANT TENSOR LAYOUT NAME SHAPE LENGTH VALUE OTHER N ADAPTER PATTERN REPLACEMENT";

/// Options with which no model is written elsewhere.
const DONE: [&str; 5] = ["--diff", "--dry-run", "--audit", "--in-place", "--list-rules"];

/// Units after a number of seconds, which is written without one.
const SECONDS: [&str; 3] = ["s", "sec", "seconds"];

/// Values of `--format` that are no files.
const FORMATS: [&str; 3] = ["github", "json", "sarif"];

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
    match (of_habit(arguments).or_else(|| tip(error, program, arguments)), meant) {
        (Some(tip), _) => failure.help(tip),
        (None, Some(near)) => {
            let wrong = text(error, ContextKind::InvalidValue).unwrap_or_default();
            completed(failure.did_you_mean(&wrong, &near), arguments)
        }
        (None, None) => failure.help(other()),
    }
}

/// Writes the whole command in place of the word that is meant, if the parser accepts it.
pub(crate) fn completed(failure: Failure, arguments: &[OsString]) -> Failure {
    match failure.slip().and_then(|(wrong, near)| line_with(wrong, near, arguments)) {
        Some(line) => failure.helped(line),
        None => failure,
    }
}

/// The command with `meant` in place of the wrong text, or of the part of it that is similar.
fn line_with(wrong: &str, meant: &str, arguments: &[OsString]) -> Option<String> {
    let texts: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let part = typelift::near(meant, wrong.split(|letter| !is_part(letter)).filter(|part| *part != meant))
        .filter(|_| meant.chars().all(is_part));
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
    (!words.starts_with(&texts) && is_command(&words)).then(|| format!("did you mean `typelift {}`?", shown(&words)))
}

/// The error of the parser for words after the name of the program.
fn fault<'w>(program: &Command, words: impl IntoIterator<Item = &'w str>) -> Option<Error> {
    program.clone().try_get_matches_from(["typelift"].into_iter().chain(words)).err()
}

fn is_command(words: &[String]) -> bool {
    fault(&whole_command(), words.iter().map(String::as_str)).is_none()
}

/// Replaces the quotes around words: `'x'` becomes `` `x` ``.
fn with_backticks(said: &str) -> String {
    let quotes: Vec<usize> = said.match_indices('\'').map(|(at, _)| at).collect();
    if quotes.len().is_multiple_of(2) { said.replace('\'', "`") } else { said.to_owned() }
}

fn tip(error: &Error, program: &Command, arguments: &[OsString]) -> Option<String> {
    let asked = Asked::new(program, arguments);
    let tip = asked.tip(error)?;
    let dropped = asked.dropped.take();
    let wrong = text(error, ContextKind::InvalidArg).map(|option| whole(&option, arguments)).unwrap_or_default();
    let is_told = |name: &str| tip.contains(name) || wrong == name;
    let lacking: Vec<_> = dropped.iter().filter(|name| !is_told(name)).map(|it| format!("`{it}`")).collect();
    let is_told = lacking.is_empty() || !tip.contains(".xml");
    Some(if is_told { tip } else { format!("{tip}, without {}", lacking.join(" and ")) })
}

impl Asked<'_> {
    fn tip(&self, error: &Error) -> Option<String> {
        match error.kind() {
            ErrorKind::InvalidSubcommand => {
                let word = text(error, ContextKind::InvalidSubcommand)?;
                // `run --rm MODEL.xml check`.
                let own = self.verb.filter(|_| !is_program(&word) && !self.models().is_empty());
                own.and_then(|verb| self.said(verb.get_name())).or_else(|| self.verb_tip(&word))
            }
            ErrorKind::UnknownArgument => {
                let option = text(error, ContextKind::InvalidArg)?;
                self.option_tip(&whole(&option, self.arguments))
            }
            ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
                let (option, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
                let name = option.split(' ').next()?;
                let fitted = self.verb.and_then(|verb| self.fitted(verb, name, &value));
                match value.split_once(':') {
                    _ if value.is_empty() => Some(match error.get(ContextKind::ValidValue) {
                        Some(ContextValue::Strings(known)) if !known.is_empty() => {
                            format!("write `{name} {}`", known[0])
                        }
                        _ => format!("write `{}`", plain(&option)),
                    }),
                    _ if fitted.is_some() => Some(format!("write `{}`", self.line(self.verb?.get_name())?)),
                    _ if option.contains("<KEY=") && value.starts_with('{') => {
                        Some(format!("write `{name} KEY=VALUE` for each property"))
                    }
                    None if let Some((left, right)) = plain(&option).split_once('=')
                        && !value.contains('=') =>
                    {
                        let is_right = left.ends_with("NAME")
                            && (!value.starts_with(char::is_lowercase) || element_type(&value).is_ok());
                        let pair = if is_right { format!("NAME={value}") } else { format!("{value}={right}") };
                        Some(format!("write `{name} {}`", shell_word(&pair)))
                    }
                    _ => self.of_error(name, &value).or_else(|| self.value_tip(name, &value.to_lowercase(), error)),
                }
            }
            ErrorKind::MissingRequiredArgument => {
                let verb = self.verb?.get_name();
                let missing = missing(error);
                if missing.is_some_and(|arg| arg.starts_with("<--")) {
                    let example = (verb == "convert").then(|| self.line(COMPRESS)).flatten();
                    let example = example.map(|line| format!(", such as `{line}`"));
                    return Some(format!("write one of these options{}", example.unwrap_or_default()));
                }
                if let Some(option) = missing.filter(|arg| arg.starts_with("--")) {
                    return Some(format!("write `{}`", plain(option)));
                }
                let names_tensor = error.render().to_string().contains("<NAME>");
                let line = if names_tensor { "show MODEL.xml NAME --npy FILE.npy" } else { verb };
                let line = self.line(line)?;
                let piped = line.replace("MODEL.xml", "-");
                let is_piped = !std::io::stdin().is_terminal() && piped != line && is_command(&split(&piped)[1..]);
                let piped = if is_piped { format!(", or `{piped}` for standard input") } else { String::new() };
                Some(format!("for example, `{line}`{piped}"))
            }
            ErrorKind::ArgumentConflict
                if let Some(tensor) = self.value_of("--output").filter(|output| !output.contains('.')) =>
            {
                self.said(&format!("rewrite -e 'cut {tensor}'")).or_else(|| Some("leave one of the two out".to_owned()))
            }
            ErrorKind::TooManyValues => {
                let option = text(error, ContextKind::InvalidArg)?;
                let is_off = is_off(self.value_of(&option));
                Some(if is_off { format!("leave `{option}` out") } else { format!("write `{option}`") })
            }
            ErrorKind::ArgumentConflict => Some("leave one of the two out".to_owned()),
            _ => None,
        }
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

/// Dashes and quotes that text programs write.
const TYPOGRAPHIC: [char; 6] = ['—', '–', '“', '”', '‘', '’'];

/// Advice about a habit of git or of the shell in the words of a command that failed.
pub(crate) fn of_habit(arguments: &[OsString]) -> Option<String> {
    let mut words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    if words.get(1) == Some(&"git") {
        words.remove(1);
    }
    let is_file = |word: &str| Path::new(word).exists();
    let verb = *words.get(1)?;
    if let Some(line) = respelt(&words[1..]) {
        return Some(format!("write `typelift {line}`"));
    }
    if words.iter().any(|word| word.starts_with(TYPOGRAPHIC) && !is_file(word)) {
        let quote = if cfg!(windows) { "\"" } else { "'" };
        let plain = |word: &&str| match word.contains(TYPOGRAPHIC) {
            false if word.starts_with('-') => (*word).to_owned(),
            false => shell_word(word).into_owned(),
            true => word.replace('—', "--").replace('–', "-").replace("---", "--").replace(['“', '”', '‘', '’'], quote),
        };
        let line = words[1..].iter().map(plain).collect::<Vec<_>>().join(" ");
        return Some(format!("a text program has changed its dashes or quotes: `typelift {line}`"));
    }
    let model = words[2..].iter().find(|word| word.ends_with(".xml") && !word.contains("..") && !word.contains(':'));
    let is_revision = |word: &&&str| {
        let is_path = word.split_once(':').is_some_and(|(name, path)| {
            name.len() > 1 && !name.contains(['=', '/']) && !path.starts_with("//") && path.ends_with(".xml")
        });
        let has_sign = word.contains("..") || word.contains("@{") || word.chars().skip(1).any(|c| "~^".contains(c));
        !is_file(word) && !word.starts_with(['-', '.']) && (word.starts_with("HEAD") || is_path || has_sign)
    };
    let is_drive = |word: &&str| is_xml(word) && word.get(1..2) == Some(":") && !word.contains(['/', '\\', '=']);
    if words[1..].iter().any(is_drive) {
        return Some("the shell removes `\\`: write the path in quotes, or with `/`".to_owned());
    }
    for pair in words.windows(2).skip(1) {
        let (option, value) = (pair[0], pair[1]);
        let at = words.iter().position(|it| *it == value).unwrap_or_default();
        let rest = words[at..].iter().take_while(|it| !it.starts_with('-') && !it.ends_with(".xml") && !is_file(it));
        let rest: Vec<&str> = rest.copied().collect();
        match option {
            "--rule" | "--rules" | "-r" if value.contains("=>") && !is_file(value) => {
                return Some(format!("--rules takes a file: write `-e {}`", shell_word(value)));
            }
            "-e" | "--statement" if rest.len() > 1 => {
                return Some(format!("quote the statement: `-e {}`", shell_word(&rest.join(" "))));
            }
            "-e" | "--statement" if has_gap(value) || value.trim_start().starts_with([':', '=']) => {
                return Some(
                    "the shell replaces `$` in double quotes: write the statement in single quotes".to_owned(),
                );
            }
            _ if option.starts_with("--")
                && rest.len() > 1
                && (value.contains('[') || rest.contains(&"=") || value.ends_with('=')) =>
            {
                return Some(format!("quote the value: `{option} {}`", shell_word(&rest.concat())));
            }
            "--types" | "-e" | "--statement" if value.ends_with('-') || value.ends_with(" =") => {
                let value = value.trim_end_matches(['-', '=', ' ']);
                let whole = if option == "--types" { format!("{value}=TO") } else { format!("'{value} => …'") };
                return Some(format!("the shell takes `>` for a file to write: quote it, as `{option} {whole}`"));
            }
            _ => (),
        }
    }
    let cached = words.iter().find(|word| verb == "diff" && ["--cached", "--staged"].contains(word));
    let word = words[2..].iter().find(|word| !word.is_empty() && is_revision(word)).or(cached)?;
    let of_file = word.split_once(':').filter(|(_, path)| path.ends_with(".xml"));
    if let (Some(_), false) = (of_file, word.contains("..")) {
        let others = words[1..].iter().map(|it| if it == word { "-".into() } else { shell_word(it) });
        let others = others.collect::<Vec<_>>().join(" ");
        return Some(format!("`git show {} | typelift {others}` reads the file of a commit", shell_word(word)));
    }
    let model = model.map_or("MODEL.xml".into(), |model| shell_word(model));
    let which = if word.starts_with('-') { (*word).into() } else { shell_word(word) };
    let tool = format!("`git difftool --no-prompt --extcmd 'typelift diff' {which} -- {model}`");
    (verb == "diff").then(|| format!("{tool} compares with a commit"))
}

/// The line without a slip in a word that names a file: `a.xml-o`, `a.xml:280`, `'a.xml -o b.xml'`, or in the first one:
/// `-check`.
fn respelt(typed: &[&str]) -> Option<String> {
    let program = whole_command();
    let is_model = |word: &str| is_xml(word) && Path::new(word).is_file();
    let of_place = |word: &str| {
        let (file, place) = word.split_at(word.find(".xml:")? + 4);
        let layer = layer_at(file, place.split(':').nth(1)?.parse().ok()?)?;
        Some(match typed[0] {
            "why" => vec![file.to_owned(), layer],
            "show" => vec!["--around".to_owned(), layer, file.to_owned()],
            _ => vec![file.to_owned()],
        })
    };
    let number = |at: usize| typed.get(at)?.rsplit('=').next()?.parse::<f64>().ok();
    let unit = |at: usize| typed.get(at).filter(|unit| is_unit(unit) && number(at.saturating_sub(1)).is_some());
    let parts = |(at, word): (usize, &&str)| {
        let verb = word.trim_start_matches('-');
        let path = word.replace('\\', "/");
        let apart = word.replace(".xml-", ".xml -").replace(".xml..", ".xml ").replace(".xml,", ".xml ");
        match split(&apart) {
            _ if Path::new(word).exists() => None,
            // `--max-memory 2 gb`.
            _ if unit(at).is_some() => Some(Vec::new()),
            _ if let Some(unit) = unit(at + 1).filter(|unit| !SECONDS.contains(unit)) => {
                Some(vec![format!("{word}{unit}")])
            }
            _ if at == 0 && verb != *word && program.find_subcommand(verb).is_some() => Some(vec![verb.to_owned()]),
            _ if path != *word && is_model(&path) => Some(vec![path]),
            parts if parts.iter().any(|part| is_model(part)) => Some(parts),
            _ => of_place(word),
        }
    };
    let all = typed.iter().enumerate().map(|word| (parts(word), word.1));
    let words: Vec<_> = all.flat_map(|(parts, word)| parts.unwrap_or_else(|| vec![(*word).to_owned()])).collect();
    (words != typed && is_command(&words)).then(|| shown(&words))
}

/// The name of the layer in this line of a file.
fn layer_at(file: &str, line: usize) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let model = Input::new(file).load().ok()?.model.take()?;
    let end = text.match_indices('\n').nth(line.checked_sub(1)?)?.0;
    let begins = |layer: &&Layer| layer.span().is_some_and(|span| (span.start as usize) < end);
    model.graph().layers().filter(begins).last().map(|layer| layer.name().to_owned())
}

/// True if a statement lacks an operand, because the shell has replaced a variable by nothing.
fn has_gap(statement: &str) -> bool {
    const GAPS: [&str; 10] = ["()", "(,", ",)", ",,", "/)", "*)", "+)", "-)", "=)", "/,"];
    let whole = statement.replace("Parameter()", "").replace(' ', "");
    statement.ends_with(' ') || statement.contains("  ") || GAPS.iter().any(|gap| whole.contains(gap))
}

/// Adds advice to the failure of a command that the parser has accepted.
pub(crate) fn after_run(failure: Failure, arguments: &[OsString]) -> Failure {
    match of_run(arguments) {
        Some(advice) => failure.helped(advice),
        None => completed(failure, arguments),
    }
}

/// Advice about words that the parser accepts, for a command that failed.
fn of_run(arguments: &[OsString]) -> Option<String> {
    let mut program = whole_command();
    of_habit(arguments).or_else(|| {
        program.build();
        let asked = Asked::new(&program, arguments);
        let verb = asked.verb?;
        let is_unknown = |word: &&str| *word != verb.get_name() && !is_xml(word) && !Path::new(word).exists();
        let unknown = || asked.others().find(is_unknown);
        // `--hint latency` is a property.
        let is_row = |(name, value): Typed| value.is_some_and(|value| scoped(name, |word| word == value).is_some());
        match verb.get_name() {
            name if asked.is_moved || name == "verify" && asked.options().any(is_row) => {
                Some(format!("write `{}`", asked.line(name)?))
            }
            "rewrite" if let Some(line) = asked.restated() => Some(format!("write `{line}`")),
            "show" if asked.value_of("--only").is_some_and(|word| asked.operation(word).is_some()) => {
                Some(format!("write `{}`", asked.line("show")?))
            }
            "convert" | "rewrite" | "check" | "stats" | "infer" => asked.verb_tip(
                unknown().filter(|it| !meanings(it).is_empty() || library::get(it).is_some() || is_path(it))?,
            ),
            _ => None,
        }
    })
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

impl Asked<'_> {
    fn value_tip(&self, option: &str, value: &str, error: &Error) -> Option<String> {
        if let Some(meant) = scoped(option, |text| is_like(text, value)) {
            return if meant.starts_with("--") { Some(format!("write `{meant}`")) } else { self.said(meant) };
        }
        if let Some(meant) = meanings(value).into_iter().find(|meant| meant.split(' ').next() == Some(option)) {
            return Some(format!("write `{meant}`"));
        }
        let rendered = error.render().to_string();
        let listed = rendered.split("expected one of ").nth(1).and_then(|text| text.split('\n').next());
        let near = match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(known)) => typelift::near(value, known.iter().map(String::as_str)),
            _ => typelift::near(value, listed?.split(", ").map(str::trim)),
        };
        near.map(|near| line_with(value, &near, self.arguments).unwrap_or_else(|| format!("did you mean `{near}`?")))
    }

    fn verb_tip(&self, word: &str) -> Option<String> {
        if let Some(text) = self.values().find(|text| sed(text).is_some()).filter(|_| word == "sed") {
            return self.statements(text).into_iter().find_map(|meant| match meant.starts_with("convert --") {
                true => self.said(&meant),
                false => self.said(&format!("rewrite -e '{meant}'")).filter(|_| meant.parse::<Script>().is_ok()),
            });
        }
        if is_path(word) && !Path::new(word).exists() {
            return self.said(meanings("jq").first()?);
        }
        // `torch.onnx.export`.
        let word = word.rsplit('.').next().filter(|_| word.matches('.').count() > 1).unwrap_or(word);
        if self.output().is_some_and(|output| output.ends_with(".onnx")) {
            return meanings("tf2onnx").pop().map(str::to_owned);
        }
        let named = |word: &str| {
            let meanings = meanings(word);
            let first = meanings.iter().find(|meant| !meant.starts_with("--")).or(meanings.first()).copied();
            self.program.find_subcommand(word).map(Command::get_name).or(first)
        };
        // The command of another program follows its name: `surgeon extract`.
        let words = || self.others().skip_while(|it| *it != word).take_while(|it| !is_xml(it));
        let of_program = words().filter(|it| !is_program(it)).find_map(named).or_else(|| words().find_map(named));
        let of_program = of_program.filter(|_| is_program(word));
        if let Some(meant) = of_program.or_else(|| named(word)) {
            let (is_run, is_import) = (meanings("run").contains(&meant), meanings("ovc").contains(&meant));
            let run = meanings("run").into_iter().find(|_| word == "trtexec");
            let other = self.conversion().or(run).unwrap_or("convert");
            let is_other = is_import && word != "export" && !self.models().is_empty();
            let is_run = is_run && self.models().len() == 2;
            let is_close = self.options().any(|(name, _)| meanings(name).iter().any(|it| it.starts_with("verify ")));
            let is_verified = is_run || is_close && meant.starts_with("diff");
            let meant = if is_verified { "verify BEFORE.xml AFTER.xml" } else { meant };
            // `compare --html`, `quantize --preset`.
            let others = self.options().filter_map(|(name, value)| {
                let of_value = value.and_then(|value| scoped(&dashed(name), |word| word == value));
                let scoped = scoped(meant.split(' ').next()?, |word| word == dashed(name));
                scoped
                    .or(of_value.filter(|it| !it.starts_with('-') && meant == "MODEL.xml"))
                    .filter(|it| !it.contains('`'))
                    .or_else(|| meanings(name).first().copied().filter(|it| meanings("pot").contains(it)))
            });
            let meant = others.last().unwrap_or(meant);
            // A text with errors is corrected before Converts are inserted.
            let is_read =
                || self.model().is_some_and(|model| typelift::infer(&mut model.clone()).iter().any(|it| it.is_error()));
            let meant = if meant == "check --fix" && is_read() { "convert" } else { meant };
            let meant = if is_other { other } else { meant };
            let others = || meanings(word).into_iter().filter(|meant| !meant.starts_with("--"));
            return self.said(meant).or_else(|| others().find_map(|other| self.said(other)));
        }
        if let Some(advice) = not_a_model::file(word) {
            return Some(advice);
        }
        if Path::new(word).is_dir() {
            return Some(format!("`typelift check {}` checks all models in it", shell_word(word)));
        }
        for other in [format!("{word}.xml"), Path::new(word).with_extension("xml").display().to_string()] {
            if Path::new(&other).is_file() {
                return Some(format!("did you mean `typelift {}`?", shell_word(&other)));
            }
        }
        let names = || self.program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let near = |name: &&str| is_slip(word, name);
        let nearest = typelift::near(word, names()).filter(|name| near(&&**name));
        if let Some(name) = nearest.or_else(|| names().find(near).map(str::to_owned)) {
            return match self.line(&name).filter(|_| !self.models().is_empty()) {
                Some(line) => Some(format!("did you mean `{line}`?")),
                None => Some(format!("did you mean `{name}`?")),
            };
        }
        let lower = dashed(word);
        let sets = || library::SETS.iter().map(|set| set.name);
        let exact = sets().find(|set| *set == lower);
        let within = within(word, known_words()).filter(|other| other != word && exact.is_none());
        let part = exact.or_else(|| sets().find(|set| lower.len() > 3 && set.contains(&lower)));
        if let Some(set) = part.filter(|_| within.is_none()) {
            return self.said(&format!("rewrite --use {set}"));
        }
        let other = within.or_else(|| typelift::near(word, known_words()).filter(|name| near(&&**name)));
        other.filter(|other| other != word).and_then(|other| self.verb_tip(&other))
    }

    fn option_tip(&self, option: &str) -> Option<String> {
        let name = option.split('=').next().unwrap_or(option);
        let Some(verb) = self.verb else { return self.tip_without_command(option, name) };
        if is_overview(self.arguments) && option == verb.get_name() || self.is_moved && option.starts_with('-') {
            return Some(format!("write `{}`", self.line(verb.get_name())?));
        }
        if !option.starts_with('-') {
            let row = |scope| scoped(scope, |name| name == verb.get_name());
            let more = row("MORE").or_else(|| row("EXAMPLE"));
            let help = || format!("`typelift help {}` explains the command", verb.get_name());
            return more.map_or_else(|| Some(help()), |more| self.said(more));
        }
        let dashed = dashed(name);
        let long = dashed.trim_start_matches('-');
        let only_asked = |done: &str| format!("leave `{name}` out: `typelift {}` {done}", verb.get_name());
        let off = is_off(self.value_of(name)).then(|| only_asked("does it only if an option asks for it"));
        let negated = ["no-", "skip-", "disable-", "without-"].iter().any(|start| long.starts_with(start));
        let mut verbs = self.program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let is_begun = |name: &&str| *name == long || long.len() > 3 && name.starts_with(long);
        // Advice is followed by the command without the option.
        let meaning = |meant: &str| {
            let advice = self.meaning(verb, name, meant)?;
            let is_whole = ["write `", "an error"].iter().any(|start| advice.starts_with(start))
                || advice.contains(".xml")
                || self.models().is_empty();
            let line = if is_whole { None } else { self.line(verb.get_name()) };
            Some(line.map_or(advice.clone(), |line| format!("{advice}: `{line}`")))
        };
        off.or_else(|| meaning(&dashed))
            .or_else(|| negated.then(|| only_asked("does only what its options say")))
            .or_else(|| verbs.find(is_begun).and_then(|verb| self.said(verb)))
            .or_else(|| {
                // A similar word of another command is too little, unless both change a model.
                let is_changing = ["convert", "rewrite"].contains(&verb.get_name());
                let mut similar = similar(verb, name).into_iter();
                let is_whole =
                    |tip: &String| split(tip).iter().all(|word| is_xml(word.trim_matches('`')) || !has_place(word));
                similar.find_map(|other| {
                    let is_near = is_changing || self.own(verb, &other).is_some();
                    meaning(&other).filter(|tip| is_near && is_whole(tip))
                })
            })
            .or_else(|| {
                let line = self.line(verb.get_name()).filter(|_| !self.models().is_empty())?;
                let own =
                    verb.get_arguments().filter(|option| !option.is_global_set() && option.get_long() != Some("help"));
                let own: Vec<_> = own.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
                let listed = match own.len() {
                    ..12 => format!("the options of `typelift {}` are {}", verb.get_name(), own.join(", ")),
                    _ => format!("`typelift {} -h` lists the options", verb.get_name()),
                };
                Some(format!("{listed}; without `{name}`: `{line}`"))
            })
    }

    /// The tip for an option in a line without a command.
    fn tip_without_command(&self, option: &str, name: &str) -> Option<String> {
        let is_overview = is_overview(self.arguments);
        if let Some(model) = self.models().first().filter(|_| option.starts_with("-o") || !is_overview) {
            let meant = self.conversion().or_else(|| self.output().map(|_| "convert"));
            let check = || self.line("check").filter(|line| line.contains("--") && self.dropped.borrow().is_empty());
            let line = meant.and_then(|meant| self.line(meant)).or_else(check);
            let line = line.unwrap_or_else(|| format!("typelift {}", shell_word(model)));
            return Some(format!("the command comes first: `{line}`"));
        }
        let verb = self.program.find_subcommand(name.trim_start_matches('-')).map(Command::get_name);
        let meant = meanings(name).first().copied().filter(|_| !is_model_option(name));
        if let Some(meant) = verb.or(meant).or_else(|| self.conversion()) {
            return self.said(meant);
        }
        match self.program.get_subcommands().find(|verb| has(verb, name)) {
            Some(verb) => Some(format!("write `{}`", self.line(verb.get_name())?)),
            None if option.starts_with('-') => None,
            None if is_xml(option) && !Path::new(option).exists() => {
                let model = shell_word(self.models().first()?);
                Some(format!("write `typelift convert {model} -o {}`", shell_word(option)))
            }
            None => Some(format!("to compare two models, write `{}`", self.line("diff")?)),
        }
    }
}

/// The words of an expression of sed, `s/old/new/g`; true if all places are meant.
fn sed(text: &str) -> Option<(&str, &str, bool)> {
    let rest = text.strip_prefix('s')?;
    let mut parts = rest.split(rest.chars().next().filter(|sign| "/|#,".contains(*sign))?).skip(1);
    let (old, new, flags) = (parts.next()?, parts.next()?, parts.next()?);
    (!old.is_empty()).then_some((old, new, flags.contains('g')))
}

/// True for a word that names no file, although it stands between models: an expression of jq, and a unit.
pub(crate) fn is_no_file(word: &Path) -> bool {
    let text = word.to_string_lossy();
    !word.exists() && (is_path(&text) || is_unit(&text))
}

fn is_unit(word: &str) -> bool {
    SECONDS.contains(&word) || word.starts_with(char::is_alphabetic) && parse_size(&format!("1{word}")).is_ok()
}

/// True for an expression of jq, such as `.layers[].name`.
fn is_path(word: &str) -> bool {
    word.starts_with('.') && word[1..].starts_with(|first: char| first.is_alphabetic() || first == '[') && !is_xml(word)
}

/// True if a word differs from a name in one place, or in its end, or is its beginning.
fn is_slip(word: &str, name: &str) -> bool {
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    let (longest, shortest) = (word.chars().count().max(name.chars().count()), word.len().min(name.len()));
    let before = same(&mut word.chars().zip(name.chars()));
    let after = same(&mut word.chars().rev().zip(name.chars().rev())).min(longest - before);
    let is_beginning = before >= 3 && before == shortest || before > 3 && before + 1 >= name.len();
    is_beginning || longest > 3 && (before > 0 || after + 1 == longest) && before + after + 2 >= longest
}

/// The name of the most words, all of which are in an option: `input-shape` for `--overwriteInputShape`. The last one
/// counts: `shape` for `--data-shape`.
fn within<'n>(option: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    // A plural counts as its singular.
    let whole = |name: &str| format!("-{}-", name.trim_start_matches('-')).replace("s-", "-");
    let words = whole(&dashed(option));
    // A word among many others means little: `--dumpLayerInfo`.
    let parts = |name: &str| name.split('-').filter(|part| !part.is_empty()).count();
    let is_half = |name: &str| parts(name) * 2 >= parts(&words) || words.starts_with(&whole(name));
    let is_within = |name: &&str| name.len() > 3 && is_half(name) && words.contains(&whole(name));
    // The action is the first word of a command, and the thing is the last one of an option.
    let place = |name: &str| {
        words.find(&whole(name)).unwrap_or_default() as isize * if option.starts_with('-') { 1 } else { -1 }
    };
    let rank = |name: &&str| (!OBJECTS.contains(name), name.matches('-').count(), place(name));
    let best = names.filter(is_within).max_by_key(rank);
    best.map(str::to_owned)
}

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
    /// Options that were typed and are not in the last line.
    dropped: RefCell<Vec<String>>,
}

impl<'a> Asked<'a> {
    fn new(program: &'a Command, arguments: &'a [OsString]) -> Self {
        let verb = arguments.iter().skip(1).find_map(|word| program.find_subcommand(word));
        let texts: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let is_option = |text: &str| text.starts_with('-') && text[1..].starts_with(|first: char| !first.is_numeric());
        let mut rest = texts.iter().take_while(|text| *text != "--").peekable();
        let (mut words, mut is_moved) = (Vec::<(String, Option<String>)>::new(), false);
        while let Some(text) = rest.next() {
            if !is_option(text) {
                // `--set-shape a=[1] b=[2]`, `--input-shape a:1,3 b:1`.
                let is_pair = |text: &String| text.contains(['=', ':']) && !Path::new(text).exists();
                let last = words.last().filter(|(_, value)| value.as_ref().is_some_and(is_pair) && is_pair(text));
                let last = last.map(|(name, _)| name.clone());
                is_moved |= last.is_some();
                words.push((last.unwrap_or_default(), Some(text.clone())));
                continue;
            }
            let (name, value) =
                text.split_once('=').map_or((&**text, None), |(name, value)| (name, Some(value.into())));
            let takes = |option: &Arg| option.get_action().takes_values();
            let mut known = program.get_subcommands().filter_map(|verb| argument(verb, name)).map(takes).peekable();
            let own = verb.and_then(|verb| argument(verb, name)).map(takes);
            let takes_value = own.unwrap_or_else(|| known.peek().is_none() || known.any(|takes| takes));
            let next = |text: &&String| takes_value && !is_option(text);
            // `--nhwc` and `--nchw-to-nhwc` are values.
            let lower = name.to_lowercase();
            let parts: Vec<_> = lower.split(['-', '_']).collect();
            let layouts: Vec<_> = parts.iter().copied().filter(|part| ["nchw", "nhwc"].contains(part)).collect();
            let layout = Some(layouts.join(":")).filter(|layout| !layout.is_empty());
            let value = layout.or(value).or_else(|| rest.next_if(next).cloned());
            // `--uint8-input`.
            let end = ["--input-type", "--output-type"].into_iter().find(|end| parts.contains(&&end[2..end.len() - 5]));
            let ty =
                parts.iter().find_map(|part| element_type(part).ok()).filter(|ty| ty.bits() > 0 && value.is_none());
            // `-o json`.
            let is_format = is_output(name) && value.as_ref().is_some_and(|value| FORMATS.contains(&&**value));
            is_moved |= is_format || end.is_some() && ty.is_some();
            words.push(match (end, ty) {
                (Some(end), Some(ty)) => (end.to_owned(), Some(ty.to_string())),
                _ if is_format => ("--format".to_owned(), value),
                _ => (name.to_owned(), value),
            });
        }
        // `convert -o model.xml` lacks the output.
        let others = words.iter().filter(|(name, _)| name.is_empty()).count();
        let is_model = |value: &Option<String>| value.as_ref().is_some_and(|file| is_xml(file));
        if let [(name, _)] = &mut words.iter_mut().filter(|(_, value)| is_model(value)).collect::<Vec<_>>()[..]
            && is_output(name)
            && others < 2
        {
            name.clear();
        }
        Self { program, arguments, verb, words, model: OnceCell::new(), is_moved, dropped: RefCell::default() }
    }

    fn options(&self) -> impl Iterator<Item = Typed<'_>> {
        self.words.iter().filter(|(name, _)| !name.is_empty()).map(|(name, value)| (&**name, value.as_deref()))
    }

    fn values(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|(_, value)| value.as_deref())
    }

    fn others(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter(|(name, _)| name.is_empty()).filter_map(|(_, value)| value.as_deref())
    }

    /// The words after the command that are no files.
    fn rest(&self) -> impl Iterator<Item = &str> {
        let is_known = |word: &str| is_program(word) || self.program.find_subcommand(word).is_some();
        let command = self.others().take_while(|word| is_program(word)).count() + 1;
        let rest = self.others().skip(command).filter(|word| !is_xml(word) && !Path::new(word).exists());
        rest.skip_while(move |word| is_known(word) || meanings(word).iter().any(|meant| !meant.starts_with("--")))
    }

    /// The value that was typed for an option, if one was.
    fn value_of(&self, option: &str) -> Option<&str> {
        self.options().find(|(name, _)| *name == option)?.1.filter(|value| !value.is_empty())
    }

    /// The models that were typed, as words or as values of options of other programs.
    fn models(&self) -> Vec<&str> {
        let given = self.words.iter().filter(|(name, _)| !is_output(name) && name != "--differs");
        let files = given.filter_map(|(_, value)| value.as_deref());
        files.filter(|file| is_xml(file) || *file == "-" || file.contains('/') && Path::new(file).exists()).collect()
    }

    fn output(&self) -> Option<&str> {
        let given = || self.options().filter(|(name, _)| is_output(name)).filter_map(|(_, value)| value);
        let is_tensor = |name: &&str| self.model().is_some_and(|model| model.graph().find(name).is_ok());
        given().find(|value| is_xml(value)).or_else(|| given().find(|value| !is_tensor(value)))
    }

    /// The model that was typed, if it can be read: its inputs and outputs complete what was typed.
    fn model(&self) -> Option<&Model> {
        let read = || {
            let file = self.models().into_iter().find(|file| Path::new(file).is_file())?;
            Input::new(file).load().ok()?.model.take()
        };
        self.model.get_or_init(read).as_ref()
    }

    /// The inputs or the outputs of the model with their dimensions.
    fn ends(&self, option: &str) -> Vec<(String, Vec<String>)> {
        let Some(model) = self.model() else { return Vec::new() };
        let layers: Vec<_> =
            if option.contains("output") { model.outputs().collect() } else { model.inputs().collect() };
        let end = |layer: &&Layer| {
            let dims = layer.outputs().first().and_then(|port| port.shape().dims()).unwrap_or_default();
            (model.end_name(layer), dims.iter().map(ToString::to_string).collect())
        };
        layers.iter().map(end).collect()
    }

    /// The input that was typed, or the first one whose dimensions fit.
    fn input(&self, name: &str, fits: impl Fn(&[String]) -> bool) -> Option<(String, Vec<String>)> {
        let (name, inputs) = (name.trim_end_matches([':', '=', '-', '>', ' ']), self.ends(""));
        let known = inputs.into_iter().find(|(own, dims)| own == name || name.is_empty() && fits(dims));
        known.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))
    }

    /// The option of a command that is meant by an option, with a place for its value or the value itself.
    fn own(&self, verb: &Command, name: &str) -> Option<String> {
        let dashed = dashed(name);
        let exact = has(verb, &dashed).then(|| dashed.clone());
        let plural = [format!("{dashed}s"), dashed.trim_end_matches('s').to_owned()];
        let plural = plural.into_iter().find(|other| *other != dashed && has(verb, other));
        // `--shape` without a value is `--shapes`.
        let is_alone = self.options().any(|(given, value)| given == name && value.is_none());
        let switch = plural.clone().filter(|other| is_alone && valued(verb, other) == *other);
        let row = meanings(&dashed).into_iter().find_map(|meant| {
            let own = meant.strip_prefix(verb.get_name()).map_or(meant, str::trim_start);
            (own.starts_with("--") && has(verb, own)).then(|| own.to_owned())
        });
        let is_here = self.verb.is_some_and(|it| it.get_name() == verb.get_name());
        let is_listed = general().any(|(words, _)| has_word(words, &dashed));
        if is_here || !is_listed { exact.or(switch).or(row) } else { switch.or(row).or(exact) }
            .or(plural.filter(|_| !is_listed))
    }

    fn own_or_similar(&self, verb: &Command, name: &str) -> Option<String> {
        self.own(verb, name).or_else(|| similar(verb, name).iter().find_map(|other| self.own(verb, other)))
    }

    /// The words for an option of ours with the value that was typed, if it takes that.
    fn fitted(&self, verb: &Command, meant: &str, given: &str) -> Option<Vec<String>> {
        let (option, lower) = (meant.split(' ').next()?, given.to_lowercase());
        let place = valued(verb, option);
        let given = if place.contains("NAME=") { given.trim_matches(['{', '}', '"']) } else { given };
        // `image[1,3]{f32}`, `image{f32}`.
        if let Some((shape, ty)) =
            given.split_once('{').filter(|_| place.contains("NAME=SHAPE") && !given.contains("},"))
        {
            let of_shape = if shape.contains('[') { self.fitted(verb, meant, shape)? } else { Vec::new() };
            let name = of_shape.get(1).map_or(shape, String::as_str).split('=').next()?;
            let of_type = self.fitted(verb, "--set-type", &format!("{name}={}", ty.trim_end_matches('}')));
            return Some([of_shape, of_type.unwrap_or_default()].concat());
        }
        let is_other = given.contains(['{', '"']) || given.starts_with('@') || is_xml(given);
        let place = place.split_once(' ').map(|(_, place)| place).filter(|_| !is_other)?;
        let mode = lower.replace('-', "_");
        let alias =
            scoped(option, |text| text == mode || is_like(text, &lower)).filter(|words| words.starts_with("--"));
        if let Some(words) = alias.filter(|words| !words.contains('`') && !has_place(words)) {
            return Some(split(words));
        }
        if let Some((a, b)) = given.split_once(',').filter(|_| option == "--device" && has(verb, "--device-b")) {
            return Some(["--device-a", a, "--device-b", b].map(str::to_owned).into());
        }
        if let Some(words) = self.repeated(verb, option, given).filter(|_| place.starts_with("NAME=")) {
            return Some(words);
        }
        if let Some(words) = self.operation(given).filter(|_| option == "--only" && verb.get_name() == "show") {
            return Some(words);
        }
        if let Some((mode, group)) = given.split_once(':').filter(|_| option == "--quantize") {
            return Some(split(&format!("--quantize {} --group-size {group}", mode.to_lowercase())));
        }
        if let Some((value, (name, other))) = given.split_once(',').and_then(|it| Some((it.0, it.1.split_once('=')?)))
            && let Some(own) =
                self.own(verb, &format!("--{}", name.trim_matches(['-', ' ']))).filter(|_| place != "NAME=N")
        {
            return Some([self.fitted(verb, option, value)?, self.fitted(verb, &own, other)?].concat());
        }
        let is_path = given.ends_with('/') || [".bin", ".npz", ".rules", ".txt"].iter().any(|end| lower.ends_with(end));
        let forms = match place {
            "NAME=SHAPE" => vec![self.shape(given)],
            "NAME=LAYOUT" => vec![self.layout(option, given)],
            "NAME=N" => match self.length(option, given)? {
                words if words[0] != option || words.len() > 2 => return Some(words),
                mut words => vec![words.pop()],
            },
            _ if place.starts_with("FILE") || place.starts_with("OUT") => {
                vec![Some(given.to_owned()).filter(|_| is_path && !lower.contains(':'))]
            }
            _ => {
                let (ends, kind) = (self.ends(option), element_type(&lower).ok().map(|ty| ty.to_string()));
                let end = if ends.len() > 1 { Some("*".to_owned()) } else { ends.into_iter().next().map(|it| it.0) };
                let end = end
                    .filter(|_| place == "NAME=TYPE" && kind.is_some() && !given.contains([':', '=', '>']))
                    .map(|end| format!("{end}={given}"));
                let to = Some(format!("f32={lower}"))
                    .filter(|_| place.starts_with("FROM") && kind.as_ref().is_some_and(|kind| kind != "f32"));
                let pair = given.replace("->", "=").replacen(':', "=", 1).replace(' ', "");
                let pair = Some(pair).filter(|_| place.contains('='));
                let percent = given.strip_suffix('%').and_then(|number| Some(number.parse::<f64>().ok()? / 100.0));
                let bare = given.trim_end_matches(|letter: char| letter.is_alphabetic()).to_owned();
                let layer = given.rsplit_once(':').filter(|(_, ty)| element_type(ty).is_ok()).map(|it| it.0.to_owned());
                let glob = given.replace(".*", "*").replace('\\', "").trim_matches(['^', '$']).to_owned();
                let glob = Some(glob).filter(|_| given.contains(".*"));
                let small = ["--align", "--compress", "--for", "--quantize"].contains(&option).then(|| lower.clone());
                let parts = lower.split(['.', '-']).map(|part| Some(part.to_owned()));
                // `v2024.1.0`, `2024`.
                let number = lower.trim_start_matches(|it: char| !it.is_numeric());
                let begins = |one: &str, other: &str| format!("{one}.").starts_with(&format!("{other}."));
                let releases = Release::all().map(|it| it.to_string()).filter(|_| option == "--target");
                let release = releases.filter(|it| begins(it, number) || begins(number, it)).last();
                let sets = library::SETS.iter().map(|set| set.name).filter(|_| option == "--use");
                let set = typelift::near(&mode.replace('_', "-"), sets);
                let percent = percent.map(|number| number.to_string());
                let kind = kind.filter(|_| option == "--hint");
                let forms = [end, pair, to, percent, kind, layer, small, glob, Some(given.to_owned())];
                let others = [Some(lower.clone()), Some(mode), release, set, Some(bare)];
                forms.into_iter().chain(others).chain(parts).collect()
            }
        };
        let form = forms.into_iter().flatten().find(|form| takes(self.program, verb, option, form));
        let is_whole = |words: &Vec<String>| *words != [option, given] && refused(self.program, verb, words).is_none();
        let other = || meanings(given).into_iter().filter(|meant| has(verb, meant)).map(split).find(is_whole);
        form.map(|form| vec![option.to_owned(), form]).or_else(|| self.repeated(verb, option, given)).or_else(other)
    }

    /// A shape as `NAME=[…]`, for `NAME[…]`, `NAME:1x3`, `1,3`, and for one without the first dimensions.
    fn shape(&self, given: &str) -> Option<String> {
        let given = given.rfind([']', ')']).map_or(given, |end| &given[..end]);
        let (name, dims) = match given.find(['[', '(']) {
            Some(at) => (&given[..at], &given[at + 1..]),
            None => given.rsplit_once([':', '=']).unwrap_or(("", given)),
        };
        let is_open =
            |text: &str| text.starts_with('-') || text.chars().all(|letter| letter.is_alphabetic() || letter == '_');
        let is_named = dims.contains([',', ';', ' ']);
        let texts = dims.split(|letter: char| !is_named && letter == 'x' || [',', ';', ' ', '*'].contains(&letter));
        let texts = texts.filter(|text| !text.is_empty());
        let dims: Vec<String> = texts.map(|text| if is_open(text) { "?" } else { text }.to_owned()).collect();
        let fits = |own: &[String]| {
            let is_same = |(a, b): (&String, &String)| a == b || [a, b].iter().any(|dim| dim.parse::<u64>().is_err());
            own.len() >= dims.len() && own.iter().rev().zip(dims.iter().rev()).all(is_same)
        };
        let is_whole = |own: &[String]| own.len() == dims.len();
        let fitting = self.input(name, |own| is_whole(own) && fits(own)).or_else(|| self.input(name, is_whole));
        let is_size = |own: &[String]| dims.len() == 1 && own.len() == 4;
        let (name, own) = fitting.or_else(|| self.input(name, |own| fits(own) || is_size(own)))?;
        // The size of an image is its height and its width.
        let is_fit = fits(&own) || is_size(&own);
        let dims = if dims.len() == 1 && own.len() == 4 { [&dims[..], &dims].concat() } else { dims };
        let is_shape = dims.iter().any(|dim| dim.contains(|letter: char| letter.is_ascii_digit()));
        let more = &own[..own.len().saturating_sub(dims.len())];
        (is_shape && (more.len() < 2 || is_fit)).then(|| format!("{name}=[{}]", [more, &dims].concat().join(",")))
    }

    /// A layout as `NAME=NCHW:NHWC`, for `nhwc`, `NAME(nchw->nhwc)`, and for two options for the source and the target.
    fn layout(&self, option: &str, given: &str) -> Option<String> {
        let side = |word: &str| self.options().find(|(name, _)| name.contains(word)).and_then(|(_, value)| value);
        let text = match (side("source"), side("target")) {
            (Some(from), Some(to)) => format!("{from}:{to}"),
            _ => given.to_owned(),
        };
        let words = || text.split(['(', ')', '[', ']', ':', '=', '-', '>', ',', ' ']).filter(|word| !word.is_empty());
        let is_layout =
            |word: &&str| word.len() > 1 && word.to_uppercase().chars().all(|letter| "NCDHWTL".contains(letter));
        let layouts: Vec<_> = words().filter(is_layout).map(str::to_uppercase).collect();
        let name = words().find(|word| !is_layout(word)).unwrap_or_default();
        let (to, rank) = (layouts.last()?, layouts.last()?.len());
        let ends =
            self.ends(option).into_iter().find(|(own, dims)| own == name || name.is_empty() && dims.len() == rank);
        let (name, dims) = ends.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))?;
        // The layout that the model has is not asked for.
        let is_own = to.get(1..2) == Some("C") && dims.get(1).is_some_and(|dim| ["1", "3", "4"].contains(&&**dim));
        Some(match &layouts[..] {
            [_] if is_own || side("source").is_some() => format!("{name}={to}:{}", exchanged(to)),
            [_] => format!("{name}={}:{to}", exchanged(to)),
            [from, ..] => format!("{name}={from}:{to}"),
            [] => return None,
        })
    }

    /// The length of the batch of the first input, which is open or is a part of its shape.
    fn length(&self, option: &str, given: &str) -> Option<Vec<String>> {
        let pair = |option: &str, value: String| Some(vec![option.to_owned(), value]);
        if given.contains('=') || given.parse::<u64>().is_err() {
            return pair(option, given.replacen(':', "=", 1));
        }
        let Some(shapes) = self.model().map(typelift::shapes) else { return pair(option, format!("batch={given}")) };
        let mut words = Vec::new();
        let is_shaped = |name: &str| {
            self.options().any(|(_, value)| value.is_some_and(|value| value.starts_with(&format!("{name}="))))
        };
        for (name, dims) in self.ends("").into_iter().filter(|(name, dims)| !dims.is_empty() && !is_shaped(name)) {
            // `--at 128` is the length of a text, unless only the batch is open.
            let is_batch = self.options().any(|(name, _)| name == "-b" || name.contains("batch"));
            let last = (1..dims.len()).rev().filter(|_| !is_batch).chain([0]);
            let of_axis = |axis| shapes.symbols.iter().find(|it| it.axis() == format!("{name}[{axis}]"));
            let symbol = last.into_iter().find_map(of_axis);
            words.extend(match symbol {
                Some(symbol) => pair(option, format!("{}={given}", symbol.name))?,
                None if option != "--set-length" || dims[0].parse::<u64>().is_err() => continue,
                None => {
                    pair("--set-shape", format!("{name}=[{}]", [&[given.to_owned()], &dims[1..]].concat().join(",")))?
                }
            });
        }
        Some(words).filter(|words| !words.is_empty())
    }

    /// The options of `show` for the operation or the layer that a word means: `--only Convolution` for `conv`.
    fn operation(&self, word: &str) -> Option<Vec<String>> {
        let (model, lower) = (self.model()?, word.trim_matches('*').to_lowercase());
        let mut names: Vec<_> = model.graph().layers().filter_map(Layer::operation).map(|it| it.name).collect();
        names.sort_unstable();
        names.dedup();
        let meant = ops::meant(&lower).and_then(|meant| Some(meant.split('`').nth(1)?.to_lowercase()));
        let is_same = |name: &&&str| [Some(&lower), meant.as_ref()].contains(&Some(&name.to_lowercase()));
        let found: Vec<_> = match names.iter().find(is_same) {
            Some(name) => vec![*name],
            None if ops::all().any(|it| it.name.to_lowercase() == lower) => vec![word],
            None => names.into_iter().filter(|name| name.to_lowercase().contains(&lower)).take(3).collect(),
        };
        match model.find(word) {
            _ if !found.is_empty() => Some(found.iter().flat_map(|name| ["--only", name].map(str::to_owned)).collect()),
            Ok(_) => Some(vec!["--around".to_owned(), word.to_owned()]),
            Err(_) => None,
        }
    }

    /// Writes a list once for each of its values: `--for cpu --for gpu` for `MULTI:CPU,GPU`.
    fn repeated(&self, verb: &Command, option: &str, list: &str) -> Option<Vec<String>> {
        let list =
            list.split_once(':').filter(|(first, _)| first.chars().all(char::is_uppercase)).map_or(list, |it| it.1);
        // A separator in brackets is part of a shape.
        let parts = |separator: char| {
            let mut depth = 0;
            list.split(move |letter| {
                depth += i32::from("[(".contains(letter)) - i32::from("])".contains(letter));
                letter == separator && depth == 0
            })
        };
        let is_blank = parts(' ').filter(|part| part.contains([':', '=', '['])).count() > 1;
        let mut values = Vec::<String>::new();
        for value in parts(if is_blank { ' ' } else { ',' }).map(str::trim) {
            match values.last_mut().filter(|_| value.parse::<f64>().is_ok()) {
                // `a:1,3,b:1`.
                Some(last) => *last += &format!(",{value}"),
                None => values.push(value.to_owned()),
            }
        }
        let values = Some(values).filter(|values| values.len() > 1)?;
        let words: Option<Vec<_>> = values.iter().map(|value| self.fitted(verb, option, value)).collect();
        let words = words?.concat();
        refused(self.program, verb, &words).is_none().then_some(words)
    }

    /// A command with everything that was typed and has a meaning there, if the parser accepts it.
    fn line(&self, meant: &str) -> Option<String> {
        let typed = self.positionals(meant);
        let missing = |error: Error| error.kind() == ErrorKind::MissingRequiredArgument;
        let is_whole =
            || !fault(self.program, [meant].into_iter().chain(typed.iter().map(String::as_str))).is_some_and(missing);
        let example = scoped("EXAMPLE", |verb| verb == meant).filter(|_| typed.is_empty() || !is_whole());
        let meant = example.unwrap_or(meant);
        let (mut words, mut models, mut output, mut row) = (split(meant), self.models(), self.output(), None);
        words.extend(if example.is_some() { Vec::new() } else { typed });
        let example = words.get(1).filter(|option| option.starts_with("--")).cloned();
        let mut lost = Vec::new();
        if let Some(verb) = self.program.find_subcommand(&words[0]) {
            self.prepare(&mut words);
            // An option may belong to one that follows.
            let mut carry = |option| !self.carry(verb, option, &mut words, example.as_deref());
            let late: Vec<_> = self.options().filter(|option| carry(*option)).collect();
            lost = late.into_iter().filter(|option| carry(*option)).collect();
            // `quantize MODEL.xml int4`.
            let option = example.as_deref().filter(|option| words.len() > 2 && words[1] == **option);
            let pair = self.rest().take(2).collect::<Vec<_>>().join("=");
            let is_pair =
                |pair: &&str| pair.contains('=') && option.is_some_and(|it| valued(verb, it).contains("NAME="));
            let typed = || [&*pair].into_iter().filter(is_pair).chain(self.rest());
            if let Some(new) = option.and_then(|option| typed().find_map(|word| self.fitted(verb, option, word))) {
                words.splice(1..3, new);
            }
            row = words.get(2).cloned();
            self.fill(meant, &mut words);
            let is_changing = ["convert", "rewrite"].contains(&verb.get_name());
            // `onnxsim IN.xml OUT.xml`.
            let is_file = models.get(1).is_some_and(|file| self.verb.is_some() && Path::new(file).exists());
            if is_changing && output.is_none() && models.len() == 2 && !is_file && !meant.contains("OTHER") {
                output = models.pop();
            }
            let reads = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
            let is_model = |word: &String| {
                ["MODEL.xml", "BEFORE.xml", "--list-rules"].contains(&&**word) || models.contains(&&**word)
            };
            let is_given = words.iter().any(is_model);
            if reads.filter(|name| name.ends_with(".xml")).count() > 0 && !is_given {
                let more = ["AFTER.xml"].into_iter().filter(|_| verb.get_name() == "verify" && models.len() > 1);
                words.extend(["MODEL.xml"].into_iter().chain(more).map(str::to_owned));
            }
            let is_done = words.iter().any(|word| DONE.contains(&&**word));
            let writes = (is_changing || is_fix(&words)) && !is_done;
            let takes = argument(verb, "--output").is_some() && (verb.get_name() != "check" || is_fix(&words));
            if !words.contains(&"-o".to_owned()) && (writes || takes && output.is_some()) {
                words.extend(["-o".to_owned(), "OUT.xml".to_owned()]);
            }
            self.add_command(&mut words);
        }
        for (place, given) in [
            ("MODEL.xml", models.first()),
            ("BEFORE.xml", models.first()),
            ("AFTER.xml", models.get(1)),
            ("OUT.xml", output.as_ref()),
        ] {
            if let (Some(word), Some(given)) = (words.iter_mut().find(|word| *word == place), given) {
                *word = (*given).to_owned();
            }
        }
        // A statement that fails on the model is shown with its places.
        if let Some(row) = row.filter(|_| words[1] == "-e" && !self.is_accepted(&words)) {
            words[2] = row;
        }
        let line = self.is_accepted(&words).then(|| format!("typelift {}", shown(&words)))?;
        // An option that led to the command, or whose value is in it, is not lost.
        let is_kept = |&(name, value): &Typed| {
            let is_value = value.is_some_and(|value| value.split([',', ' ']).any(|part| line.contains(part)));
            let is_word = |words| [&*dashed(name), value.unwrap_or_default()].iter().any(|word| has_word(words, word));
            let is_same = |it: &str| it == meant || [it, meant].iter().all(|it| it.contains("before NAME"));
            let mut rows = rows().filter(|(_, row)| row.split('|').any(is_same));
            let is_meant = meanings(name).into_iter().any(is_same) || rows.any(|(words, _)| is_word(words));
            is_value || is_meant || argument(self.program, name).is_some()
        };
        let lost = lost.into_iter().filter(|option| !is_kept(option)).map(|(name, _)| name.to_owned());
        *self.dropped.borrow_mut() = lost.collect();
        Some(line)
    }

    /// The words after a command that was typed, if they are no options.
    fn positionals(&self, verb: &str) -> Vec<String> {
        let Some(verb) = self.verb.filter(|it| it.get_name() == verb) else { return Vec::new() };
        let reads = || verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let models = self.models();
        let is_read =
            |word: &&str| models.contains(word) || reads().any(|name| !name.ends_with(".xml") && name != "COMMAND");
        let all = self.others().filter(|word| *word != verb.get_name()).filter(is_read).map(str::to_owned);
        all.collect()
    }

    /// True if the parsers of commands and statements accept these words, or if a place of one is empty. The statements must
    /// run on the model.
    fn is_accepted(&self, words: &[String]) -> bool {
        let has_place = |word: &String| parts(word).any(|part| has_word(PLACES, part)) || has_place(word);
        if words.iter().any(|word| !is_xml(word) && has_place(word)) {
            return true;
        }
        let statements = words
            .windows(2)
            .filter(|pair| ["-e", "--statement"].contains(&&*pair[0]))
            .map(|pair| format!("{}\n", pair[1]));
        let runs = |script: Script| self.model().is_none_or(|model| script.run(model.clone()).is_ok());
        let is_overview = words.first().is_some_and(|word| is_xml(word));
        statements.collect::<String>().parse().is_ok_and(runs)
            && (is_overview
                || fault(self.program, words.iter().map(String::as_str)).is_none_or(|error| error.exit_code() == 0))
    }

    /// Adds the command that `reduce` runs, which is typed after the model, or as a value of an option.
    fn add_command(&self, words: &mut Vec<String>) {
        let of_option = || self.options().find(|(name, _)| scoped("reduce", |word| word == *name) == Some("reduce"));
        let typed = of_option().and_then(|(_, value)| value);
        let command: Vec<_> = match typed {
            Some(command) => command.split(' ').collect(),
            None => self.others().skip_while(|word| !is_xml(word)).filter(|word| !is_xml(word)).collect(),
        };
        if words[0] == "reduce" && !command.is_empty() {
            if let Some(at) = words.iter().position(|word| word == "--finding") {
                words.drain(at..at + 2);
            }
            words.push("--".to_owned());
            words.extend(command.iter().map(|word| (*word).to_owned()));
            words.extend((!command.contains(&"{}")).then(|| "{}".to_owned()));
        }
    }

    /// Adds an option that was typed to a command, or replaces its value. Returns false if it has no meaning there.
    fn carry(&self, verb: &Command, option: Typed, words: &mut Vec<String>, example: Option<&str>) -> bool {
        let (name, value) = option;
        let is_set = library::get(name.trim_start_matches('-')).is_some();
        if is_off(value) || is_output(name) || is_model_option(name) || is_set {
            return true;
        }
        let own = self.own_or_similar(verb, name);
        // `compress --to bf16`: the value of a row is an example.
        let foreign = example.filter(|_| !has(verb, &dashed(name))).zip(value);
        let of_example = foreign.and_then(|(option, value)| self.fitted(verb, option, value));
        let typed = of_example.or_else(|| self.with_value(verb, &own?, value));
        let Some(new) = typed.or_else(|| self.as_statement(verb, name, value)) else { return false };
        let is_list = new.len() > 2 && new.iter().step_by(2).all(|option| option.starts_with("--"));
        let mut parts = new.chunks(if is_list { 2 } else { new.len() }).enumerate();
        parts.all(|(at, new)| self.add(verb, new.to_vec(), words, example.filter(|_| at == 0)))
    }

    /// Adds an option to a command, or replaces its value. Returns false if the command refuses it with the others.
    fn add(&self, verb: &Command, new: Vec<String>, words: &mut Vec<String>, example: Option<&str>) -> bool {
        let known = words.iter().position(|word| *word == new[0]).filter(|&at| at + 1 < words.len());
        let known = known.filter(|_| new.len() > 1);
        let range = || words.iter().enumerate().find_map(|(at, word)| Some((at, ranged(word, new.get(1)?)?)));
        match (range(), known) {
            _ if words.windows(new.len()).any(|known| known == new) => {}
            (Some((at, range)), _) => words[at] = range,
            // The value of a row is an example.
            (_, Some(at)) if at == 1 && example == Some(&words[1]) || !is_repeatable(verb, &new[0]) => {
                words.splice(at..at + 2, new);
            }
            _ => {
                let bad = [ErrorKind::ArgumentConflict, ErrorKind::UnknownArgument, ErrorKind::MissingRequiredArgument];
                let fault = |words: &[String]| {
                    let all: Vec<_> = words.iter().filter(|word| !is_xml(word)).chain(&new).cloned().collect();
                    refused(self.program, verb, &all).filter(|error| bad.contains(&error.kind()))
                };
                let is_example = example == words.get(1).map(String::as_str) && words.len() > 2;
                if fault(&words[1..]).is_none() {
                    words.extend(new);
                } else if is_example && fault(&words[3..]).is_none() {
                    words.splice(1..3, new);
                } else {
                    return false;
                }
            }
        }
        true
    }

    /// The statement that does what an option of `convert` does.
    fn as_statement(&self, verb: &Command, name: &str, value: Option<&str>) -> Option<Vec<String>> {
        let convert = self.program.find_subcommand("convert").filter(|_| verb.get_name() == "rewrite")?;
        let words = self.with_value(convert, &self.own_or_similar(convert, name)?, value)?;
        let (end, shape) = words.get(1).filter(|_| words[0] == "--set-shape")?.rsplit_once('=')?;
        Some(vec!["-e".to_owned(), format!("input {} : {}", quoted(end), self.with_type(end, shape)?)])
    }

    /// A shape of an input after its type, as statements take it.
    fn with_type(&self, input: &str, shape: &str) -> Option<String> {
        Some(format!("{}{shape}", self.type_of(input)?))
    }

    /// The words for an option of a command: with the value that was typed, or the one that it stands for.
    fn with_value(&self, verb: &Command, own: &str, value: Option<&str>) -> Option<Vec<String>> {
        let whole = split(own);
        let is_whole = valued(verb, &whole[0]) == whole[0] || whole.get(1).is_some_and(|value| !has_place(value));
        value.and_then(|value| self.fitted(verb, own, value)).or(Some(whole).filter(|_| is_whole))
    }

    /// A statement for all work before an input: channels are reversed, then the mean is subtracted.
    fn prepare(&self, words: &mut [String]) {
        const STEPS: [&str; 3] = ["Gather", "Subtract", "Divide"];
        let Some(statement) = words.iter_mut().find(|word| word.starts_with("before NAME : ")) else { return };
        let steps = self.options().filter_map(|(name, value)| {
            let meant = meanings(name).into_iter().find(|meant| meant.contains("'before NAME : "))?;
            Some((split(meant).pop()?, value.unwrap_or_default()))
        });
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|(step, _)| STEPS.iter().position(|name| step.contains(name)));
        if steps.is_empty() {
            steps.push((statement.clone(), ""));
        }
        let mut text = "_".to_owned();
        for (step, value) in steps {
            let (given, numbers) = value.split_once(['[', '(']).unwrap_or(("", value));
            let numbers: Vec<_> = numbers.trim_end_matches([']', ')']).split(',').filter(|it| !it.is_empty()).collect();
            let size = numbers.len().max(3).to_string();
            let input = self.input(given, |dims| dims.contains(&size));
            let (name, dims) =
                input.unwrap_or_else(|| ("NAME".to_owned(), vec!["1".into(), size.clone(), "1".into(), "1".into()]));
            let axis = dims.iter().position(|dim| *dim == size).unwrap_or(1);
            let ones: Vec<_> = (0..dims.len()).map(|at| if at == axis { &*size } else { "1" }).collect();
            let number = match &numbers[..] {
                [] => format!("reshape([R, G, B], [{}])", ones.join(", ")),
                [number] => (*number).to_owned(),
                _ => format!("reshape([{}], [{}])", numbers.join(","), ones.join(", ")),
            };
            let step =
                step.replace("before NAME : ", "").replace("VALUE", &number).replace(", 1)", &format!(", {axis})"));
            text = step.replace('_', &text);
            *statement = format!("before {} : ", quoted(&name));
        }
        statement.push_str(&text);
    }

    /// The command with the statement that may be meant by one that cannot be read.
    fn restated(&self) -> Option<String> {
        let mut statements = self.options().filter(|(name, _)| ["-e", "--statement"].contains(name));
        let runs = |script: Script| self.model().is_none_or(|model| script.run(model.clone()).is_ok());
        let wrong = statements.find_map(|(_, value)| value.filter(|text| !text.parse().is_ok_and(runs)));
        let bare = self.rest().next();
        let wrong = wrong.or(bare)?;
        let texts: Vec<_> = self.arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let is_done = texts.iter().any(|word| DONE.contains(&&**word)) || self.output().is_some();
        let output = ["-o", "OUT.xml"].into_iter().filter(|_| !is_done).map(str::to_owned);
        let whole = |meant: String| -> Vec<_> {
            let is_verb = meant.starts_with("convert --");
            let others = texts.iter().skip(1).filter(|word| *word != wrong && !word.starts_with("-e"));
            let words: Vec<_> = match is_verb {
                true => split(&meant).into_iter().chain(others.cloned()).collect(),
                false => texts
                    .iter()
                    .flat_map(|word| match word == wrong {
                        true => ["-e".to_owned(), meant.clone()][usize::from(bare != Some(wrong))..].to_vec(),
                        false => vec![word.clone()],
                    })
                    .collect(),
            };
            words.into_iter().chain(output.clone()).collect()
        };
        let is_read = |text: &String| {
            text.starts_with("convert --") || (text != wrong || bare == Some(wrong)) && text.parse::<Script>().is_ok()
        };
        let meant = self.statements(wrong).into_iter().filter(is_read);
        let line = meant.map(whole).find(|line| self.is_accepted(line))?;
        Some(format!("typelift {}", shown(&line)))
    }

    /// Statements that may be meant by one of other programs, the likeliest first.
    fn statements(&self, wrong: &str) -> Vec<String> {
        const FILLERS: [&str; 11] = ["to", "as", "for", "with", "by", "into", "layer", "node", "op", "->", "=>"];
        let text = wrong.trim().trim_end_matches(';');
        if text.contains(';') {
            return Vec::new();
        }
        let signs = ["==>", "-->", "->", "=>", "→", "=", " to "];
        let rules = signs.iter().filter_map(|sign| text.split_once(sign)).filter(|(from, _)| from.contains('('));
        let mut found = vec![text.to_owned()];
        found.extend(rules.map(|(from, to)| format!("{} => {}", from.trim(), to.trim())));
        // `del(.layers.head)` of jq, `graph.rename("a", "b")`.
        let text = text.trim_start_matches(".layers").trim_start_matches('.');
        let call = text.strip_suffix(')').and_then(|text| text.split_once('('));
        let call = call.filter(|(verb, _)| verb.starts_with(char::is_lowercase)).map(|(verb, rest)| {
            let rest = rest.trim_start_matches(".layers").replace(['\'', '[', ']'], " ");
            format!("{} {}", verb.rsplit('.').next().unwrap_or(verb), rest.trim_start_matches('.'))
        });
        let plain =
            signs.iter().take(5).fold(call.unwrap_or_else(|| text.to_owned()), |it, sign| it.replace(sign, " "));
        let words = plain.split([' ', '=', ',', ':', '"']).filter(|word| !word.is_empty() && !FILLERS.contains(word));
        let mut words: Vec<_> = match sed(text) {
            Some((old, new, true)) => vec!["s", old, new, "g"],
            Some((old, new, false)) => vec!["s", old, new],
            None => words.collect(),
        };
        // `head.name = x`.
        let is_set = words.first() == Some(&"set");
        let attribute = words.get(usize::from(is_set)).and_then(|name| name.rsplit_once('.'));
        if let Some((layer, name)) = attribute.filter(|it| self.operation_of(it.0).is_some()) {
            words.splice(..=usize::from(is_set), [name, layer]);
        }
        let value = text.split_once(['=', ':']).map(|(_, value)| value.trim());
        let value = value.or_else(|| text.rsplit(' ').next()).unwrap_or_default();
        let patterns = rows().flat_map(|(row, meant)| {
            let patterns = row.strip_prefix("-e: ").into_iter().flat_map(|row| row.split(", "));
            patterns.map(move |pattern| (pattern.split(' ').collect::<Vec<_>>(), meant))
        });
        for (pattern, meant) in patterns {
            let is_same = |(part, word): (&&str, &&str)| match *part {
                "A" | "B" | "…" => true,
                part => part.split('/').any(|it| it == dashed(word) || it == "T" && element_type(word).is_ok()),
            };
            let is_long = pattern.len() == words.len() || pattern.last() == Some(&"…") && words.len() >= pattern.len();
            let is_rule = words.iter().any(|word| word.contains('(')) && !meant.contains("$A(_)");
            if is_long && !is_rule && pattern.iter().zip(&words).all(is_same) {
                let of = |place: &str| pattern.iter().rposition(|part| *part == place).map_or("", |at| words[at]);
                let before = self.before(of("A")).unwrap_or_default();
                let (a, b) = (of("A"), of("B"));
                let start = if a.contains('(') { meant.replace("$A(_)", a) } else { meant.to_owned() };
                let inputs = self.operation_of(a).and_then(|it| Some(it.split_at(it.find('(')?).1.to_owned()));
                let start = inputs.map_or(start.clone(), |inputs| start.replace("(x)", &inputs));
                let whole = Some(value).filter(|value| meant.starts_with("input") && value.starts_with('['));
                let whole = whole.and_then(|shape| self.with_type(a, shape));
                let value = whole.as_deref().unwrap_or(value);
                let places = [
                    ("$BEFORE", &*quoted(&before)),
                    ("$VALUE", value),
                    ("$T", &element_type(of("T")).map(|ty| ty.to_string()).unwrap_or_default()),
                    ("$F", &self.type_of(a).unwrap_or_default()),
                    ("$A", &quoted(a)),
                    ("$B", &quoted(b)),
                ];
                found.push(places.iter().fold(start, |text, (place, name)| text.replace(place, name)));
            }
        }
        // `set stem.strides = [1,1]`.
        if let Some((op, (name, attribute))) = attribute.and_then(|it| Some((self.operation_of(it.0)?, it))) {
            let value =
                if value.contains(',') && !value.contains('[') { format!("[{value}]") } else { value.to_owned() };
            found.push(format!("{op} => {op} {{{attribute}={value}}} if name(root) like \"{name}\""));
        }
        found
    }

    /// A layer, or the first one of an operation, as a pattern: `Convolution(a, b)`.
    fn operation_of(&self, layer: &str) -> Option<String> {
        let (graph, name) = (self.model()?.graph(), layer);
        let named = |layer: &&Layer| layer.operation().is_some_and(|it| it.name.eq_ignore_ascii_case(name));
        let layer = graph.find(layer).ok().and_then(|id| graph.layer(id)).or_else(|| graph.layers().find(named))?;
        let names = ["a", "b", "c", "d", "e", "f"].get(..layer.inputs().len())?;
        Some(format!("{}({})", layer.operation()?.name, names.join(", ")))
    }

    fn type_of(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        Some(graph.layer(graph.find(layer).ok()?)?.outputs().first()?.element_type().to_string())
    }

    /// Replaces places in a command by the words that were typed, and by the names of the model.
    fn fill(&self, meant: &str, words: &mut [String]) {
        let is_unknown =
            |name: &str| meanings(name).is_empty() && !self.program.get_subcommands().any(|verb| has(verb, name));
        let values = self.options().filter(|(name, _)| meanings(name).contains(&meant) || is_unknown(name));
        let values = values.filter_map(|(_, value)| value).flat_map(|value| value.split(['=', '>', ',']));
        let mut typed = self
            .rest()
            .flat_map(|word| word.split(['=', '>']))
            .chain(values.map(|value| value.trim_end_matches(['-', ' '])))
            .map(str::to_owned);
        let end = |names: [&str; 5]| {
            let is_tensor = |name: &str| self.model().is_some_and(|model| model.graph().find(name).is_ok());
            let name = |end: &str| match end.split([':', '[']).next() {
                Some(name) if !is_tensor(end) => quoted(name),
                _ => quoted(end),
            };
            let names = names.iter().find_map(|name| self.value_of(name))?;
            let ends = if names.contains('[') { vec![names] } else { names.split(',').collect() };
            Some(ends.into_iter().map(name).collect::<Vec<_>>().join(", "))
        };
        let first = end(["--inputs", "--input", "--input-names", "--from", "--start"]);
        let last = end(["--outputs", "--output", "--output-names", "--until", "--to"]);
        let own = |option: &str| self.ends(option).into_iter().next().map(|(name, _)| name);
        let named = self.options().map(|(name, _)| name).find(|name| name.ends_with("names"));
        let (mut layer, is_why) = (None, words[0] == "why");
        for word in words.iter_mut().skip(1).filter(|word| !is_xml(word)) {
            for place in PLACES.split(' ') {
                if !parts(word).any(|part| part == place) {
                    continue;
                }
                let given = match place {
                    "FROM" if first.is_none() && last.is_some() => {
                        *word = word.replace("[FROM] .. [UNTIL]", "UNTIL");
                        continue;
                    }
                    "FROM" => first.clone().or_else(|| typed.next()),
                    "UNTIL" => {
                        last.clone().or_else(|| typed.next()).or_else(|| own("output").filter(|_| first.is_some()))
                    }
                    "LAYOUT" => self.layout("", self.others().find(|word| word.len() == 4).unwrap_or("NHWC")),
                    "OTHER" => self.models().get(1).map(|file| file.trim_end_matches(".xml").to_owned()),
                    "SHAPE" => typed.next().map(|dims| format!("[{}]", dims.trim_matches(['[', ']']))),
                    "LAYER" if is_why => typed.next().or_else(|| self.suspect()),
                    "OLD" if named.is_some() => own(named.unwrap_or_default()),
                    "NAME" => typed.next().or_else(|| own(word)),
                    "TENSOR" => first.clone().or_else(|| typed.next()).or_else(|| self.before(layer.as_deref()?)),
                    _ => typed.next(),
                };
                layer = given.clone().filter(|_| place == "LAYER").or(layer);
                if let Some(name) = given {
                    let place = if place == "LAYOUT" { "NAME=LAYOUT" } else { place };
                    *word = word.replacen(
                        place,
                        &if word.contains(' ') && !name.contains(", ") { quoted(&name) } else { name },
                        1,
                    );
                }
            }
        }
    }

    /// The layer of the first error, or the first output.
    fn suspect(&self) -> Option<String> {
        let found = typelift::infer(&mut self.model()?.clone());
        let layer = found.into_iter().find(Diagnostic::is_error).and_then(|error| Some(error.layer?.name));
        layer.map(|name| name.to_string()).or_else(|| Some(self.ends("output").into_iter().next()?.0))
    }

    /// The name of what a layer computes from: of a tensor that can replace it, if there is one.
    fn before(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        let own = graph.find(layer).ok()?;
        let port = |id: LayerId| graph.layer(id)?.outputs().first().map(|port| port.tensor_type());
        let before: Vec<_> = graph.producers(own).into_iter().flatten().map(|output| output.layer).collect();
        let same = before.iter().copied().find(|id| port(*id) == port(own)).or(before.first().copied())?;
        Some(graph.layer(same)?.name().to_owned())
    }

    /// Formats a row of the table: a command that does the same, or advice.
    fn said(&self, meant: &str) -> Option<String> {
        let first = meant.split(' ').next().unwrap_or_default();
        // The first command that has an option.
        let mut verbs = self.program.get_subcommands().filter(|verb| !verb.is_hide_set());
        if let Some(verb) = verbs.find(|verb| first.starts_with("--") && has(verb, first)) {
            return self.said(&format!("{} {}", verb.get_name(), valued(verb, meant)));
        }
        let is_command = ["MODEL.xml", "--version"].contains(&first) || self.program.find_subcommand(first).is_some();
        match meant.split_once(" | ") {
            _ if !is_command => Some(
                self.models().first().map_or(meant.to_owned(), |model| meant.replace("MODEL.xml", &shell_word(model))),
            ),
            Some((meant, next)) => {
                // The expression that was typed for jq.
                let typed = self.values().find(|word| is_path(word)).map_or(".".into(), shell_word);
                Some(format!("`{} | {}` does that", self.line(meant)?, next.replace("jq .", &format!("jq {typed}"))))
            }
            None => Some(format!("`{}` does that", self.line(meant)?)),
        }
    }

    /// Advice for the code of an error, which `--allow` refuses.
    fn of_error(&self, option: &str, code: &str) -> Option<String> {
        let is_refused = self.verb.is_some_and(|verb| option == "--allow" && !takes(self.program, verb, option, code));
        let is_code = is_refused && self.is_accepted(&["explain".to_owned(), code.to_owned()]);
        is_code.then(|| format!("an error cannot be left out: `typelift explain {code}` says how to fix it"))
    }

    /// The meaning of an option of this name here, or in another command.
    fn meaning(&self, verb: &Command, given: &str, name: &str) -> Option<String> {
        if let Some(meant) = scoped(verb.get_name(), |word| word == name) {
            return self.said(meant);
        }
        let is_report = ["--log", "--report"].contains(&name) || is_output(name);
        if is_report && !has(verb, "--output") && verb.get_name() != "explain" {
            let line = self.line(verb.get_name()).unwrap_or_default();
            return Some(format!("the answer goes to standard output: write `{line} > FILE`"));
        }
        let (meanings, long) = (meanings(name), name.trim_start_matches('-'));
        let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let is_positional = values.filter(|value| value.split('_').any(|word| word == long.to_uppercase())).count() > 0;
        let is_here = argument(verb, given).is_some() || is_model_option(name) || is_positional;
        if let Some(meant) = self.own(verb, name).or_else(|| is_here.then(|| name.to_owned())) {
            let option = meant.split(' ').next().unwrap_or_default();
            let advice = self.value_of(given).and_then(|value| self.of_error(option, value));
            let (line, place) = (self.line(verb.get_name()), valued(verb, &meant));
            let is_kept = is_here || !self.dropped.borrow().iter().any(|name| name == given);
            let written = || self.with_value(verb, &meant, self.value_of(given)).map(|words| shown(&words));
            return advice.or_else(|| match line {
                _ if option == "--in-place" && self.output().is_some() => {
                    Some(format!("leave `{given}` out: -o replaces a file that is there"))
                }
                Some(line) if is_kept => Some(format!("write `{line}`")),
                Some(line) if place == option => {
                    let error = refused(self.program, verb, &[option.to_owned()]);
                    let owner = error.and_then(|error| Some(plain(missing(&error)?))).unwrap_or_default();
                    Some(format!("leave `{given}` out, because `{option}` belongs to `{owner}`: `{line}`"))
                }
                _ => Some(format!("write `{}`", written().unwrap_or(place))),
            });
        }
        if let Some(tip) = meanings.iter().filter(|meant| !meant.starts_with("--")).find_map(|meant| self.said(meant)) {
            return Some(tip);
        }
        let others = || self.program.get_subcommands().filter(|other| !other.is_hide_set());
        // The same letter means other things elsewhere.
        let is_long = name.starts_with("--");
        let having = others().filter(|other| is_long && given.starts_with("--") && has(other, name));
        let having: Vec<_> = having.map(Command::get_name).collect();
        if let Some(other) = having.first() {
            let is_whole = self.value_of(given).is_some() || valued(self.program.find_subcommand(other)?, name) == name;
            let line = self.line(other).filter(|_| is_whole).map(|line| format!(": `{line}`"));
            return Some(format!("`{name}` is an option of {}{}", having.join(", "), line.unwrap_or_default()));
        }
        if let Some(set) = library::get(long) {
            return self.said(&format!("rewrite --use {}", set.name));
        }
        let elsewhere = meanings.into_iter().find_map(|meant| Some((others().find(|other| has(other, meant))?, meant)));
        let (other, meant) = elsewhere.filter(|_| is_long)?;
        let option = valued(other, meant);
        let is_alone = refused(self.program, other, &split(&option)).is_none_or(|error| missing(&error).is_none());
        self.said(&format!("{} {option}", if is_alone { other.get_name() } else { COMPRESS }))
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
        options.map(|(name, _)| name).find_map(|name| {
            let mut statements = meanings(name).into_iter().filter(|meant| meant.starts_with("rewrite "));
            let statement = statements.clone().find(|meant| self.line(meant).is_some());
            let statement = statement.or_else(|| statements.next().and(meanings(name).pop()));
            self.own(convert, name).filter(|own| !own.starts_with("--for")).map(|_| "convert").or(statement)
        })
    }
}

/// The rows that count for all commands.
fn general() -> impl Iterator<Item = (&'static str, &'static str)> {
    rows().filter(|(words, _)| !words.contains(": "))
}

/// Meanings of a word of other programs; a word that begins with a dash is an option.
fn meanings(word: &str) -> Vec<&'static str> {
    let whole = dashed(word);
    let long = whole.trim_start_matches("--");
    let exact = general().filter(|(words, _)| has_word(words, &whole));
    let other = general().filter(|(words, _)| whole != long && has_word(words, long));
    let rows = exact.chain(other).map(|(_, meanings)| meanings);
    rows.flat_map(|row| row.split(if row.contains('`') || row.contains(" | ") { '\0' } else { '|' })).collect()
}

/// The meaning of an option of a command, or of a value of an option.
fn scoped(scope: &str, is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
    let words = |words: &'static str| words.strip_prefix(scope)?.strip_prefix(": ");
    let mut rows = rows().filter_map(|(row, meant)| Some((words(row)?, meant)));
    rows.find(|(words, _)| words.split(' ').any(&is_meant)).map(|(_, meant)| meant)
}

/// True if a text begins like a pattern, in which `*` stands for any text.
fn is_like(pattern: &str, text: &str) -> bool {
    let found = pattern.split('*').try_fold((text, true), |(rest, is_first), part| {
        let at = rest.find(part).filter(|at| *at == 0 || !is_first)?;
        Some((&rest[at + part.len()..], false))
    });
    found.is_some()
}

fn is_program(word: &str) -> bool {
    scoped("PROGRAM", |known| known == word).is_some()
}

/// The words of other programs without dashes.
fn known_words<'n>() -> impl Iterator<Item = &'n str> {
    general().flat_map(|(words, _)| words.split(' ').map(|word| word.trim_start_matches('-')))
}

/// Options with names that are similar to one: of the command, and of other programs.
fn similar(verb: &Command, name: &str) -> Vec<String> {
    let dashed = dashed(name);
    let own: Vec<&str> = verb.get_arguments().filter_map(Arg::get_long).collect();
    let names: Vec<&str> = own.iter().copied().chain(known_words()).collect();
    let long = dashed.trim_start_matches('-');
    let is_near = |near: &String| long.len() > 1 && is_slip(long, near);
    let near_own = typelift::near(long, own.iter().copied()).filter(is_near);
    let near = typelift::near(long, known_words()).filter(is_near);
    let is_slip = |own: &String| own.len().abs_diff(long.len()) < 2;
    let slip = near_own.clone().filter(is_slip);
    let all = slip.into_iter().chain(within(name, names.iter().copied())).chain(near_own).chain(near);
    all.map(|name| format!("--{name}")).collect()
}

/// A word in small letters with dashes between its parts: `--save-engine` for `--saveEngine` and `--shape` for `-shape`.
fn dashed(name: &str) -> String {
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

fn has_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

fn is_model_option(name: &str) -> bool {
    meanings(name).first() == Some(&"IN.xml")
}

fn is_output(name: &str) -> bool {
    ["-o", "--output"].contains(&&*dashed(name)) || meanings(name).first() == Some(&"--output")
}

fn is_fix(words: &[String]) -> bool {
    words.iter().any(|word| word == "--fix")
}

fn is_repeatable(verb: &Command, option: &str) -> bool {
    argument(verb, option).is_some_and(|option| matches!(option.get_action(), clap::ArgAction::Append))
}

/// A switch of other programs may have a value that turns it off: `--fp16=False`.
fn is_off(value: Option<&str>) -> bool {
    value.is_some_and(|value| ["false", "no", "off"].contains(&&*value.to_lowercase()))
}

/// `NAME=[1..8,3]` for two shapes of one input, such as the smallest and the largest.
fn ranged(one: &str, other: &str) -> Option<String> {
    let (name, dims) = one.strip_suffix(']')?.split_once("=[")?;
    let others = other.strip_suffix(']')?.strip_prefix(name)?.strip_prefix("=[")?;
    let dims = dims.split(',').zip(others.split(',')).map(|(one, other)| match one.split("..").next() {
        _ if one == other => one.to_owned(),
        least => format!("{}..{other}", least.unwrap_or_default()),
    });
    Some(format!("{name}=[{}]", dims.collect::<Vec<_>>().join(",")))
}

/// The other of the layouts with channels first and last.
fn exchanged(layout: &str) -> String {
    let (first, rest) = layout.split_at(layout.len().min(1));
    let last = rest.strip_suffix('C').map(|rest| format!("{first}C{rest}"));
    rest.strip_prefix('C').map(|rest| format!("{first}{rest}C")).or(last).unwrap_or_else(|| layout.to_owned())
}

/// Splits a row of a table at blanks outside of quotes.
fn split(line: &str) -> Vec<String> {
    // Windows quotes with `"`.
    let quote = line.chars().find(|letter| ['\'', '"'].contains(letter)).unwrap_or('\'');
    let parts = line.split(quote).enumerate();
    let words = parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split(' ').collect() });
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn parts(word: &str) -> impl Iterator<Item = &str> {
    word.split(|letter: char| !letter.is_ascii_alphanumeric())
}

/// True if a word is a place for what was not typed, such as `NAME=SHAPE`.
fn has_place(word: &str) -> bool {
    let mut parts = parts(word);
    let is_place = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_uppercase());
    !word.contains(['[', ':', ' ']) && parts.any(is_place)
}

/// Words as they are typed.
fn shown(words: &[String]) -> String {
    let is_raw = |word: &str| word.starts_with('-') || has_place(word);
    let word = |word: &String| if is_raw(word) { word.clone() } else { shell_word(word).into_owned() };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A name as a statement takes it.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_alphanumeric() || "_./:*?".contains(letter));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// The option of a command that has this name.
fn argument<'c>(verb: &'c Command, option: &str) -> Option<&'c Arg> {
    let is_short = |letter: char| option.strip_prefix('-').is_some_and(|rest| rest.chars().eq([letter]));
    let is_long = |long: &str| option.strip_prefix("--") == Some(long);
    verb.get_arguments().find(|arg| arg.get_short().is_some_and(is_short) || arg.get_long().is_some_and(is_long))
}

fn has(verb: &Command, option: &str) -> bool {
    argument(verb, option.split(' ').next().unwrap_or_default()).is_some()
}

/// Adds the word for its value to an option that stands alone.
fn valued(verb: &Command, option: &str) -> String {
    let value = argument(verb, option).filter(|arg| arg.get_action().takes_values());
    let value = value.and_then(|arg| arg.get_value_names()?.first()).map(|value| plain(value));
    value.map_or_else(|| option.to_owned(), |value| format!("{option} {value}"))
}

/// Why these options of a command are no complete command line, if they are not. The models and the output are added.
fn refused(program: &Command, verb: &Command, options: &[String]) -> Option<Error> {
    let models: &[&str] = match verb.get_name() {
        "diff" | "verify" => &["a.xml", "b.xml"],
        "why" => &["a.xml", "x"],
        _ => &["a.xml"],
    };
    let is_written = options.iter().all(|option| !DONE.contains(&&**option));
    let is_written = is_written && ["convert", "rewrite"].contains(&verb.get_name());
    let output: &[&str] = if is_written { &["-o", "o.xml"] } else { &[] };
    let words = [&[verb.get_name()], models, output].concat().into_iter();
    fault(program, words.chain(options.iter().map(String::as_str)))
}

fn takes(program: &Command, verb: &Command, option: &str, value: &str) -> bool {
    let bad = [ErrorKind::InvalidValue, ErrorKind::ValueValidation, ErrorKind::UnknownArgument];
    let fault = fault(program, [verb.get_name(), option, value]);
    valued(verb, option) != option && fault.is_none_or(|error| !bad.contains(&error.kind()))
}
