//! `typelift promote`: prints the common type and shape of operands, without a model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde::Serialize;
use typelift::promote::{
    Category, Dim, ElementType, FlagSpelling, Operand, Operation, Promotion, Refusal, RuleSet, openvino,
};
use typelift::shape::Shape;

use crate::columns::count;
use crate::document::Versioned;
use crate::failure::Failure;
use crate::input::element_type;
use crate::render::{self, Remark};
use crate::status::Status;
use crate::terminal::{Format, Terminal};
use crate::texts;

/// Print the common type of operands
///
/// An operand is a type with a shape: u8[2], i64[] (rank 0), f16[...] (rank unknown), f32[?]. A type alone has
/// dimensions. True, 1, 1.0 and 1j, or the words int, float and complex, are Python numbers; bool is the tensor type.
/// Under jax a star makes an array weakly typed: f32*[2]. Types have the names of the rule set: boolean and f8e4m3
/// under openvino, bool and f8e4m3fn under pytorch and paddle. If every tensor has a shape and the operation is
/// element-wise, the result has a shape too.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift promote i16 u8                              i16
  typelift promote --rules pytorch 'f16[2]' 'f32[]'    f16[2]
  typelift promote --rules pytorch --op div i32 i64    f32
  typelift promote --rules numpy --op result_type i8 u8 f16
  typelift promote --explain u64 i32
  typelift promote --compare f16 i64
  typelift promote --table
  typelift promote - < operands.txt")]
pub(crate) struct Args {
    /// The operands; or - to read operands per line and print the result, or error: CODE, for each
    #[arg(value_name = "OPERAND", num_args = 0.., allow_negative_numbers = true)]
    operands: Vec<String>,
    /// The rule set
    #[arg(long, default_value = "openvino", value_parser = rule_set_names())]
    rules: String,
    /// The operation, if the rule set has several
    #[arg(long, value_name = "NAME", default_value = "add")]
    op: String,
    /// Explain the steps that give the type
    #[arg(long)]
    explain: bool,
    /// Print the whole matrix, with left operands as rows and right operands as columns; - means refused
    #[arg(long, conflicts_with_all = ["operands", "explain"])]
    table: bool,
    /// Print the answers of all rule sets; without operands, every pair on which they disagree
    #[arg(long, conflicts_with_all = ["rules", "explain", "table"])]
    compare: bool,
    /// Output format
    #[arg(long, default_value = "text")]
    format: Format,
    #[command(flatten)]
    settings: Settings,
    /// The spelling of settings in suggestions.
    #[arg(skip)]
    flags: FlagSpelling,
}

fn rule_set_names() -> clap::builder::PossibleValuesParser {
    RuleSet::all().map(|rules| rules.name()).collect::<Vec<_>>().into()
}

/// The attributes of ConvertPromoteTypes, for commands without a file that has them.
#[derive(clap::Args)]
pub(crate) struct OpenVinoArgs {
    /// openvino: also promote to types that cannot hold every value
    #[arg(long)]
    promote_unsafe: bool,
    /// openvino: let the type of an input with dimensions win over that of a scalar
    #[arg(long)]
    pytorch_scalar_promotion: bool,
    /// openvino: the common type of u64 and a signed integer
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = element_type)]
    u64_integer_promotion_target: ElementType,
}

impl OpenVinoArgs {
    pub(crate) fn attributes(&self) -> openvino::Options {
        openvino::Options {
            promote_unsafe: self.promote_unsafe,
            pytorch_scalar_promotion: self.pytorch_scalar_promotion,
            u64_integer_promotion_target: self.u64_integer_promotion_target,
        }
    }
}

/// The given settings of any rule set: options that the registry of rule sets declares.
struct Settings(Vec<(&'static str, String)>);

impl clap::Args for Settings {
    fn augment_args(command: Command) -> Command {
        RuleSet::all().flat_map(|rules| rules.settings()).fold(command, |command, setting| {
            if command.get_arguments().any(|arg| arg.get_id() == setting.name) {
                return command;
            }
            let arg = Arg::new(setting.name).long(setting.name).help(setting.help);
            command.arg(match setting.value {
                Some(value) => arg.value_name(value),
                None => arg.action(ArgAction::SetTrue),
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given: Vec<(&str, String)> = Vec::new();
        for setting in RuleSet::all().flat_map(|rules| rules.settings()) {
            let value = match setting.value {
                Some(_) => matches.get_one::<String>(setting.name).cloned(),
                None => matches.get_flag(setting.name).then(String::new),
            };
            given.extend(
                value
                    .filter(|_| given.iter().all(|(name, _)| *name != setting.name))
                    .map(|value| (setting.name, value)),
            );
        }
        Ok(Self(given))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Settings {
    /// Applies its settings to a rule set.
    ///
    /// # Errors
    /// A value that a setting does not accept; with `strictly` also a setting that the rule set lacks.
    fn apply(&self, rules: &mut RuleSet, strictly: bool) -> Result<(), Failure> {
        for (name, value) in &self.0 {
            let Some(setting) = rules.settings().iter().find(|setting| setting.name == *name) else {
                if strictly {
                    return Err(Failure::new(format!("the {} rules have no setting `{name}`", rules.name())));
                }
                continue;
            };
            if !rules.set(name, value) {
                return Err(Failure::new(format!("the setting `{name}` does not take `{value}`")).help(setting.help));
            }
        }
        Ok(())
    }
}

/// Operands as they were written.
struct Question {
    operands: Vec<Operand>,
    /// The shapes of the tensors; `None` if one has none.
    shapes: Option<Vec<Shape>>,
}

/// Answer of a rule set to a question.
struct Answer {
    promotion: Promotion,
    shape: Option<Shape>,
}

/// Describes the number of operands of an operation.
fn arity(operation: &Operation) -> String {
    let Operation { name, least, most, .. } = operation;
    match (least, most) {
        (least, &usize::MAX) => format!("`{name}` takes {least} or more"),
        (least, most) if least == most => format!("`{name}` takes {least}; `result_type` takes any number"),
        (least, most) => format!("`{name}` takes {least} to {most}"),
    }
}

/// Reason why a question has no answer.
enum NoAnswer {
    Refused(Refusal),
    /// Shapes that do not broadcast.
    Shapes(String),
}

impl NoAnswer {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.code(),
            Self::Shapes(_) => "shapes",
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.to_string(),
            Self::Shapes(message) => message.clone(),
        }
    }

    fn help(&self, rules: &RuleSet, args: &Args, question: &Question) -> Option<String> {
        let (operation, flags) = (args.op.as_str(), args.flags);
        match self {
            Self::Shapes(_) => Some("give shapes whose dims are equal or 1, axis by axis from the last".to_owned()),
            Self::Refused(refusal) if refusal.code() == "arity" => rules.operation(operation).map(arity),
            Self::Refused(_) => {
                let suggestion = rules.suggestion(operation, &question.operands)?;
                Some(rules.describe_suggestion(suggestion, flags).to_string())
            }
        }
    }
}

impl Question {
    fn read(rules: &RuleSet, texts: &[&str]) -> Result<Self, Failure> {
        let operands = texts.iter().map(|text| operand(rules, text)).collect::<Result<_, _>>()?;
        Ok(Self { operands, shapes: Self::shapes(texts) })
    }

    fn shapes(texts: &[&str]) -> Option<Vec<Shape>> {
        let tensors = texts.iter().filter(|text| Operand::from_number(text).is_none());
        tensors.map(|text| text.split_once('[')?.1.strip_suffix(']')?.parse().ok()).collect()
    }

    fn ask(&self, rules: &RuleSet, operation: &str, steps: &mut Vec<String>) -> Result<Answer, NoAnswer> {
        let promotion = rules
            .trace(operation, &self.operands, &mut |step| steps.push(rules.describe(step).to_string()))
            .map_err(NoAnswer::Refused)?;
        let shapes = self.shapes.as_ref().filter(|shapes| !shapes.is_empty());
        let dims: Option<Vec<&[Dim]>> = shapes.and_then(|shapes| shapes.iter().map(Shape::dims).collect());
        let shape = match dims {
            // An unknown rank leaves the rank of an element-wise result open.
            None => shapes
                .and_then(|_| rules.broadcast::<Shape>(operation, &self.operands, [].into_iter()))
                .map(|_| Shape::dynamic()),
            Some(dims) => match rules.broadcast::<Shape>(operation, &self.operands, dims.into_iter()) {
                Some(shape) => Some(shape.map_err(|clash| NoAnswer::Shapes(clash.to_string()))?),
                None => None,
            },
        };
        Ok(Answer { promotion, shape })
    }
}

impl Answer {
    fn text(&self, rules: &RuleSet) -> String {
        let star = if self.promotion.is_weak { "*" } else { "" };
        let shape = self.shape.as_ref().map(Shape::to_string).unwrap_or_default();
        format!("{}{star}{shape}", rules.type_name(self.promotion.result))
    }
}

/// An answer as JSON.
#[derive(Serialize)]
struct Record<'a> {
    rules: &'a str,
    op: &'a str,
    operands: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    element_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_type: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    weak: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Shape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<String>,
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    terminal.answers_in_json = args.format == Format::Json;
    let rules = args.rule_set()?;
    let operands: Vec<_> = args.operands.iter().map(String::as_str).collect();
    match operands.as_slice() {
        [] if args.compare => print_matrices(args, &disagreements(args)?, terminal),
        [] if args.table => print_matrices(args, &table(&rules, &args.op), terminal),
        [] => {
            Err(Failure::new("operands are needed").help("such as `typelift promote i16 u8`, or --table, or --compare"))
        }
        operands if args.compare => compare(args, operands, terminal),
        ["-"] => lines(args, &rules, terminal),
        operands => one(args, &rules, operands, terminal),
    }
}

pub(crate) fn json(
    operands: &[&str],
    rules: &str,
    operation: &str,
    settings: &[(String, String)],
) -> Result<String, Failure> {
    let args = Args::asked(rules, operation, settings)?;
    let rules = args.rule_set()?;
    let question = args.question(&rules, operands)?;
    crate::terminal::json(&args.record(&rules, operands, &question))
}

/// A table of types: its title, and its rows.
pub(crate) type Table = (String, Vec<Vec<String>>);

pub(crate) fn tables(rules: &str, operation: &str, settings: &[(String, String)]) -> Result<Vec<Table>, Failure> {
    let rules = Args::asked(rules, operation, settings)?.rule_set()?;
    Ok(table(&rules, operation).into_iter().map(|matrix| (matrix.title, matrix.rows)).collect())
}

impl Args {
    fn asked(rules: &str, operation: &str, settings: &[(String, String)]) -> Result<Self, Failure> {
        if RuleSet::from_name(rules).is_none() {
            let known = RuleSet::all().map(|rules| rules.name()).collect::<Vec<_>>().join(", ");
            return Err(Failure::new(format!("`{rules}` is not a rule set")).help(format!("the rule sets are {known}")));
        }
        let known = || RuleSet::all().flat_map(|rules| rules.settings()).map(|setting| setting.name);
        let named = settings.iter().map(|(name, value)| match known().find(|known| known == name) {
            Some(name) => Ok((name, value.clone())),
            None => Err(Failure::new(format!("no rules have a setting `{name}`"))),
        });
        Ok(Self {
            operands: Vec::new(),
            rules: rules.to_owned(),
            op: operation.to_owned(),
            explain: true,
            table: false,
            compare: false,
            format: Format::Json,
            settings: Settings(named.collect::<Result<_, _>>()?),
            flags: FlagSpelling::Argument,
        })
    }

    /// The rule set with its settings. It has the operation, unless all are compared.
    fn rule_set(&self) -> Result<RuleSet, Failure> {
        let mut rules = RuleSet::from_name(&self.rules).unwrap_or(RuleSet::OpenVino(openvino::Options::default()));
        if !self.compare {
            self.settings.apply(&mut rules, true)?;
            if rules.operation(&self.op).is_none() {
                return Err(unknown_operation(&rules, &self.op));
            }
        }
        Ok(rules)
    }

    /// Parses the operands and checks their number.
    fn question(&self, rules: &RuleSet, texts: &[&str]) -> Result<Question, Failure> {
        let question = Question::read(rules, texts)?;
        match rules.operation(&self.op).filter(|row| !row.takes(texts.len())).map(arity) {
            Some(takes) => {
                let operands = count(texts.len(), "operand");
                let are = if texts.len() == 1 { "is" } else { "are" };
                Err(Failure::new(format!("there {are} {operands}, and {takes}")))
            }
            None => Ok(question),
        }
    }

    fn all(&self) -> Result<Vec<(&'static str, RuleSet)>, Failure> {
        RuleSet::variants()
            .map(|(words, mut rules)| self.settings.apply(&mut rules, false).map(|()| (words, rules)))
            .collect()
    }

    fn record<'a>(&'a self, rules: &'a RuleSet, texts: &[&'a str], question: &Question) -> Record<'a> {
        let mut steps = Vec::new();
        let answer = question.ask(rules, &self.op, &mut steps);
        let no_answer = answer.as_ref().err();
        Record {
            rules: rules.name(),
            op: &self.op,
            operands: texts.to_vec(),
            element_type: answer.as_ref().ok().map(|answer| rules.type_name(answer.promotion.result)),
            common_type: answer.as_ref().ok().map(|answer| rules.type_name(answer.promotion.common)),
            weak: answer.as_ref().is_ok_and(|answer| answer.promotion.is_weak),
            code: no_answer.map(NoAnswer::code),
            message: no_answer.map(NoAnswer::message),
            help: no_answer.and_then(|no_answer| no_answer.help(rules, self, question)),
            shape: answer.ok().and_then(|answer| answer.shape),
            steps: if self.explain { steps } else { Vec::new() },
        }
    }
}

fn unknown_operation(rules: &RuleSet, name: &str) -> Failure {
    let failure = Failure::new(format!("{} has no operation `{name}`", rules.name()));
    let names = || rules.operations().map(|operation| operation.name);
    let nearest = typelift::near(name, names());
    let all = names().collect::<Vec<_>>().join(", ");
    failure.help(nearest.map_or(String::new(), |near| format!("did you mean `{near}`? ")) + &format!("it has {all}"))
}

/// Prints the type alone and, if requested, its derivation.
fn one(args: &Args, rules: &RuleSet, texts: &[&str], terminal: &mut Terminal) -> Result<Status, Failure> {
    let question = args.question(rules, texts)?;
    if args.format == Format::Json {
        let record = args.record(rules, texts, &question);
        terminal.print_document(&record)?;
        return Ok(if record.code.is_some() { Status::Faulty } else { Status::Done });
    }
    let mut steps = Vec::new();
    let answer = question.ask(rules, &args.op, &mut steps);
    if !args.explain {
        steps.clear();
    }
    match answer {
        Ok(answer) => {
            let mut text = answer.text(rules) + "\n";
            for step in steps {
                let _ = writeln!(text, "  {step}");
            }
            let Promotion { common, result, .. } = answer.promotion;
            if args.explain && common != result {
                let [common, result] = [common, result].map(|ty| rules.type_name(ty));
                let _ = writeln!(text, "  computed in {common}, the result is {result}");
            }
            terminal.print(&text)?;
            Ok(Status::Done)
        }
        Err(no_answer) => {
            let notes = steps.into_iter().map(Remark::Note);
            let help = no_answer.help(rules, args, &question).map(Remark::Help);
            terminal.say(&render::error(Some(no_answer.code()), &no_answer.message(), notes.chain(help)));
            Ok(Status::Faulty)
        }
    }
}

fn operand(rules: &RuleSet, text: &str) -> Result<Operand, Failure> {
    let unknown = |error: String| {
        if text == "+" || !text.contains('[') && text.contains(',') {
            let help = "operands are separated by spaces, as in `typelift promote f32 f16`";
            return Failure::new(format!("`{text}`: {error}")).help(help);
        }
        let name = text.split('[').next().unwrap_or_default();
        let failure = Failure::new(format!("`{text}`: {error}"));
        // The name may belong to another rule set, or be similar to one of this.
        let elsewhere = RuleSet::all().find_map(|other| other.type_from_name(name)).map(|ty| rules.type_name(ty));
        let known = elsewhere.filter(|name| rules.type_from_name(name).is_some());
        let near = || typelift::near(name, rules.types().map(|ty| rules.type_name(ty)));
        match known.map(str::to_owned).or_else(near) {
            Some(near) if near != name => failure.help(format!("did you mean `{near}`?")),
            _ => failure,
        }
    };
    let respelled = || {
        let (name, shape) = text.split_at(text.find(['[', '*']).unwrap_or(text.len()));
        let name = rules.type_name(typelift::host::named_element_type(name)?);
        rules.operand(&format!("{name}{shape}")).ok()
    };
    rules.operand(text).or_else(|error| respelled().ok_or_else(|| unknown(error.to_string())))
}

/// Limit in bytes on questions whose answers are one document.
const MOST_AT_ONCE: usize = 64 << 20;

/// Prints a result for each line of operands on standard input.
fn lines(args: &Args, rules: &RuleSet, terminal: &mut Terminal) -> Result<Status, Failure> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    for line in texts::lines(std::io::stdin().lock()) {
        let line = line?;
        if args.format == Format::Json {
            bytes += line.len();
            if bytes > MOST_AT_ONCE {
                let failure = Failure::new(format!("standard input has over {} MB", MOST_AT_ONCE >> 20));
                return Err(failure.help("--format text answers line by line"));
            }
            lines.push(line);
            continue;
        }
        let words: Vec<_> = line.split_whitespace().collect();
        let text = match words.first() {
            None => String::new(),
            Some(word) if word.starts_with('#') => line.clone(),
            _ => match Question::read(rules, &words) {
                Err(_) => "error: not-an-operand".to_owned(),
                Ok(question) => match question.ask(rules, &args.op, &mut Vec::new()) {
                    Ok(answer) => answer.text(rules),
                    Err(no_answer) => format!("error: {}", no_answer.code()),
                },
            },
        };
        terminal.print(&(text + "\n"))?;
    }
    if args.format == Format::Json {
        let questions = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let asked = questions.filter(|words| words.first().is_some_and(|word| !word.starts_with('#')));
        let records: Vec<_> = asked
            .map(|words| match Question::read(rules, &words) {
                Ok(question) => args.record(rules, &words, &question),
                Err(_) => Record {
                    code: Some("not-an-operand"),
                    element_type: None,
                    ..args.record(rules, &words, &Question { operands: Vec::new(), shapes: None })
                },
            })
            .collect();
        terminal.print_json(&records.iter().map(Versioned::new).collect::<Vec<_>>())?;
    }
    Ok(Status::Done)
}

fn operands_of(rules: &RuleSet, category: Category) -> Vec<Operand> {
    match category {
        Category::Number => {
            ["True", "int", "float", "complex"].iter().filter_map(|word| rules.operand(word).ok()).collect()
        }
        _ => rules.types().map(|element_type| Operand::new(element_type, category)).collect(),
    }
}

fn describe(category: Category) -> &'static str {
    match category {
        Category::Dimensioned => "tensor",
        Category::ZeroDim => "tensor of rank 0",
        Category::Number => "number",
        Category::UnknownRank => "tensor of unknown rank",
        Category::Weak => "weakly typed array",
    }
}

fn name_of(rules: &RuleSet, operand: Operand) -> &'static str {
    operand.number_name().unwrap_or_else(|| rules.type_name(operand.element_type))
}

/// Answers as rows and columns, both headed by their operands; `-` means refused.
#[derive(Serialize)]
struct Matrix {
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(serialize_with = "as_objects")]
    rows: Vec<Vec<String>>,
}

/// Writes each row as an object: its operands, and the answers by the heads of their columns.
fn as_objects<S: serde::Serializer>(rows: &[Vec<String>], serializer: S) -> Result<S::Ok, S::Error> {
    let (top, rows) = rows.split_first().map_or((&[][..], rows), |(top, rows)| (top.as_slice(), rows));
    serializer.collect_seq(rows.iter().map(|row| {
        let heads = top.iter().take_while(|word| word.is_empty()).count();
        let (operands, cells) = row.split_at(heads.min(row.len()));
        let answer = |cell: &str| (cell != "-").then(|| cell.to_owned());
        let answers = top.iter().skip(heads).zip(cells);
        Row { operands, answers: answers.map(|(word, cell)| (word.as_str(), answer(cell))).collect() }
    }))
}

#[derive(Serialize)]
struct Row<'a> {
    operands: &'a [String],
    answers: BTreeMap<&'a str, Option<String>>,
}

fn print_matrices(args: &Args, matrices: &[Matrix], terminal: &mut Terminal) -> Result<Status, Failure> {
    if args.format == Format::Json {
        return terminal.print_json(&matrices.iter().map(Versioned::new).collect::<Vec<_>>()).map(|()| Status::Done);
    }
    let text = |matrix: &Matrix| {
        let break_after = if matrix.title.is_empty() { "" } else { "\n" };
        format!("{}{break_after}{}", matrix.title, columns_of(&matrix.rows))
    };
    terminal.print(&matrices.iter().map(text).collect::<Vec<_>>().join("\n")).map(|()| Status::Done)
}

fn table(rules: &RuleSet, operation: &str) -> Vec<Matrix> {
    let categories = rules.categories();
    if rules.operation(operation).is_some_and(|row| row.most == 1) {
        let of = |&category: &Category| {
            let answers = operands_of(rules, category).into_iter().filter_map(|operand| {
                let answer = rules.promote(operation, &[operand]).ok()?;
                Some(vec![name_of(rules, operand).to_owned(), rules.type_name(answer.result).to_owned()])
            });
            let top = vec![String::new(), "result".to_owned()];
            let rows = std::iter::once(top).chain(answers).collect();
            Matrix { title: format!("{operation} of a {}", describe(category)), rows }
        };
        return categories.iter().map(of).filter(|matrix| matrix.rows.len() > 1).collect();
    }
    let pairs = categories.iter().flat_map(|&left| categories.iter().map(move |&right| (left, right)));
    let of = |(left, right)| {
        let title = format!("{} with {}", describe(left), describe(right));
        let title = if categories.len() > 1 { title } else { String::new() };
        Matrix { title, rows: matrix(rules, operation, left, right) }
    };
    pairs.map(of).filter(|matrix| matrix.rows.len() > 1).collect()
}

fn matrix(rules: &RuleSet, operation: &str, left: Category, right: Category) -> Vec<Vec<String>> {
    let cell = |a, b| match rules.promote(operation, &[a, b]) {
        Ok(promotion) => format!("{}{}", rules.type_name(promotion.result), if promotion.is_weak { "*" } else { "" }),
        Err(_) => "-".to_owned(),
    };
    let (lefts, rights) = (operands_of(rules, left), operands_of(rules, right));
    let answers = |a, b| rules.promote(operation, &[a, b]).is_ok();
    // Types without any answer are omitted.
    let rows = lefts.iter().copied().filter(|&a| rights.iter().any(|&b| answers(a, b)));
    let columns: Vec<_> = rights.iter().copied().filter(|&b| lefts.iter().any(|&a| answers(a, b))).collect();
    let mut grid = vec![vec![String::new()]];
    grid[0].extend(columns.iter().map(|&column| name_of(rules, column).to_owned()));
    for row in rows {
        let cells = columns.iter().map(|&column| cell(row, column));
        grid.push(std::iter::once(name_of(rules, row).to_owned()).chain(cells).collect());
    }
    grid
}

/// Aligns cells in columns.
fn columns_of(grid: &[Vec<String>]) -> String {
    let width = |column: usize| grid.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
    let widths: Vec<_> = (0..grid.first().map_or(0, Vec::len)).map(width).collect();
    let mut out = String::new();
    for row in grid {
        let line: String = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Prints the answers of all rule sets to one question.
fn compare(args: &Args, texts: &[&str], terminal: &mut Terminal) -> Result<Status, Failure> {
    let all = args.all()?;
    // Rule sets have their own names of types; the first set that has the name decides.
    let read = |text: &&str| match all.iter().find_map(|(_, rules)| rules.operand(text).ok()) {
        Some(operand) => Ok(operand),
        None => operand(&RuleSet::OpenVino(openvino::Options::default()), text),
    };
    let operands = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let question = Question { operands, shapes: Question::shapes(texts) };
    if args.format == Format::Json {
        let records: Vec<_> =
            all.iter().map(|(words, rules)| Record { rules: words, ..args.record(rules, texts, &question) }).collect();
        return terminal.print_json(&records.iter().map(Versioned::new).collect::<Vec<_>>()).map(|()| Status::Done);
    }
    let rows = all.iter().map(|(words, rules)| {
        let has = |operand: &Operand| operand.is_number() || rules.types().any(|ty| ty == operand.element_type);
        let answer = if !question.operands.iter().all(has) {
            "does not have these types".to_owned()
        } else if rules.operation(&args.op).is_none() {
            "has no such operation".to_owned()
        } else {
            let answer = question.ask(rules, &args.op, &mut Vec::new());
            answer.map_or_else(|no_answer| format!("refused: {}", no_answer.message()), |answer| answer.text(rules))
        };
        vec![(*words).to_owned(), answer]
    });
    terminal.print(&columns_of(&rows.collect::<Vec<_>>()))?;
    Ok(Status::Done)
}

/// `-` means refused. The modes of JAX are left out: strict promotion refuses every pair, and without 64-bit types
/// every pair of them differs. NumPy 1 may lack a type.
fn disagreements(args: &Args) -> Result<Vec<Matrix>, Failure> {
    let mut all = args.all()?;
    all.retain(|(_, rules)| !matches!(rules, RuleSet::Jax(options) if options.strict || options.no_x64));
    let takes = |rules: &RuleSet, ty| rules.promote(&args.op, &[Operand::dimensioned(ty); 2]).is_ok();
    let is_common =
        |&ty: &ElementType| all.iter().all(|(_, rules)| takes(rules, ty) || matches!(rules, RuleSet::NumPy1(_)));
    let types: Vec<_> = ElementType::all().filter(is_common).collect();
    let mut out = Vec::new();
    for right in [Category::Dimensioned, Category::ZeroDim] {
        let header = ["", ""].into_iter().chain(all.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
        let mut grid: Vec<Vec<String>> = vec![header];
        for (at, &a) in types.iter().enumerate() {
            // Tensors of one category give the same result in either order.
            let first = if right == Category::Dimensioned { at } else { 0 };
            for &b in types.get(first..).unwrap_or_default() {
                let operands = [Operand::dimensioned(a), Operand::new(b, right)];
                let answer =
                    |rules: &RuleSet| rules.promote(&args.op, &operands).map_or("-", |found| found.result.name());
                let cells: Vec<_> = all.iter().map(|(_, rules)| answer(rules)).collect();
                let has = |rules: &RuleSet, ty| ty == ElementType::Dynamic || rules.types().any(|known| known == ty);
                let mut asked = all.iter().zip(&cells).filter(|((_, rules), _)| has(rules, a) && has(rules, b));
                if asked.any(|(_, cell)| *cell != cells[0]) {
                    grid.push([a.name(), b.name()].into_iter().chain(cells).map(str::to_owned).collect());
                }
            }
        }
        let title = format!("{} with {}", describe(Category::Dimensioned), describe(right));
        out.push(Matrix { title, rows: grid });
    }
    Ok(out)
}
