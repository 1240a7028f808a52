//! The multi-call driver behind `irc`, `irc-opt`, `irc-translate` and `irc-lsp-server`.
use std::{env, path::Path, process::ExitCode};

mod archive;
mod ark_files;
mod bench;
mod check;
mod compile;
mod console;
mod cost;
mod crash;
mod error;
mod gpu;
mod input;
mod irc_main;
mod located;
mod models;
mod npu;
mod opt;
mod output;
mod plan;
mod rank_sets;
mod run;
mod run_plans;
mod target;
mod temporary;
mod threads;
mod translate;
mod translate_common_ir;
mod transport;
mod tune;
mod tuning;
mod values;
mod world;

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    let name = arguments.first().map(String::as_str).unwrap_or_default();
    let tool = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    crash::catch_panics();
    match tool {
        "irc" => irc_main::main(&arguments),
        "irc-opt" => opt::main(&arguments),
        "irc-translate" => translate::main(&arguments),
        "irc-lsp-server" => code(irc_mlir::lsp_server_main(&arguments, &irc_dialects::registry())),
        _ => {
            eprintln!(
                "{tool}: error: must be invoked as irc, irc-opt, irc-translate or irc-lsp-server"
            );
            ExitCode::from(2)
        }
    }
}

fn code(status: i32) -> ExitCode {
    ExitCode::from(u8::try_from(status).unwrap_or(70))
}
