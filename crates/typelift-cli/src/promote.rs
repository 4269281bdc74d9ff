//! `typelift promote`: the common type of two operands, without a model.

use std::fmt::Write as _;
use std::io::BufRead;

use typelift::promote::{Category, ElementType, Operand, Promotion, Refusal, RuleSet, openvino, paddle, pytorch};

use crate::Status;
use crate::failure::Failure;
use crate::render::{self, Remark};
use crate::terminal::Terminal;

/// Tell the common type of two operands
///
/// An operand is a type with a shape: u8[2], i64[] (rank 0), f16[...] (rank unknown), f32[?]. A type alone has dimensions.
/// The words bool, int, float and complex are Python numbers. Types have the names of the rule set: boolean and f8e4m3
/// under openvino, bool and f8e4m3fn under pytorch and paddle.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  typelift promote i16 u8                              i16
  typelift promote --rules pytorch 'f16[2]' 'f32[]'    f16
  typelift promote --rules pytorch --op div i32 i64    f32
  typelift promote --explain u64 i32
  typelift promote --compare f16 i64
  typelift promote --table
  typelift promote - < pairs.txt")]
pub(crate) struct Args {
    /// The two operands; or - to read a pair a line and print a type, or error: CODE, for each
    #[arg(value_name = "LHS RHS", num_args = 0..=2, hide_possible_values = true)]
    operands: Vec<String>,
    /// Whose rules
    #[arg(long, default_value = "openvino", value_parser = ["openvino", "pytorch", "paddle", "paddle-2.6"])]
    rules: String,
    /// The operation, where the rule set has several
    #[arg(long, value_name = "NAME", default_value = "add")]
    op: String,
    /// Tell how the type comes to be
    #[arg(long)]
    explain: bool,
    /// Print the whole matrix: the left operand down, the right one across, - where it is refused
    #[arg(long, conflicts_with_all = ["operands", "explain"])]
    table: bool,
    /// Print the answers of all rule sets, openvino's also under promote_unsafe and with pytorch_scalar_promotion; without
    /// operands, every pair on which they disagree
    #[arg(long, conflicts_with_all = ["rules", "explain", "table"])]
    compare: bool,
    #[command(flatten)]
    openvino: OpenVinoArgs,
    /// pytorch: what torch.set_default_dtype has set, one of f16, bf16, f32, f64
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = parse_default_dtype)]
    default_dtype: ElementType,
}

/// The attributes of ConvertPromoteTypes, for where no operation has them.
#[derive(clap::Args)]
pub(crate) struct OpenVinoArgs {
    /// openvino: promote to types that cannot hold every value, too
    #[arg(long)]
    promote_unsafe: bool,
    /// openvino: let the type of an input with dims win over that of a scalar
    #[arg(long)]
    pytorch_scalar_promotion: bool,
    /// openvino: where u64 and a signed integer meet
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = parse_type)]
    u64_integer_promotion_target: ElementType,
}

impl OpenVinoArgs {
    pub(crate) fn attributes(&self) -> openvino::Attributes {
        openvino::Attributes {
            promote_unsafe: self.promote_unsafe,
            pytorch_scalar_promotion: self.pytorch_scalar_promotion,
            u64_integer_promotion_target: self.u64_integer_promotion_target,
        }
    }
}

fn parse_type(text: &str) -> Result<ElementType, String> {
    ElementType::from_name(text).ok_or_else(|| "no element type of that name".to_owned())
}

fn parse_default_dtype(text: &str) -> Result<ElementType, String> {
    use ElementType::{Bf16, F16, F32, F64};
    [F16, Bf16, F32, F64]
        .into_iter()
        .find(|ty| ty.name() == text)
        .ok_or_else(|| "not one of f16, bf16, f32, f64".to_owned())
}

pub(crate) fn run(args: &Args, terminal: &mut Terminal) -> Result<Status, Failure> {
    let rules = args.rule_set();
    if !args.compare && !rules.operations().any(|name| name == args.op) {
        return Err(unknown_operation(&rules, &args.op));
    }
    let operands: Vec<_> = args.operands.iter().map(String::as_str).collect();
    match operands.as_slice() {
        [lhs, rhs] if args.compare => compare(args, lhs, rhs, terminal),
        [] if args.compare => terminal.print(&disagreements(args)).map(|()| Status::Done),
        [] if args.table => terminal.print(&table(&rules, &args.op)).map(|()| Status::Done),
        ["-"] if !args.compare => lines(args, &rules, terminal),
        &[lhs, rhs] => one(args, &rules, [lhs, rhs], terminal),
        _ => {
            Err(Failure::new("two operands are needed")
                .help("such as `typelift promote i16 u8`, or --table, or --compare"))
        }
    }
}

impl Args {
    fn rule_set(&self) -> RuleSet {
        match RuleSet::from_name(&self.rules) {
            Some(RuleSet::PyTorch(_)) => RuleSet::PyTorch(pytorch::Options { default_dtype: self.default_dtype }),
            Some(RuleSet::Paddle(version)) => RuleSet::Paddle(version),
            Some(RuleSet::OpenVino(_)) | None => RuleSet::OpenVino(self.openvino.attributes()),
        }
    }

    fn openvino(&self, promote_unsafe: bool, pytorch_scalar_promotion: bool) -> RuleSet {
        RuleSet::OpenVino(openvino::Attributes {
            promote_unsafe,
            pytorch_scalar_promotion,
            ..self.openvino.attributes()
        })
    }

    /// Every rule set with the words that choose it.
    fn all(&self) -> [(&'static str, RuleSet); 6] {
        [
            ("openvino", self.openvino(false, false)),
            ("unsafe", self.openvino(true, false)),
            ("unsafe, scalars", self.openvino(true, true)),
            ("pytorch", RuleSet::PyTorch(pytorch::Options { default_dtype: self.default_dtype })),
            ("paddle", RuleSet::Paddle(paddle::Version::V3_3)),
            ("paddle-2.6", RuleSet::Paddle(paddle::Version::Published2_6)),
        ]
    }
}

fn unknown_operation(rules: &RuleSet, name: &str) -> Failure {
    let failure = Failure::new(format!("{} has no operation `{name}`", rules.name()));
    if matches!(rules, RuleSet::OpenVino(_)) {
        return failure.help("it has one rule for all of them: leave --op out");
    }
    let nearest = nearest(name, rules.operations());
    let all = rules.operations().collect::<Vec<_>>().join(", ");
    failure.help(nearest.map_or(String::new(), |near| format!("did you mean `{near}`? ")) + &format!("it has {all}"))
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(known, name), known)).filter(|(score, _)| *score > 0.8);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// Prints the type alone, and on demand how it came to be.
fn one(args: &Args, rules: &RuleSet, texts: [&str; 2], terminal: &mut Terminal) -> Result<Status, Failure> {
    let [lhs, rhs] = texts.map(|text| operand(rules, text));
    let operands = [lhs?, rhs?];
    let mut steps = Vec::new();
    let answer = rules.trace(&args.op, &operands, &mut |step| steps.push(rules.describe(step).to_string()));
    if !args.explain {
        steps.clear();
    }
    match answer {
        Ok(Promotion { common, result }) => {
            let mut text = format!("{}\n", rules.type_name(result));
            for step in steps {
                let _ = writeln!(text, "  {step}");
            }
            if args.explain && common != result {
                let _ = writeln!(
                    text,
                    "  computed in {}, the result is {}",
                    rules.type_name(common),
                    rules.type_name(result)
                );
            }
            terminal.print(&text)?;
            Ok(Status::Done)
        }
        Err(refusal) => {
            let notes = steps.into_iter().map(Remark::Note);
            // The functions of Paddle take tensors, its operators numbers too.
            let operator = "operator +";
            let remedy = match rules.promote(operator, &operands) {
                Ok(_) if operands.iter().any(|operand| operand.is_number()) => {
                    format!("--op '{operator}' takes numbers")
                }
                _ => refusal.remedy().to_string(),
            };
            terminal.say(&render::error(
                Some(refusal.code()),
                &refusal.to_string(),
                notes.chain([Remark::Help(remedy)]),
            ));
            Ok(Status::Faulty)
        }
    }
}

fn operand(rules: &RuleSet, text: &str) -> Result<Operand, Failure> {
    rules.operand(text).map_err(|error| {
        let name = text.split('[').next().unwrap_or_default();
        let failure = Failure::new(format!("`{text}`: {error}"));
        // A name of another rule set, or one that is close.
        let elsewhere =
            RuleSet::all().iter().find_map(|other| other.type_from_name(name)).map(|ty| rules.type_name(ty));
        let known = elsewhere.filter(|name| rules.type_from_name(name).is_some());
        match known.or_else(|| nearest(name, rules.types().map(|ty| rules.type_name(ty)))) {
            Some(near) if near != name => failure.help(format!("did you mean `{near}`?")),
            _ => failure,
        }
    })
}

/// For each line of standard input with two operands a line with their type.
fn lines(args: &Args, rules: &RuleSet, terminal: &mut Terminal) -> Result<Status, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::io("read", "standard input".as_ref(), &error))?;
        let words: Vec<_> = line.split_whitespace().collect();
        let answer = match words[..] {
            [lhs, rhs] => match (rules.operand(lhs), rules.operand(rhs)) {
                (Ok(lhs), Ok(rhs)) => rules.promote(&args.op, &[lhs, rhs]).map_err(|refusal| refusal.code()),
                _ => Err("not-an-operand"),
            },
            _ => Err("not-a-pair"),
        };
        let text = match answer {
            Ok(promotion) => format!("{}\n", rules.type_name(promotion.result)),
            Err(code) => format!("error: {code}\n"),
        };
        terminal.print(&text)?;
    }
    Ok(Status::Done)
}

/// What can stand on one side of a matrix.
fn operands_of(rules: &RuleSet, category: Category) -> Vec<Operand> {
    match category {
        Category::Number => {
            ["bool", "int", "float", "complex"].iter().filter_map(|word| rules.operand(word).ok()).collect()
        }
        _ => rules.types().map(|element_type| Operand { element_type, category }).collect(),
    }
}

fn describe(category: Category) -> &'static str {
    match category {
        Category::Dimensioned => "tensor",
        Category::ZeroDim => "tensor of rank 0",
        Category::Number => "number",
        Category::UnknownRank => "tensor of unknown rank",
    }
}

fn name_of(rules: &RuleSet, operand: Operand) -> &'static str {
    operand.number_name().unwrap_or_else(|| rules.type_name(operand.element_type))
}

/// The results of an operation, in one matrix for each two kinds of operand that the rule set tells apart.
fn table(rules: &RuleSet, operation: &str) -> String {
    use Category::{Dimensioned, Number, ZeroDim};
    let categories: &[Category] = match rules {
        RuleSet::OpenVino(attributes) if !attributes.pytorch_scalar_promotion => &[Dimensioned],
        RuleSet::OpenVino(_) => &[Dimensioned, ZeroDim],
        RuleSet::PyTorch(_) | RuleSet::Paddle(_) => &[Dimensioned, ZeroDim, Number],
    };
    let mut out = String::new();
    for &left in categories {
        for &right in categories {
            let cell = |a, b| match rules.promote(operation, &[a, b]) {
                Ok(promotion) => rules.type_name(promotion.result),
                Err(_) => "-",
            };
            let (lefts, rights) = (operands_of(rules, left), operands_of(rules, right));
            // Types that nothing is done with are left out.
            let rows: Vec<_> = lefts.iter().copied().filter(|&a| rights.iter().any(|&b| cell(a, b) != "-")).collect();
            let columns: Vec<_> =
                rights.iter().copied().filter(|&b| lefts.iter().any(|&a| cell(a, b) != "-")).collect();
            let mut grid = vec![vec![String::new()]];
            grid[0].extend(columns.iter().map(|&column| name_of(rules, column).to_owned()));
            for row in rows {
                let cells = columns.iter().map(|&column| cell(row, column).to_owned());
                grid.push(std::iter::once(name_of(rules, row).to_owned()).chain(cells).collect());
            }
            if grid.len() == 1 {
                continue;
            }
            if categories.len() > 1 {
                let break_before = if out.is_empty() { "" } else { "\n" };
                let _ = writeln!(out, "{break_before}{} with {}", describe(left), describe(right));
            }
            out += &columns_of(&grid);
        }
    }
    out
}

/// Lines of cells, one under the other.
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

/// The answers of all rule sets to one question.
fn compare(args: &Args, lhs: &str, rhs: &str, terminal: &mut Terminal) -> Result<Status, Failure> {
    // Each rule set has names of its own; the first that has the name tells which type is meant.
    let read = |text: &str| match args.all().iter().find_map(|(_, rules)| rules.operand(text).ok()) {
        Some(operand) => Ok(operand),
        None => operand(&args.rule_set(), text),
    };
    let operands = [read(lhs)?, read(rhs)?];
    let rows = args.all().map(|(name, rules)| {
        let has = |operand: &Operand| operand.is_number() || rules.types().any(|ty| ty == operand.element_type);
        let answer = if !operands.iter().all(has) {
            "does not have these types".to_owned()
        } else {
            match rules.promote(&args.op, &operands) {
                Ok(promotion) => rules.type_name(promotion.result).to_owned(),
                Err(Refusal::UnknownOperation) => "has no such operation".to_owned(),
                Err(refusal) => format!("refused: {refusal}"),
            }
        };
        vec![name.to_owned(), answer]
    });
    terminal.print(&columns_of(&rows))?;
    Ok(Status::Done)
}

/// Every pair of types that all rule sets take and do not agree on, `-` where it is refused.
fn disagreements(args: &Args) -> String {
    let all = args.all();
    let takes = |rules: &RuleSet, ty| rules.promote(&args.op, &[Operand::dimensioned(ty); 2]).is_ok();
    let types: Vec<_> = ElementType::all().filter(|&ty| all.iter().all(|(_, rules)| takes(rules, ty))).collect();
    let mut out = String::new();
    for right in [Category::Dimensioned, Category::ZeroDim] {
        let header = ["", ""].into_iter().chain(all.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
        let mut grid: Vec<Vec<String>> = vec![header];
        for (at, &a) in types.iter().enumerate() {
            // Tensors of one kind meet in either order alike.
            let first = if right == Category::Dimensioned { at } else { 0 };
            for &b in types.get(first..).unwrap_or_default() {
                let operands = [Operand::dimensioned(a), Operand { element_type: b, category: right }];
                let cells = all.each_ref().map(|(_, rules)| match rules.promote(&args.op, &operands) {
                    Ok(promotion) => promotion.result.name(),
                    Err(_) => "-",
                });
                if cells.iter().any(|cell| *cell != cells[0]) {
                    grid.push([a.name(), b.name()].into_iter().chain(cells).map(str::to_owned).collect());
                }
            }
        }
        let break_before = if out.is_empty() { "" } else { "\n" };
        let _ = writeln!(out, "{break_before}{} with {}", describe(Category::Dimensioned), describe(right));
        out += &columns_of(&grid);
    }
    out
}
