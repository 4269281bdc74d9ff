//! All tests of the library that need no allocator of their own are one binary, because linking is most of a test's
//! cost.
//!
//! | what is tested | modules |
//! |---|---|
//! | reading, and what is wrong with a file | `malformed`, `hostile`, `recorded`, `loads`, `check`, `diagnostics`, `damage` |
//! | types, shapes and operations, compared with OpenVINO's answers | `opzoo`, `zoo`, `operations`, `types`, `bodies`, `broadcast`, `broadcast_laws`, `ties` |
//! | promotion and alignment | `align`, `converts`, `lowering`, `why` |
//! | edits | `edit`, `verbs` (one verb at a time), `rewrites` (whole rewrites in Rust) |
//! | statements | `ends`, `statements`, `caches` |
//! | rules | `rewrite` (single rules and what is said of them), `right_sides`, `rewrite_laws` (laws over generated graphs), `values` (values that stay), `library` (the shipped sets) |
//! | precision and releases | `precision`, `marks`, `targets`, `releases` |
//! | the notation | `notation`, `notation_mutations`, `notation_survival` |
//! | whole models | `models`, `corpus` |
//! | which lengths fit | `symbols` |
//! | any bytes at all | `mutations`, `survival` |
//! | the code itself | `module_order`, `surface` |
//! | helpers | `common`, `small` |
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking and prints what it counts"
)]

mod addresses;
mod align;
mod blocks;
mod bodies;
mod broadcast;
mod broadcast_laws;
mod caches;
mod check;
mod common;
mod converts;
mod corpus;
mod damage;
mod diagnostics;
mod edit;
mod ends;
mod equality;
mod files_mutations;
mod files_survival;
mod hostile;
mod jobs;
mod library;
mod lists_and_roots;
mod loads;
mod lowering;
mod malformed;
mod map;
mod marks;
mod models;
mod module_order;
mod mutations;
mod notation;
mod notation_mutations;
mod notation_survival;
mod operations;
mod opzoo;
mod precision;
mod promotion_mutations;
mod promotion_survival;
mod quantization;
mod recorded;
mod releases;
mod rewrite;
mod rewrite_laws;
mod rewrites;
mod right_sides;
mod sampled;
mod small;
mod statements;
mod surface;
mod survival;
mod symbols;
mod targets;
mod ties;
mod types;
mod untrusted;
mod values;
mod verbs;
mod version_10;
mod why;
mod zoo;
