//! Products of matrices on tensor cores, with asynchronous copies.

use crate::support::{Random, SCHEDULES, bf16, compile, floats, module, run, text_of, to_floats};
use irc_ptx::{Argument, Launch, Memory, Report, Schedule, Swizzle, TensorMap, Type};

/// Small integers: rows of A and columns of B, of which sums of products are exact.
fn operands(m: usize, n: usize, k: usize) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    let mut random = Random(5);
    let a: Vec<f32> = (0..m * k).map(|_| random.small()).collect();
    let b: Vec<f32> = (0..n * k).map(|_| random.small()).collect();
    let mut c = vec![0.0; m * n];
    for row in 0..m {
        for column in 0..n {
            c[row * n + column] = (0..k).map(|i| a[row * k + i] * b[column * k + i]).sum();
        }
    }
    (a, b, c)
}

/// Runs `matmul_mma.ptx`, or a variant of it.
pub fn mma(text: &str, schedule: Schedule) -> (Report, String, bool) {
    let (m, n, k) = (48, 24, 80);
    let (a, b, c) = operands(m, n, k);
    let program = compile(text, "matmul");
    let mut memory = Memory::new();
    let pa = memory.add("a", bf16(a));
    let pb = memory.add("b", bf16(b));
    let pc = memory.add("c", vec![0; 4 * m * n]);
    let buffers = [pa, pb, pc].map(Argument::Buffer);
    let arguments =
        buffers.into_iter().chain([Argument::U32(n as u32), Argument::U32(k as u32)]).collect();
    let grid = [n as u32 / 8, m as u32 / 16, 1];
    let report =
        Launch { grid, arguments, schedule, ..Launch::default() }.run(&program, &mut memory);
    let text = text_of(&program, &report);
    let equal = to_floats(memory.bytes(pc)) == c;
    (report, text, equal)
}

/// Runs `matmul_wgmma.ptx`, or a variant of it.
pub fn wgmma(text: &str, schedule: Schedule) -> (Report, String, bool) {
    let (m, n, k) = (128, 32, 320);
    let (a, b, c) = operands(m, n, k);
    let program = compile(text, "matmul");
    let mut memory = Memory::new();
    let pa = memory.add("a", bf16(a));
    let pb = memory.add("b", bf16(b));
    let pc = memory.add("c", vec![0; 4 * m * n]);
    let map = |buffer, rows: usize, tile: u32| TensorMap {
        ty: Type::Bf16,
        address: memory.address(buffer),
        extents: vec![k as u32, rows as u32],
        strides: vec![2 * k as u64],
        tile: vec![64, tile],
        swizzle: Swizzle::Bytes128,
    };
    let maps = [map(pa, m, 64), map(pb, n, 32)].map(Argument::TensorMap);
    let arguments =
        maps.into_iter().chain([Argument::Buffer(pc), Argument::U32(k as u32 / 64)]).collect();
    let launch = Launch {
        grid: [m as u32 / 64, 1, 1],
        block: [160, 1, 1],
        shared_bytes: 24576,
        arguments,
        schedule,
        ..Launch::default()
    };
    let report = launch.run(&program, &mut memory);
    let text = text_of(&program, &report);
    let equal = to_floats(memory.bytes(pc)) == c;
    (report, text, equal)
}

#[test]
fn mma_with_asynchronous_copies() {
    for schedule in SCHEDULES {
        let (report, text, equal) = mma(include_str!("data/matmul_mma.ptx"), schedule);
        assert!(report.is_clean() && equal, "{schedule:?}: {text}");
    }
}

#[test]
fn wgmma_with_tma_and_mbarriers() {
    for schedule in SCHEDULES {
        let (report, text, equal) = wgmma(include_str!("data/matmul_wgmma.ptx"), schedule);
        assert!(report.is_clean() && equal, "{schedule:?}: {text}");
    }
}

/// A tile of 8 by 8 at (8, 16) in a tensor of 20 rows of 12: half of it in each dimension is outside.
#[test]
fn tiles_are_cut_at_the_edges_of_tensors() {
    let body = ".shared .align 128 .b8 s[256]; .shared .align 8 .b8 b[8]; .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
        ld.param.u64 %rd3, [q]; mov.u64 %rd1, x; cvta.param.u64 %rd1, %rd1; mov.u64 %rd2, y; cvta.param.u64 %rd2, %rd2;
        mov.u32 %r1, s; mov.u32 %r2, b; mov.u32 %r3, 8; mov.u32 %r4, 16; mbarrier.init.shared.b64 [%r2], 1;
        fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 256;
        cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r3, %r4}], [%r2];
        W: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra W;
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd2, {%r3, %r4}], [%r1];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd2, {%r3, %r4}], [%r1];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        mov.u32 %r5, 0; C: ld.shared.u32 %r6, [%r1]; st.global.u32 [%rd3], %r6; add.u32 %r1, %r1, 4; add.u64 %rd3, %rd3, 4;
        add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, 64; @%p2 bra C; ret;";
    let params = ".param .align 64 .b8 x[128], .param .align 64 .b8 y[128], .param .u64 q";
    let program = compile(&module(params, body), "k");
    let values: Vec<f32> = (1..=240).map(|value| value as f32).collect();
    for (swizzle, schedule) in [Swizzle::None, Swizzle::Bytes32]
        .into_iter()
        .flat_map(|swizzle| SCHEDULES.map(|schedule| (swizzle, schedule)))
    {
        let mut memory = Memory::new();
        let x = memory.add_constant("x", floats(values.iter().copied()));
        let y = memory.add("y", vec![0; 960]);
        let q = memory.add("q", vec![0; 256]);
        let map = |buffer| TensorMap {
            ty: Type::F32,
            address: memory.address(buffer),
            extents: vec![12, 20],
            strides: vec![48],
            tile: vec![8, 8],
            swizzle,
        };
        let arguments =
            vec![Argument::TensorMap(map(x)), Argument::TensorMap(map(y)), Argument::Buffer(q)];
        let launch = Launch { block: [1, 1, 1], arguments, schedule, ..Launch::default() };
        run(&program, &mut memory, &launch);
        let inside = |row: usize, column: usize| row < 20 && column < 12;
        for (index, value) in to_floats(memory.bytes(y)).into_iter().enumerate() {
            let (row, column) = (index / 12, index % 12);
            assert_eq!(value, if row >= 16 && column >= 8 { 2.0 * values[index] } else { 0.0 });
        }
        for (index, value) in to_floats(memory.bytes(q)).into_iter().enumerate() {
            // Chunks of 16 bytes change places in every second group of four rows.
            let flip = usize::from(swizzle == Swizzle::Bytes32 && index / 32 % 2 == 1) * 4;
            let (row, column) = (16 + index / 8, 8 + ((index % 8) ^ flip));
            assert_eq!(
                value,
                if inside(row, column) { values[row * 12 + column] } else { 0.0 },
                "{index}"
            );
        }
    }
}
