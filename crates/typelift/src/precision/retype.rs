//! Application of a type change: attributes, constants, and the Converts between layers of different types.

use std::sync::Arc;

use typelift_promote::ElementType;

use super::RetypingPlan;
use super::apply::store;
use super::types::{Border, GraphPlan};
use crate::base::hash::{HashMap, HashSet};
use crate::edit::Edit;
use crate::model::graph::{EditError, IrVersion, Layer, LayerId, Model, NewLayer, Output};
use crate::model::weights::Weights;
use crate::ops::values::conversion::Stored;
use crate::ops::{self, LayerKind};
use crate::promotion::passes::{Change, Changes, PassError, unique};

impl RetypingPlan {
    /// Applies the plan to the model that it was made for, and infers types and shapes. Returns the changes of inputs,
    /// constants and attributes, and the new Converts. One Convert serves all consumers that need a type. A Convert
    /// before an output of the model takes over the tensor's names.
    ///
    /// # Errors
    /// [`PassError`]: an edit was not possible, and the model is unchanged. If the result has errors, that is a bug in
    /// Typelift, and the model must not be used.
    pub(crate) fn apply(&self, model: &mut Model) -> Result<Vec<Change>, PassError> {
        let mut changes = Changes::of(model.weights());
        let (version, weights) = (model.version(), Arc::new(model.weights().clone()));
        model.edit(|edit| {
            for plan in &self.graphs {
                let mut graph = changes.enter(edit, &plan.place)?;
                self.retype_layers(&mut graph, plan, &weights, &mut changes)?;
                Borders::new(&graph, version).convert(&mut graph, &plan.borders, &mut changes)?;
            }
            Ok(())
        })?;
        model.graph().verify().map_err(PassError::Invalid)?;
        let errors: Vec<_> = crate::infer::infer(model).into_iter().filter(|found| found.is_error()).collect();
        if errors.is_empty() { Ok(changes.list) } else { Err(PassError::IllTyped(errors)) }
    }

    /// Changes the values of constants, and the types in attributes.
    fn retype_layers(
        &self,
        graph: &mut Edit<'_>,
        plan: &GraphPlan,
        weights: &Arc<Weights>,
        changes: &mut Changes,
    ) -> Result<(), EditError> {
        for &(id, attribute, to) in &plan.attributes {
            let layer = graph.layer(id).ok_or(EditError::NoLayer(id))?;
            let from = layer.outputs().first().map_or(ElementType::Dynamic, |port| port.element_type());
            let reason = format!("the types of the model change: {}", self.types);
            if ops::is_constant(layer) {
                changes.add_converted(graph, layer, [from, to], reason);
                let values = Stored::of(layer).and_then(|stored| stored.converted(to, weights));
                store(graph, id, values.ok_or(EditError::NoWeights)?)?;
            } else {
                changes.retype(graph, id, attribute, [from, to], reason)?;
            }
        }
        Ok(())
    }
}

/// Inserter of Converts between layers of different types, in one graph.
struct Borders {
    version: IrVersion,
    names: HashSet<String>,
    named: HashSet<LayerId>,
    made: HashMap<(Output, ElementType), Output>,
}

impl Borders {
    fn new(graph: &Edit<'_>, version: IrVersion) -> Self {
        let names = graph.unordered().map(|layer| layer.name().to_owned()).collect();
        Self { version, names, named: HashSet::default(), made: HashMap::default() }
    }

    fn convert(&mut self, graph: &mut Edit<'_>, borders: &[Border], changes: &mut Changes) -> Result<(), EditError> {
        let mut wires = Vec::with_capacity(borders.len());
        for border in borders {
            let &Border { tensor, input, to, .. } = border;
            let made = match self.made.get(&(tensor, to)) {
                Some(&made) => made,
                None => self.add(graph, border, changes)?,
            };
            self.made.insert((tensor, to), made);
            let is = |id, wanted| graph.layer(id).is_some_and(|layer: &Layer| ops::kind(layer) == wanted);
            if is(input.layer, LayerKind::Result) && !is(tensor.layer, LayerKind::Parameter) {
                self.move_names(graph, tensor, made)?;
            }
            wires.push((made, input));
        }
        graph.connect_all(wires)
    }

    fn add(&mut self, graph: &mut Edit<'_>, border: &Border, changes: &mut Changes) -> Result<Output, EditError> {
        let &Border { tensor, from, to, .. } = border;
        let producer = graph.layer(tensor.layer).ok_or(EditError::NoLayer(tensor.layer))?;
        let port = if producer.outputs().len() > 1 { format!(".{}", tensor.port) } else { String::new() };
        let name = unique(format!("{}{port}/to_{to}", producer.name()), &mut self.names);
        let convert = graph.add(NewLayer::convert(to).named(&name), &[tensor])?;
        changes.add_border(graph, convert, [from, to], format!("a layer that keeps its types uses or produces {to}"));
        Ok(convert.output(0))
    }

    /// Moves the names of a model output to the Convert before it.
    fn move_names(&mut self, graph: &mut Edit<'_>, tensor: Output, made: Output) -> Result<(), EditError> {
        graph.move_names(tensor, made)?;
        if self.version == IrVersion::V10 && self.named.insert(made.layer) {
            graph.take_version_10_name(tensor, made.layer)?;
        }
        Ok(())
    }
}
