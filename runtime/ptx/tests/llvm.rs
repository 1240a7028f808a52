//! Kernels that LLVM generated from the `.ll` files beside their `.ptx` files:
//! `llc -march=nvptx64 -mcpu=sm_90a -mattr=+ptx80`.

use crate::support::{Random, SCHEDULES, bf16, compile, floats, run, to_floats};
use irc_ptx::{Argument, Launch, Memory};

#[test]
fn a_reduction_sums_its_input() {
    let program = compile(include_str!("data/reduce.ptx"), "reduce");
    let mut random = Random(1);
    let values: Vec<f32> = (0..1000).map(|_| random.small()).collect();
    for schedule in SCHEDULES {
        let mut memory = Memory::new();
        let x = memory.add_constant("x", floats(values.iter().copied()));
        let out = memory.add("out", vec![0; 4]);
        let arguments = vec![Argument::Buffer(x), Argument::Buffer(out), Argument::U32(1000)];
        let launch = Launch {
            grid: [4, 1, 1],
            block: [256, 1, 1],
            arguments,
            schedule,
            ..Launch::default()
        };
        let report = run(&program, &mut memory, &launch);
        assert_eq!(to_floats(memory.bytes(out)), [values.iter().sum::<f32>()]);
        assert_eq!(report.statistics.barriers, 4);
        // 1000 loads of 4 bytes, and 4 atomic additions.
        assert_eq!((report.statistics.global_read, report.statistics.global_written), (4000, 16));
    }
}

#[test]
fn functions_are_called() {
    let program = compile(include_str!("data/calls.ptx"), "calls");
    let fibonacci = [0_u64, 1, 1, 2, 3, 5, 8, 13];
    let expected = |tid: u64| {
        let index = tid & 7;
        let x = 10 * ((tid & 3) + 1);
        let called = if tid & 1 == 1 { tid * tid } else { 2 * tid };
        let switched = match index {
            0 => x + 100,
            1 => x * 3,
            2 => x - 7,
            3 => x ^ 255,
            4 => x << 4,
            5 => 1000 / x,
            _ => u64::MAX,
        };
        let sum =
            (index * tid + fibonacci[index as usize]).wrapping_add(switched).wrapping_add(called);
        let wide = u128::from(sum);
        let cube = ((wide << 70).wrapping_add(wide)).wrapping_mul(wide);
        ((cube >> 64) as u64 ^ sum, sum)
    };
    for schedule in SCHEDULES {
        let mut memory = Memory::new();
        let out = memory.add("out", vec![0; 512]);
        let launch = Launch {
            block: [64, 1, 1],
            arguments: vec![Argument::Buffer(out)],
            schedule,
            ..Launch::default()
        };
        let report = run(&program, &mut memory, &launch);
        for (tid, bytes) in memory.bytes(out).chunks_exact(8).enumerate() {
            assert_eq!(
                u64::from_le_bytes(bytes.try_into().expect("8 bytes")),
                expected(tid as u64).0,
                "{tid}"
            );
        }
        let text = String::from_utf8(report.output).expect("text");
        assert_eq!(text, format!("thread 5: {}\n", expected(5).1));
    }
}

#[test]
fn softmax_of_bfloats() {
    let program = compile(include_str!("data/softmax.ptx"), "softmax");
    let mut random = Random(4);
    let values: Vec<f32> = (0..256).map(|_| random.small()).collect();
    let mut memory = Memory::new();
    let x = memory.add_constant("x", bf16(values.iter().copied()));
    let y = memory.add("y", vec![0; 512]);
    let arguments = vec![Argument::Buffer(x), Argument::Buffer(y)];
    run(&program, &mut memory, &Launch { grid: [4, 1, 1], arguments, ..Launch::default() });
    for (row, result) in values.chunks(64).zip(memory.bytes(y).chunks(128)) {
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = row.iter().map(|value| f64::from(value - largest).exp()).sum();
        for (value, bytes) in row.iter().zip(result.chunks(2)) {
            let expected = f64::from(value - largest).exp() / sum;
            let result = f64::from(f32::from_bits(
                u32::from(u16::from_le_bytes([bytes[0], bytes[1]])) << 16,
            ));
            assert!((result - expected).abs() <= expected / 256.0, "{result} {expected}");
        }
    }
}

#[test]
fn halves_in_vectors() {
    let program = compile(include_str!("data/softmax.ptx"), "halves");
    let bits: Vec<u16> =
        (0..256).map(|index| (index * 61 % 0x4000) | ((index & 1) << 15)).collect();
    let mut memory = Memory::new();
    let x = memory.add_constant("x", bits.iter().flat_map(|bits| bits.to_le_bytes()).collect());
    let y = memory.add("y", vec![0; 512]);
    let arguments = vec![Argument::Buffer(x), Argument::Buffer(y)];
    let report = run(&program, &mut memory, &Launch { arguments, ..Launch::default() });
    // 32 threads of 16 bytes: 16 sectors for each access.
    assert_eq!(report.statistics.sectors_per_access(), 16.0);
    let value = |bits: u16| {
        let magnitude = match bits >> 10 & 31 {
            0 => f64::from(bits & 1023) * 2_f64.powi(-24),
            exponent => f64::from(1024 + (bits & 1023)) * 2_f64.powi(i32::from(exponent) - 25),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    };
    for (bits, result) in bits.iter().zip(memory.bytes(y).chunks(2)) {
        let (x, y) = (value(*bits), value(u16::from_le_bytes([result[0], result[1]])));
        let expected = (x * x + x).max(0.0);
        // Two roundings to 11 bits.
        assert!(
            (y - expected).abs() <= (x * x) / 1024.0 + expected / 1024.0 + 2_f64.powi(-24),
            "{x} {y} {expected}"
        );
    }
}
