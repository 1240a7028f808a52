//! `ark-to-tl`: memory becomes values.
//!
//! Before: a module with one `ark.model`. After: `func.func @main` of `tl` ops in its place. The
//! arguments are the buffers that are read, or written in part, before they are entirely written;
//! the results are the buffers written; both by ascending id, each whole and 1-D in the type of the
//! first tensor on it, named by the attribute `irc.name`; `irc.kept` marks arguments that nothing
//! reads before some of them is written. Nodes run in list order, so hazards that only memory shows
//! come out right. Virtual ops name memory and leave nothing behind.
//!
//! With `accumulate=ark`, sums and products of 16-bit floats round as ARK's kernels do, in the order
//! that `docs/accumulation.md` gives.
//!
//! Requires a model that verifies; communication is refused. Leaves `tl` and `func` only; each op
//! has the location of its ark op and the node's id in `ark.node`.
mod access;
mod accumulate;
mod emit;
mod memory;
mod ops;

use access::Buffers;
pub(crate) use access::computed;
pub(crate) use emit::{Emitter, Val, ty};
use irc_ark_format::model::Node;
use irc_dialects::ark;
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Erase, Module, OpSpec, OperationLike, OperationRef,
    OptionKind, Options, Pass, PassError, PassOption, PassResult, RegionLike, Type, Value, attr,
    block_with, context_of, function, read,
};
use memory::Memory;
pub(crate) use ops::evaluate;

/// The pass `ark-to-tl`.
pub struct ArkToTl;

impl Pass for ArkToTl {
    fn name(&self) -> &'static str {
        "ark-to-tl"
    }

    fn description(&self) -> &'static str {
        "lower an ARK model to a function on values: whole buffers in, written buffers out"
    }

    fn options(&self) -> &'static [PassOption] {
        &[
            PassOption {
                name: "results",
                help: "which written buffers to return: all, or outputs (those not read afterwards)",
                default: "all",
                kind: OptionKind::String,
            },
            PassOption {
                name: "accumulate",
                help: "how sums accumulate: wide, in f32, or ark, as ARK's kernels on CUDA_80 do",
                default: "wide",
                kind: OptionKind::String,
            },
        ]
    }

    fn dialects(&self) -> &'static [&'static str] {
        &["func", "tl"]
    }

    fn run(&self, op: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let results = match options.text("results") {
            "all" => Results::All,
            "outputs" => Results::Outputs,
            other => {
                let message = format!(
                    "option 'results' of ark-to-tl: expected 'all' or 'outputs', found '{other}'"
                );
                return Err(PassError::at(&op, message));
            }
        };
        let accumulate = match options.text("accumulate") {
            "wide" => Accumulate::Wide,
            "ark" => Accumulate::Ark,
            other => {
                let message = format!(
                    "option 'accumulate' of ark-to-tl: expected 'wide' or 'ark', found '{other}'"
                );
                return Err(PassError::at(&op, message));
            }
        };
        lower(op, results, accumulate)
    }
}

/// How sums and products accumulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// In `f32`, rounding once at the end.
    #[default]
    Wide,
    /// In the precision and order of ARK's kernels on CUDA_80.
    Ark,
}

impl Accumulate {
    /// The name that the pass `ark-to-tl` takes.
    pub fn name(self) -> &'static str {
        match self {
            Accumulate::Wide => "wide",
            Accumulate::Ark => "ark",
        }
    }
}

/// Which written buffers the function returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Every buffer written.
    All,
    /// Buffers that no node reads after their last write.
    Outputs,
}

/// Replaces the `ark.model` of a module by `func.func @main`.
///
/// # Errors
/// After a diagnostic at each op that cannot be lowered.
fn lower(module: OperationRef<'_, '_>, results: Results, accumulate: Accumulate) -> PassResult {
    // A program that was written at the tensor level is there already.
    if read::body_ops(module).iter().any(|op| op.has_attribute("irc.graph")) {
        return Ok(());
    }
    let model = ark::model_op(module)?;
    let nodes = ark::nodes(model)?;
    let plain: Vec<&Node> = nodes.iter().map(|(_, node)| node).collect();
    let buffers = Buffers::of(&plain).map_err(|message| PassError::at(&model, message))?;
    refuse_communication(&nodes)?;
    let returned = match results {
        Results::All => buffers.written(),
        Results::Outputs => buffers.outputs(),
    };
    let context = context_of(&module);
    let main = declare(context, module, model, &buffers, &returned);
    let block = entry(main);
    let mut memory = Memory::new(&buffers, arguments(&buffers, block));
    for (op, node) in &nodes {
        let mut emitter = Emitter::new(context, block, op.location(), Some(node.id));
        ops::lower(&mut emitter, &mut memory, &node.op, accumulate)
            .map_err(|message| PassError::at(op, message))?;
    }
    let emitter = Emitter::new(context, block, model.location(), None);
    let values: Vec<Value<'_, '_>> =
        returned.iter().map(|id| memory.result(&emitter, *id).value).collect();
    OpSpec::new(context, "func.return", model.location()).operands(&values).append(&block);
    model.erase();
    Ok(())
}

/// Reports every node that communicates.
fn refuse_communication(nodes: &[(OperationRef<'_, '_>, Node)]) -> PassResult {
    let mut result = Ok(());
    for (op, node) in nodes.iter().filter(|(_, node)| node.op.kind.is_communication()) {
        let message = format!(
            "{} '{}' of node {}: communication is not lowered yet",
            node.op.kind, node.op.name, node.id
        );
        result = Err(PassError::at(op, message));
    }
    result
}

/// Adds `func.func @main` with an empty body.
fn declare<'c: 'a, 'a>(
    context: &'c Context,
    module: OperationRef<'c, 'a>,
    model: OperationRef<'c, 'a>,
    buffers: &Buffers,
    returned: &[u64],
) -> OperationRef<'c, 'a> {
    let types = |ids: &[u64]| -> Vec<Type<'c>> {
        ids.iter().map(|id| emit::ty(context, buffers.dtype(*id), &buffers.shape(*id))).collect()
    };
    let named = |id: u64, kept: bool| {
        let kept = if kept { ", irc.kept" } else { "" };
        attr::parse(context, &format!("{{irc.name = \"buffer_{id}\"{kept}}}"))
    };
    let arguments = buffers.arguments();
    let (_, block): (_, Block<'c>) = block_with(&types(&arguments), model.location());
    let inputs = types(&arguments);
    let given: Vec<_> = arguments.iter().map(|id| named(*id, buffers.is_kept(*id))).collect();
    let results: Vec<_> = returned.iter().map(|id| named(*id, false)).collect();
    function(context, "main", &inputs, &types(returned), block, model.location())
        .attr("arg_attrs", attr::array(context, &given))
        .attr("res_attrs", attr::array(context, &results))
        .append(&entry(module))
}

/// The single block of a module or a function.
fn entry<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> BlockRef<'c, 'a> {
    let block = op.region(0).ok().and_then(|region| region.first_block());
    block.expect("modules and functions just built have a block")
}

/// The buffers the function is given, by id.
fn arguments<'c: 'a, 'a>(buffers: &Buffers, block: BlockRef<'c, 'a>) -> Vec<(u64, Val<'c, 'a>)> {
    let argument = |(index, id): (usize, u64)| {
        let value = block.argument(index).expect("one block argument for each buffer").into();
        (id, Val { value, dtype: buffers.dtype(id), shape: buffers.shape(id) })
    };
    buffers.arguments().into_iter().enumerate().map(argument).collect()
}

/// Lowers a module outside a pass pipeline.
///
/// # Errors
/// After a diagnostic at each op that cannot be lowered.
pub fn run(module: &Module<'_>, results: Results) -> PassResult {
    let context = context_of(&module.as_operation());
    for dialect in ArkToTl.dialects() {
        context.get_or_load_dialect(dialect);
    }
    lower(module.as_operation(), results, Accumulate::Wide)
}
