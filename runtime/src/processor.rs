//! Processors of x86-64: the features that generated code may use, and which processor has which. The code
//! generators, the loader and the command line read these tables. Names are those of LLVM.
use Level::{V1, V2, V3, V4};

/// A level of the x86-64 psABI (section 3.1.1); each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// `x86-64`.
    V1,
    /// `x86-64-v2`.
    V2,
    /// `x86-64-v3`.
    V3,
    /// `x86-64-v4`.
    V4,
}

/// Instructions that a processor may have.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// LLVM's name.
    pub name: &'static str,
    /// The first level with it; `None` when no level requires it.
    pub level: Option<Level>,
    /// Cranelift's setting; `None` when Cranelift does not use it.
    pub cranelift: Option<&'static str>,
    is_here: fn() -> bool,
}

#[cfg(target_arch = "x86_64")]
macro_rules! is_here {
    ($rust:tt) => {
        || std::arch::is_x86_feature_detected!($rust)
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! is_here {
    ($rust:tt) => {
        || false
    };
}

macro_rules! features {
    ($($name:literal, $rust:tt, $level:expr, $cranelift:expr;)*) => {
        &[$(Feature {
            name: $name,
            level: $level,
            cranelift: $cranelift,
            is_here: is_here!($rust),
        }),*]
    };
}

/// The features beyond `x86-64` that generated code may use: by level, then by name. CMPXCHG16B and
/// LAHF/SAHF, which the levels require as well, are in no code that irc generates.
#[rustfmt::skip]
pub const FEATURES: &[Feature] = features! {
    // LLVM             Rust               level     Cranelift
    "popcnt",          "popcnt",          Some(V2), Some("has_popcnt");
    "sse3",            "sse3",            Some(V2), Some("has_sse3");
    "sse4.1",          "sse4.1",          Some(V2), Some("has_sse41");
    "sse4.2",          "sse4.2",          Some(V2), Some("has_sse42");
    "ssse3",           "ssse3",           Some(V2), Some("has_ssse3");
    "avx",             "avx",             Some(V3), Some("has_avx");
    "avx2",            "avx2",            Some(V3), Some("has_avx2");
    "bmi",             "bmi1",            Some(V3), Some("has_bmi1");
    "bmi2",            "bmi2",            Some(V3), Some("has_bmi2");
    "f16c",            "f16c",            Some(V3), None;
    "fma",             "fma",             Some(V3), Some("has_fma");
    "lzcnt",           "lzcnt",           Some(V3), Some("has_lzcnt");
    "movbe",           "movbe",           Some(V3), None;
    "avx512bw",        "avx512bw",        Some(V4), None;
    "avx512cd",        "avx512cd",        Some(V4), None;
    "avx512dq",        "avx512dq",        Some(V4), Some("has_avx512dq");
    "avx512f",         "avx512f",         Some(V4), Some("has_avx512f");
    "avx512vl",        "avx512vl",        Some(V4), Some("has_avx512vl");
    "avx512bf16",      "avx512bf16",      None,     None;
    "avx512bitalg",    "avx512bitalg",    None,     Some("has_avx512bitalg");
    "avx512fp16",      "avx512fp16",      None,     None;
    "avx512ifma",      "avx512ifma",      None,     None;
    "avx512vbmi",      "avx512vbmi",      None,     Some("has_avx512vbmi");
    "avx512vbmi2",     "avx512vbmi2",     None,     None;
    "avx512vnni",      "avx512vnni",      None,     None;
    "avx512vpopcntdq", "avx512vpopcntdq", None,     None;
    "avxifma",         "avxifma",         None,     None;
    "avxneconvert",    "avxneconvert",    None,     None;
    "avxvnni",         "avxvnni",         None,     None;
    "avxvnniint16",    "avxvnniint16",    None,     None;
    "avxvnniint8",     "avxvnniint8",     None,     None;
    "gfni",            "gfni",            None,     None;
};

/// The processors that LLVM 22 knows, by what they have of [`FEATURES`]: names, level, and features beyond
/// the level. Made with `clang -march=NAME -dM -E -`.
#[rustfmt::skip]
const PROCESSORS: &[(&str, Level, &str)] = &[
    ("athlon-fx athlon64 k8 opteron x86-64", V1, ""),
    ("athlon64-sse3 k8-sse3 nocona opteron-sse3", V1, "sse3"),
    ("core2", V1, "sse3 ssse3"),
    ("amdfam10 barcelona", V1, "lzcnt popcnt sse3"),
    ("atom bonnell", V1, "movbe sse3 ssse3"),
    ("penryn", V1, "sse3 sse4.1 ssse3"),
    ("btver1", V1, "lzcnt popcnt sse3 ssse3"),
    ("corei7 nehalem westmere x86-64-v2", V2, ""),
    ("corei7-avx sandybridge", V2, "avx"),
    ("goldmont goldmont-plus silvermont slm", V2, "movbe"),
    ("bdver1", V2, "avx lzcnt"),
    ("core-avx-i ivybridge", V2, "avx f16c"),
    ("tremont", V2, "gfni movbe"),
    ("bdver2 bdver3", V2, "avx bmi f16c fma lzcnt"),
    ("btver2", V2, "avx bmi f16c lzcnt movbe"),
    ("bdver4 broadwell core-avx2 haswell skylake x86-64-v3 znver1 znver2 znver3", V3, ""),
    ("alderlake gracemont meteorlake raptorlake", V3, "avxvnni gfni"),
    ("knl", V3, "avx512cd avx512f"),
    ("knm", V3, "avx512cd avx512f avx512vpopcntdq"),
    ("arrowlake grandridge sierraforest", V3, "avxifma avxneconvert avxvnni avxvnniint8 gfni"),
    (
        "arrowlake-s clearwaterforest lunarlake pantherlake wildcatlake",
        V3,
        "avxifma avxneconvert avxvnni avxvnniint16 avxvnniint8 gfni",
    ),
    ("skx skylake-avx512 x86-64-v4", V4, ""),
    ("cascadelake", V4, "avx512vnni"),
    ("cannonlake", V4, "avx512ifma avx512vbmi"),
    ("cooperlake", V4, "avx512bf16 avx512vnni"),
    (
        "icelake-client icelake-server rocketlake tigerlake",
        V4,
        "avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq gfni",
    ),
    (
        "znver4",
        V4,
        "avx512bf16 avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq gfni",
    ),
    (
        "znver5",
        V4,
        "avx512bf16 avx512bitalg avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq avxvnni gfni",
    ),
    (
        "emeraldrapids graniterapids graniterapids-d sapphirerapids",
        V4,
        "avx512bf16 avx512bitalg avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq \
         avxvnni gfni",
    ),
    (
        "diamondrapids novalake",
        V4,
        "avx512bf16 avx512bitalg avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512vpopcntdq \
         avxifma avxneconvert avxvnni avxvnniint16 avxvnniint8 gfni",
    ),
];

/// The names of the processors that LLVM knows, in no order.
pub fn processors() -> impl Iterator<Item = &'static str> {
    PROCESSORS.iter().flat_map(|(names, ..)| names.split(' '))
}

/// What a processor has of [`FEATURES`]; `None` for a name that LLVM does not know.
pub fn features_of(cpu: &str) -> Option<Vec<&'static str>> {
    let row = PROCESSORS.iter().find(|(names, ..)| names.split(' ').any(|name| name == cpu));
    let (_, level, more) = row?;
    let has = |feature: &&Feature| {
        feature.level.is_some_and(|first| first <= *level)
            || more.split(' ').any(|name| name == feature.name)
    };
    Some(FEATURES.iter().filter(has).map(|feature| feature.name).collect())
}

/// The features among `required` that this processor lacks, or that are not in [`FEATURES`].
pub fn missing_features(required: &[String]) -> Vec<String> {
    let is_missing = |name: &&String| {
        !FEATURES.iter().any(|feature| feature.name == **name && (feature.is_here)())
    };
    required.iter().filter(is_missing).cloned().collect()
}

/// The features that code for a target of TVM uses, as far as its description states them:
/// `llvm -mcpu=skylake-avx512 -mattr=+fma`. Names that are not in the tables are ignored.
pub(crate) fn required_by(target: &str) -> Vec<String> {
    let mut required = vec![];
    for option in target.split_ascii_whitespace() {
        if let Some(cpu) = option.strip_prefix("-mcpu=") {
            required.extend(features_of(cpu).unwrap_or_default());
        }
        if let Some(list) = option.strip_prefix("-mattr=") {
            let added = list.split(',').filter_map(|feature| feature.strip_prefix('+'));
            let known = |name: &&str| FEATURES.iter().any(|feature| feature.name == *name);
            required.extend(added.filter(known));
        }
    }
    required.into_iter().map(str::to_owned).collect()
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
    fn levels_and_processors_are_made_of_known_features() {
        let beyond = |cpu: &str, level: &str| {
            let (all, level) = (features_of(cpu).expect(cpu), features_of(level).expect(level));
            assert!(level.iter().all(|feature| all.contains(feature)), "{cpu}");
            all.into_iter().filter(|feature| !level.contains(feature)).collect::<Vec<_>>()
        };
        assert_eq!(features_of("x86-64"), Some(vec![]));
        assert_eq!(beyond("x86-64-v4", "x86-64-v3").len(), 5);
        assert_eq!(beyond("znver4", "icelake-server"), ["avx512bf16"]);
        assert_eq!(beyond("sandybridge", "x86-64-v2"), ["avx"]);
        assert_eq!(features_of("pdp11"), None);
        let known = |name: &str| FEATURES.iter().any(|feature| feature.name == name);
        for (names, level, more) in PROCESSORS {
            assert!(more.split_terminator(' ').all(known), "{names}: {level:?} {more}");
        }
        let mut names: Vec<_> = processors().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), processors().count());
    }

    #[test]
    fn targets_of_tvm_tell_what_they_use() {
        assert_eq!(required_by("llvm -keys=cpu -link-params=0"), Vec::<String>::new());
        assert_eq!(
            Some(required_by("llvm -mcpu=core-avx2").len()),
            features_of("x86-64-v3").map(|all| all.len())
        );
        assert_eq!(required_by("llvm -mcpu=pdp11 -mattr=+avx,-fma,+sse"), ["avx"]);
    }
}
