//! Malformed and unusual files, compared with OpenVINO. A file that OpenVINO refuses has an error with a position, and
//! a file that it accepts has none. A file that it accepts but that is probably wrong has a warning. The snapshot
//! contains every diagnostic for review.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and tells what it counts"
)]

use crate::hostile::cases;
use typelift::findings::{Code, Severity};

/// Files that OpenVINO refuses and we only warn about: an extension may have the operation, and a constant's value may
/// not matter.
const WARNED_OF: &[&str] = &["const no weights", "opset extension ver"];

/// Unusual files without an error.
const FINE: &[&str] = &[
    "BOM",
    "CDATA dim",
    "DOCTYPE entity",
    "billion laughs",
    "comment before root",
    "const ok",
    "no edges elem",
    "no layers",
    "ok",
    "out precision lower f32",
    "param shape '[1,3]'",
    "param w/o result",
    "root NET upper",
    "type case-insens",
    "version 10",
];

#[test]
fn what_openvino_refuses_is_an_error_with_a_place() {
    assert_eq!(cases().len(), 108);
    for case in cases().iter().filter(|case| !case.accepted) {
        let wanted = if WARNED_OF.contains(&case.name.as_str()) { Severity::Warning } else { Severity::Error };
        let worst = case.diagnostics.iter().map(|diagnostic| diagnostic.severity).max();
        assert_eq!(worst, Some(wanted), "{}: {:#?}", case.name, case.diagnostics);
        for diagnostic in case.diagnostics.iter().filter(|diagnostic| diagnostic.severity == wanted) {
            assert!(!diagnostic.labels.is_empty(), "{}: {diagnostic} has no place", case.name);
        }
    }
}

#[test]
fn what_openvino_takes_is_no_error_and_a_warning_where_it_cannot_be_meant() {
    for case in cases().iter().filter(|case| case.accepted) {
        let wanted = if FINE.contains(&case.name.as_str()) { Severity::Note } else { Severity::Warning };
        let worst = case.diagnostics.iter().map(|diagnostic| diagnostic.severity).max();
        assert_eq!(worst, Some(wanted), "{}: {:#?}", case.name, case.diagnostics);
    }
}

#[test]
fn every_place_is_in_the_text() {
    for case in cases() {
        for label in case.diagnostics.iter().flat_map(|diagnostic| &diagnostic.labels) {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            assert!(case.source.get(start..end).is_some(), "{}: {label:?}", case.name);
        }
    }
}

#[test]
fn what_is_said_of_each() {
    let mut text = String::new();
    for case in cases() {
        let verdict = if case.accepted { "OpenVINO takes it" } else { "OpenVINO refuses it" };
        text += &format!("{} ({verdict})\n", case.name);
        // The note on the oldest release belongs to every file, so it is left out.
        for diagnostic in case.diagnostics.iter().filter(|d| d.code != Code::RequiredRelease) {
            let mut places = diagnostic.labels.iter().map(|label| {
                let (line, column) = label.span.line_column(&case.source);
                format!("{line}:{column} {}", label.message)
            });
            let place = places.next().unwrap_or_else(|| "nowhere".to_owned());
            text += &format!("  {diagnostic}\n    at {place}\n");
            for place in places {
                text += &format!("    at {place}\n");
            }
            for note in diagnostic
                .related
                .iter()
                .map(ToString::to_string)
                .chain(diagnostic.notes.iter().map(ToString::to_string))
            {
                text += &format!("    note: {note}\n");
            }
            for help in &diagnostic.fixes {
                text += &format!("    help: {help}\n");
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_long_text_is_read_whole_where_it_begins_as_xml_does() {
    let mut bytes: Vec<u8> = (0..(5 << 20) + 1).map(|at| (at / 4096 % 250 + 1) as u8).collect();
    for expected in [0, bytes.len() as u64 - 1, bytes.len() as u64] {
        bytes[0] = 0;
        assert_eq!(typelift::xml::read_bytes(&bytes[..], expected).unwrap().len(), 4096);
        bytes[0] = b'<';
        assert!(typelift::xml::read_bytes(&bytes[..], expected).unwrap() == bytes);
    }
}

/// OpenVINO reads such a file, and refuses one with NUL bytes in it.
#[test]
fn text_before_the_root_is_passed_and_nul_bytes_are_damage() {
    let layers: String = (0..100).map(|id| format!("<layer id=\"{id}\" name=\"x{id}\" type=\"Parameter\" version=\"opset1\"><data shape=\"\" element_type=\"f32\"/><output><port id=\"0\" precision=\"FP32\"/></output></layer>\n")).collect();
    let text = format!("12:00 exported\n<net name=\"m\" version=\"11\"><layers>{layers}</layers><edges/></net>");
    let read = typelift::xml::read_bytes(text.as_bytes(), text.len() as u64).unwrap();
    assert!(typelift::Model::from_xml(String::from_utf8(read).unwrap()).is_ok());
    for (damaged, said) in [
        (text.replace("id=\"50\"", &"\0".repeat(9)), "the text has a NUL byte"),
        (text.replace("layers", "\0ayers"), "the text has a NUL byte"),
        ("\0".repeat(99), "the file consists of NUL bytes"),
    ] {
        let found = typelift::Model::from_xml(damaged).unwrap_err();
        assert_eq!(found.list.last().unwrap().message.to_string(), said);
    }
}
