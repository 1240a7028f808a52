//! Why each group is what it is: the account of one function's fusion.
use super::cost::Cost;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The account of the fusion of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusionReport {
    /// The function's name.
    pub function: String,
    /// The rewrites that made the function simpler before anything was fused.
    pub simplifications: Vec<Simplification>,
    /// The groups, in the order of their last ops.
    pub groups: Vec<GroupReport>,
    /// The edges between ops that stay in memory.
    pub unfused: Vec<UnfusedEdge>,
    /// With every op a kernel of its own.
    pub before: Cost,
    /// With the groups.
    pub after: Cost,
    /// The functions that it calls: bodies of choices, loops and functions of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FusionReport>,
}

impl FusionReport {
    /// The account of a program: its main function, which comes first, and the others in it.
    pub fn of_program(reports: Vec<FusionReport>) -> Option<Self> {
        let mut reports = reports.into_iter();
        let main = reports.next()?;
        Some(FusionReport { functions: reports.collect(), ..main })
    }
}

/// One application of an algebra rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Simplification {
    /// The rule's name.
    pub rule: String,
    /// The op it rewrote.
    pub op: OpName,
}

/// An op and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpName {
    /// The op's name: `tl.add`.
    pub name: String,
    /// Its location in the user's source, as `path at file:line:column`; empty when unknown.
    pub location: String,
}

/// The account of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The group's kind.
    pub kind: String,
    /// What it computes, in order.
    pub ops: Vec<OpName>,
    /// How many values it writes.
    pub results: usize,
    /// The fusions that made it.
    pub steps: Vec<Step>,
    /// With each op a kernel of its own.
    pub before: Cost,
    /// As one kernel.
    pub after: Cost,
}

/// A producer that its consumer computes in the same kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The rule that allowed it.
    pub rule: String,
    /// The op that makes the value.
    pub producer: OpName,
    /// The op that uses it.
    pub consumer: OpName,
    /// What made the rule's side condition true.
    pub facts: Vec<String>,
}

/// A producer whose value goes through memory to its consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfusedEdge {
    /// The op that makes the value.
    pub producer: OpName,
    /// The op that uses it.
    pub consumer: OpName,
    /// Why.
    pub why: WhyNot,
}

/// Why two ops do not share a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// The side condition of every rule failed: the fact.
    Condition(String),
    /// Some kernel would compute a matmul again.
    RepeatsMatmul,
    /// It would cost more, in bytes of traffic for the whole segment.
    Cost {
        /// As it is.
        now: u64,
        /// With the edge fused.
        fused: u64,
    },
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location.as_str() {
            "" => f.write_str(&self.name),
            location => write!(f, "{} ({location})", self.name),
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(fact) => f.write_str(fact),
            Self::RepeatsMatmul => f.write_str("a matmul would be computed twice"),
            Self::Cost { now, fused } => write!(f, "cost would go from {now} to {fused}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, producer, consumer, facts } = self;
        write!(f, "{rule}: {producer} into {consumer}; {}", facts.join(", "))
    }
}

impl fmt::Display for UnfusedEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} not into {}: {}", self.producer, self.consumer, self.why)
    }
}

impl GroupReport {
    /// One line: the kind, the ops and the cost.
    pub fn headline(&self) -> String {
        let ops: Vec<_> = self.ops.iter().map(|op| op.name.as_str()).collect();
        let (before, after) = (self.before.total(), self.after.total());
        format!("{}: {}; cost {before} -> {after}", self.kind, ops.join(", "))
    }
}

/// The text of `--explain-fusion`.
impl fmt::Display for FusionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { kernels, .. } = self.before;
        writeln!(
            f,
            "fusion of @{}: {kernels} kernels -> {}, cost {} -> {} bytes of traffic",
            self.function,
            self.after.kernels,
            self.before.total(),
            self.after.total()
        )?;
        for Simplification { rule, op } in &self.simplifications {
            writeln!(f, "  simplified by {rule}: {op}")?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            writeln!(f, "  group {index} {}", group.headline())?;
            for step in &group.steps {
                writeln!(f, "    {step}")?;
            }
        }
        for edge in &self.unfused {
            writeln!(f, "  kept in memory: {edge}")?;
        }
        self.functions.iter().try_for_each(|function| write!(f, "{function}"))
    }
}
