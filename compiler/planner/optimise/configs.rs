//! The config of each op: how it is divided into tasks.
use crate::{Target, kernels};
use irc_ark_format::{
    model::{DataType, Family, Op, OpKind, shape},
    plan::{Config, ConfigValue, MatmulKernel, PlanOp, derived_tasks, tiling::four},
};

/// Tiles of transpositions, ARK's own first, and their numbers of warps.
const TRANSPOSE_TILES: [([i64; 2], i64); 5] =
    [([8, 8], 1), ([16, 64], 1), ([32, 64], 1), ([64, 64], 2), ([64, 64], 4)];

/// A config with these warps, bytes of SRAM and further keys, and its number of tasks.
fn config(op: &Op, warps: i64, sram: i64, keys: Vec<(&str, ConfigValue)>) -> PlanOp {
    let mut config = Config::default()
        .with("NumWarps", ConfigValue::Int(warps))
        .with("SramBytes", ConfigValue::Int(sram));
    for (key, value) in keys {
        config = config.with(key, value);
    }
    let mut plan_op = PlanOp { op: op.clone(), config };
    if plan_op.config.get("NumTasks").is_none() {
        let tasks = derived_tasks(&plan_op).unwrap_or(1);
        plan_op.config = plan_op.config.with("NumTasks", ConfigValue::Int(tasks));
    }
    plan_op
}

/// An op whose tasks are tiles of its result.
pub fn tiled(op: &Op, tile: [i64; 2], warps: i64) -> PlanOp {
    config(op, warps, 0, vec![("Tile", ConfigValue::Ints(tile.to_vec()))])
}

/// Bytes of on-chip memory through which the warps of a row communicate.
const ROW_SRAM: i64 = 256;

/// A reduction along the last axis with `warps` warps per row.
pub fn row(op: &Op, warps: i64) -> PlanOp {
    let sram = if warps == 1 { 0 } else { ROW_SRAM };
    config(op, warps, sram, vec![("ImplType", ConfigValue::Text("WarpWise".into()))])
}

/// A reduction with one thread per element of the result, which reads element by element.
pub fn reduction(op: &Op) -> PlanOp {
    config(op, 1, 0, vec![("ImplType", ConfigValue::Text("ElementWise".into()))])
}

/// Whether an op reduces the last axis.
pub fn reduces_rows(op: &Op) -> bool {
    let last = op.reads.first().map(|tensor| tensor.rank() as i64 - 1);
    op.kind.is_reduce() && op.int_arg("Axis").map(i64::from) == last
}

/// The config of an op that can be divided in one way only.
///
/// # Errors
/// The architecture has no kernel for the op.
pub fn alone(op: &Op, target: &Target, protocol: Protocol) -> Result<PlanOp, String> {
    match op.kind.family() {
        Family::Idle => Ok(config(op, 1, 0, vec![("NumTasks", ConfigValue::Int(0))])),
        Family::Reduction => Ok(reduction(op)),
        Family::Communication(_) => Ok(communication(op, target, protocol)),
        _ => Err(format!("no kernel of ARK computes {}", op.kind)),
    }
}

/// The extents of a matrix product, with padding.
fn size(op: &Op) -> shape::Mnk {
    let transposed = |name| op.bool_arg(name).unwrap_or(false);
    shape::mnk(
        &op.reads[0].padded_shape,
        &op.reads[1].padded_shape,
        transposed("TransposeInput"),
        transposed("TransposeOther"),
    )
}

/// Whether two matrix products have the same kernels.
pub fn same_product(one: &Op, other: &Op) -> bool {
    size(one) == size(other)
        && one.reads[0].dtype == other.reads[0].dtype
        && one.results[0].padded_shape == other.results[0].padded_shape
}

/// A matrix product by every kernel whose tile divides it.
///
/// # Errors
/// There is none.
pub fn matmuls(op: &Op, target: &Target) -> Result<Vec<PlanOp>, String> {
    let architecture = target.architecture;
    let dtype = op.reads[0].dtype;
    let kernels = kernels::of(architecture, dtype);
    if kernels.is_empty() {
        return Err(kernels::no_kernel(architecture, dtype));
    }
    let size = size(op);
    let divides = |kernel: &MatmulKernel| {
        size.m % kernel.m == 0 && size.n % kernel.n == 0 && size.k % kernel.k == 0
    };
    let mut found: Vec<MatmulKernel> = kernels.into_iter().filter(divides).collect();
    if found.is_empty() && kernels::is_family(architecture) {
        found.push(dividing(size, dtype));
    }
    if found.is_empty() {
        return Err(kernels::no_tile(architecture, dtype, [size.m, size.n, size.k]));
    }
    Ok(found.into_iter().map(|kernel| matmul(op, kernel)).collect())
}

fn matmul(op: &Op, kernel: MatmulKernel) -> PlanOp {
    let tile = ConfigValue::Ints(vec![kernel.m, kernel.n, kernel.k]);
    config(op, kernel.warps, kernel.sram, vec![("TileShapeMNK", tile)])
}

/// A matrix product by every kernel that agrees with what is pinned.
///
/// # Errors
/// There is none.
pub fn pinned_matmuls(op: &Op, target: &Target, pinned: &Config) -> Result<Vec<PlanOp>, String> {
    let (architecture, dtype) = (target.architecture, op.reads[0].dtype);
    let wanted = kernels::KernelRequest::of(pinned);
    if wanted.tile.is_some() {
        return Ok(vec![matmul(op, kernels::pinned(architecture, dtype, wanted)?)]);
    }
    let mut found = matmuls(op, target)?;
    found.retain(|found| wanted.fits(kernels::KernelRequest::of(&found.config)));
    match found.is_empty() {
        true => Err(kernels::no_match(architecture, dtype, wanted)),
        false => Ok(found),
    }
}

/// A tile for a product that no kernel's tile divides; no known device has it.
fn dividing(size: shape::Mnk, dtype: DataType) -> MatmulKernel {
    let divisor = |extent: i64, most: i64| (1..=most.min(extent)).rev().find(|d| extent % d == 0);
    let (m, n) = (divisor(size.m, 64).unwrap_or(1), divisor(size.n, 64).unwrap_or(1));
    let k = divisor(size.k, 64).unwrap_or(1);
    let bytes = 2 * (m + n) * k * dtype.bytes().cast_signed();
    MatmulKernel { m, n, k, warps: 4, sram: (bytes + 63) / 64 * 64 }
}

/// The configs of a transposition, by tile.
pub fn transposes(op: &Op) -> Vec<PlanOp> {
    let [_, _, height, width] = four(&op.results[0].shape);
    let whole = |([h, w], _): &([i64; 2], i64)| *h == 8 || (height % h == 0 && width % w == 0);
    let tiles = TRANSPOSE_TILES.into_iter().filter(whole);
    tiles.map(|(tile, warps)| tiled(op, tile, warps)).collect()
}

/// The configs of an embedding: rows of a table, by warps per row.
pub fn embeddings(op: &Op) -> Vec<PlanOp> {
    [1, 2, 4, 8].into_iter().map(|warps| config(op, warps, 0, vec![])).collect()
}

/// How ranks learn that data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Each `Send` signals and each `Recv` waits: ARK's defaults.
    Signals,
    /// A `DeviceSync` follows the sends, none of which has a `SendDone`. A signal of a send would
    /// be taken for that of the barrier, so sends do not signal and nobody waits for them;
    /// processors write into the peer's memory themselves, as a proxy would be late.
    Barriers,
}

impl Protocol {
    /// The protocol of the ops of a model.
    pub fn of(ops: &[(usize, Op)]) -> Self {
        let has = |kind: OpKind| ops.iter().any(|(_, op)| op.kind == kind);
        match has(OpKind::DeviceSync) && !has(OpKind::SendDone) {
            true => Protocol::Barriers,
            false => Protocol::Signals,
        }
    }
}

/// Elements that a task writes to a peer without a proxy.
const SENT: i64 = 4096;

/// ARK's defaults, one task through the proxy or packets tile by tile; or what a protocol with
/// barriers needs.
fn communication(op: &Op, target: &Target, protocol: Protocol) -> PlanOp {
    let text = |value: &str| ConfigValue::Text(value.to_owned());
    let is_direct = protocol == Protocol::Barriers;
    let channel = ("ChannelType", text(if is_direct { "Sm" } else { "Proxy" }));
    let signals = ConfigValue::Bool(!is_direct);
    let one = ("NumTasks", ConfigValue::Int(1));
    let is_rocm = target.architecture.warp_threads() == 64;
    let packet = if is_rocm { "mscclpp::LL8Packet" } else { "mscclpp::LL16Packet" };
    let packet = ("PacketType", text(packet));
    let tiles = |width: i64| {
        let [n, c, h, w] = four(&op.results[0].shape);
        let tasks = n * c * h * ((w + width - 1) / width);
        let tile = ConfigValue::Ints(vec![1, width]);
        [("Tile", tile), ("NumTasks", ConfigValue::Int(tasks))]
    };
    // The longest part of a row that divides it, in whole packets of so many elements: reductions
    // proceed by whole tiles, past the end of a row if necessary.
    let part = |longest: i64, packet: i64| {
        let width = op.results[0].shape.last().copied().unwrap_or(1);
        let fits = |tile: &i64| width % tile == 0 && tile % packet == 0;
        (1..=longest.min(width)).rev().find(fits)
    };
    let whole = || part(SENT, 1).unwrap_or(1);
    let payload = if is_rocm { 4 } else { 8 };
    let in_packet = payload / op.results[0].dtype.bytes().cast_signed();
    let mut warps = 1;
    let keys = match op.kind {
        OpKind::Send if is_direct => {
            warps = 8;
            [vec![channel, ("Signal", signals)], tiles(whole()).into()].concat()
        }
        OpKind::Send => vec![channel, ("Signal", signals), one],
        OpKind::Recv => vec![channel, ("Wait", signals), one],
        OpKind::SendPacket => [vec![packet], tiles(512).into()].concat(),
        OpKind::RecvPacket => [vec![packet], tiles(128).into()].concat(),
        OpKind::RecvReduceSendPacket => {
            let width = part(128, in_packet.max(1)).unwrap_or(128);
            [vec![packet], tiles(width).into()].concat()
        }
        OpKind::RecvReduceSend if is_direct => {
            warps = 8;
            tiles(whole()).into()
        }
        OpKind::RecvReduceSend => tiles(part(128, 1).unwrap_or(1)).into(),
        _ => vec![channel, one],
    };
    config(op, warps, 0, keys)
}
