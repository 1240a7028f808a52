//! Products of matrices on tensor cores, with asynchronous copies.

use crate::support::{Random, SCHEDULES, bf16, compile, text_of, to_floats};
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
