//! Programs of the NPU that Gemini schedules are compiled to.
//!
//! A core has nine [`Engine`]s, each of which runs its own instructions in order. Tokens order
//! instructions of different engines: [`Tokens`] says which an instruction takes and gives.
//! Instructions named `cfg` write registers of their engine, which stay until written again.
//!
//! * [`op`]: every instruction, typed; [`enums`]: named values of their fields.
//! * [`listing`]: the published text of programs and of traces, read and printed.
//! * [`binary`]: a compact form of the same.
//! * [`registers`], [`access`]: what an instruction reads and writes, given those before it.
//! * [`compare`]: where two programs differ.
//! * [`verify`]: whether a program is right whatever the time its instructions take.
//!
//! The source is the documents and listings of the repository jingweicai/Gemini-Compiler-IR. It
//! documents SI and SO, which move data between cores, without showing an instruction: theirs are
//! defined here (`docs/npu.md`).

pub mod access;
pub mod area;
pub mod binary;
mod compare;
mod engine;
pub mod enums;
mod field;
pub mod layout;
pub mod listing;
mod number;
pub mod op;
mod program;
pub mod registers;

pub mod verify;

pub use compare::{compare, same};
pub use engine::{Engine, Engines};
pub use number::Number;
pub use op::Op;
pub use program::{Core, Instruction, Origin, Program, Spans, Time, Tokens};
