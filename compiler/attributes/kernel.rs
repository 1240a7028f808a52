//! The properties of a kernel that its callers use.
use super::Schedule;
use super::{KERNEL, kernel_text};
use irc_executor::code::Keeps;
use irc_mlir::{OperationRef, read};
use irc_packing::Packing;

/// The kind of kernels that are lowered to scalar loops.
pub const LOOPS: &str = "loops";

/// The kind of kernels of tasks of plans.
pub const TASK: &str = "task";

/// The kind of kernels of one block, whose callers divide blocks among threads.
pub const BLOCK: &str = "block";

/// Whether a kernel is to be lowered to scalar loops.
pub fn is_loops(kernel: &OperationRef<'_, '_>) -> bool {
    KERNEL.read(kernel).is_some_and(|info| info.kind == LOOPS)
}

/// The interface of a kernel: the attribute `#tl.kernel`, and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// The kind of kernel: `contraction`, [`LOOPS`], ...
    pub kind: String,
    /// Arguments that are constants without other readers: the kernel may request them packed.
    pub constants: Vec<usize>,
    /// Arguments that are constants of signed bytes from -64 to 64.
    pub small: Vec<usize>,
    /// Whether all constants of its program fit in a cache, where they are from one run to the next.
    pub cached: bool,
    /// Whether it is passed memory that it keeps between calls.
    pub keeps: bool,
    /// The symbol of its entry point.
    pub entry: Option<String>,
    /// The extent that stands for a number of rows, which is passed to the kernel and is at most this.
    pub rows: Option<i64>,
    /// The same for a number of columns, which follows that of rows.
    pub columns: Option<i64>,
    /// The types of the parameters of a lowered kernel, as MLIR text: memory of operands, results and
    /// scratch, and sizes.
    pub parameters: Vec<String>,
    /// The sizes that it takes, in the order of its parameters of type `index`.
    pub symbols: Vec<String>,
    /// Bytes of scratch that it needs; `None` before it is lowered.
    pub workspace_bytes: Option<u64>,
    /// How its work is divided among threads, if it is: then it has a [`launcher`].
    pub phases: Option<Phases>,
    /// Why it adds products in scalar loops, several times more slowly than in vectors, if it does.
    pub scalar: Option<String>,
    /// Choices of its schedule.
    pub schedule: Schedule,
    /// Arguments that it takes packed.
    pub packed: Vec<Packing>,
    /// The contents of the memory that it keeps between calls.
    pub kept: Option<Keeps>,
}

impl KernelInfo {
    /// Reads a lowered kernel, whose parameters are memory. `None` if it is not a kernel.
    pub fn read(kernel: &OperationRef<'_, '_>) -> Option<Self> {
        let (parameters, _) = read::signature(kernel)?;
        let parameters = parameters.iter().map(ToString::to_string).collect();
        Some(Self { parameters, ..KERNEL.read(kernel)? })
    }

    /// Changes the attribute of a kernel.
    pub fn update(kernel: OperationRef<'_, '_>, change: impl FnOnce(&mut Self)) {
        let mut info = KERNEL.read(&kernel).unwrap_or_default();
        change(&mut info);
        KERNEL.write(kernel, &info);
    }

    /// The numbers that it is passed before it is lowered to memory: the name of each, and the extent that stands for it.
    pub fn passed(&self) -> impl Iterator<Item = (&'static str, i64)> {
        let columns = self.columns.map(|most| ("columns", most));
        self.rows.map(|most| ("rows", most)).into_iter().chain(columns)
    }

    /// Bytes of scratch that it needs.
    pub fn scratch(&self) -> u64 {
        self.workspace_bytes.unwrap_or(0)
    }

    /// Whether each parameter is a size; the others are memory.
    pub fn is_size(&self) -> impl Iterator<Item = bool> + '_ {
        self.parameters.iter().map(|ty| ty == "index")
    }

    /// The text of a declaration with this name, for the compilation of callers.
    pub fn declaration(&self, name: &str) -> String {
        let (symbols, workspace_bytes) = (self.symbols.clone(), self.workspace_bytes);
        let phases = self.phases.clone();
        let known = Self { symbols, workspace_bytes, phases, ..Self::default() };
        let parameters = self.parameters.join(", ");
        let mut text = format!(
            "\nfunc.func private @{name}({parameters}) attributes {{{} = {}}}\n",
            KERNEL.name(),
            kernel_text(&known)
        );
        if self.phases.is_some() {
            text += &format!("func.func private @{}({parameters}, {POOL})\n", launcher(name));
        }
        text
    }
}

/// How the work of a kernel is divided among threads: phases, one after the other, each in a number of parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// The maximum number of parts of each phase.
    pub parts: Vec<i64>,
    /// For a kernel that takes sizes, the cycles of each phase, estimated: a number times symbols of the kernel, as text.
    pub cycles: Vec<String>,
    /// Bytes of memory that each part needs for itself.
    pub part_bytes: u64,
}

/// The type of the last parameter of a [`launcher`]: the pool, which `emit-entry` describes.
pub const POOL: &str = "memref<1xi8>";

/// The function that runs a kernel with [`Phases`] on the threads of a pool; the kernel's own name runs it on one.
pub fn launcher(kernel: &str) -> String {
    format!("{kernel}_parallel")
}

/// The function that runs a part of a kernel with [`Phases`].
pub fn part_of(kernel: &str) -> String {
    format!("{kernel}_part")
}

/// How a kernel of a grid of items runs in blocks of items: `#tl.blocks`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The kernel of a block.
    pub callee: String,
    /// The number of items in a block along the last dimension of the grid; the maximum, if it is passed to the kernel.
    /// Otherwise the last block ends with the last item, and may share items with the block before.
    pub items: i64,
    /// The number of items along each dimension of the grid, as sizes.
    pub counts: Vec<String>,
    /// The stride between items in bytes, as a size, per dimension of the grid, and operand and result; 0 for those that
    /// items share.
    pub bytes: Vec<String>,
    /// The cycles of a block, estimated, if blocks are divided among threads; 0 if the kernel of a block itself is.
    pub cycles: i64,
    /// How a block is computed some of its columns at a time, if their number is passed to its kernel.
    pub columns: Option<Columns>,
}

/// How a block of attention is computed some columns of its scores at a time: `#tl.columns`. The kernel of a block takes,
/// after its operands, the highest scores of rows so far, the sums of their powers, and the sums of values that these weigh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The kernel of all columns but the last ones, which returns what the next one takes.
    pub callee: String,
    /// The maximum number of columns of a call.
    pub items: i64,
    /// The number of columns, as a size.
    pub count: String,
    /// The stride between columns in bytes, per operand; 0 for those that columns share.
    pub bytes: Vec<i64>,
    /// For each operand that is copied before, as its rows are symbolic sizes apart: the bytes from one to the next, as a
    /// size. 0 for others.
    pub copied: Vec<String>,
    /// For a causal mask, the offset that is added to the number of a row, as a size: columns up to their sum are computed.
    pub causal: Option<String>,
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
