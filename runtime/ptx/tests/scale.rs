//! Large modules and many threads take time in proportion.

use crate::support::{compile, module, run, to_words};
use irc_ptx::{Argument, Launch, Memory, Schedule};
use std::fmt::Write;
use std::time::Instant;

/// A kernel of many lines: a chain of additions, with labels and registers.
fn long_kernel(lines: usize) -> String {
    let mut body = format!(".reg .b32 %r<{}>; .reg .b64 %rd<4>; mov.u32 %r0, %tid.x;\n", lines + 2);
    for line in 0..lines {
        if line % 10 == 9 {
            let _ = writeln!(body, "L{line}:");
        }
        let _ = writeln!(body, "add.s32 %r{}, %r{line}, {line};", line + 1);
    }
    let _ = write!(
        body,
        "ld.param.u64 %rd1, [p]; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r{lines}; ret;"
    );
    module(".param .u64 p", &body)
}

/// The shortest of some times, in seconds: others may use the processor.
fn shortest(mut run: impl FnMut()) -> f64 {
    let times = (0..4).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

#[test]
fn a_hundred_thousand_lines() {
    let time = |lines: usize| {
        let text = long_kernel(lines);
        let program = compile(&text, "k");
        let mut memory = Memory::new();
        let buffer = memory.add("p", vec![0; 128]);
        run(
            &program,
            &mut memory,
            &Launch { arguments: vec![Argument::Buffer(buffer)], ..Launch::default() },
        );
        let sum = (0..lines as u32).fold(0, u32::wrapping_add);
        assert_eq!(to_words(memory.bytes(buffer))[5], sum + 5);
        shortest(|| drop(compile(&text, "k")))
    };
    // In proportion, 20 times as long; were it the square, 400 times.
    let (short, long) = (time(5_000), time(100_000));
    assert!(long < 120.0 * short, "{short} s for 5,000 lines, {long} s for 100,000");
}

#[test]
fn many_threads() {
    let body = ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<2>; .shared .align 4 .b8 s[1024]; ld.param.u64 %rd1, [p];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1; mul.wide.u32 %rd2, %r3, 4;
        add.u64 %rd3, %rd1, %rd2; mov.u32 %r4, s; mad.lo.u32 %r5, %r1, 4, %r4; xor.b32 %r6, %r5, 64; mov.u32 %r7, 0;
        L: st.shared.u32 [%r5], %r3; bar.sync 0; ld.shared.u32 %r8, [%r6]; bar.sync 0; add.u32 %r7, %r7, 1;
        setp.lt.u32 %p1, %r7, 8; @%p1 bra L; st.global.u32 [%rd3], %r8; ret;";
    let program = compile(&module(".param .u64 p", body), "k");
    let time = |ctas: u32| {
        shortest(|| {
            let mut memory = Memory::new();
            let buffer = memory.add("p", vec![0; ctas as usize * 1024]);
            let arguments = vec![Argument::Buffer(buffer)];
            let launch =
                Launch { grid: [ctas, 1, 1], block: [256, 1, 1], arguments, ..Launch::default() };
            run(&program, &mut memory, &launch);
            let words = to_words(memory.bytes(buffer));
            assert!(words.iter().enumerate().all(|(index, word)| *word == index as u32 ^ 16));
        })
    };
    // In proportion, 40 times as long; were it the square, 1600 times.
    let (few, many) = (time(4), time(160));
    assert!(many < 400.0 * few, "{few} s for 1,024 threads, {many} s for 40,960");
}

#[test]
fn a_barrier_of_the_grid() {
    // Each CTA arrives at a counter, waits for all, and reads what another CTA wrote.
    let body = ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
        mov.u32 %r2, %ctaid.x; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r2, 256, %r1; mul.wide.u32 %rd2, %r4, 4;
        add.u64 %rd3, %rd1, %rd2; st.global.u32 [%rd3+16], %r4; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        red.release.gpu.global.add.u32 [%rd1], 1;
        W: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.lt.u32 %p2, %r5, %r3; @%p2 bra W;
        READY: bar.sync 0; xor.b32 %r6, %r4, 256; mul.wide.u32 %rd4, %r6, 4; add.u64 %rd5, %rd1, %rd4;
        ld.global.u32 %r7, [%rd5+16]; mul.wide.u32 %rd6, %r3, 1024; add.u64 %rd7, %rd3, %rd6; st.global.u32 [%rd7+16], %r7; ret;";
    let program = compile(&module(".param .u64 p", body), "k");
    let ctas = 64;
    for schedule in [Schedule::RoundRobin, Schedule::Random(1), Schedule::Adversarial(1)] {
        let mut memory = Memory::new();
        let buffer = memory.add("p", vec![0; ctas as usize * 2048 + 16]);
        let arguments = vec![Argument::Buffer(buffer)];
        let launch = Launch {
            grid: [ctas, 1, 1],
            block: [256, 1, 1],
            arguments,
            schedule,
            ..Launch::default()
        };
        run(&program, &mut memory, &launch);
        let words = to_words(memory.bytes(buffer));
        let results = &words[4 + ctas as usize * 256..];
        assert!(results.iter().enumerate().all(|(index, word)| *word == index as u32 ^ 256));
    }
}

#[test]
fn threads_that_poll_sleep_until_their_word_is_written() {
    // A thread of each CTA waits for a word of its own, or several for one each: the CTA before writes them after a loop of stores.
    let body = ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
        mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r2, 128; add.u64 %rd3, %rd1, %rd2; mul.wide.u32 %rd4, %r1, 4;
        add.u64 %rd3, %rd3, %rd4; setp.eq.u32 %p1, %r2, 0; @%p1 bra READY;
        W: ld.acquire.gpu.global.u32 %r5, [%rd3]; setp.eq.u32 %p2, %r5, 0; @%p2 bra W;
        READY: mov.u32 %r6, 1;
        L: st.relaxed.gpu.global.u32 [%rd3+128], %r6; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, 300; @%p2 bra L; ret;";
    let program = compile(&module(".param .u64 p", body), "k");
    for schedule in [Schedule::RoundRobin, Schedule::Random(1), Schedule::Adversarial(1)] {
        let instructions = |ctas: u32| {
            let mut memory = Memory::new();
            let buffer = memory.add("p", vec![0; (ctas as usize + 1) * 128]);
            let arguments = vec![Argument::Buffer(buffer)];
            let launch = Launch {
                grid: [ctas, 1, 1],
                block: [32, 1, 1],
                arguments,
                schedule,
                ..Launch::default()
            };
            let report = run(&program, &mut memory, &launch);
            let words = to_words(memory.bytes(buffer));
            assert!(words[32..].iter().all(|word| *word == 299));
            report.statistics.thread_instructions()
        };
        // In proportion, 16 times as many; were all woken by each write, 256 times.
        let (few, many) = (instructions(16), instructions(256));
        assert!(many < 32 * few, "{few} instructions of 16 CTAs, {many} of 256");
    }
}
