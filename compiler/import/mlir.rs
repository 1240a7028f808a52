//! MLIR, as text or bytecode, at any stage of the pipeline.
use super::{Document, Imported, InputFile, Parsed};
use crate::{
    attributes::{CAPABILITY, KERNEL},
    diagnostics::in_text,
    lowering::{compute_to_loops::simt::is_of_device, tl_to_graph::tl_to_graph},
    machine::in_context,
    pipeline::{HOST_CPU, NVPTX, Reached, Stage},
};
use bytes::Bytes;
use irc_diag::{Diagnostic, Source};
use irc_mlir::{Context, Module, read};
use std::{collections::BTreeSet, sync::Arc};

struct Mlir {
    bytes: Bytes,
    source: Source,
    /// The first stage whose output the module may be.
    reached: Reached,
}

/// The last stage whose modules can be imported as graphs; later ones contain kernels.
const LAST_GRAPH: &str = "tensor";

/// The passes that lower the source dialects to the tensor level.
const IMPORTERS: &str = "builtin.module(common-ir-to-tl,ark-to-tl)";

/// Reads a module.
pub fn parse(file: &InputFile) -> Parsed {
    let source = Source::of_text_or_binary(&file.name, &file.bytes);
    let reached = in_context(|context| {
        let module = irc_mlir::parse_bytecode(context, &file.bytes)?;
        Some(reached_by(&module))
    });
    let (document, diagnostics) = match reached {
        Ok(Ok(reached)) => {
            let bytes = file.bytes.clone();
            let document = Mlir { bytes, source: source.clone(), reached };
            (Some(Arc::new(document) as Arc<dyn Document>), vec![])
        }
        Ok(Err(message)) => (None, vec![Diagnostic::error("mlir-dialect", message)]),
        Err(captured) => (None, in_text(&captured, &source)),
    };
    Parsed { document, source, diagnostics: diagnostics.into() }
}

/// The first stage whose output a module with these dialects and this form may be.
fn reached_by(module: &Module<'_>) -> Result<Reached, String> {
    let mut dialects = BTreeSet::new();
    let (mut has_groups, mut has_kernels, mut is_of_gpu) = (false, false, false);
    for op in irc_mlir::walk_collect(module.as_operation(), |_| true) {
        let name = read::op_name(&op);
        has_groups |= name == "tl.group";
        has_kernels |= name == "tl.launch" || KERNEL.is_on(&op);
        is_of_gpu |= read::string(&op, "sym_name").is_some_and(|name| is_of_device(&name));
        dialects.extend(name.split('.').next().map(str::to_owned));
    }
    dialects.remove("builtin");
    // Earlier stages leave only calls of intrinsics of this dialect.
    let is_last = |dialect: &String| dialect == "llvm" || is_of_gpu && dialect == "nvvm";
    let is_lowered = dialects.iter().all(is_last) && !dialects.is_empty();
    let first = match (has_kernels, has_groups) {
        _ if is_lowered => "llvm",
        _ if is_of_gpu => NVPTX.scheduled(),
        (true, _) => "kernels",
        (false, true) => "fuse",
        (false, false) if dialects.iter().all(|name| name == "func" || name == "tl") => "tensor",
        (false, false) => "import",
    };
    let pipeline = if is_of_gpu { &NVPTX } else { &HOST_CPU };
    let may_be = pipeline.stages.iter().skip_while(|stage| stage.name != first);
    let allowed =
        |stage: &&Stage| dialects.iter().all(|dialect| stage.leaves.contains(&dialect.as_str()));
    let found = may_be.into_iter().find(allowed);
    let capability = CAPABILITY.read(&module.as_operation());
    let capability = capability.and_then(|capability| u32::try_from(capability).ok());
    found.map(|stage| Reached { pipeline, stage: stage.name, capability }).ok_or_else(|| {
        let names: Vec<&str> = dialects.iter().map(String::as_str).collect();
        format!(
            "no stage of the pipeline '{}' leaves the dialects {}; irc-opt --list-stages shows what each leaves",
            pipeline.name,
            names.join(", ")
        )
    })
}

impl Document for Mlir {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        if let Some(Reached { stage, .. }) = self.stage() {
            let message =
                format!("the module is after stage '{stage}' or a later one, and has no graph");
            let help = "irc compile goes on from there";
            return Err(vec![Diagnostic::error("mlir-stage", message).help(help)]);
        }
        let graph = in_context(|context| {
            let mut module = irc_mlir::parse_bytecode(context, &self.bytes)?;
            irc_mlir::run_pipeline(context, &mut module, IMPORTERS).ok()?;
            tl_to_graph(module.as_operation(), &[]).ok()
        });
        graph.map(Imported::from).map_err(|captured| in_text(&captured, &self.source))
    }

    fn dialect<'c>(&self, context: &'c Context) -> Option<Module<'c>> {
        irc_mlir::parse_bytecode(context, &self.bytes)
    }

    fn locate(&self, _: &mut [Diagnostic]) {}

    fn stage(&self) -> Option<Reached> {
        let Reached { pipeline, stage, .. } = self.reached;
        (pipeline.position(stage).ok()? > pipeline.position(LAST_GRAPH).ok()?)
            .then_some(self.reached)
    }
}
