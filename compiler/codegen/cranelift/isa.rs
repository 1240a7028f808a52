//! What Cranelift may use of the processor.
use crate::codegen::{CodegenError, Target};
use cranelift_codegen::{
    isa::{self, OwnedTargetIsa},
    settings::{self, Configurable},
};

/// Cranelift's flags beside LLVM's names of what they stand for.
const FLAGS: [(&str, &str); 16] = [
    ("has_sse3", "sse3"),
    ("has_ssse3", "ssse3"),
    ("has_sse41", "sse4.1"),
    ("has_sse42", "sse4.2"),
    ("has_avx", "avx"),
    ("has_avx2", "avx2"),
    ("has_fma", "fma"),
    ("has_popcnt", "popcnt"),
    ("has_bmi1", "bmi"),
    ("has_bmi2", "bmi2"),
    ("has_lzcnt", "lzcnt"),
    ("has_avx512f", "avx512f"),
    ("has_avx512dq", "avx512dq"),
    ("has_avx512vl", "avx512vl"),
    ("has_avx512vbmi", "avx512vbmi"),
    ("has_avx512bitalg", "avx512bitalg"),
];

/// What x86-64-v2 has.
const V2: [&str; 5] = ["popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"];

/// What x86-64-v3 adds.
const V3: [&str; 6] = ["avx", "avx2", "bmi", "bmi2", "fma", "lzcnt"];

/// The code generator for a target.
///
/// # Errors
/// A processor that is not x86-64, or one too old for vectors.
pub fn isa(target: &Target) -> Result<OwnedTargetIsa, CodegenError> {
    let fault = |what: &dyn std::fmt::Display| CodegenError::new(format!("cranelift: {what}"));
    let mut shared = settings::builder();
    let set = [
        ("opt_level", "none"),
        ("is_pic", "true"),
        ("unwind_info", "false"),
        ("enable_probestack", "false"),
        ("enable_multi_ret_implicit_sret", "true"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ];
    for (name, value) in set {
        shared.set(name, value).map_err(|error| fault(&error))?;
    }
    let mut builder = isa::lookup_by_name(&target.triple).map_err(|error| {
        fault(&format!("no code for '{}': {error}; use --backend llvm", target.triple))
    })?;
    let features = features(target).ok_or_else(|| {
        let cpu = &target.cpu;
        fault(&format!(
            "what '{cpu}' has is not known; name native, x86-64-v2, x86-64-v3 or x86-64-v4"
        ))
    })?;
    if !V2.iter().all(|feature| features.contains(feature)) {
        let cpu = &target.cpu;
        return Err(fault(&format!(
            "'{cpu}' lacks the vector instructions of x86-64-v2; use --backend llvm"
        )));
    }
    for (flag, feature) in FLAGS {
        if features.contains(&feature) {
            builder.enable(flag).map_err(|error| fault(&error))?;
        }
    }
    builder.finish(settings::Flags::new(shared)).map_err(|error| fault(&error))
}

/// The features of a target that Cranelift knows, in LLVM's names; `None` for a processor that is
/// known by a name alone.
pub fn features(target: &Target) -> Option<Vec<&'static str>> {
    let known = FLAGS.iter().map(|(_, feature)| *feature);
    let listed: Vec<&str> =
        target.features.split(',').filter_map(|feature| feature.strip_prefix('+')).collect();
    if !listed.is_empty() {
        return Some(known.filter(|feature| listed.contains(feature)).collect());
    }
    match target.cpu.as_str() {
        "x86-64" => Some(Vec::new()),
        "x86-64-v2" => Some(V2.to_vec()),
        "x86-64-v3" | "x86-64-v4" => Some([V2.as_slice(), V3.as_slice()].concat()),
        _ => None,
    }
}
