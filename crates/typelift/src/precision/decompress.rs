//! Selection of compressed constants.

use typelift_promote::ElementType;

use super::apply::decompressions;
use super::plan::{Action, Constant, Plan};
use crate::model::graph::Model;
use crate::ops;

impl Plan {
    /// Returns the plan that stores compressed constants in the type in which they are used. It covers constants of one
    /// of these types that are followed by a Convert with the mark `decompression`. Types and shapes must be
    /// [inferred](crate::infer()).
    ///
    /// ```
    /// use typelift::precision::{Compression, Plan};
    /// use typelift::promote::ElementType::{F16, F32};
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// Plan::compress(&model, &Compression::to(F16)).apply(&mut model)?;
    /// let plan = Plan::decompress(&model, &[F16]);
    /// assert_eq!((plan.constants[0].from, plan.constants[0].to), (F16, F32));
    /// plan.apply(&mut model)?;
    /// assert_eq!(model.graph().len(), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn decompress(model: &Model, types: &[ElementType]) -> Self {
        let mut constants = Vec::new();
        for (place, graph) in model.walk() {
            for layer in graph.layers().filter(|layer| ops::is_constant(layer)) {
                let (mut converts, _) = decompressions(graph, layer.id(), model.version());
                converts.dedup_by_key(|(_, to)| *to);
                for (_, to) in converts {
                    let Some(mut constant) = Constant::of(&place, graph, layer, to) else { continue };
                    if !types.contains(&constant.from) {
                        continue;
                    }
                    constant.audit(layer, model.weights());
                    constant.action = Action::Decompress;
                    constants.push(constant);
                }
            }
        }
        Self { constants, ..Self::default() }
    }
}
