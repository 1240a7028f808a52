//! `irc`: compile, run, check, benchmark, simulate.
use crate::{
    Compile, Console, Dialect, EXIT_CODES, GENERATORS, Graphs, Machine, Npu, Planner, Quantise,
    common::{CUDA, QUICK, compilers, engines, measured, whole},
};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Compile, run, check and benchmark machine-learning programs
#[derive(Parser, Clone, Debug)]
#[command(
    name = "irc",
    version,
    propagate_version = true,
    after_help = format!(
        "Examples:\n  \
         irc check model.json                 report every error in a model\n  \
         irc compile model.json -o model.so   compile it to a shared library\n  \
         irc run model.json --seed 1          run it on random inputs\n  \
         irc bench model.json                 measure its latency\n\n{EXIT_CODES}"
    )
)]
pub struct Irc {
    /// How messages are printed.
    #[command(flatten)]
    pub console: Console,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of `irc`.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Compile a model to a library, archive, object file, LLVM IR, MLIR, PTX or ARK plan
    Compile(CompileTo),
    /// Run a model, compiled library, archive, or the ARK plans of all ranks
    Run(Run),
    /// Check files and report every error
    Check(Check),
    /// Benchmark a model or plan: latency, GFLOP/s, bytes, percentage of the roofline
    Bench(Bench),
    /// Measure schedules of a model's kernels, for --tuning
    Tune(Tune),
    /// Simulate an NPU schedule: cycles, traces, results
    Simulate(Simulate),
}

/// `irc compile`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Examples:\n  \
     irc compile ffn.model.json -o ffn.so\n  \
     irc compile ffn.model.json -o ffn.so --explain-fusion\n  \
     irc compile ffn.model.json -o ffn.so --backend {QUICK}\n  \
     irc compile ffn.model.json -o ffn.so --backend {CUDA} --arch CUDA_90     a library for an NVIDIA GPU\n  \
     irc compile ffn.model.json -o ffn.mlir --stage fuse\n  \
     irc compile ffn.model.json -o ffn.mlir --stage simt --backend {CUDA}     a stage of code for a GPU\n  \
     irc compile ffn.model.json -o - --emit ll | less\n  \
     irc compile ffn.model.json -o ffn.plan.json --arch CUDA_80 --processors 108\n  \
     irc compile model.onnx -o model.tar                    an archive in TVM's Model Library Format\n  \
     irc compile model.onnx -o model.tar --codegen c        the same, with C source\n  \
     irc compile model.onnx -o model.so --tuning tune.json    with schedules that irc tune measured\n  \
     irc compile ffn.plan.json -o kernels.mlir          the kernels of the plan's tasks\n  \
     irc compile rank0.plan.json rank1.plan.json -o world.ptx   one kernel for the GPUs of all ranks\n  \
     irc compile resnet50.onnx -o net.json --target npu:mesh=4x4   a schedule for 16 NPU cores\n  \
     irc compile resnet50.onnx -o net.asm --target npu:mesh=4x4    their programs\n\n{EXIT_CODES}"
))]
pub struct CompileTo {
    /// Model, Gemini schedule, ARK plan, or MLIR of one; - for standard input
    pub model: String,
    /// ARK plans of the other ranks, for one kernel of GPUs
    pub ranks: Vec<String>,
    /// Output file: .so, .tar, .o, .c, .ll, .s, .mlir, .ptx, .json or .asm; - for standard output
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Code generator [default: llvm; for .ptx cuda]
    #[arg(long, value_parser = compilers(), value_name = "NAME")]
    pub backend: Option<String>,
    /// Kind of output; overrides the suffix of the output file
    #[arg(long, value_enum, value_name = "KIND")]
    pub emit: Option<Kind>,
    /// Last stage to run for .mlir; see irc-opt --list-stages [default: import; of plans kernels]
    #[arg(long, value_name = "NAME")]
    pub stage: Option<String>,
    /// Layers of the network of a Gemini schedule, for an NPU program (.asm)
    #[arg(long, value_name = "FILE")]
    pub frontend: Option<PathBuf>,
    /// Quantised model of a Gemini schedule, for the numbers of its program (.asm)
    #[arg(id = "numbers_of", long = "model", value_name = "MODEL", conflicts_with = "frontend")]
    pub numbers_of: Option<String>,
    /// Input values to specialise an ONNX model for, or for test vectors
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// Device of a .json plan, .ptx, or code for a GPU: CUDA_80, CUDA_90, … [default: CUDA_80]
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// Record when tasks and kernels of code for a GPU begin and end, for irc run --trace
    #[arg(long)]
    pub timestamps: bool,
    /// For a GPU, a launch for each processor group of a plan or kernel of a model
    #[arg(long)]
    pub no_persistent: bool,
    /// Number of processors that a .json plan may use [default: all of the device]
    #[arg(long, value_name = "N", value_parser = whole(1_u32..))]
    pub processors: Option<u32>,
    /// Planner for .json: irc optimises, ark reproduces ARK's own planner
    #[arg(long, value_enum, value_name = "NAME")]
    pub planner: Option<Planner>,
    /// JSON file that fixes configs of ops in a .json plan; see docs/config-rules.md
    #[arg(long, value_name = "FILE")]
    pub config_rules: Option<PathBuf>,
    /// Model Library Format version of a .tar [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::builder::PossibleValuesParser::new(["5", "7"]))]
    pub mlf_version: Option<String>,
    /// Code in a .tar: an object file (o), or portable C source (c) [default: o]
    #[arg(long, value_enum, value_name = "KIND")]
    pub codegen: Option<Codegen>,
    /// Compile a .tar twice from scratch and fail if the files differ
    #[arg(long)]
    pub check_reproducible: bool,
    /// Store inputs and outputs in a .tar for irc run --self-test
    #[arg(long)]
    pub with_test_vectors: bool,
    /// Name of the model in a .tar [default: default]
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,
    /// File for the cost of an NPU schedule, by segments and layers
    #[arg(long, value_name = "R.json")]
    pub report: Option<PathBuf>,
    /// Compute on the host what the NPU does not compute of a model
    #[arg(long)]
    pub host_fallback: bool,
    /// Dialect of the schedule of a model
    #[arg(long, value_enum, value_name = "DIALECT", ignore_case = true)]
    pub dialect: Option<Dialect>,
    /// The NPU.
    #[command(flatten)]
    pub npu: Npu,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
    /// How to compile.
    #[command(flatten)]
    pub compile: Compile,
}

/// The code in an archive.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codegen {
    /// An object file, and a shared library
    O,
    /// C source, which needs only a C compiler
    C,
}

/// What `irc compile` writes.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A shared library with irc's C interface
    So,
    /// An object file
    O,
    /// LLVM IR, optimised
    Ll,
    /// Assembly
    S,
    /// C source for gcc or clang, portable unless --target-cpu is given
    C,
    /// MLIR after the stage given by --stage
    Mlir,
    /// An ARK execution plan, or with --target an NPU schedule
    Json,
    /// A Model Library Format archive
    Tar,
    /// NPU programs of a Gemini schedule, or with --target of a model
    Asm,
    /// One kernel for an NVIDIA GPU, as PTX
    Ptx,
}

impl Kind {
    /// The output suffix.
    pub fn suffix(self) -> String {
        let name = self.to_possible_value();
        format!(".{}", name.as_ref().map_or("", |name| name.get_name()))
    }
}

/// `irc run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "The keys of .npz files are the names of inputs and outputs. Buffers of ARK models are\n\
     buffer_<Id>: the whole buffer in one dimension, BF16 as uint16 bits. Missing inputs are zero, or\n\
     random with --seed.\n\
     Several ARK plans or models are run together as the ranks of one world, with keys\n\
     rank<r>/buffer_<Id>. Plans run on a simulation of their processors, which share the threads.\n\n\
     Examples:\n  \
     irc run ffn.model.json --seed 1                            print a summary of every output\n  \
     irc run ffn.model.json --inputs x.npz --outputs y.npz\n  \
     irc run ffn.so --inputs x.npz --expected numpy.npz         exit with 3 if results differ\n  \
     irc run model.tar --inputs x.npz --outputs y.npz           an archive of irc or TVM\n  \
     irc run ffn.model.json --seed 1 --backend reference\n  \
     irc run mnist.onnx --data-set test_data_set_0              an ONNX model with its test data\n  \
     irc run ffn.model.json --seed 1 --backend {QUICK}        compile faster, run slower\n  \
     irc run ffn.plan.json --seed 1 --threads 2                 an ARK plan\n  \
     irc run rank0.plan.json rank1.plan.json --seed 1 --trace t.json\n  \
     mpirun -n 2 irc run rank0.plan.json rank1.plan.json --seed 1 --transport mpi\n\n{EXIT_CODES}"
))]
pub struct Run {
    /// Model, library, archive, NPU program, or the ARK plans of all ranks; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Quantised model of an NPU program, for its weights
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// File with inputs
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// File for outputs; without it, a summary of them is printed
    #[arg(long, value_name = "Y.npz")]
    pub outputs: Option<PathBuf>,
    /// File with expected outputs, compared within the tolerance of their type
    #[arg(long, value_name = "E.npz")]
    pub expected: Option<PathBuf>,
    /// Relative tolerance for --expected [default: depends on the type]
    #[arg(long, requires = "expected", value_name = "X", value_parser = finite)]
    pub tolerance: Option<f64>,
    /// Seed for random values of missing inputs; the same on every machine
    #[arg(long, value_name = "N", value_parser = whole(0_u64..))]
    pub seed: Option<u64>,
    /// Folder with ONNX test data: inputs input_N.pb, expected outputs output_N.pb
    #[arg(long, value_name = "DIR")]
    pub data_set: Option<PathBuf>,
    /// Run an archive on its own test vectors and compare the outputs
    #[arg(long, conflicts_with_all = ["inputs", "outputs", "expected", "seed"])]
    pub self_test: bool,
    /// Number of threads, from 1 to 1024; results do not depend on it
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole(1..=1024_u32))]
    pub threads: u32,
    /// File for a timeline of running plans, and of kernels for GPUs, for ui.perfetto.dev
    #[arg(long, value_name = "T.json")]
    pub trace: Option<PathBuf>,
    /// Detect races of plans, and of kernels for GPUs with --backend emulate
    #[arg(long)]
    pub race_check: bool,
    /// Instructions of all threads after which an emulated kernel is stopped [default: 2^36]
    #[arg(long, value_name = "N", value_parser = whole(1_u64..))]
    pub max_instructions: Option<u64>,
    /// How ranks communicate; with mpi, mpirun starts one process per rank
    #[arg(long, value_enum, default_value_t, value_name = "HOW")]
    pub transport: Transport,
    /// Code generator, evaluator, or a GPU [default: llvm; cuda for kernels of GPUs]
    #[arg(long, value_parser = engines(), value_name = "NAME")]
    pub backend: Option<String>,
    /// GPU to compile for: CUDA_80, CUDA_90 [default: a plan's; that of the machine; CUDA_80]
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
    /// How to compile.
    #[command(flatten)]
    pub compile: Compile,
}

impl Run {
    /// The name of what runs a model that is compiled for it.
    pub fn engine(&self) -> &str {
        self.backend.as_deref().unwrap_or(GENERATORS[0].0)
    }
}

/// How ranks communicate.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// All ranks run in one process
    #[default]
    Inprocess,
    /// One process per rank, each with its own output files: y.rank0.npz for y.npz
    Mpi,
}

/// `irc check`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "The kind of each file is detected from its content. The plans of all ranks of a world are also\n\
     checked together, for tags, signals, deadlocks and races between ranks. If plans of several\n\
     worlds are given, those whose file names differ only in the rank belong together.\n\n\
     Examples:\n  \
     irc check ffn.model.json ffn.plan.json\n  \
     irc check --model ffn.model.json ffn.plan.json\n  \
     irc check --cost ffn.plan.json\n  \
     irc check resnet50.onnx --target npu:mesh=4x4             whether an NPU can compute the model\n  \
     irc check --cost resnet50.onnx --target npu:mesh=4x4      and what its schedule costs\n  \
     irc check --cost schedule.json --target npu:mesh=4x4      what a schedule costs\n  \
     irc check plan_rank0.json plan_rank1.json\n  \
     irc check schedule.json layers.json\n  \
     irc check net.asm --against published.txt\n  \
     irc check model.tar\n  \
     irc check model.ptx                                       every instruction, and its description\n  \
     irc check --strict --json models/*.json > diagnostics.json\n\n{EXIT_CODES}"
))]
pub struct Check {
    /// Models, plans, schedules, frontend files, NPU programs, PTX, archives; -: standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Check that the plans implement this model; repeat for each rank
    #[arg(long = "model", value_name = "MODEL")]
    pub models: Vec<String>,
    /// Compare NPU programs with this one: a listing, a trace or .npu
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<String>,
    /// Treat unknown keys as errors
    #[arg(long)]
    pub strict: bool,
    /// Print all diagnostics as one JSON array on standard output
    #[arg(long)]
    pub json: bool,
    /// Report violations that are common in old Common IR files as warnings
    #[arg(long)]
    pub compat: bool,
    /// Estimate the cost of plans, schedules, and with --target models; as JSON with --json
    #[arg(long)]
    pub cost: bool,
    /// Divide a model between the NPU and the host, and note what the host computes
    #[arg(long)]
    pub host_fallback: bool,
    /// The NPU.
    #[command(flatten)]
    pub npu: Npu,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
}

/// `irc bench`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Prints the median and percentiles of the latency, GFLOP/s, bytes moved and the percentage of\n\
     the roofline. The peaks of the roofline are measured first, on one core: fused multiply-adds in\n\
     registers, and a copy between two buffers that each are several times as large as the last-level\n\
     cache, so a model that fits a cache may exceed 100 %. The fastest of several repetitions is used.\n\
     --peak-gflops and --peak-bandwidth replace these measurements. Bytes moved count each input and\n\
     output buffer once. A compiled library does not record its number of operations, so GFLOP/s and\n\
     the percentage of the roofline are printed for models only.\n\n\
     --profile samples which function runs, twice in a millisecond, and prints the share of each kernel,\n\
     its time in a run, the rates of its launches, its percentage of the roofline, and the nodes that it\n\
     computes. Shares are of the time of all threads. The peak is of f32 in vectors of the processor that\n\
     the code is for, so kernels of bytes may exceed 100 %. Tools such as perf show the same names.\n\n\
     Examples:\n  \
     irc bench ffn.model.json\n  \
     irc bench ffn.so --profile\n  \
     irc bench ffn.ptx --backend emulate       instructions and accesses of a kernel of a GPU\n  \
     irc bench model.onnx --inputs x.npz\n  \
     irc bench ffn.model.json --json --time 5\n\n{EXIT_CODES}"
))]
pub struct Bench {
    /// Model, ARK plan, compiled library or archive; - for standard input
    #[arg(value_name = "FILE")]
    pub file: String,
    /// File with inputs; others are random. Sizes follow from it, or for models from --shape
    #[arg(long, value_name = "X.npz")]
    pub inputs: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Number of threads, from 1 to 1024; results do not depend on it
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = whole(1..=1024_u32))]
    pub threads: u32,
    /// Seed for random inputs
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = whole(0_u64..))]
    pub seed: u64,
    /// Seconds to measure, after warming up for a tenth of that
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = positive)]
    pub time: f64,
    /// Number of runs to measure; overrides --time
    #[arg(long, value_name = "N", value_parser = whole(1_u32..))]
    pub iterations: Option<u32>,
    /// Update caches in place: the outputs that replace elements of inputs are in their memory
    #[arg(long)]
    pub in_place: bool,
    /// Print the time of each kernel
    #[arg(long)]
    pub profile: bool,
    /// File of irc tune with schedules of kernels, measured on the processor of the code
    #[arg(long, value_name = "TUNE.json")]
    pub tuning: Option<PathBuf>,
    /// Peak arithmetic throughput in GFLOP/s; skips its measurement
    #[arg(long, value_name = "X", value_parser = positive)]
    pub peak_gflops: Option<f64>,
    /// Peak memory bandwidth in GB/s, reads plus writes; skips its measurement
    #[arg(long, value_name = "X", value_parser = positive)]
    pub peak_bandwidth: Option<f64>,
    /// Code generator
    #[arg(long, value_parser = measured(), default_value = GENERATORS[0].0, value_name = "NAME")]
    pub backend: String,
    /// GPU to compile for: CUDA_80, CUDA_90 [default: a plan's; that of the machine; CUDA_80]
    #[arg(long, value_name = "NAME")]
    pub arch: Option<String>,
    /// What the code is for.
    #[command(flatten)]
    pub machine: Machine,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
}

/// `irc tune`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Compiles every matrix product and convolution of the model alone with several schedules, measures them\n\
     on random values, and writes those that are at least 3 % faster than the one that the cost model\n\
     chooses. Results may differ in the last bits, as sums are added in another order. Kernels of open\n\
     sizes cannot be tuned: --shape states the sizes, of irc tune and where the file is used.\n\n\
     Examples:\n  \
     irc tune model.onnx -o tune.json\n  \
     irc compile model.onnx -o model.so --tuning tune.json\n  \
     irc bench model.onnx --tuning tune.json\n  \
     irc tune model.onnx -o tune64.json --shape N=64      for code of irc compile --shape N=64\n\n{EXIT_CODES}"
))]
pub struct Tune {
    /// Model; - for standard input
    pub model: String,
    /// File to write
    #[arg(short, long, value_name = "TUNE.json")]
    pub output: PathBuf,
    /// Seconds to measure each kernel, besides the time to compile its schedules
    #[arg(long, default_value_t = 1.0, value_name = "S", value_parser = positive)]
    pub time: f64,
    /// What the code is for.
    #[command(flatten)]
    pub machine: Machine,
    /// Options for reading Common IR and ONNX files.
    #[command(flatten)]
    pub graphs: Graphs,
}

/// `irc simulate`.
#[derive(Args, Clone, Debug)]
#[command(after_help = format!(
    "Compiles the schedule to an NPU program and prints the number of cycles it takes, using the\n\
     times of workloads that the schedule states. Each engine runs in order; engines synchronise by\n\
     tokens. The first line of output is `cycles <n>`.\n\n\
     --trace writes a trace for Perfetto: one track per engine of each core, and the occupancy of L2\n\
     as a counter. --html writes a self-contained page: lower bounds of each segment by computing, links\n\
     and DRAM beside its simulated cycles, the traffic of each link, and for each core its engines and the\n\
     tensors in its buffers over time. One of --trace, --html, --outputs and --json may be written\n\
     to standard output (-); the report then goes to standard error.\n\n\
     If the schedule or --target states the NPU, or with --link-rate or --dram-rate, cores share a mesh\n\
     with DRAM ports at both ends of its rows, and --json reports the traffic of each link and a lower\n\
     bound on the cycles of any program.\n\n\
     With --outputs, the program is also run on tensors. The keys of inputs and outputs are the names\n\
     of inputs and layers in the frontend file. The keys of weights are LAYER.weight i8[K,C,R,S],\n\
     LAYER.scale and LAYER.bias f32[K]: a convolution computes scale * sum + bias, applies the\n\
     activation, and quantises. --seed draws missing tensors at random.\n\n\
     A program does not state how long its workloads take, so --program needs its schedule too.\n\n\
     Examples:\n  \
     irc simulate schedule.json --frontend layers.json\n  \
     irc simulate schedule.json.gz --frontend layers.json --trace trace.json\n  \
     irc simulate schedule.json --frontend layers.json --html report.html\n  \
     irc simulate schedule.json --program net.asm\n  \
     irc simulate cores.json --model resnet50.onnx\n  \
     irc simulate cores.json --link-rate 24 --dram-rate 4 --json\n  \
     irc simulate schedule.json --frontend layers.json --seed 1 --outputs y.npz\n\n{EXIT_CODES}"
))]
pub struct Simulate {
    /// Gemini schedule; may be gzip-compressed
    pub schedule: PathBuf,
    /// Frontend file of the network; required for schedules of one core of other tools
    #[arg(long, value_name = "F")]
    pub frontend: Option<PathBuf>,
    /// Model of the schedule, for its windows and numbers
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["program", "frontend"])]
    pub model: Option<String>,
    /// Shape of an input of --model, as data=1x3x224x224; repeatable
    #[arg(long, value_name = "NAME=SHAPE", requires = "model")]
    pub shape: Vec<String>,
    /// The schedule is of a part of --model, of which the host computes the rest
    #[arg(long, requires = "model")]
    pub host_fallback: bool,
    /// The NPU, for the rates of links and DRAM [default: that of the schedule]
    #[arg(long, value_name = "NPU")]
    pub target: Option<String>,
    /// Run this program of the schedule instead of compiling one: a listing, a trace or .npu
    #[arg(long, value_name = "P")]
    pub program: Option<PathBuf>,
    /// File for a Perfetto trace
    #[arg(long, value_name = "OUT.json")]
    pub trace: Option<PathBuf>,
    /// File for an HTML page of segments, links, engines and buffers over time
    #[arg(long, value_name = "OUT.html")]
    pub html: Option<PathBuf>,
    /// Bytes per cycle of a link between cores [default: transfers do not share links]
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub link_rate: Option<f64>,
    /// Bytes per cycle of DRAM, for all cores [default: cores do not share DRAM]
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub dram_rate: Option<f64>,
    /// Run the program on int8 tensors and write the network's results to this file
    #[arg(long, value_name = "Y.npz")]
    pub outputs: Option<PathBuf>,
    /// File with inputs, by name
    #[arg(long, value_name = "X.npz", requires = "outputs")]
    pub inputs: Option<PathBuf>,
    /// File with weights, scales and biases: LAYER.weight, LAYER.scale, LAYER.bias
    #[arg(long, value_name = "W.npz", requires = "outputs")]
    pub weights: Option<PathBuf>,
    /// Seed for random values of missing inputs and weights
    #[arg(long, value_name = "N", requires = "outputs")]
    pub seed: Option<u64>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// How the model is quantised.
    #[command(flatten)]
    pub quantise: Quantise,
}

/// A finite, non-negative number.
fn finite(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if number.is_finite() && number >= 0.0 {
        Ok(number)
    } else {
        Err("expected a finite number that is not negative".into())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = finite(text)?;
    if number > 0.0 { Ok(number) } else { Err("expected a number greater than 0".into()) }
}

/// Bytes per cycle; the lower limit keeps the number of cycles within range.
fn rate(text: &str) -> Result<f64, String> {
    const MIN_RATE: f64 = 0.001;
    let number = finite(text).unwrap_or(0.0);
    if number >= MIN_RATE {
        Ok(number)
    } else {
        Err(format!("expected a number of at least {MIN_RATE}"))
    }
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
        for [flag, value] in [["--time", "-1"], ["--seed", "-1"]] {
            let command = ["irc", "bench", "m.json", flag, value].map(str::to_owned);
            let error = crate::parse_irc(&command).expect_err(flag).to_string();
            assert!(error.contains("invalid value '-1'"), "{error}");
        }
    }
}
