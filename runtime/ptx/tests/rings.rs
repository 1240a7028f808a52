//! The control of a ring of stages in shared memory, with a warp that fills stages and warps that use them, in all orders:
//! that of products by groups of warps, with stores in place of asynchronous copies.

use crate::support::{compile, module};
use irc_ptx::{Argument, Exploration, Launch, Memory};

/// Warps that use stages, beside the one that fills them.
const USERS: u32 = 2;

/// Stages of the ring, and blocks that go through it: more than two turns.
const STAGES: u32 = 2;
const BLOCKS: u32 = 5;

/// The kernel: each stage has a barrier that is full once it is filled, and one that is empty once all warps have used it. A
/// wait is for the phase of a turn; before the first turn, that of the one before counts as complete. Each warp adds up what
/// it finds.
fn ring() -> String {
    let (last, users) = (USERS * 32, USERS * 32 + 32);
    format!(
        "{{ .reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %rd<9>;
        .shared .align 8 .b8 full[{bytes}]; .shared .align 8 .b8 empty[{bytes}]; .shared .align 4 .b8 data[{bytes}];
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, full; mov.u32 %r3, empty; mov.u32 %r4, data;
        setp.ne.u32 %p1, %r1, 0; @%p1 bra READY;
        {init}
        READY: bar.sync 0;
        and.b32 %r5, %r1, 31; setp.ne.u32 %p2, %r5, 0;
        mov.u32 %r6, 0; mov.u32 %r7, 0;
        setp.lt.u32 %p3, %r1, {last}; @%p3 bra USE;
        @%p2 bra END;
        FILL:
        rem.u32 %r8, %r6, {STAGES}; div.u32 %r9, %r6, {STAGES}; and.b32 %r9, %r9, 1; xor.b32 %r10, %r9, 1;
        mad.lo.u32 %r11, %r8, 8, %r2; mad.lo.u32 %r12, %r8, 8, %r3; mad.lo.u32 %r13, %r8, 4, %r4;
        EMPTY: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r12], %r10; @!%p4 bra EMPTY;
        add.u32 %r14, %r6, 1; st.shared.u32 [%r13], %r14;
        mbarrier.arrive.shared::cta.b64 _, [%r11];
        add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, {BLOCKS}; @%p5 bra FILL;
        bra.uni END;
        USE:
        rem.u32 %r8, %r6, {STAGES}; div.u32 %r9, %r6, {STAGES}; and.b32 %r9, %r9, 1;
        mad.lo.u32 %r11, %r8, 8, %r2; mad.lo.u32 %r12, %r8, 8, %r3; mad.lo.u32 %r13, %r8, 4, %r4;
        FULL: mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r11], %r9; @!%p4 bra FULL;
        ld.shared.u32 %r14, [%r13]; mad.lo.u32 %r7, %r7, 10, %r14;
        bar.warp.sync 0xffffffff;
        @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r12];
        add.u32 %r6, %r6, 1; setp.lt.u32 %p5, %r6, {BLOCKS}; @%p5 bra USE;
        shr.u32 %r15, %r1, 5; mul.wide.u32 %rd2, %r15, 4; add.u64 %rd3, %rd1, %rd2;
        @!%p2 st.global.u32 [%rd3], %r7;
        END: bar.sync 0, {users}; }}",
        bytes = STAGES * 8,
        init = (0..STAGES)
            .map(|stage| {
                let at = stage * 8;
                format!(
                    "mbarrier.init.shared::cta.b64 [%r2+{at}], 1; mbarrier.init.shared::cta.b64 [%r3+{at}], {USERS};"
                )
            })
            .collect::<String>()
    )
}

/// Runs a body in every order of its warps.
fn explore(body: &str) -> (Exploration, Vec<u8>) {
    let program = compile(&module(".param .u64 p", &format!("{body}\nret;")), "k");
    let mut memory = Memory::new();
    let buffer = memory.add("p", vec![0; 4 * USERS as usize]);
    let launch = Launch {
        block: [32 * (USERS + 1), 1, 1],
        arguments: vec![Argument::Buffer(buffer)],
        max_instructions: 1_000_000,
        ..Launch::default()
    };
    let found = launch.explore(&program, &mut memory, &[], 300_000);
    (found, memory.bytes(buffer).to_vec())
}

/// The codes of what is found in some order.
fn codes(body: &str) -> Vec<&'static str> {
    explore(body).0.diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn a_ring_has_neither_deadlocks_nor_races_in_any_order() {
    let (found, bytes) = explore(&ring());
    let messages: Vec<_> = found.diagnostics.iter().map(|found| &found.message).collect();
    assert!(found.completed && found.diagnostics.is_empty(), "{messages:?}");
    assert_eq!(found.ends, 1, "results depend on the order");
    assert!(found.states > 50, "{found:?}");
    let sums =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("4 bytes")));
    // The digits are the blocks in their order.
    assert_eq!(sums.collect::<Vec<_>>(), vec![12_345; USERS as usize]);
}

#[test]
fn rings_that_wait_for_less_or_for_more_are_found() {
    let (ring, wait) = (ring(), "mbarrier.try_wait.parity.shared::cta.b64 %p4");
    let without = |label: &str, stage: &str, parity: &str| {
        let loop_of = format!("{label}: {wait}, [{stage}], {parity}; @!%p4 bra {label};");
        assert!(ring.contains(&loop_of));
        ring.replace(&loop_of, "")
    };
    // A stage is filled again before it is used, or used before it is filled.
    assert!(codes(&without("EMPTY", "%r12", "%r10")).contains(&"ptx-race"));
    assert!(codes(&without("FULL", "%r11", "%r9")).contains(&"ptx-race"));
    // Only the first warp says that it has used a stage.
    let one = ring.replace(&format!("%r3+0], {USERS}"), "%r3+0], 1");
    assert!(!codes(&one).is_empty());
    // The first turn waits for a phase that nobody ends.
    let first = ring.replace("xor.b32 %r10, %r9, 1;", "mov.u32 %r10, %r9;");
    assert!(codes(&first).contains(&"ptx-deadlock"));
    // Lanes still read a stage when their warp says that it has used it.
    assert!(codes(&ring.replace("bar.warp.sync 0xffffffff;", "")).contains(&"ptx-race"));
}
