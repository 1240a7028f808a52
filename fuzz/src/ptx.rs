//! Any bytes: the PTX reader never panics and explains what it rejects; kernels that compile run, for some
//! instructions, without a panic.

use irc_diag::{Sink, Source, render};
use irc_ptx::{Argument, Launch, Memory, Module, Schedule};

/// Checks the properties of the module for these bytes.
pub fn check(bytes: &[u8]) {
    let source = Source::from_bytes("fuzz.ptx", bytes);
    let mut sink = Sink::new();
    let module = Module::parse(&source, &mut sink);
    assert_eq!(module.is_none(), sink.has_errors(), "rejected if and only if explained");
    for kernel in module.iter().flat_map(Module::kernels).take(4) {
        let before = sink.error_count();
        let program = module.as_ref().and_then(|module| module.compile(kernel, &mut sink));
        assert_eq!(
            program.is_none(),
            sink.error_count() > before,
            "rejected if and only if explained"
        );
        let Some(program) = program else { continue };
        let mut memory = Memory::new();
        let buffer = memory.add("buffer", vec![0; 4096]);
        let argument = |size: u64| match size {
            8 => Argument::Buffer(buffer),
            size => Argument::Bytes(vec![1; size as usize]),
        };
        let arguments =
            program.parameters().iter().map(|parameter| argument(parameter.size)).collect();
        let launch = Launch {
            grid: [2, 1, 1],
            block: [40, 1, 1],
            shared_bytes: 4096,
            arguments,
            schedule: Schedule::Adversarial(bytes.len() as u64),
            max_instructions: 10_000,
            ..Launch::default()
        };
        let report = launch.run(&program, &mut memory);
        assert!(report.completed || !report.diagnostics.is_empty(), "a failure is explained");
        render(&source, &report.diagnostics, false, 80);
    }
    render(&source, &sink.into_diagnostics(), false, 80);
}
