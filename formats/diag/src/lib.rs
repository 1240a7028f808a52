//! Diagnostics as values, pointing into the user's file.
//!
//! Nothing here prints. A reader or a pass pushes [`Diagnostic`]s into a [`Sink`]; a tool turns
//! them into text with [`render`] or into JSON records with [`to_json`].
//!
//! A diagnostic carries a stable `code`, a message in lower case without a full stop, byte ranges
//! of one [`Source`] and, where the diagnostic concerns a JSON document, the path of the value.

pub mod codes;
mod diagnostic;
mod json;
mod order;
mod printable;
mod render;
mod sink;
mod source;
mod view;
mod words;

pub use diagnostic::{Diagnostic, Label, Related, Severity};
pub use json::to_json;
pub use order::sorted;
pub use render::render;
pub use sink::Sink;
pub use source::{Lines, Source};
pub use words::{Clip, clip, counted, literal_length, nearest};
