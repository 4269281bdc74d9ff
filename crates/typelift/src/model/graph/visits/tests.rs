//! Searches that visit edges and layers in proportion to the model.

use std::cell::Cell;

use crate::explain::map::Ways;
use crate::findings::Code;
use crate::model::graph::Model;
use crate::ops::Requirements;
use crate::rewrite::{Rule, Script, library};

thread_local! {
    pub(super) static VISITED: Cell<usize> = const { Cell::new(0) };
}

/// Checks that the visits of a run grow no faster than its model. `text` is a model of a number of elements.
fn is_linear(text: fn(usize) -> String, run: fn(Model)) {
    let visited = |count: usize| {
        let model = Model::from_text(&text(count)).unwrap();
        VISITED.set(0);
        run(model);
        VISITED.get()
    };
    let (small, large) = (visited(100), visited(400));
    assert!(small > 0 && large < 5 * small, "{small} and {large} visits");
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

/// A model of that many inputs and outputs, each pair with a constant, a variable and an If.
fn ends(count: usize) -> String {
    let one = |at: usize| {
        format!(
            "past.{at} = Parameter : f32[4]
            idle.{at} = Parameter : f32[4]
            open.{at} = Parameter : f32[?,4]
            c.{at} = Const([1, 2, 3, 4]) : f32[4]
            a.{at} = Add(past.{at}, c.{at})
            present.{at} = Result(a.{at})
            m.{at} = Relu(open.{at})
            end.{at} = Result(m.{at})
            old.{at} = ReadValue-6 {{variable_id=v.{at}w.{at}, variable_type=f32, variable_shape=\"4\"}}
            sum.{at} = Add(old.{at}, a.{at})
            s.{at} = Assign-6(sum.{at}) {{variable_id=v.{at}w.{at}}}
            state.{at} = Result(sum.{at})
            k.{at} = Const(true) : boolean[]
            if.{at} = If-8(k.{at}, past.{at})
                then_body (in 1 -> 0, out 2 -> 0):
                    t = Parameter : f32[4]
                    u = Abs(t)
                    r = Result(u)
                else_body (in 1 -> 0, out 1 -> 0):
                    t = Parameter : f32[4]
                    r = Result(t)
            chosen.{at} = Result(if.{at})\n"
        )
    };
    let lines: String = (0..count).map(one).collect();
    lines.lines().map(|line| line.strip_prefix("            ").unwrap_or(line).to_owned() + "\n").collect()
}

/// Statements that take a pattern, with one that matches as many names as the model has ends.
const STATEMENTS: &[&str] = &[
    "rename a.* b.*",
    "rename v.*w.* x.*w.*",
    "input past.* : f16",
    "input open.* : f32[2,4]",
    "input open.* : f16[3,4]",
    "before past.* : Multiply(_, 2)",
    "output present.* : f16",
    "after a.* : Multiply(_, c.0)",
    "tap sum.*",
    "tap a.* as tapped.*",
    "cut a.* .. present.*",
    "cut a.*",
    "redirect a.* -> \"c.*\"",
    "redirect m.* -> Abs(_)",
    "redirect a.* -> Multiply(\"past.*\", 2)",
    "keep f32 a.*",
    "keep f32 type:Add",
    "unkeep a.*",
    "inline if.*",
    "set c.* = 2",
    "info a.* : key = 1",
    "info past.* : layout = [C]",
    "remove output present.*",
    "remove input idle.*",
    "freeze past.* = 0",
    "freeze past.* = c.0",
    "order outputs present.*",
    "order inputs open.*",
    "stateful past.* -> present.*",
    "stateful open.* -> end.*",
    "stateful past.* -> present.* reorder beam",
    "stateless",
    "stateless v.* -> w.*",
    "state v.* : f16[4]",
    "layout past.* = [C]",
];

#[test]
fn statements_over_patterns_take_linear_time() {
    let visits = |statement: &str, count: usize| {
        let script: Script = statement.parse().map_err(|error| format!("{error}"))?;
        let model = Model::from_text(&ends(count)).unwrap();
        VISITED.set(0);
        script.run(model).map_err(|error| error.to_string())?;
        Ok(VISITED.get())
    };
    let mut wrong = Vec::new();
    for statement in STATEMENTS {
        let both = visits(statement, 30).and_then(|small| Ok::<_, String>((small, visits(statement, 120)?)));
        match both {
            Ok((small, large)) if large < 5 * small => {}
            Ok((small, large)) => wrong.push(format!("{statement}: {small} and {large} visits")),
            Err(error) => wrong.push(format!("{statement}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A chain of layers, each after an Abs.
fn chain(count: usize) -> String {
    let layers: String = (0..count).map(|at| format!("a.{at} = Abs(y.{at})\ny.{} = Relu(a.{at})\n", at + 1)).collect();
    format!("y.0 = Parameter : f32[2]\n{layers}r = Result(y.{count})\n")
}

#[test]
fn layers_of_a_chain_are_bypassed_in_linear_time() {
    is_linear(chain, |model| {
        let script: Script = "redirect a.* -> \"y.*\"".parse().unwrap();
        let (model, _) = script.run(model).unwrap();
        assert!(model.graph().find("a.1").is_err());
    });
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
        drop(crate::check::check_after(&model, None, found));
    });
}

#[test]
fn data_paths_of_a_split_are_found_in_linear_time() {
    is_linear(split, |model| {
        let ways = Ways::new(model.graph());
        let tensors = model.graph().layers().flat_map(|it| (0..it.outputs().len()).map(|port| it.id().output(port)));
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
