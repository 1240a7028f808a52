//! Measures how many instructions of threads the interpreter runs each second: `cargo run --release -p irc-ptx
//! --example interpreter_speed`.

use irc_diag::{Sink, Source, render};
use irc_ptx::{Argument, Checks, Launch, Memory, Module};
use std::time::Instant;

/// Kernels with a loop of some steps: arithmetic only, loads and stores of global memory, shared memory and barriers.
const KERNELS: [(&str, &str); 3] = [
    (
        "arithmetic",
        "LOOP: fma.rn.f32 %f1, %f1, %f2, %f3; add.s32 %r2, %r2, %r1; xor.b32 %r3, %r3, %r2; mul.lo.s32 %r4, %r3, %r2;
        add.f32 %f2, %f1, %f3; shl.b32 %r5, %r4, 3; add.s32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 2000; @%p1 bra LOOP;",
    ),
    (
        "global memory",
        "LOOP: ld.global.f32 %f1, [%rd3]; fma.rn.f32 %f1, %f1, %f2, %f3; add.s32 %r2, %r2, %r1; add.f32 %f2, %f1, %f3;
        st.global.f32 [%rd3], %f1; add.s32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 2000; @%p1 bra LOOP;",
    ),
    (
        "shared memory",
        "LOOP: st.shared.f32 [%r9], %f1; bar.sync 0; ld.shared.f32 %f2, [%r10]; add.f32 %f1, %f1, %f2; bar.sync 0;
        add.s32 %r2, %r2, %r1; add.s32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 500; @%p1 bra LOOP;",
    ),
];

fn main() {
    for (name, body) in KERNELS {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {{
            .shared .align 4 .b8 s[2048]; .reg .pred %p<2>; .reg .b32 %r<16>; .reg .b64 %rd<4>; .reg .f32 %f<4>;
            ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r7, %ctaid.x; mad.lo.u32 %r8, %r7, 256, %r1;
            mul.wide.u32 %rd2, %r8, 4; add.u64 %rd3, %rd1, %rd2; mov.u32 %r6, 0; mov.f32 %f1, 0f3F800000;
            mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; xor.b32 %r10, %r9, 4;
            {body} st.global.f32 [%rd3], %f1; ret; }}"
        );
        let source = Source::new("speed.ptx", &text);
        let mut sink = Sink::new();
        let program =
            Module::parse(&source, &mut sink).and_then(|module| module.compile("k", &mut sink));
        let Some(program) = program else {
            eprint!("{}", render(&source, &sink.into_diagnostics(), false, 100));
            return;
        };
        for checked in [false, true] {
            let mut memory = Memory::new();
            let buffer = memory.add("p", vec![0; 4 * 256 * 16]);
            let checks = Checks { races: checked, uninitialised: checked };
            let arguments = vec![Argument::Buffer(buffer)];
            let launch = Launch {
                grid: [16, 1, 1],
                block: [256, 1, 1],
                arguments,
                checks,
                ..Launch::default()
            };
            let start = Instant::now();
            let report = launch.run(&program, &mut memory);
            let seconds = start.elapsed().as_secs_f64();
            assert!(report.is_clean(), "{:?}", report.diagnostics);
            let millions = report.statistics.thread_instructions() as f64 / seconds / 1e6;
            let checks = if checked { "with checks" } else { "without checks" };
            println!("{name}, {checks}: {millions:.0} million instructions of threads per second");
        }
    }
}
