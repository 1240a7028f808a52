//! Flags that several commands share.
use clap::{
    Args, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};
use std::{
    fmt::Display,
    ops::{Bound, RangeBounds},
    path::PathBuf,
    str::FromStr,
};

/// How messages are printed; on standard error only.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Messages")]
pub struct Console {
    /// Format of diagnostics: text, or one JSON object per line
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", global = true)]
    pub diagnostics: Diagnostics,
    /// When to use colours; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Color,
    /// How to report progress; auto: a progress bar on a terminal, for long operations
    #[arg(long, value_enum, default_value_t, value_name = "HOW", global = true)]
    pub progress: Progress,
}

/// Format of diagnostics.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diagnostics {
    /// Text with the source lines that they refer to.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The planner of an ARK plan.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// The optimising planner of irc
    #[default]
    Irc,
    /// A reproduction of ARK's planner, which schedules one op after another
    Ark,
}

/// The code generators that write objects: their names, and their help texts. The first is the
/// default. They are those of the table of the crate `irc`, which a test of `irc-driver` checks.
pub const GENERATORS: [(&str, &str); 2] =
    [("llvm", "LLVM: the fastest code"), ("cranelift", "Cranelift: fast compilation, slower code")];

/// The code generator for NVIDIA GPUs, and what runs its kernels.
pub const CUDA: &str = ENGINES[1].0;

/// The value of `--backend` for the emulator of GPUs.
pub const EMULATOR: &str = ENGINES[2].0;

/// The name of the quick tier.
pub(crate) const QUICK: &str = GENERATORS[1].0;

/// What runs a model without compiling it for the host, beside the code generators.
pub const ENGINES: [(&str, &str); 3] = [
    ("reference", "The reference evaluator: slow, defines the correct results"),
    ("cuda", "An NVIDIA GPU, by its driver"),
    ("emulate", "An emulated GPU: slow, finds races and accesses out of bounds"),
];

/// The value of `--backend` for the reference evaluator.
pub const REFERENCE: &str = ENGINES[0].0;

/// Takes the name of a code generator of `irc compile`.
pub(crate) fn compilers() -> PossibleValuesParser {
    named(
        &[&GENERATORS[..], &[(CUDA, "LLVM for NVIDIA GPUs: PTX, which irc's runtime runs")]]
            .concat(),
    )
}

/// Takes whole numbers of a range.
pub(crate) fn whole<T, R>(range: R) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync
where
    T: FromStr + PartialOrd + Display,
    R: RangeBounds<T> + Clone + Send + Sync,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start_bound(), range.end_bound()) {
            (Bound::Included(least), Bound::Included(most)) => {
                format!("expected a whole number from {least} to {most}")
            }
            (Bound::Included(least), _) => format!("expected a whole number from {least} on"),
            _ => "expected a whole number".to_owned(),
        })
    }
}

/// Takes the name of what `irc bench` measures.
pub(crate) fn measured() -> PossibleValuesParser {
    named(&[&GENERATORS[..], &ENGINES[1..]].concat())
}

/// Takes the name of what runs a model.
pub(crate) fn engines() -> PossibleValuesParser {
    named(&[&GENERATORS[..], &ENGINES].concat())
}

fn named(values: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let values = values.iter().map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values)
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

/// How progress is reported.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Progress {
    /// A progress bar on a terminal, otherwise nothing.
    #[default]
    Auto,
    /// No progress report.
    None,
    /// One line per step.
    Plain,
}

/// The machine for which a model is compiled.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Compilation")]
pub struct Machine {
    /// Processor to generate code for, such as x86-64-v3 [default: native; for C source, any]
    #[arg(long, value_name = "CPU")]
    pub target_cpu: Option<String>,
    /// Accumulate like ARK's kernels on CUDA_80: f16 sums in f16, f32 products in TF32
    #[arg(long)]
    pub ark_accumulate: bool,
}

/// How a model is compiled.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Compilation")]
pub struct Compile {
    /// What the code is for.
    #[command(flatten)]
    pub machine: Machine,
    /// How it is quantised.
    #[command(flatten)]
    pub quantise: Quantise,
    /// Values to return: all, outputs or NAME,NAME [default: outputs; irc run of ARK: all]
    #[arg(long, value_name = "WHICH")]
    pub results: Option<String>,
    /// File of irc tune with schedules of kernels, measured on the processor of the code
    #[arg(long, value_name = "TUNE.json")]
    pub tuning: Option<PathBuf>,
    /// Explain on standard error which ops were fused, and why no others
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

/// How a model is quantised to 8 bits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Quantisation")]
pub struct Quantise {
    /// Quantise an f32 model to 8 bits, with samples of its inputs, along the first dimension
    #[arg(long, value_name = "X.npz")]
    pub calibrate: Option<PathBuf>,
    /// Ranges of samples: minmax, percentile=P or mse [default: minmax]
    #[arg(long, value_name = "METHOD", requires = "calibrate")]
    pub calibrate_method: Option<String>,
    /// Scales of weights [default: per-channel]
    #[arg(long, value_enum, value_name = "HOW", requires = "calibrate")]
    pub quantize: Option<Scales>,
    /// Results that become bytes [default: read; for an NPU all]
    #[arg(long, value_enum, value_name = "WHICH", requires = "calibrate")]
    pub quantize_results: Option<QuantisedResults>,
}

/// The scales of weights.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scales {
    /// One for each output channel
    #[default]
    PerChannel,
    /// One for each tensor
    PerTensor,
}

/// The results of a quantised model that are bytes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantisedResults {
    /// Those that products of bytes read
    Read,
    /// All that can be, also outputs
    All,
}

/// How a model is scheduled for an NPU.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "NPU")]
pub struct Npu {
    /// The NPU: npu:mesh=WxH, more keys in docs/npu-models.md
    #[arg(long, value_name = "NPU")]
    pub target: Option<String>,
    /// Images that are scheduled at once [default: those of the model's inputs]
    #[arg(long, value_name = "N", requires = "target", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub batch: Option<u32>,
    /// What the schedule minimises [default: edp]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub objective: Option<Objective>,
    /// Resource allocation tree of the schedule, in SET's text form, instead of a search
    #[arg(long, value_name = "T.txt", requires = "target")]
    pub set_tree: Option<PathBuf>,
    /// Explain each segment of the schedule: what was chosen, its bound, the runner-up
    #[arg(long, requires = "target")]
    pub explain_schedule: bool,
}

/// A dialect of schedules.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// That of the tool chain for one core: with addresses, tiles and the order of DRAM accesses
    A,
    /// That of SET and Gemini: several cores, without addresses
    B,
    /// The same with interleaved DRAM and addresses
    C,
}

/// What a schedule minimises.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Energy times delay.
    #[default]
    Edp,
    /// Delay.
    Latency,
    /// Energy.
    Energy,
}

/// Format of the explanation of fusion.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explain {
    /// Text.
    Text,
    /// One JSON object.
    Json,
}

/// How calls of functions are compiled.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Functions {
    /// Inline each call, so that it fuses with the surrounding ops.
    #[default]
    Inline,
    /// Share one function between calls where its structure does not depend on argument values.
    Outline,
}

/// Options for reading Common IR and ONNX files.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Common IR and ONNX")]
pub struct Graphs {
    /// Format of the file if its content is ambiguous: onnx, common-ir-text, …
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,
    /// Additional folder to search for imported libraries, after the model's own folder
    #[arg(long, value_name = "DIR")]
    pub library_path: Vec<PathBuf>,
    /// Download imported libraries into this folder, unless they are already there
    #[arg(long, value_name = "CACHE")]
    pub allow_fetch: Option<PathBuf>,
    /// Shape of an input (x=1x4), an open size (N=3) or its bounds (N=1..64); repeatable
    #[arg(long, value_name = "NAME=SHAPE")]
    pub shape: Vec<String>,
    /// Room of caches of keys and values, in tokens: a number or a name; new ones go in place
    #[arg(long, value_name = "TOKENS")]
    pub cache: Option<String>,
    /// Resolve undeclared operators in the standard library
    #[arg(long)]
    pub implicit_std: bool,
    /// How to compile calls of the model's functions
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub functions: Functions,
    /// Ignore control inputs, so that they do not order nodes
    #[arg(long)]
    pub ignore_control_inputs: bool,
    /// Take sizes computed at run time to be those that the model states; checked at run time
    #[arg(long)]
    pub assume_stated_shapes: bool,
}
