//! What an op is, as data.

use super::{Attribute, Attributes, Op, Value};
use crate::TensorType;

/// What is said of an op once: its definition in ODS, its conversion to and from MLIR, its page in the
/// manual, its name in the e-graphs, its family in fusion and its cost all follow from here.
///
/// [`Op::row`] is the row of an op, [`Op::rows`] all of them.
#[derive(Debug)]
pub struct Row {
    /// The name in the IR, without its dialect, and of the files of the op.
    pub name: &'static str,
    /// What it computes, in a phrase.
    pub summary: &'static str,
    /// What else the manual says, in Markdown; empty where the summary says all.
    pub description: &'static str,
    /// The operands.
    pub operands: Operands,
    /// The parameters that are attributes in MLIR, in order. Others follow from the type of the result.
    pub attributes: &'static [Attribute],
    /// The result has the type of the operand, so that MLIR writes one of them.
    pub keeps_type: bool,
    /// The assembly format, up to the attributes, where it is not the operands in order.
    pub syntax: Option<&'static str>,
    /// How it takes part in fusion.
    pub family: Family,
    /// Operations per element on a vector unit, beside an addition.
    pub work: u64,
    /// The operand of which as many elements are read as the result has, not all.
    pub samples: Option<usize>,
    /// What applying it twice is.
    pub law: Option<Law>,
    /// See [`Row::read`].
    pub(crate) read: fn(&Attributes<'_>) -> Result<Op, String>,
    /// The attributes of an op of the row; one that is left out has its default.
    pub(crate) write: fn(&Op) -> Vec<(&'static str, Value)>,
    /// See [`Row::example`].
    pub(crate) example: fn() -> (Op, Vec<TensorType>),
}

/// The operands of an op.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// These.
    Named(&'static [&'static str]),
    /// Any number, under one name.
    Variadic(&'static str),
}

/// How ops take part in fusion: which of them can share a kernel, and what it iterates over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Each element of the result depends on at most one element of each operand, at the same place
    /// after broadcasting.
    Elementwise,
    /// Reads elements at other places, from memory.
    Pick,
    /// Reorders dimensions.
    Transpose,
    /// Replaces a box.
    Update,
    /// Reduces axes, in any order.
    Reduction,
    /// Accumulates in an order that is part of its meaning, from memory.
    Accumulation,
    /// Sums of products.
    Contraction,
    /// The bytes of its operand under another type: no kernel.
    View,
    /// Loops around an expression, which is how code is made for it: a kernel of its own.
    Loops,
}

/// What `f(f(x))` is, bit for bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// `f(x)`.
    Idempotent,
    /// `x`.
    Involution,
}

impl Row {
    /// A row of no operands and no attributes, to be filled in.
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
            read: |_| Err("the row cannot be read".into()),
            write: |_| vec![],
            example: || unreachable!("the row has no example"),
        }
    }

    /// The op with these attributes; `None` for the ones that have a default.
    ///
    /// # Errors
    /// What was expected of an attribute or of the type of the result, and what was found.
    pub fn read(&self, attributes: &Attributes<'_>) -> Result<Op, String> {
        (self.read)(attributes)
    }

    /// The op of the row, where the row is all there is to it: it has no parameters.
    pub fn plain(&self) -> Option<Op> {
        let unknown = || Err(String::new());
        let none = Attributes::new(vec![], &unknown);
        if self.attributes.is_empty() { self.read(&none).ok() } else { None }
    }

    /// An op of the row and types of operands that it takes: what tests apply to every op.
    pub fn example(&self) -> (Op, Vec<TensorType>) {
        (self.example)()
    }

    /// Number of operands; `None` when it may be any.
    pub const fn arity(&self) -> Option<usize> {
        match self.operands {
            Operands::Named(names) => Some(names.len()),
            Operands::Variadic(_) => None,
        }
    }
}
