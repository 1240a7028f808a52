//! `common-ir-to-tl`: lowers the operators of Common IR to `tl`.
//!
//! Before: a module with one `common_ir.module` that has a graph and needs no imports. After:
//! `func.func @main` of `tl` ops in its place, with a private function for each nested graph. Arguments
//! and results have the names of the graph's inputs and outputs; an input with a default from an
//! initializer is not an argument. Large constants are arguments with `tl.weight`, and their elements
//! are in `tl.value`. A module without a `common_ir.module` does not change.
//!
//! Operators that cannot be lowered are errors at their nodes, all reported at once. External data is
//! read from the folder that the option `external-data` names.
use super::graph_to_tl::{give_values, graph_to_tl};
use super::prepare_products::{ByteSums, prepare_products};
use irc_common_format::{Files, find_external, model::TensorData};
use irc_diag::Sink;
use irc_dialects::common_ir::{Exported, export, module_op};
use irc_mlir::{
    BlockLike, Erase, OperationLike, OperationRef, OptionKind, Options, Pass, PassError,
    PassOption, PassResult, context_of, read,
};
use irc_onnx_ops::{Calls, ImportOptions, Imported, NodeDiagnostic, import, unsupported};
use std::path::Path;

/// The pass `common-ir-to-tl`, which reads external data through these files.
pub struct CommonIrToTl<F>(pub F);

impl<F: Files + 'static> Pass for CommonIrToTl<F> {
    fn name(&self) -> &'static str {
        "common-ir-to-tl"
    }

    fn description(&self) -> &'static str {
        "lower a Common IR or ONNX graph to a function on values"
    }

    fn options(&self) -> &'static [PassOption] {
        &[
            PassOption {
                name: "external-data",
                help: "folder of the files that hold elements of tensors",
                default: "",
                kind: OptionKind::String,
            },
            PassOption {
                name: "functions",
                help: "what becomes of calls of functions: inline, or outline, one function for all",
                default: "inline",
                kind: OptionKind::String,
            },
            PassOption {
                name: "ignore-control-inputs",
                help: "let nodes run before those that their control inputs name",
                default: "false",
                kind: OptionKind::Boolean,
            },
            PassOption {
                name: "byte-sums",
                help: "how kernels add products of bytes of images of open sizes: dots or floats",
                default: "floats",
                kind: OptionKind::String,
            },
        ]
    }

    fn dialects(&self) -> &'static [&'static str] {
        &["func", "tl"]
    }

    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let is_graph = |op: &OperationRef<'_, '_>| read::op_name(op) == "common_ir.module";
        if !read::body_ops(module).iter().any(is_graph) {
            return Ok(());
        }
        let root = module_op(module)?;
        let mut exported = export(root)?;
        let folder = Some(options.text("external-data")).filter(|folder| !folder.is_empty());
        read_external(&mut exported, folder.map(Path::new), &self.0)?;
        let calls = match options.text("functions") {
            "inline" => Calls::Inlined,
            "outline" => Calls::Outlined,
            other => {
                let message = format!(
                    "option 'functions' of common-ir-to-tl: expected 'inline' or 'outline', found \
                     '{other}'"
                );
                return Err(PassError::at(&module, message));
            }
        };
        let ignore_control_inputs = options.boolean("ignore-control-inputs");
        let how = ImportOptions { calls, ignore_control_inputs, ..ImportOptions::default() };
        let imported = meaning(&exported, root, &how)?;
        let Some(sums) = ByteSums::named(options.text("byte-sums")) else {
            return Err(PassError::at(&module, "expected byte-sums to be dots or floats"));
        };
        replace(module, root, &imported, sums)
    }
}

/// Reads external data.
fn read_external(
    exported: &mut Exported<'_, '_>,
    folder: Option<&Path>,
    files: &dyn Files,
) -> PassResult {
    let mut wrong = vec![];
    match folder {
        Some(folder) => {
            let mut sink = Sink::new();
            find_external(&mut exported.module, folder, files, &mut sink);
            let found =
                sink.into_diagnostics().into_iter().filter(|diagnostic| diagnostic.is_error());
            wrong.extend(
                found.map(|diagnostic| (diagnostic.path.unwrap_or_default(), diagnostic.message)),
            );
        }
        None => exported.module.visit_tensors_mut(&mut |tensor, path| {
            if let TensorData::External(external) = &tensor.data {
                let message = format!(
                    "its elements are in '{}'; external-data=DIR says in which folder",
                    external.location
                );
                wrong.push((path.to_string(), message));
            }
        }),
    }
    let mut failed = Ok(());
    for (path, message) in wrong {
        failed = Err(PassError::at(&exported.op_of(&path), message));
    }
    failed
}

/// The graph as a graph of the tensor level.
fn meaning(
    exported: &Exported<'_, '_>,
    root: OperationRef<'_, '_>,
    how: &ImportOptions,
) -> Result<Imported, PassError> {
    let module = &exported.module;
    let unknown = unsupported(module);
    let imported = match &unknown[..] {
        [] => import(module, how),
        _ => Err(unknown),
    };
    imported.map_err(|found| {
        let mut failed = None;
        for NodeDiagnostic { path, node, message, .. } in &found {
            let message = format!("{node}: {message}");
            failed = Some(PassError::at(&exported.op_of(path), message));
        }
        if !module.imports.is_empty() {
            let help = "imports libraries, which are not read here: irc-translate --bundle puts \
                        them into the module";
            irc_mlir::emit_remark(&root, help);
        }
        failed.unwrap_or_else(|| PassError::at(&root, "cannot be lowered"))
    })
}

/// Replaces a module by the functions of its graph.
fn replace(
    module: OperationRef<'_, '_>,
    root: OperationRef<'_, '_>,
    imported: &Imported,
    sums: ByteSums,
) -> PassResult {
    let context = context_of(&module);
    let graph = prepare_products(&imported.graph, sums);
    let written =
        graph_to_tl(context, &graph, "main").map_err(|message| PassError::at(&root, message))?;
    give_values(context, written.as_operation(), &graph);
    let block = root.block().ok_or_else(|| PassError::at(&root, "stands in no block"))?;
    for function in read::body_ops(written.as_operation()) {
        block.append_operation((*function).clone());
    }
    root.erase();
    Ok(())
}
