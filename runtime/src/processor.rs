//! What this machine's processor can do, by LLVM's feature names.

/// The features among `required` that this processor lacks, or that cannot be asked about here.
pub fn missing_features(required: &[String]) -> Vec<String> {
    required.iter().filter(|name| !has(name)).cloned().collect()
}

macro_rules! detect {
    ($name:expr, { $($llvm:literal => $rust:tt,)* }) => {
        match $name {
            $($llvm => std::arch::is_x86_feature_detected!($rust),)*
            _ => false,
        }
    };
}

/// Whether [`missing_features`] can ask about a feature.
pub fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

const KNOWN: [&str; 22] = [
    "avx",
    "avx2",
    "avx512bf16",
    "avx512bitalg",
    "avx512bw",
    "avx512cd",
    "avx512dq",
    "avx512f",
    "avx512fp16",
    "avx512ifma",
    "avx512vbmi",
    "avx512vbmi2",
    "avx512vl",
    "avx512vnni",
    "avx512vpopcntdq",
    "bmi",
    "bmi2",
    "f16c",
    "fma",
    "lzcnt",
    "movbe",
    "popcnt",
];

#[cfg(target_arch = "x86_64")]
fn has(name: &str) -> bool {
    detect!(name, {
        "avx" => "avx",
        "avx2" => "avx2",
        "avx512bf16" => "avx512bf16",
        "avx512bitalg" => "avx512bitalg",
        "avx512bw" => "avx512bw",
        "avx512cd" => "avx512cd",
        "avx512dq" => "avx512dq",
        "avx512f" => "avx512f",
        "avx512fp16" => "avx512fp16",
        "avx512ifma" => "avx512ifma",
        "avx512vbmi" => "avx512vbmi",
        "avx512vbmi2" => "avx512vbmi2",
        "avx512vl" => "avx512vl",
        "avx512vnni" => "avx512vnni",
        "avx512vpopcntdq" => "avx512vpopcntdq",
        "bmi" => "bmi1",
        "bmi2" => "bmi2",
        "f16c" => "f16c",
        "fma" => "fma",
        "lzcnt" => "lzcnt",
        "movbe" => "movbe",
        "popcnt" => "popcnt",
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn has(_name: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_no_processor_has_is_missing() {
        let required = vec!["warp-drive".to_owned()];
        assert_eq!(missing_features(&required), required);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_can_be_asked_about_agrees_with_the_standard_library() {
        let missing = missing_features(&["avx2".to_owned()]);
        assert_eq!(missing.is_empty(), std::arch::is_x86_feature_detected!("avx2"));
    }
}
