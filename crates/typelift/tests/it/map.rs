//! The precision map on real models.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use typelift::Model;
use typelift::explain::map::{PrecisionMap, ValuePath};

use crate::models::models;

fn mapped(model: &mut Model) -> PrecisionMap {
    let found = typelift::infer(model);
    PrecisionMap::new(model, &found)
}

/// Counts the bytes of the weights that constants use, each once, independently of the map.
fn used_bytes(model: &Model) -> u64 {
    let mut used = BTreeSet::new();
    for (_, graph) in model.walk() {
        for layer in graph.layers().filter(|layer| layer.ty() == "Const") {
            let number = |name| layer.attribute(name).and_then(|text| text.parse::<u64>().ok());
            used.extend(number("offset").zip(number("size")).map(|(offset, size)| (offset, offset + size)));
        }
    }
    let (mut bytes, mut end) = (0, 0);
    for (start, stop) in used {
        bytes += stop.saturating_sub(start.max(end));
        end = end.max(stop);
    }
    bytes
}

/// Returns the models of the folder in `TYPELIFT_MODELS`.
fn others() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("TYPELIFT_MODELS") else { return Vec::new() };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "xml")).collect()
}

#[test]
fn the_bytes_of_the_map_are_those_of_the_weights_and_no_stored_type_is_left_out() {
    let (mut compressed, mut pairs) = (0, 0);
    for path in models(|_| true).into_iter().chain(others()) {
        let Ok(mut model) = Model::open(&path) else { continue };
        let map = mapped(&mut model);
        assert_eq!(map.weight_bytes(), used_bytes(&model), "{}", path.display());
        // OpenVINO writes no byte that no constant uses.
        if let Ok(file) = std::fs::metadata(path.with_extension("bin")) {
            assert_eq!(map.weight_bytes(), file.len(), "{}", path.display());
            pairs += 1;
        }
        let stats = typelift::stats(&model);
        assert_eq!(map.weight_bytes(), stats.weight_bytes, "{}", path.display());
        // Constants of two types can share bytes, which count for one of them.
        let stored: BTreeSet<_> =
            map.rows.iter().flat_map(|row| &row.weights).map(|it| it.element_type.name()).collect();
        let expected: BTreeSet<_> = stats.weights.iter().map(|it| it.element_type.name()).collect();
        assert_eq!(stored, expected, "{}", path.display());
        compressed += usize::from(!stats.decompressed.is_empty());
        let layers: usize = map.rows.iter().map(|row| row.layers).sum();
        assert!(layers <= stats.layers, "{}", path.display());
    }
    assert!(compressed > 0, "no model has compressed weights");
    assert!(pairs > 0, "no model has its weights beside it");
}

/// The second of three blocks stores more and rounds.
#[test]
fn blocks_are_found_by_structure_and_one_that_differs_stands_out() {
    let block = |at: usize, ty: &str| {
        let from = if at == 0 { "x".to_owned() } else { format!("r{}", at - 1) };
        format!(
            "w{at} = Const : {ty}[4,4]
             c{at} = Convert(w{at}) {{destination_type=f32}}
             m{at} = MatMul({from}, c{at})
             a{at} = Abs(m{at})
             e{at} = Exp(a{at})
             s{at} = Sqrt(e{at})
             t{at} = Tanh(s{at})
             r{at} = Relu(t{at})\n"
        )
    };
    let types = ["f16", "bf16", "f16", "f16"];
    let blocks: String = types.iter().enumerate().map(|(at, ty)| block(at, ty)).collect();
    let mut model =
        Model::from_text(&format!("\nx = Parameter : f32[2,4]\n{blocks}r = Result(r3)\n").replace("             ", ""))
            .unwrap();
    let map = mapped(&mut model);
    let rows: Vec<_> = map.rows.iter().map(|row| (row.name.as_str(), row.blocks)).collect();
    assert_eq!(rows, [("before block 1", 1), ("block 1", 1), ("block 2", 1), ("block 3–4", 2), ("after block 4", 1)]);
    assert_eq!(map.rows[2].differs, ["stores bf16, its 3 siblings f16"]);
    let path = &map.rows[3].paths[0];
    let types: Vec<_> = path.types.iter().map(|ty| ty.name()).collect();
    assert_eq!((types, path.operation.as_str(), path.constants), (vec!["f16", "f32"], "MatMul", 2));
}

/// Buckets of distances: positions become numbers and integers again. In the decoder of T5 these Converts were said to
/// lose values, because one operand is a constant of many values.
#[test]
fn converts_between_positions_and_indices_are_converts_of_indices() {
    let text = "x = Parameter : f32[?,4]\ns = ShapeOf(x) {output_type=i64}\nk = Const([0]) : f32[]\nz = Broadcast(k, s) {mode=numpy}\n\
        a = Convert(z) {destination_type=i64}\nn = NonZero(x) {output_type=i64}\nc = Const([0]) : i64[]\nm = Minimum(c, a)\n\
        f = Convert(m) {destination_type=f32}\nl = Exp(f)\nb = Convert(l) {destination_type=i64}\ntable = Const([1,2,3]) : f32[3]\n\
        g = Gather(table, b, c)\nd = Convert(x) {destination_type=i64}\nh = Gather(table, d, c)\ny = Result(g)\nw = Result(h)";
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let (graph, ways) = (model.graph(), typelift::explain::map::Ways::new(model.graph()));
    let is_index = |name: &str| ways.converts_indices(graph.layer(graph.find(name).unwrap()).unwrap());
    assert_eq!(["f", "b", "d"].map(is_index), [true, true, false]);
}

/// The path of a broadcast number led through its target shape, which has more values than it.
#[test]
fn a_path_does_not_lead_through_a_shape_or_an_index() {
    let mut model = Model::from_text(
        "x = Parameter : f32[?,8]\nc = Const([1, 2, 3, 4, 5, 6, 7, 8]) : f32[1,8]\nk = Const([0]) : f32[1]\n\
         of_c = ShapeOf(c) {output_type=i64}\nstored = Broadcast(k, of_c)\na = Add(x, stored)\n\
         of_x = ShapeOf(x) {output_type=i64}\nopen = Broadcast(k, of_x)\nb = Add(a, open)\n\
         table = Const([5, 6]) : f32[2]\nat = Const([0, 1, 1, 0, 0, 1, 1, 0]) : i64[8]\nzero = Const(0) : i64[]\n\
         picked = Gather(table, at, zero)\nd = Add(b, picked)\ny = Result(d)\n",
    )
    .unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    for (name, wanted) in [("stored", "k stored a"), ("open", "k open b"), ("picked", "table picked d")] {
        let path = ValuePath::new(&model, name).unwrap();
        let names: Vec<&str> = path.steps.iter().map(|step| step.layer.name.as_str()).collect();
        assert_eq!(names.join(" "), wanted);
    }
}
