//! Conversion of one constant to another element type; the new values are appended to the weights.

use std::sync::Arc;

use typelift_promote::ElementType;

use crate::edit::inputs_outputs::InterfaceError;
use crate::model::graph::{LayerId, Model, Place};
use crate::ops;
use crate::ops::values::conversion::{Audit, Stored};
use crate::promotion::passes::{Change, Changes};

impl Model {
    /// Changes the element type of a constant. Its converted values are appended to the weights, so that constants
    /// which share its bytes keep them. `name` is a path for [`find`](Self::find). Returns the change with the loss of
    /// the values; `None` if the constant already has the type.
    ///
    /// Afterwards [`infer`](crate::infer()) propagates the type, or [`infer_aligned`](crate::passes::infer_aligned) inserts a
    /// Convert where the file needs the former type.
    ///
    /// # Errors
    /// [`InterfaceError`] if no constant has that name, if its values cannot be read, or if values change by more than
    /// rounding, for example to an infinity. The model is unchanged then.
    ///
    /// # Examples
    /// ```
    /// # use typelift::promote::ElementType;
    /// let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let changes = model.convert_constant("scale", ElementType::F16).unwrap();
    /// assert_eq!(changes[0].from, ElementType::F32);
    /// assert!(changes[0].audit().is_none_or(|audit| audit.destroyed() == 0));
    /// let scale = model.graph().find("scale")?;
    /// assert_eq!(model.graph().layer(scale).unwrap().attribute("element_type"), Some("f16"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn convert_constant(&mut self, name: &str, to: ElementType) -> Result<Vec<Change>, InterfaceError> {
        let (place, id) = self.find_constant(name)?;
        let Some(layer) = self.graph_at(&place).and_then(|graph| graph.layer(id)) else { return Ok(Vec::new()) };
        let from = layer.named_type("element_type").unwrap_or(ElementType::Dynamic);
        if from == to {
            return Ok(Vec::new());
        }
        let unreadable = || InterfaceError::Unreadable { name: name.to_owned(), from, to };
        let weights = Arc::new(self.weights.clone());
        let converted = Stored::of(layer).and_then(|stored| stored.converted(to, &weights)).ok_or_else(unreadable)?;
        let mut changes = Changes::of(&self.weights);
        self.edit(|graph| {
            let mut graph = changes.enter(graph, &place)?;
            if let Some(layer) = graph.layer(id) {
                changes.add_converted(&graph, layer, [from, to], format!("the constant is to be {to}"));
            }
            if changes.list.iter().filter_map(Change::audit).any(is_another_constant) {
                return Ok(());
            }
            super::apply::store(&mut graph, id, converted)
        })?;
        match changes.list.iter().filter_map(Change::audit).find(|audit| is_another_constant(audit)) {
            Some(audit) => {
                Err(InterfaceError::LosesValues { name: name.to_owned(), from, to, values: audit.to_string() })
            }
            None => Ok(changes.list),
        }
    }

    pub(crate) fn find_constant(&self, name: &str) -> Result<(Place, LayerId), InterfaceError> {
        let unknown = || InterfaceError::UnknownConstant(name.to_owned());
        let (place, id) = self.find(name).map_err(|_| unknown())?;
        let layer = self.graph_at(&place).and_then(|graph| graph.layer(id));
        layer.filter(|layer| ops::is_constant(layer)).map(|_| (place, id)).ok_or_else(unknown)
    }
}

/// A small value that becomes zero is only rounded.
fn is_another_constant(audit: &Audit) -> bool {
    audit.destroyed() + audit.truncated + audit.collapsed > 0
}
