//! Downgrades for older releases, compared with the answers of the releases and of OpenVINO about the written files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use typelift::convert::Conversion;
use typelift::xml::{WriteOptions, write};
use typelift::{IrVersion, Model, SaveOptions};

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(path)
}

fn answers() -> serde_json::Map<String, Value> {
    serde_json::from_str(&fs::read_to_string(testdata("oracle/targets/answers.json")).unwrap()).unwrap()
}

/// Returns the text that is written for a release, and the applied rules.
fn converted(model: &mut Model, target: &str) -> (String, Vec<String>) {
    let mut conversion = Conversion::default();
    conversion.target = Some(target.parse().unwrap());
    let converted = conversion.run(model).unwrap();
    let rules = converted.retargeted.unwrap().applied.into_iter().map(|site| site.rule).collect();
    let (folder, mut options) = (tempfile::tempdir().unwrap(), SaveOptions::default());
    options.text.refresh_ports = converted.refresh_ports;
    let out = folder.path().join("out.xml");
    model.save_with(&out, options).unwrap();
    (fs::read_to_string(out).unwrap(), rules)
}

#[test]
fn every_downgrade_computes_the_same() {
    let answers = answers();
    let fixtures = fs::read_dir(testdata("fixtures/target")).unwrap().map(|entry| entry.unwrap().path());
    let fixtures: Vec<_> = fixtures.filter(|path| path.extension().is_some_and(|it| it == "xml")).collect();
    assert_eq!(fixtures.len(), answers.len(), "run targets.py again");
    let mut stale = Vec::new();
    for path in fixtures {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let answer = &answers[name];
        let (text, rules) = converted(&mut Model::open(&path).unwrap(), answer["target"].as_str().unwrap());
        assert!(rules.iter().any(|rule| name.starts_with(rule.as_str())), "{name}: {rules:?}");
        let mut sum = flate2::Crc::new();
        sum.update(text.as_bytes());
        assert_eq!(answer["read"], true, "{name}");
        assert!(answer["largest_difference"].as_f64().unwrap() <= 1e-5, "{name}: {answer}");
        if answer["crc32"] != format!("{:08x}", sum.sum()) {
            stale.push(name.to_owned());
        }
    }
    assert!(stale.is_empty(), "what is written is not what OpenVINO was asked about, run targets.py again: {stale:?}");
}

#[test]
fn what_cannot_be_written_changes_nothing_and_is_named_whole() {
    let text = "
        x = Parameter : f32[2,?]
        small = Const([1, 2]) : f8e4m3[2]
        sum = Convert(small) {destination_type=f32}
        y = Inverse-14(x) {adjoint=false}
        z = Result(y)
        s = Result(sum)
    ";
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let before = model.to_string();
    let found = model.retarget("2021.4".parse().unwrap()).unwrap_err();
    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    let expected = [
        "error[newer-than-target]: the open shape of `x` needs OpenVINO 2022.1, and the target is 2021.4",
        "error[newer-than-target]: element_type=\"f8e4m3\" of `small` needs OpenVINO 2024.0, and the target is 2021.4",
        "error[newer-than-target]: Inverse of opset14 needs OpenVINO 2024.0, and the target is 2021.4",
    ];
    assert_eq!(found, expected);
    assert_eq!(model.to_string(), before);
    assert_eq!(model.version(), IrVersion::V11);
}

#[test]
fn bodies_are_rewritten_too() {
    let mut model = Model::from_text(
        "
        c = Parameter : boolean[]
        x = Parameter : f32[2,3]
        y = If-8(c, x)
            then_body (in 1 -> 0, out 2 -> 0):
                a = Parameter : f32[2,3]
                b = SoftSign-9(a)
                r = Result(b)
            else_body (in 1 -> 0, out 2 -> 0):
                a = Parameter : f32[2,3]
                b = Softmax-8(a) {axis=-1}
                r = Result(b)
        z = Result(y)
        ",
    )
    .unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let done = model.retarget("2022.1".parse().unwrap()).unwrap();
    let sites: Vec<_> = done.applied.iter().map(ToString::to_string).collect();
    assert_eq!(sites, ["soft-sign at 1 `b` in y/then_body"]);
}

#[test]
fn what_is_written_for_a_release_is_what_it_takes() {
    let xml = r#"<net name="n" version="11"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/>
            <output><port id="0" precision="UNSPECIFIED"/></output></layer>
        <layer id="1" name="y" type="Abs" version="opset16"><input><port id="0"/></input>
            <output><port id="1" precision="UNSPECIFIED"/></output></layer>
        <layer id="2" name="y" type="Exp" version="opset13"><input><port id="0"/></input>
            <output><port id="1" precision="UNSPECIFIED"/></output></layer>
        <layer id="3" name="z" type="Result" version="opset1" output_names="out"><input><port id="0"/></input></layer>
    </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
        <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/></edges></net>"#;
    let mut model = Model::from_xml(xml).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let done = model.retarget("2021.4".parse().unwrap()).unwrap();
    assert_eq!((done.versions.len(), done.names.len()), (2, 1));
    let found: Vec<_> = done.found.iter().map(ToString::to_string).collect();
    assert_eq!(
        found,
        ["warning[version-10-loss]: IR version 10 has no `output_names`: `out` becomes a name of the tensor"]
    );
    let text = write(&model, WriteOptions::default());
    assert!(!text.contains("UNSPECIFIED") && !text.contains("opset16") && !text.contains("opset13"), "{text}");
    assert!(text.contains(r#"version="10""#) && text.contains(r#"names="out""#), "{text}");
    let again = Model::from_xml(text.clone()).unwrap();
    assert_eq!(again.version(), IrVersion::V10);
}

#[test]
fn a_text_opens_as_older_releases_recognize_it() {
    let layers = r#"<layers><layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>
        <output><port id="0" precision="FP32"><dim>2</dim></port></output></layer></layers>"#;
    let written = |before: &str, target: &str| {
        let xml = format!("{before}<net name=\"n\" version=\"11\">{layers}</net>\n");
        let mut model = Model::from_xml(xml.clone()).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let found = crate::common::newer_than(&model, target.parse().unwrap());
        model.retarget(target.parse().unwrap()).unwrap();
        let text = write(&model, WriteOptions::default());
        assert_eq!(text == xml, found.is_empty(), "{found:?}");
        let again = Model::from_xml(text.clone()).unwrap();
        assert_eq!(crate::common::newer_than(&again, target.parse().unwrap()), []);
        (text, found.into_iter().map(|found| found.message.to_string()).collect::<Vec<_>>())
    };
    let (text, found) = written("", "2024.4");
    assert_eq!(found, ["a model of so few bytes needs OpenVINO 2024.5, and the target is 2024.4"]);
    assert!(text.find("</net>").unwrap() + "</net>".len() == 513, "{text}");
    let comment = format!("<!--{}-->", "a licence ".repeat(60));
    let (text, found) = written(&comment, "2022.3");
    assert_eq!(
        found,
        ["a `<net>` tag this far from the start of the file needs OpenVINO 2024.5, and the target is 2022.3"]
    );
    assert!(text.starts_with("<?xml version=\"1.0\"?>\n<net name"), "{text}");
    assert_eq!(written(&comment, "2024.5").1, [""; 0]);
    assert_eq!(written("", "2024.5").1, [""; 0]);
}

#[test]
fn ports_of_version_10_with_open_dims_are_found() {
    let xml = r#"<net name="n" version="10"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1"><data shape="2,3" element_type="f32"/>
            <output><port id="0" precision="FP32"><dim>2</dim><dim>3</dim></port></output></layer>
        <layer id="1" name="y" type="Abs" version="opset1"><input><port id="0"><dim>2</dim><dim>3</dim></port></input>
            <output><port id="1" precision="FP32"><dim>2</dim><dim>-1</dim></port></output></layer>
        <layer id="2" name="z" type="Abs" version="opset1"><input><port id="0"><dim>2</dim><dim>3</dim></port></input>
            <output><port id="1" precision="UNSPECIFIED"/></output></layer>
    </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
        <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;
    let mut model = Model::from_xml(xml).unwrap();
    let _ = typelift::infer(&mut model);
    let found = crate::common::newer_than(&model, "2021.4".parse().unwrap());
    let found: Vec<_> = found.into_iter().map(|found| found.message.to_string()).collect();
    let expected = [
        "a dimension of -1 in a port of `y` needs OpenVINO 2022.1, and the target is 2021.4",
        "a port without an element type of `z` needs OpenVINO 2023.0, and the target is 2021.4",
    ];
    assert_eq!(found, expected);
}

#[test]
fn outputs_of_one_tensor_come_apart_in_version_10() {
    let text = "
        x = Parameter : f32[2,3] \"x\"
        y = Abs(x)
        a = Result(y)
        b = Result(y)
        c = Result(x)
    ";
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    model.retarget("2021.4".parse().unwrap()).unwrap();
    let sources: Vec<_> = model
        .graph()
        .layers()
        .filter(|layer| layer.ty() == "Result")
        .map(|layer| {
            let source = model.graph().producers(layer.id())[0].unwrap();
            model.graph().layer(source.layer).unwrap().ty().to_owned()
        })
        .collect();
    assert_eq!(sources, ["Abs", "Convert", "Convert"]);
}

#[test]
fn a_boolean_mask_becomes_numbers_for_a_release_that_refuses_it() {
    let text = "
        q = Parameter : f32[1,2,?,8]
        m = Parameter : boolean[1,1,?,?]
        a = ScaledDotProductAttention-13(q, q, q, m) {causal=false}
        b = ScaledDotProductAttention-13(a, q, q, m) {causal=false}
        r = Result(b)
    ";
    for (release, expected) in [("2023.3", 1), ("2024.0", 0)] {
        let mut model = Model::from_text(text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let done = model.retarget(release.parse().unwrap()).unwrap();
        let selects: Vec<_> = model.graph().layers().filter(|layer| layer.ty() == "Select").collect();
        assert_eq!((selects.len(), done.masks.len()), (expected, 2 * expected), "{release}:\n{model}");
        for select in selects {
            let hidden = model.graph().producer(select.id().input(2)).unwrap();
            assert_eq!(
                model.graph().layer(hidden.layer).unwrap().numbers(model.weights()),
                Some(vec![f64::NEG_INFINITY])
            );
        }
    }
}
