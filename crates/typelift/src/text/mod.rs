//! Files: the XML of a model read into a graph and written back, and the pair of `.xml` and `.bin` saved completely or
//! not at all.
//!
//! A reader turns the text of a file into a [`Model`](crate::Model) with the position of each layer in that text. A
//! writer copies untouched layers byte for byte, and edits the others in place.
//!
//! Worked example: renaming one layer of a file of a thousand lines changes the `name` on its line and the names of
//! its output ports. [`xml::write()`] copies the bytes of all other lines, and [`save`] replaces the file so that even
//! a killed process leaves the old pair or the new one.

pub(crate) mod save;
pub mod xml;
