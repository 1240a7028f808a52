//! Each instruction on many values against Rust's arithmetic.

use crate::support::{Random, compile, module, run};
use irc_ptx::{Argument, Launch, Memory};

/// Values at which arithmetic is likely to be wrong.
const EDGES: [u64; 30] = [
    0,
    1,
    2,
    3,
    5,
    7,
    8,
    15,
    16,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x0000_0001_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x1234_5678_9abc_def0,
];

/// Bits of floats at which arithmetic is likely to be wrong.
const FLOATS: [f32; 26] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    1e-40,
    -1e-40,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    65504.0,
    65520.0,
    1e10,
    -1e10,
    0.1,
    1.000_000_1,
    2_147_483_648.0,
    4_294_967_296.0,
    7.25,
];

/// Runs a snippet on each three values. Registers hold the values and their low bits: `%rd1` to `%rd3`,
/// `%r1` to `%r3`, `%h1` to `%h3`, `%f1` to `%f3`, `%d1` to `%d3`. The result is the register 0 of a kind.
fn results(kind: &str, snippet: &str, values: &[[u64; 3]]) -> Vec<u64> {
    let store = match kind {
        "r" => "cvt.u64.u32 %rd9, %r0;",
        "h" => "cvt.u64.u16 %rd9, %h0;",
        "f" => "mov.b32 %r9, %f0; cvt.u64.u32 %rd9, %r9;",
        "d" => "mov.b64 %rd9, %d0;",
        "p" => "selp.b64 %rd9, 1, 0, %p0;",
        _ => "mov.b64 %rd9, %rd0;",
    };
    let body = format!(
        ".reg .pred %p<9>; .reg .b16 %h<19>; .reg .b32 %r<19>; .reg .b64 %rd<19>; .reg .f32 %f<19>; .reg .f64 %d<19>;
        ld.param.u64 %rd10, [in]; ld.param.u64 %rd11, [out];
        mov.u32 %r10, %tid.x; mov.u32 %r11, %ctaid.x; mad.lo.u32 %r10, %r11, 32, %r10;
        mad.wide.u32 %rd10, %r10, 24, %rd10; mad.wide.u32 %rd11, %r10, 8, %rd11;
        ld.global.u64 %rd1, [%rd10]; ld.global.u64 %rd2, [%rd10+8]; ld.global.u64 %rd3, [%rd10+16];
        cvt.u32.u64 %r1, %rd1; cvt.u32.u64 %r2, %rd2; cvt.u32.u64 %r3, %rd3;
        cvt.u16.u64 %h1, %rd1; cvt.u16.u64 %h2, %rd2; cvt.u16.u64 %h3, %rd3;
        mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3;
        mov.b64 %d1, %rd1; mov.b64 %d2, %rd2; mov.b64 %d3, %rd3;
        {snippet}
        {store}
        st.global.u64 [%rd11], %rd9;
        ret;"
    );
    let program = compile(&module(".param .u64 in, .param .u64 out", &body), "k");
    let mut memory = Memory::new();
    let mut padded = values.to_vec();
    padded.resize(values.len().next_multiple_of(32), [1; 3]);
    let input =
        memory.add("in", padded.iter().flatten().flat_map(|value| value.to_le_bytes()).collect());
    let output = memory.add("out", vec![0; padded.len() * 8]);
    let launch = Launch {
        grid: [padded.len() as u32 / 32, 1, 1],
        arguments: vec![Argument::Buffer(input), Argument::Buffer(output)],
        ..Launch::default()
    };
    run(&program, &mut memory, &launch);
    let bytes = memory.bytes(output).chunks_exact(8);
    let words = bytes.map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
    words.take(values.len()).collect()
}

fn integers() -> Vec<[u64; 3]> {
    let mut random = Random(7);
    let mut values = vec![];
    for a in EDGES {
        for b in EDGES {
            values.push([a, b, EDGES[random.next() as usize % EDGES.len()]]);
        }
    }
    values.extend((0..400).map(|_| [random.next(), random.next(), random.next()]));
    values
}

fn singles() -> Vec<[u64; 3]> {
    let mut random = Random(9);
    let bits = |value: f32| u64::from(value.to_bits());
    let mut values = vec![];
    for a in FLOATS {
        for b in FLOATS {
            values.push([bits(a), bits(b), bits(FLOATS[random.next() as usize % FLOATS.len()])]);
        }
    }
    values
        .extend((0..400).map(|_| [random.next() >> 32, random.next() >> 32, random.next() >> 32]));
    values
}

type Reference = fn(u64, u64, u64) -> u64;

fn check(values: &[[u64; 3]], rows: &[(&str, &str, Reference)]) {
    for (kind, snippet, reference) in rows {
        for (value, result) in values.iter().zip(results(kind, snippet, values)) {
            let [a, b, c] = *value;
            let expected = reference(a, b, c);
            assert_eq!(
                result, expected,
                "{snippet} of {a:#x} {b:#x} {c:#x}: {result:#x}, not {expected:#x}"
            );
        }
    }
}

fn w(value: u32) -> u64 {
    value.into()
}

fn s(value: i32) -> u64 {
    w(value as u32)
}

#[test]
fn integers_are_those_of_rust() {
    check(
        &integers(),
        &[
            ("r", "add.s32 %r0, %r1, %r2;", |a, b, _| w((a as u32).wrapping_add(b as u32))),
            ("r", "sub.s32 %r0, %r1, %r2;", |a, b, _| w((a as u32).wrapping_sub(b as u32))),
            ("r", "add.sat.s32 %r0, %r1, %r2;", |a, b, _| s((a as i32).saturating_add(b as i32))),
            ("rd", "add.s64 %rd0, %rd1, %rd2;", |a, b, _| a.wrapping_add(b)),
            ("h", "add.s16 %h0, %h1, %h2;", |a, b, _| u64::from((a as u16).wrapping_add(b as u16))),
            ("r", "mul.lo.s32 %r0, %r1, %r2;", |a, b, _| w((a as u32).wrapping_mul(b as u32))),
            ("r", "mul.hi.s32 %r0, %r1, %r2;", |a, b, _| {
                s(((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32)
            }),
            ("r", "mul.hi.u32 %r0, %r1, %r2;", |a, b, _| {
                w(((u64::from(a as u32) * u64::from(b as u32)) >> 32) as u32)
            }),
            ("rd", "mul.hi.u64 %rd0, %rd1, %rd2;", |a, b, _| {
                ((u128::from(a) * u128::from(b)) >> 64) as u64
            }),
            ("rd", "mul.hi.s64 %rd0, %rd1, %rd2;", |a, b, _| {
                ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
            }),
            ("rd", "mul.wide.s32 %rd0, %r1, %r2;", |a, b, _| {
                (i64::from(a as i32) * i64::from(b as i32)) as u64
            }),
            ("rd", "mul.wide.u32 %rd0, %r1, %r2;", |a, b, _| {
                u64::from(a as u32) * u64::from(b as u32)
            }),
            ("r", "mul.wide.s16 %r0, %h1, %h2;", |a, b, _| {
                s(i32::from(a as i16) * i32::from(b as i16))
            }),
            ("r", "mul.wide.u16 %r0, %h1, %h2;", |a, b, _| {
                w(u32::from(a as u16) * u32::from(b as u16))
            }),
            ("r", "mad.lo.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
                w((a as u32).wrapping_mul(b as u32).wrapping_add(c as u32))
            }),
            ("rd", "mad.wide.s32 %rd0, %r1, %r2, %rd3;", |a, b, c| {
                (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64
            }),
            ("rd", "mad.wide.u32 %rd0, %r1, %r2, %rd3;", |a, b, c| {
                (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)
            }),
            ("rd", "mad.lo.s64 %rd0, %rd1, %rd2, %rd3;", |a, b, c| {
                a.wrapping_mul(b).wrapping_add(c)
            }),
            ("r", "div.s32 %r0, %r1, %r2;", |a, b, _| {
                if b as u32 == 0 { 0xffff_ffff } else { s((a as i32).wrapping_div(b as i32)) }
            }),
            ("r", "div.u32 %r0, %r1, %r2;", |a, b, _| {
                w((a as u32).checked_div(b as u32).unwrap_or(u32::MAX))
            }),
            ("r", "rem.s32 %r0, %r1, %r2;", |a, b, _| {
                if b as u32 == 0 { w(a as u32) } else { s((a as i32).wrapping_rem(b as i32)) }
            }),
            ("rd", "rem.u64 %rd0, %rd1, %rd2;", |a, b, _| a.checked_rem(b).unwrap_or(a)),
            ("rd", "div.s64 %rd0, %rd1, %rd2;", |a, b, _| {
                if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
            }),
            ("r", "min.s32 %r0, %r1, %r2;", |a, b, _| s((a as i32).min(b as i32))),
            ("r", "max.u32 %r0, %r1, %r2;", |a, b, _| w((a as u32).max(b as u32))),
            ("rd", "max.s64 %rd0, %rd1, %rd2;", |a, b, _| (a as i64).max(b as i64) as u64),
            ("r", "max.s16x2 %r0, %r1, %r2;", |a, b, _| {
                let part = |shift: u32| {
                    u64::from(((a >> shift) as i16).max((b >> shift) as i16) as u16) << shift
                };
                part(0) | part(16)
            }),
            ("r", "add.u16x2 %r0, %r1, %r2;", |a, b, _| {
                let part = |shift: u32| {
                    u64::from(((a >> shift) as u16).wrapping_add((b >> shift) as u16)) << shift
                };
                part(0) | part(16)
            }),
            ("r", "min.relu.s32 %r0, %r1, %r2;", |a, b, _| s((a as i32).min(b as i32).max(0))),
            ("r", "abs.s32 %r0, %r1;", |a, _, _| s((a as i32).wrapping_abs())),
            ("rd", "neg.s64 %rd0, %rd1;", |a, _, _| a.wrapping_neg()),
            ("r", "sad.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
                w((a as i32).abs_diff(b as i32).wrapping_add(c as u32))
            }),
            ("r", "and.b32 %r0, %r1, %r2;", |a, b, _| a & b & 0xffff_ffff),
            ("rd", "xor.b64 %rd0, %rd1, -1;", |a, _, _| !a),
            ("r", "not.b32 %r0, %r1;", |a, _, _| w(!(a as u32))),
            ("h", "not.b16 %h0, %h1;", |a, _, _| u64::from(!(a as u16))),
            ("r", "cnot.b32 %r0, %r1;", |a, _, _| u64::from(a as u32 == 0)),
            ("r", "shl.b32 %r0, %r1, %r2;", |a, b, _| {
                w((a as u32).checked_shl(b as u32).unwrap_or(0))
            }),
            ("rd", "shl.b64 %rd0, %rd1, %r2;", |a, b, _| a.checked_shl(b as u32).unwrap_or(0)),
            ("r", "shr.u32 %r0, %r1, %r2;", |a, b, _| {
                w((a as u32).checked_shr(b as u32).unwrap_or(0))
            }),
            ("r", "shr.s32 %r0, %r1, %r2;", |a, b, _| s(a as i32 >> (b as u32).min(31))),
            ("rd", "shr.s64 %rd0, %rd1, %r2;", |a, b, _| (a as i64 >> (b as u32).min(63)) as u64),
            ("h", "shr.s16 %h0, %h1, %r2;", |a, b, _| {
                u64::from((a as i16 >> (b as u32).min(15)) as u16)
            }),
            ("r", "shf.l.wrap.b32 %r0, %r1, %r2, %r3;", |a, b, c| {
                ((b << 32 | a & 0xffff_ffff) << (c & 31)) >> 32
            }),
            ("r", "shf.r.wrap.b32 %r0, %r1, %r2, %r3;", |a, b, c| {
                ((b << 32 | a & 0xffff_ffff) >> (c & 31)) & 0xffff_ffff
            }),
            ("r", "shf.r.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| {
                ((b << 32 | a & 0xffff_ffff) >> (c as u32).min(32)) & 0xffff_ffff
            }),
            ("r", "shf.l.clamp.b32 %r0, %r1, %r2, %r3;", |a, b, c| {
                w(((u128::from(b << 32 | a & 0xffff_ffff) << (c as u32).min(32)) >> 32) as u32)
            }),
            ("r", "popc.b64 %r0, %rd1;", |a, _, _| w(a.count_ones())),
            ("r", "clz.b32 %r0, %r1;", |a, _, _| w((a as u32).leading_zeros())),
            ("r", "clz.b64 %r0, %rd1;", |a, _, _| w(a.leading_zeros())),
            ("r", "brev.b32 %r0, %r1;", |a, _, _| w((a as u32).reverse_bits())),
            ("r", "bfind.u32 %r0, %r1;", |a, _, _| {
                w((a as u32).checked_ilog2().unwrap_or(u32::MAX))
            }),
            ("r", "bfind.s32 %r0, %r1;", |a, _, _| {
                let a = a as i32;
                w(((if a < 0 { !a } else { a }) as u32).checked_ilog2().unwrap_or(u32::MAX))
            }),
            ("r", "bfe.u32 %r0, %r1, %r2, %r3;", |a, b, c| {
                let (position, length) = (b & 255, c & 255);
                let shifted = if position < 32 { (a & 0xffff_ffff) >> position } else { 0 };
                if length < 32 { shifted & ((1 << length) - 1) } else { shifted }
            }),
            ("r", "bfe.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
                // The definition of the PTX ISA, bit by bit.
                let (position, length) = ((b & 255) as u32, (c & 255) as u32);
                let sign =
                    if length == 0 { 0 } else { (a as u32) >> (position + length - 1).min(31) & 1 };
                (0..32).fold(0, |d, i| {
                    let bit = if i < length && position + i <= 31 {
                        (a as u32) >> (position + i) & 1
                    } else {
                        sign
                    };
                    d | u64::from(bit) << i
                })
            }),
            ("r", "bfi.b32 %r0, %r1, %r2, %r3, 5;", |a, b, c| {
                (0..32).fold(0, |d, i| {
                    let position = c & 255;
                    let bit = if i >= position && i < position + 5 {
                        a >> (i - position) & 1
                    } else {
                        b >> i & 1
                    };
                    d | bit << i
                })
            }),
            ("r", "prmt.b32 %r0, %r1, %r2, %r3;", |a, b, c| {
                (0..4).fold(0, |d, i| {
                    let selector = c >> (4 * i) & 15;
                    let byte = (b << 32 | a & 0xffff_ffff) >> (8 * (selector & 7)) & 255;
                    let byte = if selector < 8 {
                        byte
                    } else if byte > 127 {
                        255
                    } else {
                        0
                    };
                    d | byte << (8 * i)
                })
            }),
            ("r", "lop3.b32 %r0, %r1, %r2, %r3, 0x96;", |a, b, c| (a ^ b ^ c) & 0xffff_ffff),
            ("r", "lop3.b32 %r0, %r1, %r2, %r3, 0xca;", |a, b, c| {
                ((a & b) | (!a & c)) & 0xffff_ffff
            }),
            ("r", "dp4a.s32.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
                let dot: i32 = (0..4)
                    .map(|i| i32::from((a >> (8 * i)) as i8) * i32::from((b >> (8 * i)) as i8))
                    .sum();
                s((c as i32).wrapping_add(dot))
            }),
            ("r", "selp.b32 %r0, %r1, %r2, %p1;", |_, b, _| w(b as u32)),
            ("r", "slct.b32.s32 %r0, %r1, %r2, %r3;", |a, b, c| {
                w(if c as i32 >= 0 { a } else { b } as u32)
            }),
            ("r", "set.lt.u32.s32 %r0, %r1, %r2;", |a, b, _| {
                if (a as i32) < b as i32 { 0xffff_ffff } else { 0 }
            }),
            ("p", "setp.hi.u32 %p0, %r1, %r2;", |a, b, _| u64::from(a as u32 > b as u32)),
            ("p", "setp.le.s64 %p0, %rd1, %rd2;", |a, b, _| u64::from(a as i64 <= b as i64)),
            ("p", "setp.eq.s16 %p1, %h1, %h2; setp.lt.or.s32 %p0, %r1, %r2, %p1;", |a, b, _| {
                u64::from((a as i32) < b as i32 || a as u16 == b as u16)
            }),
            ("p", "setp.lt.s32 %p1|%p0, %r1, %r2;", |a, b, _| u64::from(a as i32 >= b as i32)),
            (
                "p",
                "setp.lt.s32 %p1, %r1, %r2; setp.lt.s32 %p2, %r2, %r3; xor.pred %p3, %p1, %p2; not.pred %p0, %p3;",
                |a, b, c| u64::from(((a as i32) < b as i32) == ((b as i32) < c as i32)),
            ),
            (
                "rd",
                "add.cc.u32 %r4, %r1, %r2; addc.u32 %r5, %r3, 7; mov.b64 %rd0, {%r4, %r5};",
                |a, b, c| {
                    ((c << 32 | a & 0xffff_ffff).wrapping_add(7 << 32))
                        .wrapping_add(b & 0xffff_ffff)
                },
            ),
            (
                "rd",
                "sub.cc.u32 %r4, %r1, %r2; subc.u32 %r5, %r3, 7; mov.b64 %rd0, {%r4, %r5};",
                |a, b, c| {
                    (c << 32 | a & 0xffff_ffff).wrapping_sub(7 << 32).wrapping_sub(b & 0xffff_ffff)
                },
            ),
            ("rd", "mov.b64 {%r4, %r5}, %rd1; mov.b64 %rd0, {%r5, %r4};", |a, _, _| {
                a.rotate_left(32)
            }),
            ("r", "mov.b32 {%h4, %h5}, %r1; mov.b32 %r0, {%h5, %h4};", |a, _, _| {
                w((a as u32).rotate_left(16))
            }),
            ("r", "@%p1 mov.u32 %r0, 5; @!%p1 mov.u32 %r0, %r1;", |a, _, _| w(a as u32)),
        ],
    );
}

#[test]
fn conversions_of_integers() {
    check(
        &integers(),
        &[
            ("r", "cvt.s32.s8 %r0, %r1;", |a, _, _| s((a as i8).into())),
            ("r", "cvt.u32.u16 %r0, %h1;", |a, _, _| a & 0xffff),
            ("r", "cvt.s32.s16 %r0, %h1;", |a, _, _| s((a as i16).into())),
            ("rd", "cvt.s64.s32 %rd0, %r1;", |a, _, _| i64::from(a as i32) as u64),
            ("rd", "cvt.u64.u32 %rd0, %r1;", |a, _, _| w(a as u32)),
            ("h", "cvt.sat.s16.s32 %h0, %r1;", |a, _, _| {
                u64::from((a as i32).clamp(-32768, 32767) as u16)
            }),
            ("r", "cvt.sat.u8.s32 %r0, %r1;", |a, _, _| w((a as i32).clamp(0, 255) as u32)),
            ("r", "cvt.s8.s32 %r0, %r1;", |a, _, _| s((a as i8).into())),
            ("f", "cvt.rn.f32.s32 %f0, %r1;", |a, _, _| w((a as i32 as f32).to_bits())),
            ("f", "cvt.rn.f32.u64 %f0, %rd1;", |a, _, _| w((a as f32).to_bits())),
            ("f", "cvt.rz.f32.u64 %f0, %rd1;", |a, _, _| {
                let near = a as f32;
                w(if near as u128 > u128::from(a) { near.next_down() } else { near }.to_bits())
            }),
            ("d", "cvt.rn.f64.s64 %d0, %rd1;", |a, _, _| (a as i64 as f64).to_bits()),
            ("d", "cvt.rp.f64.u64 %d0, %rd1;", |a, _, _| {
                let near = a as f64;
                (if (near as u128) < u128::from(a) { near.next_up() } else { near }).to_bits()
            }),
        ],
    );
}

fn f(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The bits of a result; NaN is the canonical one.
fn out(value: f32) -> u64 {
    w(if value.is_nan() { 0x7fff_ffff } else { value.to_bits() })
}

fn flush(value: f32) -> f32 {
    if value.is_subnormal() { 0.0_f32.copysign(value) } else { value }
}

#[test]
fn binary32() {
    check(
        &singles(),
        &[
            ("f", "add.f32 %f0, %f1, %f2;", |a, b, _| out(f(a) + f(b))),
            ("f", "sub.rn.f32 %f0, %f1, %f2;", |a, b, _| out(f(a) - f(b))),
            ("f", "mul.f32 %f0, %f1, %f2;", |a, b, _| out(f(a) * f(b))),
            ("f", "fma.rn.f32 %f0, %f1, %f2, %f3;", |a, b, c| out(f(a).mul_add(f(b), f(c)))),
            ("f", "div.rn.f32 %f0, %f1, %f2;", |a, b, _| out(f(a) / f(b))),
            ("f", "sqrt.rn.f32 %f0, %f1;", |a, _, _| out(f(a).sqrt())),
            ("f", "rcp.rn.f32 %f0, %f1;", |a, _, _| out(1.0 / f(a))),
            ("f", "add.ftz.f32 %f0, %f1, %f2;", |a, b, _| out(flush(flush(f(a)) + flush(f(b))))),
            ("f", "mul.ftz.sat.f32 %f0, %f1, %f2;", |a, b, _| {
                let product = flush(f(a)) * flush(f(b));
                out(if product > 0.0 { flush(product).min(1.0) } else { 0.0 })
            }),
            ("f", "neg.f32 %f0, %f1;", |a, _, _| out(-f(a))),
            ("f", "abs.f32 %f0, %f1;", |a, _, _| out(f(a).abs())),
            ("f", "min.f32 %f0, %f1, %f2;", |a, b, _| {
                let (a, b) = (f(a), f(b));
                out(if a == b && a == 0.0 && b.is_sign_negative() { b } else { a.min(b) })
            }),
            ("f", "max.NaN.f32 %f0, %f1, %f2;", |a, b, _| {
                let (a, b) = (f(a), f(b));
                out(match () {
                    () if a.is_nan() || b.is_nan() => f32::NAN,
                    () if a == b && a.is_sign_negative() => b,
                    () => {
                        if a >= b {
                            a
                        } else {
                            b
                        }
                    }
                })
            }),
            ("f", "ex2.approx.f32 %f0, %f1;", |a, _, _| out(f64::from(f(a)).exp2() as f32)),
            ("f", "lg2.approx.ftz.f32 %f0, %f1;", |a, _, _| {
                out(f64::from(flush(f(a))).log2() as f32)
            }),
            ("f", "tanh.approx.f32 %f0, %f1;", |a, _, _| out(f64::from(f(a)).tanh() as f32)),
            ("p", "setp.lt.f32 %p0, %f1, %f2;", |a, b, _| u64::from(f(a) < f(b))),
            ("p", "setp.ne.f32 %p0, %f1, %f2;", |a, b, _| u64::from(f(a) < f(b) || f(a) > f(b))),
            ("p", "setp.geu.f32 %p0, %f1, %f2;", |a, b, _| {
                u64::from(f(a) >= f(b) || f(a).is_nan() || f(b).is_nan())
            }),
            ("p", "setp.nan.f32 %p0, %f1, %f2;", |a, b, _| {
                u64::from(f(a).is_nan() || f(b).is_nan())
            }),
            ("p", "testp.subnormal.f32 %p0, %f1;", |a, _, _| u64::from(f(a).is_subnormal())),
            ("r", "cvt.rzi.s32.f32 %r0, %f1;", |a, _, _| s(f(a) as i32)),
            ("r", "cvt.rni.s32.f32 %r0, %f1;", |a, _, _| s(f(a).round_ties_even() as i32)),
            ("r", "cvt.rmi.u32.f32 %r0, %f1;", |a, _, _| w(f(a).floor() as u32)),
            ("r", "cvt.rpi.s32.f32 %r0, %f1;", |a, _, _| s(f(a).ceil() as i32)),
            ("rd", "cvt.rzi.s64.f32 %rd0, %f1;", |a, _, _| {
                if f(a).is_nan() { 1 << 63 } else { f(a) as i64 as u64 }
            }),
            ("f", "cvt.rni.f32.f32 %f0, %f1;", |a, _, _| out(f(a).round_ties_even())),
            ("f", "cvt.sat.f32.f32 %f0, %f1;", |a, _, _| {
                out(if f(a) > 0.0 { f(a).min(1.0) } else { 0.0 })
            }),
        ],
    );
}

#[test]
fn directed_roundings_bracket_the_exact_result() {
    let finite: Vec<[u64; 3]> = singles()
        .into_iter()
        .filter(|values| values.iter().all(|bits| f(*bits).is_finite()))
        .collect();
    for op in ["add", "mul", "div", "fma"] {
        let operands = if op == "fma" { "%f1, %f2, %f3" } else { "%f1, %f2" };
        let of = |rounding: &str| {
            results("f", &format!("{op}.{rounding}.f32 %f0, {operands};"), &finite)
        };
        let (near, down, up, zero) = (of("rn"), of("rm"), of("rp"), of("rz"));
        for (index, values) in finite.iter().enumerate() {
            let [near, down, up, zero] = [near[index], down[index], up[index], zero[index]].map(f);
            if near.is_nan() || near.is_infinite() {
                continue;
            }
            assert!(down <= near && near <= up, "{op} {values:x?}: {down:e} {near:e} {up:e}");
            // Both bounds are one step apart, or the result is exact.
            assert!(
                down == up || down.next_up() == up,
                "{op} {values:x?}: {down:e} {near:e} {up:e}"
            );
            assert_eq!(
                zero,
                if down > 0.0 {
                    down
                } else if up < 0.0 {
                    up
                } else {
                    zero
                },
                "{op} {values:x?}"
            );
            if op == "mul" && near != 0.0 {
                let exact = f64::from(f(values[0])) * f64::from(f(values[1]));
                assert!(f64::from(down) <= exact && exact <= f64::from(up));
            }
        }
    }
}

#[test]
fn binary64() {
    let bits = |value: f32| f64::from(value).to_bits();
    let mut random = Random(3);
    let mut values: Vec<[u64; 3]> = vec![];
    for a in FLOATS {
        for b in FLOATS {
            values.push([bits(a), bits(b), bits(FLOATS[random.next() as usize % FLOATS.len()])]);
        }
    }
    values.retain(|values| values.iter().all(|bits| !f64::from_bits(*bits).is_nan()));
    check(
        &values,
        &[
            (
                "p",
                "add.f64 %d0, %d1, %d2; sub.f64 %d4, %d0, %d2; setp.equ.f64 %p0, %d4, %d4;",
                |_, _, _| 1,
            ),
            (
                "d",
                "fma.rn.f64 %d0, %d1, %d2, %d3; max.f64 %d0, %d0, %d0; abs.f64 %d0, %d0; min.f64 %d0, %d0, 0d7FF0000000000000;",
                |a, b, c| {
                    f64::from_bits(a)
                        .mul_add(f64::from_bits(b), f64::from_bits(c))
                        .abs()
                        .min(f64::INFINITY)
                        .to_bits()
                },
            ),
            ("r", "cvt.rzi.s32.f64 %r0, %d1;", |a, _, _| s(f64::from_bits(a) as i32)),
            ("f", "cvt.rn.f32.f64 %f0, %d1;", |a, _, _| out(f64::from_bits(a) as f32)),
            (
                "p",
                "div.rm.f64 %d4, %d1, 0d4008000000000000; div.rp.f64 %d5, %d1, 0d4008000000000000; setp.le.f64 %p0, %d4, %d5;",
                |_, _, _| 1,
            ),
        ],
    );
}

/// The value of binary16 bits, by its definition.
fn half(bits: u64) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15 & 1, bits >> 10 & 31, (bits & 1023) as f64);
    let magnitude = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2_f64.powi(-24),
        _ => (1024.0 + fraction) * 2_f64.powi(exponent as i32 - 25),
    };
    if sign == 1 { -magnitude } else { magnitude }
}

/// Whether binary16 bits are the nearest to a value that is exact in binary64.
fn is_nearest(bits: u64, value: f64) -> bool {
    if value.is_nan() {
        return bits == 0x7fff;
    }
    let magnitude = value.abs();
    if magnitude >= 65520.0 {
        return bits & 0x7fff == 0x7c00;
    }
    let distance = |bits: u64| (half(bits).abs() - magnitude).abs();
    let own = bits & 0x7fff;
    let best = own < 0x7c00
        && (own == 0 || distance(own) <= distance(own - 1))
        && (own == 0x7bff || distance(own) <= distance(own + 1));
    let tie = (own > 0 && distance(own) == distance(own - 1))
        || (own < 0x7bff && distance(own) == distance(own + 1));
    best && (!tie || own & 1 == 0) && (bits >> 15 == 1) == value.is_sign_negative()
}

/// A result in binary64.
type Exact = fn(f64, f64, f64) -> f64;

#[test]
fn halves_round_exact_results() {
    let mut random = Random(11);
    let values: Vec<[u64; 3]> = (0..4000)
        .map(|_| [random.next(), random.next(), random.next()].map(|bits| bits & 0xffff))
        .collect();
    let ops: [(&str, Exact); 5] = [
        ("add.f16 %h0, %h1, %h2;", |a, b, _| a + b),
        ("sub.rn.f16 %h0, %h1, %h2;", |a, b, _| a - b),
        ("mul.f16 %h0, %h1, %h2;", |a, b, _| a * b),
        ("cvt.f32.f16 %f4, %h1; cvt.rn.f16.f32 %h0, %f4;", |a, _, _| a),
        (
            "mov.b32 %r4, {%h1, %h2}; mov.b32 %r5, {%h2, %h1}; add.f16x2 %r6, %r4, %r5; mov.b32 {%h0, %h4}, %r6;",
            |a, b, _| a + b,
        ),
    ];
    for (snippet, exact) in ops {
        for (value, result) in values.iter().zip(results("h", snippet, &values)) {
            let [a, b, c] = value.map(half);
            assert!(
                is_nearest(result, exact(a, b, c)) || a == 0.0 || a + b == 0.0,
                "{snippet} of {value:x?}: {result:#x}"
            );
        }
    }
    // a * b + c needs more than 53 bits: scaled integers of 128 bits.
    let scaled = |bits: u64, scale: i32| (half(bits) * 2_f64.powi(scale)) as i128;
    for (value, result) in
        values.iter().zip(results("h", "fma.rn.f16 %h0, %h1, %h2, %h3;", &values))
    {
        let [a, b, c] = *value;
        if [a, b, c].iter().any(|bits| !half(*bits).is_finite()) {
            continue;
        }
        let exact = scaled(a, 24) * scaled(b, 24) + (scaled(c, 24) << 24);
        let own = scaled(result, 24) << 24;
        if result & 0x7fff == 0x7c00 {
            assert!(exact.abs() >= 65520_i128 << 48);
            continue;
        }
        for other in [result.wrapping_sub(1), result + 1]
            .into_iter()
            .filter(|other| half(*other & 0xffff).is_finite() && other & 0x7fff != 0x7fff)
        {
            let other = scaled(other & 0xffff, 24) << 24;
            assert!((own - exact).abs() <= (other - exact).abs(), "fma of {value:x?}: {result:#x}");
        }
    }
}

#[test]
fn bfloats() {
    check(
        &singles(),
        &[
            ("h", "cvt.rn.bf16.f32 %h0, %f1;", |a, _, _| {
                let value = f(a);
                if value.is_nan() {
                    return 0x7fff;
                }
                // Ties to even, on the bits.
                let bits = a as u32;
                let (kept, rest) = (bits >> 16, bits & 0xffff);
                w(kept + u32::from(rest > 0x8000 || (rest == 0x8000 && kept & 1 == 1)))
            }),
            (
                "r",
                "cvt.rn.bf16x2.f32 %r0, %f1, %f2; shr.u32 %r0, %r0, 16; shl.b32 %r0, %r0, 16; mov.b32 %f4, %r0; mov.b32 %r0, %f4;",
                |a, _, _| {
                    let value = f(a);
                    if value.is_nan() {
                        return 0x7fff_0000;
                    }
                    let bits = a as u32;
                    let (kept, rest) = (bits >> 16, bits & 0xffff);
                    w((kept + u32::from(rest > 0x8000 || (rest == 0x8000 && kept & 1 == 1))) << 16)
                },
            ),
            ("h", "cvt.rz.bf16.f32 %h0, %f1;", |a, _, _| {
                if f(a).is_nan() { 0x7fff } else { a >> 16 & 0xffff }
            }),
            ("f", "mov.b32 {%h4, %h5}, %r1; cvt.f32.bf16 %f0, %h5;", |a, _, _| {
                out(f32::from_bits(a as u32 & 0xffff_0000))
            }),
            (
                "f",
                "mov.b32 {%h4, %h5}, %r1; mov.b32 {%h6, %h7}, %r2; mul.rn.bf16 %h8, %h5, %h7; cvt.rn.bf16.f32 %h9, %f1; cvt.f32.bf16 %f0, %h8;",
                |a, b, _| {
                    let product = f32::from_bits(a as u32 & 0xffff_0000)
                        * f32::from_bits(b as u32 & 0xffff_0000);
                    if product.is_nan() {
                        return 0x7fff_ffff;
                    }
                    if product.is_subnormal() || product == 0.0 {
                        // Products below the normal numbers round twice here.
                        let exact = f64::from(f32::from_bits(a as u32 & 0xffff_0000))
                            * f64::from(f32::from_bits(b as u32 & 0xffff_0000));
                        let scale = 2_f64.powi(133);
                        return out(((exact * scale).round_ties_even() / scale) as f32);
                    }
                    let bits = product.to_bits();
                    let (kept, rest) = (bits >> 16, bits & 0xffff);
                    out(f32::from_bits(
                        (kept + u32::from(rest > 0x8000 || (rest == 0x8000 && kept & 1 == 1)))
                            << 16,
                    ))
                },
            ),
        ],
    );
}
