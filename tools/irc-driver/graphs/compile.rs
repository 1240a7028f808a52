//! `irc compile` of Common IR and ONNX files.
use super::{
    Libraries, open, refuse_of_ark,
    run::{import, read},
    translate,
};
use crate::{
    archive,
    console::Console,
    output::{self, Content},
    stop::Stop,
};
use bytes::Bytes;
use irc::{CompileOptions, Failure, Session, codegen::Output, pipeline::HOST_CPU};
use irc_cli::{CompileTo, Kind};

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
    let inputs = read(&document, arguments.inputs.as_deref())?;
    let graph = import(console, &document, &source, &inputs, &arguments.graphs)?.graph;
    let _step = console.step("compiling");
    let session = Session::new();
    let failed = |failure: Failure| Stop::failure(source.clone(), failure);
    if kind == Kind::Tar {
        let archive = archive::options(arguments)?;
        return archive::write(console, arguments, || {
            let contents = Session::new().archive_graph(&graph, options, &archive);
            contents.map_err(|failure| archive::refused(&source, failure))
        });
    }
    let emit = |output| session.emit_graph(&graph, output, options).map_err(failed);
    let (bytes, content) = match kind {
        Kind::So => {
            let compiled = session.compile_graph_whole(&graph, options).map_err(failed)?;
            (compiled.library, Content::Executable)
        }
        Kind::O => (emit(Output::Object)?, Content::Binary),
        Kind::Ll => (emit(Output::LlvmIr)?, Content::Text),
        Kind::S => (emit(Output::Assembly)?, Content::Text),
        Kind::C => (emit(Output::C)?, Content::Text),
        Kind::Mlir => {
            let text = session.graph_stage(&graph, stage, options).map_err(failed)?;
            (text.into_bytes(), Content::Text)
        }
        Kind::Json => return Err(Stop::problem("plans are made of ARK models")),
        Kind::Tar => unreachable!("written above"),
        Kind::Asm | Kind::Ptx => unreachable!("refused before a file is read"),
    };
    output::write(&arguments.output, &bytes, content)
}
