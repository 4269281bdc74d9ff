//! Explanation of why a pattern does not match.

use std::fmt::{self, Display, Formatter};

use super::matching::{self, Miss};
use super::operations::{operation_of, root_of, root_operations};
use super::subject::Subject;
use super::{Rule, place};
use crate::findings::LayerRef;
use crate::model::graph::{FindError, Graph, Layer, Model, Place};
use crate::rewrite::notation::pointer;

/// Explanation of a rule at a layer. If its pattern does not match there, the reason is given with the failing section
/// of the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The rule.
    pub rule: String,
    /// The layer that was tried; `None` if the model lacks the operation of the pattern's root.
    pub layer: Option<LayerRef>,
    /// True if the pattern matches there.
    pub matches: bool,
    /// Reason why the pattern does not match.
    pub reason: Option<String>,
    /// What the rule loses where its pattern matches, or why it does nothing.
    effect: Option<String>,
    text: String,
    operation: String,
    span: std::ops::Range<usize>,
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.layer {
            Some(layer) => write!(f, "{} {}", self.operation, place(layer))?,
            None => f.write_str(&self.rule)?,
        }
        match &self.reason {
            Some(reason) => f.write_str(&pointer(&self.text, self.span.clone(), reason)),
            None => {
                write!(f, "\n  {}\n  matches", self.text)?;
                self.effect.as_ref().map_or(Ok(()), |effect| write!(f, ", {effect}"))
            }
        }
    }
}

impl Model {
    /// Explains why a rule does not match: at a layer, named as for [`find`](Self::find), or at the place where most of
    /// the pattern matches. Types and shapes are those of the last [`infer`](crate::infer()).
    ///
    /// # Errors
    /// [`FindError`] if no layer or several layers have that name.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::rewrite::Rule;
    /// let model = Model::from_text("
    ///     x = Parameter : f32[8]
    ///     y = Clamp(x) {min=0, max=5}
    ///     r = Result(y)
    /// ")?;
    /// let rule: Rule = "Clamp(x) {min=0, max=6} => Relu(x)".parse()?;
    /// assert_eq!(model.explain(&rule, None)?.to_string(), "\
    /// Clamp 1 `y`
    ///   Clamp(x) {min=0, max=6} => Relu(x)
    ///                    ^^^^^ Clamp 1 `y` has max=5");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn explain(&self, rule: &Rule, layer: Option<&str>) -> Result<Explanation, FindError> {
        let text = rule.text.clone();
        let head = root_of(&rule.pattern).map_or(0..rule.pattern.text.len(), |root| root.head.clone());
        let operations = root_operations(&rule.pattern);
        let look = |place: &Place, graph: &Graph, layer: &Layer| {
            let miss = matching::miss(
                &Subject::new(graph, self.weights()).in_body(!place.steps().is_empty()),
                &rule.pattern,
                layer,
            );
            let explanation = |reason, span| Explanation {
                rule: rule.name().to_owned(),
                layer: Some(LayerRef::of(place, layer)),
                matches: miss.is_none(),
                reason,
                effect: None,
                text: text.clone(),
                operation: layer.ty().to_owned(),
                span,
            };
            match &miss {
                None => (usize::MAX, explanation(None, head.clone())),
                Some(Miss { progress, span, reason }) => (*progress, explanation(Some(reason.clone()), span.clone())),
            }
        };
        if let Some(name) = layer {
            let (place, id) = self.find(name)?;
            let found = self.graph_at(&place).and_then(|graph| Some((graph, graph.layer(id)?)));
            let (graph, layer) = found.ok_or_else(|| FindError::Unknown(name.to_owned()))?;
            return Ok(self.with_effect(rule, look(&place, graph, layer).1));
        }
        let mut best: Option<(usize, Explanation)> = None;
        for (place, graph) in self.walk().rev() {
            for layer in graph.layers().filter(|layer| operations.contains(&operation_of(layer))) {
                let (progress, explanation) = look(&place, graph, layer);
                if best.as_ref().is_none_or(|(most, _)| progress > *most) {
                    best = Some((progress, explanation));
                }
            }
        }
        Ok(best.map(|(_, explanation)| self.with_effect(rule, explanation)).unwrap_or_else(|| Explanation {
            rule: rule.name().to_owned(),
            layer: None,
            matches: false,
            reason: Some(format!("the model does not have a layer {}", operations.join(" or "))),
            effect: None,
            text: text.clone(),
            operation: String::new(),
            span: head.clone(),
        }))
    }

    fn with_effect(&self, rule: &Rule, explanation: Explanation) -> Explanation {
        let Some(at) = explanation.layer.as_ref().filter(|_| explanation.matches) else { return explanation };
        let tried = self.clone().rewrite_where_possible(std::slice::from_ref(rule));
        let effect = match tried {
            Err(error) => Some(format!("but the rule fails: {error}")),
            Ok((report, refused)) => {
                if let Some(site) = report.applied.iter().find(|site| site.layer == *at) {
                    let losses = (!site.losses.is_empty()).then(|| format!("and {}", site.losses));
                    return Explanation { effect: losses, ..explanation };
                }
                let reason = refused.iter().find_map(|error| error.at(at)).map(|(_, reason)| reason);
                Some(match reason {
                    Some(reason) => format!("but the replacement is not possible: {reason}"),
                    None if report.applied.is_empty() => "but the replacement would change nothing".to_owned(),
                    None => "but another match contains one of its layers".to_owned(),
                })
            }
        };
        Explanation { effect, ..explanation }
    }
}
