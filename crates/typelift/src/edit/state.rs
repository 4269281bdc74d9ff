//! Edits that turn inputs and outputs into variables, and back.

use typelift_promote::ElementType;

use super::Edit;
use crate::base::hash::HashSet;
use crate::model::graph::{EditError, Graph, Input, Layer, LayerId, LayerMap, Model, NewLayer, Output};
use crate::model::shape::{Dim, Shape, TensorType};
use crate::ops::{self, LayerKind};

/// An input and the output that provides its value for the next run. Together they can become a variable.
#[derive(Clone, Debug)]
pub struct StatePair {
    /// The Parameter.
    pub past: LayerId,
    /// The Result.
    pub present: LayerId,
    /// The `variable_id`. OpenVINO's own transformation joins the names of the input and of the output.
    pub variable: String,
}

impl Model {
    /// Returns the variables of the model's own graph, each with its type, in the order of their ReadValues.
    pub fn state(&self) -> Vec<(String, TensorType)> {
        let reads = self.graph.layers().filter(|layer| ops::kind(layer) == LayerKind::ReadValue);
        let variable =
            |layer: &Layer| Some((layer.attribute("variable_id")?.to_owned(), layer.outputs().first()?.tensor_type()));
        reads.filter_map(variable).collect()
    }
}

/// The variables that layers of this kind, ReadValue or Assign, have in a graph. Layers on which no Result and
/// no Assign depends do not count, because OpenVINO drops them.
pub(crate) fn variables(graph: &Graph, kind: LayerKind) -> HashSet<String> {
    let starts = graph.unordered().filter(|layer| matches!(ops::kind(layer), LayerKind::Result | LayerKind::Assign));
    let mut read = LayerMap::new(graph);
    graph.mark_upstream(starts.map(Layer::id), &mut read);
    let own = graph.unordered().filter(|layer| ops::kind(layer) == kind && read.get(layer.id()).is_some());
    own.filter_map(|layer| layer.attribute("variable_id").map(str::to_owned)).collect()
}

/// The input that gives the length of the variables' first axis, and that length once a layer computes it.
struct BatchLength {
    input: Option<Output>,
    length: Option<Output>,
    /// True for the indices that reorder the variables, which have one axis.
    is_beam: bool,
}

impl Edit<'_> {
    /// Turns pairs of input and output into variables: each Parameter becomes a ReadValue, and each Result an Assign.
    /// If `beam` is given, a Gather reorders axis 0 of each variable by these indices.
    ///
    /// A variable whose first dimension is unknown starts with zeros. Its first dimension is that of `beam`, or of the
    /// first other input with an unknown first dimension. An axis that a Concat extends starts with length 0.
    ///
    /// # Errors
    /// [`EditError::Other`] if an output does not have the type and shape of its input, or a layer is not an input or output.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// use typelift::edit::StatePair;
    /// let mut model = Model::from_text("
    ///     x = Parameter : f32[1,1,4]
    ///     past = Parameter : f32[1,?,4]
    ///     all = Concat(past, x) {axis=1}
    ///     present = Result(all)
    ///     sum = ReduceSum(all, axis) {keep_dims=true}
    ///     axis = Const(1) : i64[]
    ///     y = Result(sum)
    /// ")?;
    /// let (past, present) = (model.find_input("past")?, model.find_output("present")?);
    /// let variable = "pastpresent".to_owned();
    /// model.edit(|graph| graph.make_stateful(&[StatePair { past, present, variable }], None))?;
    /// assert_eq!(model.inputs().count(), 1);
    /// assert!(model.to_string().contains("past = ReadValue-6 {variable_id=pastpresent"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make_stateful(&mut self, pairs: &[StatePair], beam: Option<Output>) -> Result<Vec<LayerId>, EditError> {
        self.attempt(|edit| {
            let mut batch =
                BatchLength { input: beam.or_else(|| edit.open_input(pairs)), length: None, is_beam: beam.is_some() };
            pairs.iter().map(|pair| edit.make_variable(pair, beam, &mut batch)).collect()
        })
    }

    fn make_variable(
        &mut self,
        StatePair { past, present, variable }: &StatePair,
        beam: Option<Output>,
        batch: &mut BatchLength,
    ) -> Result<LayerId, EditError> {
        let (input, output) = (self.checked(*past)?, self.checked(*present)?);
        let refused = |reason: String| EditError::Other(reason);
        if ops::kind(input) != LayerKind::Parameter || ops::kind(output) != LayerKind::Result {
            let (input, output) = (input.name(), output.name());
            return Err(refused(format!("`{input}` and `{output}` are not an input and an output of the model")));
        }
        let name = input.name().to_owned();
        let given = self.producer(present.input(0)).ok_or(EditError::NoInput(present.input(0)))?;
        let (old, new) =
            (self.checked_output(past.output(0))?.tensor_type(), self.checked_output(given)?.tensor_type());
        if old.element_type != new.element_type || !old.shape.is_compatible(&new.shape) {
            let output = output.name();
            return Err(refused(format!("the input `{name}` has type {old}, but the output `{output}` has {new}")));
        }
        let attends = self.attends(past.output(0));
        let first = self.first_value(&old, given, attends, batch)?;
        let read = self.read_value(variable, &old).named(&name);
        let read = self.add(read, first.as_slice())?;
        let uses: Vec<_> = self.consumers(past.output(0)).collect();
        let mut tensor = read.output(0);
        if let Some(beam) = beam {
            let axis = self.constant_of(&[], &[0_i64])?;
            let gather = NewLayer::new("Gather", "opset8").named(&format!("{name}/reorder"));
            tensor = self.add(gather.with_attribute("batch_dims", 0), &[tensor, beam, axis])?.output(0);
        }
        self.connect_all(uses.into_iter().map(|input| (tensor, input)))?;
        self.move_names(past.output(0), read.output(0))?;
        let given = if given == past.output(0) { tensor } else { given };
        let assign = NewLayer::new("Assign", "opset6").named(&format!("{variable}/Assign"));
        self.add(assign.with_attribute("variable_id", variable), &[given])?;
        self.remove_all(&[*past, *present])?;
        Ok(read)
    }

    fn read_value(&self, variable: &str, tensor: &TensorType) -> NewLayer {
        NewLayer::new("ReadValue", "opset6")
            .with_attribute("variable_id", variable)
            .with_attribute("variable_type", tensor.element_type.name())
            .with_attribute("variable_shape", tensor.shape.to_attribute())
    }

    /// The zeros that a variable starts with, if OpenVINO cannot know its shape.
    fn first_value(
        &mut self,
        tensor: &TensorType,
        given: Output,
        attends: bool,
        batch: &mut BatchLength,
    ) -> Result<Option<Output>, EditError> {
        let Some(dims) = tensor.shape.dims().map(<[Dim]>::to_vec) else { return Ok(None) };
        let grows = self.growing_axis(given, dims.len());
        let is_open = |at: usize| dims[at].value().is_none() && Some(at) != grows;
        if dims.is_empty() || !is_open(0) || (1..dims.len()).any(is_open) {
            return Ok(None);
        }
        let Some(batch) = self.batch(batch)? else { return Ok(None) };
        let mut parts = vec![batch];
        for rest in dims[1..].chunk_by(|a, b| attends || a.value().is_some() == b.value().is_some()) {
            // openvino.genai and NPUs read the axis of a cache from a constant 0. The CPU plugin runs a constant 0 only in
            // the cache of an attention; elsewhere inference must not know the length.
            let lengths: Vec<_> = rest.iter().map(|dim| dim.value().unwrap_or(0)).collect();
            let is_open = rest.iter().any(|dim| dim.value().is_none()) && !attends;
            parts.push(match is_open {
                true => self.add(NewLayer::new("Subtract", "opset1"), &[batch, batch])?.output(0),
                false => self.constant_of(&[lengths.len() as i64], &lengths)?,
            });
        }
        let mut shape = batch;
        if parts.len() > 1 {
            shape = self.add(NewLayer::new("Concat", "opset1").with_attribute("axis", 0), &parts)?.output(0);
        }
        let zero = vec![0; tensor.element_type.bits().div_ceil(8) as usize];
        let zero = self.constant(tensor.element_type, &[], &zero)?;
        let broadcast = NewLayer::new("Broadcast", "opset3").with_attribute("mode", "numpy");
        Ok(Some(self.add(broadcast, &[zero, shape])?.output(0)))
    }

    fn growing_axis(&self, given: Output, rank: usize) -> Option<usize> {
        let concat =
            self.layer(given.layer).filter(|layer| layer.operation().is_some_and(|row| row.name == "Concat"))?;
        let axis: i64 = concat.attribute("axis")?.parse().ok()?;
        usize::try_from(if axis < 0 { axis + rank as i64 } else { axis }).ok()
    }

    fn open_input(&self, pairs: &[StatePair]) -> Option<Output> {
        let pasts: HashSet<_> = pairs.iter().map(|pair| pair.past).collect();
        let open = self.layers().find(|layer| {
            let dims = layer.outputs().first().and_then(|port| port.shape().dims());
            let is_unknown = dims.is_some_and(|dims| dims.first().is_some_and(|dim| dim.value().is_none()));
            ops::kind(layer) == LayerKind::Parameter && is_unknown && !pasts.contains(&layer.id())
        });
        open.map(|layer| layer.id().output(0))
    }

    /// The length of the variables' first axis, as a tensor with one number.
    fn batch(&mut self, batch: &mut BatchLength) -> Result<Option<Output>, EditError> {
        if batch.length.is_some() {
            return Ok(batch.length);
        }
        let Some(input) = batch.input else { return Ok(None) };
        let shape_of = NewLayer::new("ShapeOf", "opset3").with_attribute("output_type", "i64");
        let mut length = self.add(shape_of, &[input])?.output(0);
        if !batch.is_beam {
            let (place, axis) = (self.constant_of(&[1], &[0_i64])?, self.constant_of(&[], &[0_i64])?);
            let gather = NewLayer::new("Gather", "opset8").with_attribute("batch_dims", 0);
            length = self.add(gather, &[length, place, axis])?.output(0);
        }
        batch.length = Some(length);
        Ok(batch.length)
    }

    /// Turns a variable into an input and an output of these names: the reverse of
    /// [`make_stateful`](Self::make_stateful). Layers that only computed the first value are removed.
    ///
    /// # Errors
    /// [`EditError::Other`] if no layer or more than one reads or writes the variable, or its shape is unknown.
    ///
    /// # Examples
    /// ```
    /// use typelift::Model;
    /// let mut model = Model::from_text("
    ///     x = Parameter : f32[4]
    ///     old = ReadValue-6 {variable_id=v, variable_type=f32, variable_shape=\"4\"}
    ///     sum = Add(old, x)
    ///     a = Assign-6(sum) {variable_id=v}
    ///     y = Result(sum)
    /// ")?;
    /// model.edit(|graph| graph.make_stateless("v", "past", "present"))?;
    /// assert_eq!(model.inputs().count(), 2);
    /// assert!(model.find_input("past").is_ok() && model.find_output("present").is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn make_stateless(&mut self, variable: &str, past: &str, present: &str) -> Result<(), EditError> {
        let layers = self.variable(variable)?;
        self.make_stateless_at(layers, past, present)
    }

    pub(crate) fn make_stateless_at(
        &mut self,
        (read, assign): (LayerId, LayerId),
        past: &str,
        present: &str,
    ) -> Result<(), EditError> {
        let tensor = self.checked_output(read.output(0))?.tensor_type();
        let given = self.producer(assign.input(0)).ok_or(EditError::NoInput(assign.input(0)))?;
        self.attempt(|edit| {
            let parameter = NewLayer::new("Parameter", "opset1")
                .with_attribute("shape", tensor.shape.to_attribute())
                .with_attribute("element_type", tensor.element_type.name());
            let parameter = edit.add(parameter, &[])?;
            edit.set_names(parameter.output(0), Vec::new())?;
            let (before, after) = (edit.producers(read), edit.consumers(assign.output(0)).collect::<Vec<_>>());
            let uses: Vec<_> = edit.consumers(read.output(0)).collect();
            edit.connect_all(uses.into_iter().map(|input| (parameter.output(0), input)))?;
            edit.connect_all(after.into_iter().map(|input| (given, input)))?;
            edit.move_names(read.output(0), parameter.output(0))?;
            edit.remove_all(&[read, assign])?;
            let name = edit.unused_name(past.to_owned());
            edit.set_name(parameter, &name)?;
            let mut names = edit.checked_output(parameter.output(0))?.names();
            if !names.iter().any(|name| name == past) {
                names.push(past.to_owned());
                edit.set_names(parameter.output(0), names)?;
            }
            let given = if given == read.output(0) { parameter.output(0) } else { given };
            edit.expose(given, Some(present))?;
            edit.remove_unused(before.into_iter().flatten().map(|source| source.layer).filter(|id| *id != read))?;
            Ok(())
        })
    }

    fn variable(&self, variable: &str) -> Result<(LayerId, LayerId), EditError> {
        let of = |kind: LayerKind| {
            let is_it = |layer: &&Layer| ops::kind(layer) == kind && layer.attribute("variable_id") == Some(variable);
            let found: Vec<_> = self.layers().filter(is_it).map(Layer::id).collect();
            match found[..] {
                [only] => Ok(only),
                [] => Err(EditError::Other(format!("no {kind:?} has the variable `{variable}`"))),
                _ => Err(EditError::Other(format!("several {kind:?} have the variable `{variable}`"))),
            }
        };
        Ok((of(LayerKind::ReadValue)?, of(LayerKind::Assign)?))
    }

    /// Converts after its ReadValue and before its Assign keep the types of the other layers.
    pub(crate) fn set_variable(
        &mut self,
        variable: &str,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> Result<(), EditError> {
        let layers = self.variable(variable)?;
        self.set_variable_at(layers, variable, element_type, shape)
    }

    pub(crate) fn set_variable_at(
        &mut self,
        (read, assign): (LayerId, LayerId),
        variable: &str,
        element_type: Option<ElementType>,
        shape: Option<&Shape>,
    ) -> Result<(), EditError> {
        let old = self.checked_output(read.output(0))?.tensor_type();
        let new = TensorType {
            element_type: element_type.unwrap_or(old.element_type),
            shape: shape.cloned().unwrap_or_else(|| old.shape.clone()),
        };
        let first: Vec<_> = self.producers(read).into_iter().flatten().collect();
        self.attempt(|edit| {
            let is_same = new.element_type == old.element_type;
            // A Convert from or to the new type is not needed any more.
            let source = |edit: &Edit<'_>, tensor: Output| {
                let convert = edit.layer(tensor.layer).filter(|layer| ops::kind(layer) == LayerKind::Convert)?;
                let source = edit.producer(convert.id().input(0))?;
                (edit.output(source)?.element_type() == new.element_type).then_some(source)
            };
            let start = first.first().copied();
            let first = match start {
                Some(first) if !is_same => Some(match source(edit, first) {
                    Some(source) => source,
                    None => edit.add(NewLayer::convert(new.element_type), &[first])?.output(0),
                }),
                first => first,
            };
            let uses: Vec<_> = edit.consumers(read.output(0)).collect();
            let back = |edit: &Edit<'_>, input: &Input| {
                let convert = edit.layer(input.layer).filter(|layer| ops::kind(layer) == LayerKind::Convert);
                convert.is_some_and(|layer| layer.outputs().iter().all(|it| it.element_type() == new.element_type))
            };
            let users = |edit: &Edit<'_>, layer: LayerId| -> Vec<_> { edit.consumers(layer.output(0)).collect() };
            let is = |edit: &Edit<'_>, input: &Input, name: &str| {
                edit.layer(input.layer).and_then(|layer| layer.operation()).is_some_and(|row| row.name == name)
            };
            // A Gather that reorders the variable may stand before the Converts. A ShapeOf accepts any type.
            let accepts = |edit: &Edit<'_>, input: &Input| {
                let is_done = |user: &Input| back(edit, user) || is(edit, user, "ShapeOf");
                let reorders = is(edit, input, "Gather") && input.port == 0;
                is(edit, input, "ShapeOf") || reorders && users(edit, input.layer).iter().all(is_done)
            };
            let (mut backs, others): (Vec<_>, Vec<_>) = uses.into_iter().partition(|input| back(edit, input));
            let (reordered, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|input| accepts(edit, input));
            let written = edit.read_value(variable, &new);
            edit.replace_in_place(read, written, first.as_slice())?;
            if is_same {
                return Ok(());
            }
            if !others.is_empty() {
                edit.insert_after(read.output(0), NewLayer::convert(old.element_type), &[])?;
            }
            edit.connect_all(reordered.iter().map(|&input| (read.output(0), input)))?;
            let gathers = reordered.iter().filter(|input| is(edit, input, "Gather"));
            backs.extend(gathers.flat_map(|input| users(edit, input.layer)).filter(|user| back(edit, user)));
            for input in &backs {
                let gather = edit.producer(*input).filter(|from| reordered.iter().any(|it| it.layer == from.layer));
                let source = gather.unwrap_or(read.output(0));
                let uses = users(edit, input.layer);
                edit.connect_all(uses.into_iter().map(|input| (source, input)))?;
            }
            let given = edit.producer(assign.input(0));
            match given.and_then(|given| source(edit, given)) {
                Some(source) => edit.connect_all([(source, assign.input(0))])?,
                None => edit.insert_before(assign.input(0), NewLayer::convert(new.element_type), &[]).map(drop)?,
            }
            let unused = backs.iter().map(|input| input.layer).chain(given.map(|given| given.layer));
            let unused = unused.chain(start.map(|start| start.layer));
            edit.remove_unused(unused.filter(|id| edit.is(*id, LayerKind::Convert)).collect::<Vec<_>>()).map(drop)
        })
    }

    /// True if a cache reaches a ScaledDotProductAttention, through layers that only move or extend it.
    pub(crate) fn attends(&self, cache: Output) -> bool {
        const MOVES: [&str; 9] =
            ["Gather", "Concat", "Convert", "Unsqueeze", "Squeeze", "Broadcast", "Tile", "Reshape", "Transpose"];
        let (mut pending, mut seen) = (vec![cache], Vec::new());
        while let Some(tensor) = pending.pop() {
            for input in self.consumers(tensor) {
                let Some(row) = self.layer(input.layer).and_then(|layer| layer.operation()) else { continue };
                if row.name == "ScaledDotProductAttention" {
                    return true;
                }
                let moves = MOVES.contains(&row.name) && (input.port == 0 || row.name == "Concat");
                if moves && !seen.contains(&input.layer) {
                    seen.push(input.layer);
                    pending.push(input.layer.output(0));
                }
            }
        }
        false
    }
}
