//! Links Debian's MLIR: gives `-lMLIR-C` a linker script that pulls in the static C API archives.
use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".into());
    let lib = format!("{prefix}/lib");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts"));
    let mut archives: Vec<String> = fs::read_dir(&lib)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            name.starts_with("libMLIRCAPI") && name.ends_with(".a")
                || name == "libMLIRExecutionEngine.a"
                || name == "libMLIRExecutionEngineUtils.a"
        })
        .map(|name| format!("{lib}/{name}"))
        .collect();
    archives.sort();
    fs::write(out.join("libMLIR-C.so"), format!("GROUP (\n{}\n)\n", archives.join("\n")))?;
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
