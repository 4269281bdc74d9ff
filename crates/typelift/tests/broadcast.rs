//! The tables in `testdata/oracle/broadcast`, taken from OpenVINO 2026.4.1 and PaddlePaddle 3.3.1, against our rules.

use std::fs;
use std::path::Path;

use typelift::shape::{AutoBroadcast, BroadcastMode, Dim, ListInput, Shape, ShapeMismatch, paddle_broadcast};

/// Asks `answer` every question of a table and compares what it gives, one item per column of the answer.
#[track_caller]
fn check(table: &str, questions: usize, answer: impl Fn(&[&str]) -> Vec<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/broadcast").join(table);
    let text = fs::read_to_string(path).unwrap();
    let columns = text.lines().nth(1).unwrap().trim_start_matches("# ");
    let width = columns.split('\t').position(|name| name == "=").unwrap();
    let (mut asked, mut answered, mut wrong) = (0, 0, Vec::new());
    for line in text.lines().skip(2) {
        let fields: Vec<_> = line.split('\t').collect();
        let (question, theirs) = fields.split_at(width);
        let ours = answer(question);
        asked += 1;
        answered += theirs.len();
        if ours != theirs {
            wrong.push(format!("{question:?}: {theirs:?}, here {ours:?}"));
        }
    }
    println!("{table}: {asked} questions, {answered} answers, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{table}: {} of {asked} differ\n{}", wrong.len(), wrong[..wrong.len().min(9)].join("\n"));
    assert_eq!(asked, questions, "{table} has another number of questions than it had");
}

fn shape(text: &str) -> Shape {
    text.parse().unwrap()
}

/// A dimension written with both ends.
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
    };
    reason.to_owned()
}

/// `show` where the table has one word for every refusal.
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
        let a = dim(question[0]);
        if let Some(divisor) = question[1].strip_prefix('/') {
            return vec![ends(a.checked_div(divisor.parse().unwrap()).unwrap())];
        }
        let b = dim(question[1]);
        let or_refusal = |dim: Option<Dim>| dim.map_or("!".to_owned(), ends);
        let yes_no = |answer: bool| if answer { "yes" } else { "no" }.to_owned();
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
        let text: String = serde_json::from_str(question[0]).unwrap();
        let Ok(shape) = text.parse::<Shape>() else { return vec!["!".to_owned()] };
        let both = shape.dims().map(|dims| dims.iter().copied().map(ends).collect::<Vec<_>>().join(","));
        vec![shape.to_string(), format!("[{}]", both.unwrap_or("...".to_owned()))]
    });
}

#[test]
fn operands_and_targets_combine_as_openvino_does() {
    check("pairs.tsv", 6403, |question| {
        let (a, b) = (shape(question[0]), shape(question[1]));
        let element_wise = |mode: &AutoBroadcast| show_or("!shapes", mode.combine(&a, &b));
        let to_target = [BroadcastMode::Numpy, BroadcastMode::Bidirectional].into_iter();
        let to_target = to_target.map(|mode| show(mode.combine(&a, ListInput::Values(&b))));
        AUTO_BROADCAST.iter().map(element_wise).chain(to_target).collect()
    });
}

#[test]
fn select_combines_three_shapes_as_openvino_does() {
    check("select.tsv", 3000, |question| {
        let [condition, then, otherwise] = [0, 1, 2].map(|input| shape(question[input]));
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
        let axes: Vec<i64> = serde_json::from_str(question[2]).unwrap();
        let mode = BroadcastMode::Explicit(ListInput::Values(&axes));
        vec![show(mode.combine(&shape(question[0]), ListInput::Values(&shape(question[1]))))]
    });
}

#[test]
fn broadcast_needs_no_values_of_its_target() {
    check("target_length.tsv", 35, |question| {
        let length = shape(question[1].strip_prefix("length ").unwrap());
        let length = match length.dims() {
            None => Dim::ANY,
            Some(&[length]) => length,
            // An input that is not a list is refused by the operation, before any shape is asked for.
            Some(_) => return vec!["!target_rank".to_owned(); 2],
        };
        let combine = |mode: BroadcastMode<'_>| show(mode.combine(&shape(question[0]), ListInput::Length(length)));
        vec![combine(BroadcastMode::Numpy), combine(BroadcastMode::Bidirectional)]
    });
}

#[test]
fn broadcast_lays_data_under_a_pdpd_target_as_openvino_does() {
    check("target_pdpd.tsv", 1734, |question| {
        let mode = BroadcastMode::Pdpd { axis: question[2].parse().unwrap() };
        vec![show_or("!", mode.combine(&shape(question[0]), ListInput::Values(&shape(question[1]))))]
    });
}

#[test]
fn paddle_broadcasts_by_the_rule_of_numpy() {
    check("paddle.tsv", 654, |question| {
        let shape = |text| serde_json::from_str::<Vec<i64>>(text).unwrap().into_iter().map(Dim::from).collect();
        let told = show(paddle_broadcast(&shape(question[0]), &shape(question[1]))).replace('?', "-1");
        let is_known = !question.iter().any(|text| text.contains("-1"));
        vec![told.clone(), if is_known { told } else { String::new() }]
    });
}
