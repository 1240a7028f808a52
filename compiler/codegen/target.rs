//! What machine to generate for.
use inkwell::targets::TargetMachine;
use std::sync::OnceLock;

/// Which code generator takes the `llvm` dialect to an object, or to source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// LLVM: the fast code.
    #[default]
    Llvm,
    /// Cranelift: the same lowered code, compiled quickly.
    Cranelift,
    /// The same lowered code as C source, for a C compiler.
    C,
}

/// A processor: triple, CPU name and feature string, as LLVM spells them; and who generates code for
/// it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// `znver5`, `x86-64-v3`, …
    pub cpu: String,
    /// `+avx2,-avx512f,…`; empty for just what the CPU name implies.
    pub features: String,
    /// The code generator.
    pub backend: Backend,
}

impl Target {
    /// This machine, with every feature it has.
    pub fn host() -> Self {
        static HOST: OnceLock<Target> = OnceLock::new();
        HOST.get_or_init(|| Target {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string(),
            features: TargetMachine::get_host_cpu_features().to_string(),
            backend: Backend::Llvm,
        })
        .clone()
    }

    /// The target for a `--target-cpu` value: `native`, or a CPU name of the host's architecture.
    pub fn from_name(cpu: &str) -> Self {
        if cpu == "native" {
            return Self::host();
        }
        Target { cpu: cpu.to_owned(), features: String::new(), ..Self::host() }
    }

    /// Any processor of this architecture, for C source: what C compilers assume without flags.
    pub fn portable() -> Self {
        Self::from_name("x86-64").with_backend(Backend::C)
    }

    /// The same processor with another code generator.
    pub fn with_backend(self, backend: Backend) -> Self {
        Target { backend, ..self }
    }

    /// Bytes of the widest vector register that code should use.
    pub fn vector_bytes(&self) -> u32 {
        if self.backend == Backend::Cranelift {
            // The only vectors that Cranelift has.
            return 16;
        }
        if self.backend == Backend::C && matches!(self.cpu.as_str(), "x86-64" | "x86-64-v2") {
            // A C compiler takes wider ones apart.
            return 16;
        }
        let wide_cpu = [
            "x86-64-v4",
            "skylake-avx512",
            "cascadelake",
            "icelake-server",
            "sapphirerapids",
            "emeraldrapids",
            "graniterapids",
            "znver4",
            "znver5",
        ];
        let has_avx512 = if self.features.is_empty() {
            wide_cpu.contains(&self.cpu.as_str())
        } else {
            self.has("+avx512f") && self.has("+avx512vl") && self.has("+avx512bw")
        };
        if has_avx512 { 64 } else { 32 }
    }

    /// Whether this machine can run code generated for the target.
    pub fn runs_here(&self) -> bool {
        let host = Self::host();
        if self.triple != host.triple {
            return false;
        }
        match self.cpu.as_str() {
            "x86-64" | "x86-64-v2" => true,
            "x86-64-v3" => host.has("+avx2") && host.has("+fma") && host.has("+f16c"),
            "x86-64-v4" => host.vector_bytes() == 64,
            cpu => cpu == host.cpu,
        }
    }

    /// The features that code for this target may use and that a loader can ask a processor about.
    pub fn required_features(&self) -> Vec<String> {
        if self.backend == Backend::C {
            // The C compiler decides, and by itself needs none.
            return Vec::new();
        }
        if self.backend == Backend::Cranelift {
            let used = super::cranelift::features(self).unwrap_or_default().into_iter();
            let known = used.filter(|name| irc_runtime::is_known_feature(name));
            return known.map(str::to_owned).collect();
        }
        let level: &[&str] = match self.cpu.as_str() {
            "x86-64" => &[],
            "x86-64-v2" => &["popcnt"],
            "x86-64-v4" => &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
            _ => &["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt"],
        };
        let listed = self.features.split(',').filter_map(|feature| feature.strip_prefix('+'));
        let mut features: Vec<String> = listed
            .filter(|name| irc_runtime::is_known_feature(name))
            .chain(level.iter().copied())
            .map(str::to_owned)
            .collect();
        if self.features.is_empty() && self.vector_bytes() == 64 {
            features.extend(["avx512f", "avx512bw", "avx512dq", "avx512vl"].map(str::to_owned));
        }
        features.sort();
        features.dedup();
        features
    }

    /// Whether the processor may have no instructions that convert `f16` and `bf16`.
    pub fn lacks_conversions(&self) -> bool {
        let has_halves = match self.cpu.as_str() {
            "x86-64" | "x86-64-v2" => false,
            _ => self.features.is_empty() || self.has("+f16c"),
        };
        !has_halves || !self.has("+avx512bf16")
    }

    fn has(&self, feature: &str) -> bool {
        self.features.split(',').any(|known| known == feature)
    }
}
