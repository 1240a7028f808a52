//! The machine for which code is generated.
use super::{Backend, nvptx};
use crate::lowering::linalg_to_vector::Dots;
use inkwell::targets::TargetMachine;
use irc_runtime::{missing_features, processor};
use std::sync::OnceLock;

/// A processor: triple, CPU name and feature string, as LLVM spells them; and its code generator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `x86_64-unknown-linux-gnu`.
    pub triple: String,
    /// `znver5`, `x86-64-v3`, …
    pub cpu: String,
    /// `+avx2,-avx512f,…`; empty for the features that the CPU name implies.
    pub features: String,
    /// The code generator.
    pub backend: Backend,
    /// The form of a program for a GPU.
    pub form: GpuForm,
}

/// The form of a program for a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GpuForm {
    /// Whether it records when tasks and kernels begin and end.
    pub timestamps: bool,
    /// Whether each processor group of a plan, and each kernel of a model, is a launch of its own.
    pub separate: bool,
}

impl Target {
    /// This machine, with all its features.
    pub fn host() -> Self {
        static HOST: OnceLock<Target> = OnceLock::new();
        HOST.get_or_init(|| Target {
            triple: TargetMachine::get_default_triple().as_str().to_string_lossy().into_owned(),
            cpu: TargetMachine::get_host_cpu_name().to_string(),
            features: TargetMachine::get_host_cpu_features().to_string(),
            backend: Backend::LLVM,
            form: GpuForm::default(),
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

    /// An NVIDIA GPU of a compute capability: 80, 90, ...
    pub fn gpu(capability: u32) -> Self {
        let suffix = if capability == 90 { "a" } else { "" };
        Target {
            triple: nvptx::TRIPLE.to_owned(),
            cpu: format!("sm_{capability}{suffix}"),
            // 8.3 has tensor maps that kernels write.
            features: if capability == 90 { "+ptx83" } else { "+ptx80" }.to_owned(),
            backend: Backend::NVPTX,
            form: GpuForm::default(),
        }
    }

    /// The compute capability of an NVIDIA GPU; 0 for other processors.
    pub fn capability(&self) -> u32 {
        let number = self.cpu.strip_prefix("sm_").map(|name| name.trim_end_matches('a'));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The same processor with another code generator.
    pub fn with_backend(self, backend: Backend) -> Self {
        Target { backend, ..self }
    }

    /// Width in bytes of the widest vector register that code should use.
    pub fn vector_bytes(&self) -> u32 {
        (self.backend.vector_bytes)(self)
    }

    /// The instructions that code should use for sums of products of bytes.
    pub fn dots(&self) -> Dots {
        (self.backend.dots)(self)
    }

    /// Whether code may store past the caches.
    pub fn streams(&self) -> bool {
        (self.backend.streams)(self)
    }

    /// Whether this machine can run code generated for the target.
    pub fn runs_here(&self) -> bool {
        let host = Self::host();
        let is_known = self.cpu == host.cpu || processor::features_of(&self.cpu).is_some();
        self.triple == host.triple
            && is_known
            && missing_features(&self.required_features()).is_empty()
    }

    /// Checks that this machine can run code generated for the target.
    ///
    /// # Errors
    /// If it cannot.
    pub fn expect_runnable(&self) -> Result<(), String> {
        match self.runs_here() {
            true => Ok(()),
            false => Err(format!("code for '{}' does not run on this machine", self.cpu)),
        }
    }

    /// The features that code for this target may use and that a loader can detect on a processor;
    /// [`UsedFeatures`](super::UsedFeatures) are those that it does use.
    pub fn required_features(&self) -> Vec<String> {
        (self.backend.features)(self).into_iter().map(str::to_owned).collect()
    }

    /// The features of [`processor::FEATURES`] that the processor has; `None` if neither its name nor its
    /// list of features determines them.
    pub fn known_features(&self) -> Option<Vec<&'static str>> {
        if self.features.is_empty() {
            return processor::features_of(&self.cpu);
        }
        let all = processor::FEATURES.iter().map(|feature| feature.name);
        let is_listed = |name: &&str| {
            let mut listed = self.features.split(',').filter_map(|it| it.strip_prefix('+'));
            listed.any(|listed| listed == *name)
        };
        Some(all.filter(is_listed).collect())
    }

    /// Whether the processor is known to have all of these features.
    pub fn has(&self, features: &[&str]) -> bool {
        let known = self.known_features().unwrap_or_default();
        features.iter().all(|feature| known.contains(feature))
    }
}
