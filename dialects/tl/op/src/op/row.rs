//! The definition of an op as data.

use super::{Attribute, Attributes, Op, Value};
use crate::TensorType;

/// The single definition of an op: its ODS, its conversion to and from MLIR, its page in the
/// manual, its name in the e-graphs, its role in fusion and its cost are derived from it.
///
/// [`Op::row`] is the row of an op, [`Op::rows`] returns all rows.
#[derive(Debug)]
pub struct Row {
    /// The name in the IR, without its dialect, and of the files that define the op.
    pub name: &'static str,
    /// What it computes, as a phrase.
    pub summary: &'static str,
    /// Further description for the manual, in Markdown; empty if the summary is enough.
    pub description: &'static str,
    /// The operands.
    pub operands: Operands,
    /// The parameters that are attributes in MLIR, in order. Others are derived from the type of the result.
    pub attributes: &'static [Attribute],
    /// Whether the result has the type of the operand, so that MLIR prints only one of them.
    pub keeps_type: bool,
    /// The assembly format, up to the attributes, if it is not the operands in order.
    pub syntax: Option<&'static str>,
    /// Its role in fusion.
    pub family: Family,
    /// Operations per element on a vector unit, relative to an addition.
    pub work: u64,
    /// The operand of which only as many elements are read as the result has.
    pub samples: Option<usize>,
    /// The law for applying it twice, if any.
    pub law: Option<Law>,
    /// See [`Op::has_schedule`].
    pub(crate) has_schedule: fn(&Op, &[&TensorType]) -> bool,
    /// See [`Row::read`].
    pub(crate) read: fn(&Attributes<'_>) -> Result<Op, String>,
    /// The attributes of an op of the row, without those that have their default.
    pub(crate) write: fn(&Op) -> Vec<(&'static str, Value)>,
    /// See [`Row::example`].
    pub(crate) example: fn() -> (Op, Vec<TensorType>),
}

/// The operands of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// Named operands.
    Named(&'static [&'static str]),
    /// Any number of operands, under one name.
    Variadic(&'static str),
}

/// The role of ops in fusion: which of them can share a kernel, and what the kernel iterates over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Each element of the result depends on at most one element of each operand, at the same position
    /// after broadcasting.
    Elementwise,
    /// Reads elements at other positions, from memory.
    Pick,
    /// Reorders dimensions.
    Transpose,
    /// Replaces a box.
    Update,
    /// Reduces axes, in any order.
    Reduction,
    /// Accumulates in a prescribed order, from memory.
    Accumulation,
    /// Sums of products.
    Contraction,
    /// Reinterprets the bytes of its operand as another type: no kernel.
    View,
    /// Loops around an expression, compiled as a kernel of its own.
    Loops,
}

/// What `f(f(x))` equals, bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// `f(x)`.
    Idempotent,
    /// `x`.
    Involution,
}

impl Row {
    /// A row without operands and attributes, to be filled in.
    pub(crate) const fn new(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            description: "",
            operands: Operands::Named(&[]),
            attributes: &[],
            keeps_type: false,
            syntax: None,
            family: Family::Elementwise,
            work: 1,
            samples: None,
            law: None,
            has_schedule: |_, _| true,
            read: |_| Err("the row cannot be read".into()),
            write: |_| vec![],
            example: || unreachable!("the row has no example"),
        }
    }

    /// The op with these attributes; omitted ones have their default.
    ///
    /// # Errors
    /// If an attribute or the type of the result is not as expected.
    pub fn read(&self, attributes: &Attributes<'_>) -> Result<Op, String> {
        (self.read)(attributes)
    }

    /// The op of the row, if it has no parameters.
    pub fn plain(&self) -> Option<Op> {
        let unknown = || Err(String::new());
        let none = Attributes::new(vec![], &unknown);
        if self.attributes.is_empty() { self.read(&none).ok() } else { None }
    }

    /// An op of the row with valid operand types: tests apply it to every op.
    pub fn example(&self) -> (Op, Vec<TensorType>) {
        (self.example)()
    }

    /// Number of operands; `None` if variadic.
    pub const fn arity(&self) -> Option<usize> {
        match self.operands {
            Operands::Named(names) => Some(names.len()),
            Operands::Variadic(_) => None,
        }
    }
}
