//! Types as text for serde: reading returns the value that was written.

use serde_json::{from_str, json, to_value};
use typelift_promote::{Dim, ElementType, Operand, Promotion, RuleSet, fidelity};

#[test]
fn every_type_is_written_and_read_by_its_name() {
    for ty in ElementType::all() {
        let text = serde_json::to_string(&ty).unwrap();
        assert_eq!(text, format!("{:?}", ty.name()));
        assert_eq!(from_str::<ElementType>(&text).unwrap(), ty);
    }
    assert_eq!(from_str::<ElementType>("\"bool\"").unwrap(), ElementType::Boolean);
    let error = from_str::<ElementType>("\"f33\"").unwrap_err().to_string();
    assert!(error.contains("\"f33\", expected the name of an element type"), "{error}");
}

#[test]
fn questions_and_answers_are_data() {
    let rules = RuleSet::from_name("pytorch").unwrap();
    let operands = ["u8[2]", "1.5"].map(|text| rules.operand(text).unwrap());
    let text = serde_json::to_string(&operands).unwrap();
    assert_eq!(
        text,
        r#"[{"element_type":"u8","category":"dimensioned"},{"element_type":"f64","category":"number","literal":{"float":"f16"}}]"#
    );
    assert_eq!(from_str::<[Operand; 2]>(&text).unwrap(), operands);
    let found = rules.promote("add", &operands).unwrap();
    let value = to_value(found).unwrap();
    assert_eq!(value, json!({"common": "f32", "result": "f32", "is_weak": false}));
    assert_eq!(serde_json::from_value::<Promotion>(value).unwrap(), found);
}

#[test]
fn refusals_dims_and_losses_are_texts() {
    let openvino = RuleSet::from_name("openvino").unwrap();
    let operands = ["f16", "i64"].map(|text| openvino.operand(text).unwrap());
    let refusal = openvino.promote("add", &operands).unwrap_err();
    let value = to_value(refusal).unwrap();
    assert_eq!(value["code"], refusal.code());
    assert_eq!(value["message"], refusal.to_string());
    assert_eq!(to_value([Dim::ANY, Dim::fixed(3), Dim::between(1, 5)]).unwrap(), json!(["?", "3", "1..5"]));
    assert_eq!(to_value(fidelity(ElementType::I64, ElementType::F16)).unwrap(), json!("rounds, overflows"));
    let suggestion = openvino.suggestion("add", &operands).unwrap();
    assert_eq!(to_value(suggestion).unwrap(), json!({"flag": {"name": "promote-unsafe", "result": "f16"}}));
}
