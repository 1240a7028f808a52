//! `irc compile` of Common IR and ONNX files.
use super::{Libraries, open, refuse_of_ark, run::import, translate};
use crate::{
    console::Console,
    output::{self, Content},
    stop::Stop,
};
use bytes::Bytes;
use irc::{CompileOptions, Failure, Session, codegen::Output, pipeline::HOST_CPU};
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
    // The first stage is the file as written, whether or not it can be lowered.
    let is_written = kind == Kind::Mlir && stage == HOST_CPU.stages[0].name;
    let libraries = if is_written { Libraries::Left } else { Libraries::Bundled };
    let (document, source) = open(console, &arguments.model, bytes, &arguments.graphs, libraries)?;
    if is_written {
        let text = translate::to_text(console, &document, &source)?;
        return output::write(&arguments.output, &text, Content::Text);
    }
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
