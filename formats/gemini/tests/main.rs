//! Gemini schedules and frontend files: reading, checks, writing.

mod codes;
mod corpus;
mod diagnostics;
mod mutations;
mod support;
