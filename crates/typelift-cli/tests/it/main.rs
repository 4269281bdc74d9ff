//! One binary for every test of the program: linking is most of what a test costs.

mod cli;
mod documents;
mod files;
mod fixtures;
mod packaging;
mod security;
