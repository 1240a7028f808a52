//! The cheapest term of every class of an e-graph, counting shared terms once.
//!
//! Exact extraction over a DAG is NP-hard; this is a greedy fixpoint that tracks, per class, the set of
//! classes that its cheapest known term uses.
use super::algebra::{Expr, Types};
use egg::{EGraph, Id, Language};
use std::collections::BTreeMap;

/// The chosen term of every class.
pub struct Smallest(BTreeMap<Id, Choice>);

struct Choice {
    /// Sum over `uses`.
    cost: u64,
    /// The term's own cost.
    own: u64,
    term: Expr,
    /// The classes used, including this one, as a bit set over [`Id`]s.
    uses: Vec<u64>,
}

impl Smallest {
    /// Chooses a term for every class.
    pub fn of(egraph: &EGraph<Expr, Types>, cost: impl Fn(&Expr) -> u64) -> Self {
        let mut classes: Vec<_> = egraph.classes().collect();
        classes.sort_by_key(|class| class.id);
        let words = classes.last().map_or(0, |class| usize::from(class.id) / 64 + 1);
        let mut chosen = Self(BTreeMap::new());
        loop {
            let mut changed = false;
            for class in &classes {
                for term in &class.nodes {
                    changed |= chosen.offer(egraph, class.id, term, cost(term), words);
                }
            }
            if !changed {
                return chosen;
            }
        }
    }

    /// The chosen term of a class.
    pub fn term(&self, class: Id) -> &Expr {
        &self.0[&class].term
    }

    /// Assigns a term to a class if it is cheaper than the current one.
    fn offer(
        &mut self,
        egraph: &EGraph<Expr, Types>,
        class: Id,
        term: &Expr,
        own: u64,
        words: usize,
    ) -> bool {
        let mut uses = vec![0_u64; words];
        for child in term.children() {
            let Some(choice) = self.0.get(&egraph.find(*child)) else { return false };
            uses.iter_mut().zip(&choice.uses).for_each(|(mine, theirs)| *mine |= theirs);
        }
        let at = usize::from(class);
        if uses[at / 64] >> (at % 64) & 1 == 1 {
            return false;
        }
        let cost = own + bits(&uses).map(|id| self.0[&Id::from(id)].own).sum::<u64>();
        if self.0.get(&class).is_some_and(|known| known.cost <= cost) {
            return false;
        }
        uses[at / 64] |= 1 << (at % 64);
        self.0.insert(class, Choice { cost, own, term: term.clone(), uses });
        true
    }
}

fn bits(set: &[u64]) -> impl Iterator<Item = usize> + '_ {
    let ones = |(index, word): (usize, &u64)| {
        let word = *word;
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| index * 64 + bit)
    };
    set.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(ones)
}
