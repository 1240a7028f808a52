//! The stage table: what every tool runs, in which order, and what may remain after each stage.
use crate::{CompileOptions, Target};

/// One step of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// The name that `--compile-to` and `--compile-from` take.
    pub name: &'static str,
    /// Passes, as a textual pipeline on `builtin.module`.
    pub passes: &'static str,
    /// Dialects that may remain afterwards, beside `builtin`.
    pub leaves: &'static [&'static str],
    /// One line of why the stage stands here.
    pub why: &'static str,
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
            passes: "",
            leaves: &["ark", "common_ir", "func", "tl"],
            why: "the file as written",
        },
        Stage {
            name: "tensor",
            // A program that common-ir-to-tl has written is nothing to ark-to-tl.
            passes: "common-ir-to-tl,ark-to-tl,canonicalize,cse",
            leaves: &["func", "tl"],
            why: "memory becomes values, so that what is computed can be compared and moved",
        },
        Stage {
            name: "fuse",
            passes: "func.func(fuse)",
            leaves: &["func", "tl"],
            why: "before tiling, which must see whole groups",
        },
        Stage {
            name: "kernels",
            passes: "outline-kernels",
            leaves: &["func", "tl"],
            why: "one function per kernel, so that each compiles and caches alone",
        },
        Stage {
            name: "linalg",
            passes: "split-blocks,tl-to-linalg",
            leaves: &["arith", "func", "linalg", "math", "tensor", "tl"],
            why: "loops and index maps become explicit; tl stays in main, as reshapes, and in kernels of loops",
        },
        Stage {
            name: "vector",
            passes: "linalg-to-vector,compute-to-loops",
            leaves: &["arith", "func", "math", "memref", "scf", "tl", "vector"],
            why: "the schedule: tiles, vectors, packing; kernels now write into memory",
        },
        Stage {
            name: "memory",
            passes: "plan-memory",
            leaves: &["arith", "cf", "func", "math", "memref", "scf", "vector"],
            why: "after scheduling, which says how much scratch each kernel needs",
        },
        Stage { name: "llvm", passes: TO_LLVM, leaves: &["llvm"], why: "what LLVM translates" },
    ],
};

/// Upstream lowerings from vectors and loops to the `llvm` dialect. Functions of `math` go before vectors:
/// what calls libm for each lane takes vectors apart.
pub(crate) const TO_LLVM: &str = "canonicalize,cse,convert-vector-to-scf{full-unroll=true},convert-scf-to-cf,\
    expand-strided-metadata,lower-affine,arith-expand{include-bf16=true},\
    convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm{enable-x86vector=true},\
    finalize-memref-to-llvm,convert-index-to-llvm,convert-arith-to-llvm,\
    convert-func-to-llvm{use-bare-ptr-memref-call-conv=true},convert-cf-to-llvm,canonicalize,cse,\
    reconcile-unrealized-casts,bf16-as-bits,emit-entry";

/// Every pipeline.
pub const PIPELINES: &[Pipeline] = &[HOST_CPU];

impl Pipeline {
    /// The pipeline of a name.
    pub fn named(name: &str) -> Option<&'static Pipeline> {
        PIPELINES.iter().find(|pipeline| pipeline.name == name)
    }

    /// Position of a stage.
    ///
    /// # Errors
    /// The names there are.
    pub fn position(&self, stage: &str) -> Result<usize, String> {
        self.stages.iter().position(|known| known.name == stage).ok_or_else(|| {
            let names: Vec<_> = self.stages.iter().map(|known| known.name).collect();
            format!("no stage '{stage}' in pipeline '{}'; stages: {}", self.name, names.join(", "))
        })
    }

    /// As [`Pipeline::text`] from stage `first` to stage `last`, both included, with the options of
    /// passes that depend on what is compiled for.
    ///
    /// # Errors
    /// An unknown stage.
    pub fn text_for(&self, target: &Target, first: &str, last: &str) -> Result<String, String> {
        let before = self.position(first)?.checked_sub(1).map(|at| self.stages[at].name);
        let text = self.text(before, Some(last))?;
        let vector = format!("linalg-to-vector{{vector-bytes={}}}", target.vector_bytes());
        Ok(text.replace("linalg-to-vector", &vector))
    }

    /// As [`Pipeline::text_for`], with the results and the accumulation that the options ask for.
    ///
    /// # Errors
    /// An unknown stage.
    pub fn text_with(
        &self,
        options: &CompileOptions,
        first: &str,
        last: &str,
    ) -> Result<String, String> {
        let text = self.text_for(&options.target, first, last)?;
        let (results, accumulate) = (options.results.name(), options.accumulate.name());
        let import = format!("ark-to-tl{{results={results} accumulate={accumulate}}}");
        Ok(text.replace("ark-to-tl", &import))
    }

    /// The textual pipeline of the stages after `from` up to and with `to`, each followed by a
    /// check of what it leaves. `None` means from the start, to the end.
    ///
    /// # Errors
    /// An unknown stage.
    pub fn text(&self, from: Option<&str>, to: Option<&str>) -> Result<String, String> {
        let first = from.map_or(Ok(0), |stage| Ok::<_, String>(self.position(stage)? + 1))?;
        let last = to.map_or(Ok(self.stages.len() - 1), |stage| self.position(stage))?;
        let mut passes = Vec::new();
        for stage in self.stages.iter().take(last + 1).skip(first) {
            if !stage.passes.is_empty() {
                passes.push(stage.passes.to_owned());
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
        let text = HOST_CPU.text(Some("tensor"), Some("kernels")).unwrap();
        let expected = "builtin.module(func.func(fuse),check-stage{pipeline=host-cpu stage=fuse},\
            outline-kernels,check-stage{pipeline=host-cpu stage=kernels})";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_unknown_stage_names_those_there_are() {
        let message = HOST_CPU.text(None, Some("nowhere")).unwrap_err();
        assert!(message.contains("stages: import, tensor, fuse"), "{message}");
    }
}
