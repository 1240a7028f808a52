//! Starts `irc-driver`, after making sure that the libraries it is linked to are there.
use std::{
    env,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, ExitCode},
};

const LIBRARIES: [&str; 2] = ["libLLVM.so.22.1", "libMLIR.so.22.1"];
const PACKAGES: &str = "libllvm22 libmlir-22";

/// Replaces this process by the driver, called as `tool`. Returns only when that is impossible.
pub fn launch(tool: &str) -> ExitCode {
    if let Some(missing) = missing_library() {
        eprintln!("{tool}: error: LLVM/MLIR 22 is not installed: cannot load {missing}");
        eprintln!("{tool}: help: on Debian, 'apt-get install {PACKAGES}'");
        return ExitCode::from(70);
    }
    let driver = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.canonicalize().ok()?.parent()?.join("irc-driver")))
        .unwrap_or_else(|| PathBuf::from("irc-driver"));
    let error = Command::new(&driver).arg0(tool).args(env::args_os().skip(1)).exec();
    eprintln!("{tool}: error: cannot start {}: {error}", driver.display());
    eprintln!("{tool}: help: keep irc-driver in the same folder as {tool}");
    ExitCode::from(70)
}

/// The first library that is neither on the loader's path nor where Debian puts it.
fn missing_library() -> Option<&'static str> {
    let folder = option_env!("MLIR_SYS_220_PREFIX").unwrap_or("/usr/lib/llvm-22");
    let exists = |name: &str| {
        PathBuf::from(folder).join("lib").join(name).exists()
            // Safety: only asks the loader; LLVM's initialisers have no preconditions.
            || unsafe { libloading::Library::new(name) }.is_ok()
    };
    LIBRARIES.into_iter().find(|name| !exists(name))
}
