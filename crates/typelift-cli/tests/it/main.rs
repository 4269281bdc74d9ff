//! One binary for every test of the program: linking is most of what a test costs.

mod answers;
mod book;
mod cli;
mod diff;
mod documents;
mod english;
mod explain;
mod files;
mod fix;
mod fixtures;
mod formats;
mod jobs;
mod packaging;
mod recipes;
mod schemas;
mod security;
mod show;
mod terminal;
mod verbs;
mod view;
mod width;
