//! Variables, which store a tensor between inferences: ReadValue, Assign.

use typelift_promote::ElementType;

use super::common::as_data;
use super::{Attr, AttrKind, Context, Fault, LayerKind, Operation};
use crate::base::hash::HashSet;
use crate::findings::{Code, message};
use crate::model::graph::OutputPort;
use crate::model::shape::TensorType;

pub(super) const ROWS: &[Operation] = &[
    Operation::new("Assign", 3, assign_by_name).kind(LayerKind::Assign).until(5).attributes(&[NAME.default("")]),
    Operation::new("Assign", 6, assign).kind(LayerKind::Assign).attributes(&[NAME]),
    // In the first revision a variable has the type of its initial value.
    Operation::new("ReadValue", 3, as_data).kind(LayerKind::ReadValue).until(5).attributes(&[NAME.default("")]),
    Operation::new("ReadValue", 6, read).kind(LayerKind::ReadValue).inputs(0, 1).attributes(&[
        NAME,
        Attr::new("variable_type", AttrKind::Type).default("dynamic"),
        Attr::new("variable_shape", AttrKind::Shape).default("..."),
    ]),
];

const NAME: Attr = Attr::new("variable_id", AttrKind::Text);

fn read(cx: &mut Context) -> Result<(), Fault> {
    let name = cx.text("variable_id")?;
    let TensorType { mut element_type, mut shape } =
        cx.around_mut().variables().get(name).cloned().unwrap_or_else(TensorType::dynamic);
    if cx.has_attribute("variable_type") {
        element_type = cx.type_attribute("variable_type")?;
    }
    if cx.has_attribute("variable_shape") {
        shape = cx.partial_shape("variable_shape")?;
    }
    cx.around_mut().variables().insert(name.to_owned(), TensorType { element_type, shape: shape.clone() });
    if let Some(initial) = cx.try_shape(0) {
        let initial_type = cx.element_type(0);
        if !shape.relaxes(initial) {
            let message =
                message!("variable `{}` has the shape {}, but its initial value has {}"; name, shape, initial);
            return Err(Fault::shapes(&[0], message)
                .rule("`variable_shape` must include the shape of the initial value")
                .help("make `variable_shape` larger or dynamic"));
        }
        if element_type != ElementType::Dynamic && element_type != initial_type {
            let message =
                message!("variable `{}` has type {}, but its initial value has {}"; name, element_type, initial_type);
            let help = message!("insert a Convert to {} before the ReadValue, or change `variable_type`"; element_type);
            return Err(Fault::types(&[0], message).wants(element_type).help(help));
        }
        if element_type == ElementType::Dynamic && shape.rank().is_none() {
            (element_type, shape) = (initial_type, initial.clone());
        }
    }
    cx.finish(element_type, shape)
}

fn assign_by_name(cx: &mut Context) -> Result<(), Fault> {
    let name = cx.text("variable_id")?;
    let (element_type, shape) = (cx.element_type(0), cx.shape(0));
    let Some(TensorType { element_type: read_type, shape: read_shape }) = read_before(cx, name)? else {
        return Err(unknown(name).rule("this layer must depend on the ReadValue of opset3"));
    };
    if element_type != read_type {
        let message =
            message!("variable `{}` has type {}, but a tensor of {} is assigned to it"; name, read_type, element_type);
        return Err(Fault::types(&[0], message).wants(read_type));
    }
    if shape.is_static() && read_shape.is_static() && *shape != read_shape {
        let message =
            message!("variable `{}` has the shape {}, but a tensor of {} is assigned to it"; name, read_shape, shape);
        return Err(Fault::shapes(&[0], message));
    }
    cx.output(element_type, shape.clone());
    check_readable(cx, name)
}

fn assign(cx: &mut Context) -> Result<(), Fault> {
    let name = cx.text("variable_id")?;
    let (element_type, shape) = (cx.element_type(0), cx.shape(0));
    if let Some(TensorType { element_type: known_type, shape: known_shape }) = cx.around_mut().variables().get(name) {
        let dynamic = [element_type, *known_type].contains(&ElementType::Dynamic);
        if !dynamic && element_type != *known_type {
            let message = message!(
                "variable `{}` has type {}, but a tensor of {} is assigned to it";
                name, known_type, element_type
            );
            return Err(Fault::types(&[0], message).wants(*known_type));
        }
        if !shape.is_compatible(known_shape) {
            let message = message!(
                "variable `{}` has the shape {}, but a tensor of {} is assigned to it";
                name, known_shape, shape
            );
            return Err(
                Fault::shapes(&[0], message).help("make the `variable_shape` of its ReadValue larger or dynamic")
            );
        }
    }
    cx.output(element_type, shape.clone());
    check_readable(cx, name)
}

/// An error if a variable has no ReadValue in the same graph.
fn check_readable(cx: &Context, name: &str) -> Result<(), Fault> {
    if cx.around().is_readable(name) {
        return Ok(());
    }
    Err(unknown(name).rule("an Assign needs a ReadValue of its variable in the same graph, or the same body"))
}

fn unknown(name: &str) -> Fault {
    Fault::other(Code::UnknownVariable, message!("the graph has no ReadValue of variable `{}`"; name))
        .help("add one, or correct `variable_id`")
}

/// OpenVINO's order is used: producers before consumers, beginning with the first input.
fn read_before(cx: &mut Context, name: &str) -> Result<Option<TensorType>, Fault> {
    let mut last = None;
    let mut seen = HashSet::default();
    let mut pending = vec![(cx.layer.id, false)];
    while let Some((id, expanded)) = pending.pop() {
        if !expanded {
            if seen.insert(id) {
                pending.push((id, true));
                let feeds = cx.graph().feeds(id);
                pending.extend(feeds.into_iter().rev().flatten().map(|(source, _)| (source.id, false)));
            }
            continue;
        }
        cx.around_mut().spend(1)?;
        let Some(layer) = cx.graph().layer(id) else { continue };
        let reads = layer
            .operation()
            .is_some_and(|operation| (operation.kind, operation.revision) == (LayerKind::ReadValue, 3));
        if reads && layer.attribute("variable_id").unwrap_or_default() == name {
            last = layer.outputs().first().map(OutputPort::tensor_type);
        }
    }
    Ok(last)
}
