//! `irc run --transport mpi` under `mpirun`: the results of each process, and the end of a failed run.
#![cfg(feature = "mpi")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn models(world: usize) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models/ranks");
    let model = |rank| folder.join(format!("all_reduce_rank{rank}of{world}.model.json"));
    (0..world).map(model).collect()
}

/// Runs `irc run` in so many processes; `None` if there is no `mpirun`.
fn mpirun(processes: usize, arguments: &[&Path]) -> Option<Output> {
    let started = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &processes.to_string()])
        .arg(env!("CARGO_BIN_EXE_irc"))
        .args(["run", "--transport", "mpi", "--seed", "1"])
        .args(arguments)
        // Containers forbid one process to read another's memory.
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output();
    match started {
        Ok(output) => Some(output),
        Err(error) => {
            println!("skipped: mpirun cannot be started: {error}");
            None
        }
    }
}

#[test]
fn processes_compute_what_one_does() {
    for world in [2, 4] {
        let folder = tempfile::tempdir().expect("a folder");
        let together = folder.path().join("together.npz");
        let alone = Command::new(env!("CARGO_BIN_EXE_irc"))
            .args(["run", "--seed", "1", "--outputs"])
            .arg(&together)
            .args(models(world))
            .output()
            .expect("irc runs");
        assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stderr));
        let (outputs, mut arguments) = (folder.path().join("own.npz"), models(world));
        arguments.extend(["--expected".into(), together, "--outputs".into(), outputs]);
        let arguments: Vec<_> = arguments.iter().map(PathBuf::as_path).collect();
        let Some(output) = mpirun(world, &arguments) else { return };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for rank in 0..world {
            assert!(folder.path().join(format!("own.rank{rank}.npz")).is_file());
        }
    }
}

#[test]
fn a_process_without_a_plan_ends_all() {
    let models = models(2);
    let Some(output) = mpirun(3, &[&models[0], &models[1]]) else { return };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{errors}");
    assert!(errors.contains("this process is rank 2, which has no model"), "{errors}");
}
