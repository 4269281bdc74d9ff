//! Replacement of each ConvertPromoteTypes by Converts.

use compact_str::ToCompactString;
use smallvec::SmallVec;
use typelift_promote::ElementType;

use super::conversions::mark_decompression;
use super::eliminate_converts::{feeds_a_result, is_convert, names_a_result};
use super::{Action, Changes, OneGraph, remove_unused};
use crate::base::hash::{HashMap, HashSet};
use crate::edit::Edit;
use crate::model::graph::{AttributeList, EditError, Graph, Input, Layer, LayerId, NewLayer, Output, OutputPort};
use crate::ops::{self, LayerKind, kind};

/// Pass that replaces each ConvertPromoteTypes by Converts, if its type is known.
#[derive(Default)]
pub(super) struct Lowering {
    /// True if Converts without effect are also inserted, as in OpenVINO's pass. Otherwise Converts of 16-bit
    /// constants are marked as decompression.
    with_noops: bool,
    /// Description of a Convert to each type, for reuse.
    converts: HashMap<ElementType, NewLayer>,
    rule: TypeReason,
    name: String,
}

impl OneGraph for Lowering {
    fn concerns(&self, _: &Graph, layer: &Layer) -> bool {
        is_decided(layer) || (!self.with_noops && kind(layer) == LayerKind::Convert)
    }

    fn rewrite(&mut self, graph: &mut Edit<'_>, found: Vec<LayerId>, changes: &mut Changes) -> Result<(), EditError> {
        let (ids, converts): (Vec<_>, _) = found.into_iter().partition(|&id| graph.layer(id).is_some_and(is_decided));
        if ids.is_empty() {
            return Ok(());
        }
        let mut shared = shared(graph, converts);
        let mut promotions = Promotions::of(graph, ids, self.with_noops);
        changes.list.reserve(promotions.list.len());
        for at in 0..promotions.list.len() {
            self.lower(graph, &mut promotions, at, &mut shared, changes)?;
        }
        let moved = promotions.replace(graph, changes)?;
        if self.with_noops { Ok(()) } else { join(graph, moved, shared, changes) }
    }
}

impl Lowering {
    /// Inserts two Converts for each ConvertPromoteTypes, as OpenVINO does.
    pub(super) fn with_noops() -> Self {
        Self { with_noops: true, ..Self::default() }
    }

    pub(super) fn without_noops() -> Self {
        Self::default()
    }

    /// Finds or adds a replacement for each used output of a ConvertPromoteTypes.
    fn lower(
        &mut self,
        graph: &mut Edit<'_>,
        promotions: &mut Promotions,
        at: usize,
        shared: &mut ExistingConverts,
        changes: &mut Changes,
    ) -> Result<(), EditError> {
        let Promotion { id, ports } = promotions.list[at];
        for (port, promoted) in ports.into_iter().enumerate().filter(|(_, promoted)| promoted.is_used) {
            let operand = promoted.operand;
            let source = promotions.output(operand).map_or(Some(operand), |earlier| earlier.stand_in);
            let output = id.output(port);
            let (Some(source), [_, ty]) = (source, promoted.types) else { continue };
            let held = shared.get(&(source, ty)).filter(|_| !feeds_a_result(graph, output));
            let stand_in = match held {
                _ if promoted.origin.is_some() => source,
                Some(&held) => {
                    graph.merge_marks(id, held.layer)?;
                    held
                }
                None => {
                    let made = self.add_convert(graph, source, (output, &ports), ty, changes)?;
                    if !self.with_noops && *shared.entry((source, ty)).or_insert(made) != made {
                        promotions.twins.push(made.layer);
                    }
                    made
                }
            };
            graph.move_names(output, stand_in)?;
            promotions.list[at].ports[port].stand_in = Some(stand_in);
        }
        Ok(())
    }

    /// Inserts the Convert of `source` to `ty` that replaces the output `promoted` of a ConvertPromoteTypes. `both`
    /// contains both of its outputs.
    fn add_convert(
        &mut self,
        graph: &mut Edit<'_>,
        source: Output,
        (promoted, both): (Output, &[Promoted; 2]),
        ty: ElementType,
        changes: &mut Changes,
    ) -> Result<Output, EditError> {
        let Output { layer: id, port } = promoted;
        let name_of = |id| graph.layer(id).map_or("", Layer::name);
        self.name.clear();
        self.name.extend([name_of(source.layer), "/", name_of(id), if port == 0 { ".0" } else { ".1" }]);
        let convert = self.converts.entry(ty).or_insert_with(|| NewLayer::convert(ty)).clone().named(&self.name);
        let convert = graph.add(convert, &[source])?;
        graph.copy_metadata(id, convert)?;
        if !self.with_noops {
            mark_decompression(graph, convert)?;
        }
        graph.copy_tensor_metadata(promoted, convert.output(0))?;
        changes.add_inserted(graph, convert, || self.rule.reason(graph, id, both));
        Ok(convert.output(0))
    }
}

type ExistingConverts = HashMap<(Output, ElementType), Output>;

fn shared(graph: &Graph, converts: Vec<LayerId>) -> ExistingConverts {
    let made = converts.into_iter().filter_map(|id| {
        let made = id.output(0);
        Some(((graph.producer(id.input(0))?, graph.output(made)?.element_type()), made))
    });
    made.collect()
}

/// Merges Converts that have become equal after the promotions between them were removed.
fn join(
    graph: &mut Edit<'_>,
    mut moved: Vec<LayerId>,
    mut shared: ExistingConverts,
    changes: &mut Changes,
) -> Result<(), EditError> {
    let mut gone = HashSet::default();
    while let Some(id) = moved.pop() {
        let made = id.output(0);
        let Some(source) = graph.producer(id.input(0)).filter(|_| !gone.contains(&id)) else { continue };
        let types = [source, made].map(|tensor| graph.output(tensor).map(OutputPort::element_type));
        let [Some(from), Some(to)] = types else { continue };
        let held = *shared.entry((source, to)).or_insert(made);
        // Of two equal Converts, the one that feeds an output of the model is kept.
        let (old, new) = if feeds_a_result(graph, made) { (held, made) } else { (made, held) };
        let marks = graph.marks(old.layer).union(&graph.marks(new.layer));
        if held == made || marks.is_none() || feeds_a_result(graph, old) {
            continue;
        }
        let [Some(layer), Some(kept)] = [old, new].map(|made| graph.layer(made.layer)) else { continue };
        changes.add(
            Action::Removed,
            layer,
            [from, to],
            format!("`{}` already has the same values in type {to}", kept.name()),
        );
        moved.extend(graph.users(old.layer).filter(|&user| is_convert(graph, user)));
        graph.merge_marks(old.layer, new.layer)?;
        graph.replace_uses(old, new)?;
        shared.insert((source, to), new);
        gone.insert(old.layer);
    }
    changes.remove(graph, &gone.into_iter().collect::<Vec<_>>())
}

/// True for a ConvertPromoteTypes whose type is known.
fn is_decided(layer: &Layer) -> bool {
    kind(layer) == LayerKind::ConvertPromoteTypes
        && !layer.outputs().iter().any(|port| port.element_type() == ElementType::Dynamic)
}

/// The ConvertPromoteTypes layers to replace in a graph, producers first.
struct Promotions {
    list: Vec<Promotion>,
    /// Index of each layer in the list.
    places: HashMap<LayerId, usize>,
    /// New Converts that equal another one.
    twins: Vec<LayerId>,
}

#[derive(Clone, Copy)]
struct Promotion {
    id: LayerId,
    ports: [Promoted; 2],
}

#[derive(Clone, Copy)]
struct Promoted {
    operand: Output,
    /// The element types of the tensor and of the output.
    types: [ElementType; 2],
    /// True if a layer uses the output. A ConvertPromoteTypes whose own output is unused does not count.
    is_used: bool,
    /// If the operand can replace the output: the layer that produces the operand, before all promotions.
    origin: Option<LayerId>,
    stand_in: Option<Output>,
}

impl Promotion {
    /// `None` if an input is not connected or an output is missing.
    fn of(graph: &Graph, id: LayerId) -> Option<Self> {
        let made = graph.layer(id)?.outputs();
        let feeds = graph.feeds(id);
        let promoted = |port: usize| {
            let (producer, at) = (*feeds.get(port)?)?;
            let types = [producer.outputs().get(at)?, made.get(port)?].map(OutputPort::element_type);
            Some(Promoted { operand: producer.id().output(at), types, is_used: false, origin: None, stand_in: None })
        };
        Some(Self { id, ports: [promoted(0)?, promoted(1)?] })
    }
}

impl Promotions {
    fn of(graph: &Graph, ids: Vec<LayerId>, with_noops: bool) -> Self {
        let ids = graph.producers_first(ids).into_iter();
        let list: Vec<_> = ids.filter_map(|id| Promotion::of(graph, id)).collect();
        let places = list.iter().enumerate().map(|(place, promotion)| (promotion.id, place)).collect();
        let mut promotions = Self { list, places, twins: Vec::new() };
        promotions.find_uses(graph);
        if !with_noops {
            promotions.find_noops(graph);
        }
        promotions
    }

    fn output(&self, tensor: Output) -> Option<&Promoted> {
        self.list[*self.places.get(&tensor.layer)?].ports.get(tensor.port)
    }

    fn find_uses(&mut self, graph: &Graph) {
        for at in (0..self.list.len()).rev() {
            for port in 0..2 {
                let mut users = graph.consumers(self.list[at].id.output(port));
                let is_used = users.any(|to| self.output(to.layer.output(to.port)).is_none_or(|next| next.is_used));
                self.list[at].ports[port].is_used = is_used;
            }
        }
    }

    /// Finds outputs with the type of their operand, which the operand can replace.
    fn find_noops(&mut self, graph: &Graph) {
        for at in 0..self.list.len() {
            for port in 0..2 {
                let Promoted { operand, types: [from, to], is_used, .. } = self.list[at].ports[port];
                let made = self.list[at].id.output(port);
                if is_used && from == to {
                    let origin = self.output(operand).and_then(|earlier| earlier.origin).unwrap_or(operand.layer);
                    let needed = names_a_result(graph, made, origin);
                    self.list[at].ports[port].origin = (!needed).then_some(origin);
                }
            }
        }
    }

    /// Connects consumers to the replacements. Removes the promotions, and layers that only they used. Returns
    /// Converts that may be duplicates: consumers of the promotions and new ones.
    fn replace(mut self, graph: &mut Edit<'_>, changes: &mut Changes) -> Result<Vec<LayerId>, EditError> {
        let unused = self.unused(graph);
        let mut wires = Vec::with_capacity(2 * self.list.len());
        for &Promotion { id, ports } in &self.list {
            for (port, stand_in) in ports.iter().enumerate().filter_map(|(port, it)| Some((port, it.stand_in?))) {
                wires.extend(graph.consumers(id.output(port)).map(|to| (stand_in, to)));
            }
        }
        wires.sort_unstable_by_key(|&(_, to)| to);
        let (mut moved, gone) = (self.twins, self.list.iter().map(|promotion| promotion.id).collect::<Vec<_>>());
        moved.extend(wires.iter().map(|(_, to)| to.layer).filter(|&id| is_convert(graph, id)));
        // Frees memory before the edges are changed.
        (self.list, self.places) = Default::default();
        graph.connect_all(wires)?;
        changes.remove(graph, &gone)?;
        changes.reveals = true;
        remove_unused(graph, unused, changes)?;
        Ok(moved)
    }

    /// The producers of operands whose promoted output is unused.
    fn unused(&self, graph: &Graph) -> Vec<LayerId> {
        if self.list.iter().flat_map(|promotion| &promotion.ports).all(|promoted| promoted.stand_in.is_some()) {
            return Vec::new();
        }
        let is_unused =
            |to: Input| self.output(to.layer.output(to.port)).is_some_and(|promoted| promoted.stand_in.is_none());
        graph.wires().filter(|&(_, to)| is_unused(to)).map(|(from, _)| from.layer).collect()
    }
}

/// Reason for the type of a ConvertPromoteTypes, as a clause. Cached, because the next one is often equal.
#[derive(Default)]
struct TypeReason {
    /// The key of the cache: attributes, input types and ranks.
    attributes: AttributeList,
    operands: Vec<(ElementType, Option<usize>)>,
    clause: String,
}

impl TypeReason {
    /// Describes a promotion: ``ConvertPromoteTypes 2 `p` takes f16 from `a` and f32 from `b`: f16 with f32 gives f32:
    /// the wider float``.
    fn reason(&mut self, graph: &Graph, id: LayerId, promoted: &[Promoted; 2]) -> String {
        let Some(layer) = graph.layer(id) else { return String::new() };
        let mut reason = String::with_capacity(192);
        reason.extend(["ConvertPromoteTypes ", &id.0.to_compact_string(), " `", layer.name(), "` takes "]);
        let mut ports = SmallVec::<[&OutputPort; 2]>::new();
        for &Promoted { operand, .. } in promoted {
            let Some(producer) = graph.layer(operand.layer) else { continue };
            let Some(port) = producer.outputs().get(operand.port) else { continue };
            let separator = if ports.is_empty() { "" } else { " and " };
            reason.extend([separator, port.element_type().name(), " from `", producer.name(), "`"]);
            ports.push(port);
        }
        reason.push_str(self.clause(layer, &ports));
        reason
    }

    fn clause(&mut self, layer: &Layer, ports: &[&OutputPort]) -> &str {
        let operands = || ports.iter().map(|port| (port.element_type(), port.shape().rank()));
        if !operands().eq(self.operands.iter().copied()) || layer.attributes != self.attributes {
            let rule = layer.operation().and_then(|row| ops::promotion_rule(layer, row, ports));
            self.clause = rule.map(|rule| format!(": {rule}")).unwrap_or_default();
            self.operands = operands().collect();
            self.attributes = layer.attributes.clone();
        }
        &self.clause
    }
}
