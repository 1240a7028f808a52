//! `ark-to-tl`: memory becomes values.
//!
//! Before: a module with one `ark.model`. After: `func.func @main` of `tl` ops in its place. The
//! arguments are the buffers that are read, or partly written, before they are entirely written;
//! the results are the buffers written. Both are whole, 1-D, of the element type of the first tensor on the
//! buffer, and named by the attribute `tl.name`; `tl.preserved` marks arguments that are not read
//! before part of them is written. `irc_ark_frontend` defines the semantics of the ops, as it does for
//! model files.
//!
//! With `accumulate=ark`, sums and products of 16-bit floats round as ARK's kernels do, in the order
//! that `docs/accumulation.md` describes.
//!
//! Requires a model that verifies; communication is rejected at each of its ops. Leaves only `tl` and
//! `func`; each op has the location of its ark op. A module that has no `ark.model` but a program of the
//! tensor level does not change.
use super::graph_to_tl::graph_to_tl_at;
use crate::attributes::GRAPH;
use irc_ark_format::model::Node;
pub use irc_ark_frontend::Accumulate;
use irc_ark_frontend::{ImportOptions, import};
use irc_diag::Diagnostic;
use irc_dialects::ark;
use irc_mlir::{
    BlockLike, Erase, OperationLike, OperationRef, OptionKind, Options, Pass, PassError,
    PassOption, PassResult, context_of, read,
};
use irc_tl::Results;

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
                help: "which written buffers to return: all, outputs (those not read afterwards), \
                       or names separated by commas",
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

    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let option = |name: &str, message: String| {
            PassError::at(&module, format!("option '{name}' of ark-to-tl: {message}"))
        };
        let results: Results =
            options.text("results").parse().map_err(|message| option("results", message))?;
        let accumulate = options.text("accumulate");
        let accumulate = Accumulate::named(accumulate).ok_or_else(|| {
            option("accumulate", format!("expected 'wide' or 'ark', found '{accumulate}'"))
        })?;
        lower(module, &ImportOptions { results, accumulate })
    }
}

/// Replaces the `ark.model` of a module by `func.func @main`.
fn lower(module: OperationRef<'_, '_>, options: &ImportOptions) -> PassResult {
    // The program was written at the tensor level.
    if read::body_ops(module).iter().any(|op| GRAPH.is_on(op)) {
        return Ok(());
    }
    let root = ark::model_op(module)?;
    let nodes = ark::nodes(root)?;
    let model = ark::model_of(root, &nodes)?;
    let graph = import(&model, options).map_err(|found| report(root, &nodes, &found))?;
    let context = context_of(&module);
    let locate = |path: &str| node_of(path, &nodes).map(|op| op.location());
    let written = graph_to_tl_at(context, &graph, "main", &locate)
        .map_err(|message| PassError::at(&root, message))?;
    let block = root.block().ok_or_else(|| PassError::at(&root, "stands in no block"))?;
    for function in read::body_ops(written.as_operation()) {
        block.append_operation((*function).clone());
    }
    root.erase();
    Ok(())
}

/// The op of the node that a path of the model, such as `$.Nodes[3].Op`, points into.
fn node_of<'c, 'a>(
    path: &str,
    nodes: &[(OperationRef<'c, 'a>, Node)],
) -> Option<OperationRef<'c, 'a>> {
    let (index, _) = path.strip_prefix("$.Nodes[")?.split_once(']')?;
    let (op, _) = nodes.get(index.parse::<usize>().ok()?)?;
    Some(*op)
}

/// Reports each diagnostic at the op of its node.
fn report(
    root: OperationRef<'_, '_>,
    nodes: &[(OperationRef<'_, '_>, Node)],
    found: &[Diagnostic],
) -> PassError {
    let mut failed = None;
    for Diagnostic { path, message, help, .. } in found {
        let op = path.as_deref().and_then(|path| node_of(path, nodes)).unwrap_or(root);
        let help = help.as_deref().map_or(String::new(), |help| format!("; {help}"));
        failed = Some(PassError::at(&op, format!("{message}{help}")));
    }
    failed.unwrap_or_else(|| PassError::at(&root, "cannot be lowered"))
}
