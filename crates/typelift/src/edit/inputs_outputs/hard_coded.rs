//! Detection of constant target shapes of Reshape that do not fit an input's new shape.

use typelift_promote::ElementType;

use crate::base::quoted::Quoted;
use crate::base::span::Span;
use crate::findings::{Code, Diagnostic, LayerRef, Text, message};
use crate::infer::infer;
use crate::model::graph::{Layer, LayerId, Model, Output, Place};
use crate::model::shape::Dim;
use crate::ops::{self, LayerKind};
use crate::text::xml::{declared_dims, locate};

impl Model {
    /// Returns a warning for each Reshape whose constant target shape fits the input's shape in the file, but not its
    /// new one. The Reshape keeps the old length, or fails at run time. A Reshape after such a one is judged as if that
    /// adapted. Only the model's own graph is checked. Types and shapes must be inferred.
    ///
    /// # Examples
    /// ```
    /// # use typelift::{infer, Model, Weights};
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
    /// assert_eq!(model.hard_coded_shapes()[0].message.to_string(), "`y` has the hard-coded target shape [1, 4], but its input now has the shape [?,4]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hard_coded_shapes(&self) -> Vec<Diagnostic> {
        self.hard_coded(&|tensor| self.declared_lengths(tensor)).0.into_iter().map(HardCoded::into_finding).collect()
    }

    /// The statements with which the target shapes of Reshapes adapt to the new shapes of inputs, if all types and
    /// shapes can be inferred then: `set shape = [-1, 64, 100]`.
    pub(crate) fn adapting_statements(&self) -> Vec<String> {
        let (found, trial) = self.hard_coded(&|tensor| self.declared_lengths(tensor));
        statements(&found).filter(|_| found.is_empty() || trial.is_some()).unwrap_or_default()
    }

    /// The statements with which the target shapes of Reshapes no longer need the lengths `was` of tensors, and the model
    /// after them, if all types and shapes can be inferred then.
    pub(crate) fn opening_statements(&self, was: &dyn Fn(Output) -> Option<Vec<i64>>) -> Option<(Vec<String>, Self)> {
        let (found, trial) = self.hard_coded(was);
        Some((statements(&found)?, trial?))
    }

    fn declared_lengths(&self, tensor: Output) -> Option<Vec<i64>> {
        let port = self.graph.output(tensor).filter(|port| port.content != Span::default())?;
        Some(declared_dims(&self.source, port.content).into_vec())
    }

    /// Finds hard-coded target shapes for tensors that had the lengths `was`, one after the other, in a copy in which
    /// those found before adapt. Also returns the copy if it has no errors at the end.
    fn hard_coded(&self, was: &dyn Fn(Output) -> Option<Vec<i64>>) -> (Vec<HardCoded>, Option<Self>) {
        let is_reshape = |layer: &&Layer| layer.operation().is_some_and(|row| row.name == "Reshape");
        let find = |model: &Self| -> Vec<HardCoded> {
            model.graph.layers().filter(is_reshape).filter_map(|layer| model.baked_in(layer, was)).collect()
        };
        let mut found = find(self);
        let (mut known, mut is_sound) = (0, false);
        let mut trial: Option<Self> = None;
        while known < found.len() {
            let trial = trial.get_or_insert_with(|| self.clone());
            if found[known..].iter().any(|it| it.adapt(trial).is_none()) {
                return (found, None);
            }
            known = found.len();
            is_sound = !infer(trial).iter().any(Diagnostic::is_error);
            let more: Vec<_> =
                find(trial).into_iter().filter(|it| found.iter().all(|known| known.constant != it.constant)).collect();
            found.extend(more);
        }
        (found, trial.filter(|_| is_sound))
    }

    fn baked_in(&self, layer: &Layer, was: &dyn Fn(Output) -> Option<Vec<i64>>) -> Option<HardCoded> {
        let feeds = self.graph.feeds(layer.id());
        let &[Some((data, port)), Some((constant, _))] = &feeds[..] else { return None };
        let (element_type, count) = constant.stored_as().filter(|_| ops::kind(constant) == LayerKind::Constant)?;
        let lengths = constant.values(&self.weights, element_type, count)?.to_integers().into_vec();
        let incoming = data.outputs().get(port)?.shape();
        let (was, is) = (was(data.id().output(port))?, incoming.dims()?);
        let copies = layer.attribute("special_zero") == Some("true");
        let (axis, freed) = freed(&lengths, &was, is, copies)?;
        // With a -1 only a zero can copy the length.
        let copier = freed
            .as_ref()
            .is_some_and(|freed| !copies && freed[axis] == 0)
            .then(|| (layer.id(), layer.name().to_owned()));
        let message = message!(
            "`{}` has the hard-coded target shape {}, but its input now has the shape {}";
            layer.name(), Text(format_args!("{lengths:?}")), incoming
        );
        let place = locate(&self.source, layer.span().unwrap_or_default(), "layer", "name");
        let label = message!("axis {} has the fixed length {}"; axis, lengths[axis]);
        let found = Diagnostic::new(Code::HardCodedShape, message).at(place, label);
        let finding = Diagnostic { layer: Some(LayerRef::of(&Place::default(), layer)), ..found };
        Some(HardCoded {
            finding,
            constant: constant.id(),
            name: constant.name().to_owned(),
            element_type,
            freed,
            copier,
        })
    }
}

/// Constant target shape that does not fit an input's new shape.
struct HardCoded {
    finding: Diagnostic,
    constant: LayerId,
    name: String,
    element_type: ElementType,
    /// The target shape that adapts, if there is one.
    freed: Option<Vec<i64>>,
    /// The Reshape that must copy lengths at zeros, by id and name.
    copier: Option<(LayerId, String)>,
}

impl HardCoded {
    fn statements(&self) -> Option<Vec<String>> {
        let copies = self.copier.as_ref().map(|(_, name)| format!("set {}.special_zero = true", Quoted::name(name)));
        let set = format!("set {} = {:?}", Quoted::name(&self.name), self.freed.as_ref()?);
        Some(std::iter::once(set).chain(copies).collect())
    }

    fn into_finding(self) -> Diagnostic {
        let help = match self.statements().as_deref() {
            Some([statement]) => message!("make it adapt with the statement `{}`"; statement),
            Some(all) => message!("make it adapt with the statements `{}`"; Text(all.join("; "))),
            None => "compute the target shape with ShapeOf, or keep the old length".into(),
        };
        self.finding.help(help)
    }

    /// Makes the target shape of a model adapt. `None` if that fails.
    fn adapt(&self, model: &mut Model) -> Option<()> {
        let lengths = self.freed.as_ref()?;
        let bytes: Vec<u8> = match self.element_type {
            ElementType::I64 => lengths.iter().flat_map(|length| length.to_le_bytes()).collect(),
            ElementType::I32 => lengths.iter().flat_map(|&length| (length as i32).to_le_bytes()).collect(),
            _ => return None,
        };
        let dims = [lengths.len() as i64];
        let copier = self.copier.as_ref().map(|(id, _)| *id);
        let edited = model.edit(|graph| {
            copier.map(|id| graph.set_attribute(id, "special_zero", "true")).transpose()?;
            graph.set_constant(self.constant, self.element_type, &dims, &bytes)
        });
        edited.ok()
    }
}

/// The statements of all target shapes; `None` if one of them cannot adapt.
fn statements(found: &[HardCoded]) -> Option<Vec<String>> {
    let all: Vec<Vec<String>> = found.iter().map(HardCoded::statements).collect::<Option<_>>()?;
    Some(all.concat())
}

/// An axis whose length the target shape fixes although the input's length has changed, and a target shape that adapts,
/// if there is one.
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
        Some(axis) if absorbs => Some((axis, with(axis, 0).filter(|_| !lengths.contains(&0)))),
        Some(axis) => Some((axis, with(axis, -1))),
        // Without changed lengths, a target of fixed lengths fails if the number of elements changes.
        None if lengths.iter().all(|&length| length > 0) && is.iter().any(|dim| dim.value().is_none()) => {
            let axis = lengths.iter().position(|&length| length == 1)?;
            Some((axis, with(axis, -1)))
        }
        None => None,
    }
}
