//! MLIR, as text or bytecode, at any stage of the pipeline.
use super::{Document, Imported, InputFile, Parsed};
use crate::{
    attributes::KERNEL, diagnostics::in_text, lowering::tl_to_graph::tl_to_graph,
    machine::in_context, pipeline::HOST_CPU,
};
use bytes::Bytes;
use irc_diag::{Diagnostic, Source};
use irc_mlir::{Context, Module, read};
use std::{collections::BTreeSet, sync::Arc};

struct Mlir {
    bytes: Bytes,
    source: Source,
    /// The first stage of the pipeline whose output the module may be.
    stage: &'static str,
}

/// The last stage whose modules can be imported as graphs; later ones contain kernels.
const LAST_GRAPH: &str = "tensor";

/// The passes that lower the source dialects to the tensor level.
const IMPORTERS: &str = "builtin.module(common-ir-to-tl,ark-to-tl)";

/// Reads a module.
pub fn parse(file: &InputFile) -> Parsed {
    let is_text = std::str::from_utf8(&file.bytes).is_ok();
    let source = match is_text {
        true => Source::from_bytes(&file.name, &file.bytes),
        false => Source::new(&file.name, ""),
    };
    let stage = in_context(|context| {
        let module = irc_mlir::parse_bytecode(context, &file.bytes)?;
        Some(stage_of(&module))
    });
    let (document, diagnostics) = match stage {
        Ok(Ok(stage)) => {
            let bytes = file.bytes.clone();
            let document = Mlir { bytes, source: source.clone(), stage };
            (Some(Arc::new(document) as Arc<dyn Document>), vec![])
        }
        Ok(Err(message)) => (None, vec![Diagnostic::error("mlir-dialect", message)]),
        Err(captured) => (None, in_text(&captured, &source)),
    };
    Parsed { document, source, diagnostics: diagnostics.into() }
}

/// The first stage whose output a module with these dialects and this form may be.
fn stage_of(module: &Module<'_>) -> Result<&'static str, String> {
    let mut dialects = BTreeSet::new();
    let (mut has_groups, mut has_kernels) = (false, false);
    for op in irc_mlir::walk_collect(module.as_operation(), |_| true) {
        let name = read::op_name(&op);
        has_groups |= name == "tl.group";
        has_kernels |= name == "tl.launch" || KERNEL.is_on(&op);
        dialects.extend(name.split('.').next().map(str::to_owned));
    }
    dialects.remove("builtin");
    // Earlier stages leave only calls of intrinsics of this dialect.
    let is_lowered = dialects.iter().all(|dialect| dialect == "llvm") && !dialects.is_empty();
    let first = match (has_kernels, has_groups) {
        _ if is_lowered => "llvm",
        (true, _) => "kernels",
        (false, true) => "fuse",
        (false, false) if dialects.iter().all(|name| name == "func" || name == "tl") => "tensor",
        (false, false) => "import",
    };
    let may_be = HOST_CPU.stages.iter().skip_while(|stage| stage.name != first);
    let allowed = |stage: &&crate::pipeline::Stage| {
        dialects.iter().all(|dialect| stage.leaves.contains(&dialect.as_str()))
    };
    may_be.into_iter().find(allowed).map(|stage| stage.name).ok_or_else(|| {
        let names: Vec<&str> = dialects.iter().map(String::as_str).collect();
        format!(
            "no stage of the pipeline leaves the dialects {}; irc-opt --list-stages shows what each leaves",
            names.join(", ")
        )
    })
}

impl Document for Mlir {
    fn import(&self) -> Result<Imported, Vec<Diagnostic>> {
        if let Some(stage) = self.stage() {
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

    fn stage(&self) -> Option<&'static str> {
        let last = HOST_CPU.position(LAST_GRAPH).ok()?;
        (HOST_CPU.position(self.stage).ok()? > last).then_some(self.stage)
    }
}
