//! Matches a call with one signature.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use super::typing::{applied, fits, literal_fits, shape_of};
use crate::model::{AttributeValue, Node, Signature, Type, Value};
use crate::shapes::{Conflict, ShapePair, Unifier};

/// A call and the types of its inputs, as far as they are known.
pub(super) struct Call<'n> {
    pub(super) node: &'n Node,
    pub(super) types: &'n [Option<Rc<Type>>],
}

impl Call<'_> {
    /// Whether the types of all inputs are known.
    pub(super) fn is_typed(&self) -> bool {
        self.types.iter().all(Option::is_some)
    }

    pub(super) fn described_types(&self) -> Vec<String> {
        let show = |ty: &Option<Rc<Type>>| ty.as_ref().map_or("?".to_owned(), |ty| ty.to_string());
        self.types.iter().map(show).collect()
    }
}

/// The reason why a call does not match a signature.
#[derive(Clone, Debug)]
pub(super) enum Mismatch<'s> {
    /// The number of outputs.
    Count {
        found: usize,
        expected: usize,
    },
    Type {
        value: &'s str,
        found: Rc<Type>,
        formal: &'s Value,
    },
    Shape {
        input: usize,
        conflict: Box<Conflict>,
    },
}

impl fmt::Display for Mismatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count { found, expected } => {
                write!(f, "expected {expected} outputs, found {found}")
            }
            Self::Type { value, found, formal } => {
                let declared = formal.ty.as_ref().map(Type::to_string).unwrap_or_default();
                write!(f, "`{value}` is {found}, `{}` is declared {declared}", formal.name())
            }
            Self::Shape { conflict, .. } => conflict.fmt(f),
        }
    }
}

/// Each parameter takes one input.
pub(super) fn one_each(count: usize) -> Vec<usize> {
    vec![1; count]
}

/// How many inputs each parameter of a signature takes; `None` if the number of counts is wrong.
///
/// Without counts each takes one, the last takes the rest, and trailing parameters take none.
pub(super) fn groups(node: &Node, signature: &Signature) -> Option<Vec<usize>> {
    let parameters = signature.inputs.len();
    if !node.arg_counts.is_empty() {
        let counts =
            node.arg_counts.iter().map(|count| usize::try_from(*count).unwrap_or_default());
        return (node.arg_counts.len() == parameters).then(|| counts.collect());
    }
    let inputs = node.inputs.len();
    let mut groups: Vec<usize> = (0..parameters).map(|index| usize::from(index < inputs)).collect();
    match groups.last_mut() {
        Some(last) if inputs > parameters => *last += inputs - parameters,
        None if inputs > 0 => return None,
        _ => {}
    }
    Some(groups)
}

/// The types of the outputs of a call that matches these parameters and results.
pub(super) fn unify<'s>(
    call: &Call<'s>,
    parameters: &'s [Value],
    results: &[Value],
    groups: &[usize],
) -> Result<Vec<Option<Type>>, Mismatch<'s>> {
    let node = call.node;
    let is_variadic = results.last().is_some_and(|last| has_leading_word(last, "variadic"));
    if node.outputs.len() > results.len() && !is_variadic {
        let (found, expected) = (node.outputs.len(), results.len());
        return Err(Mismatch::Count { found, expected });
    }
    let given = || {
        let formal = parameters
            .iter()
            .zip(groups)
            .flat_map(|(formal, count)| std::iter::repeat_n(formal, *count));
        let inputs = node.inputs.iter().zip(call.types).enumerate();
        formal.zip(inputs).filter_map(|(formal, (index, (name, ty)))| {
            Some((formal, index, name.as_str(), ty.as_ref()?))
        })
    };
    for (formal, _, value, found) in given() {
        if formal.ty.as_ref().is_some_and(|declared| !fits(declared, found)) {
            return Err(Mismatch::Type { value, found: Rc::clone(found), formal });
        }
    }
    let mut unifier = Unifier::new();
    for (formal, input, value, ty) in given() {
        let (Some(declared), Some(actual)) = (formal.tensor_shape(), shape_of(ty)) else {
            continue;
        };
        let site = ShapePair { parameter: formal.name(), value, declared, actual };
        unifier.unify(site).map_err(|conflict| Mismatch::Shape { input, conflict })?;
    }
    let last = results.last().filter(|_| is_variadic);
    let results = results.iter().chain(std::iter::repeat_n(last, node.outputs.len()).flatten());
    Ok(results.take(node.outputs.len()).map(|result| applied(result, &unifier)).collect())
}

/// Attributes of a call that differ from their declaration, and how.
pub(super) fn literal_errors(node: &Node, signature: &Signature) -> Vec<(String, String)> {
    let mut errors = vec![];
    let declared: BTreeMap<&str, &Value> =
        signature.attributes.iter().rev().map(|declared| (declared.name(), declared)).collect();
    let mut given = BTreeSet::new();
    for attribute in &node.attributes {
        let name = attribute.name.as_deref().unwrap_or_default();
        given.insert(name);
        let declared = declared.get(name);
        match declared {
            None => errors.push((name.to_owned(), "is not declared".to_owned())),
            // Without a value it is reported as that.
            Some(_) if attribute.value == AttributeValue::Nothing => {}
            Some(declared) if !literal_fits(declared, &attribute.value) => {
                let kind = attribute.value.kind().map_or("nothing", |kind| kind.field());
                let ty = declared.ty.as_ref().map(Type::to_string).unwrap_or_default();
                errors.push((name.to_owned(), format!("is in `{kind}`, declared {ty}")));
            }
            Some(_) => {}
        }
    }
    for declared in
        signature.attributes.iter().filter(|declared| !has_leading_word(declared, "optional"))
    {
        let name = declared.name();
        if !given.contains(name) {
            errors.push((name.to_owned(), "is missing".to_owned()));
        }
    }
    errors
}

/// Whether the documentation of a parameter starts with a word: the format has no other place for
/// optional and variadic parameters.
fn has_leading_word(value: &Value, word: &str) -> bool {
    let first = value.doc.as_deref().and_then(|doc| doc.split_whitespace().next());
    let first = first.map(|first| first.trim_end_matches([',', '.', ':', ';']));
    first.is_some_and(|first| first.eq_ignore_ascii_case(word))
}
