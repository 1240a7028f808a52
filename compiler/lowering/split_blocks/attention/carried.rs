//! What passes from the kernel of some columns of attention to that of the next ones.
use irc_dialects::tl;
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, OperationRef, Type, Value,
    ValueLike, ops::func, read, rebind, replace_all_uses, set_operand, uses,
};
use irc_tl::{Binary, Comparison, DType, Op, TensorType, Unary};

/// The columns that a kernel computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Some that others follow: the kernel returns what passes on.
    First,
    /// The last ones: the kernel returns the result.
    Last,
}

/// What a kernel takes after its operands, and what it returns: for a causal mask, the numbers of columns and of
/// those that each row sees; the highest score of each row, the sum of powers, and the sum of values.
pub(super) struct Carried<'c> {
    pub(super) arguments: Vec<Type<'c>>,
    pub(super) returned: Vec<Type<'c>>,
}

/// Adds what passes on to the body of a kernel that computes all columns.
pub(super) fn add<'c>(
    context: &'c Context,
    block: &Block<'c>,
    part: Part,
    is_causal: bool,
) -> Result<Carried<'c>, String> {
    let ops = ops_of(block);
    let of_name = |name: &str| {
        let found: Vec<_> = ops.iter().copied().filter(|op| read::op_name(op) == name).collect();
        found
    };
    let [highest] = of_name("tl.reduce_max")[..] else { return Err("expected a maximum".into()) };
    let [sum] = of_name("tl.reduce_sum")[..] else { return Err("expected a sum".into()) };
    let [_, product] = of_name("tl.matmul")[..] else { return Err("expected two products".into()) };
    let masks = match is_causal {
        true => add_mask(context, block, highest)?,
        false => vec![],
    };
    let results = [highest, sum, product].map(|op| op.result(0).map(Value::from));
    let mut arguments = vec![];
    for result in results {
        let ty = result.map_err(|error| error.to_string())?.r#type();
        arguments.push((ty, block.add_argument(ty, highest.location())));
    }
    let [(highest_type, old_highest), (sum_type, old_sum), (product_type, old_product)] =
        arguments[..]
    else {
        return Err("expected three results".into());
    };

    let after = |op, work: Binary, other| combine(context, op, work, other);
    let new_highest = after(highest, Binary::Max, old_highest)?;
    let next = new_highest.next_in_block().ok_or("expected a reader of a maximum")?;
    let own: Value = new_highest.result(0).map_err(|error| error.to_string())?.into();
    let moved = before(context, next, Op::Binary(Binary::Sub), &[old_highest, own])?;
    let factor = before(context, next, Op::Unary(Unary::Exp), &[moved])?;
    let scaled = before(context, sum, Op::Binary(Binary::Mul), &[old_sum, factor])?;
    let new_sum = after(sum, Binary::Add, scaled)?;
    let scaled = before(context, product, Op::Binary(Binary::Mul), &[old_product, factor])?;
    let new_product = after(product, Binary::Add, scaled)?;

    let end = *ops.last().ok_or("has no body")?;
    if part == Part::First {
        let carried = [new_highest, new_sum, new_product].map(|op| op.result(0).map(Value::from));
        let carried: Vec<Value> =
            carried.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        OpSpec::new(context, func::RETURN, end.location()).operands(&carried).append(block);
        end.erase();
        for op in ops_of(block).into_iter().rev().skip(1) {
            let mut results = op.results();
            if results.all(|result| uses(Value::from(result)).is_empty()) {
                op.erase();
            }
        }
    }
    let end = *ops_of(block).last().ok_or("has no body")?;
    let returned = end.operands().map(|value| value.r#type()).collect();
    let arguments = masks.into_iter().chain([highest_type, sum_type, product_type]).collect();
    Ok(Carried { arguments, returned })
}

/// Adds a mask of the scores of columns that rows do not see, before their maximum; returns the types of its arguments.
fn add_mask<'c>(
    context: &'c Context,
    block: &Block<'c>,
    highest: OperationRef<'c, '_>,
) -> Result<Vec<Type<'c>>, String> {
    let scores = highest.operand(0).map_err(|error| error.to_string())?;
    let shape = tl::tensor_type_of(scores.r#type())?.shape;
    let (outer, [rows, columns]) = shape.split_last_chunk().ok_or("expected a matrix of scores")?;
    let units = outer.iter().map(|_| 1);
    let arguments = [[1, *columns], [*rows, 1]].map(|own| {
        let shape: Vec<i64> = units.clone().chain(own).collect();
        let ty = tl::tensor_type_to_mlir(context, &TensorType::new(DType::I32, shape));
        (ty, block.add_argument(ty, highest.location()))
    });
    let [(_, numbers), (_, seen)] = arguments;
    let (numbers, seen) = (rebind(numbers), rebind(seen));
    let shown = before(context, highest, Op::Compare(Comparison::Lt), &[numbers, seen])?;
    let low = before(context, highest, Op::fill(f64::NEG_INFINITY, [], DType::F32), &[])?;
    let masked = before(context, highest, Op::Select, &[shown, scores, low])?;
    let own = read::defining_op(masked).ok_or("expected an op")?;
    replace_all_uses(scores, masked);
    set_operand(own, 1, scores);
    Ok(arguments.map(|(ty, _)| ty).to_vec())
}

fn ops_of<'c: 'b, 'b>(block: &'b Block<'c>) -> Vec<OperationRef<'c, 'b>> {
    let mut ops = vec![];
    let mut next = block.first_operation();
    while let Some(op) = next {
        ops.push(op);
        next = op.next_in_block();
    }
    ops
}

/// Adds an op before another one.
fn before<'c: 'b, 'b>(
    context: &'c Context,
    next: OperationRef<'c, 'b>,
    work: Op,
    operands: &[Value<'c, 'b>],
) -> Result<Value<'c, 'b>, String> {
    let block: BlockRef = next.block().ok_or("expected an op in a block")?;
    let built = tl::build(context, &work, operands, next.location())?;
    let built = block.insert_operation_before(next, built);
    Ok(rebind(built.result(0).map_err(|error| error.to_string())?.into()))
}

/// Combines what an op computes with another value, for all of its readers.
fn combine<'c: 'b, 'b>(
    context: &'c Context,
    op: OperationRef<'c, 'b>,
    work: Binary,
    other: Value<'c, 'b>,
) -> Result<OperationRef<'c, 'b>, String> {
    let next = op.next_in_block().ok_or("expected an op that does not end a block")?;
    let own: Value = op.result(0).map_err(|error| error.to_string())?.into();
    let both = before(context, next, Op::Binary(work), &[own, other])?;
    replace_all_uses(own, both);
    let added = read::defining_op(both).ok_or("expected an op")?;
    set_operand(added, 0, own);
    Ok(added)
}
