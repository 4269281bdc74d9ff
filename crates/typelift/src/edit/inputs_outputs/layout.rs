//! Layouts of inputs and outputs, changed by one Transpose.

use std::str::FromStr;

use super::{End, InterfaceError};
use crate::model::graph::{IrVersion, LayerId, Model, NewLayer, Output};
use crate::model::shape::Shape;
use crate::ops::{self, LayerKind};
use crate::text::xml::value_of;

/// Change of the order of dimensions: `NCHW:NHWC`, or `NHWC` if the file has the old layout.
///
/// ```
/// use typelift::edit::inputs_outputs::LayoutChange;
/// assert!("NCHW:NHWC".parse::<LayoutChange>().is_ok());
/// assert!("[N,H,W,C]".parse::<LayoutChange>().is_ok());
/// assert_eq!("NCHW:NHWD".parse::<LayoutChange>().unwrap_err(), "NCHW and NHWD do not have the same dimensions");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutChange {
    from: Option<Vec<char>>,
    to: Vec<char>,
}

impl FromStr for LayoutChange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once(':') else {
            return Ok(Self { from: None, to: letters(text)? });
        };
        let change = Self { from: Some(letters(from)?), to: letters(to)? };
        order(change.from.as_deref().unwrap_or_default(), &change.to)?;
        Ok(change)
    }
}

fn letters(text: &str) -> Result<Vec<char>, String> {
    let plain: Vec<char> = text.chars().filter(|letter| !['[', ']', ',', ' '].contains(letter)).collect();
    let is_repeated = (1..plain.len()).any(|at| plain[..at].contains(&plain[at]));
    if plain.is_empty() || is_repeated || !plain.iter().all(char::is_ascii_alphabetic) {
        return Err(format!("`{text}` is not a layout, such as NHWC"));
    }
    Ok(plain)
}

fn order(from: &[char], to: &[char]) -> Result<Vec<usize>, String> {
    let positions: Option<Vec<_>> = to.iter().map(|dim| from.iter().position(|other| other == dim)).collect();
    let name = |layout: &[char]| layout.iter().collect::<String>();
    positions
        .filter(|_| from.len() == to.len())
        .ok_or_else(|| format!("{} and {} do not have the same dimensions", name(from), name(to)))
}

impl Model {
    /// Makes the model take an input in another layout, and computes what it did: the Parameter gets the new shape, and
    /// a Transpose after it restores the old order, as with OpenVINO's `PrePostProcessor`. The new layout is noted
    /// where OpenVINO reads it. Returns true if the layout changed.
    pub(crate) fn change_input_layout(&mut self, name: &str, change: &LayoutChange) -> Result<bool, InterfaceError> {
        let id = self.find_input(name)?;
        let shape = self.graph.layer(id).and_then(|layer| layer.attribute("shape")?.parse::<Shape>().ok());
        let Some((from, dims)) = self.layout_before(End::Input, name, id.output(0), shape, change)? else {
            return Ok(false);
        };
        let back = order(&change.to, &from).map_err(|reason| refused(End::Input, name, reason))?;
        let transpose = self.transpose(id, &back);
        self.edit(|graph| {
            let order = graph.constant_of(&[back.len() as i64], &positions(&back))?;
            graph.insert_after(id.output(0), transpose, &[order])?;
            graph.set_attribute(id, "shape", dims.to_attribute())
        })?;
        self.note_layout(id.output(0), &change.to)?;
        Ok(true)
    }

    /// Does the same for an output, by a Transpose before the Result. Types must be inferred.
    pub(crate) fn change_output_layout(&mut self, name: &str, change: &LayoutChange) -> Result<bool, InterfaceError> {
        let id = self.find_output(name)?;
        let Some(source) = self.graph.producer(id.input(0)) else { return Ok(false) };
        let shape = self.graph.output(source).map(|port| port.shape().clone());
        let Some((from, _)) = self.layout_before(End::Output, name, source, shape, change)? else { return Ok(false) };
        let there = order(&from, &change.to).map_err(|reason| refused(End::Output, name, reason))?;
        let is_renamed = self.version == IrVersion::V10
            && self.graph.layer(source.layer).is_some_and(|layer| ops::kind(layer) != LayerKind::Parameter);
        let transpose = self.transpose(source.layer, &there);
        let transpose = self.edit(|graph| {
            let order = graph.constant_of(&[there.len() as i64], &positions(&there))?;
            let transpose = graph.insert_before(id.input(0), transpose, &[order])?;
            if is_renamed {
                graph.take_version_10_name(source, transpose)?;
            }
            Ok(transpose)
        })?;
        self.note_layout(transpose.output(0), &change.to)?;
        Ok(true)
    }

    /// The old layout of a tensor and its shape in the new one; `None` if both layouts are the same.
    fn layout_before(
        &self,
        end: End,
        name: &str,
        tensor: Output,
        shape: Option<Shape>,
        change: &LayoutChange,
    ) -> Result<Option<(Vec<char>, Shape)>, InterfaceError> {
        let to: String = change.to.iter().collect();
        let noted = self.graph.output(tensor).and_then(|port| value_of(port.rt_info.as_deref()?, "layout"));
        let from = change.from.clone().or_else(|| letters(&noted?).ok());
        let from = from.ok_or_else(|| {
            let reason =
                format!("the file does not say which one it has: write {name}=NCHW:{to}, with its layout first");
            refused(end, name, reason)
        })?;
        let positions = order(&from, &change.to).map_err(|reason| refused(end, name, reason))?;
        let mut shape = shape.unwrap_or_else(Shape::dynamic);
        let old: Vec<_> = shape.dims().map(<[_]>::to_vec).unwrap_or_default();
        match shape.dims_mut() {
            Some(dims) if dims.len() == positions.len() => {
                for (dim, &at) in dims.iter_mut().zip(&positions) {
                    *dim = old[at];
                }
            }
            _ => return Err(refused(end, name, format!("{to} does not have the dimensions of its shape {shape}"))),
        }
        Ok((from != change.to).then_some((from, shape)))
    }

    fn transpose(&self, near: LayerId, order: &[usize]) -> NewLayer {
        let near = self.graph.layer(near).map_or("", |layer| layer.name());
        let order: String = order.iter().map(ToString::to_string).collect();
        NewLayer::new("Transpose", "opset1").named(&self.graph.unused_name(format!("{near}/transpose_{order}")))
    }

    /// Writes a layout where OpenVINO reads it; version 10 has no place for it.
    fn note_layout(&mut self, tensor: Output, layout: &[char]) -> Result<(), InterfaceError> {
        if self.version == IrVersion::V10 {
            return Ok(());
        }
        let list: Vec<String> = layout.iter().map(ToString::to_string).collect();
        self.edit(|graph| graph.set_tensor_rt_info(tensor, "layout", &format!("[{}]", list.join(","))))?;
        Ok(())
    }
}

fn refused(end: End, name: &str, reason: String) -> InterfaceError {
    InterfaceError::Layout { end, name: name.to_owned(), reason }
}

fn positions(order: &[usize]) -> Vec<i64> {
    order.iter().map(|&at| at as i64).collect()
}
