//! Compares OpenVINO's rules with its answers.

use typelift_promote::openvino::{Options, Quirk, is_supported, promote, quirk};
use typelift_promote::{Category, ElementType, Operand};

use super::tables::{compare, read, rows};

fn ty(name: &str) -> ElementType {
    ElementType::from_name(name).unwrap_or_else(|| panic!("no type {name}"))
}

/// Parses a key such as `1-0-sd`: promote_unsafe, pytorch_scalar_promotion, and the ranks of both operands.
fn setting(key: &str) -> (Options, [Category; 2]) {
    let rank = |i| match &key[i..=i] {
        "s" => Category::ZeroDim,
        "d" | "q" => Category::Dimensioned,
        "r" => Category::UnknownRank,
        other => panic!("rank {other}"),
    };
    let flag = |i| &key[i..=i] == "1";
    let attributes = Options { promote_unsafe: flag(0), pytorch_scalar_promotion: flag(2), ..Options::default() };
    (attributes, [rank(4), rank(5)])
}

fn cell(attributes: &Options, ranks: [Category; 2], a: &str, b: &str) -> String {
    let operand = |name, rank| Operand::new(ty(name), rank);
    match promote(operand(a, ranks[0]), operand(b, ranks[1]), attributes) {
        Ok(result) => result.to_string(),
        Err(refusal) => match refusal.code() {
            "unsupported-type" => "!unsup",
            "no-common-float" => "!nofit",
            "integer-to-float" => "!int_real",
            "unsigned-to-signed" => "!unsigned",
            "wide-scalar" => "!pt_scalar",
            other => panic!("{other}"),
        }
        .to_owned(),
    }
}

#[test]
fn every_pair_of_types_ranks_and_flags() {
    let compared = compare("openvino/promote.csv", |key, a, b, _| {
        let (attributes, ranks) = setting(key);
        Some(cell(&attributes, ranks, a, b))
    });
    assert_eq!(compared, 64 * 26 * 26);
}

#[test]
fn every_u64_integer_promotion_target() {
    let compared = compare("openvino/u64_target.csv", |key, pair, target, _| {
        let (attributes, ranks) = setting(key);
        let (a, b) = pair.split_once('+').unwrap();
        Some(cell(&Options { u64_integer_promotion_target: ty(target), ..attributes }, ranks, a, b))
    });
    assert_eq!(compared, 64 * 10 * 26);
}

#[test]
fn quirks_are_where_package_and_document_differ_and_where_a_scalar_rounds() {
    let text = read("openvino/document.csv");
    let documented: Vec<_> = rows(&text).skip(1).collect();
    let known = |ty: &ElementType| is_supported(*ty) && *ty != ElementType::Dynamic;
    let types: Vec<_> = ElementType::all().filter(known).collect();
    let (mut out_of_range, mut rounds) = (0, Vec::new());
    for key in ["ss", "sd", "sq", "ds", "dd", "dq", "qs", "qd", "qq", "rs", "sr"] {
        for (&x, &y) in types.iter().flat_map(|x| types.iter().map(move |y| (x, y))) {
            for flags in ["0-0", "0-1", "1-0", "1-1"] {
                let (attributes, ranks) = setting(&format!("{flags}-{key}"));
                let operand = |element_type, rank| Operand::new(element_type, rank);
                let quirk = quirk(operand(x, ranks[0]), operand(y, ranks[1]), &attributes);
                let differs = flags == "0-1"
                    && documented.iter().any(|row| {
                        row[0].split(' ').any(|ranks| ranks == key) && (row[1], row[2]) == (x.name(), y.name())
                    });
                assert_eq!(matches!(quirk, Some(Quirk::ScalarOutOfRange { .. })), differs, "{flags} {key} {x} {y}");
                out_of_range += usize::from(differs);
                if let (Some(Quirk::ScalarRounds { scalar, result }), "ds") = (quirk, key) {
                    rounds.push((scalar, result));
                }
            }
        }
    }
    assert_eq!(out_of_range, 44);
    assert_eq!(rounds, [(ElementType::F16, ElementType::Bf16), (ElementType::F8E4M3, ElementType::F8E5M2)]);
}

#[test]
fn every_spelling_of_a_type() {
    let text = read("openvino/spellings.csv");
    let mut asked = 0;
    for row in rows(&text).skip(1) {
        let [spelling, attribute, port] = row[..] else { panic!("{row:?}") };
        assert_eq!(ElementType::from_name(spelling).map_or("-", ElementType::name), attribute, "{spelling:?}");
        assert_eq!(ElementType::from_port_name(spelling).is_some(), port == "accepted", "{spelling:?} of a port");
        asked += 1;
    }
    assert_eq!(asked, 93);
}
