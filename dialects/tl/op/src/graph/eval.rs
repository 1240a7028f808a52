//! The reference evaluator of a [`Graph`].

use super::{Graph, Node, NodeKind, SymbolSource, ValueId};
use crate::values::expect_memory;
use crate::{Compute, DType, Dim, EvalError, InferError, Op, Tensor, TensorError, TensorType};
use irc_host::Functions;
use irc_tensor::{Strings, check_text, memory};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use thiserror::Error;

/// Number of iterations after which a loop is considered endless.
const ENDLESS: i64 = 1 << 40;

/// Why a graph cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GraphError {
    /// A node cannot be evaluated.
    #[error("{}{error}", origin(at))]
    Node {
        /// The origin of the node.
        at: Option<Arc<str>>,
        /// Why.
        error: EvalError,
    },
    /// An input is missing or has another type.
    #[error("input '{name}': expected {expected}, found {found}")]
    Input {
        /// The input.
        name: String,
        /// Its type.
        expected: String,
        /// The given type.
        found: String,
    },
    /// A check fails.
    #[error("{}", check_text(message, *left, *right))]
    Check {
        /// What is wrong.
        message: String,
        /// The first size.
        left: i64,
        /// The second.
        right: i64,
    },
    /// A size depends on a symbol that is unknown at this point, or overflows.
    #[error("the size {0} cannot be computed")]
    Size(String),
}

fn origin(at: &Option<Arc<str>>) -> String {
    at.as_ref().map(|at| format!("{at}: ")).unwrap_or_default()
}

impl From<TensorError> for GraphError {
    fn from(error: TensorError) -> Self {
        Self::Node { at: None, error: error.into() }
    }
}

impl Graph {
    /// The values of the outputs, in their order.
    ///
    /// # Errors
    /// If an input is missing or of another type, a check fails, or [`Op::eval`] fails.
    pub fn eval(&self, inputs: &BTreeMap<String, Tensor>) -> Result<Vec<Tensor>, GraphError> {
        let mut given = vec![];
        let mut strings = Strings::of(&self.strings);
        for (name, value) in &self.inputs {
            let tensor = inputs.get(name).cloned().ok_or_else(|| GraphError::Input {
                name: name.clone(),
                expected: self.ty(*value).to_string(),
                found: "nothing".into(),
            })?;
            given.push(tensor.interned(&mut strings));
        }
        let host = RefCell::new((strings, Functions::default()));
        let results = self.eval_in(given, &BTreeMap::new(), &host)?;
        let strings = Arc::new(host.into_inner().0);
        Ok(results.into_iter().map(|result| result.with_strings(&strings)).collect())
    }

    /// The values of the outputs, with symbols of the enclosing graphs.
    fn eval_in(
        &self,
        inputs: Vec<Tensor>,
        around: &BTreeMap<Arc<str>, i64>,
        host: &RefCell<(Strings, Functions)>,
    ) -> Result<Vec<Tensor>, GraphError> {
        let mut state = State {
            graph: self,
            values: vec![None; self.types.len()],
            symbols: around.clone(),
            pending: Pending::of(self, around),
            host,
        };
        for ((_, value), tensor) in self.inputs.iter().zip(inputs) {
            state.values[value.0] = Some(tensor);
        }
        state.define_symbols(self.inputs.iter().map(|(_, value)| *value))?;
        for (name, value) in &self.inputs {
            state.check_input(name, *value)?;
        }
        for node in &self.nodes {
            let results = state.run(node)?;
            for (value, tensor) in node.results.iter().zip(results) {
                state.values[value.0] = Some(tensor);
            }
            state.define_symbols(node.results.iter().copied())?;
        }
        self.outputs.iter().map(|(_, value)| Ok(state.value(*value).clone())).collect()
    }
}

struct State<'g> {
    graph: &'g Graph,
    values: Vec<Option<Tensor>>,
    symbols: BTreeMap<Arc<str>, i64>,
    pending: Pending,
    /// The strings of the run, and the state of functions of the host.
    host: &'g RefCell<(Strings, Functions)>,
}

/// The symbols and checks that are not known yet.
struct Pending {
    /// The symbols that each value defines.
    symbols: BTreeMap<usize, Vec<usize>>,
    /// The checks that need each symbol.
    checks: BTreeMap<Arc<str>, Vec<usize>>,
    /// Per check: how many symbols it needs.
    missing: Vec<usize>,
    /// The checks that need no more symbols.
    ready: BTreeSet<usize>,
}

impl Pending {
    fn of(graph: &Graph, known: &BTreeMap<Arc<str>, i64>) -> Self {
        let mut symbols: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (number, symbol) in graph.symbols.iter().enumerate() {
            let (SymbolSource::Extent(from, _) | SymbolSource::Element(from, _)) = symbol.source;
            symbols.entry(from.0).or_default().push(number);
        }
        let mut this =
            Self { symbols, checks: BTreeMap::new(), missing: vec![], ready: BTreeSet::new() };
        for (number, check) in graph.checks.iter().enumerate() {
            let mut needed: BTreeSet<Arc<str>> = check.left.symbols().into_iter().collect();
            needed.extend(check.right.symbols());
            needed.retain(|name| !known.contains_key(name));
            this.missing.push(needed.len());
            if needed.is_empty() {
                this.ready.insert(number);
            }
            for name in needed {
                this.checks.entry(name).or_default().push(number);
            }
        }
        this
    }

    /// Marks the checks that need no more symbols once one is known.
    fn define(&mut self, name: &str) {
        for check in self.checks.remove(name).unwrap_or_default() {
            self.missing[check] -= 1;
            if self.missing[check] == 0 {
                self.ready.insert(check);
            }
        }
    }
}

impl State<'_> {
    fn value(&self, value: ValueId) -> &Tensor {
        self.values[value.0].as_ref().expect("nodes stand in an order in which they can run")
    }

    fn lookup(&self) -> impl Fn(&str) -> Option<i64> + '_ {
        |name| self.symbols.get(name).copied()
    }

    /// Defines the symbols that depend on new values, and evaluates the checks that can be evaluated then.
    fn define_symbols(&mut self, values: impl Iterator<Item = ValueId>) -> Result<(), GraphError> {
        for from in values {
            let Some(tensor) = &self.values[from.0] else { continue };
            for number in self.pending.symbols.remove(&from.0).unwrap_or_default() {
                let symbol = &self.graph.symbols[number];
                let value = match symbol.source {
                    SymbolSource::Extent(_, axis) => tensor.shape().get(axis).copied(),
                    SymbolSource::Element(_, index) => element(tensor, index),
                };
                if let Some(value) = value {
                    self.symbols.entry(symbol.name.clone()).or_insert(value);
                    self.pending.define(&symbol.name);
                }
            }
        }
        for number in std::mem::take(&mut self.pending.ready) {
            let check = &self.graph.checks[number];
            let sizes = [&check.left, &check.right].map(|size| size.eval(&self.lookup()));
            let exact = sizes.iter().all(Option::is_some);
            // A size that overflows fails every relation, and is reported as `i64::MAX`.
            let [left, right] = sizes.map(|size| size.unwrap_or(i64::MAX));
            if !exact || !check.relation.holds(left, right) {
                let message = check.message.clone();
                return Err(GraphError::Check { message, left, right });
            }
        }
        Ok(())
    }

    fn check_input(&self, name: &str, value: ValueId) -> Result<(), GraphError> {
        let (expected, found) = (self.graph.ty(value), self.value(value).ty());
        let here = expected.eval(&self.lookup());
        if here.as_ref().is_none_or(|here| here == found) {
            return Ok(());
        }
        let (name, expected) = (name.to_owned(), expected.to_string());
        Err(GraphError::Input { name, expected, found: found.to_string() })
    }

    fn run(&self, node: &Node) -> Result<Vec<Tensor>, GraphError> {
        let operands: Vec<&Tensor> = node.operands.iter().map(|value| self.value(*value)).collect();
        let at = |error| GraphError::Node { at: node.origin.clone(), error };
        expect_memory(&operands, &[]).map_err(|error| at(error.into()))?;
        match &node.kind {
            NodeKind::Constant(constant) => Ok(vec![constant.tensor()?]),
            NodeKind::Op(Op::Compute(compute)) => {
                let bound = self.bind(compute)?;
                Ok(vec![bound.eval(&operands).map_err(at)?])
            }
            NodeKind::Op(op) => Ok(vec![op.eval(&operands).map_err(at)?]),
            NodeKind::Algorithm(algorithm) => {
                let known = |name: &str| self.symbols.get(name).copied().map(Dim::Known);
                algorithm.substitute(&known).eval(&operands).map_err(at)
            }
            NodeKind::Host(function) => {
                let (strings, functions) = &mut *self.host.borrow_mut();
                let ty = self.graph.ty(node.results[0]);
                let known =
                    ty.eval(&self.lookup()).ok_or_else(|| GraphError::Size(ty.to_string()))?;
                let result = functions.apply(function, strings, &operands, &known.shape);
                Ok(vec![result.map_err(|error| at(error.into()))?])
            }
            NodeKind::If { then, otherwise } => {
                let chosen = if truth(operands[0]) { then } else { otherwise };
                let captures = operands[1..].iter().map(|tensor| (*tensor).clone()).collect();
                chosen.eval_in(captures, &self.symbols, self.host)
            }
            NodeKind::After => Ok(vec![operands[0].clone()]),
            NodeKind::Call { body, .. } => {
                let captures = operands.into_iter().cloned().collect();
                body.eval_in(captures, &self.symbols, self.host)
            }
            NodeKind::Loop { body, carried } => {
                self.expect_sequences(&node.results[*carried..])
                    .map_err(|error| at(error.into()))?;
                self.run_loop(body, *carried, &operands).map_err(|error| match error {
                    GraphError::Node { at: None, error } => at(error),
                    error => error,
                })
            }
        }
    }

    fn bind(&self, compute: &Compute) -> Result<Compute, GraphError> {
        let bound = compute.substitute(&|name| self.symbols.get(name).copied().map(Dim::Known));
        let unknown = bound.dims.iter().find(|dim| dim.known().is_none());
        match unknown {
            Some(dim) => Err(GraphError::Size(dim.to_string())),
            None => Ok(bound),
        }
    }

    /// Fails if the sequences of a loop do not fit in memory, as far as their lengths are known before.
    fn expect_sequences(&self, sequences: &[ValueId]) -> Result<(), TensorError> {
        let types = sequences.iter().map(|value| self.graph.ty(*value).eval(&self.lookup()));
        expect_memory(&[], &types.flatten().collect::<Vec<_>>())
    }

    fn run_loop(
        &self,
        body: &Graph,
        carried: usize,
        operands: &[&Tensor],
    ) -> Result<Vec<Tensor>, GraphError> {
        let trips = element(operands[0], 0).unwrap_or(0).min(ENDLESS);
        let own = |tensors: &[&Tensor]| -> Vec<Tensor> {
            tensors.iter().map(|tensor| (*tensor).clone()).collect()
        };
        let mut state = own(&operands[2..2 + carried]);
        let captures = own(&operands[2 + carried..]);
        let mut sequences: Vec<Vec<Tensor>> = vec![vec![]; body.outputs.len() - 1 - carried];
        let mut memory = SequenceMemory::default();
        let mut go_on = truth(operands[1]);
        let mut iteration = 0;
        while go_on && iteration < trips {
            let mut inputs = vec![Tensor::from_values([], &[iteration])?];
            inputs.append(&mut state);
            inputs.extend(captures.iter().cloned());
            let mut outputs = body.eval_in(inputs, &self.symbols, self.host)?.into_iter();
            go_on = outputs.next().is_some_and(|tensor| truth(&tensor));
            state = outputs.by_ref().take(carried).collect();
            for (sequence, tensor) in sequences.iter_mut().zip(outputs) {
                memory.add(&tensor, sequence.len())?;
                sequence.push(tensor);
            }
            iteration += 1;
        }
        let elements = body.outputs[1 + carried..].iter().map(|(_, value)| body.ty(*value));
        for (sequence, ty) in sequences.into_iter().zip(elements) {
            // Without an iteration, extents that only the body knows are 0, as in compiled code.
            let extents = ty.dims.iter().map(|dim| dim.eval(&self.lookup()).unwrap_or(0));
            let ty = TensorType::new(ty.dtype, extents.collect::<Vec<_>>());
            state.push(stack(sequence, ty)?);
        }
        Ok(state)
    }
}

/// The memory of the sequences of a loop.
#[derive(Default)]
struct SequenceMemory {
    bytes: usize,
    /// The bytes up to which there was memory.
    available: usize,
}

impl SequenceMemory {
    /// Fails if there is no memory to stack the sequences with one more element.
    fn add(&mut self, element: &Tensor, count: usize) -> Result<(), TensorError> {
        self.bytes += element.bytes().len().max(irc_tensor::ALIGNMENT) + size_of::<Tensor>();
        if self.bytes <= self.available {
            return Ok(());
        }
        self.available = 2 * self.bytes;
        if memory::is_available(self.available) {
            return Ok(());
        }
        let mut shape = vec![count as i64 + 1];
        shape.extend(element.shape());
        let ty = TensorType::new(element.dtype(), shape);
        Err(TensorError::OutOfMemory { ty, bytes: self.available })
    }
}

/// Stacks tensors of one type along a new first dimension; `element` is that type if there are none.
fn stack(tensors: Vec<Tensor>, element: TensorType) -> Result<Tensor, GraphError> {
    let element = tensors.first().map_or(element, |first| first.ty().clone());
    let mut shape = vec![tensors.len() as i64];
    shape.extend(&element.shape);
    let mut bytes = vec![];
    for tensor in &tensors {
        if *tensor.ty() != element {
            let (expected, found) = (element.to_string(), tensor.ty().to_string());
            let message = format!("expected elements of one type, found {expected} and {found}");
            let error = EvalError::Infer(InferError { op: "loop", message });
            return Err(GraphError::Node { at: None, error });
        }
        bytes.extend_from_slice(tensor.bytes());
    }
    Ok(Tensor::from_bytes(TensorType::new(element.dtype, shape), &bytes)?)
}

fn element(tensor: &Tensor, index: usize) -> Option<i64> {
    let values = tensor.to_i128()?;
    i64::try_from(*values.get(index)?).ok()
}

fn truth(tensor: &Tensor) -> bool {
    debug_assert_eq!(tensor.dtype(), DType::Bool);
    tensor.bytes().first().is_some_and(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Binary, Builder, Comparison, Type};

    fn run(graph: &Graph, inputs: &[(&str, Tensor)]) -> Result<Vec<Tensor>, GraphError> {
        let inputs = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone()));
        graph.eval(&inputs.collect())
    }

    #[test]
    fn one_graph_serves_every_size() {
        let mut b = Builder::new();
        let x = b.input("x", Type::new(DType::F32, [Dim::symbol("N")]));
        let y = b.input("y", Type::new(DType::F32, [Dim::symbol("N")]));
        let sum = b.binary(Binary::Add, x, y).expect("one shape");
        b.output("sum", sum);
        let graph = b.finish();
        for size in [1, 3] {
            let ones =
                Tensor::from_f64(TensorType::new(DType::F32, [size]), &vec![1.0; size as usize]);
            let ones = ones.expect("a tensor");
            let result = run(&graph, &[("x", ones.clone()), ("y", ones)]).expect("equal sizes");
            assert_eq!(result[0].to_f64(), vec![2.0; size as usize]);
        }
        let of = |size| Tensor::zeros(TensorType::new(DType::F32, [size])).expect("a tensor");
        let error = run(&graph, &[("x", of(2)), ("y", of(3))]).expect_err("sizes differ");
        assert_eq!(error.to_string(), "input 'y': expected f32[N], found f32[3]");
    }

    #[test]
    fn a_loop_carries_and_collects() {
        let mut body = Builder::nested("l");
        let scalar = || Type::new(DType::I64, []);
        let (index, total) = (body.input("i", scalar()), body.input("total", scalar()));
        let sum = body.binary(Binary::Add, total, index).expect("numbers");
        let limit = body.scalar(5.0, DType::I64).expect("a scalar");
        let go_on = body.compare(Comparison::Lt, sum, limit).expect("numbers");
        body.output("go on", go_on);
        body.output("total", sum);
        body.output("trace", sum);
        let mut b = Builder::new();
        let trips = b.input("trips", scalar());
        let start = b.scalar(1.0, DType::Bool).expect("a scalar");
        let zero = b.scalar(0.0, DType::I64).expect("a scalar");
        let kind = NodeKind::Loop { body: Box::new(body.finish()), carried: 1 };
        let count = Dim::symbol("count");
        let results = b
            .region(kind, &[trips, start, zero], [scalar(), Type::new(DType::I64, [count])])
            .expect("results fit in memory");
        b.output("total", results[0]);
        b.output("trace", results[1]);
        let graph = b.finish();
        let run = |trips: i64| {
            let trips = Tensor::from_values([], &[trips]).expect("a tensor");
            run(&graph, &[("trips", trips)])
                .expect("it ends")
                .iter()
                .map(Tensor::to_f64)
                .collect::<Vec<_>>()
        };
        assert_eq!(run(3), [vec![3.0], vec![0.0, 1.0, 3.0]]);
        assert_eq!(run(100), [vec![6.0], vec![0.0, 1.0, 3.0, 6.0]]);
        assert_eq!(run(0), [vec![0.0], vec![]]);
    }
}
