//! What callers know of a kernel.
use super::Packing;
use crate::attributes::{
    KEPT_ARGUMENTS, KEPT_BYTES, KERNEL, KIND, PACKED, SYMBOLS, WORKSPACE_BYTES,
};
use irc_executor::code::Keeps;
use irc_mlir::{OperationRef, read};

/// The kind of kernels that are written as scalar loops.
pub const LOOPS: &str = "loops";

/// Whether a kernel is to be written as scalar loops.
pub fn is_loops(kernel: &OperationRef<'_, '_>) -> bool {
    KIND.read(kernel).as_deref() == Some(LOOPS)
}

/// What is known of a lowered kernel: one that works on memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelInfo {
    /// What kind of kernel it is: `matmul`, `loops`, …
    pub kind: String,
    /// The types of its parameters, as MLIR text: memory of operands, results and scratch, and sizes.
    pub parameters: Vec<String>,
    /// The sizes that it takes, in the order of its parameters of type `index`.
    pub symbols: Vec<String>,
    /// Bytes of scratch that it needs.
    pub scratch: u64,
    /// Arguments that it takes packed.
    pub packed: Vec<Packing>,
    /// What it keeps between calls.
    pub keeps: Option<Keeps>,
}

impl KernelInfo {
    /// Reads the attributes of a lowered kernel; `None` where they are not those of one.
    pub fn read(kernel: &OperationRef<'_, '_>) -> Option<Self> {
        let (parameters, _) = read::signature(kernel)?;
        let packed = PACKED.read(kernel).unwrap_or_default();
        Some(Self {
            kind: KIND.read(kernel).unwrap_or_default(),
            parameters: parameters.iter().map(ToString::to_string).collect(),
            symbols: SYMBOLS.read(kernel).unwrap_or_default(),
            scratch: u64::try_from(WORKSPACE_BYTES.read(kernel).unwrap_or(0)).ok()?,
            packed: packed.iter().map(|numbers| Packing::of(numbers)).collect::<Option<_>>()?,
            keeps: keeps(kernel),
        })
    }

    /// Of each parameter whether it is a size; the others are memory.
    pub fn is_size(&self) -> impl Iterator<Item = bool> + '_ {
        self.parameters.iter().map(|ty| ty == "index")
    }

    /// The text of a declaration under a name, from which callers are compiled.
    pub fn declaration(&self, name: &str) -> String {
        let sizes: Vec<String> = self.symbols.iter().map(|size| quoted(size)).collect();
        format!(
            "\nfunc.func private @{name}({}) attributes {{{}, {} = [{}], {} = {} : i64}}\n",
            self.parameters.join(", "),
            KERNEL.name(),
            SYMBOLS.name(),
            sizes.join(", "),
            WORKSPACE_BYTES.name(),
            self.scratch
        )
    }
}

/// What a lowered kernel keeps, if anything.
fn keeps(kernel: &OperationRef<'_, '_>) -> Option<Keeps> {
    let bytes = KEPT_BYTES.read(kernel)?.cast_unsigned();
    let arguments = KEPT_ARGUMENTS.read(kernel)?;
    let operands = arguments.into_iter().map(|index| index.cast_unsigned() as usize).collect();
    (bytes > 0).then_some(Keeps { bytes, operands })
}

/// A string as MLIR reads it.
fn quoted(text: &str) -> String {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    let escaped = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("\\{byte:02X}"),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_says_what_callers_know() {
        let info = KernelInfo {
            parameters: ["memref<1xf32>", "index", "memref<64xi8>"].map(str::to_owned).to_vec(),
            symbols: vec!["a \"size\"".to_owned()],
            scratch: 64,
            ..KernelInfo::default()
        };
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, &info.declaration("k")).expect("a function");
        let declared = read::body_ops(module.as_operation())[0];
        assert_eq!(KernelInfo::read(&declared), Some(info.clone()));
        assert_eq!(info.is_size().collect::<Vec<_>>(), [false, true, false]);
    }
}
