//! Finds causal masks of scores in the forms that models have.
//!
//! A mask is composed of ops on the numbers of queries and keys: ranges that are compared, triangles of ones (`Trilu`),
//! constants (see `graph_to_tl`), converted, broadcast and combined, and finally added to the scores or selecting among
//! them. What they compute for a score is one expression with one comparison. If the expression is the score where a key is
//! not after its query, and otherwise hides it, the op on the scores becomes `select(j <= i + offset, score, -inf)`.
use super::causal::HIDDEN;
use super::open::is_from_product;
use irc_dialects::tl;
use irc_mlir::{
    BlockLike, Erase, OperationLike, OperationRef, Value, ValueLike, context_of, read, rebind,
    replace_all_uses, uses,
};
use irc_tl::{Binary, Comparison, Compute, DType, Dim, Op, Scalar, Type};

/// The maximum number of ops that a mask is composed of, one after the other.
const MAX_DEPTH: usize = 32;

/// The maximum number of parts of the expression of a mask.
const MAX_PARTS: usize = 512;

/// Rewrites the causal masks of a function.
///
/// # Errors
/// If an op cannot be built.
pub fn state_masks<'c: 'a, 'a>(func: OperationRef<'c, 'a>) -> Result<(), String> {
    let context = context_of(&func);
    let mut has_any = false;
    for op in read::body_ops(func) {
        let Some((scores, compute)) = causal_mask(op) else { continue };
        let message = |error: irc_mlir::melior::Error| error.to_string();
        let block = op.block().ok_or("expected an op in a block")?;
        let built = tl::build(context, &Op::compute(compute), &[scores], op.location())?;
        let built = block.insert_operation_before(op, built);
        let (old, new) = (op.result(0).map_err(message)?, built.result(0).map_err(message)?);
        replace_all_uses(old.into(), rebind(new.into()));
        op.erase();
        has_any = true;
    }
    if has_any {
        // What masks were composed of.
        for op in read::body_ops(func).into_iter().rev() {
            let is_unused = op.results().all(|result| uses(Value::from(result)).is_empty());
            let is_pure = tl::op_of(op).is_ok() || tl::is_view(&op);
            if is_unused && op.result_count() == 1 && is_pure {
                op.erase();
            }
        }
    }
    Ok(())
}

/// The scores that an op masks before a softmax, and the mask.
fn causal_mask<'c: 'a, 'a>(op: OperationRef<'c, 'a>) -> Option<(Value<'c, 'a>, Compute)> {
    let result: Value = (op.result_count() == 1).then(|| op.result(0).ok())??.into();
    // The maximum of each row, and the differences from it.
    if op.operand_count() < 2 || uses(result).len() != 2 {
        return None;
    }
    let compute = compute_of(op)?;
    let rank = compute.dims.len();
    let operands: Vec<Value> = op.operands().collect();
    let is_scores = |value: &Value<'c, 'a>| {
        let ty = tl::type_of(value.r#type());
        ty.is_ok_and(|ty| ty.dtype == DType::F32 && ty.dims == compute.dims)
            && uses(*value).len() == 1
            && is_from_product(*value, &compute.dims, 0)
    };
    let at = (rank >= 3).then(|| operands.iter().position(is_scores))??;
    let own: Vec<Scalar> = (0..rank).map(Scalar::Loop).collect();
    let mut is_pure = true;
    let body = compute.body.replace(&mut |part| match part {
        Scalar::Load(operand, index) if *operand == at => {
            // Dimensions of 1 may be read at 0.
            let is_own = |(dim, at): (usize, &Scalar)| {
                *at == own[dim] || compute.dims[dim].is(1) && *at == Scalar::index(0)
            };
            is_pure &= index.len() == rank && index.iter().enumerate().all(is_own);
            Some(Scalar::load(0, own.clone()))
        }
        Scalar::Load(operand, index) => {
            let Some(expression) = expression_of(operands[*operand], 0) else {
                is_pure = false;
                return None;
            };
            Some(at_indices(&expression, index))
        }
        _ => None,
    });
    let mut parts = 0;
    body.walk(&mut |_| parts += 1);
    if !is_pure || parts > MAX_PARTS {
        return None;
    }
    let condition = condition_of(&body)?;
    let with = |holds: i64| {
        body.replace(&mut |part| (*part == condition).then_some(Scalar::Int(holds, DType::Bool)))
    };
    let [yes, no] = [1, 0].map(|holds| folded(&with(holds)));
    let distance = distance(&condition, rank)?;
    // Not negative where a key is seen.
    let (query, key, offset) = match (is_score(&yes) && hides(&no), is_score(&no) && hides(&yes)) {
        (true, _) => distance,
        (_, true) => (-distance.0, -distance.1, -distance.2 - 1.into()),
        _ => return None,
    };
    let is_size = offset.terms().iter().all(|(factor, _)| *factor >= 0);
    if (query, key) != (1, -1) || !is_size {
        return None;
    }
    let size = offset.known().map_or_else(|| Scalar::Size(offset.clone()), Scalar::index);
    let [row, column] = [rank - 2, rank - 1].map(Scalar::Loop);
    let low = Scalar::float(f64::NEG_INFINITY, DType::F32);
    let seen = column.compare(Comparison::Le, row + size);
    let body = seen.select(Scalar::load(0, own), low);
    Some((operands[at], Compute::map(compute.dims, body)))
}

/// An op without reduction as an expression of its operands.
fn compute_of(op: OperationRef<'_, '_>) -> Option<Compute> {
    let found = tl::op_of(op).ok()?;
    let types = tl::symbolic_operand_types(op).ok()?;
    found.as_compute(&types).filter(|compute| compute.reduction.is_none())
}

/// What a value is at the indices that loops count, if it depends on nothing else.
fn expression_of<'c: 'a, 'a>(value: Value<'c, 'a>, depth: usize) -> Option<Scalar> {
    let op = read::defining_op(value).filter(|_| depth < MAX_DEPTH)?;
    if tl::is_view(&op) {
        let [from, to] = [op.operand(0).ok()?, value].map(|it| tl::type_of(it.r#type()).ok());
        let indices = unit_view(&from?, &to?)?;
        return Some(at_indices(&expression_of(op.operand(0).ok()?, depth + 1)?, &indices));
    }
    let compute = compute_of(op)?;
    let operands: Vec<Value> = op.operands().collect();
    let mut is_pure = true;
    let body = compute.body.replace(&mut |part| {
        let Scalar::Load(operand, index) = part else { return None };
        let Some(expression) = expression_of(operands[*operand], depth + 1) else {
            is_pure = false;
            return None;
        };
        Some(at_indices(&expression, index))
    });
    let mut parts = 0;
    body.walk(&mut |_| parts += 1);
    (is_pure && parts <= MAX_PARTS).then_some(body)
}

/// The indices of an operand at those of a view that only adds or removes dimensions of 1.
fn unit_view(from: &Type, to: &Type) -> Option<Vec<Scalar>> {
    let mut wide = (0..to.rank()).filter(|dim| !to.dims[*dim].is(1));
    let mut indices = vec![];
    for dim in &from.dims {
        indices.push(match dim.is(1) {
            true => Scalar::index(0),
            false => {
                let next = wide.next().filter(|next| to.dims[*next] == *dim)?;
                Scalar::Loop(next)
            }
        });
    }
    (wide.next().is_none() && from.dtype == to.dtype).then_some(indices)
}

/// An expression at other indices.
fn at_indices(expression: &Scalar, indices: &[Scalar]) -> Scalar {
    expression.replace(&mut |part| match part {
        Scalar::Loop(number) => indices.get(*number).cloned(),
        _ => None,
    })
}

/// The only comparison of an expression that depends on loops.
fn condition_of(body: &Scalar) -> Option<Scalar> {
    let mut found: Vec<Scalar> = vec![];
    body.walk(&mut |part| {
        let Scalar::Compare(_, left, right) = part else { return };
        let (mut is_inner, mut depends) = (true, false);
        for side in [left, right] {
            side.walk(&mut |part| {
                is_inner &= !matches!(part, Scalar::Compare(..) | Scalar::Load(..));
                depends |= matches!(part, Scalar::Loop(_));
            });
        }
        if is_inner && depends && !found.contains(part) {
            found.push(part.clone());
        }
    });
    let [condition] = &found[..] else { return None };
    Some(condition.clone())
}

/// A difference that is not negative where a comparison holds: the factors of the numbers of the query and of the key, and
/// a size.
fn distance(condition: &Scalar, rank: usize) -> Option<(i64, i64, Dim)> {
    let Scalar::Compare(comparison, left, right) = condition else { return None };
    let (left, right) = (affine(left, rank)?, affine(right, rank)?);
    let minus = |x: (i64, i64, Dim), y: (i64, i64, Dim)| (x.0 - y.0, x.1 - y.1, x.2 - y.2);
    let (difference, is_strict) = match comparison {
        Comparison::Le => (minus(right, left), false),
        Comparison::Lt => (minus(right, left), true),
        Comparison::Ge => (minus(left, right), false),
        Comparison::Gt => (minus(left, right), true),
        Comparison::Eq | Comparison::Ne => return None,
    };
    let (query, key, size) = difference;
    Some((query, key, if is_strict { size - 1.into() } else { size }))
}

/// A sum of multiples of the numbers of the query and of the key, and of a size.
fn affine(scalar: &Scalar, rank: usize) -> Option<(i64, i64, Dim)> {
    if let Some(Scalar::Int(value, DType::I64 | DType::I32)) = number_of(scalar) {
        return Some((0, 0, value.into()));
    }
    match scalar {
        Scalar::Loop(number) if *number + 2 == rank => Some((1, 0, 0.into())),
        Scalar::Loop(number) if *number + 1 == rank => Some((0, 1, 0.into())),
        Scalar::Size(size) => Some((0, 0, size.clone())),
        Scalar::Cast(DType::I64 | DType::I32, _, inner) => affine(inner, rank),
        Scalar::Binary(function, x, y) => {
            let (x, y) = (affine(x, rank)?, affine(y, rank)?);
            match function {
                Binary::Add => Some((x.0 + y.0, x.1 + y.1, x.2 + y.2)),
                Binary::Sub => Some((x.0 - y.0, x.1 - y.1, x.2 - y.2)),
                Binary::Mul => {
                    let (by, of) = match (x.2.known(), y.2.known()) {
                        (Some(by), _) if (x.0, x.1) == (0, 0) => (by, y),
                        (_, Some(by)) if (y.0, y.1) == (0, 0) => (by, x),
                        _ => return None,
                    };
                    Some((by * of.0, by * of.1, of.2 * by.into()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// An expression with numbers for the parts that depend on nothing.
fn folded(scalar: &Scalar) -> Scalar {
    if let Some(number) = number_of(scalar) {
        return number;
    }
    match scalar {
        Scalar::Select(parts) => {
            let [condition, yes, no] = &**parts;
            match folded(condition) {
                Scalar::Int(0, DType::Bool) => folded(no),
                Scalar::Int(_, DType::Bool) => folded(yes),
                condition => condition.select(folded(yes), folded(no)),
            }
        }
        Scalar::Binary(function, x, y) => folded(x).binary(*function, folded(y)),
        _ => scalar.clone(),
    }
}

/// The number that an expression without operands, loops and sizes is.
fn number_of(scalar: &Scalar) -> Option<Scalar> {
    if matches!(scalar, Scalar::Float(..) | Scalar::Int(..)) {
        return Some(scalar.clone());
    }
    let mut is_constant = true;
    scalar.walk(&mut |part| {
        is_constant &= !matches!(part, Scalar::Load(..) | Scalar::Loop(_) | Scalar::Size(_));
    });
    let dtype = is_constant.then(|| scalar.dtype(&[], 0).ok())??;
    let value = Op::compute(Compute::map(Vec::<Dim>::new(), scalar.clone())).eval(&[]).ok()?;
    value.to_f64().first().map(|value| match dtype.is_float() {
        true => Scalar::float(*value, dtype),
        false => Scalar::Int(*value as i64, dtype),
    })
}

/// Whether a folded expression is the score.
fn is_score(scalar: &Scalar) -> bool {
    let is_zero =
        |scalar: &Scalar| matches!(scalar, Scalar::Float(bits, _) if f64::from_bits(*bits) == 0.0);
    match scalar {
        Scalar::Load(..) => true,
        Scalar::Binary(Binary::Add, x, y) => is_score(x) && is_zero(y) || is_zero(x) && is_score(y),
        _ => false,
    }
}

/// Whether a folded expression hides the score.
fn hides(scalar: &Scalar) -> bool {
    match scalar {
        Scalar::Float(bits, _) => f64::from_bits(*bits) <= HIDDEN,
        Scalar::Binary(Binary::Add, x, y) => is_score(x) && hides(y) || hides(x) && is_score(y),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_is_seen() -> Scalar {
        Scalar::Loop(2).compare(Comparison::Le, Scalar::Loop(1) + Scalar::index(4))
    }

    #[test]
    fn comparisons_are_distances() {
        let [query, key] = [1, 2].map(Scalar::Loop);
        let n = || Dim::symbol("n");
        assert_eq!(distance(&key_is_seen(), 3), Some((1, -1, 4.into())));
        let before = key.clone().lt(query.clone() + Scalar::Size(n()));
        assert_eq!(distance(&before, 3), Some((1, -1, n() - 1.into())));
        let zero = Scalar::float(0.0, DType::F64).cast(DType::I64);
        let after = zero + key.clone() - query.clone();
        let after = after.compare(Comparison::Gt, Scalar::Size(n()));
        assert_eq!(distance(&after, 3), Some((-1, 1, -n() - 1.into())));
        assert_eq!(distance(&key.clone().equals(query.clone()), 3), None);
        assert_eq!(distance(&(key.clone() * key).lt(query), 3), None);
    }

    #[test]
    fn terms_and_selections_fold() {
        let number = |value: f64| Scalar::float(value, DType::F32);
        let score = || Scalar::load(0, [Scalar::Loop(0), Scalar::Loop(1), Scalar::Loop(2)]);
        let ones = key_is_seen().select(number(1.0), number(0.0));
        let term = (number(1.0) - ones.clone()) * number(-1e9);
        let hidden = ones.cast(DType::Bool).select(score(), number(-1e5));
        for body in [score() + term, hidden] {
            let condition = condition_of(&body).expect("a condition");
            let with = |holds: i64| {
                folded(&body.replace(&mut |part| {
                    (*part == condition).then_some(Scalar::Int(holds, DType::Bool))
                }))
            };
            assert!(is_score(&with(1)) && hides(&with(0)), "{:?} {:?}", with(1), with(0));
            assert!(!is_score(&with(0)) && !hides(&with(1)));
        }
        assert!(!hides(&number(-9e3)));
    }
}
