//! Generates manual pages and shell completions from the parsers of the tools.

use crate::metadata::{self, text};
use clap::Command;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use std::path::{Path, PathBuf};
use std::{fs, io};

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// The expected contents of a file, with its path relative to the root.
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// Writes `docs/man/`.
///
/// # Errors
/// If a page cannot be written.
pub fn man() -> Result<(), String> {
    write(man_pages().map_err(|error| error.to_string())?)
}

/// Writes `docs/completions/`.
///
/// # Errors
/// If a file cannot be written.
pub fn completions() -> Result<(), String> {
    write(completion_files())
}

fn write(files: Vec<File>) -> Result<(), String> {
    let root = root()?;
    for File { path, bytes } in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap_or(&path))
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}

fn root() -> Result<PathBuf, String> {
    Ok(PathBuf::from(text(&metadata::read(&["--no-deps"])?, "workspace_root")))
}

fn tools() -> [Command; 2] {
    [irc_cli::irc_command(), irc_cli::translate_command()]
}

/// One page for each tool and each of its commands.
fn man_pages() -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for mut tool in tools().map(|tool| tool.disable_help_subcommand(true)) {
        tool.build();
        for command in tool.get_subcommands() {
            files.push(man_page(command.clone())?);
        }
        files.push(man_page(tool)?);
    }
    Ok(files)
}

fn man_page(command: Command) -> io::Result<File> {
    let man = Man::new(command);
    let mut bytes = Vec::new();
    man.render(&mut bytes)?;
    Ok(File { path: Path::new("docs/man").join(man.get_filename()), bytes })
}

fn completion_files() -> Vec<File> {
    let mut files = Vec::new();
    for mut tool in tools() {
        let name = tool.get_name().to_owned();
        for shell in SHELLS {
            let mut bytes = Vec::new();
            generate(shell, &mut tool, &name, &mut bytes);
            let path = Path::new("docs/completions").join(format!("{name}.{shell}"));
            files.push(File { path, bytes });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_completions_are_those_of_the_definitions() {
        let root = root().expect("a workspace");
        for file in man_pages().expect("pages").into_iter().chain(completion_files()) {
            let found = fs::read(root.join(&file.path)).unwrap_or_default();
            let path = file.path.display();
            assert!(
                found == file.bytes,
                "{path} is out of date: run cargo xtask man and cargo xtask completions"
            );
        }
    }

    #[test]
    fn every_command_has_a_page() {
        let pages = man_pages().expect("pages");
        for name in ["irc.1", "irc-compile.1", "irc-run.1", "irc-bench.1", "irc-translate.1"] {
            assert!(pages.iter().any(|page| page.path.ends_with(name)), "{name}");
        }
    }
}
