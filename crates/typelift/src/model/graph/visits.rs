//! Number of edges that searches visit. Tests of this crate count them; otherwise nothing is counted.

use petgraph::stable_graph::EdgeReference;

use super::Wire;

/// Counts an edge.
pub(super) fn note(_: &EdgeReference<'_, Wire>) {
    #[cfg(test)]
    tests::VISITED.set(tests::VISITED.get() + 1);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use crate::explain::map::Ways;
    use crate::findings::Code;
    use crate::model::graph::Model;
    use crate::ops::Requirements;
    use crate::rewrite::{Rule, library};

    thread_local! {
        pub(super) static VISITED: Cell<usize> = const { Cell::new(0) };
    }

    /// Checks that the visited edges of a run grow no faster than its model. `text` is a model of a number of elements.
    fn is_linear(text: fn(usize) -> String, run: fn(Model)) {
        let visited = |count: usize| {
            let model = Model::from_text(&text(count)).unwrap();
            VISITED.set(0);
            run(model);
            VISITED.get()
        };
        let (small, large) = (visited(100), visited(400));
        assert!(small > 0 && large < 5 * small, "{small} and {large} edges");
    }

    fn split(count: usize) -> String {
        let results: String = (0..count).map(|at| format!("r{at} = Result(s.{at})\n")).collect();
        format!("x = Parameter : f32[{count}]\na = Const(0) : i64[]\ns = Split(x, a) {{num_splits={count}}}\n{results}")
    }

    fn concat(count: usize) -> String {
        let layers: String = (0..count).map(|at| format!("y{at} = Relu(x)\n")).collect();
        let inputs: Vec<_> = (0..count).map(|at| format!("y{at}")).collect();
        format!("x = Parameter : f32[2]\n{layers}c = Concat({}) {{axis=0}}\nr = Result(c)\n", inputs.join(", "))
    }

    #[test]
    fn equal_layers_before_a_concat_are_merged_in_linear_time() {
        is_linear(concat, |mut model| {
            let rules: Vec<Rule> = library::get("common-subexpressions").unwrap().rules().unwrap();
            assert!(model.rewrite(&rules).unwrap().applied.len() >= 99);
        });
    }

    #[test]
    fn outputs_of_a_split_are_renamed_in_linear_time() {
        is_linear(split, |mut model| {
            let names: Vec<_> = model.graph().layers().map(|layer| layer.name().to_owned()).collect();
            let pairs: Vec<_> = names.iter().map(|name| (name.clone(), format!("new_{name}"))).collect();
            model.edit(|edit| edit.rename_all(pairs.iter().map(|(old, new)| (&**old, &**new)))).unwrap();
        });
    }

    #[test]
    fn unused_outputs_of_a_split_are_found_in_linear_time() {
        let text = |count: usize| split(count) + "b = Parameter : f16[1]\nbad = Add(s.0, b)\nq = Result(bad)\n";
        is_linear(text, |mut model| {
            let found = crate::infer(&mut model);
            assert!(found.iter().any(|it| it.code == Code::TypeMismatch), "{found:?}");
            drop(crate::check::check_after(&model, found));
        });
    }

    #[test]
    fn data_paths_of_a_split_are_found_in_linear_time() {
        is_linear(split, |model| {
            let ways = Ways::new(model.graph());
            let tensors =
                model.graph().layers().flat_map(|it| (0..it.outputs().len()).map(|port| it.id().output(port)));
            assert_eq!(tensors.filter_map(|tensor| ways.next(tensor)).count(), 2);
        });
    }

    #[test]
    fn inputs_of_an_einsum_are_tested_for_a_release_in_linear_time() {
        let text = |count: usize| {
            let (inputs, labels) = (vec!["x"; count].join(", "), vec!["...a"; count].join(","));
            format!("x = Parameter : f32[2,2]\ny = Einsum({inputs}) {{equation=\"{labels}->a\"}}\nr = Result(y)\n")
        };
        is_linear(text, |model| {
            let requirements = Requirements::new(model.graph());
            model.graph().layers().for_each(|layer| drop(requirements.of(layer)));
        });
    }
}
