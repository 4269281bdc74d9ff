//! A batch of edits that stays open between calls.

use crate::edit::Edit;
use crate::findings::Diagnostic;
use crate::model::graph::{EditError, Model};

/// A batch of edits of a model that it owns: what [`Model::edit`] does in one call, for a caller that cannot make all edits in
/// one closure, as one in another language. If it is dropped, the edits are lost with it; a caller that wants to go on with the
/// model as it was keeps a clone, which shares names, text and weights.
///
/// ```
/// # use typelift::Batch;
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let mut batch = Batch::new(model.clone());
/// let relu = batch.model().graph().find("relu")?;
/// batch.edit().set_name(relu, "activation")?;
/// let edited = batch.finish()?;
/// assert!(edited.find("activation").is_ok() && model.find("activation").is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Batch {
    model: Model,
}

impl Batch {
    /// A batch without any edits.
    #[must_use]
    pub fn new(model: Model) -> Self {
        Self { model }
    }

    /// The model as it is so far. A clone of it has the batch under way, too: only [`finish`](Self::finish) ends it.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The model's own graph, to be edited. A verb that fails changes nothing.
    pub fn edit(&mut self) -> Edit<'_> {
        self.model.as_edit()
    }

    /// Infers types and shapes of the model as it is so far, and says what is wrong with it.
    ///
    /// # Examples
    /// ```
    /// # use typelift::{Batch, infer};
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let mut batch = Batch::new(model);
    /// let x = batch.model().graph().find("x")?;
    /// batch.edit().set_attribute(x, "shape", "8,4")?;
    /// assert_eq!(batch.infer(), []);
    /// let y = batch.model().graph().tensor("y")?;
    /// assert_eq!(batch.model().graph().output(y).unwrap().to_string(), "f32[8,4]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "what is wrong with the model is in it"]
    pub fn infer(&mut self) -> Vec<Diagnostic> {
        crate::infer(&mut self.model)
    }

    /// Ends the batch and gives the model.
    ///
    /// # Errors
    /// [`EditError::Cycle`].
    pub fn finish(mut self) -> Result<Model, EditError> {
        self.model.graph.check_batch()?;
        self.model.graph.commit();
        Ok(self.model)
    }
}
