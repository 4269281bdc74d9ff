//! Habits of shells, text programs and git in a command line.

use std::ffi::OsString;
use std::path::Path;

use typelift::findings::shell_word;

use super::line::{shown, split};
use super::{STATEMENT, tried};
use crate::input::is_xml;
use crate::whole_command;

const TYPOGRAPHIC: [char; 6] = ['—', '–', '“', '”', '‘', '’'];

/// Advice about a habit of git or of the shell in the words of a command that failed.
pub(crate) fn of_habit(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let is_git = words.first() == Some(&"git");
    let words = &words[usize::from(is_git)..];
    let meant = respelt(&joined(&plainly(words)));
    if meant != words
        && let Some((meant, None)) = tried(meant.clone(), arguments)
    {
        return Some(format!("write `typelift {}`", shown(&meant)));
    }
    let words: Vec<&str> = meant.iter().map(String::as_str).collect();
    let (verb, rest) = words.split_first()?;
    for pair in words.windows(2).skip(1) {
        let (option, value) = (pair[0], pair[1]);
        let is_statement = STATEMENT.contains(&option);
        // `Convert(x: $t) {destination_type=$t}` between `"`.
        if is_statement && [": )", ": ,", "={", "=}", "=,"].iter().any(|gap| value.contains(gap)) {
            return Some("the shell takes `$NAME` for a variable: write the statement between `'`".to_owned());
        }
        if (is_statement || option == "--types") && (value.ends_with('-') || value.ends_with(" =")) {
            let value = value.trim_end_matches(['-', '=', ' ']);
            let whole = if is_statement { format!("'{value} => …'") } else { format!("{value}=TO") };
            return Some(format!("the shell takes `>` for a file to write: quote it, as `{option} {whole}`"));
        }
    }
    let is_path = |word: &str| {
        word.split_once(':').is_some_and(|(name, path)| {
            name.len() > 1 && !name.contains(['=', '/']) && !path.starts_with("//") && path.ends_with(".xml")
        })
    };
    let has_sign =
        |word: &str| word.contains("..") || word.contains("@{") || word.chars().skip(1).any(|c| "~^".contains(c));
    let is_revision = |word: &str| {
        !Path::new(word).exists()
            && !word.starts_with(['-', '.'])
            && (word.starts_with("HEAD") || is_path(word) || has_sign(word))
    };
    let written = |word: &&str| if word.starts_with('-') { (*word).to_owned() } else { shell_word(word).into_owned() };
    if let Some(word) = rest.iter().find(|word| is_revision(word) && is_path(word) && !word.contains("..")) {
        let others: Vec<_> = words.iter().map(|it| if it == word { "-".to_owned() } else { written(it) }).collect();
        return Some(format!(
            "`git show {} | typelift {}` reads the file of a commit",
            written(word),
            others.join(" ")
        ));
    }
    let is_which = |word: &str| ["--cached", "--staged"].contains(&word) || is_revision(word);
    let which: Vec<_> = rest.iter().filter(|word| is_which(word)).map(written).collect();
    let models: Vec<_> = rest.iter().filter(|word| is_xml(word) && !is_which(word)).map(written).collect();
    let is_compared = ["diff", "difftool"].contains(verb) && (!which.is_empty() || is_git && models.len() < 2);
    let models = if models.is_empty() { vec!["MODEL.xml".to_owned()] } else { models };
    let words = [which, vec!["--".to_owned()], models].concat().join(" ");
    is_compared.then(|| format!("`git difftool --no-prompt --extcmd 'typelift diff' {words}` compares with a commit"))
}

/// Words without what a shell or a text program has changed.
pub(super) fn meant(arguments: &[OsString]) -> Option<Vec<String>> {
    let words: Vec<&str> = arguments.iter().skip(1).filter_map(|word| word.to_str()).collect();
    (!words.is_empty()).then(|| respelt(&joined(&plainly(&words))))
}

/// Words with the dashes and quotes that a text program has changed.
fn plainly(words: &[&str]) -> Vec<String> {
    let quote = if cfg!(windows) { "\"" } else { "'" };
    if !words.iter().any(|word: &&str| word.starts_with(TYPOGRAPHIC) && !Path::new(word).exists()) {
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let dashed = |word: &str| match word.trim_start_matches(['–', '—', '-']) {
        name if name != word && name.len() > 1 => format!("--{name}"),
        name if name != word => format!("-{name}"),
        _ => word.to_owned(),
    };
    let plain = |word: &&str| match word.contains(TYPOGRAPHIC) {
        true => dashed(word).replace('—', "--").replace('–', "-").replace(['“', '”', '‘', '’'], quote),
        false if word.starts_with('-') => (*word).to_owned(),
        false => shell_word(word).into_owned(),
    };
    split(&words.iter().map(plain).collect::<Vec<_>>().join(" "))
}

/// Words with each value in one word that the shell has divided: a statement, a shape, a pair.
fn joined(words: &[String]) -> Vec<String> {
    let (mut whole, mut rest) = (Vec::new(), words);
    while let Some((option, after)) = rest.split_first() {
        let is_value = |it: &&String| {
            !it.starts_with('-') && (it.contains(' ') || !it.ends_with(".xml")) && !Path::new(it).exists()
        };
        let value: Vec<_> = after.iter().take_while(is_value).map(String::as_str).collect();
        let is_whole = value.iter().filter(|word| word.contains(['=', ':']) && word.ends_with(']')).count() > 1;
        let is_list = |first: &str| !is_whole && (first.contains('[') || value.contains(&"=") || first.ends_with('='));
        let (option, value) = match (&**option, value.first()) {
            ("--rule" | "--rules" | "-r", Some(first)) if first.contains("=>") => ("-e", value.join(" ")),
            ("-e" | "--statement", Some(first)) if !first.contains(' ') => (&**option, value.join(" ")),
            (_, Some(first)) if option.starts_with("--") && is_list(first) => (&**option, value.concat()),
            // `2 GB`.
            (_, Some(_)) if option.starts_with("--") && is_size(&value.join(" ")) => (&**option, value.concat()),
            // `--max-memory=512 MiB`.
            (_, Some(unit))
                if let Some((option, number)) = option.split_once('=')
                    && is_size(&format!("{number} {unit}")) =>
            {
                (option, format!("{number}{unit}"))
            }
            _ => (&**option, String::new()),
        };
        rest = if value.is_empty() { after } else { &after[after.iter().take_while(is_value).count()..] };
        whole.extend([option.to_owned(), value].into_iter().filter(|word| !word.is_empty()));
    }
    whole
}

/// True for a number and a unit: `2 GB`.
fn is_size(text: &str) -> bool {
    let (number, unit) = text.split_once(' ').unwrap_or_default();
    let units = ["b", "g", "gb", "gib", "k", "kb", "kib", "m", "mb", "mib", "s", "sec"];
    number.parse::<f64>().is_ok() && units.contains(&&*unit.to_lowercase())
}

/// Words without a slip in one that names a file: `a.xml-o`, `a.xml:280`, `'a.xml -o b.xml'`, or in the first one:
/// `-check`.
fn respelt(typed: &[String]) -> Vec<String> {
    let program = whole_command();
    let is_model = |word: &str| is_xml(word) && Path::new(word).is_file();
    let parts = |(at, word): (usize, &String)| {
        let verb = word.trim_start_matches('-').trim_end_matches(|sign: char| sign.is_ascii_punctuation());
        let path = word.replace('\\', "/");
        let apart = word.replace(".xml-", ".xml -").replace(".xml..", ".xml ").replace(".xml,", ".xml ");
        // A shell that removes `\` leaves `modelsa.xml`.
        let folders = || std::fs::read_dir(".").into_iter().flatten().flatten().map(|it| it.file_name());
        let inside =
            |name: OsString| Some(Path::new(&name).join(word.trim_start_matches('.').strip_prefix(name.to_str()?)?));
        let lost = || folders().filter_map(inside).find(|file| is_xml(word) && file.is_file());
        let parts = match split(&apart) {
            // `a.xml:280`.
            _ if let Some((file, _)) =
                word.split_once(".xml:").filter(|(file, _)| is_model(&format!("{file}.xml"))) =>
            {
                Some(vec![format!("{file}.xml")])
            }
            _ if word.starts_with(" -") => Some(vec![word.trim().to_owned()]),
            _ if !Path::new(word).exists()
                && at > 0
                && let Some(file) = lost() =>
            {
                Some(vec![file.display().to_string()])
            }
            _ if Path::new(word).exists() || at > 0 && STATEMENT.contains(&&*typed[at - 1]) => None,
            _ if at == 0 && verb != *word && program.find_subcommand(verb).is_some() => Some(vec![verb.to_owned()]),
            _ if path != *word && is_model(&path) => Some(vec![path]),
            parts if parts.iter().any(|part| is_model(part)) => Some(parts),
            _ => None,
        };
        parts.unwrap_or_else(|| vec![word.clone()])
    };
    let mut words: Vec<_> = typed.iter().enumerate().flat_map(parts).collect();
    // `convert OUT.xml -o IN.xml`.
    let files: Vec<_> = (0..words.len()).filter(|at| is_xml(&words[*at])).collect();
    if let [first, second] = files[..]
        && words[second - 1] == "-o"
        && !Path::new(&words[first]).exists()
        && is_model(&words[second])
    {
        words.swap(first, second);
    }
    words
}

/// True for a word that names no file, although it stands between models: an expression of jq, a word, and a pair.
pub(crate) fn is_no_file(word: &Path) -> bool {
    let text = word.to_string_lossy();
    !word.exists() && (is_path(&text) || text.contains('=') || !text.contains(['.', '/', '\\']))
}

/// True for an expression of jq, such as `.layers[].name`, `del(.layers[0])` and `keys`.
pub(super) fn is_path(word: &str) -> bool {
    let is_call = |word: &str| word.split_once("(.").is_some_and(|(verb, _)| verb.chars().all(char::is_alphabetic));
    let begins = |word: &str| word.starts_with(|first: char| first.is_alphabetic() || first == '[');
    let is_name = ["keys", "length", "to_entries"].contains(&word);
    word.strip_prefix('.').is_some_and(begins) && !is_xml(word) || is_call(word) || is_name
}
