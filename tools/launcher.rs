//! Starts `irc-driver`, after checking that its shared libraries exist.
use std::{
    env, fs, io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode, ExitStatus},
};

const LIBRARIES: [&str; 2] = ["libLLVM.so.22.1", "libMLIR.so.22.1"];
const PACKAGES: &str = "libllvm22 libmlir-22";
const INTERNAL: u8 = 70;

/// Replaces this process by the driver, called as `tool`. Returns only on failure.
#[allow(dead_code)]
pub fn become_driver(tool: &str) -> ExitCode {
    match driver(tool) {
        Ok(mut command) => {
            let error = command.exec();
            cannot_start(tool, &error)
        }
        Err(code) => code,
    }
}

/// Runs the driver, called as `tool`, as a child process: if C++ code crashes, the user gets a message, a
/// reproducer and exit code 70 instead of a signal.
#[allow(dead_code)]
pub fn watch_driver(tool: &str) -> ExitCode {
    let mut command = match driver(tool) {
        Ok(command) => command,
        Err(code) => return code,
    };
    die_with_this(&mut command);
    match command.status() {
        Ok(status) => ending(tool, status),
        Err(error) => cannot_start(tool, &error),
    }
}

/// Makes the system kill the driver when the launcher is killed. The signal is SIGKILL, as the driver
/// inherits the signals that the launcher ignores.
fn die_with_this(command: &mut Command) {
    let launcher = std::process::id();
    let set = move || {
        // Safety: prctl and getppid are system calls that are allowed between fork and exec.
        let (failed, parent) =
            unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0, libc::getppid()) };
        // If the launcher has already ended, there will be no signal.
        match failed || u32::try_from(parent) != Ok(launcher) {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    };
    // Safety: the closure does not allocate or lock.
    unsafe { command.pre_exec(set) };
}

fn driver(tool: &str) -> Result<Command, ExitCode> {
    if let Some(missing) = missing_library() {
        eprintln!("{tool}: error: LLVM/MLIR 22 is not installed: cannot load {missing}");
        eprintln!("{tool}: help: on Debian, 'apt-get install {PACKAGES}'");
        return Err(ExitCode::from(INTERNAL));
    }
    let driver = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.canonicalize().ok()?.parent()?.join("irc-driver")))
        .unwrap_or_else(|| PathBuf::from("irc-driver"));
    let mut command = Command::new(driver);
    command.arg0(tool).args(env::args_os().skip(1));
    Ok(command)
}

fn cannot_start(tool: &str, error: &io::Error) -> ExitCode {
    eprintln!("{tool}: error: cannot start irc-driver: {error}");
    eprintln!("{tool}: help: keep irc-driver in the same folder as {tool}");
    ExitCode::from(INTERNAL)
}

fn ending(tool: &str, status: ExitStatus) -> ExitCode {
    let Some(signal) = status.signal() else {
        return ExitCode::from(
            status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(INTERNAL),
        );
    };
    // Interrupted, or the reader of its output closed the pipe: not a crash.
    if matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGPIPE | libc::SIGKILL) {
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(INTERNAL));
    }
    let place = match write_reproducer(tool, signal) {
        Ok(folder) => format!("a reproducer is in {}", folder.display()),
        Err(error) => format!("no reproducer could be written: {error}"),
    };
    eprintln!("{tool}: error: internal error: the driver was killed by signal {signal}; {place}");
    ExitCode::from(INTERNAL)
}

/// Writes the command line and a copy of each file that it names.
fn write_reproducer(tool: &str, signal: i32) -> io::Result<PathBuf> {
    let folder = env::temp_dir().join(format!("irc-reproducer-{}", std::process::id()));
    fs::create_dir(&folder)?;
    let arguments: Vec<String> = env::args().skip(1).collect();
    let report = format!("{tool}: signal {signal}\n\ncommand: {tool} {}\n", arguments.join(" "));
    fs::write(folder.join("report.txt"), report)?;
    for (index, argument) in arguments.iter().enumerate() {
        let file = Path::new(argument);
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            fs::copy(file, folder.join(format!("{index}_{}", name.to_string_lossy())))?;
        }
    }
    Ok(folder)
}

/// The first library that is neither on the loader's path nor in Debian's folder.
fn missing_library() -> Option<&'static str> {
    let folder = option_env!("MLIR_SYS_220_PREFIX").unwrap_or("/usr/lib/llvm-22");
    let exists = |name: &str| {
        PathBuf::from(folder).join("lib").join(name).exists()
            // Safety: only loads the library; LLVM's initialisers have no preconditions.
            || unsafe { libloading::Library::new(name) }.is_ok()
    };
    LIBRARIES.into_iter().find(|name| !exists(name))
}
