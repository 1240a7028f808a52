//! The functions of a program as plain data, the input of planning.
use crate::attributes::{ORIGIN, SIZES};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, OperationLike, OperationRef, RegionLike, Value as MlirValue, ValueLike, origin, read,
};
use irc_runtime::HostCall;
use irc_tl::{DType, Dim, Relation, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A value of a [`Function`], by position.
pub type Value = usize;

/// A function that calls kernels.
pub struct Function<'c, 'a> {
    /// Its name.
    pub name: String,
    /// The original function.
    pub op: OperationRef<'c, 'a>,
    /// The type of every value; the first ones are the arguments.
    pub types: Vec<Type>,
    /// Number of arguments.
    pub inputs: usize,
    /// The steps, each with the op it was read from.
    pub steps: Vec<(Step, OperationRef<'c, 'a>)>,
    /// The values it returns.
    pub results: Vec<Value>,
}

/// One step of a [`Function`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Runs a kernel.
    Launch {
        /// The kernel.
        callee: String,
        /// The values it reads.
        operands: Vec<Value>,
        /// The values it writes.
        results: Vec<Value>,
        /// The values of its symbols.
        sizes: Vec<Dim>,
    },
    /// The same memory under another type.
    View {
        /// The memory.
        from: Value,
        /// The view.
        to: Value,
        /// Values that must be computed before.
        after: Vec<Value>,
    },
    /// A constant.
    Constant {
        /// The elements.
        bytes: Vec<u8>,
        /// The value.
        to: Value,
    },
    /// Defines a symbol as the value of an element.
    Size {
        /// The value.
        from: Value,
        /// The element.
        index: i64,
        /// The symbol.
        symbol: Arc<str>,
    },
    /// A check of two sizes.
    Check {
        /// One size.
        left: Dim,
        /// The required relation.
        relation: Relation,
        /// The other.
        right: Dim,
        /// The message if the check fails.
        message: String,
    },
    /// Lets the host apply a function.
    Host {
        /// The function.
        function: HostCall,
        /// The operands.
        operands: Vec<Value>,
        /// The result.
        to: Value,
    },
    /// A call of a function, or of one of two.
    Call {
        /// The condition that selects one of two.
        condition: Option<Value>,
        /// The function, or those for true and false.
        callees: Vec<String>,
        /// The arguments.
        operands: Vec<Value>,
        /// The results.
        results: Vec<Value>,
    },
    /// A loop that calls a function.
    Loop {
        /// The function.
        callee: String,
        /// Number of carried values.
        carried: usize,
        /// The number of iterations, whether to start, the carried values, the captures.
        operands: Vec<Value>,
        /// The carried values, then sequences.
        results: Vec<Value>,
    },
}

impl Step {
    /// The values it reads.
    pub fn operands(&self) -> Vec<Value> {
        match self {
            Self::Launch { operands, .. }
            | Self::Loop { operands, .. }
            | Self::Host { operands, .. } => operands.clone(),
            Self::Call { condition, operands, .. } => {
                condition.iter().chain(operands).copied().collect()
            }
            Self::View { from, after, .. } => [from].into_iter().chain(after).copied().collect(),
            Self::Size { from, .. } => vec![*from],
            Self::Constant { .. } | Self::Check { .. } => vec![],
        }
    }

    /// Whether it defines a symbol or checks one.
    pub const fn is_check(&self) -> bool {
        matches!(self, Self::Size { .. } | Self::Check { .. })
    }

    /// Whether it calls a function of the host.
    pub const fn calls_host(&self) -> bool {
        matches!(self, Self::Host { .. })
    }

    /// The values it defines.
    pub fn results(&self) -> Vec<Value> {
        match self {
            Self::Launch { results, .. }
            | Self::Call { results, .. }
            | Self::Loop { results, .. } => results.clone(),
            Self::View { to, .. } | Self::Constant { to, .. } | Self::Host { to, .. } => vec![*to],
            Self::Size { .. } | Self::Check { .. } => vec![],
        }
    }
}

impl<'c: 'a, 'a> Function<'c, 'a> {
    /// Reads a function of one block.
    ///
    /// # Errors
    /// An op that is not allowed, with the reason.
    pub fn read(op: OperationRef<'c, 'a>) -> Result<Self, (OperationRef<'c, 'a>, String)> {
        let name = read::string(&op, "sym_name").unwrap_or_default();
        let mut reader = Reader {
            function: Self { name, op, types: vec![], inputs: 0, steps: vec![], results: vec![] },
            values: BTreeMap::new(),
        };
        let block = op.region(0).ok().and_then(|region| region.first_block());
        let block = block.ok_or_else(|| (op, "has no body".to_owned()))?;
        for index in 0..block.argument_count() {
            let argument = block.argument(index).map_err(|error| (op, error.to_string()))?;
            reader.define(argument.into()).map_err(|message| (op, message))?;
        }
        reader.function.inputs = block.argument_count();
        for op in read::body_ops(op) {
            reader.op(op).map_err(|message| (op, message))?;
        }
        Ok(reader.function)
    }

    /// The functions it calls, except kernels.
    pub fn callees(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (step, _) in &self.steps {
            match step {
                Step::Call { callees, .. } => found.extend(callees.iter().cloned()),
                Step::Loop { callee, .. } => {
                    found.insert(callee.clone());
                }
                _ => {}
            }
        }
        found
    }

    /// Whether something is known only at run time: a size, whether a check holds, or what the host computes.
    pub fn is_dynamic(&self) -> bool {
        self.types.iter().any(|ty| ty.known().is_none())
            || self.steps.iter().any(|(step, _)| step.is_check() || step.calls_host())
    }
}

struct Reader<'c, 'a> {
    function: Function<'c, 'a>,
    values: BTreeMap<usize, Value>,
}

impl<'c: 'a, 'a> Reader<'c, 'a> {
    fn op(&mut self, op: OperationRef<'c, 'a>) -> Result<(), String> {
        let operands: Vec<Value> =
            op.operands().map(|operand| self.value(operand)).collect::<Result<_, _>>()?;
        let name = read::op_name(&op);
        if name == func::RETURN {
            self.function.results = operands;
            return Ok(());
        }
        let mut results = vec![];
        for result in op.results() {
            results.push(self.define(result.into())?);
        }
        let text = |name: &str| read::string(&op, name).ok_or_else(|| format!("lacks '{name}'"));
        let symbol = |name: &str| read::symbol(&op, name).ok_or_else(|| format!("lacks '{name}'"));
        let number = |name: &str| read::integer(&op, name).ok_or_else(|| format!("lacks '{name}'"));
        let size = |name: &str| {
            let text = text(name)?;
            text.parse::<Dim>().map_err(|error| format!("{name}: {error}"))
        };
        let step = match name.as_str() {
            tl::LAUNCH => {
                Step::Launch { callee: symbol("callee")?, operands, results, sizes: sizes_of(op)? }
            }
            name if name == tl::AFTER || tl::is_view(&op) => {
                Step::View { from: operands[0], to: results[0], after: operands[1..].to_vec() }
            }
            tl::CONSTANT => {
                let bytes = read::bytes(&op, "bytes").ok_or("lacks 'bytes'")?;
                Step::Constant { bytes, to: results[0] }
            }
            tl::SIZE => Step::Size {
                from: operands[0],
                index: number("index")?,
                symbol: text("symbol")?.into(),
            },
            tl::CHECK => Step::Check {
                left: size("left")?,
                relation: relation(&text("relation")?)?,
                right: size("right")?,
                message: text("message")?,
            },
            tl::HOST => {
                let function = tl::function_of(op)?;
                let name = function.name().to_owned();
                let (arguments, automata) = (function.arguments(), function.automata());
                let function = HostCall { name, arguments, automata };
                Step::Host { function, operands, to: results[0] }
            }
            tl::IF => Step::Call {
                condition: operands.first().copied(),
                callees: vec![symbol("then")?, symbol("otherwise")?],
                operands: operands[1..].to_vec(),
                results,
            },
            tl::CALL => {
                let callees = vec![symbol("callee")?];
                Step::Call { condition: None, callees, operands, results }
            }
            tl::LOOP => {
                let carried = usize::try_from(number("carried")?).unwrap_or(0);
                Step::Loop { callee: symbol("body")?, carried, operands, results }
            }
            other => return Err(format!("does not expect '{other}' outside kernels")),
        };
        self.function.steps.push((step, op));
        Ok(())
    }

    fn value(&self, value: MlirValue<'c, 'a>) -> Result<Value, String> {
        let outside = || "uses a value from outside its function".to_owned();
        self.values.get(&key(value)).copied().ok_or_else(outside)
    }

    fn define(&mut self, value: MlirValue<'c, 'a>) -> Result<Value, String> {
        self.function.types.push(tl::type_of(value.r#type())?);
        let id = self.function.types.len() - 1;
        self.values.insert(key(value), id);
        Ok(id)
    }
}

/// The sizes that a launch passes for its kernel's symbols.
fn sizes_of(op: OperationRef<'_, '_>) -> Result<Vec<Dim>, String> {
    if !SIZES.is_on(&op) {
        return Ok(vec![]);
    }
    let sizes = SIZES.read(&op).ok_or_else(|| format!("{}: expected texts", SIZES.name()))?;
    let size = |text: String| text.parse().map_err(|error| format!("{}: {error}", SIZES.name()));
    sizes.into_iter().map(size).collect()
}

/// Bytes of one element, as a size.
pub fn bytes_of(ty: &Type) -> Dim {
    ty.elements() * element_bytes(ty.dtype)
}

fn element_bytes(dtype: DType) -> Dim {
    Dim::Known(dtype.size() as i64)
}

fn relation(name: &str) -> Result<Relation, String> {
    match name {
        "equal" => Ok(Relation::Equal),
        "equal_or_one" => Ok(Relation::EqualOrOne),
        "at_most" => Ok(Relation::AtMost),
        _ => Err(format!("expected equal, equal_or_one or at_most, found '{name}'")),
    }
}

fn key(value: MlirValue<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

/// The error message for a function of the host without a result, with the node that calls it.
pub fn call_message(function: &HostCall, op: OperationRef<'_, '_>) -> String {
    format!("{}expected a result of '{}'", node(op), function.name)
}

/// The node that an op computes, and a colon; empty if it is not known.
pub fn node(op: OperationRef<'_, '_>) -> String {
    // The text of a program without locations has positions in that text.
    let location = || origin(op.location()).filter(|place| !place.starts_with("-:"));
    let node = ORIGIN.read(&op).or_else(location);
    node.map(|node| format!("{node}: ")).unwrap_or_default()
}
