//! The nodes of a graph, one after another.

use crate::memory::Memory;
use crate::{ArkModel, NamedBuffer, Role, functions, loops, moves};
use irc_ark_format::model::{Arg, DataType, OpKind, Tensor, validate};
use irc_diag::Diagnostic;
use irc_tl::{
    Binary, Compute, Constant, DType, Graph, Node, NodeKind, Op, Reduction, Rounding, TensorType,
    Unary, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};

/// Most dimensions of a tensor of ARK.
const MAX_DIMS: usize = 4;

/// Calls are written out, so that a small graph can stand for one of any size: more nodes are an error.
const MAX_NODES: usize = 1 << 20;

/// Writes a graph.
pub fn write(graph: &Graph) -> Result<ArkModel, Vec<Diagnostic>> {
    let mut graph = graph.clone();
    graph.prune();
    let mut writer = Writer::default();
    let open: BTreeSet<&str> = graph.symbols.iter().map(|symbol| &*symbol.name).collect();
    if !open.is_empty() {
        let names = open.into_iter().collect::<Vec<_>>().join(", ");
        let message =
            format!("shapes of ARK are numbers, and the graph depends on the sizes {names}");
        let help = "give its inputs shapes of known extents";
        return Err(vec![Diagnostic::error("ark-emit", message).help(help)]);
    }
    let mut scope = Scope::default();
    for (name, value) in &graph.inputs {
        scope.held.insert(*value, Storage::Input(name.clone()));
    }
    writer.nodes(&graph, &mut scope);
    if writer.found.is_empty() {
        writer.outputs(&graph, &mut scope);
    }
    if !writer.found.is_empty() {
        return Err(writer.found);
    }
    let Writer { memory, buffers, .. } = writer;
    let model = memory.finish();
    // What is wrong here is a fault of this crate, and better said than run.
    let found = validate(&model);
    let wrong: Vec<Diagnostic> = found.into_iter().filter(Diagnostic::is_error).collect();
    if wrong.is_empty() { Ok(ArkModel { model, buffers }) } else { Err(wrong) }
}

/// Where a value is stored.
#[derive(Clone)]
enum Storage {
    /// An input of the graph, which has no buffer before it is read.
    Input(String),
    /// A constant, which has no buffer before it is read.
    Constant(Constant),
    /// One number everywhere.
    Splat(f64),
    /// A box of a buffer. It has the shape of the value without what [`ark_shape`] leaves out.
    Box(Tensor),
    /// What a node would have made that cannot be written.
    Unknown,
}

/// The values of a graph.
#[derive(Default)]
struct Scope {
    held: BTreeMap<ValueId, Storage>,
}

#[derive(Default)]
struct Writer {
    memory: Memory,
    buffers: Vec<NamedBuffer>,
    found: Vec<Diagnostic>,
    constants: usize,
    count: usize,
}

/// The shape of a tensor of ARK that stands for one: of rank 1 at least, and of 4 at most, where leading
/// dimensions of one element go.
fn ark_shape(shape: &[i64]) -> Result<Vec<i64>, String> {
    if let Some(extent) = shape.iter().find(|extent| **extent < 1) {
        return Err(format!("tensors of ARK have elements, found an extent of {extent}"));
    }
    if shape.is_empty() {
        return Ok(vec![1]);
    }
    let units = shape.iter().take_while(|extent| **extent == 1).count();
    let dropped = shape.len().saturating_sub(MAX_DIMS).min(units);
    match shape.len() - dropped {
        0..=MAX_DIMS => Ok(shape[dropped..].to_vec()),
        rank => Err(format!("tensors of ARK have at most {MAX_DIMS} dimensions, found {rank}")),
    }
}

/// The shape of a value whose dimensions an op names by number.
fn exact_shape(shape: &[i64]) -> Result<Vec<i64>, String> {
    match shape.len() {
        0..=MAX_DIMS => ark_shape(shape),
        rank => Err(format!("tensors of ARK have at most {MAX_DIMS} dimensions, found {rank}")),
    }
}

/// The element type that stands for one. Integers of 64 bits are of 32 in ARK: where they are only moved,
/// converted to floats or used as indices, which is all that is written, that changes nothing.
fn data_type(dtype: DType) -> Result<DataType, String> {
    Ok(match dtype {
        DType::F32 => DataType::Fp32,
        DType::F16 => DataType::Fp16,
        DType::BF16 => DataType::Bf16,
        DType::I32 | DType::I64 => DataType::Int32,
        DType::U32 => DataType::Uint32,
        DType::I8 => DataType::Int8,
        DType::U8 => DataType::Uint8,
        other => return Err(format!("ARK has no elements of {other}")),
    })
}

impl Writer {
    /// Writes the nodes of a graph. One that cannot be written leaves a buffer where ARK has such a one,
    /// so that those behind it can be looked at.
    fn nodes(&mut self, graph: &Graph, scope: &mut Scope) {
        for node in &graph.nodes {
            self.count += 1;
            if self.count > MAX_NODES {
                // Said once, however many calls are open.
                if self.count == MAX_NODES + 1 {
                    let message = format!("the graph comes to over {MAX_NODES} nodes");
                    self.found.push(Diagnostic::error("ark-emit", message));
                }
                return;
            }
            let is_unknown =
                |value: &ValueId| matches!(scope.held.get(value), Some(Storage::Unknown) | None);
            if node.operands.iter().any(is_unknown) {
                scope.held.extend(node.results.iter().map(|value| (*value, Storage::Unknown)));
                continue;
            }
            let origin = node.origin.as_deref().unwrap_or_default();
            origin.clone_into(&mut self.memory.origin);
            if let Err(message) = self.node(graph, node, scope) {
                self.found.push(diagnostic(node, &message));
                for value in &node.results {
                    let ty = known(graph, *value);
                    let like = ty.and_then(|ty| Ok((data_type(ty.dtype)?, ark_shape(&ty.shape)?)));
                    let held = like.map_or(Storage::Unknown, |(dtype, shape)| {
                        Storage::Box(self.memory.buffer(dtype, &shape))
                    });
                    scope.held.insert(*value, held);
                }
            }
        }
    }

    fn node(&mut self, graph: &Graph, node: &Node, scope: &mut Scope) -> Result<(), String> {
        let results: &[ValueId] = &node.results;
        match (&node.kind, results) {
            (NodeKind::Constant(constant), [result]) => {
                scope.held.insert(*result, Storage::Constant(constant.clone()));
            }
            (NodeKind::After, [result]) => {
                let held = scope.held[&node.operands[0]].clone();
                scope.held.insert(*result, held);
            }
            (NodeKind::Op(op), [result]) => {
                let ty = known(graph, *result)?;
                let held = self.op(graph, op, &node.operands, &ty, scope)?;
                scope.held.insert(*result, held);
            }
            (NodeKind::Call { body, .. }, _) => {
                let mut inner = Scope::default();
                for ((_, parameter), operand) in body.inputs.iter().zip(&node.operands) {
                    // Read here, so that all calls read one buffer.
                    if matches!(scope.held[operand], Storage::Input(_) | Storage::Constant(_)) {
                        self.tensor(graph, *operand, scope)?;
                    }
                    inner.held.insert(*parameter, scope.held[operand].clone());
                }
                self.nodes(body, &mut inner);
                for ((_, value), result) in body.outputs.iter().zip(&node.results) {
                    let held = inner.held.get(value).cloned().unwrap_or(Storage::Unknown);
                    scope.held.insert(*result, held);
                }
            }
            (NodeKind::If { .. } | NodeKind::Loop { .. }, _) => {
                return Err("ARK has no control flow".into());
            }
            (NodeKind::Algorithm(algorithm), _) => {
                return Err(format!("ARK has no op for {}", algorithm.name()));
            }
            _ => return Err("it does not have one result".into()),
        }
        Ok(())
    }

    /// The box of a value. Inputs and constants get a buffer when they are read first.
    fn tensor(
        &mut self,
        graph: &Graph,
        value: ValueId,
        scope: &mut Scope,
    ) -> Result<Tensor, String> {
        let ty = known(graph, value)?;
        let held = scope.held.get(&value).cloned();
        let tensor = match held.ok_or("an operand is not computed before it")? {
            Storage::Box(tensor) => return Ok(tensor),
            Storage::Unknown => return Err("an operand cannot be written".into()),
            // Not remembered: numbers differ in shape by their use.
            Storage::Splat(number) => {
                let shape = ark_shape(&ty.shape)?;
                return self.number(number, ty.dtype, &shape);
            }
            Storage::Input(name) => self.outside(name, Role::Input, &ty, None)?,
            Storage::Constant(constant) => match splat(&constant) {
                Some(number) => {
                    scope.held.insert(value, Storage::Splat(number));
                    return self.tensor(graph, value, scope);
                }
                None => {
                    let constant = narrowed(&constant)?;
                    let name = format!("constant_{}", self.constants);
                    self.constants += 1;
                    self.outside(name, Role::Constant, &ty, Some(constant))?
                }
            },
        };
        scope.held.insert(value, Storage::Box(tensor.clone()));
        Ok(tensor)
    }

    /// A buffer that is seen from outside.
    fn outside(
        &mut self,
        name: String,
        role: Role,
        ty: &TensorType,
        elements: Option<Constant>,
    ) -> Result<Tensor, String> {
        let tensor = self.memory.buffer(data_type(ty.dtype)?, &ark_shape(&ty.shape)?);
        self.name(name, role, ty, &tensor, elements);
        Ok(tensor)
    }

    fn name(
        &mut self,
        name: String,
        role: Role,
        ty: &TensorType,
        tensor: &Tensor,
        elements: Option<Constant>,
    ) {
        let (dtype, shape) = (ty.dtype, ty.shape.clone());
        let (id, data_type) = (tensor.buffer.id, tensor.dtype);
        self.buffers.push(NamedBuffer { id, name, role, data_type, dtype, shape, elements });
    }

    /// A buffer of one number.
    fn number(&mut self, number: f64, dtype: DType, shape: &[i64]) -> Result<Tensor, String> {
        let number = factor(number, dtype)?;
        Ok(self.memory.fill(number, data_type(dtype)?, shape))
    }

    /// The number that a value is everywhere.
    fn splat(&self, value: ValueId, scope: &Scope) -> Option<f64> {
        match scope.held.get(&value)? {
            Storage::Splat(number) => Some(*number),
            Storage::Constant(constant) => splat(constant),
            Storage::Input(_) | Storage::Box(_) | Storage::Unknown => None,
        }
    }

    /// Gives every output a buffer that an op writes and none reads, as results of ARK models have.
    fn outputs(&mut self, graph: &Graph, scope: &mut Scope) {
        self.memory.origin.clear();
        let mut given = BTreeSet::new();
        for (name, value) in &graph.outputs {
            let output = known(graph, *value).and_then(|ty| {
                if ty.dtype == DType::I64 {
                    return Err("ARK has no elements of i64".to_owned());
                }
                let shape = ark_shape(&ty.shape)?;
                let mut tensor = self.tensor(graph, *value, scope)?;
                if !self.memory.is_last(&tensor) || !given.insert(tensor.buffer.id) {
                    tensor = self.memory.copy(&tensor, &shape);
                    given.insert(tensor.buffer.id);
                }
                Ok((ty, tensor))
            });
            match output {
                Ok((ty, tensor)) => self.name(name.clone(), Role::Output, &ty, &tensor, None),
                Err(message) => {
                    let message = format!("output '{name}': {message}");
                    self.found.push(Diagnostic::error("ark-emit", message));
                }
            }
        }
    }

    fn op(
        &mut self,
        graph: &Graph,
        op: &Op,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &mut Scope,
    ) -> Result<Storage, String> {
        if let Op::Fill { value, dtype, .. } = op {
            return Ok(Storage::Splat(rounded(f64::from_bits(*value), *dtype)));
        }
        if let Some(number) = self.folded(graph, op, operands, ty, scope)? {
            return Ok(Storage::Splat(number));
        }
        let dtype = data_type(ty.dtype)?;
        let is_move = matches!(
            op,
            Op::Cast { .. }
                | Op::Broadcast { .. }
                | Op::Transpose { .. }
                | Op::Reshape { .. }
                | Op::Slice { .. }
                | Op::Update { .. }
                | Op::Gather
                | Op::Compute(_)
        );
        if !is_move && operands.iter().any(|value| graph.ty(*value).dtype == DType::I64) {
            return Err("ARK does not compute in i64".into());
        }
        if let Op::Binary(function) = op {
            return self.binary(graph, *function, operands, ty, scope).map(Storage::Box);
        }
        let mut tensors = vec![];
        for value in operands {
            tensors.push(self.tensor(graph, *value, scope)?);
        }
        let types: Result<Vec<_>, _> = operands.iter().map(|value| known(graph, *value)).collect();
        let types = types?;
        let shape = ark_shape(&ty.shape)?;
        let memory = &mut self.memory;
        let result = match op {
            Op::Unary(function) => unary(memory, *function, &tensors[0])?,
            Op::Cast { to, rounding } => cast(memory, &tensors[0], types[0].dtype, *to, *rounding)?,
            Op::Broadcast { .. } => memory.copy(&tensors[0], &shape),
            Op::Reduce { kind, axes, .. } => {
                exact_shape(&types[0].shape)?;
                reduce(memory, *kind, axes, &tensors[0], &shape)?
            }
            Op::Matmul { transpose_lhs, transpose_rhs } => {
                for ty in &types {
                    exact_shape(&ty.shape)?;
                }
                if !dtype.is_float() {
                    return Err(format!("ARK multiplies matrices of floats, found {}", ty.dtype));
                }
                let args = [
                    ("TransposeInput", Arg::Bool(*transpose_lhs)),
                    ("TransposeOther", Arg::Bool(*transpose_rhs)),
                ];
                let operands = [&tensors[0], &tensors[1]];
                memory.op(OpKind::Matmul, &operands, (dtype, &shape), &args)
            }
            Op::Transpose { permutation } => {
                exact_shape(&ty.shape)?;
                moves::transpose(memory, &tensors[0], permutation)
            }
            Op::Reshape { .. } => memory.reshape(&tensors[0], &shape),
            Op::Slice { offsets, sizes } => {
                exact_shape(&types[0].shape)?;
                match sizes.is_empty() {
                    true => tensors[0].clone(),
                    false => memory.slice(&tensors[0], offsets, sizes),
                }
            }
            Op::Update { offsets } => {
                exact_shape(&ty.shape)?;
                moves::update(memory, &tensors[0], &tensors[1], offsets)
            }
            Op::Gather => moves::rows(memory, &tensors[0], &tensors[1], &shape)?,
            Op::Rope => {
                let operands = [&tensors[0], &tensors[1]];
                memory.op(OpKind::Rope, &operands, (dtype, &shape), &[])
            }
            Op::Compute(compute) => {
                for ty in types.iter().chain([ty]) {
                    exact_shape(&ty.shape)?;
                }
                moved(memory, compute, &tensors, (dtype, &shape))?
            }
            other => return Err(format!("ARK has no op for {}", other.name())),
        };
        Ok(Storage::Box(memory.reshape(&result, &shape)))
    }

    /// The number that an op gives everywhere, whose operands are numbers everywhere.
    fn folded(
        &self,
        graph: &Graph,
        op: &Op,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &Scope,
    ) -> Result<Option<f64>, String> {
        let is_same = matches!(op, Op::Reshape { .. } | Op::Slice { .. } | Op::Transpose { .. });
        if !(op.is_elementwise() || is_same) || operands.is_empty() {
            return Ok(None);
        }
        let numbers = operands.iter().map(|value| self.splat(*value, scope));
        let Some(numbers) = numbers.collect::<Option<Vec<f64>>>() else { return Ok(None) };
        if is_same || matches!(op, Op::Broadcast { .. }) {
            return Ok(Some(numbers[0]));
        }
        let mut tensors = vec![];
        for (value, number) in operands.iter().zip(numbers) {
            let one = TensorType::new(graph.ty(*value).dtype, []);
            tensors.push(irc_tl::Tensor::from_f64(one, &[number]).map_err(|e| e.to_string())?);
        }
        let tensors: Vec<_> = tensors.iter().collect();
        let result = op.eval(&tensors).map_err(|error| error.to_string())?;
        // Beyond 53 bits a number is none.
        Ok((!matches!(ty.dtype, DType::I64 | DType::U64)).then(|| result.get_f64(0)))
    }

    fn binary(
        &mut self,
        graph: &Graph,
        function: Binary,
        operands: &[ValueId],
        ty: &TensorType,
        scope: &mut Scope,
    ) -> Result<Tensor, String> {
        let shape = ark_shape(&ty.shape)?;
        let dtype = data_type(ty.dtype)?;
        let [left, right] = [operands[0], operands[1]];
        let numbers = [self.splat(left, scope), self.splat(right, scope)];
        if let Some((number, other, is_left)) = match numbers {
            [None, Some(number)] => Some((number, left, false)),
            [Some(number), None] => Some((number, right, true)),
            _ => None,
        } && let Some(steps) = with_number(function, number, is_left, ty.dtype)
        {
            let mut x = self.tensor(graph, other, scope)?;
            for step in steps {
                x = step.write(&mut self.memory, &x);
            }
            return Ok(if x.shape == shape { x } else { self.memory.copy(&x, &shape) });
        }
        let kind = match function {
            Binary::Add => OpKind::Add,
            Binary::Sub => OpKind::Sub,
            Binary::Mul => OpKind::Mul,
            Binary::Div => OpKind::Div,
            other => return Err(format!("ARK has no op for {}", other.name())),
        };
        let mut tensors = vec![];
        for (value, number) in [left, right].into_iter().zip(numbers) {
            tensors.push(match number {
                // One element is enough, as it broadcasts.
                Some(number) => self.number(number, ty.dtype, &[1])?,
                None => self.tensor(graph, value, scope)?,
            });
        }
        Ok(self.memory.op(kind, &[&tensors[0], &tensors[1]], (dtype, &shape), &[]))
    }
}

/// An op of one operand.
#[derive(Clone, Copy)]
enum Step {
    Add(f32),
    Mul(f32),
    Square,
    Cube,
    Unary(OpKind),
}

impl Step {
    fn write(self, memory: &mut Memory, x: &Tensor) -> Tensor {
        match self {
            Self::Add(number) => memory.scalar(OpKind::ScalarAdd, x, number),
            Self::Mul(number) => memory.scalar(OpKind::ScalarMul, x, number),
            Self::Square => memory.binary(OpKind::Mul, x, x),
            Self::Cube => {
                let square = memory.binary(OpKind::Mul, x, x);
                memory.binary(OpKind::Mul, &square, x)
            }
            Self::Unary(kind) => memory.unary(kind, x),
        }
    }
}

/// Ops of one operand that are a function of two of which one (the left, or else the right) is a number
/// everywhere; `None` where there are none that give the same numbers.
fn with_number(function: Binary, number: f64, is_left: bool, dtype: DType) -> Option<Vec<Step>> {
    let exact = factor(number, dtype).ok()?;
    Some(match (function, is_left) {
        (Binary::Add, _) => vec![Step::Add(exact)],
        (Binary::Mul, _) => vec![Step::Mul(exact)],
        (Binary::Sub, false) => vec![Step::Add(-exact)],
        (Binary::Sub, true) => vec![Step::Mul(-1.0), Step::Add(exact)],
        // Only by a power of two is it the same as to multiply by the reciprocal.
        (Binary::Div, false) if dtype.is_float() => {
            let reciprocal = 1.0 / exact;
            let is_power = exact.to_bits() & 0x007f_ffff == 0 && exact.is_normal();
            let is_held = reciprocal.is_normal()
                && dtype.round_float(reciprocal.into()) == f64::from(reciprocal);
            (is_power && is_held).then(|| vec![Step::Mul(reciprocal)])?
        }
        (Binary::Max, _) if number == 0.0 => vec![Step::Unary(OpKind::Relu)],
        (Binary::Min, _) if number == 0.0 => {
            vec![Step::Mul(-1.0), Step::Unary(OpKind::Relu), Step::Mul(-1.0)]
        }
        (Binary::Pow, false) if dtype.is_float() => match number {
            1.0 => vec![],
            2.0 => vec![Step::Square],
            3.0 => vec![Step::Cube],
            0.5 => vec![Step::Unary(OpKind::Sqrt)],
            -0.5 => vec![Step::Unary(OpKind::Rsqrt)],
            _ => return None,
        },
        _ => return None,
    })
}

/// A number as a factor of ARK: in single precision, and finite.
fn factor(number: f64, dtype: DType) -> Result<f32, String> {
    let rounded = rounded(number, dtype);
    let single = rounded as f32;
    if single.is_finite() && f64::from(single) == rounded {
        return Ok(single);
    }
    Err(format!("ARK files do not hold the number {rounded}"))
}

fn rounded(number: f64, dtype: DType) -> f64 {
    if dtype.is_float() { dtype.round_float(number) } else { number }
}

/// The number that every element of a constant is.
fn splat(constant: &Constant) -> Option<f64> {
    let width = constant.ty.dtype.size();
    let first = constant.bytes.get(..width)?;
    if !constant.bytes.chunks_exact(width).all(|element| element == first) {
        return None;
    }
    let ty = TensorType::new(constant.ty.dtype, []);
    let one = Constant { ty, bytes: constant.bytes.slice(..width) }.tensor().ok()?;
    let number = one.get_f64(0);
    let mut back = one.clone();
    back.set_f64(0, number);
    (back.bytes() == one.bytes()).then_some(number)
}

/// A constant in the element type that ARK has for it.
fn narrowed(constant: &Constant) -> Result<Constant, String> {
    if constant.ty.dtype != DType::I64 {
        return Ok(constant.clone());
    }
    let wide = constant.tensor().map_err(|error| error.to_string())?;
    let values = wide.to_i128().unwrap_or_default();
    let values: Result<Vec<i32>, _> = values.into_iter().map(i32::try_from).collect();
    let values = values.map_err(|_| "a constant does not fit into 32 bits".to_owned())?;
    let narrow = irc_tl::Tensor::from_values(constant.ty.shape.clone(), &values);
    Ok(Constant::of(&narrow.map_err(|error| error.to_string())?))
}

fn known(graph: &Graph, value: ValueId) -> Result<TensorType, String> {
    let ty = graph.ty(value);
    ty.known().ok_or_else(|| format!("shapes of ARK are numbers, found {ty}"))
}

/// A diagnostic about a node, whose origin is a path in the source, or `path: name`.
fn diagnostic(node: &Node, message: &str) -> Diagnostic {
    let origin = node.origin.as_deref().unwrap_or_default();
    let (path, name) = origin.split_once(": ").unwrap_or((origin, ""));
    let name = if name.is_empty() { name_of(node) } else { name.to_owned() };
    let diagnostic = Diagnostic::error("ark-emit", format!("{name}: {message}"));
    if path.is_empty() { diagnostic } else { diagnostic.path(path) }
}

fn name_of(node: &Node) -> String {
    match &node.kind {
        NodeKind::Constant(_) => "a constant".into(),
        NodeKind::Op(op) => format!("tl.{}", op.name()),
        NodeKind::Algorithm(algorithm) => format!("tl.{}", algorithm.name()),
        NodeKind::If { .. } => "tl.if".into(),
        NodeKind::After => "tl.after".into(),
        NodeKind::Call { name, .. } => format!("tl.call of {name}"),
        NodeKind::Loop { .. } => "tl.loop".into(),
    }
}

fn unary(memory: &mut Memory, function: Unary, x: &Tensor) -> Result<Tensor, String> {
    let kind = match function {
        Unary::Exp => OpKind::Exp,
        Unary::Sqrt => OpKind::Sqrt,
        Unary::Rsqrt => OpKind::Rsqrt,
        Unary::Relu => OpKind::Relu,
        Unary::Gelu => OpKind::Gelu,
        Unary::Sigmoid => OpKind::Sigmoid,
        Unary::Neg => return Ok(functions::neg(memory, x)),
        Unary::Abs => return Ok(functions::abs(memory, x)),
        Unary::Tanh => return Ok(functions::in_single(memory, x, functions::tanh)),
        Unary::Erf => return Ok(functions::in_single(memory, x, functions::erf)),
        other => return Err(format!("ARK has no op for {}", other.name())),
    };
    Ok(memory.unary(kind, x))
}

/// ARK converts 16-bit floats to 32-bit integers with round-to-nearest, and all else towards zero.
fn cast(
    memory: &mut Memory,
    x: &Tensor,
    from: DType,
    to: DType,
    rounding: Rounding,
) -> Result<Tensor, String> {
    if from == DType::I64 && !(to.is_float() || matches!(to, DType::I32 | DType::I64))
        || to == DType::I64 && !matches!(from, DType::I64 | DType::I32)
    {
        return Err(format!("ARK does not convert {from} to {to}"));
    }
    let dtype = data_type(to)?;
    if x.dtype == dtype {
        return Ok(x.clone());
    }
    if x.dtype.is_float() && !dtype.is_float() {
        let is_nearest = x.dtype.bytes() == 2 && dtype.bytes() == 4;
        let expected = if is_nearest { Rounding::NearestEven } else { Rounding::TowardZero };
        if rounding != expected {
            return Err(format!("ARK rounds otherwise where it converts {from} to {to}"));
        }
    }
    Ok(memory.op(OpKind::Cast, &[x], (dtype, &x.shape), &[]))
}

/// A reduction over some axes, one after another; neighbours at once, where they can be one.
fn reduce(
    memory: &mut Memory,
    kind: Reduction,
    axes: &[usize],
    x: &Tensor,
    shape: &[i64],
) -> Result<Tensor, String> {
    let (op, is_negated) = match kind {
        Reduction::Sum => (OpKind::ReduceSum, false),
        Reduction::Mean if x.dtype.is_float() => (OpKind::ReduceMean, false),
        Reduction::Max => (OpKind::ReduceMax, false),
        Reduction::Min if x.dtype.is_float() => (OpKind::ReduceMax, true),
        other => return Err(format!("ARK has no op for {} of {}", other.name(), x.dtype)),
    };
    let mut result = if is_negated { functions::neg(memory, x) } else { x.clone() };
    let mut axes = axes.to_vec();
    if axes.len() > 1 && axes.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
        let last = axes[axes.len() - 1];
        let mut merged = result.shape[..axes[0]].to_vec();
        merged.push(result.shape[axes[0]..=last].iter().product());
        merged.extend(&result.shape[last + 1..]);
        result = memory.reshape(&result, &merged);
        axes.truncate(1);
    }
    for axis in axes {
        let mut kept = result.shape.clone();
        kept[axis] = 1;
        let args = [("Axis", Arg::Int(axis as i32)), ("KeepDim", Arg::Bool(true))];
        result = memory.op(op, &[&result], (result.dtype, &kept), &args);
    }
    let result = memory.reshape(&result, shape);
    Ok(if is_negated { functions::neg(memory, &result) } else { result })
}

/// Loops around an expression that move elements.
fn moved(
    memory: &mut Memory,
    compute: &Compute,
    operands: &[Tensor],
    (dtype, shape): (DataType, &[i64]),
) -> Result<Tensor, String> {
    if compute.reduction.is_some() {
        return Err("ARK has no op for a reduction of an expression".into());
    }
    loops::write(memory, &compute.body, operands, dtype, shape)
}
