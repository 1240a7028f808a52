//! The code generators, one row each.
use super::{CodegenError, Output, Target, c, cranelift, llvm, nvptx};
use crate::{lowering::linalg_to_vector::Dots, pipeline::Pipeline};
use irc_mlir::Module;
use std::fmt;

/// A code generator, which compiles the `llvm` dialect to machine code or to source. Each has its row as
/// the constant `ROW` of its folder or file.
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its outputs; the first is the main one.
    pub outputs: &'static [Output],
    /// The stages of its programs.
    pub pipeline: &'static Pipeline,
    /// Width in bytes of the widest vector register that code for a target should use.
    pub vector_bytes: fn(&Target) -> u32,
    /// The instructions that code for a target should use for sums of products of bytes.
    pub dots: fn(&Target) -> Dots,
    /// Whether code for a target may store past the caches.
    pub streams: fn(&Target) -> bool,
    /// The features of [`irc_runtime::processor::FEATURES`] that code for a target may use.
    pub features: fn(&Target) -> Vec<&'static str>,
    /// Checks that it can generate code for a target; the error names what the processor lacks.
    pub expect: fn(&Target) -> Result<(), CodegenError>,
    /// Compiles a module in the `llvm` dialect to one of its outputs.
    pub compile: fn(&Module<'_>, &Target, Output) -> Result<Vec<u8>, CodegenError>,
}

/// One of the code generators.
#[derive(Clone, Copy)]
pub struct Backend(&'static Row);

impl Backend {
    /// LLVM: optimised code.
    pub const LLVM: Self = Self(&llvm::ROW);
    /// The quick tier, Cranelift: fast compilation, slower code.
    pub const QUICK: Self = Self(&cranelift::ROW);
    /// C source, for a C compiler.
    pub const C: Self = Self(&c::ROW);
    /// NVPTX: one kernel for an NVIDIA GPU.
    pub const NVPTX: Self = Self(&nvptx::ROW);

    /// All code generators; the first is the default.
    pub const ALL: [Self; 4] = [Self::LLVM, Self::QUICK, Self::C, Self::NVPTX];

    /// The code generator of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.name == name)
    }

    /// The code generators that write an output.
    pub fn writing(output: Output) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |backend| backend.writes(output))
    }

    /// Whether it writes an output.
    pub fn writes(self, output: Output) -> bool {
        self.outputs.contains(&output)
    }
}

impl std::ops::Deref for Backend {
    type Target = Row;

    fn deref(&self) -> &Row {
        self.0
    }
}

impl Default for Backend {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Backend {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Backend {}

impl std::hash::Hash for Backend {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_rows() {
        for backend in Backend::ALL {
            assert_eq!(Backend::named(backend.name), Some(backend));
            assert!(!backend.outputs.is_empty(), "{backend:?}");
        }
        assert_eq!(Backend::named("abacus"), None);
        assert_eq!(Backend::default(), Backend::LLVM);
    }
}
