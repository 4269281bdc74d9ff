//! `typelift rewrite`: applies statements to a model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use serde::Serialize;
use typelift::Model;
use typelift::findings::{Code, Diagnostic, FileName, Voice, shell_word};
use typelift::rewrite::{Losses, Report, Script, library, values_are};

use crate::batch::Inputs;
use crate::changing::ChangeArgs;
use crate::check;
use crate::columns::{Columns, Side};
use crate::failure::Failure;
use crate::findings;
use crate::gate::Clean;
use crate::input::{self, Input, Loaded};
use crate::output::{OutputArgs, Target};
use crate::panics;
use crate::render::{self, Show};
use crate::status::Status;
use crate::terminal::{self, Page, Terminal};
use crate::texts;
use crate::usage;
use crate::verify::Verdict;

/// Rewrite a model by rules and other statements
///
/// A statement is a line: `[NAME:] PATTERN => REPLACEMENT`, `rename OLD NEW`, `input NAME : TYPE[SHAPE]`, `output NAME : TYPE`,
/// `before NAME : EXPRESSION`, `after TENSOR : EXPRESSION`, `tap TENSOR [as NAME]`, `cut TENSOR`, `cut [A, …] .. [B, …]`,
/// `join FILE`, `inline IF`, `set CONST = EXPRESSION`, `info PATH = VALUE`, `keep f32 LAYER` or `expect NAME MIN..MAX`, in the
/// notation that `show` prints. Rules are applied until none matches, in bodies too. If one would break the model or change
/// what else uses its tensors, or is not applied as often as expected, nothing is written. What no statement touches stays as it
/// is in the file, byte for byte.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift rewrite model.xml -e 'Divide(x, c: const f32) => Multiply(x, 1 / c)' -o out.xml
  typelift rewrite model.xml --rules export.rules -o out.xml
  typelift rewrite model.xml --use fuse-gelu --use no-ops --dry-run
  typelift rewrite model.xml -e 'Relu(Add(x, 0)) => Relu(x)' --explain relu_3")]
pub(crate) struct Args {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    output: OutputArgs,
    /// A statement; repeatable
    #[arg(short = 'e', long = "statement", value_name = "STATEMENT")]
    statements: Vec<String>,
    /// A file of statements, one per line; repeatable
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Built-in rules, such as fuse-gelu or all. --list-rules lists them; `all` is every set that does not expand
    /// operations; repeatable
    #[arg(long = "use", value_name = "NAME", value_parser = set_names(), value_delimiter = ',', hide_possible_values = true)]
    library: Vec<String>,
    /// List the built-in sets of rules
    #[arg(long, exclusive = true)]
    list_rules: bool,
    /// Print the text of a built-in set, or of all
    #[arg(long, exclusive = true, value_name = "NAME", num_args = 0..=1, default_missing_value = ALL,
        value_parser = set_names(), hide_possible_values = true)]
    source: Option<String>,
    /// Explain why each rule matches at this layer or not
    #[arg(long, value_name = "LAYER", conflicts_with_all = ["output", "in_place", "report"])]
    explain: Option<String>,
    /// Refuse rules that lose values of constants: that round, saturate or overflow them
    #[arg(long, value_name = "KIND")]
    deny: Vec<Denied>,
    #[command(flatten)]
    change: ChangeArgs,
}

/// The findings that make a run fail.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Denied {
    /// New constants that lose values
    Lossy,
}

/// The name of all sets that do not expand operations.
const ALL: &str = "all";

fn help_with_set(failure: Failure, file: &Path) -> Failure {
    if file.is_file() || file.is_dir() {
        return failure.help("a file of rules is text, with a statement per line: -e takes one statement");
    }
    match set_names().into_iter().find(|name| file.as_os_str() == *name) {
        Some(name) => failure.help(format!("for the built-in rules of this name, write --use {name}")),
        None => failure,
    }
}

fn set_names() -> Vec<&'static str> {
    library::SETS.iter().map(|set| set.name).chain([ALL]).collect()
}

#[derive(Serialize)]
struct Document<'a> {
    file: FileName<'a>,
    #[serde(flatten)]
    report: &'a Report,
}

struct Rewriting {
    is_refused: bool,
    /// The changes or the refusal as JSON, if a report was requested.
    report: Option<String>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    if args.list_rules {
        terminal.print(&listed_sets())?;
        return Ok(Status::Done);
    }
    if let Some(name) = &args.source {
        terminal.print(&source(name))?;
        return Ok(Status::Done);
    }
    if args.statements.is_empty() && args.rules.is_empty() && args.library.is_empty() {
        args.inputs.check_for_other_arguments()?;
        return Err(Failure::new("there is nothing to do").help("give -e STATEMENT, --rules FILE or --use NAME"));
    }
    let script = args.script()?;
    args.change.check(&args.inputs, &args.output, !args.change.dry_run && args.explain.is_none())?;
    let files: Vec<_> = script.files().flat_map(|file| [file.to_path_buf(), file.with_extension("bin")]).collect();
    let batch = args.inputs.find(Some(&args.output), args.change.document().as_slice(), &files)?;
    let done = args.change.each(
        &batch,
        terminal,
        |input, page| args.rewrite(&script, input, page),
        |rewriting| rewriting.report.take(),
    )?;
    Ok(done.status(|rewriting| rewriting.is_refused))
}

impl Args {
    fn script(&self) -> Result<Script, Failure> {
        let mut text = String::new();
        for file in &self.rules {
            let rules = texts::read(file).map_err(|failure| help_with_set(failure, file))?;
            if let Some(kind) = texts::kind(&rules) {
                let failure = Failure::new(format!("`{}` is {kind}, not a file of statements", file.display()));
                return Err(failure.help("a line is a rule, `Relu(x) => Abs(x)`, or a statement, `rename OLD NEW`"));
            }
            text += &rules;
            text += "\n";
        }
        for statement in &self.statements {
            let is_rules = [".rules", ".txt"].iter().any(|ending| statement.ends_with(ending));
            if !statement.contains(char::is_whitespace) && (is_rules || Path::new(statement).is_file()) {
                let failure = Failure::new(format!("`{statement}` is a file, not a statement"));
                return Err(failure.help(format!("give a file of statements with --rules {}", shell_word(statement))));
            }
            text += statement;
            text += "\n";
        }
        let script: Script = text.parse().map_err(|error: typelift::rewrite::notation::NotationError| {
            let (line, _) = error.line_column();
            let place = match &self.rules[..] {
                [file] if self.statements.is_empty() => format!("{}:{line}: ", file.display()),
                _ if self.statements.is_empty() => format!("line {line}: "),
                _ => String::new(),
            };
            let failure = Failure::new(format!("{place}{}{}", &error.message, error.excerpt()));
            let typed = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim_start();
            let is_foreign = ["--", "/*", ";", "%"].iter().any(|sign| typed.starts_with(sign)) || typed.contains("//");
            match (error.near.as_deref(), error.help.as_deref()) {
                (Some(near), _) if !is_foreign => failure.did_you_mean(&text[error.span.clone()], near),
                (None, Some(help)) if !is_foreign => failure.help(help),
                _ if is_foreign => failure.help("a comment begins with `#`"),
                _ if self.statements.is_empty() => {
                    failure.help("a line is a rule, `Relu(x) => Abs(x)`, or a statement, `rename OLD NEW`")
                }
                _ => failure,
            }
        })?;
        if script.edits() == 0 && script.rules().is_empty() && self.library.is_empty() {
            let empty = self.rules.first().map_or("there is nothing to do".to_owned(), |file| {
                format!("`{}` has no statements: there is nothing to do", file.display())
            });
            return Err(
                Failure::new(empty).help("a line is a rule, `Relu(x) => Abs(x)`, or a statement, `rename OLD NEW`")
            );
        }
        let mut sets: Vec<&library::Set> = Vec::new();
        for name in &self.library {
            let named = library::SETS.iter().filter(|set| set.name == name);
            let all = library::all().filter(|_| name == ALL);
            for set in named.chain(all) {
                if !sets.iter().any(|known| known.name == set.name) {
                    sets.push(set);
                }
            }
        }
        sets.into_iter().try_fold(script, |script, set| {
            let rules = set.rules().map_err(|error| Failure::new(format!("the rules of {}: {error}", set.name)))?;
            Ok(script.with_rules(rules))
        })
    }

    fn refused(&self, report: Result<String, Failure>) -> Result<Rewriting, Failure> {
        let report = self.change.report.as_ref().map(|_| report).transpose()?;
        Ok(Rewriting { is_refused: true, report })
    }

    fn rewrite(&self, script: &Script, input: &Input, page: &mut Page) -> Result<Rewriting, Failure> {
        let target = if self.change.dry_run { None } else { Target::new(&self.output, input)? };
        let mut loaded = input.read()?;
        let Loaded { model, diagnostics, read_from, .. } = &mut loaded;
        if let (Some(model), Some(target)) = (&model, &target) {
            diagnostics.list.extend(target.objection(model, input));
            input.name_weights(model, &mut diagnostics.list);
        }
        let (Some(mut found), false) = (model.take(), diagnostics.has_errors()) else {
            page.said = render::text(diagnostics, Voice::Shell(None), Show::Briefly);
            page.said.extend(check::suggestion(input, &diagnostics.source));
            return self.refused(findings::refused(diagnostics));
        };
        let file = diagnostics.file.clone();
        if let Some(layer) = &self.explain {
            // `check` reports its errors; explaining needs only the types.
            let _reported_by_check = typelift::infer(&mut found);
            page.printed = explain(script, &found, layer)?;
            return Ok(Rewriting { is_refused: false, report: None });
        }
        let (before, outputs) = (found.weights().len(), found.outputs().count());
        let (model, report) = match script.run(found) {
            Ok((done, report)) => (&*model.insert(done), report),
            Err(error) => {
                let said = error.to_string();
                let failure = match said
                    .split_once("; did you mean `")
                    .and_then(|(said, near)| Some((said, near.strip_suffix("`?")?)))
                {
                    Some((said, near)) => {
                        let wrong = said.rsplit('`').nth(1).unwrap_or_default();
                        Failure::new(said).did_you_mean(wrong, near)
                    }
                    None => Failure::new(said),
                };
                let failure = usage::after_run(failure, &panics::arguments());
                let report = failure.json(Some(&file));
                page.said = failure.at(&file).text();
                return self.refused(report);
            }
        };
        let is_copied =
            target.as_ref().is_some_and(Target::has_weights) && report.errors.is_some_and(|errors| errors > 0);
        if let (true, refusal @ Some(_)) = (is_copied, wrong_weights(model)) {
            diagnostics.list.extend(refusal);
            input.name_weights(model, &mut diagnostics.list);
            page.said = render::text(diagnostics, Voice::Shell(None), Show::Briefly);
            return self.refused(findings::refused(diagnostics));
        }
        let losses = lost(&file, &report);
        if self.deny.contains(&Denied::Lossy) && !losses.is_empty() {
            page.said = losses;
            let failure = Failure::new("values of constants would be lost, which `--deny lossy` refuses");
            let document = failure.json(Some(&file));
            page.said += &failure.at(&file).text();
            return self.refused(document);
        }
        let left = if model.outputs().count() < outputs { left(model) } else { String::new() };
        let verified = match self.change.before.compare(input, model)? {
            Verdict::Agree(remark) => remark.map_or(String::new(), |remark| format!("; {remark}")),
            Verdict::Differ(report) => {
                page.said = format!("{report}{file}: not written, because the result computes something else\n");
                return Ok(Rewriting { is_refused: true, report: None });
            }
        };
        let counts = summary(script, report.applied.len(), report.skipped.len());
        let effects: String =
            report.statements.iter().map(|effect| format!("  {}\n", Clean(&effect.to_string()))).collect();
        let rewritten = operations(&report);
        let summary = format!("{file}: {counts}{rewritten}{left}{verified}");
        match &target {
            Some(Target::Stdout | Target::Stream(_)) if model.weights().len() != before => {
                return Err(Failure::new("the rewritten model has new constants, and a stream takes only its graph")
                    .help("give -o OUT.xml, and they are written next to it"));
            }
            Some(target) => {
                let options = self.output.text(input, script.edits_interface());
                target.write(model, read_from, options, page)?;
                let written = target.written().map(|written| format!("; {written}")).unwrap_or_default();
                page.said += &format!("{summary}{written}\n{effects}");
            }
            None if !self.change.reports_on_stdout() => {
                for site in &report.applied {
                    let _ = writeln!(page.printed, "  {site}");
                }
                for skipped in &report.skipped {
                    let _ = writeln!(page.printed, "  {skipped}");
                }
                page.printed += &format!("{summary}\n{effects}");
            }
            None => {}
        }
        if script.edits_interface() {
            diagnostics.list = model.hard_coded_shapes();
            page.said += &render::text(diagnostics, Voice::Shell(None), Show::Briefly);
        }
        page.said.extend(script.unused_inputs(model).into_iter().map(|input| unused(&file, input, model)));
        page.said += &losses;
        page.said += &refused_by_openvino(report.errors.unwrap_or_default(), &file);
        let document = Document { file: FileName(&file), report: &report };
        let report = self.change.report.as_ref().map(|_| terminal::json(&document)).transpose()?;
        Ok(Rewriting { is_refused: false, report })
    }
}

/// The error for a .bin that is not that of the model, and would be copied.
fn wrong_weights(model: &Model) -> Option<Diagnostic> {
    model.weights().len()?;
    let found = typelift::infer(&mut model.clone());
    found.into_iter().find(|found| found.code == Code::WrongWeights && found.is_error())
}

fn unused(file: &str, input: &str, model: &Model) -> String {
    match input {
        "beam_idx" if model.state().is_empty() => format!(
            "warning: {file}: the model has no cache that `beam_idx` could reorder; programs that generate text run it, and \
             get a wrong text. Export the model again with its cache\n"
        ),
        _ => format!("note: {file}: no layer uses the added input `{}`\n", Clean(input)),
    }
}

/// A note if OpenVINO refuses the result. Rules may be a step of a repair, so that it is written all the same.
fn refused_by_openvino(errors: usize, file: &str) -> String {
    if errors == 0 {
        return String::new();
    }
    let errors = crate::columns::count(errors, "error");
    format!("note: {file}: OpenVINO refuses the result, which has {errors}; `typelift check` shows what is wrong\n")
}

/// The most tensors of an adapter that a warning lists.
const UNUSED_LISTED: usize = 3;
/// What to do about each kind of loss, in the order of [`Losses::counts`].
const HELP: [&str; 4] = [
    "compute in f32, or add an `if` to the rule",
    "compute in f32, or add an `if` to the rule",
    "convert to a wider type",
    "`--deny lossy` refuses that",
];

fn lost(file: &str, report: &Report) -> String {
    let statements = report.lossy.iter().map(|it| (&it.statement, format!("`{}`", it.statement), it.losses));
    let sites = report.applied.iter().map(|site| (&site.rule, site.to_string(), site.losses));
    let mut found = BTreeMap::<_, (usize, String)>::new();
    for (name, place, losses) in statements.chain(sites) {
        for (kind, (count, _)) in losses.counts().into_iter().enumerate().filter(|(_, (count, _))| *count > 0) {
            found.entry((kind, name)).or_insert((0, place.clone())).0 += count;
        }
    }
    let warnings = found.into_iter().map(|((kind, _), (count, first))| {
        let (_, what) = Losses::default().counts()[kind];
        format!("warning: {file}: {} {what}, first by {first}; {}\n", values_are(count), HELP[kind])
    });
    let unused = report.lossy.iter().filter(|it| !it.unused.is_empty()).map(|it| {
        let shown: Vec<_> = it.unused.iter().take(UNUSED_LISTED).map(|name| format!("`{}`", Clean(name))).collect();
        let rest = it.unused.len().saturating_sub(UNUSED_LISTED);
        let rest = if rest > 0 { format!(" and {rest} more, which --report lists") } else { String::new() };
        let statement = &it.statement;
        format!("warning: {file}: `{statement}` does not apply tensors without a layer: {}{rest}\n", shown.join(", "))
    });
    warnings.chain(unused).collect()
}

/// A line for each set: its name, what it does, and the set that does the opposite.
fn listed_sets() -> String {
    let mut columns = Columns::new([Side::Left, Side::Left]);
    for set in library::SETS {
        let opposite = set.inverse.map(|inverse| format!("; {inverse} does the opposite")).unwrap_or_default();
        columns.push(Style::new(), [set.name.to_owned(), format!("{}{opposite}", set.description())]);
    }
    columns.print()
}

/// The text of a set or of all, each under its name, after the definitions that they share.
fn source(name: &str) -> String {
    let sets = library::SETS.iter().filter(|set| [ALL, set.name].contains(&name));
    let sets = sets.map(|set| format!("## {}\n{}", set.name, set.source));
    format!("{}\n{}", library::COMMON, sets.collect::<Vec<_>>().join("\n"))
}

fn left(model: &Model) -> String {
    let names = model.outputs().map(|end| {
        let tensor = model.graph().producer(end.id().input(0)).and_then(|source| model.graph().output(source));
        let name = tensor.and_then(|tensor| tensor.names().into_iter().next());
        format!("`{}`", name.unwrap_or_else(|| end.name().to_owned()))
    });
    format!("; the outputs are {}", names.collect::<Vec<_>>().join(", "))
}

/// Counts the applied rules by name: ` (fuse-gelu ×2, fuse-sdpa ×4)`; empty for one rule.
fn operations(report: &Report) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for site in &report.applied {
        *counts.entry(&*site.rule).or_default() += 1;
    }
    if counts.len() < 2 {
        return String::new();
    }
    let counts: Vec<_> = counts.iter().map(|(rule, count)| format!("{} ×{count}", Clean(rule))).collect();
    format!(" ({})", counts.join(", "))
}

fn summary(script: &Script, applied: usize, skipped: usize) -> String {
    let edits = match script.edits() {
        0 => None,
        1 => Some("1 statement applied".to_owned()),
        count => Some(format!("{count} statements applied")),
    };
    let rules = match applied {
        0 if script.rules().is_empty() => None,
        0 => Some("no rule applied".to_owned()),
        1 => Some("1 rule applied".to_owned()),
        count => Some(format!("rules applied {count} times")),
    };
    let skipped = match skipped {
        0 => None,
        1 => Some("1 place skipped".to_owned()),
        count => Some(format!("{count} places skipped")),
    };
    edits.into_iter().chain(rules).chain(skipped).collect::<Vec<_>>().join(", ")
}

fn explain(script: &Script, model: &Model, layer: &str) -> Result<String, Failure> {
    let mut texts = Vec::new();
    for rule in script.rules() {
        let explanation = model
            .explain(rule, Some(layer))
            .map_err(|error| input::with_nearest(Failure::new(error.to_string()), model, layer))?;
        texts.push(format!("{explanation}\n"));
    }
    Ok(texts.join("\n"))
}
