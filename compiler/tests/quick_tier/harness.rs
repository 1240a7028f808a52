//! Compiles small functions with every code generator and calls what comes out.
use crate::support::levels::levels;
use half::{bf16, f16};
use irc::{
    Backend, Target,
    codegen::{Output, compile, link_library},
    pipeline::{HOST_CPU, Settings},
};
use std::fmt::Write;

/// A function under test: `%0`, `%1` and `%2` are operands of `types`, `%r` of type `result` is what
/// it gives.
pub struct Case {
    /// Said when it fails.
    pub name: String,
    /// Operand types with the values they take.
    pub operands: Vec<Operand>,
    /// The result's type.
    pub result: Type,
    /// What computes `%r`.
    pub body: String,
}

/// What the bits of the operands' lanes make of the result's lane.
pub type Meaning = fn(&[u128]) -> u128;

/// An operand: its type and the pool that its lanes are drawn from.
pub type Operand = (Type, Pool);

/// A scalar or vector type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// `i32`, `f16`, …
    pub element: &'static str,
    /// Lanes of a vector; zero for a scalar.
    pub lanes: usize,
}

/// A scalar type.
pub fn scalar(element: &'static str) -> Type {
    Type { element, lanes: 0 }
}

/// A vector type.
pub fn vector(lanes: usize, element: &'static str) -> Type {
    Type { element, lanes }
}

impl Type {
    /// As MLIR writes it.
    pub fn text(self) -> String {
        match self.lanes {
            0 => self.element.to_owned(),
            lanes => format!("vector<{lanes}x{}>", self.element),
        }
    }

    fn element_bytes(self) -> usize {
        bits(self.element).div_ceil(8)
    }

    fn bytes(self) -> usize {
        match (self.element, self.lanes) {
            ("i1", lanes) if lanes > 0 => lanes.div_ceil(8),
            (_, lanes) => self.element_bytes() * lanes.max(1),
        }
    }

    /// Whether it holds floats.
    pub fn is_float(self) -> bool {
        self.element.contains('f')
    }
}

/// Bits of an element type.
pub fn bits(element: &str) -> usize {
    element.trim_start_matches(|c: char| c.is_alphabetic()).parse().unwrap()
}

/// Which values an operand takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Edge values of the type.
    Any,
    /// Integers that a shift may be by.
    Amount,
    /// Integers that any number can be divided by.
    Divisor,
    /// Floats that an integer of so many bits can be made of; unsigned where the flag is set.
    Within(u32, bool),
}

impl Pool {
    /// The values, as bits.
    fn values(self, element: &str) -> Vec<u128> {
        let bits = bits(element) as u32;
        let mask = u128::MAX >> (128 - bits);
        match self {
            Pool::Any if element.contains('f') => floats()
                .into_iter()
                .map(|value| float_bits(element, value))
                .chain(oddities(element))
                .collect(),
            Pool::Any => {
                let top = 1_u128 << (bits - 1);
                [
                    0,
                    1,
                    2,
                    3,
                    7,
                    85,
                    100,
                    top - 1,
                    top,
                    top + 1,
                    mask,
                    mask - 1,
                    mask / 3,
                    0x1234_5678_9abc_def0,
                ]
                .map(|value| value & mask)
                .to_vec()
            }
            Pool::Amount => [0, 1, 3, u128::from(bits) / 2, u128::from(bits) - 1].to_vec(),
            Pool::Divisor => {
                [1, 2, 3, 7, 10, mask >> 1, (mask >> 1) + 1].map(|value| value & mask).to_vec()
            }
            Pool::Within(to, unsigned) => {
                let most = 2_f64.powi(to as i32 - i32::from(!unsigned));
                let inside = |value: &f64| {
                    // A value must stay inside when its own format rounds it.
                    let value = from_bits(element, float_bits(element, *value));
                    value.trunc() < most && value.trunc() >= if unsigned { 0.0 } else { -most }
                };
                let all = floats().into_iter().chain([
                    most - 1.0,
                    most / 2.0,
                    127.5,
                    -128.0,
                    254.9,
                    3e9,
                    9e18,
                ]);
                all.filter(inside).map(|value| float_bits(element, value)).collect()
            }
        }
    }
}

fn floats() -> Vec<f64> {
    vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.5,
        0.499_999_97,
        100.25,
        -7.75,
        1e-3,
        65504.0,
        65519.99,
        65520.0,
        6e-8,
        2.9e-8,
        -3e-8,
        1e-40,
        3.4e38,
        -1e30,
        16_777_217.0,
        1.000_488_281_25,
        1.001_464_843_75,
        1.000_488_281_250_1,
        1.003_906_25,
        1.003_906_250_1,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ]
}

/// Patterns that no conversion of a double gives: subnormal numbers, and NaNs with payloads.
fn oddities(element: &str) -> Vec<u128> {
    match element {
        "f16" => vec![0x0001, 0x03ff, 0x0400, 0x8001, 0x7bff, 0x7e01, 0xfe00],
        "bf16" => vec![0x0001, 0x007f, 0x0080, 0x8001, 0x7f7f, 0x7fc1, 0xffc0],
        "f32" => vec![
            0x0000_0001,
            0x007f_ffff,
            0x0080_0000,
            0x7f7f_ffff,
            0x7fc0_0001,
            0x3f80_8000,
            0x3f81_8000,
            0x3f80_8001,
        ],
        _ => vec![
            1,
            0x000f_ffff_ffff_ffff,
            0x7fef_ffff_ffff_ffff,
            0x3ff0_0000_1000_0000,
            0x3ff0_0000_3000_0000,
        ],
    }
}

/// The bits of a float in a format; for `bf16`, of one that `f32` holds.
pub fn float_bits(element: &str, value: f64) -> u128 {
    match element {
        "f16" => f16::from_f64(value).to_bits().into(),
        "bf16" => bf16::from_f32(value as f32).to_bits().into(),
        "f32" => (value as f32).to_bits().into(),
        _ => value.to_bits().into(),
    }
}

/// The float of some bits in a format.
pub fn from_bits(element: &str, bits: u128) -> f64 {
    match element {
        "f16" => f16::from_bits(bits as u16).to_f64(),
        "bf16" => bf16::from_bits(bits as u16).to_f64(),
        "f32" => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

/// Runs cases through every code generator; every difference is reported.
pub fn agree(cases: &[Case]) {
    agree_beside("", cases);
}

/// As [`agree`], with functions and globals that the cases use.
pub fn agree_beside(others: &str, cases: &[Case]) {
    let text = others.to_owned() + &functions(cases);
    let llvm = Functions::compile(&text, Backend::LLVM);
    let others: Vec<_> = rivals()
        .into_iter()
        .map(|target| (Functions::compile_for(&text, &target), target))
        .collect();
    let mut differences = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let mut all = inputs(case).into_iter();
        let different = all.find_map(|operands| {
            let expected = llvm.call(index, case, &operands);
            others.iter().find_map(|(library, target)| {
                let found = library.call(index, case, &operands);
                let why = difference(case, &[expected.clone(), found])?;
                let who = format!("{:?} for {}", target.backend, target.cpu);
                Some(format!("{who}: {}({}): {why}", case.name, shown(case, &operands)))
            })
        });
        differences.extend(different);
    }
    assert!(differences.is_empty(), "llvm first, then the other:\n{}", differences.join("\n"));
}

/// Runs cases through all but LLVM: the result of each lane must be what a function of the bits of
/// the operands' lanes says.
pub fn expect(cases: &[(Case, Meaning)]) {
    let text: String =
        cases.iter().enumerate().map(|(index, (case, _))| function(index, case)).collect();
    for backend in OTHERS {
        expect_of(&Functions::compile(&text, backend), cases);
    }
}

fn expect_of(library: &Functions, cases: &[(Case, Meaning)]) {
    for (index, (case, meaning)) in cases.iter().enumerate() {
        for operands in inputs(case) {
            let size = case.result.element_bytes();
            let lane = |bytes: &[u8], (ty, _): &Operand, lane: usize| {
                let size = ty.element_bytes();
                number(&bytes[lane * size..(lane + 1) * size])
            };
            let expected = (0..case.result.lanes.max(1)).flat_map(|at| {
                let bits: Vec<u128> =
                    operands.iter().zip(&case.operands).map(|(b, ty)| lane(b, ty, at)).collect();
                meaning(&bits).to_le_bytes()[..size].to_vec()
            });
            let results = [expected.collect(), library.call(index, case, &operands)];
            if let Some(why) = difference(case, &results) {
                panic!("expected first: {}({}): {why}", case.name, shown(case, &operands));
            }
        }
    }
}

fn functions(cases: &[Case]) -> String {
    cases.iter().enumerate().map(|(index, case)| function(index, case)).collect()
}

fn number(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

fn function(index: usize, case: &Case) -> String {
    let mut text = format!(
        "llvm.func @irc_task_{index}(%a0: !llvm.ptr, %a1: !llvm.ptr, %a2: !llvm.ptr, %o: !llvm.ptr) {{\n"
    );
    for (operand, (ty, _)) in case.operands.iter().enumerate() {
        let ty = ty.text();
        writeln!(
            text,
            "  %{operand} = llvm.load %a{operand} {{alignment = 1 : i64}} : !llvm.ptr -> {ty}"
        )
        .unwrap();
    }
    let result = case.result.text();
    writeln!(
        text,
        "{}\n  llvm.store %r, %o {{alignment = 1 : i64}} : {result}, !llvm.ptr\n  llvm.return\n}}",
        case.body
    )
    .unwrap();
    text
}

/// All combinations of the pools of scalars; of vectors, rotations of them against each other.
fn inputs(case: &Case) -> Vec<Vec<Vec<u8>>> {
    let pools: Vec<Vec<u128>> =
        case.operands.iter().map(|(ty, pool)| pool.values(ty.element)).collect();
    let combinations: usize = pools.iter().map(Vec::len).product::<usize>().min(4000);
    // A vector holds many values at once, so that fewer calls see as much.
    let rounds = if case.operands.iter().any(|(ty, _)| ty.lanes > 0) { 40 } else { combinations };
    (0..rounds)
        .map(|round| {
            let mut rest = round;
            let operand = |(at, (ty, _)): (usize, &Operand)| {
                let pool = &pools[at];
                let first = rest % pool.len();
                rest /= pool.len();
                lanes(*ty, pool, first, round * at)
            };
            case.operands.iter().enumerate().map(operand).collect()
        })
        .collect()
}

fn lanes(ty: Type, pool: &[u128], first: usize, skew: usize) -> Vec<u8> {
    let value = |lane: usize| pool[(first + lane * (1 + skew % 5) + skew) % pool.len()];
    match (ty.element, ty.lanes) {
        (_, 0) => pool[first].to_le_bytes()[..ty.bytes()].to_vec(),
        ("i1", lanes) => {
            let bits = (0..lanes).fold(0_u128, |bits, lane| bits | (value(lane) & 1) << lane);
            bits.to_le_bytes()[..ty.bytes()].to_vec()
        }
        (_, lanes) => (0..lanes)
            .flat_map(|lane| value(lane).to_le_bytes()[..ty.element_bytes()].to_vec())
            .collect(),
    }
}

/// How two results differ; NaNs are one, whatever their bits.
fn difference(case: &Case, results: &[Vec<u8>; 2]) -> Option<String> {
    let [expected, found] = results;
    if expected == found {
        return None;
    }
    let size = case.result.element_bytes();
    let mut pairs = expected.chunks(size).zip(found.chunks(size)).enumerate();
    pairs.find_map(|(lane, (expected, found))| {
        let (expected, found) = (number(expected), number(found));
        if case.result.is_float() {
            let (a, b) =
                (from_bits(case.result.element, expected), from_bits(case.result.element, found));
            let same = expected == found || (a.is_nan() && b.is_nan());
            return (!same)
                .then(|| format!("lane {lane}: {a:e} ({expected:#x}), {b:e} ({found:#x})"));
        }
        (expected != found).then(|| format!("lane {lane}: {expected:#x}, {found:#x}"))
    })
}

fn shown(case: &Case, operands: &[Vec<u8>]) -> String {
    let operand = |((ty, _), bytes): (&Operand, &Vec<u8>)| {
        let lanes = bytes.chunks(ty.element_bytes()).map(|lane| {
            let bits = number(lane);
            if ty.is_float() {
                format!("{:e}", from_bits(ty.element, bits))
            } else {
                format!("{bits:#x}")
            }
        });
        format!("[{}]", lanes.collect::<Vec<_>>().join(" "))
    };
    case.operands.iter().zip(operands).map(operand).collect::<Vec<_>>().join(", ")
}

/// A loaded library of functions named `irc_task_<n>`.
pub struct Functions(libloading::Library, #[allow(dead_code)] tempfile::TempDir);

impl Functions {
    /// Compiles a module in the `llvm` dialect.
    pub fn compile(text: &str, backend: Backend) -> Self {
        Self::compile_for(text, &Target::host().with_backend(backend))
    }

    /// Compiles a module in the `llvm` dialect for a processor.
    pub fn compile_for(text: &str, target: &Target) -> Self {
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, text).expect("the module parses");
        let backend = target.backend;
        let code = compile(&module, target, backend.outputs[0])
            .unwrap_or_else(|error| panic!("{backend:?} for {}: {error}", target.cpu));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.so");
        if backend == Backend::C {
            super::cc::library(&code, &path, &["-O1"]);
        } else {
            let library = link_library([("test".to_owned(), code.as_slice())]).unwrap().bytes;
            std::fs::write(&path, library).unwrap();
        }
        Self::load(folder)
    }

    /// Compiles C source, with flags of the C compiler.
    pub fn of_c(source: &str, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        super::cc::library(source.as_bytes(), &folder.path().join("test.so"), flags);
        Self::load(folder)
    }

    fn load(folder: tempfile::TempDir) -> Self {
        let path = folder.path().join("test.so");
        // Safety: what was compiled has no initialisers.
        Functions(unsafe { libloading::Library::new(path) }.unwrap(), folder)
    }

    /// Calls a function of four pointers.
    pub fn raw(&self, name: &str, arguments: [*mut u8; 4]) {
        let [a, b, c, d] = arguments;
        // Safety: the function takes four pointers, and the caller gives what it reads and writes.
        unsafe {
            type Entry = unsafe extern "C" fn(*mut u8, *mut u8, *mut u8, *mut u8);
            let entry = self.0.get::<Entry>(name.as_bytes()).unwrap();
            entry(a, b, c, d);
        }
    }

    fn call(&self, index: usize, case: &Case, operands: &[Vec<u8>]) -> Vec<u8> {
        // A margin shows what is read or written beyond the ends.
        let mut buffers: Vec<Vec<u8>> = operands.to_vec();
        buffers.resize(3, Vec::new());
        let size = case.result.bytes();
        let mut out = vec![0xa5; size + 16];
        let [a, b, c] = [0, 1, 2].map(|at| buffers[at].as_mut_ptr());
        self.raw(&format!("irc_task_{index}"), [a, b, c, out.as_mut_ptr()]);
        assert!(
            out[size..].iter().all(|byte| *byte == 0xa5),
            "{} wrote beyond its result",
            case.name
        );
        out.truncate(size);
        out
    }
}

/// The code generators that are compared with LLVM.
pub const OTHERS: [Backend; 2] = [Backend::QUICK, Backend::C];

/// What is compared with LLVM's code for this machine: LLVM's for every level below, and code of the others.
fn rivals() -> Vec<Target> {
    let others = OTHERS.map(|backend| Target::host().with_backend(backend));
    levels().into_iter().filter(|target| *target != Target::host()).chain(others).collect()
}

/// A module in the `llvm` dialect through LLVM and through the others.
pub fn every(text: &str) -> [Functions; 3] {
    [Backend::LLVM, Backend::QUICK, Backend::C].map(|backend| Functions::compile(text, backend))
}

/// A module in the `llvm` dialect as C source.
pub fn c_source(text: &str) -> String {
    let context = irc_dialects::new_context();
    let module = irc_mlir::parse_module(&context, text).expect("the module parses");
    String::from_utf8(compile(&module, &Target::portable(), Output::C).unwrap()).unwrap()
}

/// A module of upstream's dialects in the `llvm` dialect, as the pipeline's last stage makes it.
pub fn lowered(text: &str) -> String {
    irc::passes::register_all();
    let context = irc_dialects::new_context();
    let mut module = irc_mlir::parse_module(&context, text).expect("the module parses");
    let passes = HOST_CPU.text(&Settings::default(), Some("memory"), Some("llvm")).unwrap();
    irc_mlir::run_pipeline(&context, &mut module, &passes).expect("the module lowers");
    irc_mlir::to_text(&module.as_operation(), false)
}
