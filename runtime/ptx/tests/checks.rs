//! Each check, with a program that violates it and, where it is not obvious, one that does not.

use crate::kernels::{mma, wgmma};
use crate::support::{SCHEDULES, compile, diagnosed, module, run, text_of, to_words};
use irc_ptx::{Argument, Launch, Memory, Report, Schedule};

const REGISTERS: &str = ".reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<9>;
    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;";

fn body(text: &str) -> String {
    format!("{REGISTERS}\n{text}\nret;")
}

fn threads(x: u32) -> Launch {
    Launch { block: [x, 1, 1], max_instructions: 10_000_000, ..Launch::default() }
}

/// Runs a body that must be clean under all schedules, on a buffer of zeros; gives the buffer.
fn clean(text: &str, launch: &Launch, bytes: usize) -> Vec<u32> {
    let program = compile(&module(".param .u64 p", &body(text)), "k");
    let mut first = None;
    for schedule in SCHEDULES {
        let mut memory = Memory::new();
        let buffer = memory.add("p", vec![0; bytes]);
        let launch =
            Launch { arguments: vec![Argument::Buffer(buffer)], schedule, ..launch.clone() };
        run(&program, &mut memory, &launch);
        let words = to_words(memory.bytes(buffer));
        assert_eq!(*first.get_or_insert(words.clone()), words, "{schedule:?}");
    }
    first.unwrap_or_default()
}

#[test]
fn accesses_out_of_bounds() {
    let text = diagnosed(&body("st.global.u32 [%rd3+4], %r1;"), &threads(32), 128, "ptx-bounds");
    assert!(text.contains("`p`, of 128 bytes, ends 0 bytes before"), "{text}");
    assert!(text.contains("thread (31, 0, 0) of CTA (0, 0, 0)"), "{text}");
    diagnosed(&body("ld.global.u32 %r2, [%rd1+-4];"), &threads(1), 128, "ptx-bounds");
    diagnosed(
        &body(".shared .b8 s[8]; mov.u32 %r2, s; st.shared.u32 [%r2+8], %r1;"),
        &threads(1),
        8,
        "ptx-bounds",
    );
    diagnosed(
        &body(".local .b8 s[8]; mov.u64 %rd5, s; st.local.u32 [%rd5+40], %r1;"),
        &threads(1),
        8,
        "ptx-bounds",
    );
    diagnosed(&body("st.u32 [64], %r1;"), &threads(1), 8, "ptx-bounds");
}

#[test]
fn misaligned_accesses() {
    diagnosed(&body("ld.global.u32 %r2, [%rd3+2];"), &threads(1), 128, "ptx-alignment");
    diagnosed(
        &body("ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd1+8];"),
        &threads(1),
        128,
        "ptx-alignment",
    );
}

#[test]
fn writes_to_constants() {
    let program = compile(&module(".param .u64 p", &body("st.global.u32 [%rd1], %r1;")), "k");
    let mut memory = Memory::new();
    let buffer = memory.add_constant("weights", vec![0; 8]);
    let report = Launch { arguments: vec![Argument::Buffer(buffer)], ..Launch::default() }
        .run(&program, &mut memory);
    assert_eq!(report.diagnostics[0].code, "ptx-constant");
    assert!(text_of(&program, &report).contains("`weights`"));
}

#[test]
fn shared_memory_that_is_not_written() {
    let read = ".shared .align 4 .b8 s[256]; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2;";
    let text = diagnosed(
        &body(&format!("{read} ld.shared.u32 %r4, [%r3];")),
        &threads(32),
        4,
        "ptx-uninitialised",
    );
    assert!(text.contains("4 bytes of `s` at 0x0 are read"), "{text}");
    clean(&format!("{read} st.shared.u32 [%r3], %r1; ld.shared.u32 %r4, [%r3];"), &threads(32), 4);
    // Half of a word.
    diagnosed(
        &body(
            &format!(
                "{read} cvt.u16.u32 %h1, %r1; st.shared.u16 [%r3], %h1; ld.shared.u32 %r4, [%r3];"
            )
            .replace("cvt.u16", ".reg .b16 %h<2>; cvt.u16"),
        ),
        &threads(32),
        4,
        "ptx-uninitialised",
    );
}

#[test]
fn buffers_that_start_unwritten() {
    let text = "mov.u32 %r2, 5; red.global.add.u32 [%rd3+128], %r2; st.global.u16 [%rd3], %h1; ld.global.u32 %r3, [%rd3];";
    let program = compile(
        &module(".param .u64 p", &body(&format!(".reg .b16 %h<2>; mov.u16 %h1, 1; {text}"))),
        "k",
    );
    let mut memory = Memory::new();
    let buffer = memory.add_unwritten("scratch", 256).expect("memory");
    let launch = Launch { arguments: vec![Argument::Buffer(buffer)], ..Launch::default() };
    let report = launch.run(&program, &mut memory);
    let codes: Vec<&str> = report.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, ["ptx-uninitialised"; 2]);
    assert!(text_of(&program, &report).contains("`scratch` at 0x80"));
    // What a launch wrote stays written.
    let program = compile(
        &module(
            ".param .u64 p",
            &body("ld.global.u16 %r3, [%rd3]; ld.global.u32 %r4, [%rd3+128];"),
        ),
        "k",
    );
    run(&program, &mut memory, &launch);
}

/// Each thread writes a word of shared memory and reads that of another warp.
const EXCHANGE: &str = ".shared .align 4 .b8 s[1024]; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2;
    xor.b32 %r4, %r3, 128; st.shared.u32 [%r3], %r1; BARRIER ld.shared.u32 %r5, [%r4]; st.global.u32 [%rd3], %r5;";

#[test]
fn a_missing_barrier_is_a_race() {
    let text = diagnosed(&body(&EXCHANGE.replace("BARRIER", "")), &threads(256), 1024, "ptx-race");
    assert!(text.contains("`s`"), "{text}");
    let words = clean(&EXCHANGE.replace("BARRIER", "bar.sync 0;"), &threads(256), 1024);
    assert!(words.iter().enumerate().all(|(index, word)| *word == index as u32 ^ 32));
}

#[test]
fn a_barrier_of_a_warp_orders_only_the_warp() {
    let within = EXCHANGE.replace("128", "4");
    diagnosed(&body(&within.replace("BARRIER", "")), &threads(64), 1024, "ptx-race");
    clean(&within.replace("BARRIER", "bar.warp.sync -1;"), &threads(64), 1024);
    diagnosed(
        &body(&EXCHANGE.replace("BARRIER", "bar.warp.sync -1;")),
        &threads(64),
        1024,
        "ptx-race",
    );
}

#[test]
fn races_in_global_memory() {
    diagnosed(&body("st.global.u32 [%rd1], %r1;"), &threads(64), 8, "ptx-race");
    diagnosed(
        &body("ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1], %r2;"),
        &threads(64),
        8,
        "ptx-race",
    );
    let launch = Launch { grid: [8, 1, 1], ..threads(64) };
    let words =
        clean("red.global.add.u32 [%rd1], 1; atom.global.max.u32 %r2, [%rd1+4], %r1;", &launch, 8);
    assert_eq!(words, [512, 63]);
    // Two threads write halves of the same word.
    let halves = ".reg .b16 %h<2>; cvt.u16.u32 %h1, %r1; mul.wide.u32 %rd5, %r1, 2; add.u64 %rd6, %rd1, %rd5; st.global.u16 [%rd6], %h1;";
    clean(halves, &threads(64), 128);
}

/// CTA 0 writes data and a flag; the others wait for the flag and add the data.
const FLAG: &str = "mov.u32 %r2, %ctaid.x; setp.ne.u32 %p1, %r2, 0; @%p1 bra READER;
    st.global.u32 [%rd1+8], 42; WRITE bra END;
    READER: READ setp.eq.u32 %p2, %r3, 0; @%p2 bra READER; AFTER ld.global.u32 %r4, [%rd1+8];
    red.global.add.u32 [%rd1+12], %r4; END:";

fn flag(write: &str, read: &str, after: &str) -> String {
    FLAG.replace("WRITE", write).replace("READ ", &format!("{read} ")).replace("AFTER", after)
}

#[test]
fn releases_and_acquires_order_accesses() {
    let launch = Launch { grid: [4, 1, 1], ..threads(1) };
    for (write, read, after) in [
        ("st.release.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];", ""),
        (
            "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1], 1;",
            "ld.relaxed.gpu.global.u32 %r3, [%rd1];",
            "fence.acq_rel.gpu;",
        ),
        (
            "membar.gl; st.volatile.global.u32 [%rd1], 1;",
            "ld.volatile.global.u32 %r3, [%rd1];",
            "membar.gl;",
        ),
        (
            "red.release.gpu.global.add.u32 [%rd1], 1;",
            "atom.acquire.gpu.global.or.b32 %r3, [%rd1], 0;",
            "",
        ),
    ] {
        let words = clean(&flag(write, read, after), &launch, 16);
        assert_eq!(words[3], 3 * 42);
    }
    for (write, read, after) in [
        // No release, no acquire, a scope that is too small, a read that is not atomic.
        ("st.relaxed.gpu.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];", ""),
        ("st.release.gpu.global.u32 [%rd1], 1;", "ld.relaxed.gpu.global.u32 %r3, [%rd1];", ""),
        ("st.release.cta.global.u32 [%rd1], 1;", "ld.acquire.gpu.global.u32 %r3, [%rd1];", ""),
        ("st.release.gpu.global.u32 [%rd1], 1;", "ld.global.u32 %r3, [%rd1];", ""),
    ] {
        diagnosed(&body(&flag(write, read, after)), &launch, 16, "ptx-race");
    }
}

#[test]
fn barriers_of_wrong_counts() {
    diagnosed(&body("bar.sync 0, 48;"), &threads(64), 4, "ptx-barrier");
    diagnosed(&body("bar.sync 16;"), &threads(64), 4, "ptx-barrier");
    let unequal =
        "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 64; bra B; A: bar.sync 1, 96; B:";
    diagnosed(&body(unequal), &threads(96), 4, "ptx-barrier|ptx-deadlock");
    let divergent = "setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;";
    diagnosed(&body(divergent), &threads(32), 4, "ptx-barrier");
}

#[test]
fn threads_that_exit_before_a_barrier() {
    let text = diagnosed(
        &body("setp.ge.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;"),
        &threads(64),
        4,
        "ptx-barrier",
    );
    assert!(text.contains("waits for 64 threads, of which 32 have exited"), "{text}");
}

#[test]
fn barriers_of_some_warps() {
    // Producers arrive, consumers wait: a pair of named barriers.
    let text = ".shared .align 4 .b8 s[256]; mov.u32 %r2, s; and.b32 %r3, %r1, 31; mad.lo.u32 %r4, %r3, 4, %r2;
        mul.wide.u32 %rd5, %r3, 4; add.u64 %rd6, %rd1, %rd5; setp.ge.u32 %p1, %r1, 32; mov.u32 %r5, 0; @%p1 bra CONSUME;
        PRODUCE: bar.sync 2, 64; st.shared.u32 [%r4], %r5; bar.arrive 1, 64; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 5;
        @%p2 bra PRODUCE; bra END;
        CONSUME: bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r6, [%r4]; add.u32 %r7, %r7, %r6; add.u32 %r5, %r5, 1;
        setp.lt.u32 %p2, %r5, 5; @%p2 bra CONSUME; st.global.u32 [%rd6], %r7; END:";
    let text = text.replace("mov.u32 %r5, 0;", "mov.u32 %r5, 0; mov.u32 %r7, 0;");
    assert_eq!(clean(&text, &threads(64), 128), [10; 32]);
    // Without the barrier that says that the buffer is free.
    diagnosed(
        &body(&text.replace("bar.sync 2, 64;", "").replace("bar.arrive 2, 64;", "")),
        &threads(64),
        128,
        "ptx-race|ptx-deadlock",
    );
}

#[test]
fn reductions_at_barriers() {
    let text =
        "setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r2, 0, %p1; bar.red.and.pred %p2, 0, %p1;
        bar.red.or.pred %p3, 0, !%p1; selp.u32 %r3, 1000, 0, %p2; selp.u32 %r4, 100, 0, %p3;
        add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%rd3], %r2;";
    assert_eq!(clean(text, &threads(96), 384), [140; 96]);
}

#[test]
fn deadlocks_name_what_threads_wait_for() {
    let text = diagnosed(
        &body("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; bra B; A: bar.sync 2; B:"),
        &threads(64),
        4,
        "ptx-deadlock",
    );
    assert!(
        text.contains("32 threads wait for barrier 1, where 32 of 64 threads have arrived"),
        "{text}"
    );
    assert!(text.contains("thread (32, 0, 0) of CTA (0, 0, 0)"), "{text}");
    // A flag that nobody sets.
    let text = diagnosed(
        &body("W: ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p1, %r2, 0; @%p1 bra W;"),
        &threads(64),
        4,
        "ptx-deadlock",
    );
    assert!(text.contains("repeat a loop that only a change of memory ends"), "{text}");
    // Halves of a warp at barriers that need all of it.
    diagnosed(
        &body("setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B:"),
        &threads(32),
        4,
        "ptx-deadlock",
    );
}

#[test]
fn a_lock_within_a_warp_is_no_deadlock() {
    // Each thread takes a lock in turn: those that wait must not stop the one that has it.
    let text = "TRY: atom.acquire.gpu.global.cas.b32 %r2, [%rd1], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra TRY;
        ld.global.u32 %r3, [%rd1+4]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd1+4], %r3;
        st.release.gpu.global.u32 [%rd1], 0;";
    let launch = Launch { grid: [2, 1, 1], ..threads(64) };
    assert_eq!(clean(text, &launch, 8), [0, 2 * (63 * 64 / 2)]);
}

#[test]
fn the_watchdog_says_where_threads_are() {
    let launch = Launch { max_instructions: 100_000, ..threads(64) };
    let text = diagnosed(
        &body("mov.u32 %r2, 0; W: add.u32 %r2, %r2, 1; bra W;"),
        &launch,
        4,
        "ptx-watchdog",
    );
    assert!(text.contains("64 threads run") || text.contains("threads run"), "{text}");
}

#[test]
fn traps_assertions_and_calls() {
    let text = diagnosed(&body("setp.eq.u32 %p1, %r1, 7; @%p1 trap;"), &threads(32), 4, "ptx-trap");
    assert!(text.contains("thread (7, 0, 0)"), "{text}");
    let assertion = ".version 8.0\n.target sm_80\n.address_size 64
        .extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
        .global .align 1 .b8 m[6] = {120, 32, 62, 32, 48, 0}; .global .align 1 .b8 f[4] = {97, 46, 99, 0};
        .visible .entry k(.param .u64 p) { .reg .b64 %rd<4>; mov.u64 %rd1, m; mov.u64 %rd2, f;
        { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], %rd1;
        st.param.b64 [b], %rd2; st.param.b32 [c], 17; st.param.b64 [d], %rd2; st.param.b64 [e], 1;
        call.uni __assertfail, (a, b, c, d, e); } ret; }";
    let program = compile(assertion, "k");
    let mut memory = Memory::new();
    let buffer = memory.add("p", vec![]);
    let report = Launch { arguments: vec![Argument::Buffer(buffer)], ..Launch::default() }
        .run(&program, &mut memory);
    assert_eq!(report.diagnostics[0].code, "ptx-assert");
    assert!(
        report.diagnostics[0].message.contains("`x > 0` failed in a.c:17: a.c"),
        "{}",
        report.diagnostics[0].message
    );
    diagnosed(
        &body(".reg .b64 %t; mov.u64 %t, 12345; T: .callprototype _ (); call %t, (), T;"),
        &threads(32),
        4,
        "ptx-call",
    );
    diagnosed(
        &body("mov.u32 %r2, 5; T: .branchtargets A, B; brx.idx %r2, T; A: B:"),
        &threads(32),
        4,
        "ptx-branch",
    );
}

#[test]
fn mbarriers() {
    let start = ".shared .align 8 .b8 b[16]; mov.u32 %r2, b;";
    diagnosed(
        &body(&format!("{start} mbarrier.arrive.shared.b64 %rd5, [%r2];")),
        &threads(1),
        4,
        "ptx-mbarrier",
    );
    diagnosed(
        &body(&format!("{start} mbarrier.init.shared.b64 [%r2], 0;")),
        &threads(1),
        4,
        "ptx-mbarrier",
    );
    let twice = format!(
        "{start} mbarrier.init.shared.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r2], 16; mbarrier.arrive.shared.b64 %rd5, [%r2];"
    );
    diagnosed(&body(&twice), &threads(1), 4, "ptx-mbarrier");
    // 64 threads write, arrive, wait, and read what another warp wrote.
    let exchange = ".shared .align 8 .b8 b[16]; .shared .align 256 .b8 s[256]; mov.u32 %r2, b; mov.u32 %r3, s;
        setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [%r2], 64; bar.sync 0; mad.lo.u32 %r4, %r1, 4, %r3;
        st.shared.u32 [%r4], %r1; mbarrier.arrive.shared.b64 %rd5, [%r2];
        W: mbarrier.try_wait.shared.b64 %p2, [%r2], %rd5; @!%p2 bra W;
        xor.b32 %r5, %r4, 128; ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd3], %r6;";
    let words = clean(exchange, &threads(64), 256);
    assert!(words.iter().enumerate().all(|(index, word)| *word == index as u32 ^ 32));
    clean(&exchange.replace("try_wait", "test_wait"), &threads(64), 256);
    diagnosed(
        &body(
            &exchange.replace("W: mbarrier.try_wait.shared.b64 %p2, [%r2], %rd5; @!%p2 bra W;", ""),
        ),
        &threads(64),
        256,
        "ptx-race",
    );
    // One arrival is missing.
    let text = diagnosed(
        &body(&exchange.replace("[%r2], 64;", "[%r2], 65;")),
        &threads(64),
        256,
        "ptx-deadlock",
    );
    assert!(text.contains("only a change of memory ends"), "{text}");
}

/// Some variant of a kernel must have a diagnostic of a code, under every schedule.
fn broken(
    runner: fn(&str, Schedule) -> (Report, String, bool),
    text: &str,
    from: &str,
    to: &str,
    codes: &[&str],
) {
    let changed = text.replacen(from, to, 1);
    assert_ne!(text, changed, "`{from}` is in the kernel");
    for schedule in SCHEDULES {
        let (report, text, _) = runner(&changed, schedule);
        let has = report.diagnostics.iter().any(|diagnostic| codes.contains(&diagnostic.code));
        assert!(has, "{schedule:?}, without `{from}`: {codes:?} are missing: {text}");
    }
}

#[test]
fn a_product_with_copies_that_are_not_waited_for() {
    let text = include_str!("data/matmul_mma.ptx");
    broken(mma, text, "cp.async.wait_group 1;", "", &["ptx-race", "ptx-uninitialised"]);
    broken(
        mma,
        text,
        "cp.async.wait_group 1;",
        "cp.async.wait_group 2;",
        &["ptx-race", "ptx-uninitialised"],
    );
    broken(mma, text, "bar.warp.sync -1;", "", &["ptx-race"]);
    // The copy of the next step overwrites what others still read.
    broken(mma, text, "bar.warp.sync -1;\n\tmov.u32 %r26", "mov.u32 %r26", &["ptx-race"]);
}

#[test]
fn a_product_with_mbarriers_that_are_misused() {
    let text = include_str!("data/matmul_wgmma.ptx");
    // Waiting for the wrong phase, for nothing, and expecting other bytes than those that come.
    broken(wgmma, text, "@done bra.uni DONE;", "bra.uni DONE;", &["ptx-race", "ptx-uninitialised"]);
    broken(wgmma, text, "@!%p7 bra EMPTY;", "", &["ptx-race", "ptx-mbarrier"]);
    broken(wgmma, text, "[%r37], 12288;", "[%r37], 12304;", &["ptx-deadlock"]);
    broken(wgmma, text, "mbarrier.arrive.shared::cta.b64 _, [%r14+16];", "", &["ptx-deadlock"]);
    broken(wgmma, text, "[%r4], 1;", "[%r4], 2;", &["ptx-deadlock"]);
    broken(wgmma, text, "bar.sync 0;", "", &["ptx-mbarrier", "ptx-race"]);
}

#[test]
fn a_product_whose_registers_are_in_flight() {
    let text = include_str!("data/matmul_wgmma.ptx");
    broken(wgmma, text, "wgmma.fence.sync.aligned;", "", &["ptx-wgmma"]);
    broken(
        wgmma,
        text,
        "wgmma.wait_group.sync.aligned 0;",
        "wgmma.wait_group.sync.aligned 1;",
        &["ptx-wgmma", "ptx-race"],
    );
    broken(
        wgmma,
        text,
        "wgmma.wait_group.sync.aligned 0;",
        "mov.f32 %f3, 0f00000000; wgmma.wait_group.sync.aligned 0;",
        &["ptx-wgmma"],
    );
    broken(
        wgmma,
        text,
        "wgmma.fence.sync.aligned;",
        "wgmma.fence.sync.aligned; add.f32 %f3, %f3, %f3;",
        &["ptx-wgmma"],
    );
}

#[test]
fn tensor_maps_and_copies_that_are_invalid() {
    let text = ".shared .align 128 .b8 s[128]; .shared .align 8 .b8 b[8]; mov.u32 %r2, s; mov.u32 %r3, b;
        mbarrier.init.shared.b64 [%r3], 1; cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r1}], [%r3];";
    diagnosed(&body(text), &threads(1), 128, "ptx-tensor-map");
    let bulk = ".shared .align 128 .b8 s[128]; .shared .align 8 .b8 b[8]; mov.u32 %r2, s; mov.u32 %r3, b;
        mbarrier.init.shared.b64 [%r3], 1; mbarrier.arrive.expect_tx.shared.b64 %rd5, [%r3], 64;
        cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 64, [%r3];
        WAIT cp.async.bulk.global.shared::cta.bulk_group [%rd1+64], [%r2], 64; cp.async.bulk.commit_group; DONE";
    let wait = "W: mbarrier.try_wait.parity.shared.b64 %p1, [%r3], 0; @!%p1 bra W;";
    let done = "cp.async.bulk.wait_group 0;";
    clean(&bulk.replace("WAIT", wait).replace("DONE", done), &threads(1), 128);
    let without = body(&bulk.replace("WAIT", wait).replace("DONE", ""));
    let program = compile(&module(".param .u64 p", &without), "k");
    let mut memory = Memory::new();
    let buffer = memory.add("p", vec![0; 128]);
    let report =
        Launch { block: [1, 1, 1], arguments: vec![Argument::Buffer(buffer)], ..Launch::default() }
            .run(&program, &mut memory);
    assert_eq!(report.diagnostics[0].code, "ptx-copy", "{}", text_of(&program, &report));
    diagnosed(
        &body(&bulk.replace("WAIT", "").replace("DONE", done)),
        &threads(1),
        128,
        "ptx-race|ptx-uninitialised",
    );
    diagnosed(
        &body(&bulk.replace("[%rd1], 64", "[%rd1], 60").replace("WAIT", "").replace("DONE", "")),
        &threads(1),
        128,
        "ptx-alignment",
    );
}

#[test]
fn invalid_launches() {
    let program = compile(&module(".param .u64 p", &body("")), "k");
    let mut memory = Memory::new();
    let buffer = memory.add("p", vec![0; 8]);
    let launch = Launch { arguments: vec![Argument::Buffer(buffer)], ..Launch::default() };
    for wrong in [
        Launch { block: [1025, 1, 1], ..launch.clone() },
        Launch { block: [0, 1, 1], ..launch.clone() },
        Launch { grid: [0, 1, 1], ..launch.clone() },
        Launch { grid: [u32::MAX; 3], ..launch.clone() },
        Launch { arguments: vec![], ..launch.clone() },
        Launch { arguments: vec![Argument::U32(1)], ..launch.clone() },
        Launch { shared_bytes: 1 << 20, ..launch.clone() },
    ] {
        let report = wrong.run(&program, &mut memory);
        assert!(!report.completed && report.diagnostics[0].code == "ptx-launch", "{wrong:?}");
    }
    assert!(launch.run(&program, &mut memory).is_clean());
}
