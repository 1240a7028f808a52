//! Evaluation of a [`Compute`], in blocks of iterations.
//!
//! A block evaluates each part of the body for all its iterations at once, as a column, so that looking at
//! the expression is paid for once per block.

use super::{Combine, Number};
use crate::scalar::Scalar;
use crate::{Binary, DType, EvalError};
use irc_tensor::Tensor;
use std::ops::Range;

/// Maximum number of iterations of a block.
const LANES: usize = 1024;

/// The values of an expression in the iterations of a block.
#[derive(Clone)]
pub(super) enum Column {
    Float(Vec<f64>),
    Int(Vec<i128>),
}

impl Column {
    fn splat(number: Number, lanes: usize) -> Self {
        match number {
            Number::Float(value) => Self::Float(vec![value; lanes]),
            Number::Int(value) => Self::Int(vec![value; lanes]),
        }
    }

    fn get(&self, lane: usize) -> Number {
        match self {
            Self::Float(values) => Number::Float(values[lane]),
            Self::Int(values) => Number::Int(values[lane]),
        }
    }

    /// The values after rounding to, or wrapping around in, an element type.
    fn rounded(mut self, dtype: DType) -> Self {
        match (&mut self, dtype) {
            (Self::Float(_), DType::F64) => {}
            (Self::Float(values), DType::F32) => {
                values.iter_mut().for_each(|x| *x = f64::from(*x as f32));
            }
            (Self::Float(values), _) => {
                values.iter_mut().for_each(|x| *x = dtype.round_float(*x));
            }
            // Indices, which most of the integers are.
            (Self::Int(values), DType::I64) => {
                values.iter_mut().for_each(|x| *x = i128::from(*x as i64));
            }
            (Self::Int(values), _) => {
                for value in values {
                    let Number::Int(rounded) = Number::Int(*value).rounded(dtype) else {
                        unreachable!("an integer stays one")
                    };
                    *value = rounded;
                }
            }
        }
        self
    }

    /// The values of a function of pairs, before rounding.
    fn binary(&mut self, function: Binary, other: &Self, dtype: DType) {
        fn each<T: Copy>(x: &mut [T], y: &[T], function: impl Fn(T, T) -> T) {
            x.iter_mut().zip(y).for_each(|(x, y)| *x = function(*x, *y));
        }
        match (self, other) {
            (Self::Float(x), Self::Float(y)) => each(x, y, |x, y| function.float(x, y)),
            (Self::Int(x), Self::Int(y)) => each(x, y, |x, y| function.integer(x, y, dtype)),
            _ => unreachable!("inference found one type"),
        }
    }

    /// The combination of a number and the values of some lanes, in their order.
    fn joined(&self, combine: Combine, first: Number, lanes: Range<usize>, dtype: DType) -> Number {
        let function = combine.function();
        match (first, self) {
            (Number::Float(first), Self::Float(values)) => {
                Number::Float(values[lanes].iter().fold(first, |x, y| function.float(x, *y)))
            }
            (Number::Int(first), Self::Int(values)) => {
                let mut joined = Number::Int(first);
                for value in &values[lanes] {
                    let Number::Int(x) = joined else { unreachable!("an integer stays one") };
                    joined = Number::Int(function.integer(x, *value, dtype)).rounded(dtype);
                }
                joined
            }
            _ => unreachable!("the body has one type"),
        }
    }

    fn integers(self) -> Vec<i128> {
        match self {
            Self::Int(values) => values,
            Self::Float(_) => unreachable!("inference found integers"),
        }
    }

    /// Columns of the lanes where a condition holds, and where it does not, as one column.
    fn merge(is_first: &[bool], first: &Self, second: &Self) -> Self {
        fn pick<T: Copy>(is_first: &[bool], first: &[T], second: &[T]) -> Vec<T> {
            let (mut first, mut second) = (first.iter(), second.iter());
            let next = |is_first: &bool| if *is_first { first.next() } else { second.next() };
            is_first.iter().filter_map(next).copied().collect()
        }
        match (first, second) {
            (Self::Float(x), Self::Float(y)) => Self::Float(pick(is_first, x, y)),
            (Self::Int(x), Self::Int(y)) => Self::Int(pick(is_first, x, y)),
            _ => unreachable!("inference found one type"),
        }
    }
}

/// Iterations of the loops: for each loop, the index in each lane.
struct Block {
    loops: Vec<Vec<i64>>,
    lanes: usize,
}

impl Block {
    /// The iterations from `first` on, in row-major order.
    fn new(first: usize, lanes: usize, extents: &[i64]) -> Self {
        let mut at = vec![0; extents.len()];
        let mut rest = first as i64;
        for axis in (0..extents.len()).rev() {
            at[axis] = rest % extents[axis];
            rest /= extents[axis];
        }
        let mut loops: Vec<Vec<i64>> = extents.iter().map(|_| Vec::with_capacity(lanes)).collect();
        for _ in 0..lanes {
            for (column, index) in loops.iter_mut().zip(&at) {
                column.push(*index);
            }
            for axis in (0..extents.len()).rev() {
                at[axis] += 1;
                if at[axis] < extents[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        Self { loops, lanes }
    }

    /// The lanes in which `is_in` equals `side`.
    fn part(&self, is_in: &[bool], side: bool) -> Self {
        let of = |column: &Vec<i64>| -> Vec<i64> {
            let lanes = column.iter().zip(is_in).filter(|(_, is_in)| **is_in == side);
            lanes.map(|(index, _)| *index).collect()
        };
        let lanes = is_in.iter().filter(|is_in| **is_in == side).count();
        Self { loops: self.loops.iter().map(of).collect(), lanes }
    }
}

/// Evaluates bodies that passed inference.
pub(super) struct Evaluator<'t> {
    pub operands: &'t [&'t Tensor],
    pub dtype: DType,
}

impl Evaluator<'_> {
    /// Stores the value of the body in each iteration of the loops of the result.
    pub fn map(&self, body: &Scalar, result: &mut Tensor) -> Result<(), EvalError> {
        let (count, extents) = (result.elements(), result.shape().to_vec());
        for first in (0..count).step_by(LANES) {
            let lanes = LANES.min(count - first);
            let column = self.eval(body, &Block::new(first, lanes, &extents))?;
            (0..lanes).for_each(|lane| self.store(result, first + lane, column.get(lane)));
        }
        Ok(())
    }

    /// Stores the combination of the values of the body over further loops, in their order.
    pub fn reduce(
        &self,
        combine: Combine,
        body: &Scalar,
        over: &[i64],
        result: &mut Tensor,
    ) -> Result<(), EvalError> {
        let each =
            over.iter().fold(1usize, |each, dim| each.saturating_mul((*dim).max(0) as usize));
        let neutral = combine.neutral(self.dtype);
        if each == 0 {
            (0..result.elements()).for_each(|element| self.store(result, element, neutral));
            return Ok(());
        }
        let extents: Vec<i64> = result.shape().iter().chain(over).copied().collect();
        let count = result.elements().saturating_mul(each);
        let (mut joined, mut first) = (neutral, 0);
        while first < count {
            let lanes = LANES.min(count - first);
            let column = self.eval(body, &Block::new(first, lanes, &extents))?;
            let mut lane = 0;
            while lane < lanes {
                let before = (first + lane) % each;
                let next = lanes.min(lane.saturating_add(each - before));
                joined = column.joined(combine, joined, lane..next, self.dtype);
                if before + (next - lane) == each {
                    self.store(result, (first + lane) / each, joined);
                    joined = neutral;
                }
                lane = next;
            }
            first += lanes;
        }
        Ok(())
    }

    fn store(&self, result: &mut Tensor, element: usize, number: Number) {
        match number {
            Number::Float(value) => result.set_f64(element, value),
            Number::Int(value) => {
                let width = self.dtype.size();
                let low = (value as u64).to_ne_bytes();
                let low =
                    if cfg!(target_endian = "big") { &low[8 - width..] } else { &low[..width] };
                result.bytes_mut()[element * width..][..width].copy_from_slice(low);
            }
        }
    }

    fn eval(&self, scalar: &Scalar, block: &Block) -> Result<Column, EvalError> {
        Ok(match scalar {
            Scalar::Float(bits, dtype) => {
                Column::splat(Number::Float(f64::from_bits(*bits)).rounded(*dtype), block.lanes)
            }
            Scalar::Int(value, dtype) => {
                Column::splat(Number::Int(i128::from(*value)).rounded(*dtype), block.lanes)
            }
            Scalar::Loop(index) => {
                Column::Int(block.loops[*index].iter().map(|index| i128::from(*index)).collect())
            }
            Scalar::Size(dim) => {
                let message = format!("expected a known size, found {dim}");
                let unknown = crate::InferError { op: "compute", message };
                let size = Number::Int(i128::from(dim.known().ok_or(unknown)?));
                Column::splat(size, block.lanes)
            }
            Scalar::Load(operand, index) => self.load(*operand, index, block)?,
            Scalar::Unary(function, x) => {
                let dtype = self.dtype_of(x);
                let mut x = self.eval(x, block)?;
                match &mut x {
                    Column::Float(x) => x.iter_mut().for_each(|x| *x = function.float(*x)),
                    Column::Int(x) => x.iter_mut().for_each(|x| *x = function.integer(*x, dtype)),
                }
                x.rounded(dtype)
            }
            Scalar::Binary(function, x, y) => {
                let dtype = self.dtype_of(x);
                let (mut x, y) = (self.eval(x, block)?, self.eval(y, block)?);
                x.binary(*function, &y, dtype);
                x.rounded(dtype)
            }
            Scalar::Compare(comparison, x, y) => {
                Column::Int(match (self.eval(x, block)?, self.eval(y, block)?) {
                    (Column::Float(x), Column::Float(y)) => {
                        x.iter().zip(&y).map(|(x, y)| comparison.holds(x, y).into()).collect()
                    }
                    (Column::Int(x), Column::Int(y)) => {
                        x.iter().zip(&y).map(|(x, y)| comparison.holds(x, y).into()).collect()
                    }
                    _ => unreachable!("inference found one type"),
                })
            }
            Scalar::Select(parts) => {
                let [condition, yes, no] = &**parts;
                let condition = self.eval(condition, block)?.integers();
                let holds: Vec<bool> = condition.into_iter().map(|value| value != 0).collect();
                let count = holds.iter().filter(|holds| **holds).count();
                if count == block.lanes {
                    self.eval(yes, block)?
                } else if count == 0 {
                    self.eval(no, block)?
                } else {
                    let yes = self.eval(yes, &block.part(&holds, true))?;
                    let no = self.eval(no, &block.part(&holds, false))?;
                    Column::merge(&holds, &yes, &no)
                }
            }
            Scalar::Cast(to, rounding, x) => {
                cast(self.eval(x, block)?, |number| number.cast(*to, *rounding))
            }
        })
    }

    fn load(&self, operand: usize, index: &[Scalar], block: &Block) -> Result<Column, EvalError> {
        let tensor = self.operands[operand];
        let mut elements = vec![0usize; block.lanes];
        for (dimension, (index, &extent)) in index.iter().zip(tensor.shape()).enumerate() {
            let values = self.eval(index, block)?.integers();
            for (element, value) in elements.iter_mut().zip(values) {
                if value < 0 || value >= i128::from(extent) {
                    let value = value as i64;
                    return Err(EvalError::LoadOutside { operand, dimension, value, extent });
                }
                *element = *element * extent as usize + value as usize;
            }
        }
        let elements = elements.into_iter();
        Ok(match tensor.dtype() {
            dtype if dtype.is_float() => {
                Column::Float(elements.map(|element| tensor.get_f64(element)).collect())
            }
            _ => Column::Int(elements.map(|element| integer_at(tensor, element)).collect()),
        })
    }

    /// The type of a part of a body that passed inference.
    fn dtype_of(&self, scalar: &Scalar) -> DType {
        match scalar {
            Scalar::Float(_, dtype) | Scalar::Int(_, dtype) | Scalar::Cast(dtype, ..) => *dtype,
            Scalar::Loop(_) | Scalar::Size(_) => DType::I64,
            Scalar::Load(operand, _) => self.operands[*operand].dtype(),
            Scalar::Unary(_, x) | Scalar::Binary(_, x, _) => self.dtype_of(x),
            Scalar::Compare(..) => DType::Bool,
            Scalar::Select(parts) => self.dtype_of(&parts[1]),
        }
    }
}

/// Converts each value; all results are of one kind.
fn cast(column: Column, convert: impl Fn(Number) -> Number) -> Column {
    let numbers: Vec<Number> = match column {
        Column::Float(values) => values.into_iter().map(|x| convert(Number::Float(x))).collect(),
        Column::Int(values) => values.into_iter().map(|x| convert(Number::Int(x))).collect(),
    };
    let floats: Vec<f64> = numbers
        .iter()
        .filter_map(|number| match number {
            Number::Float(value) => Some(*value),
            Number::Int(_) => None,
        })
        .collect();
    if floats.len() == numbers.len() {
        return Column::Float(floats);
    }
    let integer = |number| match number {
        Number::Int(value) => value,
        Number::Float(_) => unreachable!("a conversion gives values of one kind"),
    };
    Column::Int(numbers.into_iter().map(integer).collect())
}

/// One element of a tensor of integers or bool.
fn integer_at(tensor: &Tensor, element: usize) -> i128 {
    let dtype = tensor.dtype();
    let width = dtype.size();
    let bytes = &tensor.bytes()[element * width..][..width];
    let mut low = [0u8; 8];
    if cfg!(target_endian = "big") {
        low[8 - width..].copy_from_slice(bytes);
    } else {
        low[..width].copy_from_slice(bytes);
    }
    match Number::Int(i128::from(u64::from_ne_bytes(low))).rounded(dtype) {
        Number::Int(value) => value,
        Number::Float(_) => unreachable!("an integer stays one"),
    }
}
