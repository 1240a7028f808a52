//! `irc`: compile, run, check, measure, simulate.
use crate::{Compile, Console, EXIT_CODES, Generator, Graphs, Planner};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Compiles machine-learning programs to host libraries, runs them, checks them, measures them
#[derive(Parser, Clone, Debug)]
#[command(
    name = "irc",
    version,
    propagate_version = true,
    after_help = format!(
        "Examples:\n  \
         irc check model.json                 find everything wrong with a model\n  \
         irc compile model.json -o model.so   compile it to a shared library\n  \
         irc run model.json --seed 1          run it on random inputs\n  \
         irc bench model.json                 measure it\n\n{EXIT_CODES}"
    )
)]
pub struct Irc {
    /// How the tool talks.
    #[command(flatten)]
    pub console: Console,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `irc`.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Compile a model to a library, an archive, an object, LLVM IR, MLIR or a plan
    Compile(CompileTo),
    /// Run a model, a compiled library, an archive, or plans
    Run(Run),
    /// Check models and plans: every diagnostic of every file
    Check(Check),
    /// Measure a model or a plan: latency, GFLOP/s, bytes, share of the roofline
    Bench(Bench),
    /// Simulate an NPU schedule: cycles, traces, what it computes
    Simulate(Simulate),
}

/// `irc compile`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Examples:\n  \
     irc compile ffn.model.json -o ffn.so\n  \
     irc compile ffn.model.json -o ffn.so --explain-fusion\n  \
     irc compile ffn.model.json -o ffn.so --backend cranelift\n  \
     irc compile ffn.model.json -o ffn.mlir --stage fuse\n  \
     irc compile ffn.model.json -o - --emit ll | less\n  \
     irc compile ffn.model.json -o ffn.plan.json --arch CUDA_80 --processors 108\n  \
     irc compile model.onnx -o model.tar                    an archive that TVM's clients load\n  \
     irc compile model.onnx -o model.tar --codegen c        the same with C source\n  \
     irc compile ffn.plan.json -o kernels.mlir          the kernels of its tasks\n\n{EXIT_CODES}"
))]
pub struct CompileTo {
    /// ARK model, ONNX model or Common IR graph; - is standard input
    pub model: String,
    /// File to write; its suffix says what: .so .tar .o .c .ll .s .mlir .json; - is stdout
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Who generates code for .so and .o
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub backend: Generator,
    /// What to write, whatever the suffix says
    #[arg(long, value_enum, value_name = "KIND")]
    pub emit: Option<Kind>,
    /// Stage after which .mlir is written; irc-opt --list-stages lists them [default: import]
    #[arg(long, value_name = "NAME")]
    pub stage: Option<String>,
    /// Layers of the network of a Gemini schedule, which becomes a program (.asm)
    #[arg(long, value_name = "FILE")]
    pub frontend: Option<PathBuf>,
    /// Inputs that the structure of an ONNX model depends on, or of test vectors
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// Device a .json plan is for: ANY, CUDA, CUDA_80, ROCM_942, … [default: CUDA_80]
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// Processors a .json plan may use [default: those of the device]
    #[arg(long, value_name = "N")]
    pub processors: Option<u32>,
    /// Planner of a .json plan: irc optimises, ark gives what ARK's own planner gives
    #[arg(long, value_enum, value_name = "NAME")]
    pub planner: Option<Planner>,
    /// Configs and ranges pinned for ops of a .json plan: JSON, see docs/config-rules.md
    #[arg(long, value_name = "FILE")]
    pub config_rules: Option<PathBuf>,
    /// Version of the Model Library Format of a .tar: 5 or 7 [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::builder::PossibleValuesParser::new(["5", "7"]))]
    pub mlf_version: Option<String>,
    /// Code in a .tar: an object for one processor, or C source for any [default: o]
    #[arg(long, value_enum, value_name = "KIND")]
    pub codegen: Option<Codegen>,
    /// Compile a .tar twice, each time from nothing, and demand equal bytes
    #[arg(long)]
    pub check_reproducible: bool,
    /// Put inputs and what comes of them into a .tar: irc run --self-test compares
    #[arg(long)]
    pub with_test_vectors: bool,
    /// Name of the model in a .tar [default: default, which all clients know]
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,
    /// How Common IR and ONNX files are read.
    #[command(flatten)]
    pub graphs: Graphs,
    /// How to compile.
    #[command(flatten)]
    pub compile: Compile,
}

/// What code an archive holds.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codegen {
    /// A relocatable object, and a shared library
    O,
    /// C source, which needs a C compiler and nothing else
    C,
}

/// What `irc compile` writes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shared library that `irc run` and the C ABI load
    So,
    /// A relocatable object
    O,
    /// LLVM IR, optimised
    Ll,
    /// Assembly
    S,
    /// C source that gcc or clang compiles, for any processor unless one is named
    C,
    /// MLIR after a stage of the pipeline
    Mlir,
    /// An ARK execution plan
    Json,
    /// A Model Library Format archive
    Tar,
    /// An NPU program (not built yet)
    Asm,
    /// NVIDIA PTX (not built yet)
    Ptx,
}

/// `irc run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Keys of .npz files are buffer_<Id>: the whole buffer, 1-D; BF16 as the bits of uint16.\n\
     Buffers not given start as zero; with --seed, those read before they are written start as\n\
     random values.\n\
     Several plans, or models, are the ranks of one world; keys are then rank<r>/buffer_<Id>. Plans\n\
     run as the machine they describe: its processors share the threads.\n\n\
     Examples:\n  \
     irc run ffn.model.json --seed 1                            a summary of every output\n  \
     irc run ffn.model.json --inputs x.npz --outputs y.npz\n  \
     irc run ffn.so --inputs x.npz --expected numpy.npz         exit code 3 where they differ\n  \
     irc run model.tar --inputs x.npz --outputs y.npz           an archive, of irc or of TVM\n  \
     irc run ffn.model.json --seed 1 --backend reference\n  \
     irc run mnist.onnx --data-set test_data_set_0              an ONNX model and its test data\n  \
     irc run ffn.model.json --seed 1 --backend cranelift        soon compiled, for a look\n  \
     irc run ffn.plan.json --seed 1 --threads 2                 an ARK plan\n  \
     irc run rank0.plan.json rank1.plan.json --seed 1 --trace t.json\n  \
     mpirun -n 2 irc run rank0.plan.json rank1.plan.json --seed 1 --transport mpi\n\n{EXIT_CODES}"
))]
pub struct Run {
    /// Model (ARK, ONNX, Common IR), library, or the plans of all ranks; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Input buffers
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// File for the output buffers; without it a summary is printed
    #[arg(long, value_name = "Y.npz")]
    pub outputs: Option<PathBuf>,
    /// Buffers that must come out, within the tolerance of their type
    #[arg(long, value_name = "E.npz")]
    pub expected: Option<PathBuf>,
    /// Tolerance relative to element and tensor, instead of that of each type
    #[arg(long, requires = "expected", value_name = "X", value_parser = finite)]
    pub tolerance: Option<f64>,
    /// Fill inputs not given with random values; equal seeds give equal values everywhere
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// ONNX test data of a model: input_N.pb, and output_N.pb that must come out
    #[arg(long, value_name = "DIR")]
    pub data_set: Option<PathBuf>,
    /// Run an archive on the inputs that it holds, and compare with the outputs that it holds
    #[arg(long, conflicts_with_all = ["inputs", "outputs", "expected", "seed"])]
    pub self_test: bool,
    /// Threads to run a plan on; models and libraries run on one today
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// File for a timeline of the run of plans, for ui.perfetto.dev
    #[arg(long, value_name = "T.json")]
    pub trace: Option<PathBuf>,
    /// Stop the run of plans at the first race; one that irc check finds must show in the run
    #[arg(long)]
    pub race_check: bool,
    /// How ranks reach each other; with mpi, mpirun starts a process for each
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub transport: Transport,
    /// What runs the model
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub backend: Backend,
    /// How Common IR and ONNX files are read.
    #[command(flatten)]
    pub graphs: Graphs,
    /// How to compile.
    #[command(flatten)]
    pub compile: Compile,
}

/// How ranks reach each other.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// All of them run in one process
    #[default]
    Inprocess,
    /// Each runs in a process of its own, and writes files of its own: y.rank0.npz for y.npz
    Mpi,
}

/// What runs a model.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Code from LLVM
    #[default]
    Llvm,
    /// The reference evaluator: slow, and the meaning of everything else
    Reference,
    /// Code from Cranelift: compiled quickly, runs slower
    Cranelift,
    /// A GPU (not built yet)
    Cuda,
}

/// `irc check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Models and plans are told apart by their content. Plans of all ranks of a world are\n\
     checked together too: tags, signals, deadlocks and races between ranks. Of several worlds,\n\
     those are together that are called the same but for their rank.\n\n\
     Examples:\n  \
     irc check ffn.model.json ffn.plan.json\n  \
     irc check --model ffn.model.json ffn.plan.json\n  \
     irc check --cost ffn.plan.json\n  \
     irc check plan_rank0.json plan_rank1.json\n  \
     irc check schedule.json layers.json\n  \
     irc check net.asm --against published.txt\n  \
     irc check model.tar\n  \
     irc check --strict --json models/*.json > diagnostics.json\n\n{EXIT_CODES}"
))]
pub struct Check {
    /// Models, plans, graphs, schedules, layers, NPU programs, archives; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Check that the plans compute this model; once for each rank
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// Check that NPU programs are this one: a listing, a trace or .npu
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<String>,
    /// Keys that the format does not know are errors
    #[arg(long)]
    pub strict: bool,
    /// Write all diagnostics as one JSON array to standard output
    #[arg(long)]
    pub json: bool,
    /// Estimate what plans cost; with --json, an object of diagnostics and costs is written
    #[arg(long)]
    pub cost: bool,
    /// How Common IR and ONNX files are read.
    #[command(flatten)]
    pub graphs: Graphs,
}

/// `irc bench`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Prints the median and the percentiles of the latency, GFLOP/s, bytes moved and the share of\n\
     the roofline. The roofline is measured first, on one core: fused multiply-adds in registers,\n\
     and a copy between two buffers that together are as large as the model's; --peak-gflops and\n\
     --peak-bandwidth take the place of these measurements. Bytes are each input and output\n\
     buffer once. A library does not record its operations: GFLOP/s and the share of the roofline\n\
     are those of a model only.\n\n\
     Examples:\n  \
     irc bench ffn.model.json\n  \
     irc bench model.onnx --inputs x.npz\n  \
     irc bench ffn.model.json --json --time 5\n\n{EXIT_CODES}"
))]
pub struct Bench {
    /// Model, graph, ARK plan, or library of irc compile; - is standard input
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Inputs of an ONNX model; others are random, and of size 1 where it leaves that open
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// Write one JSON object instead of lines
    #[arg(long)]
    pub json: bool,
    /// Threads to run a plan on; models and libraries run on one today
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Seconds to measure, beside a tenth of that to warm up
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = positive)]
    pub time: f64,
    /// Runs to measure, instead of a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// Peak arithmetic in GFLOP/s, instead of measuring it
    #[arg(long, value_name = "X", value_parser = positive)]
    pub peak_gflops: Option<f64>,
    /// Peak memory traffic in GB/s, read and written, instead of measuring it
    #[arg(long, value_name = "X", value_parser = positive)]
    pub peak_bandwidth: Option<f64>,
    /// Who generates the code
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    pub backend: Generator,
    /// Processor to generate code for: native, or an LLVM name such as x86-64-v3
    #[arg(long, default_value = "native", value_name = "CPU")]
    pub target_cpu: String,
    /// Accumulate as ARK's kernels on CUDA_80 do: f16 in f16, f32 products through TF32
    #[arg(long)]
    pub ark_accumulate: bool,
    /// How Common IR and ONNX files are read.
    #[command(flatten)]
    pub graphs: Graphs,
}

/// `irc simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Makes the program that runs the schedule, and tells how many cycles it takes, by the times of\n\
     workloads that the schedule states: engines in order, tokens between them. The first line is\n\
     `cycles <n>`. The trace opens in Perfetto: one track for each engine of each core, and what L2\n\
     holds as a counter. The page of --html needs nothing but a browser: for each core a map of L2\n\
     and one of WL0, with a rectangle for each tensor. One of --trace, --html, --outputs and --json\n\
     may go to standard output (-); the lines then go to standard error.\n\n\
     With --link-rate or --dram-rate cores share a mesh, with DRAM ports at both ends of its rows, and\n\
     --json tells what each link carried, and the cycles that no program could be faster than.\n\n\
     With --outputs the program is also run on tensors. Keys of inputs and outputs are names of the\n\
     frontend: an input's, a layer's. Those of weights are LAYER.weight i8[K,C,R,S], LAYER.scale and\n\
     LAYER.bias f32[K]: a convolution gives scale * sum + bias, activated, before it is quantised.\n\
     What is not given is drawn with --seed.\n\n\
     Programs do not say how long their workloads take: --program runs one beside its schedule.\n\n\
     Examples:\n  \
     irc simulate schedule.json --frontend layers.json\n  \
     irc simulate schedule.json.gz --frontend layers.json --trace trace.json\n  \
     irc simulate schedule.json --frontend layers.json --html buffers.html\n  \
     irc simulate schedule.json --program net.asm\n  \
     irc simulate cores.json --link-rate 24 --dram-rate 4 --json\n  \
     irc simulate schedule.json --frontend layers.json --seed 1 --outputs y.npz\n\n{EXIT_CODES}"
))]
pub struct Simulate {
    /// Gemini schedule; .gz files are unpacked
    pub schedule: PathBuf,
    /// Frontend IR of the same network: programs of schedules of one core are made with it
    #[arg(long, value_name = "F")]
    pub frontend: Option<PathBuf>,
    /// Program to run, instead of making one: a listing, a trace or .npu of the same schedule
    #[arg(long, value_name = "P")]
    pub program: Option<PathBuf>,
    /// File for a Perfetto trace
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// File for a page that shows what lies where in the buffers, over time
    #[arg(long, value_name = "OUT.html")]
    pub html: Option<PathBuf>,
    /// Bytes that a link between cores carries in a cycle [default: transfers do not share links]
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub link_rate: Option<f64>,
    /// Bytes that DRAM gives all cores together in a cycle; without it each has its own
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub dram_rate: Option<f64>,
    /// Also run the program on int8 tensors: file for the results of the network
    #[arg(long, value_name = "Y.npz")]
    pub outputs: Option<PathBuf>,
    /// Inputs, by name
    #[arg(long, value_name = "X.npz", requires = "outputs")]
    pub inputs: Option<PathBuf>,
    /// Weights, scales and biases: LAYER.weight, LAYER.scale, LAYER.bias
    #[arg(long, value_name = "W.npz", requires = "outputs")]
    pub weights: Option<PathBuf>,
    /// Draw the inputs and weights that are not given
    #[arg(long, value_name = "N", requires = "outputs")]
    pub seed: Option<u64>,
    /// Write one JSON object instead of lines
    #[arg(long)]
    pub json: bool,
}

/// A finite number that is not negative.
fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("expected 0 or more".into()) }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = finite(text)?;
    if number > 0.0 { Ok(number) } else { Err("expected more than 0".into()) }
}

/// Bytes in a cycle; so low a rate that cycles could not be counted is no machine's.
fn rate(text: &str) -> Result<f64, String> {
    const LEAST: f64 = 0.001;
    let number = finite(text).unwrap_or(0.0);
    if number >= LEAST { Ok(number) } else { Err(format!("expected a number from {LEAST} on")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Irc::command().debug_assert();
    }

    #[test]
    fn every_flag_is_one_line() {
        let mut command = Irc::command();
        command.build();
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            for argument in sub.get_arguments() {
                let help = argument.get_help().map(|help| help.to_string()).unwrap_or_default();
                let place = format!("{} {}: {help}", sub.get_name(), argument.get_id());
                assert!(!help.is_empty() && !help.contains('\n') && help.len() <= 90, "{place}");
            }
        }
    }

    #[test]
    fn explain_fusion_takes_its_format_after_an_equals_sign_only() {
        let parse = |flag| Irc::try_parse_from(["irc", "run", flag, "model.json"]);
        let Command::Run(run) = parse("--explain-fusion").expect("valid").command else {
            panic!("not run");
        };
        assert_eq!(run.compile.explain_fusion, Some(crate::Explain::Text));
        assert_eq!(run.files, ["model.json"]);
        assert!(parse("--explain-fusion=html").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_usage_errors() {
        for flag in ["--threads=0", "--time=-1", "--time=nan", "--iterations=0", "--peak-gflops=0"]
        {
            let error = Irc::try_parse_from(["irc", "bench", "m.json", flag]).expect_err(flag);
            assert_eq!(error.exit_code(), 2);
        }
    }
}
