//! Loops around an expression: see [`Compute`].

use super::{Attribute, AttributeKind, Family, Op, Operands, Row, Value};
use crate::compute::Reduce;
use crate::{Combine, Compute, DType, Dim, EvalError, Scalar, Type};
use irc_tensor::{Tensor, TensorType};
use std::sync::Arc;

pub(super) static ROW: Row = Row {
    description: DESCRIPTION,
    operands: Operands::Variadic("inputs"),
    attributes: &[
        Attribute::new("body", AttributeKind::Text),
        Attribute::optional("combine", AttributeKind::Word(&COMBINES)),
        Attribute::optional("over", AttributeKind::Texts),
    ],
    syntax: Some("`(` $inputs `)` $body (`combine` $combine^)? (`over` $over^)?"),
    family: Family::Loops,
    read: |attributes| {
        let body: Scalar =
            attributes.text("body")?.parse().map_err(|error| format!("body: {error}"))?;
        let reduction = match (attributes.has("combine"), attributes.has("over")) {
            (false, false) => None,
            (true, true) => {
                let combine = Combine::named(&attributes.text("combine")?);
                let combine = combine.ok_or("combine: expected a way of joining values")?;
                let dim =
                    |text: String| text.parse::<Dim>().map_err(|error| format!("over: {error}"));
                let dims = attributes.texts("over")?.into_iter().map(dim);
                Some(Reduce { combine, dims: dims.collect::<Result<_, _>>()? })
            }
            _ => return Err("expected 'combine' and 'over' together, found one of them".into()),
        };
        Ok(Op::compute(Compute { dims: attributes.result()?.dims, reduction, body }))
    },
    write: |op| {
        let Op::Compute(compute) = op else { return vec![] };
        let mut attributes = vec![("body", Value::Text(compute.body.to_string()))];
        if let Some(Reduce { combine, dims }) = &compute.reduction {
            let sizes = dims.iter().map(Dim::to_string).collect();
            attributes.extend([("combine", combine.name().into()), ("over", Value::Texts(sizes))]);
        }
        attributes
    },
    example: || {
        let body = Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1)]);
        let compute = Compute::reduce([2.into()], Combine::Max, [8.into()], body);
        (Op::compute(compute), vec![TensorType::new(DType::F32, [2, 8])])
    },
    ..Row::new("compute", "loops around an expression: everything without an op of its own")
};

const COMBINES: [&str; Combine::ALL.len()] =
    [Combine::Sum.name(), Combine::Product.name(), Combine::Max.name(), Combine::Min.name()];

const DESCRIPTION: &str = r#"`result[i0, i1, ...]` is the value of `body`, or with `combine` (`sum`, `product`, `max` or
`min`) what joins its values over more loops, of the extents `over`. The result's type gives the
extents of the first loops. Sizes and the body are text, with the grammar of the module `text`
of the crate `irc-tl`; its `Compute` is the meaning.

```mlir
%y = tl.compute(%x) "select(i0 >= 1 and i0 < 4, %0[i0 - 1], -1.0 : f32)"
    : (tensor<3xf32>) -> tensor<5xf32>
%z = tl.compute(%x) "%0[i0]" combine "max" over ["3"] : (tensor<3xf32>) -> tensor<f32>
```"#;

pub(super) fn infer(operands: &[TensorType], compute: &Arc<Compute>) -> Result<TensorType, String> {
    let types: Vec<_> = operands.iter().cloned().map(Type::from).collect();
    let ty = compute.infer(&types)?;
    ty.known().ok_or_else(|| format!("expected known sizes, found {ty}"))
}

pub(super) fn eval(
    operands: &[&Tensor],
    _: TensorType,
    compute: &Arc<Compute>,
) -> Result<Tensor, EvalError> {
    compute.eval(operands)
}

pub(super) fn compute(_: &[Type], compute: &Arc<Compute>) -> Result<Compute, String> {
    Ok((**compute).clone())
}

pub(super) fn flops(_: &[TensorType], _: &TensorType, compute: &Arc<Compute>) -> u64 {
    compute.flops()
}
