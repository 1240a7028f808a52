//! Links Debian's MLIR and compiles the C++ bridge.
//!
//! Debian ships MLIR's C API as static archives only, so `-lMLIR-C` is given a linker script that
//! pulls them in beside the one shared libMLIR.
use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".into());
    link_c_api(&prefix)?;
    compile_bridge(&prefix);
    Ok(())
}

fn link_c_api(prefix: &str) -> io::Result<()> {
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

/// Must be clang++ of the same release: MLIR's trait ids are keyed by the compiler's spelling.
fn compile_bridge(prefix: &str) {
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rerun-if-changed=bridge");
    println!("cargo:bridge={manifest}/bridge");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .compiler("clang++-22")
        .include(format!("{prefix}/include"))
        .file("bridge/bridge.cpp")
        .warnings(false)
        .flag("-fno-rtti")
        .debug(false)
        .opt_level(1)
        .compile("irc_bridge");
}
