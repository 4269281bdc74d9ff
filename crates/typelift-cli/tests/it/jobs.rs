//! Common jobs on models, each in one or two commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use typelift::Model;

const BLOCK: &str = "
    x = Parameter : f32[2,8]
    w = Const(0.5) : f32[8,8]
    h = MatMul(x, w) : f32[2,8] \"hidden\"
    a = HSwish-4(h)
    v = Const(0.25) : f32[8,4]
    y = MatMul(a, v)
    out = Result(y)
";
const NORM: &str = "
    x = Parameter : f32[2,8]
    a = Const([-1]) : i64[1]
    m = ReduceMean(x, a) {keep_dims=true}
    d = Subtract(x, m)
    two = Const(2) : f32[]
    s = Power(d, two)
    v = ReduceMean(s, a) {keep_dims=true}
    e = Const(1e-5) : f32[]
    b = Add(v, e)
    q = Sqrt(b)
    y = Divide(d, q)
    out = Result(y)
";
const GELU: &str = "
    x = Parameter : f32[2,8]
    root = Const(1.4142) : f32[]
    q = Divide(x, root)
    e = Erf(q)
    one = Const(1) : f32[]
    p = Add(e, one)
    half = Const(0.5) : f32[]
    t = Multiply(half, p)
    y = Multiply(x, t)
    out = Result(y)
";
const IMAGES: &str = "
    images = Parameter : f32[1,3,4,4]
    y = Relu(images)
    out = Result(y)
";
const CHOICE: &str = "
    x = Parameter : f32[2]
    c = Const(true) : boolean[]
    y = If-8(c, x)
        then_body (in 1 -> 0, out 2 -> 0):
            a = Parameter : f32[2]
            b = Abs(a)
            r = Result(b)
        else_body (in 1 -> 0, out 1 -> 0):
            a = Parameter : f32[2]
            r = Result(a)
    out = Result(y)
";
const ATTENTION: &str = "
    q = Parameter : f32[1,2,3,4]
    k = Parameter : f32[1,2,5,4]
    v = Parameter : f32[1,2,5,4]
    s = Const(0.5) : f32[]
    a = MatMul(q, k) {transpose_b=true}
    b = Multiply(a, s)
    d = Softmax-8(b) {axis=-1}
    y = MatMul(d, v)
    out = Result(y)
";

/// For each job: a model, the arguments of the program, and a text in the listing of the result.
const JOBS: &[(&str, &[&str], &str)] = &[
    (
        NORM,
        &[
            "rewrite",
            "-e",
            "mvn: d * (v + e: const)^-0.5 => MVN-6(x, a) {normalize_variance=true, eps=e, eps_mode=INSIDE_SQRT}
               where m = ReduceMean(x, a: const) {keep_dims=true}, d = x - m, v = ReduceMean(d^2, a) {keep_dims=true}
               if size(e) == 1",
        ],
        "y = MVN-6(",
    ),
    (GELU, &["rewrite", "--use", "fuse-gelu"], "y = Gelu-7("),
    (
        IMAGES,
        &[
            "rewrite",
            "-e",
            "input images : u8[1,4,4,3]",
            "-e",
            "before images : Transpose(Divide(Convert(_) {destination_type=f32}, 255), [0,3,1,2])",
        ],
        "images = Parameter : u8[1,4,4,3]",
    ),
    (BLOCK, &["rewrite", "-e", "cut hidden"], "= Result(2)"),
    (BLOCK, &["rewrite", "-e", "tap hidden as features"], "features"),
    (BLOCK, &["rewrite", "-e", "rename out scores"], "scores = Result("),
    (BLOCK, &["rewrite", "-e", "input x : f32[?,8]"], "f32[?,4]"),
    (BLOCK, &["rewrite", "-e", "HSwish(x) => Divide(Multiply(x, Clamp(Add(x, 3)) {min=0, max=6}), 6)"], "a = Divide("),
    (BLOCK, &["convert", "--compress", "f16", "--keep", "v"], "w_compressed = Const(0.5) : f16[8,8]"),
    (BLOCK, &["rewrite", "-e", "join head.xml : y -> z"], "p = Softmax-8("),
    (BLOCK, &["rewrite", "-e", "set w = _ + matmul(npy(\"b.npy\"), npy(\"a.npy\"))"], "w = Const(2.5) : f32[8,8]"),
    (CHOICE, &["rewrite", "--use", "constant-ifs"], "b = Abs("),
    (ATTENTION, &["rewrite", "--use", "fuse-sdpa"], "y = ScaledDotProductAttention"),
    (BLOCK, &["rewrite", "--rules", "own.rules"], "a = Swish("),
];

/// Writes a column or a row of eight numbers, as NumPy saves it.
fn save_array(path: &Path, shape: &str, value: f32) {
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let (header, values) = (format!("{header:<117}\n"), [value.to_le_bytes(); 8].concat());
    let bytes = [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), &values];
    fs::write(path, bytes.concat()).unwrap();
}

#[test]
fn each_job_is_done_by_a_line_or_two() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    save_array(&folder.join("b.npy"), "(8, 1)", 1.0);
    save_array(&folder.join("a.npy"), "(1, 8)", 2.0);
    fs::write(folder.join("own.rules"), "swish: HSwish(x) => Swish-4(x)\nexpect swish 1..\n").unwrap();
    let head = "z = Parameter : f32[2,4]\np = Softmax-8(z) {axis=-1}\nprobabilities = Result(p)";
    Model::from_text(head).unwrap().save(folder.join("head.xml")).unwrap();
    for (at, (listing, arguments, expected)) in JOBS.iter().enumerate() {
        let mut model = Model::from_text(listing).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(typelift::infer(&mut model), []);
        model.save(folder.join("model.xml")).unwrap();
        let mut program = Command::new(env!("CARGO_BIN_EXE_typelift"));
        let (verb, rest) = arguments.split_first().unwrap();
        let done =
            program.current_dir(folder).args([verb, "model.xml"]).args(rest).args(["-o", "out.xml"]).output().unwrap();
        assert!(done.status.success(), "job {}: {}", at + 1, String::from_utf8_lossy(&done.stderr));
        let mut out = Model::open(folder.join("out.xml")).unwrap();
        assert_eq!(typelift::infer(&mut out), []);
        assert!(out.to_string().contains(expected), "job {}:\n{out}", at + 1);
    }
}
