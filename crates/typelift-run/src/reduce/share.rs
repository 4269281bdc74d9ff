//! Removal of names and metadata from a model, so that it can be shared.

use std::collections::{BTreeSet, HashMap};

use foldhash::HashSet;
use typelift::edit::Edit;
use typelift::graph::{EditError, OutputPort, split_names};
use typelift::xml::{self, WriteOptions};
use typelift::{Layer, LayerId, Model};

/// Removes the metadata of a model, of its bodies, layers and tensors, and the comments of its text.
///
/// # Errors
/// An edit is refused.
///
/// # Examples
/// ```
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../typelift/examples/model.xml"))?;
/// model.set_rt_info("owner", "me")?;
/// let plain = typelift_run::reduce::without_metadata(&model)?;
/// assert_eq!(plain.rt_info("owner"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn without_metadata(model: &Model) -> Result<Model, EditError> {
    let mut model = model.clone();
    model.clear_metadata()?;
    Ok(read_again(&model))
}

/// Gives all layers, tensors and variables of models names that say nothing: equal names get one new name. Removes their
/// metadata, and attributes that the operation of a layer lacks.
///
/// # Errors
/// An edit is refused.
///
/// # Examples
/// ```
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../typelift/examples/model.xml"))?;
/// let [anonymous] = typelift_run::reduce::anonymized([&model])?;
/// assert!(anonymous.graph().find("relu").is_err());
/// assert_eq!(anonymous.graph().len(), model.graph().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn anonymized<const N: usize>(models: [&Model; N]) -> Result<[Model; N], EditError> {
    let old: HashSet<String> = models.into_iter().flat_map(old_names).collect();
    let mut names = Names { layers: Renaming::new(&old), tensors: Renaming::new(&old), states: Renaming::new(&old) };
    let mut anonymous = models.map(Model::clone);
    for model in &mut anonymous {
        model.clear_metadata()?;
        model.set_name("model");
        model.edit(|graph| graph.everywhere(&mut |graph| names.replace(graph)))?;
        *model = read_again(model);
    }
    Ok(anonymous)
}

/// Describes the texts that an anonymous model still has, because it would not be the same without them: names of unknown
/// operations, attributes that are texts, and constants of strings.
///
/// # Examples
/// ```
/// let model = typelift::Model::from_text("x = Parameter : f32[2,2]\ny = Einsum(x) {equation=\"ij->ji\"}\nr = Result(y)")?;
/// assert_eq!(typelift_run::reduce::kept_texts(&model), ["`Einsum` keeps the text of its attribute `equation`"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn kept_texts(model: &Model) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (_, graph) in model.walk() {
        for layer in graph.layers() {
            let is_known = layer.operation().is_some();
            let texts = layer.free_texts().into_iter().filter(|name| !is_known || *name != "variable_id");
            let texts: Vec<_> = texts.map(|name| format!("`{name}`")).collect();
            let ty = layer.ty();
            let which = if texts.len() == 1 { "attribute" } else { "attributes" };
            let of = format!("its {which} {}", texts.join(", "));
            found.extend(match (is_known, texts.is_empty()) {
                (true, true) => None,
                (true, false) => Some(format!("`{ty}` keeps the text of {of}")),
                (false, true) => Some(format!("`{ty}` of `{}` keeps its name", layer.version())),
                (false, false) => Some(format!("`{ty}` of `{}` keeps its name and the text of {of}", layer.version())),
            });
            if ty == "Const" && layer.attribute("element_type") == Some("string") {
                found.insert(format!("the constant `{}` keeps its texts", layer.name()));
            }
        }
    }
    found.into_iter().collect()
}

/// A model as its own text has it, so that nothing of the text that it was read from is left.
fn read_again(model: &Model) -> Model {
    let options = WriteOptions { canonical: true, refresh_ports: true, ..WriteOptions::default() };
    let Ok(mut read) = Model::from_xml(xml::write(model, options)) else { return model.clone() };
    read.set_weights(model.weights().clone());
    read
}

fn old_names(model: &Model) -> HashSet<String> {
    let mut old: HashSet<String> = HashSet::from_iter([model.name().to_owned()]);
    for (_, graph) in model.walk() {
        for layer in graph.layers() {
            old.insert(layer.name().to_owned());
            old.extend(layer.attribute("variable_id").map(str::to_owned));
            old.extend(layer.output_names().into_iter().flat_map(split_names));
            old.extend(layer.outputs().iter().flat_map(OutputPort::names));
        }
    }
    old
}

/// New names of layers, tensors and variables.
struct Names<'o> {
    layers: Renaming<'o>,
    tensors: Renaming<'o>,
    states: Renaming<'o>,
}

impl Names<'_> {
    fn replace(&mut self, graph: &mut Edit<'_>) -> Result<(), EditError> {
        let layers: Vec<LayerId> = graph.layers().map(Layer::id).collect();
        for id in layers {
            let Some(layer) = graph.layer(id) else { continue };
            let ports: Vec<Vec<String>> = layer.outputs().iter().map(OutputPort::names).collect();
            for (port, old) in ports.into_iter().enumerate().filter(|(_, old)| !old.is_empty()) {
                graph.set_names(id.output(port), self.tensors.all("t", old))?;
            }
            self.replace_of_layer(graph, id)?;
        }
        Ok(())
    }

    fn replace_of_layer(&mut self, graph: &mut Edit<'_>, id: LayerId) -> Result<(), EditError> {
        let Some(layer) = graph.layer(id) else { return Ok(()) };
        let name = self.layers.new_of(&format!("{}_", layer.ty()), layer.name().to_owned());
        let named = layer.output_names().map(split_names);
        let variable = layer.attribute("variable_id").map(str::to_owned);
        let operation = layer.operation();
        graph.set_name(id, &name)?;
        if let Some(named) = named {
            graph.set_output_names(id, self.tensors.all("t", named))?;
        }
        if let Some(operation) = operation {
            graph.retain_attributes(id, |name| operation.attribute_names().any(|known| known == name))?;
        }
        if let Some(variable) = variable {
            graph.set_attribute(id, "variable_id", self.states.new_of("state_", variable))?;
        }
        Ok(())
    }
}

/// New names by old ones. A new name is none of the old names.
struct Renaming<'o> {
    old: &'o HashSet<String>,
    new: HashMap<String, String>,
    count: usize,
}

impl<'o> Renaming<'o> {
    fn new(old: &'o HashSet<String>) -> Self {
        Self { old, new: HashMap::new(), count: 0 }
    }

    fn all(&mut self, prefix: &str, names: Vec<String>) -> Vec<String> {
        names.into_iter().map(|name| self.new_of(prefix, name)).collect()
    }

    fn new_of(&mut self, prefix: &str, name: String) -> String {
        let (old, count) = (self.old, &mut self.count);
        let found = self.new.entry(name).or_insert_with(|| {
            loop {
                *count += 1;
                let name = format!("{prefix}{count}");
                if !old.contains(&name) {
                    return name;
                }
            }
        });
        found.clone()
    }
}
