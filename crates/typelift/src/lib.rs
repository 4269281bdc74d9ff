//! Read, infer, rewrite and write OpenVINO IR graphs without OpenVINO.
//!
//! An OpenVINO model is a pair of files: `model.xml` holds a graph of layers, and `model.bin` the bytes of its
//! constants. This crate reads the pair, infers the element type and shape of every tensor by OpenVINO's rules, lets
//! you change the graph, and writes it back. Unchanged parts of the file are kept byte for byte.
//!
//! # Read
//!
//! [`Model::open`] reads a model; its weights stay in their file. All errors of a file are returned together as
//! [`findings::Diagnostics`], each with its position in the text.
//!
//! ```
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml");
//! use typelift::Model;
//!
//! let model = Model::open(path)?;
//! assert_eq!(model.name(), "small");
//!
//! let error = Model::from_xml("<net name='n' version='11'><layers><layer/></layers></net>").unwrap_err();
//! assert!(error.to_string().starts_with("<memory>:1:36: error[missing-attribute]"), "{error}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Look
//!
//! [`Model::graph`] returns the graph. A [`Layer`] holds the data of the file: its operation by name, its attributes
//! as written, its ports. A tensor is an [`Output`] of a layer. A layer is identified by the [`LayerId`] of the file,
//! which stays the same in all edits and is never reused. [`Graph::find`] finds a layer by name, [`Graph::tensor`] a
//! tensor, and [`Model::find`] also searches bodies, `loop/body/x`.
//!
//! ```
//! # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! let graph = model.graph();
//! let listed: Vec<_> = graph.layers().map(|layer| format!("{layer:?}")).collect();
//! assert_eq!(listed[2], "Multiply-opset1 2 `scaled`: f32[?,4]");
//!
//! let y = graph.tensor("y")?;
//! let relu = graph.layer(y.layer).unwrap();
//! assert_eq!((relu.ty(), relu.attribute("alpha")), ("ReLU", None));
//! assert_eq!(graph.consumers(y).count(), 1);
//!
//! let scale = graph.layer(graph.find("scale")?).unwrap();
//! assert_eq!(scale.numbers(model.weights()), Some(vec![2.0]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Infer
//!
//! The declarations of ports in a file are only claims. [`infer()`] computes types and shapes from the inputs and
//! constants, and returns the errors that OpenVINO would report. Shapes can be open: `[?,4]`, `[1..8,4]`.
//!
//! ```
//! # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! use typelift::infer;
//!
//! model.set_input("x", None, Some(&"[8,4]".parse()?))?;
//! assert_eq!(infer(&mut model), []);
//! let y = model.graph().tensor("y")?;
//! assert_eq!(model.graph().output(y).unwrap().to_string(), "f32[8,4]");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rewrite
//!
//! [`Model::edit`] runs a batch of edits: all are made, or none if one fails or if layers would form a cycle. [`edit::Edit`]
//! is the graph in its current state, with the methods that change it. New layers get types and shapes by the rules of
//! their operations, and are refused if OpenVINO would refuse them. `replace_in_place` replaces a layer in place: it keeps its id,
//! its name, its consumers and its position in the file.
//!
//! ```
//! # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! use typelift::graph::NewLayer;
//!
//! // x * 2 becomes x + x, the ReLU goes, and the model ends in a Softmax.
//! model.edit(|graph| {
//!     let (x, scaled, y) = (graph.tensor("x")?, graph.tensor("scaled")?, graph.tensor("y")?);
//!     graph.replace_in_place(scaled.layer, NewLayer::new("Add", "opset1"), &[x, x])?;
//!     graph.replace_uses(y, scaled)?;
//!     graph.remove_unused([y.layer, graph.find("scale")?])?;
//!     graph.insert_after(scaled, NewLayer::new("Softmax", "opset8").with_attribute("axis", -1), &[])
//! })?;
//! assert_eq!(model.graph().len(), 4);
//! assert_eq!(typelift::infer(&mut model), []);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`constant_of`](edit::Edit::constant_of) adds a constant. Its bytes are appended to the weights; existing constants keep their offsets.
//!
//! ```
//! # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! # use typelift::graph::NewLayer;
//! model.edit(|graph| {
//!     let bias = graph.constant_of(&[4], &[0.5_f32, 1.0, 1.5, 2.0])?;
//!     graph.insert_after(graph.tensor("scaled")?, NewLayer::new("Add", "opset1"), &[bias])
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A named rewrite is a [`passes::Pass`]. [`passes::run`] applies it to all bodies too, verifies the graph and infers
//! again. [`passes`] contains the passes of this crate, and [`passes::infer_aligned`] inserts Converts where types disagree,
//! by the promotion rules of OpenVINO, PyTorch or Paddle, which are in [`promote`].
//!
//! # Save
//!
//! [`Model::save`] writes both files, or neither if there is an error. [`xml::write`] gives the text.
//!
//! ```
//! # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
//! # let folder = tempfile::tempdir()?;
//! # let out = folder.path().join("out.xml");
//! model.edit(|graph| graph.rename("y", "scores"))?;
//! model.save(&out)?;
//! let changed = std::fs::read_to_string(&out)?.lines().zip(model.source().lines()).filter(|(new, old)| new != old).count();
//! assert_eq!(changed, 2, "the port and the Result");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Other libraries
//!
//! [`Graph::petgraph`] lends the graph to the algorithms of [petgraph], read-only: its nodes are layers, its edges say which
//! ports they join.

// Each public item has one path: what most programs use is here, all else in the module of its subject.
mod base;
mod check;
pub mod convert;
pub mod edit;
pub mod explain;
pub mod findings;
mod infer;
mod model;
pub mod ops;
pub mod precision;
pub mod programs;
mod promotion;
pub mod rewrite;
mod symbols;
mod text;

pub use base::names::near;
pub use check::fix::{
    actions::try_actions,
    checking::{Checked, Checking, NeedForWeights},
};
pub use check::{check, devices::Device, unknown_operations};
pub use explain::diff::{alike::alike, diff, matched_layers};
pub use explain::stats::{stats, stats_with};
pub use explain::why::{why, why_all};
pub use infer::{infer, infer_read};
pub use model::graph::{
    Graph, Input, LayerId, Output,
    layer::Layer,
    model::{IrVersion, Model},
};
pub use model::weights::Weights;
/// The graph library whose algorithms run on [`Graph::petgraph`].
pub use petgraph;
pub use promotion::passes;
pub use symbols::{Shapes, shapes, trial::fitting_lengths};
pub use text::save::{SaveError, SaveOptions, WeightsMode};
pub use text::xml;
pub use typelift_promote as promote;

/// Graph: layers, the edges between their ports, and elementary changes. [`Graph`] and [`Layer`] are at the root.
pub mod graph {
    pub use crate::model::graph::{
        Wire,
        address::FindError,
        error::EditError,
        layer::{
            Attribute, BackEdge, Body, Direction, InputPort, NewLayer, OutputPort, PortMapEntry, Start, split_names,
        },
        layer_map::LayerMap,
        model::UnknownVersion,
        names::{Names, numbered_prefix},
        place::{ParsePlaceError, Place},
        verify::Violation,
    };
}

/// Shapes: dimensions that are known, open or symbols, and the rules that combine shapes.
///
/// A [`shape::Shape`] is OpenVINO's partial shape: its rank may be unknown, and each [`shape::Dim`] is an interval of lengths. Its
/// rules were recorded from OpenVINO 2026.4.1. [`shapes()`] returns symbols for the open dimensions of a model,
/// and [`shape::Constraint`]s between them.
pub mod shape {
    pub use crate::model::shape::{
        Shape, ShapeMismatch, TensorType,
        broadcast::{AutoBroadcast, BroadcastMode, ListInput, SelectMismatch, paddle_broadcast},
        parse::{Oddity, OddityKind, ParseShapeError, ShapeFault, pairs},
    };
    pub use crate::symbols::{
        Constraint, Noticed, Reads, Reason, Symbol,
        formula::{Formula, Formulas},
    };
    pub use typelift_promote::Dim;
}

/// Values of constants: small arrays for computing shapes, conversions between element types, and files of arrays.
///
/// The input are bytes with an element type. The result are numbers, or bytes of another type with counts of the losses.
pub mod values {
    pub use crate::model::weights::{budget::TooLarge, stored_size};
    pub use crate::ops::values::array::{Array, Data, Few, Integers, round};
    pub use crate::ops::values::conversion::{audit::Audit, convert_values};
    pub use crate::ops::values::export::{Export, ExportError};
}

/// Services for a program around the library: settings by name, progress, interrupts, and files as the library opens them.
pub mod host {
    pub use crate::base::{
        file::{FileId, Stamp, count_names, open_regular},
        foreign::named_element_type,
        names::without_numbers,
        options, progress,
    };
    pub use crate::infer::weights::needed_weights;
    pub use crate::text::save::{
        is_half_written, missing_weights, recover, replace,
        stage::{interrupt, on_wait},
    };
}

/// Examples of the README, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Examples of the guide, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../rust.md")]
struct Guide;
