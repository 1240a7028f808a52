//! The fusion rules.
use super::{
    form::{Form, Kind},
    segment::Segment,
    term::{Facts, Firing, Forms, Term, unfused},
};
use egg::{
    Applier, EGraph, Id, Language, Pattern, PatternAst, Rewrite, Runner, SimpleScheduler, Subst,
    Symbol, Var,
};
use std::{collections::BTreeSet, sync::LazyLock, time::Duration};

/// A fusion rule: at a consumer, `(load (kernel ?p))` becomes `?p` if the producer's body has the form of
/// the rule and the two can be combined (see `combine`).
pub struct Rule {
    /// Its name in explanations.
    pub name: &'static str,
    /// The consumer that loads `?p`.
    pub from: &'static str,
    /// The consumer that computes `?p`.
    pub to: &'static str,
    /// The required form of `?p`.
    pub producer: Kind,
    /// The operand of the consumer that is `?p`.
    pub operand: usize,
}

macro_rules! rule {
    ($name:literal; $from:literal => $to:literal; if $producer:ident at $operand:literal) => {
        Rule { name: $name, from: $from, to: $to, producer: Kind::$producer, operand: $operand }
    };
}

/// All fusion rules.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    rule!("map-into-unary";           "(map ?n (load (kernel ?p)))"          => "(map ?n ?p)";          if Elementwise at 0),
    rule!("map-into-left";            "(map ?n (load (kernel ?p)) ?b)"       => "(map ?n ?p ?b)";       if Elementwise at 0),
    rule!("map-into-right";           "(map ?n ?a (load (kernel ?p)))"       => "(map ?n ?a ?p)";       if Elementwise at 1),
    rule!("map-into-transpose";       "(transpose ?n (load (kernel ?p)))"    => "(transpose ?n ?p)";    if Elementwise at 0),
    rule!("epilogue-unary";           "(map ?n (load (kernel ?p)))"          => "(map ?n ?p)";          if Contraction at 0),
    rule!("epilogue-left";            "(map ?n (load (kernel ?p)) ?b)"       => "(map ?n ?p ?b)";       if Contraction at 0),
    rule!("epilogue-right";           "(map ?n ?a (load (kernel ?p)))"       => "(map ?n ?a ?p)";       if Contraction at 1),
    rule!("map-into-reduction";       "(reduce ?n (load (kernel ?p)))"       => "(reduce ?n ?p)";       if Elementwise at 0),
    rule!("rows-into-reduction";      "(reduce ?n (load (kernel ?p)))"       => "(reduce ?n ?p)";       if Rows        at 0),
    rule!("rows-into-unary";          "(map ?n (load (kernel ?p)))"          => "(map ?n ?p)";          if Rows        at 0),
    rule!("rows-into-left";           "(map ?n (load (kernel ?p)) ?b)"       => "(map ?n ?p ?b)";       if Rows        at 0),
    rule!("rows-into-right";          "(map ?n ?a (load (kernel ?p)))"       => "(map ?n ?a ?p)";       if Rows        at 1),
    rule!("map-into-update";          "(update ?n ?d (load (kernel ?p)))"    => "(update ?n ?d ?p)";    if Elementwise at 1),
];

/// Maximum number of iterations of the search for fusions.
pub const MAX_ITERATIONS: usize = 64;

/// Maximum number of terms per node of the segment.
pub const MAX_TERMS_PER_NODE: usize = 64;

/// Applies the rules until saturation, or until a limit is reached.
///
/// Returns, per node, the sets of operands that may be computed in the same kernel, a bit per operand,
/// ascending (0 is always one); and every rule that was applied.
pub fn saturate(segment: &Segment) -> (Vec<Vec<u32>>, BTreeSet<Firing>) {
    let (egraph, bodies) = unfused(segment);
    let rewrites: Vec<_> = RULES.iter().zip(&*PATTERNS).map(rewrite).collect();
    let empty = Forms { segment, firings: BTreeSet::new() };
    let runner = Runner::<Term, Forms<'_>>::new(empty)
        .with_egraph(egraph)
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(MAX_ITERATIONS)
        .with_node_limit(MAX_TERMS_PER_NODE * segment.nodes.len() + MAX_TERMS_PER_NODE)
        .with_time_limit(Duration::MAX)
        .run(&rewrites);
    let variants = bodies.iter().map(|body| variants(&runner.egraph, *body)).collect();
    (variants, runner.egraph.analysis.firings)
}

fn variants(egraph: &EGraph<Term, Forms<'_>>, body: Id) -> Vec<u32> {
    let computed = |id: &Id| matches!(egraph[*id].data, Facts::Computed { .. });
    let mask = |term: &Term| {
        let operands = term.children().iter().skip(1).enumerate();
        operands.filter(|(_, id)| computed(id)).fold(0, |mask, (operand, _)| mask | 1 << operand)
    };
    let masks: BTreeSet<u32> = egraph[body].nodes.iter().map(mask).collect();
    masks.into_iter().collect()
}

/// The two sides of each rule.
static PATTERNS: LazyLock<Vec<[Pattern<Term>; 2]>> = LazyLock::new(|| {
    let pattern = |text: &str| text.parse().expect("rules are patterns");
    RULES.iter().map(|rule| [rule.from, rule.to].map(pattern)).collect()
});

fn rewrite<'s>((rule, patterns): (&'static Rule, &[Pattern<Term>; 2])) -> Rewrite<Term, Forms<'s>> {
    let [from, to] = patterns.clone();
    Rewrite::new(rule.name, from, Fuse { rule, to }).expect("rules bind what they use")
}

/// Rewrites at a match if the rule's side condition holds, and records that it did.
struct Fuse {
    rule: &'static Rule,
    to: Pattern<Term>,
}

impl Applier<Term, Forms<'_>> for Fuse {
    fn apply_one(
        &self,
        egraph: &mut EGraph<Term, Forms<'_>>,
        class: Id,
        subst: &Subst,
        ast: Option<&PatternAst<Term>>,
        name: Symbol,
    ) -> Vec<Id> {
        match self.condition(egraph, subst) {
            Some(firing) => {
                egraph.analysis.firings.insert(firing);
                self.to.apply_one(egraph, class, subst, ast, name)
            }
            None => vec![],
        }
    }

    fn vars(&self) -> Vec<Var> {
        self.to.vars()
    }
}

impl Fuse {
    fn condition(&self, egraph: &EGraph<Term, Forms<'_>>, subst: &Subst) -> Option<Firing> {
        let fact = |name: &str| &egraph[subst[name.parse().expect("a variable")]].data;
        let (Facts::Name(node), Facts::Computed { forms, .. }) = (fact("?n"), fact("?p")) else {
            return None;
        };
        let (segment, operand) = (egraph.analysis.segment, self.rule.operand);
        let placed = &segment.nodes[*node];
        if placed.operands[operand].cut.is_some() {
            return None;
        }
        let fits = |form: &&Form| {
            let mut operands = vec![None; placed.operands.len()];
            operands[operand] = Some(*form);
            form.kind == self.rule.producer && segment.combine(*node, &operands).is_ok()
        };
        forms.iter().find(fits)?;
        Some(Firing { node: *node, operand, rule: self.rule.name.to_owned() })
    }
}
