//! Putting the right side of a rule into a graph.

use typelift_promote::ElementType;

use super::constant::{compute, default_type};
use super::matching::constant;
use super::parse::rows_of;
use super::term::{AttributeValue, Function, LayerTerm, Side, TermKind};
use crate::array::Array;
use crate::graph::{Edit, EditError, Layer, LayerId, NewLayer, Output};
use crate::notation::{Literal, encode};
use crate::ops::{self, LayerKind};

/// A right side at work in a graph.
pub(super) struct Build<'b, 'm> {
    pub(super) edit: &'b mut Edit<'m>,
    pub(super) side: &'b Side,
    /// By name.
    pub(super) tensors: &'b [Option<Output>],
    pub(super) variables: &'b [Option<compact_str::CompactString>],
    /// The layers that were matched, with the operations that the pattern calls them by, and whether it names a revision.
    pub(super) matched: &'b [(Layer, String, bool)],
    /// The layers that were added.
    pub(super) added: Vec<LayerId>,
}

/// A layer with its inputs, which is not in the graph yet.
pub(super) struct Ready {
    /// The revisions to try, the best first.
    revisions: Vec<NewLayer>,
    inputs: Vec<Output>,
}

impl Build<'_, '_> {
    /// Lets `root` become the layer of a term, or gives the tensor that stands for it.
    pub(super) fn root(
        &mut self,
        term: usize,
        root: LayerId,
        expected: Option<ElementType>,
    ) -> Result<Option<Output>, EditError> {
        let TermKind::Layer(layer) = &self.side.terms[term].kind else { return self.tensor(term, expected).map(Some) };
        if layer.output != 0 {
            return self.tensor(term, expected).map(Some);
        }
        let ready = self.ready(layer, expected)?;
        self.first_of(ready, |edit, new, inputs| edit.morph(root, new, inputs)).map(|()| None)
    }

    /// The tensor of a term, with what it takes to make it.
    pub(super) fn tensor(&mut self, term: usize, expected: Option<ElementType>) -> Result<Output, EditError> {
        match &self.side.terms[term].kind {
            TermKind::Name { name, .. } => {
                self.tensors[*name].ok_or_else(|| EditError::Other("a name of the rule is not bound".to_owned()))
            }
            TermKind::Layer(layer) => {
                let ready = self.ready(layer, None)?;
                let id = self.first_of(ready, |edit, new, inputs| edit.add(new, inputs))?;
                self.added.push(id);
                Ok(id.output(layer.output))
            }
            TermKind::Literal(_) | TermKind::Compute(..) => {
                let array = self.array(term, expected)?;
                self.put(&array)
            }
            TermKind::Any => Err(EditError::Other("`_` is any tensor".to_owned())),
        }
    }

    fn put(&mut self, array: &Array) -> Result<Output, EditError> {
        let dims: Vec<_> = array.dims.iter().map(|&dim| dim as u64).collect();
        let bytes = encode(array)
            .ok_or_else(|| EditError::Other(format!("{} constants cannot be written", array.element_type)))?;
        let output = self.edit.constant(array.element_type, &dims, &bytes)?;
        self.added.push(output.layer);
        Ok(output)
    }

    /// The inputs of a layer first, literals last: they take their type from the others.
    fn ready(&mut self, term: &LayerTerm, expected: Option<ElementType>) -> Result<Ready, EditError> {
        let is_literal = |at: usize| matches!(self.side.terms[at].kind, TermKind::Literal(_)) || self.is_free(at);
        let later: Vec<bool> = term.inputs.iter().map(|&at| is_literal(at)).collect();
        let mut inputs = vec![None; term.inputs.len()];
        for (input, &at) in
            inputs.iter_mut().zip(&term.inputs).zip(&later).filter(|(_, later)| !**later).map(|(pair, _)| pair)
        {
            *input = Some(self.tensor(at, None)?);
        }
        let mut types: Vec<_> = inputs.iter().map(|input| self.type_of(*input)).collect();
        for at in 0..inputs.len() {
            if later[at] {
                let ty = self.type_for(term, at, &types, expected)?;
                inputs[at] = Some(self.tensor(term.inputs[at], Some(ty))?);
                types[at] = ty;
            }
        }
        let inputs: Vec<_> = inputs.into_iter().flatten().collect();
        Ok(Ready { revisions: self.revisions(term)?, inputs })
    }

    /// Whether a term is arithmetic on literals alone.
    fn is_free(&self, at: usize) -> bool {
        match &self.side.terms[at].kind {
            TermKind::Literal(_) => true,
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

    /// The operation in each revision that it can have here, the one that the matched layer has or else the oldest first.
    fn revisions(&self, term: &LayerTerm) -> Result<Vec<NewLayer>, EditError> {
        let rows = rows_of(term);
        let same = self.matched.iter().find(|(_, operation, _)| *operation == term.operation);
        let version_of = |row: &ops::Operation| row.opsets().next().map(|opset| format!("opset{opset}"));
        let mut versions: Vec<String> = match &term.version {
            Some(version) => vec![version.clone()],
            None => rows.iter().filter_map(|row| version_of(row)).collect(),
        };
        versions.sort_by_key(|version| version.trim_start_matches("opset").parse::<u8>().unwrap_or(u8::MAX));
        if let (None, Some((layer, _, false))) = (&term.version, same) {
            versions.retain(|version| version != layer.version());
            versions.insert(0, layer.version().to_owned());
        }
        let ty = rows.first().map_or(term.operation.as_str(), |row| ops::file_spelling(row.name()));
        let mut attributes = Vec::new();
        if let (true, Some((layer, ..))) = (term.takes_rest, same) {
            let written = |name: &str| term.attributes.iter().any(|attribute| attribute.name == name);
            let rest = layer.attributes().iter().filter(|attribute| !written(attribute.name()));
            attributes.extend(rest.map(|attribute| (attribute.name().to_owned(), attribute.value().to_owned())));
        }
        for attribute in &term.attributes {
            let value = match &attribute.value {
                AttributeValue::Text(text) => text.clone(),
                AttributeValue::Variable(at) => self.variables[*at].as_deref().unwrap_or_default().to_owned(),
            };
            attributes.push((attribute.name.clone(), value));
        }
        let fits = |version: &String| {
            ops::lookup(ty, version).is_none_or(|row| {
                row.input_counts().contains(&term.inputs.len())
                    && attributes.iter().all(|(name, _)| row.attribute(name).is_some() || term.takes_rest)
            })
        };
        let new = |version: &String| {
            attributes.iter().fold(NewLayer::new(ty, version), |new, (name, value)| new.with_attribute(name, value))
        };
        let fitting: Vec<_> = versions.iter().filter(|version| fits(version)).map(new).collect();
        if fitting.is_empty() {
            let message = format!("{} with these inputs and attributes is in no operation set", term.operation);
            return Err(EditError::Other(message));
        }
        Ok(fitting)
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

    /// The values of a constant term.
    fn array(&self, term: usize, expected: Option<ElementType>) -> Result<Array, EditError> {
        match &self.side.terms[term].kind {
            TermKind::Literal(literal) => literal_array(literal, expected),
            TermKind::Name { name, .. } => {
                let layer = self.tensors[*name].and_then(|tensor| self.edit.layer(tensor.layer));
                let layer = layer.filter(|layer| ops::kind(layer) == LayerKind::Constant);
                let array = layer.and_then(|layer| constant(layer, self.edit.weights));
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
                let function = match (function, expected) {
                    (Function::Convert(None), Some(to)) => Function::Convert(Some(to)),
                    (function, _) => *function,
                };
                compute(function, &of).map_err(EditError::Other)
            }
            TermKind::Any | TermKind::Layer(_) => {
                Err(EditError::Other("only constants can be computed with".to_owned()))
            }
        }
    }
}

fn literal_array(literal: &Literal, expected: Option<ElementType>) -> Result<Array, EditError> {
    let ty = expected.unwrap_or_else(|| default_type(literal.is_whole()));
    let array = literal.to_array(ty, literal.dims.clone());
    array
        .ok_or_else(|| EditError::Other(format!("a number of the rule is needed as {ty} here, which does not hold it")))
}
