//! Flags that several commands share.
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How a tool talks; on standard error only.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Messages")]
pub struct Console {
    /// How diagnostics are written: text for people, or one JSON object a line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", global = true)]
    pub diagnostics: Diagnostics,
    /// Whether messages are coloured; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Color,
    /// What tells of progress; auto: a bar on a terminal, when it takes long
    #[arg(long, value_enum, default_value_t, value_name = "HOW", global = true)]
    pub progress: Progress,
}

/// How diagnostics are written.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagnostics {
    /// With the source lines they point at.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Which planner makes an ARK plan.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// The optimising one
    #[default]
    Irc,
    /// ARK's own, reproduced: one op after another
    Ark,
}

/// Who generates code.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generator {
    /// LLVM: the fastest code
    #[default]
    Llvm,
    /// Cranelift: compiled quickly, runs slower
    Cranelift,
}

/// When messages are coloured.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What tells of progress.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A bar on a terminal, nothing otherwise.
    #[default]
    Auto,
    /// Nothing.
    None,
    /// A line for each step.
    Plain,
}

/// How a model is compiled.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Compilation")]
pub struct Compile {
    /// Processor to generate code for, such as x86-64-v3 [default: native; for .c, any]
    #[arg(long, value_name = "CPU")]
    pub target_cpu: Option<String>,
    /// Values to return: all, outputs, or names separated by commas [default: outputs; irc run of an
    /// ARK model: all]
    #[arg(long, value_name = "WHICH")]
    pub results: Option<String>,
    /// Accumulate as ARK's kernels on CUDA_80 do: f16 in f16, f32 products through TF32
    #[arg(long)]
    pub ark_accumulate: bool,
    /// Print how the ops were fused and why not further, to standard error
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text"
    )]
    pub explain_fusion: Option<Explain>,
}

/// How fusion is explained.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explain {
    /// Lines for people.
    Text,
    /// One JSON object.
    Json,
}

/// What becomes of calls of functions.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Functions {
    /// The body in place of each call: fuses with what is around it.
    #[default]
    Inline,
    /// One function for all calls, where the body does not depend on the values of arguments.
    Outline,
}

/// How Common IR and ONNX files are read.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Common IR and ONNX")]
pub struct Graphs {
    /// Form of the file, where its content does not tell: onnx, common-ir-text, …
    #[arg(long, value_name = "FORM")]
    pub format: Option<String>,
    /// Further folder in which imported libraries may lie; beside the model they always may
    #[arg(long, value_name = "DIR")]
    pub library_path: Vec<PathBuf>,
    /// Fetch imported libraries from servers, once, into this folder
    #[arg(long, value_name = "CACHE")]
    pub allow_fetch: Option<PathBuf>,
    /// Shape of an input whose sizes the model leaves open: data=1x3x224x224; once for each
    #[arg(long, value_name = "NAME=SHAPE")]
    pub shape: Vec<String>,
    /// Operators that nothing declares are those of the standard library
    #[arg(long)]
    pub implicit_std: bool,
    /// Rules that real files of Common IR's time break are warnings
    #[arg(long)]
    pub compat: bool,
    /// What becomes of calls of the model's functions
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub functions: Functions,
    /// Let nodes run before those that their control inputs name
    #[arg(long)]
    pub ignore_control_inputs: bool,
}
