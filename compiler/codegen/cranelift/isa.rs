//! The processor features that Cranelift may use.
use crate::codegen::{CodegenError, Target};
use cranelift_codegen::{
    isa::{self, OwnedTargetIsa},
    settings::{self, Configurable},
};
use irc_runtime::processor::{FEATURES, features_of};

/// The code generator for a target.
///
/// # Errors
/// A processor that is not x86-64, or that lacks the vector instructions that Cranelift needs.
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
        fault(&format!("what '{cpu}' has is not known; name native or x86-64-v3, say"))
    })?;
    let level = features_of("x86-64-v2").unwrap_or_default();
    if !level.iter().all(|feature| features.contains(feature)) {
        let cpu = &target.cpu;
        return Err(fault(&format!(
            "'{cpu}' lacks the vector instructions of x86-64-v2; use --backend llvm"
        )));
    }
    for feature in FEATURES.iter().filter(|feature| features.contains(&feature.name)) {
        if let Some(flag) = feature.cranelift {
            builder.enable(flag).map_err(|error| fault(&error))?;
        }
    }
    builder.finish(settings::Flags::new(shared)).map_err(|error| fault(&error))
}

/// The features of a target that Cranelift uses; `None` if the features of the processor are unknown.
pub fn features(target: &Target) -> Option<Vec<&'static str>> {
    let has = target.known_features()?;
    let used = FEATURES.iter().filter(|feature| feature.cranelift.is_some());
    Some(used.map(|feature| feature.name).filter(|name| has.contains(name)).collect())
}
