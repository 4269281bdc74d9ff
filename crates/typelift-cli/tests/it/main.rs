//! All tests of the program are one binary, because linking is most of a test's cost.

mod answers;
mod book;
mod cli;
mod decoders;
mod diff;
mod documents;
mod english;
mod explain;
mod files;
mod fix;
mod fixtures;
mod formats;
mod jobs;
mod layout;
mod one_check;
mod packaging;
mod prose;
mod recipes;
mod schemas;
mod security;
mod show;
mod terminal;
mod tips;
mod verbs;
mod view;
mod width;
