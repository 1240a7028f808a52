//! Links the code of archives without a shared library, with the system's C compiler.
use crate::{console::Console, error::Error, output};
use irc_mlf::Package;
use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    process::Command,
};

/// The headers that TVM's sources include, and the functions that they call by name.
const SUPPORT: [(&str, &str); 5] = [
    ("tvm/runtime/tvm_abi.h", include_str!("../../../runtime/include/tvm/runtime/tvm_abi.h")),
    (
        "tvm/runtime/c_runtime_api.h",
        include_str!("../../../runtime/include/tvm/runtime/c_runtime_api.h"),
    ),
    (
        "tvm/runtime/c_backend_api.h",
        include_str!("../../../runtime/include/tvm/runtime/c_backend_api.h"),
    ),
    ("tvm/runtime/crt/module.h", include_str!("../../../runtime/include/tvm/runtime/crt/module.h")),
    ("loader.c", include_str!("../../../runtime/include/loader.c")),
];

/// A linked library: an open, unlinked file, so that no file remains if its code ends the process, during
/// loading or later.
pub struct Linked(File);

impl Linked {
    /// Its path, while the file is open.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Links the objects and sources of an archive.
pub fn link(console: &Console, package: &Package) -> Result<Linked, Error> {
    let _step = console.step("linking");
    let folder = output::temporary_folder()?;
    let failed = |error: io::Error| {
        let place = folder.path().display();
        let why = output::plain(&error);
        Error::problem(format!("cannot write the archive's code in {place}: {why}"))
    };
    for (path, text) in SUPPORT {
        write(&folder.path().join(path), text.as_bytes()).map_err(failed)?;
    }
    let mut files = vec![folder.path().join("loader.c")];
    for part in ["codegen/host/lib/", "codegen/host/src/"] {
        for (member, bytes) in package.archive.within(part) {
            let number = files.len();
            let suffix = Path::new(member).extension().unwrap_or_default().to_string_lossy();
            let file = folder.path().join(format!("part_{number}.{suffix}"));
            write(&file, bytes).map_err(failed)?;
            files.push(file);
        }
    }
    let library = folder.path().join("linked.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O2", "-w", "-I"]).arg(folder.path());
    cc.args(&files).args(["-lm", "-o"]).arg(&library);
    let done = cc.output().map_err(|error| {
        let problem = format!("cannot start cc: {}", output::plain(&error));
        Error::problem(problem).help("an archive without a shared library requires a C compiler")
    })?;
    if done.status.success() {
        return File::open(library).map(Linked).map_err(failed);
    }
    let output = String::from_utf8_lossy(&done.stderr);
    let first: Vec<&str> = output.lines().filter(|line| line.contains("error")).take(3).collect();
    Err(Error::problem(format!("the archive's code does not link: {}", first.join("; "))))
}

/// The shared library of an archive as a file, in which a profile finds the names of functions; `None` if the
/// archive has none.
pub fn extract(package: &Package) -> Result<Option<Linked>, Error> {
    let extension = package.metadata.extension.as_ref();
    let shared = extension.and_then(|extension| extension.library.as_ref());
    let Some(bytes) = shared.and_then(|library| package.archive.get(&library.member)) else {
        return Ok(None);
    };
    let folder = output::temporary_folder()?;
    let path = folder.path().join("shared.so");
    let file = write(&path, bytes).and_then(|()| File::open(&path));
    let failed = |error: io::Error| {
        Error::problem(format!("cannot write {}: {}", path.display(), output::plain(&error)))
    };
    Ok(Some(Linked(file.map_err(failed)?)))
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}
