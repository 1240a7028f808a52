//! A module of PTX as written: declarations, and statements of functions, with their bytes in the text.

use crate::types::{Space, Type};
use std::ops::Range;

/// Bytes of the text.
pub type Span = Range<usize>;

/// A name in the text.
#[derive(Debug, Clone, Copy)]
pub struct Name<'s> {
    /// The name.
    pub text: &'s str,
    /// Its first byte in the text.
    pub start: usize,
}

impl Name<'_> {
    /// The bytes of the name.
    pub fn span(&self) -> Span {
        self.start..self.start + self.text.len()
    }
}

/// An address in an initialiser: of a variable or function, plus an offset.
#[derive(Debug, Clone, Copy)]
pub struct InitialAddress<'s> {
    /// The byte of the variable where it is.
    pub at: u64,
    /// The variable or function.
    pub name: Name<'s>,
    /// Bytes after it.
    pub offset: i64,
}

/// A variable, or a parameter.
#[derive(Debug, Clone)]
pub struct Variable<'s> {
    /// Its name.
    pub name: Name<'s>,
    /// Where it is.
    pub space: Space,
    /// The type of an element.
    pub ty: Type,
    /// Alignment in bytes.
    pub align: u32,
    /// Size in bytes; 0 for an array without a size.
    pub size: u64,
    /// Its first bytes; the others are zero.
    pub bytes: Vec<u8>,
    /// Addresses in them.
    pub addresses: Vec<InitialAddress<'s>>,
    /// Whether another module defines it.
    pub external: bool,
}

/// An operand.
#[derive(Debug, Clone)]
pub enum Operand<'s> {
    /// A register, variable, label or function, plus an offset in bytes.
    Name(Name<'s>, i64),
    /// A predicate that is negated.
    Not(Name<'s>),
    /// An integer.
    Integer(u64),
    /// A float of 32 bits.
    F32(f32),
    /// A float of 64 bits.
    F64(f64),
    /// `[base + offset]`, or `[base, {coordinates}]` in a tensor.
    Address {
        /// A register or variable; `None` for an absolute address.
        base: Option<Name<'s>>,
        /// Bytes after it.
        offset: i64,
        /// Coordinates in a tensor.
        coordinates: Vec<Operand<'s>>,
    },
    /// `{a, b}`.
    Vector(Vec<Operand<'s>>),
    /// `a | b`: two destinations.
    Pair(Box<Operand<'s>>, Box<Operand<'s>>),
    /// `(a, b)`: arguments or results of a call.
    List(Vec<Operand<'s>>),
    /// `_`: no destination.
    Sink,
}

/// An instruction.
#[derive(Debug, Clone)]
pub struct Instruction<'s> {
    /// The predicate under which it runs, and whether that is negated.
    pub guard: Option<(Name<'s>, bool)>,
    /// The operation with its modifiers.
    pub opcode: Name<'s>,
    /// The operands in order.
    pub operands: Vec<Operand<'s>>,
}

/// A statement of a function.
#[derive(Debug, Clone)]
pub enum Statement<'s> {
    /// `{`: names declared until the matching `}` are visible only there.
    Open,
    /// `}`.
    Close,
    /// Registers: one of that name, or a range `name0 … name(count-1)`.
    Registers {
        /// The name, or the prefix of the names.
        name: Name<'s>,
        /// The number of registers in a range.
        count: Option<u32>,
        /// Their type.
        ty: Type,
    },
    /// A variable.
    Variable(Variable<'s>),
    /// A label.
    Label(Name<'s>),
    /// The labels that `brx.idx` selects from.
    Targets(Name<'s>, Vec<Name<'s>>),
    /// The line of the source program that the next instructions come from: file, line, column.
    Location(u32, u32, u32),
    /// An instruction.
    Instruction(Instruction<'s>),
}

/// A kernel or function.
#[derive(Debug, Clone)]
pub struct Function<'s> {
    /// Its name.
    pub name: Name<'s>,
    /// Whether it can be launched.
    pub entry: bool,
    /// Its parameters.
    pub params: Vec<Variable<'s>>,
    /// Its results.
    pub results: Vec<Variable<'s>>,
    /// Its statements; `None` for a declaration.
    pub body: Option<Vec<Statement<'s>>>,
    /// `.maxntid`: the most threads of a CTA, as the product of the dimensions.
    pub max_threads: Option<u64>,
    /// `.reqntid`: the shape of a CTA.
    pub required_block: Option<[u32; 3]>,
    /// `.reqnctapercluster`: the shape of a cluster.
    pub required_cluster: Option<[u32; 3]>,
}
