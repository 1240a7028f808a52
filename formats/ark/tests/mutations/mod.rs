//! Valid plans, each mutated in one way, cause the expected diagnostic.
//!
//! A kind of mutation is a row of a table: a name, the expected code, and a function that mutates a set
//! of plans at places chosen by a seeded generator. Each kind is tried on the plans of this crate with
//! several seeds, and on every plan of the corpus that it applies to.

mod kinds;
mod plans;

use std::collections::BTreeSet;

use plans::Set;

/// A deterministic generator of numbers (Knuth's MMIX constants).
pub struct Seeded(u64);

impl Seeded {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }
}

/// A kind of mutation.
pub struct Kind {
    /// Description.
    pub name: &'static str,
    /// The expected code.
    pub code: &'static str,
    /// Mutates the plans; `None` if it does not apply to them.
    pub apply: fn(&mut Set, &mut Seeded) -> Option<()>,
}

/// Mutates a copy of the set; returns whether it applied, or what is wrong with the diagnostics.
fn try_on(kind: &Kind, set: &Set, seed: u64) -> Result<bool, String> {
    let mut broken = set.clone();
    if (kind.apply)(&mut broken, &mut Seeded(seed)).is_none() {
        return Ok(false);
    }
    let found = broken.errors();
    let codes: BTreeSet<&str> = found.iter().map(|diagnostic| diagnostic.code).collect();
    if !codes.contains(kind.code) {
        let messages: Vec<&String> = found.iter().map(|diagnostic| &diagnostic.message).collect();
        return Err(format!("{} ({seed}) of {}: {codes:?} {messages:#?}", kind.name, set.name));
    }
    match found.iter().find(|diagnostic| diagnostic.primary_span().is_none()) {
        Some(diagnostic) => {
            Err(format!("{} of {}: {} has no place", kind.name, set.name, diagnostic.code))
        }
        None => Ok(true),
    }
}

#[test]
fn the_plans_are_good() {
    for set in plans::carried() {
        assert_eq!(set.errors(), [], "{}", set.name);
    }
}

#[test]
fn each_mutation_is_rejected_with_its_code() {
    let sets = plans::carried();
    let kinds = kinds::all();
    let names: BTreeSet<&str> = kinds.iter().map(|kind| kind.name).collect();
    assert!(names.len() == kinds.len() && names.len() >= 50, "{} kinds", names.len());
    let mut faults = vec![];
    for kind in &kinds {
        let tried = sets.iter().flat_map(|set| (0..4).map(move |seed| (set, seed)));
        let results: Vec<_> = tried.map(|(set, seed)| try_on(kind, set, seed)).collect();
        if results.iter().all(|result| result == &Ok(false)) {
            faults.push(format!("{} has no place in any plan", kind.name));
        }
        faults.extend(results.into_iter().filter_map(Result::err));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_mutation_of_a_plan_of_the_corpus_is_rejected() {
    let mut faults = vec![];
    for set in plans::corpus() {
        let kinds = kinds::all();
        let tried = kinds.iter().enumerate();
        faults.extend(tried.filter_map(|(seed, kind)| try_on(kind, &set, seed as u64).err()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
