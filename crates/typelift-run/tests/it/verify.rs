//! Two models are run on a small interpreter in place of OpenVINO, and compared.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use typelift::promote::ElementType;
use typelift::{Layer, LayerId, Model, Weights};
use typelift_run::verify::{
    Bytes, Difference, Loaded, Report, RunError, RunOptions, Runner, Runtime, Setting, Source, Tensor, Tolerance,
    Verification, VerifyError,
};

/// An interpreter of a few operations. It computes in f32 whatever the types are, as OpenVINO's CPU plugin does.
#[derive(Default)]
struct Interpreter {
    models: Vec<Model>,
    state: HashMap<String, Vec<f32>>,
    /// Number of runs so far.
    runs: usize,
    /// True if it never answers.
    is_endless: bool,
    /// True if every run adds other values to the outputs.
    is_unsteady: bool,
    /// The largest first dimension that it runs, and the operation without which it runs all.
    most: Option<(usize, &'static str)>,
    /// The operation that it does not give as an output.
    hidden: Option<&'static str>,
    /// True if a model without more outputs computes other values where the property `FUSES` is set.
    fuses: bool,
    /// The models that have that property.
    fused: Vec<usize>,
    /// Properties that it reports instead of those that were set.
    answers: BTreeMap<String, String>,
    /// Arrays of each file.
    arrays: Vec<(String, Tensor)>,
}

type Value = (Vec<usize>, Vec<f32>);

impl Runner for Interpreter {
    fn describe(&mut self, _: &Setting) -> Result<Runtime, RunError> {
        Ok(Runtime { version: "1".to_owned(), ..Runtime::default() })
    }

    fn load(&mut self, source: &Source, setting: &Setting) -> Result<Loaded, RunError> {
        let mut model = Model::from_xml(source.text.clone()).map_err(|error| RunError::Refused(error.to_string()))?;
        let Bytes::Memory(bytes) = &source.weights else { panic!("the models of the tests are in memory") };
        model.set_weights(Weights::from_bytes(bytes.clone()));
        let _known = typelift::infer(&mut model);
        self.models.push(model);
        let mut config = setting.defaults.clone();
        config.extend(setting.config.clone());
        if self.fuses && config.contains_key("FUSES") {
            self.fused.push(self.models.len() - 1);
        }
        config.extend(self.answers.clone());
        Ok(Loaded { key: self.models.len() as u64 - 1, config })
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
        self.runs += 1;
        if self.is_endless {
            return Err(RunError::TimedOut(600));
        }
        if is_first {
            self.state.clear();
        }
        let model = self.models[key as usize].clone();
        let is_refused = |input: &Tensor| {
            let has = |operation| model.graph().layers().any(|layer| layer.ty() == operation);
            self.most.is_some_and(|(most, operation)| input.dims.first() > Some(&most) && has(operation))
        };
        if inputs.iter().any(is_refused) {
            return Err(RunError::Refused("too large".to_owned()));
        }
        let is_hidden = |output: &Layer| {
            let source = model.graph().producer(output.id().input(0)).unwrap();
            self.hidden == Some(model.graph().layer(source.layer).unwrap().ty())
        };
        if model.outputs().any(is_hidden) {
            return Err(RunError::Refused("no such output".to_owned()));
        }
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
            let is_fused = self.fused.contains(&(key as usize)) && model.outputs().count() == 1;
            let noise = if self.is_unsteady || is_fused { self.runs as f32 } else { 0.0 };
            let bytes = floats.iter().flat_map(|value| (value + noise).to_le_bytes()).collect::<Vec<u8>>();
            let count = floats.len() as u64;
            let bytes = typelift::values::convert_values(&bytes, count, ElementType::F32, ty)
                .filter(|_| ty != ElementType::F16);
            let wide = || floats.iter().flat_map(|value| (value + noise).to_le_bytes()).collect();
            let (ty, bytes) = bytes.map_or_else(|| (ElementType::F32, wide()), |bytes| (ty, bytes));
            outputs.push(Tensor::new(ty, dims.clone(), bytes));
        }
        Ok(outputs)
    }

    fn release(&mut self, _: u64) {}

    fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
        Ok(self.arrays.clone())
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
    Verification::default().run(&model(a), Some(&model(b)), &mut Interpreter::default()).unwrap()
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

fn floats(dims: &[usize], values: &[f32]) -> Tensor {
    Tensor::new(ElementType::F32, dims.to_vec(), values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

#[test]
fn one_model_runs_twice_if_something_differs() {
    let model = model(CHAIN);
    let mut verification = Verification::default();
    let error = verification.run(&model, None, &mut Interpreter::default()).unwrap_err();
    assert!(matches!(error, VerifyError::NothingDiffers), "{error}");
    let options = RunOptions { hint_b: Some("bf16".to_owned()), ..RunOptions::default() };
    verification.settings = options.settings();
    let report = verification.run(&model, None, &mut Interpreter::default()).unwrap();
    let precisions: Vec<_> = report.runs.iter().map(|run| run.precision.as_deref()).collect();
    assert_eq!(precisions, [Some("f32"), Some("bf16")]);
    assert_eq!(report.narrowest, ElementType::Bf16, "the tolerance is that of the precision");
}

/// A precision that nobody asked for is known from the device.
#[test]
fn a_precision_that_the_device_chose_sets_the_tolerance() {
    let (a, b) = (model(CHAIN), model(&CHAIN.replace("Const(2)", "Const(2.05)")));
    let mut verification = Verification::default();
    verification.settings = RunOptions { hint: Some("default".to_owned()), ..RunOptions::default() }.settings();
    let mut same = |precision: &str| {
        let answers = BTreeMap::from([("INFERENCE_PRECISION_HINT".to_owned(), precision.to_owned())]);
        let mut runtime = Interpreter { answers, ..Interpreter::default() };
        let report = verification.run(&a, Some(&b), &mut runtime).unwrap();
        assert!(report.runs.iter().all(|run| run.precision.as_deref() == Some(precision)), "{:?}", report.runs);
        assert_eq!(report.narrowest.name(), precision);
        report.same
    };
    assert_eq!(["f32", "bf16"].map(&mut same), [false, true], "2.5 % is a rounding of bf16 only");
}

#[test]
fn a_property_that_the_device_does_not_take_is_an_error() {
    let model = model(CHAIN);
    let mut verification = Verification::default();
    let options = RunOptions { hint: Some("f16".to_owned()), ..RunOptions::default() };
    verification.settings = options.settings();
    let answers = BTreeMap::from([("INFERENCE_PRECISION_HINT".to_owned(), "bf16".to_owned())]);
    let mut runtime = Interpreter { answers, ..Interpreter::default() };
    let error = verification.run(&model, Some(&model), &mut runtime).unwrap_err();
    assert_eq!(error.to_string(), "CPU was asked for INFERENCE_PRECISION_HINT=f16 for model A, and took bf16");
    // A default is only reported.
    verification.settings = RunOptions::default().settings();
    let report = verification.run(&model, Some(&model), &mut runtime).unwrap();
    assert_eq!(report.runs[0].precision.as_deref(), Some("bf16"));
}

#[test]
fn a_difference_that_goes_away_when_it_is_looked_at_is_said() {
    let model = model(CHAIN);
    let mut verification = Verification::default();
    let config_b = vec![("FUSES".to_owned(), "1".to_owned())];
    verification.settings = RunOptions { config_b, ..RunOptions::default() }.settings();
    let mut runtime = Interpreter { fuses: true, ..Interpreter::default() };
    let report = verification.run(&model, None, &mut runtime).unwrap();
    assert!(!report.same && report.first.is_none(), "{report:?}");
    assert!(
        report.notes.iter().any(|note| note.starts_with("the outputs agree if inner tensors")),
        "{:?}",
        report.notes
    );
}

#[test]
fn open_shapes_do_not_run_in_one_thread() {
    let answers = BTreeMap::from([("INFERENCE_NUM_THREADS".to_owned(), "1".to_owned())]);
    let mut runtime = Interpreter { answers, ..Interpreter::default() };
    let error = Verification::default().run(&model(CHAIN), Some(&model(CHAIN)), &mut runtime).unwrap_err();
    assert!(error.to_string().contains("reports no errors about lengths"), "{error}");
    let counted = model("x = Parameter : f32[2,4]\nn = NonZero(x)\nr = Result(n)");
    let error = Verification::default().run(&counted, Some(&counted), &mut runtime).unwrap_err();
    assert!(matches!(error, VerifyError::OneThread(_)), "lengths that depend on values: {error}");
    let fixed = model(&CHAIN.replace("[?,4]", "[2,4]"));
    assert!(Verification::default().run(&fixed, Some(&fixed), &mut runtime).unwrap().same);
}

#[test]
fn expected_outputs_are_compared_by_name_or_in_order() {
    let doubled = model("x = Parameter : f32[?]\ntwo = Const(2) : f32[]\ny = Multiply(x, two)\nr = Result(y)");
    let arrays = |y: &str, values: &[f32]| {
        vec![("x".to_owned(), floats(&[2], &[1.0, f32::NAN])), (y.to_owned(), floats(&[2], values))]
    };
    let mut verification = Verification::default();
    verification.inputs = Some("both.npz".into());
    let run = |arrays| verification.run(&doubled, None, &mut Interpreter { arrays, ..Interpreter::default() });
    let report = run(arrays("y", &[2.0, f32::NAN])).unwrap();
    assert!(report.same && report.runs.len() == 1 && report.outputs[0].expected, "{report:?}");
    assert_eq!(report.outputs[0].difference.nan, 1);
    assert!(!run(arrays("y", &[3.0, f32::NAN])).unwrap().same);
    let error = run(arrays("z", &[2.0, 2.0])).unwrap_err();
    assert!(error.to_string().starts_with("the array `z` of `both.npz` is no input or output"), "{error}");
}

#[test]
fn arrays_of_other_values_or_names_are_refused() {
    let sum = model(
        "x = Parameter : i64[?]\ny = Parameter : u8[?]\nc = Convert(y) {destination_type=i64}\nz = Add(x, c)\nr = Result(z)",
    );
    let run = |names: [&str; 2], x: f32, y: f32| {
        let arrays = [(names[0], x), (names[1], y)].map(|(name, value)| (name.to_owned(), floats(&[1], &[value])));
        let mut verification = Verification::default();
        verification.inputs = Some("given.npz".into());
        let mut runtime = Interpreter { arrays: arrays.to_vec(), ..Interpreter::default() };
        verification.run(&sum, Some(&sum), &mut runtime).map(|report| report.same).map_err(|error| error.to_string())
    };
    assert_eq!(run(["x", "y"], 1.0, 2.0), Ok(true));
    assert_eq!(run(["arr_0", "arr_1"], 1.0, 2.0), Ok(true), "in order");
    let error = run(["x", "y"], 1.5, 2.0).unwrap_err();
    assert!(error.starts_with("the array for input `x` has 1.5, which is no value of i64"), "{error}");
    let error = run(["x", "y"], 1.0, 300.0).unwrap_err();
    assert!(error.starts_with("the array for input `y` has 300, which is no value of u8"), "{error}");
    let error = run(["x", "w"], 1.0, 2.0).unwrap_err();
    assert!(error.starts_with("`given.npz` has no array for input `y`"), "{error}");
}

#[test]
fn a_tensor_that_is_no_output_is_left_out_of_the_search() {
    let other = CHAIN.replace("alpha=0.5", "alpha=0.75");
    let mut runtime = Interpreter { hidden: Some("Multiply"), ..Interpreter::default() };
    let report = Verification::default().run(&model(CHAIN), Some(&model(&other)), &mut runtime).unwrap();
    assert_eq!(report.first.unwrap().layer.name, "b");
    assert!(report.notes.iter().any(|note| note.contains("the tensor `a` was not compared")), "{:?}", report.notes);
}

/// A branch that is 0 for all inputs.
const DEAD: &str = "
    x = Parameter : f32[?,4]
    low = Const(-100) : f32[]
    a = Abs(x)
    b = Multiply(a, low)
    c = ReLU(b)
    d = Add(c, x)
    r = Result(d)
";

#[test]
fn layers_whose_values_reach_no_output_are_not_tested() {
    let report = compare(DEAD, DEAD);
    let found: Vec<_> = report.not_tested.iter().map(|it| (it.layer.name.as_str(), it.reason.as_str())).collect();
    assert_eq!(found, ["a", "b", "c"].map(|name| (name, "`c` was 0 everywhere")));
    assert_eq!((report.tested, report.layers), (1, 4));
    assert_eq!(compare(CHAIN, CHAIN).not_tested, []);
    let one_branch = "
        x = Parameter : f32[?,4]
        low = Const(-100) : f32[]
        is_high = Greater(x, low)
        a = Abs(x)
        b = Tanh(x)
        c = Select(is_high, a, b)
        r = Result(c)
    ";
    let found = compare(one_branch, one_branch).not_tested;
    let found: Vec<_> = found.iter().map(|it| (it.layer.name.as_str(), it.reason.as_str())).collect();
    let expected =
        [("is_high", "`is_high` was the same value everywhere"), ("b", "`c` took its other value everywhere")];
    assert_eq!(found, expected);
    let infinite = "
        x = Parameter : f32[?,4]
        big = Const(3e38) : f32[]
        a = Multiply(x, big)
        b = Multiply(a, big)
        r = Result(b)
    ";
    assert_eq!(compare(infinite, infinite).not_tested, [], "values from -inf to inf are not the same");
}

/// Zeros show neither other weights nor another order of axes.
#[test]
fn layers_that_get_zeros_are_not_tested() {
    let scaled = DEAD.replace("d = Add(c, x)", "two = Const(2) : f32[]\n    e = Multiply(c, two)\n    d = Add(e, x)");
    let report = compare(&scaled, &scaled);
    let found = report.not_tested.iter().find(|it| it.layer.name == "e").map(|it| it.reason.as_str());
    assert_eq!(found, Some("`e` got 0 everywhere"));
    let other = model(&scaled.replace("Const(2)", "Const(3)"));
    let error = Verification::default().run(&model(&scaled), Some(&other), &mut Interpreter::default()).unwrap_err();
    let what = "the outputs agree, but the inputs do not test `two`, which differs, because `e` got 0 everywhere";
    assert_eq!(error.to_string(), what);
}

#[test]
fn agreement_that_made_inputs_do_not_test_is_an_error() {
    let alone = DEAD.replace("Result(d)", "Result(c)");
    let (lower, added) = (DEAD.replace("-100", "-200"), DEAD.replace("b = Multiply(a, low)", "b = Add(a, low)"));
    let cases = [
        (DEAD, &lower, "`low`, which differs, because `c` was 0 everywhere"),
        (DEAD, &added, "`b`, which differs, because `c` was 0 everywhere"),
        (&alone, &alone, "any of 3 layers, because `c` was 0 everywhere"),
    ];
    for (a, b, what) in cases {
        let error = Verification::default().run(&model(a), Some(&model(b)), &mut Interpreter::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("the outputs agree, but the inputs do not test {what}"));
    }
    // An added layer is taken for tested, and inputs that the user chose are believed.
    assert!(compare(DEAD, &lower.replace("Result(d)", "Convert(d) {destination_type=f32}\n    s = Result(r)")).same);
    let mut chosen = Verification::default();
    chosen.inputs = Some("inputs.npz".into());
    let mut runtime = Interpreter {
        arrays: vec![("x".to_owned(), floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]))],
        ..Interpreter::default()
    };
    assert!(chosen.run(&model(DEAD), Some(&model(&lower)), &mut runtime).unwrap().same);
}

/// A runtime whose outputs have the shapes that inference finds, with a length for those that stay open.
struct Shaped(Vec<Model>, usize);

impl Default for Shaped {
    fn default() -> Self {
        Self(Vec::new(), 1)
    }
}

impl Runner for Shaped {
    fn describe(&mut self, _: &Setting) -> Result<Runtime, RunError> {
        Ok(Runtime::default())
    }

    fn load(&mut self, source: &Source, _: &Setting) -> Result<Loaded, RunError> {
        let mut model = Model::from_xml(source.text.clone()).map_err(|error| RunError::Refused(error.to_string()))?;
        let Bytes::Memory(bytes) = &source.weights else { panic!("the models of the tests are in memory") };
        model.set_weights(Weights::from_bytes(bytes.clone()));
        self.0.push(model);
        Ok(Loaded { key: self.0.len() as u64 - 1, ..Loaded::default() })
    }

    fn run(&mut self, key: u64, inputs: &[Tensor], _: bool) -> Result<Vec<Tensor>, RunError> {
        let mut model = self.0[key as usize].clone();
        let names: Vec<String> = model.inputs().map(|input| input.name().to_owned()).collect();
        for (name, input) in names.iter().zip(inputs) {
            model.set_input(name, None, Some(&input.shape())).unwrap();
        }
        assert_eq!(typelift::infer(&mut model), []);
        let tensor = |output: &Layer| {
            let port = model.graph().output(model.graph().producer(output.id().input(0)).unwrap()).unwrap();
            let dims: Vec<_> = port.shape().dims().unwrap().iter().map(|dim| dim.value()).collect();
            // A device that puts together no steps knows none of the lengths.
            let is_empty = self.1 == 0 && dims.contains(&None);
            let dims = dims.into_iter().map(|dim| dim.filter(|_| !is_empty).map_or(self.1, |dim| dim as usize));
            let dims: Vec<usize> = dims.collect();
            let count = dims.iter().product::<usize>();
            let bytes = (1..=count).flat_map(|at| (at as f32).to_le_bytes()).collect();
            Tensor::new(ElementType::F32, dims, bytes)
        };
        Ok(model.outputs().map(tensor).collect())
    }

    fn release(&mut self, _: u64) {}

    fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
        Ok(Vec::new())
    }
}

/// Layers `y` that mix values of `f` along axis 1, or of `moved` along axis 2, where the front leaves one element at the smallest
/// size. Each is written with the operation's attributes and the constants that it needs.
const MIXING: [&str; 38] = [
    "y = Softmax-8(f) {axis=1}",
    "y = LogSoftmax-5(f) {axis=1}",
    "y = TopK-11(f, number) {axis=1, mode=max, sort=value}",
    "y = ReduceMean(f, one) {keep_dims=true}",
    "y = ReduceSum(f, one) {keep_dims=true}",
    "y = ReduceProd(f, one) {keep_dims=true}",
    "y = ReduceMax(f, one) {keep_dims=true}",
    "y = ReduceMin(f, one) {keep_dims=true}",
    "y = ReduceL1-4(f, one) {keep_dims=true}",
    "y = ReduceL2-4(f, one) {keep_dims=true}",
    "truth = Convert(f) {destination_type=boolean}\ny = ReduceLogicalAnd(truth, one) {keep_dims=true}",
    "truth = Convert(f) {destination_type=boolean}\ny = ReduceLogicalOr(truth, one) {keep_dims=true}",
    "y = MVN-6(f, one) {normalize_variance=true, eps=0.1, eps_mode=inside_sqrt}",
    "y = NormalizeL2(f, one) {eps=0.1, eps_mode=add}",
    "y = LRN(f, one) {alpha=1, beta=1, bias=1, size=3}",
    "y = GroupNormalization-12(moved, one32, one32) {num_groups=1, epsilon=0.1}",
    "y = CumSum-3(f, axis)",
    "y = Reverse(f, one) {mode=index}",
    "y = Roll-7(f, number, axis)",
    "y = ReverseSequence(f, lengths) {batch_axis=2, seq_axis=1}",
    "y = MatMul(f, f) {transpose_a=true, transpose_b=false}",
    "y = Einsum-7(f, f) {equation=\"bik,bij->bkj\"}",
    "y = Einsum-7(f, f) {equation=\"...ik,...ij->...kj\"}",
    "y = ScaledDotProductAttention-13(f, f, f) {causal=false}",
    "y = Concat(f, f) {axis=1}",
    "y = LSTMSequence-5(f, h, h, lengths, w4, w4, b4) {direction=forward, hidden_size=1}",
    "y = GRUSequence-5(f, h, lengths, w3, w3, b3) {direction=forward, hidden_size=1}",
    "y = RNNSequence-5(f, h, lengths, w1, w1, b1) {direction=forward, hidden_size=1}",
    "y = CTCGreedyDecoderSeqLen-6(f, lengths)",
    "y = MaxPool(moved) {strides=\"1\", pads_begin=\"0\", pads_end=\"0\", kernel=\"1\", rounding_type=floor}",
    "y = AvgPool(moved) {strides=\"1\", pads_begin=\"0\", pads_end=\"0\", kernel=\"1\", rounding_type=floor, exclude-pad=true}",
    "y = AdaptiveAvgPool-8(moved, one)",
    "y = Convolution(moved, w1) {strides=\"1\", dilations=\"1\", pads_begin=\"0\", pads_end=\"0\"}",
    "y = ConvolutionBackpropData(moved, w1) {strides=\"1\", dilations=\"1\", pads_begin=\"0\", pads_end=\"0\"}",
    "y = RDFT-9(f, one)",
    "pairs = Concat(f, f) {axis=2}\ny = DFT-7(pairs, one)",
    "y = Interpolate-11(moved, two32, two) {mode=nearest, shape_calculation_mode=scales}",
    "y = TensorIterator(f)
       body (in 0 -> 0 {axis=1, start=0, end=-1, stride=1, part_size=1}, out 2 -> 0 {axis=1, start=0, end=-1, stride=1, part_size=1}):
         0 p = Parameter : f32[?,1,1]
         1 q = ReLU(0)
         2 s = Result(1)",
];

/// Returns a model whose front leaves each `step`-th element of an axis, and whose last layer has a line.
fn shortened(step: usize, line: &str) -> Model {
    let front = format!(
        "x = Parameter : f32[?,?,1]
        zero = Const([0]) : i64[1]
        end = Const([100000]) : i64[1]
        step = Const([{step}]) : i64[1]
        one = Const([1]) : i64[1]
        two = Const([2]) : i64[1]
        number = Const(1) : i64[]
        axis = Const(1) : i64[]
        order = Const([0, 2, 1]) : i64[3]
        lengths = Const([1]) : i32[1]
        one32 = Const([1]) : f32[1]
        two32 = Const([2]) : f32[1]
        h = Const(0.5) : f32[1,1,1]
        w4 = Const(0.5) : f32[1,4,1]
        b4 = Const(0.5) : f32[1,4]
        w3 = Const(0.5) : f32[1,3,1]
        b3 = Const(0.5) : f32[1,3]
        w1 = Const(0.5) : f32[1,1,1]
        b1 = Const(0.5) : f32[1,1]
        f = Slice-8(x, zero, end, step, one)
        moved = Transpose(f, order)
        s = Result(moved)"
    );
    let front: String = front.lines().map(|line| format!("{}\n", line.trim())).collect();
    // Lines of bodies are farther in than their layers.
    let line = line.replace("\n       ", "\n  ");
    let mut model = Model::from_text(&format!("{front}{line}\nr = Result(y)\n")).unwrap();
    assert_eq!(typelift::infer(&mut model), [], "{line}");
    model
}

/// For each operation that mixes values along an axis, a front leaves one element of that axis at the smallest size.
#[test]
fn the_second_sample_gives_each_mixing_layer_more_than_one_element() {
    for step in [4, 32] {
        for line in MIXING {
            let model = shortened(step, line);
            let report = Verification::default().run(&model, Some(&model), &mut Shaped::default());
            let report = report.unwrap_or_else(|error| panic!("{line}: {error}"));
            let is_short = |reason: &str| reason.contains("one element") || reason.contains("one step");
            let seen: Vec<_> = report.not_tested.iter().filter(|it| is_short(&it.reason)).collect();
            assert!(seen.is_empty(), "{line} after a step of {step}: {seen:?} {:?}", report.samples[1].inputs);
            let mut first = Verification::default();
            first.samples = 1;
            let first = first.run(&model, Some(&model), &mut Shaped::default()).unwrap();
            assert!(first.not_tested.iter().any(|it| is_short(&it.reason)), "{line}: the first sample is short");
        }
    }
}

/// An operation that gets an axis as an attribute mixes values along it, or one element along it is all that it needs.
#[test]
fn each_operation_with_an_axis_is_known_to_mix_or_not() {
    const OTHERS: [&str; 12] = [
        "BatchToSpace",
        "Gather",
        "GatherElements",
        "GatherTree",
        "OneHot",
        "RegionYolo",
        "ScatterElementsUpdate",
        "ScatterUpdate",
        "ShuffleChannels",
        "Split",
        "VariadicSplit",
        "Unique",
    ];
    let mixes = |name: &str| {
        MIXING.iter().any(|line| line.contains(&format!("= {name}(")) || line.contains(&format!("= {name}-")))
    };
    for operation in typelift::ops::all() {
        let name = operation.name;
        let has_axis = operation.attribute_names().any(|attribute| ["axis", "axes", "seq_axis"].contains(&attribute));
        assert!(!has_axis || mixes(name) || OTHERS.contains(&name), "{name} has an axis");
    }
}

#[test]
fn a_loop_without_a_step_has_no_lengths() {
    let text = "
        n = Parameter : i64[]
        x = Parameter : f32[1,6]
        go = Const(true) : boolean[]
        all = Loop(n, go, x)
          body (in 2 -> 1, out 4 -> 0 {axis=0, start=0, end=-1, stride=1, part_size=1}, out 3 -> - {execution_condition}):
            1 v = Parameter : f32[1,6]
            2 on = Const(true) : boolean[]
            3 r1 = Result(2)
            4 r2 = Result(1)
        r = Result(all)
        s = Result(x)
    ";
    let text =
        text.lines().map(|line| format!("{}\n", line.strip_prefix("        ").unwrap_or(line))).collect::<String>();
    let mut model = Model::from_text(&text).unwrap();
    assert_eq!(typelift::infer(&mut model), []);
    let report = Verification::default().run(&model, Some(&model), &mut Shaped(Vec::new(), 0)).unwrap();
    assert!(report.same, "{report:?}");
}

/// A loop that values may end gets the samples of a model with branches, and in one of them many steps.
#[test]
fn more_samples_run_where_values_may_end_a_loop() {
    let text = |condition: &str| {
        let text = format!(
            "
        n = Parameter : i64[]
        x = Parameter : f32[1,6]
        go = Const(true) : boolean[]
        last = Loop(n, go, x)
          body (in 2 -> 1, back 5 -> 1, out 5 -> 0, out 8 -> - {{execution_condition}}):
            1 v = Parameter : f32[1,6]
            2 w = Multiply(1, 1)
            3 sum = ReduceSum(2, 6)
            4 small = Less(3, 7)
            5 r1 = Result(2)
            6 axes = Const([0, 1]) : i64[2]
            7 most = Const(100) : f32[]
            8 r2 = Result({condition})
            9 on = Const(true) : boolean[]
        r = Result(last)
    "
        );
        text.lines().map(|line| format!("{}\n", line.strip_prefix("        ").unwrap_or(line))).collect::<String>()
    };
    let fed = |condition: &str| {
        let mut model = Model::from_text(&text(condition)).unwrap();
        assert_eq!(typelift::infer(&mut model), []);
        let report = Verification::default().run(&model, Some(&model), &mut Shaped::default()).unwrap();
        report.samples.iter().map(|sample| sample.inputs[0].values.clone()).collect::<Vec<_>>()
    };
    assert_eq!(fed("9"), ["integers 2 to 4"; 2]);
    let fed = fed("4");
    assert_eq!(fed.len(), 8);
    assert!(fed.contains(&"integers 8 to 16".to_owned()), "{fed:?}");
}

#[test]
fn lengths_come_from_the_constraints_of_both_models() {
    let view = |pattern: &str, last: usize| {
        format!(
            "x = Parameter : f32[?,?]
            shape = Const({pattern}) : i64[3]
            y = Reshape(x, shape) {{special_zero=true}}
            k = Const(1) : f32[1,1,{last}]
            z = Add(y, k)
            r = Result(z)"
        )
    };
    let (a, b) = (model(&view("[0, 28, -1]", 3)), model(&view("[0, 42, -1]", 2)));
    let fed = |a: &Model, b: &Model| {
        let mut runtime = Shaped::default();
        let report = Verification::default().run(a, Some(b), &mut runtime);
        report.map(|report| report.samples[0].inputs[0].shape.clone()).map_err(|error| error.to_string())
    };
    assert_eq!(fed(&a, &a), Ok("[1,28]".to_owned()));
    assert_eq!(fed(&a, &b), Ok("[1,84]".to_owned()), "a multiple of both");
    let mut given = Verification::default();
    given.inputs = Some("x.npz".into());
    let arrays = vec![("x".to_owned(), floats(&[1, 3], &[1.0, 2.0, 3.0]))];
    let error = given.run(&a, Some(&a), &mut Interpreter { arrays, ..Interpreter::default() }).unwrap_err();
    assert!(matches!(&error, VerifyError::Lengths { fit, .. } if *fit == ["x=[1,28]"]), "{error:?}");
    insta::assert_snapshot!(error, @"the lengths of the inputs do not fit model A, which needs s1 % 28 == 0 (because of the Reshape `y`), and s1, x[1], is 3");
    let mut asked = Verification::default();
    asked.shapes.push(("x".to_owned(), "[1,3]".parse().unwrap()));
    let error = asked.run(&a, Some(&a), &mut Shaped::default()).unwrap_err();
    insta::assert_snapshot!(error, @"the lengths of the inputs do not fit model A, which needs s1 % 28 == 0 (because of the Reshape `y`), and s1, x[1], is 3");
}

/// No lengths keep such an index in its table, and a device computes with zeros.
#[test]
fn an_index_beyond_its_table_at_all_lengths_is_run() {
    let text = "
        x = Parameter : f32[?,?]
        shape = ShapeOf-3(x) {output_type=i64}
        third = Const(2) : i64[]
        axis = Const(0) : i64[]
        none = Gather-8(shape, third, axis) {batch_dims=0}
        zero = Convert(none) {destination_type=f32}
        y = Add(x, zero)
        r = Result(y)
    ";
    let model = Model::from_text(&text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>());
    let mut model = model.unwrap();
    assert!(typelift::infer(&mut model).iter().all(|found| !found.is_error()));
    let constraints = typelift::shapes(&model);
    assert_eq!(constraints.constraints.len(), 1, "{constraints:?}");
    let report = Verification::default().run(&model, Some(&model), &mut Shaped::default());
    assert!(report.unwrap().same);
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
        last = Const(-1) : i64[]
        sums = ReduceSum(rows, last) {keep_dims=false}
        r = Result(sums)
        s = Result(attention_mask)
        t = Result(position_ids)
        u = Result(image)
        v = Result(chosen)
    ";
    // The interpreter has no Gather, and the values of outputs do not matter here.
    #[derive(Default)]
    struct Listens(Vec<Tensor>, Shaped);
    impl Runner for Listens {
        fn describe(&mut self, setting: &Setting) -> Result<Runtime, RunError> {
            self.1.describe(setting)
        }
        fn load(&mut self, source: &Source, setting: &Setting) -> Result<Loaded, RunError> {
            self.1.load(source, setting)
        }
        fn run(&mut self, key: u64, inputs: &[Tensor], is_first: bool) -> Result<Vec<Tensor>, RunError> {
            self.0 = inputs.to_vec();
            self.1.run(key, inputs, is_first)
        }
        fn release(&mut self, _: u64) {}
        fn arrays(&mut self, _: &Path, _: u64) -> Result<Vec<(String, Tensor)>, RunError> {
            Ok(Vec::new())
        }
    }
    let mut runner = Listens::default();
    let model = model(text);
    let mut verification = Verification::default();
    verification.steps = Some(1);
    let report = verification.run(&model, Some(&model), &mut runner).unwrap();
    let words: Vec<_> = report.samples[1].inputs.iter().map(|input| input.values.as_str()).collect();
    let expected =
        ["indices 0 to 2", "mask of 0 and 1", "positions from 0", "integers 0 to 255", "indices 0 to 2", "normal / 4"];
    assert_eq!(words, expected, "a beam is one of the batch, which is 3 in the second sample");
    let inputs = runner.0;
    let within = |at: usize, most: f64| inputs[at].floats().unwrap().iter().all(|value| (0.0..=most).contains(value));
    assert!(within(0, 2.0) && within(1, 1.0) && within(3, 255.0));
    assert_eq!(inputs[2].floats().unwrap()[..3], [0.0, 1.0, 2.0]);
}

#[test]
fn sizes_that_the_runtime_refuses_are_not_the_last_word() {
    let model = model(CHAIN);
    let mut small = Interpreter { most: Some((2, "Add")), ..Interpreter::default() };
    let report = Verification::default().run(&model, Some(&model), &mut small).unwrap();
    assert_eq!(report.samples[1].inputs[0].shape, "[2,4]", "3 is refused, so 2 is tried");
    // The smallest shapes do not stand in for those that only A takes.
    let other = CHAIN.replace("a = Multiply(x, two)", "a = Multiply(x, two)\n    z = Abs(a)");
    let other = other.replace("Elu(a)", "Elu(z)");
    let mut small = Interpreter { most: Some((1, "Abs")), ..Interpreter::default() };
    let error = Verification::default().run(&model, Some(&self::model(&other)), &mut small).unwrap_err();
    assert_eq!(error.to_string(), "OpenVINO cannot run model B: too large");
}

/// Each further run would take the whole limit of time again.
#[test]
fn a_model_that_does_not_answer_runs_once() {
    let model = model(&CHAIN.replace("[?,4]", "[?,?]"));
    let mut endless = Interpreter { is_endless: true, ..Interpreter::default() };
    let error = Verification::default().run(&model, Some(&model), &mut endless).unwrap_err();
    assert_eq!(error.to_string(), "OpenVINO cannot run model A: OpenVINO did not answer within 600 s");
    assert_eq!(endless.runs, 1);
}

#[test]
fn outputs_that_change_by_themselves_are_named_and_not_compared() {
    let model = model(CHAIN);
    let mut unsteady = Interpreter { is_unsteady: true, ..Interpreter::default() };
    let error = Verification::default().run(&model, Some(&model), &mut unsteady).unwrap_err();
    let what =
        "the outputs agree, but the inputs do not test any of 5 layers, because `e` has other values in each run";
    assert_eq!(error.to_string(), what);
}

#[test]
fn outputs_that_are_smaller_than_the_absolute_tolerance_are_not_tested() {
    let tiny = "
        x = Parameter : f32[?,4]
        small = Const(1e-9) : f32[]
        a = Abs(x)
        b = Multiply(a, small)
        r = Result(b)
    ";
    let report = compare(tiny, tiny);
    assert!(report.same && report.not_tested.is_empty(), "{report:?}");
    let other = model(&tiny.replace("1e-9", "2e-9"));
    let error = Verification::default().run(&model(tiny), Some(&other), &mut Interpreter::default()).unwrap_err();
    let what = "the outputs agree, but the inputs do not test `small`, which differs, because `b` differs by less than the absolute tolerance";
    assert_eq!(error.to_string(), what);
}

#[test]
fn given_shapes_and_arrays_are_used() {
    let model = model(&CHAIN.replace("[?,4]", "[?,?]"));
    let mut verification = Verification::default();
    verification.shapes.push(("x".to_owned(), "[7,2]".parse().unwrap()));
    let report = verification.run(&model, Some(&model), &mut Interpreter::default()).unwrap();
    assert_eq!(report.samples[0].inputs[0].shape, "[7,2]");
    let mut verification = Verification::default();
    verification.inputs = Some("x.npz".into());
    let mut runtime =
        Interpreter { arrays: vec![("x".to_owned(), floats(&[1, 2], &[1.0, 2.0]))], ..Interpreter::default() };
    let report = verification.run(&model, Some(&model), &mut runtime).unwrap();
    assert_eq!((report.samples.len(), report.samples[0].inputs[0].values.as_str()), (1, "given"));
    verification.shapes.push(("nothing".to_owned(), "[1]".parse().unwrap()));
    verification.inputs = None;
    let error = verification.run(&model, Some(&model), &mut Interpreter::default()).unwrap_err();
    assert!(matches!(error, VerifyError::Inputs(_)), "{error}");
}

#[test]
fn models_that_cannot_be_paired_or_run_are_errors_that_name_them() {
    let more = CHAIN.replace("r = Result(e)", "r = Result(e)\n s = Result(d)");
    let error =
        Verification::default().run(&model(CHAIN), Some(&model(&more)), &mut Interpreter::default()).unwrap_err();
    assert_eq!(error.to_string(), "A has 1 outputs, B has 2: they cannot be paired");
    let other = model(&CHAIN.replace("[?,4]", "[?,5]"));
    let error = Verification::default().run(&model(CHAIN), Some(&other), &mut Interpreter::default()).unwrap_err();
    assert_eq!(error.to_string(), "the input `x` is f32[?,4] in A and f32[?,5] in B: no shape fits both");
    let mut none = Interpreter { most: Some((0, "Add")), ..Interpreter::default() };
    let error = Verification::default().run(&model(CHAIN), Some(&model(CHAIN)), &mut none).unwrap_err();
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
    let report = verification.run(&model(text), Some(&other), &mut Interpreter::default()).unwrap();
    let blocks: Vec<_> = report.blocks.iter().map(|block| (block.block.as_str(), block.max_relative > 0.0)).collect();
    assert_eq!(blocks, [("layers.0", false), ("layers.1", true)]);
}

/// A file of a few bytes can declare an input of any size.
#[test]
fn inputs_beyond_the_memory_limit_are_refused_by_name() {
    let huge = model("x = Parameter : f32[1000000,1000000,1000000]\ny = ReLU(x)\nr = Result(y)\n");
    let refused = Verification::default().run(&huge, Some(&huge), &mut Interpreter::default()).unwrap_err().to_string();
    assert!(refused.starts_with("values for the input `x` cannot be generated: it needs "), "{refused}");
}

/// The difference of two f32 tensors of this shape within 1e-3 of the largest value.
fn between(dims: &[usize], a: &[f32], b: &[f32]) -> Difference {
    Difference::between(&floats(dims, a), &floats(dims, b), Tolerance { relative: 1e-3, absolute: 0.0, noise: 1e-6 })
}

#[test]
fn a_layer_in_f32_next_to_bf16_is_judged_in_f32() {
    let text = "
        x = Parameter : f32[?,4]
        low = Convert(x) {destination_type=bf16}
        rounded = Abs(low)
        high = Convert(rounded) {destination_type=f32}
        k = Const(2) : f32[]
        y = Multiply(high, k)
        r = Result(y)
    ";
    // 0.4 % is less than the rounding to bf16 of both models.
    let (a, b) = (model(text), model(&text.replace("Const(2)", "Const(2.008)")));
    let run = |verification: &Verification| verification.run(&a, Some(&b), &mut Interpreter::default()).unwrap();
    let report = run(&Verification::default());
    assert!(report.tolerance.relative > 0.004 && !report.same, "{report:?}");
    assert_eq!(report.first.unwrap().layer.name, "y");
    let mut given = Verification::default();
    given.relative = Some(report.tolerance.relative);
    assert!(run(&given).same, "a tolerance that was given judges all layers");
}

#[test]
fn the_largest_difference_counts_relative_to_the_largest_value() {
    let found = between(&[3], &[0.001, 100.0, -2.0], &[0.05, 100.0, -2.0]);
    assert!(found.same && found.changed == 1, "0.049 of 100 is within 1e-3: {found:?}");
    let found = between(&[2, 1, 2], &[1.0, 2.0, 1.0, 2.0], &[1.0, 2.0, 1.0, 2.1]);
    assert!(!found.same && (found.max_relative - 0.05).abs() < 1e-6, "{found:?}");
    assert_eq!(found.worst[0].index, [1, 0, 1]);
}

#[test]
fn not_finite_values_agree_only_with_themselves() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let found = between(&[3], &[inf, nan, 1.0], &[inf, nan, 1.0]);
    assert_eq!((found.same, found.nan), (true, 1));
    let found = between(&[3], &[inf, nan, 1.0], &[-inf, 1.0, nan]);
    assert_eq!((found.same, found.not_finite, found.changed), (false, 3, 3));
}

#[test]
fn integers_are_equal_or_not_and_shapes_too() {
    let tensor = |value: i64| Tensor::new(ElementType::I64, vec![], value.to_le_bytes().to_vec());
    let found = Difference::between(&tensor(i64::MAX), &tensor(i64::MAX - 1), Tolerance::default());
    assert!(!found.same && found.changed == 1, "beyond 2^53: {found:?}");
    let found = Difference::between(&floats(&[1], &[1.0]), &floats(&[2], &[1.0; 2]), Tolerance::default());
    assert_eq!(found.shapes, Some(["[1]".to_owned(), "[2]".to_owned()]));
}

#[test]
fn a_scale_that_quantization_does_not_explain_loosens_nothing() {
    let relative = |scale: &str| {
        let a = "x = Parameter : f32[1,2]\nv = Const([[1, -0.5], [0.25, 0.125]]) : f32[2,2]";
        let b = format!(
            "x = Parameter : f32[1,2]\nv/w = Const([[127, -64], [127, 64]]) : i8[2,2]\n\
             v/c = Convert(v/w) {{destination_type=f16}}\nv/s = Const({scale}) : f16[2,1]\n\
             v/m = Multiply(v/c, v/s)\nv = Convert(v/m) {{destination_type=f32}}"
        );
        let [a, b] = [a, &b].map(|text| format!("{text}\ny = Multiply(x, v)\nr = Result(y)"));
        compare(&a, &b).tolerance.relative
    };
    assert_eq!([relative("[[0.007874], [0.0019685]]"), relative("[[0.0102], [0.0019685]]")], [5e-2, 1e-3]);
}

#[test]
fn boxes_of_a_suppression_overlap() {
    let text = "
        b = Parameter : f32[1,5,4]
        s = Parameter : f32[1,2,5]
        most = Const(3) : i64[]
        n = NonMaxSuppression(b, s, most)
        r = Result(n.0)
    ";
    let report = Verification::default().run(&model(text), Some(&model(text)), &mut Shaped::default());
    let fed: Vec<_> = report.unwrap().samples.iter().map(|it| it.inputs[0].values.clone()).collect();
    assert_eq!(fed, ["boxes in 0 to 1"; 2], "normal values are boxes of no size, or far apart");
}
