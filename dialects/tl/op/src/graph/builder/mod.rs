//! Building a [`Graph`].

mod fold;
mod ops;
mod symbols;

use super::dependencies::{self, Dependencies};
use super::sizes::{self, Known};
use super::{
    Check, Constant, Graph, Lengths, Node, NodeKind, Relation, Symbol, SymbolSource, ValueId,
};
use crate::{
    Algorithm, Binary, Comparison, Compute, Conv, DType, Dim, EvalError, Extents, Factor, Function,
    InferError, Op, Reduction, Rounding, Scalar, Tensor, TensorError, Type, Unary, join,
};
use bytes::Bytes;
use fold::{elements_of, is_small};
use irc_tensor::Strings;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use thiserror::Error;

/// Results with at most this many elements are folded if their operands are constant.
const FOLDED: i64 = 1 << 16;

/// Maximum number of parts of a size; a longer one has a symbol (see [`Builder::op`]). Sizes that follow from
/// each other, each of which is written several times in the next, would double at each op.
const MAX_PARTS: usize = 100;

/// Why a node cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BuildError {
    /// An op does not accept its operands.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// A constant result cannot be computed.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A constant does not match its type.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An error reported by the caller.
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

/// The result of a method of [`Builder`].
pub type Built<T = ValueId> = Result<T, BuildError>;

/// Builds a [`Graph`] node by node.
///
/// Types are inferred. Small results of ops on constants are folded. An op on operands whose sizes
/// depend on symbols becomes loops around an expression (see [`Op::as_compute`]), except for products,
/// convolutions and ops with [rows](Op::open_rows), with a check for each pair of sizes that must agree. The elements of small integer
/// values are tracked as sizes: see [`Builder::elements`].
#[derive(Debug, Default)]
pub struct Builder {
    graph: Graph,
    facts: Vec<Facts>,
    origin: Option<Arc<str>>,
    fresh: usize,
    /// The prefix of the names of new symbols; differs for nested graphs.
    prefix: String,
    /// Symbols of the enclosing graphs, and whether each is an extent.
    around: BTreeMap<Arc<str>, bool>,
    /// The index of each symbol of the graph.
    symbols: BTreeMap<Arc<str>, usize>,
    /// How far the graph had been built when each symbol of it was named.
    named_at: BTreeMap<Arc<str>, Lengths>,
    /// Relations that are already checked.
    required: BTreeSet<(Dim, Relation, Dim)>,
    /// The inputs of the graph.
    inputs: BTreeSet<ValueId>,
    /// The strings of the program, which nested graphs share.
    strings: Rc<RefCell<Strings>>,
    is_nested: bool,
    /// The symbols of sizes that are longer than [`MAX_PARTS`].
    short: BTreeMap<Dim, Dim>,
    /// Those symbols that are not negative.
    short_extents: BTreeSet<Arc<str>>,
}

/// What is known about a value.
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

    /// A nested graph, whose new symbols begin with `prefix`.
    pub fn nested(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), is_nested: true, ..Self::default() }
    }

    /// A builder of a graph nested in this one.
    pub fn inside(&mut self) -> Self {
        self.fresh += 1;
        self.within(&format!("g{}", self.fresh))
    }

    /// A builder of a graph nested in this one, whose new symbols are named after `label`: graphs with
    /// the same label that are built in the same way are equal.
    pub fn within(&self, label: &str) -> Self {
        let mut around = self.around.clone();
        for symbol in &self.graph.symbols {
            let extent = self.symbol_is_extent(&symbol.name) == Some(true);
            around.insert(symbol.name.clone(), extent);
        }
        let nested = Self::nested(format!("{}{label}_", self.prefix));
        let strings = self.strings.clone();
        Self { around, origin: self.origin.clone(), strings, ..nested }
    }

    /// The origin of the nodes that are being built.
    pub fn origin(&self) -> Option<Arc<str>> {
        self.origin.clone()
    }

    /// Captures a value of the enclosing graph: as a constant, or as an input, which
    /// must then be an operand of the node that contains this graph. Returns whether it is an input.
    pub fn capture(&mut self, around: &Self, value: ValueId, name: &str) -> (ValueId, bool) {
        let facts = around.facts[value.0].clone();
        if let Some(constant) = facts.constant {
            return (self.constant(constant), false);
        }
        let own = self.value(around.ty(value).clone(), facts);
        self.push_input(name, own);
        (own, true)
    }

    /// Captures a value of the enclosing graph as an input, whatever its elements are;
    /// what is known about its sizes is preserved.
    pub fn parameter(&mut self, around: &Self, value: ValueId, name: &str) -> ValueId {
        let facts = Facts { constant: None, ..around.facts[value.0].clone() };
        let own = self.value(around.ty(value).clone(), facts);
        self.push_input(name, own);
        own
    }

    /// Sets the origin of the next nodes.
    pub fn set_origin(&mut self, origin: Option<Arc<str>>) {
        self.origin = origin;
    }

    /// An input. Symbols in its dimensions that are not known yet are defined by them.
    pub fn input(&mut self, name: impl Into<String>, ty: Type) -> ValueId {
        let value = self.value(ty, Facts::default());
        self.define_extents(value);
        self.push_input(name, value);
        value
    }

    fn push_input(&mut self, name: impl Into<String>, value: ValueId) {
        self.graph.inputs.push((name.into(), value));
        self.inputs.insert(value);
    }

    /// Declares a result of the graph.
    pub fn output(&mut self, name: impl Into<String>, value: ValueId) {
        self.graph.outputs.push((name.into(), value));
    }

    /// The graph.
    pub fn finish(self) -> Graph {
        let mut graph = self.graph;
        if !self.is_nested {
            graph.strings = self.strings.borrow().texts().to_vec();
        }
        graph
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

    /// The elements of a value, if it is constant; for strings, their handles.
    ///
    /// # Errors
    /// If the constant does not match its type.
    pub fn constant_of(&self, value: ValueId) -> Built<Option<Tensor>> {
        let constant = self.facts[value.0].constant.as_ref();
        Ok(constant.map(Constant::tensor).transpose()?)
    }

    /// Whether a value is constant.
    pub fn is_constant(&self, value: ValueId) -> bool {
        self.facts[value.0].constant.is_some()
    }

    /// The strings of a value, if it is a constant of strings.
    ///
    /// # Errors
    /// If the constant does not match its type.
    pub fn strings_of(&self, value: ValueId) -> Built<Option<Vec<Arc<[u8]>>>> {
        let Some(tensor) = self.constant_of(value)? else { return Ok(None) };
        Ok(tensor.with_strings(&Arc::new(self.strings.borrow().clone())).to_strings())
    }

    /// The handle of a string in constants of this program.
    pub fn handle(&self, text: impl AsRef<[u8]>) -> i64 {
        self.strings.borrow_mut().intern(text.as_ref())
    }

    /// A one-dimensional constant of strings.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub fn strings<T: AsRef<[u8]>>(&mut self, texts: &[T]) -> Built {
        let tensor = Tensor::from_strings([texts.len() as i64], texts)?;
        Ok(self.tensor(&tensor))
    }

    /// A constant. Strings become handles of the program's strings.
    pub fn constant(&mut self, constant: Constant) -> ValueId {
        let constant = self.interned(constant);
        let elements = elements_of(&constant, sizes::FOLLOWED);
        let facts = Facts { constant: Some(constant.clone()), elements };
        let value = self.value(constant.ty.clone().into(), facts);
        self.push(NodeKind::Constant(constant), vec![], vec![value]);
        value
    }

    /// A constant tensor.
    pub fn tensor(&mut self, tensor: &Tensor) -> ValueId {
        self.constant(match tensor.strings() {
            Some(_) => Constant::of(tensor),
            None => Constant::of_numbers(tensor),
        })
    }

    fn interned(&self, constant: Constant) -> Constant {
        let tensor = constant.strings.as_ref().and_then(|_| constant.tensor().ok());
        match tensor {
            Some(tensor) => Constant::of_numbers(&tensor.interned(&mut self.strings.borrow_mut())),
            None => constant,
        }
    }

    /// An op. A size of more than `MAX_PARTS` parts has a symbol, whose value the program computes first.
    ///
    /// # Errors
    /// If the op does not accept the operands, or a constant result cannot be computed.
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
            // The schedules of products support symbolic numbers of rows and images, but not
            // symbolic image sizes.
            Op::Conv(conv) if symbolic && self.is_wordy(&Op::Conv(conv.clone()), &types)? => {
                Op::compute(conv.compute(&types)?)
            }
            Op::Compute(_) | Op::Matmul { .. } | Op::BlockScaledMatmul { .. } | Op::Conv(_) => op,
            op if symbolic && op.open_rows(&types).is_some() => op,
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
            Op::Compute(compute) => Op::compute(self.shortened(Arc::unwrap_or_clone(compute))),
            op => op,
        };
        let ty = op.infer_symbolic(&types)?;
        ty.expect_size()?;
        if let Some(folded) = self.fold(&op, operands, &ty)? {
            return Ok(folded);
        }
        let elements = self.follow(&op, operands, &types, &ty);
        self.require_size(&ty)?;
        let value = self.value(ty, Facts::default());
        let elements = elements.map(|elements| self.shortened_elements(value, &elements));
        self.facts[value.0].elements = elements;
        self.push(NodeKind::Op(op), operands.to_vec(), vec![value]);
        Ok(value)
    }

    /// The results of an algorithm.
    ///
    /// # Errors
    /// If the algorithm does not accept the operands.
    pub fn algorithm(&mut self, algorithm: Algorithm, operands: &[ValueId]) -> Built<Vec<ValueId>> {
        let types: Vec<Type> = operands.iter().map(|value| self.ty(*value).clone()).collect();
        let results = algorithm.infer(&types)?;
        results.iter().try_for_each(Type::expect_size)?;
        let constants: Built<Vec<_>> =
            operands.iter().map(|value| self.constant_of(*value)).collect();
        let constants: Option<Vec<Tensor>> = constants?.into_iter().collect();
        if let Some(constants) = constants.filter(|_| results.iter().all(is_small)) {
            let constants: Vec<&Tensor> = constants.iter().collect();
            let folded = algorithm.eval(&constants)?;
            return Ok(folded.iter().map(|tensor| self.tensor(tensor)).collect());
        }
        results.iter().try_for_each(|ty| self.require_size(ty))?;
        let results: Vec<_> =
            results.into_iter().map(|ty| self.value(ty, Facts::default())).collect();
        self.push(NodeKind::Algorithm(algorithm), operands.to_vec(), results.clone());
        Ok(results)
    }

    /// A function of the host. Operands of a function of each element broadcast.
    ///
    /// # Errors
    /// Operands of the wrong types, or whose extents differ; a function whose extents the program states.
    pub fn host(&mut self, function: Function, operands: &[ValueId]) -> Built {
        self.host_of(function, operands, &[])
    }

    /// As [`Builder::host`], for a function whose extents the program states.
    ///
    /// # Errors
    /// As [`Builder::host`].
    pub fn host_of(&mut self, function: Function, operands: &[ValueId], stated: &[Dim]) -> Built {
        let types: Vec<Type> = operands.iter().map(|value| self.ty(*value).clone()).collect();
        let dtypes: Vec<DType> = types.iter().map(|ty| ty.dtype).collect();
        function.expect(&dtypes).map_err(EvalError::from)?;
        let (mut operands, mut dims) = (operands.to_vec(), stated.to_vec());
        match function.extents() {
            Extents::OfOperands => {
                dims = join(&types).ok_or("expected sizes that broadcast together")?;
                let own = operands.iter().map(|value| self.broadcast(*value, &dims));
                operands = own.collect::<Built<_>>()?;
            }
            Extents::Known(extents) => dims = extents.iter().copied().map(Dim::Known).collect(),
            Extents::Stated(rank) if rank == dims.len() => {}
            Extents::Stated(rank) => return Err(format!("expected {rank} extents").into()),
        }
        let ty = Type::new(function.result(), dims);
        ty.expect_size()?;
        self.require_size(&ty)?;
        let value = self.value(ty, Facts::default());
        self.push(NodeKind::Host(function), operands, vec![value]);
        Ok(value)
    }

    /// A node with nested graphs, whose results have the given types. A dimension that is a new symbol
    /// defines its value.
    ///
    /// # Errors
    /// If a result does not fit in memory.
    pub fn region(
        &mut self,
        kind: NodeKind,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Built<Vec<ValueId>> {
        let types: Vec<Type> = results.into_iter().collect();
        types.iter().try_for_each(Type::expect_size)?;
        let results: Vec<_> =
            types.iter().map(|ty| self.value(ty.clone(), Facts::default())).collect();
        self.push(kind, operands.to_vec(), results.clone());
        results.iter().for_each(|value| self.define_extents(*value));
        types.iter().try_for_each(|ty| self.require_size(ty))?;
        Ok(results)
    }

    /// A value that is available only after others have been computed. What is known about it is
    /// preserved; a constant is available from the start.
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

    fn value(&mut self, ty: Type, facts: Facts) -> ValueId {
        self.graph.types.push(ty);
        self.facts.push(facts);
        ValueId(self.graph.types.len() - 1)
    }

    fn push(&mut self, kind: NodeKind, operands: Vec<ValueId>, results: Vec<ValueId>) {
        self.graph.nodes.push(Node { kind, operands, results, origin: self.origin.clone() });
    }
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
