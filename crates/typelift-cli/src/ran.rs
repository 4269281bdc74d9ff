//! Shows the graph that a plugin ran for a model: `--ran`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use typelift::Model;
use typelift::findings::{Diagnostic, Message, Text, grouped};
use typelift::promote::ElementType;
use typelift::xml::{self, ReadError};
use typelift_run::execution::{Became, Execution, Ran, StoredWeights};

use crate::columns::{Columns, HEAD, PLAIN, Side};
use crate::failure::Failure;
use crate::gate::Clean;
use crate::noted;
use crate::terminal::Format;

/// Limit on the names that are listed.
const NAMES: usize = 4;

#[derive(Clone, clap::Args)]
pub(crate) struct RanArgs {
    /// Execution graph that a plugin wrote for the model. get_runtime_model() or benchmark_app
    /// -exec_graph_path writes it. The answer has the computed types, the fused layers and the unfolded weights
    #[arg(long, value_name = "EXEC.xml")]
    pub(crate) ran: Vec<PathBuf>,
}

/// The form of an answer about a model, and the graphs that plugins ran for it.
#[derive(clap::Args)]
pub(crate) struct AnswerArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) ran: RanArgs,
}

impl RanArgs {
    /// Refuses execution graphs for several models, because each belongs to one.
    pub(crate) fn check(&self, is_single: bool) -> Result<(), Failure> {
        if is_single || self.ran.is_empty() {
            return Ok(());
        }
        Err(Failure::new("an execution graph belongs to one model, and several are given").help("name one model"))
    }

    pub(crate) fn read(&self, model: &Model) -> Result<Vec<Ran>, Failure> {
        self.ran.iter().map(|path| read(model, path)).collect()
    }

    /// If there are several, each finding names its file.
    pub(crate) fn findings(&self, model: &Model) -> Result<Vec<Diagnostic>, Failure> {
        let found = self.ran.iter().zip(self.read(model)?).flat_map(|(path, run)| {
            let note = Message::new("in `{}`", &[&Text(path.display())]);
            let found = run.findings(model).into_iter();
            found.map(move |found| if self.ran.len() > 1 { found.note(note.clone()) } else { found })
        });
        Ok(found.collect())
    }
}

/// Reads an execution graph and matches it with its model.
fn read(model: &Model, path: &Path) -> Result<Ran, Failure> {
    noted::note_read(path);
    let source = xml::load(path).map_err(|error| match error {
        ReadError::Io { source, .. } => Failure::io("read", path, &source),
        error => Failure::new(error.to_string()),
    })?;
    let execution = Execution::read(path, source).map_err(|refused| {
        let first = refused.list.first();
        let reason = first.map_or_else(String::new, |first| first.message.to_string());
        let help = first.and_then(|first| first.fixes.first()).map_or_else(String::new, ToString::to_string);
        Failure::new(format!("`{}`: {reason}", path.display())).help(help)
    })?;
    Ran::of(model, &execution).map_err(|reason| {
        Failure::new(format!("`{}`: {reason}", path.display())).help("give the execution graph of this very model")
    })
}

/// Prints the graph that a plugin ran, as tables.
pub(crate) fn text(file: &str, ran: &Ran) -> String {
    let Ran { layers, counts, .. } = ran;
    let executed: usize = counts.exec.values().sum();
    let constants = counts.exec.get("Const").copied().unwrap_or(0);
    let mut text = format!(
        "\n{HEAD}{}{HEAD:#}: {} layers, of which a plugin made {} executed ones, {constants} of them constants\n",
        Clean(file),
        grouped(layers.len() as u64),
        grouped(executed as u64),
    );
    text += &(became(ran) + &computed(ran) + &kernels(ran) + &added(ran) + &stored(ran));
    text + "note: the file cannot show data that is quantized on the fly, or layers inside Subgraphs and bodies\n"
}

/// Counts the layers by their result: computed, fused, folded or removed.
fn became(ran: &Ran) -> String {
    let mut columns = Columns::headed([Side::Left, Side::Right, Side::Left], ["became", "layers", ""]);
    let words = [
        (Became::Ran, "ran under its own name"),
        (Became::Fused, "fused into another, which lists it"),
        (Became::Inside, "went into another, by its place between named layers"),
        (Became::Spread, "went into several, by its place"),
        (Became::Folded, "computed when the model was compiled"),
        (Became::Gone, "left no trace"),
    ];
    for (became, words) in words {
        let layers: Vec<_> = ran.layers.iter().filter(|layer| layer.became == became).collect();
        if !layers.is_empty() {
            let mut types = BTreeMap::<&str, usize>::new();
            layers.iter().for_each(|layer| *types.entry(&layer.ty).or_default() += 1);
            columns.push(PLAIN, [words.to_owned(), grouped(layers.len() as u64), most(types)]);
        }
    }
    let ends = [Became::Constant, Became::Input, Became::Output];
    let ends = ran.layers.iter().filter(|layer| ends.contains(&layer.became)).count();
    columns.push(PLAIN, ["constants, inputs and outputs".to_owned(), grouped(ends as u64), String::new()]);
    format!("\n{}", columns.print())
}

/// The most frequent words, with their numbers: `MatMul 60, Add 2`.
fn most(counts: BTreeMap<&str, usize>) -> String {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown: Vec<_> = counts.iter().take(NAMES).map(|(word, count)| format!("{} {count}", Clean(word))).collect();
    shown.join(", ") + if counts.len() > NAMES { ", …" } else { "" }
}

fn computed(ran: &Ran) -> String {
    let mut pairs = BTreeMap::<(&str, &str), BTreeMap<&str, usize>>::new();
    for layer in ran.layers.iter().filter(|layer| matches!(layer.became, Became::Ran | Became::Fused)) {
        let computed = layer.exec_gives.as_ref().and_then(|gives| gives.first());
        if let (Some(declared), Some(computed)) = (layer.gives.first(), computed) {
            *pairs.entry((declared, computed)).or_default().entry(&layer.ty).or_default() += 1;
        }
    }
    let mut columns =
        Columns::headed([Side::Left, Side::Left, Side::Right, Side::Left], ["declared", "computed", "results", ""]);
    for ((declared, computed), types) in pairs {
        let count: usize = types.values().sum();
        columns.push(PLAIN, [declared.to_owned(), computed.to_owned(), grouped(count as u64), most(types)]);
    }
    format!("\n{}", columns.print())
}

fn kernels(ran: &Ran) -> String {
    let mut columns = Columns::headed([Side::Right, Side::Right, Side::Left], ["time", "share", "kernels"]);
    let measured = ran.kernels.iter().filter(|kernel| kernel.us > 0);
    for kernel in measured {
        let share = kernel.us as f64 * 100.0 / ran.counts.us.max(1) as f64;
        let name = format!("{} {} × {}", kernel.count, Clean(&kernel.ty), Clean(&kernel.precision));
        columns.push(PLAIN, [format!("{} µs", grouped(kernel.us)), format!("{share:.0} %"), name]);
    }
    match ran.counts.us {
        0 => "\nno times: the plugin did not measure, or ran no inference\n".to_owned(),
        us => format!(
            "\n{}{} µs in all, a mean over an unknown number of inferences, without layers that ran once\n",
            columns.print(),
            grouped(us)
        ),
    }
}

/// The Converts and Reorders that the plugin added.
fn added(ran: &Ran) -> String {
    let mut kinds = BTreeMap::<String, usize>::new();
    for layer in &ran.added {
        let [from, to] = [&layer.from, &layer.to].map(|types| types.first().copied().unwrap_or("nothing"));
        *kinds.entry(format!("{} {from} → {to}", Clean(&layer.ty))).or_default() += 1;
    }
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    if kinds.is_empty() { String::new() } else { format!("added by the plugin: {}\n", kinds.join(", ")) }
}

fn bytes(elements: u64, ty: &str) -> u64 {
    let bits = ElementType::from_name(ty).map_or(0, |ty| u64::from(ty.bits()));
    (elements * bits).div_ceil(8)
}

fn stored(ran: &Ran) -> String {
    let mut groups = BTreeMap::<(&str, &str), Vec<&StoredWeights>>::new();
    for weights in &ran.stored {
        groups.entry((weights.stored_as, weights.used_as.unwrap_or("?"))).or_default().push(weights);
    }
    if groups.is_empty() {
        return String::new();
    }
    let head = ["stored", "used as", "constants", "bytes in the file → in memory", ""];
    let mut columns = Columns::headed([Side::Left, Side::Left, Side::Right, Side::Right, Side::Left], head);
    for ((from, to), weights) in groups {
        let [stored, memory] = [from, to].map(|ty| grouped(weights.iter().map(|it| bytes(it.elements, ty)).sum()));
        let memory = if to == "?" { "not known" } else { &memory };
        let names: Vec<_> = weights.iter().take(NAMES).map(|it| Clean(&it.user).to_string()).collect();
        let names = if from == to { String::new() } else { names.join(", ") };
        let number = grouped(weights.len() as u64);
        columns.push(PLAIN, [from.to_owned(), to.to_owned(), number, format!("{stored} → {memory}"), names]);
    }
    format!("\n{}", columns.print())
}

/// Prints the result of compilation for one layer, in lines.
pub(crate) fn of_layer(ran: &Ran, name: &str) -> Option<String> {
    let layer = ran.layer(name)?;
    let exec = match &layer.exec {
        Some(typelift_run::execution::Led::To(exec)) => format!("`{}`", Clean(exec)),
        Some(typelift_run::execution::Led::ToAll(all)) => format!("{} executed layers", all.len()),
        None => "nothing".to_owned(),
        Some(_) => String::new(),
    };
    let kind = layer.exec_type.as_deref().unwrap_or_default();
    let precision = layer.precision.as_deref().unwrap_or("a type that the file does not state");
    let mut text = match layer.became {
        Became::Ran => format!("ran as {kind} {exec} in {precision}"),
        Became::Fused => format!("was fused into {kind} {exec}, which lists it and computes in {precision}"),
        Became::Inside => format!("has no trace of its own; all ways from it lead into {kind} {exec}"),
        Became::Spread => format!("has no trace of its own; ways from it lead into {exec}"),
        Became::Folded => format!("was computed when the model was compiled, to a constant of {precision}"),
        became => format!("is {} of the executed graph", became.name()),
    };
    if let Some(gives) = layer.exec_gives.as_ref().filter(|gives| !gives.is_empty() && **gives != layer.gives) {
        let _ = write!(text, ", and gives {}", gives.join(", "));
    }
    let mut text = format!("`{}` ({}) {text}\n", Clean(&layer.name), Clean(&layer.ty));
    if !layer.parts.is_empty() {
        let parts: Vec<_> = layer.parts.iter().map(|part| Clean(&part.to_string()).to_string()).collect();
        let _ = writeln!(
            text,
            "  in {} kernels: {}, and the last one, which has the name",
            parts.len() + 1,
            parts.join(", ")
        );
    }
    for weights in ran.stored.iter().filter(|weights| weights.user == layer.name) {
        let (constant, from) = (Clean(&weights.constant), weights.stored_as);
        let from_bytes = grouped(bytes(weights.elements, from));
        let _ = match weights.used_as {
            Some(to) if to == from => writeln!(text, "  weights `{constant}`: kept as {from}, {from_bytes} bytes"),
            Some(to) => {
                let to_bytes = grouped(bytes(weights.elements, to));
                writeln!(text, "  weights `{constant}`: {from} unfolded to {to}, {from_bytes} → {to_bytes} bytes")
            }
            None => writeln!(text, "  weights `{constant}`: no name leads to where they arrive"),
        };
    }
    Some(text)
}

pub(crate) fn compared(first: &Ran, second: &Ran) -> String {
    let mut pairs = BTreeMap::<(String, String), Vec<&str>>::new();
    for layer in first.layers.iter().filter(|layer| layer.became == Became::Ran) {
        let other = second.layer(&layer.name).and_then(|it| it.precision.as_ref());
        if let (Some(a), Some(b)) = (&layer.precision, other)
            && a != b
        {
            pairs.entry((a.clone(), b.clone())).or_default().push(&layer.name);
        }
    }
    if pairs.is_empty() {
        return "\nboth runs computed each layer in the same type\n".to_owned();
    }
    let mut columns =
        Columns::headed([Side::Left, Side::Left, Side::Right, Side::Left], ["first", "second", "layers", ""]);
    for ((a, b), layers) in pairs {
        let names: Vec<_> = layers.iter().take(NAMES).map(|name| Clean(name).to_string()).collect();
        columns.push(PLAIN, [a, b, grouped(layers.len() as u64), names.join(", ")]);
    }
    format!("\n{}{} µs → {} µs\n", columns.print(), grouped(first.counts.us), grouped(second.counts.us))
}
