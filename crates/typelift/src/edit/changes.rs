//! Records of the changes that passes and edits make to the types of layers.

use serde::Serialize;
use serde::ser::SerializeStruct;
use typelift_promote::{ElementType, Fidelity, Loss, fidelity};

use super::Edit;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, LayerRef};
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, Place};
use crate::model::weights::Weights;
use crate::ops;
use crate::ops::values::conversion::Audit;

/// A change that an edit or a pass made to the type of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The action.
    pub action: Action,
    /// The Convert, the layer that is used in its place, or the Parameter or Result that was retyped.
    pub layer: LayerRef,
    /// The element type before the conversion.
    pub from: ElementType,
    /// The element type after the conversion.
    pub to: ElementType,
    /// The reason.
    pub reason: String,
    /// The producer of the tensor that an inserted Convert converts.
    pub source: Option<LayerRef>,
    /// The position in the file of the layer, or of its source if it is new.
    span: Option<Span>,
    /// The constant before a Convert that can lose something. It is rare, and therefore boxed.
    constant: Option<Box<Constant>>,
}

/// A constant whose values were checked.
#[derive(Clone, Debug, PartialEq)]
struct Constant {
    layer: LayerRef,
    span: Span,
    audit: Audit,
}

impl Constant {
    /// Counts the losses of a layer's values, if it is a constant that can lose some.
    fn converted(layer: &Layer, place: &Place, to: ElementType, weights: &Weights) -> Option<Box<Self>> {
        let audit = ops::is_constant(layer).then(|| Audit::of(layer, weights, to)).flatten()?;
        Some(Box::new(Self { layer: LayerRef::of(place, layer), span: layer.span.unwrap_or_default(), audit }))
    }

    /// Counts the losses of a constant that is stored in another type, if it can lose some.
    fn stored(graph: &Graph, layer: &Layer, place: &Place, to: ElementType, weights: &Weights) -> Option<Box<Self>> {
        let from = layer.attribute("element_type").and_then(ElementType::from_name)?;
        let audit = (!fidelity(from, to)?.is_exact()).then(|| Audit::stored(graph, layer, weights, to)).flatten()?;
        Some(Box::new(Self { layer: LayerRef::of(place, layer), span: layer.span.unwrap_or_default(), audit }))
    }
}

impl Change {
    /// Returns the possible loss of the conversion, by the two types alone; `None` if one of them has no numbers.
    #[must_use]
    pub fn can_lose(&self) -> Option<Fidelity> {
        fidelity(self.from, self.to)
    }

    /// Returns the loss of the values, if a Convert that can lose something was inserted after a readable constant.
    #[must_use]
    pub fn audit(&self) -> Option<&Audit> {
        self.constant.as_deref().map(|constant| &constant.audit)
    }

    /// Records the producer of a new Convert's input.
    pub(crate) fn come_from(&mut self, producer: Option<&Layer>) {
        let Some(layer) = producer else { return };
        self.span = layer.span;
        self.source = Some(LayerRef::of(&self.layer.place, layer));
    }

    /// Returns the bytes of the file for the layer, or for its source if it is new.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// Returns a warning if values of a constant are lost. Rounding to the precision of the type does not count.
    #[must_use]
    pub fn warning(&self, model: &Model) -> Option<Diagnostic> {
        let Constant { layer, span, audit } = self.constant.as_deref().filter(|it| it.audit.lost() > 0)?;
        let Self { from, to, .. } = self;
        let message = format!("values of `{}` are lost in the conversion from {from} to {to}", layer.name);
        let span = crate::text::xml::locate(&model.source, *span, "layer", "name");
        let warning = Diagnostic::new(Code::LossyConversion, message).at(span, audit.to_string());
        let warning = Diagnostic { layer: Some(layer.clone()), ..warning }.note(self.reason.clone());
        Some(warning.help(match self.action {
            Action::Converted => "leave the constant as it is, where these values matter",
            _ => "change the type of the other input instead, where these values matter",
        }))
    }
}

/// Writes the possible losses as words, and the audit of a constant.
impl Serialize for Change {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let losses = |fidelity: Fidelity| fidelity.losses().map(Loss::name).collect::<Vec<_>>();
        let mut fields = serializer.serialize_struct("Change", 8)?;
        fields.serialize_field("action", &self.action)?;
        fields.serialize_field("layer", &self.layer)?;
        fields.serialize_field("from", self.from.name())?;
        fields.serialize_field("to", self.to.name())?;
        fields.serialize_field("can_lose", &self.can_lose().map(losses))?;
        match self.audit() {
            Some(audit) => fields.serialize_field("audit", audit)?,
            None => fields.skip_field("audit")?,
        }
        fields.serialize_field("source", &self.source)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.end()
    }
}

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Action {
    /// The layer was added.
    Inserted,
    /// The layer was removed.
    Removed,
    /// The existing layer holds the values that an input needs in another type, so the input uses it.
    Used,
    /// The attribute named the wrong element type and was corrected.
    Corrected,
    /// The input or output of the model or of a body has another type.
    Retyped,
    /// The constant is stored in another type.
    Converted,
}

/// Record of changes so far, and the graph that is being changed.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) list: Vec<Change>,
    /// The current graph.
    pub(crate) place: Place,
    pub(crate) weights: Weights,
    /// True if a new Convert that loses nothing is reported only as its id.
    pub(crate) without_details: bool,
    /// True if values became known after a promotion was removed.
    pub(crate) reveals: bool,
    /// True if types must be inferred again: Parameters of bodies have other types, or the changes are unknown.
    pub(crate) retypes: bool,
    /// The number of removed layers.
    pub(crate) removed: usize,
}

impl Changes {
    /// Creates an empty list for a model with these weights.
    pub(crate) fn of(weights: &Weights) -> Self {
        Self { weights: weights.clone(), ..Self::default() }
    }

    /// Moves to the graph at `place`.
    pub(crate) fn enter<'a>(&mut self, graph: &'a mut Edit<'_>, place: &Place) -> Result<Edit<'a>, EditError> {
        self.place = graph.named_place(place.steps()).unwrap_or_default();
        graph.at(place)
    }

    /// Moves into a body of a layer.
    pub(crate) fn step_into<'a>(
        &mut self,
        graph: &'a mut Edit<'_>,
        owner: LayerId,
        at: usize,
    ) -> Result<Edit<'a>, EditError> {
        if let Some(layer) = graph.layer(owner)
            && let Some(body) = layer.bodies().get(at)
        {
            self.place = self.place.inside(layer, at, body.name());
        }
        graph.body(owner, at)
    }

    /// Removes layers that no other layer uses.
    pub(crate) fn remove(&mut self, graph: &mut Edit<'_>, layers: &[LayerId]) -> Result<(), EditError> {
        self.removed += layers.len();
        graph.remove_all(layers)
    }

    /// Records a new Convert, and counts the loss of a constant's values.
    pub(crate) fn add_inserted(&mut self, graph: &Graph, convert: LayerId, reason: impl FnOnce() -> String) {
        let source = graph.producer(convert.input(0));
        let Some((layer, to)) = graph.layer(convert).zip(graph.output(convert.output(0))) else { return };
        let Some((source, from)) = source.and_then(|it| graph.layer(it.layer).zip(graph.output(it))) else { return };
        let constant = Constant::converted(source, &self.place, to.element_type(), &self.weights);
        let has_details = !self.without_details || constant.is_some();
        self.list.push(Change {
            action: Action::Inserted,
            layer: LayerRef::named(&self.place, convert, if has_details { layer.name() } else { "" }),
            from: from.element_type(),
            to: to.element_type(),
            reason: if has_details { reason() } else { String::new() },
            source: has_details.then(|| LayerRef::of(&self.place, source)),
            span: source.span,
            constant,
        });
    }

    /// Records a new Convert between layers whose types change.
    pub(crate) fn add_border(&mut self, graph: &Graph, convert: LayerId, types: [ElementType; 2], reason: String) {
        let source = graph.producer(convert.input(0)).and_then(|source| graph.layer(source.layer));
        let Some(layer) = graph.layer(convert) else { return };
        self.add(Action::Inserted, layer, types, reason);
        if let Some(change) = self.list.last_mut() {
            change.come_from(source);
        }
    }

    /// Records a constant that is stored in another type.
    pub(crate) fn add_converted(&mut self, graph: &Graph, constant: &Layer, types: [ElementType; 2], reason: String) {
        self.add(Action::Converted, constant, types, reason);
        if let Some(change) = self.list.last_mut() {
            change.constant = Constant::stored(graph, constant, &self.place, types[1], &self.weights);
        }
    }

    pub(crate) fn add(
        &mut self,
        action: Action,
        layer: &Layer,
        [from, to]: [ElementType; 2],
        reason: impl Into<String>,
    ) {
        let span = layer.span;
        let layer = LayerRef::of(&self.place, layer);
        let (reason, span) = (reason.into(), span);
        self.list.push(Change { action, layer, from, to, reason, source: None, span, constant: None });
    }
}
