//! Writing a [`Graph`].

use super::dependencies::{self, Dependencies};
use super::sizes::{self, Known};
use super::{Check, Constant, Graph, Node, NodeKind, Relation, Symbol, SymbolSource, ValueId};
use crate::{
    Algorithm, Binary, Comparison, Compute, Conv, DType, Dim, EvalError, Factor, InferError, Op,
    Reduction, Rounding, Scalar, Tensor, TensorError, Type, Unary, join,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use thiserror::Error;

/// Results of at most this many elements are computed at once when their operands are constant.
const FOLDED: i64 = 1 << 16;

/// Why a node cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// The operands are not what an op takes.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// A constant result cannot be computed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A constant is not of its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// What the caller found wrong.
    #[error("{0}")]
    Message(String),
}

impl From<String> for BuildError {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for BuildError {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

/// What a [`Builder`] gives.
pub type Built<T = ValueId> = Result<T, BuildError>;

/// Writes a [`Graph`], node by node.
///
/// Types are inferred. An op of constants becomes a constant, while it is small. An op of operands
/// whose sizes depend on symbols becomes loops around an expression (see [`Op::as_compute`]), but for
/// products and convolutions, with a check for each pair of sizes that must agree. The elements of small integer values are followed,
/// as sizes: see [`Builder::elements`].
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    facts: Vec<Facts>,
    origin: Option<Arc<str>>,
    fresh: usize,
    /// What the names of new symbols begin with; differs for graphs inside others.
    prefix: String,
    /// Symbols of the graphs around this one, and whether each is an extent.
    around: BTreeMap<Arc<str>, bool>,
}

/// What is known of a value.
#[derive(Debug, Clone, Default)]
struct Facts {
    constant: Option<Constant>,
    elements: Option<Vec<Dim>>,
}

impl Builder {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// A graph inside another, whose new symbols begin with `prefix`.
    pub fn nested(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..Self::default() }
    }

    /// A builder of a graph inside this one.
    pub fn inside(&mut self) -> Self {
        self.fresh += 1;
        self.within(&format!("g{}", self.fresh))
    }

    /// A builder of a graph inside this one, whose new symbols are named after `label`: graphs with one
    /// label that are written alike are equal.
    pub fn within(&self, label: &str) -> Self {
        let mut around = self.around.clone();
        for symbol in &self.graph.symbols {
            let extent = matches!(symbol.source, SymbolSource::Extent(..));
            around.insert(symbol.name.clone(), extent);
        }
        let nested = Self::nested(format!("{}{label}_", self.prefix));
        Self { around, origin: self.origin.clone(), ..nested }
    }

    /// Whether every symbol of a size is known here or around.
    pub fn knows(&self, dim: &Dim) -> bool {
        dim.symbols().iter().all(|name| self.symbol_is_extent(name).is_some())
    }

    /// Whether a size cannot be below zero: a sum of products of extents.
    pub fn is_size(&self, dim: &Dim) -> bool {
        let extent = |factor: &Factor| match factor {
            Factor::Symbol(name) => self.symbol_is_extent(name) == Some(true),
            Factor::Call(..) | Factor::IfEqual(_) => false,
        };
        dim.terms().into_iter().all(|(by, factors)| by >= 0 && factors.iter().all(extent))
    }

    /// The same size in fewer words, as extents are not below zero.
    fn simplified(&self, dim: &Dim) -> Dim {
        match dim {
            Dim::Known(_) => dim.clone(),
            Dim::Symbolic(_) => dim.simplified(&|name| self.symbol_is_extent(name) == Some(true)),
        }
    }

    /// Whether the result of an op has sizes that fewer words say.
    fn is_wordy(&self, op: &Op, types: &[Type]) -> Built<bool> {
        let dims = op.infer_symbolic(types)?.dims;
        Ok(dims.iter().any(|dim| self.simplified(dim) != *dim))
    }

    fn symbol_is_extent(&self, name: &str) -> Option<bool> {
        let own = self.graph.symbols.iter().find(|symbol| *symbol.name == *name);
        let own = own.map(|symbol| matches!(symbol.source, SymbolSource::Extent(..)));
        own.or_else(|| self.around.get(name).copied())
    }

    /// What of the source the nodes written now stand for.
    pub fn origin(&self) -> Option<Arc<str>> {
        self.origin.clone()
    }

    /// Makes a value of the graph around this one known here: a constant again, or an input, which
    /// must then be an operand of the node that this graph is in. Says whether it is an input.
    pub fn capture(&mut self, around: &Self, value: ValueId, name: &str) -> (ValueId, bool) {
        let facts = around.facts[value.0].clone();
        if let Some(constant) = facts.constant {
            return (self.constant(constant), false);
        }
        let own = self.value(around.ty(value).clone(), facts);
        self.graph.inputs.push((name.to_owned(), own));
        (own, true)
    }

    /// Makes a value of the graph around this one known here as an input, whatever its elements are;
    /// what is known of its sizes stays so.
    pub fn parameter(&mut self, around: &Self, value: ValueId, name: &str) -> ValueId {
        let facts = Facts { constant: None, ..around.facts[value.0].clone() };
        let own = self.value(around.ty(value).clone(), facts);
        self.graph.inputs.push((name.to_owned(), own));
        own
    }

    /// What of the inputs a value is computed from.
    pub fn dependencies(&self, value: ValueId) -> Dependencies {
        dependencies::of_value(&self.graph, &|value| self.elements(value), value)
    }

    /// What of the inputs sizes are computed from.
    pub fn dependencies_of_sizes(&self, sizes: &[Dim]) -> Dependencies {
        dependencies::of_sizes(&self.graph, &|value| self.elements(value), sizes)
    }

    /// Says what of the source the next nodes stand for.
    pub fn set_origin(&mut self, origin: Option<Arc<str>>) {
        self.origin = origin;
    }

    /// An input. Its symbols that are not known yet are those of its dimensions.
    pub fn input(&mut self, name: impl Into<String>, ty: Type) -> ValueId {
        let value = self.value(ty, Facts::default());
        self.define_extents(value);
        self.graph.inputs.push((name.into(), value));
        value
    }

    /// A dimension that is a new symbol gives its value, and is checked where it is met again.
    fn define_extents(&mut self, value: ValueId) {
        for (axis, dim) in self.dims(value).iter().enumerate() {
            let names = dim.symbols();
            let Some(name) = names.first().filter(|name| *dim == Dim::symbol(name)) else {
                continue;
            };
            if self.symbol_is_extent(name).is_none() {
                let source = SymbolSource::Extent(value, axis);
                self.graph.symbols.push(Symbol { name: name.clone(), source });
            }
        }
    }

    /// A name that no symbol has.
    pub fn fresh_symbol(&mut self) -> Dim {
        Dim::symbol(&self.fresh_name())
    }

    fn fresh_name(&mut self) -> Arc<str> {
        loop {
            let name: Arc<str> = format!("{}s{}", self.prefix, self.fresh).into();
            self.fresh += 1;
            if self.symbol_is_extent(&name).is_none() {
                break name;
            }
        }
    }

    /// A result of the graph.
    pub fn output(&mut self, name: impl Into<String>, value: ValueId) {
        self.graph.outputs.push((name.into(), value));
    }

    /// The graph.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        self.graph.ty(value)
    }

    /// The extents of a value.
    pub fn dims(&self, value: ValueId) -> Vec<Dim> {
        self.ty(value).dims.clone()
    }

    /// The number of dimensions of a value.
    pub fn rank(&self, value: ValueId) -> usize {
        self.ty(value).rank()
    }

    /// The element type of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        self.ty(value).dtype
    }

    /// The elements of a value that is constant.
    ///
    /// # Errors
    /// When the constant is not of its type.
    pub fn constant_of(&self, value: ValueId) -> Built<Option<Tensor>> {
        let constant = self.facts[value.0].constant.as_ref();
        Ok(constant.map(Constant::tensor).transpose()?)
    }

    /// Whether a value is constant.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.facts[value.0].constant.is_some()
    }

    /// The elements of a small integer value as sizes, where they are known: what shape arithmetic
    /// gives. Row-major.
    pub fn elements(&self, value: ValueId) -> Option<&[Dim]> {
        self.facts[value.0].elements.as_deref()
    }

    /// The elements of a small integer value as sizes: those known, or new symbols that read them when
    /// the program runs.
    ///
    /// # Errors
    /// When the value is not of integers, or their number is not known or too large.
    pub fn elements_or_symbols(&mut self, value: ValueId) -> Built<Vec<Dim>> {
        if let Some(elements) = self.elements(value) {
            return Ok(elements.to_vec());
        }
        let ty = self.ty(value).clone();
        let count = ty.elements().known().filter(|count| (0..=sizes::FOLLOWED).contains(count));
        let (Some(count), true) = (count, ty.dtype.is_integer()) else {
            return Err(format!("expected a few integers, found {ty}").into());
        };
        let source = |index| SymbolSource::Element(value, index);
        let elements: Vec<Dim> = (0..count as usize).map(|at| self.symbol(source(at))).collect();
        self.facts[value.0].elements = Some(elements.clone());
        Ok(elements)
    }

    /// Takes an extent of the value written last to be a number, and requires it when the program
    /// runs. Gives the value of that type. Nothing is done for an extent that depends on those of inputs
    /// alone, which callers choose.
    ///
    /// # Errors
    /// When it can be told now that the extent is another.
    pub fn assume(&mut self, value: ValueId, axis: usize, extent: i64, message: &str) -> Built {
        let found = self.ty(value).dims[axis].clone();
        let names = found.symbols();
        if !names.iter().any(|name| self.is_computed(name)) {
            return Ok(value);
        }
        if names.iter().any(|name| self.is_given_back(name)) {
            self.require(&found, Relation::Equal, &extent.into(), message)?;
            let ty = self.ty(value).clone();
            let mut dims = ty.dims.clone();
            dims[axis] = extent.into();
            return self.compute(Compute::reshape(&ty, dims), &[value]);
        }
        let one = names.first().filter(|name| found == Dim::symbol(name));
        match one {
            Some(name) => {
                let known = |other: &str| (*other == **name).then_some(Dim::Known(extent));
                self.substitute(&known);
            }
            None => self.graph.restate(value, axis, &Dim::Known(extent)),
        }
        let (right, message) = (Dim::Known(extent), message.to_owned());
        let check = Check { left: found, right, relation: Relation::Equal, message };
        self.graph.checks.push(check);
        Ok(value)
    }

    /// Whether a symbol of this graph is the extent of what a choice or loop gives back: only the type
    /// of that says what the symbol is.
    fn is_given_back(&self, name: &Arc<str>) -> bool {
        let own = self.graph.symbols.iter().find(|symbol| symbol.name == *name);
        let given = own.is_some_and(|symbol| matches!(symbol.source, SymbolSource::Extent(..)));
        given && self.is_computed(name)
    }

    /// Whether a symbol of this graph is not the extent of an input.
    fn is_computed(&self, name: &Arc<str>) -> bool {
        let own = self.graph.symbols.iter().find(|symbol| symbol.name == *name);
        own.is_some_and(|symbol| match symbol.source {
            SymbolSource::Element(..) => true,
            SymbolSource::Extent(from, _) => {
                !self.graph.inputs.iter().any(|(_, input)| *input == from)
            }
        })
    }

    fn substitute(&mut self, known: &dyn Fn(&str) -> Option<Dim>) {
        self.graph.substitute(known);
        for elements in self.facts.iter_mut().filter_map(|facts| facts.elements.as_mut()) {
            elements.iter_mut().for_each(|element| *element = element.substitute(known));
        }
    }

    /// A new symbol.
    pub fn symbol(&mut self, source: SymbolSource) -> Dim {
        let name = self.fresh_name();
        let dim = Dim::symbol(&name);
        self.graph.symbols.push(Symbol { name, source });
        dim
    }

    /// Requires two sizes to relate, when the program runs if it cannot be told now.
    ///
    /// # Errors
    /// When it can be told now that they do not.
    pub fn require(
        &mut self,
        left: &Dim,
        relation: Relation,
        right: &Dim,
        message: &str,
    ) -> Built<()> {
        let [left, right] = [left, right].map(|dim| self.simplified(dim));
        if left == right || relation == Relation::EqualOrOne && left.is(1) {
            return Ok(());
        }
        match (left.known(), right.known()) {
            (Some(a), Some(b)) if relation.holds(a, b) => Ok(()),
            (Some(a), Some(b)) => Err(format!("{message}: found {a} and {b}").into()),
            _ => {
                let check = Check { left, right, relation, message: message.to_owned() };
                if !self.graph.checks.contains(&check) {
                    self.graph.checks.push(check);
                }
                Ok(())
            }
        }
    }

    /// A constant.
    pub fn constant(&mut self, constant: Constant) -> ValueId {
        let elements = elements_of(&constant);
        let facts = Facts { constant: Some(constant.clone()), elements };
        let value = self.value(constant.ty.clone().into(), facts);
        self.push(NodeKind::Constant(constant), vec![], vec![value]);
        value
    }

    /// A constant tensor.
    pub fn tensor(&mut self, tensor: &Tensor) -> ValueId {
        self.constant(Constant::of(tensor))
    }

    /// A scalar constant.
    ///
    /// # Errors
    /// None for types of at most 8 bytes.
    pub fn scalar(&mut self, value: f64, dtype: DType) -> Built {
        let tensor = Tensor::from_f64(irc_tensor::TensorType::new(dtype, []), &[value])?;
        Ok(self.tensor(&tensor))
    }

    /// Integer constants, in a row.
    ///
    /// # Errors
    /// None for types of at most 8 bytes.
    pub fn integers(&mut self, values: &[i64]) -> Built {
        let tensor = Tensor::from_values([values.len() as i64], values)?;
        Ok(self.tensor(&tensor))
    }

    /// Sizes as an integer value of one dimension, or a scalar.
    ///
    /// # Errors
    /// A type that is not of integers.
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

    /// An op.
    ///
    /// # Errors
    /// Operands that it does not take; a constant result that cannot be computed.
    pub fn op(&mut self, op: Op, operands: &[ValueId]) -> Built {
        let types: Vec<Type> = operands.iter().map(|value| self.ty(*value).clone()).collect();
        let symbolic = types.iter().any(|ty| ty.known().is_none());
        if symbolic {
            self.check_sizes(&op, &types)?;
            if let Op::Reduce { kind: Reduction::Mean, axes, keep_dims } = &op {
                return self.mean(operands[0], axes, *keep_dims);
            }
        }
        let op = match op {
            // The schedules of products are for symbolic numbers of rows and images too, but not for
            // symbolic sizes of images.
            Op::Conv(conv) if symbolic && self.is_wordy(&Op::Conv(conv.clone()), &types)? => {
                Op::compute(conv.compute(&types)?)
            }
            Op::Compute(_) | Op::Matmul { .. } | Op::Conv(_) => op,
            op if symbolic => {
                op.infer_symbolic(&types)?;
                let compute = op.as_compute(&types);
                compute.map(Op::compute).ok_or_else(|| {
                    let message = "expected operands of known sizes".to_owned();
                    InferError { op: op.name(), message }
                })?
            }
            op => op,
        };
        let op = match op {
            Op::Compute(compute) => {
                Op::compute(Arc::unwrap_or_clone(compute).map_sizes(&|dim| self.simplified(dim)))
            }
            op => op,
        };
        let ty = op.infer_symbolic(&types)?;
        if let Some(folded) = self.fold(&op, operands, &ty)? {
            return Ok(folded);
        }
        let elements = self.follow(&op, operands, &types, &ty);
        let short = |elements: Vec<Dim>| elements.iter().map(|dim| self.simplified(dim)).collect();
        let elements = elements.map(short);
        let value = self.value(ty, Facts { constant: None, elements });
        self.push(NodeKind::Op(op), operands.to_vec(), vec![value]);
        Ok(value)
    }

    /// An algorithm: its results.
    ///
    /// # Errors
    /// Operands that it does not take.
    pub fn algorithm(&mut self, algorithm: Algorithm, operands: &[ValueId]) -> Built<Vec<ValueId>> {
        let types: Vec<Type> = operands.iter().map(|value| self.ty(*value).clone()).collect();
        let results = algorithm.infer(&types)?;
        let constants: Built<Vec<_>> =
            operands.iter().map(|value| self.constant_of(*value)).collect();
        let constants: Option<Vec<Tensor>> = constants?.into_iter().collect();
        if let Some(constants) = constants.filter(|_| results.iter().all(is_small)) {
            let constants: Vec<&Tensor> = constants.iter().collect();
            let folded = algorithm.eval(&constants)?;
            return Ok(folded.iter().map(|tensor| self.tensor(tensor)).collect());
        }
        let results: Vec<_> =
            results.into_iter().map(|ty| self.value(ty, Facts::default())).collect();
        self.push(NodeKind::Algorithm(algorithm), operands.to_vec(), results.clone());
        Ok(results)
    }

    /// A node with graphs inside, whose results have the given types. A dimension that is a new symbol
    /// gives its value.
    pub fn region(
        &mut self,
        kind: NodeKind,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        let results: Vec<_> =
            results.into_iter().map(|ty| self.value(ty, Facts::default())).collect();
        self.push(kind, operands.to_vec(), results.clone());
        results.iter().for_each(|value| self.define_extents(*value));
        results
    }

    /// A value that can be had only when others have been computed. What is known of it stays so; a
    /// constant is there from the start.
    pub fn after(&mut self, value: ValueId, others: &[ValueId]) -> ValueId {
        let others = others.iter().copied().filter(|other| !self.is_constant(*other));
        let operands: Vec<ValueId> = [value].into_iter().chain(others).collect();
        if self.is_constant(value) || operands.len() == 1 {
            return value;
        }
        let result = self.value(self.ty(value).clone(), self.facts[value.0].clone());
        self.push(NodeKind::After, operands, vec![result]);
        result
    }

    /// Loops around an expression.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn compute(&mut self, compute: Compute, operands: &[ValueId]) -> Built {
        self.op(Op::compute(compute), operands)
    }

    /// A function of every element.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn unary(&mut self, function: Unary, x: ValueId) -> Built {
        self.op(Op::Unary(function), &[x])
    }

    /// A function of every pair of elements, which broadcast.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn binary(&mut self, function: Binary, x: ValueId, y: ValueId) -> Built {
        self.op(Op::Binary(function), &[x, y])
    }

    /// A comparison of every pair of elements, which broadcast.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn compare(&mut self, comparison: Comparison, x: ValueId, y: ValueId) -> Built {
        self.op(Op::Compare(comparison), &[x, y])
    }

    /// One of two elements, by a condition.
    ///
    /// # Errors
    /// As [`Builder::op`].
    pub fn select(&mut self, condition: ValueId, yes: ValueId, no: ValueId) -> Built {
        self.op(Op::Select, &[condition, yes, no])
    }

    /// A conversion, floats dropping their fraction where they become integers; nothing is done
    /// where the type is that already.
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

    /// Reordered dimensions.
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

    /// The same elements under other dimensions.
    ///
    /// # Errors
    /// Sizes that cannot hold as many elements.
    pub fn reshape(&mut self, x: ValueId, dims: &[Dim]) -> Built {
        let ty = self.ty(x).clone();
        if ty.dims == dims {
            return Ok(x);
        }
        let (expected, found) = (ty.elements(), Dim::product(dims));
        let message = format!("expected a shape of as many elements as {ty}");
        self.require(&found, Relation::Equal, &expected, &message)?;
        let known: Option<Vec<i64>> = dims.iter().map(Dim::known).collect();
        match (known, ty.known()) {
            (Some(shape), Some(_)) => self.op(Op::Reshape { shape }, &[x]),
            _ => self.compute(Compute::reshape(&ty, dims), &[x]),
        }
    }

    /// The operand repeated along new or unit dimensions, aligned at the last one.
    ///
    /// # Errors
    /// Sizes that it does not broadcast to.
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

    /// A tensor of one value.
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

    fn mean(&mut self, x: ValueId, axes: &[usize], keep_dims: bool) -> Built {
        let sum = self.reduce(Reduction::Sum, x, axes, keep_dims)?;
        let (count, dtype) =
            (Dim::product(axes.iter().map(|axis| &self.ty(x).dims[*axis])), self.dtype(x));
        let count = self.sizes(&[count], true, DType::I64)?;
        let count = self.cast(count, dtype)?;
        self.binary(Binary::Div, sum, count)
    }

    /// Requires of symbolic sizes what inference requires of known ones.
    fn check_sizes(&mut self, op: &Op, types: &[Type]) -> Built<()> {
        match op {
            Op::Binary(_) | Op::Compare(_) | Op::Select => self.check_join(op.name(), types),
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                let depth = |ty: &Type, last: bool| {
                    let back = if last { 1 } else { 2 };
                    ty.rank().checked_sub(back).map(|axis| ty.dims[axis].clone())
                };
                let (left, right) =
                    (depth(&types[0], !transpose_lhs), depth(&types[1], *transpose_rhs));
                let (Some(left), Some(right)) = (left, right) else { return Ok(()) };
                let message = "matmul: expected one contracted size";
                self.require(&left, Relation::Equal, &right, message)?;
                let batch =
                    |ty: &Type| Type::new(ty.dtype, &ty.dims[..ty.rank().saturating_sub(2)]);
                self.check_join("matmul", &[batch(&types[0]), batch(&types[1])])
            }
            Op::Conv(conv) if types[1].rank() >= 2 && types[0].rank() >= 2 => {
                let [channels, rest] = conv.agreement(&types[1]);
                let message = "conv: expected as many channels as the filters have";
                self.require(&types[0].dims[1], Relation::Equal, &channels, message)?;
                let message = "conv: expected as many filters in each group";
                self.require(&rest, Relation::Equal, &0.into(), message)
            }
            _ => Ok(()),
        }
    }

    fn check_join(&mut self, name: &str, types: &[Type]) -> Built<()> {
        let found = || types.iter().map(Type::to_string).collect::<Vec<_>>().join(" and ");
        let message = || format!("{name}: expected shapes that broadcast together");
        let joined = join(types).ok_or_else(|| format!("{}, found {}", message(), found()))?;
        for ty in types {
            let new = joined.len() - ty.rank();
            for (own, to) in ty.dims.iter().zip(&joined[new..]) {
                self.require(own, Relation::EqualOrOne, to, &message())?;
            }
        }
        Ok(())
    }

    fn fold(&mut self, op: &Op, operands: &[ValueId], ty: &Type) -> Built<Option<ValueId>> {
        if let Some(view) = self.view(op, operands, ty) {
            return Ok(Some(view));
        }
        // One value everywhere is best kept as it is.
        if matches!(op, Op::Fill { .. }) || !is_small(ty) {
            return Ok(None);
        }
        if !operands.iter().all(|value| self.is_constant(*value)) || has_symbols(op) {
            return Ok(None);
        }
        let mut tensors = vec![];
        for value in operands {
            tensors.extend(self.constant_of(*value)?);
        }
        let tensors: Vec<&Tensor> = tensors.iter().collect();
        let result = op.eval(&tensors)?;
        Ok(Some(self.tensor(&result)))
    }

    /// A constant of any size under another shape, or some of its rows: the same bytes.
    fn view(&mut self, op: &Op, operands: &[ValueId], ty: &Type) -> Option<ValueId> {
        let constant = self.facts[operands.first()?.0].constant.clone()?;
        let bytes = match op {
            Op::Reshape { .. } => constant.bytes,
            Op::Slice { offsets, sizes } => rows(&constant, offsets, sizes)?,
            _ => return None,
        };
        Some(self.constant(Constant { ty: ty.known()?, bytes }))
    }

    /// The elements of a small integer result.
    fn follow(&self, op: &Op, operands: &[ValueId], types: &[Type], ty: &Type) -> Option<Vec<Dim>> {
        if ty.dtype.is_float() || ty.dtype.size() < 4 && ty.dtype != DType::Bool {
            return None;
        }
        let known = operands
            .iter()
            .zip(types)
            .map(|(value, ty)| Known { elements: self.elements(*value), shape: &ty.dims });
        sizes::evaluate(&op.as_compute(types)?, &known.collect::<Vec<_>>())
    }

    fn value(&mut self, ty: Type, facts: Facts) -> ValueId {
        self.graph.types.push(ty);
        self.facts.push(facts);
        ValueId(self.graph.types.len() - 1)
    }

    fn push(&mut self, kind: NodeKind, operands: Vec<ValueId>, results: Vec<ValueId>) {
        self.graph.nodes.push(Node { kind, operands, results, origin: self.origin.clone() });
    }
}

/// The bytes of a box that takes whole rows of a constant.
fn rows(constant: &Constant, offsets: &[i64], sizes: &[i64]) -> Option<Bytes> {
    let shape = &constant.ty.shape;
    let whole = offsets.get(1..)?.iter().all(|offset| *offset == 0) && sizes[1..] == shape[1..];
    let row = constant.bytes.len().checked_div(usize::try_from(shape[0]).ok()?)?;
    if !whole || row * shape[0] as usize != constant.bytes.len() {
        return None;
    }
    let start = row * usize::try_from(offsets[0]).ok()?;
    Some(constant.bytes.slice(start..start + row * usize::try_from(sizes[0]).ok()?))
}

fn is_small(ty: &Type) -> bool {
    ty.elements().known().is_some_and(|count| (0..=FOLDED).contains(&count))
}

fn has_symbols(op: &Op) -> bool {
    let Op::Compute(compute) = op else { return false };
    let mut found = compute.dims.iter().any(|dim| dim.known().is_none());
    let over = compute.reduction.iter().flat_map(|reduction| &reduction.dims);
    found |= over.into_iter().any(|dim| dim.known().is_none());
    compute.body.walk(&mut |scalar| {
        found |= matches!(scalar, Scalar::Size(dim) if dim.known().is_none());
    });
    found
}

/// The elements of a small constant of integers, as sizes.
fn elements_of(constant: &Constant) -> Option<Vec<Dim>> {
    let count = constant.ty.elements().ok()?;
    if constant.ty.dtype.is_float() || count > sizes::FOLLOWED as usize {
        return None;
    }
    let values = constant.tensor().ok()?.to_i128()?;
    values.into_iter().map(|value| i64::try_from(value).ok().map(Dim::Known)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> (Builder, ValueId) {
        let mut builder = Builder::new();
        let x = builder.input("x", Type::new(DType::F32, [Dim::symbol("N"), 4.into()]));
        (builder, x)
    }

    #[test]
    fn shape_arithmetic_gives_sizes() {
        let (mut b, x) = rows();
        let dims = b.dims(x);
        let shape = b.sizes(&dims, false, DType::I64).expect("integers");
        let two = b.scalar(2.0, DType::I64).expect("a scalar");
        let doubled = b.binary(Binary::Mul, shape, two).expect("integers");
        let found = b.elements(doubled).expect("followed").to_vec();
        assert_eq!(found, [Dim::symbol("N") * 2.into(), 8.into()]);
        let flat = b.reshape(x, &[Dim::symbol("N") * 4.into()]).expect("as many elements");
        assert_eq!(b.ty(flat).to_string(), "f32[4*N]");
    }

    #[test]
    fn constants_fold() {
        let mut b = Builder::new();
        let row = b.integers(&[1, 2, 3]).expect("a row");
        let sum = b.reduce(Reduction::Sum, row, &[0], false).expect("numbers");
        assert_eq!(b.elements(sum), Some(&[Dim::Known(6)][..]));
        assert!(b.is_constant(sum));
    }

    #[test]
    fn large_constants_are_looked_at_in_place() {
        let mut b = Builder::new();
        let tensor =
            Tensor::random(crate::TensorType::new(DType::F32, [2, 50_000]), 1).expect("a tensor");
        let whole = b.tensor(&tensor);
        let slice = Op::Slice { offsets: vec![1, 0], sizes: vec![1, 50_000] };
        let row = b.op(slice, &[whole]).expect("inside");
        let row = b.reshape(row, &[100.into(), 500.into()]).expect("as many elements");
        let found = b.constant_of(row).expect("elements").expect("a constant");
        assert_eq!(found.to_f64(), tensor.to_f64()[50_000..]);
        let slice = Op::Slice { offsets: vec![0, 1], sizes: vec![2, 40_000] };
        let columns = b.op(slice, &[whole]).expect("inside");
        assert!(!b.is_constant(columns));
    }

    #[test]
    fn sizes_that_may_differ_are_checked_when_it_runs() {
        let (mut b, x) = rows();
        let y = b.input("y", Type::new(DType::F32, [Dim::symbol("M"), 4.into()]));
        b.binary(Binary::Add, x, y).expect("they may broadcast");
        let four = b.fill(1.0, &[Dim::Known(5)], DType::F32).expect("a fill");
        let error = b.binary(Binary::Add, x, four).expect_err("4 and 5");
        assert!(error.to_string().contains("expected shapes that broadcast together"));
        let graph = b.finish();
        assert_eq!(graph.checks.len(), 2, "{:?}", graph.checks);
        assert_eq!(graph.symbols.len(), 2);
    }
}
