//! Every file of `lit_tests/` as one test, run by LLVM's `lit`.
//!
//! `cargo test -p irc-tools --test lit -- FILTER` runs those whose path contains FILTER; `cargo nextest
//! run` works too. A test is any file there with a `RUN:` line, outside folders named `inputs`.
//! `lit_tests/lit.cfg.py` defines the substitutions for `RUN:` lines.
//!
//! With `IRC_BLESS` set (by `cargo xtask bless`), only tests with an exact expectation (`%expect` in a
//! `RUN:` line) run, and rewrite it.

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

fn main() -> ExitCode {
    let bench = Bench::of_environment();
    match bench.trials() {
        Ok(trials) => libtest_mimic::run(&Arguments::from_args(), trials).exit_code(),
        Err(error) => {
            eprintln!("lit: cannot list {}: {error}", bench.tests.display());
            ExitCode::FAILURE
        }
    }
}

/// The paths of the test environment.
#[derive(Clone)]
struct Bench {
    /// `lit_tests/`.
    tests: PathBuf,
    /// The folder of `irc`, `irc-opt` and `irc-translate`.
    tools: PathBuf,
    /// The folder of `lit`, `FileCheck` and `not`.
    llvm: PathBuf,
    /// A folder that tests may write to.
    scratch: PathBuf,
    /// Whether to rewrite exact expectations.
    bless: bool,
}

impl Bench {
    fn of_environment() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tools/ has a parent");
        let driver = Path::new(env!("CARGO_BIN_EXE_irc-driver"));
        let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or("/usr/lib/llvm-22".into());
        Self {
            tests: root.join("lit_tests"),
            tools: driver.parent().expect("a program has a folder").to_owned(),
            llvm: Path::new(&prefix).join("bin"),
            scratch: Path::new(env!("CARGO_TARGET_TMPDIR")).join("lit"),
            bless: env::var_os("IRC_BLESS").is_some(),
        }
    }

    fn trials(&self) -> io::Result<Vec<Trial>> {
        let mut files = Vec::new();
        collect(&self.tests, &mut files)?;
        files.sort();
        let mut trials = Vec::new();
        for file in files {
            if !self.is_test(&fs::read(&file)?) {
                continue;
            }
            let name = file.strip_prefix(&self.tests).unwrap_or(&file).display().to_string();
            let (bench, relative) = (self.clone(), name.clone());
            trials.push(Trial::test(name, move || bench.run(&relative)));
        }
        if trials.is_empty() && !self.bless {
            return Err(io::Error::other("no file has a RUN: line"));
        }
        Ok(trials)
    }

    fn is_test(&self, text: &[u8]) -> bool {
        let runs = |line: &[u8]| find(line, b"RUN:").is_some();
        let exact = |line: &[u8]| find(line, b"%expect").is_some();
        let mut lines = text.split(|&byte| byte == b'\n');
        lines.any(|line| runs(line) && (!self.bless || exact(line)))
    }

    fn run(&self, name: &str) -> Result<(), Failed> {
        let lit = self.llvm.join("lit");
        let param = |key: &str, value: &Path| format!("--param={key}={}", value.display());
        let output = Command::new(&lit)
            .args(["--verbose", "--no-progress-bar", "--workers=1"])
            .arg(param("tools", &self.tools))
            .arg(param("llvm", &self.llvm))
            .arg(param("scratch", &self.scratch.join(name)))
            .args(self.bless.then_some("--param=bless=1"))
            .arg(self.tests.join(name))
            .output();
        let output = output.map_err(|error| {
            format!("cannot run {}: {error}\nhint: ./irc-dev setup installs it", lit.display())
        })?;
        if output.status.success() {
            return Ok(());
        }
        let text = [output.stdout, output.stderr].concat();
        Err(String::from_utf8_lossy(&text).into_owned().into())
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            if name != "inputs" && name != "__pycache__" {
                collect(&entry.path(), files)?;
            }
        } else if !name.to_string_lossy().starts_with("lit.") {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn find(text: &[u8], pattern: &[u8]) -> Option<usize> {
    text.windows(pattern.len()).position(|window| window == pattern)
}
