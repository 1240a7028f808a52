//! Kernels from text, and launches of them.

use irc_diag::{Sink, Source, render};
use irc_ptx::{Argument, Launch, Memory, Module, Program, Report, Schedule};

/// The schedules that tests try.
pub const SCHEDULES: [Schedule; 7] = [
    Schedule::RoundRobin,
    Schedule::Random(1),
    Schedule::Random(2),
    Schedule::Random(3),
    Schedule::Adversarial(1),
    Schedule::Adversarial(2),
    Schedule::Adversarial(3),
];

/// A module of a kernel `k` with parameters and a body.
pub fn module(params: &str, body: &str) -> String {
    format!(
        ".version 8.5\n.target sm_90a\n.address_size 64\n.visible .entry k({params}) {{\n{body}\n}}\n"
    )
}

/// Compiles a kernel.
pub fn compile(text: &str, kernel: &str) -> Program {
    match try_compile(text, kernel) {
        Ok(program) => program,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

/// Compiles a kernel, or gives its diagnostics as text.
pub fn try_compile(text: &str, kernel: &str) -> Result<Program, String> {
    let source = Source::new("test.ptx", text);
    let mut sink = Sink::new();
    let program =
        Module::parse(&source, &mut sink).and_then(|module| module.compile(kernel, &mut sink));
    assert_eq!(program.is_none(), sink.has_errors(), "rejected if and only if explained");
    program.ok_or_else(|| render(&source, &sink.into_diagnostics(), false, 100))
}

/// The diagnostics of a report as text.
pub fn text_of(program: &Program, report: &Report) -> String {
    render(program.source(), &report.diagnostics, false, 100)
}

/// Runs a kernel that must be clean.
pub fn run(program: &Program, memory: &mut Memory, launch: &Launch) -> Report {
    let report = launch.run(program, memory);
    assert!(report.is_clean(), "{}", text_of(program, &report));
    report
}

/// The diagnostics of a kernel `k` of one parameter, a buffer of zeros of some bytes, under all schedules: each
/// must have the code, or one of those given with `|` in between.
pub fn diagnosed(body: &str, launch: &Launch, bytes: usize, code: &str) -> String {
    let codes: Vec<&str> = code.split('|').collect();
    let program = compile(&module(".param .u64 p", body), "k");
    let mut text = String::new();
    for schedule in SCHEDULES {
        let mut memory = Memory::new();
        let buffer = memory.add("p", vec![0; bytes]);
        let launch =
            Launch { arguments: vec![Argument::Buffer(buffer)], schedule, ..launch.clone() };
        let report = launch.run(&program, &mut memory);
        text = text_of(&program, &report);
        let has = report.diagnostics.iter().any(|diagnostic| codes.contains(&diagnostic.code));
        assert!(has, "{schedule:?}: `{code}` is missing: {text}");
    }
    text
}

/// Words of 32 bits as bytes.
pub fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Floats as bytes.
pub fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Bytes as words of 32 bits.
pub fn to_words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

/// Bytes as floats.
pub fn to_floats(bytes: &[u8]) -> Vec<f32> {
    to_words(bytes).into_iter().map(f32::from_bits).collect()
}

/// The upper halves of floats whose lower halves are zero: bfloat16, exactly.
pub fn bf16(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(|value| ((value.to_bits() >> 16) as u16).to_le_bytes()).collect()
}

/// Random numbers of a seed: Knuth's MMIX generator.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = self.0 ^ self.0 >> 29;
        bits.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ bits >> 32
    }

    /// A small integer as a float, which halves hold and sums of products preserve.
    pub fn small(&mut self) -> f32 {
        (self.next() % 17) as f32 - 8.0
    }
}
