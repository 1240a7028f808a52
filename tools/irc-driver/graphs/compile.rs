//! `irc compile` of Common IR and ONNX files.
use super::{open, refuse_of_ark, run::import};
use crate::{
    console::Console,
    output::{self, Content},
    stop::Stop,
};
use bytes::Bytes;
use irc::{CompileOptions, Failure, Session, codegen::Output};
use irc_cli::{CompileTo, Kind};
use irc_onnx_ops::cases::Values;

/// Compiles a model to a file.
pub fn compile(
    console: &Console,
    arguments: &CompileTo,
    bytes: Bytes,
    kind: Kind,
    stage: &str,
    options: &CompileOptions,
) -> Result<(), Stop> {
    refuse_of_ark(&arguments.compile, arguments.keep_intermediates)?;
    let (document, source) = open(console, &arguments.model, bytes, &arguments.graphs)?;
    let graph = import(console, &document, &source, &Values::default(), &arguments.graphs)?.graph;
    let _step = console.step("compiling");
    let session = Session::new();
    let failed = |failure: Failure| Stop::failure(source.clone(), failure);
    let emit = |output| session.emit_graph(&graph, output, options).map_err(failed);
    let (bytes, content) = match kind {
        Kind::So => {
            let compiled = session.compile_graph(&graph, options).map_err(failed)?;
            if !compiled.weights.is_empty() {
                let what = "libraries that hold large constants";
                return Err(Stop::not_built(what).help("irc run compiles a model and runs it"));
            }
            (compiled.library, Content::Executable)
        }
        Kind::O => (emit(Output::Object)?, Content::Binary),
        Kind::Ll => (emit(Output::LlvmIr)?, Content::Text),
        Kind::S => (emit(Output::Assembly)?, Content::Text),
        Kind::Mlir => {
            let text = session.graph_stage(&graph, stage, options).map_err(failed)?;
            (text.into_bytes(), Content::Text)
        }
        Kind::Json => return Err(Stop::problem("plans are made of ARK models")),
        Kind::Tar | Kind::Asm | Kind::Ptx => unreachable!("refused before a file is read"),
    };
    output::write(&arguments.output, &bytes, content)
}
