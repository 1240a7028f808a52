//! What profiles say of kernels: names that describe them, the nodes they compute, and their work.

use super::error::QueryError;
use crate::codegen::{SymbolScope, data_object};
use irc_dialects::tl;
use irc_mlir::{OperationLike, OperationRef, ValueLike, read};
use irc_tl::{Binary, Combine, Compute, Op, Scalar, TensorType, Type};
use serde_json::json;
use std::collections::BTreeMap;

/// The symbol of the description of a library's kernels: JSON, zero-terminated.
pub const KERNELS: &str = "irc_kernels";

/// Maximum number of ops that a name lists.
const MAX_OPS: usize = 4;

/// Maximum number of functions of a general op that a name lists.
const MAX_FUNCTIONS: usize = 3;

/// The name of a general op.
const COMPUTE: &str = "compute";

/// Maximum number of nodes that a description lists.
const MAX_NODES: usize = 16;

/// What a kernel is for. Kernels of equal text are one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelUse {
    /// Number of launches in the functions of the program.
    pub launches: u64,
    /// The nodes that the kernel computes.
    pub nodes: Vec<String>,
    /// Number of floating-point operations of one launch, if its sizes are known.
    operations: Option<u64>,
    /// Size of its operands and results in bytes, if known.
    bytes: Option<u64>,
}

impl KernelUse {
    /// Adds the nodes of a kernel, whose ops have locations.
    pub fn add_kernel(&mut self, kernel: OperationRef<'_, '_>) {
        let ops = read::body_ops(kernel);
        let mut operations = Some(0_u64);
        for op in &ops {
            operations =
                operations.zip(operations_of(*op)).map(|(sum, own)| sum.saturating_add(own));
            let Some(node) = irc_mlir::origin(op.location()) else { continue };
            if self.nodes.len() < MAX_NODES && !self.nodes.contains(&node) {
                self.nodes.push(node);
            }
        }
        self.operations = operations;
    }

    /// Adds a launch.
    pub fn add_launch(&mut self, launch: OperationRef<'_, '_>) {
        self.launches += 1;
        let operands = launch.operands().map(|value| value.r#type());
        let types = operands.chain(launch.results().map(|value| value.r#type()));
        let sizes = types.map(|ty| {
            let bytes = tl::type_of(ty).ok()?.known()?.byte_size().ok()?;
            Some(bytes as u64)
        });
        self.bytes = sizes.sum();
    }
}

/// Number of floating-point operations of an op, if its sizes are known.
fn operations_of(op: OperationRef<'_, '_>) -> Option<u64> {
    if !read::op_name(&op).starts_with("tl.") {
        return Some(0);
    }
    let types = tl::symbolic_operand_types(op).ok()?;
    let types: Vec<TensorType> = types.iter().map(Type::known).collect::<Option<_>>()?;
    tl::op_of(op).ok()?.flops(&types).ok()
}

/// The name of a kernel: its ops, and the extents of its last result, as `irc_matmul_add_128x768`.
pub fn name_of(kernel: OperationRef<'_, '_>) -> String {
    let ops = read::body_ops(kernel);
    let names: Vec<String> = ops.iter().filter_map(|op| name_of_op(*op)).collect();
    let mut parts: Vec<&str> = vec!["irc"];
    let softmax = ["reduce_max", "sub", "exp", "reduce_sum", "div"];
    let mut at = 0;
    while at < names.len() && parts.len() <= MAX_OPS {
        let rest = &names[at..];
        let (part, count) = match rest.starts_with(&softmax.map(str::to_owned)) {
            true => ("softmax", softmax.len()),
            false => (names[at].as_str(), 1),
        };
        // Ops in a row of one name are listed once.
        if parts.last() != Some(&part) {
            parts.push(part);
        }
        at += count;
    }
    let last = ops.iter().rev().map(read::op_name).find(|name| name.starts_with("tl."));
    if parts.len() == 1 {
        let last = last.as_deref().map(|name| &name["tl.".len()..]);
        parts.push(last.filter(|name| *name != COMPUTE).unwrap_or("move"));
    }
    let made = ops.iter().rev().flat_map(|op| op.results().next());
    let extents = made.take(1).filter_map(|value| tl::type_of(value.r#type()).ok()).next();
    let extents: Vec<String> = extents
        .iter()
        .flat_map(|ty| &ty.dims)
        .filter(|dim| !dim.is(1))
        .map(|dim| dim.known().map_or("n".to_owned(), |extent| extent.to_string()))
        .collect();
    let shape = extents.join("x");
    parts.extend((!shape.is_empty()).then_some(shape.as_str()));
    parts.join("_")
}

/// The name of an op that computes; `None` if it only moves or fills.
fn name_of_op(op: OperationRef<'_, '_>) -> Option<String> {
    let name = read::op_name(&op);
    let name = name.strip_prefix("tl.")?;
    let moves = ["fill", "reshape", "broadcast", "transpose", "cast", "bitcast", "constant"];
    if name == COMPUTE
        && let Ok(Op::Compute(compute)) = tl::op_of(op)
    {
        return name_of_compute(&compute);
    }
    (!moves.contains(&name)).then(|| name.to_owned())
}

/// The name of what a general op computes: of a sum of products, a reduction, or the functions that it applies; `None` if it
/// only moves elements.
fn name_of_compute(compute: &Compute) -> Option<String> {
    let mut body = Body { outer: compute.dims.len(), ..Body::default() };
    body.read(&compute.body);
    let name = match compute.reduction.as_ref().map(|reduction| reduction.combine) {
        None if body.functions.is_empty() => return body.gathers.then(|| "gather".to_owned()),
        None => {
            body.functions.truncate(MAX_FUNCTIONS);
            return Some(body.functions.join("_"));
        }
        Some(Combine::Sum) if body.multiplies && body.has_windows => "conv",
        Some(Combine::Sum) if body.multiplies => "matmul",
        Some(Combine::Sum) if body.has_windows => "sum_pool",
        Some(Combine::Sum) => "reduce_sum",
        Some(Combine::Product) => "reduce_product",
        Some(Combine::Max) if body.has_windows => "max_pool",
        Some(Combine::Max) => "reduce_max",
        Some(Combine::Min) => "reduce_min",
    };
    Some(name.to_owned())
}

/// What the expression of a general op does.
#[derive(Default)]
struct Body {
    /// The number of loops over the result; those of a reduction come after them.
    outer: usize,
    /// The functions applied to elements, each once, in the order of their first application.
    functions: Vec<&'static str>,
    /// Whether elements are multiplied by elements.
    multiplies: bool,
    /// Whether elements are read at indices that are read.
    gathers: bool,
    /// Whether elements are read at the positions of a window.
    has_windows: bool,
}

impl Body {
    /// Adds an expression; returns whether it reads elements.
    fn read(&mut self, scalar: &Scalar) -> bool {
        let (reads, op) = match scalar {
            Scalar::Float(..) | Scalar::Int(..) | Scalar::Loop(_) | Scalar::Size(_) => {
                return false;
            }
            Scalar::Load(_, at) => {
                at.iter().for_each(|index| self.read_index(index));
                return true;
            }
            Scalar::Cast(_, _, x) => return self.read(x),
            Scalar::Unary(function, x) => (self.read(x), Op::Unary(*function)),
            Scalar::Binary(function, x, y) => {
                let reads = [self.read(x), self.read(y)];
                self.multiplies |= *function == Binary::Mul && reads == [true; 2];
                (reads.contains(&true), Op::Binary(*function))
            }
            Scalar::Compare(comparison, x, y) => {
                (self.read(x) | self.read(y), Op::Compare(*comparison))
            }
            Scalar::Select(parts) => {
                let [condition, yes, no] = parts.each_ref().map(|part| self.read(part));
                // A condition on indices guards a load.
                if !condition {
                    return yes | no;
                }
                (true, Op::Select)
            }
        };
        if reads && !self.functions.contains(&op.name()) {
            self.functions.push(op.name());
        }
        reads
    }

    /// Adds an index.
    fn read_index(&mut self, index: &Scalar) {
        let (mut is_outer, mut is_inner) = (false, false);
        index.walk(&mut |part| match part {
            Scalar::Loop(number) if *number < self.outer => is_outer = true,
            Scalar::Loop(_) => is_inner = true,
            Scalar::Load(..) => self.gathers = true,
            _ => {}
        });
        self.has_windows |= is_outer && is_inner;
    }
}

/// An object with the descriptions of the kernels of a program, under a symbol that is local, so that several
/// programs can be linked together.
pub fn object(uses: &BTreeMap<String, KernelUse>, suffix: &str) -> Result<Vec<u8>, QueryError> {
    let described = uses.iter().map(|(symbol, used)| {
        json!({
            "symbol": symbol,
            "launches": used.launches,
            "nodes": used.nodes,
            "operations": used.operations,
            "bytes": used.bytes,
        })
    });
    let text = serde_json::Value::Array(described.collect()).to_string() + "\0";
    Ok(data_object(&format!("{KERNELS}{suffix}"), text.as_bytes(), 1, SymbolScope::Compilation)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_tl::{DType, Dim, Unary};

    fn element(operand: usize, at: &[Scalar]) -> Scalar {
        Scalar::load(operand, at)
    }

    #[test]
    fn general_ops_are_named_for_what_they_compute() {
        let [i, j, k] = [0, 1, 2].map(Scalar::Loop);
        let n = || Dim::symbol("N");
        let name = name_of_compute;
        let reduced = |combine, body| {
            name(&Compute::reduce(vec![n(), n()], combine, [3.into()], body)).unwrap_or_default()
        };
        let map = |body| name(&Compute::map([n(), n()], body));
        let row = || element(0, &[i.clone(), k.clone()]);
        let window = || element(0, &[i.clone(), j.clone() + k.clone()]);
        let filter = || element(1, std::slice::from_ref(&k));
        assert_eq!(reduced(Combine::Sum, row() * filter()), "matmul");
        assert_eq!(reduced(Combine::Sum, window() * filter()), "conv");
        assert_eq!(reduced(Combine::Sum, window()), "sum_pool");
        assert_eq!(reduced(Combine::Max, window()), "max_pool");
        assert_eq!(reduced(Combine::Max, row().unary(Unary::Abs)), "reduce_max");

        let [x, y] = [0, 1].map(|operand| element(operand, &[i.clone(), j.clone()]));
        let root = (x.clone() * y.clone() + y.clone() * y.clone()).unary(Unary::Sqrt);
        assert_eq!(map(root).as_deref(), Some("mul_add_sqrt"));
        let zero = Scalar::float(0.0, DType::F32);
        let padded = i.clone().lt(j.clone()).select(x.clone(), zero);
        assert_eq!(map(padded), None);
        let selected = x.clone().lt(y.clone()).select(x.clone(), y.clone());
        assert_eq!(map(selected).as_deref(), Some("lt_select"));
        let row = element(0, &[element(1, std::slice::from_ref(&i)).cast(DType::I64), j.clone()]);
        assert_eq!(map(row).as_deref(), Some("gather"));
        assert_eq!(map(element(0, &[j.clone(), i.clone()])), None);
    }
}
