//! Lowers a kernel of one `tl.stepped_matmul` directly to loops: no `linalg` op rounds at intervals.
//!
//! Rows are blocked, columns are vectorized; for each block and vector the accumulators go through the
//! depth in steps, as the op defines. They are held in `f32` and rounded to `f16` after each step.
use super::{
    Target,
    error::{LowerError, Result},
    flat,
    kernel::{self, Origin, Tensor, argument, entry, operand, result_of},
    signature::{declare, record_memory},
};
use crate::attributes::KERNEL;
use crate::attributes::KernelInfo;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, func};
use irc_mlir::{
    BlockLike, Context, Erase, OperationLike, OperationRef, Type, Value, ValueLike, attr, read,
};
use melior::ir::r#type::{IntegerType, MemRefType};
use std::convert::Infallible;

/// Number of rows whose accumulators are in flight together.
const ROWS: i64 = 4;

/// The product in the function, if it is such a kernel.
pub fn find<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Option<OperationRef<'c, 'a>> {
    read::body_ops(func).into_iter().find(|op| kernel::name_of(*op) == "tl.stepped_matmul")
}

/// Replaces the function.
///
/// # Errors
/// If the function does more than multiply two of its arguments.
pub fn lower<'c: 'a, 'a>(
    context: &'c Context,
    func: OperationRef<'c, 'a>,
    product: OperationRef<'c, 'a>,
    target: &Target,
) -> Result<()> {
    let tensors = tensors(func, product)?;
    let memref = |tensor: &Tensor<'c>| -> Type<'c> {
        MemRefType::new(tensor.element, &tensor.shape, None, None).into()
    };
    let byte = IntegerType::new(context, 8).into();
    let mut types: Vec<Type> = tensors.arguments.iter().map(memref).collect();
    types.push(memref(&tensors.result));
    types.push(MemRefType::new(byte, &[i64::MIN], None, None).into());
    let info = KERNEL.read(&func).unwrap_or_default();
    let lowered = declare(func, &types)?;
    let block = entry(lowered)?;
    let e = Emit { context, block, location: product.location() };
    let place = |index: usize, tensor: &Tensor<'c>| -> Result<Buffer<'c, 'a>> {
        Ok(flat(e, argument(func, block, index)?, tensor, None))
    };
    let [lhs, rhs] = tensors.operands;
    let output = types.len() - 2;
    let loops = Product {
        lhs: place(lhs, &tensors.arguments[lhs])?,
        rhs: place(rhs, &tensors.arguments[rhs])?,
        result: place(output, &tensors.result)?,
        shapes: [&tensors.arguments[lhs], &tensors.arguments[rhs], &tensors.result]
            .map(|tensor| tensor.shape.clone()),
        lanes: Lanes::Vector(target.lanes()),
    };
    loops.emit(e);
    e.at(func.location()).spec(func::RETURN).append(&block);
    func.erase();
    record_memory(context, lowered, types, &KernelInfo { workspace_bytes: Some(0), ..info });
    Ok(())
}

/// The arguments of the function, the operands of the product, and the result.
struct Tensors<'c> {
    arguments: Vec<Tensor<'c>>,
    operands: [usize; 2],
    result: Tensor<'c>,
}

fn tensors<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    product: OperationRef<'c, 'a>,
) -> Result<Tensors<'c>> {
    let alone = "expected to stand alone in its kernel, on arguments without strides";
    let error = || LowerError::at(product, alone);
    let body = entry(func)?;
    let ops = read::body_ops(func);
    let returned = ops.last().and_then(|op| op.operand(0).ok());
    if ops.len() != 2 || returned != result_of(product).ok() || func.has_attribute("arg_attrs") {
        return Err(error());
    }
    let tensor = |value: Value<'c, 'a>, origin| {
        let (shape, element) = read::tensor_of(value.r#type())?;
        Some(Tensor { shape, element, origin })
    };
    let values = (0..body.argument_count()).map(|index| argument(func, body, index));
    let values = values.collect::<Result<Vec<_>>>()?;
    let arguments = values.iter().enumerate();
    let arguments = arguments.map(|(index, value)| tensor(*value, Origin::Argument(index)));
    let position = |side| {
        let value = operand(product, side)?;
        values.iter().position(|argument| *argument == value).ok_or_else(error)
    };
    Ok(Tensors {
        operands: [position(0)?, position(1)?],
        arguments: arguments.collect::<Option<_>>().ok_or_else(error)?,
        result: tensor(result_of(product)?, Origin::Stage(0)).ok_or_else(error)?,
    })
}

struct Product<'c, 'a> {
    lhs: Buffer<'c, 'a>,
    rhs: Buffer<'c, 'a>,
    result: Buffer<'c, 'a>,
    /// The shapes of the operands and the result.
    shapes: [Vec<i64>; 3],
    lanes: Lanes,
}

/// The first elements of the matrices of one product.
#[derive(Clone, Copy)]
struct Starts<'c, 'a> {
    lhs: Value<'c, 'a>,
    rhs: Value<'c, 'a>,
    result: Value<'c, 'a>,
}

/// A block of the result: its first row and column, its rows, its columns as lanes.
#[derive(Clone, Copy)]
struct Tile<'c, 'a> {
    row: Value<'c, 'a>,
    rows: i64,
    column: Value<'c, 'a>,
    lanes: Lanes,
}

impl<'c: 'a, 'a> Product<'c, 'a> {
    fn depth(&self) -> i64 {
        self.shapes[0][self.shapes[0].len() - 1]
    }

    fn columns(&self) -> i64 {
        self.shapes[1][self.shapes[1].len() - 1]
    }

    fn emit(&self, e: Emit<'c, 'a>) {
        let batch = self.shapes[2].len() - 2;
        let Ok(()) = self.emit_batch(e, batch, &mut vec![]);
    }

    /// A loop for each remaining batch dimension.
    fn emit_batch(
        &self,
        e: Emit<'c, 'a>,
        batch: usize,
        ivs: &mut Vec<Value<'c, 'a>>,
    ) -> Result<(), Infallible> {
        if ivs.len() == batch {
            let start = |side: usize| e.linear(e.index(0), ivs, &self.batch_strides(side));
            self.emit_matrices(e, Starts { lhs: start(0), rhs: start(1), result: start(2) });
            return Ok(());
        }
        e.loop_over(self.shapes[2][ivs.len()], |e, iv| {
            ivs.push(iv);
            let Ok(()) = self.emit_batch(e, batch, ivs);
            ivs.pop();
            Ok(())
        })
    }

    /// The stride between matrices along each batch dimension of the result, in elements.
    fn batch_strides(&self, side: usize) -> Vec<i64> {
        let (own, all) = (&self.shapes[side], &self.shapes[2]);
        let mut stride: i64 = own[own.len() - 2..].iter().product();
        let mut strides = vec![0; all.len() - 2];
        for back in 3..=own.len() {
            let extent = own[own.len() - back];
            strides[all.len() - back] = if extent == 1 { 0 } else { stride };
            stride *= extent;
        }
        strides
    }

    fn emit_matrices(&self, e: Emit<'c, 'a>, starts: Starts<'c, 'a>) {
        let rows = self.shapes[2][self.shapes[2].len() - 2];
        let blocked = rows / ROWS * ROWS;
        for (from, to, count) in [(0, blocked, ROWS), (blocked, rows, 1)] {
            self.each(e, (from, to, count), |e, row| self.emit_row(e, starts, row, count));
        }
    }

    fn emit_row(&self, e: Emit<'c, 'a>, starts: Starts<'c, 'a>, row: Value<'c, 'a>, rows: i64) {
        let columns = self.columns();
        let width = self.lanes.count();
        let whole = columns / width * width;
        for (range, lanes) in
            [((0, whole, width), self.lanes), ((whole, columns, 1), Lanes::Scalar)]
        {
            self.each(e, range, |e, column| {
                self.emit_tile(e, starts, Tile { row, rows, column, lanes });
            });
        }
    }

    /// A loop, unless it has no iterations.
    fn each(
        &self,
        e: Emit<'c, 'a>,
        (from, to, step): (i64, i64, i64),
        body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>),
    ) {
        if from == to {
            return;
        }
        let looped =
            e.for_each::<Infallible>((e.index(from), e.index(to), step), &[], |e, iv, _| {
                body(e, iv);
                Ok(vec![])
            });
        let Ok(_) = looped;
    }

    fn emit_tile(&self, e: Emit<'c, 'a>, starts: Starts<'c, 'a>, tile: Tile<'c, 'a>) {
        let zero = e.zero(e.f32(), tile.lanes);
        let step = irc_tl::STEP as i64;
        let whole = self.depth() / step * step;
        let mut sums = vec![zero; tile.rows as usize];
        if whole > 0 {
            let bounds = (e.index(0), e.index(whole), step);
            let looped = e.for_each::<Infallible>(bounds, &sums, |e, k, sums| {
                Ok(self.emit_step(e, starts, tile, k, step, sums))
            });
            let Ok(next) = looped;
            sums = next;
        }
        if self.depth() > whole {
            let rest = self.depth() - whole;
            sums = self.emit_step(e, starts, tile, e.index(whole), rest, &sums);
        }
        for (index, sum) in sums.into_iter().enumerate() {
            let row = e.offset(tile.row, index as i64);
            let at = e.linear(starts.result, &[row, tile.column], &[self.columns(), 1]);
            let stored = self.narrow(e, sum, tile.lanes);
            e.store(stored, self.result, at, tile.lanes, None);
        }
    }

    /// The accumulators after one step.
    fn emit_step(
        &self,
        e: Emit<'c, 'a>,
        starts: Starts<'c, 'a>,
        tile: Tile<'c, 'a>,
        k: Value<'c, 'a>,
        terms: i64,
        sums: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let mut partial = vec![e.zero(e.f32(), tile.lanes); sums.len()];
        for term in 0..terms {
            let k = e.offset(k, term);
            let at = e.linear(starts.rhs, &[k, tile.column], &[self.columns(), 1]);
            let right = e.load_lanes(self.rhs, at, tile.lanes, None);
            let right = self.widen(e, right, tile.lanes);
            for (index, partial) in partial.iter_mut().enumerate() {
                let row = e.offset(tile.row, index as i64);
                let at = e.linear(starts.lhs, &[row, k], &[self.depth(), 1]);
                let left = self.widen(e, e.load(self.lhs, at), Lanes::Scalar);
                // Exact, so that fusing it with the addition makes no difference.
                let exact = self.fused(e, arith::MULF, e.splat(left, tile.lanes), right);
                *partial = self.fused(e, arith::ADDF, *partial, exact);
            }
        }
        let added = sums.iter().zip(partial).map(|(sum, partial)| {
            let sum = e.binary(arith::ADDF, *sum, partial);
            self.widen(e, self.narrow(e, sum, tile.lanes), tile.lanes)
        });
        added.collect()
    }

    /// An op that may be contracted to a fused multiply-add.
    fn fused(
        &self,
        e: Emit<'c, 'a>,
        name: &str,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let contract = attr::parse(e.context, "#arith.fastmath<contract>");
        let spec = e.spec(name).operands(&[a, b]).results(&[a.r#type()]);
        e.value(spec.attr("fastmath", contract))
    }

    fn widen(&self, e: Emit<'c, 'a>, value: Value<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        e.op(arith::EXTF, &[value], lanes.of(e.f32()))
    }

    fn narrow(&self, e: Emit<'c, 'a>, value: Value<'c, 'a>, lanes: Lanes) -> Value<'c, 'a> {
        e.op(arith::TRUNCF, &[value], lanes.of(self.result.element))
    }
}
