//! `Model::edit`: where the editing verbs meet what is known of operations.

use smallvec::SmallVec;
use typelift_promote::ElementType;

use crate::graph::{Edit, EditError, Graph, Layer, LayerId, Model, Operations, Origin};
use crate::infer;
use crate::ops::{self, LayerKind};
use crate::shape::Shape;

/// The table of operations.
#[derive(Debug)]
struct Table;

impl Operations for Table {
    fn kind(&self, layer: &Layer) -> LayerKind {
        ops::kind(layer)
    }

    fn outputs(
        &self,
        graph: &mut Graph,
        id: LayerId,
        origin: Origin<'_>,
    ) -> Option<Result<SmallVec<[(ElementType, Shape); 2]>, String>> {
        infer::outputs_of(graph, id, origin)
    }
}

impl Model {
    /// Makes a batch of edits of the model's own graph; [`Edit::body`] leads into bodies. All of them are made, or none:
    /// where one fails, or layers would form a cycle in the end, the model is as it was.
    ///
    /// # Errors
    /// What `edits` returns, and [`EditError::Cycle`].
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::graph::NewLayer;
    /// let mut model = Model::from_xml(r#"<net name="n" version="11"><layers>
    ///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="f16"/>
    ///         <output><port id="0" precision="FP16"><dim>-1</dim><dim>3</dim></port></output></layer>
    ///     <layer id="1" name="y" type="ReLU" version="opset1"><input><port id="0"/></input>
    ///         <output><port id="1" precision="FP16"><dim>-1</dim><dim>3</dim></port></output></layer>
    /// </layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#)?;
    /// let y = model.graph().find("y")?;
    /// model.edit(|graph| {
    ///     graph.morph(y, NewLayer::new("Elu", "opset1").with_attribute("alpha", 0.5), &[graph.find("x")?.output(0)])
    /// })?;
    /// assert_eq!(model.graph().layer(y).unwrap().ty(), "Elu");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit<T>(&mut self, edits: impl FnOnce(&mut Edit<'_>) -> Result<T, EditError>) -> Result<T, EditError> {
        self.edit_knowing(&Table, edits)
    }
}
