//! The cheapest term of every class of an e-graph, counting shared terms once.
//!
//! Exact extraction over a DAG is NP-hard; this is a greedy fixpoint that tracks, per class, the set of
//! classes that its cheapest known term uses.
use super::algebra::{Expr, Types};
use egg::{EGraph, Id, Language};

/// The chosen term of every class.
pub struct Smallest(Vec<Option<Choice>>);

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
        let count = classes.last().map_or(0, |class| usize::from(class.id) + 1);
        let mut chosen = Self((0..count).map(|_| None).collect());
        // The classes whose terms may have become cheaper, as one of their children did.
        let mut pending = vec![true; count];
        let mut parents: Vec<Vec<Id>> = vec![vec![]; count];
        for class in &classes {
            for child in class.nodes.iter().flat_map(Language::children) {
                parents[usize::from(egraph.find(*child))].push(class.id);
            }
        }
        loop {
            let mut changed = false;
            for class in &classes {
                if !std::mem::take(&mut pending[usize::from(class.id)]) {
                    continue;
                }
                let mut cheaper = false;
                for term in &class.nodes {
                    cheaper |= chosen.offer(egraph, class.id, term, cost(term));
                }
                if cheaper {
                    let parents = &parents[usize::from(class.id)];
                    parents.iter().for_each(|parent| pending[usize::from(*parent)] = true);
                    changed = true;
                }
            }
            if !changed {
                return chosen;
            }
        }
    }

    /// The chosen term of a class.
    pub fn term(&self, class: Id) -> &Expr {
        let choice = self.0[usize::from(class)].as_ref();
        &choice.expect("every class has a term whose children have terms").term
    }

    /// Assigns a term to a class if it is cheaper than the current one.
    fn offer(&mut self, egraph: &EGraph<Expr, Types>, class: Id, term: &Expr, own: u64) -> bool {
        let mut children = Vec::with_capacity(term.children().len());
        for child in term.children() {
            let Some(choice) = &self.0[usize::from(egraph.find(*child))] else { return false };
            children.push(choice);
        }
        // The child that uses most first, so that few classes are added to what it uses.
        children.sort_by_key(|child| std::cmp::Reverse(child.cost));
        let (mut cost, mut uses) = match children.first() {
            Some(first) => (own + first.cost, first.uses.clone()),
            None => (own, vec![]),
        };
        for child in children.iter().skip(1) {
            for added in add(&mut uses, &child.uses) {
                cost += self.0[added].as_ref().map_or(0, |choice| choice.own);
            }
        }
        let at = usize::from(class);
        uses.resize(uses.len().max(at / 64 + 1), 0);
        let is_cyclic = uses[at / 64] >> (at % 64) & 1 == 1;
        if is_cyclic || self.0[at].as_ref().is_some_and(|known| known.cost <= cost) {
            return false;
        }
        uses[at / 64] |= 1 << (at % 64);
        self.0[at] = Some(Choice { cost, own, term: term.clone(), uses });
        true
    }
}

/// Adds a set to another; returns what was not in it.
fn add(set: &mut Vec<u64>, more: &[u64]) -> Vec<usize> {
    set.resize(set.len().max(more.len()), 0);
    let mut added = vec![];
    for (index, (own, more)) in set.iter_mut().zip(more).enumerate() {
        let new = more & !*own;
        *own |= new;
        added.extend((0..64).filter(|bit| new >> bit & 1 == 1).map(|bit| index * 64 + bit));
    }
    added
}
