//! Laws of symbolic lengths over random graphs: lengths that satisfy the constraints infer without an error and have the
//! lengths of the formulas, and lengths that violate one at load give an error.

use std::collections::BTreeSet;

use proptest::prelude::*;
use typelift::symbols::Noticed;
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
            5 => {
                constant("from", &[n])
                    + &constant("end", &[n + m])
                    + &constant("by", &[1 + axis])
                    + &constant("axes", &[axis])
                    + &format!("{t} = Slice-8({a}, from{at}, end{at}, by{at}, axes{at})\n")
            }
            6 => scalar("axis", axis) + &format!("{t} = Split({a}, axis{at}) {{num_splits=2}}\n"),
            7 => {
                constant("begin", &[n.max(0), 0])
                    + &constant("end", &[0, m.max(0)])
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
fn inferred(text: &str, shapes: &Shapes, base: &Model, lengths: &[i64]) -> (Model, Vec<typelift::Diagnostic>) {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn constraints_and_formulas_are_those_of_static_inference(
        steps in prop::collection::vec((0_u8..12, 0_usize..8, 0_usize..8, 0_i64..4, -1_i64..4), 1..7),
        samples in prop::collection::vec(prop::collection::vec(1_i64..7, 4), 6),
    ) {
        let text = listing(&steps);
        let Ok(mut model) = Model::from_text(&text) else { return Err(TestCaseError::fail(text)) };
        prop_assume!(!typelift::infer(&mut model).iter().any(typelift::Diagnostic::is_error));
        let shapes = typelift::shapes(&model);
        for sample in samples {
            let lengths = &sample[..shapes.symbols().len().min(4)];
            let (sized, found) = inferred(&text, &shapes, &model, lengths);
            let error = found.iter().find(|found| found.is_error());
            let broken: Vec<_> =
                shapes.broken(lengths).into_iter().filter(|constraint| constraint.at == Noticed::Load).collect();
            if let Some(error) = error {
                prop_assert!(!broken.is_empty(), "{text}\n{lengths:?}: {error}");
                let layer = error.layer.as_ref().map(|layer| layer.id);
                let names = broken.iter().any(|it| it.because().first().map(|reason| reason.layer.id) == layer);
                let ties = shapes.symbols().iter().any(|symbol| symbol.axes().len() > 1);
                prop_assert!(names || ties, "{text}\n{lengths:?}: {error}, not {broken:?}");
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
    let constraints: Vec<_> = shapes.constraints().iter().map(|constraint| constraint.named().to_owned()).collect();
    assert_eq!(constraints, ["batch * s1 == 8"]);
    let lengths = typelift::fitting_lengths(&model, &shapes, 1).unwrap();
    assert_eq!(lengths, [1, 8]);
    assert_eq!(shapes.constraints()[0].because().last().unwrap().operation, "Const");
}
