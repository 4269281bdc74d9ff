//! Alignment of graphs whose types disagree.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use std::collections::BTreeMap;

use crate::common::{self, Net, nets};
use proptest::prelude::*;
use typelift::findings::{Code, Voice};
use typelift::passes::{Action, Change, LOWER_WITHOUT_NOOPS, infer_aligned, run};
use typelift::promote::openvino::Options;
use typelift::promote::{ElementType, RuleSet};
use typelift::{Graph, Layer, LayerId, Model, infer};

fn rules(name: &str) -> RuleSet {
    RuleSet::from_name(name).unwrap()
}

/// Returns the listing of a model aligned under these rules, or its errors.
fn repaired(model: &mut Model, rules: RuleSet) -> Result<String, String> {
    let (diagnostics, _) = infer_aligned(model, rules).unwrap();
    let errors: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).collect();
    if !errors.is_empty() {
        let lines = errors.iter().flat_map(|d| {
            [d.to_string()]
                .into_iter()
                .chain(
                    d.related
                        .iter()
                        .map(ToString::to_string)
                        .chain(d.notes.iter().map(ToString::to_string))
                        .map(|n| format!("  {n}")),
                )
                .chain(Voice::Plain.help(d).into_iter().map(|h| format!("  {h}")))
        });
        return Err(lines.collect::<Vec<_>>().join("\n"));
    }
    assert_eq!(
        infer(model).into_iter().filter(|d| d.is_error()).collect::<Vec<_>>(),
        [],
        "the repaired model is not well"
    );
    assert_eq!(model.graph().verify(), Ok(()));
    Ok(common::listing(model.graph()))
}

#[test]
fn inputs_that_must_agree_get_their_common_type() {
    let net = Net::new().parameter("a", "f16[2,3]").parameter("b", "f32[3]").layer("sum", "Add", "opset1", &["a", "b"]);
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @r"
    a/sum.0 = Convert(a) : f32[2,3]
    sum = Add(a/sum.0, b) : f32[2,3]
    ");
}

#[test]
fn types_downstream_follow_from_the_repair() {
    let net = Net::new()
        .parameter("a", "f16[2]")
        .parameter("b", "f32[2]")
        .parameter("c", "f16[2]")
        .layer("sum", "Add", "opset1", &["a", "b"])
        .layer("relu", "ReLU", "opset1", &["sum"])
        .layer("product", "Multiply", "opset1", &["relu", "c"]);
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @r"
    a/sum.0 = Convert(a) : f32[2]
    sum = Add(a/sum.0, b) : f32[2]
    relu = ReLU(sum) : f32[2]
    c/product.1 = Convert(c) : f32[2]
    product = Multiply(relu, c/product.1) : f32[2]
    ");
}

#[test]
fn a_tensor_is_converted_once_for_all_its_consumers() {
    let mut net = Net::new().parameter("a", "f16[2]").parameter("b", "f32[2]");
    for at in 0..3 {
        net = net.layer(&format!("sum{at}"), "Add", "opset1", &["a", "b"]);
    }
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @r"
    a/sum0.0 = Convert(a) : f32[2]
    sum0 = Add(a/sum0.0, b) : f32[2]
    sum1 = Add(a/sum0.0, b) : f32[2]
    sum2 = Add(a/sum0.0, b) : f32[2]
    ");
}

#[test]
fn a_tensor_that_holds_the_values_in_the_type_is_used() {
    let net = Net::new()
        .parameter("a", "f16[2]")
        .parameter("b", "f32[2]")
        .converted("wide", "a", "f32")
        .layer("used", "ReLU", "opset1", &["wide"])
        .layer("sum", "Add", "opset1", &["a", "b"]);
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @r"
    wide = Convert(a) : f32[2]
    used = ReLU(wide) : f32[2]
    sum = Add(wide, b) : f32[2]
    ");
}

#[test]
fn rank_counts_as_each_rule_set_says() {
    let net = || {
        Net::new()
            .parameter("a", "f16[2]")
            .constant("number", "f64[]")
            .parameter("zero_dim", "f64[]")
            .layer("with_number", "Add", "opset1", &["a", "number"])
            .layer("with_zero_dim", "Add", "opset1", &["a", "zero_dim"])
    };
    insta::assert_snapshot!(repaired(&mut net().model(), rules("openvino")).unwrap(), @r"
    a/with_number.0 = Convert(a) : f64[2]
    with_number = Add(a/with_number.0, number) : f64[2]
    with_zero_dim = Add(a/with_number.0, zero_dim) : f64[2]
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("pytorch")).unwrap(), @r"
    number/with_number.1 = Convert(number) : f16[]
    with_number = Add(a, number/with_number.1) : f16[2]
    zero_dim/with_zero_dim.1 = Convert(zero_dim) : f16[]
    with_zero_dim = Add(a, zero_dim/with_zero_dim.1) : f16[2]
    ");
    let int = Net::new()
        .parameter("a", "i32[2]")
        .constant("number", "f64[]")
        .parameter("zero_dim", "f64[]")
        .layer("with_number", "Add", "opset1", &["a", "number"])
        .layer("with_zero_dim", "Add", "opset1", &["a", "zero_dim"]);
    insta::assert_snapshot!(repaired(&mut int.model(), rules("pytorch")).unwrap(), @r"
    a/with_number.0 = Convert(a) : f32[2]
    number/with_number.1 = Convert(number) : f32[]
    with_number = Add(a/with_number.0, number/with_number.1) : f32[2]
    a/with_zero_dim.0 = Convert(a) : f64[2]
    with_zero_dim = Add(a/with_zero_dim.0, zero_dim) : f64[2]
    ");
}

#[test]
fn division_follows_the_division_rule_of_the_framework() {
    let net = || {
        Net::new().parameter("a", "i32[2]").parameter("b", "i64[2]").layer("quotient", "Divide", "opset1", &["a", "b"])
    };
    insta::assert_snapshot!(repaired(&mut net().model(), rules("openvino")).unwrap(), @r"
    a/quotient.0 = Convert(a) : i64[2]
    quotient = Divide(a/quotient.0, b) : i64[2]
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("pytorch")).unwrap(), @r"
    a/quotient.0 = Convert(a) : f32[2]
    b/quotient.1 = Convert(b) : f32[2]
    quotient = Divide(a/quotient.0, b/quotient.1) : f32[2]
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("paddle")).unwrap_err(), @r"
    error[no-common-type]: i32 and i64 have no common type: Paddle promotes between floats and from real to complex numbers only
      input 0 is i32[2] from Parameter 0 `a`
      input 1 is i64[2] from Parameter 1 `b`
      `openvino` would make them i64, `pytorch` would make them f32
    ");
    let truths = Net::new().parameter("a", "boolean[2]").parameter("b", "boolean[2]").layer(
        "quotient",
        "Divide",
        "opset1",
        &["a", "b"],
    );
    insta::assert_snapshot!(repaired(&mut truths.model(), rules("pytorch")).unwrap(), @r"
    a/quotient.0 = Convert(a) : f32[2]
    b/quotient.1 = Convert(b) : f32[2]
    quotient = Divide(a/quotient.0, b/quotient.1) : f32[2]
    ");
}

#[test]
fn operations_on_floating_point_get_the_default_float() {
    let net = || Net::new().parameter("a", "i32[2]").layer("soft", "SoftPlus", "opset4", &["a"]);
    for name in ["openvino", "pytorch", "paddle"] {
        insta::allow_duplicates! { insta::assert_snapshot!(repaired(&mut net().model(), rules(name)).unwrap(), @r"
        a/soft.0 = Convert(a) : f32[2]
        soft = SoftPlus(a/soft.0) : f32[2]
        "); }
    }
    let root = || Net::new().parameter("a", "i32[2]").layer("root", "Sqrt", "opset1", &["a"]);
    insta::assert_snapshot!(repaired(&mut root().model(), rules("openvino")).unwrap(), @"root = Sqrt(a) : i32[2]");
    insta::assert_snapshot!(repaired(&mut root().model(), rules("pytorch")).unwrap(), @r"
    a/root.0 = Convert(a) : f32[2]
    root = Sqrt(a/root.0) : f32[2]
    ");
}

#[test]
fn logical_operations_take_truth_values_under_the_frameworks() {
    let net = || {
        Net::new().parameter("a", "i32[2]").parameter("b", "boolean[2]").layer(
            "both",
            "LogicalAnd",
            "opset1",
            &["a", "b"],
        )
    };
    insta::assert_snapshot!(repaired(&mut net().model(), rules("openvino")).unwrap_err(), @r"
    error[no-common-type]: `LogicalAnd` takes booleans, but its inputs i32 and boolean have the common type i32 by the openvino rules
      input 0 is i32[2] from Parameter 0 `a`
      input 1 is boolean[2] from Parameter 1 `b`
      `pytorch` would make them boolean, `paddle` would make them boolean
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("pytorch")).unwrap(), @r"
    a/both.0 = Convert(a) : boolean[2]
    both = LogicalAnd(a/both.0, b) : boolean[2]
    ");
    let not = || Net::new().parameter("a", "i32[2]").layer("not", "LogicalNot", "opset1", &["a"]);
    insta::assert_snapshot!(repaired(&mut not().model(), rules("openvino")).unwrap(), @"not = LogicalNot(a) : i32[2]");
    insta::assert_snapshot!(repaired(&mut not().model(), rules("pytorch")).unwrap(), @r"
    a/not.0 = Convert(a) : boolean[2]
    not = LogicalNot(a/not.0) : boolean[2]
    ");
}

#[test]
fn what_the_rules_refuse_is_an_error_with_its_remedies() {
    let net = || {
        Net::new().parameter("ids", "u64[1,?]").parameter("offset", "i32[]").layer(
            "sum",
            "Add",
            "opset1",
            &["ids", "offset"],
        )
    };
    insta::assert_snapshot!(repaired(&mut net().model(), rules("openvino")).unwrap_err(), @r"
    error[no-common-type]: u64 and i32 have no common type under OpenVINO's safe rules: no signed type of the wider one's width holds both
      input 0 is u64[1,?] from Parameter 0 `ids`
      input 1 is i32[] from Parameter 1 `offset`
      `promote-unsafe` would make them f32, `pytorch` would make them u64
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("pytorch")).unwrap(), @r"
    offset/sum.1 = Convert(offset) : u64[]
    sum = Add(ids, offset/sum.1) : u64[1,?]
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("paddle")).unwrap_err(), @r"
    error[no-common-type]: Paddle has no type u64
      input 0 is u64[1,?] from Parameter 0 `ids`
      input 1 is i32[] from Parameter 1 `offset`
      `pytorch` would make them u64
    ");
    let text = Net::new()
        .parameter("a", "string[2]")
        .parameter("b", "f32[2]")
        .layer("joined", "Concat", "opset1", &["a", "b"])
        .data("axis", "0");
    insta::assert_snapshot!(repaired(&mut text.model(), rules("openvino")).unwrap_err(), @r"
    error[no-common-type]: string and f32 have no common type: ConvertPromoteTypes does not take string
      input 0 is string[2] from Parameter 0 `a`
      input 1 is f32[2] from Parameter 1 `b`
      insert a Convert before the input whose type should change
    ");
}

#[test]
fn other_rules_are_a_remedy_for_inputs_that_agree_and_are_not_taken() {
    let net =
        Net::new().parameter("a", "f32[2]").parameter("b", "f32[2]").layer("both", "LogicalAnd", "opset1", &["a", "b"]);
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap_err(), @r"
    error[unsupported-type]: `LogicalAnd` takes booleans, but gets f32
      input 0 is f32[2] from Parameter 0 `a`
      input 1 is f32[2] from Parameter 1 `b`
      `pytorch` would make them boolean, `paddle` would make them boolean
    ");
}

#[test]
fn what_openvino_reads_stays_where_the_rules_refuse_to_repair_it() {
    let net = Net::new()
        .parameter("data", "f32[2]")
        .parameter("range", "i64[1]")
        .layer("quantized", "FakeQuantize", "opset1", &["data", "range", "range", "range", "range"])
        .data("levels", "256");
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @"quantized = FakeQuantize(data, range, range, range, range) : f32[2]");
    insta::assert_snapshot!(repaired(&mut net.model(), rules("pytorch")).unwrap(), @r"
    range/quantized.1 = Convert(range) : f32[1]
    quantized = FakeQuantize(data, range/quantized.1, range/quantized.1, range/quantized.1, range/quantized.1) : f32[2]
    ");
}

#[test]
fn a_type_that_is_not_known_because_of_an_error_is_no_error() {
    let net = Net::new()
        .parameter("data", "f32[5]")
        .parameter("indices", "f32[2]")
        .constant("axis", "i64[]")
        .layer("picked", "Gather", "opset8", &["data", "indices", "axis"])
        .parameter("a", "f16[2]")
        .parameter("b", "f32[2]")
        .layer("joined", "Concat", "opset1", &["picked", "a", "b"])
        .data("axis", "0");
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap_err(), @r"
    error[unsupported-type]: `Gather` takes integers as indices, but gets f32
      input 1, indices, is f32[2] from Parameter 1 `indices`
      insert a Convert to i64 before it
    ");
}

#[test]
fn index_inputs_of_the_wrong_kind_are_refused_and_of_the_wrong_width_aligned() {
    let gather = Net::new().parameter("data", "f32[5]").parameter("indices", "f32[2]").constant("axis", "i64[]").layer(
        "picked",
        "Gather",
        "opset8",
        &["data", "indices", "axis"],
    );
    insta::assert_snapshot!(repaired(&mut gather.model(), rules("openvino")).unwrap_err(), @r"
    error[unsupported-type]: `Gather` takes integers as indices, but gets f32
      input 1, indices, is f32[2] from Parameter 1 `indices`
      insert a Convert to i64 before it
    ");
    let bag = Net::new()
        .parameter("table", "f32[5,4]")
        .parameter("indices", "i64[3]")
        .parameter("offsets", "i32[2]")
        .layer("bag", "EmbeddingBagOffsetsSum", "opset3", &["table", "indices", "offsets"]);
    insta::assert_snapshot!(repaired(&mut bag.model(), rules("openvino")).unwrap(), @r"
    offsets/bag.2 = Convert(offsets) : i64[2]
    bag = EmbeddingBagOffsetsSum(table, indices, offsets/bag.2) : f32[2,4]
    ");
}

#[test]
fn values_of_shape_computations_follow_the_repair() {
    let net = Net::new()
        .parameter("x", "f32[6,4]")
        .parameter("y", "f32[?]")
        .bytes("wide", "i64[1]", &[2, 0, 0, 0, 0, 0, 0, 0])
        .bytes("narrow", "i32[1]", &[12, 0, 0, 0])
        .layer("target", "Concat", "opset1", &["wide", "narrow"])
        .data("axis", "0")
        .layer("shaped", "Reshape", "opset1", &["x", "target"])
        .data("special_zero", "false");
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap(), @r"
    narrow/target.1 = Convert(narrow) : i64[1]
    target = Concat(wide, narrow/target.1) : i64[2]
    shaped = Reshape(x, target) : f32[2,12]
    ");
}

#[test]
fn a_common_type_that_is_not_known_is_not_guessed() {
    let net = Net::new()
        .parameter("a", "f16[2]")
        .parameter("b", "f32[2]")
        .parameter("c", "dynamic[2]")
        .layer("joined", "Concat", "opset1", &["a", "b", "c"])
        .data("axis", "0");
    insta::assert_snapshot!(repaired(&mut net.model(), rules("openvino")).unwrap_err(), @r"
    error[no-common-type]: the common type of the inputs of `Concat` depends on an unknown type or rank
      input 0 is f16[2] from Parameter 0 `a`
      input 1 is f32[2] from Parameter 1 `b`
      input 2 is dynamic[2] from Parameter 2 `c`
      declare the types and ranks of the model's inputs
    ");
}

#[test]
fn a_boolean_mask_stays_one() {
    let net = |mask: &str| {
        Net::new()
            .parameter("q", "f16[1,2,4]")
            .parameter("k", "f32[1,3,4]")
            .parameter("v", "f32[1,3,4]")
            .parameter("mask", mask)
            .layer("attention", "ScaledDotProductAttention", "opset13", &["q", "k", "v", "mask"])
            .data("causal", "false")
    };
    insta::assert_snapshot!(repaired(&mut net("boolean[2,3]").model(), rules("openvino")).unwrap(), @r"
    q/attention.0 = Convert(q) : f32[1,2,4]
    attention = ScaledDotProductAttention(q/attention.0, k, v, mask) : f32[1,2,4]
    ");
    insta::assert_snapshot!(repaired(&mut net("f16[2,3]").model(), rules("openvino")).unwrap(), @r"
    q/attention.0 = Convert(q) : f32[1,2,4]
    mask/attention.3 = Convert(mask) : f32[2,3]
    attention = ScaledDotProductAttention(q/attention.0, k, v, mask/attention.3) : f32[1,2,4]
    ");
}

#[test]
fn unknown_rank_is_refused_only_where_it_matters() {
    let net =
        || Net::new().parameter("a", "f16[...]").parameter("b", "f32[2]").layer("sum", "Add", "opset1", &["a", "b"]);
    insta::assert_snapshot!(repaired(&mut net().model(), rules("openvino")).unwrap(), @r"
    a/sum.0 = Convert(a) : f32[...]
    sum = Add(a/sum.0, b) : f32[...]
    ");
    insta::assert_snapshot!(repaired(&mut net().model(), rules("pytorch")).unwrap(), @r"
    a/sum.0 = Convert(a) : f32[...]
    sum = Add(a/sum.0, b) : f32[...]
    ");
    let other =
        Net::new().parameter("a", "f16[2]").parameter("b", "f32[...]").layer("sum", "Add", "opset1", &["a", "b"]);
    insta::assert_snapshot!(repaired(&mut other.model(), rules("pytorch")).unwrap_err(), @r"
    error[no-common-type]: the common type of f16 and f32 depends on ranks that are not known
      input 0 is f16[2] from Parameter 0 `a`
      input 1 is f32[...] from Parameter 1 `b`
      `openvino` would make them f32
    ");
}

#[test]
fn names_stay_and_new_ones_are_unique() {
    let net = Net::new()
        .parameter("a", "f16[2]")
        .parameter("b", "f32[2]")
        .layer("sum", "Add", "opset1", &["a", "b"])
        .layer("sum", "Add", "opset1", &["b", "a"])
        .parameter("a/sum.0", "f32[1]");
    let mut model = net.model();
    let (_, changes) = infer_aligned(&mut model, rules("openvino")).unwrap();
    assert_eq!(changes.iter().map(|change| change.layer.name.as_str()).collect::<Vec<_>>(), ["a/sum.0_2"]);
}

#[test]
fn well_typed_models_stay_as_they_are() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "xml") {
            continue;
        }
        for rules in RuleSet::all() {
            let mut model = Model::open(&path).unwrap();
            let (diagnostics, changes) = infer_aligned(&mut model, rules).unwrap();
            assert_eq!(diagnostics.iter().find(|d| d.code == Code::NoCommonType), None, "{}", path.display());
            assert_eq!(changes, [], "{} under {}", path.display(), rules.name());
        }
        seen += 1;
    }
    assert!(seen > 30);
}

/// Generates graphs of operations with tied inputs, on tensors of all ranks and kinds.
fn tied() -> impl Strategy<Value = Net> {
    nets(
        &[
            "f16[2]",
            "f32[2]",
            "f64[2]",
            "bf16[?]",
            "i8[2]",
            "u8[2]",
            "i32[2]",
            "i64[]",
            "u64[2]",
            "boolean[2]",
            "f64[]",
            "f32[...]",
            "const f32[]",
            "const i64[]",
            "const f64[2]",
        ],
        &["f16", "f32", "f64", "i32", "i64", "u8", "boolean"],
        &[
            "Add-opset1",
            "Subtract-opset1",
            "Divide-opset1",
            "Equal-opset1",
            "LogicalAnd-opset1",
            "BitwiseAnd-opset13",
            "Maximum-opset1",
            "PRelu-opset1",
            "Swish-opset4",
        ],
    )
}

/// Generates such graphs with promotions, and with more tensors that can share a Convert.
fn promoted() -> impl Strategy<Value = Net> {
    nets(
        &["f16[2]", "f32[2]", "i32[2]", "i64[]", "boolean[2]", "const f32[]", "const i64[]"],
        &["f16", "f32", "i64"],
        &["ConvertPromoteTypes-opset14", "ConvertPromoteTypes-opset14", "Add-opset1", "Maximum-opset1", "Equal-opset1"],
    )
}

/// Returns the Converts of a graph, by their input tensor and destination type.
fn converts(graph: &Graph) -> BTreeMap<(LayerId, usize, ElementType), Vec<LayerId>> {
    let mut found = BTreeMap::<_, Vec<_>>::new();
    for layer in graph.layers().filter(|layer| layer.ty() == "Convert") {
        let source = graph.producer(layer.id().input(0)).unwrap();
        found.entry((source.layer, source.port, layer.outputs()[0].element_type())).or_default().push(layer.id());
    }
    found
}

fn any_rules() -> impl Strategy<Value = RuleSet> {
    let unsafely = RuleSet::OpenVino(Options { promote_unsafe: true, ..Default::default() });
    prop::sample::select(RuleSet::all().chain([unsafely]).collect::<Vec<_>>())
}

fn is_new(change: &Change) -> bool {
    change.action == Action::Inserted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_alignment_leaves_is_well_typed_or_refused_with_a_remedy(net in tied(), rules in any_rules()) {
        let mut model = net.model();
        let (diagnostics, _) = infer_aligned(&mut model, rules).unwrap();
        prop_assert_eq!(model.graph().verify(), Ok(()));
        let errors: Vec<_> = diagnostics.iter().filter(|d| d.is_error()).collect();
        for error in &errors {
            prop_assert!(error.layer.is_some() && !error.labels.is_empty(), "no place: {error}");
            let shapes = [Code::ShapeMismatch, Code::InvalidValue].contains(&error.code);
            prop_assert!(shapes || !error.fixes.is_empty(), "no remedy: {error}");
        }
        if errors.is_empty() {
            let left: Vec<_> = infer(&mut model).into_iter().filter(|d| d.is_error()).collect();
            prop_assert_eq!(left, [], "{}", common::listing(model.graph()));
        }
    }

    #[test]
    fn no_tensor_gets_a_second_convert_to_a_type(net in prop_oneof![tied(), promoted()], rules in any_rules()) {
        let mut model = net.model();
        let own: Vec<LayerId> = model.graph().layers().map(Layer::id).collect();
        let _ = infer_aligned(&mut model, rules).unwrap();
        prop_assume!(run(&mut model, LOWER_WITHOUT_NOOPS).is_ok());
        let graph = model.graph();
        // An output of the model has its own name.
        let gives = |id: &LayerId| graph.users(*id).any(|user| graph.layer(user).unwrap().ty() == "Result");
        for ((source, _, ty), twins) in converts(graph) {
            let new = twins.iter().filter(|id| !own.contains(id));
            let needless = new.filter(|id| !gives(id)).count();
            prop_assert!(needless == 0 || twins.len() == 1, "{source} to {ty}: {}", common::listing(graph));
        }
    }

    #[test]
    fn alignment_is_done_once_and_leaves_well_typed_graphs_alone(net in tied(), rules in any_rules()) {
        let mut model = net.model();
        let well = !infer(&mut model).iter().any(|diagnostic| diagnostic.is_error());
        let (diagnostics, changes) = infer_aligned(&mut model, rules).unwrap();
        prop_assert!(!well || changes.is_empty(), "{:?}", changes);
        let once = common::listing(model.graph());
        let (again, more) = infer_aligned(&mut model, rules).unwrap();
        prop_assert_eq!(more.into_iter().filter(is_new).collect::<Vec<_>>(), []);
        prop_assert_eq!(common::listing(model.graph()), once);
        prop_assert_eq!(again.len(), diagnostics.len());
    }
}
