//! The report of one function's fusion: the reason for each group.
use super::cost::{Cost, LAUNCH};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The report of the fusion of one function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusionReport {
    /// The function's name.
    pub function: String,
    /// The rewrites that simplified the function before fusion.
    pub simplifications: Vec<Simplification>,
    /// The groups, in the order of their last ops.
    pub groups: Vec<GroupReport>,
    /// The kernels of attention, which join groups or ops of open sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attention: Vec<AttentionReport>,
    /// The kernels that are loops: ops of sizes known at run time, and algorithms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopsReport>,
    /// The edges between ops that go through memory.
    pub unfused: Vec<UnfusedEdge>,
    /// The cost if every op is a kernel of its own.
    pub before: Cost,
    /// The cost with the groups.
    pub after: Cost,
    /// The functions that it calls: bodies of branches and loops, and functions of the model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<FusionReport>,
}

impl FusionReport {
    /// The report of a program: its main function, which is the first, and the others in it.
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

/// An op and its location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpName {
    /// The op's name: `tl.add`.
    pub name: String,
    /// Its location in the user's source, as `path at file:line:column`; empty if unknown.
    pub location: String,
}

/// The report of one group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupReport {
    /// The group's kind.
    pub kind: String,
    /// Its ops, in order.
    pub ops: Vec<OpName>,
    /// Number of results.
    pub results: usize,
    /// The fusions that led to it.
    pub steps: Vec<Step>,
    /// Why it is slow, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<String>,
    /// Whether its sizes are open: costs are then those of a large prime, and serve to compare only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// The cost if each op is a kernel of its own.
    pub before: Cost,
    /// The cost of the kernel.
    pub after: Cost,
}

/// The report of a kernel of attention: products whose rows pass through a softmax and are multiplied again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttentionReport {
    /// Its ops, in order.
    pub ops: Vec<OpName>,
    /// The fusions that led to the groups that it joins.
    pub steps: Vec<Step>,
}

/// The report of a kernel that is loops.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopsReport {
    /// The op.
    pub op: OpName,
    /// The ops that became parts of its expression.
    pub inlined: Vec<OpName>,
    /// Why it is loops.
    pub why: String,
    /// Why it is slow, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<String>,
}

/// A producer that its consumer computes in the same kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The rule that allowed it.
    pub rule: String,
    /// The op that defines the value.
    pub producer: OpName,
    /// The op that uses it.
    pub consumer: OpName,
    /// The facts that satisfied the rule's side condition.
    pub facts: Vec<String>,
}

/// A producer whose value goes through memory to its consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfusedEdge {
    /// The op that defines the value.
    pub producer: OpName,
    /// The op that uses it.
    pub consumer: OpName,
    /// The reason.
    pub why: WhyNot,
}

/// Why two ops do not share a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyNot {
    /// The side condition of every rule failed, for this reason.
    Condition(String),
    /// A matmul would be computed by more than one kernel.
    RepeatsMatmul,
    /// The cost, in bytes of traffic for the whole segment, would be higher.
    Cost {
        /// The current cost.
        now: u64,
        /// The cost with the edge fused.
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
    /// One line: kind, ops and cost.
    pub fn headline(&self) -> String {
        let headline = headline(&self.kind, &self.ops);
        match self.open {
            true => headline,
            false => format!("{headline}; cost {}", change(self.before, self.after)),
        }
    }
}

/// A kind of kernel, and the names of its ops.
fn headline(kind: &str, ops: &[OpName]) -> String {
    let ops: Vec<_> = ops.iter().map(|op| op.name.as_str()).collect();
    format!("{kind}: {}", ops.join(", "))
}

fn change(before: Cost, after: Cost) -> String {
    format!("{} -> {}", before.total(), after.total())
}

/// The output of `--explain-fusion`.
impl fmt::Display for FusionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Cost { kernels, .. }, function) = (self.before, &self.function);
        write!(f, "fusion of @{function}: {kernels} kernels -> {}", self.after.kernels)?;
        if self.groups.iter().any(|group| group.open) {
            writeln!(f, "; costs of open sizes are not known")?;
        } else {
            let cost = change(self.before, self.after);
            writeln!(f, ", cost {cost} (bytes of traffic, and {LAUNCH} for each launch)")?;
        }
        for Simplification { rule, op } in &self.simplifications {
            writeln!(f, "  simplified by {rule}: {op}")?;
        }
        for (index, group) in self.groups.iter().enumerate() {
            writeln!(f, "  group {index} {}", group.headline())?;
            if let Some(why) = &group.slow {
                writeln!(f, "    slow: {why}")?;
            }
            for step in &group.steps {
                writeln!(f, "    {step}")?;
            }
        }
        for (index, attention) in self.attention.iter().enumerate() {
            writeln!(f, "  {}", headline(&format!("attention {index}"), &attention.ops))?;
            for op in &attention.ops {
                writeln!(f, "    computes {op}")?;
            }
            for step in &attention.steps {
                writeln!(f, "    {step}")?;
            }
        }
        for (index, loops) in self.loops.iter().enumerate() {
            writeln!(f, "  loops {index}: {}; {}", loops.op, loops.why)?;
            if let Some(why) = &loops.slow {
                writeln!(f, "    slow: {why}")?;
            }
            for part in &loops.inlined {
                writeln!(f, "    inlined: {part}")?;
            }
        }
        for edge in &self.unfused {
            writeln!(f, "  kept in memory: {edge}")?;
        }
        self.functions.iter().try_for_each(|function| write!(f, "{function}"))
    }
}
