//! Checks of `tl` ops that ODS cannot express.
use super::{
    AFTER, CONSTANT, GROUP, HOST, KINDS, LAUNCH, PROGRAM, YIELD, algorithm_of, function_of,
    is_view, op_of, symbolic_operand_types, tensor_type_of, type_of,
};
use irc_mlir::{BlockLike, OperationLike, OperationRef, RegionLike, Type, ValueLike, read};
use irc_tl::{Dim, Extents};

/// Checks a `tl` op against [`irc_tl::Op::infer`], and a group against its region.
///
/// # Errors
/// If the op is invalid.
pub fn verify(op: OperationRef<'_, '_>) -> Result<(), String> {
    match read::op_name(&op).as_str() {
        GROUP => verify_group(op),
        YIELD => verify_yield(op),
        // Its callee is checked when memory is planned: until then signatures may differ.
        LAUNCH => Ok(()),
        CONSTANT => verify_constant(op),
        AFTER => verify_after(op),
        HOST => verify_host(op),
        name if PROGRAM.contains(&name) => Ok(()),
        _ => verify_compute(op),
    }
}

fn verify_constant(op: OperationRef<'_, '_>) -> Result<(), String> {
    let result = op.result(0).map_err(|error| error.to_string())?;
    let ty = tensor_type_of(result.r#type())?;
    let expected = ty.byte_size().map_err(|error| error.to_string())?;
    match read::bytes(&op, "bytes") {
        Some(bytes) if bytes.len() == expected => Ok(()),
        found => {
            let found = found.map_or(0, |bytes| bytes.len());
            Err(format!("bytes: expected {expected} for {ty}, found {found}"))
        }
    }
}

fn verify_after(op: OperationRef<'_, '_>) -> Result<(), String> {
    let operand = op.operand(0).map_err(|error| error.to_string())?;
    let result = op.result(0).map_err(|error| error.to_string())?;
    same_types("result", &[operand.r#type()], &[result.r#type()])
}

fn verify_host(op: OperationRef<'_, '_>) -> Result<(), String> {
    let function = function_of(op)?;
    let operands = symbolic_operand_types(op)?;
    let types: Vec<_> = operands.iter().map(|ty| ty.dtype).collect();
    function.expect(&types).map_err(|error| error.to_string())?;
    let result = op.result(0).map_err(|error| error.to_string())?;
    let found = type_of(result.r#type())?;
    let dims = match function.extents() {
        Extents::OfOperands => operands[0].dims.clone(),
        Extents::Known(extents) => extents.iter().copied().map(Dim::Known).collect(),
        Extents::Stated(rank) if rank == found.rank() => found.dims.clone(),
        Extents::Stated(rank) => {
            return Err(format!("expected a result of {rank} dimensions, found {found}"));
        }
    };
    if let Some(other) = operands.iter().find(|ty| ty.dims != operands[0].dims) {
        return Err(format!("expected operands of one shape, found {} and {other}", operands[0]));
    }
    same_results(&[irc_tl::Type::new(function.result(), dims)], &[found])
}

fn verify_compute(op: OperationRef<'_, '_>) -> Result<(), String> {
    let operands = symbolic_operand_types(op)?;
    let results = op.results().map(|result| type_of(result.r#type()));
    let results = results.collect::<Result<Vec<_>, _>>()?;
    if let Some(algorithm) = algorithm_of(op)? {
        let expected = algorithm.infer(&operands).map_err(|error| error.message)?;
        return same_results(&expected, &results);
    }
    let known = operands.iter().chain(&results).all(|ty| ty.known().is_some());
    if !known && is_view(&op) {
        return verify_view(op, &operands[0], &results[0]);
    }
    let expected = op_of(op)?.infer_symbolic(&operands).map_err(|error| error.message)?;
    same_results(&[expected], &results)
}

fn same_results(expected: &[irc_tl::Type], found: &[irc_tl::Type]) -> Result<(), String> {
    match expected.iter().zip(found).find(|(expected, found)| expected != found) {
        None => Ok(()),
        Some((expected, found)) => Err(format!("result: expected {expected}, found {found}")),
    }
}

/// A view with symbolic sizes: whether they fit may not be known before run time.
fn verify_view(
    op: OperationRef<'_, '_>,
    operand: &irc_tl::Type,
    result: &irc_tl::Type,
) -> Result<(), String> {
    if read::op_name(&op) == "tl.reshape" && operand.dtype != result.dtype {
        return Err(format!("result: expected {} elements, found {result}", operand.dtype));
    }
    let bytes = |ty: &irc_tl::Type| ty.elements() * (ty.dtype.size() as i64).into();
    match (bytes(result) - bytes(operand)).known() {
        Some(difference) if difference != 0 => {
            Err(format!("result: expected as many bytes as {operand}, found {result}"))
        }
        _ => Ok(()),
    }
}

fn verify_group(op: OperationRef<'_, '_>) -> Result<(), String> {
    let kind = read::string(&op, "kind").unwrap_or_default();
    if !KINDS.contains(&kind.as_str()) {
        return Err(format!("kind: expected one of {}, found '{kind}'", KINDS.join(", ")));
    }
    let block = op.region(0).ok().and_then(|region| region.first_block());
    let block = block.ok_or("expected a body of one block, found none")?;
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let arguments: Vec<_> = arguments.map(|argument| argument.r#type()).collect();
    let operands: Vec<_> = op.operands().map(|operand| operand.r#type()).collect();
    same_types("region argument", &operands, &arguments)?;
    read::body_ops(op).into_iter().try_for_each(verify_nested)
}

fn verify_nested(op: OperationRef<'_, '_>) -> Result<(), String> {
    let name = read::op_name(&op);
    if name.starts_with("tl.") && name != GROUP {
        return Ok(());
    }
    Err(format!("expected compute ops of tl in a group, found '{name}'"))
}

fn verify_yield(op: OperationRef<'_, '_>) -> Result<(), String> {
    let group = op.parent_operation().filter(|parent| read::op_name(parent) == GROUP);
    let group = group.ok_or("expected to end a 'tl.group', found another parent")?;
    let results: Vec<_> = group.results().map(|result| result.r#type()).collect();
    let operands: Vec<_> = op.operands().map(|operand| operand.r#type()).collect();
    same_types("yielded value", &results, &operands)
}

fn same_types(what: &str, expected: &[Type<'_>], found: &[Type<'_>]) -> Result<(), String> {
    if expected.len() != found.len() {
        return Err(format!("expected {} {what}s, found {}", expected.len(), found.len()));
    }
    let differs = expected.iter().zip(found).position(|(expected, found)| expected != found);
    match differs {
        None => Ok(()),
        Some(at) => Err(format!("{what} {at}: expected {}, found {}", expected[at], found[at])),
    }
}
