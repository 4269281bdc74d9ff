//! Choice of the revision of an operation that has the given attributes.

use typelift_promote::ElementType;

use crate::base::foreign;
use crate::base::names::nearest;
use crate::model::graph::{EditError, NewLayer};
use crate::ops::{self, AttrKind, Operation};

/// Returns a new layer for each revision of an operation that has all of these attributes, the oldest first.
/// `Softmax-8` selects the revision of opset8. With `version` given, the operation may be unknown.
///
/// # Errors
/// [`EditError::Other`] if no operation has the name, no revision has an attribute, or a value is not an element type
/// where one is required. The error suggests the nearest name.
///
/// # Examples
/// ```
/// use typelift::edit::revisions;
/// let gelu = &revisions("Gelu", None, &[("approximation_mode", "TANH")])?[0];
/// assert!(format!("{gelu:?}").contains("opset7"));
/// let error = revisions("Softmax", None, &[("axs", "1")]).unwrap_err();
/// assert_eq!(error.to_string(), "`Softmax` has no attribute `axs`; did you mean `axis`?");
/// # Ok::<(), typelift::graph::EditError>(())
/// ```
pub fn revisions(ty: &str, version: Option<&str>, attributes: &[(&str, &str)]) -> Result<Vec<NewLayer>, EditError> {
    let (ty, version) = match (version, ty.rsplit_once('-')) {
        (None, Some((ty, opset))) if opset.parse::<u8>().is_ok() => (ty, Some(format!("opset{opset}"))),
        (version, _) => (ty, version.map(str::to_owned)),
    };
    let new = |version: &str| {
        let new = NewLayer::new(ty, version);
        attributes.iter().fold(new, |new, (name, value)| new.with_attribute(name, value))
    };
    let rows = ops::revisions(ty);
    let refused = |message: String| Err(EditError::Other(message));
    if rows.is_empty() {
        return match version {
            Some(version) if !version.starts_with("opset") => Ok(vec![new(&version)]),
            _ => refused(unknown(ty)),
        };
    }
    let found: Vec<&Operation> = match &version {
        Some(version) => ops::lookup(rows[0].name, version).into_iter().collect(),
        None => rows.iter().collect(),
    };
    match &version {
        Some(version) if found.is_empty() && !version.starts_with("opset") => return Ok(vec![new(version)]),
        Some(version) if found.is_empty() => {
            return refused(format!("`{ty}` is not in {version}; it has {}", versions(rows.iter())));
        }
        _ => {}
    }
    check_attributes(&found, rows, attributes).map_err(EditError::Other)?;
    let fitting = found.iter().filter(|row| attributes.iter().all(|(name, _)| row.attribute(name).is_some()));
    let fitting = fitting.filter_map(|row| row.opsets().next());
    Ok(fitting.map(|opset| new(version.as_deref().unwrap_or(&format!("opset{opset}")))).collect())
}

fn unknown(ty: &str) -> String {
    match nearest(ty, ops::all().map(|row| row.name)) {
        Some(near) => format!("no operation is called `{ty}`; did you mean `{near}`?"),
        None => format!("no operation is called `{ty}`; for an extension, give its version"),
    }
}

fn versions<'a>(rows: impl Iterator<Item = &'a Operation>) -> String {
    let opsets = rows.filter_map(|row| row.opsets().next());
    opsets.map(|opset| format!("opset{opset}")).collect::<Vec<_>>().join(", ")
}

/// Checks that a revision has all of the attributes, and that values of element types are valid.
fn check_attributes(found: &[&Operation], all: &[Operation], attributes: &[(&str, &str)]) -> Result<(), String> {
    let ty = all[0].name;
    for (name, value) in attributes {
        let Some(attribute) = found.iter().find_map(|row| row.attribute(name)) else {
            let mut with = all.iter().filter(|row| row.attribute(name).is_some()).peekable();
            if with.peek().is_some() {
                return Err(format!("`{ty}` has the attribute `{name}` in {}", versions(with)));
            }
            let known: Vec<_> = all.iter().flat_map(|row| row.attribute_names()).collect();
            return Err(match nearest(name, known.iter().copied()) {
                Some(near) => format!("`{ty}` has no attribute `{name}`; did you mean `{near}`?"),
                None if known.is_empty() => format!("`{ty}` has no attributes"),
                None => format!("`{ty}` has no attribute `{name}`; it has {}", known.join(", ")),
            });
        };
        if matches!(attribute.kind, AttrKind::Type) && ElementType::from_name(value).is_none() {
            return Err(match foreign::element_type(value) {
                Some(near) => format!("`{name}={value}` is not an element type; did you mean `{near}`?"),
                None => format!("`{name}={value}` is not an element type"),
            });
        }
    }
    if found.iter().any(|row| attributes.iter().all(|(name, _)| row.attribute(name).is_some())) {
        return Ok(());
    }
    let names = attributes.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(format!("no revision of `{ty}` has all of {names}"))
}
