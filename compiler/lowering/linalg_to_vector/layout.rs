//! The memory layouts of a kernel's arguments and results, from its attributes.
//!
//! `tl.strides = array<i64: ...>` on an argument or a result specifies its element strides; without it
//! the elements are row-major. `tl.overwrites` on a result means that its memory may hold values
//! that the kernel reads: it is written after all of them are read.
use crate::attributes::{OVERWRITES, STRIDES, dictionaries};
use irc_mlir::OperationRef;

/// The layouts of one kernel's arguments and results.
#[derive(Debug, Default)]
pub struct Layouts {
    /// Element strides of each argument, if specified.
    pub arguments: Vec<Option<Vec<i64>>>,
    /// Element strides of each result, if specified.
    pub results: Vec<Option<Vec<i64>>>,
    /// Whether each result may alias memory that the kernel reads.
    pub overwrites: Vec<bool>,
}

impl Layouts {
    /// Reads the attributes of a function.
    pub fn of<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Self {
        let (arguments, results) =
            (dictionaries(&func, "arg_attrs"), dictionaries(&func, "res_attrs"));
        Self {
            arguments: arguments.into_iter().map(|each| STRIDES.of(each)).collect(),
            overwrites: results.iter().map(|each| OVERWRITES.of(*each).is_some()).collect(),
            results: results.into_iter().map(|each| STRIDES.of(each)).collect(),
        }
    }

    /// Element strides of an argument, if specified.
    pub fn argument(&self, index: usize) -> Option<&[i64]> {
        self.arguments.get(index)?.as_deref()
    }

    /// Element strides of a result, if specified.
    pub fn result(&self, index: usize) -> Option<&[i64]> {
        self.results.get(index)?.as_deref()
    }

    /// Whether a result may alias memory that the kernel reads.
    pub fn overwrites(&self, index: usize) -> bool {
        self.overwrites.get(index).copied().unwrap_or_default()
    }
}

/// The strides of a row-major shape.
pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}

/// Number of elements from the first to the last of a strided box, both included.
pub fn span(shape: &[i64], strides: &[i64]) -> i64 {
    strides.iter().zip(shape).map(|(stride, size)| stride * (size - 1)).sum::<i64>() + 1
}
