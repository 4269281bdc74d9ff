//! `check --fix` applies tested edits only.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cli::{folder, run};

/// Returns a model with a mistake in it.
fn slipped(from: &str, to: &str) -> tempfile::TempDir {
    let folder = folder();
    let text = fs::read_to_string(folder.path().join("model.xml")).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(folder.path().join("slip.xml"), text.replacen(from, to, 1)).unwrap();
    fs::copy(folder.path().join("model.bin"), folder.path().join("slip.bin")).unwrap();
    folder
}

const SLIPS: &[(&str, &str)] = &[
    ("type=\"Const\"", "type=\"Cnst\""),
    ("element_type=\"f32\"", "element_type=\"fp32\""),
    ("size=\"4\"", "size=\"0x4\""),
    ("</output>", "</ouput>"),
    ("<port id=\"0\" precision=\"FP16\"/>", "<port id=\"0 precision=\"FP16\"/>"),
    (" precision=\"FP32\"", " precison=\"FP32\""),
];

/// Lines that are lost, or there twice.
const LINES: &[(&str, &str)] = &[
    ("</output>\n</layer>\n", "</layer>\n"),
    ("</output>\n", "</output>\n</output>\n"),
    ("<input>\n", "<input>\n<input>\n"),
    ("<input>\n", ""),
];

#[test]
fn a_line_is_restored() {
    LINES.iter().for_each(|(from, to)| drop(restored(from, to)));
}

#[test]
fn a_line_in_a_comment_stays_there() {
    const COMMENT: &str = "<!-- <input> -->\n";
    let folder = slipped("<input>\n", COMMENT);
    let run = run(folder.path(), &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    let [slip, fixed] = ["slip.xml", "fixed.xml"].map(|name| fs::read_to_string(folder.path().join(name)).unwrap());
    assert_eq!(fixed, slip.replace(COMMENT, &format!("{COMMENT}<input>\n")));
}

/// Fixes a model with a slip into the original text. Returns the folder of the files.
fn restored(from: &str, to: &str) -> tempfile::TempDir {
    let folder = slipped(from, to);
    let path = folder.path();
    let fixed = run(path, &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
    assert_eq!(fixed.status, 0, "{to}: {}{}", fixed.stdout, fixed.stderr);
    let [original, fixed] = ["model.xml", "fixed.xml"].map(|name| fs::read_to_string(path.join(name)).unwrap());
    assert_eq!(original, fixed, "{to}");
    folder
}

#[test]
fn a_slip_is_fixed_into_the_original_text() {
    for (from, to) in SLIPS {
        assert!(restored(from, to).path().join("fixed.bin").exists());
    }
}

#[test]
fn a_diff_writes_nothing_and_shows_the_edits_that_json_has() {
    for (from, to) in SLIPS {
        let folder = slipped(from, to);
        let path = folder.path();
        let before = fs::read(path.join("slip.xml")).unwrap();
        let shown = run(path, &["check", "--fix", "--diff", "slip.xml"]).stdout;
        assert!(shown.lines().any(|line| line.starts_with('-') && line.contains(to)), "{shown}");
        assert!(shown.lines().any(|line| line.starts_with('+') && line.contains(from)), "{shown}");
        assert_eq!(fs::read(path.join("slip.xml")).unwrap(), before);
        let json: Value = serde_json::from_str(&run(path, &["check", "--format", "json", "slip.xml"]).stdout).unwrap();
        let found = json["diagnostics"].as_array().unwrap();
        let edits: Vec<_> = found.iter().flat_map(|it| it["edits"].as_array().unwrap()).collect();
        assert!(edits.iter().any(|edit| from.contains(edit["text"].as_str().unwrap())), "{edits:?}");
    }
}

/// The edge into port 1 of layer 3 ends at the Const before it. A port of the Const for it fixes only the first
/// finding.
const MISDIRECTED: &str = r#"<net name="n" version="11">
	<layers>
		<layer id="0" name="a" type="Parameter" version="opset1"><data element_type="boolean" shape="4"/><output><port id="0" precision="BOOL"><dim>4</dim></port></output></layer>
		<layer id="1" name="b" type="Parameter" version="opset1"><data element_type="f32" shape="4"/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
		<layer id="2" name="c" type="Const" version="opset1"><data element_type="f32" shape="1" offset="0" size="4"/><output><port id="0" precision="FP32"><dim>1</dim></port></output></layer>
		<layer id="3" name="d" type="Select" version="opset1"><data auto_broadcast="numpy"/><input><port id="0" precision="BOOL"><dim>4</dim></port><port id="1" precision="FP32"><dim>4</dim></port><port id="2" precision="FP32"><dim>1</dim></port></input><output><port id="3" precision="FP32"><dim>4</dim></port></output></layer>
		<layer id="4" name="r" type="Result" version="opset1"><input><port id="0" precision="FP32"><dim>4</dim></port></input></layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="3" to-port="0"/>
		<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
		<edge from-layer="2" from-port="0" to-layer="3" to-port="2"/>
		<edge from-layer="3" from-port="3" to-layer="4" to-port="0"/>
	</edges>
</net>"#;

#[test]
fn the_edit_that_does_most_is_made_as_check_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("slip.xml"), MISDIRECTED).unwrap();
    fs::write(path.join("slip.bin"), [0; 4]).unwrap();
    let shown = run(path, &["check", "slip.xml"]).stdout;
    assert!(shown.contains("write to-layer=\"3\""), "{shown}");
    let fixed = run(path, &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
    assert_eq!(fixed.status, 0, "{}{}", fixed.stdout, fixed.stderr);
    let edge = |layer: usize| format!(r#"<edge from-layer="1" from-port="0" to-layer="{layer}" to-port="1"/>"#);
    assert_eq!(fs::read_to_string(path.join("fixed.xml")).unwrap(), MISDIRECTED.replace(&edge(2), &edge(3)));
}

#[test]
fn what_is_not_certain_stays_as_it_is() {
    let folder = folder();
    let path = folder.path();
    let before = fs::read(path.join("model.xml")).unwrap();
    let run = run(path, &["check", "--fix", "--in-place", "model.xml"]);
    assert!(run.stderr.contains("no edit is safe to make"), "{}", run.stderr);
    assert_eq!(fs::read(path.join("model.xml")).unwrap(), before);
}

/// A long text has more mistakes than the budget of one run: two runs fix all of them.
#[test]
fn a_run_that_has_no_more_effort_says_so() {
    const SLIPS: usize = 14;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let port = |id| format!(r#"<port id="{id}" precision="FP32"><dim>4</dim></port>"#);
    let [from, to] = [port(0), port(1)];
    let parameter = format!(
        r#"<layer id="0" name="x" type="Parameter" version="opset1"><data element_type="f32" shape="4"/><output>{from}</output></layer>"#
    );
    let slip = |id| {
        format!(
            r#"<layer id="{id}" name="n{id}" type="Rellu" version="opset1"><input>{from}</input><output>{to}</output></layer>"#
        )
    };
    let result =
        format!(r#"<layer id="{}" name="y" type="Result" version="opset1"><input>{from}</input></layer>"#, SLIPS + 1);
    let edge = |id: usize| {
        let port = usize::from(id > 0);
        format!(r#"<edge from-layer="{id}" from-port="{port}" to-layer="{}" to-port="0"/>"#, id + 1)
    };
    let slips: String = (1..=SLIPS).map(slip).collect();
    let edges: String = (0..=SLIPS).map(edge).collect();
    let filler = " ".repeat(3 << 20);
    let text = format!(
        r#"<net name="n" version="11"><layers>{parameter}{slips}{result}</layers><edges>{edges}</edges></net><!--{filler}-->"#
    );
    fs::write(path.join("slip.xml"), text).unwrap();
    let word = "run --fix on the result again";
    let first = run(path, &["check", "--fix", "slip.xml", "-o", "once.xml"]);
    assert!(first.status == 1 && first.stderr.contains(word), "{}{}", first.stdout, first.stderr);
    let second = run(path, &["check", "--fix", "once.xml", "-o", "twice.xml"]);
    assert!(second.status == 0 && !second.stderr.contains(word), "{}{}", second.stdout, second.stderr);
}

#[test]
fn a_format_that_cannot_be_read_keeps_its_version() {
    let folder = slipped("version=\"11\"", "version=\"7\"");
    let path = folder.path();
    let run = run(path, &["check", "--fix", "slip.xml", "-o", "fixed.xml"]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    assert!(!path.join("fixed.xml").exists(), "{}", run.stderr);
}

#[test]
fn a_refused_model_is_told_how_to_mend_it() {
    let folder = slipped("size=\"4\"", "size=\"0x4\"");
    let run = run(folder.path(), &["convert", "slip.xml", "-o", "out.xml"]);
    assert_eq!(run.status, 1);
    assert!(
        run.stderr.contains("`typelift check --fix slip.xml -o fixed.xml` makes an edit that was tried"),
        "{}",
        run.stderr
    );
}

/// Models with a mistake, and the text of the only fix that keeps what was meant; none where several are possible.
const MEANT: &[(&str, &str)] = &[
    ("attributes_of_topk_lost", ""),
    ("axis_dim_eq", "axis=\"-1\""),
    ("axis_paren", "axis=\"-1\""),
    ("axis_quoted", "axis=\"-1\""),
    ("axis_u2212", "axis=\"-1\""),
    ("clamp_swapped", ""),
    ("flags_are_integers", ""),
    ("floor_and_convert_exchanged", ""),
    ("levels_2pow8", ""),
    ("levels_int8", ""),
    ("loop_counter_unmapped", ""),
    ("mask_is_integer", ""),
    ("mask_of_ranks_is_integer", ""),
    ("result_is_there_twice", ""),
    ("sign_of_axis_lost", ""),
    ("slice_of_other_bytes", ""),
];

#[test]
fn a_fix_that_could_compute_something_else_is_not_made() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rules/fixes");
    for (name, meant) in MEANT {
        let folder = tempfile::tempdir().unwrap();
        for extension in ["xml", "bin"] {
            let from = cases.join(name).with_extension(extension);
            let to = folder.path().join("model").with_extension(extension);
            assert!(fs::copy(from, to).is_ok() || extension == "bin", "{name}");
        }
        let ran = run(folder.path(), &["check", "--fix", "model.xml", "-o", "fixed.xml"]);
        let (before, after) = (folder.path().join("model.xml"), folder.path().join("fixed.xml"));
        if meant.is_empty() {
            let is_same = || fs::read(&before).unwrap() == fs::read(&after).unwrap();
            assert!(!after.exists() || is_same(), "{name}: {}", ran.stderr);
        } else {
            assert!(fs::read_to_string(after).unwrap().contains(meant), "{name}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_convert_before_an_integer_mask_is_what_convert_inserts() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/oracle/rules/fixes");
    for name in ["flags_are_integers", "mask_is_integer", "mask_of_ranks_is_integer"] {
        let folder = tempfile::tempdir().unwrap();
        let source = cases.join(name).with_extension("xml");
        let ran = run(folder.path(), &["convert", source.to_str().unwrap(), "-o", "fixed.xml"]);
        assert!(
            ran.stdout.contains("1 Convert inserted") || ran.stderr.contains("1 Convert inserted"),
            "{name}: {}",
            ran.stderr
        );
        assert_eq!(run(folder.path(), &["check", "fixed.xml"]).status, 0, "{name}");
    }
}
