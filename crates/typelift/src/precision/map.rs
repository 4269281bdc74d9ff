//! Mapping of element types.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;
use typelift_promote::{ElementType, fidelity};

use crate::base::foreign;

/// Simultaneous mapping of element types: with `f64=f32,f32=f16` an f64 tensor becomes f32, and not f16.
///
/// # Examples
/// ```
/// use typelift::precision::TypeMap;
/// use typelift::promote::ElementType;
/// let map: TypeMap = "f64=f32,f32=f16".parse()?;
/// assert_eq!(map.of(ElementType::F64), ElementType::F32);
/// assert_eq!(map.of(ElementType::I64), ElementType::I64);
/// assert_eq!("f32=half".parse::<TypeMap>()?.to_string(), "f32=f16");
/// assert_eq!("f32=f61".parse::<TypeMap>().unwrap_err().to_string(), "`f61` is not an element type; did you mean f16?");
/// # Ok::<(), typelift::precision::TypeMapError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMap(Vec<(ElementType, ElementType)>);

/// Reason why a text is not a [`TypeMap`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TypeMapError {
    /// An item of the text is not `FROM=TO`.
    #[error("`{0}` is not of the form FROM=TO, as f64=f32")]
    NotAPair(String),
    /// The element type does not exist.
    #[error("`{name}` is not an element type{}", .meant.map(|ty| format!("; did you mean {ty}?")).unwrap_or_default())]
    UnknownType {
        /// Returns the text.
        name: String,
        /// The type that was probably meant.
        meant: Option<ElementType>,
    },
    /// The mapping contains a type twice.
    #[error("{from} is mapped twice, to {} and to {}", .to[0], .to[1])]
    Twice {
        /// The type.
        from: ElementType,
        /// The two target types.
        to: [ElementType; 2],
    },
    /// One of the types is not numeric.
    #[error("{from} cannot become {to}: only numeric types have a precision")]
    NotNumbers {
        /// The source type.
        from: ElementType,
        /// The target type.
        to: ElementType,
    },
}

impl TypeMap {
    /// Creates a mapping from pairs of source and destination type.
    ///
    /// # Errors
    /// [`TypeMapError::Twice`] for a repeated source, and [`TypeMapError::NotNumbers`] for boolean, string and dynamic.
    pub fn new(pairs: impl IntoIterator<Item = (ElementType, ElementType)>) -> Result<Self, TypeMapError> {
        let mut map = Self::default();
        for (from, to) in pairs {
            let is_number = |ty| ty != ElementType::Boolean && fidelity(ty, ElementType::F64).is_some();
            if !is_number(from) || !is_number(to) {
                return Err(TypeMapError::NotNumbers { from, to });
            }
            match map.0.iter().find(|(known, _)| *known == from) {
                None => map.0.push((from, to)),
                Some((_, known)) if *known == to => {}
                Some((_, known)) => return Err(TypeMapError::Twice { from, to: [*known, to] }),
            }
        }
        map.0.retain(|(from, to)| from != to);
        Ok(map)
    }

    /// Returns the destination of a type, or the type itself if it is not mapped.
    pub fn of(&self, ty: ElementType) -> ElementType {
        self.0.iter().find(|(from, _)| *from == ty).map_or(ty, |(_, to)| *to)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the types that change, with their destinations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ElementType, ElementType)> + '_ {
        self.0.iter().copied()
    }
}

impl FromStr for TypeMap {
    type Err = TypeMapError;

    fn from_str(text: &str) -> Result<Self, TypeMapError> {
        let ty = |name: &str| {
            foreign::named_element_type(name).ok_or_else(|| {
                let meant = foreign::element_type(name);
                TypeMapError::UnknownType { name: name.to_owned(), meant }
            })
        };
        let pair = |part: &str| {
            let (from, to) = part.split_once('=').ok_or_else(|| TypeMapError::NotAPair(part.to_owned()))?;
            Ok((ty(from.trim())?, ty(to.trim())?))
        };
        Self::new(text.split(',').map(|part| pair(part.trim())).collect::<Result<Vec<_>, _>>()?)
    }
}

impl fmt::Display for TypeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.iter().map(|(from, to)| format!("{from}={to}"));
        f.write_str(&pairs.collect::<Vec<_>>().join(","))
    }
}
