//! The reference evaluator: evaluates functions of the tensor level by the definition of their ops.
//!
//! It is the definition of a program and not optimized: every value is a whole host tensor. Fusion
//! groups are evaluated by their bodies.
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    BlockLike, BlockRef, OperationLike, OperationRef, RegionLike, Value, ValueLike, read,
};
use irc_tensor::Tensor;
use std::collections::BTreeMap;

/// Evaluates a function or group; returns its results.
///
/// # Errors
/// An argument of the wrong number or type, an op that is not of `tl`, or an op's own error, with the
/// name of the op.
pub fn evaluate(func: OperationRef<'_, '_>, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
    let block = func.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or("expected a function with a body, found none")?;
    let mut values = bind(&block, inputs)?;
    for op in read::body_ops(func) {
        let operands = op.operands().map(|operand| lookup(&values, operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let name = read::op_name(&op);
        if name == func::RETURN || name == tl::YIELD {
            return Ok(operands.into_iter().cloned().collect());
        }
        let results = evaluate_op(op, &operands).map_err(|error| format!("{name}: {error}"))?;
        values.extend(op.results().map(|result| key(result.into())).zip(results));
    }
    Err("expected a terminator at the end of the body, found none".into())
}

/// Evaluates a function whose arguments and results are named (see [`crate::interface`]). Omitted arguments
/// are zero.
///
/// # Errors
/// As [`evaluate`], or a name that is not an argument.
pub fn run_named(
    func: OperationRef<'_, '_>,
    mut inputs: BTreeMap<String, Tensor>,
) -> Result<BTreeMap<String, Tensor>, String> {
    let interface = crate::interface::interface_of(&func)?;
    let mut arguments = Vec::new();
    for port in &interface.inputs {
        let ty = port.tensor_type().ok_or("an input has an unknown element type")?;
        let bits = |given: Tensor| given.reinterpret(ty.dtype).map_err(|error| error.to_string());
        arguments.push(match inputs.remove(&port.name) {
            Some(given) if given.dtype() == irc_tensor::DType::U16 => bits(given)?,
            Some(given) => given,
            None => Tensor::zeros(ty).map_err(|error| error.to_string())?,
        });
    }
    // A buffer that is only written may also be passed.
    let written = |name: &String| interface.outputs.iter().any(|port| port.name == *name);
    if let Some(unknown) = inputs.keys().find(|name| !written(name)) {
        return Err(format!("no input is named '{unknown}'"));
    }
    let results = evaluate(func, &arguments)?;
    Ok(interface.outputs.into_iter().map(|port| port.name).zip(results).collect())
}

fn bind(block: &BlockRef<'_, '_>, inputs: &[Tensor]) -> Result<BTreeMap<usize, Tensor>, String> {
    if block.argument_count() != inputs.len() {
        return Err(format!("expected {} inputs, found {}", block.argument_count(), inputs.len()));
    }
    let mut values = BTreeMap::new();
    for (index, input) in inputs.iter().enumerate() {
        let argument = block.argument(index).map_err(|error| error.to_string())?;
        let expected = tl::tensor_type_of(argument.r#type())?;
        if expected != *input.ty() {
            return Err(format!("input {index}: expected {expected}, found {}", input.ty()));
        }
        values.insert(key(argument.into()), input.clone());
    }
    Ok(values)
}

fn lookup<'v>(
    values: &'v BTreeMap<usize, Tensor>,
    value: Value<'_, '_>,
) -> Result<&'v Tensor, String> {
    values.get(&key(value)).ok_or_else(|| "an operand comes from outside the body".to_owned())
}

fn evaluate_op(op: OperationRef<'_, '_>, operands: &[&Tensor]) -> Result<Vec<Tensor>, String> {
    if read::op_name(&op) == tl::GROUP {
        let inputs: Vec<_> = operands.iter().map(|operand| (*operand).clone()).collect();
        return evaluate(op, &inputs);
    }
    if let Some(algorithm) = tl::algorithm_of(op)? {
        return algorithm.eval(operands).map_err(|error| error.to_string());
    }
    let result = tl::op_of(op)?.eval(operands).map_err(|error| error.to_string())?;
    Ok(vec![result])
}

/// The identity of a value while its function exists.
fn key(value: Value<'_, '_>) -> usize {
    value.to_raw().ptr as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use irc_mlir::walk_collect;
    use irc_tensor::DType;

    fn run(text: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let context = irc_dialects::new_context();
        let module = irc_mlir::parse_module(&context, text).expect("the text parses");
        let functions = walk_collect(module.as_operation(), |op| read::op_name(&op) == func::FUNC);
        evaluate(functions[0], inputs)
    }

    const GROUP: &str = r#"
        func.func @f(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %y, %z = tl.group "elementwise"(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          ^bb0(%a: tensor<2xf32>):
            %b = tl.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
            %c = tl.relu %b : tensor<2xf32>
            tl.yield %b, %c : tensor<2xf32>, tensor<2xf32>
          }
          return %z, %y : tensor<2xf32>, tensor<2xf32>
        }"#;

    #[test]
    fn a_group_means_its_body() {
        let x = Tensor::from_values([2], &[1.5_f32, -2.0]).expect("a tensor");
        let found = run(GROUP, &[x]).expect("it evaluates");
        assert_eq!(found[0].to_f64(), [3.0, 0.0]);
        assert_eq!(found[1].to_f64(), [3.0, -4.0]);
    }

    #[test]
    fn inputs_are_checked() {
        assert_eq!(run(GROUP, &[]), Err("expected 1 inputs, found 0".into()));
        let x = Tensor::zeros(irc_tensor::TensorType::new(DType::F16, [2])).expect("a tensor");
        assert_eq!(run(GROUP, &[x]), Err("input 0: expected f32[2], found f16[2]".into()));
    }
}
