//! The ops of one function.
use super::{Binding, Callee, Reader, entry, port_attributes, port_name, type_of};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, BlockRef, OperationLike, OperationRef, PassError, Value, ValueLike, origin, read,
};
use irc_tl::{
    Check, Compute, Constant, DType, Dim, Graph, Node, NodeKind, Op, Relation, Scalar, Symbol,
    SymbolSource, ValueId,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value of the function in the graph.
#[derive(Clone, Copy)]
enum Bound {
    Value(ValueId),
    /// The constant of this number, which gets a node once an op needs it.
    Constant(usize),
}

/// A function being read.
pub(super) struct Body<'r, 'c, 'a> {
    reader: &'r mut Reader<'c, 'a>,
    function: OperationRef<'c, 'a>,
    graph: Graph,
    values: BTreeMap<usize, Bound>,
    /// The constants that ops of this function read directly and that have no node yet.
    due: BTreeSet<usize>,
    /// The constants that have a node.
    written: BTreeMap<usize, ValueId>,
}

impl<'r, 'c: 'a, 'a> Body<'r, 'c, 'a> {
    /// A function with its parameters: inputs, and constants according to `bindings`.
    pub fn new(
        reader: &'r mut Reader<'c, 'a>,
        function: OperationRef<'c, 'a>,
        block: BlockRef<'c, 'a>,
        bindings: &[Binding],
    ) -> Result<Self, PassError> {
        let mut body = Self {
            reader,
            function,
            graph: Graph::default(),
            values: BTreeMap::new(),
            due: BTreeSet::new(),
            written: BTreeMap::new(),
        };
        let attributes = port_attributes(&function, "arg_attrs");
        let mut names = BTreeSet::new();
        for index in 0..block.argument_count() {
            let argument = block.argument(index).map_err(|error| body.fault(error.to_string()))?;
            let key = read::identity(argument.into());
            if let Some(number) = bindings.get(index).copied().flatten() {
                body.values.insert(key, Bound::Constant(number));
                continue;
            }
            let ty = type_of(argument.r#type());
            let ty = ty.map_err(|message| body.fault(format!("argument {index}: {message}")))?;
            let name = port_name(&attributes, index, "arg");
            if !names.insert(name.clone()) {
                return Err(body.fault(format!("two arguments are named '{name}'")));
            }
            let value = body.value(ty);
            body.values.insert(key, Bound::Value(value));
            body.graph.inputs.push((name, value));
            if entry(&attributes, index, "tl.preserved").is_some() {
                body.graph.preserved.insert(value);
            }
            body.define_extents(value);
        }
        body.due = body.constants_read();
        Ok(body)
    }

    fn fault(&self, message: String) -> PassError {
        PassError::at(&self.function, message)
    }

    /// Returns the graph.
    pub fn read(mut self) -> Result<Graph, PassError> {
        for op in read::body_ops(self.function) {
            self.reader.count(op)?;
            match self.op(op) {
                Ok(()) => {}
                Err(message) => {
                    if let Some(message) = message {
                        self.reader.error(op, message);
                    }
                    // Later ops can still be checked.
                    self.stand_in(op);
                }
            }
        }
        match self.reader.failed {
            Some(failed) => Err(failed),
            None => Ok(self.graph),
        }
    }

    /// Defines the results of an op that cannot be read, so that their users have operands.
    fn stand_in(&mut self, op: OperationRef<'c, 'a>) {
        for result in op.results() {
            let key = read::identity(result.into());
            if !self.values.contains_key(&key) {
                let ty = type_of(ValueLike::r#type(&result));
                let value = self.value(ty.unwrap_or_else(|_| irc_tl::Type::new(DType::I64, [])));
                self.values.insert(key, Bound::Value(value));
                self.define_extents(value);
            }
        }
    }

    /// The constants that ops read other than by passing them on as constants.
    fn constants_read(&self) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        for op in read::body_ops(self.function) {
            let passed = self.passed(op);
            for (index, operand) in op.operands().enumerate() {
                let bound = self.values.get(&read::identity(operand));
                if let Some(Bound::Constant(number)) = bound
                    && !passed.get(index).is_some_and(Option::is_some)
                {
                    found.insert(*number);
                }
            }
        }
        found
    }

    /// Per operand of an op, the number of the constant if it is passed on as a constant.
    fn passed(&self, op: OperationRef<'c, 'a>) -> Vec<Binding> {
        let Some(callees) = Callees::of(op) else { return vec![] };
        let functions = callees.names.iter().map(|name| self.reader.functions.get(name));
        let attributes: Vec<_> =
            functions.flatten().map(|function| port_attributes(function, "arg_attrs")).collect();
        let is_constant = |parameter: usize| {
            attributes.iter().any(|all| entry(all, parameter, "tl.weight").is_some())
        };
        let binding = |(index, operand): (usize, Value<'c, 'a>)| {
            let parameter = index.checked_sub(callees.skipped)? + callees.first;
            let bound = self.values.get(&read::identity(operand));
            let Some(Bound::Constant(number)) = bound else { return None };
            is_constant(parameter).then_some(*number)
        };
        op.operands().enumerate().map(binding).collect()
    }

    fn value(&mut self, ty: irc_tl::Type) -> ValueId {
        self.graph.types.push(ty);
        ValueId(self.graph.types.len() - 1)
    }

    /// Defines the symbols that are extents of a value and not known yet.
    fn define_extents(&mut self, value: ValueId) {
        for (axis, dim) in self.graph.types[value.0].dims.clone().iter().enumerate() {
            let Some(name) = plain_symbol(dim) else { continue };
            if self.reader.define(&name) {
                let source = SymbolSource::Extent(value, axis);
                self.graph.symbols.push(Symbol { name, source });
            }
        }
    }

    /// Writes the constants that are due, up to and including a number.
    fn write_constants(&mut self, last: usize) {
        let rest = self.due.split_off(&(last.saturating_add(1)));
        for number in std::mem::replace(&mut self.due, rest) {
            let constant = self.reader.constants.get(number).clone();
            let value = self.value(constant.ty.clone().into());
            let kind = NodeKind::Constant(constant);
            self.graph.nodes.push(Node {
                kind,
                operands: vec![],
                results: vec![value],
                origin: None,
            });
            self.written.insert(number, value);
            self.reader.met.insert(number);
        }
    }

    fn operand(&mut self, operand: Value<'c, 'a>) -> Result<ValueId, String> {
        match self.values.get(&read::identity(operand)) {
            Some(Bound::Value(value)) => Ok(*value),
            Some(Bound::Constant(number)) => {
                let number = *number;
                self.write_constants(number);
                let missing = || "an operand is a constant that is not due".to_owned();
                self.written.get(&number).copied().ok_or_else(missing)
            }
            None => Err("an operand comes from outside the function".into()),
        }
    }

    /// Reads an op; an error without a message has already been reported at its op.
    fn op(&mut self, op: OperationRef<'c, 'a>) -> Result<(), Option<String>> {
        let name = read::op_name(&op);
        match name.as_str() {
            func::RETURN => self.outputs(op)?,
            tl::SIZE => self.size(op)?,
            tl::CHECK => self.graph.checks.push(check(op)?),
            tl::IF | tl::LOOP | tl::CALL => self.region(op, &name)?,
            tl::AFTER => self.node(op, NodeKind::After)?,
            tl::HOST => self.node(op, NodeKind::Host(tl::function_of(op)?))?,
            tl::CONSTANT => {
                let kind = NodeKind::Constant(constant(op)?);
                self.node(op, kind)?;
            }
            tl::GROUP | tl::LAUNCH => {
                let message = format!("a graph is read before 'fuse', which made '{name}'");
                return Err(Some(message));
            }
            _ if !name.starts_with("tl.") => {
                return Err(Some(format!("expected an op of tl, found '{name}'")));
            }
            _ => match tl::algorithm_of(op)? {
                Some(algorithm) => self.node(op, NodeKind::Algorithm(algorithm))?,
                None => {
                    let kind = NodeKind::Op(compute_op(op)?);
                    self.node(op, kind)?;
                }
            },
        }
        Ok(())
    }

    /// Adds a node for an op, with the op's operands.
    fn node(&mut self, op: OperationRef<'c, 'a>, kind: NodeKind) -> Result<(), String> {
        let operands: Result<Vec<_>, _> =
            op.operands().map(|operand| self.operand(operand)).collect();
        let operands = operands?;
        self.push(op, kind, operands)
    }

    fn push(
        &mut self,
        op: OperationRef<'c, 'a>,
        kind: NodeKind,
        operands: Vec<ValueId>,
    ) -> Result<(), String> {
        let mut results = vec![];
        for result in op.results() {
            let value = self.value(type_of(ValueLike::r#type(&result))?);
            self.values.insert(read::identity(result.into()), Bound::Value(value));
            results.push(value);
        }
        self.graph.nodes.push(Node {
            kind,
            operands,
            results,
            origin: origin(op.location()).map(Into::into),
        });
        Ok(())
    }

    fn outputs(&mut self, op: OperationRef<'c, 'a>) -> Result<(), String> {
        let attributes = port_attributes(&self.function, "res_attrs");
        for (index, operand) in op.operands().enumerate() {
            let value = self.operand(operand)?;
            self.graph.outputs.push((port_name(&attributes, index, "result"), value));
        }
        Ok(())
    }

    fn size(&mut self, op: OperationRef<'c, 'a>) -> Result<(), String> {
        let value = op.operand(0).map_err(|error| error.to_string())?;
        let value = self.operand(value)?;
        let index = read::integer(&op, "index").and_then(|index| usize::try_from(index).ok());
        let index = index.ok_or("index: expected an integer from 0")?;
        let name = read::string(&op, "symbol").ok_or("symbol: expected a string")?;
        let name: Arc<str> = name.into();
        if !self.reader.define(&name) {
            return Err(format!("the symbol '{name}' has a value already"));
        }
        self.graph.symbols.push(Symbol { name, source: SymbolSource::Element(value, index) });
        Ok(())
    }

    /// Adds a node with nested graphs.
    fn region(&mut self, op: OperationRef<'c, 'a>, name: &str) -> Result<(), Option<String>> {
        let passed = self.passed(op);
        // Constants are met in the order of their numbers: those of this function that precede a new
        // constant of the callee are written first.
        let new = passed.iter().flatten().filter(|number| !self.reader.met.contains(number)).min();
        if let Some(last) = new.and_then(|new| new.checked_sub(1)) {
            self.write_constants(last);
        }
        let mut operands = vec![];
        for (index, operand) in op.operands().enumerate() {
            if passed.get(index).copied().flatten().is_none() {
                operands.push(self.operand(operand)?);
            }
        }
        let (skipped, first) = Callees::of(op).map_or((0, 0), |all| (all.skipped, all.first));
        let mut bindings = vec![None; first];
        bindings.extend(passed.get(skipped..).unwrap_or_default());
        let kind = match name {
            tl::IF => {
                let [then, otherwise] = ["then", "otherwise"].map(|which| {
                    let callee = self.callee(op, which, &bindings)?;
                    self.inside(op, &callee)
                });
                NodeKind::If { then: Box::new(then?), otherwise: Box::new(otherwise?) }
            }
            tl::LOOP => {
                let callee = self.callee(op, "body", &bindings)?;
                let carried =
                    read::integer(&op, "carried").and_then(|count| usize::try_from(count).ok());
                let carried = carried.ok_or_else(|| "carried: expected a number".to_owned())?;
                NodeKind::Loop { body: Box::new(self.inside(op, &callee)?), carried }
            }
            _ => {
                let callee = self.callee(op, "callee", &bindings)?;
                let name = callee.0.as_str().into();
                let body = self.reader.called(op, callee).map_err(|failed| {
                    self.reader.failed = Some(failed);
                    None
                })?;
                NodeKind::Call { name, body }
            }
        };
        self.push(op, kind, operands)?;
        if let Some(node) = self.graph.nodes.last() {
            node.results.clone().into_iter().for_each(|value| self.define_extents(value));
        }
        Ok(())
    }

    fn inside(
        &mut self,
        op: OperationRef<'c, 'a>,
        (name, bindings, _): &Callee,
    ) -> Result<Graph, Option<String>> {
        self.reader.nested(op, name, bindings).map_err(|failed| {
            self.reader.failed = Some(failed);
            None
        })
    }

    /// The function that an attribute names, with the bindings of the call.
    fn callee(
        &self,
        op: OperationRef<'c, 'a>,
        attribute: &str,
        bindings: &[Binding],
    ) -> Result<Callee, String> {
        let name = read::symbol(&op, attribute)
            .ok_or_else(|| format!("{attribute}: expected the name of a function"))?;
        let function = self.reader.functions.get(&name);
        let function = function.ok_or_else(|| format!("no function is named @{name}"))?;
        let (types, _) = read::signature(function)
            .ok_or_else(|| format!("@{name} is no function of tensors"))?;
        if types.len() != bindings.len() {
            let (expected, found) = (types.len(), bindings.len());
            return Err(format!("@{name} takes {expected} values, found {found}"));
        }
        let mut known = BTreeSet::new();
        for ty in types {
            let dims = type_of(ty)?.dims;
            known.extend(
                dims.iter().filter_map(plain_symbol).filter(|name| self.reader.knows(name)),
            );
        }
        Ok((name, bindings.to_vec(), known.into_iter().collect()))
    }
}

/// The functions that an op names, and the mapping of its operands to their parameters.
struct Callees {
    names: Vec<String>,
    /// Number of operands that are not passed on: a condition, or the iterations and condition of a loop.
    skipped: usize,
    /// The parameter of the first operand that is passed on; a loop's body takes the iteration first.
    first: usize,
}

impl Callees {
    fn of(op: OperationRef<'_, '_>) -> Option<Self> {
        let (attributes, skipped, first): (&[&str], _, _) = match read::op_name(&op).as_str() {
            tl::IF => (&["then", "otherwise"], 1, 0),
            tl::LOOP => (&["body"], 2, 1),
            tl::CALL => (&["callee"], 0, 0),
            _ => return None,
        };
        let names = attributes.iter().filter_map(|name| read::symbol(&op, name)).collect();
        Some(Self { names, skipped, first })
    }
}

/// The symbol of a dimension that is exactly one symbol.
fn plain_symbol(dim: &Dim) -> Option<Arc<str>> {
    let names = dim.symbols();
    names.first().filter(|name| *dim == Dim::symbol(name)).cloned()
}

fn check(op: OperationRef<'_, '_>) -> Result<Check, String> {
    let text =
        |name: &str| read::string(&op, name).ok_or_else(|| format!("{name}: expected a string"));
    let dim = |name: &str| text(name)?.parse::<Dim>().map_err(|error| format!("{name}: {error}"));
    let relation = match text("relation")?.as_str() {
        "equal" => Relation::Equal,
        "equal_or_one" => Relation::EqualOrOne,
        "at_most" => Relation::AtMost,
        other => {
            let message = "relation: expected 'equal', 'equal_or_one' or 'at_most'";
            return Err(format!("{message}, found '{other}'"));
        }
    };
    Ok(Check { left: dim("left")?, right: dim("right")?, relation, message: text("message")? })
}

fn constant(op: OperationRef<'_, '_>) -> Result<Constant, String> {
    let result = op.result(0).map_err(|error| error.to_string())?;
    let ty = tl::tensor_type_of(result.r#type())?;
    let bytes = read::bytes(&op, "bytes").ok_or("bytes: expected array<i8: ...>")?;
    Ok(Constant::new(ty, bytes))
}

/// The op of a node. Ops that move values and have symbolic sizes are represented by loops around an
/// expression.
fn compute_op(op: OperationRef<'_, '_>) -> Result<Op, String> {
    let symbolic = || -> Result<Option<irc_tl::Type>, String> {
        let result = op.result(0).map_err(|error| error.to_string())?;
        Ok(Some(type_of(result.r#type())?).filter(|ty| ty.known().is_none()))
    };
    let operand = || {
        let operand = op.operand(0).map_err(|error| error.to_string())?;
        type_of(operand.r#type())
    };
    let compute = match read::op_name(&op).as_str() {
        "tl.reshape" => match symbolic()? {
            Some(ty) => Compute::reshape(&operand()?, ty.dims),
            None => return tl::op_of(op),
        },
        "tl.broadcast" => match symbolic()? {
            Some(ty) => Compute::broadcast(&operand()?, ty.dims),
            None => return tl::op_of(op),
        },
        "tl.fill" => match (symbolic()?, read::float(&op, "value")) {
            (Some(ty), Some(value)) => {
                Compute::map(ty.dims, Scalar::float(value, DType::F64).cast(ty.dtype))
            }
            _ => return tl::op_of(op),
        },
        _ => return tl::op_of(op),
    };
    Ok(Op::compute(compute))
}
