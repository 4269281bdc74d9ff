//! Building the replacement of a match.

use std::cell::Cell;

use typelift_promote::ElementType;

use super::bound::{Bound, same_value, self_describe};
use super::constant::default_type;
use super::evaluate::{Evaluator, Lack};
use super::losses::Losses;
use super::term::{AttributeTerm, AttributeValue, Function, LayerName, LayerTerm, Name, Rest, Side, TermKind, rows_of};
use super::values;
use crate::base::hash::HashMap;
use crate::edit::Edit;
use crate::model::graph::{EditError, Layer, LayerId, NewLayer, Output};
use crate::model::shape::Shape;
use crate::ops::values::array::{Array, Data};
use crate::ops::{self, AttrKind, LayerKind};
use crate::rewrite::notation::number;

/// Maximum number of elements of an added constant that is reused.
const MOST_SHARED: usize = 64;

pub(super) struct Build<'b, 'm> {
    pub(super) edit: &'b mut Edit<'m>,
    pub(super) side: &'b Side,
    pub(super) names: &'b [Name],
    pub(super) bound: &'b [Option<Bound>],
    pub(super) variables: &'b [Option<compact_str::CompactString>],
    pub(super) matched: &'b [Matched<'b>],
    /// True if an operation without an operation set is its newest revision. In a rule it is the matched one or the oldest.
    pub(super) takes_newest: bool,
    /// True if values of new constants may overflow or underflow.
    pub(super) may_overflow: bool,
    /// Constants that were added for other matches and can be reused.
    pub(super) constants: &'b mut Added,
    pub(super) added: Vec<LayerId>,
    /// Layers that were added for this match. Equal terms share a layer.
    pub(super) shared: Vec<(Ready, LayerId)>,
    pub(super) losses: Cell<Losses>,
    /// The name of the root, for default names of new layers.
    pub(super) scope: Option<String>,
}

/// Constants that a sweep added to a graph, and tensors that were found by name.
pub(super) type Added = HashMap<Key, Output>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Constant(ElementType, Vec<i64>, Vec<u8>),
    /// Name of a tensor of the graph.
    Named(String),
}

/// A layer that a term of the pattern matched.
pub(super) struct Matched<'b> {
    /// The position of the term.
    pub(super) at: usize,
    pub(super) term: &'b LayerTerm,
    pub(super) layer: Layer,
    pub(super) inputs: Vec<Output>,
    pub(super) is_root: bool,
}

/// Layer with its inputs, before it is added to the graph.
#[derive(Clone, PartialEq)]
pub(super) struct Ready {
    /// Possible revisions of the operation, the preferred one first.
    revisions: Vec<NewLayer>,
    inputs: Vec<Output>,
}

enum NewInput {
    Term(usize),
    Tensor(Output),
}

/// A shared one reuses an equal constant that was added before; another one has a default name inside of `scope`.
pub(super) fn constant(
    edit: &mut Edit<'_>,
    constants: &mut Added,
    array: &Array,
    share: bool,
    scope: Option<&str>,
) -> Result<Output, EditError> {
    let dims: Vec<_> = array.dims.iter().map(|&dim| dim as i64).collect();
    let bytes = array
        .encode()
        .ok_or_else(|| EditError::Other(format!("{} constants cannot be written", array.element_type)))?;
    if !share {
        return match scope {
            Some(scope) => edit.constant_inside(scope, array.element_type, &dims, &bytes),
            None => edit.constant(array.element_type, &dims, &bytes),
        };
    }
    let key = Key::Constant(array.element_type, dims.clone(), bytes.clone());
    if let Some(&known) = constants.get(&key).filter(|known| edit.layer(known.layer).is_some()) {
        return Ok(known);
    }
    let output = edit.constant(array.element_type, &dims, &bytes)?;
    constants.insert(key, output);
    Ok(output)
}

/// Element types of the constants from which a new one is computed.
#[derive(Default)]
struct ConstantTypes {
    types: Vec<ElementType>,
    /// A Convert that widens one of these constants.
    widening: Option<LayerId>,
}

impl ConstantTypes {
    /// `None` if that type cannot represent every value exactly: the layers that use the constant compute in the wider
    /// type.
    fn narrowed(&self, array: &Array) -> Option<(LayerId, Array)> {
        let narrowest = *self.types.iter().min_by_key(|ty| ty.bits())?;
        let stored = array.converted(narrowest).filter(|_| narrowest.bits() < array.element_type.bits())?;
        Losses::of_conversion(array, &stored).is_empty().then_some((self.widening?, stored))
    }
}

impl Build<'_, '_> {
    /// Replaces `root` in place by the layer of a term. If the term is no layer, returns the tensor that replaces the
    /// root.
    pub(super) fn build_root(
        &mut self,
        term: usize,
        root: LayerId,
        expected: Option<ElementType>,
    ) -> Result<Option<Output>, EditError> {
        let TermKind::Layer(layer) = &self.side.terms[self.chosen(term)].kind else {
            return self.build_tensor(term, expected).map(Some);
        };
        if layer.output != 0 {
            return self.build_tensor(term, expected).map(Some);
        }
        let ready = self.ready(layer, expected, true)?;
        self.first_of(ready, |edit, new, inputs| edit.replace_in_place(root, new, inputs)).map(|()| None)
    }

    /// Builds the tensors of all roots. The layer of a root is never shared, because it gives an output of the model
    /// its name.
    pub(super) fn build_all(&mut self, expected: Option<ElementType>) -> Result<Vec<Output>, EditError> {
        let mut tensors = Vec::new();
        for &term in &self.side.roots {
            if let Some(list) = self.list(term) {
                tensors.extend_from_slice(list);
            } else if let TermKind::Layer(layer) = &self.side.terms[self.chosen(term)].kind {
                let ready = self.ready(layer, None, false)?;
                tensors.push(self.add(ready)?.output(layer.output));
            } else {
                tensors.push(self.build_tensor(term, expected)?);
            }
        }
        Ok(tensors)
    }

    /// Of several alternative operations, the one that the pattern matched.
    fn chosen(&self, term: usize) -> usize {
        let TermKind::Either(branches) = &self.side.terms[term].kind else { return term };
        let used = branches.iter().map(|branch| branch.term).find(|term| match &self.side.terms[*term].kind {
            TermKind::Layer(layer) => self.matched.iter().any(|matched| layer.same_as == Some(matched.at)),
            _ => false,
        });
        used.unwrap_or(term)
    }

    fn tensor_named(&mut self, name: &str) -> Result<Output, EditError> {
        let key = Key::Named(name.to_owned());
        if let Some(&known) = self.constants.get(&key).filter(|known| self.edit.layer(known.layer).is_some()) {
            return Ok(known);
        }
        let found = self.edit.tensor(name).map_err(EditError::Find)?;
        self.constants.insert(key, found);
        Ok(found)
    }

    fn fold(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        let tensor = self.build_input(term, expected)?;
        let array = values::computed(self.edit, self.edit.weights(), tensor).map_err(EditError::Other)?;
        let output = constant(self.edit, self.constants, &array, array.len() <= MOST_SHARED, self.scope.as_deref())?;
        self.added.push(output.layer);
        Ok(output)
    }

    fn name_of(&self, name: &LayerName) -> Result<String, EditError> {
        Ok(match name {
            LayerName::Text(text) => text.clone(),
            LayerName::Variable(at) => {
                self.variables.get(*at).and_then(|it| it.as_deref()).unwrap_or_default().to_owned()
            }
            LayerName::All(parts) => parts.iter().map(|part| self.name_of(part)).collect::<Result<String, _>>()?,
            LayerName::Tensor(at) => {
                let tensor = self.bound[*at].as_ref().and_then(Bound::tensor);
                let layer = tensor.and_then(|tensor| self.edit.layer(tensor.layer));
                let unknown = || EditError::Other(format!("`{}` in a name is not a tensor", self.names[*at].text));
                layer.ok_or_else(unknown)?.name().to_owned()
            }
        })
    }

    pub(super) fn build_tensor(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        let term = self.chosen(term);
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } | TermKind::Else { name, .. }
                if matches!(self.bound[*name], Some(Bound::Tensor(_))) =>
            {
                let tensor = self.bound[*name].as_ref().and_then(Bound::tensor);
                tensor.ok_or_else(|| EditError::Other("a name of the rule has no value in this match".to_owned()))
            }
            TermKind::Else { name, otherwise } if self.bound[*name].is_none() => self.build_input(*otherwise, expected),
            TermKind::Tensor(name) => self.tensor_named(name),
            &TermKind::Fold(of) => self.fold(of, expected),
            TermKind::Layer(layer) => {
                let mut ready = self.ready(layer, None, false)?;
                let term = &self.side.terms[term];
                if let (true, Some(&ty)) = (rows_of(layer).is_empty(), term.element_types.first()) {
                    let shape = term.shape.clone().unwrap_or_else(Shape::dynamic);
                    for new in &mut ready.revisions {
                        *new = new.clone().with_output(ty, shape.clone());
                    }
                }
                Ok(self.build_layer(ready)?.output(layer.output))
            }
            _ => {
                let array = self.array(term, expected)?;
                self.put_like(term, &array, false)
            }
        }
    }

    fn build_layer(&mut self, ready: Ready) -> Result<LayerId, EditError> {
        if let Some(&(_, id)) = self.shared.iter().find(|(known, _)| *known == ready) {
            return Ok(id);
        }
        let id = self.add(ready.clone())?;
        self.shared.push((ready, id));
        Ok(id)
    }

    fn add(&mut self, mut ready: Ready) -> Result<LayerId, EditError> {
        if let Some(scope) = &self.scope {
            ready.revisions = ready.revisions.into_iter().map(|new| new.inside(scope)).collect();
        }
        let id = self.first_of(ready, |edit, new, inputs| edit.add(new, inputs))?;
        self.added.push(id);
        Ok(id)
    }

    /// Removes factors and summands that are absent in this match.
    fn simplest(&self, mut term: usize) -> usize {
        let is_absent = |term: usize| match &self.side.terms[term].kind {
            TermKind::Name { name, .. } => self.bound[*name].is_none() && self.names[*name].neutral.is_some(),
            _ => false,
        };
        loop {
            let of = match &self.side.terms[term].kind {
                TermKind::Compute(Function::Multiply | Function::Add, of) => of,
                TermKind::Compute(Function::Reshape, of) if self.has_shape(of[0], of[1]) => {
                    term = of[0];
                    continue;
                }
                _ => return term,
            };
            let (left, right) = (self.simplest(of[0]), self.simplest(of[1]));
            term = match (is_absent(left), is_absent(right)) {
                (false, true) => left,
                (true, false) => right,
                _ => return term,
            };
        }
    }

    fn has_shape(&self, term: usize, dims: usize) -> bool {
        let TermKind::Name { name, .. } = self.side.terms[self.simplest(term)].kind else { return false };
        let port = self.bound[name].as_ref().and_then(Bound::tensor).and_then(|tensor| self.edit.output(tensor));
        let dims = self.evaluator().array(dims, Some(ElementType::I64)).map(|dims| dims.to_integers().into_vec());
        port.and_then(|port| port.shape().to_static()).is_some_and(|shape| Ok(shape) == dims)
    }

    /// Builds the tensor of a layer's input. Equal small constants are shared.
    fn build_input(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        let term = self.simplest(term);
        let evaluator = self.evaluator();
        let is_value = match &self.side.terms[term].kind {
            TermKind::Layer(_)
            | TermKind::Any
            | TermKind::List(_)
            | TermKind::Tensor(_)
            | TermKind::Either(_)
            | TermKind::Fold(_) => false,
            TermKind::Name { name, .. } => !matches!(self.bound[*name], Some(Bound::Tensor(_))),
            TermKind::Else { name, otherwise } => match self.bound[*name] {
                Some(Bound::Tensor(_)) => false,
                Some(_) => true,
                None => evaluator.is_free(*otherwise),
            },
            _ => true,
        };
        if !is_value {
            return self.build_tensor(term, expected);
        }
        let array = self.array(term, expected)?;
        self.put_like(term, &array, array.len() <= MOST_SHARED)
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new((self.edit, self.edit.weights()), self.side, self.names, self.bound, self.variables)
    }

    /// Adds a constant. It is stored in the narrowest type of its source constants if that keeps all values.
    fn put_like(&mut self, term: usize, array: &Array, share: bool) -> Result<Output, EditError> {
        let is_written = self.evaluator().is_free(term);
        if !is_written && !self.may_overflow && array.to_floats().iter().any(|value| !value.is_finite()) {
            let message = "a new constant is infinite or not a number; `allow overflow` permits this";
            return Err(EditError::Other(message.to_owned()));
        }
        let mut storage = ConstantTypes::default();
        if array.len() > 1 {
            self.find_storage(term, &mut storage);
        }
        let Some((convert, stored)) = storage.narrowed(array) else { return self.put(array, share) };
        let stored = self.put(&stored, share)?;
        let id = self.edit.add(NewLayer::convert(array.element_type), &[stored])?;
        self.edit.copy_metadata(convert, id)?;
        self.added.push(id);
        Ok(id.output(0))
    }

    /// Collects the element types of the constants on which a term depends. Numbers in the rule have none.
    fn find_storage(&self, term: usize, storage: &mut ConstantTypes) {
        match &self.side.terms[term].kind {
            TermKind::Compute(_, of) => of.iter().for_each(|&term| self.find_storage(term, storage)),
            TermKind::Name { name, .. } | TermKind::Else { name, .. } => match &self.bound[*name] {
                Some(Bound::Tensor(tensor)) => {
                    let widened = self.widened(*tensor);
                    storage.widening = storage.widening.or(widened.map(|(convert, _)| convert));
                    storage.types.push(widened.map_or_else(|| self.type_of(Some(*tensor)), |(_, from)| from));
                }
                Some(Bound::Values(values)) => storage.types.push(values.element_type),
                _ => {}
            },
            _ => {}
        }
    }

    fn widened(&self, tensor: Output) -> Option<(LayerId, ElementType)> {
        let layer = self.edit.layer(tensor.layer).filter(|layer| values::is_conversion(layer))?;
        let narrow = self.edit.producers(layer.id()).first().copied().flatten()?;
        let is_stored = self.edit.layer(narrow.layer).is_some_and(|from| ops::kind(from) == LayerKind::Constant);
        let (from, to) = (self.type_of(Some(narrow)), self.type_of(Some(tensor)));
        (is_stored && from.is_float() && from.bits() < to.bits()).then_some((layer.id(), from))
    }

    fn put(&mut self, array: &Array, share: bool) -> Result<Output, EditError> {
        let output = constant(self.edit, self.constants, array, share, self.scope.as_deref())?;
        self.added.push(output.layer);
        Ok(output)
    }

    /// Prepares the inputs of a layer. Numbers come last, because they get the type of the other inputs.
    fn ready(&mut self, term: &LayerTerm, expected: Option<ElementType>, is_root: bool) -> Result<Ready, EditError> {
        let given = self.given(term)?;
        let mut inputs = Vec::with_capacity(given.len());
        for given in &given {
            inputs.push(match *given {
                NewInput::Tensor(tensor) => Some(tensor),
                NewInput::Term(at) if self.evaluator().is_free(at) => None,
                NewInput::Term(at) => Some(self.build_input(at, None)?),
            });
        }
        let mut types: Vec<_> = inputs.iter().map(|input| self.type_of(*input)).collect();
        for (at, given) in given.into_iter().enumerate() {
            if let (None, NewInput::Term(free)) = (inputs[at], given) {
                let ty = self.type_for(term, at, free, &types, expected)?;
                inputs[at] = Some(self.build_input(free, Some(ty))?);
                types[at] = ty;
            }
        }
        let mut inputs: Vec<_> = inputs.into_iter().flatten().collect();
        if let Some(matched) = self.matched_by(term.more_inputs) {
            inputs.extend_from_slice(&matched.inputs[matched.term.inputs.len()..]);
        }
        let mut revisions = self.revisions(term, inputs.len(), is_root)?;
        if let Some(name) = &term.name {
            let name = self.name_of(name)?;
            revisions = revisions.into_iter().map(|new| new.named(&name)).collect();
        }
        Ok(Ready { revisions, inputs })
    }

    fn given(&self, term: &LayerTerm) -> Result<Vec<NewInput>, EditError> {
        let is_absent = |at: usize| matches!(self.evaluator().array_or_tensor(at), Err(Lack::Absent));
        let count = term.inputs.iter().position(|&at| is_absent(at)).unwrap_or(term.inputs.len());
        if term.inputs[count..].iter().all(|&at| is_absent(at)) {
            let mut given = Vec::with_capacity(count);
            for &at in &term.inputs[..count] {
                match self.list(at) {
                    Some(tensors) => given.extend(tensors.iter().copied().map(NewInput::Tensor)),
                    None => given.push(NewInput::Term(at)),
                }
            }
            return Ok(given);
        }
        Err(EditError::Other(format!("an input of {} is missing, but a later one is present", term.operation)))
    }

    fn list(&self, term: usize) -> Option<&[Output]> {
        match self.side.terms[term].kind {
            TermKind::List(name) => self.bound[name].as_ref().map(Bound::tensors),
            _ => None,
        }
    }

    /// The layer that `...` refers to, if it was matched.
    fn matched_by(&self, rest: Rest) -> Option<&Matched<'_>> {
        self.matched.iter().find(|matched| rest == Rest::Of(matched.at))
    }

    fn type_of(&self, output: Option<Output>) -> ElementType {
        output.and_then(|output| self.edit.output(output)).map_or(ElementType::Dynamic, |port| port.element_type())
    }

    fn type_for(
        &self,
        term: &LayerTerm,
        at: usize,
        free: usize,
        types: &[ElementType],
        expected: Option<ElementType>,
    ) -> Result<ElementType, EditError> {
        let rows = rows_of(term);
        let known = |ty: &ElementType| *ty != ElementType::Dynamic;
        let row = rows.iter().find(|row| row.input_counts().contains(&types.len())).or(rows.first());
        let whole = self.evaluator().is_whole(free);
        let Some(row) = row else { return Ok(types.iter().copied().find(known).unwrap_or(default_type(whole))) };
        let groups = row.ties.groups(types);
        let tied = groups.iter().find(|group| group.contains(&at));
        if let Some(ty) = tied.and_then(|group| group.iter().map(|&at| types[at]).find(known)) {
            return Ok(ty);
        }
        let float = || types.iter().copied().chain(expected).find(|ty| ty.is_float());
        Ok(match (tied, row.takes_only_floats(at)) {
            (Some(_), _) if expected.as_ref().is_some_and(known) => expected.unwrap_or(ElementType::F32),
            (_, true) => float().unwrap_or(ElementType::F32),
            (_, false) if whole => ElementType::I64,
            (_, false) => float().unwrap_or(ElementType::F32),
        })
    }

    /// The matched layer from which a new one copies all attributes that the rule does not mention.
    fn source_of_attributes(&self, term: &LayerTerm, is_root: bool) -> Result<Option<&Matched<'_>>, EditError> {
        if term.more_attributes != Rest::None {
            return Ok(self.matched_by(term.more_attributes));
        }
        let mut same = self.matched.iter().filter(|matched| matched.term.operation == term.operation);
        let Some(first) = same.next() else { return Ok(None) };
        // The layer at the root is preferred.
        if is_root && first.is_root {
            return Ok(Some(first));
        }
        let open = first.open_attributes(term);
        match same.find(|other| other.open_attributes(term) != open) {
            None => Ok(Some(first)),
            Some(other) => {
                let (first, other, operation) =
                    (self_describe(&first.layer), self_describe(&other.layer), &term.operation);
                let message = format!(
                    "the attributes of {first} and {other} differ; write the attributes of the new {operation}"
                );
                Err(EditError::Other(message))
            }
        }
    }

    fn revisions(&self, term: &LayerTerm, inputs: usize, is_root: bool) -> Result<Vec<NewLayer>, EditError> {
        let rows = rows_of(term);
        let same = self.matched.iter().find(|matched| matched.term.operation == term.operation);
        let mut versions: Vec<String> = match &term.version {
            Some(version) => vec![version.clone()],
            None => rows.iter().filter_map(|row| row.opsets().next().map(|opset| format!("opset{opset}"))).collect(),
        };
        versions.sort_by_key(|version| version.trim_start_matches("opset").parse::<u8>().unwrap_or(u8::MAX));
        if let (None, Some(Matched { layer, term: LayerTerm { version: None, .. }, .. })) = (&term.version, same) {
            versions.retain(|version| version != layer.version());
            versions.insert(0, layer.version().to_owned());
        }
        let ty = rows.first().map_or(term.operation.as_str(), |row| ops::file_spelling(row.name));
        let written = term.attributes.iter().map(|attribute| {
            let value = match &attribute.value {
                AttributeValue::Text(text) => text.clone(),
                AttributeValue::Variable(at) => self.variables[*at].as_deref().unwrap_or_default().to_owned(),
                AttributeValue::Term(at) => self.attribute_text(&rows, &attribute.name, *at)?,
            };
            Ok((attribute.name.as_str(), value))
        });
        let written: Vec<_> = written.collect::<Result<_, EditError>>()?;
        let source = self.source_of_attributes(term, is_root)?;
        let new = |version: &String| {
            let row = ops::lookup(ty, version);
            if row.is_some_and(|row| !row.input_counts().contains(&inputs)) {
                return Err(format!("{ty}-{version} does not accept {inputs} inputs"));
            }
            let known = |name: &str| row.is_none_or(|row| row.attribute(name).is_some());
            if let Some((name, _)) = written.iter().find(|(name, _)| !known(name)) {
                return Err(format!("{ty}-{version} does not have `{name}`"));
            }
            let taken = source.map_or(Ok(Vec::new()), |source| source.attributes_for(term, row))?;
            let written = written.iter().map(|(name, value)| (*name, value.as_str()));
            let attributes = taken.into_iter().chain(written);
            Ok(attributes.fold(NewLayer::new(ty, version), |new, (name, value)| new.with_attribute(name, value)))
        };
        let (mut fitting, mut fault) = (Vec::new(), None);
        for version in &versions {
            match new(version) {
                Ok(new) => fitting.push(new),
                Err(reason) => fault = Some(reason),
            }
        }
        if self.takes_newest {
            fitting.reverse();
        }
        match fault {
            Some(reason) if fitting.is_empty() => Err(EditError::Other(reason)),
            _ => Ok(fitting),
        }
    }

    /// Makes an edit with the first revision that accepts these inputs.
    fn first_of<T>(
        &mut self,
        ready: Ready,
        mut edits: impl FnMut(&mut Edit<'_>, NewLayer, &[Output]) -> Result<T, EditError>,
    ) -> Result<T, EditError> {
        let mut refusal = None;
        for new in ready.revisions {
            match edits(self.edit, new, &ready.inputs) {
                Err(error @ EditError::Refused { .. }) => refusal = refusal.or(Some(error)),
                done => return done,
            }
        }
        Err(refusal.unwrap_or_else(|| EditError::Other("no revision fits".to_owned())))
    }

    fn array(&self, term: usize, expected: Option<ElementType>) -> Result<Array, EditError> {
        let evaluator = self.evaluator();
        let found = evaluator.array(term, expected).map_err(refusal)?;
        self.lose(evaluator.losses.get())?;
        Ok(found)
    }

    /// Counts what new constants lose.
    ///
    /// # Errors
    /// Arithmetic leaves the range of its type, and the rule does not allow that.
    fn lose(&self, lost: Losses) -> Result<(), EditError> {
        if lost.leaves_range() && !self.may_overflow {
            return Err(EditError::Other(lost.refusal()));
        }
        let mut losses = self.losses.get();
        losses += lost;
        self.losses.set(losses);
        Ok(())
    }

    fn attribute_text(&self, rows: &[&ops::Operation], name: &str, term: usize) -> Result<String, EditError> {
        let array = Evaluator { plain: true, ..self.evaluator() }.array(term, None).map_err(refusal)?;
        let kind = rows.iter().find_map(|row| row.attribute(name)).map(|attribute| attribute.kind);
        let is_list = matches!(kind, Some(AttrKind::Ints | AttrKind::UnsignedInts | AttrKind::Floats));
        if array.len() != 1 && !is_list {
            return Err(EditError::Other(format!("`{name}` must be one number, but has {}", array.len())));
        }
        if array.to_floats().iter().any(|value| !value.is_finite()) {
            return Err(EditError::Other(format!("`{name}` would be infinite or not a number")));
        }
        let texts: Vec<String> = match &array.data {
            Data::Ints(values) => values.iter().map(|value| value.to_string()).collect(),
            Data::Floats(values) => values.iter().map(|&value| shortest(value)).collect(),
        };
        Ok(texts.join(", "))
    }
}

/// The shortest text that reads as a number: as one of f32, if it is one.
fn shortest(value: f64) -> String {
    let single = f64::from(value as f32);
    number(if single == value { ElementType::F32 } else { ElementType::F64 }, value)
}

fn refusal(lack: Lack) -> EditError {
    EditError::Other(match lack {
        Lack::Absent => "a name of the rule is absent in this match".to_owned(),
        Lack::Reason(reason) | Lack::False(reason) => reason,
    })
}

impl Matched<'_> {
    /// The attributes that a new layer copies, if it has this revision.
    ///
    /// # Errors
    /// An attribute that the revision lacks, if it differs from its default and the pattern does not mention it.
    fn attributes_for(&self, new: &LayerTerm, row: Option<&ops::Operation>) -> Result<Vec<(&str, &str)>, String> {
        let all = new.more_attributes != Rest::None;
        let mut taken = Vec::new();
        for (name, value) in self.attributes().filter(|(name, _)| !is_in(&new.attributes, name)) {
            let asked = is_in(&self.term.attributes, name);
            let of_operation = self.row().is_none_or(|own| own.attribute(name).is_some());
            if row.is_some_and(|row| row.attribute(name).is_none()) && of_operation {
                if !asked && !self.is_default(name, value) {
                    let layer = self_describe(&self.layer);
                    return Err(format!(
                        "{layer} has {name}={value}, which the new {} does not support",
                        new.operation
                    ));
                }
            } else if all || !asked {
                taken.push((name, value));
            }
        }
        Ok(taken)
    }

    fn open_attributes(&self, new: &LayerTerm) -> Vec<(&str, &str)> {
        let says = |name: &str| is_in(&self.term.attributes, name) || is_in(&new.attributes, name);
        self.attributes().filter(|(name, value)| !says(name) && !self.is_default(name, value)).collect()
    }

    fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.layer.attributes().iter().map(|attribute| (attribute.name(), attribute.value()))
    }

    fn row(&self) -> Option<&'static ops::Operation> {
        self.layer.operation()
    }

    fn is_default(&self, name: &str, value: &str) -> bool {
        let attribute = self.row().and_then(|row| row.attribute(name));
        attribute.is_some_and(|known| known.default.is_some_and(|default| same_value(default, value, Some(known.kind))))
    }
}

fn is_in(attributes: &[AttributeTerm], name: &str) -> bool {
    attributes.iter().any(|attribute| attribute.name == name)
}
