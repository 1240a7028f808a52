//! Programs of the NPU, to which Gemini schedules are compiled.
//!
//! A core has nine [`Engine`]s, each of which runs its own instructions in order. Tokens order
//! instructions of different engines: [`Tokens`] are those that an instruction waits for and signals.
//! Instructions named `cfg` write registers of their engine, which keep their value until written again.
//!
//! * [`op`]: every instruction, typed; [`enums`]: named values of their fields.
//! * [`listing`]: the published text of programs and of traces.
//! * [`binary`]: a compact encoding of the same.
//! * [`registers`], [`access`]: the bytes that an instruction reads and writes, given those before it.
//! * [`compare`]: differences between two programs.
//! * [`verify`]: whether a program is correct for any duration of its instructions.
//!
//! The source is the documents and listings of the repository jingweicai/Gemini-Compiler-IR. It
//! documents SI and SO, which move data between cores, without an example: their instructions are
//! defined here (`docs/npu.md`).

pub mod access;
pub mod area;
pub mod binary;
mod bytes;
mod compare;
mod dict;
mod engine;
pub mod enums;
mod field;
pub mod groups;
pub mod layout;
pub mod listing;
mod number;
pub mod op;
mod program;
pub mod registers;
mod value;
pub mod verify;

pub use compare::{compare, same};
pub use engine::{Engine, Engines};
pub use number::Number;
pub use op::Op;
pub use program::{
    Core, Fingerprint, Instruction, Numbers, Origin, Part, Program, Spans, Time, Tokens,
};
pub use value::{Spanned, Value};
