//! The language of fusion, for egg.
//!
//! A kernel is `(kernel BODY)`: it computes its body and writes it to memory. `(load KERNEL)` reads it
//! back. Initially every op is a kernel of its own, `(kernel (map n1 (load (kernel ...))))`, and a fusion
//! rewrites `(load (kernel BODY))` to `BODY` at one consumer.
//!
//! Every body has one class per node of the segment, with all variants of computing it; the analysis
//! computes the [`Form`]s of these variants.
use super::{
    form::{Application, Form, combine, why_slow},
    segment::{Segment, Source},
};
use egg::{Analysis, DidMerge, EGraph, Id, Language, define_language};
use irc_tl::{Family, Op};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, str::FromStr};

/// The name of a node of the segment: `n3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(pub usize);

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "n{}", self.0)
    }
}

impl FromStr for NodeName {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix('n').ok_or(())?;
        digits.parse().map(Self).map_err(|_| ())
    }
}

/// The name of an input of the segment: `in3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputName(pub usize);

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in{}", self.0)
    }
}

impl FromStr for InputName {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text.strip_prefix("in").ok_or(())?;
        digits.parse().map(Self).map_err(|_| ())
    }
}

define_language! {
    /// A term of the fusion language. Ops have the name of their node, then their operands.
    pub enum Term {
        "kernel" = Kernel([Id; 1]),
        "load" = Load([Id; 1]),
        "map" = Map(Box<[Id]>),
        "pick" = Pick(Box<[Id]>),
        "transpose" = Transpose([Id; 2]),
        "reduce" = Reduce([Id; 2]),
        "matmul" = Matmul([Id; 3]),
        "update" = Update([Id; 3]),
        Node(NodeName),
        Input(InputName),
    }
}

/// The term that applies an op to operands, by the op's family, which rules distinguish.
fn application(op: &Op, node: Id, operands: &[Id]) -> Term {
    let all = || std::iter::once(node).chain(operands.iter().copied()).collect();
    match op.family() {
        Family::Pick | Family::Loops => Term::Pick(all()),
        Family::Transpose => Term::Transpose([node, operands[0]]),
        Family::Reduction => Term::Reduce([node, operands[0]]),
        Family::Contraction => Term::Matmul([node, operands[0], operands[1]]),
        Family::Update => Term::Update([node, operands[0], operands[1]]),
        Family::Elementwise | Family::Accumulation | Family::View => Term::Map(all()),
    }
}

/// The analysis data of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// The name of a node.
    Name(usize),
    /// A kernel or an input: a value in memory.
    Memory,
    /// A value read from memory.
    Loaded,
    /// A computed value: the node, and the possible forms of its bodies.
    Computed {
        /// Index in the segment.
        node: usize,
        /// All forms.
        forms: BTreeSet<Form>,
    },
}

/// An application of a rule: the rule, the node and the operand.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Firing {
    /// The consumer, by index in the segment.
    pub node: usize,
    /// The operand that is computed in the same kernel.
    pub operand: usize,
    /// The rule's name.
    pub rule: String,
}

/// The analysis: forms per class.
pub struct Forms<'s> {
    /// The segment that is fused.
    pub segment: &'s Segment,
    /// Every rule that was applied.
    pub firings: BTreeSet<Firing>,
}

impl Analysis<Term> for Forms<'_> {
    type Data = Facts;

    fn make(egraph: &mut EGraph<Term, Self>, term: &Term, _: Id) -> Facts {
        match term {
            Term::Node(name) => Facts::Name(name.0),
            Term::Input(_) | Term::Kernel(_) => Facts::Memory,
            Term::Load(_) => Facts::Loaded,
            _ => computed(egraph, term),
        }
    }

    fn merge(&mut self, into: &mut Facts, from: Facts) -> DidMerge {
        let (Facts::Computed { forms, .. }, Facts::Computed { forms: more, .. }) = (into, from)
        else {
            return DidMerge(false, false);
        };
        let (before, other) = (forms.len(), more.len());
        forms.extend(more);
        DidMerge(forms.len() != before, forms.len() != other)
    }
}

fn computed(egraph: &EGraph<Term, Forms<'_>>, term: &Term) -> Facts {
    let (name, operands) = term.children().split_first().expect("an op names its node");
    let Facts::Name(node) = egraph[*name].data else {
        unreachable!("the first child of an op is the name of its node");
    };
    let choices: Vec<Vec<Option<Form>>> =
        operands.iter().map(|operand| choices(&egraph[*operand].data)).collect();
    let mut forms = BTreeSet::new();
    for_each_combination(&choices, &mut Vec::new(), &mut |operands| {
        forms.extend(egraph.analysis.segment.combine(node, operands));
    });
    Facts::Computed { node, forms }
}

fn choices(facts: &Facts) -> Vec<Option<Form>> {
    match facts {
        Facts::Computed { forms, .. } => forms.iter().cloned().map(Some).collect(),
        _ => vec![None],
    }
}

fn for_each_combination<'f>(
    choices: &'f [Vec<Option<Form>>],
    chosen: &mut Vec<Option<&'f Form>>,
    visit: &mut impl FnMut(&[Option<&'f Form>]),
) {
    let Some((first, rest)) = choices.split_first() else { return visit(chosen) };
    for choice in first {
        chosen.push(choice.as_ref());
        for_each_combination(rest, chosen, visit);
        chosen.pop();
    }
}

impl Segment {
    /// `combine` for one of its nodes.
    ///
    /// # Errors
    /// Why the operands cannot share the kernel.
    pub fn combine(&self, node: usize, operands: &[Option<&Form>]) -> Result<Form, String> {
        self.applied(node, |apply| combine(apply, operands))
    }

    /// Why a kernel with a node is slow, if it is.
    pub fn why_slow(&self, node: usize) -> Option<String> {
        self.applied(node, why_slow)
    }

    fn applied<T>(&self, node: usize, function: impl FnOnce(Application<'_>) -> T) -> T {
        let placed = &self.nodes[node];
        let types: Vec<_> = placed.operands.iter().map(|edge| self.type_of(edge.source)).collect();
        function(Application { node, op: &placed.op, operands: &types, result: &placed.ty })
    }
}

/// The graph of a segment before any rule is applied, and the class of each node's body.
pub fn unfused(segment: &Segment) -> (EGraph<Term, Forms<'_>>, Vec<Id>) {
    let mut egraph = EGraph::new(Forms { segment, firings: BTreeSet::new() });
    let mut bodies: Vec<Id> = Vec::new();
    for (index, node) in segment.nodes.iter().enumerate() {
        let name = egraph.add(Term::Node(NodeName(index)));
        let mut operands = Vec::new();
        for edge in &node.operands {
            let memory = match edge.source {
                Source::Input(input) => egraph.add(Term::Input(InputName(input))),
                Source::Node(from) => egraph.add(Term::Kernel([bodies[from]])),
            };
            operands.push(egraph.add(Term::Load([memory])));
        }
        bodies.push(egraph.add(application(&node.op, name, &operands)));
    }
    egraph.rebuild();
    (egraph, bodies)
}
