//! Recurrent networks: one step as a cell, or a whole sequence.

use super::common::check_rank;
use super::{Attr, AttrKind, Context, Fault, Operation, Ties};
use crate::findings::{Text, message};
use crate::model::shape::{Dim, Shape};
use typelift_promote::ElementType;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("GRUCell", 3, |cx| GRU.cell(cx))
        .requires(&["hidden_size"])
        .inputs(5, 5)
        .ties(Ties::All)
        .tied_when_run()
        .attributes(&[HIDDEN_SIZE, ACTIVATIONS.default("sigmoid,tanh"), ALPHA, BETA, CLIP, LINEAR_BEFORE_RESET]),
    Operation::new("GRUSequence", 5, |cx| GRU.sequence(cx))
        .requires(&["hidden_size", "direction"])
        .inputs(6, 6)
        .ties(Ties::Inputs(GRU.tied_in_sequence))
        .attributes(&[
            HIDDEN_SIZE,
            ACTIVATIONS.default("sigmoid,tanh"),
            ALPHA,
            BETA,
            CLIP,
            DIRECTION,
            LINEAR_BEFORE_RESET,
        ]),
    Operation::new("LSTMCell", 0, |cx| LSTM.cell(cx))
        .requires(&["hidden_size"])
        .until(3)
        .inputs(5, 7)
        .ties(Ties::Inputs(LSTM.tied))
        .attributes(&[
            HIDDEN_SIZE,
            ACTIVATIONS.default("sigmoid,tanh,tanh"),
            ALPHA,
            BETA,
            CLIP,
            Attr::new("input_forget", AttrKind::Bool).default("false"),
            Attr::new("weights_format", AttrKind::Enum(&["fico", "icof", "ifco", "ifoc", "iofc"])).default("ifco"),
        ]),
    Operation::new("LSTMCell", 4, |cx| LSTM.cell(cx))
        .requires(&["hidden_size"])
        .inputs(6, 6)
        .ties(Ties::Inputs(LSTM.tied))
        .attributes(&[HIDDEN_SIZE, ACTIVATIONS.default("sigmoid,tanh,tanh"), ALPHA, BETA, CLIP]),
    Operation::new("LSTMSequence", 5, |cx| LSTM.sequence(cx))
        .requires(&["hidden_size", "direction"])
        .inputs(7, 7)
        .ties(Ties::Inputs(LSTM.tied_in_sequence))
        .attributes(&[HIDDEN_SIZE, ACTIVATIONS.default("sigmoid,tanh,tanh"), ALPHA, BETA, CLIP, DIRECTION]),
    Operation::new("RNNCell", 0, |cx| RNN.cell(cx))
        .requires(&["hidden_size"])
        .except(2)
        .inputs(5, 5)
        .ties(Ties::Inputs(RNN.tied))
        .attributes(&[HIDDEN_SIZE, ACTIVATIONS.default("tanh"), ALPHA, BETA, CLIP]),
    Operation::new("RNNSequence", 5, |cx| RNN.sequence(cx))
        .requires(&["hidden_size", "direction"])
        .inputs(6, 6)
        .ties(Ties::Inputs(RNN.tied_in_sequence))
        .attributes(&[HIDDEN_SIZE, ACTIVATIONS.default("tanh"), ALPHA, BETA, CLIP, DIRECTION]),
];

const HIDDEN_SIZE: Attr = Attr::new("hidden_size", AttrKind::Unsigned).default("0");
const ACTIVATIONS: Attr = Attr::new("activations", AttrKind::Texts);
const ALPHA: Attr = Attr::new("activations_alpha", AttrKind::Floats).default("");
const BETA: Attr = Attr::new("activations_beta", AttrKind::Floats).default("");
const CLIP: Attr = Attr::new("clip", AttrKind::Float).default("0");
const DIRECTION: Attr =
    Attr::new("direction", AttrKind::Enum(&["forward", "reverse", "bidirectional"])).default("forward");
const LINEAR_BEFORE_RESET: Attr = Attr::new("linear_before_reset", AttrKind::Bool).default("false");

struct Network {
    gates: i64,
    /// The number of states, which are passed from one step to the next.
    states: usize,
    activations: usize,
    /// Inputs of the cell that must have one element type; OpenVINO does not check the weights of a GRU.
    tied: &'static [usize],
    tied_in_sequence: &'static [usize],
}

const GRU: Network =
    Network { gates: 3, states: 1, activations: 2, tied: &[0, 1, 3, 4], tied_in_sequence: &[0, 1, 3, 4, 5] };
const LSTM: Network =
    Network { gates: 4, states: 2, activations: 3, tied: &[0, 1, 2, 3, 4, 5], tied_in_sequence: &[0, 1, 2, 4, 5, 6] };
const RNN: Network =
    Network { gates: 1, states: 1, activations: 1, tied: &[0, 1, 2, 3, 4], tied_in_sequence: &[0, 1, 3, 4, 5] };

/// Dimensions that all inputs of a network share.
struct Sizes {
    batch: Dim,
    hidden: Dim,
}

impl Network {
    /// Infers a cell. The inputs are X, the initial states, W, R and B; the first LSTMCell also has peepholes.
    fn cell(&self, cx: &mut Context) -> Result<(), Fault> {
        let bias_gates = self.bias_gates(cx)?;
        self.check_activations(cx)?;
        let element_type = cx.merge_types(self.tied)?;
        let (weights, first_cell) = (1 + self.states, cx.operation.revision == 0 && self.states == 2);
        self.check_ranks(cx, &[(weights, 2), (2, 2), (1, 1)])?;
        let Sizes { batch, mut hidden } = self.sizes(cx, 0, weights, bias_gates)?;
        if self.states == 2 && !hidden.is_fixed() {
            hidden = Dim::fixed(hidden_size(cx)?);
        }
        if first_cell {
            self.check_peepholes(cx, hidden)?;
        }
        for _ in 0..self.states {
            cx.output(element_type, [batch, hidden].into_iter().collect());
        }
        Ok(())
    }

    /// Infers a sequence. The inputs are X, the initial states, the lengths of the sequences, W, R and B. A sequence
    /// has one more axis than a cell: the directions in states, W, R and B, and the steps in X.
    fn sequence(&self, cx: &mut Context) -> Result<(), Fault> {
        let bias_gates = self.bias_gates(cx)?;
        let element_type = cx.merge_types(self.tied_in_sequence)?;
        let weights = 2 + self.states;
        self.check_ranks(cx, &[(1 + self.states, 3), (1, 1), (2, 3), (1, 2)])?;
        let Sizes { mut batch, hidden } = self.sizes(cx, 1, weights, bias_gates)?;
        batch = merge(cx, "the batch size", batch, 1 + self.states, 0)?;
        let directions = if cx.word("direction")? == "bidirectional" { 2 } else { 1 };
        let states = (1..=self.states).map(|input| (input, 1));
        let tensors: Vec<_> = states.chain((weights..weights + 3).map(|input| (input, 0))).collect();
        let others = tensors.iter().filter(|&&(input, axis)| (Dim::fixed(directions) & dim(cx, input, axis)).is_none());
        let others: Vec<_> = others.map(|(input, _)| *input).collect();
        if others.len() == tensors.len() {
            let word = cx.word("direction")?;
            let message = message!(
                "`direction` is {}, which needs {} directions, but the weights have another number";
                word, directions
            );
            return Err(Fault { attribute: Some("direction"), inputs: others.into(), ..Fault::shapes(&[], message) });
        }
        let mut merged = Dim::fixed(directions);
        for (input, axis) in tensors {
            merged = merge(cx, "the number of directions", merged, input, axis)?;
        }
        let steps = dim(cx, 0, 1);
        cx.output(element_type, [batch, merged, steps, hidden].into_iter().collect());
        for _ in 0..self.states {
            cx.output(element_type, [batch, merged, hidden].into_iter().collect());
        }
        Ok(())
    }

    fn bias_gates(&self, cx: &Context) -> Result<i64, Fault> {
        let has_more = cx.operation.attribute("linear_before_reset").is_some() && cx.bool("linear_before_reset")?;
        Ok(self.gates + i64::from(has_more))
    }

    /// Checks the ranks of groups of inputs; each group has a number of inputs and their rank.
    fn check_ranks(&self, cx: &Context, runs: &[(usize, usize)]) -> Result<(), Fault> {
        let ranks = runs.iter().flat_map(|&(count, rank)| std::iter::repeat_n(rank, count));
        ranks.enumerate().try_for_each(|(input, rank)| check_rank(cx, input, "inputs", &[rank]))
    }

    /// `extra` axes precede those of a cell.
    fn sizes(&self, cx: &Context, extra: usize, weights: usize, bias_gates: i64) -> Result<Sizes, Fault> {
        let (recurrence, bias) = (weights + 1, weights + 2);
        let (mut batch, mut hidden) = (dim(cx, 0, 0), Dim::ANY);
        for state in 1..=self.states {
            batch = merge(cx, "the batch size", batch, state, 0)?;
            hidden = merge(cx, "the hidden size", hidden, state, 1 + extra)?;
        }
        hidden = merge(cx, "the hidden size", hidden, recurrence, 1 + extra)?;
        if hidden.is_fixed() {
            for (input, gates) in [(weights, self.gates), (recurrence, self.gates), (bias, bias_gates)] {
                let (found, expected) = (dim(cx, input, extra), hidden * Dim::fixed(gates));
                if !found.is_compatible(expected) {
                    let message = message!("axis {} of input {} is {}, but must be {}"; extra, input, found, expected);
                    return Err(Fault::shapes(&[input], message)
                        .rule(message!("the axis contains {} gates with a hidden size of {}"; gates, hidden)));
                }
            }
        } else {
            for input in [weights, recurrence] {
                // OpenVINO looks for a fixed dimension on the first axis, in sequences too.
                if let (Some(_), Some(found)) =
                    (dim(cx, input, 0).value(), dim(cx, input, extra).checked_div(self.gates))
                {
                    hidden = (hidden & found).ok_or_else(|| {
                        let message = message!("the hidden size is {}, but input {} has {}"; hidden, input, found);
                        Fault::shapes(&[input], message)
                    })?;
                }
            }
        }
        Ok(Sizes { batch, hidden })
    }

    /// Checks the names of a cell's activation functions; OpenVINO does not check those of a sequence.
    fn check_activations(&self, cx: &Context) -> Result<(), Fault> {
        let names = cx.text("activations")?;
        let mut names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        for at in 0..self.activations {
            let Some(name) = names.next() else {
                let message = message!("`{}` needs {} activations, but has {}"; cx.ty(), self.activations, at);
                return Err(Fault::attribute("activations", message));
            };
            if !FUNCTIONS.iter().any(|function| function.eq_ignore_ascii_case(name)) {
                let message =
                    message!("`{}` is not an activation function; they are {}"; name, Text(FUNCTIONS.join(", ")));
                return Err(Fault::attribute("activations", message));
            }
        }
        Ok(())
    }

    /// Checks the peepholes of the first LSTMCell. They are the last input and optional, as is the bias before them.
    fn check_peepholes(&self, cx: &Context, hidden: Dim) -> Result<(), Fault> {
        let count = cx.inputs.len();
        if count < 7 && cx.element_type(0) == ElementType::Dynamic {
            let message = message!("`{}` cannot add its optional inputs, because their type is unknown"; cx.ty());
            return Err(
                Fault::unsupported(0, message).help("connect all 7 inputs, or declare the element type of input 0")
            );
        }
        let size = hidden_size(cx)?;
        let fits = |found: Dim, parts: i64| found.is_compatible(hidden * Dim::fixed(parts));
        if count < 6 && !fits(Dim::fixed(size.saturating_mul(self.gates)), self.gates) {
            let message = message!("`hidden_size` is {}, but the inputs have {}"; size, hidden);
            return Err(Fault::attribute("hidden_size", message));
        }
        let peepholes = match cx.try_shape(6).map(Shape::dims) {
            Some(None | Some([])) => return Err(Fault::shapes(&[6], "the peepholes must be a list")),
            Some(Some([first, ..])) => *first,
            None => Dim::fixed(size.saturating_mul(3)),
        };
        if peepholes.is_fixed() && !fits(peepholes, 3) {
            let message =
                message!("there are {} peepholes, but must be 3 times the hidden size, which is {}"; peepholes, hidden);
            return Err(Fault::shapes(&[6], message));
        }
        Ok(())
    }
}

const FUNCTIONS: &[&str] = &["sigmoid", "tanh", "relu", "hardsigmoid"];

fn hidden_size(cx: &Context) -> Result<i64, Fault> {
    Ok(i64::try_from(cx.unsigned("hidden_size")?).unwrap_or(0))
}

/// A dimension of an input, or any length if it is unknown.
fn dim(cx: &Context, input: usize, axis: usize) -> Dim {
    cx.shape(input).dims().and_then(|dims| dims.get(axis)).copied().unwrap_or(Dim::ANY)
}

/// Unifies a size with the dimension of an input; `name` names the size in the error.
fn merge(cx: &Context, name: &'static str, size: Dim, input: usize, axis: usize) -> Result<Dim, Fault> {
    let found = dim(cx, input, axis);
    (size & found)
        .ok_or_else(|| Fault::shapes(&[input], message!("{} is {}, but {} in input {}"; name, size, found, input)))
}
