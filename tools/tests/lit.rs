//! Every file of `lit_tests/` as one test; one process of LLVM's `lit` runs them all.
//!
//! `cargo test -p irc-tools --test lit -- FILTER` runs those whose path contains FILTER; `cargo nextest
//! run` works too. A test is any file there with a `RUN:` line, outside folders named `inputs`.
//! `lit_tests/lit.cfg.py` defines the substitutions for `RUN:` lines.
//!
//! With `IRC_BLESS` set (by `cargo xtask bless`), only tests with an exact expectation (`%expect` in a
//! `RUN:` line) run, and rewrite it.

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, OnceLock};
use std::{collections::BTreeMap, env, fs, io, thread};

/// What lit reports of each test; a failure with its output.
type Results = BTreeMap<String, OnceLock<Result<(), String>>>;

fn main() -> ExitCode {
    let (arguments, bench) = (Arguments::from_args(), Bench::of_environment());
    let names = match bench.names() {
        Ok(names) => names,
        Err(error) => {
            eprintln!("lit: cannot list {}: {error}", bench.tests.display());
            return ExitCode::FAILURE;
        }
    };
    let results: Arc<Results> =
        Arc::new(names.into_iter().map(|name| (name, OnceLock::new())).collect());
    let trial = |name: &String| {
        let (results, key) = (results.clone(), name.clone());
        Trial::test(name.clone(), move || results[&key].wait().clone().map_err(Failed::from))
    };
    let trials: Vec<Trial> = results.keys().map(trial).collect();
    let selected = trials.iter().filter(|trial| !arguments.is_filtered_out(trial));
    let selected: Vec<String> = selected.map(|trial| trial.name().to_owned()).collect();
    if !arguments.list && !selected.is_empty() {
        let cores = || thread::available_parallelism().map_or(1, Into::into);
        let workers = arguments.test_threads.unwrap_or_else(cores);
        thread::spawn(move || bench.run(&selected, workers, &results));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The paths of the test environment.
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

    /// Paths of the tests in their folder, in order.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        collect(&self.tests, &mut files)?;
        files.sort();
        let mut names = Vec::new();
        for file in files {
            if self.is_test(&fs::read(&file)?) {
                names.push(file.strip_prefix(&self.tests).unwrap_or(&file).display().to_string());
            }
        }
        if names.is_empty() && !self.bless {
            return Err(io::Error::other("no file has a RUN: line"));
        }
        Ok(names)
    }

    fn is_test(&self, text: &[u8]) -> bool {
        let runs = |line: &[u8]| find(line, b"RUN:").is_some();
        let exact = |line: &[u8]| find(line, b"%expect").is_some();
        let mut lines = text.split(|&byte| byte == b'\n');
        lines.any(|line| runs(line) && (!self.bless || exact(line)))
    }

    /// Runs tests in one process of lit, whose start takes as long as many of them; every result is set.
    fn run(&self, names: &[String], workers: usize, results: &Results) {
        let lit = self.llvm.join("lit");
        let ended = self.lit(&lit, names, workers, results);
        let why = ended.unwrap_or_else(|error| {
            format!("cannot run {}: {error}\nhint: ./irc-dev setup installs it", lit.display())
        });
        for name in names {
            let _ = results[name].set(Err(format!("lit has no result for it\n{why}")));
        }
    }

    /// Sets results as lit prints them, and returns what it prints beside them.
    fn lit(
        &self,
        lit: &Path,
        names: &[String],
        workers: usize,
        results: &Results,
    ) -> io::Result<String> {
        let param = |key: &str, value: &Path| format!("--param={key}={}", value.display());
        let mut lit = Command::new(lit)
            .args([
                "--verbose",
                "--no-progress-bar",
                "--order=lexical",
                "--skip-test-time-recording",
            ])
            .arg(format!("--workers={workers}"))
            .arg(param("tools", &self.tools))
            .arg(param("llvm", &self.llvm))
            .arg(param("scratch", &self.scratch))
            .args(self.bless.then_some("--param=bless=1"))
            .args(names.iter().map(|name| self.tests.join(name)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (output, errors) = (lit.stdout.take(), lit.stderr.take());
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            errors.map(|mut errors| errors.read_to_end(&mut text)).transpose().map(|_| text)
        });
        let mut beside = String::new();
        let mut current: Option<Test> = None;
        for line in
            BufReader::new(output.ok_or_else(|| io::Error::other("it has no output"))?).split(b'\n')
        {
            let line = String::from_utf8_lossy(&line?).into_owned();
            if let Some(next) = Test::of_line(&line, results) {
                finish(current.replace(next), results);
            } else {
                let text = current.as_mut().map_or(&mut beside, |test| &mut test.output);
                text.extend([&line, "\n"]);
            }
        }
        finish(current, results);
        lit.wait()?;
        if let Ok(Ok(errors)) = errors.join() {
            beside += &String::from_utf8_lossy(&errors);
        }
        Ok(beside)
    }
}

/// A test as lit prints it.
struct Test {
    name: String,
    has_failed: bool,
    output: String,
}

impl Test {
    /// The test that starts with a line `PASS: irc :: tools/run.test (3 of 80)`.
    fn of_line(line: &str, results: &Results) -> Option<Self> {
        let (code, rest) = line.split_once(": irc :: ")?;
        let (name, _) = rest.rsplit_once(" (")?;
        results.get(name)?;
        let has_failed = !matches!(code, "PASS" | "XFAIL" | "FLAKYPASS" | "UNSUPPORTED");
        Some(Self { name: name.to_owned(), has_failed, output: format!("{line}\n") })
    }
}

fn finish(test: Option<Test>, results: &Results) {
    if let Some(Test { name, has_failed, output }) = test {
        let _ = results[&name].set(if has_failed { Err(output) } else { Ok(()) });
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
