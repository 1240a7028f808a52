//! `tl.sequential_sum`: a reduction with a fixed order and fixed roundings.
use super::{
    Contents, Lowered,
    generic::{Access, Emitter, Loops},
    wide_dims,
};
use crate::attributes::ORDERED;
use crate::kernel::arithmetic::{narrow, widen};
use crate::kernel::element::Element;
use irc_mlir::ops::arith;
use irc_mlir::{OperationRef, Value, read};

/// Lowers the op; each step widens, adds and narrows.
pub fn lower<'c: 'a, 'a>(
    op: OperationRef<'c, 'a>,
    emitter: &Emitter<'c, 'a>,
    operand: &Lowered<'c, 'a>,
    element: Element<'c>,
) -> Result<Contents<'c, 'a>, String> {
    let axis = read::integer(&op, "axis").ok_or("lacks its axis")?;
    let loops = wide_dims(&operand.shape);
    let tensor = emitter.materialise(operand);
    let Some(reduced) = loops.iter().position(|dim| *dim as i64 == axis) else {
        return Ok(Contents::Tensor(tensor));
    };
    let kept: Vec<usize> = (0..loops.len()).filter(|at| *at != reduced).collect();
    let shape: Vec<i64> = kept.iter().map(|at| operand.shape[loops[*at]]).collect();
    let compute = element.compute(emitter.context);
    let input = Access { tensor, loops: (0..loops.len()).collect() };
    let output = Access { tensor: emitter.fill(&shape, element, 0.0), loops: kept };
    let space = Loops { count: loops.len(), reductions: vec![reduced] };
    let result = emitter.generic(&[input], output, &space, |scope, x| {
        let [sum, term]: [Value; 2] = [x[1], x[0]].map(|value| widen(scope, value, element));
        let sum: Value = scope.op(arith::ADDF, &[sum, term], compute.storage);
        narrow(scope, sum, element)
    });
    if let Some(generic) = read::defining_op(result) {
        ORDERED.write(generic, ());
    }
    Ok(Contents::Tensor(result))
}
