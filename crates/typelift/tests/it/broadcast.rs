//! Compares our rules with the tables in `testdata/oracle/broadcast`, recorded from OpenVINO 2026.4.1 and PaddlePaddle
//! 3.3.1.

#![allow(clippy::unwrap_used, reason = "a table that cannot be read is a failure of the test")]
#![allow(clippy::print_stdout, reason = "the numbers of questions are worth seeing")]

use std::fs;
use std::path::Path;

use typelift::shape::{AutoBroadcast, BroadcastMode, Dim, ListInput, Shape, ShapeMismatch, paddle_broadcast};

/// Returns the lines of a table, each split into the columns of the question and those of the answer.
fn table(name: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/broadcast").join(name);
    let text = fs::read_to_string(path).unwrap();
    let columns = text.lines().nth(1).unwrap().trim_start_matches("# ");
    let width = columns.split('\t').position(|name| name == "=").unwrap();
    let split = |line: &str| {
        let mut question: Vec<_> = line.split('\t').map(str::to_owned).collect();
        let answer = question.split_off(width);
        (question, answer)
    };
    text.lines().skip(2).map(split).collect()
}

/// Calls `answer` with every question of a table and compares the result, one item per column of the answer.
#[track_caller]
fn check(name: &str, questions: usize, answer: impl Fn(&[String]) -> Vec<String>) {
    let (mut asked, mut wrong) = (0, Vec::new());
    for (question, theirs) in table(name) {
        let ours = answer(&question);
        asked += 1;
        if ours != theirs {
            wrong.push(format!("{question:?}: {theirs:?}, here {ours:?}"));
        }
    }
    println!("{name}: {asked} questions, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{name}: {} of {asked} differ\n{}", wrong.len(), wrong[..wrong.len().min(9)].join("\n"));
    assert_eq!(asked, questions, "{name} has another number of questions than it had");
}

fn shape(text: &str) -> Shape {
    text.parse().unwrap()
}

/// Formats a dimension with both ends.
fn dim(text: &str) -> Dim {
    let Some((lower, upper)) = text.split_once("..") else {
        assert_eq!(text, "empty");
        return Dim::between(1, 0);
    };
    let lower = lower.parse().unwrap();
    if upper.is_empty() { Dim::at_least(lower) } else { Dim::between(lower, upper.parse().unwrap()) }
}

fn ends(dim: Dim) -> String {
    match dim.upper() {
        _ if dim.is_empty() => "empty".to_owned(),
        Some(upper) => format!("{}..{upper}", dim.lower()),
        None => format!("{}..", dim.lower()),
    }
}

fn show(result: Result<Shape, ShapeMismatch>) -> String {
    let reason = match result {
        Ok(shape) => return shape.to_string(),
        Err(ShapeMismatch::Ranks { .. } | ShapeMismatch::Placement { .. }) => "!placement",
        Err(ShapeMismatch::Dims { .. } | ShapeMismatch::Broadcast { .. }) => "!dim",
        Err(ShapeMismatch::AxisCount { .. }) => "!axis_count",
        Err(ShapeMismatch::AxisRange { .. }) => "!axis_range",
        Err(ShapeMismatch::AxisOrder) => "!axis_order",
        Err(other) => panic!("{other}"),
    };
    reason.to_owned()
}

fn yes_no(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Formats a result; refusals become the table's single word for them.
fn show_or(refusal: &str, result: Result<Shape, ShapeMismatch>) -> String {
    result.map_or_else(|_| refusal.to_owned(), |shape| shape.to_string())
}

const AUTO_BROADCAST: [AutoBroadcast; 7] = [
    AutoBroadcast::Numpy,
    AutoBroadcast::None,
    AutoBroadcast::Pdpd { axis: -2 },
    AutoBroadcast::Pdpd { axis: -1 },
    AutoBroadcast::Pdpd { axis: 0 },
    AutoBroadcast::Pdpd { axis: 1 },
    AutoBroadcast::Pdpd { axis: 2 },
];

#[test]
fn dimensions_calculate_as_openvino_does() {
    check("dims.tsv", 2322, |question| {
        let a = dim(&question[0]);
        if let Some(divisor) = question[1].strip_prefix('/') {
            return vec![ends(a.checked_div(divisor.parse().unwrap()).unwrap())];
        }
        let b = dim(&question[1]);
        let or_refusal = |dim: Option<Dim>| dim.map_or("!".to_owned(), ends);
        vec![
            ends(a + b),
            ends(a - b),
            ends(a * b),
            or_refusal(a & b),
            or_refusal(a.broadcast(b)),
            yes_no(a.is_compatible(b)),
            yes_no(a.relaxes(b)),
            yes_no(b.relaxes(a)),
            yes_no(a == b),
        ]
    });
}

#[test]
fn shape_attributes_read_as_openvino_reads_them() {
    check("texts.tsv", 2332, |question| {
        let text: String = serde_json::from_str(&question[0]).unwrap();
        let Ok(shape) = text.parse::<Shape>() else { return vec!["!".to_owned()] };
        let both = shape.dims().map(|dims| dims.iter().copied().map(ends).collect::<Vec<_>>().join(","));
        vec![shape.to_string(), format!("[{}]", both.unwrap_or("...".to_owned()))]
    });
}

/// True if the text clearly says what OpenVINO reads from it.
fn is_plain(text: &str) -> bool {
    let number = |text: &str| text.parse().ok().filter(|n| (0..i64::MAX).contains(n));
    let item = |item: &str| match item.trim().split_once("..") {
        None => matches!(item.trim(), "?" | "-1") || number(item.trim()).is_some(),
        Some(("", upper)) => upper.is_empty() || number(upper).is_some(),
        Some((lower, "")) => number(lower).is_some(),
        Some((lower, upper)) => number(lower).zip(number(upper)).is_some_and(|(lower, upper)| lower <= upper),
    };
    let inner = text.trim().trim_matches(['[', ']']).trim();
    matches!(inner, "" | "...") || inner.split(',').all(item)
}

#[test]
fn whatever_openvino_takes_for_something_else_is_told() {
    for (question, theirs) in table("texts.tsv") {
        let text: String = serde_json::from_str(&question[0]).unwrap();
        let Ok((_, oddities)) = Shape::parse_lenient(&text) else { continue };
        assert_eq!(oddities.is_empty(), is_plain(&text), "{text:?} is {theirs:?}: {oddities:?}");
    }
}

#[test]
fn operands_and_targets_combine_as_openvino_does() {
    check("pairs.tsv", 6403, |question| {
        let (a, b) = (shape(&question[0]), shape(&question[1]));
        let element_wise = |mode: &AutoBroadcast| show_or("!shapes", mode.combine(&a, &b));
        let to_target = [BroadcastMode::Numpy, BroadcastMode::Bidirectional].into_iter();
        let to_target = to_target.map(|mode| show(mode.combine(&a, ListInput::Values(&b))));
        let relations = [a.is_compatible(&b), a.relaxes(&b), a.refines(&b)];
        AUTO_BROADCAST.iter().map(element_wise).chain(to_target).chain(relations.map(yes_no)).collect()
    });
}

#[test]
fn select_combines_three_shapes_as_openvino_does() {
    check("select.tsv", 3000, |question| {
        let [condition, then, otherwise] = [0, 1, 2].map(|input| shape(&question[input]));
        let select = |mode: &AutoBroadcast| match mode.select(&condition, &then, &otherwise) {
            Ok(shape) => shape.to_string(),
            Err(_) if !matches!(mode, AutoBroadcast::Pdpd { .. }) => "!shapes".to_owned(),
            Err(fault) => ["!cond", "!then", "!else"][fault.input].to_owned(),
        };
        AUTO_BROADCAST.iter().map(select).collect()
    });
}

#[test]
fn broadcast_maps_axes_as_openvino_does() {
    check("target_axes.tsv", 741, |question| {
        let axes: Vec<i64> = serde_json::from_str(&question[2]).unwrap();
        let mode = BroadcastMode::Explicit(ListInput::Values(&axes));
        vec![show(mode.combine(&shape(&question[0]), ListInput::Values(&shape(&question[1]))))]
    });
}

#[test]
fn broadcast_needs_no_values_of_its_target() {
    check("target_length.tsv", 35, |question| {
        let target = shape(question[1].strip_prefix("length ").unwrap());
        let target = match target.dims() {
            None => ListInput::Unknown,
            Some(&[length]) => ListInput::Length(length),
            // The operation refuses an input that is not a list before it computes any shape.
            Some(_) => return vec!["!target_rank".to_owned(); 4],
        };
        let modes = [
            BroadcastMode::Numpy,
            BroadcastMode::Bidirectional,
            BroadcastMode::Explicit(ListInput::Length(Dim::ONE)),
            BroadcastMode::Pdpd { axis: 0 },
        ];
        modes.map(|mode| show(mode.combine(&shape(&question[0]), target))).to_vec()
    });
}

#[test]
fn broadcast_lays_data_under_a_pdpd_target_as_openvino_does() {
    check("target_pdpd.tsv", 1734, |question| {
        let mode = BroadcastMode::Pdpd { axis: question[2].parse().unwrap() };
        vec![show_or("!", mode.combine(&shape(&question[0]), ListInput::Values(&shape(&question[1]))))]
    });
}

#[test]
fn paddle_broadcasts_by_the_rule_of_numpy() {
    check("paddle.tsv", 654, |question| {
        let shape = |text: &str| serde_json::from_str::<Vec<i64>>(text).unwrap().into_iter().map(Dim::from).collect();
        let told = show(paddle_broadcast(&shape(&question[0]), &shape(&question[1]))).replace('?', "-1");
        let is_known = !question.iter().any(|text| text.contains("-1"));
        vec![told.clone(), if is_known { told } else { String::new() }]
    });
}
