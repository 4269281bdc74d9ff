//! Inputs and expected outputs from files with arrays.

use std::path::Path;

use super::Tensor;
use super::error::VerifyError;
use super::inputs::{Fed, Sample};
use super::pairing::{self, Pair, ids};
use super::runner::{RunError, Runner};
use typelift::Model;
use typelift::edit::inputs_outputs::End;
use typelift::graph::OutputPort;
use typelift::shape::Shape;

#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// Positions of the sample, the step, and the output in A.
    pub(super) sample: usize,
    pub(super) step: usize,
    pub(super) output: usize,
    pub(super) tensor: Tensor,
}

/// Array of a file. `sample2.step3/NAME` is for one step of one sample.
struct Array {
    sample: usize,
    step: usize,
    name: String,
    tensor: Tensor,
    is_used: bool,
}

pub(super) struct Arrays<'p> {
    path: &'p Path,
    list: Vec<Array>,
}

/// The name of an array for a step of a sample, counted from 0.
pub(super) fn key(sample: usize, step: usize, name: &str) -> String {
    format!("sample{}.step{}/{name}", sample + 1, step + 1)
}

fn parse_key(key: &str) -> Option<(usize, usize, &str)> {
    let (place, name) = key.split_once('/')?;
    let (sample, step) = place.strip_prefix("sample")?.split_once(".step")?;
    let [sample, step] = [sample, step].map(|text| text.parse::<usize>().ok()?.checked_sub(1));
    Some((sample?, step?, name))
}

impl<'p> Arrays<'p> {
    /// Reads them within the memory limit of a model.
    pub(super) fn read(runner: &mut dyn Runner, path: &'p Path, model: &Model) -> Result<Self, VerifyError> {
        let arrays = runner.arrays(path, model.weights().memory()).map_err(|error| match error {
            RunError::Unknown { .. } => VerifyError::Runtime(error),
            error => VerifyError::Inputs(format!("cannot read the arrays of `{}`: {error}", path.display())),
        })?;
        let list = arrays.into_iter().map(|(key, tensor)| {
            let (sample, step, name) = parse_key(&key).unwrap_or((0, 0, &key));
            Array { sample, step, name: name.to_owned(), tensor, is_used: false }
        });
        Ok(Self { path, list: list.collect() })
    }

    /// Takes the samples: an array for each input of each step, by name, or in the order of the file.
    pub(super) fn samples(&mut self, models: [&Model; 2], inputs: &[Pair]) -> Result<Vec<Sample>, VerifyError> {
        let count = 1 + self.list.iter().map(|array| array.sample).max().unwrap_or(0);
        (0..count).map(|at| self.sample(models, inputs, at)).collect()
    }

    fn sample(&mut self, models: [&Model; 2], inputs: &[Pair], at: usize) -> Result<Sample, VerifyError> {
        let names = pairing::names(End::Input, models[0]);
        let is_input =
            |name: &str, at: usize| names[at].iter().any(|known| known == name) || name == format!("input_{at}");
        // Arrays are taken in the order of the file only if no name is that of an input: another one may be misspelt.
        let is_in_order = self.list.len() == inputs.len()
            && !self.list.iter().any(|array| inputs.iter().any(|pair| is_input(&array.name, pair.a)));
        let own = self.list.iter().filter(|array| array.sample == at);
        let steps = 1 + own.map(|array| array.step).max().unwrap_or(0);
        let mut sample = Sample::default();
        for step in 0..steps {
            let mut tensors = [vec![None; inputs.len()], vec![None; inputs.len()]];
            for (place, pair) in inputs.iter().enumerate() {
                let place = is_in_order.then_some(place);
                let Some(tensor) = self.take(at, step, |name| is_input(name, pair.a), place) else {
                    return Err(self.missing(&pair.name, port(models[0], pair.a)));
                };
                for (side, position) in [pair.a, pair.b].into_iter().enumerate() {
                    tensors[side][position] = Some(converted(models[side], position, &pair.name, &tensor)?);
                }
                if step == 0 {
                    sample.fed.push(Fed::given(&pair.name, &tensor));
                }
            }
            let [a, b] = tensors.map(|side| side.into_iter().flatten().collect());
            sample.a.push(a);
            sample.b.push(b);
        }
        Ok(sample)
    }

    /// Takes the arrays that are named like outputs of A. With `in_order`, arrays without such names are taken in the
    /// order of the file if their number fits.
    pub(super) fn expected(&mut self, model: &Model, in_order: bool) -> Vec<Expected> {
        let names = pairing::names(End::Output, model);
        let is_named = |name: &str, output: usize| {
            names[output].iter().any(|known| known == name) || name == format!("output_{output}")
        };
        let is_in_order = in_order
            && self.list.len() == names.len()
            && !self.list.iter().any(|array| (0..names.len()).any(|output| is_named(&array.name, output)));
        let mut found = Vec::new();
        for (place, array) in self.list.iter_mut().enumerate().filter(|(_, array)| !array.is_used) {
            let output =
                if is_in_order { Some(place) } else { (0..names.len()).find(|&output| is_named(&array.name, output)) };
            let Some(output) = output else { continue };
            array.is_used = true;
            found.push(Expected { sample: array.sample, step: array.step, output, tensor: array.tensor.clone() });
        }
        found
    }

    pub(super) fn check_all_used(&self, model: &Model, fits: &str) -> Result<(), VerifyError> {
        let Some(unused) = self.list.iter().find(|array| !array.is_used) else { return Ok(()) };
        let [inputs, outputs] = [End::Input, End::Output].map(|end| {
            let names = pairing::names(end, model).into_iter().filter_map(|names| names.into_iter().next());
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>()
        });
        Err(VerifyError::Inputs(format!(
            "the array `{}` of `{}` is no {fits}: the model has the inputs {} and the outputs {}",
            unused.name,
            self.path.display(),
            inputs.join(", "),
            outputs.join(", ")
        )))
    }

    /// Takes the array with a name, or else the one at a place.
    fn take(
        &mut self,
        sample: usize,
        step: usize,
        is_named: impl Fn(&str) -> bool,
        place: Option<usize>,
    ) -> Option<Tensor> {
        let by_name =
            self.list.iter().position(|array| (array.sample, array.step) == (sample, step) && is_named(&array.name));
        let at = by_name.or(place)?;
        let array = self.list.get_mut(at)?;
        array.is_used = true;
        Some(array.tensor.clone())
    }

    fn missing(&self, input: &str, port: Option<&OutputPort>) -> VerifyError {
        let has: Vec<_> = self
            .list
            .iter()
            .map(|array| match &*array.name {
                "" => format!("one array {}", described(&array.tensor)),
                name => format!("`{name}` {}", described(&array.tensor)),
            })
            .collect();
        let (path, has) = (self.path.display(), has.join(", "));
        let takes = port.map_or(String::new(), |port| format!(" {}{}", port.element_type(), port.shape()));
        let has = if has.is_empty() { "no arrays".to_owned() } else { has };
        VerifyError::Inputs(format!("`{path}` has no array for input `{input}`{takes}; it has {has}"))
    }
}

/// The output of the Parameter of an input.
fn port(model: &Model, position: usize) -> Option<&OutputPort> {
    let id = ids(End::Input, model).get(position).copied()?;
    model.graph().output(id.output(0))
}

fn described(tensor: &Tensor) -> String {
    format!("{}{}", tensor.element_type, tensor.shape())
}

fn converted(model: &Model, position: usize, name: &str, tensor: &Tensor) -> Result<Tensor, VerifyError> {
    let port = port(model, position);
    let ty = port.map_or(tensor.element_type, |port| port.element_type());
    let converted = tensor.as_type(ty).ok_or_else(|| unfit(name, tensor, port))?;
    // A model cannot be judged by other values than those that were given.
    if ty.is_integer()
        && let (Some(given), Some(taken)) = (tensor.floats(), converted.floats())
        && let Some((lost, _)) = given.iter().zip(&taken).find(|(given, taken)| given != taken)
    {
        return Err(VerifyError::Inputs(format!(
            "the array for input `{name}` has {lost}, which is no value of {ty}: save it with values of {ty}"
        )));
    }
    Ok(converted)
}

/// The error for the first array of a sample whose shape its input does not take; `None` if all do.
pub(super) fn misshapen(model: &Model, inputs: &[Pair], sample: &Sample) -> Option<VerifyError> {
    inputs.iter().find_map(|pair| {
        let (tensor, port) = (&sample.a[0][pair.a], port(model, pair.a)?);
        let given = Shape::fixed(tensor.dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)));
        (!given.is_compatible(port.shape())).then(|| unfit(&pair.name, tensor, Some(port)))
    })
}

fn unfit(name: &str, tensor: &Tensor, port: Option<&OutputPort>) -> VerifyError {
    let takes = port.map_or(String::new(), |port| format!("{}{}", port.element_type(), port.shape()));
    let has = described(tensor);
    // An array of images in the layout of TensorFlow.
    let last = |dims: &[i64]| matches!(dims, [n, h, w, c] if port.is_some_and(|port| Shape::fixed([*n, *c, *h, *w]).is_compatible(port.shape())));
    let dims: Vec<_> = tensor.dims.iter().map(|&dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect();
    let order = if last(&dims) { "; its channels are last: save it after `array.transpose(0, 3, 1, 2)`" } else { "" };
    VerifyError::Inputs(format!("the array for input `{name}` is {has}, but the model takes {takes}{order}"))
}
