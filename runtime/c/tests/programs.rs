//! Programs in C, compiled against the header and linked with the library.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::OnceLock,
};

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime-c");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder.join(name)
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&text));
    output
}

/// The folder of the build.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder")
}

/// The folder with the shared and the static library as they are shipped, built once: cargo builds neither for
/// tests. The compiler's own flags name where LLVM is, which is nothing to them.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--profile", "runtime", "--package", "irc-runtime-c", "--target-dir"]);
        succeed(cargo.arg(target()).env("RUSTFLAGS", "").current_dir(HERE));
        target().join("runtime")
    })
}

fn cc(output: &Path, source: &Path, flags: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-I"]);
    cc.arg(Path::new(HERE).join("include")).arg("-o").arg(output).arg(source).args(flags);
    succeed(&mut cc);
}

/// A program of ours, linked with the shared library.
fn program(source: &str) -> PathBuf {
    let source = Path::new(HERE).join(source);
    let output = scratch(source.file_stem().expect("a name").to_str().expect("UTF-8"));
    let folder = libraries().display();
    let (search, run) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    cc(&output, &source, &[&search, &run, "-lirc_runtime", "-lpthread"]);
    output
}

/// A shared library with code of models.
fn code(source: &Path) -> PathBuf {
    let name = source.file_stem().expect("a name").to_str().expect("UTF-8");
    let output = scratch(name).with_extension("so");
    let mut cc = Command::new("cc");
    succeed(cc.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(&output).arg(source));
    output
}

fn data(name: &str) -> PathBuf {
    Path::new(HERE).join("tests/data").join(name)
}

fn small(name: &str) -> PathBuf {
    Path::new(HERE).join("../tests/data").join(name)
}

#[test]
fn everything_in_the_header_does_what_it_says() {
    let mut run = Command::new(program("tests/data/embed.c"));
    run.arg(small("small.tar")).arg(code(&small("small.c")));
    succeed(run.arg(code(&data("fixed.c"))).arg(code(&data("sized.c"))));
}

#[test]
fn the_example_runs_archives_and_libraries() {
    let run = program("examples/run.c");
    let output = succeed(Command::new(&run).arg(small("small.tar")).arg(code(&small("small.c"))));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "left f32 0 0 0 0\nright f32 0 0.5 0 0.5\n"
    );
    let output = succeed(Command::new(&run).arg(code(&data("fixed.c"))));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "y f32 1 1 1 1 1 1\n");
    let output = Command::new(&run).arg("/nowhere").output().expect("a process");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("cannot read /nowhere: "));
}

#[test]
fn the_static_library_links() {
    let archive = libraries().join("libirc_runtime.a");
    let run = scratch("run_static");
    let flags = [archive.to_str().expect("UTF-8"), "-lpthread", "-ldl", "-lm"];
    cc(&run, &Path::new(HERE).join("examples/run.c"), &flags);
    let output = succeed(Command::new(&run).arg(small("small.tar")).arg(code(&small("small.c"))));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("left f32"));
}

/// Functions are the library's whole surface: what it exports beside them would clash with others.
#[test]
fn the_library_exports_the_functions_of_the_header_alone() {
    let mut nm = Command::new("nm");
    nm.args(["--dynamic", "--defined-only", "--format=just-symbols"]);
    let output = succeed(nm.arg(libraries().join("libirc_runtime.so")));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut exported: Vec<&str> = text.lines().collect();
    exported.sort();
    assert_eq!(exported, declared());
}

/// Programs that embed the runtime are small.
#[test]
fn the_library_is_small() {
    const MAX_BYTES: u64 = 1_000_000;
    let library = libraries().join("libirc_runtime.so");
    let bytes = std::fs::metadata(library).expect("the library").len();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes: expected at most {MAX_BYTES}");
}

/// Names of the functions in the header, in order.
fn declared() -> Vec<String> {
    let header = Path::new(HERE).join("include/irc_runtime.h");
    let header = std::fs::read_to_string(header).expect("the header");
    let mut names: Vec<String> = header
        .split_inclusive('(')
        .filter_map(|part| part.strip_suffix('(')?.rsplit([' ', '*', '\n']).next())
        // A pointer to a function has its name in parentheses.
        .filter(|name| name.starts_with("irc_") && !name.ends_with(')'))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

/// The header is what cbindgen generates from the sources.
///
/// With `IRC_BLESS` set the header is written instead.
#[test]
fn the_header_is_that_of_the_sources() {
    let header = Path::new(HERE).join("include/irc_runtime.h");
    let mut generated = Vec::new();
    cbindgen::generate(HERE).expect("sources that cbindgen reads").write(&mut generated);
    if std::env::var_os("IRC_BLESS").is_some() {
        std::fs::write(&header, &generated).expect("the header");
    }
    let written = std::fs::read(&header).expect("the header");
    assert!(written == generated, "the header is out of date: run this test with IRC_BLESS=1");
}
