//! Operators on the characters of strings.
//!
//! Each is built from functions of single elements (`irc_host`): what depends on how many parts a string
//! has is first counted, and then each part is computed by its index.

use super::indexing::{counted, loops};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{
    Algorithm, Binary, Built, Combine, Compute, DType, Dim, Function, Relation, Scalar, Separator,
    Splitter, Tensor, ValueId,
};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::new("RegexFullMatch", &[20], |cx| {
        let x = cx.input(0)?;
        let pattern = cx.string("pattern")?.ok_or_else(|| cx.missing("pattern"))?;
        let function = Function::matches(&pattern);
        one(cx.b.host(function.map_err(LowerError::unsupported)?, &[x]))
    }),
    Operator::new("StringConcat", &[20], |cx| {
        let operands = [cx.input(0)?, cx.input(1)?];
        one(cx.b.host(Function::Concat, &operands))
    }),
    Operator::new("StringNormalizer", &[10], normalize),
    Operator::new("StringSplit", &[20], split),
];

/// The parts of each string, filled up with empty strings, and their numbers.
fn split(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let delimiter = cx.bytes("delimiter")?.unwrap_or_default().to_vec();
    // The attribute is the number of places at which a string is split.
    let most = cx.int("maxsplit")?.and_then(|most| u64::try_from(most).ok());
    let max_parts = most.map(|most| most.saturating_add(1));
    let splitter = Splitter::Delimiter(Separator { delimiter, max_parts });
    let counts = cx.b.host(Function::CountParts(splitter.clone()), &[x])?;
    let length = largest(cx, counts)?;
    let length = counted(cx.b, length)?;
    let parts = parts(cx, x, &length, 0, Function::Part(splitter))?;
    Ok(vec![parts, counts])
}

/// The largest of counts, a scalar; 0 if there are none.
pub(super) fn largest(cx: &mut Context<'_>, counts: ValueId) -> Built {
    let dims = cx.b.dims(counts);
    let count = Scalar::load(0, loops(0..dims.len()));
    let most = cx.b.compute(Compute::reduce([], Combine::Max, dims, count), &[counts])?;
    let none = cx.b.scalar(0.0, DType::I64)?;
    cx.b.binary(Binary::Max, most, none)
}

/// For each string, its parts along a new last dimension of a length. The first part has the index `first`; where
/// there is no part there is an empty string.
pub(super) fn parts(
    cx: &mut Context<'_>,
    x: ValueId,
    length: &Dim,
    first: i64,
    part: Function,
) -> Built {
    let mut dims = cx.b.dims(x);
    dims.push(Dim::Known(1));
    let strings = cx.b.reshape(x, &dims)?;
    let index = Scalar::Loop(0) - Scalar::index(first);
    let indices = cx.b.compute(Compute::map([length.clone()], index), &[])?;
    cx.b.host(part, &[strings, indices])
}

/// Strings without stop words, in upper or lower case.
fn normalize(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let case = match cx.string_or("case_change_action", "NONE")?.as_str() {
        "NONE" => None,
        "LOWER" => Some(Function::Lower),
        "UPPER" => Some(Function::Upper),
        other => {
            let message =
                format!("expected `case_change_action` NONE, LOWER or UPPER, found {other}");
            return Err(LowerError::invalid(message));
        }
    };
    let dims = cx.b.dims(x);
    let is_row = match &dims[..] {
        [_] => true,
        [one, _] => one.known().is_none_or(|one| one == 1),
        _ => false,
    };
    if !is_row {
        let message = format!("expected strings of shape [C] or [1,C], found {}", cx.ty(x));
        return Err(LowerError::invalid(message));
    }
    if dims.len() == 2 {
        let message = "string_normalizer: expected strings of shape [C] or [1,C]";
        cx.b.require(&dims[0], Relation::Equal, &1.into(), message)?;
    }
    let message = "string_normalizer: expected at least one string";
    cx.b.require(&1.into(), Relation::AtMost, &dims[dims.len() - 1], message)?;
    let stop_words = cx.texts("stopwords")?.unwrap_or_default();
    let mut strings = x;
    if !stop_words.is_empty() {
        let sensitive = cx.int_or("is_case_sensitive", 0)? != 0;
        let row = cx.b.reshape(x, &dims[dims.len() - 1..])?;
        let stop_words: Vec<Vec<u8>> = stop_words
            .iter()
            .map(|word| if sensitive { word.to_vec() } else { irc_tl::lower(word) })
            .collect();
        let compared = match sensitive {
            true => row,
            false => cx.b.host(Function::Lower, &[row])?,
        };
        let row = without(cx, row, compared, &stop_words)?;
        let mut kept = dims;
        let last = kept.len() - 1;
        kept[last] = cx.b.dims(row)[0].clone();
        strings = cx.b.reshape(row, &kept)?;
    }
    match case {
        Some(case) => one(cx.b.host(case, &[strings])),
        None => Ok(vec![strings]),
    }
}

/// The strings of a row for which `compared` is not one of the words; one empty string if all are.
fn without(
    cx: &mut Context<'_>,
    row: ValueId,
    compared: ValueId,
    words: &[Vec<u8>],
) -> Result<ValueId, LowerError> {
    let kept = is_not_in(cx, compared, words)?;
    let found = cx.b.algorithm(Algorithm::NonZero, &[kept])?;
    let one = cx.b.scalar(1.0, DType::I64)?;
    let count = cx.b.binary(Binary::Max, found[1], one)?;
    let count = counted(cx.b, count)?;
    let empty = cx.b.strings(&[""])?;
    // The indices after the last string that is kept are zero, and none may be kept.
    let first = [Scalar::index(0), Scalar::Loop(0)];
    let any = Scalar::index(0).lt(Scalar::load(2, []));
    let body =
        any.select(Scalar::load(0, [Scalar::load(1, first)]), Scalar::load(3, [Scalar::index(0)]));
    let picked = Compute::map([count], body);
    Ok(cx.b.compute(picked, &[row, found[0], found[1], empty])?)
}

/// Whether each string is none of the words: a look-up by its handle.
fn is_not_in(cx: &mut Context<'_>, x: ValueId, words: &[Vec<u8>]) -> Result<ValueId, LowerError> {
    let handles: Vec<i64> = words.iter().map(|word| cx.b.handle(word)).collect();
    let first = handles.iter().copied().min().unwrap_or(0);
    let last = handles.iter().copied().max().unwrap_or(0);
    let mut table = vec![1u8; usize::try_from(last - first + 1).unwrap_or(1)];
    for handle in handles {
        table[(handle - first) as usize] = 0;
    }
    let table = Tensor::from_values([table.len() as i64], &table);
    let table = cx.b.tensor(&table.map_err(|error| LowerError::invalid(error.to_string()))?);
    let handle = || Scalar::load(0, [Scalar::Loop(0)]).cast(DType::I64);
    let place = (handle() - Scalar::index(first)).binary(Binary::Max, Scalar::index(0));
    let place = place.binary(Binary::Min, Scalar::index(last - first));
    let inside = Scalar::index(first - 1).lt(handle()).and(handle().lt(Scalar::index(last + 1)));
    let outside = Scalar::Int(1, DType::U8);
    let body = inside.select(Scalar::load(1, [place]), outside);
    let body = body.equals(Scalar::Int(1, DType::U8));
    Ok(cx.b.compute(Compute::map(cx.b.dims(x), body), &[x, table])?)
}
