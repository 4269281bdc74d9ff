//! The edits of a quantization.

use std::collections::BTreeMap;
use std::sync::Arc;

use typelift_promote::ElementType;

use super::mode::Group;
use super::plan::{QuantizationPlan, QuantizedConstant};
use super::source::{Made, Part, Recent, Source};
use crate::edit::Edit;
use crate::model::graph::{EditError, Input, Layer, Model, NewLayer, Output, OutputPort};
use crate::precision::schemes::{self, is_convert};

/// Group in a model's metadata where nncf stores its settings.
const METADATA: &str = "nncf/weight_compression";
/// Entry by which nncf knows that no two layers share a name.
const UNIQUE_NAMES: &str = "nncf/friendly_names_were_updated";
/// The version of this program; nncf's own entry would claim that nncf was there.
const VERSION: &str = "typelift/version";
/// The type of the cache that a device must use.
const CACHE: &str = "runtime_options/KV_CACHE_PRECISION";
/// The removed value of [`CACHE`].
const FORMER_CACHE: &str = "typelift/KV_CACHE_PRECISION";

impl QuantizationPlan {
    /// Quantizes the constants in one batch: all of them, or none. Each one is replaced by codes, and layers after it
    /// compute `(code - zero point) * scale`. The settings are stored in the metadata of the model under nncf's names, and
    /// `KV_CACHE_PRECISION=f16` is removed from it.
    ///
    /// Codes are computed when the model is saved, or when they are read. A model of version 10 of the format becomes one of
    /// version 11.
    ///
    /// # Errors
    /// [`EditError`] if the plan belongs to another model.
    pub fn apply(&self, model: &mut Model) -> Result<(), EditError> {
        if self.changed().next().is_none() {
            return Ok(());
        }
        let weights = Arc::new(model.weights.clone());
        model.upgrade()?;
        let recent = Arc::default();
        model.edit(|graph| {
            self.renamed.iter().try_for_each(|(layer, name)| graph.set_name(*layer, name))?;
            self.changed().try_for_each(|constant| {
                let Some(parts) = constant.source(&weights).map(|source| NewConstants::new(source, &recent)) else {
                    return Ok(());
                };
                Quantizer { graph: &mut *graph, constant, parts }.quantize()
            })
        })?;
        self.note(model)
    }

    /// Writes what programs look for to the metadata of the model: the settings as nncf names them, and who quantized.
    fn note(&self, model: &mut Model) -> Result<(), EditError> {
        let mut modes = BTreeMap::<_, usize>::new();
        self.changed()
            .filter_map(|it| it.to)
            .for_each(|(mode, group)| *modes.entry((mode.name(), group.to_string())).or_default() += 1);
        let most = modes.into_iter().max_by_key(|(_, count)| *count).map(|(to, _)| to);
        let mut values = match &self.settings {
            Some(settings) => vec![
                ("mode", settings.mode.name().to_owned()),
                ("group_size", settings.group().to_string()),
                ("ratio", settings.ratio().to_string()),
                ("all_layers", if settings.all_layers { "True" } else { "False" }.to_owned()),
                ("backup_mode", settings.backup().name().to_owned()),
            ],
            None => most.map_or(Vec::new(), |(mode, group)| vec![("mode", mode.to_owned()), ("group_size", group)]),
        };
        values.push(match &self.ignored[..] {
            [] => ("ignored_scope", "[]".to_owned()),
            names => ("ignored_scope/names", format!("['{}']", names.join("', '"))),
        });
        for (name, value) in values {
            model.set_rt_info(&format!("{METADATA}/{name}"), &value)?;
        }
        model.set_rt_info(UNIQUE_NAMES, "True")?;
        model.set_rt_info(VERSION, env!("CARGO_PKG_VERSION"))?;
        // A cache that an export of f16 weights asks for would stay in f16 beside quantized weights. optimum-intel removes
        // the entry too.
        if model.rt_info(CACHE).as_deref() == Some("f16") {
            model.remove_rt_info(CACHE);
            model.set_rt_info(FORMER_CACHE, "f16")?;
        }
        Ok(())
    }
}

/// Removes the metadata of a quantization from a model without quantized constants, and restores what it had removed.
pub(crate) fn forget(model: &mut Model) -> Result<(), EditError> {
    if model.walk().any(|(_, graph)| !schemes::find(graph, model.weights()).is_empty()) {
        return Ok(());
    }
    model.remove_rt_info(METADATA);
    if let Some(cache) = model.rt_info(FORMER_CACHE) {
        model.set_rt_info(CACHE, &cache)?;
    }
    if model.remove_rt_info("typelift") && model.rt_info("nncf/version").is_none() {
        model.remove_rt_info(UNIQUE_NAMES);
    }
    Ok(())
}

struct Quantizer<'e, 'm> {
    graph: &'e mut Edit<'m>,
    constant: &'e QuantizedConstant,
    parts: NewConstants,
}

impl Quantizer<'_, '_> {
    /// Replaces the constant by codes, scales and zero points, and inserts the layers that compute its values.
    fn quantize(mut self) -> Result<(), EditError> {
        let constant = self.constant;
        let Some((mode, group)) = constant.to else { return Ok(()) };
        let [codes, scales] = constant.weight.shapes(group).unwrap_or_default();
        let old = constant.layer.output(0);
        let consumers: Vec<_> = self.graph.consumers(old).collect();
        let widens = constant.from != ElementType::F16
            && !consumers.iter().all(|input| self.graph.layer(input.layer).is_some_and(is_convert));
        let tensor_names = self.graph.output(old).map(OutputPort::names).unwrap_or_default();

        let new = self.parts.constant(self.graph, Part::Codes, &codes);
        self.graph.replace_in_place(constant.layer, new, &[])?;
        let mut value = self.convert(old, ElementType::F16)?;
        if mode.has_zero_points() {
            let zeros = self.part(Part::ZeroPoints, &scales, "zero_point")?;
            let zeros = self.convert(zeros, ElementType::F16)?;
            value = self.arithmetic("Subtract", "zero_point/subtract", [value, zeros])?;
        }
        let mut scale = self.part(Part::Scales, &scales, "scale")?;
        if mode.scales() != ElementType::F16 {
            scale = self.convert(scale, ElementType::F16)?;
        }
        let product = format!("fq_weights_{}", constant.weight.port);
        value = self.arithmetic("Multiply", &product, [value, scale])?;
        if group != Group::Channel {
            value = self.reshape(value)?;
        }
        if widens {
            let name = self.name(&format!("{product}/convert"));
            value = self.graph.add(NewLayer::convert(constant.from).named(&name), &[value])?.output(0);
        }
        if !tensor_names.is_empty() {
            self.graph.set_names(old, Vec::new())?;
            self.graph.set_names(value, tensor_names)?;
        }
        redirect(self.graph, consumers, value)
    }

    fn name(&self, of: &str) -> String {
        format!("{}/{of}", self.constant.name)
    }

    fn part(&mut self, part: Part, dims: &[usize], name: &str) -> Result<Output, EditError> {
        let new = self.parts.constant(self.graph, part, dims).named(&self.name(name));
        Ok(self.graph.add(new, &[])?.output(0))
    }

    fn convert(&mut self, tensor: Output, to: ElementType) -> Result<Output, EditError> {
        Ok(self.graph.add(NewLayer::convert(to), &[tensor])?.output(0))
    }

    fn arithmetic(&mut self, ty: &str, name: &str, inputs: [Output; 2]) -> Result<Output, EditError> {
        let name = self.name(name);
        let new = NewLayer::new(ty, "opset1").with_attribute("auto_broadcast", "numpy").named(&name);
        Ok(self.graph.add(new, &inputs)?.output(0))
    }

    /// Inserts a Reshape from groups to the shape of the constant.
    fn reshape(&mut self, tensor: Output) -> Result<Output, EditError> {
        let dims: Vec<_> = self.constant.dims.iter().map(|&dim| dim as i64).collect();
        let shape = self.graph.constant_of(&[dims.len() as i64], &dims)?;
        let new = NewLayer::new("Reshape", "opset1").with_attribute("special_zero", false);
        Ok(self.graph.add(new, &[tensor, shape])?.output(0))
    }
}

/// Connects inputs to a tensor. A Convert to the type of the tensor is removed, and its consumers are connected
/// directly.
fn redirect(graph: &mut Edit<'_>, consumers: Vec<Input>, value: Output) -> Result<(), EditError> {
    let ty = graph.output(value).map(|port| port.element_type());
    let mut pending = consumers;
    while let Some(input) = pending.pop() {
        let is_same = |layer: &Layer| is_convert(layer) && layer.outputs().first().map(|it| it.element_type()) == ty;
        if !graph.layer(input.layer).is_some_and(is_same) {
            graph.connect(value, input)?;
            continue;
        }
        let converted = input.layer.output(0);
        let next: Vec<_> = graph.consumers(converted).collect();
        for &input in &next {
            graph.connect(value, input)?;
        }
        graph.move_names(converted, value)?;
        graph.remove(input.layer)?;
        pending.extend(next);
    }
    Ok(())
}

struct NewConstants {
    source: Arc<Source>,
    recent: Arc<Recent>,
}

impl NewConstants {
    fn new(source: Source, recent: &Arc<Recent>) -> Self {
        Self { source: Arc::new(source), recent: recent.clone() }
    }

    fn constant(&self, graph: &mut Edit<'_>, part: Part, dims: &[usize]) -> NewLayer {
        let made = Made { source: self.source.clone(), part, recent: self.recent.clone() };
        graph.made_constant(made.element_type(), dims, made)
    }
}
