//! Laws of symbolic lengths over random graphs: lengths that satisfy the constraints infer without an error and have the
//! lengths of the formulas, and lengths that violate one at load give an error.

use std::collections::BTreeSet;

use proptest::prelude::*;
use typelift::shape::Noticed;
use typelift::{Graph, LayerId, Model, Output, Shapes};

/// An operation of a random graph: which one, its operands as positions among the tensors so far, and two small numbers.
type Step = (u8, usize, usize, i64, i64);

/// Writes a graph of tensors of rank 2 over two inputs with four open lengths.
fn listing(steps: &[Step]) -> String {
    let mut text = String::from("t0 = Parameter : f32[?,?]\nt1 = Parameter : f32[?,?]\n");
    let mut next = 2;
    for (at, &(kind, a, b, n, m)) in steps.iter().enumerate() {
        let (a, b) = (format!("t{}", a % next), format!("t{}", b % next));
        let axis = m.rem_euclid(2);
        let constant = |name: &str, values: &[i64]| {
            let list: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{name}{at} = Const([{}]) : i64[{}]\n", list.join(", "), values.len())
        };
        let scalar = |name: &str, value: i64| format!("{name}{at} = Const({value}) : i64[]\n");
        let t = format!("t{next}");
        text += &match kind % 12 {
            0 => format!("{t} = Add({a}, {b})\n"),
            1 => format!("{t} = Concat({a}, {b}) {{axis={axis}}}\n"),
            2 => format!("{t} = MatMul({a}, {b}) {{transpose_b={}}}\n", m % 2 == 0),
            3 => constant("order", &[1, 0]) + &format!("{t} = Transpose({a}, order{at})\n"),
            4 => {
                constant("to", if m % 2 == 0 { &[-1, 2] } else { &[3, -1] })
                    + &format!("{t} = Reshape({a}, to{at}) {{special_zero=false}}\n")
            }
            // OpenVINO's answer for an open length is not that for each length where the ends of a slice come closer as
            // the length grows: for -1 to 1 of at least one row it says one row, and two rows give none.
            5 => {
                let by = if n >= 0 { [1, 2, -1][n as usize % 3] } else { 1 + axis };
                let end = if n < 0 {
                    (n + m).min(-1)
                } else if by < 0 {
                    (n + m).max(0)
                } else {
                    n + m
                };
                constant("from", &[n])
                    + &constant("end", &[end])
                    + &constant("by", &[by])
                    + &constant("axes", &[axis])
                    + &format!("{t} = Slice-8({a}, from{at}, end{at}, by{at}, axes{at})\n")
            }
            6 => scalar("axis", axis) + &format!("{t} = Split({a}, axis{at}) {{num_splits=2}}\n"),
            7 => {
                constant("begin", &[n.max(-1), 0])
                    + &constant("end", &[0, m.max(-1)])
                    + &format!("{t} = Pad({a}, begin{at}, end{at}) {{pad_mode=constant}}\n")
            }
            8 => constant("times", &[1 + axis, 2 - axis]) + &format!("{t} = Tile({a}, times{at})\n"),
            9 => constant("axes", &[axis]) + &format!("{t} = ReduceSum({a}, axes{at}) {{keep_dims=true}}\n"),
            10 => format!(
                "shape{at} = ShapeOf-3({b}) {{output_type=i64}}\n{t} = Broadcast-3({a}, shape{at}) {{mode=bidirectional}}\n"
            ),
            _ => format!("{t} = ReLU({a})\n"),
        };
        next += 1;
    }
    text + &format!("r = Result(t{})\n", next - 1)
}

/// Sets the lengths of both inputs and infers.
fn inferred(
    text: &str,
    shapes: &Shapes,
    base: &Model,
    lengths: &[i64],
) -> (Model, Vec<typelift::findings::Diagnostic>) {
    let mut model = Model::from_text(text).unwrap();
    for (id, shape) in shapes.input_shapes(base, lengths) {
        let name = base.graph().layer(id).unwrap().name().to_owned();
        model.set_input(&name, None, Some(&shape)).unwrap();
    }
    let found = typelift::infer(&mut model);
    (model, found)
}

/// Returns the layers on which a Result depends. OpenVINO drops the others, whatever their shapes are.
fn leading_to_results(graph: &Graph) -> BTreeSet<LayerId> {
    let mut pending: Vec<LayerId> =
        graph.layers().filter(|layer| layer.ty() == "Result").map(typelift::Layer::id).collect();
    let mut read = BTreeSet::new();
    while let Some(id) = pending.pop() {
        if read.insert(id) {
            pending.extend(graph.producers(id).into_iter().flatten().map(|output| output.layer));
        }
    }
    read
}

fn is_unknown(shapes: &Shapes, tensor: Output, lengths: &[i64]) -> bool {
    shapes.lengths_of(tensor, lengths).is_none_or(|formulas| formulas.contains(&None))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn constraints_and_formulas_are_those_of_static_inference(
        steps in prop::collection::vec((0_u8..12, 0_usize..8, 0_usize..8, -4_i64..5, -4_i64..5), 1..8),
        samples in prop::collection::vec(prop::collection::vec(1_i64..7, 4), 6),
    ) {
        let text = listing(&steps);
        let Ok(mut model) = Model::from_text(&text) else { return Err(TestCaseError::fail(text)) };
        prop_assume!(!typelift::infer(&mut model).iter().any(typelift::findings::Diagnostic::is_error));
        let shapes = typelift::shapes(&model);
        for sample in samples {
            let lengths = &sample[..shapes.symbols.len().min(4)];
            let (sized, found) = inferred(&text, &shapes, &model, lengths);
            let error = found.iter().find(|found| found.is_error());
            let (broken, later): (Vec<_>, Vec<_>) =
                shapes.broken(lengths).into_iter().partition(|constraint| constraint.at == Noticed::Load);
            if let Some(error) = error {
                let layer = error.layer.as_ref().map(|layer| layer.id);
                // A formula of too many terms is not written, so nothing is said of the lengths that it would demand.
                if layer.is_some_and(|layer| is_unknown(&shapes, layer.output(0), lengths)) {
                    continue;
                }
                prop_assert!(!broken.is_empty(), "{text}\n{lengths:?}: {error}");
                let names = broken.iter().any(|it| it.because.first().map(|reason| reason.layer.id) == layer);
                let ties = shapes.symbols.iter().any(|symbol| symbol.axes.len() > 1);
                prop_assert!(names || ties, "{text}\n{lengths:?}: {error}, not {broken:?}");
                continue;
            }
            // Inference takes a negative length, of which a pad leaves nothing, for an unknown one, and no device does.
            if !later.is_empty() {
                continue;
            }
            prop_assert!(broken.is_empty(), "{text}\n{lengths:?}: {broken:?}");
            let read = leading_to_results(sized.graph());
            for layer in sized.graph().layers().filter(|layer| read.contains(&layer.id())) {
                for (port, output) in layer.outputs().iter().enumerate() {
                    let tensor: Output = layer.id().output(port);
                    let Some(formulas) = shapes.lengths_of(tensor, lengths) else { continue };
                    let actual = output.shape().dims().unwrap_or_default();
                    prop_assert_eq!(formulas.len(), actual.len());
                    for (formula, actual) in formulas.into_iter().zip(actual) {
                        prop_assert!(
                            formula.zip(actual.value()).is_none_or(|(formula, actual)| formula == actual),
                            "{}\n{:?}: {} is {:?}, and {}", text, lengths, layer.name(), shapes.dims(tensor), actual
                        );
                    }
                }
            }
            prop_assert!(shapes.fitting(lengths).is_some(), "{text}\n{lengths:?}");
        }
    }
}

/// Lengths that fit are found, described and loaded for a shape that was hard-coded at one length.
#[test]
fn one_length_fits_a_hard_coded_shape() {
    let text = "ids = Parameter : f32[?,?,8]\npattern = Const([1, 8, 2, 4]) : i64[4]\n\
                heads = Reshape(ids, pattern) {special_zero=false}\nr = Result(heads)\n";
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let shapes = typelift::shapes(&model);
    let constraints: Vec<_> = shapes.constraints.iter().map(|constraint| constraint.named.to_owned()).collect();
    assert_eq!(constraints, ["batch * s1 == 8"]);
    let lengths = typelift::fitting_lengths(&model, &shapes, 1).unwrap();
    assert_eq!(lengths, [1, 8]);
    assert_eq!(shapes.constraints[0].because.last().unwrap().operation, "Const");
}

/// An inferred model with its open lengths.
fn opened(text: &str) -> (Model, Shapes) {
    let mut model = Model::from_text(text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let shapes = typelift::shapes(&model);
    (model, shapes)
}

fn dims(model: &Model, shapes: &Shapes, tensor: &str) -> Vec<String> {
    shapes.named_dims(model.graph().tensor(tensor).unwrap()).unwrap()
}

/// What users asked, each with the answer that they wanted: which lengths fit, and the layers that say so.
#[test]
fn questions_of_users_have_answers() {
    // The batch is open, and a Reshape does not divide evenly.
    let divides = "x = Parameter : f32[?,4]\nto = Const([8, -1]) : i64[2]\ny = Reshape(x, to) {special_zero=false}\nr = Result(y)\n";
    // A model was traced with a length of 136 and used with another one.
    let traced = "x = Parameter : f32[1,?,6]\nto = Const([1, 136, 6]) : i64[3]\n\
                  y = Reshape(x, to) {special_zero=false}\nr = Result(y)\n";
    // A network halves an image and doubles it again.
    let halves = "x = Parameter : f32[1,3,?,8]\nk = Const(1) : f32[3,3,2,2]\n\
                  down = Convolution(x, k) {strides=[2,2], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0]}\n\
                  up = ConvolutionBackpropData(down, k) {strides=[2,2], dilations=[1,1], pads_begin=[0,0], pads_end=[0,0]}\n\
                  y = Concat(x, up) {axis=1}\nr = Result(y)\n";
    // Positions are read from a table.
    let table = "input_ids = Parameter : i64[?,?]\nshape = ShapeOf-3(input_ids) {output_type=i64}\none = Const(1) : i64[]\n\
                 zero = Const(0) : i64[]\nn = Gather-8(shape, one, zero) {batch_dims=0}\n\
                 at = Range-4(zero, n, one) {output_type=i64}\nrows = Const(1) : f32[16,4]\n\
                 y = Gather-8(rows, at, zero) {batch_dims=0}\nr = Result(y)\nr2 = Result(input_ids)\n";
    // Samples of a recording, longer than any length that is tried one by one.
    let samples = "audio = Parameter : f32[1,1,?]\nk = Const(1) : f32[2,1,400]\n\
                   y = Convolution(audio, k) {strides=[320], dilations=[1], pads_begin=[0], pads_end=[0]}\n\
                   to = Const([1, 98]) : i64[2]\nz = Reshape(y, to) {special_zero=false}\nr = Result(z)\n";
    // Lengths without an upper limit had one of 4098.
    let reflects = "x = Parameter : f32[1,?]\nb = Const([0, 1]) : i64[2]\nz = Const(0) : f32[]\n\
                    y = Pad(x, b, b, z) {pad_mode=reflect}\nr = Result(y)\n";
    for (text, limit, operation, source) in [
        (reflects, "s0 ≥ 2", "Pad", "a constant"),
        (divides, "batch: multiples of 2", "Reshape", "a constant"),
        (traced, "s0 = 136", "Reshape", "a constant"),
        (halves, "height: multiples of 2", "Concat", "Concat"),
        (table, "seq ≤ 16", "Gather", "position table"),
        (samples, "samples: 15760 to 16079", "Reshape", "a constant"),
    ] {
        let (model, shapes) = opened(text);
        let found = shapes.symbols.iter().find_map(|symbol| shapes.limit(symbol));
        let (said, constraint) = found.unwrap_or_else(|| panic!("{text}\n{:?}", &shapes.constraints));
        let reason = constraint.because.first().unwrap();
        assert_eq!((&*said, &*reason.operation, constraint.source().unwrap().0), (limit, operation, source), "{text}");
        let lengths = typelift::fitting_lengths(&model, &shapes, 1).unwrap();
        assert_eq!(inferred(text, &shapes, &model, &lengths).1, [], "{lengths:?}\n{text}");
        assert!(shapes.broken(&lengths).is_empty());
    }
}

/// After `reshape` some outputs were still open: a length depends on data where no formula says it.
#[test]
fn lengths_of_data_differ_from_lengths_of_inputs() {
    let (model, shapes) = opened(
        "x = Parameter : f32[?,3]\nfound = NonZero-3(x) {output_type=i64}\ny = Concat(x, x) {axis=0}\n\
         r = Result(found)\nr2 = Result(y)\n",
    );
    assert_eq!(dims(&model, &shapes, "found"), ["2", "?"]);
    assert_eq!(dims(&model, &shapes, "y"), ["2 * batch", "3"]);
}

/// Static shapes for a device are lengths that satisfy all constraints, tried by inference; refused ones are named with
/// the layer that is the reason.
#[test]
fn a_set_of_shapes_is_tried_before_it_is_offered() {
    let text = "a = Parameter : f32[?,?]\nb = Parameter : f32[?,8]\ny = MatMul(a, b)\nto = Const([2, -1, 4]) : i64[3]\n\
                z = Reshape(y, to) {special_zero=false}\nr = Result(z)\n";
    let (model, shapes) = opened(text);
    let ask = |text: &str| {
        let shape: typelift::shape::Shape = text.parse().unwrap();
        shapes.refusals(&model, &[(model.find_input("a").unwrap(), shape)])
    };
    let refused = ask("[3,5]");
    assert_eq!(refused, []);
    let lengths = typelift::fitting_lengths(&model, &shapes, 7).unwrap();
    assert_eq!(inferred(text, &shapes, &model, &lengths).1, []);
    assert!(lengths.iter().all(|&length| length >= 7), "{lengths:?}");

    let (model, shapes) = opened(
        "x = Parameter : f32[?,8]\nto = Const([1, 8, 2]) : i64[3]\ny = Reshape(x, to) {special_zero=false}\nr = Result(y)\n",
    );
    let refused = shapes.refusals(&model, &[(model.find_input("x").unwrap(), "[4,8]".parse().unwrap())]);
    let help = typelift::findings::Voice::Plain.help(&refused[0]);
    assert_eq!(help, ["--set-shape 'x=[2,8]'   (checked: it loads)"]);
    assert_eq!(refused[0].message.to_string(), "`x[0]` is 4, but the lengths that fit are only 2");
}

/// The lints of open lengths, each next to a model that has nothing to be said.
#[test]
fn lints_of_lengths_are_of_models_that_have_them() {
    let codes = |text: &str| {
        let (model, _) = opened(text);
        let mut codes: Vec<_> = typelift::check(&model).into_iter().map(|it| (it.severity, it.code)).collect();
        codes.retain(|(_, code)| !matches!(code.name(), "required-release" | "unaligned-constant"));
        codes
    };
    let reshape = |data: &str, pattern: &str, rest: &str| {
        let rank = pattern.split(',').count();
        format!(
            "x = Parameter : f32{data}\nto = Const({pattern}) : i64[{rank}]\ny = Reshape(x, to) {{special_zero=false}}\n{rest}"
        )
    };
    let joined = |one: usize, other: usize| {
        format!(
            "a = Parameter : f32[?,2]\nb = Parameter : f32[?,2]\nj = Concat(a, b) {{axis=0}}\n\
             to = Const([{one}, 2]) : i64[2]\ny = Reshape(j, to) {{special_zero=false}}\nr = Result(y)\n\
             too = Const([{other}, 2]) : i64[2]\nz = Reshape(j, too) {{special_zero=false}}\nr2 = Result(z)\n"
        )
    };
    let end = "r = Result(y)\n";
    use typelift::findings::{Code, Severity};
    let restored = "s = ShapeOf-3(x) {output_type=i64}\nz = Reshape(y, s) {special_zero=false}\nr = Result(z)\n";
    for (text, expected) in [
        (reshape("[2,?,8]", "[2, 16, 2, 4]", end), vec![(Severity::Note, Code::FixedLength)]),
        (reshape("[2,?,8]", "[2, -1, 2, 4]", end), vec![]),
        (reshape("[?,4,8]", "[1, -1, 8]", end), vec![(Severity::Warning, Code::SwallowedBatch)]),
        // Recordings one after the other, which a second Reshape separates again.
        (reshape("[?,4,8]", "[1, -1, 8]", restored), vec![]),
        // The batch passes other axes, so that no Reshape separates it again.
        (reshape("[?,4,8]", "[1, 4, -1]", restored), vec![(Severity::Warning, Code::SwallowedBatch)]),
        (reshape("[?,4,8]", "[-1, 8]", end), vec![]),
        (
            reshape("[2,?]", "[4, 4]", "c = Const(1) : f32[1,6]\nz = Add(x, c)\nr = Result(y)\nr2 = Result(z)\n"),
            vec![(Severity::Error, Code::ShapeConflict)],
        ),
        // A length of 1 is stretched, so that the other layer decides.
        (
            reshape("[2,?]", "[4, 4]", "c = Const(1) : f32[1,8]\nz = Add(x, c)\nr = Result(y)\nr2 = Result(z)\n"),
            vec![(Severity::Note, Code::FixedLength)],
        ),
        // No two lengths have both sums.
        (joined(8, 9), vec![(Severity::Error, Code::ShapeConflict)]),
        (joined(8, 8), vec![]),
    ] {
        assert_eq!(codes(&text), expected, "{text}");
    }
    let table = |shape: &str| {
        format!(
            "input_ids = Parameter : i64{shape}\nshape = ShapeOf-3(input_ids) {{output_type=i64}}\none = Const(1) : i64[]\n\
             zero = Const(0) : i64[]\nn = Gather-8(shape, one, zero) {{batch_dims=0}}\n\
             at = Range-4(zero, n, one) {{output_type=i64}}\nrows = Const(1) : f32[16,4]\n\
             y = Gather-8(rows, at, zero) {{batch_dims=0}}\nr = Result(y)\nr2 = Result(input_ids)\n"
        )
    };
    for (shape, expected) in [
        ("[?,?]", Some(Severity::Note)),
        ("[?,1..16]", None),
        ("[?,1..17]", Some(Severity::Warning)),
        ("[1,16]", None),
        ("[1,17]", Some(Severity::Warning)),
    ] {
        let expected: Vec<_> = expected.map(|severity| (severity, Code::TableBound)).into_iter().collect();
        assert_eq!(codes(&table(shape)), expected, "{shape}");
    }
}

/// Formulas give the counts of the model with these lengths.
#[test]
fn formulas_are_the_counts_at_each_length() {
    let text = "x = Parameter : f32[?,?,8]\nw = Const(1) : f32[8,4]\nq = MatMul(x, w)\ns = MatMul(q, q) {transpose_b=true}\n\
                a = MatMul(s, q)\nr = Result(a)\n";
    let (model, shapes) = opened(text);
    let mut formulas = typelift::shape::Formulas::new(&model, &shapes);
    let macs = formulas.macs().unwrap();
    let id = |name: &str| model.graph().find(name).unwrap();
    let bytes = formulas.bytes(model.graph(), id("s").output(0)).unwrap();
    let parts = formulas.macs_of_layers(model.graph(), &[id("q")]).unwrap();
    assert_eq!((&*macs.text, &*bytes.text), ("32 * batch * s1 + 8 * batch * s1 * s1", "4 * batch * s1 * s1"));
    assert_eq!(&parts.text, "32 * batch * s1");
    for lengths in [[1, 1], [2, 3], [5, 7]] {
        let (sized, _) = inferred(text, &shapes, &model, &lengths);
        let stats = typelift::stats(&sized);
        let given = lengths.map(Some);
        assert_eq!(formulas.at(&macs, &given), i64::try_from(stats.macs).ok());
        assert_eq!(stats.macs_formula, Some(stats.macs.to_string()));
    }
    assert_eq!(formulas.at(&macs, &[Some(1), None]), None);
    let stats = typelift::stats(&model);
    assert_eq!((stats.macs, stats.macs_is_least, stats.macs_formula.as_deref()), (40, true, Some(&*macs.text)));
}

/// The two TensorIterators of this model run 7 times.
#[test]
fn bodies_count_once_for_each_iteration() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/models/lstm_ti.xml");
    let mut model = Model::open(path).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let stats = typelift::stats(&model);
    let expected = 12_544 + 21_504 + 7 * 480 + 7 * 64;
    assert_eq!((stats.macs, stats.macs_is_least, stats.macs_formula), (expected, false, Some(expected.to_string())));
}

/// Lengths that are equal once others are, such as those of the caches of all layers, are one length of a long formula.
#[test]
fn a_formula_of_many_caches_has_one_length_for_them() {
    let cache = |at: usize| {
        format!(
            "x.{at} = Parameter : f32[?,4]\npast.{at} = Parameter : f32[?,4]\nt.{at} = Concat(past.{at}, x.{at}) {{axis=0}}\n\
             m.{at} = MatMul(t.{at}, w)\nr.{at} = Result(m.{at})\ns.{at} = Add({}, x.{at})\n",
            if at == 0 { "x.0".to_owned() } else { format!("s.{}", at - 1) }
        )
    };
    let caches: String = (0..13).map(cache).collect();
    let all: Vec<String> = (0..13).map(|at| format!("t.{at}")).collect();
    let all = all.join(", ");
    let text =
        format!("w = Const(1) : f32[4,4]\n{caches}rs = Result(s.12)\nj = Concat({all}) {{axis=1}}\nrj = Result(j)\n");
    let (model, shapes) = opened(&text);
    let macs = typelift::shape::Formulas::new(&model, &shapes).macs().unwrap();
    assert_eq!(&macs.text, "208 * batch + 208 * past_0_batch");
}

/// A length of a state is not that of its initial value: each inference adds to it. States that begin and grow alike
/// have one length.
#[test]
fn a_length_of_a_state_is_one_of_its_own() {
    let state = |name: &str, adds: &str, variable: &str| {
        format!(
            "{name} = ReadValue-6(zero) {{variable_id={variable}, variable_type=f32, variable_shape=\"?,?,8\"}}\n\
             {name}t = Concat({name}, {adds}) {{axis=1}}\n{name}a = Assign-6({name}t) {{variable_id={variable}}}\n\
             {name}r = Result({name}t)\n"
        )
    };
    let text = "x = Parameter : f32[?,?,8]\nb = Const(0) : i64[1]\naxis = Const(0) : i64[]\ns = ShapeOf-3(x) {output_type=i64}\n\
                n = Gather-8(s, b, axis) {batch_dims=0}\nrest = Const([0, 8]) : i64[2]\nto = Concat(n, rest) {axis=0}\n\
                f = Const(0) : f32[]\nzero = Broadcast-3(f, to) {mode=numpy}\ntwo = Concat(x, x) {axis=1}\n"
        .to_owned();
    let text = text + &state("k", "x", "k") + &state("v", "x", "v") + &state("w", "two", "w");
    let (model, shapes) = opened(&text);
    let lengths = |tensor: &str| {
        let tensor = model.graph().find(tensor).unwrap().output(0);
        shapes.text(tensor, model.graph().output(tensor).unwrap())
    };
    assert_eq!(
        ["k", "kt", "vt", "wt"].map(lengths),
        ["[?,past,8]", "[batch, s1 + past, 8]", "[batch, s1 + past, 8]", "[batch, 2 * s1 + w_past, 8]"]
    );
    assert_eq!((shapes.symbols.len(), shapes.constraints.len()), (2, 0));
}
