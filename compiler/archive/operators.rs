//! The functions that clients call, around kernels, in the `llvm` dialect.
//!
//! Each function has two names for two conventions. `NAME` is a packed function of TVM's C interface:
//!
//! ```c
//! int32_t NAME(TVMValue *values, int32_t *type_codes, int32_t count, TVMValue *result,
//!              int32_t *result_code, void *resource);
//! ```
//!
//! `__tvm_ffi_NAME` is one of tvm-ffi: `int32_t (void *self, const TVMFFIAny *values, int32_t count,
//! TVMFFIAny *result)`. Both check their arguments (number of arguments, device, element type, number of
//! elements, density), allocate scratch memory, and call. They need no symbols of a runtime: functions that
//! a loader may provide are weak pointers; if they are null, scratch memory comes from `malloc`, and kernels run on the
//! calling thread.
//!
//! `TVMSystemLibEntryPoint` returns the table of all functions by name, for clients without a loader.
use super::{Argument, Buffer, Callee, Operator};
use crate::{
    attributes::{KernelInfo, launcher},
    interface::Interface,
};
use std::{collections::BTreeMap, fmt::Write};

/// The encoding of the number of functions in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// In a byte: TVM 0.8 and 0.9.
    Byte,
    /// In two bytes, little-endian: TVM 0.10 and later.
    Word,
}

/// A step of the program that is compiled separately:
/// `int32_t entry(void **buffers, void *workspace, const struct irc_threads *threads)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The symbol of its entry point.
    pub symbol: String,
    memory: Memory,
}

impl Entry {
    /// An entry point of a program with this interface.
    pub fn new(symbol: String, interface: &Interface) -> Self {
        let Interface { workspace_bytes, thread_bytes, .. } = *interface;
        Self { symbol, memory: Memory { scratch: workspace_bytes, part: Some(thread_bytes) } }
    }
}

/// The memory that a callee needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Memory {
    /// Bytes of scratch memory.
    scratch: u64,
    /// Bytes of memory of each part of its work; `None` if the work is not divided.
    part: Option<u64>,
}

/// The callees of functions.
#[derive(Clone, Copy, Debug)]
pub struct Callees<'p> {
    /// Kernels by symbol.
    pub kernels: &'p BTreeMap<String, KernelInfo>,
    /// Steps by number.
    pub steps: &'p [Entry],
    /// Bytes of memory of each part of the program's work, if there are calls of it.
    pub program: Option<u64>,
}

/// Alignment of scratch memory in bytes.
const ALIGNMENT: u64 = irc_tensor::ALIGNMENT as u64;

impl Callees<'_> {
    /// The maximum size in bytes of the memory that a function requests on one thread, including space to align it.
    pub fn workspace(&self, operator: &Operator) -> u64 {
        let memory = self.memory(operator);
        memory.workspace() + memory.part.map_or(0, with_alignment)
    }

    fn memory(&self, operator: &Operator) -> Memory {
        match &operator.callee {
            Callee::Kernel(symbol, _) => self.kernels.get(symbol).map(|kernel| Memory {
                scratch: kernel.scratch(),
                part: kernel.phases.as_ref().map(|phases| phases.part_bytes),
            }),
            Callee::Step(number) => self.steps.get(*number).map(|step| step.memory),
            Callee::Program { .. } => {
                self.program.map(|bytes| Memory { scratch: 0, part: Some(bytes) })
            }
            Callee::Copy(_) | Callee::Gpu => None,
        }
        .unwrap_or_default()
    }
}

impl Memory {
    /// Bytes to allocate for scratch memory.
    fn workspace(self) -> u64 {
        with_alignment(self.scratch)
    }
}

/// Bytes to allocate for a number of aligned bytes.
fn with_alignment(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { bytes + ALIGNMENT }
}

/// The module of functions, as text.
///
/// # Errors
/// If there are more functions than the table can count.
pub fn write(operators: &[Operator], callees: Callees<'_>, count: Count) -> Result<String, String> {
    let mut text = String::from(COMMON);
    messages(&mut text);
    declare(&mut text, operators, callees);
    if callees.program.is_some() {
        text += PROGRAM;
    }
    for (number, operator) in operators.iter().enumerate() {
        table(&mut text, number, &operator.arguments);
        body(&mut text, number, operator, callees);
        entries(&mut text, number, operator);
    }
    registry(&mut text, operators, count)?;
    Ok(text)
}

/// Declares symbols that are defined elsewhere.
fn declare(text: &mut String, operators: &[Operator], callees: Callees<'_>) {
    let mut kernels: Vec<&String> = vec![];
    for operator in operators {
        match &operator.callee {
            Callee::Kernel(symbol, _) if !kernels.contains(&symbol) => kernels.push(symbol),
            _ => {}
        }
    }
    for symbol in kernels {
        let (called, types) = called(symbol, callees);
        line(text, format_args!("llvm.func @{called}({})", types.join(", ")));
    }
    let steps = callees.steps.iter().enumerate();
    let is_first = |(number, step): &(usize, &Entry)| {
        callees.steps[..*number].iter().all(|known| known.symbol != step.symbol)
    };
    for (_, step) in steps.filter(is_first) {
        line(
            text,
            format_args!("llvm.func @{}(!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32", step.symbol),
        );
    }
}

/// The function that runs a kernel, and the types of its parameters.
fn called(symbol: &str, callees: Callees<'_>) -> (String, Vec<&'static str>) {
    let kernel = callees.kernels.get(symbol);
    let ty = |is_size: bool| if is_size { "i64" } else { "!llvm.ptr" };
    let types = kernel.into_iter().flat_map(KernelInfo::is_size).map(ty);
    match kernel.is_some_and(|kernel| kernel.phases.is_some()) {
        true => (launcher(symbol), types.chain(["!llvm.ptr"]).collect()),
        false => (symbol.to_owned(), types.collect()),
    }
}

/// The expected arguments of a function: for each, its number of elements, then type and lanes as in
/// memory.
fn table(text: &mut String, number: usize, arguments: &[Argument]) {
    let values = arguments.iter().flat_map(|argument| {
        let dtype = argument.dtype;
        let word =
            i64::from(dtype.code as u8) | i64::from(dtype.bits) << 8 | i64::from(dtype.lanes) << 16;
        [argument.elements.to_string(), word.to_string()]
    });
    let values: Vec<String> = values.collect();
    line(
        text,
        format_args!(
            "llvm.mlir.global internal constant @irc_arguments_{number}(dense<[{}]> : \
             tensor<{count}xi64>) : !llvm.array<{count} x i64>",
            values.join(", "),
            count = values.len(),
        ),
    );
}

/// The body of a function, given the addresses of its arguments.
fn body(text: &mut String, number: usize, operator: &Operator, callees: Callees<'_>) {
    line(
        text,
        format_args!("llvm.func internal @irc_operator_{number}(%arguments: !llvm.ptr) -> i32 {{"),
    );
    line(text, format_args!("%zero = llvm.mlir.constant(0 : i32) : i32"));
    let memory = callees.memory(operator);
    let workspace = memory.workspace();
    if workspace == 0 {
        line(text, format_args!("%scratch = llvm.mlir.zero : !llvm.ptr"));
    } else {
        scratch(text, workspace);
    }
    if let Some(bytes) = memory.part {
        threads(text, bytes);
    }
    for argument in 0..operator.arguments.len() {
        load(text, argument);
    }
    for (number, buffer) in operator.buffers.iter().enumerate() {
        address(text, number, *buffer);
    }
    match &operator.callee {
        Callee::Kernel(symbol, sizes) => call_kernel(text, symbol, sizes, operator, callees),
        Callee::Step(step) => {
            call_step(text, callees.steps.get(*step).map_or("", |step| &step.symbol), operator);
        }
        Callee::Program { inputs, extents } => {
            call_program(text, number, (*inputs, extents), operator);
            return;
        }
        Callee::Gpu => {
            *text += "%one = llvm.mlir.constant(1 : i32) : i32\nllvm.return %one : i32\n}\n";
            return;
        }
        Callee::Copy(bytes) => copy(text, bytes),
    }
    if workspace != 0 {
        line(text, format_args!("llvm.call @irc_release(%block) : (!llvm.ptr) -> ()"));
    }
    match memory.part {
        Some(_) => {
            *text += "%failed = llvm.call @irc_failed(%threads) : (!llvm.ptr) -> i32
                      llvm.return %failed : i32\n";
        }
        None => line(text, format_args!("llvm.return %zero : i32")),
    }
    if workspace != 0 {
        *text += "^none:\n%minus = llvm.mlir.constant(-1 : i32) : i32\nllvm.return %minus : i32\n";
    }
    *text += "}\n";
}

/// The threads of the runtime, for a callee that needs some memory for each part of its work.
fn threads(text: &mut String, bytes: u64) {
    let bytes = with_alignment(bytes);
    *text += &format!(
        "%four = llvm.mlir.constant(4 : i64) : i64
         %pool = llvm.alloca %four x i64 : (i64) -> !llvm.ptr
         %part = llvm.mlir.constant({bytes} : i64) : i64
         %threads = llvm.call @irc_threads(%pool, %part) : (!llvm.ptr, i64) -> !llvm.ptr\n"
    );
}

/// Allocates and aligns scratch memory.
fn scratch(text: &mut String, bytes: u64) {
    *text += &format!(
        "%bytes = llvm.mlir.constant({bytes} : i64) : i64
         %null = llvm.mlir.zero : !llvm.ptr
         %block = llvm.call @irc_allocate(%bytes) : (i64) -> !llvm.ptr
         %none = llvm.icmp \"eq\" %block, %null : !llvm.ptr
         llvm.cond_br %none, ^none, ^given
         ^given:
         %scratch = llvm.call @irc_aligned(%block) : (!llvm.ptr) -> !llvm.ptr\n"
    );
}

fn call_kernel(
    text: &mut String,
    symbol: &str,
    sizes: &[i64],
    operator: &Operator,
    callees: Callees<'_>,
) {
    let kernel = callees.kernels.get(symbol);
    let (mut buffers, mut known) = (0, sizes.iter());
    let mut operands: Vec<String> = vec![];
    for is_size in kernel.into_iter().flat_map(KernelInfo::is_size) {
        if is_size {
            let size = known.next().copied().unwrap_or_default();
            let name = format!("%size_{}", operands.len());
            line(text, format_args!("{name} = llvm.mlir.constant({size} : i64) : i64"));
            operands.push(name);
        } else {
            let is_buffer = buffers < operator.buffers.len();
            operands.push(if is_buffer { format!("%buffer_{buffers}") } else { "%scratch".into() });
            buffers += 1;
        }
    }
    let (called, types) = called(symbol, callees);
    if operands.len() < types.len() {
        operands.push("%threads".to_owned());
    }
    let (operands, types) = (operands.join(", "), types.join(", "));
    line(text, format_args!("llvm.call @{called}({operands}) : ({types}) -> ()"));
}

fn call_step(text: &mut String, symbol: &str, operator: &Operator) {
    let count = operator.buffers.len();
    line(text, format_args!("%count = llvm.mlir.constant({count} : i32) : i32"));
    *text += "%buffers = llvm.alloca %count x !llvm.ptr : (i32) -> !llvm.ptr\n";
    for number in 0..count {
        element(text, &format!("%place_{number}"), "%buffers", number);
        line(
            text,
            format_args!("llvm.store %buffer_{number}, %place_{number} : !llvm.ptr, !llvm.ptr"),
        );
    }
    line(
        text,
        format_args!(
            "%status = llvm.call @{symbol}(%buffers, %scratch, %threads) : \
             (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32"
        ),
    );
}

/// Runs the program with so many inputs, at their extents, as a host without a runtime.
fn call_program(
    text: &mut String,
    number: usize,
    (inputs, extents): (usize, &[i64]),
    operator: &Operator,
) {
    let list: Vec<String> = extents.iter().map(i64::to_string).collect();
    let (list, results) = (list.join(", "), operator.buffers.len() - inputs);
    *text += &format!(
        "%words = llvm.mlir.constant({words} : i64) : i64
         %host = llvm.alloca %words x !llvm.ptr {{alignment = 64 : i64}} : (i64) -> !llvm.ptr
         %given = llvm.mlir.constant({given} : i64) : i64
         %inputs = llvm.alloca %given x !llvm.ptr : (i64) -> !llvm.ptr
         %null = llvm.mlir.zero : !llvm.ptr\n",
        words = HOST_WORDS + results,
        given = inputs.max(1),
    );
    let mut store = |value: &str, row: &str, index: usize| {
        let place = format!("{row}_{index}");
        element(text, &place, row, index);
        line(text, format_args!("llvm.store {value}, {place} : !llvm.ptr, !llvm.ptr"));
    };
    for index in 0..inputs {
        store(&format!("%buffer_{index}"), "%inputs", index);
    }
    for result in 0..results {
        store(&format!("%buffer_{}", inputs + result), "%host", HOST_WORDS + result);
    }
    // Programs of this convention call no functions of the host.
    store("%null", "%host", 4);
    store("%threads", "%host", 5);
    store("%null", "%host", 6);
    for (index, name) in ["allocate", "release", "output", "fail"].into_iter().enumerate() {
        line(text, format_args!("%{name} = llvm.mlir.addressof @irc_graph_{name} : !llvm.ptr"));
        element(text, &format!("%host_{index}"), "%host", index);
        line(text, format_args!("llvm.store %{name}, %host_{index} : !llvm.ptr, !llvm.ptr"));
    }
    *text += &format!(
        "%extents = llvm.mlir.addressof @irc_extents_{number} : !llvm.ptr
         %status = llvm.call @irc_run_sized(%host, %inputs, %extents) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> i32
         llvm.call @irc_graph_release_all(%host) : (!llvm.ptr) -> ()
         %lost = llvm.call @irc_failed(%threads) : (!llvm.ptr) -> i32
         %ended = llvm.or %status, %lost : i32
         llvm.return %ended : i32
         }}
         llvm.mlir.global internal constant @irc_extents_{number}(dense<[{list}]> : \
         tensor<{count}xi64>) : !llvm.array<{count} x i64>\n",
        count = extents.len(),
    );
}

/// Loads the address of an argument.
fn load(text: &mut String, argument: usize) {
    element(text, &format!("%slot_{argument}"), "%arguments", argument);
    line(
        text,
        format_args!("%argument_{argument} = llvm.load %slot_{argument} : !llvm.ptr -> !llvm.ptr"),
    );
}

/// The address of an element of an array of pointers.
fn element(text: &mut String, name: &str, row: &str, index: usize) {
    line(
        text,
        format_args!(
            "{name} = llvm.getelementptr {row}[{index}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr"
        ),
    );
}

/// The address of an operand or result of the callee.
fn address(text: &mut String, number: usize, Buffer { argument, offset }: Buffer) {
    line(text, format_args!("%offset_{number} = llvm.mlir.constant({offset} : i64) : i64"));
    line(
        text,
        format_args!(
            "%buffer_{number} = llvm.getelementptr %argument_{argument}[%offset_{number}] : \
             (!llvm.ptr, i64) -> !llvm.ptr, i8"
        ),
    );
}

fn copy(text: &mut String, bytes: &[i64]) {
    for (from, length) in bytes.iter().enumerate() {
        let to = bytes.len() + from;
        line(text, format_args!("%length_{from} = llvm.mlir.constant({length} : i64) : i64"));
        line(
            text,
            format_args!(
                "\"llvm.intr.memcpy\"(%buffer_{to}, %buffer_{from}, %length_{from}) <{{isVolatile = \
                 false}}> : (!llvm.ptr, !llvm.ptr, i64) -> ()"
            ),
        );
    }
}

/// The two functions that clients call.
fn entries(text: &mut String, number: usize, operator: &Operator) {
    let (name, count) = (&operator.name, operator.arguments.len());
    let message = match operator.callee {
        Callee::Program { .. } => ENDED,
        Callee::Gpu => FOR_GPU,
        _ => NO_MEMORY,
    };
    *text += &format!(
        "llvm.func @{name}(%values: !llvm.ptr, %codes: !llvm.ptr, %count: i32, %result: !llvm.ptr, \
           %code: !llvm.ptr, %resource: !llvm.ptr) -> i32 {{
         %expected = llvm.mlir.constant({count} : i32) : i32
         %buffers = llvm.alloca %expected x !llvm.ptr : (i32) -> !llvm.ptr
         %table = llvm.mlir.addressof @irc_arguments_{number} : !llvm.ptr
         %zero = llvm.mlir.constant(0 : i32) : i32
         %status = llvm.call @irc_packed(%values, %codes, %count, %expected, %table, %buffers) : \
           (!llvm.ptr, !llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
         %fine = llvm.icmp \"eq\" %status, %zero : i32
         llvm.cond_br %fine, ^run, ^end(%status : i32)
         ^run:
         %done = llvm.call @irc_operator_{number}(%buffers) : (!llvm.ptr) -> i32
         %full = llvm.icmp \"eq\" %done, %zero : i32
         llvm.cond_br %full, ^end(%done : i32), ^empty
         ^empty:
         %message = llvm.mlir.constant({message} : i32) : i32
         %minus = llvm.mlir.constant(-1 : i32) : i32
         %false = llvm.mlir.constant(false) : i1
         %failed = llvm.call @irc_fail(%message, %minus, %false) : (i32, i32, i1) -> i32
         llvm.br ^end(%failed : i32)
         ^end(%end: i32):
         llvm.return %end : i32
         }}
         llvm.func @__tvm_ffi_{name}(%self: !llvm.ptr, %values: !llvm.ptr, %count: i32, \
           %result: !llvm.ptr) -> i32 {{
         %expected = llvm.mlir.constant({count} : i32) : i32
         %buffers = llvm.alloca %expected x !llvm.ptr : (i32) -> !llvm.ptr
         %table = llvm.mlir.addressof @irc_arguments_{number} : !llvm.ptr
         %zero = llvm.mlir.constant(0 : i32) : i32
         %status = llvm.call @irc_any(%values, %count, %expected, %table, %buffers) : \
           (!llvm.ptr, i32, i32, !llvm.ptr, !llvm.ptr) -> i32
         %fine = llvm.icmp \"eq\" %status, %zero : i32
         llvm.cond_br %fine, ^run, ^end(%status : i32)
         ^run:
         %done = llvm.call @irc_operator_{number}(%buffers) : (!llvm.ptr) -> i32
         %full = llvm.icmp \"eq\" %done, %zero : i32
         llvm.cond_br %full, ^none, ^empty
         ^none:
         %nothing = llvm.mlir.constant(0 : i64) : i64
         llvm.store %nothing, %result : i64, !llvm.ptr
         %rest = llvm.getelementptr %result[8] : (!llvm.ptr) -> !llvm.ptr, i8
         llvm.store %nothing, %rest : i64, !llvm.ptr
         llvm.br ^end(%zero : i32)
         ^empty:
         %message = llvm.mlir.constant({message} : i32) : i32
         %minus = llvm.mlir.constant(-1 : i32) : i32
         %true = llvm.mlir.constant(true) : i1
         %failed = llvm.call @irc_fail(%message, %minus, %true) : (i32, i32, i1) -> i32
         llvm.br ^end(%failed : i32)
         ^end(%end: i32):
         llvm.return %end : i32
         }}\n"
    );
}

/// The table of functions: their number and names, and their addresses.
fn registry(text: &mut String, operators: &[Operator], count: Count) -> Result<(), String> {
    let number = operators.len();
    let mut names = match count {
        Count::Byte => u8::try_from(number).map(|count| format!("\\{count:02X}")).map_err(|_| {
            format!(
                "{number} functions: version 5 of the format counts 255 at most; write version 7"
            )
        })?,
        Count::Word => {
            let count = u16::try_from(number);
            let count = count.map_err(|_| format!("{number} functions: expected 65535 at most"))?;
            let [low, high] = count.to_le_bytes();
            format!("\\{low:02X}\\{high:02X}")
        }
    };
    for operator in operators {
        let _ = write!(names, "{}\\00", operator.name);
    }
    names += "\\00";
    line(text, format_args!("llvm.mlir.global internal constant @irc_names(\"{names}\")"));
    let table = format!("!llvm.array<{} x ptr>", number.max(1));
    line(text, format_args!("llvm.mlir.global internal constant @irc_functions() : {table} {{"));
    line(text, format_args!("%0 = llvm.mlir.zero : {table}"));
    for (index, operator) in operators.iter().enumerate() {
        let next = index + 1;
        line(text, format_args!("%f{index} = llvm.mlir.addressof @{} : !llvm.ptr", operator.name));
        line(
            text,
            format_args!("%{next} = llvm.insertvalue %f{index}, %{index}[{index}] : {table}"),
        );
    }
    line(text, format_args!("llvm.return %{number} : {table}"));
    *text += "}\n";
    *text += REGISTRY;
    Ok(())
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(text, "{line}");
}

/// Error messages of functions, by number, each of the same size. The zero is replaced by the number of the
/// argument, or of arguments.
const MESSAGES: [&str; 9] = [
    "expected 0 arguments",
    "argument 0: expected a tensor",
    "argument 0: expected memory of the host",
    "argument 0: expected another element type",
    "argument 0: expected dense rows",
    "argument 0: expected another number of elements",
    "expected memory for scratch",
    "out of memory, or a check of the model failed",
    "the code is for a GPU: it needs irc's runtime",
];

/// Number of the message that memory is exhausted.
const NO_MEMORY: usize = 6;

/// Number of the message that a program ended early.
const ENDED: usize = 7;

/// Number of the message that there is no code for the host.
const FOR_GPU: usize = 8;

/// Words of a host before the addresses of results: see `program.mlir`.
const HOST_WORDS: usize = 7;

/// Size of a message in bytes, with its terminating zero.
const MESSAGE: usize = 48;

fn messages(text: &mut String) {
    let padded = |message: &&str| format!("{message}{}", "\\00".repeat(MESSAGE - message.len()));
    let all: String = MESSAGES.iter().map(padded).collect();
    line(text, format_args!("llvm.mlir.global internal constant @irc_messages(\"{all}\")"));
}

/// The host of programs.
const PROGRAM: &str = include_str!("program.mlir");

/// Definitions that all functions share.
const COMMON: &str = include_str!("common.mlir");

/// The entry point for clients without a loader.
const REGISTRY: &str = include_str!("registry.mlir");
