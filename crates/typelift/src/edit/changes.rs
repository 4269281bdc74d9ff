//! Records of the changes that passes and edits make to the types of layers.

use serde::Serialize;
use serde::ser::SerializeStruct;
use typelift_promote::{ElementType, Fidelity, Loss, fidelity};

use super::Edit;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, LayerRef, Text, message};
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, Place};
use crate::model::weights::Weights;
use crate::ops;
use crate::ops::values::conversion::Audit;

/// A change that an edit or a pass made to the type of one layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The action.
    pub action: Action,
    /// The changed layer: the Convert, the layer used instead of one, or the Parameter or Result with the new type.
    pub layer: LayerRef,
    /// The element type before the conversion.
    pub from: ElementType,
    /// The element type after the conversion.
    pub to: ElementType,
    /// The reason.
    pub reason: String,
    /// For an inserted Convert: the producer of its input.
    pub source: Option<LayerRef>,
    /// Position in the file: of the layer or, if it is new, of its producer.
    span: Option<Span>,
    /// For a Convert that loses values of a constant: the constant. Boxed, because it is rare.
    constant: Option<Box<CheckedConstant>>,
}

#[derive(Clone, Debug, PartialEq)]
struct CheckedConstant {
    layer: LayerRef,
    span: Span,
    audit: Audit,
}

impl CheckedConstant {
    /// Counts the values that a constant would lose by a conversion to `to`; `None` for other layers.
    fn converted(layer: &Layer, place: &Place, to: ElementType, weights: &Weights) -> Option<Box<Self>> {
        let audit = ops::is_constant(layer).then(|| Audit::of(layer, weights, to)).flatten()?;
        Some(Box::new(Self { layer: LayerRef::of(place, layer), span: layer.span.unwrap_or_default(), audit }))
    }

    /// Counts the losses of a constant that is stored in another type, if it can lose some.
    fn stored(graph: &Graph, layer: &Layer, place: &Place, to: ElementType, weights: &Weights) -> Option<Box<Self>> {
        let from = layer.named_type("element_type")?;
        let audit = (!fidelity(from, to)?.is_exact()).then(|| Audit::stored(graph, layer, weights, to)).flatten()?;
        Some(Box::new(Self { layer: LayerRef::of(place, layer), span: layer.span.unwrap_or_default(), audit }))
    }
}

impl Change {
    /// Returns the loss that the two types permit, whatever the values; `None` if one of them is not numeric.
    pub fn can_lose(&self) -> Option<Fidelity> {
        fidelity(self.from, self.to)
    }

    /// Returns the loss of actual values, if the Convert follows a constant that can be read.
    pub fn audit(&self) -> Option<&Audit> {
        self.constant.as_deref().map(|constant| &constant.audit)
    }

    pub(crate) fn come_from(&mut self, producer: Option<&Layer>) {
        let Some(layer) = producer else { return };
        self.span = layer.span;
        self.source = Some(LayerRef::of(&self.layer.place, layer));
    }

    /// Returns the position in the file: of the layer or, if it is new, of its producer.
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// Returns a warning if values of a constant are lost. Rounding to the precision of the type does not count.
    pub fn warning(&self, model: &Model) -> Option<Diagnostic> {
        let CheckedConstant { layer, span, audit } = self.constant.as_deref().filter(|it| it.audit.lost() > 0)?;
        let Self { from, to, .. } = self;
        let message =
            message!("values of the constant `{}` are lost in the conversion from {} to {}"; layer.name, from, to);
        let span = crate::text::xml::locate(&model.source, *span, "layer", "name");
        let warning = Diagnostic::new(Code::LossyConversion, message).at(span, Text(audit));
        let warning = Diagnostic { layer: Some(layer.clone()), ..warning }.note(Text(&self.reason));
        Some(warning.help(match self.action {
            Action::Converted => "if these values matter, do not change the constant",
            _ => "if these values matter, change the type of the other input instead",
        }))
    }
}

/// Serializes the possible losses as words, and the loss of a constant's values.
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
    /// An existing layer already produces the tensor in the required type, so the input uses it.
    Used,
    /// The attribute named the wrong element type, and was corrected.
    Corrected,
    /// The input or output of the model or of a body got another type.
    Retyped,
    /// The constant is stored in another type.
    Converted,
}

#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) list: Vec<Change>,
    pub(crate) place: Place,
    pub(crate) weights: Weights,
    /// True if a new Convert that loses nothing is recorded by its id only.
    pub(crate) without_details: bool,
    /// True if the removal of a promotion made values known.
    pub(crate) reveals: bool,
    /// True if types must be inferred again, because Parameters of bodies changed or the changes are unknown.
    pub(crate) retypes: bool,
    /// The number of removed layers.
    pub(crate) removed: usize,
}

impl Changes {
    pub(crate) fn of(weights: &Weights) -> Self {
        Self { weights: weights.clone(), ..Self::default() }
    }

    /// Makes the graph at `place` the current one.
    pub(crate) fn enter<'a>(&mut self, graph: &'a mut Edit<'_>, place: &Place) -> Result<Edit<'a>, EditError> {
        self.place = graph.named_place(place.steps()).unwrap_or_default();
        graph.at(place)
    }

    /// Makes a body of a layer the current graph.
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

    pub(crate) fn remove(&mut self, graph: &mut Edit<'_>, layers: &[LayerId]) -> Result<(), EditError> {
        self.removed += layers.len();
        graph.remove_all(layers)
    }

    /// Records a new Convert, with the values that a constant loses by it.
    pub(crate) fn add_inserted(&mut self, graph: &Graph, convert: LayerId, reason: impl FnOnce() -> String) {
        let source = graph.producer(convert.input(0));
        let Some((layer, to)) = graph.layer(convert).zip(graph.output(convert.output(0))) else { return };
        let Some((source, from)) = source.and_then(|it| graph.layer(it.layer).zip(graph.output(it))) else { return };
        let constant = CheckedConstant::converted(source, &self.place, to.element_type(), &self.weights);
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

    /// Records a new Convert between a layer whose type changes and one whose type does not.
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
            change.constant = CheckedConstant::stored(graph, constant, &self.place, types[1], &self.weights);
        }
    }

    /// Sets an attribute that names the type of a layer, from the first to the second type, and records the change.
    pub(crate) fn retype(
        &mut self,
        graph: &mut Edit<'_>,
        id: LayerId,
        attribute: &str,
        types: [ElementType; 2],
        reason: impl Into<String>,
    ) -> Result<(), EditError> {
        graph.set_attribute(id, attribute, types[1].name())?;
        if let Some(layer) = graph.layer(id) {
            let is_parameter = ops::kind(layer) == ops::LayerKind::Parameter;
            let action = if is_parameter { Action::Retyped } else { Action::Corrected };
            self.add(action, layer, types, reason);
        }
        Ok(())
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
