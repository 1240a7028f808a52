//! `irc-opt`: mlir-opt with irc's dialects and passes, and flags for the pipelines.
use crate::{
    input::{Content, import_flag},
    target,
};
use irc::{
    FileSystem, Files, Target,
    pipeline::{NVPTX, PIPELINES, Pipeline, Settings},
};
use irc_common_format::MAX_STREAM;
use std::{
    fs::{self, File},
    io::{self, Read},
    os::fd::{AsFd, AsRawFd},
    path::Path,
    process::{self, ExitCode},
    thread,
};

const SUMMARY: &str = "irc modular optimizer driver";

/// Replaces our own flags by pass pipelines, and runs mlir-opt's main with our registry.
pub fn main(arguments: &[String]) -> ExitCode {
    // As mlir-opt: a closed pipe ends it without a message.
    // SAFETY: no other thread has started.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    irc::passes::register_all();
    if arguments.iter().any(|flag| matches!(flag.as_str(), "--list-stages" | "-list-stages")) {
        let _ = crate::output::print(&stage_table());
        return ExitCode::SUCCESS;
    }
    if arguments.iter().any(|flag| matches!(flag.as_str(), "--help" | "-h" | "-help")) {
        let _ = crate::output::print(&own_help());
    }
    let fail = |message: String, code: u8| {
        eprintln!("irc-opt: error: {message}");
        ExitCode::from(code)
    };
    let mut arguments = match expand(arguments) {
        Ok(arguments) => arguments,
        Err(message) => return fail(message, 2),
    };
    if let Some((name, what, flag)) = not_mlir(&arguments) {
        return fail(
            format!(
                "{name}: expected MLIR, found {what}\nirc-opt: help: irc-translate {flag} makes MLIR of it"
            ),
            1,
        );
    }
    if let Err(error) = limit_stream(&mut arguments) {
        return fail(format!("cannot read the input: {error}"), 1);
    }
    crate::code(irc_mlir::opt_main(&arguments, SUMMARY, &irc_dialects::registry()))
}

/// An input in another format than MLIR: its name, what it is, and the flag of irc-translate that reads it.
fn not_mlir(arguments: &[String]) -> Option<(&String, &'static str, &'static str)> {
    let is_input = |pair: &&[String]| {
        let is_value = matches!(pair[0].as_str(), "-o" | "--o");
        !is_value && !pair[1].starts_with('-') && Path::new(&pair[1]).is_file()
    };
    arguments.windows(2).filter(is_input).find_map(|pair| {
        let content = Content::of(&FileSystem.read(Path::new(&pair[1])).ok()?);
        // mlir-opt itself reports other files.
        let is_known = matches!(content, Content::Model | Content::Schedule);
        let flag = import_flag(content).filter(|_| is_known)?;
        Some((&pair[1], content.words(), flag))
    })
}

/// Passes input that is not a regular file to mlir-opt through a pipe, and ends the process at
/// [`MAX_STREAM`] bytes: mlir-opt itself reads without limit.
fn limit_stream(arguments: &mut [String]) -> io::Result<()> {
    let is_stream = |path: &str| {
        let about = fs::metadata(path);
        about.is_ok_and(|about| !about.is_file() && !about.is_dir())
    };
    let is_input = |index: usize| {
        let is_value = matches!(arguments[index - 1].as_str(), "-o" | "--o");
        !is_value && !arguments[index].starts_with('-') && is_stream(&arguments[index])
    };
    let (name, from) = match (1..arguments.len()).find(|index| is_input(*index)) {
        Some(index) => {
            let name = std::mem::replace(&mut arguments[index], "-".to_owned());
            let file = File::open(&name)?;
            (name, file)
        }
        None if is_stream("/dev/stdin") => {
            ("<stdin>".to_owned(), File::from(io::stdin().as_fd().try_clone_to_owned()?))
        }
        None => return Ok(()),
    };
    let (reader, mut writer) = io::pipe()?;
    // SAFETY: both are open; this process has not read from its standard input yet.
    if unsafe { libc::dup2(reader.as_raw_fd(), libc::STDIN_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    thread::spawn(move || {
        let mut rest = from.take(MAX_STREAM + 1);
        // A closed pipe is not an error.
        let _ = io::copy(&mut rest, &mut writer);
        if rest.limit() == 0 {
            let limit = MAX_STREAM >> 20;
            eprintln!(
                "irc-opt: error: {name}: it is not a regular file and has more than {limit} MiB"
            );
            process::exit(1);
        }
    });
    Ok(())
}

/// Replaces `--irc-pipeline`, `--compile-to`, `--compile-from`, `--target-cpu` and `--arch` by `--pass-pipeline`.
fn expand(arguments: &[String]) -> Result<Vec<String>, String> {
    let (mut kept, mut flags) = (Vec::new(), Flags::default());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bare = argument.trim_start_matches('-');
        let (name, value) = bare.split_once('=').map_or((bare, None), |(n, v)| (n, Some(v)));
        let slot = match name {
            "irc-pipeline" => &mut flags.pipeline,
            "compile-to" => &mut flags.to,
            "compile-from" => &mut flags.from,
            "target-cpu" => &mut flags.cpu,
            "arch" => &mut flags.arch,
            _ => {
                kept.push(argument.clone());
                continue;
            }
        };
        let value = value.map(str::to_owned).or_else(|| rest.next().cloned());
        *slot = Some(value.ok_or_else(|| format!("--{name} expects a value"))?);
    }
    if let Some(text) = flags.text()? {
        if kept.iter().any(|flag| flag.trim_start_matches('-').starts_with("pass-pipeline")) {
            return Err("the stage table and --pass-pipeline exclude each other".to_owned());
        }
        kept.push(format!("--pass-pipeline={text}"));
    }
    Ok(kept)
}

#[derive(Default)]
struct Flags {
    pipeline: Option<String>,
    from: Option<String>,
    to: Option<String>,
    cpu: Option<String>,
    arch: Option<String>,
}

impl Flags {
    fn text(&self) -> Result<Option<String>, String> {
        if self.pipeline.is_none() && self.from.is_none() && self.to.is_none() {
            return match (&self.cpu, &self.arch) {
                (Some(_), _) => Err("--target-cpu is for the stage table: name a stage".to_owned()),
                (_, Some(_)) => Err("--arch is for the stage table: name a stage".to_owned()),
                (None, None) => Ok(None),
            };
        }
        let name = self.pipeline.as_deref().unwrap_or("host-cpu");
        let pipeline = Pipeline::named(name).ok_or_else(|| {
            let names: Vec<_> = PIPELINES.iter().map(|known| known.name).collect();
            format!("no pipeline '{name}'; pipelines: {}", names.join(", "))
        })?;
        let target = match (*pipeline == NVPTX, &self.cpu, &self.arch) {
            (true, Some(_), _) => {
                return Err(format!(
                    "--target-cpu is for processors: --arch names the GPU of {name}"
                ));
            }
            (true, None, arch) => target::gpu(arch.as_deref().unwrap_or(target::GPU))?,
            (false, _, Some(_)) => {
                return Err(format!(
                    "--arch is for GPUs: --target-cpu names the processor of {name}"
                ));
            }
            (false, cpu, None) => Target::from_name(cpu.as_deref().unwrap_or("native")),
        };
        let settings = Settings::of(&target);
        pipeline.text(&settings, self.from.as_deref(), self.to.as_deref()).map(Some)
    }
}

fn own_help() -> String {
    let names: Vec<_> = PIPELINES
        .iter()
        .map(|pipeline| format!("      ={:<38} - {}\n", pipeline.name, pipeline.summary))
        .collect();
    format!(
        "irc options:\n\
         \n  --irc-pipeline=<name>                         - run a pipeline, by default all its stages\n{}\
         \n  --compile-to=<stage>                          - run the pipeline up to and including this stage\
         \n  --compile-from=<stage>                        - run the pipeline from the stage after this one\
         \n  --target-cpu=<name>                           - schedule for this processor [default: native]\
         \n  --arch=<name>                                 - schedule for this GPU: CUDA_80, CUDA_90 [default: CUDA_80]\
         \n  --list-stages                                 - list the stages of the pipelines and exit\n\n",
        names.concat()
    )
}

fn stage_table() -> String {
    let mut text = String::new();
    for pipeline in PIPELINES {
        text += &format!("{}: {}\n", pipeline.name, pipeline.summary);
        for stage in pipeline.stages {
            text += &format!(
                "  {:<8} leaves {:<50} {}\n",
                stage.name,
                stage.leaves.join(", "),
                stage.why
            );
        }
    }
    text
}
