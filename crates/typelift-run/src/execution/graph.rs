//! Execution graphs, read from their files.

use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use typelift::findings::{Code, Diagnostic, Diagnostics};
use typelift::promote::ElementType;
use typelift::{Graph, Layer, xml};

/// Layer that a plugin executed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Executed {
    /// The name.
    pub name: String,
    /// The kind of kernel: `FullyConnected`, `Reorder`.
    pub ty: String,
    /// The names of model layers that it lists, separated by commas.
    pub listed: String,
    /// The precision in the file. For some kinds it is that of the weights.
    pub runtime_precision: String,
    /// The kernel: `brgemm_avx512_bf16`.
    pub primitive: String,
    /// The mean time in microseconds; `None` if it was not measured.
    pub us: Option<u64>,
    /// The element types of its inputs.
    pub inputs: Vec<&'static str>,
    /// The element types of its outputs.
    pub outputs: Vec<&'static str>,
    /// The dimensions of its outputs.
    pub shapes: Vec<Vec<i64>>,
    /// The layer that feeds each input.
    pub(super) feeds: Vec<Option<usize>>,
    /// True if it depends only on constants, so that it ran once, when the model was compiled.
    pub is_constant: bool,
}

/// Execution graph: the layers that a plugin executed for a model, as it wrote them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// The layers, in the order of the file.
    pub layers: Vec<Executed>,
}

impl Execution {
    /// Parses an execution graph. `file` is its name for findings.
    ///
    /// # Errors
    /// The findings, if the text is not an execution graph.
    pub fn read(file: &Path, source: String) -> Result<Self, Diagnostics> {
        let mut refused = Diagnostics::new(file, Arc::new(source));
        if !xml::is_execution(&refused.source) {
            let message = "this is not an execution graph: its layers have no execOrder, or are those of a model";
            let help = "write one with `ov.serialize(compiled.get_runtime_model(), PATH)`";
            refused.list = vec![Diagnostic::new(Code::NotAnIr, message).help(help)];
            return Err(refused);
        }
        // The reader requires an operation set for each layer. With this one, all operations are unknown.
        let source = refused.source.replace("<layer ", "<layer version=\"execution\" ");
        let reading = xml::parse(Arc::new(source));
        let mut errors = reading.diagnostics.iter().filter(|found| found.is_error());
        match (reading.model, errors.find(|found| found.code != Code::MissingWeights)) {
            (Some(model), None) => Ok(Self::of(model.graph())),
            (_, error) => {
                refused.list = error.cloned().into_iter().collect();
                Err(refused)
            }
        }
    }

    fn of(graph: &Graph) -> Self {
        let places: HashMap<_, _> = graph.layers().enumerate().map(|(at, layer)| (layer.id(), at)).collect();
        let found = graph.layers().map(|layer| {
            let feeds = graph.producers(layer.id()).into_iter();
            Executed::of(graph, layer, feeds.map(|feed| places.get(&feed?.layer).copied()).collect())
        });
        let mut layers: Vec<_> = found.collect();
        let order = graph.topological_order().unwrap_or_default();
        for at in order.iter().filter_map(|id| places.get(id).copied()) {
            let Executed { ty, feeds, .. } = &layers[at];
            let is_sink = ["Output", "MemoryOutput"].contains(&ty.as_str());
            let mut known = feeds.iter().flatten().peekable();
            let is_fed = known.peek().is_some();
            let from_constants = is_fed && !is_sink && known.all(|&feed| layers[feed].is_constant);
            layers[at].is_constant = ty == "Const" || from_constants;
        }
        Self { layers }
    }
}

impl Executed {
    fn of(graph: &Graph, layer: &Layer, feeds: Vec<Option<usize>>) -> Self {
        let names = ["originalLayersNames", "runtimePrecision", "primitiveType"];
        let [listed, runtime_precision, primitive] =
            names.map(|name| layer.attribute(name).unwrap_or_default().to_owned());
        let tensors = graph.producers(layer.id()).into_iter().map(|tensor| graph.output(tensor?));
        let outputs = layer.outputs();
        Self {
            name: layer.name().to_owned(),
            ty: layer.ty().to_owned(),
            listed,
            runtime_precision,
            primitive,
            us: layer.attribute("execTimeMcs").and_then(|time| time.parse().ok()),
            inputs: tensors.map(|port| port.map_or("dynamic", |port| port.element_type().name())).collect(),
            outputs: outputs.iter().map(|port| port.element_type().name()).collect(),
            shapes: outputs.iter().map(|port| port.shape().to_static().unwrap_or_default()).collect(),
            feeds,
            is_constant: false,
        }
    }

    pub(super) fn has_weights(&self) -> bool {
        const WITH_WEIGHTS: [&str; 8] = [
            "FullyConnected",
            "Convolution",
            "Deconvolution",
            "MatMul",
            "GatherMatmul",
            "RNNSeq",
            "RNNCell",
            "ScaledDotProductAttention",
        ];
        WITH_WEIGHTS.contains(&self.ty.as_str())
    }

    /// The type in which it computes. For layers with weights it is the type of the first input, because the
    /// file states the type of the weights.
    pub(crate) fn precision(&self) -> &str {
        match self.inputs.first() {
            Some(first) if self.has_weights() => first,
            _ => &self.runtime_precision,
        }
    }

    /// The time that it takes in one inference, in microseconds.
    pub(crate) fn time(&self) -> Option<u64> {
        self.us.filter(|_| !self.is_constant)
    }
}

/// The bits of an element type; 0 for an unknown one.
pub(super) fn bits(name: &str) -> u32 {
    ElementType::from_name(name).map_or(0, ElementType::bits)
}
