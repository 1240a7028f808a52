//! The pass over [`lower_kernel`], with the target as its options.
use super::{DIALECTS, Dots, Target, is_scheduled_here, lower_kernel};
use irc_mlir::{
    OperationRef, OptionKind, Options, Pass, PassError, PassOption, PassResult, walk_collect,
};

/// The option that states the size of vectors.
pub const VECTOR_BYTES: PassOption = PassOption {
    name: "vector-bytes",
    help: "bytes per vector register: 64, 32 or 16",
    kind: OptionKind::Integer,
    default: "64",
};

/// The elements of single precision of a vector, by that option.
///
/// # Errors
/// If there are no such vectors.
pub fn lanes_of(op: &OperationRef<'_, '_>, options: &Options) -> Result<i64, PassError> {
    match options.integer(VECTOR_BYTES.name) {
        bytes @ (16 | 32 | 64) => Ok(bytes / 4),
        _ => Err(PassError::at(op, "expected vector-bytes to be 16, 32 or 64")),
    }
}

/// The option that names the instructions for sums of products of bytes.
pub const DOTS: PassOption = PassOption {
    name: "dots",
    help: "instructions for sums of products of bytes: vnni, pairs or plain",
    kind: OptionKind::String,
    default: "plain",
};

/// The instructions that it names.
///
/// # Errors
/// If none have that name.
pub fn dots_of(op: &OperationRef<'_, '_>, options: &Options) -> Result<Dots, PassError> {
    Dots::named(options.text(DOTS.name))
        .ok_or_else(|| PassError::at(op, "expected dots to be vnni, pairs or plain"))
}

/// Lowers every function with the attribute `tl.kernel`.
pub struct LinalgToVector;

impl Pass for LinalgToVector {
    fn name(&self) -> &'static str {
        "linalg-to-vector"
    }

    fn description(&self) -> &'static str {
        "schedule each kernel of linalg on tensors as scf loops over vectors and memrefs"
    }

    fn options(&self) -> &'static [PassOption] {
        &[
            VECTOR_BYTES,
            PassOption {
                name: "l2-bytes",
                help: "bytes of L2 cache per core",
                kind: OptionKind::Integer,
                default: "1048576",
            },
            DOTS,
            PassOption {
                name: "streams",
                help: "store large results past the caches",
                kind: OptionKind::Boolean,
                default: "false",
            },
        ]
    }

    fn dialects(&self) -> &'static [&'static str] {
        &DIALECTS
    }

    fn run(&self, op: OperationRef<'_, '_>, options: &Options) -> PassResult {
        let target = Target {
            dots: dots_of(&op, options)?,
            vector_bytes: 4 * lanes_of(&op, options)?,
            l2_bytes: options.integer("l2-bytes"),
            streams: options.boolean("streams"),
        };
        let context = irc_mlir::context_of(&op);
        for func in walk_collect(op, is_scheduled_here) {
            lower_kernel(context, func, &target)
                .map_err(|error| PassError::at(&func, error.to_string()))?;
        }
        Ok(())
    }
}
