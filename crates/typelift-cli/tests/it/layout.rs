//! The bytes of a `.bin` after constants were added, removed or converted.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use typelift::Model;

use crate::cli::{Run, run};

/// A constant: element type, elements, offset and bytes.
type Constant = (&'static str, usize, usize, usize);

/// Returns a folder with a model of constants, each with its own output, and the weights.
fn model(constants: &[Constant], bytes: usize) -> (TempDir, Vec<u8>) {
    let (mut layers, mut edges) = (String::new(), String::new());
    for (at, (ty, count, offset, size)) in constants.iter().enumerate() {
        let precision = ty.to_uppercase().replace('F', "FP");
        let port = format!(r#"<port id="0" precision="{precision}"><dim>{count}</dim></port>"#);
        let (id, result) = (2 * at, 2 * at + 1);
        let data = format!(r#"<data element_type="{ty}" shape="{count}" offset="{offset}" size="{size}"/>"#);
        write!(
            layers,
            r#"<layer id="{id}" name="c{at}" type="Const" version="opset1">{data}<output>{port}</output></layer>
<layer id="{result}" name="r{at}" type="Result" version="opset1"><input>{port}</input></layer>
"#
        )
        .unwrap();
        write!(edges, r#"<edge from-layer="{id}" from-port="0" to-layer="{result}" to-port="0"/>"#).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let text = format!("<net name=\"n\" version=\"11\"><layers>\n{layers}</layers><edges>{edges}</edges></net>\n");
    let weights: Vec<u8> = (0..bytes / 4).flat_map(|at| (at as f32).to_le_bytes()).collect();
    fs::write(folder.path().join("in.xml"), text).unwrap();
    fs::write(folder.path().join("in.bin"), &weights).unwrap();
    (folder, weights)
}

fn offsets(folder: &Path) -> Vec<usize> {
    let text = fs::read_to_string(folder.join("out.xml")).unwrap();
    text.split("offset=\"").skip(1).map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

fn convert(folder: &Path, options: &[&str]) -> Run {
    run(folder, &[&["convert", "in.xml", "-o", "out.xml"], options].concat())
}

#[test]
fn constants_keep_their_offsets_unless_compacting_saves_enough() {
    let all: [Constant; 4] =
        [("f32", 1000, 0, 4000), ("f32", 2, 4000, 8), ("f32", 1000, 4008, 4000), ("f32", 2, 8008, 8)];
    let (folder, before) = model(&all, 8016);
    let path = folder.path();
    // 4 of 8016 bytes become free. That is less than 1 %, so no constant moves.
    assert_eq!(convert(path, &["--set-type", "c1=f16"]).status, 0);
    assert_eq!(offsets(path), [0, 4000, 4008, 8008]);
    let after = fs::read(path.join("out.bin")).unwrap();
    let expected = [&before[..4000], &[0, 0x64 - 0x64, 0, 0, 0, 0, 0, 0][..], &before[4008..]].concat();
    assert!(after.len() == 8016 && after[..4000] == expected[..4000] && after[4008..] == expected[4008..]);
    assert_eq!(after[4004..4008], [0; 4]);
    // Constants that grow move to the end, and their old bytes become zero.
    assert_eq!(convert(path, &["--set-type", "c1=f64"]).status, 0);
    assert_eq!(offsets(path), [0, 8016, 4008, 8008]);
    let after = fs::read(path.join("out.bin")).unwrap();
    assert!(after.len() == 8032 && after[..4000] == before[..4000] && after[4000..4008] == [0; 8]);
    // A constant at the end shortens the file.
    assert_eq!(convert(path, &["--set-type", "c3=f16"]).status, 0);
    assert_eq!((offsets(path), fs::read(path.join("out.bin")).unwrap().len()), (vec![0, 4000, 4008, 8008], 8012));
    // Compacting saves enough, or is requested.
    assert_eq!(convert(path, &["--set-type", "c0=f16"]).status, 0);
    assert_eq!(fs::read(path.join("out.bin")).unwrap().len(), 6016);
    assert_eq!(convert(path, &["--set-type", "c1=f16", "--weights", "compact"]).status, 0);
    assert_eq!(fs::read(path.join("out.bin")).unwrap().len(), 8012);
}

#[test]
fn compacting_leaves_out_what_nothing_uses() {
    let (folder, before) = model(&[("f32", 4, 16, 16), ("f32", 4, 48, 16)], 1024);
    let path = folder.path();
    assert_eq!(convert(path, &[]).status, 0);
    assert_eq!(fs::read(path.join("out.bin")).unwrap(), before);
    assert_eq!(convert(path, &["--weights", "compact"]).status, 0);
    assert_eq!(fs::read(path.join("out.bin")).unwrap(), [&before[16..32], &before[48..64]].concat());
    assert_eq!(offsets(path), [0, 16]);
    assert_eq!(run(path, &["convert", "in.xml", "--in-place", "--weights", "compact"]).status, 0);
    assert_eq!(fs::read(path.join("in.bin")).unwrap().len(), 32);
}

#[test]
fn a_bin_that_is_too_short_is_named_as_the_reason() {
    let (folder, _) = model(&[("f32", 4, 0, 16), ("f32", 4, 16, 16), ("f32", 4, 32, 16)], 48);
    let path = folder.path();
    fs::write(path.join("in.bin"), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    let refused = run(path, &["rewrite", "in.xml", "--use", "all", "--weights", "compact", "-o", "out.xml"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("the .bin of the model ends before the bytes of a constant"), "{refused:?}");
    assert!(!path.join("out.xml").exists() && !path.join("out.bin").exists());
}

#[test]
fn overlapping_constants_do_not_grow_without_limit() {
    const COUNT: usize = 10_000;
    let shared: Vec<Constant> = (0..200).map(|_| ("f32", COUNT, 0, 4 * COUNT)).collect();
    let overlapping: Vec<Constant> = (0..200).map(|at| ("f32", COUNT - 200, 4 * at, 4 * (COUNT - 200))).collect();
    // The same bytes are converted once.
    let (folder, _) = model(&shared, 4 * COUNT);
    let once = convert(folder.path(), &["--types", "f32=f64"]);
    assert_eq!(once.status, 0, "{once:?}");
    assert_eq!(fs::metadata(folder.path().join("out.bin")).unwrap().len(), 8 * COUNT as u64);
    let (folder, _) = model(&overlapping, 4 * COUNT);
    let path = folder.path();
    let refused = convert(path, &["--types", "f32=f64"]);
    assert_eq!(refused.status, 2, "{refused:?}");
    assert!(refused.stderr.contains("the .bin would grow from 40000 to "), "{refused:?}");
    assert!(!path.join("out.xml").exists() && !path.join("out.bin").exists());
    let grown = convert(path, &["--types", "f32=f64", "--max-growth", "500"]);
    assert_eq!(grown.status, 0, "{grown:?}");
    let length = fs::metadata(path.join("out.bin")).unwrap().len();
    assert!(length > 15_000_000 && grown.stderr.contains(" bytes, and the one of the input 40,000\n"), "{grown:?}");
}

/// The weights of both models count, so a small model may come before one that is many times larger.
#[test]
fn a_join_may_be_as_large_as_both_models() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let save = |name: &str, text: &str| Model::from_text(text).unwrap().save(path.join(name)).unwrap();
    save(
        "in.xml",
        "x = Parameter : f32[2] \"x\"\nc = Const([1, 2]) : f32[2]\ny = Add(x, c) : f32[2] \"y\"\nr = Result(y)",
    );
    save(
        "large.xml",
        "y = Parameter : f32[2] \"y\"\nw = Const(0.5) : f32[2,200000]\nz = MatMul(y, w) : f32[200000] \"z\"\nr = Result(z)",
    );
    let joined = run(path, &["rewrite", "in.xml", "-e", "join large.xml", "-o", "out.xml"]);
    assert_eq!(joined.status, 0, "{joined:?}");
    // Constants begin at multiples of 64.
    assert_eq!(fs::metadata(path.join("out.bin")).unwrap().len(), 1_600_064);
}
