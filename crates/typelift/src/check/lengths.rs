//! Lints of open lengths: those of which only one fits, constraints that contradict each other, tables that an index
//! leaves, and a -1 of a Reshape that takes the batch.

use super::order::Errors;
use super::{GraphCheck, PLACES};
use crate::base::hash::HashSet;
use crate::base::quoted::Quoted;
use crate::findings::{Code, Diagnostic, Fix, FixAction, Severity, Text, message};
use crate::model::graph::{LayerId, Model};
use crate::ops::{self, LayerKind};
use crate::symbols::{Constraint, Noticed, Reads, Shapes, Swallow, Symbol};

/// A length of the other symbols that no pattern has by chance.
const UNLIKELY: i64 = 37;
const MOST_STATEMENTS: usize = 8;
/// Most constraints of one symbol that are compared with each other.
const MOST_COMPARED: usize = 64;

/// Operations that a device refuses to run with lengths that inference refuses.
const STRICT: &[&str] = &[
    "Reshape",
    "Convolution",
    "GroupConvolution",
    "Split",
    "VariadicSplit",
    "Concat",
    "Add",
    "Subtract",
    "Multiply",
    "Divide",
    "Broadcast",
    "MaxPool",
    "AvgPool",
];

pub(crate) fn left_tables(model: &Model) -> Vec<Diagnostic> {
    let errors = Errors::default();
    let mut check = GraphCheck::new(model, &errors);
    check.find_tables(&crate::symbols::shapes(model));
    check.diagnostics.retain(|it| it.severity == Severity::Warning);
    check.diagnostics
}

impl GraphCheck<'_> {
    pub(super) fn check_lengths(&mut self, model: &Model) {
        if !model.graph.unordered().any(|layer| match ops::kind(layer) {
            LayerKind::Parameter => layer.outputs().first().is_some_and(|port| !port.shape().is_static()),
            _ => layer.ty() == "Gather",
        }) {
            return;
        }
        let own = self.shapes.is_none().then(|| crate::symbols::shapes(model));
        let Some(shapes) = self.shapes.or(own.as_ref()) else { return };
        let before = self.diagnostics.len();
        self.find_conflicts(model, shapes);
        if self.diagnostics.len() == before {
            self.find_fixed_lengths(model, shapes);
            self.find_swallowed(model, shapes);
        }
        self.find_tables(shapes);
    }

    fn find_conflicts(&mut self, model: &Model, shapes: &Shapes) {
        let is_strict = |it: &&Constraint| {
            let first = it.because.first();
            it.at == Noticed::Load && it.reads.is_none() && first.is_some_and(|it| STRICT.contains(&&*it.operation))
        };
        for at in 0..shapes.symbols.len() {
            let alone: Vec<_> = shapes.alone(at).into_iter().filter(is_strict).take(MOST_COMPARED).collect();
            if alone.is_empty() || !shapes.fits(at, &alone).is_never() {
                continue;
            }
            let single = alone.iter().find(|it| shapes.fits(at, &[it]).is_never()).map(|single| vec![*single]);
            let is_never = |one: &Constraint, other: &Constraint| shapes.fits(at, &[one, other]).is_never();
            let Some(pair) = single.or_else(|| pair(&alone, is_never)) else { continue };
            // Lengths that satisfy one of them are tried.
            let mut lengths = vec![1; shapes.symbols.len()];
            let is_refused = pair.iter().all(|it| {
                lengths[at] = shapes.fits(at, &[it]).list.first().copied().unwrap_or(2);
                !shapes.loads(model, &lengths)
            });
            if is_refused {
                self.diagnostics.push(conflict(shapes, &pair));
            }
        }
        let strict: Vec<_> = shapes.constraints.iter().filter(is_strict).take(MOST_COMPARED).collect();
        let loads = |length: &i64| shapes.loads(model, &vec![*length; shapes.symbols.len()]);
        let pair = pair(&strict, |one, other| shapes.contradict(one, other));
        let pair = pair.filter(|_| ![1, 2, UNLIKELY].iter().any(loads));
        self.diagnostics.extend(pair.map(|pair| conflict(shapes, &pair)));
    }

    fn find_fixed_lengths(&mut self, model: &Model, shapes: &Shapes) {
        for symbol in &shapes.symbols {
            let Some(only) = shapes.only(symbol) else { continue };
            let Some(parameter) = symbol.axes.first().and_then(|&(id, _)| model.graph.layer(id)) else { continue };
            let are = if symbol.axes.len() > 1 { "are" } else { "is" };
            let message = message!("{} {} open, but only {} fits"; Text(axes(symbol)), are, only);
            let mut note = self.lint(Code::FixedLength, parameter, message);
            note = note.at(self.locate(parameter, "data", "shape"), message!("{} is open"; &symbol.name));
            let at = shapes.symbols.iter().position(|it| std::ptr::eq(it, symbol)).unwrap_or_default();
            if let Some(it) = shapes.alone(at).into_iter().find(|it| shapes.fits(at, &[it]).only() == Some(only)) {
                note = explained(note, it);
            }
            if let Some(statements) = opening(model, shapes, at, only) {
                note = note.help(Fix::possible(FixAction::Statements(statements)));
            }
            let declared = symbol.axes.iter().filter_map(|&(id, axis)| declared(model, id, axis, only));
            self.diagnostics.push(note.help(Fix::possible(FixAction::Statements(declared.collect()))));
        }
    }

    fn find_tables(&mut self, shapes: &Shapes) {
        let mut told = HashSet::default();
        for it in &shapes.constraints {
            let (Some(reads), Some(first)) = (it.reads, it.because.first()) else { continue };
            // A multiplication belongs to the note on its only length.
            let is_told = it.at == Noticed::Load && self.diagnostics.iter().any(|it| it.code == Code::FixedLength);
            let is_usual = shapes.is_assured(it) || shapes.holds_for_equal_inputs(it);
            if is_told || is_usual || told.len() == PLACES || !told.insert(it.named.to_owned()) {
                continue;
            }
            let name = &first.layer.name;
            let mut lint = if it.is_never {
                let message = message!("an index of `{}` leaves its table, where {} are read"; name, Text(reads));
                Diagnostic { severity: Severity::Warning, ..Diagnostic::new(Code::TableBound, message) }
            } else {
                let message = message!("`{}` reads {} without an error unless {}"; name, Text(reads), &it.named);
                let beyond = shapes.exceeds_bounds(it);
                let severity = if beyond { Severity::Warning } else { Severity::Note };
                Diagnostic { severity, ..Diagnostic::new(Code::TableBound, message) }
            };
            lint.layer = Some(first.layer.clone());
            let label = match reads {
                Reads::Zeros => "beyond the table there are zeros",
                Reads::ForeignMemory => "beyond the table there are bytes of other tensors",
            };
            lint = lint.at(first.span, label);
            if let Some(("position table", table)) = it.source() {
                lint = lint.at(table.span, "this table");
            }
            let help = match it.is_never {
                true => "give it a table with more rows, or a shorter input",
                false => "declare the bound at the input, or compare lengths with it before the model runs",
            };
            self.diagnostics.push(lint.help(help));
        }
    }

    fn find_swallowed(&mut self, model: &Model, shapes: &Shapes) {
        let mut found: Option<Diagnostic> = None;
        let mut more = 0;
        for it in &shapes.swallows {
            let Some(layer) = model.graph.layer(it.layer) else { continue };
            if !it.is_scrambled && is_restored(model, shapes, it) {
                continue;
            }
            if found.is_some() {
                more += 1;
                continue;
            }
            let Some([one, two]) = tried(model, shapes, it) else { continue };
            let symbol = &shapes.symbols[it.symbol];
            let axis = axes(symbol);
            let message = message!(
                "`{}` mixes a batch of 2 into its axis {}: the -1 becomes {} instead of {}";
                layer.name(), it.axis, two, one
            );
            let lint = self.lint(Code::SwallowedBatch, layer, message);
            let lint = lint
                .at(self.locate(layer, "layer", "name"), "its pattern begins with 1, so that the -1 takes the batch")
                .note(message!("{} is open, and no shape is wrong with 2, but values are"; Text(axis)));
            let help = message!("write -1 in place of the 1 of its pattern, and {} in place of the -1"; one);
            found = Some(match pattern_statement(model, shapes, it, one) {
                Some(statement) => lint.help(Fix::possible(FixAction::Statements(vec![statement]))),
                None => lint.help(help),
            });
        }
        if let Some(found) = found {
            let found = if more > 0 { found.note(message!("{} more Reshapes do the same"; more)) } else { found };
            self.diagnostics.push(found);
        }
    }
}

/// The first two constraints that fulfil a condition together.
fn pair<'s>(all: &[&'s Constraint], fits: impl Fn(&Constraint, &Constraint) -> bool) -> Option<Vec<&'s Constraint>> {
    let pairs = all.iter().enumerate().flat_map(|(at, one)| all[..at].iter().map(move |it| [*it, *one]));
    pairs.into_iter().find(|[one, other]| fits(one, other)).map(Vec::from)
}

/// Names the axes of a symbol: `` `ids[1]` and `mask[1]` ``.
fn axes(symbol: &Symbol) -> String {
    let mut axes: Vec<String> = symbol.named_axes().map(|(input, axis)| format!("`{input}[{axis}]`")).collect();
    if axes.len() > 3 {
        let more = axes.len() - 2;
        axes.truncate(2);
        axes.push(format!("{more} more"));
    }
    match axes.pop() {
        Some(last) if axes.is_empty() => last,
        Some(last) => format!("{} and {last}", axes.join(", ")),
        None => String::new(),
    }
}

fn explained(mut finding: Diagnostic, constraint: &Constraint) -> Diagnostic {
    let Some(first) = constraint.because.first() else { return finding };
    finding = finding.at(first.span, message!("`{}` needs {}"; first.layer.name, &constraint.named));
    if let Some(reads) = constraint.reads {
        finding =
            finding.note(message!("the CPU plugin runs other lengths without an error, and reads {}"; Text(reads)));
    }
    match constraint.source() {
        Some((_, source)) if source.span != first.span => finding.at(source.span, "the number comes from here"),
        _ => finding,
    }
}

fn conflict(shapes: &Shapes, constraints: &[&Constraint]) -> Diagnostic {
    let symbols = constraints.first().map(|it| it.symbols.as_slice()).unwrap_or_default();
    let axes: Vec<String> = symbols.iter().map(|&at| axes(&shapes.symbols[at])).collect();
    let named: Vec<String> = constraints
        .iter()
        .filter_map(|it| Some(format!("{} of `{}`", &it.named, it.because.first()?.layer.name)))
        .collect();
    let [lengths, demands] = [axes.join(" and "), named.join(" and ")].map(Text);
    let message = match symbols.len() {
        1 => message!("no length of {} satisfies {}"; lengths, demands),
        _ => message!("no lengths of {} satisfy {}"; lengths, demands),
    };
    let mut finding = Diagnostic::new(Code::ShapeConflict, message);
    finding.layer = constraints.last().and_then(|it| it.because.first()).map(|it| it.layer.clone());
    for constraint in constraints.iter().rev() {
        finding = explained(finding, constraint);
    }
    finding.help("correct the constant of one of them, or compute it from the length with ShapeOf")
}

/// A statement that declares a length of an input.
fn declared(model: &Model, id: LayerId, axis: usize, length: i64) -> Option<String> {
    let layer = model.graph.layer(id)?;
    let port = layer.outputs().first()?;
    let mut shape = port.shape().clone();
    *shape.dims_mut()?.get_mut(axis)? = length.into();
    Some(format!("input {} : {}{shape}", Quoted::name(&model.end_name(layer)), port.element_type()))
}

/// Statements with which other lengths of a symbol fit, too. They were tried.
fn opening(model: &Model, shapes: &Shapes, symbol: usize, only: i64) -> Option<Vec<String>> {
    let hints = (0..shapes.symbols.len()).map(|at| if at == symbol { only } else { UNLIKELY });
    let lengths = shapes.fitting(&hints.collect::<Vec<_>>())?;
    let (statements, opened) = model
        .opening_statements(&|tensor| shapes.lengths_of(tensor, &lengths)?.into_iter().collect::<Option<Vec<i64>>>())?;
    let axes = &shapes.symbols[symbol].axes;
    let after = crate::symbols::shapes(&opened);
    let own = after.symbols.iter().find(|it| it.axes.first() == axes.first())?;
    let is_open = after.only(own).is_none() && after.swallows.len() <= shapes.swallows.len();
    let others = crate::symbols::fitting_lengths(&opened, &after, only + 1)?;
    let at = after.symbols.iter().position(|it| std::ptr::eq(it, own))?;
    (is_open && statements.len() <= MOST_STATEMENTS && others[at] != only).then_some(statements)
}

/// True if a Result after a Reshape has the batch on its first axis again, or nothing is known of it.
fn is_restored(model: &Model, shapes: &Shapes, it: &Swallow) -> bool {
    let (mut pending, mut seen, mut has_result) = (vec![it.layer], HashSet::default(), false);
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        pending.extend(model.graph.users(id));
        if model.graph.layer(id).filter(|layer| ops::kind(layer) == LayerKind::Result).is_some() {
            has_result = true;
            let Some(tensor) = model.graph.producer(id.input(0)) else { return true };
            if shapes.varies_with(tensor, 0, it.symbol) {
                return true;
            }
        }
    }
    !has_result
}

/// The lengths of the -1 with batches of 1 and 2, if static inference accepts both.
fn tried(model: &Model, shapes: &Shapes, it: &Swallow) -> Option<[i64; 2]> {
    let length = |batch: i64| {
        let hints = (0..shapes.symbols.len()).map(|at| if at == it.symbol { batch } else { 1 });
        let lengths = shapes.fitting(&hints.collect::<Vec<_>>()).filter(|lengths| lengths[it.symbol] == batch)?;
        let is_loaded = shapes.loads(model, &lengths);
        let found = shapes.lengths_of(it.layer.output(0), &lengths)?.get(it.axis).copied().flatten();
        found.filter(|_| is_loaded)
    };
    Some([length(1)?, length(2)?])
}

/// A statement that moves the -1 of a constant pattern to the batch.
fn pattern_statement(model: &Model, shapes: &Shapes, it: &Swallow, length: i64) -> Option<String> {
    let pattern = model.graph.producer(it.layer.input(1)).and_then(|output| model.graph.layer(output.layer))?;
    let (element_type, count) = pattern.stored_as().filter(|_| ops::is_constant(pattern))?;
    let mut values = pattern.values(model.weights(), element_type, count)?.to_integers().into_vec();
    // The length must be the same for all other lengths of the inputs.
    let hints = vec![UNLIKELY; shapes.symbols.len()];
    let varied: Vec<i64> = (0..hints.len()).map(|at| if at == it.symbol { 1 } else { UNLIKELY }).collect();
    let at_others = shapes.lengths_of(it.layer.output(0), &varied)?.get(it.axis).copied().flatten();
    if at_others != Some(length) || values.len() <= it.axis {
        return None;
    }
    (values[0], values[it.axis]) = (-1, length);
    Some(format!("set {} = {values:?}", Quoted::name(pattern.name())))
}
