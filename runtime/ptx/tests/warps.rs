//! Operations of the threads of a warp together, divergence, and matrices on tensor cores.

use crate::support::{
    Random, SCHEDULES, compile, diagnosed, module, run, to_floats, to_words, words,
};
use irc_ptx::{Argument, Launch, Memory};

/// Runs a body for a warp under all schedules: thread i has i in `%r1` and stores `%r0`.
fn warp(text: &str) -> Vec<u32> {
    let body = format!(
        ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2; {text} st.global.u32 [%rd3], %r0; ret;"
    );
    let program = compile(&module(".param .u64 p", &body), "k");
    let mut first = None;
    for schedule in SCHEDULES {
        let mut memory = Memory::new();
        let buffer = memory.add("p", vec![0; 128]);
        let arguments = vec![Argument::Buffer(buffer)];
        run(&program, &mut memory, &Launch { arguments, schedule, ..Launch::default() });
        let words = to_words(memory.bytes(buffer));
        assert_eq!(*first.get_or_insert(words.clone()), words, "{schedule:?}");
    }
    first.unwrap_or_default()
}

fn each(of: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(of).collect()
}

#[test]
fn shuffles() {
    assert_eq!(
        warp("shfl.sync.down.b32 %r0, %r1, 3, 31, -1;"),
        each(|i| if i + 3 < 32 { i + 3 } else { i })
    );
    assert_eq!(
        warp("shfl.sync.up.b32 %r0, %r1, 3, 0, -1;"),
        each(|i| if i >= 3 { i - 3 } else { i })
    );
    assert_eq!(warp("shfl.sync.bfly.b32 %r0, %r1, 5, 31, -1;"), each(|i| i ^ 5));
    assert_eq!(
        warp("mul.lo.u32 %r2, %r1, 7; shfl.sync.idx.b32 %r0, %r1, %r2, 31, -1;"),
        each(|i| i * 7 % 32)
    );
    // Segments of 8 threads.
    assert_eq!(warp("shfl.sync.idx.b32 %r0, %r1, 2, 0x181f, -1;"), each(|i| i / 8 * 8 + 2));
    assert_eq!(
        warp("shfl.sync.down.b32 %r2|%p1, %r1, 6, 0x181f, -1; selp.u32 %r0, 1, 0, %p1;"),
        each(|i| u32::from(i % 8 + 6 < 8))
    );
    // Halves of a warp that have diverged.
    let halves = "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; shfl.sync.bfly.b32 %r0, %r1, 1, 31, 0xffff0000; bra B;
        A: shfl.sync.bfly.b32 %r0, %r1, 2, 31, 0xffff; B:";
    assert_eq!(warp(halves), each(|i| if i < 16 { i ^ 2 } else { i ^ 1 }));
}

#[test]
fn votes_matches_and_reductions() {
    assert_eq!(
        warp("setp.gt.u32 %p1, %r1, 29; vote.sync.ballot.b32 %r0, %p1, -1;"),
        [0xc000_0000; 32]
    );
    assert_eq!(
        warp("setp.gt.u32 %p1, %r1, 29; vote.sync.any.pred %p2, %p1, -1; selp.u32 %r0, 1, 0, %p2;"),
        [1; 32]
    );
    assert_eq!(
        warp("setp.gt.u32 %p1, %r1, 29; vote.sync.all.pred %p2, %p1, -1; selp.u32 %r0, 1, 0, %p2;"),
        [0; 32]
    );
    assert_eq!(warp("redux.sync.add.s32 %r0, %r1, -1;"), [496; 32]);
    assert_eq!(
        warp("sub.u32 %r2, 0, %r1; redux.sync.min.s32 %r0, %r2, -1;"),
        [31_u32.wrapping_neg(); 32]
    );
    assert_eq!(warp("redux.sync.xor.b32 %r0, %r1, -1;"), [0; 32]);
    assert_eq!(
        warp("and.b32 %r2, %r1, 3; match.any.sync.b32 %r0, %r2, -1;"),
        each(|i| 0x1111_1111 << (i & 3))
    );
    assert_eq!(
        warp("elect.sync %r2|%p1, -1; selp.u32 %r0, %r2, 99, %p1;"),
        each(|i| if i == 0 { 0 } else { 99 })
    );
    assert_eq!(warp("mov.u32 %r0, %lanemask_lt;"), each(|i| (1 << i) - 1));
}

#[test]
fn loops_of_different_lengths_meet_again() {
    let text = "mov.u32 %r2, 0; L: add.u32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra L;
        shfl.sync.bfly.b32 %r0, %r2, 1, 31, -1;";
    assert_eq!(warp(text), each(|i| (i ^ 1) + 1));
}

#[test]
fn threads_that_wait_for_threads_of_their_warp() {
    // Each thread waits for the one before it, through memory.
    let text = "setp.eq.u32 %p1, %r1, 0; @%p1 bra GO; W: ld.acquire.gpu.global.u32 %r2, [%rd3+-4]; setp.eq.u32 %p2, %r2, 0;
        @%p2 bra W; GO: add.u32 %r0, %r1, 100; st.release.gpu.global.u32 [%rd3], %r0; bar.warp.sync -1;";
    assert_eq!(warp(text), each(|i| i + 100));
}

#[test]
fn masks_are_checked() {
    let launch = Launch::default();
    let start = ".reg .pred %p<3>; .reg .b32 %r<9>; mov.u32 %r1, %tid.x;";
    let check =
        |text: &str, code: &str| diagnosed(&format!("{start} {text} ret;"), &launch, 4, code);
    check("shfl.sync.bfly.b32 %r2, %r1, 1, 31, 0xffff;", "ptx-warp");
    check(
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; shfl.sync.bfly.b32 %r2, %r1, 16, 31, 0xffff0000; A:",
        "ptx-warp",
    );
    check(
        "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.warp.sync -1; bra B; A: bar.warp.sync -1; B:",
        "ptx-deadlock",
    );
}

/// `mma.sync` of a shape with the elements of small integers in every register, against a product of matrices whose
/// elements are placed by the tables of the PTX ISA.
#[test]
fn mma_of_tf32_and_bytes() {
    let mut random = Random(8);
    // m16n8k8 of tf32: A has 4 registers, B 2.
    let text = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r10, %r11, %r12, %r13}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%r8, %r8, %r8, %r8};";
    let loads = "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4]; ld.global.v2.u32 {%r6, %r7}, [%rd4+16]; mov.u32 %r8, 0;";
    let body = |text: &str| {
        format!(
            ".reg .b32 %r<20>; .reg .b64 %rd<20>; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd3, %r1, 32; add.u64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r1, 16; add.u64 %rd6, %rd2, %rd5;
            {loads} {text} st.global.v4.u32 [%rd6], {{%r10, %r11, %r12, %r13}}; ret;"
        )
    };
    let run_with = |text: &str, input: Vec<u32>| {
        let program = compile(&module(".param .u64 p, .param .u64 q", &body(text)), "k");
        let mut memory = Memory::new();
        let (p, q) = (memory.add("p", words(input)), memory.add("q", vec![0; 512]));
        let arguments = vec![Argument::Buffer(p), Argument::Buffer(q)];
        run(&program, &mut memory, &Launch { arguments, ..Launch::default() });
        memory.bytes(q).to_vec()
    };
    let mut input = vec![0; 256];
    let (mut a, mut b) = (vec![[0.0; 8]; 16], vec![[0.0; 8]; 8]);
    for lane in 0..32 {
        let (group, thread) = (lane / 4, lane % 4);
        for (register, (row, column)) in
            [(group, thread), (group + 8, thread), (group, thread + 4), (group + 8, thread + 4)]
                .into_iter()
                .enumerate()
        {
            a[row][column] = random.small();
            input[lane * 8 + register] = a[row][column].to_bits();
        }
        for (register, row) in [thread, thread + 4].into_iter().enumerate() {
            b[row][group] = random.small();
            input[lane * 8 + 4 + register] = b[row][group].to_bits();
        }
    }
    let result = to_floats(&run_with(text, input));
    for lane in 0..32 {
        let (group, thread) = (lane / 4, lane % 4);
        for (register, (row, column)) in [
            (group, 2 * thread),
            (group, 2 * thread + 1),
            (group + 8, 2 * thread),
            (group + 8, 2 * thread + 1),
        ]
        .into_iter()
        .enumerate()
        {
            let expected: f32 = (0..8).map(|k| a[row][k] * b[k][column]).sum();
            assert_eq!(result[lane * 4 + register], expected);
        }
    }
    // m16n8k32 of signed and unsigned bytes.
    let text = "mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%r10, %r11, %r12, %r13}, {%r2, %r3, %r4, %r5}, {%r6, %r7}, {%r8, %r8, %r8, %r8};";
    let input: Vec<u32> = (0..256).map(|_| random.next() as u32).collect();
    let (mut a, mut b) = (vec![[0; 32]; 16], vec![[0; 8]; 32]);
    for lane in 0..32 {
        let (group, thread) = (lane / 4, lane % 4);
        for byte in 0..4 {
            for (register, (row, column)) in
                [(group, 0), (group + 8, 0), (group, 16), (group + 8, 16)].into_iter().enumerate()
            {
                a[row][column + thread * 4 + byte] =
                    i32::from((input[lane * 8 + register] >> (8 * byte)) as i8);
            }
            for (register, row) in [0, 16].into_iter().enumerate() {
                b[row + thread * 4 + byte][group] =
                    i32::from((input[lane * 8 + 4 + register] >> (8 * byte)) as u8);
            }
        }
    }
    let result = to_words(&run_with(text, input));
    for lane in 0..32 {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let expected: i32 = (0..32).map(|k| a[row][k] * b[k][column]).sum();
        assert_eq!(result[lane * 4] as i32, expected);
    }
}

#[test]
fn matrices_are_stored_and_transposed() {
    let text = ".shared .align 16 .b8 s[128]; mov.u32 %r2, s; and.b32 %r3, %r1, 7; mad.lo.u32 %r3, %r3, 16, %r2;
        stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1}; bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r3]; movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r4;";
    assert_eq!(warp(text), each(|i| i));
    let text = text.replace("movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r4;", "mov.u32 %r0, %r4;");
    // Element (row, column) of the matrix is the half of register `row * 4 + column / 2`.
    let element =
        |row: u32, column: u32| if column.is_multiple_of(2) { row * 4 + column / 2 } else { 0 };
    assert_eq!(
        warp(&text),
        each(|i| element(i % 4 * 2, i / 4) | element(i % 4 * 2 + 1, i / 4) << 16)
    );
}
