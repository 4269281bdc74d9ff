//! The reading of a command line that is refused, and the whole command that was meant.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use typelift::Model;
use typelift::findings::shell_word;
use typelift::rewrite::library;

use super::words::{
    dashed, general, has_word, is_model_option, is_negated, is_off, is_output, is_program, meanings, quoted, ranged,
    rows, scoped, similar,
};
use super::{Asked, DONE, FORMATS, PICTURES, STATEMENT, Typed, fault, plain, tried};
use crate::input::{Input, element_type, is_xml};
use crate::parts::parts;

/// Words in rows of tables that stand for what was typed.
const PLACES: &str =
    "FROM UNTIL OLD NEW LAYER CONSTANT TENSOR LAYOUT NAME SHAPE LENGTH VALUE OTHER N ADAPTER PATTERN REPLACEMENT";

/// Options of `benchmark_app`.
const BENCHMARK: &str =
    "-api -b -d -data_shape -exec_graph_path -hint -i -infer_precision -niter -nireq -nstreams -nthreads -pc -shape -t";

/// Words for values of options.
const VALUES: &str = "ABS CODE CONSTANT DIRECTORY EXECUTION FILE FOLDER FROM INPUT KEY KIND LAYER LAYOUT MODE NAME NEW OUT OUTPUT \
                      PAGE PATTERN PLAN RELEASE REL SHAPE SIZE TENSOR TO TYPE UNTIL VALUE";

impl<'a> Asked<'a> {
    pub(super) fn new(program: &'a Command, arguments: &'a [OsString]) -> Self {
        let verb = arguments.iter().skip(1).find_map(|word| program.find_subcommand(word));
        let texts: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let is_option = |text: &str| text.starts_with('-') && text[1..].starts_with(|first: char| !first.is_numeric());
        let mut rest = texts.iter().take_while(|text| *text != "--").peekable();
        let (mut words, mut is_moved) = (Vec::<(String, Option<String>)>::new(), false);
        while let Some(text) = rest.next() {
            // The options of `grep` are letters.
            if is_option(text) && text.len() == 2 && scoped("LETTERS", |word| word == texts[0]).is_some() {
                continue;
            }
            let own = verb.map_or("", Command::get_name);
            let named = match own {
                // `rewrite own.rules MODEL.xml`.
                "rewrite" if [".rules", ".txt"].iter().any(|end| text.ends_with(end)) => {
                    Some(("--rules", text.clone()))
                }
                // `infer --shapes MODEL.xml x=[1,3]`.
                "infer" if !is_option(text) && (text.contains("=[") || text.contains(':') && text.contains(',')) => {
                    Some(("--set-shape", text.clone()))
                }
                "promote" if text.contains('(') => Some(("", text.replace('(', "[").replace(')', "]"))),
                _ => None,
            };
            if let Some((name, value)) = named {
                words.push((name.to_owned(), Some(value)));
                is_moved = true;
                continue;
            }
            // `promote f32 + i64`.
            if own == "promote" && !is_option(text) && !text.contains('[') {
                let operands = text.split([' ', '+', ',']);
                let operands = operands.filter(|it| !["", "and", "with", "plus", "&", "*", "x"].contains(it));
                let before = words.len();
                words.extend(operands.map(|it| (String::new(), Some(it.to_owned()))));
                is_moved |= words.len() != before + 1;
                continue;
            }
            if !is_option(text) {
                // `--set-shape a=[1] b=[2]`, `--input-shape a:1,3 b:1`.
                let is_pair = |text: &String| text.contains(['=', ':']) && !Path::new(text).exists();
                // `--device CPU GPU`, `-e 'rename a b' 'rename c d'`.
                let is_only_model = |verb: &&Command| {
                    let read = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
                    read.into_iter().all(|name| name.ends_with(".xml"))
                };
                let is_value = |(name, value): &&mut (String, Option<String>)| {
                    let takes = |verb| !name.is_empty() && value.is_some() && takes(program, verb, name, text);
                    verb.filter(is_only_model).is_some_and(takes) && !is_xml(text) && !Path::new(text).exists()
                        || value.as_ref().is_some_and(is_pair) && is_pair(text)
                };
                match words.last_mut().filter(is_value) {
                    Some((name, Some(value))) if verb.is_some_and(|it| has(it, name) && !is_repeatable(it, name)) => {
                        value.push_str(&format!(",{text}"));
                        is_moved = true;
                    }
                    Some((name, _)) => {
                        let name = name.clone();
                        is_moved = true;
                        words.push((name, Some(text.clone())));
                    }
                    None => words.push((String::new(), Some(text.clone()))),
                }
                continue;
            }
            let (name, value) =
                text.split_once('=').map_or((&**text, None), |(name, value)| (name, Some(value.to_owned())));
            let takes = |option: &Arg| option.get_action().takes_values();
            let mut known = program.get_subcommands().filter_map(|verb| argument(verb, name)).map(takes).peekable();
            let singular = name.trim_end_matches('s');
            let own = verb.and_then(|verb| argument(verb, name).or_else(|| argument(verb, singular))).map(takes);
            let takes_value = own.unwrap_or_else(|| known.peek().is_none() || known.any(|takes| takes));
            // `--nhwc` and `--nchw-to-nhwc` are values, as is `--uint8-input`.
            let lower = name.to_lowercase();
            let parts: Vec<_> = lower.split(['-', '_']).collect();
            let layouts: Vec<_> = parts.iter().copied().filter(|part| ["nchw", "nhwc"].contains(part)).collect();
            let layout = Some(layouts.join(":")).filter(|layout| !layout.is_empty());
            // `--set-length seq 128`, `--set-shape image 1 3 32 32`.
            let is_bare = |text: &String| !is_option(text) && !is_xml(text) && !Path::new(text).exists();
            // A word after an option whose value follows a `=`.
            let is_own = verb.is_none_or(|verb| !is_optional(verb, name));
            let is_value = |text: &&String| takes_value && if is_own { !is_option(text) } else { is_bare(text) };
            let mut value = layout.or(value).or_else(|| rest.next_if(|text| is_value(text)).cloned());
            is_moved |= value.is_some() && !is_own && !text.contains('=');
            let is_foreign = verb.is_some_and(|verb| !has(verb, name));
            let is_named = verb.is_some_and(|verb| valued(verb, name).contains(" NAME="))
                || is_foreign && meanings(name).iter().any(|meant| meant.contains(" NAME="));
            let is_name = |value: &String| is_named && !value.contains(['=', ':', '[', '(', '{', ',']);
            let mut more: Vec<_> = value.clone().into_iter().filter(is_name).collect();
            while let Some(text) = rest.next_if(|text| !more.is_empty() && is_bare(text)) {
                more.push(text.clone());
            }
            // `--set-shape 1, 3, 32, 32`.
            while let Some(list) = value.as_mut().filter(|it| it.ends_with(',')) {
                let Some(next) = rest.next_if(|text| is_bare(text)) else { break };
                list.push_str(next);
                is_moved = true;
            }
            let value = if more.len() > 1 { Some(format!("{}={}", more[0], more[1..].join(","))) } else { value };
            is_moved |= more.len() > 1;
            let end = ["--input-type", "--output-type"].into_iter().find(|end| parts.contains(&&end[2..end.len() - 5]));
            let ty = parts.iter().find_map(|part| element_type(part).ok()).filter(|ty| ty.bits() > 0);
            // `-o json`.
            let is_format = is_output(name) && value.as_ref().is_some_and(|value| FORMATS.contains(&&**value));
            let (name, value, is_other) = match (end, ty) {
                (Some(end), Some(ty)) if value.is_none() => (end, Some(ty.to_string()), true),
                _ => (if is_format { "--format" } else { name }, value, is_format),
            };
            is_moved |= is_other;
            words.push((name.to_owned(), value));
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
        let (model, is_wish, dropped) = Default::default();
        Self { program, arguments, verb, words, model, is_moved, is_wish, dropped }
    }

    pub(super) fn options(&self) -> impl Iterator<Item = Typed<'_>> {
        self.words.iter().filter(|(name, _)| !name.is_empty()).map(|(name, value)| (&**name, value.as_deref()))
    }

    pub(super) fn verbs(&self) -> impl Iterator<Item = &'a Command> {
        self.program.get_subcommands().filter(|verb| !verb.is_hide_set())
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(|(_, value)| value.as_deref())
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter(|(name, _)| name.is_empty()).filter_map(|(_, value)| value.as_deref())
    }

    /// The words after the command that are no files.
    pub(super) fn rest(&self) -> impl Iterator<Item = &str> {
        let is_known = |word: &str| {
            let is_row = meanings(word).iter().any(|meant| !meant.starts_with("--"));
            is_row || is_program(word) || self.program.find_subcommand(word).is_some()
        };
        let is_layer = |word: &str| self.model().is_some_and(|model| model.find(word).is_ok());
        let command = self.others().take_while(|word| is_program(word)).count() + 1;
        let rest = self.others().skip(command).filter(|word| !is_xml(word) && !Path::new(word).exists());
        rest.skip_while(move |word| is_known(word) && !is_layer(word))
    }

    pub(super) fn value_of(&self, option: &str) -> Option<&str> {
        self.options().find(|(name, _)| *name == option)?.1.filter(|value| !value.is_empty())
    }

    /// The models that were typed, as words or as values of options of other programs.
    pub(super) fn models(&self) -> Vec<&str> {
        let given = self.words.iter().filter(|(name, _)| !is_output(name) && name != "--differs");
        let files = given.filter_map(|(_, value)| value.as_deref());
        files
            .filter(|file| is_xml(file) || ["-", "."].contains(file) || file.contains('/') && Path::new(file).exists())
            .collect()
    }

    pub(super) fn output(&self) -> Option<&str> {
        let given = || self.options().filter(|(name, _)| is_output(name)).filter_map(|(_, value)| value);
        let is_tensor = |name: &&str| self.model().is_some_and(|model| model.graph().find(name).is_ok());
        let last = self.others().last().filter(|word| {
            !is_xml(word) && self.others().next().is_some_and(|it| ["export", "optimum-cli"].contains(&it))
                || self.verb.is_none() && PICTURES.iter().any(|end| word.ends_with(end))
        });
        given().find(|value| is_xml(value)).or_else(|| given().find(|value| !is_tensor(value))).or(last)
    }

    /// The model that was typed, if it can be read: its inputs and outputs complete what was typed.
    pub(super) fn model(&self) -> Option<&Model> {
        let read = || {
            let file = self.models().into_iter().find(|file| Path::new(file).is_file())?;
            Input::new(file).load().ok()?.model.take()
        };
        self.model.get_or_init(read).as_ref()
    }

    /// Formats a row of the table: a command that does the same, or advice.
    pub(super) fn said(&self, meant: &str) -> Option<String> {
        for (place, options) in [("$STATIC", Self::fixed as fn(&Self) -> Option<String>), ("$DYNAMIC", Self::opened)] {
            if let Some((start, _)) = meant.split_once(place) {
                return self.said(&format!("{start}{}", options(self)?));
            }
        }
        let first = meant.split(' ').next().unwrap_or_default();
        // The first command that has an option.
        if let Some(verb) = self.verbs().find(|verb| first.starts_with("--") && has(verb, first)) {
            return self.said(&format!("{} {}", verb.get_name(), valued(verb, meant)));
        }
        if !["MODEL.xml", "--version"].contains(&first) && self.program.find_subcommand(first).is_none() {
            let model = self.models().first().map_or("MODEL.xml".into(), |model| shell_word(model));
            let options = self.options().filter_map(|(name, value)| Some((benchmarked(name)?, value)));
            let words = options.flat_map(|(name, value)| [Some(name), value]).flatten();
            let benchmark = ["benchmark_app", "-m", "MODEL.xml"].into_iter().chain(words).map(str::to_owned);
            let text = meant.replace("$BENCHMARK", &shown(&benchmark.collect::<Vec<_>>()));
            let other = self.models().get(1).map_or("OTHER.xml".into(), |model| shell_word(model));
            let output = self.output().map_or("OUT.xml".into(), shell_word);
            let text = text.replace("MODEL.xml", &model).replace("OTHER.xml", &other);
            return Some(text.replace("OUT.xml", &output));
        }
        let Some((row, filter)) = meant.split_once(" | ") else {
            return Some(format!("write `{}`", self.line(meant)?));
        };
        let of_row =
            |name: &str| self.verb.and_then(|verb| scoped(verb.get_name(), |word| word == name)) == Some(meant);
        let value = self.options().find(|(name, _)| of_row(name)).and_then(|(_, value)| value);
        if value.is_some() && filter.contains("VALUE") {
            let line = self.only(|(name, _)| !of_row(name)).line(row)?;
            return Some(format!("write `{line} | {}`", filter.replace("VALUE", &shell_word(value?))));
        }
        let meant = row;
        // Words that were typed for `jq` or `head`.
        let words = self.arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned());
        let is_verb = |word: &str| meanings(word).iter().any(|meant| meant.ends_with(filter));
        let is_typed = |word: &str| {
            word != filter && !is_verb(word) && !is_xml(word) && self.program.find_subcommand(word).is_none()
        };
        let typed: Vec<_> = words.filter(|word| is_typed(word)).collect();
        let all = if filter == "jq" && typed.is_empty() { ".".to_owned() } else { shown(&typed) };
        let more = if filter.contains(' ') || all.is_empty() { String::new() } else { format!(" {all}") };
        let line = self.line(meant)?.split(" -o ").next()?.to_owned();
        self.dropped.take();
        let picture =
            self.output().filter(|_| filter.starts_with("dot ")).and_then(|it| Some((it, it.rsplit_once('.')?.1)));
        let filter = picture.map_or(filter.to_owned(), |(file, kind)| format!("dot -T{kind} -o {}", shell_word(file)));
        Some(format!("write `{line} | {filter}{more}`"))
    }

    /// Options that open the first length of each input.
    fn opened(&self) -> Option<String> {
        let ends = self.ends("").into_iter().filter(|(_, dims)| !dims.is_empty());
        let options = ends.map(|(name, dims)| {
            let dims = ["?"].into_iter().chain(dims[1..].iter().map(String::as_str)).collect::<Vec<_>>();
            format!("--set-shape '{name}=[{}]'", dims.join(","))
        });
        Some(options.collect::<Vec<_>>().join(" ")).filter(|options| !options.is_empty())
    }

    /// Options that fix the open lengths of the inputs, at lengths that fit one another.
    fn fixed(&self) -> Option<String> {
        let (model, known) = (self.model()?, typelift::shapes(self.model()?));
        let least = known.symbols.iter().map(|symbol| if symbol.name.ends_with("batch") { 1 } else { 8 });
        let shapes = known.input_shapes(model, &known.fitting(&least.collect::<Vec<_>>())?);
        let ends = shapes.iter().filter_map(|(id, shape)| Some((model.graph().layer(*id)?, shape)));
        let options = ends.map(|(layer, shape)| format!("--set-shape '{}={shape}'", model.end_name(layer)));
        Some(options.collect::<Vec<_>>().join(" ")).filter(|options| !options.is_empty())
    }

    /// A command with everything that was typed and has a meaning there, if it stands.
    pub(super) fn line(&self, meant: &str) -> Option<String> {
        let (words, lost) = self.draft(meant)?;
        let (words, last) = tried(words, self.arguments)?;
        *self.dropped.borrow_mut() = lost.into_iter().chain(last).collect();
        Some(format!("typelift {}", shown(&words)))
    }

    /// The words of a command with everything that was typed and has a meaning there, if the parser accepts them, and the
    /// options that it lacks.
    pub(super) fn draft(&self, meant: &str) -> Option<(Vec<String>, Vec<String>)> {
        let typed = self.positionals(meant);
        let error = fault(self.program, [meant].into_iter().chain(typed.iter().map(String::as_str)));
        let is_short = error.is_some_and(|error| error.kind() == ErrorKind::MissingRequiredArgument);
        // `reduce --refused MODEL.xml` lacks the output alone.
        let texts = self.arguments.iter().skip(1).filter_map(|word| word.to_str());
        let is_whole = fault(self.program, texts.chain(["-o", "o.xml"])).is_none();
        let example = scoped("EXAMPLE", |verb| verb == meant).filter(|_| typed.is_empty() || is_short && !is_whole);
        let meant = example.unwrap_or(meant);
        if meant == "--version" && !self.models().is_empty() {
            return None;
        }
        let (mut words, mut models, mut output, mut row) = (split(meant), self.models(), self.output(), None);
        let typed = if example.is_none() { typed } else { Vec::new() };
        let place = words.len();
        let example = words.get(1).filter(|option| option.starts_with("--")).cloned();
        let mut lost = Vec::new();
        if let Some(verb) = self.program.find_subcommand(&words[0]) {
            self.prepare(&mut words);
            // An option may belong to one that follows.
            let mut carry = |option| !self.carry(verb, option, &mut words, example.as_deref());
            let late: Vec<_> = self.options().filter(|option| carry(*option)).collect();
            lost = late.into_iter().filter(|option| carry(*option)).collect();
            words.splice(place..place, typed);
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
            let is_changing = is_changing(verb.get_name());
            // `onnxsim IN.xml OUT.xml`.
            let is_file = models.get(1).is_some_and(|file| self.verb.is_some() && Path::new(file).exists());
            let is_written = is_changing || verb.get_name() == "reduce";
            if is_written && output.is_none() && models.len() == 2 && !is_file && !meant.contains("OTHER") {
                output = models.pop();
            }
            let reads = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
            let places = ["MODEL.xml", "BEFORE.xml", "--list-rules"];
            let is_given = words.iter().any(|word| places.iter().chain(&models).any(|place| place == word));
            if reads.filter(|name| name.ends_with(".xml")).count() > 0 && !is_given {
                let more = ["AFTER.xml"].into_iter().filter(|_| verb.get_name() == "verify" && models.len() > 1);
                words.extend(["MODEL.xml"].into_iter().chain(more).map(str::to_owned));
            }
            let is_done = words.iter().any(|word| DONE.contains(&&**word));
            let writes = (is_changing || verb.get_name() == "reduce" || is_fix(&words)) && !is_done;
            let takes = argument(verb, "--output").is_some() && (verb.get_name() != "check" || is_fix(&words));
            if !words.contains(&"-o".to_owned()) && (writes || takes && output.is_some()) {
                words.extend(["-o".to_owned(), "OUT.xml".to_owned()]);
            }
            self.add_command(&mut words);
            let has_side = words.iter().any(|word| word.ends_with("-b") || word == "--expect");
            // Expected outputs are those of some inputs.
            if words.contains(&"--expect".to_owned()) && !words.contains(&"--inputs".to_owned()) {
                words.extend(["--inputs", "IN.npz"].map(str::to_owned));
            }
            if verb.get_name() == "verify" && models.len() == 1 {
                let is_whole = has_side || words.contains(&"AFTER.xml".to_owned());
                let mut sides = words
                    .iter_mut()
                    .filter(|word| ["--hint", "--simulate"].contains(&&***word) || *word == "--config" && !is_whole);
                match sides.next() {
                    Some(side) => side.push_str("-b"),
                    None if is_whole => {}
                    None => words.extend(["--hint-b", "default"].map(str::to_owned)),
                }
            }
        }
        // `reduce` writes one file, as does `ovc --output_model`.
        let is_file = |file: &str| words[0] == "reduce" || self.value_of("--output_model") == Some(file);
        let folder = output.filter(|file| is_file(file) && !is_xml(file));
        let named = folder.map(|folder| format!("{}.xml", folder.trim_end_matches('/')));
        for word in &mut words {
            let given = match &**word {
                "MODEL.xml" | "BEFORE.xml" => models.first().copied(),
                "AFTER.xml" => models.get(1).copied(),
                "OUT.xml" => named.as_deref().or(output),
                "OUT.html" => Some(self.values().find(|file| file.ends_with(".html")).unwrap_or("model.html")),
                _ => None,
            };
            *word = given.map_or(word.clone(), str::to_owned);
        }
        // `--weight-format int4` is asymmetric without `--sym`.
        if self.options().any(|(name, _)| ["--sym", "--symmetric"].contains(&name)) {
            words.iter_mut().for_each(|word| *word = word.replace("_asym", "_sym"));
        }
        // A statement that fails on the model is shown with its places.
        let row = row.filter(|row| !row.contains("OTHER"));
        if let Some(row) = row.filter(|_| words[1] == "-e" && !self.is_accepted(&words)) {
            words[2] = row;
        }
        let line = self.is_accepted(&words).then(|| words.join(" "))?;
        // An option that led to the command, or whose value is in it, is not lost.
        let is_kept = |&(name, value): &Typed| {
            let is_value = value.is_some_and(|value| value.split([',', ' ', '/']).any(|part| line.contains(part)));
            let is_word = |words| [&*dashed(name), value.unwrap_or_default()].iter().any(|word| has_word(words, word));
            let is_same = |it: &str| it == meant || [it, meant].iter().all(|it| it.contains("before NAME"));
            let mut rows = rows().filter(|(_, row)| row.split('|').any(is_same));
            let is_meant = meanings(name).into_iter().any(is_same) || rows.any(|(words, _)| is_word(words));
            is_value || is_meant || argument(self.program, name).is_some()
        };
        // A statement is named by its text.
        let shown = |(name, value): Typed| value.filter(|_| STATEMENT.contains(&name)).unwrap_or(name).to_owned();
        let lost = lost.into_iter().filter(|option| !is_kept(option)).map(shown).collect();
        Some((words, lost))
    }

    fn positionals(&self, verb: &str) -> Vec<String> {
        // `why --shape` takes a tensor, and the words of other rows take the place of those that were typed.
        let is_row = verb.contains(['.', '\'', '|']) || verb.contains(' ') && !verb.starts_with("why --");
        let verb = verb.split(' ').next().filter(|_| !is_row);
        let Some(verb) = verb.and_then(|verb| self.program.find_subcommand(verb)) else { return Vec::new() };
        let reads = || verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let models = self.models();
        if self.verb.is_none() && models.is_empty() {
            // `explian stale-port`.
            let meant = |word| scoped("<SHELL>", |it| it == word).map_or(word, |row| &row["completions ".len()..]);
            let words = || [verb.get_name()].into_iter().chain(self.rest().map(meant));
            let is_whole = fault(self.program, words()).is_none();
            return words().skip(1).filter(|_| is_whole).map(str::to_owned).collect();
        }
        if self.verb.is_none_or(|it| it.get_name() != verb.get_name()) {
            return Vec::new();
        }
        let is_read =
            |word: &&str| models.contains(word) || reads().any(|name| !name.ends_with(".xml") && name != "COMMAND");
        let all = self.others().filter(|word| *word != verb.get_name()).filter(is_read).map(str::to_owned);
        all.collect()
    }

    /// Adds an option that was typed to a command, or replaces its value. Returns false if it has no meaning there.
    fn carry(&self, verb: &Command, option: Typed, words: &mut Vec<String>, example: Option<&str>) -> bool {
        let (name, value) = option;
        let is_set = library::get(name.trim_start_matches('-')).is_some();
        let is_written = self.output().is_some() && meanings(name).contains(&"--in-place")
            || ["--sym", "--symmetric"].contains(&name);
        if is_off(value) || is_written || is_output(name) || is_model_option(name) || is_set {
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

    /// The words for an option of a command: with the value that was typed, or the one that it stands for.
    pub(super) fn with_value(&self, verb: &Command, own: &str, value: Option<&str>) -> Option<Vec<String>> {
        let whole = split(own);
        let is_optional = is_optional(verb, &whole[0]);
        let is_whole =
            is_optional || whole.get(1).map_or(valued(verb, &whole[0]) == whole[0], |value| !has_place(value));
        // `-nstreams 4`.
        let numbered = || Some(vec![whole[0].clone(), format!("{}={}", whole.get(1)?.strip_suffix("=N")?, value?)]);
        let fitted = value.and_then(|value| self.fitted(verb, own, value)).or_else(numbered);
        match fitted {
            Some(words) if is_optional && words.len() == 2 => Some(vec![words.join("=")]),
            fitted => fitted.or_else(|| Some(whole.clone()).filter(|_| is_whole)),
        }
    }

    /// The option of a command that is meant by an option, with a place for its value or the value itself.
    pub(super) fn own(&self, verb: &Command, name: &str) -> Option<String> {
        let dashed = dashed(name);
        let exact = has(verb, &dashed).then(|| dashed.clone());
        let plural = [format!("{dashed}s"), dashed.trim_end_matches('s').to_owned()];
        let plural = plural.into_iter().find(|other| *other != dashed && has(verb, other));
        // `--shape` without a value is `--shapes`, and `--input in.npz` is `--inputs`.
        let value = self.options().find(|(given, _)| *given == name).map(|(_, value)| value);
        let switch = plural.filter(|other| match value {
            Some(Some(file)) => valued(verb, other).contains(" FILE") && self.fitted(verb, other, file).is_some(),
            value => value.is_some() && valued(verb, other) == *other,
        });
        let row = meanings(&dashed).into_iter().find_map(|meant| {
            let own = meant.strip_prefix(verb.get_name()).map_or(meant, str::trim_start);
            (own.starts_with("--") && has(verb, own)).then(|| own.to_owned())
        });
        // `why --shape` is a switch.
        let is_listed = general().any(|(words, _)| has_word(words, &dashed));
        let is_listed = is_listed && (value != Some(None) || exact.is_none() || valued(verb, &dashed) != dashed);
        if is_listed { switch.or(row).or(exact) } else { exact.or(switch).or(row) }
    }

    pub(super) fn own_or_similar(&self, verb: &Command, name: &str) -> Option<String> {
        // A row for the command says what the option means there.
        let is_other = is_negated(name) || scoped(verb.get_name(), |word| word == dashed(name)).is_some();
        let similar = || similar(verb, name).into_iter().filter(|_| !is_other);
        let own = || similar().filter_map(|other| self.own(verb, &other));
        let fits = |own: &String| self.with_value(verb, own, self.value_of(name)).is_some();
        self.own(verb, name).or_else(|| own().find(fits)).or_else(|| own().next())
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

    /// Adds the command that `reduce` runs, which is typed after the model, or as a value of an option.
    fn add_command(&self, words: &mut Vec<String>) {
        let texts = || self.arguments.iter().filter_map(|word| word.to_str());
        let after = texts().skip_while(|word| *word != "--").skip(1);
        let of_option = || self.options().find(|(name, _)| scoped("reduce", |word| word == *name) == Some("reduce"));
        let typed = of_option().and_then(|(_, value)| value);
        let command: Vec<_> = match typed {
            Some(command) => command.split(' ').chain(self.others().skip_while(|word| !is_xml(word)).skip(1)).collect(),
            None if after.clone().next().is_some() => after.collect(),
            // `reduce MODEL.xml test -s {} -o OUT.xml`.
            None => {
                let first = self.others().skip_while(|word| !is_xml(word)).find(|word| !is_xml(word));
                let own = |word: &&str| is_output(word) || is_xml(word);
                texts().skip_while(|word| Some(*word) != first).take_while(|word| !own(word)).collect()
            }
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

    /// Replaces places in a command by the words that were typed, and by the names of the model.
    fn fill(&self, meant: &str, words: &mut [String]) {
        let is_unknown =
            |name: &str| meanings(name).is_empty() && !self.program.get_subcommands().any(|verb| has(verb, name));
        let is_row =
            |name: &str| self.verb.and_then(|verb| scoped(verb.get_name(), |word| word == name)) == Some(meant);
        let is_meant = |name: &str| meanings(name).contains(&meant) || is_row(name) || is_unknown(name);
        let rest: Vec<_> = self.rest().collect();
        let typed = self.words.iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let typed = typed.filter(|(name, value)| if name.is_empty() { rest.contains(value) } else { is_meant(name) });
        let parts = typed.flat_map(|(name, value)| {
            let is_value = !name.is_empty();
            value.split(move |sign| "=>".contains(sign) || is_value && sign == ',' && !value.contains('('))
        });
        let mut typed = parts.map(|value| value.trim_end_matches(['-', ' ']).to_owned());
        let end = |names: [&str; 5]| {
            let is_tensor = |name: &str| self.model().is_some_and(|model| model.graph().find(name).is_ok());
            // `x:[1,3]:float32`.
            let name = |end: &str| {
                let starts = end.match_indices([':', '[']).map(|(at, _)| &end[..at]).chain([end]);
                let known = starts.clone().rev().find(|start| is_tensor(start));
                quoted(&known.map_or_else(|| self.spelt(starts.clone().next().unwrap_or(end)), str::to_owned))
            };
            let names = names.iter().find_map(|name| self.value_of(name))?;
            let ends = if names.contains('[') { vec![names] } else { names.split(',').collect() };
            Some(ends.into_iter().map(name).collect::<Vec<_>>().join(", "))
        };
        let first = end(["--inputs", "--input", "--input-names", "--from", "--start"]);
        let last = end(["--outputs", "--output", "--output-names", "--until", "--to"]);
        let own = |option: &str| self.ends(option).into_iter().next().map(|(name, _)| name);
        let named = self.options().map(|(name, _)| name).find(|name| name.ends_with("name") || name.ends_with("names"));
        let (mut layer, is_why) = (None, words[0] == "why");
        for word in words.iter_mut().skip(1).filter(|word| word.contains(' ') || !is_xml(word)) {
            for place in PLACES.split(' ') {
                if !crate::parts::parts(word).any(|part| part == place) {
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
                    "N" => typed.by_ref().find(|it| it.parse::<f64>().is_ok()),
                    "SHAPE" => typed.next().map(|dims| format!("[{}]", dims.trim_matches(['[', ']']))),
                    "LAYER" if is_why => typed.next().or_else(|| self.suspect()),
                    "OLD" if named.is_some() => own(named.unwrap_or_default()),
                    "NAME" => typed.next().or_else(|| own(word)),
                    "TENSOR" => first.clone().or_else(|| typed.next()).or_else(|| self.before(layer.as_deref()?)),
                    _ => typed.next(),
                };
                layer = given.clone().filter(|_| place == "LAYER").or(layer);
                if let Some(name) = given {
                    let is_name = ["FROM", "UNTIL", "OLD", "LAYER", "CONSTANT", "TENSOR", "NAME"].contains(&place);
                    let name = if is_name { self.spelt(&name) } else { name };
                    let place = if place == "LAYOUT" { "NAME=LAYOUT" } else { place };
                    let is_text = name.contains(", ") || ["PATTERN", "REPLACEMENT"].contains(&place);
                    let name = if word.contains(' ') && !is_text { quoted(&name) } else { name };
                    *word = match word.strip_suffix("=N") {
                        Some(start) if place == "N" => format!("{start}={name}"),
                        _ => word.replacen(place, &name, 1),
                    };
                }
            }
        }
    }

    /// A name of the model in place of one that is similar.
    fn spelt(&self, name: &str) -> String {
        let near = self.model().filter(|model| model.find(name).is_err()).and_then(|model| model.nearest_name(name));
        near.unwrap_or_else(|| name.to_owned())
    }

    /// True if the parsers of commands and statements accept these words, or if a place of one is empty. The statements must
    /// run on the model.
    pub(super) fn is_accepted(&self, words: &[String]) -> bool {
        if words.iter().any(|word| !is_xml(word) && (has_example(word) || has_place(word))) {
            return true;
        }
        let statements = words.windows(2).filter(|pair| STATEMENT.contains(&&*pair[0]));
        let is_overview = words.first().is_some_and(|word| is_xml(word));
        let fault = fault(self.program, words.iter().map(String::as_str));
        self.runs(&statements.map(|pair| format!("{}\n", pair[1])).collect::<String>())
            && (is_overview || fault.is_none_or(|error| error.exit_code() == 0))
    }
}

/// The option of `benchmark_app` for one of another spelling.
fn benchmarked(name: &str) -> Option<&'static str> {
    let short = match name.trim_start_matches('-') {
        "device" => "d",
        "input" | "inputs" => "i",
        "dumpProfile" | "perf_counts" | "profile" => "pc",
        "iterations" => "niter",
        other => other,
    };
    BENCHMARK.split(' ').find(|own| own[1..] == *short)
}

/// Splits a row of a table at blanks outside of quotes.
pub(super) fn split(line: &str) -> Vec<String> {
    // Windows quotes with `"`.
    let quote = line.chars().find(|letter| ['\'', '"'].contains(letter)).unwrap_or('\'');
    let parts = line.split(quote).enumerate();
    let words = parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split(' ').collect() });
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Words as they are typed.
pub(super) fn shown(words: &[String]) -> String {
    let is_raw = |word: &str| word.starts_with('-') || has_place(word);
    let word = |word: &String| if is_raw(word) { word.clone() } else { shell_word(word).into_owned() };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// True if a text has a word of a table in place of what was typed.
pub(super) fn has_example(text: &str) -> bool {
    parts(text).any(|part| has_word(PLACES, part) && (part != "N" || !text.contains('[')))
}

/// True if a word is a place for what was not typed, such as `NAME=SHAPE`.
pub(super) fn has_place(word: &str) -> bool {
    let mut parts = parts(word);
    !word.contains(['[', ':', ' ']) && (word.ends_with("=N") || parts.any(|part| has_word(VALUES, part)))
}

pub(super) fn argument<'c>(verb: &'c Command, option: &str) -> Option<&'c Arg> {
    let is_short = |letter: char| option.strip_prefix('-').is_some_and(|rest| rest.chars().eq([letter]));
    let is_long = |long: &str| option.strip_prefix("--") == Some(long);
    verb.get_arguments().find(|arg| arg.get_short().is_some_and(is_short) || arg.get_long().is_some_and(is_long))
}

pub(super) fn has(verb: &Command, option: &str) -> bool {
    argument(verb, option.split(' ').next().unwrap_or_default()).is_some()
}

pub(super) fn valued(verb: &Command, option: &str) -> String {
    let value = argument(verb, option).filter(|arg| arg.get_action().takes_values());
    let value = value.and_then(|arg| arg.get_value_names()?.first()).map(|value| plain(value));
    value.map_or_else(|| option.to_owned(), |value| format!("{option} {value}"))
}

/// Why these options of a command are no complete command line, if they are not. The models and the output are added.
pub(super) fn refused(program: &Command, verb: &Command, options: &[String]) -> Option<Error> {
    let models: &[&str] = match verb.get_name() {
        "diff" | "verify" => &["a.xml", "b.xml"],
        "why" if options.first().is_none_or(|option| option.starts_with('-')) => &["a.xml", "x"],
        _ => &["a.xml"],
    };
    let is_written = options.iter().all(|option| !DONE.contains(&&**option));
    let is_written = is_written && is_changing(verb.get_name());
    let output: &[&str] = if is_written { &["-o", "o.xml"] } else { &[] };
    let words = [&[verb.get_name()], models, output].concat().into_iter();
    fault(program, words.chain(options.iter().map(String::as_str)))
}

pub(super) fn takes(program: &Command, verb: &Command, option: &str, value: &str) -> bool {
    let bad = [ErrorKind::InvalidValue, ErrorKind::ValueValidation, ErrorKind::UnknownArgument];
    let fault = fault(program, [verb.get_name(), &format!("{option}={value}")]);
    valued(verb, option) != option && fault.is_none_or(|error| !bad.contains(&error.kind()))
}

/// True for an option whose value follows a `=`, if it has one.
pub(super) fn is_optional(verb: &Command, option: &str) -> bool {
    argument(verb, option).and_then(Arg::get_num_args).is_some_and(|values| values.min_values() == 0)
}

fn is_repeatable(verb: &Command, option: &str) -> bool {
    argument(verb, option).is_some_and(|option| matches!(option.get_action(), clap::ArgAction::Append))
}

pub(super) fn is_changing(verb: &str) -> bool {
    ["convert", "rewrite"].contains(&verb)
}

fn is_fix(words: &[String]) -> bool {
    words.iter().any(|word| word == "--fix")
}
