//! `typelift promote`: prints the common type and shape of operands, without a model.

use std::collections::BTreeMap;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde::Serialize;
use typelift::findings::shell_word;
use typelift::promote::{
    Category, Clash, Dim, ElementType, FlagSpelling, Operand, Operation, Promotion, RuleSet, openvino,
};
use typelift::shape::Shape;

use crate::columns::{Columns, PLAIN, Side, count};
use crate::document::Versioned;
use crate::failure::Failure;
use crate::input::element_type;
use crate::render::{self, Remark};
use crate::status::Status;
use crate::terminal::{Format, Terminal};
use crate::texts;

/// Packages with rules, by the names that they have in a program.
const MODULES: [(&[&str], &str); 4] =
    [(&["torch"], "pytorch"), (&["np", "numpy"], "numpy"), (&["jax", "jnp"], "jax"), (&["paddle"], "paddle")];

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
        let given = RuleSet::all().flat_map(|rules| rules.settings()).filter_map(|setting| {
            let value = match setting.value {
                Some(_) => matches.get_one::<String>(setting.name).cloned(),
                None => matches.get_flag(setting.name).then(String::new),
            };
            Some((setting.name, value?))
        });
        Ok(Self(given.collect()))
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

impl Question {
    fn read(rules: &RuleSet, texts: &[&str]) -> Result<Self, Failure> {
        let operands = texts.iter().map(|text| operand(rules, text)).collect::<Result<_, _>>()?;
        Ok(Self { operands, shapes: Self::shapes(texts) })
    }

    fn shapes(texts: &[&str]) -> Option<Vec<Shape>> {
        let tensors = texts.iter().filter(|text| Operand::from_number(text).is_none());
        tensors.map(|text| text.split_once('[')?.1.strip_suffix(']')?.parse().ok()).collect()
    }

    /// The shape of the result, if the operation is element-wise and every tensor has a shape.
    fn shape(&self, rules: &RuleSet, operation: &str) -> Result<Option<Shape>, Clash> {
        let Some(shapes) = self.shapes.as_ref().filter(|shapes| !shapes.is_empty()) else { return Ok(None) };
        let dims: Option<Vec<&[Dim]>> = shapes.iter().map(Shape::dims).collect();
        // An unknown rank leaves the rank of the result open.
        let is_open = dims.is_none();
        let shape = rules.broadcast::<Shape>(operation, &self.operands, dims.unwrap_or_default().into_iter());
        shape.map(|shape| if is_open { Ok(Shape::dynamic()) } else { shape }).transpose()
    }
}

fn arity(operation: &Operation) -> String {
    let Operation { name, least, most, .. } = operation;
    match (least, most) {
        (least, &usize::MAX) => format!("`{name}` takes {least} or more"),
        (least, most) if least == most => format!("`{name}` takes {least}; `result_type` takes any number"),
        (least, most) => format!("`{name}` takes {least} to {most}"),
    }
}

/// Answer of a rule set to a question, or the code of its refusal.
#[derive(Default, Serialize)]
struct Answer<'a> {
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

impl Answer<'_> {
    /// Formats the type and the shape; `None` for a refusal.
    fn text(&self) -> Option<String> {
        let star = if self.weak { "*" } else { "" };
        let shape = self.shape.as_ref().map(Shape::to_string).unwrap_or_default();
        self.element_type.map(|ty| format!("{ty}{star}{shape}"))
    }
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
    crate::terminal::json(&args.answer(&rules, operands, &question, true))
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
        let named = settings.iter().map(|(name, value)| {
            let known = RuleSet::all().flat_map(|rules| rules.settings()).find(|setting| setting.name == name);
            let known = known.ok_or_else(|| Failure::new(format!("no rules have a setting `{name}`")))?;
            Ok::<_, Failure>((known.name, value.clone()))
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

    /// The command with the rules of the package whose types were named, such as `torch.float16`.
    fn of_module(&self, texts: &[&str]) -> Option<String> {
        let module =
            texts.iter().find_map(|text| Some(text.split_once('.')?.0)).filter(|_| self.rules == "openvino")?;
        let (_, rules) = MODULES.iter().find(|(names, _)| names.contains(&module))?;
        let operands = texts.iter().map(|text| shell_word(text)).collect::<Vec<_>>().join(" ");
        Some(format!("these are not the rules of {module}: `typelift promote --rules {rules} {operands}` has those"))
    }

    /// Parses the operands and checks their number.
    fn question(&self, rules: &RuleSet, texts: &[&str]) -> Result<Question, Failure> {
        let question = Question::read(rules, texts)?;
        match rules.operation(&self.op).filter(|row| !row.takes(texts.len())).map(arity) {
            Some(takes) => {
                let operands = count(texts.len(), "operand");
                let are = if texts.len() == 1 { "is" } else { "are" };
                let failure = Failure::new(format!("there {are} {operands}, and {takes}"));
                let many = texts.len() > 2 && rules.operation("result_type").is_some();
                Err(if many { failure.help("write `--op result_type`") } else { failure })
            }
            None => Ok(question),
        }
    }

    fn all(&self) -> Result<Vec<(&'static str, RuleSet)>, Failure> {
        RuleSet::variants()
            .map(|(words, mut rules)| self.settings.apply(&mut rules, false).map(|()| (words, rules)))
            .collect()
    }

    /// Asks a rule set. The help for a refusal takes a search.
    fn answer<'a>(&'a self, rules: &'a RuleSet, texts: &[&'a str], question: &Question, with_help: bool) -> Answer<'a> {
        let (op, operands, mut steps) = (self.op.as_str(), texts.to_vec(), Vec::new());
        let found = rules.trace(op, &question.operands, &mut |step| steps.push(rules.describe(step).to_string()));
        if !self.explain {
            steps.clear();
        }
        let mut answer = Answer { rules: rules.name(), op, operands, steps, ..Answer::default() };
        match (found, question.shape(rules, op)) {
            (Err(refusal), _) => {
                answer.code = Some(refusal.code());
                answer.message = Some(refusal.to_string());
                if refusal.code() == "arity" {
                    answer.help = rules.operation(op).map(arity);
                } else if with_help {
                    let suggestion = rules.suggestion(op, &question.operands);
                    answer.help = suggestion.map(|it| rules.describe_suggestion(it, self.flags).to_string());
                }
            }
            (Ok(_), Err(clash)) => {
                answer.code = Some("shapes");
                answer.message = Some(clash.to_string());
                answer.help = Some("give shapes whose dims are equal or 1, axis by axis from the last".to_owned());
            }
            (Ok(Promotion { result, common, is_weak, .. }), Ok(shape)) => {
                [answer.element_type, answer.common_type] = [result, common].map(|ty| Some(rules.type_name(ty)));
                (answer.weak, answer.shape) = (is_weak, shape);
            }
        }
        answer
    }

    fn answer_to_line<'a>(&'a self, rules: &'a RuleSet, line: &'a str, with_help: bool) -> Answer<'a> {
        let words: Vec<_> = line.split_whitespace().collect();
        match Question::read(rules, &words) {
            Ok(question) => self.answer(rules, &words, &question, with_help),
            Err(_) => {
                let nothing = Question { operands: Vec::new(), shapes: None };
                Answer { code: Some("not-an-operand"), ..self.answer(rules, &words, &nothing, with_help) }
            }
        }
    }
}

fn unknown_operation(rules: &RuleSet, name: &str) -> Failure {
    let failure = Failure::new(format!("{} has no operation `{name}`", rules.name()));
    let names: Vec<_> = rules.operations().map(|operation| operation.name).collect();
    let is_word = name.contains(char::is_alphabetic);
    let nearest = typelift::near(&name.to_lowercase(), names.iter().copied()).filter(|_| is_word);
    let nearest = nearest.map_or(String::new(), |near| format!("did you mean `{near}`? "));
    failure.help(format!("{nearest}it has {}", names.join(", ")))
}

/// Prints the type alone and, if requested, its derivation.
fn one(args: &Args, rules: &RuleSet, texts: &[&str], terminal: &mut Terminal) -> Result<Status, Failure> {
    let answer = args.answer(rules, texts, &args.question(rules, texts)?, true);
    let status = if answer.code.is_some() { Status::Faulty } else { Status::Done };
    if args.format == Format::Json {
        terminal.print_document(&answer)?;
    } else if let Some(text) = answer.text() {
        let mut lines = vec![text];
        lines.extend(answer.steps.iter().map(|step| format!("  {step}")));
        if let (Some(common), Some(result)) = (answer.common_type, answer.element_type)
            && args.explain
            && common != result
        {
            lines.push(format!("  computed in {common}, the result is {result}"));
        }
        terminal.print(&(lines.join("\n") + "\n"))?;
    } else {
        let help = args.of_module(texts).or(answer.help);
        let remarks = answer.steps.into_iter().map(Remark::Note).chain(help.map(Remark::Help));
        terminal.say(&render::error(answer.code, &answer.message.unwrap_or_default(), remarks));
    }
    Ok(status)
}

fn operand(rules: &RuleSet, text: &str) -> Result<Operand, Failure> {
    rules.operand(text).or_else(|error| respelled(rules, text).ok_or_else(|| unknown(rules, text, &error.to_string())))
}

/// Reads an operand whose type is spelled as in another program.
fn respelled(rules: &RuleSet, text: &str) -> Option<Operand> {
    let (name, shape) = text.split_at(text.find(['[', '*']).unwrap_or(text.len()));
    let name = rules.type_name(typelift::host::named_element_type(name)?);
    rules.operand(&format!("{name}{shape}")).ok()
}

fn unknown(rules: &RuleSet, text: &str, error: &str) -> Failure {
    let failure = Failure::new(format!("`{text}`: {error}"));
    let name = text.split('[').next().unwrap_or_default();
    let types: Vec<_> = rules.types().map(|ty| rules.type_name(ty)).collect();
    // The name may belong to another rule set, or be similar to one of this.
    let elsewhere = RuleSet::all().find_map(|other| other.type_from_name(name)).map(|ty| rules.type_name(ty));
    let known = elsewhere.filter(|name| rules.type_from_name(name).is_some()).map(str::to_owned);
    let near = known.or_else(|| typelift::near(name, types.iter().copied())).filter(|near| near != name);
    if let Some(near) = near {
        return failure.did_you_mean(name, &near);
    }
    if rules.type_from_name(name).is_some() {
        return failure;
    }
    let named = typelift::host::named_element_type(name);
    let mut others = RuleSet::all();
    if let Some(other) =
        others.find(|other| other.type_from_name(name).is_some() || other.types().any(|ty| Some(ty) == named))
    {
        return failure.help(format!("the rules of {0} have it: `--rules {0}`", other.name()));
    }
    // `fp8` is several types.
    let (letter, bits) = (name.chars().next().unwrap_or_default(), digits(name));
    let of_width =
        types.iter().filter(|it| !bits.is_empty() && it.starts_with(letter) && digits(it).starts_with(&bits));
    match of_width.map(|ty| format!("`{ty}`")).collect::<Vec<_>>() {
        alike if alike.is_empty() => failure.help(format!("the types are {}", types.join(", "))),
        alike => failure.help(format!("did you mean {}?", alike.join(" or "))),
    }
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// Limit in bytes on questions whose answers are one document.
const MOST_AT_ONCE: usize = 64 << 20;

/// Prints a result for each line of operands on standard input.
fn lines(args: &Args, rules: &RuleSet, terminal: &mut Terminal) -> Result<Status, Failure> {
    let in_json = args.format == Format::Json;
    let (mut asked, mut bytes) = (Vec::new(), 0);
    for line in texts::lines(std::io::stdin().lock()) {
        let line = line?;
        bytes += line.len();
        if in_json && bytes > MOST_AT_ONCE {
            let failure = Failure::new(format!("standard input has over {} MB", MOST_AT_ONCE >> 20));
            return Err(failure.help("--format text answers line by line"));
        }
        let text = match line.split_whitespace().next() {
            None => String::new(),
            Some(word) if word.starts_with('#') => line,
            _ if in_json => {
                asked.push(line);
                continue;
            }
            _ => {
                let answer = args.answer_to_line(rules, &line, false);
                answer.text().unwrap_or_else(|| format!("error: {}", answer.code.unwrap_or_default()))
            }
        };
        if !in_json {
            terminal.print(&(text + "\n"))?;
        }
    }
    if in_json {
        let answers: Vec<_> = asked.iter().map(|line| args.answer_to_line(rules, line, true)).collect();
        terminal.print_json(&answers.iter().map(Versioned::new).collect::<Vec<_>>())?;
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
        let answers = top.iter().skip(heads).zip(cells);
        let answers = answers.map(|(word, cell)| (word.as_str(), Some(cell.as_str()).filter(|cell| *cell != "-")));
        Row { operands, answers: answers.collect() }
    }))
}

#[derive(Serialize)]
struct Row<'a> {
    operands: &'a [String],
    answers: BTreeMap<&'a str, Option<&'a str>>,
}

fn print_matrices(args: &Args, matrices: &[Matrix], terminal: &mut Terminal) -> Result<Status, Failure> {
    if args.format == Format::Json {
        return terminal.print_json(&matrices.iter().map(Versioned::new).collect::<Vec<_>>()).map(|()| Status::Done);
    }
    let texts = matrices.iter().map(|Matrix { title, rows }| {
        let break_after = if title.is_empty() { "" } else { "\n" };
        let mut columns = Columns::new(vec![Side::Left; rows.first().map_or(0, Vec::len)]);
        rows.iter().for_each(|row| columns.push(PLAIN, row.clone()));
        format!("{title}{break_after}{}", columns.print())
    });
    terminal.print(&texts.collect::<Vec<_>>().join("\n")).map(|()| Status::Done)
}

fn table(rules: &RuleSet, operation: &str) -> Vec<Matrix> {
    let categories = rules.categories();
    if rules.operation(operation).is_some_and(|row| row.most == 1) {
        return categories
            .iter()
            .map(|&category: &Category| {
                let answers = operands_of(rules, category).into_iter().filter_map(|operand| {
                    let answer = rules.promote(operation, &[operand]).ok()?;
                    Some(vec![name_of(rules, operand).to_owned(), rules.type_name(answer.result).to_owned()])
                });
                let top = vec![String::new(), "result".to_owned()];
                let rows = std::iter::once(top).chain(answers).collect();
                Matrix { title: format!("{operation} of a {}", describe(category)), rows }
            })
            .filter(|matrix| matrix.rows.len() > 1)
            .collect();
    }
    let pairs = categories.iter().flat_map(|&left| categories.iter().map(move |&right| (left, right)));
    pairs
        .map(|(left, right)| {
            let title = format!("{} with {}", describe(left), describe(right));
            let title = if categories.len() > 1 { title } else { String::new() };
            Matrix { title, rows: matrix(rules, operation, left, right) }
        })
        .filter(|matrix| matrix.rows.len() > 1)
        .collect()
}

fn matrix(rules: &RuleSet, operation: &str, left: Category, right: Category) -> Vec<Vec<String>> {
    let (lefts, rights) = (operands_of(rules, left), operands_of(rules, right));
    let answers = lefts.iter().map(|&a| rights.iter().map(move |&b| rules.promote(operation, &[a, b]).ok()));
    let answers: Vec<Vec<_>> = answers.map(Iterator::collect).collect();
    // Types without any answer are omitted.
    let columns: Vec<_> = (0..rights.len()).filter(|&at| answers.iter().any(|row| row[at].is_some())).collect();
    let heads = columns.iter().map(|&at| name_of(rules, rights[at]).to_owned());
    let mut grid = vec![std::iter::once(String::new()).chain(heads).collect()];
    for (&left, row) in lefts.iter().zip(&answers).filter(|(_, row)| row.iter().any(Option::is_some)) {
        let cells = columns.iter().map(|&at| match &row[at] {
            Some(found) => format!("{}{}", rules.type_name(found.result), if found.is_weak { "*" } else { "" }),
            None => "-".to_owned(),
        });
        grid.push(std::iter::once(name_of(rules, left).to_owned()).chain(cells).collect());
    }
    grid
}

/// Prints the answers of all rule sets to one question.
fn compare(args: &Args, texts: &[&str], terminal: &mut Terminal) -> Result<Status, Failure> {
    let all = args.all()?;
    // Rule sets have their own names of types; the first set that has the name decides.
    let operands = texts.iter().map(|text| match all.iter().find_map(|(_, rules)| rules.operand(text).ok()) {
        Some(operand) => Ok(operand),
        None => operand(&RuleSet::OpenVino(openvino::Options::default()), text),
    });
    let operands = operands.collect::<Result<Vec<_>, _>>()?;
    let question = Question { operands, shapes: Question::shapes(texts) };
    let answers = all
        .iter()
        .map(|(words, rules)| (words, rules, args.answer(rules, texts, &question, args.format == Format::Json)));
    if args.format == Format::Json {
        let answers: Vec<_> = answers.map(|(words, _, answer)| Answer { rules: words, ..answer }).collect();
        return terminal.print_json(&answers.iter().map(Versioned::new).collect::<Vec<_>>()).map(|()| Status::Done);
    }
    let mut columns = Columns::new([Side::Left, Side::Left]);
    for (words, rules, answer) in answers {
        let is_known = |it: &Operand| it.is_number() || rules.types().any(|known| known == it.element_type);
        let text = if !question.operands.iter().all(is_known) {
            "does not have these types".to_owned()
        } else if rules.operation(&args.op).is_none() {
            "has no such operation".to_owned()
        } else {
            answer.text().unwrap_or_else(|| format!("refused: {}", answer.message.unwrap_or_default()))
        };
        columns.push(PLAIN, [(*words).to_owned(), text]);
    }
    terminal.print(&columns.print()).map(|()| Status::Done)
}

/// `-` means refused. The modes of JAX are left out: strict promotion refuses every pair, and without 64-bit types
/// every pair of them differs. NumPy 1 may lack a type.
fn disagreements(args: &Args) -> Result<Vec<Matrix>, Failure> {
    let mut all = args.all()?;
    all.retain(|(_, rules)| !matches!(rules, RuleSet::Jax(options) if options.strict || options.no_x64));
    let types: Vec<_> = ElementType::all()
        .filter(|&ty: &ElementType| {
            let operands = [Operand::dimensioned(ty); 2];
            all.iter().all(|(_, it)| matches!(it, RuleSet::NumPy1(_)) || it.promote(&args.op, &operands).is_ok())
        })
        .collect();
    let mut out = Vec::new();
    for right in [Category::Dimensioned, Category::ZeroDim] {
        let header = ["", ""].into_iter().chain(all.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
        let mut grid: Vec<Vec<String>> = vec![header];
        for (at, &a) in types.iter().enumerate() {
            // Tensors of one category give the same result in either order.
            let first = if right == Category::Dimensioned { at } else { 0 };
            for &b in types.get(first..).unwrap_or_default() {
                let operands = [Operand::dimensioned(a), Operand::new(b, right)];
                let answers = all.iter().map(|(_, rules)| rules.promote(&args.op, &operands));
                let cells: Vec<_> = answers.map(|answer| answer.map_or("-", |found| found.result.name())).collect();
                if all.iter().zip(&cells).any(|((_, rules), cell)| {
                    *cell != cells[0]
                        && [a, b].iter().all(|&ty| ty == ElementType::Dynamic || rules.types().any(|it| it == ty))
                }) {
                    grid.push([a.name(), b.name()].into_iter().chain(cells).map(str::to_owned).collect());
                }
            }
        }
        let title = format!("{} with {}", describe(Category::Dimensioned), describe(right));
        out.push(Matrix { title, rows: grid });
    }
    Ok(out)
}
