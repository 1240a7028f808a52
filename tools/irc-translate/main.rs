//! `irc-translate`: starts the driver of the same installation.
#[path = "../launcher.rs"]
mod launcher;

fn main() -> std::process::ExitCode {
    launcher::watch_driver("irc-translate")
}
