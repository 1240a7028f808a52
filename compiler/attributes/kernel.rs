//! What callers know of a kernel.
use super::Packing;
use super::{KERNEL, kernel_text};
use irc_executor::code::Keeps;
use irc_mlir::{OperationRef, read};

/// The kind of kernels that are written as scalar loops.
pub const LOOPS: &str = "loops";

/// Whether a kernel is to be written as scalar loops.
pub fn is_loops(kernel: &OperationRef<'_, '_>) -> bool {
    KERNEL.read(kernel).is_some_and(|info| info.kind == LOOPS)
}

/// What is known of a kernel from outside: the attribute `#tl.kernel`, and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// What kind of kernel it is: `contraction`, [`LOOPS`], ...
    pub kind: String,
    /// Arguments that are constants which nothing else reads: the kernel may want them packed.
    pub constants: Vec<usize>,
    /// Whether it is given memory for what it keeps between calls.
    pub keeps: bool,
    /// The symbol of the entry point that it gets.
    pub entry: Option<String>,
    /// The types of the parameters of a lowered kernel, as MLIR text: memory of operands, results and
    /// scratch, and sizes.
    pub parameters: Vec<String>,
    /// The sizes that it takes, in the order of its parameters of type `index`.
    pub symbols: Vec<String>,
    /// Bytes of scratch that it needs, once it is lowered.
    pub workspace_bytes: Option<u64>,
    /// Arguments that it takes packed.
    pub packed: Vec<Packing>,
    /// What it keeps between calls.
    pub kept: Option<Keeps>,
}

impl KernelInfo {
    /// Reads a lowered kernel: one that works on memory. `None` where it is no kernel.
    pub fn read(kernel: &OperationRef<'_, '_>) -> Option<Self> {
        let (parameters, _) = read::signature(kernel)?;
        let parameters = parameters.iter().map(ToString::to_string).collect();
        Some(Self { parameters, ..KERNEL.read(kernel)? })
    }

    /// Changes what the attribute of a kernel says.
    pub fn update(kernel: OperationRef<'_, '_>, change: impl FnOnce(&mut Self)) {
        let mut info = KERNEL.read(&kernel).unwrap_or_default();
        change(&mut info);
        KERNEL.write(kernel, &info);
    }

    /// Bytes of scratch that it needs.
    pub fn scratch(&self) -> u64 {
        self.workspace_bytes.unwrap_or(0)
    }

    /// Of each parameter whether it is a size; the others are memory.
    pub fn is_size(&self) -> impl Iterator<Item = bool> + '_ {
        self.parameters.iter().map(|ty| ty == "index")
    }

    /// The text of a declaration under a name, from which callers are compiled.
    pub fn declaration(&self, name: &str) -> String {
        let (symbols, workspace_bytes) = (self.symbols.clone(), self.workspace_bytes);
        let known = Self { symbols, workspace_bytes, ..Self::default() };
        format!(
            "\nfunc.func private @{name}({}) attributes {{{} = {}}}\n",
            self.parameters.join(", "),
            KERNEL.name(),
            kernel_text(&known)
        )
    }
}

/// How a kernel of a symbolic number of items runs as kernels of blocks of items: `#tl.blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The kernels of blocks, largest first.
    pub callees: Vec<String>,
    /// Items in a block of each.
    pub items: Vec<i64>,
    /// Items, as a size.
    pub count: String,
    /// Bytes from one item to the next, per operand and result; 0 for what all items share.
    pub bytes: Vec<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_says_what_callers_know() {
        let info = KernelInfo {
            parameters: ["memref<1xf32>", "index", "memref<64xi8>"].map(str::to_owned).to_vec(),
            symbols: vec!["a \"size\"".to_owned()],
            workspace_bytes: Some(64),
            ..KernelInfo::default()
        };
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, &info.declaration("k")).expect("a function");
        let declared = read::body_ops(module.as_operation())[0];
        assert_eq!(KernelInfo::read(&declared), Some(info.clone()));
        assert_eq!(info.is_size().collect::<Vec<_>>(), [false, true, false]);
    }
}
