//! Graph that is prepared for comparison: its layers are numbered in topological order.

use std::hash::{Hash, Hasher};

use smallvec::SmallVec;

use crate::base::hash::{HashMap, HashSet, hasher};
use crate::edit::precision_marks::Marks;
use crate::model::graph::{
    Body, Direction, Graph, IrVersion, Layer, LayerId, Model, OutputPort, PortMapEntry, split_names,
};
use crate::model::shape::Shape;
use crate::model::weights::Weights;
use crate::ops::{self, AttrKind, Conversion, LayerKind, Operation};
use typelift_promote::ElementType;

/// Producer of an input: number of the layer, and position of its output.
pub(super) type Feed = Option<(usize, usize)>;

/// Use of an output: layer and input.
#[derive(Clone, Copy)]
pub(super) struct Use {
    pub(super) layer: usize,
    pub(super) output: u32,
    pub(super) input: u32,
}

/// Graph whose layers are numbered; each follows its producers.
pub(super) struct Side<'a> {
    pub(super) weights: &'a Weights,
    version: IrVersion,
    pub(super) layers: Vec<&'a Layer>,
    pub(super) operations: Vec<Option<&'static Operation>>,
    pub(super) feeds: Vec<SmallVec<[Feed; 3]>>,
    /// Most layers have one use, which is stored inline.
    pub(super) uses: Vec<SmallVec<[Use; 1]>>,
    /// True if a Result or an Assign depends on the layer.
    pub(super) alive: Vec<bool>,
    /// Connections of a body's Parameters and Results to its layer; for a model, their positions.
    pub(super) roles: HashMap<usize, u64>,
    pub(super) in_body: bool,
    /// Compressed constants by the number of the Convert that restores the values.
    stored: HashMap<usize, &'a Layer>,
}

impl<'a> Side<'a> {
    pub(super) fn new(graph: &'a Graph, model: &'a Model, within: Option<(&Layer, &Body)>) -> Self {
        // If layers form a cycle, the order of the file is used.
        let mut order = graph.topological_order().unwrap_or_else(|_| graph.layers().map(Layer::id).collect());
        let compressed = compressed(graph, model.version());
        let storage: HashSet<LayerId> = compressed.values().map(|constant| constant.id()).collect();
        order.retain(|id| !storage.contains(id));
        let place: HashMap<LayerId, usize> = order.iter().enumerate().map(|(at, &id)| (id, at)).collect();
        let layers: Vec<&Layer> = order.iter().filter_map(|&id| graph.layer(id)).collect();
        let feed = |feed: Option<(&Layer, usize)>| feed.map(|(layer, port)| (place[&layer.id()], port));
        let feeds_of = |&id: &LayerId| match compressed.get(&id) {
            Some(_) => SmallVec::new(),
            None => graph.feeds(id).into_iter().map(feed).collect(),
        };
        let feeds: Vec<SmallVec<[Feed; 3]>> = order.iter().map(feeds_of).collect();
        let mut uses = vec![SmallVec::new(); layers.len()];
        for (layer, feeds) in feeds.iter().enumerate() {
            for (input, feed) in feeds.iter().enumerate() {
                if let &Some((source, output)) = feed {
                    uses[source].push(Use { layer, output: output as u32, input: input as u32 });
                }
            }
        }
        let stored: HashMap<usize, &Layer> = compressed.iter().map(|(id, layer)| (place[id], *layer)).collect();
        let layer_of = |(at, layer): (usize, &&'a Layer)| stored.get(&at).copied().unwrap_or(*layer);
        let operations = layers.iter().enumerate().map(|it| layer_of(it).operation()).collect();
        let mut side = Self {
            weights: model.weights(),
            version: model.version(),
            stored,
            operations,
            alive: Vec::new(),
            roles: HashMap::default(),
            in_body: within.is_some(),
            layers,
            feeds,
            uses,
        };
        side.alive = side.find_alive();
        side.roles = side.find_roles(within);
        side
    }

    pub(super) fn len(&self) -> usize {
        self.layers.len()
    }

    /// The operation without its revision, by which layers are matched.
    pub(super) fn operation(&self, at: usize) -> &'a str {
        match self.operations[at] {
            Some(operation) => operation.name,
            None => self.layers[at].ty(),
        }
    }

    /// The operation, and for a constant the kind of its numbers: layers of another one never match without a name.
    pub(super) fn rough_label(&self, at: usize) -> u64 {
        let port = self.layers[at].outputs().first().filter(|_| self.is_constant(at));
        hash_of(&(self.operation(at), port.map(|port| port.element_type().is_float())))
    }

    pub(super) fn holder(&self, at: usize) -> &'a Layer {
        self.stored.get(&at).copied().unwrap_or(self.layers[at])
    }

    pub(super) fn is_compressed(&self, at: usize) -> bool {
        self.stored.contains_key(&at)
    }

    pub(super) fn is_constant(&self, at: usize) -> bool {
        self.operations[at].is_some_and(|operation| operation.kind == LayerKind::Constant)
    }

    pub(super) fn is_parameter(&self, at: usize) -> bool {
        self.operations[at].is_some_and(|operation| operation.kind == LayerKind::Parameter)
    }

    pub(super) fn is_result(&self, at: usize) -> bool {
        self.operations[at].is_some_and(|operation| operation.kind == LayerKind::Result)
    }

    pub(super) fn is_equal_constant(&self, at: usize, other: &Side<'_>, there: usize) -> bool {
        self.is_constant(at)
            && other.is_constant(there)
            && self.form(at) == other.form(there)
            && self.has_values_of(at, other, there)
    }

    /// True for constants of one type with the same values, maybe in other shapes.
    pub(super) fn has_values_of(&self, at: usize, other: &Side<'_>, there: usize) -> bool {
        let ty = |side: &Side<'_>, at: usize| side.holder(at).outputs().first().map(|port| port.element_type());
        self.is_constant(at)
            && other.is_constant(there)
            && ty(self, at) == ty(other, there)
            && self.bytes(at).is_some_and(|known| other.bytes(there).is_some_and(|it| it == known))
    }

    /// The types and shapes in which a constant is used and stored, and its marks.
    fn form(&self, at: usize) -> ([Option<String>; 2], Marks) {
        let type_of = |layer: &Layer| layer.outputs().first().map(ToString::to_string);
        ([type_of(self.layers[at]), type_of(self.holder(at))], Marks::of(self.holder(at), self.version))
    }

    fn bytes(&self, at: usize) -> Option<Vec<u8>> {
        super::values::bytes_of(self.holder(at), self.weights)
    }

    /// The names of each tensor of a layer, sorted. The output names of Results replace those that its port
    /// declares, as in OpenVINO. A Result without output names has those of its tensor.
    pub(super) fn tensor_names(&self, at: usize) -> Vec<Vec<String>> {
        let of_result = |at: usize| self.layers[at].output_names().map(split_names).unwrap_or_default();
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names.dedup();
            names
        };
        if self.is_result(at) {
            let own = of_result(at);
            return match self.feeds[at].first().copied().flatten() {
                Some((source, port)) if own.is_empty() => vec![self.tensor_names(source).swap_remove(port)],
                _ => vec![sorted(own)],
            };
        }
        let ports = self.layers[at].outputs().iter().enumerate();
        let names = ports.map(|(number, port)| {
            let results =
                self.uses[at].iter().filter(|use_| use_.output as usize == number && self.is_result(use_.layer));
            let given: Vec<String> = results.clone().flat_map(|use_| of_result(use_.layer)).collect();
            let declared = results.flat_map(|use_| self.layers[use_.layer].outputs()).flat_map(OutputPort::names);
            sorted(if given.is_empty() { port.names().into_iter().chain(declared).collect() } else { given })
        });
        names.collect()
    }

    /// For each layer, true if it depends only on constants.
    pub(super) fn find_folded(&self) -> Vec<bool> {
        let mut folded = vec![false; self.len()];
        for at in 0..self.len() {
            folded[at] = self.is_constant(at)
                || !self.feeds[at].is_empty()
                    && self.feeds[at].iter().all(|feed| feed.is_some_and(|(source, _)| folded[source]));
        }
        folded
    }

    fn find_alive(&self) -> Vec<bool> {
        let mut alive: Vec<bool> = self.layers.iter().map(|layer| layer.start().is_some()).collect();
        for at in (0..self.len()).rev() {
            alive[at] |= self.uses[at].iter().any(|use_| alive[use_.layer]);
        }
        alive
    }

    fn find_roles(&self, within: Option<(&Layer, &Body)>) -> HashMap<usize, u64> {
        let mut roles = HashMap::default();
        match within {
            Some((layer, body)) => {
                let ports = Ports::of(layer);
                let by_id: HashMap<LayerId, usize> =
                    self.layers.iter().enumerate().map(|(at, layer)| (layer.id(), at)).collect();
                for entry in &body.port_map {
                    if let Some(&at) = by_id.get(&entry.internal_layer_id) {
                        let outer = (entry.direction == Direction::Input, ports.outer(entry), entry.purpose());
                        // A Result may feed several outputs of the layer; their order in the file is ignored.
                        let role: &mut u64 = roles.entry(at).or_default();
                        *role = role.wrapping_add(hash_of(&outer));
                    }
                }
            }
            None => {
                let mut ends: Vec<usize> = (0..self.len()).filter(|&at| self.layers[at].start().is_some()).collect();
                ends.sort_by_key(|&at| self.layers[at].span());
                let mut counts = HashMap::<&str, u64>::default();
                for at in ends {
                    let count = counts.entry(self.operation(at)).or_default();
                    roles.insert(at, *count + 1);
                    *count += 1;
                }
            }
        }
        roles
    }

    /// An attribute in a normal form, in which texts with the same meaning are equal. A missing attribute has
    /// its default, and one that OpenVINO does not use has none.
    pub(super) fn meaning(&self, at: usize, name: &str, written: Option<&str>) -> Option<String> {
        let attr = self.operations[at].and_then(|operation| operation.attribute(name));
        let is_flag = attr.is_some_and(|attr| matches!(attr.kind, AttrKind::Bool));
        let written = written.filter(|text| !is_flag || !text.trim().is_empty());
        let text = written.or_else(|| attr.and_then(|attr| attr.default)).or(is_flag.then_some("false"))?;
        let text = attr.map_or_else(|| text.to_owned(), |attr| meaning_as(attr.kind, text));
        let is_all = |number: &str| text.split(',').all(|item| item == number);
        match (self.operation(at), name) {
            // The shape of the output says it.
            ("ROIPooling", "output_size" | "output_roi" | "pooled_h" | "pooled_w") => None,
            ("OneHot", "axis") => {
                let rank = self.layers[at].outputs().first().and_then(|port| port.shape().rank());
                let axis = text.parse::<i64>().ok().zip(rank);
                Some(axis.map_or(text, |(axis, rank)| (if axis < 0 { axis + rank as i64 } else { axis }).to_string()))
            }
            (_, "pads_begin" | "pads_end") if self.computes_pads(at) || is_all("0") => None,
            (_, "output_padding") if is_all("0") => None,
            (_, "strides" | "dilations") if is_all("1") => None,
            _ => Some(text),
        }
    }

    fn computes_pads(&self, at: usize) -> bool {
        let auto = self.layers[at].attribute("auto_pad").map(str::trim).map(str::to_ascii_lowercase);
        auto.is_some_and(|auto| ["same_upper", "same_lower", "valid"].contains(&auto.as_str()))
    }

    pub(super) fn is_default_input(&self, at: usize, input: usize) -> bool {
        let constant = self.feeds[at].get(input).copied().flatten().filter(|&(source, _)| self.is_constant(source));
        let Some(values) = constant.and_then(|(source, _)| self.layers[source].numbers(self.weights)) else {
            return false;
        };
        match (self.operation(at), input) {
            ("Pad", 3) | ("NonMaxSuppression", 2..=4) => values.iter().all(|&value| value == 0.0),
            ("StridedSlice", 3) => values.iter().all(|&value| value == 1.0),
            ("Slice", 4) => values.iter().enumerate().all(|(axis, &value)| value == axis as f64),
            _ => false,
        }
    }

    /// Iterates over the attributes of a layer that affect its result, as written in the file.
    pub(super) fn attributes(&self, at: usize) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let skipped: &[&str] = match self.operations[at].map(|row| row.kind) {
            Some(LayerKind::Constant) => &["offset", "size", "element_type", "shape"],
            Some(LayerKind::Parameter) => &["element_type", "shape"],
            _ => &[],
        };
        let attributes = self.layers[at].attributes().iter().map(|attribute| (attribute.name(), attribute.value()));
        attributes.filter(move |(name, _)| !skipped.contains(name))
    }

    pub(super) fn label(&self, at: usize) -> u64 {
        let mut hasher = hasher();
        self.operation(at).hash(&mut hasher);
        self.roles.get(&at).hash(&mut hasher);
        let layer = self.layers[at];
        let outputs = if self.is_result(at) { 0 } else { layer.outputs().len() };
        (layer.inputs().len(), outputs, layer.bodies().len()).hash(&mut hasher);
        // A default may be written or omitted, so it is not hashed.
        let known = self.operations[at];
        let mut attributes: Vec<(&str, String)> = self
            .attributes(at)
            .filter_map(|(name, value)| Some((name, self.meaning(at, name, Some(value))?)))
            .filter(|(name, value)| {
                known.is_none_or(|operation| operation.attribute(name).is_some())
                    && !value.is_empty()
                    && self.meaning(at, name, None).as_ref() != Some(value)
            })
            .collect();
        attributes.sort();
        attributes.hash(&mut hasher);
        if self.is_constant(at) || self.is_parameter(at) && !self.in_body {
            layer.outputs().first().map(ToString::to_string).hash(&mut hasher);
        }
        if self.is_constant(at) {
            self.bytes(at).hash(&mut hasher);
        }
        hasher.finish()
    }
}

/// The Converts that restore a constant without other consumers, each with that constant: those with the mark of
/// decompression, and those from a float to a wider one, which keep every value.
fn compressed(graph: &Graph, version: IrVersion) -> HashMap<LayerId, &Layer> {
    let mut found = HashMap::default();
    for constant in graph.unordered().filter(|layer| ops::is_constant(layer)) {
        let users = graph.users(constant.id()).filter_map(|id| graph.layer(id));
        let (converts, others): (Vec<_>, Vec<_>) = users.partition(|layer| {
            let converts = ops::conversion(graph, layer).filter(|_| ops::kind(layer) == LayerKind::Convert);
            let widens = |it: &Conversion| {
                it.to.is_float() && it.from[..].iter().all(|ty| ty.is_float()) && it.lossy().next().is_none()
            };
            converts.is_some_and(|it| widens(&it) || Marks::of(layer, version).is_decompression())
        });
        if others.is_empty() {
            found.extend(converts.into_iter().map(|convert| (convert.id(), constant)));
        }
    }
    found
}

/// Positions of a layer's ports by their ids, to which entries of the port map refer.
pub(super) struct Ports(HashMap<(Direction, i64), usize>);

impl Ports {
    pub(super) fn of(layer: &Layer) -> Self {
        let inputs = layer.inputs().iter().map(|port| (Direction::Input, port.id())).enumerate();
        let outputs = layer.outputs().iter().map(|port| (Direction::Output, port.id())).enumerate();
        let mut ports = HashMap::default();
        for (at, (direction, id)) in inputs.chain(outputs) {
            if let Ok(id) = i64::try_from(id) {
                ports.entry((direction, id)).or_insert(at);
            }
        }
        Self(ports)
    }

    pub(super) fn outer(&self, entry: &PortMapEntry) -> Option<usize> {
        self.0.get(&(entry.direction, entry.external_port_id)).copied()
    }
}

pub(super) fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = hasher();
    value.hash(&mut hasher);
    hasher.finish()
}

fn meaning_as(kind: AttrKind, text: &str) -> String {
    let trimmed = text.trim();
    let number =
        |text: &str| text.trim().parse().map_or_else(|_| text.trim().to_owned(), |value: f32| value.to_string());
    let list = |item: &dyn Fn(&str) -> String| trimmed.split(',').map(item).collect::<Vec<_>>().join(",");
    match kind {
        AttrKind::Bool => match trimmed.to_ascii_lowercase().as_str() {
            "1" | "yes" => "true".to_owned(),
            "0" | "no" => "false".to_owned(),
            other => other.to_owned(),
        },
        AttrKind::Int | AttrKind::Unsigned | AttrKind::Bytes => {
            trimmed.parse::<i128>().map_or_else(|_| trimmed.to_owned(), |value| value.to_string())
        }
        AttrKind::Float => number(trimmed),
        AttrKind::Floats => list(&number),
        AttrKind::Ints | AttrKind::UnsignedInts | AttrKind::Texts => list(&|item| item.trim().to_owned()),
        AttrKind::Enum(_) => trimmed.to_ascii_lowercase(),
        AttrKind::Type => ElementType::from_name(trimmed).map_or_else(|| trimmed.to_owned(), |ty| ty.name().to_owned()),
        AttrKind::Shape => {
            Shape::parse_lenient(trimmed).map_or_else(|_| trimmed.to_owned(), |(shape, _)| shape.to_string())
        }
        AttrKind::Text => text.to_owned(),
    }
}
