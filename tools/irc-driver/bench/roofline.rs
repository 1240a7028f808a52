//! The peak rates of one core: multiply-adds in registers, fused if the processor has them, and a copy through memory.
//!
//! Arithmetic is measured with code of our own backend for the same processor, so that a narrower
//! `--target-cpu` has a lower roof. The copy is several times as large as the last-level cache, so that it
//! measures memory: a model that fits in a cache may exceed it.
use crate::error::Error;
use irc::Program;
use irc::{
    Target,
    codegen::{Output, compile, link_library},
};
use irc_runtime::{Interface, Port};
use std::{fmt::Write, time::Instant};

/// Peak rates of one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Size of the vectors that it was measured with; `None` if it is given.
    pub vector_bytes: Option<u32>,
    /// Arithmetic, in 10^9 single-precision operations per second.
    pub gflops: f64,
    /// Memory traffic, read and written, in 10^9 bytes per second.
    pub bandwidth: f64,
}

impl Roofline {
    /// The minimum time in seconds for so many operations on so many bytes.
    pub fn least_seconds(&self, flops: u64, bytes: u64) -> f64 {
        (flops as f64 / self.gflops).max(bytes as f64 / self.bandwidth) / 1e9
    }
}

/// Number of independent chains of multiply-adds: more than latency times issue width of any processor.
const CHAINS: usize = 12;
const ROUNDS: u64 = 200_000;
/// Number of repetitions, of which the best counts, to exclude interruptions.
const REPEATS: usize = 20;

/// Measures the peak arithmetic of one core for a target.
pub fn measure_gflops(target: &Target) -> Result<f64, Error> {
    let lanes = target.vector_bytes() as usize / 4;
    let program = Program::from_library(&library(target, lanes)?)?;
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        program.run::<String>([]).map_err(|error| Error::Internal(error.to_string()))?;
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let operations = 2 * (CHAINS * lanes) as u64 * ROUNDS;
    Ok(operations as f64 / best / 1e9)
}

/// Measures the traffic of a copy between two buffers that are larger than any cache.
pub fn measure_bandwidth() -> f64 {
    let half = buffer_bytes(last_level_cache());
    let (source, mut target) = (vec![1u8; half], vec![0u8; half]);
    let mut best = f64::INFINITY;
    for _ in 0..REPEATS {
        let begin = Instant::now();
        target.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut target);
        best = best.min(begin.elapsed().as_secs_f64());
    }
    (2 * half) as f64 / best / 1e9
}

/// Size of each of the two buffers of the copy in bytes, given that of the last-level cache.
fn buffer_bytes(cache: usize) -> usize {
    cache.saturating_mul(4).clamp(128 << 20, 1 << 30)
}

/// Size in bytes of the largest cache of the first core, as reported by Linux; 0 if unknown.
fn last_level_cache() -> usize {
    let size = |index: u32| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().strip_suffix('K')?.parse::<usize>().ok()
    };
    (0..8).filter_map(size).max().unwrap_or(0) << 10
}

/// A library that runs the multiply-adds, with the interface of a compiled model.
fn library(target: &Target, lanes: usize) -> Result<Vec<u8>, Error> {
    let context = irc_dialects::new_context();
    let failed = |message: String| Error::Internal(format!("measuring the roofline: {message}"));
    let module = irc_mlir::parse_module(&context, &kernel(lanes, target.has(&["fma"])))
        .ok_or_else(|| failed("its kernel does not parse".into()))?;
    let object = compile(&module, target, Output::Object).map_err(|e| failed(e.to_string()))?;
    let linked = link_library([("roofline".to_owned(), object.as_slice())]);
    Ok(linked.map_err(|error| failed(error.to_string()))?.bytes)
}

/// The multiply-adds in the `llvm` dialect; the sums are outputs, so that they are not optimised away.
fn kernel(lanes: usize, are_fused: bool) -> String {
    let shape = vec![i64::try_from(CHAINS * lanes).unwrap_or(0)];
    let output = Port { name: "sums".into(), dtype: "f32".into(), shape, ..Port::default() };
    let interface = Interface { outputs: vec![output], ..Interface::default() };
    let metadata = interface.to_json();
    let (length, escaped) = (metadata.len() + 1, metadata.replace('"', "\\22"));
    let vector = format!("vector<{lanes}xf32>");
    let list = |item: &dyn Fn(usize) -> String| -> String {
        (0..CHAINS).map(|chain| format!(", {}", item(chain))).collect()
    };
    let types = list(&|_| vector.clone());
    let mut text = format!(
        "llvm.mlir.global external constant @irc_metadata(\"{escaped}\\00\") : !llvm.array<{length} x i8>\n\
         llvm.func @irc_run(%buffers: !llvm.ptr, %workspace: !llvm.ptr) -> i32 {{\n\
         %zero = llvm.mlir.constant(0 : i64) : i64\n\
         %one = llvm.mlir.constant(1 : i64) : i64\n\
         %rounds = llvm.mlir.constant({ROUNDS} : i64) : i64\n\
         %status = llvm.mlir.constant(0 : i32) : i32\n\
         %factor = llvm.mlir.constant(dense<0.5> : {vector}) : {vector}\n\
         %addend = llvm.mlir.constant(dense<0.25> : {vector}) : {vector}\n"
    );
    for chain in 0..CHAINS {
        let _ = writeln!(
            text,
            "%first{chain} = llvm.mlir.constant(dense<{chain}.0> : {vector}) : {vector}"
        );
    }
    let _ = writeln!(
        text,
        "llvm.br ^loop(%zero{} : i64{types})\n^loop(%round: i64{}):",
        list(&|chain| format!("%first{chain}")),
        list(&|chain| format!("%sum{chain}: {vector}"))
    );
    for chain in 0..CHAINS {
        // Without an instruction, a fused operation is a call.
        let _ = match are_fused {
            true => writeln!(
                text,
                "%next{chain} = llvm.intr.fma(%sum{chain}, %factor, %addend) : \
                 ({vector}, {vector}, {vector}) -> {vector}"
            ),
            false => writeln!(
                text,
                "%product{chain} = llvm.fmul %sum{chain}, %factor : {vector}\n\
                 %next{chain} = llvm.fadd %product{chain}, %addend : {vector}"
            ),
        };
    }
    let _ = writeln!(
        text,
        "%after = llvm.add %round, %one : i64\n\
         %more = llvm.icmp \"ult\" %after, %rounds : i64\n\
         llvm.cond_br %more, ^loop(%after{} : i64{types}), ^done\n^done:\n\
         %output = llvm.load %buffers : !llvm.ptr -> !llvm.ptr",
        list(&|chain| format!("%next{chain}"))
    );
    for chain in 0..CHAINS {
        let _ = writeln!(
            text,
            "%place{chain} = llvm.getelementptr %output[{}] : (!llvm.ptr) -> !llvm.ptr, f32\n\
             llvm.store %next{chain}, %place{chain} {{alignment = 4 : i64}} : {vector}, !llvm.ptr",
            chain * lanes
        );
    }
    text + "llvm.return %status : i32\n}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_the_two_times_counts() {
        let roofline = Roofline { vector_bytes: None, gflops: 100.0, bandwidth: 10.0 };
        assert_eq!(roofline.least_seconds(200_000_000_000, 1), 2.0);
        assert_eq!(roofline.least_seconds(1, 30_000_000_000), 3.0);
    }

    #[test]
    fn the_sums_are_those_of_the_chains() {
        let target = Target::host();
        let lanes = target.vector_bytes() as usize / 4;
        let program =
            Program::from_library(&library(&target, lanes).expect("links")).expect("loads");
        let sums = program.run::<String>([]).expect("runs");
        // x = x / 2 + 1/4 converges to 1/2.
        assert!(sums["sums"].to_f32().iter().all(|sum| (sum - 0.5).abs() < 1e-6));
    }

    #[test]
    fn rates_are_positive() {
        assert!(measure_gflops(&Target::host()).expect("measures") > 0.1);
        assert!(measure_bandwidth() > 0.1);
    }

    #[test]
    fn the_copy_is_larger_than_the_cache() {
        for cache in [0, 32 << 20, 256 << 20] {
            assert!(buffer_bytes(cache) >= 4 * cache && buffer_bytes(cache) >= 128 << 20);
        }
    }
}
