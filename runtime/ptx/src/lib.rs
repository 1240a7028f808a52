//! Runs PTX without a GPU: all threads of all CTAs of a launch, and checks what they do.
//!
//! ```
//! use irc_diag::{Sink, Source};
//! use irc_ptx::{Argument, Launch, Memory, Module};
//!
//! let text = ".version 8.0\n.target sm_80\n.address_size 64\n\
//!     .visible .entry double(.param .u64 data) {\n\
//!     .reg .b32 %r<3>; .reg .b64 %rd<4>;\n\
//!     ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n\
//!     ld.global.u32 %r2, [%rd3]; add.s32 %r2, %r2, %r2; st.global.u32 [%rd3], %r2; ret; }";
//! let source = Source::new("double.ptx", text);
//! let mut sink = Sink::new();
//! let program = Module::parse(&source, &mut sink).and_then(|module| module.compile("double", &mut sink));
//! let program = program.expect("a valid kernel");
//! let mut memory = Memory::new();
//! let data = memory.add("data", (0..32_u32).flat_map(u32::to_le_bytes).collect());
//! let launch = Launch { arguments: vec![Argument::Buffer(data)], ..Launch::default() };
//! let report = launch.run(&program, &mut memory);
//! assert!(report.is_clean());
//! assert_eq!(memory.bytes(data)[4..8], 2_u32.to_le_bytes());
//! ```
//!
//! * [`Module`]: PTX text, parsed; [`Module::compile`] gives a kernel as a [`Program`].
//! * [`Memory`]: named buffers with addresses; [`TensorMap`]: tiles of tensors in them.
//! * [`Launch`]: grid, arguments, schedule and checks; [`Launch::run`] gives a [`Report`].
//!
//! The page `docs/ptx.md` says which instructions run, what is checked, and how results differ from those of
//! hardware.

#![forbid(unsafe_code)]

mod addresses;
mod arith;
mod ast;
mod code;
mod compile;
mod convert;
mod float;
mod group_matrix;
mod launch;
mod lexer;
mod machine;
mod matrix;
mod memory;
mod opcode;
mod parser;
mod race;
mod row;
mod statistics;
mod tensor_map;
mod types;
mod visit;

pub use code::{Parameter, Program};
pub use launch::{Argument, Checks, Explain, Exploration, Launch, Report, Schedule};
pub use memory::{Buffer, Memory};
pub use parser::Module;
pub use statistics::Statistics;
pub use tensor_map::{Swizzle, TensorMap};
pub use types::Type;

impl Program {
    /// The parameters of the kernel, in order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.params
    }

    /// The most threads of a CTA, if the kernel states them (`.maxntid`).
    pub fn max_threads(&self) -> Option<u64> {
        self.max_threads
    }

    /// Bytes of static shared memory of a CTA.
    pub fn shared_bytes(&self) -> u64 {
        self.shared
    }

    /// Registers of a thread in the kernel itself: those that the text declares.
    pub fn registers(&self) -> u32 {
        self.functions.first().map_or(0, |kernel| kernel.registers)
    }

    /// The text that the kernel was compiled from, which diagnostics point into.
    pub fn source(&self) -> &irc_diag::Source {
        &self.source
    }
}
