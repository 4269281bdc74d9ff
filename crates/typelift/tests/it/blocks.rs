//! Blocks of a model: one definition for statistics, selections and differences.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use typelift::explain::blocks::{Block, Blocks, border};
use typelift::precision::{KeepPattern, Kept};
use typelift::rewrite::Script;
use typelift::{LayerId, Model};

use crate::models::models;

/// Returns a decoder of `count` blocks with caches, in which block `odd` computes in f16.
fn decoder(count: usize, odd: Option<usize>) -> Model {
    let mut text = String::from("x = Parameter : f32[1,4]\n");
    let mut last = "x".to_owned();
    for at in 0..count {
        let (ty, scope) = (if odd == Some(at) { "f16" } else { "f32" }, format!("m.layers.{at}"));
        text += &format!("past.{at} = Parameter : {ty}[1,4]\n");
        let before = if ty == "f16" {
            text += &format!("{scope}.narrow = Convert({last}) {{destination_type=f16}}\n");
            format!("{scope}.narrow")
        } else {
            last.clone()
        };
        text += &format!(
            "self.{scope}.mlp.weight = Const([1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]) : {ty}[4,4]\n\
             {scope}.attn/add/Add = Add({before}, past.{at})\n\
             {scope}.attn/act/Relu = ReLU({scope}.attn/add/Add)\n\
             {scope}.mlp/product/MatMul = MatMul({scope}.attn/act/Relu, self.{scope}.mlp.weight)\n\
             {scope}.mlp/act/Tanh = Tanh({scope}.mlp/product/MatMul)\n\
             {scope}.out = Add({scope}.mlp/act/Tanh, {before})\n\
             present.{at} = Result({scope}.attn/act/Relu)\n"
        );
        last = format!("{scope}.out");
        if ty == "f16" {
            text += &format!("widened.{at} = Convert({last}) {{destination_type=f32}}\n");
            last = format!("widened.{at}");
        }
    }
    text += &format!("y = Result({last})\n");
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    model
}

fn one(blocks: &Blocks, number: u64) -> &Block {
    let mut found = blocks.number(number);
    let block = found.next().unwrap();
    assert!(found.next().is_none());
    block
}

#[test]
fn a_block_has_its_cache_its_constant_and_the_scopes_of_its_names() {
    let model = decoder(4, None);
    let blocks = Blocks::new(&model);
    let block = one(&blocks, 2);
    let names: BTreeSet<&str> = block.layers.iter().map(|&id| model.graph().layer(id).unwrap().name()).collect();
    assert!(names.is_superset(&BTreeSet::from(["past.2", "present.2", "self.m.layers.2.mlp.weight"])), "{names:?}");
    assert!(names.iter().all(|name| name.contains('2')), "{names:?}");
    let scopes: Vec<&str> = block.blocks.iter().map(|scope| scope.name.as_str()).collect();
    assert_eq!(scopes, ["m.layers.2.attn", "m.layers.2.mlp"]);
    // The constant belongs to the scope that uses it.
    assert_eq!((block.blocks[1].layers.len(), block.blocks[1].parameters), (3, 16));
    assert_eq!((block.parameters, block.bytes(), block.macs, block.macs_is_least), (16, 64, 16, false));
    assert!(blocks.list.iter().all(|block| block.differs.is_empty()));
}

#[test]
fn the_sibling_that_computes_in_another_type_is_described_in_words() {
    let blocks = Blocks::new(&decoder(6, Some(3)));
    for block in blocks.list.iter().filter(|block| block.number.is_some() && block.number != Some(3)) {
        assert_eq!(block.differs, <[&str; 0]>::default(), "{}", block.name);
    }
    let differs = &one(&blocks, 3).differs;
    assert_eq!(differs[0], "computes in f16, its 5 siblings in f32");
    assert_eq!(differs[1], "stores f16, its 5 siblings f32");
}

#[test]
fn rules_marks_and_cuts_select_the_layers_of_the_same_blocks() {
    let selected = |blocks: &Blocks| -> BTreeSet<LayerId> {
        (1..=2).flat_map(|number| one(blocks, number).layers.clone()).collect()
    };
    let model = decoder(5, None);
    let chosen = selected(&Blocks::new(&model));
    let kept = Kept::find(&model, &[KeepPattern::from("block:1-2")]).unwrap();
    assert_eq!(kept.iter().map(|(_, id)| id).collect::<BTreeSet<_>>(), chosen);

    let script: Script = "keep f32 block 1..2".parse().unwrap();
    let (marked, _) = script.run(decoder(5, None)).unwrap();
    let has_mark = |layer: &&typelift::Layer| {
        typelift::edit::precision_marks::Marks::of(layer, marked.version()).keeps_precision()
    };
    let found: BTreeSet<LayerId> = marked.graph().layers().filter(has_mark).map(typelift::Layer::id).collect();
    assert!(!found.is_empty() && found.is_subset(&chosen));

    let script: Script = "r: ReLU(x) => Sigmoid(x) if block(root) in 1..2".parse().unwrap();
    let (_, report) = script.run(decoder(5, None)).unwrap();
    assert_eq!(report.applied.len(), 2);

    let script: Script = "cut block 1..2".parse().unwrap();
    let (piece, _) = script.run(decoder(5, None)).unwrap();
    let inputs: Vec<&str> = piece.inputs().map(|layer| layer.name()).collect();
    assert_eq!(inputs, ["past.1", "past.2", "m.layers.0.out"]);
    assert_eq!(piece.outputs().count(), 3);
    assert!(piece.graph().layers().all(|layer| !layer.name().contains("layers.3")));

    let blocks = Blocks::new(&model);
    let (enter, leave) = border(&model, [one(&blocks, 1), one(&blocks, 2)]);
    assert_eq!((enter.len(), leave.len()), (1, 3));
}

#[test]
fn a_number_that_no_block_has_is_an_error_with_the_numbers_of_the_model() {
    let script: Script = "cut block 7..9".parse().unwrap();
    let error = script.run(decoder(5, None)).unwrap_err().to_string();
    assert_eq!(error, "cut block 7..9: not all blocks from 7 to 9 are there; the model has the blocks 0 to 4");
    let error = Kept::find(&decoder(5, None), &["block:7".into()]).unwrap_err().to_string();
    assert_eq!(error, "`block:7-7` matches no layer; did you mean `block:0-4`?");
}

#[test]
fn each_layer_of_real_models_is_in_one_block_and_inner_scopes_are_parts_of_outer_ones() {
    fn nested(block: &Block) {
        let outer: BTreeSet<&LayerId> = block.layers.iter().collect();
        for inner in &block.blocks {
            assert!(inner.layers.len() < block.layers.len(), "{}", inner.name);
            assert!(inner.layers.iter().all(|id| outer.contains(id)), "{}", inner.name);
            let is_named = block.name == "all layers" || inner.name.starts_with(&block.name);
            assert!(is_named && inner.bytes() <= block.bytes(), "{}", inner.name);
            nested(inner);
        }
    }
    let mut numbered = 0;
    for path in models(|_| true) {
        let Ok(mut model) = Model::open(&path) else { continue };
        let _found = typelift::infer(&mut model);
        let blocks = Blocks::new(&model);
        let mut seen = BTreeSet::new();
        for block in &blocks.list {
            nested(block);
            numbered += usize::from(block.number.is_some());
            assert!(block.layers.iter().all(|&id| seen.insert((block.place.clone(), id))), "{}", path.display());
        }
        let all: usize = model.walk().map(|(_, graph)| graph.len()).sum();
        assert_eq!(seen.len(), all, "{}", path.display());
    }
    assert!(numbered > 20, "{numbered}");
}

fn opened(path: &str) -> Model {
    let mut model = Model::open(format!("{}/../../testdata/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let _found = typelift::infer(&mut model);
    model
}

fn operations(model: &Model, block: &Block, ty: &str) -> usize {
    block.layers.iter().filter(|&&id| model.graph().layer(id).unwrap().ty() == ty).count()
}

/// A fused batch normalization leaves a Convolution with a name like `Multiply_9972`.
#[test]
fn a_layer_that_lost_its_name_is_in_the_block_of_its_only_consumers() {
    let model = opened("pages/blocks.xml");
    let blocks = Blocks::new(&model);
    let numbered: Vec<&Block> = blocks.list.iter().filter(|block| block.number.is_some()).collect();
    assert_eq!(numbered.len(), 4);
    for block in numbered {
        assert_eq!((operations(&model, block, "Convolution"), block.differs.len()), (3, 0), "{}", block.name);
    }

    // Of each stage of a ResNet only the first block differs, whose skip connection has a Convolution.
    let model = opened("models/irv10_resnet50.xml");
    let blocks = Blocks::new(&model);
    for block in blocks.list.iter().filter(|block| block.number.is_some()) {
        let is_first = block.number == Some(0);
        assert_eq!(operations(&model, block, "Convolution"), if is_first { 4 } else { 3 }, "{}", block.name);
        assert_eq!(block.differs.first().map(String::as_str), is_first.then_some("has a downsample branch"));
    }
}

#[test]
fn a_layer_that_ends_a_block_without_an_activation_stays_in_it() {
    let block = |name: &str, input: &str, at: usize| {
        format!(
            "Multiply_{at}1 = MatMul({input}, w)\n{name}.act/Relu = ReLU(Multiply_{at}1)\n\
             {name}.gate/Tanh = Tanh({name}.act/Relu)\n{name}.sum/Add = Add({name}.gate/Tanh, {name}.act/Relu)\n\
             Multiply_{at}2 = MatMul({name}.sum/Add, w)\n"
        )
    };
    let blocks: String = (0..3)
        .map(|at| {
            let input = if at == 0 { "m.stem/Abs".to_owned() } else { format!("Multiply_{}2", at - 1) };
            block(&format!("m.blocks.{at}"), &input, at)
        })
        .collect();
    let text = format!(
        "x = Parameter : f32[1,2]\nw = Const([1, 2, 3, 4]) : f32[2,2]\nm.stem/Abs = Abs(x)\n{blocks}\
         m.head/Exp = Exp(Multiply_22)\ny = Result(m.head/Exp)\n"
    );
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model);
    for number in 0..2 {
        let block = one(&blocks, number);
        let names: BTreeSet<&str> = block.layers.iter().map(|&id| model.graph().layer(id).unwrap().name()).collect();
        let own = [format!("Multiply_{number}1"), format!("Multiply_{number}2")];
        assert!(own.iter().all(|name| names.contains(name.as_str())) && names.len() == 5, "{names:?}");
    }
}

#[test]
fn layers_are_in_the_block_of_their_name_in_all_models() {
    let plain = |name: &str| name.trim_start_matches("__module.").trim_start_matches("self.").to_owned();
    let mut count = 0;
    for path in models(|_| true) {
        let Ok(mut model) = Model::open(&path) else { continue };
        let _found = typelift::infer(&mut model);
        let blocks = Blocks::new(&model);
        let of_name: BTreeSet<String> =
            blocks.list.iter().filter(|block| block.number.is_some()).map(|block| plain(&block.name)).collect();
        for block in blocks.list.iter().filter(|block| block.place.is_model()) {
            for layer in block.layers.iter().filter_map(|&id| model.graph().layer(id)).filter(|it| it.ty() != "Const") {
                let Some(named) = typelift::graph::numbered_prefix(layer.name()).map(plain) else { continue };
                if of_name.contains(&named) {
                    assert_eq!(plain(&block.name), named, "{} of {}", layer.name(), path.display());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn scopes_that_alternate_are_not_put_into_one() {
    let block = |at: usize, input: &str| {
        let name = format!("m.down.{at}");
        format!(
            "{name}.resnets.0/a/Relu = ReLU({input})\n{name}.resnets.0/b/Exp = Exp({name}.resnets.0/a/Relu)\n\
             {name}.attentions.0/a/Sin = Sin({name}.resnets.0/b/Exp)\n{name}.attentions.0/b/Abs = Abs({name}.attentions.0/a/Sin)\n\
             {name}.resnets.1/a/Relu = ReLU({name}.attentions.0/b/Abs)\n{name}.resnets.1/b/Exp = Exp({name}.resnets.1/a/Relu)\n\
             {name}.attentions.1/a/Sin = Sin({name}.resnets.1/b/Exp)\n{name}.attentions.1/b/Abs = Abs({name}.attentions.1/a/Sin)\n"
        )
    };
    let text = format!(
        "x = Parameter : f32[2]\n{}{}y = Result(m.down.1.attentions.1/b/Abs)\n",
        block(0, "x"),
        block(1, "m.down.0.attentions.1/b/Abs")
    );
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model);
    let scopes: Vec<&str> = one(&blocks, 1).blocks.iter().map(|scope| scope.name.as_str()).collect();
    let all = ["m.down.1.resnets.0", "m.down.1.resnets.1", "m.down.1.attentions.0", "m.down.1.attentions.1"];
    assert_eq!(BTreeSet::from_iter(scopes), BTreeSet::from(all));
}

#[test]
fn siblings_of_which_most_do_not_agree_say_so_once() {
    let layers = |at: usize, input: &str| {
        let name = format!("m.stage.{at}");
        let more: String = (0..=at).map(|nth| format!("{name}.e{nth} = Exp({name}.b)\n")).collect();
        format!(
            "{name}.a = ReLU({input})\n{name}.b = Elu({name}.a) {{alpha={at}}}\n{more}{name}.out = Sin({name}.e0)\n"
        )
    };
    let all = layers(0, "x") + &layers(1, "m.stage.0.out") + &layers(2, "m.stage.1.out");
    let mut model = Model::from_text(&format!("x = Parameter : f32[2]\n{all}y = Result(m.stage.2.out)\n")).unwrap();
    let _found = typelift::infer(&mut model);
    let blocks = Blocks::new(&model);
    let differs: Vec<&String> = blocks.list.iter().flat_map(|block| &block.differs).collect();
    assert_eq!(
        differs,
        [
            "the 3 blocks of stage differ from each other: operations (Exp between stage.0 and stage.1), attributes (alpha of Elu), computed types"
        ]
    );
}

/// Attributes of siblings were not compared, and the last block took a Convert of the scope after it.
#[test]
fn a_word_of_an_attribute_tells_siblings_apart_and_names_keep_layers_out() {
    let layers = |at: usize| {
        let (name, mode, axis) = (format!("m.layers.{at}"), at == 2, u8::from(at != 3));
        let input = if at == 0 { "x".to_owned() } else { format!("m.layers.{}/out", at - 1) };
        format!(
            "{name}/aten::to/Convert = Convert({input}) {{destination_type=f32}}\n\
             {name}/square = MatMul({name}/aten::to/Convert, {name}/aten::to/Convert) {{transpose_b={mode}}}\n\
             {name}/soft = Softmax({name}/square) {{axis={axis}}}\n\
             {name}/out = Convert({name}/soft) {{destination_type=f16}}\n"
        )
    };
    let all: String = (0..5).map(layers).collect();
    let text = format!(
        "x = Parameter : f16[2,2]\n{all}m.norm/aten::to/Convert = Convert(m.layers.4/out) {{destination_type=f32}}\n\
         m.norm/aten::abs/Abs = Abs(m.norm/aten::to/Convert)\ny = Result(m.norm/aten::abs/Abs)\n"
    );
    let mut model = Model::from_text(&text).unwrap();
    let _found = typelift::infer(&mut model);
    let blocks = Blocks::new(&model);
    let numbered: Vec<(usize, &[String])> =
        blocks.list.iter().filter(|it| it.number.is_some()).map(|it| (it.layers.len(), &it.differs[..])).collect();
    let flag = ["has MatMul with transpose_b=\"true\"".to_owned()];
    let number = ["has SoftMax with axis=\"0\"".to_owned()];
    assert_eq!(numbered, [(4, &[][..]), (4, &[]), (4, &flag), (4, &number), (4, &[])]);
}

/// A block whose inputs are wired otherwise has the same layers, and was called equal.
#[test]
fn a_sibling_that_is_wired_otherwise_is_different() {
    let text = |skipped: usize| {
        let block = |at: usize| {
            let (name, before) = (format!("m.layers.{at}"), |back: usize| match at.checked_sub(back) {
                Some(at) => format!("m.layers.{at}.out"),
                None => "x".to_owned(),
            });
            let (input, skip) = (before(1), before(if at == skipped { 2 } else { 1 }));
            format!(
                "{name}.a = ReLU({input})\n{name}.b = Abs({name}.a)\n{name}.mask = Add({name}.b, mask)\n\
                 {name}.out = Add({name}.mask, {skip})\n"
            )
        };
        let blocks: String = (0..6).map(block).collect();
        format!("x = Parameter : f32[2]\nmask = Parameter : f32[2]\n{blocks}y = Result(m.layers.5.out)\n")
    };
    let differs = |skipped: usize| {
        let mut model = Model::from_text(&text(skipped)).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let blocks = Blocks::new(&model);
        let numbered = blocks.list.into_iter().filter(|block| block.number.is_some());
        numbered.map(|block| block.differs.join("; ")).collect::<Vec<_>>()
    };
    assert_eq!(differs(6), [""; 6]);
    let words = "`out` reads `out` of 2 blocks before, where its siblings read `out` of the block before";
    assert_eq!(differs(3), ["", "", "", words, "", ""]);
}

/// Numbers in names without a scope differ in each block, and the last block can count its names in another order.
#[test]
fn names_with_numbers_are_not_taken_for_a_difference() {
    let block = |at: usize| {
        let (name, before) =
            (format!("m.layers.{at}"), if at == 0 { "x".to_owned() } else { format!("m.layers.{}.out", at - 1) });
        let [one, other] = if at == 5 { ["Add_1", "Add"] } else { ["Add", "Add_1"] };
        let (number, exchanged) = (100 + 17 * at, [format!("{name}.{one}"), format!("Abs_{}", 100 + 17 * at)]);
        let [first, second] = if at == 2 { [&exchanged[1], &exchanged[0]] } else { [&exchanged[0], &exchanged[1]] };
        format!(
            "{name}.{one} = ReLU({before})\n{name}.{other} = Exp({before})\nAbs_{number} = Abs({name}.{other})\n\
             {name}.power = Power({first}, {second})\n{name}.out = Add({name}.power, {before})\n"
        )
    };
    let blocks: String = (0..6).map(block).collect();
    let mut model = Model::from_text(&format!("x = Parameter : f32[2]\n{blocks}y = Result(m.layers.5.out)\n")).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
    let words = "`power` reads `Abs_134` and `Add`, where its siblings read `Add` and Abs";
    assert_eq!(blocks.map(|block| block.differs.join("; ")).collect::<Vec<_>>(), ["", "", words, "", "", ""]);
}

/// Projections of attention compute the same of the same tensor: their modules alone tell them apart.
#[test]
fn a_sibling_with_exchanged_inputs_is_different() {
    let text = |odd: usize| {
        let block = |at: usize| {
            let (name, before) =
                (format!("m.layers.{at}"), if at == 0 { "x".to_owned() } else { format!("m.layers.{}.out", at - 1) });
            let (q, k) = if at == odd { ("k", "q") } else { ("q", "k") };
            format!(
                "{name}.q/linear = ReLU({before})\n{name}.k/linear = ReLU({before})\n\
                 {name}.attn = Subtract({name}.{q}/linear, {name}.{k}/linear)\n{name}.out = Add({name}.attn, {before})\n"
            )
        };
        format!("x = Parameter : f32[2]\n{}y = Result(m.layers.5.out)\n", (0..6).map(block).collect::<String>())
    };
    let differs = |odd: usize| {
        let mut model = Model::from_text(&text(odd)).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let blocks = Blocks::new(&model);
        let numbered = blocks.list.into_iter().filter(|block| block.number.is_some());
        numbered.map(|block| block.differs.join("; ")).collect::<Vec<_>>()
    };
    assert_eq!(differs(6), [""; 6]);
    assert_eq!(
        differs(2),
        [
            "",
            "",
            "`attn` reads `k/linear` and `q/linear`, where its siblings read `q/linear` and `k/linear`",
            "",
            "",
            ""
        ]
    );
    assert_eq!(
        differs(5),
        [
            "",
            "",
            "",
            "",
            "",
            "`attn` reads `k/linear` and `q/linear`, where its siblings read `q/linear` and `k/linear`"
        ]
    );
}

/// A bypassed block was listed after its siblings, and the block after it was said to differ. Exchanged inputs were equal.
#[test]
fn a_bypassed_block_and_exchanged_inputs_are_named() {
    let differs = |source: &dyn Fn(usize) -> (usize, usize, [&'static str; 2])| {
        let block = |at: usize| {
            let (back, past, [one, two]) = source(at);
            let before = at.checked_sub(back).map_or("x".to_owned(), |at| format!("m.layers.{at}.out"));
            format!(
                "m.layers.{at}.a = ReLU({before})\nm.layers.{at}.cat = Concat(past.{past}.key, m.layers.{at}.a) {{axis=0}}\n\
                 m.layers.{at}.b = Subtract(m.layers.{at}.cat, {one})\nm.layers.{at}.c = Power(m.layers.{at}.b, {two})\n\
                 m.layers.{at}.out = Add(m.layers.{at}.c, {before})\n"
            )
        };
        let ends: String = (0..6).map(|at| format!("past.{at}.key = Parameter : f32[?,2]\n")).collect();
        let blocks: String = (0..6).map(block).collect();
        let text = format!(
            "x = Parameter : f32[?,2]\ncos = Parameter : f32[1,2]\nsin = Parameter : f32[1,2]\n{ends}{blocks}y = Result(m.layers.5.out)\n"
        );
        let mut model = Model::from_text(&text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let blocks = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
        let found: Vec<_> = blocks.map(|block| (block.number.unwrap(), block.differs.join("; "))).collect();
        // A row of the map that stands for several blocks hides none that differs.
        let map = typelift::explain::map::PrecisionMap::new(&model, &[]);
        let of_rows: usize = map.rows.iter().filter(|row| !row.differs.is_empty()).map(|row| row.blocks).sum();
        assert_eq!(of_rows, found.iter().filter(|(_, words)| !words.is_empty()).count());
        found
    };
    let expected = |odd: &[(u64, &str)]| {
        let word = |at| odd.iter().find(|(number, _)| *number == at).map_or("", |(_, word)| word);
        (0..6).map(|at| (at, word(at).to_owned())).collect::<Vec<_>>()
    };
    let pair = ["cos", "sin"];
    assert_eq!(differs(&|at| (1, at, pair)), expected(&[]));
    let bypassed = "is bypassed: no layer after it reads it";
    assert_eq!(differs(&|at| (if at == 4 { 2 } else { 1 }, at, pair)), expected(&[(3, bypassed)]));
    let [three, four] =
        [4, 3].map(|past| format!("`cat` reads `past.{past}.key`, where its siblings read `past.#.key`"));
    let exchanged = |at| {
        if at == 3 {
            4
        } else if at == 4 {
            3
        } else {
            at
        }
    };
    assert_eq!(differs(&|at| (1, exchanged(at), pair)), expected(&[(3, &three), (4, &four)]));
    let words = "`b` reads `sin`, where its siblings read `cos`, and `c` the other way round";
    assert_eq!(differs(&|at| (1, at, if at == 2 { ["sin", "cos"] } else { pair })), expected(&[(2, words)]));
}

/// The position bias that the first block of T5 computes for the others was a list of 30 counts.
#[test]
fn a_block_that_computes_for_its_siblings_says_so_first() {
    let block = |at: usize| {
        let bias = if at == 0 { "m.block.0.bias = Exp(x)\nm.block.0.late = Sin(m.block.0.bias)\n" } else { "" };
        let input = at.checked_sub(1).map_or("x".to_owned(), |at| format!("m.block.{at}.out"));
        format!(
            "{bias}m.block.{at}.a = ReLU({input})\nm.block.{at}.b = Abs(m.block.{at}.a)\n\
             m.block.{at}.c = Tanh(m.block.{at}.b)\nm.block.{at}.out = Add(m.block.{at}.c, m.block.0.late)\n"
        )
    };
    let blocks: String = (0..4).map(block).collect();
    let mut model = Model::from_text(&format!("x = Parameter : f32[2]\n{blocks}y = Result(m.block.3.out)\n")).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model);
    assert_eq!(
        one(&blocks, 0).differs[..2],
        ["computes a tensor that several siblings read", "has 1 Exp instead of 0, 1 Sin instead of 0"]
    );
    assert!((1..4).all(|number| one(&blocks, number).differs.is_empty()));
}

/// The decoder of T5 was listed before its encoder, and two basic blocks of a ResNet without names were one.
#[test]
fn families_are_in_the_order_of_the_data_and_residual_blocks_are_whole() {
    let block = |name: &str, input: &str, other: &str| {
        format!(
            "{name}.a = ReLU({input})\n{name}.b = Abs({name}.a)\n{name}.c = Tanh({name}.b)\n{name}.out = Add({name}.c, {other})\n"
        )
    };
    let text = format!(
        "x = Parameter : f32[2]\nz = Parameter : f32[2]\n{}{}{}{}y = Result(m.decoder.1.out)\n",
        block("m.encoder.0", "x", "x"),
        block("m.encoder.1", "m.encoder.0.out", "m.encoder.0.out"),
        block("m.decoder.0", "z", "m.encoder.1.out"),
        block("m.decoder.1", "m.decoder.0.out", "m.encoder.1.out")
    );
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model);
    let found: Vec<&str> = blocks.list.iter().filter(|it| it.number.is_some()).map(|it| it.name.as_str()).collect();
    assert_eq!(found, ["m.encoder.0", "m.encoder.1", "m.decoder.0", "m.decoder.1"]);

    // The third block has a layer on its skip connection.
    let block = |at: usize, extra: bool| {
        let input = format!("r{at}");
        let (skip, more) =
            if extra { (format!("d{at}"), format!("d{at} = Abs({input})\n")) } else { (input.clone(), String::new()) };
        format!(
            "{more}a{at} = Abs({input})\nb{at} = ReLU(a{at})\nc{at} = Abs(b{at})\ne{at} = Add(c{at}, {skip})\n\
             r{} = ReLU(e{at})\n",
            at + 1
        )
    };
    let text: String = (0..4).map(|at| block(at, at == 2)).collect();
    let text = format!("x = Parameter : f32[2]\nr0 = Exp(x)\n{text}z = Sin(r4)\ny = Result(z)\n");
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let blocks = Blocks::new(&model);
    let found = blocks.list.iter().map(|block| (block.number, block.layers.len(), block.family));
    let all = [
        (None, 2, None),
        (Some(1), 5, Some(0)),
        (Some(2), 5, Some(0)),
        (Some(3), 6, Some(1)),
        (Some(4), 5, Some(1)),
        (None, 2, None),
    ];
    assert_eq!(found.collect::<Vec<_>>(), all);

    // A block of the second stage lost its activation. It was no block, and the blocks after it had other numbers.
    let stages: String = (0..6).map(|at| block(at, at == 2 || at == 4)).collect();
    let stages = stages.replace("b3 = ReLU(a3)\n", "").replace("(b3)", "(a3)");
    let mut model =
        Model::from_text(&format!("x = Parameter : f32[2]\nr0 = Exp(x)\n{stages}y = Result(r6)\n")).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let found = Blocks::new(&model).list;
    let numbered: Vec<&Block> = found.iter().filter(|block| block.number.is_some()).collect();
    assert_eq!((numbered.len(), numbered[3].layers.len()), (6, 4));
    assert_eq!(numbered[3].differs, ["has 1 ReLU, where block 1, block 2 and block 6 have 2"]);

    // Blocks that lost their Add, and an unused layer that reads the last block.
    for at in [0, 1, 3] {
        let text =
            text.replace(&format!("e{at} = Add(c{at}, r{at})\n"), "").replace(&format!("(e{at})"), &format!("(c{at})"));
        let mut model = Model::from_text(&format!("{text}unused = Cos(r4)\n")).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let found = Blocks::new(&model).list;
        let numbered: Vec<&Block> = found.iter().filter(|block| block.number.is_some()).collect();
        assert_eq!((numbered.len(), numbered[at].layers.len()), (4, 4), "{at}");
        assert!(
            numbered[at].differs.contains(&"lacks a skip connection".to_owned()),
            "{at} {:?}",
            numbered[at].differs
        );
    }
}

/// A sibling that stores another constant said how many bytes it has.
#[test]
fn constants_that_are_others_in_most_siblings_are_named() {
    // The constant has a name in its block, or is known by the layer that reads it.
    for (constant, what) in [("m.block.#.scale", "`scale`"), ("k#", "input 1 of `a`")] {
        let block = |at: usize| {
            let before = if at == 0 { "x".to_owned() } else { format!("m.block.{}.out", at - 1) };
            let (name, scale) = (format!("m.block.{at}"), if at == 2 { "0.7" } else { "0.1" });
            let constant = constant.replace('#', &at.to_string());
            format!(
                "{constant} = Const([{scale}]) : f32[]\n{name}.a = Multiply({before}, {constant})\n\
                 {name}.b = ReLU({name}.a)\n{name}.c = Abs({name}.b)\n{name}.out = Exp({name}.c)\n"
            )
        };
        let text =
            format!("x = Parameter : f32[2]\n{}y = Result(m.block.3.out)\n", (0..4).map(block).collect::<String>());
        let mut model = Model::from_text(&text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let blocks = Blocks::new(&model);
        let differs: Vec<String> = (0..4).map(|number| one(&blocks, number).differs.join("; ")).collect();
        let odd = format!("{what} is f32[] = [0.7], in its siblings f32[] = [0.1]");
        assert_eq!(differs, ["", "", &odd, ""]);
    }
}

/// Work that a detector does twice inside of one module was called a block, and its modules had no boxes.
#[test]
fn a_model_without_blocks_is_divided_into_its_modules() {
    let blocks = Blocks::new(&opened("models/fasterrcnn_tv.promote.xml"));
    assert!(blocks.list.iter().all(|block| !block.name.ends_with("block 5")));
    let layers = |module: &str, input: &str| -> String {
        let layer = |at: usize| {
            let before = if at == 0 { input.to_owned() } else { format!("m.{module}/aten::abs/Abs_{}", at - 1) };
            format!("m.{module}/aten::abs/Abs_{at} = Abs({before})\n")
        };
        (0..60).map(layer).collect()
    };
    let text = format!(
        "x = Parameter : f32[2]\n{}{}y = Result(m.head/aten::abs/Abs_59)\n",
        layers("backbone", "x"),
        layers("head", "m.backbone/aten::abs/Abs_59")
    );
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let [all] = &Blocks::new(&model).list[..] else { panic!("blocks") };
    let modules: Vec<_> = all.blocks.iter().map(|block| (block.name.as_str(), block.layers.len())).collect();
    assert_eq!(modules, [("m.backbone", 60), ("m.head", 60)]);
}

/// Of three blocks the first one computes more, as in T5, and one has exchanged inputs: the words of all three were "the
/// 3 blocks differ from each other", without the exchange.
#[test]
fn a_sibling_is_compared_with_the_form_that_most_share_in_each_aspect() {
    let differs = |odd: usize| {
        let block = |at: usize| {
            let name = format!("m.block.{at}");
            let before = if at == 0 { "x".to_owned() } else { format!("m.block.{}.out", at - 1) };
            let (q, k) = if at == odd { ("k", "q") } else { ("q", "k") };
            let bias = if at == 0 {
                "m.block.0.bias = Exp(m.block.0.sum)\nm.block.0.out = Add(m.block.0.bias, x)\n"
            } else {
                ""
            };
            let out = if at == 0 { "" } else { &format!("{name}.out = Add({name}.sum, {before})\n") };
            format!(
                "{name}.q/linear = ReLU({before})\n{name}.k/linear = ReLU({before})\n\
                 {name}.attn = Subtract({name}.{q}/linear, {name}.{k}/linear)\n{name}.sum = Abs({name}.attn)\n{bias}{out}"
            )
        };
        let text =
            format!("x = Parameter : f32[2]\n{}y = Result(m.block.2.out)\n", (0..3).map(block).collect::<String>());
        let mut model = Model::from_text(&text).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let numbered = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
        numbered.map(|block| block.differs.join("; ")).collect::<Vec<_>>()
    };
    let bias = "has 1 Exp instead of 0; computes 6 tensors in f32 instead of 5";
    assert_eq!(differs(3), [bias, "", ""]);
    let words = "`attn` reads `k/linear` and `q/linear`, where its siblings read `q/linear` and `k/linear`";
    assert_eq!(differs(1), [bias, words, ""]);
    assert_eq!(differs(2), [bias, "", words]);
}

/// Half of four blocks are usual if the others differ from each other.
#[test]
fn a_removed_skip_connection_is_named() {
    let block = |at: usize| {
        let name = format!("m.block.{at}");
        let before = if at == 0 { "x".to_owned() } else { format!("m.block.{}.out", at - 1) };
        let end = match at {
            0 => format!("{name}.bias = Exp({before})\n{name}.skip = Add({name}.sum, {name}.bias)\n"),
            2 => String::new(),
            _ => format!("{name}.skip = Add({name}.sum, {before})\n"),
        };
        let last = if at == 2 { "sum" } else { "skip" };
        format!(
            "{name}.q/linear = ReLU({before})\n{name}.k/linear = ReLU({before})\n\
             {name}.sum = Subtract({name}.q/linear, {name}.k/linear)\n{end}{name}.out = Abs({name}.{last})\n"
        )
    };
    let text = format!("x = Parameter : f32[2]\n{}y = Result(m.block.3.out)\n", (0..4).map(block).collect::<String>());
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let numbered = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
    let differs: Vec<_> = numbered.map(|block| block.differs.join("; ")).collect();
    let branch = "has 1 Exp instead of 0; computes 6 tensors in f32 instead of 5";
    let gap = "lacks a skip connection; has 0 Add instead of 1; computes 4 tensors in f32 instead of 5";
    assert_eq!(differs, [branch, "", gap, ""]);
}

/// Two blocks were said to be equal if a list of an attribute or all values differed, and what differed was not said.
#[test]
fn the_difference_of_two_siblings_is_named_and_neither_is_odd() {
    let differs = |change: &str, scale: &str, count: usize| {
        let block = |at: usize| {
            let name = format!("m.block.{at}");
            let before = if at == 0 { "x".to_owned() } else { format!("m.block.{}.out", at - 1) };
            let odd = at == 1;
            let one = if odd && change == "dilation" { 2 } else { 1 };
            let values = if odd { scale } else { "0.5" };
            let weight = vec![values; 144].join(",");
            let swish = if odd && change == "swish" { "b" } else { "s" };
            let read = if odd && change == "rewired" { "a" } else { "b" };
            format!(
                "{name}.w = Const([{weight}]) : f32[4,4,3,3]\n\
                 {name}.a = Convolution({before}, {name}.w) {{strides=[1,1], dilations=[{one},{one}], \
                 pads_begin=[{one},{one}], pads_end=[{one},{one}], auto_pad=explicit}}\n\
                 {name}.b = Abs({name}.a)\n{name}.s = Swish({name}.{read})\n{name}.out = Exp({name}.{swish})\n"
            )
        };
        let layers: String = (0..count).map(block).collect();
        let text = format!("x = Parameter : f32[1,4,8,8]\n{layers}y = Result(m.block.{}.out)\n", count - 1);
        let mut model = Model::from_text(&text).unwrap();
        let _found = typelift::infer(&mut model);
        let numbered = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
        numbered.map(|block| block.differs.join("; ")).collect::<Vec<_>>()
    };
    let both = "block.0 and block.1 differ from each other: ";
    assert_eq!(differs("", "0.5", 2), ["", ""]);
    let [own, usual] =
        [2, 1].map(|n| format!("Convolution with dilations=\"{n},{n}\", pads_begin=\"{n},{n}\", pads_end=\"{n},{n}\""));
    let of_two = format!("{both}{usual} in block.0; {own} in block.1");
    assert_eq!(differs("dilation", "0.5", 2), [&of_two, ""]);
    assert_eq!(differs("dilation", "0.5", 3), ["", &format!("has {own}"), ""]);
    assert_eq!(differs("rewired", "0.5", 2), [&format!("{both}`s` reads `b` in block.0 and `a` in block.1"), ""]);
    assert!(differs("swish", "0.5", 2)[0].starts_with(both));
    let scaled = "`w` has values about 20 times as";
    assert_eq!(differs("", "0.025", 2), [format!("{both}{scaled} large as in block.1"), String::new()]);
    let of_two = format!("{both}`w` has values about 16 times as large as in block.1");
    assert_eq!(differs("", "0.030675", 2), [of_two, String::new()]);
    assert_eq!(differs("", "10", 3), ["", &format!("{scaled} large as in its siblings"), ""]);
    let zero = "all values of `w` are zero, those of its siblings are not";
    assert_eq!(differs("", "0", 2), ["", zero]);
    assert_eq!(differs("", "0", 4), ["", zero, "", ""]);
    // A weight of another scale came after all counts, which a page cuts.
    assert!(differs("swish", "0.030675", 2)[0].starts_with(&format!("{both}`w` has values about 16 times")));
    for count in [2, 3] {
        let strange = "`w` has values that are not finite, unlike its siblings";
        assert_eq!(differs("", "nan", count)[..2], ["", strange]);
    }
    assert_eq!(differs("", "0.2", 3), ["", "", ""]);
    // Factors below 8 were not told.
    assert_eq!(differs("", "2", 3), ["", "`w` has values about 4 times as large as in its siblings", ""]);
}

/// Three blocks that all differ said that operations differ, and not which.
#[test]
fn operations_of_the_blocks_that_are_most_alike_are_named() {
    let block = |at: usize| {
        let (name, before) =
            (format!("m.block.{at}"), at.checked_sub(1).map_or("x".to_owned(), |it| format!("m.block.{it}.out")));
        let bias = if at == 0 {
            format!("{name}.p = Sin({before})\n{name}.q = Cos({name}.p)\n{name}.r = Tan({name}.q)\n")
        } else {
            String::new()
        };
        let (input, act) = (if at == 0 { format!("{name}.r") } else { before }, if at == 1 { "Tanh" } else { "ReLU" });
        format!(
            "{bias}{name}.a = {act}({input})\n{name}.b = Abs({name}.a)\n{name}.c = Exp({name}.b)\n{name}.out = Abs({name}.c)\n"
        )
    };
    let text = format!("x = Parameter : f32[2]\n{}y = Result(m.block.2.out)\n", (0..3).map(block).collect::<String>());
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let differs: Vec<_> = Blocks::new(&model).list.into_iter().flat_map(|block| block.differs).collect();
    let start = "the 3 blocks differ from each other: operations (ReLU and Tanh between block.1 and block.2)";
    assert!(differs[0].starts_with(start), "{differs:?}");
}

/// A layer more in one of two blocks shifts the numbers of names, which looked like other wiring.
#[test]
fn names_with_shifted_numbers_are_no_other_wiring() {
    let block = |at: usize| {
        let (name, before) = (format!("m.block.{at}"), if at == 0 { "x" } else { "m.block.0.out" });
        let inputs: &[&str] = if at == 0 { &["r", "p", "q"] } else { &["p", "q"] };
        let number = |nth: usize| if nth == 0 { String::new() } else { format!("_{nth}") };
        let layers = inputs.iter().enumerate().map(|(nth, input)| {
            let number = number(nth);
            let sum = if nth == 0 { format!("{name}.r") } else { format!("{name}.s{}", nth - 1) };
            format!("{name}.n/Abs{number} = Abs({name}.{input})\n{name}.s{nth} = Add({sum}, {name}.n/Abs{number})\n")
        });
        let layers: String = layers.collect();
        format!(
            "{name}.r = ReLU({before})\n{name}.p = Sin({name}.r)\n{name}.q = Cos({name}.r)\n{layers}\
             {name}.out = Exp({name}.s{})\n",
            inputs.len() - 1
        )
    };
    let text = format!("x = Parameter : f32[2]\n{}{}y = Result(m.block.1.out)\n", block(0), block(1));
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let numbered = Blocks::new(&model).list.into_iter().filter(|block| block.number.is_some());
    let differs: Vec<_> = numbered.map(|block| block.differs.join("; ")).collect();
    assert_eq!(differs.len(), 2);
    assert!(differs[0].contains("3 and 2 Abs") && !differs[0].contains("n/Abs"), "{differs:?}");
}
