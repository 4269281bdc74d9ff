//! The inputs of a model: its Parameters, and giving them other types and shapes.

use std::collections::HashMap;

use petgraph::visit::{Bfs, EdgeRef};
use thiserror::Error;
use typelift_promote::ElementType;

use crate::diagnostic::Diagnostic;
use crate::graph::{Graph, Layer, LayerId, Model, OutputPort};
use crate::shape::Shape;

/// Why an input was not changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// No input has this name.
    #[error("the model has no input `{name}`{}", list(.inputs))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of every input: of its layer, then of its tensor.
        inputs: Vec<String>,
    },
    /// Several inputs have this name.
    #[error("the model has several inputs `{name}`: layers {}", .layers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The name that was asked for.
        name: String,
        /// The layers that have it.
        layers: Vec<LayerId>,
    },
}

fn list(inputs: &[String]) -> String {
    if inputs.is_empty() { "; it has no inputs".to_owned() } else { format!("; it has {}", inputs.join(", ")) }
}

impl Model {
    /// The layers through which tensors enter the model, in the order of its inputs.
    pub fn inputs(&self) -> impl Iterator<Item = &Layer> {
        self.graph.layers().filter(|layer| layer.ty().eq_ignore_ascii_case("Parameter"))
    }

    /// The input whose layer or tensor has this name; layers come first.
    ///
    /// # Errors
    /// [`InputError`] where there is none, or more than one.
    pub fn find_input(&self, name: &str) -> Result<LayerId, InputError> {
        let of_tensor = |layer: &&Layer| layer.outputs().iter().any(|port| port.names().iter().any(|n| n == name));
        let mut found: Vec<_> = self.inputs().filter(|layer| layer.name() == name).map(Layer::id).collect();
        if found.is_empty() {
            found = self.inputs().filter(of_tensor).map(Layer::id).collect();
        }
        match found[..] {
            [id] => Ok(id),
            [] => Err(InputError::Unknown { name: name.to_owned(), inputs: self.inputs().map(describe).collect() }),
            _ => Err(InputError::Ambiguous { name: name.to_owned(), layers: found }),
        }
    }

    /// Gives an input, found by the name of its layer or tensor, another element type, another shape, or both.
    ///
    /// [`infer`](crate::infer()) then carries it through the graph, and [`trace_changes`] tells of each error it finds how it is
    /// reached from the input.
    ///
    /// # Errors
    /// [`InputError`] where there is no such input, or more than one; nothing is changed then.
    ///
    /// # Examples
    /// ```
    /// let mut model = typelift::Model::from_xml(r#"<net name="n" version="11"><layers>
    ///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="f16"/>
    ///         <output><port id="0" precision="FP16"><dim>-1</dim><dim>3</dim></port></output></layer>
    /// </layers></net>"#)?;
    /// let x = model.set_input("x", None, Some(&"[1..8,3]".parse().unwrap())).unwrap();
    /// assert!(typelift::infer(&mut model).is_empty());
    /// assert_eq!(model.graph.layer(x).unwrap().outputs()[0].shape().to_string(), "[1..8,3]");
    /// assert!(typelift::xml::write(&model, Default::default()).contains(r#"shape="1..8,3""#));
    /// # Ok::<(), typelift::Diagnostics>(())
    /// ```
    pub fn set_input(
        &mut self,
        name: &str,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> Result<LayerId, InputError> {
        let id = self.find_input(name)?;
        // The layer is there, so neither edit can fail.
        if let Some(shape) = shape {
            let _ = self.graph.set_attribute(id, "shape", &shape.to_attribute().to_string());
        }
        if let Some(element_type) = element_type {
            let _ = self.graph.set_attribute(id, "element_type", element_type.name());
        }
        Ok(id)
    }
}

/// `` `x` ``, and the names of its tensor where they are others.
fn describe(layer: &Layer) -> String {
    let names = layer.outputs().iter().flat_map(OutputPort::names).filter(|name| name != layer.name());
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { format!("`{}`", layer.name()) } else { format!("`{}` ({})", layer.name(), names.join(", ")) }
}

/// How many layers of a long chain are named at each of its ends.
const SHOWN_AT_ENDS: usize = 4;

/// Adds to each error the shortest way on which one of the `changed` layers reaches the layer that it is about, so that
/// whoever changed an input sees where it was heard of.
pub fn trace_changes(graph: &Graph, changed: &[LayerId], diagnostics: &mut [Diagnostic]) {
    let petgraph = graph.petgraph();
    let name = |node| petgraph.node_weight(node).map_or_else(String::new, |l| format!("{} `{}`", l.id(), l.name()));
    for start in changed.iter().filter_map(|&id| graph.node(id)) {
        let mut before = HashMap::new();
        let mut bfs = Bfs::new(petgraph, start);
        while let Some(node) = bfs.next(petgraph) {
            for edge in petgraph.edges(node) {
                before.entry(edge.target()).or_insert(node);
            }
        }
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.is_error()) {
            let Some(layer) = &diagnostic.layer else { continue };
            // Of a layer in a body, the outermost layer around it.
            let outer = || graph.layers().find(|l| !l.bodies().is_empty() && layer.path.starts_with(l.name()));
            let target = if layer.path.is_empty() { Some(layer.id) } else { outer().map(Layer::id) };
            let Some(target) = target.and_then(|id| graph.node(id)) else { continue };
            let mut chain = vec![target];
            while let Some(&node) =
                chain.last().and_then(|last| before.get(last)).filter(|_| chain.last() != Some(&start))
            {
                chain.push(node);
            }
            if chain.last() != Some(&start) || chain.len() == 1 {
                continue;
            }
            let mut chain: Vec<_> = chain.into_iter().rev().map(name).collect();
            if chain.len() > 2 * SHOWN_AT_ENDS + 1 {
                let hidden = chain.len() - 2 * SHOWN_AT_ENDS;
                chain.splice(SHOWN_AT_ENDS..chain.len() - SHOWN_AT_ENDS, [format!("({hidden} layers)")]);
            }
            diagnostic.notes.push(format!("the changed input reaches it through {}", chain.join(" -> ")));
        }
    }
}
