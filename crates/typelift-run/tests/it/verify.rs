//! Two models are run on a small interpreter in place of OpenVINO, and compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::HashMap;
use std::path::Path;

use typelift::promote::ElementType;
use typelift::{Layer, LayerId, Model, Weights};
use typelift_run::verify::{
    Bytes, Report, RunError, Runner, Runtime, Setting, Source, Tensor, Verification, VerifyError,
};

/// An interpreter of a few operations. It computes in f32 whatever the types are, as OpenVINO's CPU plugin does.
#[derive(Default)]
struct Interpreter {
    models: Vec<Model>,
    state: HashMap<String, Vec<f32>>,
    /// Number of runs so far.
    runs: usize,
    /// True if every run adds other values to the outputs.
    is_unsteady: bool,
    /// The largest first dimension that it runs.
    most: Option<usize>,
}

type Value = (Vec<usize>, Vec<f32>);

impl Runner for Interpreter {
    fn describe(&mut self, _: &str) -> Result<Runtime, RunError> {
        Ok(Runtime { version: "1".to_owned(), ..Runtime::default() })
    }

    fn load(&mut self, source: &Source, _: &Setting) -> Result<u64, RunError> {
        let mut model = Model::from_xml(source.text.clone()).map_err(|error| RunError::Refused(error.to_string()))?;
        let Bytes::Memory(bytes) = &source.weights else { panic!("the models of the tests are in memory") };
        model.set_weights(Weights::from_bytes(bytes.clone()));
        let _known = typelift::infer(&mut model);
        self.models.push(model);
        Ok(self.models.len() as u64 - 1)
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        self.runs += 1;
        if is_first {
            self.state.clear();
        }
        if inputs.iter().any(|input| self.most.is_some_and(|most| input.dims.first() > Some(&most))) {
            return Err(RunError::Refused("too large".to_owned()));
        }
        let model = self.models[key as usize].clone();
        let mut values: HashMap<LayerId, Value> = HashMap::new();
        let mut given = inputs.iter();
        let mut outputs = Vec::new();
        let order = model.graph().topological_order().unwrap();
        for input in model.inputs() {
            let tensor = given.next().unwrap();
            let floats = tensor.floats().unwrap().into_iter().map(|value| value as f32).collect();
            values.insert(input.id(), (tensor.dims.clone(), floats));
        }
        for id in order {
            let layer = model.graph().layer(id).unwrap();
            let feeds: Vec<Value> =
                model.graph().producers(id).into_iter().flatten().map(|source| values[&source.layer].clone()).collect();
            if let Some(value) = self.value(&model, layer, &feeds) {
                values.insert(id, value);
            }
        }
        for output in model.outputs() {
            let source = model.graph().producer(output.id().input(0)).unwrap();
            let (dims, floats) = &values[&source.layer];
            let ty = model.graph().output(source).unwrap().element_type();
            let noise = if self.is_unsteady { self.runs as f32 } else { 0.0 };
            let bytes = floats.iter().flat_map(|value| (value + noise).to_le_bytes()).collect::<Vec<u8>>();
            let count = floats.len() as u64;
            let bytes =
                typelift::convert_values(&bytes, count, ElementType::F32, ty).filter(|_| ty != ElementType::F16);
            let wide = || floats.iter().flat_map(|value| (value + noise).to_le_bytes()).collect();
            let (ty, bytes) = bytes.map_or_else(|| (ElementType::F32, wide()), |bytes| (ty, bytes));
            outputs.push(Tensor::new(ty, dims.clone(), bytes));
        }
        Ok(outputs)
    }

    fn release(&mut self, _: u64) {}

    fn arrays(&mut self, path: &Path) -> Result<Vec<(String, Tensor)>, RunError> {
        let bytes = [1.0_f32, 2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        Ok(vec![(path.to_string_lossy().into_owned(), Tensor::new(ElementType::F32, vec![1, 2], bytes))])
    }
}

impl Interpreter {
    fn value(&mut self, model: &Model, layer: &Layer, feeds: &[Value]) -> Option<Value> {
        let unary = |f: &dyn Fn(f32) -> f32| (feeds[0].0.clone(), feeds[0].1.iter().map(|&value| f(value)).collect());
        let binary = |f: &dyn Fn(f32, f32) -> f32| {
            let longer = if feeds[0].1.len() >= feeds[1].1.len() { &feeds[0] } else { &feeds[1] };
            let at = |value: &Value, at: usize| value.1[at % value.1.len()];
            (longer.0.clone(), (0..longer.1.len()).map(|index| f(at(&feeds[0], index), at(&feeds[1], index))).collect())
        };
        Some(match layer.ty() {
            "Const" => {
                let dims =
                    layer.outputs()[0].shape().to_static().unwrap().into_iter().map(|dim| dim as usize).collect();
                (dims, layer.numbers(model.weights()).unwrap().into_iter().map(|value| value as f32).collect())
            }
            "Add" => binary(&|a, b| a + b),
            "Multiply" => binary(&|a, b| a * b),
            "Greater" => binary(&|a, b| f32::from(u8::from(a > b))),
            "Abs" => unary(&f32::abs),
            "ReLU" => unary(&|value| value.max(0.0)),
            "Tanh" => unary(&f32::tanh),
            "Elu" => {
                let alpha: f32 = layer.attribute("alpha").unwrap().parse().unwrap();
                unary(&|value| if value < 0.0 { alpha * (value.exp() - 1.0) } else { value })
            }
            "Convert" => match layer.attribute("destination_type") {
                Some("i32") => unary(&f32::trunc),
                _ => unary(&|value| value),
            },
            "Select" => {
                let pick = |at: usize, from: &Value| from.1[at % from.1.len()];
                let values =
                    (0..feeds[0].1.len()).map(|at| pick(at, if feeds[0].1[at] != 0.0 { &feeds[1] } else { &feeds[2] }));
                (feeds[0].0.clone(), values.collect())
            }
            "ReadValue" => {
                let name = layer.attribute("variable_id").unwrap();
                (feeds[0].0.clone(), self.state.get(name).cloned().unwrap_or_else(|| feeds[0].1.clone()))
            }
            "Assign" => {
                self.state.insert(layer.attribute("variable_id").unwrap().to_owned(), feeds[0].1.clone());
                feeds[0].clone()
            }
            _ => return None,
        })
    }
}

fn model(text: &str) -> Model {
    let text: String = text.lines().map(|line| format!("{}\n", line.trim())).collect();
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), [], "{text}");
    model
}

fn compare(a: &str, b: &str) -> Report {
    Verification::default().run(&model(a), &model(b), &mut Interpreter::default()).unwrap()
}

/// Name of the layer at which the models begin to differ.
fn first(a: &str, b: &str) -> String {
    let report = compare(a, b);
    assert!(!report.same, "{report:?}");
    report.first.unwrap_or_else(|| panic!("no layer: {:?}", report.notes)).layer.name
}

const CHAIN: &str = "
    x = Parameter : f32[?,4]
    two = Const(2) : f32[]
    a = Multiply(x, two)
    b = Elu(a) {alpha=0.5}
    c = Tanh(b)
    d = Add(c, x)
    e = Add(d, a)
    r = Result(e)
";

#[test]
fn a_model_agrees_with_itself_under_other_names_and_in_another_order() {
    let other = "
        inp = Parameter : f32[?,4]
        k = Const(2) : f32[]
        p = Multiply(inp, k)
        q = Elu(p) {alpha=0.5}
        s = Tanh(q)
        t = Add(s, inp)
        u = Add(t, p)
        out = Result(u)
    ";
    let report = compare(CHAIN, other);
    assert!(report.same, "{report:?}");
    assert!(report.first.is_none() && report.outputs.iter().all(|output| output.finite));
    assert_eq!(report.samples[0].inputs[0].shape, "[1,4]", "the smallest size");
    assert_eq!(report.samples[1].inputs[0].shape, "[3,4]", "a larger one");
}

#[test]
fn the_layer_is_named_whose_constant_attribute_or_input_changed() {
    assert_eq!(first(CHAIN, &CHAIN.replace("Const(2)", "Const(2.1)")), "a");
    assert_eq!(first(CHAIN, &CHAIN.replace("alpha=0.5", "alpha=0.75")), "b");
    assert_eq!(first(CHAIN, &CHAIN.replace("d = Add(c, x)", "d = Add(b, x)")), "d");
    assert_eq!(first(CHAIN, &CHAIN.replace("Result(e)", "Result(d)")), "r");
}

#[test]
fn the_change_that_diff_finds_there_comes_along() {
    let report = compare(CHAIN, &CHAIN.replace("Const(2)", "Const(2.1)"));
    let first = report.first.unwrap();
    assert!(first.inputs_agree);
    assert_eq!(first.changes.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["two"]);
    assert!(!first.difference.unwrap().worst.is_empty());
}

#[test]
fn a_removed_convert_is_found_at_the_layer_after_it() {
    let rounded = CHAIN.replace(
        "d = Add(c, x)",
        "i = Convert(a) {destination_type=i32}\n j = Convert(i) {destination_type=f32}\n d = Add(c, j)",
    );
    let plain = CHAIN.replace("d = Add(c, x)", "j = Convert(a) {destination_type=f32}\n d = Add(c, j)");
    let report = compare(&rounded, &plain);
    let first = report.first.unwrap();
    assert_eq!(first.layer.name, "j");
    assert_eq!(first.changes[0].path, "i");
}

#[test]
fn an_overflow_of_f16_shows_on_a_device_that_computes_f32() {
    let large = CHAIN.replace("Const(2)", "Const(1000000)");
    let narrow = large.replace(
        "b = Elu(a) {alpha=0.5}",
        "h = Convert(a) {destination_type=f16}\n n = Abs(h)\n b = Convert(n) {destination_type=f32}",
    );
    let wide = large.replace("b = Elu(a) {alpha=0.5}", "n = Abs(a)\n b = Convert(n) {destination_type=f32}");
    // Tanh hides the difference, so the sum uses its input instead.
    let (narrow, wide) = (narrow.replace("Add(c, x)", "Add(b, x)"), wide.replace("Add(c, x)", "Add(b, x)"));
    let report = compare(&wide, &narrow);
    assert!(!report.same && report.outputs[0].difference.not_finite > 0, "{report:?}");
    assert_eq!(report.first.unwrap().layer.name, "n");
}

#[test]
fn a_difference_in_state_shows_in_a_later_step() {
    let stateful = |factor: &str| {
        format!(
            "
            x = Parameter : f32[1,2]
            zero = Const([[0, 0]]) : f32[1,2]
            past = ReadValue-6(zero) {{variable_id=s, variable_type=f32, variable_shape=\"1,2\"}}
            sum = Add(past, x)
            factor = Const({factor}) : f32[]
            kept = Multiply(sum, factor)
            write = Assign-6(kept) {{variable_id=s}}
            r = Result(sum)
            "
        )
    };
    let report = compare(&stateful("1"), &stateful("1.5"));
    assert!(!report.same);
    assert_eq!(report.samples[0].steps, 3);
    assert_eq!(report.first.unwrap().layer.name, "kept");
}

#[test]
fn indices_masks_and_positions_get_values_that_fit() {
    let text = "
        ids = Parameter : i64[?,?]
        table = Const([[1, 2], [3, 4], [5, 6]]) : f32[3,2]
        axis = Const(0) : i64[]
        attention_mask = Parameter : i64[?,?]
        position_ids = Parameter : i64[?,?]
        image = Parameter : u8[1,3,2,2]
        beam_idx = Parameter : i32[?]
        start = Parameter : f32[?,2]
        past = ReadValue-6(start) {variable_id=kv, variable_type=f32, variable_shape=\"?,2\"}
        chosen = Gather-8(past, beam_idx, axis) {batch_dims=0}
        kept = Assign-6(chosen) {variable_id=kv}
        rows = Gather-8(table, ids, axis) {batch_dims=0}
        r = Result(rows)
        s = Result(attention_mask)
        t = Result(position_ids)
        u = Result(image)
        v = Result(chosen)
    ";
    // The interpreter has no Gather, so the model fails to run, but its inputs are made before.
    let inputs = std::cell::RefCell::new(Vec::new());
    struct Listens<'a>(&'a std::cell::RefCell<Vec<Tensor>>);
    impl Runner for Listens<'_> {
        fn describe(&mut self, _: &str) -> Result<Runtime, RunError> {
            Ok(Runtime::default())
        }
        fn load(&mut self, _: &Source, _: &Setting) -> Result<u64, RunError> {
            Ok(0)
        }
        fn run(&mut self, _: u64, inputs: &[Tensor], _: bool) -> Result<Vec<Tensor>, RunError> {
            *self.0.borrow_mut() = inputs.to_vec();
            Ok(inputs.to_vec())
        }
        fn release(&mut self, _: u64) {}
        fn arrays(&mut self, _: &Path) -> Result<Vec<(String, Tensor)>, RunError> {
            Ok(Vec::new())
        }
    }
    let model = model(text);
    let mut verification = Verification::default();
    verification.steps = Some(1);
    let report = verification.run(&model, &model, &mut Listens(&inputs)).unwrap();
    let words: Vec<_> = report.samples[1].inputs.iter().map(|input| input.values.as_str()).collect();
    let expected =
        ["indices 0 to 2", "mask of 0 and 1", "positions from 0", "integers 0 to 255", "indices 0 to 2", "normal"];
    assert_eq!(words, expected, "a beam is one of the batch, which is 3 in the second sample");
    let inputs = inputs.borrow();
    let within = |at: usize, most: f64| inputs[at].floats().unwrap().iter().all(|value| (0.0..=most).contains(value));
    assert!(within(0, 2.0) && within(1, 1.0) && within(3, 255.0));
    assert_eq!(inputs[2].floats().unwrap()[..3], [0.0, 1.0, 2.0]);
}

#[test]
fn sizes_that_the_runtime_refuses_are_not_the_last_word() {
    let model = model(CHAIN);
    let mut small = Interpreter { most: Some(2), ..Interpreter::default() };
    let report = Verification::default().run(&model, &model, &mut small).unwrap();
    assert_eq!(report.samples[1].inputs[0].shape, "[2,4]", "3 is refused, so 2 is tried");
}

#[test]
fn outputs_that_change_by_themselves_are_named_and_not_compared() {
    let model = model(CHAIN);
    let mut unsteady = Interpreter { is_unsteady: true, ..Interpreter::default() };
    let report = Verification::default().run(&model, &model, &mut unsteady).unwrap();
    assert!(report.same, "{report:?}");
    assert!(report.notes.iter().any(|note| note.contains("different values in each run")), "{:?}", report.notes);
}

#[test]
fn given_shapes_and_arrays_are_used() {
    let model = model(&CHAIN.replace("[?,4]", "[?,?]"));
    let mut verification = Verification::default();
    verification.shapes.push(("x".to_owned(), "[7,2]".parse().unwrap()));
    let report = verification.run(&model, &model, &mut Interpreter::default()).unwrap();
    assert_eq!(report.samples[0].inputs[0].shape, "[7,2]");
    let mut verification = Verification::default();
    verification.inputs = Some("x".into());
    let report = verification.run(&model, &model, &mut Interpreter::default()).unwrap();
    assert_eq!((report.samples.len(), report.samples[0].inputs[0].values.as_str()), (1, "given"));
    verification.shapes.push(("nothing".to_owned(), "[1]".parse().unwrap()));
    verification.inputs = None;
    let error = verification.run(&model, &model, &mut Interpreter::default()).unwrap_err();
    assert!(matches!(error, VerifyError::Inputs(_)), "{error}");
}

#[test]
fn models_that_cannot_be_paired_or_run_are_errors_that_name_them() {
    let more = CHAIN.replace("r = Result(e)", "r = Result(e)\n s = Result(d)");
    let error = Verification::default().run(&model(CHAIN), &model(&more), &mut Interpreter::default()).unwrap_err();
    assert_eq!(error.to_string(), "A has 1 outputs, B has 2: they cannot be paired");
    let mut none = Interpreter { most: Some(0), ..Interpreter::default() };
    let error = Verification::default().run(&model(CHAIN), &model(CHAIN), &mut none).unwrap_err();
    assert_eq!(error.to_string(), "OpenVINO cannot run model A: too large");
}

#[test]
fn the_growth_of_the_error_is_reported_by_block() {
    let text = "
        x = Parameter : f32[1,4]
        k = Const(2) : f32[]
        layers.0.a = Multiply(x, k)
        layers.0.b = Tanh(layers.0.a)
        layers.1.a = Multiply(layers.0.b, k)
        r = Result(layers.1.a)
    ";
    let mut verification = Verification::default();
    verification.layers = true;
    let other = model(&text.replace(
        "layers.1.a = Multiply(layers.0.b, k)",
        "q = Const(3) : f32[]\n layers.1.a = Multiply(layers.0.b, q)",
    ));
    let report = verification.run(&model(text), &other, &mut Interpreter::default()).unwrap();
    let blocks: Vec<_> = report.blocks.iter().map(|block| (block.block.as_str(), block.max_relative > 0.0)).collect();
    assert_eq!(blocks, [("layers.0", false), ("layers.1", true)]);
}

/// A file of a few bytes can declare an input of any size.
#[test]
fn inputs_beyond_the_memory_limit_are_refused_by_name() {
    let huge = model("x = Parameter : f32[1000000,1000000,1000000]\ny = ReLU(x)\nr = Result(y)\n");
    let refused = Verification::default().run(&huge, &huge, &mut Interpreter::default()).unwrap_err().to_string();
    assert!(refused.starts_with("values for the input `x` cannot be generated: it needs "), "{refused}");
}
