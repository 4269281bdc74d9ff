//! Precision marks: reading, joining and writing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use typelift::edit::precision_marks::{Marks, Spelling};
use typelift::{IrVersion, Model, xml};

/// Returns a model of a ReLU with this metadata.
fn model(version: u8, rt_info: &str) -> Model {
    let text = format!(
        r#"<net name="n" version="{version}"><layers>
    <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
        <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer>
    <layer id="1" name="y" type="ReLU" version="opset1">{rt_info}<input><port id="0" precision="FP32"><dim>2</dim></port></input>
        <output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#
    );
    Model::from_xml(&text).unwrap()
}

fn marks(model: &Model) -> Marks {
    Marks::of(model.graph().layer(model.graph().find("y").unwrap()).unwrap(), model.version())
}

fn attribute(name: &str, value: &str) -> String {
    format!(r#"<rt_info><attribute name="{name}" version="0"{value}/></rt_info>"#)
}

#[test]
fn both_spellings_mean_the_same() {
    let cases = [
        (attribute("precise", ""), "DisablePrecisionConversion=dynamic:f16", true),
        (
            attribute("DisablePrecisionConversion", r#" value="dynamic:f16""#),
            "DisablePrecisionConversion=dynamic:f16",
            true,
        ),
        (
            attribute("DisablePrecisionConversion", r#" value="f32:f16;dynamic:bf16""#),
            "DisablePrecisionConversion=dynamic:bf16;f32:f16",
            false,
        ),
        (attribute("decompression", ""), "decompression", false),
        (r#"<rt_info><attribute name="decompression" version="1"/></rt_info>"#.to_owned(), "", false),
        (r#"<rt_info><user_data name="precise" value="" version=""/></rt_info>"#.to_owned(), "", false),
    ];
    for (rt_info, shown, keeps) in cases {
        let found = marks(&model(11, &rt_info));
        assert_eq!((found.to_string().as_str(), found.keeps_precision()), (shown, keeps), "{rt_info}");
        assert_eq!(marks(&model(10, &rt_info)), Marks::default(), "version 10 has no metadata of layers");
    }
}

#[test]
fn a_mark_is_written_beside_other_metadata() {
    let metadata = r#"<rt_info><attribute name="fused_names" version="0" value="a&amp;b"/><attribute name="precise" version="0"/></rt_info>"#;
    let mut model = model(11, metadata);
    let y = model.graph().find("y").unwrap();
    model.edit(|graph| graph.set_marks(y, &Marks::precise().spelled(Spelling::Conversions))).unwrap();
    let text = xml::write(&model, xml::WriteOptions::default());
    let new = r#"<rt_info><attribute name="fused_names" version="0" value="a&amp;b" /><attribute name="DisablePrecisionConversion" version="0" value="dynamic:f16" /></rt_info>"#;
    assert_eq!(text, model.source().replace(metadata, new));
    assert_eq!(marks(&Model::from_xml(&text).unwrap()), Marks::precise());
    assert_eq!(model.version(), IrVersion::V11);
}

#[test]
fn marks_that_except_different_conversions_have_no_union() {
    let bf16 = marks(&model(11, &attribute("DisablePrecisionConversion", r#" value="dynamic:bf16""#)));
    let (precise, decompression) = (Marks::precise(), Marks::decompression());
    assert_eq!(precise.union(&bf16), None);
    assert_eq!(precise.union(&Marks::default()), Some(precise.clone()));
    assert_eq!(
        precise.union(&decompression).unwrap().to_string(),
        "DisablePrecisionConversion=dynamic:f16, decompression"
    );
}
