//! Insertion of Converts so that the inputs of each layer have types that it accepts.

use typelift_promote::{ElementType, RuleSet, openvino};

use super::conversions::{Conversions, mark_decompression};
use super::{Action, Change, Changes, PassError, remove_unused};
use crate::base::hash::HashSet;
use crate::edit::Edit;
use crate::findings::Diagnostic;
use crate::infer::{self, Alignments};
use crate::model::graph::{EditError, Graph, Input, Layer, LayerId, Model, NewLayer, Output, OutputPort, Place};
use crate::ops::{self, LayerKind, kind};
use crate::promotion::align::declared::{self, Correction, Overrides, Repair};
use crate::promotion::align::{self, Retyped, Wanted};

/// Choice of the type for inputs that must agree in element type but differ.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Align {
    /// The type that makes the outputs agree with the declared types of the file. If the file declares no types,
    /// OpenVINO's rules with these options are used.
    Declared(openvino::Options),
    /// The common type of these rules.
    Rules(RuleSet),
    /// An error for such inputs.
    Off,
}

impl Default for Align {
    fn default() -> Self {
        Self::Declared(openvino::Options::default())
    }
}

impl Align {
    /// Iterates over the names of all choices for a model: `declared`, those of promotion rules, and `off`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let rules = RuleSet::for_models().map(|rules| rules.name());
        std::iter::once("declared").chain(rules).chain(["off"])
    }

    /// Parses `declared`, `off` or the name of promotion rules. `options` apply to OpenVINO's rules.
    #[must_use]
    pub fn named(name: &str, attributes: openvino::Options) -> Option<Self> {
        match (name, RuleSet::from_name(name)) {
            ("declared", _) => Some(Self::Declared(attributes)),
            ("off", _) => Some(Self::Off),
            (_, Some(RuleSet::OpenVino(_))) => Some(Self::Rules(RuleSet::OpenVino(attributes))),
            (_, rules) => rules.map(Self::Rules),
        }
    }
}

impl From<RuleSet> for Align {
    fn from(rules: RuleSet) -> Self {
        Self::Rules(rules)
    }
}

/// Infers the model as [`infer`](crate::infer()) does, and inserts Converts before inputs that must agree in type,
/// also in bodies. Returns the findings and the changes. Afterwards all types and shapes are up to date.
///
/// Nothing is changed if [`infer`](crate::infer()) reports no error about types.
///
/// [`Align::Declared`] chooses the type for which the outputs of the layer match its declared ports. If the outputs do
/// not depend on the type, as in comparisons, the one that needs the fewest Converts is chosen. One Convert is
/// inserted directly after the tensor with the wrong type. If that tensor comes from a Convert with a wrong
/// `destination_type`, the attribute is corrected instead. Floating-point numbers are never converted to integers,
/// indices or booleans; that is reported as an error.
///
/// [`Align::Rules`] inserts a Convert before each input whose type differs from [`RuleSet::promote_all`] of the tied
/// inputs, in their order. A `Const` of rank 0 is treated as a scalar number. An operation that requires floating
/// point gets [`RuleSet::default_float`] instead of integers. Layers after the change are inferred with the new types.
/// Each tensor is converted only once to a type, and not at all if another tensor already has the values in that type.
/// If the rules define no accepted type, an error lists other rules that do.
///
/// # Errors
/// [`PassError`]: the result is damaged, which is a bug in Typelift.
///
/// # Examples
/// ```
/// use typelift::passes::Align;
/// let text = r#"<net name="n" version="11"><layers>
///     <layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,3" element_type="f16"/>
///         <output><port id="0" precision="FP16"/></output></layer>
///     <layer id="1" name="y" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
///         <output><port id="0" precision="FP32"/></output></layer>
///     <layer id="2" name="sum" type="Add" version="opset1"><input><port id="0"/><port id="1"/></input>
///         <output><port id="2" precision="FP16"/></output></layer>
///     <layer id="3" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
/// </layers><edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
///     <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
///     <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/></edges></net>"#;
/// let mut model = typelift::Model::from_xml(text)?;
/// let (diagnostics, changes) = typelift::passes::infer_aligned(&mut model, Align::default()).unwrap();
/// assert!(diagnostics.is_empty());
/// assert_eq!(changes[0].layer.name, "y/sum.1");
/// assert!(changes[0].reason.ends_with("the file declares f16 for its output"));
///
/// let mut model = typelift::Model::from_xml(text)?;
/// let rules = typelift::promote::RuleSet::from_name("openvino").unwrap();
/// let (_, changes) = typelift::passes::infer_aligned(&mut model, rules).unwrap();
/// assert_eq!(changes[0].layer.name, "x/sum.0");
/// assert!(changes[0].reason.ends_with("f16 with f32 gives f32: the wider float"));
/// # Ok::<(), typelift::findings::Diagnostics>(())
/// ```
pub fn infer_aligned(model: &mut Model, align: impl Into<Align>) -> Result<(Vec<Diagnostic>, Vec<Change>), PassError> {
    let mut changes = Changes::of(&model.weights);
    let diagnostics = match align.into() {
        Align::Declared(attributes) => align_as_declared(model, attributes, &mut changes)?,
        Align::Rules(rules) => align_by_rules(model, rules, &mut changes)?,
        Align::Off => infer::infer(model),
    };
    Ok((diagnostics, changes.list))
}

fn align_as_declared(
    model: &mut Model,
    rules: openvino::Options,
    changes: &mut Changes,
) -> Result<Vec<Diagnostic>, PassError> {
    let relaxed = make_plain(model, changes)?;
    let mut diagnostics = infer::infer(model);
    if !diagnostics.iter().any(Diagnostic::is_error) && !differs_when_run(&model.graph) {
        return Ok(diagnostics);
    }
    let changed = retyped_inputs(model);
    let Repair { alignments, corrections, refusals, .. } = declared::find(model, &Overrides { changed, relaxed });
    if !refusals.is_empty() {
        diagnostics.retain(|found| refusals.iter().all(|refusal| refusal.layer != found.layer));
        diagnostics.extend(refusals);
        diagnostics.sort_by_key(|found| found.labels.first().map(|label| label.span.start));
        return Ok(diagnostics);
    }
    edit(model, |model| {
        for Correction { place, layer, attribute, types, reason } in corrections {
            let mut graph = changes.enter(model, &place)?;
            changes.retype(&mut graph, layer, attribute, types, reason)?;
        }
        alignments.iter().try_for_each(|(place, alignments)| apply(model, place, alignments, changes))
    })?;
    align_by_rules(model, RuleSet::OpenVino(rules), changes)
}

/// Edits a model. If the model was valid, checks that it still is.
fn edit(model: &mut Model, edits: impl FnOnce(&mut Edit<'_>) -> Result<(), EditError>) -> Result<(), PassError> {
    let was_sound = model.graph().verify().is_ok();
    model.edit(edits)?;
    if was_sound { model.graph().verify().map_err(PassError::Invalid) } else { Ok(()) }
}

/// Replaces operations of `type_relaxed_opset` by ordinary ones, and returns these layers. OpenVINO's plugins use this
/// set internally; no release reads it. Its operations accept any input types, and have the declared output types.
fn make_plain(model: &mut Model, changes: &mut Changes) -> Result<HashSet<(Place, LayerId)>, PassError> {
    let relaxed = model.walk().flat_map(|(place, graph)| {
        let relaxed = graph.layers().filter(|layer| layer.version() == "type_relaxed_opset");
        relaxed.filter_map(move |layer| Some((place.clone(), layer.id(), plain_version(layer)?)))
    });
    let relaxed: Vec<_> = relaxed.collect();
    if relaxed.is_empty() {
        return Ok(HashSet::default());
    }
    edit(model, |model| {
        for (place, id, version) in &relaxed {
            let mut graph = changes.enter(model, place)?;
            let ty = graph.layer(*id).ok_or(EditError::NoLayer(*id))?.ty().to_owned();
            graph.set_operation(*id, &ty, version)?;
            if let Some(layer) = graph.layer(*id) {
                let ty = layer.outputs().first().map_or(ElementType::Dynamic, |port| port.element_type());
                let reason = format!("only OpenVINO's plugins use type_relaxed_opset; {version} has the operation");
                changes.add(Action::Corrected, layer, [ty, ty], reason);
            }
        }
        Ok(())
    })?;
    Ok(relaxed.into_iter().map(|(place, id, _)| (place, id)).collect())
}

/// The oldest operation set whose revision of the operation has all attributes and ports of the layer.
fn plain_version(layer: &Layer) -> Option<String> {
    let revisions = ops::revisions(layer.ty());
    let found = revisions.iter().filter(|row| {
        row.input_counts().contains(&layer.inputs().len())
            && layer.attributes().iter().all(|written| row.attribute(written.name()).is_some())
    });
    let row = found.min_by_key(|row| row.revision).or(revisions.first())?;
    Some(format!("opset{}", row.opsets().next()?))
}

/// The inputs of the model whose type differs from the file.
fn retyped_inputs(model: &Model) -> Vec<LayerId> {
    let retyped = model.inputs().filter(|layer| {
        let declared = layer.outputs().first().and_then(|port| port.declared);
        let ty = layer.named_type("element_type");
        layer.edited && declared.is_some() && declared != ty
    });
    retyped.map(Layer::id).collect()
}

fn differs_when_run(graph: &Graph) -> bool {
    graph.unordered().any(|layer| {
        let operation = layer.operation().filter(|operation| operation.tied_when_run);
        let types = || -> Vec<_> { graph.tensors(layer.id()).into_iter().map(OutputPort::element_type).collect() };
        layer.bodies().iter().any(|body| differs_when_run(&body.graph))
            || operation.is_some_and(|operation| {
                let types = types();
                let groups = operation.input_groups(&types);
                groups.iter().any(|group| group.iter().any(|&input| types[input] != types[group[0]]))
            })
    })
}

fn align_by_rules(model: &mut Model, rules: RuleSet, changes: &mut Changes) -> Result<Vec<Diagnostic>, PassError> {
    let (mut diagnostics, Wanted { alignments, retyped, is_outdated }) = align::infer_by_rules(model, rules);
    if !retyped.is_empty() || alignments.values().any(|alignments| !alignments.is_empty()) {
        edit(model, |model| {
            for Retyped { body, parameter, types, reason } in retyped {
                let mut graph = changes.enter(model, &body)?;
                changes.retype(&mut graph, parameter, "element_type", types, reason)?;
            }
            alignments.iter().try_for_each(|(place, alignments)| apply(model, place, alignments, changes))
        })?;
    }
    let refused = diagnostics.iter().any(Diagnostic::is_error);
    let is_aligned = !refused && !changes.list.is_empty();
    if is_outdated || is_aligned {
        let found = infer::infer(model);
        if !refused {
            diagnostics.extend(found.into_iter().filter(Diagnostic::is_error));
        }
    }
    Ok(diagnostics)
}

fn apply(model: &mut Edit<'_>, place: &Place, alignments: &Alignments, changes: &mut Changes) -> Result<(), EditError> {
    if alignments.is_empty() {
        return Ok(());
    }
    let mut graph = changes.enter(model, place)?;
    let mut converter = Converter::new(&graph);
    let order = graph.topological_order().unwrap_or_default();
    for (id, alignment) in order.into_iter().filter_map(|id| Some((id, alignments.get(&id)?))) {
        let producers = graph.producers(id);
        for &(port, to) in &alignment.inputs {
            let Some(&Some(tensor)) = producers.get(port) else { continue };
            let source = converter.convert(&mut graph, (tensor, to), id.input(port), &alignment.reason, changes)?;
            converter.wires.push((source, id.input(port)));
            converter.left.push(tensor.layer);
        }
    }
    converter.finish(&mut graph, changes)
}

/// Inserter of Converts. It shares one Convert among all inputs that need a tensor in the same type, and reuses
/// existing tensors.
struct Converter {
    conversions: Conversions,
    names: HashSet<String>,
    /// Existing tensors that are used instead of a new Convert.
    used: HashSet<(Output, ElementType)>,
    wires: Vec<(Output, Input)>,
    /// Layers that may be unused now.
    left: Vec<LayerId>,
}

impl Converter {
    fn new(graph: &Graph) -> Self {
        Self {
            conversions: Conversions::of(graph),
            names: graph.unordered().map(|layer| layer.name().to_owned()).collect(),
            used: HashSet::default(),
            wires: Vec::new(),
            left: Vec::new(),
        }
    }

    fn convert(
        &mut self,
        graph: &mut Edit<'_>,
        (tensor, to): (Output, ElementType),
        input: Input,
        reason: &str,
        changes: &mut Changes,
    ) -> Result<Output, EditError> {
        if let Some(source) = self.conversions.find(graph, tensor, to) {
            let holder = graph.layer(source.layer).filter(|layer| layer.span().is_some());
            if let Some((layer, port)) = holder.zip(graph.output(tensor))
                && self.used.insert((tensor, to))
            {
                changes.add(Action::Used, layer, [port.element_type(), to], reason);
            }
            return Ok(source);
        }
        let tensor = self.conversions.origin(graph, tensor, to);
        let [producer, user] = [tensor.layer, input.layer].map(|id| graph.layer(id).map_or("", Layer::name));
        let name = unique(format!("{producer}/{user}.{}", input.port), &mut self.names);
        let convert = graph.add(NewLayer::convert(to).named(&name), &[tensor])?;
        mark_decompression(graph, convert)?;
        let made = convert.output(0);
        self.conversions.add(graph, tensor, to, made);
        changes.add_inserted(graph, convert, || reason.to_owned());
        Ok(made)
    }

    /// Connects the inputs, and removes Converts that are unused now.
    fn finish(self, graph: &mut Edit<'_>, changes: &mut Changes) -> Result<(), EditError> {
        graph.connect_all(self.wires)?;
        let mut left = self.left;
        left.retain(|&id| graph.layer(id).is_some_and(|layer| kind(layer) == LayerKind::Convert));
        remove_unused(graph, left, changes)
    }
}

pub(crate) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name)).unwrap_or(name);
    taken.insert(free.clone());
    free
}
