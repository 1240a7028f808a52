//! The stage table: the stages that every tool runs, in order, and the dialects that may remain after each.
use crate::{
    GpuForm, Target,
    lowering::{emit_gpu_entry, linalg_to_vector::Dots, prepare_products::ByteSums},
};

/// One step of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// The name that `--compile-to` and `--compile-from` take.
    pub name: &'static str,
    /// Passes, as a textual pipeline on `builtin.module`, for the given settings.
    pub passes: fn(&Settings) -> String,
    /// Dialects that may remain afterwards, besides `builtin`.
    pub leaves: &'static [&'static str],
    /// One line on why the stage is at this position.
    pub why: &'static str,
}

/// The settings that the options of passes depend on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The vector width in bytes that kernels are scheduled for.
    pub vector_bytes: u32,
    /// The instructions for sums of products of bytes.
    pub dots: Dots,
    /// Whether code may store past the caches.
    pub streams: bool,
    /// The prefix of the names of kernels.
    pub kernel_prefix: String,
    /// The number of threads of a block of a GPU.
    pub block_threads: u32,
    /// The compute capability of a GPU: 80, 90, ...
    pub capability: u32,
    /// The most bytes of scratch of a task that are in the shared memory of a GPU.
    pub shared_scratch: u64,
    /// The form of a program for a GPU.
    pub form: GpuForm,
    /// The stages.
    pub pipeline: &'static Pipeline,
}

impl Default for Settings {
    /// The settings of `irc compile` without flags.
    fn default() -> Self {
        Self::of(&Target::host())
    }
}

impl Settings {
    /// The settings for a target.
    pub fn of(target: &Target) -> Self {
        Settings {
            vector_bytes: target.vector_bytes(),
            dots: target.dots(),
            streams: target.streams(),
            kernel_prefix: String::new(),
            block_threads: emit_gpu_entry::block_threads(target.capability()),
            capability: target.capability(),
            shared_scratch: 0,
            form: target.form,
            pipeline: target.backend.pipeline,
        }
    }

    /// How kernels add products of bytes of images of open sizes.
    pub fn byte_sums(&self) -> ByteSums {
        match self.vector_bytes == 64 && self.dots == Dots::Vnni {
            true => ByteSums::Dots,
            false => ByteSums::Floats,
        }
    }
}

/// A named list of stages.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline {
    /// The name that `--irc-pipeline` takes.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// The stages, in order.
    pub stages: &'static [Stage],
}

/// A host library from a source format's dialect.
pub const HOST_CPU: Pipeline = Pipeline {
    name: "host-cpu",
    summary: "from a source dialect to the llvm dialect, for the host library",
    stages: &[
        Stage {
            name: "import",
            passes: |_| String::new(),
            leaves: &["ark", "common_ir", "func", "gemini", "tl"],
            why: "the file as written",
        },
        Stage {
            name: "tensor",
            // `ark-to-tl` does not change a program that `common-ir-to-tl` has written.
            passes: |settings| {
                let sums = settings.byte_sums().name();
                format!("common-ir-to-tl{{byte-sums={sums}}},ark-to-tl,canonicalize,cse")
            },
            leaves: &["func", "tl"],
            why: "memory becomes values, so that what is computed can be compared and moved",
        },
        Stage {
            name: "fuse",
            passes: |_| "func.func(fuse)".into(),
            leaves: &["func", "tl"],
            why: "before tiling, which must see whole groups",
        },
        Stage {
            name: "kernels",
            passes: |settings| match settings.kernel_prefix.as_str() {
                "" => "outline-kernels".into(),
                prefix => format!("outline-kernels{{prefix={prefix}_}}"),
            },
            leaves: &["func", "tl"],
            why: "one function per kernel, so that each compiles and caches alone",
        },
        Stage {
            name: "linalg",
            passes: |_| "split-blocks,tl-to-linalg".into(),
            leaves: &["arith", "func", "linalg", "math", "tensor", "tl"],
            why: "loops and index maps become explicit; tl stays in main, as reshapes, and in kernels of loops",
        },
        Stage {
            name: "vector",
            passes: |settings| {
                let Settings { vector_bytes: bytes, dots, streams, .. } = settings;
                let dots = dots.name();
                format!(
                    "linalg-to-vector{{vector-bytes={bytes} dots={dots} streams={streams}}},\
                     compute-to-loops{{vector-bytes={bytes} dots={dots}}}"
                )
            },
            leaves: &["arith", "func", "llvm", "math", "memref", "scf", "tl", "vector"],
            why: "the schedule: tiles, vectors, packing; kernels now write into memory",
        },
        Stage {
            name: "memory",
            passes: |_| "plan-memory".into(),
            leaves: &["arith", "cf", "func", "llvm", "math", "memref", "scf", "vector"],
            why: "after scheduling, which says how much scratch each kernel needs",
        },
        Stage {
            name: "llvm",
            passes: |_| TO_LLVM.into(),
            leaves: &["llvm"],
            why: "what LLVM translates",
        },
    ],
};

/// A kernel for a GPU from a source format's dialect.
pub const NVPTX: Pipeline = Pipeline {
    name: "nvptx",
    summary: "from a source dialect to the dialects llvm and nvvm, for one kernel of a GPU",
    stages: &[
        HOST_CPU.stages[0],
        HOST_CPU.stages[1],
        HOST_CPU.stages[2],
        HOST_CPU.stages[3],
        Stage {
            name: "simt",
            passes: |settings| {
                let Settings { block_threads, capability, shared_scratch, .. } = settings;
                format!(
                    "compute-to-simt{{threads={block_threads} capability={capability} scratch={shared_scratch}}}"
                )
            },
            leaves: &["arith", "func", "math", "memref", "scf", "tl", "vector"],
            why: "the schedule: which thread computes what; kernels now write into memory",
        },
        Stage {
            name: "memory",
            passes: |settings| {
                let GpuForm { timestamps, separate } = settings.form;
                let split = if separate { ",split-program" } else { "" };
                format!(
                    "checks-to-kernels,plan-memory,share-program{{timestamps={timestamps}}}{split}"
                )
            },
            leaves: &["arith", "cf", "func", "math", "memref", "scf", "vector"],
            why: "after scheduling, which says how much scratch each kernel needs",
        },
        Stage {
            name: "llvm",
            passes: |settings| {
                let Settings { block_threads, form, .. } = settings;
                format!("{TO_LLVM_GPU}{{threads={block_threads} timestamps={}}}", form.timestamps)
            },
            leaves: &["llvm", "nvvm"],
            why: "what LLVM translates",
        },
    ],
};

/// As [`TO_LLVM`], for GPUs.
const TO_LLVM_GPU: &str = "canonicalize,cse,math-to-functions,convert-scf-to-cf,cut-blocks,\
    expand-strided-metadata,lower-affine,convert-math-to-llvm,\
    convert-vector-to-llvm,finalize-memref-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,\
    convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,canonicalize,cse,\
    reconcile-unrealized-casts,tabulate-steps,emit-gpu-entry";

/// Upstream lowerings from vectors and loops to the `llvm` dialect. Functions of `math` are lowered before
/// vectors: calling libm for each lane splits vectors.
pub(crate) const TO_LLVM: &str = "canonicalize,cse,convert-vector-to-scf{full-unroll=true},convert-scf-to-cf,cut-blocks,load-buffers,\
    expand-strided-metadata,lower-affine,arith-expand{include-bf16=true},\
    convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm{enable-x86vector=true},\
    finalize-memref-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,\
    convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,canonicalize,cse,\
    reconcile-unrealized-casts,bf16-as-bits,emit-entry";

/// All pipelines.
pub const PIPELINES: &[Pipeline] = &[HOST_CPU, NVPTX];

impl PartialEq for Pipeline {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Pipeline {}

/// A stage of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The pipeline.
    pub pipeline: &'static Pipeline,
    /// The name of the stage.
    pub stage: &'static str,
    /// The compute capability of the GPU that kernels are written for, if they are.
    pub capability: Option<u32>,
}

impl Reached {
    /// Checks that another pipeline continues after the stage: it is one of its own, or one of the first that all have.
    ///
    /// # Errors
    /// If it does not.
    pub fn expect(&self, pipeline: &Pipeline) -> Result<(), String> {
        let Self { pipeline: own, stage, .. } = self;
        let stages = own.stages.iter().zip(pipeline.stages);
        let mut shared = stages.take_while(|(own, other)| own.name == other.name);
        match *own == pipeline || shared.any(|(own, _)| own.name == *stage) {
            true => Ok(()),
            false => Err(format!(
                "the module is after stage '{stage}' of the pipeline '{}', and '{}' does not continue there",
                own.name, pipeline.name
            )),
        }
    }
}

impl Pipeline {
    /// The pipeline with a name.
    pub fn named(name: &str) -> Option<&'static Pipeline> {
        PIPELINES.iter().find(|pipeline| pipeline.name == name)
    }

    /// The stage whose output is scheduled kernels: the one before memory is planned.
    pub fn scheduled(&self) -> &'static str {
        let before = self.stages.windows(2).find(|pair| pair[1].name == "memory");
        before.map_or("memory", |pair| pair[0].name)
    }

    /// The position of a stage.
    ///
    /// # Errors
    /// An unknown stage; the message lists the stages.
    pub fn position(&self, stage: &str) -> Result<usize, String> {
        self.stages.iter().position(|known| known.name == stage).ok_or_else(|| {
            let names: Vec<_> = self.stages.iter().map(|known| known.name).collect();
            format!("no stage '{stage}' in pipeline '{}'; stages: {}", self.name, names.join(", "))
        })
    }

    /// The textual pipeline of the stages after `from` up to and including `to`, each followed by a
    /// check of what remains. `None` means from the start, or to the end.
    ///
    /// # Errors
    /// An unknown stage.
    pub fn text(
        &self,
        settings: &Settings,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<String, String> {
        let first = from.map_or(Ok(0), |stage| Ok::<_, String>(self.position(stage)? + 1))?;
        let last = to.map_or(Ok(self.stages.len() - 1), |stage| self.position(stage))?;
        let mut passes = Vec::new();
        for stage in self.stages.iter().take(last + 1).skip(first) {
            let own = (stage.passes)(settings);
            if !own.is_empty() {
                passes.push(own);
            }
            passes.push(format!("check-stage{{pipeline={} stage={}}}", self.name, stage.name));
        }
        Ok(format!("builtin.module({})", passes.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_stages_starts_after_the_first() {
        let text = HOST_CPU.text(&Settings::default(), Some("tensor"), Some("kernels")).unwrap();
        let expected = "builtin.module(func.func(fuse),check-stage{pipeline=host-cpu stage=fuse},\
            outline-kernels,check-stage{pipeline=host-cpu stage=kernels})";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_unknown_stage_names_those_there_are() {
        let message = HOST_CPU.text(&Settings::default(), None, Some("nowhere")).unwrap_err();
        assert!(message.contains("stages: import, tensor, fuse"), "{message}");
    }
}
