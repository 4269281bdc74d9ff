//! A model in memory: its graph of layers, its shapes, and the bytes of its constants.
//!
//! Readers and edits create a [`Model`](graph::Model), and all other folders use it. This folder is independent of the
//! operation table; only Parameter, Result and Assign are known by name, because reading starts there.
//!
//! Worked example: `x * 2` is a Parameter, a constant, a Multiply and a Result. [`graph`] holds the four layers and the three
//! wires between their ports, [`shape`] the `f32[?,4]` at each output, and [`weights`] the four bytes of the 2.

pub(crate) mod graph;
pub(crate) mod shape;
pub(crate) mod weights;
