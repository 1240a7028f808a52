//! The attributes `irc.*`: what one pass of the compiler leaves for another on functions, their
//! arguments and results, and ops.
//!
//! Every name stands here, with the type of its value. They are discardable attributes, so that each
//! stage prints in upstream's syntax and is parsed by upstream's tools. What describes a kernel is read
//! at once, as a [`KernelInfo`](crate::kernel::KernelInfo).
use irc_mlir::{Key, OperationRef, melior::ir::attribute::DictionaryAttribute, read};

// Functions that are kernels.

/// Marks a kernel: a function that launches run.
pub const KERNEL: Key<()> = Key::new("irc.kernel");
/// What kind of kernel it is: `matmul`, [`LOOPS`](crate::kernel::LOOPS), …
pub const KIND: Key<String> = Key::new("irc.kind");
/// The sizes that a lowered kernel takes, in the order of its parameters of type `index`.
pub const SYMBOLS: Key<Vec<String>> = Key::new("irc.symbols");
/// Bytes of the workspace that a lowered kernel needs.
pub const WORKSPACE_BYTES: Key<i64> = Key::new("irc.workspace_bytes");
/// Arguments that are constants which nothing else reads: the kernel may want them packed.
pub const CONSTANTS: Key<Vec<i64>> = Key::new("irc.constants");
/// How a lowered kernel wants arguments packed: see [`Packing`](crate::kernel::Packing).
pub const PACKED: Key<Vec<Vec<i64>>> = Key::new("irc.packed");
/// Gives a kernel memory for what it keeps between calls.
pub const KEEPS: Key<()> = Key::new("irc.keeps");
/// Bytes of what a lowered kernel keeps.
pub const KEPT_BYTES: Key<i64> = Key::new("irc.kept_bytes");
/// Arguments that what a kernel keeps follows from.
pub const KEPT_ARGUMENTS: Key<Vec<i64>> = Key::new("irc.kept_arguments");
/// The symbol of the entry point that a kernel gets.
pub const ENTRY: Key<String> = Key::new("irc.entry");

// Kernels that run in blocks of items; see `lowering::split_blocks`.

/// The kernels of blocks, largest first.
pub const BLOCK_CALLEES: Key<Vec<String>> = Key::new("irc.block_callees");
/// Items in a block of each.
pub const BLOCK_ITEMS: Key<Vec<i64>> = Key::new("irc.block_items");
/// Items, as a size.
pub const BLOCK_COUNT: Key<String> = Key::new("irc.block_count");
/// Bytes from one item to the next, per operand and result; 0 for what all items share.
pub const BLOCK_BYTES: Key<Vec<i64>> = Key::new("irc.block_bytes");

// Functions that are programs: they launch kernels.

/// Marks a function written at the tensor level: a program, or a function that one calls.
pub const GRAPH: Key<()> = Key::new("irc.graph");
/// Put behind the names of a program's entry point and metadata.
pub const SUFFIX: Key<String> = Key::new("irc.suffix");
/// Marks a program that is a part of others: equal ones are linked as one.
pub const SHARED: Key<()> = Key::new("irc.shared");
/// Marks a planned program whose sizes depend on symbols.
pub const SIZED: Key<()> = Key::new("irc.sized");
/// The interface of a planned program, as JSON.
pub const METADATA: Key<String> = Key::new("irc.metadata");
/// For each argument its offset in the constants of the library, or -1.
pub const WEIGHT_OFFSETS: Key<Vec<i64>> = Key::new("irc.weight_offsets");

// Arguments and results of functions.

/// The name of an argument or result.
pub const NAME: Key<String> = Key::new("irc.name");
/// Marks an argument that the caller preserves from one call to the next.
pub const PRESERVED: Key<()> = Key::new("irc.preserved");
/// The number of the constant that an argument stands for.
pub const WEIGHT: Key<i64> = Key::new("irc.weight");
/// The elements of that constant; an attribute of elements of any kind.
pub const VALUE: &str = "irc.value";
/// Element strides of an argument or result of a kernel; without, elements are row-major.
pub const STRIDES: Key<Vec<i64>> = Key::new("irc.strides");
/// Marks a result of a kernel whose memory may hold values that the kernel reads.
pub const OVERWRITES: Key<()> = Key::new("irc.overwrites");

// Ops.

/// On a launch: what the symbols of its kernel stand for.
pub const SIZES: Key<Vec<String>> = Key::new("irc.sizes");
/// Marks a `linalg.generic` whose reduction must not be reordered.
pub const ORDERED: Key<()> = Key::new("irc.ordered");

/// The attributes of each argument (`arg_attrs`) or result (`res_attrs`) of a function.
pub fn dictionaries<'c: 'a, 'a>(
    function: &OperationRef<'c, 'a>,
    name: &str,
) -> Vec<Option<DictionaryAttribute<'c>>> {
    let elements = read::elements(function, name).unwrap_or_default().into_iter();
    elements.map(|dictionary| DictionaryAttribute::try_from(dictionary).ok()).collect()
}
