//! stub

pub mod shape;
