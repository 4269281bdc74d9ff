//! A batch of edits that stays open between calls.

use crate::edit::Edit;
use crate::findings::Diagnostic;
use crate::model::graph::{EditError, Model};

/// Batch of edits that stays open between calls and owns its model. [`Model::edit`] makes all edits in one closure; a
/// batch is for callers that cannot, such as another language. Dropping it discards the edits and the model. To keep
/// the former model, clone it first; a clone shares names, text and weights.
///
/// ```
/// # use typelift::edit::Batch;
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
    /// Begins a batch without edits.
    pub fn new(model: Model) -> Self {
        Self { model }
    }

    /// Returns the model in its current state. A clone contains the open batch too; only [`finish`](Self::finish) ends
    /// it.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the model's own graph for edits. An edit that fails changes nothing.
    pub fn edit(&mut self) -> Edit<'_> {
        self.model.as_edit()
    }

    /// Infers types and shapes of the model in its current state, and returns all errors.
    ///
    /// # Examples
    /// ```
    /// # use typelift::edit::Batch;
    /// # use typelift::infer;
    /// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// let mut batch = Batch::new(model);
    /// let x = batch.model().graph().find("x")?;
    /// batch.edit().set_attribute(x, "shape", "8,4")?;
    /// assert_eq!(batch.infer(), []);
    /// let y = batch.model().graph().tensor("y")?;
    /// assert_eq!(batch.model().graph().output(y).unwrap().to_string(), "f32[8,4]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use = "the result contains the errors of the model"]
    pub fn infer(&mut self) -> Vec<Diagnostic> {
        crate::infer(&mut self.model)
    }

    /// Ends the batch and returns the model.
    ///
    /// # Errors
    /// [`EditError::Cycle`].
    pub fn finish(mut self) -> Result<Model, EditError> {
        self.model.graph.check_batch()?;
        self.model.graph.commit();
        Ok(self.model)
    }
}
