//! Expressions of numbers: the bodies of [`Compute`](crate::Compute).

use crate::{Binary, Comparison, DType, Dim, Rounding, Type, Unary};
use std::sync::Arc;

/// An expression of one number, evaluated for each iteration of some loops.
///
/// Every node has an element type, and its value is rounded to it (floats) or wraps around (integers):
/// an expression in `f16` rounds at every step; to round once, use a wider type and a
/// cast. Indices are `i64`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// A float: the bits of its `f64` value, before rounding to the type.
    Float(u64, DType),
    /// An integer, or 0 or 1 for a `bool`, modulo 2^bits.
    Int(i64, DType),
    /// The iteration of a loop, from 0: first the loops over the result, then those of the reduction.
    Loop(usize),
    /// A size.
    Size(Dim),
    /// The element of an operand at an index in each dimension, which must be in bounds.
    Load(usize, Vec<Scalar>),
    /// A function of one number.
    Unary(Unary, Arc<Scalar>),
    /// A function of two numbers of one type.
    Binary(Binary, Arc<Scalar>, Arc<Scalar>),
    /// A comparison of two numbers of one type: a `bool`.
    Compare(Comparison, Arc<Scalar>, Arc<Scalar>),
    /// `[condition, yes, no]`: only the selected side is evaluated, so that a condition can
    /// guard a load. Both sides have the same type.
    Select(Arc<[Scalar; 3]>),
    /// A conversion; see [`Op::Cast`](crate::Op::Cast).
    Cast(DType, Rounding, Arc<Scalar>),
}

impl Scalar {
    /// A float.
    pub fn float(value: f64, dtype: DType) -> Self {
        let value = if value.is_nan() { f64::NAN } else { value };
        Self::Float(value.to_bits(), dtype)
    }

    /// An index.
    pub const fn index(value: i64) -> Self {
        Self::Int(value, DType::I64)
    }

    /// A number of any type: `value` as a float, an integer, or a `bool`.
    pub fn number(value: i64, dtype: DType) -> Self {
        if dtype.is_float() { Self::float(value as f64, dtype) } else { Self::Int(value, dtype) }
    }

    /// An element of an operand.
    pub fn load(operand: usize, at: impl Into<Vec<Self>>) -> Self {
        Self::Load(operand, at.into())
    }

    /// `function(self)`.
    pub fn unary(self, function: Unary) -> Self {
        Self::Unary(function, Arc::new(self))
    }

    /// `function(self, other)`.
    pub fn binary(self, function: Binary, other: Self) -> Self {
        Self::Binary(function, Arc::new(self), Arc::new(other))
    }

    /// The smaller.
    pub fn min(self, other: Self) -> Self {
        self.binary(Binary::Min, other)
    }

    /// The larger.
    pub fn max(self, other: Self) -> Self {
        self.binary(Binary::Max, other)
    }

    /// A comparison.
    pub fn compare(self, comparison: Comparison, other: Self) -> Self {
        Self::Compare(comparison, Arc::new(self), Arc::new(other))
    }

    /// `self < other`.
    pub fn lt(self, other: Self) -> Self {
        self.compare(Comparison::Lt, other)
    }

    /// `self >= other`.
    pub fn ge(self, other: Self) -> Self {
        self.compare(Comparison::Ge, other)
    }

    /// `self == other`.
    pub fn equals(self, other: Self) -> Self {
        self.compare(Comparison::Eq, other)
    }

    /// Logical and of two `bool`s.
    pub fn and(self, other: Self) -> Self {
        self.binary(Binary::And, other)
    }

    /// `yes` if `self` holds, otherwise `no`.
    pub fn select(self, yes: Self, no: Self) -> Self {
        Self::Select(Arc::new([self, yes, no]))
    }

    /// A conversion, in which floats are truncated to integers.
    pub fn cast(self, to: DType) -> Self {
        Self::Cast(to, Rounding::TowardZero, Arc::new(self))
    }

    /// The type of the expression's value.
    ///
    /// # Errors
    /// If a part of the expression does not have the expected type.
    pub fn dtype(&self, operands: &[Type], loops: usize) -> Result<DType, String> {
        let dtype = |scalar: &Self| scalar.dtype(operands, loops);
        match self {
            Self::Float(_, dtype) if dtype.is_float() => Ok(*dtype),
            Self::Float(_, dtype) => {
                Err(format!("expected a float type of a float, found {dtype}"))
            }
            Self::Int(_, dtype) if !dtype.is_float() => Ok(*dtype),
            Self::Int(_, dtype) => Err(format!("expected an integer type, found {dtype}")),
            Self::Loop(index) if *index < loops => Ok(DType::I64),
            Self::Loop(index) => Err(format!("expected a loop below {loops}, found {index}")),
            Self::Size(_) => Ok(DType::I64),
            Self::Load(operand, at) => load_type(*operand, at, operands, loops),
            Self::Unary(function, x) => {
                let found = dtype(x)?;
                let taken = function.takes(found).then_some(found);
                taken.ok_or_else(|| {
                    format!("{}: expected {}, found {found}", function.name(), function.expected())
                })
            }
            Self::Binary(function, x, y) => {
                let found = same(function.name(), dtype(x)?, dtype(y)?)?;
                let taken = function.takes(found).then_some(found);
                taken.ok_or_else(|| {
                    format!("{}: expected {}, found {found}", function.name(), function.expected())
                })
            }
            Self::Compare(comparison, x, y) => {
                let found = same(comparison.name(), dtype(x)?, dtype(y)?)?;
                let valid = comparison.expect(found).map(|()| DType::Bool);
                valid.map_err(|message| format!("{}: {message}", comparison.name()))
            }
            Self::Select(parts) => {
                let [condition, yes, no] = &**parts;
                let found = dtype(condition)?;
                if found != DType::Bool {
                    return Err(format!("select: expected a bool condition, found {found}"));
                }
                same("select", dtype(yes)?, dtype(no)?)
            }
            Self::Cast(to, _, x) => dtype(x).map(|_| *to),
        }
    }

    /// Calls `visit` with this expression and all its subexpressions.
    pub fn walk(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::Load(_, at) => at.iter().for_each(|index| index.walk(visit)),
            Self::Unary(_, x) | Self::Cast(_, _, x) => x.walk(visit),
            Self::Binary(_, x, y) | Self::Compare(_, x, y) => {
                x.walk(visit);
                y.walk(visit);
            }
            Self::Select(parts) => parts.iter().for_each(|part| part.walk(visit)),
            Self::Float(..) | Self::Int(..) | Self::Loop(_) | Self::Size(_) => {}
        }
    }

    /// Whether a part for which `varies` holds is in this expression.
    pub fn any(&self, varies: &dyn Fn(&Self) -> bool) -> bool {
        let mut found = false;
        self.walk(&mut |part| found |= varies(part));
        found
    }

    /// Whether this is a function that is more work than an addition, such as a power.
    pub fn is_expensive(&self) -> bool {
        match self {
            Self::Unary(function, _) => function.row().work > 1,
            Self::Binary(function, ..) => function.row().work > 1,
            _ => false,
        }
    }

    /// Whether the lanes of vectors can hold this expression for several iterations at once: what differs between them,
    /// where `varies` holds, are loads that vectors can have, and functions of these.
    pub fn is_lanewise(&self, varies: &dyn Fn(&Self) -> bool) -> bool {
        self.lanes(varies).is_some()
    }

    /// Whether lanes differ; `None` if vectors cannot hold them.
    fn lanes(&self, varies: &dyn Fn(&Self) -> bool) -> Option<bool> {
        let differs = |x: &Self, y: &Self| Some(x.lanes(varies)? | y.lanes(varies)?);
        match self {
            Self::Load(..) if varies(self) => Some(true),
            Self::Load(_, at) => at.iter().all(|index| !index.any(varies)).then_some(false),
            Self::Unary(_, x) | Self::Cast(_, _, x) => x.lanes(varies),
            Self::Binary(_, x, y) | Self::Compare(_, x, y) => differs(x, y),
            Self::Select(parts) => {
                let [condition, yes, no] = &**parts;
                Some(condition.lanes(varies)? | differs(yes, no)?)
            }
            Self::Float(..) | Self::Int(..) | Self::Loop(_) | Self::Size(_) => {
                (!varies(self)).then_some(false)
            }
        }
    }
}

fn load_type(
    operand: usize,
    at: &[Scalar],
    operands: &[Type],
    loops: usize,
) -> Result<DType, String> {
    let count = operands.len();
    let ty = operands
        .get(operand)
        .ok_or_else(|| format!("expected an operand below {count}, found {operand}"))?;
    if at.len() != ty.rank() {
        let found = at.len();
        return Err(format!(
            "expected {} indices of operand {operand}, {ty}, found {found}",
            ty.rank()
        ));
    }
    for index in at {
        let found = index.dtype(operands, loops)?;
        if found != DType::I64 {
            return Err(format!("expected i64 indices of operand {operand}, found {found}"));
        }
    }
    Ok(ty.dtype)
}

fn same(what: &str, x: DType, y: DType) -> Result<DType, String> {
    if x == y {
        return Ok(x);
    }
    Err(format!("{what}: expected operands of one element type, found {x} and {y}"))
}

macro_rules! operator {
    ($($trait:ident $method:ident $function:ident),*) => {$(
        impl std::ops::$trait for Scalar {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.binary(Binary::$function, other)
            }
        }
    )*};
}

operator!(Add add Add, Sub sub Sub, Mul mul Mul, Div div Div);

impl Scalar {
    /// The expression with symbols replaced in all its sizes.
    pub fn substitute(&self, symbol: &dyn Fn(&str) -> Option<Dim>) -> Self {
        self.map_sizes(&|dim| dim.substitute(symbol))
    }

    /// The expression with every size replaced.
    pub fn map_sizes(&self, size: &dyn Fn(&Dim) -> Dim) -> Self {
        self.replace(&mut |scalar| match scalar {
            Self::Size(dim) => Some(Self::Size(size(dim))),
            _ => None,
        })
    }

    /// The expression with subexpressions replaced where `replace` returns `Some`, outermost first;
    /// replacements are not visited.
    pub fn replace(&self, replace: &mut dyn FnMut(&Self) -> Option<Self>) -> Self {
        if let Some(replaced) = replace(self) {
            return replaced;
        }
        let mut part = |scalar: &Arc<Self>| Arc::new(scalar.replace(replace));
        match self {
            Self::Load(operand, at) => {
                Self::Load(*operand, at.iter().map(|index| index.replace(replace)).collect())
            }
            Self::Unary(function, x) => Self::Unary(*function, part(x)),
            Self::Cast(to, rounding, x) => Self::Cast(*to, *rounding, part(x)),
            Self::Binary(function, x, y) => Self::Binary(*function, part(x), part(y)),
            Self::Compare(comparison, x, y) => Self::Compare(*comparison, part(x), part(y)),
            Self::Select(parts) => {
                let [condition, yes, no] = &**parts;
                let parts = [condition, yes, no].map(|part| part.replace(replace));
                Self::Select(Arc::new(parts))
            }
            Self::Float(..) | Self::Int(..) | Self::Loop(_) | Self::Size(_) => self.clone(),
        }
    }
}
