//! Bindings of a match, and their comparison and description.

use std::ops::{Deref, Range};
use std::sync::Arc;

use compact_str::CompactString;
use smallvec::SmallVec;

use crate::base::names::on_one_line;
use crate::model::graph::{Layer, LayerId, Output};
use crate::ops::AttrKind;
use crate::ops::values::array::Array;

/// Value of a name in a match.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    Tensor(Output),
    /// The values of folded constants.
    Values(Arc<Array>),
    /// A number without a type.
    Number(f64),
    List(List),
}

impl Bound {
    pub(super) fn tensor(&self) -> Option<Output> {
        match self {
            Self::Tensor(tensor) => Some(*tensor),
            _ => None,
        }
    }

    pub(super) fn tensors(&self) -> &[Output] {
        match self {
            Self::Tensor(tensor) => std::slice::from_ref(tensor),
            Self::List(tensors) => tensors,
            Self::Values(_) | Self::Number(_) => &[],
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Bindings {
    pub(super) names: SmallVec<[Option<Bound>; 4]>,
    pub(super) variables: SmallVec<[Option<CompactString>; 2]>,
    /// The matched layers with their terms; the layer at the root is first.
    pub(super) layers: SmallVec<[(LayerId, usize); 4]>,
}

/// Consecutive inputs or outputs of a layer.
#[derive(Clone, Debug)]
pub(super) struct List {
    /// All inputs or outputs of the layer, shared by all attempts.
    all: Arc<[Output]>,
    own: Range<usize>,
}

impl List {
    pub(super) fn part(all: Arc<[Output]>, own: Range<usize>) -> Self {
        Self { all, own }
    }
}

impl Deref for List {
    type Target = [Output];

    fn deref(&self) -> &[Output] {
        &self.all[self.own.clone()]
    }
}

impl FromIterator<Output> for List {
    fn from_iter<T: IntoIterator<Item = Output>>(tensors: T) -> Self {
        let all: Arc<[Output]> = tensors.into_iter().collect();
        Self { own: 0..all.len(), all }
    }
}

pub(super) fn same_value(wanted: &str, value: &str, kind: Option<AttrKind>) -> bool {
    if wanted == value {
        return true;
    }
    let truth = |text: &str| match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    };
    match kind {
        Some(AttrKind::Bool) => truth(wanted).is_some() && truth(wanted) == truth(value),
        Some(AttrKind::Text) => false,
        Some(AttrKind::Enum(_) | AttrKind::Type) => wanted.eq_ignore_ascii_case(value),
        _ => {
            let items = |text: &str| text.split(',').map(|item| item.trim().to_owned()).collect::<Vec<_>>();
            let (wanted, value) = (items(wanted), items(value));
            wanted.len() == value.len() && wanted.iter().zip(&value).all(|(a, b)| {
                a == b
                    || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b || a as f32 == b as f32)
            })
        }
    }
}

/// Describes a layer: ``Clamp 27 `Clamp_37` ``.
pub(super) fn self_describe(layer: &Layer) -> String {
    format!("{} {} `{}`", on_one_line(layer.ty()), layer.id(), on_one_line(layer.name()))
}
