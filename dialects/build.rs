//! Generates the dialects' C++ from their ODS files and compiles their registration.
use std::{env, fs, io, path::Path, process::Command};

/// Name, file, whether it has types, whether it has attributes.
const DIALECTS: [(&str, &str, bool, bool); 6] = [
    ("Ark", "ark/ark.td", true, false),
    ("CommonIr", "common_ir/common_ir.td", true, true),
    ("Gemini", "gemini/gemini.td", false, false),
    ("Npu", "npu/npu.td", false, false),
    ("Plan", "plan/plan.td", false, false),
    ("Tl", "tl/tl.td", false, true),
];

fn main() -> io::Result<()> {
    let prefix = env::var("MLIR_SYS_220_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-22".into());
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    let bridge = env::var("DEP_IRC_BRIDGE_BRIDGE").expect("irc-mlir tells where its headers are");
    // Where melior's macro finds the .td files.
    let manifest = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    println!("cargo:rustc-env=IRC_DIALECTS_DIR={manifest}");
    println!("cargo:rerun-if-changed=register.cpp");
    println!("cargo:rerun-if-changed=register_common_ir.cpp");
    println!("cargo:rerun-if-changed=Base.td");
    println!("cargo:rerun-if-changed=ark/ops.td");
    println!("cargo:rerun-if-changed=tl/ops.td");
    for (name, file, has_types, has_attributes) in DIALECTS {
        println!("cargo:rerun-if-changed={file}");
        let ops = "-gen-op-";
        let dialect = "-gen-dialect-";
        for (kind, flag) in [("Dialect", dialect), ("Ops", ops)] {
            generate(&prefix, file, &format!("{flag}decls"), &format!("{out}/{name}{kind}.h.inc"))?;
            generate(
                &prefix,
                file,
                &format!("{flag}defs"),
                &format!("{out}/{name}{kind}.cpp.inc"),
            )?;
        }
        if has_attributes {
            let path = format!("{out}/{name}Attrs");
            generate(&prefix, file, "-gen-attrdef-decls", &format!("{path}.h.inc"))?;
            generate(&prefix, file, "-gen-attrdef-defs", &format!("{path}.cpp.inc"))?;
        }
        if has_types {
            let path = format!("{out}/{name}Types");
            generate(&prefix, file, "-gen-typedef-decls", &format!("{path}.h.inc"))?;
            generate(&prefix, file, "-gen-typedef-defs", &format!("{path}.cpp.inc"))?;
        }
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .compiler("clang++-22")
        .include(format!("{prefix}/include"))
        .include(&bridge)
        .include(&out)
        .file("register.cpp")
        .file("register_common_ir.cpp")
        .warnings(false)
        .flag("-fno-rtti")
        // 100,000 generated lines: debug information is ten times the code, and every program links it.
        .debug(false)
        .opt_level(opt_level().min(1))
        .compile("irc_dialects");
    Ok(())
}

/// What cargo optimises this package with.
fn opt_level() -> u32 {
    env::var("OPT_LEVEL").ok().and_then(|level| level.parse().ok()).unwrap_or(1)
}

/// Runs mlir-tblgen; leaves an unchanged output untouched.
fn generate(prefix: &str, file: &str, flag: &str, output: &str) -> io::Result<()> {
    let result = Command::new(format!("{prefix}/bin/mlir-tblgen"))
        .args([flag, "-I", &format!("{prefix}/include"), "-I", ".", file])
        .output()?;
    if !result.status.success() {
        let message = String::from_utf8_lossy(&result.stderr).into_owned();
        return Err(io::Error::other(format!("mlir-tblgen {flag} {file}: {message}")));
    }
    if !Path::new(output).exists() || fs::read(output)? != result.stdout {
        fs::write(output, result.stdout)?;
    }
    Ok(())
}
