//! Decisions as comparisons of one kind: whether a feature is at most a threshold.

use super::forest::{Branch, Mode};
use irc_tl::{Comparison, DType};

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Test {
    pub feature: i64,
    /// The first goal is taken if the feature is at most this; a NaN is never reached.
    pub threshold: f64,
    /// Whether a NaN leads to the first goal.
    pub missing: bool,
    pub next: [Goal; 2],
}

/// What follows a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// A vertex of the ensemble.
    Vertex(usize),
    /// A comparison of the same decision, by position.
    Test(usize),
}

/// The comparisons of a decision, the first of which is made first.
pub(super) fn tests(branch: &Branch, dtype: DType) -> Vec<Test> {
    let mut decision = Decision { feature: branch.feature, dtype, tests: vec![] };
    let [yes, no] = branch.next.map(Goal::Vertex);
    let missing = branch.missing;
    match &branch.mode {
        Mode::Compare(comparison, split) => {
            decision.compare(*comparison, dtype.round_float(*split), missing, [yes, no]);
        }
        Mode::Member(members) => {
            let mut members: Vec<f64> =
                members.iter().map(|member| dtype.round_float(*member)).collect();
            members.retain(|member| !member.is_nan());
            members.sort_by(f64::total_cmp);
            members.dedup();
            decision.member(&members, missing, [yes, no]);
        }
    }
    decision.tests
}

struct Decision {
    feature: i64,
    dtype: DType,
    tests: Vec<Test>,
}

impl Decision {
    fn push(&mut self, threshold: f64, missing: bool, next: [Goal; 2]) -> Goal {
        self.tests.push(Test { feature: self.feature, threshold, missing, next });
        Goal::Test(self.tests.len() - 1)
    }

    fn compare(&mut self, comparison: Comparison, split: f64, missing: bool, [yes, no]: [Goal; 2]) {
        let below = below(split, self.dtype);
        // Nothing but "differs" holds for a NaN.
        match comparison {
            Comparison::Ne if split.is_nan() => self.push(split, false, [no, yes]),
            _ if split.is_nan() => self.push(split, missing, [yes, no]),
            Comparison::Le => self.push(split, missing, [yes, no]),
            Comparison::Lt => self.push(below, missing, [yes, no]),
            Comparison::Gt => self.push(split, !missing, [no, yes]),
            Comparison::Ge => self.push(below, !missing, [no, yes]),
            Comparison::Eq => self.equal(split, missing, [yes, no]),
            // A NaN differs from every number.
            Comparison::Ne => self.equal(split, false, [no, yes]),
        };
    }

    /// Whether the feature equals a number.
    fn equal(&mut self, split: f64, missing: bool, [yes, no]: [Goal; 2]) -> Goal {
        let next = Goal::Test(self.tests.len() + 1);
        let first = self.push(split, missing, [next, no]);
        self.push(below(split, self.dtype), false, [no, yes]);
        first
    }

    /// Whether the feature is among ascending numbers, by bisection.
    fn member(&mut self, members: &[f64], missing: bool, goals: [Goal; 2]) -> Goal {
        match members {
            [] => self.push(f64::NAN, missing, goals),
            [member] => self.equal(*member, missing, goals),
            _ => {
                let (lower, upper) = members.split_at(members.len() / 2);
                let own = self.tests.len();
                let goal = self.push(below(upper[0], self.dtype), false, goals);
                let lower = self.member(lower, missing, goals);
                let upper = self.member(upper, missing, goals);
                self.tests[own].next = [lower, upper];
                goal
            }
        }
    }
}

/// The largest number below another; NaN if there is none.
pub(super) fn below(value: f64, dtype: DType) -> f64 {
    if value == f64::NEG_INFINITY {
        return f64::NAN;
    }
    match dtype {
        DType::F64 => value.next_down(),
        _ => f64::from((value as f32).next_down()),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Whether the decision holds for a feature: vertex 1, not vertex 0.
    fn holds(branch: &Branch, x: f64) -> bool {
        let tests = tests(branch, DType::F32);
        let mut at = Goal::Test(0);
        while let Goal::Test(test) = at {
            let Test { threshold, missing, next, .. } = tests[test];
            let first = if x.is_nan() { missing } else { x <= threshold };
            at = next[usize::from(!first)];
        }
        at == Goal::Vertex(1)
    }

    const VALUES: [f64; 9] =
        [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-45, 0.5, 2.0, f64::INFINITY, f64::NAN];

    #[test]
    fn every_comparison_is_one_of_at_most() {
        for (comparison, split, x) in Comparison::ALL.into_iter().flat_map(|comparison| {
            VALUES.into_iter().flat_map(move |split| VALUES.map(|x| (comparison, split, x)))
        }) {
            for missing in [false, true] {
                let mode = Mode::Compare(comparison, split);
                let branch = Branch { mode, feature: 0, missing, next: [1, 0] };
                let expected = comparison.holds(f64::from(x as f32), f64::from(split as f32));
                let expected = expected || missing && x.is_nan();
                assert_eq!(holds(&branch, f64::from(x as f32)), expected, "{branch:?} {x}");
            }
        }
    }

    #[test]
    fn members_are_found_by_bisection() {
        for missing in [false, true] {
            for count in 0..7 {
                let members: Vec<f64> = (0..count).map(|member| f64::from(member * 2)).collect();
                let mode = Mode::Member(members.clone());
                let branch = Branch { mode, feature: 0, missing, next: [1, 0] };
                for x in (-1..15).map(f64::from).chain(VALUES) {
                    let expected = members.contains(&x) || missing && x.is_nan();
                    assert_eq!(holds(&branch, x), expected, "{members:?} {x}");
                }
            }
        }
    }
}
