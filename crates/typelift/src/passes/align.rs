//! The Converts that give inputs which must agree one element type.

use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use typelift_promote::RuleSet;

use super::conversions::Conversions;
use super::{Action, Change, Changes, remove_unused};
use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Input, Layer, Model, Output};
use crate::infer::{self, Plan, Retyped, Wanted};
use crate::ops::{LayerKind, kind};

/// As [`infer`](crate::infer()), and gives inputs that must agree in element type, and do not, the common type of these rules, in the model
/// and its bodies; gives also the Converts that came and went for it.
///
/// Where operations have the inputs that they take, which is where [`infer`](crate::infer()) finds no error of types, nothing is changed.
/// A layer that is refused gets a Convert in front of each input that has another type than
/// [`RuleSet::promote_all`] gives the tied inputs of its row, in their order; a `Const` of rank 0 counts as a number
/// there. An operation on floating point gets [`RuleSet::default_float`] instead of integers. What follows from the new
/// type follows at once. There are as few Converts as that takes: one for a tensor and a type, none where a tensor is
/// there that holds the values in that type.
///
/// Where the rules give no type that the operation takes, the layer gets an error that says which other rules would.
///
/// # Examples
/// ```
/// use typelift::promote::RuleSet;
/// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="f16"/>
///         <output><port id="0" precision="FP16"/></output></layer>
///     <layer id="1" name="y" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
///         <output><port id="0" precision="FP32"/></output></layer>
///     <layer id="2" name="sum" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input>
///         <output><port id="2" precision="FP32"/></output></layer>
///     <layer id="3" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
///     <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
///     <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"#)?;
/// let rules = RuleSet::from_name("openvino").unwrap();
/// let (diagnostics, changes) = typelift::infer_aligned(&mut model, rules);
/// assert!(diagnostics.is_empty());
/// assert_eq!(changes[0].layer.name, "x/sum.0");
/// assert_eq!(changes[0].reason, "Add 2 `sum` takes f16 from `x` and f32 from `y`: openvino rules, f16 with f32 gives f32: the wider float");
/// # Ok::<(), typelift::Diagnostics>(())
/// ```
pub fn infer_aligned(model: &mut Model, rules: RuleSet) -> (Vec<Diagnostic>, Vec<Change>) {
    let (mut diagnostics, Wanted { plans, retyped, is_outdated }) = infer::infer_as_aligned(model, rules);
    let mut changes = Changes { weights: model.weights.clone(), ..Changes::default() };
    for Retyped { body, parameter, types, reason } in retyped {
        if let Some(layer) = changes.enter(&mut model.graph, &body).and_then(|graph| graph.layer(parameter)) {
            changes.add(Action::Retyped, layer, types, reason);
        }
    }
    for (place, plan) in plans.iter().filter(|(_, plan)| !plan.is_empty()) {
        if let Some(graph) = changes.enter(&mut model.graph, place) {
            changes.rewrite(graph, |graph, changes| apply(graph, plan, changes));
        }
    }
    if is_outdated {
        let found = infer::infer(model);
        if !diagnostics.iter().any(Diagnostic::is_error) {
            diagnostics.extend(found.into_iter().filter(Diagnostic::is_error));
        }
    }
    (diagnostics, changes.list)
}

/// Gives the inputs of a typed graph the types that `plan` wants, with as few new Converts as that takes: none where a
/// tensor is there that holds the values in that type, one for all inputs that want one tensor in one type.
fn apply(graph: &mut Graph, plan: &Plan, changes: &mut Changes) {
    let Ok(order) = graph.topological_order() else { return };
    let mut conversions = Conversions::of(graph);
    let mut names: HashSet<String> = graph.petgraph().node_weights().map(|layer| layer.name.to_string()).collect();
    let mut new_sources = HashMap::<Input, Output>::default();
    let mut made = Vec::new();
    let mut used = HashSet::default();
    for (node, alignment) in order.into_iter().filter_map(|node| Some((node, plan.get(&node)?))) {
        let Some((id, name)) = graph.weight(node).map(|layer| (layer.id, layer.name.clone())) else { continue };
        let producers = graph.producers(id);
        for &(port, to) in &alignment.inputs {
            let Some(&Some(tensor)) = producers.get(port) else { continue };
            let source = match conversions.find(graph, tensor, to) {
                Some(source) => {
                    let from = graph.output(tensor).map(|output| output.element_type);
                    if let (Some(layer), Some(from)) = (graph.layer(source.layer).filter(|l| l.span.is_some()), from)
                        && used.insert((tensor, to))
                    {
                        changes.add(Action::Used, layer, [from, to], &alignment.reason);
                    }
                    source
                }
                None => {
                    let tensor = conversions.origin(graph, tensor, to);
                    let Some((producer, output)) = graph.layer(tensor.layer).zip(graph.output(tensor)) else {
                        continue;
                    };
                    let name = unique(format!("{}/{name}.{port}", producer.name), &mut names);
                    let convert = Layer::new("Convert", "opset1", &name)
                        .with_attribute("destination_type", to.name())
                        .with_output(to, output.shape.clone());
                    let types = [output.element_type, to];
                    let convert = graph.add_unwired(convert, 1);
                    let source = Output { layer: convert, port: 0 };
                    conversions.add(graph, tensor, to, source);
                    if let Some(convert) = graph.layer(convert) {
                        changes.add(Action::Inserted, convert, types, &alignment.reason);
                    }
                    made.push((tensor, Input { layer: convert, port: 0 }));
                    source
                }
            };
            new_sources.insert(Input { layer: id, port }, source);
        }
    }
    let mut left = Vec::new();
    graph.rewire(|from, to| match new_sources.get(&to) {
        Some(&source) => {
            left.push(from.layer);
            Some((source, to))
        }
        None => Some((from, to)),
    });
    for (tensor, convert) in made {
        graph.feed(tensor, convert);
    }
    // A Convert whose input has taken its place may have lost its last use.
    left.retain(|&id| graph.layer(id).is_some_and(|layer| kind(layer) == LayerKind::Convert));
    remove_unused(graph, left, changes);
}

/// The name, or with a number behind it the first one that no layer has.
fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}
