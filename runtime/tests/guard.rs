//! A run touches the memory that is stated, and no more.

use crate::support;
use crate::support::{linked, model, ramp, run};
use irc_runtime::{Context, ContextOptions, Guard, Model, OpenOptions, ThreadPool};
use std::{
    os::unix::process::ExitStatusExt,
    process::{Command, ExitStatus},
    sync::Arc,
};

const GUARDED: &str = "IRC_TEST_GUARDED";
const SIGSEGV: i32 = 11;

fn guarded() -> ContextOptions {
    ContextOptions { guard: Guard::Pages, ..ContextOptions::default() }
}

#[test]
fn sound_code_stays_in_its_memory() {
    let model = model("guarded");
    for threads in 1..4 {
        let pool = Arc::new(ThreadPool::new(threads).expect("threads"));
        let mut context =
            Context::new(&model, &ContextOptions { pool, ..guarded() }).expect("memory");
        let x = ramp(16, 0.25);
        assert_eq!(run(&mut context, &x), support::expected(&x));
        // Two blocks of 32 bytes in `scale`, each in multiples of 64.
        assert_eq!(context.workspace_peak(), 128);
    }
}

/// Runs code that writes beyond a tensor; a process of its own, which may die of it.
#[test]
#[ignore = "the test below starts it"]
fn write_beyond() {
    let Some(guard) = std::env::var_os(GUARDED) else { return };
    let beyond = |source: &str| source.replace("y[i + 8] = rest[i]", "y[i + 16] = rest[i]");
    let package = linked("beyond", beyond);
    let model = Arc::new(Model::from_package(&package, OpenOptions::default()).expect("sound"));
    let options = if guard == "1" { guarded() } else { ContextOptions::default() };
    Context::new(&model, &options).expect("memory").run().expect("a run");
}

fn status_of(guard: &str) -> ExitStatus {
    let program = std::env::current_exe().expect("this test");
    let mut child = Command::new(program);
    child.args(["--exact", "guard::write_beyond", "--ignored"]).env(GUARDED, guard);
    child.output().expect("a process").status
}

#[test]
fn code_that_leaves_its_memory_dies_there() {
    assert!(status_of("0").success(), "without guards nobody notices");
    assert_eq!(status_of("1").signal(), Some(SIGSEGV));
}
