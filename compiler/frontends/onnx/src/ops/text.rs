//! Counts of n-grams.

use super::indexing::{all, loops};
use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use irc_tl::{Combine, Comparison, Compute, DType, Dim, Scalar, Tensor, ValueId};

pub(super) const OPERATORS: &[Operator] = &[Operator::new("TfIdfVectorizer", &[9], vectorize)];

/// Limit of the columns of the result.
const MAX_COLUMNS: i64 = 1 << 24;

/// Limit of the columns times the n-grams that share one.
const MAX_SHARED: usize = 1 << 27;

/// How often n-grams of a pool occur in rows of numbers, or of strings by their handles, as columns.
///
/// An n-gram occurs at a position with a distance: its numbers are `distance` apart, from 1
/// to `max_skip_count + 1`. Single numbers have no distance.
fn vectorize(cx: &mut Context<'_>) -> Lowered {
    let x = cx.input(0)?;
    let ints = |name: &str| cx.ints(name)?.ok_or_else(|| cx.missing(name));
    let int = |name: &str| cx.int(name)?.ok_or_else(|| cx.missing(name));
    let pool = match cx.texts("pool_strings")? {
        Some(pool) => pool.iter().map(|text| cx.b.handle(text)).collect(),
        None => ints("pool_int64s")?,
    };
    let is_text = cx.attribute("pool_strings").is_some();
    let (starts, columns) = (ints("ngram_counts")?, ints("ngram_indexes")?);
    let (least, most) = (int("min_gram_length")?.max(1), int("max_gram_length")?);
    let skips = int("max_skip_count")?;
    let ty = cx.ty(x);
    let single = ty.rank() == 1;
    let is_row = if is_text { ty.dtype == DType::String } else { ty.dtype.is_integer() };
    if !(1..=2).contains(&ty.rank()) || !is_row {
        let expected = if is_text { "strings" } else { "integers" };
        return Err(LowerError::invalid(format!("expected rows of {expected}, found {ty}")));
    }
    let length = ty.dims[ty.rank() - 1].clone();
    let rows = if single { Dim::Known(1) } else { ty.dims[0].clone() };
    let x = cx.b.reshape(x, &[rows.clone(), length.clone()])?;
    let x = cx.b.cast(x, DType::I64)?;
    if columns.iter().any(|column| !(0..MAX_COLUMNS).contains(column)) {
        let message = format!("expected columns from 0 to {MAX_COLUMNS} (exclusive)");
        return Err(LowerError::invalid(message));
    }
    let width = columns.iter().max().map_or(0, |last| last + 1);
    let mut counts: Option<ValueId> = None;
    let mut first = 0;
    for size in 1..=starts.len() as i64 {
        let from = starts[size as usize - 1];
        let to = starts.get(size as usize).copied().unwrap_or(pool.len() as i64);
        let grams = usize::try_from(from).ok().zip(usize::try_from(to).ok());
        let grams = grams.and_then(|(from, to)| pool.get(from..to));
        let grams = grams.filter(|grams| grams.len() as i64 % size == 0);
        let grams =
            grams.ok_or_else(|| LowerError::invalid("`ngram_counts` do not fit the pool"))?;
        let own = grams.len() / size as usize;
        let places = columns.get(first..first + own);
        let places =
            places.ok_or_else(|| LowerError::invalid("expected a column for every n-gram"))?;
        first += own;
        if own == 0 || !(least..=most).contains(&size) {
            continue;
        }
        let reach = if size == 1 { 1 } else { skips.max(0).saturating_add(1) };
        let grams = Grams { size, grams, places, reach };
        let more = grams.count(cx, x, width)?;
        counts = Some(match counts {
            Some(counts) => cx.b.binary(irc_tl::Binary::Add, counts, more)?,
            None => more,
        });
    }
    let counts = match counts {
        Some(counts) => counts,
        None => cx.b.fill(0.0, &[rows, width.into()], DType::F32)?,
    };
    let weighted = weigh(cx, counts, &columns, width)?;
    if single { one(cx.b.reshape(weighted, &[width.into()])) } else { Ok(vec![weighted]) }
}

/// N-grams of one length.
struct Grams<'p> {
    size: i64,
    grams: &'p [i64],
    places: &'p [i64],
    reach: i64,
}

impl Grams<'_> {
    /// The counts by row and column, of `width` columns.
    fn count(&self, cx: &mut Context<'_>, x: ValueId, width: i64) -> Result<ValueId, LowerError> {
        let counts = self.count_grams(cx, x)?;
        let mut sum: Option<ValueId> = None;
        for numbers in self.numbers(width)? {
            let numbers = cx.b.integers(&numbers)?;
            let number = || Scalar::load(1, [Scalar::Loop(1)]);
            let place = number().max(Scalar::index(0));
            let count = Scalar::load(0, [Scalar::Loop(0), place]);
            let none = Scalar::float(0.0, DType::F32);
            let body = number().lt(Scalar::index(0)).select(none, count);
            let dims = [cx.b.dims(x)[0].clone(), width.into()];
            let own = cx.b.compute(Compute::map(dims, body), &[counts, numbers])?;
            sum = Some(match sum {
                Some(sum) => cx.b.binary(irc_tl::Binary::Add, sum, own)?,
                None => own,
            });
        }
        sum.ok_or_else(|| LowerError::invalid("expected a column for every n-gram"))
    }

    /// For each column the number of its n-gram, or -1; several lists if n-grams share columns.
    fn numbers(&self, width: i64) -> Result<Vec<Vec<i64>>, LowerError> {
        let mut lists: Vec<Vec<i64>> = vec![];
        let mut used = vec![0; width.max(0) as usize];
        for (number, column) in self.places.iter().enumerate() {
            let column = *column as usize;
            if used[column] == lists.len() {
                if (lists.len() + 1) * used.len() > MAX_SHARED {
                    let message = "too many n-grams share one of many columns";
                    return Err(LowerError::unsupported(message));
                }
                lists.push(vec![-1; used.len()]);
            }
            lists[used[column]][column] = number as i64;
            used[column] += 1;
        }
        Ok(lists)
    }

    /// The counts by row and n-gram.
    fn count_grams(&self, cx: &mut Context<'_>, x: ValueId) -> Result<ValueId, LowerError> {
        let (rows, length) = (cx.b.dims(x)[0].clone(), cx.b.dims(x)[1].clone());
        let grams = cx.b.integers(self.grams)?;
        // Loops: row, n-gram; position, distance less 1.
        let [gram, position] = [Scalar::Loop(1), Scalar::Loop(2)];
        let distance = || Scalar::Loop(3) + Scalar::index(1);
        let at = |number: i64| position.clone() + distance() * Scalar::index(number);
        let fits = at(self.size - 1).lt(Scalar::Size(length.clone()));
        let equal = (0..self.size).map(|number| {
            let wanted = gram.clone() * Scalar::index(self.size) + Scalar::index(number);
            let found = Scalar::load(0, [Scalar::Loop(0), at(number)]);
            found.equals(Scalar::load(1, [wanted]))
        });
        let met = fits.select(all(equal), Scalar::Int(0, DType::Bool));
        // No distance is longer than a row.
        let reach = Dim::Known(self.reach).minimum(&length);
        let over = [length, reach];
        let dims = [rows, Dim::Known(self.places.len() as i64)];
        let count = Compute::reduce(dims, Combine::Sum, over, met.cast(DType::F32));
        Ok(cx.b.compute(count, &[x, grams])?)
    }
}

/// The counts (`TF`), whether they are positive (`IDF`), or weighted counts (`TFIDF`).
fn weigh(
    cx: &mut Context<'_>,
    counts: ValueId,
    columns: &[i64],
    width: i64,
) -> Result<ValueId, LowerError> {
    let mode = cx.string("mode")?.ok_or_else(|| cx.missing("mode"))?;
    if mode == "TF" {
        return Ok(counts);
    }
    let given = cx.floats("weights")?;
    let mut weights = vec![1.0f32; width.max(0) as usize];
    for (column, weight) in columns.iter().zip(given.iter().flatten()) {
        if let Some(own) = usize::try_from(*column).ok().and_then(|at| weights.get_mut(at)) {
            *own = *weight;
        }
    }
    let weights = Tensor::from_values([width], &weights);
    let weights = weights.map_err(|error| LowerError::invalid(error.to_string()))?;
    let weights = cx.b.tensor(&weights);
    let (count, weight) = (Scalar::load(0, loops(0..2)), Scalar::load(1, [Scalar::Loop(1)]));
    let none = Scalar::float(0.0, DType::F32);
    let body = match mode.as_str() {
        "IDF" => count.compare(Comparison::Gt, none.clone()).select(weight, none),
        "TFIDF" => count * weight,
        other => return Err(LowerError::invalid(format!("unknown mode '{other}'"))),
    };
    let dims = cx.b.dims(counts);
    Ok(cx.b.compute(Compute::map(dims, body), &[counts, weights])?)
}
