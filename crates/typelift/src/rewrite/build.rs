//! Putting the right side of a rule into a graph.

use rustc_hash::FxHashMap;
use typelift_promote::ElementType;

use super::constant::{compute, default_type};
use super::matching::{same_value, self_describe};
use super::parse::rows_of;
use super::term::{AttributeTerm, AttributeValue, Function, LayerTerm, Rest, Side, TermKind};
use crate::array::Array;
use crate::edit::Edit;
use crate::graph::{EditError, Layer, LayerId, NewLayer, Output};
use crate::notation::Literal;
use crate::ops::{self, LayerKind};

/// Constants of more elements are not looked up among those that were added.
const MOST_SHARED: usize = 64;

/// A right side at work in a graph.
pub(super) struct Build<'b, 'm> {
    pub(super) edit: &'b mut Edit<'m>,
    pub(super) side: &'b Side,
    /// By name.
    pub(super) tensors: &'b [Option<Output>],
    pub(super) variables: &'b [Option<compact_str::CompactString>],
    /// The layers that were matched.
    pub(super) matched: &'b [Matched<'b>],
    /// What was added for other matches, to be used again.
    pub(super) constants: &'b mut Added,
    /// The layers that were added.
    pub(super) added: Vec<LayerId>,
    /// What they were made from, where terms that say the same share a layer.
    pub(super) shared: Option<Vec<(Ready, LayerId)>>,
}

/// The constants that a sweep adds to a graph: element type, dims and bytes of each, and its tensor.
pub(super) type Added = FxHashMap<(ElementType, Vec<u64>, Vec<u8>), Output>;

/// A layer that a term of the pattern matched.
pub(super) struct Matched<'b> {
    /// The term, by its position.
    pub(super) at: usize,
    pub(super) term: &'b LayerTerm,
    pub(super) layer: Layer,
    pub(super) inputs: Vec<Output>,
}

/// A layer with its inputs, which is not in the graph yet.
#[derive(Clone, PartialEq)]
pub(super) struct Ready {
    /// The revisions to try, the best first.
    revisions: Vec<NewLayer>,
    inputs: Vec<Output>,
}

impl Build<'_, '_> {
    /// Lets `root` become the layer of a term, or gives the tensor that takes its place.
    pub(super) fn build_root(
        &mut self,
        term: usize,
        root: LayerId,
        expected: Option<ElementType>,
    ) -> Result<Option<Output>, EditError> {
        let TermKind::Layer(layer) = &self.side.terms[term].kind else {
            return self.build_tensor(term, expected).map(Some);
        };
        if layer.output != 0 {
            return self.build_tensor(term, expected).map(Some);
        }
        let ready = self.ready(layer, expected, true)?;
        self.first_of(ready, |edit, new, inputs| edit.morph(root, new, inputs)).map(|()| None)
    }

    /// The tensor of a root of several, in a layer of its own: it gives an output of the model its name.
    pub(super) fn build_own(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        let TermKind::Layer(layer) = &self.side.terms[term].kind else { return self.build_tensor(term, expected) };
        let ready = self.ready(layer, None, false)?;
        Ok(self.add(ready)?.output(layer.output))
    }

    /// The tensor of a term, with what it takes to make it.
    pub(super) fn build_tensor(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } => {
                self.tensors[*name].ok_or_else(|| EditError::Other("a name of the rule is not bound".to_owned()))
            }
            TermKind::Layer(layer) => {
                let ready = self.ready(layer, None, false)?;
                Ok(self.build_layer(ready)?.output(layer.output))
            }
            TermKind::Literal(_) | TermKind::Compute(..) => {
                let array = self.array(term, expected)?;
                self.put(&array, false)
            }
            TermKind::Any => Err(EditError::Other("`_` is any tensor".to_owned())),
        }
    }

    /// A layer, of those that say the same one for all.
    fn build_layer(&mut self, ready: Ready) -> Result<LayerId, EditError> {
        if self.shared.is_none() {
            return self.add(ready);
        }
        if let Some(&(_, id)) = self.shared.iter().flatten().find(|(known, _)| *known == ready) {
            return Ok(id);
        }
        let id = self.add(ready.clone())?;
        self.shared.iter_mut().for_each(|shared| shared.push((ready.clone(), id)));
        Ok(id)
    }

    fn add(&mut self, ready: Ready) -> Result<LayerId, EditError> {
        let id = self.first_of(ready, |edit, new, inputs| edit.add(new, inputs))?;
        self.added.push(id);
        Ok(id)
    }

    /// The tensor of an input of a layer. Of small constants one is enough for all that ask for the same.
    fn build_input(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        match &self.side.terms[term].kind {
            TermKind::Literal(_) | TermKind::Compute(..) => {
                let array = self.array(term, expected)?;
                self.put(&array, array.len() <= MOST_SHARED)
            }
            _ => self.build_tensor(term, expected),
        }
    }

    fn put(&mut self, array: &Array, share: bool) -> Result<Output, EditError> {
        let dims: Vec<_> = array.dims.iter().map(|&dim| dim as u64).collect();
        let bytes = array
            .encode()
            .ok_or_else(|| EditError::Other(format!("{} constants cannot be written", array.element_type)))?;
        let key = (array.element_type, dims, bytes);
        if let Some(&known) = self.constants.get(&key).filter(|known| share && self.edit.layer(known.layer).is_some()) {
            return Ok(known);
        }
        let output = self.edit.constant(key.0, &key.1, &key.2)?;
        self.added.push(output.layer);
        if share {
            self.constants.insert(key, output);
        }
        Ok(output)
    }

    /// The inputs of a layer first, literals last: they take their type from the others.
    fn ready(&mut self, term: &LayerTerm, expected: Option<ElementType>, is_root: bool) -> Result<Ready, EditError> {
        let is_literal = |at: usize| matches!(self.side.terms[at].kind, TermKind::Literal(_)) || self.is_free(at);
        let later: Vec<bool> = term.inputs.iter().map(|&at| is_literal(at)).collect();
        let mut inputs = vec![None; term.inputs.len()];
        for (input, &at) in
            inputs.iter_mut().zip(&term.inputs).zip(&later).filter(|(_, later)| !**later).map(|(pair, _)| pair)
        {
            *input = Some(self.build_input(at, None)?);
        }
        let mut types: Vec<_> = inputs.iter().map(|input| self.type_of(*input)).collect();
        for at in 0..inputs.len() {
            if later[at] {
                let ty = self.type_for(term, at, &types, expected)?;
                inputs[at] = Some(self.build_input(term.inputs[at], Some(ty))?);
                types[at] = ty;
            }
        }
        let mut inputs: Vec<_> = inputs.into_iter().flatten().collect();
        if let Some(matched) = self.matched_by(term.more_inputs) {
            inputs.extend_from_slice(&matched.inputs[matched.term.inputs.len()..]);
        }
        Ok(Ready { revisions: self.revisions(term, inputs.len(), is_root)?, inputs })
    }

    /// The layer that `...` is about, if it was matched.
    fn matched_by(&self, rest: Rest) -> Option<&Matched<'_>> {
        self.matched.iter().find(|matched| rest == Rest::Of(matched.at))
    }

    /// Whether a term is arithmetic on literals alone.
    fn is_free(&self, at: usize) -> bool {
        match &self.side.terms[at].kind {
            TermKind::Literal(_) => true,
            TermKind::Compute(Function::ConvertTo(_), of) => of.iter().all(|&at| self.is_free(at)),
            TermKind::Compute(Function::Convert(to), of) => to.is_none() || of.iter().all(|&at| self.is_free(at)),
            TermKind::Compute(_, of) => of.iter().all(|&at| self.is_free(at)),
            TermKind::Any | TermKind::Name { .. } | TermKind::Layer(_) => false,
        }
    }

    fn type_of(&self, output: Option<Output>) -> ElementType {
        output.and_then(|output| self.edit.output(output)).map_or(ElementType::Dynamic, |port| port.element_type())
    }

    /// The type that an operation needs in an input, where the others have these.
    fn type_for(
        &self,
        term: &LayerTerm,
        at: usize,
        types: &[ElementType],
        expected: Option<ElementType>,
    ) -> Result<ElementType, EditError> {
        let rows = rows_of(term);
        let known = |ty: &ElementType| *ty != ElementType::Dynamic;
        let row = rows.iter().find(|row| row.input_counts().contains(&types.len())).or(rows.first());
        let whole = self.is_whole(term.inputs[at]);
        let Some(row) = row else { return Ok(types.iter().copied().find(known).unwrap_or(default_type(whole))) };
        let groups = row.tied_inputs().groups(types);
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

    fn is_whole(&self, at: usize) -> bool {
        match &self.side.terms[at].kind {
            TermKind::Literal(literal) => literal.is_whole(),
            TermKind::Compute(Function::Divide | Function::Sqrt | Function::Exp, _) => false,
            TermKind::Compute(_, of) => of.iter().all(|&at| self.is_whole(at)),
            TermKind::Any | TermKind::Name { .. } | TermKind::Layer(_) => false,
        }
    }

    /// The matched layer that a new one takes its other attributes from: what neither side of the rule says stays as it is.
    fn source_of_attributes(&self, term: &LayerTerm, is_root: bool) -> Result<Option<&Matched<'_>>, EditError> {
        if term.more_attributes != Rest::None {
            return Ok(self.matched_by(term.more_attributes));
        }
        let mut same = self.matched.iter().filter(|matched| matched.term.operation == term.operation);
        let Some(first) = same.next() else { return Ok(None) };
        // The root is the first of all.
        if is_root && self.matched.first().is_some_and(|root| root.at == first.at) {
            return Ok(Some(first));
        }
        let open = first.open_attributes(term);
        match same.find(|other| other.open_attributes(term) != open) {
            None => Ok(Some(first)),
            Some(other) => {
                let (first, other, operation) =
                    (self_describe(&first.layer), self_describe(&other.layer), &term.operation);
                let message =
                    format!("the attributes of {first} and {other} differ; write those of the new {operation}");
                Err(EditError::Other(message))
            }
        }
    }

    /// The operation in each revision that it can have here, the one that the matched layer has or else the oldest first.
    fn revisions(&self, term: &LayerTerm, inputs: usize, is_root: bool) -> Result<Vec<NewLayer>, EditError> {
        let rows = rows_of(term);
        let same = self.matched.iter().find(|matched| matched.term.operation == term.operation);
        let version_of = |row: &ops::Operation| row.opsets().next().map(|opset| format!("opset{opset}"));
        let mut versions: Vec<String> = match &term.version {
            Some(version) => vec![version.clone()],
            None => rows.iter().filter_map(|row| version_of(row)).collect(),
        };
        versions.sort_by_key(|version| version.trim_start_matches("opset").parse::<u8>().unwrap_or(u8::MAX));
        if let (None, Some(Matched { layer, term: LayerTerm { version: None, .. }, .. })) = (&term.version, same) {
            versions.retain(|version| version != layer.version());
            versions.insert(0, layer.version().to_owned());
        }
        let ty = rows.first().map_or(term.operation.as_str(), |row| ops::file_spelling(row.name()));
        let written = term.attributes.iter().map(|attribute| {
            let value = match &attribute.value {
                AttributeValue::Text(text) => text.as_str(),
                AttributeValue::Variable(at) => self.variables[*at].as_deref().unwrap_or_default(),
            };
            (attribute.name.as_str(), value)
        });
        let written: Vec<_> = written.collect();
        let source = self.source_of_attributes(term, is_root)?;
        let new = |version: &String| {
            let row = ops::lookup(ty, version);
            if row.is_some_and(|row| !row.input_counts().contains(&inputs)) {
                return Err(format!("{ty}-{version} does not take {inputs} inputs"));
            }
            let known = |name: &str| row.is_none_or(|row| row.attribute(name).is_some());
            if let Some((name, _)) = written.iter().find(|(name, _)| !known(name)) {
                return Err(format!("{ty}-{version} does not have `{name}`"));
            }
            let taken = source.map_or(Ok(Vec::new()), |source| source.attributes_for(term, row))?;
            let attributes = taken.into_iter().chain(written.iter().copied());
            Ok(attributes.fold(NewLayer::new(ty, version), |new, (name, value)| new.with_attribute(name, value)))
        };
        let (mut fitting, mut fault) = (Vec::new(), None);
        for version in &versions {
            match new(version) {
                Ok(new) => fitting.push(new),
                Err(reason) => fault = Some(reason),
            }
        }
        match fault {
            Some(reason) if fitting.is_empty() => Err(EditError::Other(reason)),
            _ => Ok(fitting),
        }
    }

    /// Does it with the first revision that takes these inputs.
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
        Err(refusal.unwrap_or_else(|| EditError::Other("it has no revision".to_owned())))
    }

    fn type_named_by(&self, variable: usize) -> Result<ElementType, EditError> {
        let name = self.variables[variable].as_deref().unwrap_or_default();
        ElementType::from_name(name).ok_or_else(|| EditError::Other(format!("`{name}` is not an element type")))
    }

    /// The values of a constant term.
    fn array(&self, term: usize, expected: Option<ElementType>) -> Result<Array, EditError> {
        match &self.side.terms[term].kind {
            TermKind::Literal(literal) => literal_array(literal, expected),
            TermKind::Name { name, .. } => {
                let layer = self.tensors[*name].and_then(|tensor| self.edit.layer(tensor.layer));
                let layer = layer.filter(|layer| ops::kind(layer) == LayerKind::Constant);
                let values = |layer: &Layer| {
                    let (element_type, dims) = layer.stored_as()?;
                    layer.values(self.edit.weights(), element_type, dims)
                };
                let array = layer.and_then(values);
                array.ok_or_else(|| {
                    let name = layer.map_or("it", Layer::name);
                    EditError::Other(format!("the values of the constant `{name}` are not known, or not numbers"))
                })
            }
            TermKind::Compute(function, of) => {
                // A literal takes the type of what it is computed with.
                let first = of.iter().find(|&&at| !self.is_free(at)).map(|&at| self.array(at, None)).transpose()?;
                let wanted = first.as_ref().map(|array| array.element_type).or(expected);
                let indices = matches!(function, Function::Transpose | Function::Reshape);
                let of = of.iter().enumerate().map(|(position, &at)| match position {
                    1.. if indices => self.array(at, Some(ElementType::I64)),
                    _ => self.array(at, wanted),
                });
                let of = of.collect::<Result<Vec<_>, _>>()?;
                let function = match (*function, expected) {
                    (Function::Convert(None), Some(to)) => Function::Convert(Some(to)),
                    (Function::ConvertTo(variable), _) => Function::Convert(Some(self.type_named_by(variable)?)),
                    (function, _) => function,
                };
                compute(function, &of).map_err(EditError::Other)
            }
            TermKind::Any | TermKind::Layer(_) => {
                Err(EditError::Other("only constants can be computed with".to_owned()))
            }
        }
    }
}

impl Matched<'_> {
    /// The attributes that a new layer of this revision takes over.
    ///
    /// # Errors
    /// One that the revision does not have is not at its default, and the pattern does not ask for it.
    fn attributes_for(&self, new: &LayerTerm, row: Option<&ops::Operation>) -> Result<Vec<(&str, &str)>, String> {
        let all = new.more_attributes != Rest::None;
        let mut taken = Vec::new();
        for (name, value) in self.attributes().filter(|(name, _)| !is_in(&new.attributes, name)) {
            let asked = is_in(&self.term.attributes, name);
            let of_operation = self.row().is_none_or(|own| own.attribute(name).is_some());
            if row.is_some_and(|row| row.attribute(name).is_none()) && of_operation {
                if !asked && !self.is_default(name, value) {
                    let layer = self_describe(&self.layer);
                    return Err(format!("{layer} has {name}={value}, which the new {} cannot have", new.operation));
                }
            } else if all || !asked {
                taken.push((name, value));
            }
        }
        Ok(taken)
    }

    /// The attributes that are not at their defaults, and that neither the pattern nor the new layer says.
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

fn literal_array(literal: &Literal, expected: Option<ElementType>) -> Result<Array, EditError> {
    let ty = expected.unwrap_or_else(|| default_type(literal.is_whole()));
    let array = literal.to_array(ty, &literal.dims);
    array
        .ok_or_else(|| EditError::Other(format!("a number of the rule is needed as {ty} here, which does not hold it")))
}
