//! `--target-cpu`.
use crate::stop::Stop;
use irc::{Backend, Target};

/// The processors of x86-64 that LLVM 22 knows, sorted: given another, LLVM prints a complaint of
/// its own and generates code for none.
const PROCESSORS: [&str; 74] = [
    "alderlake",
    "amdfam10",
    "arrowlake",
    "arrowlake-s",
    "athlon-fx",
    "athlon64",
    "athlon64-sse3",
    "atom",
    "barcelona",
    "bdver1",
    "bdver2",
    "bdver3",
    "bdver4",
    "bonnell",
    "broadwell",
    "btver1",
    "btver2",
    "cannonlake",
    "cascadelake",
    "clearwaterforest",
    "cooperlake",
    "core-avx-i",
    "core-avx2",
    "core2",
    "corei7",
    "corei7-avx",
    "diamondrapids",
    "emeraldrapids",
    "goldmont",
    "goldmont-plus",
    "gracemont",
    "grandridge",
    "graniterapids",
    "graniterapids-d",
    "haswell",
    "icelake-client",
    "icelake-server",
    "ivybridge",
    "k8",
    "k8-sse3",
    "knl",
    "knm",
    "lunarlake",
    "meteorlake",
    "nehalem",
    "nocona",
    "novalake",
    "opteron",
    "opteron-sse3",
    "pantherlake",
    "penryn",
    "raptorlake",
    "rocketlake",
    "sandybridge",
    "sapphirerapids",
    "sierraforest",
    "silvermont",
    "skx",
    "skylake",
    "skylake-avx512",
    "slm",
    "tigerlake",
    "tremont",
    "westmere",
    "wildcatlake",
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "znver1",
    "znver2",
    "znver3",
    "znver4",
    "znver5",
];

/// The target of a name.
pub fn named(cpu: &str) -> Result<Target, Stop> {
    let target = Target::from_name(cpu);
    let known = !target.triple.starts_with("x86_64") || PROCESSORS.binary_search(&cpu).is_ok();
    if cpu == "native" || known {
        return Ok(target);
    }
    let similar: Vec<&str> = PROCESSORS.into_iter().filter(|name| alike(name, cpu)).collect();
    let names = if similar.is_empty() { "x86-64-v3".to_owned() } else { similar.join(", ") };
    Err(Stop::Usage(format!(
        "--target-cpu: expected native or a processor that LLVM knows, such as {names}; found '{cpu}'"
    )))
}

/// The same processor with another code generator, which must have code for it.
pub fn with_backend(target: Target, backend: Backend) -> Result<Target, Stop> {
    let target = target.with_backend(backend);
    if backend == Backend::Cranelift {
        let known = irc::codegen::cranelift::expect_target(&target);
        known.map_err(|error| Stop::Usage(format!("--target-cpu: {error}")))?;
    }
    Ok(target)
}

fn alike(name: &str, other: &str) -> bool {
    let start = |name: &str| name.chars().take(3).collect::<String>();
    start(name) == start(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_processors_are_refused_with_those_alike() {
        assert!(PROCESSORS.is_sorted());
        assert_eq!(named("native").expect("known"), Target::host());
        assert!(named("znver4").is_ok());
        let Err(Stop::Usage(message)) = named("znver99") else { panic!("not refused") };
        assert!(message.contains("znver1, znver2"), "{message}");
        assert!(named("").is_err());
    }
}
