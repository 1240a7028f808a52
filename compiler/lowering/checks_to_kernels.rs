//! `checks-to-kernels`: on a GPU, kernels check what a program requires of values.
//!
//! Before: functions on tensors whose sizes are all known, with `tl.size` of elements of values and `tl.check` of these. After:
//! each check is a `tl.launch` of a kernel without results, which ends the launch if it does not hold; the kernel's `tl.origin`
//! says what it requires. A size that is computed at run time, and a check of such a size, are errors.
use super::compute_to_loops::simt::{CHECK, declare_device};
use crate::attributes::{KERNEL, KernelInfo, ORIGIN};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, Erase, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    RegionLike, Value, ValueLike, attr, read, walk_collect,
};
use irc_tl::{DType, Dim};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The pass `checks-to-kernels`.
pub struct ChecksToKernels;

impl Pass for ChecksToKernels {
    fn name(&self) -> &'static str {
        "checks-to-kernels"
    }
    fn description(&self) -> &'static str {
        "let kernels check what a program requires of values"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "func", "memref"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
        let mut kernels = vec![];
        for function in functions {
            let checks = checks_of(function)?;
            for check in &checks {
                kernels.push(check.launch(module, kernels.len())?);
            }
            let is_size = |op: OperationRef<'_, '_>| read::op_name(&op) == tl::SIZE;
            if !checks.is_empty() {
                walk_collect(function, is_size).into_iter().for_each(Erase::erase);
            }
        }
        kernels.first().copied().map_or(Ok(()), declare_device)
    }
}

/// An element of a value.
struct Element<'c, 'a> {
    value: Value<'c, 'a>,
    index: i64,
    dtype: DType,
    elements: i64,
}

/// One side of a check.
enum Side {
    Known(i64),
    /// The symbol of an element.
    Element(String),
}

/// A check of elements.
struct Check<'c, 'a> {
    op: OperationRef<'c, 'a>,
    sides: [Side; 2],
    relation: String,
    elements: BTreeMap<String, Element<'c, 'a>>,
}

/// The checks of a function.
fn checks_of<'c: 'a, 'a>(function: OperationRef<'c, 'a>) -> Result<Vec<Check<'c, 'a>>, PassError> {
    let named = |name: &str| walk_collect(function, |op| read::op_name(&op) == name);
    for op in walk_collect(function, |_| true) {
        for result in op.results() {
            let ty = tl::type_of(result.r#type()).ok();
            if let Some(ty) = ty.filter(|ty| ty.known().is_none()) {
                let message = format!(
                    "has a size that is computed at run time, and kernels for GPUs need known sizes: {ty}"
                );
                return Err(PassError::at(&op, message));
            }
        }
    }
    let sizes = named(tl::SIZE).into_iter();
    let sizes = sizes.filter_map(|op| Some((read::string(&op, "symbol")?, op))).collect();
    let check = |op: OperationRef<'c, 'a>| {
        let message =
            "is of sizes that are computed at run time, which kernels for GPUs do not check";
        check_of(op, &sizes).ok_or_else(|| PassError::at(&op, message))
    };
    named(tl::CHECK).into_iter().map(check).collect()
}

fn check_of<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    sizes: &BTreeMap<String, OperationRef<'c, 'a>>,
) -> Option<Check<'c, 'a>> {
    let mut elements = BTreeMap::new();
    let mut side = |name: &str| {
        let dim: Dim = read::string(&op, name)?.parse().ok()?;
        if let Some(size) = dim.known() {
            return Some(Side::Known(size));
        }
        let symbol = dim.symbols().into_iter().next().filter(|it| dim == Dim::symbol(it))?;
        let from = sizes.get(&*symbol)?;
        let value = from.operands().next()?;
        let ty = tl::type_of(value.r#type()).ok()?;
        let element = Element {
            value,
            index: read::integer(from, "index")?,
            dtype: ty.dtype,
            elements: ty.elements().known()?,
        };
        elements.insert(symbol.to_string(), element);
        Some(Side::Element(symbol.to_string()))
    };
    let sides = [side("left")?, side("right")?];
    Some(Check { op, sides, relation: read::string(&op, "relation")?, elements })
}

impl<'c: 'a, 'a> Check<'c, 'a> {
    /// Replaces the check by a launch of a kernel of a number, which is returned.
    fn launch(
        &self,
        module: OperationRef<'c, 'a>,
        number: usize,
    ) -> Result<OperationRef<'c, 'a>, PassError> {
        let context = irc_mlir::context_of(&self.op);
        let name = format!("irc_check_{number}");
        let error = || PassError::at(&self.op, "cannot be checked by a kernel");
        let parsed = irc_mlir::parse_module(context, &self.kernel(&name)).ok_or_else(error)?;
        let body = module.region(0).ok().and_then(|region| region.first_block());
        let (body, block) = (body.ok_or_else(error)?, self.op.block().ok_or_else(error)?);
        let kernel = read::body_ops(parsed.as_operation())
            .into_iter()
            .find(|op| read::string(op, "sym_name").as_ref() == Some(&name));
        let kernel = body.append_operation((*kernel.ok_or_else(error)?).clone());
        let info = KernelInfo {
            kind: "check".to_owned(),
            workspace_bytes: Some(0),
            ..KernelInfo::default()
        };
        KERNEL.write(kernel, &info);
        let message = read::string(&self.op, "message").unwrap_or_default();
        ORIGIN.write(kernel, &message);
        let operands: Vec<Value<'c, 'a>> =
            self.elements.values().map(|element| element.value).collect();
        let launch = OpSpec::new(context, tl::LAUNCH, self.op.location())
            .attr("callee", attr::symbol(context, &name))
            .operands(&operands);
        block.insert_operation_before(self.op, launch.build());
        self.op.erase();
        Ok(kernel)
    }

    /// The kernel: its parameters are the values, then scratch of no bytes.
    fn kernel(&self, name: &str) -> String {
        let mut parameters = String::new();
        let mut body = String::new();
        let mut numbers = BTreeMap::new();
        for (number, (symbol, element)) in self.elements.iter().enumerate() {
            let bits = 8 * element.dtype.size();
            let ty = format!("memref<{}xi{bits}>", element.elements);
            let _ = write!(parameters, "%value{number}: {ty}, ");
            let _ = writeln!(
                body,
                "%at{number} = arith.constant {} : index
                 %loaded{number} = memref.load %value{number}[%at{number}] : {ty}",
                element.index
            );
            let loaded = format!("%loaded{number}");
            numbers
                .insert(symbol.clone(), if bits == 64 { loaded } else { format!("%wide{number}") });
            if bits < 64 {
                let extend = if element.dtype.is_signed_integer() { "extsi" } else { "extui" };
                let _ = writeln!(
                    body,
                    "%wide{number} = arith.{extend} %loaded{number} : i{bits} to i64"
                );
            }
        }
        let mut side = |side: &Side, name: &str| match side {
            Side::Element(symbol) => numbers[symbol].clone(),
            Side::Known(size) => {
                let _ = writeln!(body, "%{name} = arith.constant {size} : i64");
                format!("%{name}")
            }
        };
        let [left, right] = [side(&self.sides[0], "left"), side(&self.sides[1], "right")];
        let holds = match self.relation.as_str() {
            "at_most" => format!("%holds = arith.cmpi sle, {left}, {right} : i64"),
            "equal_or_one" => format!(
                "%one = arith.constant 1 : i64
                 %equal = arith.cmpi eq, {left}, {right} : i64
                 %is_one = arith.cmpi eq, {left}, %one : i64
                 %holds = arith.ori %equal, %is_one : i1"
            ),
            _ => format!("%holds = arith.cmpi eq, {left}, {right} : i64"),
        };
        format!(
            "func.func private @{name}({parameters}%scratch: memref<0xi8>) {{
             {body}{holds}
             func.call @{CHECK}(%holds) : (i1) -> ()
             func.call @irc_gpu_grid_barrier() : () -> ()
             func.return
             }}
             func.func private @{CHECK}(i1)
             func.func private @irc_gpu_grid_barrier()"
        )
    }
}
