//! Methods for individual ops and for constants of numbers.

use super::*;

impl Builder {
    /// A scalar constant.
    ///
    /// # Errors
    /// Never, for types of at most 8 bytes.
    pub fn scalar(&mut self, value: f64, dtype: DType) -> Built {
        let tensor = Tensor::from_f64(irc_tensor::TensorType::new(dtype, []), &[value])?;
        Ok(self.tensor(&tensor))
    }

    /// A one-dimensional constant of integers.
    ///
    /// # Errors
    /// Never, for types of at most 8 bytes.
    pub fn integers(&mut self, values: &[i64]) -> Built {
        let tensor = Tensor::from_values([values.len() as i64], values)?;
        Ok(self.tensor(&tensor))
    }

    /// Sizes as an integer value of one dimension, or a scalar.
    ///
    /// # Errors
    /// If the type is not an integer type.
    pub fn sizes(&mut self, sizes: &[Dim], scalar: bool, dtype: DType) -> Built {
        let known: Option<Vec<i64>> = sizes.iter().map(Dim::known).collect();
        let shape: Vec<i64> = if scalar { vec![] } else { vec![sizes.len() as i64] };
        if let Some(known) = known {
            let wide = Tensor::from_values(shape, &known)?;
            let cast = Op::Cast { to: dtype, rounding: Rounding::TowardZero };
            return Ok(self.tensor(&cast.eval(&[&wide])?));
        }
        let mut body = Scalar::Size(sizes.last().cloned().unwrap_or(Dim::Known(0)));
        for (index, size) in sizes.iter().enumerate().rev().skip(1) {
            let here = Scalar::Loop(0).equals(Scalar::index(index as i64));
            body = here.select(Scalar::Size(size.clone()), body);
        }
        let dims: Vec<Dim> = shape.into_iter().map(Dim::Known).collect();
        self.compute(Compute::map(dims, body.cast(dtype)), &[])
    }

    /// Loops around an expression.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn compute(&mut self, compute: Compute, operands: &[ValueId]) -> Built {
        self.op(Op::compute(compute), operands)
    }

    /// A function applied to every element.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn unary(&mut self, function: Unary, x: ValueId) -> Built {
        self.op(Op::Unary(function), &[x])
    }

    /// A function applied to every pair of elements, with broadcasting.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn binary(&mut self, function: Binary, x: ValueId, y: ValueId) -> Built {
        self.op(Op::Binary(function), &[x, y])
    }

    /// A comparison of every pair of elements, with broadcasting.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn compare(&mut self, comparison: Comparison, x: ValueId, y: ValueId) -> Built {
        self.op(Op::Compare(comparison), &[x, y])
    }

    /// Selects one of two elements by a condition.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn select(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> Built {
        self.op(Op::Select, &[condition, yes, no])
    }

    /// A conversion, in which floats are truncated to integers; no node is added if the type is the
    /// same.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn cast(&mut self, x: ValueId, to: DType) -> Built {
        if self.dtype(x) == to {
            return Ok(x);
        }
        self.op(Op::Cast { to, rounding: Rounding::TowardZero }, &[x])
    }

    /// A reduction over some axes.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn reduce(
        &mut self,
        kind: Reduction,
        x: ValueId,
        axes: &[usize],
        keep_dims: bool,
    ) -> Built {
        self.op(Op::Reduce { kind, axes: axes.to_vec(), keep_dims }, &[x])
    }

    /// A transpose.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn transpose(&mut self, x: ValueId, permutation: &[usize]) -> Built {
        if permutation.is_sorted() && permutation.len() == self.rank(x) {
            return Ok(x);
        }
        self.op(Op::Transpose { permutation: permutation.to_vec() }, &[x])
    }

    /// A matrix product over the last two dimensions; the others broadcast.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn matmul(&mut self, lhs: ValueId, rhs: ValueId) -> Built {
        self.op(Op::Matmul { transpose_lhs: false, transpose_rhs: false }, &[lhs, rhs])
    }

    /// Correlation with filters.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn conv(&mut self, conv: Conv, x: ValueId, w: ValueId) -> Built {
        self.op(Op::Conv(conv), &[x, w])
    }

    /// The same elements with other dimensions.
    ///
    /// # Errors
    /// If the number of elements differs.
    pub fn reshape(&mut self, x: ValueId, dims: &[Dim]) -> Built {
        let ty = self.ty(x).clone();
        if ty.dims == dims {
            return Ok(x);
        }
        let (expected, found) = (ty.elements(), Dim::product(dims));
        let message =
            format!("expected a shape of {{right}} elements, as {ty} has, found one of {{left}}");
        self.require(&found, Relation::Equal, &expected, &message)?;
        let known: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
        match (known, ty.known()) {
            (Some(shape), Some(_)) => self.op(Op::Reshape { shape }, &[x]),
            _ => self.compute(Compute::reshape(&ty, dims), &[x]),
        }
    }

    /// The operand repeated along new or unit dimensions, aligned at the last dimension.
    ///
    /// # Errors
    /// If the operand does not broadcast to the sizes.
    pub fn broadcast(&mut self, x: ValueId, dims: &[Dim]) -> Built {
        let ty = self.ty(x).clone();
        if ty.dims == dims {
            return Ok(x);
        }
        let Some(new) = dims.len().checked_sub(ty.rank()) else {
            return Err(format!("expected at most {} dimensions, found {ty}", dims.len()).into());
        };
        for (own, to) in ty.dims.iter().zip(&dims[new..]) {
            let message = format!("expected {ty} to broadcast");
            self.require(own, Relation::EqualOrOne, to, &message)?;
        }
        let known: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
        match (known, ty.known()) {
            (Some(shape), Some(_)) => self.op(Op::Broadcast { shape }, &[x]),
            _ => self.compute(Compute::broadcast(&ty, dims), &[x]),
        }
    }

    /// A tensor filled with one value.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn fill(&mut self, value: f64, dims: &[Dim], dtype: DType) -> Built {
        let known: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
        match known {
            Some(shape) => self.op(Op::fill(value, shape, dtype), &[]),
            None => {
                let body = Scalar::float(value, DType::F64).cast(dtype);
                self.compute(Compute::map(dims, body), &[])
            }
        }
    }

    pub(super) fn mean(&mut self, x: ValueId, axes: &[usize], keep_dims: bool) -> Built {
        let sum = self.reduce(Reduction::Sum, x, axes, keep_dims)?;
        let (count, dtype) =
            (Dim::product(axes.iter().map(|axis| &self.ty(x).dims[*axis])), self.dtype(x));
        let count = self.sizes(&[count], true, DType::I64)?;
        let count = self.cast(count, dtype)?;
        self.binary(Binary::Div, sum, count)
    }
}
