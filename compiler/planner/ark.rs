//! ARK's own planner, reproduced: one op after another, each on processors from 0.
//!
//! `Planner::Impl::plan` of ARK at commit `d8bbaebd`, with the default config of each op. Its bugs
//! are reproduced too: errors that the checks of the plan format report are warnings here.
use crate::{
    NodeDiagnostic, Planned, Target,
    kernels::{self, KernelRequest},
    rules::{Pins, set},
};
use irc_ark_format::{
    model::{DataType, Exchange, Family, Model, Op, OpKind, shape},
    plan::{
        self, Architecture, Config, ConfigValue, MatmulKernel, Plan, PlanOp, ProcessorGroup, Range,
        ResourceGroup, TaskGroup, TaskInfo, tiling::four,
    },
};

/// Plans a model as ARK would, with the pins of each node.
///
/// # Errors
/// Ops that ARK's planner rejects, in its words.
pub(crate) fn plan(
    model: &Model,
    target: &Target,
    pins: &[Pins],
) -> Result<Planned, Vec<NodeDiagnostic>> {
    let mut builder = PlanBuilder::new(model, target);
    let mut errors = vec![];
    for (node, pins) in pins.iter().enumerate() {
        let op = &model.nodes[node].op;
        if op.is_virtual {
            continue;
        }
        match config(op, target.architecture, pins)
            .and_then(|config| builder.add(node, op, config, pins))
        {
            Ok(()) => {}
            Err(message) => errors.push(NodeDiagnostic { node: Some(node), message }),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let warnings = crate::diagnostics(&plan::check(&builder.plan), &builder.nodes);
    Ok(Planned { plan: builder.plan, nodes: builder.nodes, warnings })
}

/// The plan so far.
struct PlanBuilder {
    plan: Plan,
    nodes: Vec<Vec<usize>>,
    processors: i64,
    /// The task to which the previous op is pinned.
    task: Option<String>,
}

impl PlanBuilder {
    fn new(model: &Model, target: &Target) -> Self {
        let plan = Plan {
            rank: model.rank,
            world_size: model.world_size,
            architecture: target.architecture,
            num_processors: 1,
            num_warps_per_processor: 1,
            task_infos: vec![],
            processor_groups: vec![],
        };
        Self { plan, nodes: vec![], processors: target.processors, task: None }
    }

    fn add(&mut self, node: usize, op: &Op, config: Config, pins: &Pins) -> Result<(), String> {
        let need = |key: &str| {
            let missing = || rejection(format!("Config field not found: {key} in {}", op.name));
            config.int(key).ok_or_else(missing)
        };
        let (warps, tasks, sram) = (need("NumWarps")?, need("NumTasks")?, need("SramBytes")?);
        let granularity = config.int("Granularity").unwrap_or(1);
        let plan_op = PlanOp { op: op.clone(), config };
        let joins = pins.task.is_some() && pins.task == self.task;
        self.task.clone_from(&pins.task);
        if let Some(info) = self.plan.task_infos.last_mut().filter(|_| joins) {
            info.num_warps = info.num_warps.max(warps);
            info.sram_bytes = info.sram_bytes.max(sram);
            info.ops.push(plan_op);
            self.nodes.last_mut().into_iter().for_each(|nodes| nodes.push(node));
            return Ok(());
        }
        let id = self.plan.task_infos.len() as i64;
        let ops = vec![plan_op];
        self.plan.task_infos.push(TaskInfo { id, num_warps: warps, sram_bytes: sram, ops });
        self.nodes.push(vec![node]);
        let task_range = Range::new(0, tasks);
        let processors = Range::new(0, self.processors.min(tasks));
        let group = ResourceGroup {
            processor_range: pins.processor_range.unwrap_or(processors),
            warp_range: pins.warp_range.unwrap_or(Range::new(0, warps)),
            sram_range: pins.sram_range.unwrap_or(Range::new(0, sram)),
            task_groups: vec![TaskGroup { task_id: id, task_range, granularity }],
        };
        let plan = &mut self.plan;
        plan.num_processors = plan.num_processors.max(group.processor_range.end);
        plan.num_warps_per_processor = plan.num_warps_per_processor.max(group.warp_range.end);
        let processor_range = group.processor_range;
        let resource_groups = vec![group];
        plan.processor_groups.push(ProcessorGroup { processor_range, resource_groups });
        Ok(())
    }
}

/// An error of ARK's planner, marked as such to distinguish it from our own.
fn rejection(message: String) -> String {
    format!("ARK's planner rejects this model: {message}")
}

/// The pinned config, alone or laid over the default.
fn config(op: &Op, architecture: Architecture, pins: &Pins) -> Result<Config, String> {
    let Some(pinned) = &pins.config else {
        return default_config(op, architecture).map_err(rejection);
    };
    if !pins.is_merged {
        return Ok(pinned.clone());
    }
    let wanted = KernelRequest::of(pinned);
    let mut config = match op.kind {
        // It is not checked that ARK's own tile divides the product.
        OpKind::Matmul if wanted.tile.is_some() => {
            let dtype = op.results[0].dtype;
            let whole =
                wanted.whole().map_or_else(|| kernels::pinned(architecture, dtype, wanted), Ok);
            tiled_by(whole?, 0)
        }
        _ => default_config(op, architecture).map_err(rejection)?,
    };
    for (key, value) in &pinned.0 {
        set(&mut config, key, value.clone());
    }
    // Other tiles change the number of tasks.
    if pinned.get("NumTasks").is_none() {
        let plan_op = PlanOp { op: op.clone(), config };
        let tasks = plan::derived_tasks(&plan_op);
        config = plan_op.config;
        tasks.into_iter().for_each(|tasks| set(&mut config, "NumTasks", ConfigValue::Int(tasks)));
    }
    Ok(config)
}

/// ARK's default config of an op, its keys in ARK's order.
///
/// # Errors
/// The messages of ARK's exceptions.
pub(crate) fn default_config(op: &Op, architecture: Architecture) -> Result<Config, String> {
    let int = ConfigValue::Int;
    let text = |value: &str| ConfigValue::Text(value.to_owned());
    let keys = |keys: Vec<(&str, ConfigValue)>| {
        Ok(Config(keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()))
    };
    let plain =
        |tasks: i64| vec![("NumWarps", int(1)), ("SramBytes", int(0)), ("NumTasks", int(tasks))];
    let [n, c, h, w] = op.results.first().map_or([1; 4], |result| four(&result.shape));
    let tiles =
        |tile: [i64; 2]| n * c * ((h + tile[0] - 1) / tile[0]) * ((w + tile[1] - 1) / tile[1]);
    let tiled = |tile: [i64; 2]| {
        vec![
            ("NumWarps", int(1)),
            ("SramBytes", int(0)),
            ("Tile", ConfigValue::Ints(tile.to_vec())),
            ("NumTasks", int(tiles(tile))),
        ]
    };
    let packet = match architecture {
        Architecture::Rocm | Architecture::Rocm90a | Architecture::Rocm942 => "mscclpp::LL8Packet",
        _ => "mscclpp::LL16Packet",
    };
    let packets = |tile| [vec![("PacketType", text(packet))], tiled(tile)].concat();
    let one = || vec![("NumTasks", int(1)), ("NumWarps", int(1)), ("SramBytes", int(0))];
    let channel = || ("ChannelType", text("Proxy"));
    match op.kind.family() {
        Family::Product => matmul(op, architecture),
        Family::Transposition => keys(tiled([8, 8])),
        Family::Lookup => keys(plain(n * c * h)),
        Family::View | Family::Idle => keys(plain(0)),
        Family::Elementwise if h > w => keys(tiled([64, 1])),
        Family::Elementwise => keys(tiled([1, 64])),
        Family::Reduction => {
            let rank = op.reads.first().map_or(0, |read| read.rank() as i64);
            let axis = op.int_arg("Axis").map_or(-1, i64::from);
            let is_last = axis == rank - 1 || axis == -1;
            let (name, sram) = if is_last { ("WarpWise", 256) } else { ("ElementWise", 0) };
            keys(vec![
                ("NumWarps", int(1)),
                ("ImplType", text(name)),
                ("SramBytes", int(sram)),
                ("NumTasks", int(n * c * h * w)),
            ])
        }
        Family::Communication(_) if op.kind == OpKind::Send => {
            let signal = ("Signal", ConfigValue::Bool(true));
            keys([vec![channel(), signal], one()].concat())
        }
        Family::Communication(_) if op.kind == OpKind::Recv => {
            keys([vec![channel()], one(), vec![("Wait", ConfigValue::Bool(true))]].concat())
        }
        Family::Communication(_) if op.kind == OpKind::SendPacket => keys(packets([1, 512])),
        Family::Communication(Exchange::Signals) => keys([vec![channel()], one()].concat()),
        Family::Communication(Exchange::Packets) => keys(packets([1, 128])),
        Family::Communication(Exchange::Data) => keys(tiled([1, 128])),
    }
}

fn matmul(op: &Op, architecture: Architecture) -> Result<Config, String> {
    let dtype = op.results[0].dtype;
    let transposed = |name| op.bool_arg(name).unwrap_or(false);
    let size = shape::mnk(
        &op.reads[0].padded_shape,
        &op.reads[1].padded_shape,
        transposed("TransposeInput"),
        transposed("TransposeOther"),
    );
    if !matches!(dtype, DataType::Fp32 | DataType::Fp16 | DataType::Bf16) {
        return Err(format!("Unsupported data type: {dtype}"));
    }
    let (warps, sram, depth) = match (architecture, dtype) {
        (Architecture::Any, _) => {
            return Err(format!("Unsupported architecture: {}", architecture.name()));
        }
        (Architecture::Cuda80, DataType::Fp32) => (8, 147_456, 32),
        (Architecture::Cuda80, _) => (8, 147_456, 64),
        (Architecture::Rocm942, DataType::Fp32) => (4, 24_672, 16),
        (Architecture::Rocm942, DataType::Fp16) => (4, 24_672, 32),
        (Architecture::Rocm942, _) => (4, 24_624, 32),
        _ => {
            let name = architecture.name();
            return Err(format!(
                "no default config of Matmul on {name} (InternalError: Unexpected error)"
            ));
        }
    };
    let [m, n] = if size.m > size.n { [256, 128] } else { [128, 256] };
    if size.m % m != 0 || size.n % n != 0 {
        return Err(format!(
            "output padded shape MNK <{}, {}, {}> should be divisible by tile shape MNK \
             [{m},{n},{depth}]",
            size.m, size.n, size.k
        ));
    }
    let [batch, channels, _, _] = four(&op.results[0].shape);
    let tasks = batch * channels * (size.m / m) * (size.n / n);
    Ok(tiled_by(MatmulKernel { m, n, k: depth, warps, sram }, tasks))
}

/// The config of a matrix product by a kernel.
fn tiled_by(kernel: MatmulKernel, tasks: i64) -> Config {
    Config::default()
        .with("NumWarps", ConfigValue::Int(kernel.warps))
        .with("SramBytes", ConfigValue::Int(kernel.sram))
        .with("TileShapeMNK", ConfigValue::Ints(vec![kernel.m, kernel.n, kernel.k]))
        .with("NumTasks", ConfigValue::Int(tasks))
}
