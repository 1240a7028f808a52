//! `irc-lsp-server`: starts the driver of the same installation.
#[path = "../launcher.rs"]
mod launcher;

fn main() -> std::process::ExitCode {
    launcher::become_driver("irc-lsp-server")
}
