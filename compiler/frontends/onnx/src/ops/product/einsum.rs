//! Einstein's summation convention.

use crate::context::{Context, LowerError, Lowered, one};
use crate::operator::Operator;
use crate::ops::pieces::size;
use irc_tl::{Builder, Built, Combine, Compute, Dim, Reduction, Relation, Scalar, ValueId};
use std::collections::BTreeMap;

pub(in crate::ops) const OPERATORS: &[Operator] = &[Operator::new("Einsum", &[12, 28], einsum)];

/// Label of a dimension: a letter, or a dimension of the ellipsis, counted from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(std::cmp::Reverse<usize>),
    Letter(char),
}

/// A value, and the label of each of its dimensions.
#[derive(Clone)]
struct Term {
    value: ValueId,
    labels: Vec<Label>,
}

fn einsum(cx: &mut Context<'_>) -> Lowered {
    let equation = cx.string("equation")?.ok_or_else(|| cx.missing("equation"))?;
    let values = cx.all_inputs()?;
    let (terms, result) = parse(cx, &equation, &values)?;
    let sizes = sizes(cx.b, &terms)?;
    if let Some(label) = result.iter().find(|label| !sizes.contains_key(label)) {
        let message = format!("expected {label:?} of the result of '{equation}' in an operand");
        return Err(LowerError::invalid(message));
    }
    let mut rest = terms.into_iter();
    let Some(mut joined) = rest.next() else {
        return Err(LowerError::invalid("expected operands, found none"));
    };
    let mut rest: Vec<Term> = rest.collect();
    while !rest.is_empty() {
        let next = rest.remove(0);
        let later = || rest.iter().flat_map(|term| &term.labels).chain(&result);
        let mut keep: Vec<Label> = vec![];
        for label in joined.labels.iter().chain(&next.labels) {
            if later().any(|other| other == label) && !keep.contains(label) {
                keep.push(*label);
            }
        }
        joined = pair(cx.b, &joined, &next, &keep, &sizes)?;
    }
    one(single(cx.b, &joined, &result, &sizes))
}

fn parse(
    cx: &Context<'_>,
    equation: &str,
    values: &[ValueId],
) -> Result<(Vec<Term>, Vec<Label>), LowerError> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let parts: Vec<&str> = left.split(',').collect();
    if parts.len() != values.len() {
        let message =
            format!("expected {} operands of '{equation}', found {}", parts.len(), values.len());
        return Err(LowerError::invalid(message));
    }
    let mut terms = vec![];
    let mut widest = 0;
    for (part, value) in parts.iter().zip(values) {
        let rank = cx.b.rank(*value);
        let letters = part.chars().filter(|c| *c != '.').count();
        let hidden = rank.checked_sub(letters);
        let fits = hidden.filter(|hidden| part.contains("...") || *hidden == 0);
        let Some(hidden) = fits else {
            let found = cx.ty(*value);
            return Err(LowerError::invalid(format!(
                "expected an operand '{part}', found {found}"
            )));
        };
        widest = widest.max(hidden);
        terms.push(Term { value: *value, labels: labels(part, hidden)? });
    }
    let result = match right {
        Some(right) => labels(right, widest)?,
        None => implied(&terms, widest),
    };
    Ok((terms, result))
}

/// The labels of one part of an equation, whose ellipsis represents so many dimensions.
fn labels(part: &str, hidden: usize) -> Result<Vec<Label>, LowerError> {
    let mut found = vec![];
    let letters = part.replacen("...", ".", 1);
    for c in letters.chars() {
        match c {
            '.' => found.extend((0..hidden).rev().map(|at| Label::Ellipsis(std::cmp::Reverse(at)))),
            c if c.is_ascii_alphabetic() => found.push(Label::Letter(c)),
            other => {
                let message = format!("expected letters in an equation, found '{other}'");
                return Err(LowerError::invalid(message));
            }
        }
    }
    Ok(found)
}

/// The labels of an implicit result: the ellipsis, then letters that occur once.
fn implied(terms: &[Term], widest: usize) -> Vec<Label> {
    let mut result: Vec<Label> =
        (0..widest).rev().map(|at| Label::Ellipsis(std::cmp::Reverse(at))).collect();
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for label in terms.iter().flat_map(|term| &term.labels) {
        *counts.entry(*label).or_default() += 1;
    }
    let once = counts
        .into_iter()
        .filter(|(label, count)| *count == 1 && matches!(label, Label::Letter(_)));
    result.extend(once.map(|(label, _)| label));
    result
}

/// The extent of every label; extents of 1 broadcast.
fn sizes(b: &mut Builder, terms: &[Term]) -> Built<BTreeMap<Label, Dim>> {
    let mut sizes: BTreeMap<Label, Dim> = BTreeMap::new();
    for term in terms {
        for (label, dim) in term.labels.iter().zip(b.dims(term.value)) {
            let known = sizes.entry(*label).or_insert_with(|| dim.clone());
            if known.is(1) || known.known().is_none() && dim.known().is_some_and(|dim| dim != 1) {
                *known = dim;
            }
        }
    }
    for term in terms {
        for (label, dim) in term.labels.iter().zip(b.dims(term.value)) {
            let message = "expected dimensions of one label to have one extent";
            b.require(&dim, Relation::EqualOrOne, &sizes[label], message)?;
        }
    }
    Ok(sizes)
}

/// Sums a term over the labels that are not in the result.
fn single(b: &mut Builder, term: &Term, result: &[Label], sizes: &BTreeMap<Label, Dim>) -> Built {
    if !plain(b, term, sizes) {
        return general(b, &[term], result, sizes);
    }
    let over = |(axis, label): (usize, &Label)| (!result.contains(label)).then_some(axis);
    let axes: Vec<usize> = term.labels.iter().enumerate().filter_map(over).collect();
    let kept: Vec<Label> =
        term.labels.iter().copied().filter(|label| result.contains(label)).collect();
    let mut value = term.value;
    if !axes.is_empty() {
        value = b.reduce(Reduction::Sum, value, &axes, false)?;
    }
    order(b, value, &kept, result)
}

/// Permutes a value to the labels of the result, which are the same.
fn order(b: &mut Builder, x: ValueId, from: &[Label], to: &[Label]) -> Built {
    let at = |label: &Label| from.iter().position(|own| own == label);
    let permutation: Option<Vec<usize>> = to.iter().map(at).collect();
    let Some(permutation) = permutation.filter(|found| found.len() == from.len()) else {
        return Err("expected the labels of the result once each".into());
    };
    b.transpose(x, &permutation)
}

// Whether every label occurs once, with a known extent that needs no broadcast.
fn plain(b: &Builder, term: &Term, sizes: &BTreeMap<Label, Dim>) -> bool {
    let dims = b.dims(term.value);
    let own = term.labels.iter().zip(&dims).all(|(label, dim)| sizes[label] == *dim);
    let once = (1..term.labels.len()).all(|at| !term.labels[..at].contains(&term.labels[at]));
    own && once && b.ty(term.value).known().is_some()
}

/// The product of two terms, summed over the labels that no other term or result has.
fn pair(
    b: &mut Builder,
    x: &Term,
    y: &Term,
    keep: &[Label],
    sizes: &BTreeMap<Label, Dim>,
) -> Built<Term> {
    if !plain(b, x, sizes) || !plain(b, y, sizes) {
        let value = general(b, &[x, y], keep, sizes)?;
        return Ok(Term { value, labels: keep.to_vec() });
    }
    // Labels that only one term has, and that are not needed, are summed first.
    let needed = |own: &Term, other: &Term| -> Vec<Label> {
        let needs = |label: &&Label| keep.contains(label) || other.labels.contains(label);
        own.labels.iter().filter(needs).copied().collect()
    };
    let (of_x, of_y) = (needed(x, y), needed(y, x));
    let x = Term { value: single(b, x, &of_x, sizes)?, labels: of_x };
    let y = Term { value: single(b, y, &of_y, sizes)?, labels: of_y };
    product(b, &x, &y, keep, sizes)
}

/// The product of two terms as a matrix product.
fn product(
    b: &mut Builder,
    x: &Term,
    y: &Term,
    keep: &[Label],
    sizes: &BTreeMap<Label, Dim>,
) -> Built<Term> {
    let of = |own: &Term, wanted: &dyn Fn(&Label) -> bool| -> Vec<Label> {
        own.labels.iter().copied().filter(|label| wanted(label)).collect()
    };
    let shared = |label: &Label| y.labels.contains(label) && x.labels.contains(label);
    let batch = of(x, &|label| shared(label) && keep.contains(label));
    let inner = of(x, &|label| shared(label) && !keep.contains(label));
    let (rows, columns) = (of(x, &|label| !shared(label)), of(y, &|label| !shared(label)));
    let extent = |labels: &[Label]| Dim::product(labels.iter().map(|label| &sizes[label]));
    let mut matrix = |term: &Term, first: &[Label], second: &[Label]| -> Built {
        let labels = [&batch[..], first, second].concat();
        let value = order(b, term.value, &term.labels, &labels)?;
        b.reshape(value, &[extent(&batch), extent(first), extent(second)])
    };
    let left = matrix(x, &rows, &inner)?;
    let right = matrix(y, &inner, &columns)?;
    let value = b.matmul(left, right)?;
    let labels = [batch, rows, columns].concat();
    let dims: Vec<Dim> = labels.iter().map(|label| sizes[label].clone()).collect();
    Ok(Term { value: b.reshape(value, &dims)?, labels })
}

/// The product of terms, summed over the labels that are not in the result, element by element.
fn general(
    b: &mut Builder,
    terms: &[&Term],
    result: &[Label],
    sizes: &BTreeMap<Label, Dim>,
) -> Built {
    let mut order = result.to_vec();
    for label in terms.iter().flat_map(|term| &term.labels) {
        if !order.contains(label) {
            order.push(*label);
        }
    }
    let mut body: Option<Scalar> = None;
    for (operand, term) in terms.iter().enumerate() {
        let dims = b.dims(term.value);
        let index = |(label, dim): (&Label, &Dim)| {
            let at = order.iter().position(|other| other == label).unwrap_or_default();
            spread(dim, &sizes[label], Scalar::Loop(at))
        };
        let at: Vec<Scalar> = term.labels.iter().zip(&dims).map(index).collect();
        let load = Scalar::load(operand, at);
        body = Some(match body {
            Some(body) => body * load,
            None => load,
        });
    }
    let body = body.ok_or("expected operands, found none")?;
    let extents: Vec<Dim> = order.iter().map(|label| sizes[label].clone()).collect();
    let (dims, over) = extents.split_at(result.len());
    let compute = if over.is_empty() {
        Compute::map(dims, body)
    } else {
        Compute::reduce(dims, Combine::Sum, over, body)
    };
    let values: Vec<ValueId> = terms.iter().map(|term| term.value).collect();
    b.compute(compute, &values)
}

/// The index along a dimension that may have one element where the loop has more.
fn spread(dim: &Dim, to: &Dim, index: Scalar) -> Scalar {
    if dim == to {
        return index;
    }
    match dim.known() {
        Some(1) => Scalar::index(0),
        Some(_) => index,
        None => size(dim).equals(Scalar::index(1)).select(Scalar::index(0), index),
    }
}
