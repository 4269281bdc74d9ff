//! Compares what each OpenVINO release reads with the answers of the released packages, and with `docs/operations.md`,
//! which `UPDATE_DOCS=1` writes anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use typelift::Model;
use typelift::ops::{self, Release, Requirements};
use typelift::promote::ElementType;

/// Returns the rows of a table, and the first release of each; `None` if no release reads it.
fn table(name: &str) -> Vec<(Vec<String>, Option<Release>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/releases").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let row = |line: &str| {
        let mut cells: Vec<_> = line.split(',').map(str::to_owned).collect();
        let first = cells.pop().unwrap();
        let first = (!first.is_empty()).then(|| first.trim_start_matches("<=").parse().unwrap());
        (cells, first)
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn every_operation_has_its_first_release() {
    let mut wrong = Vec::new();
    let rows = table("operations.csv");
    for (cells, first) in &rows {
        let (name, opset) = (&cells[0], cells[1].parse().unwrap());
        let found = ops::lookup(name, &format!("opset{opset}")).and_then(|row| Release::of_operation(row, opset));
        if found != *first {
            wrong.push(format!("{name}-{opset}: {found:?}, not {first:?}"));
        }
    }
    assert_eq!(rows.len(), 985);
    assert!(wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), rows.len());
}

/// A file of one layer without attributes needs the release of its operation and nothing newer, whatever else is wrong
/// with it.
#[test]
fn a_file_of_one_layer_needs_the_release_of_its_operation() {
    let port = r#"<port id="0" precision="FP32"><dim>1</dim><dim>2</dim></port>"#;
    let mut wrong = Vec::new();
    for (cells, first) in &table("operations.csv") {
        let (name, opset) = (&cells[0], &cells[1]);
        let text = format!(
            r#"<net name="o" version="11"><layers>
            <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,2" element_type="f32"/><output>{port}</output></layer>
            <layer id="1" name="op" type="{name}" version="opset{opset}"><input>{port}</input><output><port id="1" precision="FP32"/></output></layer>
            <layer id="2" name="r" type="Result" version="opset1"><input>{port}</input></layer></layers>
            <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
            <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#
        );
        let mut model = Model::from_xml(text).unwrap();
        let _refused = typelift::infer(&mut model);
        let layer = model.graph().layer(model.graph().find("op").unwrap()).unwrap();
        let needed = Requirements::new(model.graph()).of(layer).max_by_key(|it| it.release);
        let release = needed.map_or(Release::OLDEST, |it| it.release);
        if first.is_some_and(|first| first != release) {
            wrong.push(format!("{name}-{opset}: {needed:?}, not {first:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}: {wrong:#?}", wrong.len());
}

#[test]
fn every_element_type_has_its_first_release() {
    for (cells, first) in table("element_types.csv") {
        let ty = ElementType::from_name(&cells[0]);
        assert_eq!(ty.map(Release::of_element_type), first, "{}", cells[0]);
    }
}

#[test]
fn every_value_of_an_attribute_has_its_first_release() {
    let mut asked = BTreeMap::new();
    for (cells, first) in table("attribute_values.csv") {
        asked.insert(<[String; 4]>::try_from(cells).unwrap(), first);
    }
    for operation in ops::all() {
        let opset = operation.opsets().next().unwrap();
        let own = Release::of_operation(operation, opset).unwrap();
        for (attribute, values) in operation.enumerations() {
            for value in values {
                let key = [operation.name, &operation.revision.to_string(), attribute, value].map(str::to_owned);
                let first = asked.remove(&key).unwrap_or_else(|| panic!("{key:?} was not asked"));
                // A value that no release reads is refused in its own right.
                let Some(first) = first else { continue };
                assert_eq!(own.max(Release::of_attribute(operation, attribute, value)), first, "{key:?}");
            }
        }
    }
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn the_document_says_what_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (intro, _) = document.split_once("<!-- generated: releases -->").unwrap();
    let expected = format!("{intro}<!-- generated: releases -->\n\n{}", what_came_when());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert!(document == expected, "docs/operations.md is out of date: run this test with UPDATE_DOCS=1");
    }
}

/// Lists what each release was the first to read.
fn what_came_when() -> String {
    let mut news = BTreeMap::<Release, BTreeMap<u8, Vec<&str>>>::new();
    for operation in ops::all() {
        for opset in operation.opsets() {
            let release = Release::of_operation(operation, opset).unwrap();
            news.entry(release).or_default().entry(opset).or_default().push(operation.name);
        }
    }
    let mut types = BTreeMap::<Release, Vec<&str>>::new();
    for (cells, first) in table("element_types.csv") {
        if let Some(first) = first.filter(|first| *first > Release::OLDEST) {
            types.entry(first).or_default().push(ElementType::from_name(&cells[0]).unwrap().name());
        }
    }
    let mut text = "| release | operations it is the first to read | element types |\n|---|---|---|\n".to_owned();
    let releases: std::collections::BTreeSet<_> = news.keys().chain(types.keys()).copied().collect();
    for release in releases {
        let sets = news.get(&release).into_iter().flatten().map(|(opset, names)| match names.len() {
            ..=12 => format!("opset{opset}: {}", names.join(", ")),
            count => format!("opset{opset}: {count} operations"),
        });
        let sets = sets.collect::<Vec<_>>().join("; ");
        let types = types.get(&release).map(|names| names.join(", ")).unwrap_or_default();
        let _ = writeln!(text, "| {release} | {sets} | {types} |");
    }
    text
}

#[test]
fn forms_are_read_by_the_releases_that_read_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/releases");
    let table = std::fs::read_to_string(folder.join("forms.csv")).unwrap();
    for row in table.lines().skip(1) {
        let [file, first, last] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let first: Release = first.trim_start_matches("<=").parse().unwrap();
        let last = if last.is_empty() { Release::NEWEST } else { last.parse().unwrap() };
        // The text of version 10 files was asked in place of that of version 11.
        let text = std::fs::read_to_string(folder.join("forms").join(file).with_extension("xml")).unwrap();
        for release in Release::all() {
            let text =
                if release < "2022.1".parse().unwrap() { text.replace("\"11\"", "\"10\"") } else { text.clone() };
            let checking = typelift::Checking { target: Some(release), ..Default::default() };
            let found = checking.run(&text.into(), &typelift::Weights::none()).findings;
            let errors: Vec<_> = found.iter().filter(|it| it.is_error()).map(ToString::to_string).collect();
            assert_eq!(errors.is_empty(), (first..=last).contains(&release), "{file} in {release}: {errors:?}");
        }
    }
}
