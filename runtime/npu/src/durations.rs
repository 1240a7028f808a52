//! Durations of instructions: the formulas of the published traces.

use std::collections::BTreeMap;
use std::fmt;

use irc_npu::layout::wl0_row;
use irc_npu::registers::Registers;
use irc_npu::{Core, Engine, Instruction, Op, Program};

/// Constants of the formulas.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Cycles of an instruction that writes registers.
    pub config: u64,
    /// Cycles of a control instruction; published traces have a random number from 30 to 38.
    pub control: u64,
    /// Bytes that a core moves from or to DRAM per cycle.
    pub dram: f64,
    /// Size in bytes of a movement above which each further byte costs [`Rates::long_cost`] more.
    pub long: u64,
    /// Additional cycles per byte of a long movement.
    pub long_cost: f64,
    /// Cycles of a load in addition to moving.
    pub load: u64,
    /// Cycles of a store in addition to moving.
    pub store: u64,
    /// Cycles of a convolution or vector operation in addition to its part of the workload.
    pub compute: u64,
    /// Cycles of a transfer between cores in addition to moving; chosen by this project.
    pub transfer: u64,
}

impl Default for Rates {
    /// The constants of the published traces: 16 GiB/s at 1 GHz. The additional cost of long movements
    /// is fitted: it reproduces all 1,018 movements of the published traces, of 45 sizes, to the cycle.
    fn default() -> Self {
        Self {
            config: 21,
            control: 34,
            dram: (16u64 << 30) as f64 / 1e9,
            long: 128 << 10,
            long_cost: 1.0955e-5,
            load: 20,
            store: 30,
            compute: 20,
            transfer: 20,
        }
    }
}

impl Rates {
    /// Cycles of moving bytes between a core and DRAM without other traffic.
    pub fn moving(&self, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let long = bytes.saturating_sub(self.long) as f64 * self.long_cost;
        (bytes as f64 / self.dram + long + 1.0) as u64
    }
}

/// Cycles of the workloads of a schedule, by number of the core, by workload.
pub type WorkloadTimes = BTreeMap<(u32, i32), f64>;

/// The resources that an instruction occupies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// Its engine, for a number of cycles.
    Cycles(u64),
    /// DRAM, and its engine for some additional cycles.
    Dram {
        /// Bytes moved.
        bytes: u64,
        /// Cycles in addition to moving.
        extra: u64,
    },
    /// The route to another core, and engines at both ends.
    Transfer {
        /// Bytes moved.
        bytes: u64,
    },
}

/// Why the duration of an instruction is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoTime {
    /// Number of the core.
    pub core: u32,
    /// Index of the instruction.
    pub index: usize,
    /// What is missing.
    pub message: String,
}

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} of core {}: {}", self.index + 1, self.core, self.message)
    }
}

impl std::error::Error for NoTime {}

/// The work of every instruction of a program, by index of the core.
///
/// # Errors
/// The first instruction whose registers are not written or whose workload has no time.
pub fn works(
    program: &Program,
    times: &WorkloadTimes,
    rates: &Rates,
) -> Result<Vec<Vec<Work>>, NoTime> {
    program.cores.iter().map(|core| of_core(core, times, rates)).collect()
}

fn of_core(core: &Core, times: &WorkloadTimes, rates: &Rates) -> Result<Vec<Work>, NoTime> {
    let counts = counts(core);
    let mut registers = Registers::default();
    let mut works = Vec::with_capacity(core.code.len());
    for (index, instruction) in core.code.iter().enumerate() {
        let fault = |message: String| NoTime { core: core.id, index, message };
        registers.write(instruction).map_err(|message| fault(message.into()))?;
        let work = match instruction.op.engine() {
            _ if instruction.op.is_config() => Work::Cycles(rates.config),
            Engine::Ct => Work::Cycles(rates.control),
            Engine::Pe | Engine::Vp => {
                let workload = instruction.origin.wkl;
                let time = times.get(&(core.id, workload)).ok_or_else(|| {
                    fault(format!("the schedule states no time for workload {workload}"))
                })?;
                let share = time / f64::from(counts[&workload]);
                // A time is a number of cycles; negative values and NaN saturate to 0.
                Work::Cycles(share.round() as u64 + rates.compute)
            }
            _ => movement(&registers, instruction, rates)
                .map_err(|name| fault(format!("no `{name}` precedes for its registers")))?,
        };
        works.push(work);
    }
    Ok(works)
}

/// Number of convolutions and vector operations of each workload.
fn counts(core: &Core) -> BTreeMap<i32, u32> {
    let mut counts = BTreeMap::new();
    for Instruction { op, origin, .. } in &core.code {
        if matches!(op, Op::PeConv(_) | Op::VpSelf(_) | Op::VpPool(_)) {
            *counts.entry(origin.wkl).or_default() += 1;
        }
    }
    counts
}

fn movement(
    registers: &Registers,
    instruction: &Instruction,
    rates: &Rates,
) -> Result<Work, &'static str> {
    let dram = |bytes, extra| Work::Dram { bytes, extra };
    Ok(match &instruction.op {
        Op::LdaMov(op) => {
            let cfg = of_set(&registers.lda, op.rs).ok_or("lda_cfg")?;
            let [n, c, h, w] = op.tile;
            dram(volume(&[n, h, w]).saturating_mul(cfg.df.pixel(c)), rates.load)
        }
        Op::StaMov(op) => {
            let cfg = of_set(&registers.sta, op.rs).ok_or("sta_cfg")?;
            dram(volume(&op.tile).saturating_mul(cfg.df.bytes()), rates.store)
        }
        Op::LdwMov(op) => {
            let cfg = of_set(&registers.ldw, op.rs).ok_or("ldw_cfg")?;
            dram(weight_bytes(op.w_size[0], wl0_row(cfg.df, small(cfg.sw_size))), rates.load)
        }
        Op::LwMov(op) if op.ss == 1 => {
            let cfg = registers.lw.as_ref().ok_or("lw_cfg")?;
            dram(weight_bytes(op.w_size[0], wl0_row(cfg.df, small(cfg.sw_size))), rates.load)
        }
        Op::SoMov(op) if op.tile != [0; 4] => {
            let cfg = registers.so.as_ref().ok_or("so_cfg")?;
            let [n, c, h, w] = op.tile;
            Work::Transfer { bytes: volume(&[n, h, w]).saturating_mul(cfg.df.pixel(c)) }
        }
        Op::SoMov(_) | Op::SiMov(_) => Work::Transfer { bytes: 0 },
        // Movements within the core are free: copies, weights from L2.
        _ => Work::Cycles(0),
    })
}

fn of_set<T>(sets: &[Option<T>], number: u32) -> Option<&T> {
    sets.get(number as usize)?.as_ref()
}

fn volume(shape: &[u32]) -> u64 {
    shape.iter().fold(1, |all: u64, size| all.saturating_mul(u64::from(*size)))
}

fn weight_bytes(rows: u32, row: i64) -> u64 {
    u64::from(rows).saturating_mul(row.unsigned_abs())
}

/// Limits sizes so that a row cannot overflow; no weights are larger.
fn small(size: [u32; 3]) -> [u32; 3] {
    size.map(|size| size.min(1 << 20))
}
