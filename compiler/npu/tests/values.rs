//! Programs of small schedules compute the expected values: products of activations on two cores, groups,
//! inputs that the schedule omits.

use crate::support::{diagnostics, plan};
use irc_diag::Source;
use irc_npu_sim::functional::{self, Memory};

/// A memory with this many bytes of random activations behind base 0.
fn memory(bytes: usize) -> Memory {
    let mut memory = Memory::new(2, 8 << 20);
    memory.dram.insert(0, noise(bytes));
    memory
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut seed = bytes as u32;
    let next = (0..bytes).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    });
    next.collect()
}

fn scale(channel: usize) -> f32 {
    1.0 / (64 + channel) as f32
}

/// Constants of an output channel: scale and bias.
fn constants(channel: usize) -> [u8; 32] {
    let mut row = [0; 32];
    row[..4].copy_from_slice(&scale(channel).to_le_bytes());
    row
}

fn rounded(sum: i32, channel: usize) -> i8 {
    (sum as f32 * scale(channel)).round_ties_even().clamp(-128.0, 127.0) as i8
}

/// Runs the program of a schedule, which the verifier must accept.
fn run(text: &str, memory: &mut Memory) {
    let program = irc_npu_emit::emit(&plan(&Source::new("schedule.json", text)), None);
    let program = program.expect("a program");
    assert_eq!(diagnostics(&program), []);
    functional::run(&program, memory).expect("a run");
}

fn signed(bytes: &[u8]) -> Vec<i32> {
    bytes.iter().map(|byte| byte.cast_signed().into()).collect()
}

/// Tensors of `attention.json` in DRAM and their bytes, by name.
const ACTIVATIONS: [(&str, usize); 11] = [
    ("k0", 128),
    ("k1", 128),
    ("kt0", 128),
    ("kt1", 128),
    ("o", 256),
    ("q", 256),
    ("qk", 512),
    ("v", 256),
    ("x0", 128),
    ("x1", 128),
    ("y", 256),
];

/// Output channels of `o` and of `qk`, whose constants follow one another.
const CONSTANTS: [usize; 2] = [16, 32];

const HEADS: usize = 2;
const FEATURES: usize = 8;
const POSITIONS: usize = 16;

fn place(name: &str) -> usize {
    let before = ACTIVATIONS.iter().take_while(|(other, _)| *other != name);
    before.map(|(_, bytes)| bytes).sum()
}

#[test]
fn products_of_activations_are_right() {
    let mut memory = memory(ACTIVATIONS.iter().map(|(_, bytes)| bytes).sum());
    let rows = CONSTANTS.iter().flat_map(|count| (0..*count).flat_map(constants));
    memory.dram.insert(1, rows.collect());
    let before = signed(&memory.dram[&0]);
    let at = |name: &str, channels: usize, channel: usize, row: usize| {
        before[place(name) + row * channels + channel]
    };
    run(include_str!("data/attention.json"), &mut memory);
    for query in 0..POSITIONS {
        for head in 0..HEADS {
            let keys = ["x0", "x1"][head];
            let products = (0..POSITIONS).map(|key| {
                let terms = (0..FEATURES).map(|feature| {
                    let channel = head * FEATURES + feature;
                    at("q", HEADS * FEATURES, channel, query) * at(keys, FEATURES, feature, key)
                });
                rounded(terms.sum(), head * POSITIONS + key)
            });
            let products: Vec<i8> = products.collect();
            for feature in 0..FEATURES {
                let channel = head * FEATURES + feature;
                let terms = products.iter().enumerate().map(|(key, product)| {
                    i32::from(*product) * at("y", HEADS * FEATURES, channel, key)
                });
                let expected = rounded(terms.sum(), channel);
                let found = memory.dram[&0][place("o") + query * HEADS * FEATURES + channel];
                assert_eq!(found.cast_signed(), expected, "query {query}, channel {channel}");
            }
        }
    }
}

#[test]
fn a_layer_of_no_kind_with_weights_of_fewer_channels_is_grouped() {
    // `g` computes 16 channels of 4 by 4 in two groups of 8, each from 8 channels of `x`.
    let mut memory = memory(512);
    let weights = noise(16 * 8);
    let row = |k: usize| weights[8 * k..][..8].iter().copied().chain(constants(k));
    memory.dram.insert(1, (0..16).flat_map(row).collect());
    let (x, weights) = (signed(&memory.dram[&0][256..]), signed(&weights));
    run(include_str!("data/groups.json"), &mut memory);
    for pixel in 0..16 {
        for k in 0..16 {
            let inputs = &x[16 * pixel + k / 8 * 8..][..8];
            let sum = inputs.iter().zip(&weights[8 * k..]).map(|(x, w)| x * w).sum();
            let found = memory.dram[&0][16 * pixel + k].cast_signed();
            assert_eq!(found, rounded(sum, k), "pixel {pixel}, channel {k}");
        }
    }
}

#[test]
fn what_the_schedule_leaves_out_is_read_from_dram() {
    // `f` reads `x` and a state of as many channels; `h` adds a tensor to it. DRAM holds `f`, `h`, `x`,
    // and then what `f` and `h` read from outside, in channels of their own.
    let mut memory = memory(3 * 8 + 16 + 8);
    let weights = noise(8 * 16);
    let row = |k: usize| weights[16 * k..][..16].iter().copied().chain(constants(k));
    memory.dram.insert(1, (0..8).flat_map(row).collect());
    let (before, weights) = (signed(&memory.dram[&0]), signed(&weights));
    let read: Vec<i32> = before[16..24].iter().chain(&before[32..40]).copied().collect();
    run(include_str!("data/outside.json"), &mut memory);
    for k in 0..8 {
        let sum = read.iter().zip(&weights[16 * k..]).map(|(x, w)| x * w).sum();
        let expected = (i32::from(rounded(sum, k)) + before[40 + k]).clamp(-128, 127);
        assert_eq!(i32::from(memory.dram[&0][8 + k].cast_signed()), expected, "channel {k}");
    }
}
