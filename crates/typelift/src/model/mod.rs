//! A model in memory: its graph of layers, its shapes, and the bytes of its constants.
//!
//! In comes what a reader found in a file or what an edit asks for; out goes a [`Model`](graph::Model) that every other folder
//! looks at. Nothing here knows an operation by name, except the Parameters, Results and Assigns at which reading starts.
//!
//! Worked example: `x * 2` is a Parameter, a constant, a Multiply and a Result. [`graph`] holds the four layers and the three
//! wires between their ports, [`shape`] the `f32[?,4]` at each output, and [`weights`] the four bytes of the 2.

pub mod graph;
pub mod shape;
pub mod weights;
