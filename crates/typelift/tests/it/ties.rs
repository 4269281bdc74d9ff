//! Compares the tied inputs of each operation and their accepted types with what OpenVINO refuses. Checks that
//! alignment gives them accepted types.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use crate::zoo;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use typelift::edit::Edit;
use typelift::passes::infer_aligned;
use typelift::promote::openvino::Options;
use typelift::promote::{Category, ElementType, Operand, RuleSet};
use typelift::{LayerId, Model, infer, ops};

static TABLE: LazyLock<String> = LazyLock::new(|| {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/oracle/ties/ties.csv")).unwrap()
});

/// By operation and revision, for each input: the first input that it is tied to, and the types that it accepts.
type Inputs = Vec<(usize, Vec<ElementType>)>;
type Table = BTreeMap<(&'static str, u8), Inputs>;

/// Returns for each input of an operation's revision the first input that it is tied to, itself if none, and the types
/// that it accepts.
fn table() -> Table {
    let mut table = BTreeMap::<_, Vec<_>>::new();
    for line in TABLE.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [operation, revision, input, tied_with, takes] = fields[..] else { panic!("{line}") };
        let inputs = table.entry((operation, revision.parse().unwrap())).or_default();
        assert_eq!(inputs.len().to_string(), input, "{line}");
        let takes = takes.split_whitespace().map(|name| ElementType::from_name(name).unwrap()).collect();
        inputs.push((tied_with.parse().unwrap(), takes));
    }
    table
}

/// Returns the row of the library for each row of the table.
fn rows() -> Vec<(&'static ops::Operation, Inputs)> {
    let rows: BTreeMap<_, _> = ops::all().map(|row| ((row.name, row.revision), row)).collect();
    let row = |key| *rows.get(&key).unwrap_or_else(|| panic!("the library has no row for {key:?}"));
    table().into_iter().map(|(key, inputs)| (row(key), inputs)).collect()
}

/// Operations with inputs that are tied in some modes only. The value of `Pad` is used in mode `constant`, and the
/// inputs of a `Loop` are tied by its body.
const CONDITIONAL: &[&str] = &["Loop", "Pad"];

#[test]
fn rows_tie_the_inputs_that_openvino_wants_to_agree() {
    let mut wrong = Vec::new();
    for (row, inputs) in rows() {
        let (name, revision) = (row.name, row.revision);
        // Inputs that are tied unless they are boolean do not count as tied in the table.
        let groups = row.ties.groups(&vec![ElementType::Boolean; inputs.len()]);
        let first = |input: usize| {
            let group = groups.iter().find(|group| group.contains(&input));
            group.and_then(|group| group.iter().min()).copied().unwrap_or(input)
        };
        let ours: Vec<usize> = (0..inputs.len()).map(first).collect();
        let openvinos: Vec<usize> = inputs.iter().map(|(tied_with, _)| *tied_with).collect();
        // Inputs that accept only one type cannot differ, so the table does not show whether they are tied.
        let one_type = inputs.iter().all(|(_, takes)| takes.len() == 1);
        // Plugins may tie more inputs.
        let as_far_as_read = |input: usize| {
            ours[input] == ours[openvinos[input]] && (row.tied_when_run || ours[input] == openvinos[input])
        };
        let agree = (0..inputs.len()).all(as_far_as_read);
        if !agree && !one_type && !CONDITIONAL.contains(&name) {
            wrong.push(format!("{name}-{revision}: ours {ours:?}, OpenVINO's {openvinos:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_know_the_inputs_that_take_floating_point_only() {
    let mut wrong = Vec::new();
    for (row, inputs) in rows() {
        let (name, revision) = (row.name, row.revision);
        for (input, (_, takes)) in inputs.iter().enumerate() {
            let only_floats = !takes.is_empty() && takes.iter().all(|ty| ty.is_float());
            if row.takes_only_floats(input) != only_floats {
                wrong.push(format!("{name}-{revision} input {input}: {takes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_main_input_takes_is_what_openvino_takes() {
    let mut wrong = Vec::new();
    for (row, inputs) in rows() {
        let (name, revision) = (row.name, row.revision);
        let Some((_, takes)) = inputs.first() else { continue };
        let refused = takes.iter().filter(|&&ty| !row.accepts.takes(ty));
        let refused: Vec<_> = refused.map(ToString::to_string).collect();
        if !refused.is_empty() {
            wrong.push(format!("{name}-{revision} takes {}", refused.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The types of tied inputs, tested two at a time.
const TYPES: [ElementType; 10] = {
    use ElementType::*;
    [Boolean, U8, I8, I32, I64, U64, F16, Bf16, F32, F64]
};

/// Returns the Parameters that feed the layer `op` of a model, by input, if each input has its own Parameter of known
/// type.
fn parameters(model: &Model) -> Option<Vec<LayerId>> {
    let op = model.graph().layers().find(|layer| layer.name() == "op")?;
    let producers = model.graph().producers(op.id()).into_iter().map(|producer| Some(producer?.layer));
    let producers: Vec<LayerId> = producers.collect::<Option<_>>()?;
    let known = |&id: &LayerId| {
        let layer = model.graph().layer(id).unwrap();
        layer.ty() == "Parameter" && layer.attribute("element_type") != Some("dynamic")
    };
    let distinct = producers.iter().collect::<BTreeSet<_>>().len() == producers.len();
    (distinct && producers.iter().all(known)).then_some(producers)
}

/// Returns the input types of the layer `op` of an aligned model.
fn input_types(model: &Model) -> Vec<ElementType> {
    let op = model.graph().layers().find(|layer| layer.name() == "op").unwrap();
    let producers = model.graph().producers(op.id()).into_iter();
    producers.map(|producer| model.graph().output(producer.unwrap()).unwrap().element_type()).collect()
}

#[test]
fn tied_inputs_of_two_types_get_one_that_openvino_takes_or_are_refused_where_it_would_refuse_too() {
    let table = table();
    let unsafely = RuleSet::OpenVino(Options { promote_unsafe: true, ..Default::default() });
    let rule_sets = [unsafely, RuleSet::from_name("pytorch").unwrap()];
    let (mut done, mut repaired, mut refused, mut wrong) = (BTreeSet::new(), 0, 0, Vec::new());
    for case in zoo::cases(None).filter(zoo::Case::is_accepted) {
        let Some(row) = ops::lookup(case.operation(), case.version()) else { continue };
        let Some(inputs) = table.get(&(row.name, row.revision)) else { continue };
        let (Some(mut model), _) = case.model() else { continue };
        let Some(parameters) = parameters(&model) else { continue };
        let untyped = model.clone();
        let _ = infer(&mut model);
        let before = input_types(&model);
        for group in row.ties.groups(&before).into_iter().filter(|group| group.len() > 1) {
            if !done.insert((row.name, row.revision, group.clone())) {
                continue;
            }
            let takes = &inputs[group[0]].1;
            let pairs = TYPES.iter().flat_map(|&a| TYPES.iter().map(move |&b| (a, b))).filter(|(a, b)| a != b);
            for ((a, b), rules) in pairs.flat_map(|pair| rule_sets.map(|rules| (pair, rules))) {
                let mut model = untyped.clone();
                for (at, &input) in group.iter().enumerate() {
                    let ty = if at == 0 { a } else { b };
                    let edit = |graph: &mut Edit| graph.set_attribute(parameters[input], "element_type", ty.name());
                    model.edit(edit).unwrap();
                }
                let (diagnostics, _) = infer_aligned(&mut model, rules).unwrap();
                let operands = group.iter().enumerate().map(|(at, &input)| Operand {
                    element_type: if at == 0 { a } else { b },
                    category: match model.graph().layer(parameters[input]).unwrap().outputs()[0].shape().rank() {
                        None => Category::UnknownRank,
                        Some(0) => Category::ZeroDim,
                        Some(_) => Category::Dimensioned,
                    },
                    literal: None,
                });
                let common = rules.promote_all(promotion(rules, row.name), &operands.collect::<Vec<_>>(), &mut |_| {});
                let name = format!("{}-{} {group:?} {a} and {b}, {}", row.name, row.revision, rules.name());
                match diagnostics.iter().find(|diagnostic| diagnostic.is_error()) {
                    None => {
                        repaired += 1;
                        let after = input_types(&model);
                        let ty = after[group[0]];
                        // A boolean mask is not tied.
                        let group = row.ties.groups(&after).into_iter().find(|tied| tied.contains(&group[0]));
                        let agree = group.unwrap().iter().all(|&input| after[input] == ty);
                        let well = infer(&mut model).iter().all(|diagnostic| !diagnostic.is_error());
                        // A layer that OpenVINO reads without a change keeps its types if the rules refuse.
                        let stays = row.tied_when_run && common.is_err();
                        if !agree && !stays || !well || !takes.contains(&ty) {
                            wrong.push(format!("{name}: made {after:?}"));
                        }
                    }
                    Some(error) => {
                        refused += 1;
                        let index = takes.iter().all(|ty| ty.is_integer()) && !(a.is_integer() && b.is_integer());
                        if !index && common.is_ok_and(|common| common.is_some_and(|ty| takes.contains(&ty))) {
                            wrong.push(format!("{name}: {error}"));
                        }
                    }
                }
            }
        }
    }
    println!("{} groups of tied inputs: {repaired} repaired, {refused} refused", done.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(done.len() > 70 && repaired > 4 * refused, "{} groups", done.len());
}

/// Returns the rule set's name for the promotion of an operation that refuses.
fn promotion(rules: RuleSet, operation: &str) -> &'static str {
    match (rules, operation) {
        (RuleSet::PyTorch(_), "Subtract" | "SquaredDifference") => "sub",
        (RuleSet::PyTorch(_), _) => "result_type",
        _ => "add",
    }
}
