//! Features of this machine's processor, by LLVM's names.

/// The features among `required` that this processor lacks, or that cannot be asked about here.
pub fn missing_features(required: &[String]) -> Vec<String> {
    if required.is_empty() {
        return vec![];
    }
    let features = features();
    let is_there =
        |name: &String| features.iter().any(|(known, is_there)| known == name && *is_there);
    let mut missing = required.to_vec();
    missing.retain(|name| !is_there(name));
    missing
}

/// The features that code for a target of TVM uses, as far as its description says:
/// `llvm -mcpu=skylake-avx512 -mattr=+fma`. Processors that are not listed here say nothing.
pub(crate) fn required_by(target: &str) -> Vec<String> {
    let mut required = vec![];
    for option in target.split_ascii_whitespace() {
        if let Some(name) = option.strip_prefix("-mcpu=") {
            let known = PROCESSORS.iter().find(|(names, _)| names.contains(&name));
            let features = known.map_or(&[][..], |(_, features)| features);
            required.extend(features.iter().map(|feature| (*feature).to_owned()));
        }
        if let Some(list) = option.strip_prefix("-mattr=") {
            let added = list.split(',').filter_map(|feature| feature.strip_prefix('+'));
            required.extend(added.filter(|name| is_known(name)).map(str::to_owned));
        }
    }
    required
}

/// Names of processors in LLVM, with the features that tell them from older ones.
const PROCESSORS: [(&[&str], &[&str]); 3] = [
    (&["sandybridge", "ivybridge", "corei7-avx", "core-avx-i"], &["avx"]),
    (
        &[
            "haswell",
            "broadwell",
            "skylake",
            "core-avx2",
            "znver1",
            "znver2",
            "znver3",
            "x86-64-v3",
        ],
        V3,
    ),
    (
        &["skylake-avx512", "skx", "cascadelake", "icelake-server", "sapphirerapids", "x86-64-v4"],
        V4,
    ),
];

const V3: &[&str] = &["avx2", "fma", "f16c", "bmi2"];
const V4: &[&str] = &["avx2", "fma", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"];

#[cfg(target_arch = "x86_64")]
macro_rules! has {
    ($rust:tt) => {
        std::arch::is_x86_feature_detected!($rust)
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! has {
    ($rust:tt) => {
        false
    };
}

macro_rules! features {
    ($($llvm:literal => $rust:tt,)*) => {
        [$(($llvm, has!($rust)),)*]
    };
}

/// The features that can be asked about, by LLVM's names, and whether this processor has each.
fn features() -> [(&'static str, bool); 22] {
    features! {
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
    }
}

/// Whether [`missing_features`] can ask about a feature.
pub fn is_known(name: &str) -> bool {
    features().iter().any(|(known, _)| *known == name)
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
    fn targets_of_tvm_say_what_they_use() {
        assert_eq!(required_by("llvm -keys=cpu -link-params=0"), Vec::<String>::new());
        assert_eq!(required_by("llvm -mcpu=core-avx2"), V3);
        assert_eq!(required_by("llvm -mcpu=pdp11 -mattr=+avx,-fma,+sse"), ["avx"]);
        let unknown = |name: &&&str| !is_known(name);
        assert_eq!(PROCESSORS.iter().flat_map(|(_, features)| *features).find(unknown), None);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_can_be_asked_about_agrees_with_the_standard_library() {
        let missing = missing_features(&["avx2".to_owned()]);
        assert_eq!(missing.is_empty(), std::arch::is_x86_feature_detected!("avx2"));
    }
}
