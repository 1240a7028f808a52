//! The config of each op: how its tasks cut it.
use super::{Target, tile::four};
use irc_ark_format::{
    model::{Op, OpKind, shape},
    plan::{
        Architecture, Config, ConfigValue, MatmulKernel, PlanOp, derived_tasks, matmul_kernels,
    },
};

/// The tile of ARK's transposition.
const TRANSPOSE_TILE: [i64; 2] = [8, 8];

/// A config of so many warps, bytes of SRAM and further keys, with its number of tasks.
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

/// A reduction along the last axis, a warp a row.
pub fn row(op: &Op) -> PlanOp {
    config(op, 1, 0, vec![("ImplType", ConfigValue::Text("WarpWise".into()))])
}

/// A reduction a thread for each element of the result, which reads element by element.
pub fn reduction(op: &Op) -> PlanOp {
    config(op, 1, 0, vec![("ImplType", ConfigValue::Text("ElementWise".into()))])
}

/// Whether an op reduces the last axis.
pub fn reduces_rows(op: &Op) -> bool {
    let last = op.reads.first().map(|tensor| tensor.rank() as i64 - 1);
    op.kind.is_reduce() && op.int_arg("Axis").map(i64::from) == last
}

/// Whether tiles of the result are all that an op's config says.
pub fn is_elementwise(op: &Op) -> bool {
    op.kind.is_unary() || op.kind.is_binary() || op.kind == OpKind::ScalarAssign
}

/// The config of an op by itself, other than an elementwise one or a row reduction.
///
/// # Errors
/// The architecture has no kernel for the op.
pub fn alone(op: &Op, target: &Target) -> Result<PlanOp, String> {
    match op.kind {
        OpKind::Matmul => matmul(op, target),
        OpKind::Transpose => Ok(tiled(op, TRANSPOSE_TILE, 1)),
        OpKind::Embedding => Ok(config(op, 1, 0, vec![])),
        OpKind::Noop => Ok(config(op, 1, 0, vec![("NumTasks", ConfigValue::Int(0))])),
        kind if kind.is_reduce() => Ok(reduction(op)),
        kind if kind.is_communication() => Ok(communication(op, target)),
        kind => Err(format!("no kernel of ARK computes {kind}")),
    }
}

/// Multiply-adds a processor does in the time it loads one row or column element of a tile from the
/// L2 cache: 312 TFLOP/s against about 5 TB/s of 2-byte elements on an A100 (NVIDIA A100 white
/// paper, 2020); TF32 halves the rate and doubles the bytes.
const PRODUCTS_PER_LOAD: i64 = 64;

/// The kernel of the shortest time: waves of tasks over the processors, each bound by products or
/// by loads; then the largest tile.
fn matmul(op: &Op, target: &Target) -> Result<PlanOp, String> {
    let architecture = target.architecture;
    let dtype = op.reads[0].dtype;
    let kernels = matmul_kernels(architecture, dtype);
    if kernels.is_empty() {
        return Err(no_kernel(architecture, &format!("Matmul of {dtype}")));
    }
    let transposed = |name| op.bool_arg(name).unwrap_or(false);
    let size = shape::mnk(
        &op.reads[0].padded_shape,
        &op.reads[1].padded_shape,
        transposed("TransposeInput"),
        transposed("TransposeOther"),
    );
    let [batch, channels, _, _] = four(&op.results[0].padded_shape);
    let divides = |kernel: &&MatmulKernel| {
        size.m % kernel.m == 0 && size.n % kernel.n == 0 && size.k % kernel.k == 0
    };
    let cost = |kernel: &&MatmulKernel| {
        let tasks = batch * channels * (size.m / kernel.m) * (size.n / kernel.n);
        let waves = (tasks + target.processors - 1) / target.processors;
        let (products, loads) = (kernel.m * kernel.n, PRODUCTS_PER_LOAD * (kernel.m + kernel.n));
        (waves * products.max(loads), -products, -kernel.k)
    };
    let Some(kernel) = kernels.iter().filter(divides).min_by_key(cost) else {
        return Err(format!(
            "no {} tile for Matmul of {dtype} divides M={} N={} K={}; pad the operands to \
             multiples of 64",
            architecture.name(),
            size.m,
            size.n,
            size.k
        ));
    };
    let tile = ConfigValue::Ints(vec![kernel.m, kernel.n, kernel.k]);
    Ok(config(op, kernel.warps, kernel.sram, vec![("TileShapeMNK", tile)]))
}

fn no_kernel(architecture: Architecture, what: &str) -> String {
    let name = architecture.name();
    let help = match architecture {
        Architecture::Any | Architecture::Cuda | Architecture::Rocm => {
            "; name a concrete architecture such as CUDA_80"
        }
        _ => "; ARK has them for CUDA_80 and ROCM_942",
    };
    format!("{what} has no kernel that is known on {name}{help}")
}

/// ARK's own defaults: one task through the proxy, or packets tile by tile.
fn communication(op: &Op, target: &Target) -> PlanOp {
    let text = |value: &str| ConfigValue::Text(value.to_owned());
    let proxy = ("ChannelType", text("Proxy"));
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
    let keys = match op.kind {
        OpKind::Send => vec![proxy, ("Signal", ConfigValue::Bool(true)), one],
        OpKind::Recv => vec![proxy, ("Wait", ConfigValue::Bool(true)), one],
        OpKind::SendPacket => [vec![packet], tiles(512).into()].concat(),
        OpKind::RecvPacket | OpKind::RecvReduceSendPacket => {
            [vec![packet], tiles(128).into()].concat()
        }
        OpKind::RecvReduceSend => tiles(128).into(),
        _ => vec![proxy, one],
    };
    config(op, 1, 0, keys)
}
