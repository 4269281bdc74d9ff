use rustc_hash::{FxHashMap as HashMap, FxHashSet as HashSet};
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::eliminate_converts::names_a_result;
use super::{Action, Changes, remove_unused};
use crate::graph::{Attribute, Edit, EditError, Graph, Input, Layer, LayerId, NewLayer, Output, OutputPort};
use crate::ops::{self, LayerKind, kind};

/// Two Converts for each ConvertPromoteTypes.
pub(super) fn in_full(graph: &mut Edit<'_>, changes: &mut Changes) -> Result<(), EditError> {
    rewrite(graph, changes, true)
}

/// The Converts that do something.
pub(super) fn without_noops(graph: &mut Edit<'_>, changes: &mut Changes) -> Result<(), EditError> {
    rewrite(graph, changes, false)
}

/// A ConvertPromoteTypes that goes.
struct Promotion {
    id: LayerId,
    /// For each output that something uses, the tensor that is promoted.
    operands: [Option<Output>; 2],
    /// Whether that tensor takes the place of the output.
    passes: [bool; 2],
}

/// By output of a ConvertPromoteTypes, the tensor that takes its place; `None` for one that nothing uses.
type StandIns = [Option<Output>; 2];

fn rewrite(graph: &mut Edit<'_>, changes: &mut Changes, with_noops: bool) -> Result<(), EditError> {
    let promotions = promotions(graph, with_noops);
    if promotions.is_empty() {
        return Ok(());
    }
    let shared = if with_noops { HashMap::default() } else { added_converts(graph) };
    let mut lowering = Lowering { shared, ..Lowering::default() };
    for promotion in &promotions {
        lowering.lower(graph, promotion, changes)?;
    }
    let lowered = lowering.lowered;
    let mut wires = Vec::new();
    let mut unused = Vec::new();
    for (from, to) in graph.wires() {
        if lowered.get(&to.layer).is_some_and(|stand_ins| stand_ins.get(to.port).copied().flatten().is_none()) {
            unused.push(from.layer);
        }
        let stand_in = lowered.get(&from.layer).and_then(|stand_ins| stand_ins.get(from.port).copied().flatten());
        wires.extend(stand_in.map(|tensor| (tensor, to)));
    }
    graph.connect_all(wires)?;
    changes.remove(graph, &promotions.iter().map(|promotion| promotion.id).collect::<Vec<_>>())?;
    changes.reveals = true;
    remove_unused(graph, unused, changes)
}

/// Converts that are there already, by the tensor and the type that they convert it to.
type Shared = HashMap<(Output, ElementType), Output>;

/// What was done so far, and what more of the same takes.
#[derive(Default)]
struct Lowering {
    lowered: HashMap<LayerId, StandIns>,
    shared: Shared,
    /// A Convert to each type.
    converts: HashMap<ElementType, NewLayer>,
    rule: Rule,
}

impl Lowering {
    /// Finds or adds something that can take the place of each output of a ConvertPromoteTypes.
    fn lower(
        &mut self,
        graph: &mut Edit<'_>,
        &Promotion { id, operands, passes }: &Promotion,
        changes: &mut Changes,
    ) -> Result<(), EditError> {
        let mut stand_ins = [None; 2];
        let mut reason = None;
        for (port, operand) in operands.into_iter().enumerate() {
            let Some(operand) = operand else { continue };
            let source = match self.lowered.get(&operand.layer) {
                Some(earlier) => earlier.get(operand.port).copied().flatten(),
                None => Some(operand),
            };
            let promoted = id.output(port);
            let Some((source, output)) = source.zip(graph.output(promoted)) else { continue };
            let ty = output.element_type();
            let held = if passes[port] { Some(source) } else { self.shared.get(&(source, ty)).copied() };
            let stand_in = match held {
                Some(held) => held,
                None => {
                    let reason = reason.get_or_insert_with(|| self.rule.reason(graph, id)).clone();
                    self.add_convert(graph, (source, promoted), ty, reason, changes)?
                }
            };
            graph.move_names(promoted, stand_in)?;
            stand_ins[port] = Some(stand_in);
        }
        self.lowered.insert(id, stand_ins);
        Ok(())
    }

    /// Adds the Convert of `source` that makes what the output `promoted` of a ConvertPromoteTypes was.
    fn add_convert(
        &mut self,
        graph: &mut Edit<'_>,
        (source, promoted): (Output, Output),
        ty: ElementType,
        reason: String,
        changes: &mut Changes,
    ) -> Result<Output, EditError> {
        let Output { layer: id, port } = promoted;
        let producer = graph.layer(source.layer).ok_or(EditError::NoLayer(source.layer))?;
        let name = graph.layer(id).ok_or(EditError::NoLayer(id))?.name();
        let from = graph.output(source).ok_or(EditError::NoOutput(source))?.element_type();
        let name = [producer.name(), "/", name, if port == 0 { ".0" } else { ".1" }].concat();
        let convert = self.converts.entry(ty).or_insert_with(|| NewLayer::convert(ty)).clone().named(&name);
        let convert = graph.add(convert, &[source])?;
        graph.copy_metadata(id, convert)?;
        graph.copy_tensor_metadata(promoted, convert.output(0))?;
        if let Some(layer) = graph.layer(convert) {
            changes.add(Action::Inserted, layer, [from, ty], reason);
        }
        Ok(convert.output(0))
    }
}

/// The clause on the rule by which a ConvertPromoteTypes gets its type, kept because the next one is most likely like it.
#[derive(Default)]
struct Rule {
    /// What it follows from: the attributes, and the types and ranks that come in.
    attributes: Vec<Attribute>,
    operands: Vec<(ElementType, Option<usize>)>,
    clause: String,
}

impl Rule {
    /// ``ConvertPromoteTypes 2 `p` takes f16 from `a` and f32 from `b`: f16 with f32 gives f32: the wider float``
    fn reason(&mut self, graph: &Graph, id: LayerId) -> String {
        let Some(layer) = graph.layer(id) else { return String::new() };
        let number = id.to_string();
        let mut reason =
            SmallVec::<[&str; 14]>::from_slice(&["ConvertPromoteTypes ", &number, " `", layer.name(), "` takes "]);
        let mut ports = SmallVec::<[&OutputPort; 2]>::new();
        for source in (0..2).filter_map(|port| graph.producer(id.input(port))) {
            let Some((producer, port)) = graph.layer(source.layer).zip(graph.output(source)) else { continue };
            let separator = if ports.is_empty() { "" } else { " and " };
            reason.extend([separator, port.element_type().name(), " from `", producer.name(), "`"]);
            ports.push(port);
        }
        reason.push(self.clause(layer, &ports));
        reason.concat()
    }

    fn clause(&mut self, layer: &Layer, ports: &[&OutputPort]) -> &str {
        let operands = || ports.iter().map(|port| (port.element_type(), port.shape().rank()));
        if !operands().eq(self.operands.iter().copied()) || layer.attributes() != self.attributes {
            let rule = layer.operation().and_then(|row| ops::promotion_rule(layer, row, ports));
            self.clause = rule.map(|rule| format!(": {rule}")).unwrap_or_default();
            self.operands = operands().collect();
            self.attributes = layer.attributes().to_vec();
        }
        &self.clause
    }
}

/// What the Converts make that alignment put in, by the tensor and the type: one of a tensor to a type is enough.
fn added_converts(graph: &Graph) -> Shared {
    let added = graph.layers().filter(|layer| layer.span().is_none() && kind(layer) == LayerKind::Convert);
    let made = added.filter_map(|layer| {
        let source = graph.producer(layer.id().input(0))?;
        Some(((source, layer.outputs().first()?.element_type()), layer.id().output(0)))
    });
    made.collect()
}

/// Every ConvertPromoteTypes whose type is known, producers first.
fn promotions(graph: &Graph, with_noops: bool) -> Vec<Promotion> {
    if !graph.unordered().any(is_decided) {
        return Vec::new();
    }
    let is_fed = |id: LayerId| (0..2).all(|port| graph.producer(id.input(port)).is_some());
    let mut ids = graph.topological_order().unwrap_or_default();
    ids.retain(|&id| graph.layer(id).is_some_and(is_decided) && is_fed(id));
    let used = used_outputs(graph, &ids);
    // For a tensor that takes the place of an output, the layer that makes it.
    let mut passed = HashMap::<Output, LayerId>::default();
    let mut promotions = Vec::with_capacity(ids.len());
    for id in ids {
        let mut promotion = Promotion { id, operands: [None; 2], passes: [false; 2] };
        for port in 0..2 {
            let promoted = id.output(port);
            let Some(source) = graph.producer(id.input(port)).filter(|_| used.contains(&promoted)) else { continue };
            promotion.operands[port] = Some(source);
            let element_type = |tensor| graph.output(tensor).map(OutputPort::element_type);
            if !with_noops && element_type(promoted) == element_type(source) {
                let origin = passed.get(&source).copied().unwrap_or(source.layer);
                if !names_a_result(graph, promoted, origin) {
                    promotion.passes[port] = true;
                    passed.insert(promoted, origin);
                }
            }
        }
        promotions.push(promotion);
    }
    promotions
}

/// Whether it is a ConvertPromoteTypes whose type is known.
fn is_decided(layer: &Layer) -> bool {
    kind(layer) == LayerKind::ConvertPromoteTypes
        && !layer.outputs().iter().any(|port| port.element_type() == ElementType::Dynamic)
}

/// Of the outputs of `promotes`, given producers first, those that something uses besides one of them whose own output is
/// not used.
fn used_outputs(graph: &Graph, promotes: &[LayerId]) -> HashSet<Output> {
    let going: HashSet<_> = promotes.iter().copied().collect();
    let mut used = HashSet::default();
    for id in promotes.iter().rev() {
        for port in 0..2 {
            let counts = |to: Input| !going.contains(&to.layer) || used.contains(&to.layer.output(to.port));
            if graph.consumers(id.output(port)).any(counts) {
                used.insert(id.output(port));
            }
        }
    }
    used
}
