//! Unification of shapes with variables and wildcards.
//!
//! A declaration (of an operator, a function, a graph) has shapes in which a variable represents
//! one extent and a named wildcard a list of extents. A [`Unifier`] solves for them at one use,
//! given the actual shapes. Variables of the actual shapes belong to another declaration:
//! two different ones may be equal at run time, so only contradictions are conflicts.

mod conflict;

use std::collections::BTreeMap;

use crate::model::{Dim, Shape};

pub use conflict::{Conflict, Kind};

/// A declared shape and the actual one.
#[derive(Clone, Copy, Debug)]
pub struct ShapePair<'s> {
    /// Name of the formal parameter.
    pub parameter: &'s str,
    /// Name of the argument.
    pub value: &'s str,
    /// The declared shape.
    pub declared: &'s Shape,
    /// The actual shape.
    pub actual: &'s Shape,
}

/// The solution for a name, and the site that determined it.
#[derive(Clone, Debug)]
struct Bound<T> {
    value: T,
    site: usize,
}

/// Extents of the variables and wildcards of a declaration at one use.
#[derive(Clone, Debug, Default)]
pub struct Unifier<'s> {
    sizes: BTreeMap<&'s str, Bound<Dim>>,
    lists: BTreeMap<&'s str, Bound<Vec<Dim>>>,
    sites: Vec<ShapePair<'s>>,
}

impl<'s> Unifier<'s> {
    /// No constraints.
    pub fn new() -> Self {
        Self::default()
    }

    /// Unifies a declared shape and the actual one.
    ///
    /// # Errors
    /// They contradict each other or an earlier constraint.
    pub fn unify(&mut self, site: ShapePair<'s>) -> Result<(), Box<Conflict>> {
        let (declared, actual) = (&site.declared.dims[..], &site.actual.dims[..]);
        if declared.len().max(actual.len()) > MAX_RANK {
            return Ok(());
        }
        self.sites.push(site);
        let mut wild = declared.iter().enumerate().filter(|(_, dim)| is_wild(dim));
        match (wild.next(), wild.next()) {
            (None, _) => self.exact(declared, actual),
            (Some((at, wildcard)), None) => self.around(declared, at, wildcard, actual),
            // Known wildcards have known lengths; others add no constraint.
            (Some(_), Some(_)) => self.several(declared, actual),
        }
    }

    /// A shape of numbers and variables.
    fn exact(&mut self, declared: &'s [Dim], actual: &[Dim]) -> Result<(), Box<Conflict>> {
        let Some(wild) = actual.iter().position(is_wild) else {
            if declared.len() != actual.len() {
                return Err(self.conflict(Kind::Rank, None));
            }
            return self.pairs(declared, actual);
        };
        // Whatever the wildcards match, dimensions before the first and after the last are fixed.
        let last = actual.iter().rposition(is_wild).unwrap_or(wild);
        let (front, back) = (wild, actual.len() - last - 1);
        if front + back > declared.len() {
            return Err(self.conflict(Kind::Rank, None));
        }
        self.pairs(&declared[..front], &actual[..front])?;
        self.pairs(&declared[declared.len() - back..], &actual[actual.len() - back..])
    }

    /// A shape with one wildcard.
    fn around(
        &mut self,
        declared: &'s [Dim],
        at: usize,
        wildcard: &'s Dim,
        actual: &[Dim],
    ) -> Result<(), Box<Conflict>> {
        let (front, back) = (at, declared.len() - at - 1);
        let first = actual.iter().position(is_wild).unwrap_or(actual.len());
        let last = actual.iter().rposition(is_wild).map_or(0, |last| last + 1);
        let is_open = first < actual.len();
        if !is_open && actual.len() < front + back {
            return Err(self.conflict(Kind::TooFew { least: front + back }, None));
        }
        let ahead = front.min(first);
        self.pairs(&declared[..ahead], &actual[..ahead])?;
        let behind = back.min(actual.len() - last);
        let (from, to) = (declared.len() - behind, actual.len() - behind);
        self.pairs(&declared[from..], &actual[to..])?;
        if ahead == front && behind == back && to >= front {
            self.bind_list(wildcard, &actual[front..to])?;
        }
        Ok(())
    }

    /// A shape with several wildcards: known ones are expanded; if one remains, it
    /// matches the rest, and if more remain, nothing is learned.
    fn several(&mut self, declared: &'s [Dim], actual: &[Dim]) -> Result<(), Box<Conflict>> {
        let mut steps = vec![];
        for dim in declared {
            let name = if let Dim::Wildcard(Some(name)) = dim { name.as_str() } else { "" };
            match self.lists.get(name) {
                Some(bound) => steps.extend(bound.value.iter().cloned().map(Step::Known)),
                None => steps.push(Step::Declared(dim)),
            }
        }
        let is_fixed = |step: &Step<'_>| !matches!(step, Step::Known(dim) if is_wild(dim));
        if actual.iter().any(is_wild) || !steps.iter().all(is_fixed) {
            return Ok(());
        }
        let open = steps.iter().filter(|step| step.is_open()).count();
        let least = steps.len() - open;
        if actual.len() < least || (open == 0 && actual.len() > least) {
            return Err(self.conflict(Kind::TooFew { least }, None));
        }
        if open > 1 {
            return Ok(());
        }
        let mut rest = actual;
        for step in steps {
            let taken = if step.is_open() { actual.len() - least } else { 1 };
            let (these, after) = rest.split_at(taken);
            rest = after;
            match step {
                Step::Declared(dim) if is_wild(dim) => self.bind_list(dim, these)?,
                Step::Declared(dim) => self.pair(dim, &these[0])?,
                Step::Known(dim) if differ(&dim, &these[0]) => {
                    let (declared, actual) = (dim, these[0].clone());
                    return Err(self.conflict(Kind::Number { declared, actual }, None));
                }
                Step::Known(_) => {}
            }
        }
        Ok(())
    }

    fn pairs(&mut self, declared: &'s [Dim], actual: &[Dim]) -> Result<(), Box<Conflict>> {
        declared.iter().zip(actual).try_for_each(|(declared, actual)| self.pair(declared, actual))
    }

    fn pair(&mut self, declared: &'s Dim, actual: &Dim) -> Result<(), Box<Conflict>> {
        match declared {
            Dim::Size(_) if differ(declared, actual) => Err(self.conflict(
                Kind::Number { declared: declared.clone(), actual: actual.clone() },
                None,
            )),
            Dim::Variable(name) => self.bind(name, actual),
            _ => Ok(()),
        }
    }

    fn bind(&mut self, name: &'s str, actual: &Dim) -> Result<(), Box<Conflict>> {
        let site = self.sites.len() - 1;
        match self.sizes.get_mut(name) {
            None => {
                self.sizes.insert(name, Bound { value: actual.clone(), site });
            }
            Some(bound) if differ(&bound.value, actual) => {
                let (first, second) = (bound.value.clone(), actual.clone());
                let before = bound.site;
                let kind = Kind::Variable { name: name.into(), first, second };
                return Err(self.conflict(kind, Some(before)));
            }
            // A number is more specific than a variable, and a variable more than an unspecified extent.
            Some(bound) if knowledge(actual) > knowledge(&bound.value) => {
                *bound = Bound { value: actual.clone(), site };
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn bind_list(&mut self, wildcard: &'s Dim, actual: &[Dim]) -> Result<(), Box<Conflict>> {
        let Dim::Wildcard(Some(name)) = wildcard else { return Ok(()) };
        let site = self.sites.len() - 1;
        let Some(bound) = self.lists.get_mut(name.as_str()) else {
            self.lists.insert(name, Bound { value: actual.to_vec(), site });
            return Ok(());
        };
        if lists_differ(&bound.value, actual) {
            let (first, second) = (Shape::new(bound.value.clone()), Shape::new(actual.to_vec()));
            let before = bound.site;
            let kind = Kind::Wildcard { name: name.clone(), first, second };
            return Err(self.conflict(kind, Some(before)));
        }
        if actual.iter().any(is_wild) {
            return Ok(());
        }
        if bound.value.iter().any(is_wild) {
            *bound = Bound { value: actual.to_vec(), site };
            return Ok(());
        }
        for (known, actual) in bound.value.iter_mut().zip(actual) {
            if knowledge(actual) > knowledge(known) {
                known.clone_from(actual);
            }
        }
        Ok(())
    }

    /// A declared shape with its names substituted; unknown names become unspecified extents.
    pub fn apply(&self, declared: &Shape) -> Shape {
        let mut dims = vec![];
        for dim in &declared.dims {
            match dim {
                Dim::Variable(name) => {
                    let bound = self.sizes.get(name.as_str());
                    dims.push(bound.map_or(Dim::Unknown, |bound| bound.value.clone()));
                }
                Dim::Wildcard(Some(name)) => match self.lists.get(name.as_str()) {
                    Some(bound) => dims.extend(bound.value.iter().cloned()),
                    None => dims.push(Dim::Wildcard(None)),
                },
                other => dims.push(other.clone()),
            }
        }
        // A declaration can lengthen a shape with each call of a chain.
        if dims.len() > MAX_RANK {
            dims = vec![Dim::Wildcard(None)];
        }
        Shape { dims, denotations: vec![] }
    }

    /// The extent of a variable, as far as it is known.
    pub fn size(&self, variable: &str) -> Option<&Dim> {
        self.sizes.get(variable).map(|bound| &bound.value)
    }

    /// The extents that a named wildcard matches.
    pub fn list(&self, wildcard: &str) -> Option<&[Dim]> {
        self.lists.get(wildcard).map(|bound| &bound.value[..])
    }

    fn conflict(&self, kind: Kind, before: Option<usize>) -> Box<Conflict> {
        let first = before.and_then(|site| self.sites.get(site));
        Box::new(Conflict::new(kind, first, self.sites.last()))
    }
}

/// Maximum rank that is tracked; longer shapes are unknown.
const MAX_RANK: usize = 64;

/// A part of a declared shape with known wildcards expanded.
enum Step<'s> {
    Declared(&'s Dim),
    Known(Dim),
}

impl Step<'_> {
    fn is_open(&self) -> bool {
        matches!(self, Step::Declared(dim) if is_wild(dim))
    }
}

fn is_wild(dim: &Dim) -> bool {
    matches!(dim, Dim::Wildcard(_))
}

/// Whether two extents can never be equal.
fn differ(a: &Dim, b: &Dim) -> bool {
    matches!((a, b), (Dim::Size(a), Dim::Size(b)) if a != b)
}

/// Whether two lists of extents can never be equal.
fn lists_differ(a: &[Dim], b: &[Dim]) -> bool {
    let fixed = |dims: &[Dim]| dims.iter().filter(|dim| !is_wild(dim)).count();
    let (wild_a, wild_b) = (a.iter().any(is_wild), b.iter().any(is_wild));
    if (!wild_a && a.len() < fixed(b)) || (!wild_b && b.len() < fixed(a)) {
        return true;
    }
    let ends_differ = |a: &mut dyn Iterator<Item = &Dim>, b: &mut dyn Iterator<Item = &Dim>| {
        let open = |pair: &(&Dim, &Dim)| !is_wild(pair.0) && !is_wild(pair.1);
        a.zip(b).take_while(open).any(|(a, b)| differ(a, b))
    };
    ends_differ(&mut a.iter(), &mut b.iter())
        || ((wild_a || wild_b) && ends_differ(&mut a.iter().rev(), &mut b.iter().rev()))
}

/// How specific an extent is.
fn knowledge(dim: &Dim) -> u8 {
    match dim {
        Dim::Size(_) => 2,
        Dim::Variable(_) => 1,
        Dim::Wildcard(_) | Dim::Unknown => 0,
    }
}

/// Whether two shapes of the same value contradict each other.
pub fn contradict(a: &Shape, b: &Shape) -> bool {
    lists_differ(&a.dims, &b.dims)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        let dim = |text: &str| text.parse().map_or_else(|_| Dim::from(text), Dim::Size);
        Shape::new(text.split(',').filter(|text| !text.is_empty()).map(dim))
    }

    /// Formats the result of unifying pairs of declared and actual shapes.
    fn unify(pairs: &[(&str, &str)]) -> Result<(), String> {
        let pairs: Vec<(Shape, Shape)> =
            pairs.iter().map(|(declared, actual)| (shape(declared), shape(actual))).collect();
        let mut unifier = Unifier::new();
        for (declared, actual) in &pairs {
            let site = ShapePair { parameter: "p", value: "v", declared, actual };
            unifier.unify(site).map_err(|conflict| conflict.to_string())?;
        }
        Ok(())
    }

    #[test]
    fn shapes_of_the_document_unify() {
        let sound: &[&[(&str, &str)]] = &[
            &[("K,M", "2,3"), ("M,N", "3,4")],
            &[("*", ""), ("*", "2,3")],
            &[("n,*", "4")],
            &[("m*", "2,3"), ("m*", "2,3")],
            &[("n,m*", "5,2,3"), ("m*", "2,3")],
            &[("*,n", "7,4"), ("n,*", "4,9,9")],
            &[("N,4", "2,4")],
            &[("a*,b*", "1,2,3"), ("a*", "1"), ("b*", "2,3")],
            &[("a*", "1"), ("a*,b*", "1,2,3"), ("b*", "2,3")],
            &[("m*", "x,*"), ("m*", "2,3")],
            &[("n,n", "x,y")],
            &[("n,m*", "*"), ("m*", "2")],
        ];
        for pairs in sound {
            assert_eq!(unify(pairs), Ok(()), "{pairs:?}");
        }
    }

    #[test]
    fn what_can_never_be_is_a_conflict() {
        let wrong: &[&[(&str, &str)]] = &[
            &[("K,M", "2,3"), ("M,N", "5,4")],
            &[("n,*", "")],
            &[("m*", "2,3"), ("m*", "3,2")],
            &[("n,m*", "5,2,3"), ("m*", "5,2")],
            &[("*,n", "7,4"), ("n,*", "5,9")],
            &[("N,4", "2,5")],
            &[("n", "")],
            &[("", "2")],
            &[("a*", "1"), ("a*,b*", "2,2,3")],
            &[("m*", "3,*"), ("m*", "2,3")],
            &[("m*", "*,4"), ("m*", "2,3")],
            &[("n", "*,1,2")],
        ];
        for pairs in wrong {
            assert!(unify(pairs).is_err(), "{pairs:?}");
        }
    }

    #[test]
    fn a_conflict_shows_both_sites() {
        let said = unify(&[("K,M", "2,3"), ("M,N", "5,4")]).expect_err("a conflict");
        assert_eq!(
            said,
            "`M` is 3 by `p`, declared [K,M] and given `v` of shape [2,3], but 5 by `p`, declared \
             [M,N] and given `v` of shape [5,4]"
        );
    }

    #[test]
    fn names_are_written_out() {
        let (declared, actual) = (shape("n,m*"), shape("5,x,*"));
        let mut unifier = Unifier::new();
        let site = ShapePair { parameter: "p", value: "v", declared: &declared, actual: &actual };
        assert!(unifier.unify(site).is_ok());
        assert_eq!(unifier.apply(&shape("m*,n,k,o*")).to_string(), "[x,*,5,?,*]");
    }
}
