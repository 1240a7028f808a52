//! The variants of a task: the ways to divide its ops.
use super::{
    configs::{self, Protocol, reduces_rows},
    tile::{along_rows, in_pairs, least_wrong, suits, tile},
};
use crate::{
    Target,
    cost::{Machine, Work, machine},
    kernels,
};
use irc_ark_format::{
    model::{Family, Op, OpKind},
    plan::{Architecture, PlanOp, fuses, tiling::four},
};

/// Warps per processor with a matrix product, which needs most of the registers.
const WARPS_OF_PRODUCTS: i64 = 8;

/// Warps per processor otherwise: with more, a thread has too few registers for an unrolled loop.
const WARPS: i64 = 16;

/// Rows longer than this are too long for the warps of one task.
const MAX_ROW: i64 = 65_536;

/// Bytes of on-chip memory that the executor reserves.
const RESERVED_SRAM: i64 = 128;

/// Bytes of on-chip memory per block where the format defines no limit: every device has as much.
const SMALLEST_SRAM: i64 = 49_152;

/// Bytes of on-chip memory per block on V100 and on MI300.
const LARGER_SRAM: [(Architecture, i64); 2] =
    [(Architecture::Cuda70, 98_304), (Architecture::Rocm942, 65_536)];

/// Elements per elementwise task.
const ELEMENTS: [i64; 6] = [256, 512, 1024, 2048, 4096, 16_384];

/// Warps per elementwise task, or per row.
const TASK_WARPS: [i64; 4] = [1, 2, 4, 8];

/// The inputs that all choices depend on.
pub struct Setting<'a> {
    /// The target of the plan.
    pub target: &'a Target,
    /// The device whose rates are used.
    pub machine: Machine,
    /// Warps per processor.
    pub warps: i64,
    /// Bytes of on-chip memory that tasks may use.
    pub sram: i64,
    /// How ranks learn that data has arrived.
    pub protocol: Protocol,
}

impl<'a> Setting<'a> {
    /// The setting of a model's ops.
    pub fn new(target: &'a Target, ops: &[(usize, Op)]) -> Self {
        let multiplies = ops.iter().any(|(_, op)| op.kind == OpKind::Matmul);
        let architecture = target.architecture;
        let device = kernels::device(architecture);
        let larger = LARGER_SRAM.iter().find(|(known, _)| *known == device);
        let sram = device.max_sram().or(larger.map(|(_, bytes)| *bytes));
        let threads = 1024 / architecture.warp_threads();
        Self {
            target,
            machine: machine(architecture),
            warps: if multiplies { WARPS_OF_PRODUCTS } else { WARPS.min(threads) },
            sram: sram.unwrap_or(SMALLEST_SRAM) - RESERVED_SRAM,
            protocol: Protocol::of(ops),
        }
    }

    /// Number of tasks with these warps and bytes that fit on a processor side by side.
    pub fn slots(&self, warps: i64, sram: i64) -> i64 {
        let by_warps = (self.warps / warps.max(1)).max(1);
        if sram > 0 { (self.sram / sram).clamp(1, by_warps) } else { by_warps }
    }

    /// Nanoseconds of a barrier over all processors.
    pub fn barrier(&self) -> f64 {
        self.machine.barrier + self.machine.barrier_processor * self.target.processors as f64
    }

    /// The work of ops of one task.
    pub fn work(&self, ops: &[PlanOp]) -> Work {
        let (warps, sram) = needs(ops);
        Work::of(ops, warps, sram, &self.machine)
    }
}

/// Warps and bytes of on-chip memory of a task: the maximum over its ops.
pub fn needs(ops: &[PlanOp]) -> (i64, i64) {
    let most = |key: &str| ops.iter().filter_map(|op| op.config.int(key)).max();
    (most("NumWarps").unwrap_or(1), most("SramBytes").unwrap_or(0))
}

/// Every way to run ops as one task; empty if they cannot be one.
///
/// # Errors
/// A single op has no kernel.
pub fn variants(ops: &[&Op], setting: &Setting<'_>) -> Result<Vec<Vec<PlanOp>>, String> {
    if let [op] = ops {
        return alone(op, setting);
    }
    Ok(together(ops, setting))
}

fn together(ops: &[&Op], setting: &Setting<'_>) -> Vec<Vec<PlanOp>> {
    if ops.iter().any(|op| op.kind == OpKind::Matmul) {
        return products(ops, setting);
    }
    let found = tiles(ops, setting);
    if found.is_empty() { rows(ops, setting) } else { found }
}

fn alone(op: &Op, setting: &Setting<'_>) -> Result<Vec<Vec<PlanOp>>, String> {
    if op.kind.is_elementwise() {
        return Ok(tiles(&[op], setting));
    }
    if row_width(op).is_some_and(|width| suits(op, width, width)) {
        let found = rows(&[op], setting);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let single = |found: Vec<PlanOp>| found.into_iter().map(|op| vec![op]).collect();
    match op.kind.family() {
        Family::Product => configs::matmuls(op, setting.target).map(single),
        Family::Transposition => Ok(single(configs::transposes(op))),
        Family::Lookup => Ok(single(configs::embeddings(op))),
        _ => configs::alone(op, setting.target, setting.protocol).map(|op| single(vec![op])),
    }
}

/// The length of the rows an op reduces.
fn row_width(op: &Op) -> Option<i64> {
    reduces_rows(op).then(|| op.reads[0].shape.last().copied()).flatten()
}

/// Matrix products of one grid and elementwise ops on their tiles, with their warps.
fn products(ops: &[&Op], setting: &Setting<'_>) -> Vec<Vec<PlanOp>> {
    let Some(first) = ops.first().filter(|op| op.kind == OpKind::Matmul) else { return vec![] };
    let Ok(kernels) = configs::matmuls(first, setting.target) else { return vec![] };
    let fits = |kernel: PlanOp| -> Option<Vec<PlanOp>> {
        let &[height, width, _] = kernel.config.ints("TileShapeMNK")? else { return None };
        let warps = kernel.config.int("NumWarps")?;
        let config = |op: &&Op| match op.kind {
            OpKind::Matmul => Some(PlanOp { op: (*op).clone(), config: kernel.config.clone() })
                .filter(|_| configs::same_product(first, op)),
            _ => {
                let extent = *op.results.first()?.shape.last()?;
                let fits = op.kind.is_elementwise() && suits(op, width, extent);
                fits.then(|| configs::tiled(op, [height, width], warps))
            }
        };
        ops.iter().map(config).collect()
    };
    let found = kernels.into_iter().filter_map(fits);
    found.filter(|ops| fuses(ops)).collect()
}

/// Elementwise ops on one grid of tiles.
fn tiles(ops: &[&Op], setting: &Setting<'_>) -> Vec<Vec<PlanOp>> {
    let shape = |op: &Op| four(&op.results[0].shape);
    if !ops.iter().all(|op| op.kind.is_elementwise() && shape(op) == shape(ops[0])) {
        return vec![];
    }
    let mut known = vec![];
    let mut found = vec![];
    for elements in ELEMENTS {
        let tile = match (tile(ops, elements), ops) {
            (Some(tile), _) => tile,
            (None, [op]) => least_wrong(op, elements),
            (None, _) => return vec![],
        };
        for warps in TASK_WARPS {
            // A warp without a full vector of elements would only wait for the others.
            let is_idle = warps > 1 && tile[0] * tile[1] < warps * setting.machine.lanes * 8;
            if is_idle || known.contains(&(tile, warps)) {
                continue;
            }
            known.push((tile, warps));
            found.push(ops.iter().map(|op| configs::tiled(op, tile, warps)).collect());
        }
    }
    if ops.len() == 1 || found.first().is_some_and(|ops: &Vec<PlanOp>| fuses(ops)) {
        return found;
    }
    vec![]
}

/// Reductions along the last axis and elementwise ops, each task a row.
fn rows(ops: &[&Op], setting: &Setting<'_>) -> Vec<Vec<PlanOp>> {
    let of = |warps: i64| -> Option<Vec<PlanOp>> {
        let config = |op: &&Op| {
            let reduced = row_width(op);
            let width = reduced.or(op.results.first()?.shape.last().copied())?;
            let fits = along_rows(op, width, MAX_ROW);
            match reduced {
                _ if !fits => None,
                Some(_) => Some(configs::row(op, warps)),
                None if width == 1 && in_pairs(op) => Some(configs::tiled(op, [1, 2], warps)),
                None => op.kind.is_elementwise().then(|| configs::tiled(op, [1, width], warps)),
            }
        };
        ops.iter().map(config).collect()
    };
    let Some(first) = of(1) else { return vec![] };
    if ops.len() > 1 && !fuses(&first) {
        return vec![];
    }
    let width = ops.iter().filter_map(|op| row_width(op)).max().unwrap_or(1);
    let is_busy = |warps: &i64| *warps == 1 || width >= warps * setting.machine.lanes * 8;
    TASK_WARPS.into_iter().filter(is_busy).filter_map(of).collect()
}
