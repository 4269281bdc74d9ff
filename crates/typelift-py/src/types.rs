//! Values that Python passes as text: element types, shapes, releases.

use typelift::ops::Release;
use typelift::promote::ElementType;
use typelift::shape::Shape;

use crate::failure::Failure;

pub(crate) fn release(name: &str) -> Result<Release, Failure> {
    name.parse().map_err(|error: <Release as std::str::FromStr>::Err| Failure::Value(error.to_string()))
}

pub(crate) fn element_type(name: &str) -> Result<ElementType, Failure> {
    let known = ElementType::from_name(name).filter(|ty| ty.port_name().is_some());
    known.ok_or_else(|| {
        let meant = ElementType::from_port_name(name).or_else(|| ElementType::from_framework_name(name));
        let near = meant.map(|ty| format!("; write `{ty}`")).unwrap_or_default();
        Failure::Value(format!("`{name}` is not an element type{near}"))
    })
}

pub(crate) fn shape(text: &str) -> Result<Shape, Failure> {
    let refused = |reason: String| Failure::Value(format!("`{text}` is not a shape: {reason}"));
    let (shape, oddities) = Shape::parse_lenient(text).map_err(|error| refused(error.to_string()))?;
    match oddities.first() {
        Some(oddity) => Err(refused(oddity.kind.to_string())),
        None => Ok(shape),
    }
}
