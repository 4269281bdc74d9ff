//! `docs/diagnostics.md` has a heading for every code, and shows the real messages.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

#[allow(dead_code, reason = "only what is said of each case counts here")]
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use crate::hostile::{cases, diagnose};
use crate::small::{self, X, layer, result};
use typelift::findings::{Code, Severity};

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnostics.md")).unwrap()
});

/// Returns the sections of the document: heading and text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    DOCUMENT.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap())
}

#[test]
fn every_code_has_its_heading_in_order() {
    let headings: Vec<_> = sections().map(|(heading, _)| heading).collect();
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(headings, codes);
}

#[test]
fn every_example_is_what_is_said() {
    let said = everything_said();
    for (code, (heading, text)) in Code::ALL.iter().zip(sections()) {
        let example = text.split("```").nth(1).unwrap_or_else(|| panic!("{heading} has no example")).trim();
        let severity = match code.severity() {
            // A finding for a program has the severity of its requirement.
            _ if heading.starts_with("program-") => "error",
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        assert!(example.starts_with(&format!("{severity}[{heading}]: ")), "{example}");
        assert!(said.contains(example), "no file here gives {example}; of {heading} there are {:#?}", {
            said.iter().filter(|message| message.contains(&format!("[{heading}]"))).collect::<Vec<_>>()
        });
    }
}

/// Returns the diagnostics of the malformed files, and of some files with codes that those lack.
fn everything_said() -> BTreeSet<String> {
    let more = more().into_iter().map(|(source, weights)| diagnose(source.into(), weights));
    let all = cases().into_iter().map(|case| case.diagnostics).chain(more);
    // The snapshots of the program show the rest.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures/diagnostics");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let snapshots = files.filter(|path| path.extension().is_some_and(|ending| ending == "snap"));
    let lines = snapshots.flat_map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    });
    all.flatten().map(|diagnostic| diagnostic.to_string()).chain(lines).collect()
}

fn more() -> Vec<(String, Option<Vec<u8>>)> {
    let chain = |layers: &str, edges: &[&str]| small::source(&format!("{X}{layers}{}", result(9)), edges);
    let parameter = |id: u64, shape: &str, ty: &str| {
        format!(
            "<layer id=\"{id}\" name=\"p{id}\" type=\"Parameter\" version=\"opset1\"><data shape=\"{shape}\" element_type=\"{ty}\"/>
<output><port id=\"0\" precision=\"UNSPECIFIED\"/></output></layer>\n"
        )
    };
    let two = |name: &str, ty: &str, version: &str, data: &str| {
        layer(6, name, ty, version, data).replace("</input>", "<port id=\"7\"/></input>")
    };
    let promote = |a: &str, b: &str, data: &str| {
        let convert = two("c", "ConvertPromoteTypes", "opset14", data)
            .replace("</output>", "<port id=\"8\" precision=\"UNSPECIFIED\"/></output>");
        small::source(&format!("{a}{b}{convert}{}", result(9)), &["1:0 6:0", "2:0 6:7", "6:1 9:0"])
    };
    let scalars = "<data pytorch_scalar_promotion=\"true\"/>";
    let named = |id, name| {
        layer(id, name, "ReLU", "opset1", "").replace("id=\"1\" precision", "id=\"1\" names=\"t\" precision")
    };
    let constant = |id: u64, offset: u64, size: u64| {
        format!(
            "<layer id=\"{id}\" name=\"k{}\" type=\"Const\" version=\"opset1\"><data element_type=\"f32\" shape=\"{}\" offset=\"{offset}\" size=\"{size}\"/>
<output><port id=\"0\" precision=\"FP32\"><dim>{}</dim></port></output></layer>\n",
            id - 1,
            size / 4,
            size / 4
        )
    };
    let constants = constant(1, 0, 8) + &constant(2, 4, 8) + &constant(3, 32, 8);
    let relu = chain(&layer(1, "y", "ReLU", "opset9", ""), &["0:0 1:0", "1:1 9:0"]);
    let body = |inner: String, _| {
        format!(
            "<layers><layer id=\"0\" name=\"l\" type=\"Loop\" version=\"opset5\"><body>{inner}</body></layer></layers>"
        )
    };
    let nested = (0..65).fold(String::new(), body);
    let nested = format!("<net name=\"n\" version=\"11\">{nested}</net>");
    let fixture = |name| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/fixtures/diagnostics");
        std::fs::read_to_string(format!("{folder}/{name}.xml")).unwrap()
    };
    let name_collision = fixture("name-collision");
    let legacy_types = fixture("legacy-types");
    vec![
        (nested, None),
        (name_collision, None),
        (legacy_types, None),
        (chain(&two("add", "Add", "opset1", ""), &["0:0 6:7", "6:1 9:0"]), None),
        (
            chain(&(parameter(1, "2", "boolean") + &layer(2, "y", "Sigmoid", "opset1", "")), &["1:0 2:0", "2:1 9:0"]),
            None,
        ),
        (promote(&parameter(1, "2", "u64"), &parameter(2, "2", "i32"), ""), None),
        (promote(&parameter(1, "2", "i8"), &parameter(2, "", "u16"), scalars), None),
        (promote(&parameter(1, "2", "dynamic"), &parameter(2, "2", "i32"), ""), None),
        (chain(&(named(1, "y") + &named(2, "y")), &["0:0 1:0", "1:1 2:0", "2:1 9:0"]), None),
        (chain(&two("d", "Divide", "opset1", "<data m_pythondiv=\"yes\"/>"), &["0:0 6:0", "0:0 6:7", "6:1 9:0"]), None),
        (chain(&layer(1, "y", "Clamp", "opset1", "<data maximum=\"1\"/>"), &["0:0 1:0", "1:1 9:0"]), None),
        (chain(&constants, &["0:0 9:0"]), Some(vec![0; 64])),
        (relu.replace("</net>", "<rt_info/><meta_data/></net>"), None),
        (relu, None),
    ]
}
