//! The number of Converts, and their losses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Net, listing, nets};
use proptest::prelude::*;
use typelift::passes::{Action, ELIMINATE_CONVERTS, infer_aligned, run};
use typelift::promote::openvino::Options;
use typelift::promote::{ElementType, Loss, RuleSet, fidelity};
use typelift::{Graph, LayerId, Output, infer};

/// Returns the listing after the pass.
fn eliminated(net: &Net) -> String {
    let mut model = net.model();
    assert_eq!(infer(&mut model), []);
    run(&mut model, ELIMINATE_CONVERTS).unwrap();
    assert_eq!(run(&mut model, ELIMINATE_CONVERTS).unwrap(), [], "a second run changes something");
    listing(model.graph())
}

/// A Convert after a Clamp and a Round was said to wrap and to truncate.
#[test]
fn losses_depend_on_the_layers_before_a_convert() {
    let clamp = |least: &str, most: &str| format!("a = Clamp(x) {{min={least}, max={most}}}\n");
    let (small, round) = (clamp("0", "255"), "b = Round(a) {mode=half_to_even}\n");
    let table = [
        (format!("{small}{round}"), "u8", "exact"),
        (format!("{small}k = Const([0]) : i64[1]\nb = Unsqueeze(a, k)\nc = Floor(b)\n"), "u8", "exact"),
        ("a = Round(x) {mode=half_to_even}\nb = Clamp(a) {min=-128, max=127}\n".to_owned(), "i8", "exact"),
        (format!("{small}{round}"), "i8", "wraps below -128 and from 128"),
        (format!("{small}{round}"), "f16", "exact"),
        (format!("{small}{round}"), "boolean", "collapses"),
        (small.clone(), "u8", "truncates"),
        (small, "f16", "rounds to 11 bits"),
        (clamp("0", "0.5") + "b = Floor(a)\n", "boolean", "exact"),
        ("a = Floor(x)\n".to_owned(), "i64", "wraps below -2^63 and from 2^63"),
        // The largest number is 2147483648 in f32.
        (clamp("0", "2147483647") + round, "i32", "wraps below -2^31 and from 2^31"),
        ("a = Convert(x) {destination_type=i8}\nb = Convert(a) {destination_type=f32}\n".to_owned(), "f16", "exact"),
        (
            "a = Convert(x) {destination_type=boolean}\nb = Convert(a) {destination_type=f32}\n".to_owned(),
            "u8",
            "exact",
        ),
        (
            "k = Const([3]) : f32[]\nl = Const([0]) : f32[]\na = Minimum(x, k)\nb = Maximum(a, l)\nc = Ceiling(b)\n"
                .to_owned(),
            "u4",
            "exact",
        ),
        ("k = Const([3]) : f32[]\na = Round(x) {mode=half_to_even}\nb = Add(a, k)\nc = Clamp(b) {min=0, max=255}\n".to_owned(), "u8", "exact"),
        ("k = Const([3]) : f32[]\na = Clamp(x) {min=0, max=250}\nb = Add(a, k)\nc = Round(b) {mode=half_to_even}\n".to_owned(), "u8", "exact"),
        ("k = Const([0.5]) : f32[]\na = Round(x) {mode=half_to_even}\nb = Add(a, k)\nc = Clamp(b) {min=0, max=255}\n".to_owned(), "u8", "truncates"),
        ("a = Relu(x)\nb = Round(a) {mode=half_to_even}\n".to_owned(), "u8", "wraps below 0 and from 256"),
        ("a = NonZero(x) {output_type=i64}\n".to_owned(), "u1", "exact"),
        ("a = ShapeOf(x) {output_type=i64}\n".to_owned(), "u1", "wraps below 0 and from 2"),
        ("a = ShapeOf(x) {output_type=i64}\n".to_owned(), "u2", "exact"),
        ("k = Const([0]) : i64[]\nl = Const([100]) : i64[]\nm = Const([1]) : i64[]\na = Range(k, l, m) {output_type=i64}\n".to_owned(), "i8", "exact"),
        (
            "k = Const([1]) : i64[1]\nl = Const([0.5]) : f32[]\na = Pad(x, k, k, l) {pad_mode=constant}\n".to_owned(),
            "i8",
            "wraps below -128 and from 128, truncates",
        ),
        ("a = Convert(x) {destination_type=i32}\n".to_owned(), "f16", "rounds above 2^11, overflows above 65504"),
    ];
    for (layers, to, effect) in table {
        let last = layers.trim_end().rsplit('\n').next().unwrap()[..1].to_owned();
        let text =
            format!("x = Parameter : f32[2]\n{layers}y = Convert({last}) {{destination_type={to}}}\nz = Result(y)\n");
        let mut model = typelift::Model::from_text(&text).unwrap();
        assert_eq!(infer(&mut model), [], "{text}");
        let layer = model.graph().layer(model.graph().find("y").unwrap()).unwrap();
        let conversion = typelift::ops::conversion(model.graph(), layer).unwrap();
        assert_eq!(conversion.effect(model.graph(), model.weights(), layer).to_string(), effect, "{text}");
    }
}

#[test]
fn chains_collapse_where_every_value_survives() {
    let chain = |from: &str, types: &[&str]| {
        let mut net = Net::new().parameter("x", &format!("{from}[2]"));
        let mut last = "x".to_owned();
        for (at, ty) in types.iter().enumerate() {
            let name = format!("c{at}");
            net = net.converted(&name, &last, ty);
            last = name;
        }
        eliminated(&net.layer("end", "Identity", "opset16", &[&last]))
    };
    insta::assert_snapshot!(chain("f16", &["f32", "f16"]), @"end = Identity(x) : f16[2]");
    insta::assert_snapshot!(chain("i8", &["i32", "i64"]), @r"
    c1 = Convert(x) : i64[2]
    end = Identity(c1) : i64[2]
    ");
    insta::assert_snapshot!(chain("i8", &["i32", "i64", "f32", "i8"]), @"end = Identity(x) : i8[2]");
    insta::assert_snapshot!(chain("f32", &["f64", "f16"]), @r"
    c1 = Convert(x) : f16[2]
    end = Identity(c1) : f16[2]
    ");
    // A Convert that rounds, wraps or truncates is kept.
    insta::assert_snapshot!(chain("f32", &["f16", "f32"]), @r"
    c0 = Convert(x) : f16[2]
    c1 = Convert(c0) : f32[2]
    end = Identity(c1) : f32[2]
    ");
    insta::assert_snapshot!(chain("i64", &["i32", "i64"]), @r"
    c0 = Convert(x) : i32[2]
    c1 = Convert(c0) : i64[2]
    end = Identity(c1) : i64[2]
    ");
    insta::assert_snapshot!(chain("i32", &["boolean", "i32"]), @r"
    c0 = Convert(x) : boolean[2]
    c1 = Convert(c0) : i32[2]
    end = Identity(c1) : i32[2]
    ");
    // The conversion of a float out of range depends on the type of the float.
    insta::assert_snapshot!(chain("f16", &["f32", "u8"]), @r"
    c0 = Convert(x) : f32[2]
    c1 = Convert(c0) : u8[2]
    end = Identity(c1) : u8[2]
    ");
    insta::assert_snapshot!(chain("u8", &["f32", "u8"]), @"end = Identity(x) : u8[2]");
}

#[test]
fn equal_conversions_of_a_tensor_become_one() {
    let net = Net::new()
        .parameter("x", "f16[2]")
        .converted("a", "x", "f32")
        .converted("b", "x", "f32")
        .converted("c", "b", "f64")
        .converted("d", "x", "f64")
        .layer("sum", "Add", "opset1", &["a", "b"])
        .layer("wide", "Add", "opset1", &["c", "d"]);
    insta::assert_snapshot!(eliminated(&net), @r"
    a = Convert(x) : f32[2]
    c = Convert(x) : f64[2]
    sum = Add(a, a) : f32[2]
    wide = Add(c, c) : f64[2]
    ");
}

#[test]
fn converts_that_give_results_their_names_stay() {
    let net = Net::new()
        .parameter("x", "f16[2]")
        .converted("a", "x", "f32")
        .converted("b", "a", "f16")
        .converted("c", "x", "f32");
    insta::assert_snapshot!(eliminated(&net), @r"
    b = Convert(x) : f16[2]
    c = Convert(x) : f32[2]
    ");
}

/// True if converting the end of a chain without loss equals converting its first tensor.
fn is_same(first: ElementType, last: ElementType, to: ElementType) -> bool {
    let exact = fidelity(first, last).is_some_and(|fidelity| fidelity.is_exact());
    exact && !(last.is_float() && fidelity(first, to).is_none_or(|fidelity| fidelity.can(Loss::Wraps)))
}

/// A graph before alignment, with the types of its tensors after it.
struct Typed {
    graph: Graph,
    types: BTreeMap<LayerId, ElementType>,
}

/// A conversion of a tensor to a type, which exists, is needed, or is possible.
type Conversion = (Output, ElementType);

impl Typed {
    fn element_type(&self, tensor: Output) -> ElementType {
        self.types[&tensor.layer]
    }

    fn producers(&self, id: LayerId) -> impl Iterator<Item = Output> {
        self.graph.producers(id).into_iter().flatten()
    }

    /// Returns a tensor, and the tensors in the chain of conversions to it from which no value was lost.
    fn ancestors(&self, tensor: Output) -> Vec<Output> {
        let mut chain = vec![tensor];
        while let Some(layer) = self.graph.layer(chain[chain.len() - 1].layer).filter(|layer| layer.ty() == "Convert") {
            chain.extend(self.producers(layer.id()).next());
        }
        let keeps = |from, to| fidelity(from, to).is_some_and(|fidelity| fidelity.is_exact());
        let survives = |at: usize| {
            let from = self.element_type(chain[at]);
            chain[..at].iter().all(|&later| keeps(from, self.element_type(later)))
        };
        (0..chain.len()).filter(|&at| survives(at)).map(|at| chain[at]).collect()
    }

    /// True if one conversion equals another one.
    fn serves(&self, (source, made): Conversion, (tensor, to): Conversion) -> bool {
        made == to
            && self.ancestors(source).into_iter().any(|first| {
                let ty = self.element_type(first);
                let same = |last| first == last || is_same(ty, self.element_type(last), to);
                self.ancestors(tensor).contains(&first) && same(source) && same(tensor)
            })
    }

    /// Returns the smallest number of Converts that meet `needs`, found by trying all sets of them.
    fn least(&self, needs: &BTreeSet<Conversion>) -> usize {
        let converts = self.graph.layers().filter(|layer| layer.ty() == "Convert");
        let there: Vec<Conversion> =
            converts.map(|layer| (self.producers(layer.id()).next().unwrap(), self.types[&layer.id()])).collect();
        let is_met = |need: &Conversion, more: &[Conversion]| {
            let mut known = self.ancestors(need.0).into_iter();
            known.any(|tensor| self.element_type(tensor) == need.1)
                || there.iter().chain(more).any(|&convert| self.serves(convert, *need))
        };
        let types: BTreeSet<ElementType> = needs.iter().map(|need| need.1).collect();
        let tensors = self.types.keys().map(|&layer| Output { layer, port: 0 });
        let all = tensors.flat_map(|tensor| types.iter().map(move |&ty| (tensor, ty)));
        let useful: Vec<_> = all.filter(|&convert| needs.iter().any(|&need| self.serves(convert, need))).collect();
        let enough =
            |count: &usize| subsets(&useful, *count).iter().any(|set| needs.iter().all(|need| is_met(need, set)));
        (0..=needs.len()).find(enough).unwrap()
    }
}

fn subsets<T: Copy>(items: &[T], count: usize) -> Vec<Vec<T>> {
    match (items, count) {
        (_, 0) => vec![Vec::new()],
        ([], _) => Vec::new(),
        ([first, rest @ ..], count) => {
            let with = subsets(rest, count - 1).into_iter().map(|mut set| {
                set.push(*first);
                set
            });
            with.chain(subsets(rest, count)).collect()
        }
    }
}

const TYPES: &[&str] = &["f16", "f32", "f64", "i8", "i32", "i64"];
const TENSORS: &[&str] = &["f16[2]", "f32[2]", "f64[2]", "i8[2]", "i32[2]", "i64[2]"];

/// Conversions from one type to another.
type Steps = Vec<(ElementType, ElementType)>;

/// Returns the lossy conversions that lead to a tensor, and the tensor at their start. Two tensors of one type for
/// which these are equal hold the same values.
fn losses(graph: &Graph, tensor: Output) -> (LayerId, Steps) {
    let mut chain = vec![tensor];
    while let Some(layer) = graph.layer(chain[chain.len() - 1].layer).filter(|layer| layer.ty() == "Convert") {
        chain.extend(graph.producers(layer.id())[0]);
    }
    let types: Vec<_> = chain.iter().rev().map(|&tensor| graph.output(tensor).unwrap().element_type()).collect();
    // The values are those of `origin`, in the type before.
    let (mut origin, mut steps) = (types[0], Vec::new());
    for pair in types.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let from = if is_same(origin, from, to) { origin } else { from };
        if !fidelity(from, to).is_some_and(|fidelity| fidelity.is_exact()) {
            steps.push((from, to));
            origin = to;
        }
    }
    (chain[chain.len() - 1].layer, steps)
}

/// Returns the losses of each input of each layer other than a Convert.
fn taken(graph: &Graph) -> Vec<(LayerId, ElementType, LayerId, Steps)> {
    let layers = graph.layers().filter(|layer| layer.ty() != "Convert");
    let inputs =
        layers.flat_map(|layer| graph.producers(layer.id()).into_iter().map(|tensor| (layer.id(), tensor.unwrap())));
    let described = inputs.map(|(id, tensor)| {
        let (source, steps) = losses(graph, tensor);
        (id, graph.output(tensor).unwrap().element_type(), source, steps)
    });
    described.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn eliminating_converts_changes_no_value_and_is_done_once(
        net in nets(
            &["f16[2]", "f32[2]", "i8[2]", "u8[2]", "i32[2]", "i64[2]", "boolean[2]"],
            &["f16", "f32", "f64", "i8", "u8", "i32", "i64", "boolean"],
            &["ConvertLike-opset1", "SearchSorted-opset15"],
        ),
    ) {
        let mut model = net.model();
        let _ = infer(&mut model);
        let (before, count) = (taken(model.graph()), model.graph().len());
        run(&mut model, ELIMINATE_CONVERTS).unwrap();
        prop_assert_eq!(taken(model.graph()), before, "{}", listing(model.graph()));
        prop_assert!(model.graph().len() <= count);
        prop_assert_eq!(run(&mut model, ELIMINATE_CONVERTS).unwrap(), []);
    }

    #[test]
    fn no_fewer_converts_would_do(net in nets(TENSORS, TYPES, &["Add-opset1"]), pytorch: bool) {
        let rules = match pytorch {
            true => RuleSet::from_name("pytorch").unwrap(),
            false => RuleSet::OpenVino(Options { promote_unsafe: true, ..Default::default() }),
        };
        let mut model = net.model();
        let (diagnostics, changes) = infer_aligned(&mut model, rules).unwrap();
        prop_assert!(!diagnostics.iter().any(|diagnostic| diagnostic.is_error()), "{diagnostics:?}");
        let before = net.model();
        let graph = before.graph();
        let types = graph.layers().map(|layer| {
            let after = model.graph().layer(layer.id()).and_then(|layer| Some(layer.outputs().first()?.element_type()));
            // A Convert that lost its last use is removed.
            let named = || ElementType::from_name(layer.attribute("destination_type")?);
            (layer.id(), after.or_else(named).unwrap_or(ElementType::Dynamic))
        });
        let typed = Typed { types: types.collect(), graph: graph.clone() };
        let sums = typed.graph.layers().filter(|layer| layer.ty() == "Add");
        let wanted = sums.flat_map(|sum| typed.producers(sum.id()).map(|source| (source, typed.types[&sum.id()])));
        let needs: BTreeSet<_> = wanted.filter(|&(source, ty)| typed.element_type(source) != ty).collect();
        let inserted = changes.iter().filter(|change| change.action == Action::Inserted).count();
        prop_assert_eq!(inserted, typed.least(&needs), "{}\n{}", listing(model.graph()), net.xml());
    }
}

fn audit_of(constant: &Net, to: &str, rules: RuleSet) -> String {
    let mut model =
        constant.clone().parameter("other", &format!("{to}[2]")).layer("sum", "Add", "opset1", &["w", "other"]).model();
    let (diagnostics, changes) = infer_aligned(&mut model, rules).unwrap();
    assert!(!diagnostics.iter().any(|diagnostic| diagnostic.is_error()), "{diagnostics:?}");
    let change = &changes[0];
    let audit = change.audit().map_or("not looked at".to_owned(), |audit| audit.to_string());
    assert_eq!(change.warning(&model).is_some(), change.audit().is_some_and(|audit| audit.lost() > 0));
    format!("{} -> {}: {audit}", change.from, change.to)
}

#[test]
fn what_constants_lose_is_counted() {
    let unsafely = RuleSet::OpenVino(Options { promote_unsafe: true, ..Default::default() });
    let scalars =
        RuleSet::OpenVino(Options { pytorch_scalar_promotion: true, promote_unsafe: true, ..Default::default() });
    let ints = |values: &[i64]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
    let net = Net::new().bytes("w", "i64[2]", &ints(&[3, 70000]));
    insta::assert_snapshot!(audit_of(&net, "f16", unsafely), @"i64 -> f16: 1 of 2 values changes: 1 overflows");
    let net = Net::new().bytes("w", "i64[2]", &ints(&[16_777_217, 1]));
    insta::assert_snapshot!(audit_of(&net, "f32", unsafely), @"i64 -> f32: 1 of 2 values changes: 1 is rounded; off by up to 1 (5.96e-6 %)");
    let net = Net::new().bytes("w", "i64[2]", &ints(&[5, 1]));
    insta::assert_snapshot!(audit_of(&net, "f32", unsafely), @"i64 -> f32: 0 of 2 values change");
    let net = Net::new().bytes("w", "i64[]", &ints(&[300]));
    insta::assert_snapshot!(audit_of(&net, "i8", scalars), @"i64 -> i8: 1 of 1 values changes: 1 wraps around; off by up to 256 (85.3 %)");
    let net = Net::new().bytes("w", "f64[]", &0.1_f64.to_le_bytes());
    insta::assert_snapshot!(audit_of(&net, "f32", scalars), @"f64 -> f32: 1 of 1 values changes: 1 is rounded; off by up to 1.49e-9 (1.49e-6 %)");
    let net = Net::new().bytes("w", "f64[]", &1e300_f64.to_le_bytes());
    insta::assert_snapshot!(audit_of(&net, "f32", scalars), @"f64 -> f32: 1 of 1 values changes: 1 overflows");
    // Packed values: 7 and -8 are i4, and u4 with i4 give i8, which holds them; f8e4m3 cannot represent 15 with 4 or
    // more bits.
    let net = Net::new().bytes("w", "i4[2]", &[0x87]);
    insta::assert_snapshot!(audit_of(&net, "f8e5m2", unsafely), @"i4 -> f8e5m2: not looked at");
    let net = Net::new().bytes("w", "u4[2]", &[0xf9]);
    insta::assert_snapshot!(audit_of(&net, "f8e5m2", unsafely), @"u4 -> f8e5m2: 2 of 2 values change: 2 are rounded; off by up to 1 (11.1 %)");
}

#[test]
fn truth_values_collapse() {
    let net = Net::new().bytes("w", "i32[2]", &[7, 0, 0, 0, 1, 0, 0, 0]).parameter("b", "boolean[2]").layer(
        "both",
        "LogicalAnd",
        "opset1",
        &["w", "b"],
    );
    let mut model = net.model();
    let (_, changes) = infer_aligned(&mut model, RuleSet::from_name("pytorch").unwrap()).unwrap();
    insta::assert_snapshot!(changes[0].audit().unwrap(), @"1 of 2 values changes: 1 becomes true; off by up to 6 (85.7 %)");
    let warning = changes[0].warning(&model).unwrap();
    insta::assert_snapshot!(format!("{warning}\n{}\n{}", warning.labels[0].message, warning.notes[0]), @r"
    warning[lossy-conversion]: values of the constant `w` are lost in the conversion from i32 to boolean
    1 of 2 values changes: 1 becomes true; off by up to 6 (85.7 %)
    LogicalAnd 2 `both` takes i32 from `w` and boolean from `b`: the operation treats every number except zero as true
    ");
    insta::assert_snapshot!(serde_json::to_string_pretty(&changes[0]).unwrap(), @r#"
    {
      "action": "inserted",
      "layer": {
        "id": 4,
        "name": "w/both.0",
        "path": ""
      },
      "from": "i32",
      "to": "boolean",
      "can_lose": [
        "collapses"
      ],
      "audit": {
        "values": 2,
        "rounded": 0,
        "overflowed": 0,
        "wrapped": 0,
        "saturated": 0,
        "truncated": 0,
        "collapsed": 1,
        "vanished": 0,
        "worst_absolute_error": 6.0,
        "worst_relative_error": 0.8571428571428571
      },
      "source": {
        "id": 0,
        "name": "w",
        "path": ""
      },
      "reason": "LogicalAnd 2 `both` takes i32 from `w` and boolean from `b`: the operation treats every number except zero as true"
    }
    "#);
}

#[test]
fn a_large_constant_is_read_in_pieces() {
    let count = 200_003_usize;
    let bytes: Vec<u8> = (0..count as u64).flat_map(|value| (value * 1_000_003).to_le_bytes()).collect();
    let net = Net::new().bytes("w", &format!("i64[{count}]"), &bytes).parameter("x", "f32[1]").layer(
        "sum",
        "Add",
        "opset1",
        &["w", "x"],
    );
    let unsafely = RuleSet::OpenVino(Options { promote_unsafe: true, ..Default::default() });
    let (_, changes) = infer_aligned(&mut net.model(), unsafely).unwrap();
    let rounded = (0..count as u64).filter(|value| (value * 1_000_003) as f32 as u64 != value * 1_000_003).count();
    let audit = changes[0].audit().unwrap();
    assert_eq!((audit.values, audit.rounded), (count as u64, rounded as u64));
}
