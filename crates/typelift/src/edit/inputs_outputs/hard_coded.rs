//! Detection of constant target shapes of Reshape that do not fit an input's new shape.

use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, LayerRef};
use crate::model::graph::{Layer, Model, Place};
use crate::model::shape::Dim;
use crate::ops::{self, LayerKind};
use crate::text::xml::{declared_dims, locate};

impl Model {
    /// Returns a warning for each Reshape whose constant target shape fits the input's shape in the file, but not its
    /// new one. The Reshape keeps the old length, or fails at run time. Only the model's own graph is checked. Types
    /// and shapes must be inferred.
    ///
    /// # Examples
    /// ```
    /// # use typelift::{Model, Weights, infer};
    /// let mut model = Model::from_xml(r#"<net name="n" version="11"><layers>
    ///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="1,4" element_type="f32"/>
    ///         <output><port id="0" precision="FP32"><dim>1</dim><dim>4</dim></port></output></layer>
    ///     <layer id="1" name="shape" type="Const" version="opset1">
    ///         <data element_type="i64" shape="2" offset="0" size="16"/>
    ///         <output><port id="0" precision="I64"><dim>2</dim></port></output></layer>
    ///     <layer id="2" name="y" type="Reshape" version="opset1"><data special_zero="true"/>
    ///         <input><port id="0"/><port id="1"/></input>
    ///         <output><port id="2" precision="FP32"><dim>1</dim><dim>4</dim></port></output></layer>
    ///     <layer id="3" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer>
    /// </layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
    ///     <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
    ///     <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"#)?;
    /// model.set_weights(Weights::from_bytes([1_i64, 4].map(i64::to_le_bytes).concat()));
    /// model.set_inputs(&[], &[("x".to_owned(), "?,4".parse()?)])?;
    /// assert!(infer(&mut model).is_empty());
    /// assert_eq!(model.hard_coded_shapes()[0].message, "`y` has the hard-coded target shape [1, 4], but its input now has the shape [?,4]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hard_coded_shapes(&self) -> Vec<Diagnostic> {
        let is_reshape = |layer: &&Layer| layer.operation().is_some_and(|row| row.name() == "Reshape");
        self.graph.layers().filter(is_reshape).filter_map(|layer| self.baked_in(layer)).collect()
    }

    fn baked_in(&self, layer: &Layer) -> Option<Diagnostic> {
        let feeds = self.graph.feeds(layer.id());
        let &[Some((data, port)), Some((constant, _))] = &feeds[..] else { return None };
        let (element_type, count) = constant.stored_as().filter(|_| ops::kind(constant) == LayerKind::Constant)?;
        let lengths = constant.values(&self.weights, element_type, count)?.to_integers().into_vec();
        let port = data.outputs().get(port).filter(|port| port.content != Span::default())?;
        let (was, is) = (declared_dims(&self.source, port.content), port.shape().dims()?);
        let copies = layer.attribute("special_zero") == Some("true");
        let (axis, freed) = freed(&lengths, &was, is, copies)?;
        let incoming = port.shape();
        let message = format!(
            "`{}` has the hard-coded target shape {lengths:?}, but its input now has the shape {incoming}",
            layer.name()
        );
        let place = locate(&self.source, layer.span().unwrap_or_default(), "layer", "name");
        let label = format!("axis {axis} has the fixed length {}", lengths[axis]);
        let found = Diagnostic::new(Code::HardCodedShape, message).at(place, label);
        let found = Diagnostic { layer: Some(LayerRef::of(&Place::default(), layer)), ..found };
        Some(found.help(match freed {
            Some(freed) => {
                format!("make it adapt with the statement `set {} = {freed:?}`", constant.name())
            }
            None => "compute the target shape with ShapeOf, or keep the old length".to_owned(),
        }))
    }
}

/// Returns an axis whose length the target shape fixes although the input's length has changed, and a target shape
/// that adapts, if there is one.
fn freed(lengths: &[i64], was: &[i64], is: &[Dim], copies: bool) -> Option<(usize, Option<Vec<i64>>)> {
    let changed = |axis: usize| is[axis].value() != Some(was[axis]);
    if was.len() != is.len() || !(0..was.len()).any(changed) {
        return None;
    }
    let absorbs = lengths.contains(&-1);
    let with = |axis: usize, length: i64| {
        let mut freed = lengths.to_vec();
        freed[axis] = length;
        Some(freed)
    };
    let kept =
        (0..lengths.len().min(was.len())).find(|&axis| lengths[axis] == was[axis] && was[axis] > 0 && changed(axis));
    match kept {
        Some(axis) if copies => Some((axis, with(axis, 0))),
        Some(axis) => Some((axis, if absorbs { None } else { with(axis, -1) })),
        // Without changed lengths, a target of fixed lengths fails if the number of elements changes.
        None if lengths.iter().all(|&length| length > 0) && is.iter().any(|dim| dim.value().is_none()) => {
            let axis = lengths.iter().position(|&length| length == 1)?;
            Some((axis, with(axis, -1)))
        }
        None => None,
    }
}
