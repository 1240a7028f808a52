//! The pass `simplify-tl`: rewrites functions by the algebra rules.
//!
//! Before: functions of `tl` ops. After: equivalent functions, bit for bit, with at most as many ops: equal
//! ops are merged, dead ops are removed, and every rule of [`algebra`] has been applied if it makes the
//! function smaller. Groups and ops of other dialects are not changed.
//!
//! A function of more than [`MAX_NODES`] ops is rewritten in pieces of so many consecutive ops, from the
//! last to the first, so that ops that later pieces no longer use are removed: the time is linear in the
//! length of the function. Equal ops are merged across pieces too.
use super::{
    algebra::{AlgebraRule, Expr, Match, Types, When, add_op, add_parameters, algebra, applied_op},
    explain::name_op,
    graph::{Function, Graph, Node, NodeId, ValueId, read_function},
    report::Simplification,
    smallest::Smallest,
    term::InputName,
};
use egg::{
    Applier, EGraph, Id, Language, Pattern, PatternAst, Rewrite, Runner, SimpleScheduler, Subst,
    Symbol, Var,
};
use irc_dialects::tl;
use irc_mlir::ops::func;
use irc_mlir::{
    Attribute, BlockLike, Erase, Location, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, Value, context_of, move_before_terminator, rebind, set_operand,
};
use irc_tl::{Family, Op};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
    time::Duration,
};

/// Maximum number of iterations of rewriting.
const MAX_ITERATIONS: usize = 32;

/// Maximum number of terms per op of the function.
const MAX_TERMS_PER_OP: usize = 32;

/// Maximum number of ops that are rewritten together: the time to choose the smallest terms is quadratic in
/// it.
const MAX_NODES: usize = 1024;

/// The pass `simplify-tl`.
pub struct SimplifyTl;

impl Pass for SimplifyTl {
    fn name(&self) -> &'static str {
        "simplify-tl"
    }
    fn description(&self) -> &'static str {
        "rewrite tensor-level functions by the exact algebra rules"
    }
    fn anchor(&self) -> &'static str {
        func::FUNC
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["tl"]
    }
    fn run(&self, func: OperationRef<'_, '_>, _: &Options) -> PassResult {
        simplify_function(func).map_err(|error| PassError::at(&func, error))?;
        Ok(())
    }
}

/// Rewrites a function by the algebra rules. Returns which were applied where.
///
/// # Errors
/// If the function cannot be represented as a graph of tensors.
pub fn simplify_function<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
) -> Result<Vec<Simplification>, String> {
    let Some(function) = read_function(func)? else { return Ok(Vec::new()) };
    let (graph, applied) = simplify(&function.graph);
    let applied = applied_rules(&function, applied);
    if graph != function.graph {
        rewrite_body(func, &function, &graph)?;
    }
    Ok(applied)
}

/// Names the rules that [`simplify`] applied to the graph of a function.
pub fn applied_rules(
    function: &Function<'_, '_>,
    applied: Vec<(&'static str, NodeId)>,
) -> Vec<Simplification> {
    let name = |(rule, node): (&str, NodeId)| Simplification {
        rule: rule.to_owned(),
        op: name_op(function, node),
    };
    applied.into_iter().map(name).collect()
}

/// The smallest graph that the rules find, and which rule rewrote which node of the old one.
pub fn simplify(graph: &Graph) -> (Graph, Vec<(&'static str, NodeId)>) {
    if graph.nodes.len() <= MAX_NODES {
        return simplify_piece(graph);
    }
    let same = earlier_equals(graph);
    let nodes: Vec<NodeId> = (0..graph.nodes.len())
        .filter(|node| graph.nodes[*node].results.iter().all(|result| same[*result] == *result))
        .collect();
    let (mut pieces, mut applied) = (vec![], vec![]);
    let mut needed = vec![false; graph.types.len()];
    graph.results.iter().for_each(|result| needed[same[*result]] = true);
    for nodes in nodes.chunks(MAX_NODES).rev() {
        let piece = Piece::cut(graph, &same, nodes, &needed);
        let (simple, rules) = simplify_piece(&piece.graph);
        applied.extend(rules.into_iter().map(|(rule, node)| (rule, nodes[node])));
        let used = simple.nodes.iter().flat_map(|node| &node.operands).chain(&simple.results);
        for value in used.filter(|value| **value < piece.inputs.len()) {
            needed[piece.inputs[*value]] = true;
        }
        pieces.push(Piece { graph: simple, ..piece });
    }
    applied.sort_unstable_by_key(|(rule, node)| (*node, *rule));
    pieces.reverse();
    (joined(graph, &same, &pieces), applied)
}

/// Per value: the first value that an equal op on equal operands defines.
fn earlier_equals(graph: &Graph) -> Vec<ValueId> {
    let mut same: Vec<ValueId> = (0..graph.types.len()).collect();
    let mut known: BTreeMap<(&Op, Vec<ValueId>), ValueId> = BTreeMap::new();
    for node in &graph.nodes {
        let (Some(op), [result]) = (&node.op, &node.results[..]) else { continue };
        let operands = node.operands.iter().map(|operand| same[*operand]).collect();
        same[*result] = *known.entry((op, operands)).or_insert(*result);
    }
    same
}

/// Some nodes of a graph as a graph of their own. Its first values are its inputs.
struct Piece {
    graph: Graph,
    /// The values of the whole graph that are its inputs.
    inputs: Vec<ValueId>,
    /// The values of the whole graph that are its results.
    results: Vec<ValueId>,
}

impl Piece {
    fn cut(graph: &Graph, same: &[ValueId], nodes: &[NodeId], needed: &[bool]) -> Self {
        let made: BTreeSet<ValueId> =
            nodes.iter().flat_map(|node| &graph.nodes[*node].results).copied().collect();
        let read = nodes.iter().flat_map(|node| &graph.nodes[*node].operands);
        let read: BTreeSet<ValueId> = read.map(|operand| same[*operand]).collect();
        let inputs: Vec<ValueId> = read.difference(&made).copied().collect();
        let results: Vec<ValueId> = made.iter().copied().filter(|value| needed[*value]).collect();
        let mut piece = Graph::default();
        let mut own: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        for input in &inputs {
            own.insert(*input, piece.add_value(graph.types[*input].clone(), None));
        }
        for (index, node) in nodes.iter().map(|node| &graph.nodes[*node]).enumerate() {
            let operands = node.operands.iter().map(|operand| own[&same[*operand]]).collect();
            for result in &node.results {
                let id = piece.add_value(graph.types[*result].clone(), Some(index));
                own.insert(*result, id);
            }
            let results = node.results.iter().map(|result| own[result]).collect();
            piece.nodes.push(Node { operands, results, ..node.clone() });
        }
        piece.results = results.iter().map(|result| own[result]).collect();
        Self { graph: piece, inputs, results }
    }
}

/// Joins pieces to one graph.
fn joined(graph: &Graph, same: &[ValueId], pieces: &[Piece]) -> Graph {
    let mut whole = Graph::default();
    let mut found: Vec<Option<ValueId>> = vec![None; graph.types.len()];
    for value in (0..graph.types.len()).filter(|value| graph.makers[*value].is_none()) {
        found[value] = Some(whole.add_value(graph.types[value].clone(), None));
    }
    for Piece { graph: piece, inputs, results } in pieces {
        let known = inputs.iter().map(|input| found[*input]);
        let mut own: Vec<Option<ValueId>> = known.collect();
        own.resize(piece.types.len(), None);
        let value = |own: &[Option<ValueId>], value: ValueId| {
            own[value].expect("pieces come behind those that make what they need")
        };
        for node in &piece.nodes {
            let operands = node.operands.iter().map(|operand| value(&own, *operand)).collect();
            let index = whole.nodes.len();
            for result in &node.results {
                let id = whole.add_value(piece.types[*result].clone(), Some(index));
                own[*result] = Some(id);
            }
            let results = node.results.iter().map(|result| value(&own, *result)).collect();
            whole.nodes.push(Node { operands, results, ..node.clone() });
        }
        for (result, place) in results.iter().zip(&piece.results) {
            found[*result] = own[*place];
        }
    }
    let value = |result: &ValueId| found[same[*result]].expect("results are needed");
    whole.results = graph.results.iter().map(value).collect();
    whole
}

/// As [`simplify`], for all nodes of a graph together.
fn simplify_piece(graph: &Graph) -> (Graph, Vec<(&'static str, NodeId)>) {
    let (egraph, classes) = to_egraph(graph);
    let runner = Runner::<Expr, Types>::new(Types::default())
        .with_egraph(egraph)
        .with_scheduler(SimpleScheduler)
        .with_iter_limit(MAX_ITERATIONS)
        .with_node_limit(MAX_TERMS_PER_OP * (graph.nodes.len() + MAX_TERMS_PER_OP))
        .with_time_limit(Duration::MAX)
        .run(REWRITES.iter());
    let egraph = runner.egraph;
    let mut origins: BTreeMap<Id, Vec<NodeId>> = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate().filter(|(_, node)| node.op.is_some()) {
        origins.entry(egraph.find(classes[node.results[0]])).or_default().push(index);
    }
    let node_of = |class: Id| origins.get(&egraph.find(class)).and_then(|nodes| nodes.first());
    let applied = egraph.analysis.applied.iter();
    let applied: BTreeSet<_> =
        applied.filter_map(|(rule, class)| Some((*node_of(*class)?, *rule))).collect();
    let applied = applied.into_iter().map(|(node, rule)| (rule, node)).collect();
    let best = Smallest::of(&egraph, own_cost);
    let rebuild = Rebuild { old: graph, egraph: &egraph, classes: &classes, best, origins };
    (rebuild.run(), applied)
}

/// The cost of a term. Views have the minimum cost, ops without operands are recomputed where they are
/// used; parameters and inputs are not ops.
fn own_cost(term: &Expr) -> u64 {
    match term {
        Expr::Parameters(_) | Expr::Input(_) => 0,
        Expr::Op(name, _) if name.0.family == Family::View => 1,
        Expr::Op(name, _) if name.0.arity() == Some(0) => 2,
        Expr::Op(..) => 8,
    }
}

/// The graph as terms, and the class of every value. Results of other dialects' ops are inputs.
fn to_egraph(graph: &Graph) -> (EGraph<Expr, Types>, Vec<Id>) {
    let mut egraph = EGraph::new(Types { inputs: graph.types.clone(), ..Types::default() });
    let mut classes: Vec<Option<Id>> = vec![None; graph.types.len()];
    let input = |egraph: &mut EGraph<Expr, Types>, value| egraph.add(Expr::Input(InputName(value)));
    for node in &graph.nodes {
        let mut operands = Vec::new();
        for value in &node.operands {
            let class = classes[*value].unwrap_or_else(|| input(&mut egraph, *value));
            classes[*value] = Some(class);
            operands.push(class);
        }
        if let Some(op) = &node.op {
            classes[node.results[0]] = Some(add_op(&mut egraph, op, &operands));
        }
    }
    let classes = classes.into_iter().enumerate();
    let classes = classes.map(|(value, class)| class.unwrap_or_else(|| input(&mut egraph, value)));
    let classes = classes.collect();
    egraph.rebuild();
    (egraph, classes)
}

/// The rules for egg.
static REWRITES: LazyLock<Vec<Rewrite<Expr, Types>>> =
    LazyLock::new(|| algebra().iter().map(rewrite).collect());

fn rewrite(rule: &'static AlgebraRule) -> Rewrite<Expr, Types> {
    let from: Pattern<Expr> = rule.from.parse().expect("rules are patterns");
    let to: Pattern<Expr> = rule.to.parse().expect("rules are patterns");
    let new: Var = "?new".parse().expect("a variable");
    Rewrite::new(&*rule.name, from, Apply { rule, to, new }).expect("rules bind what they use")
}

struct Apply {
    rule: &'static AlgebraRule,
    to: Pattern<Expr>,
    new: Var,
}

impl Applier<Expr, Types> for Apply {
    fn apply_one(
        &self,
        egraph: &mut EGraph<Expr, Types>,
        class: Id,
        subst: &Subst,
        ast: Option<&PatternAst<Expr>>,
        name: Symbol,
    ) -> Vec<Id> {
        let found = Match { egraph, class, subst };
        let mut subst = subst.clone();
        match self.rule.when {
            When::If(holds) if holds(&found) => {}
            When::If(_) => return vec![],
            When::Let(compute) => {
                let Some(op) = compute(&found) else { return vec![] };
                subst.insert(self.new, add_parameters(egraph, op));
            }
        }
        let changed = self.to.apply_one(egraph, class, &subst, ast, name);
        if !changed.is_empty() {
            egraph.analysis.applied.insert((&*self.rule.name, class));
        }
        changed
    }

    fn vars(&self) -> Vec<Var> {
        self.to.vars().into_iter().filter(|var| *var != self.new).collect()
    }
}

struct Rebuild<'r> {
    old: &'r Graph,
    egraph: &'r EGraph<Expr, Types>,
    classes: &'r [Id],
    best: Smallest,
    /// The nodes of the old graph in each class.
    origins: BTreeMap<Id, Vec<NodeId>>,
}

impl Rebuild<'_> {
    /// Builds the graph of the chosen terms, in the order of the original ops.
    fn run(&self) -> Graph {
        let old = self.old;
        let mut new = Graph::default();
        let mut made: BTreeMap<Id, ValueId> = BTreeMap::new();
        for value in (0..old.types.len()).filter(|value| old.makers[*value].is_none()) {
            let id = new.add_value(old.types[value].clone(), None);
            made.insert(self.class(value), id);
        }
        let needed = self.needed();
        for node in &old.nodes {
            if node.op.is_some() {
                let class = self.class(node.results[0]);
                if needed.contains(&class) {
                    self.make(&mut new, &mut made, class);
                }
                continue;
            }
            let operands = self.values(&mut new, &mut made, &node.operands);
            let index = new.nodes.len();
            let results = node.results.iter().map(|result| {
                let id = new.add_value(old.types[*result].clone(), Some(index));
                made.insert(self.class(*result), id);
                id
            });
            let results = results.collect();
            new.nodes.push(Node { op: None, operands, results, origins: node.origins.clone() });
        }
        new.results = self.values(&mut new, &mut made, &old.results);
        new
    }

    /// The classes that the results and other dialects' ops use, through the chosen terms.
    fn needed(&self) -> BTreeSet<Id> {
        let outside = self.old.nodes.iter().filter(|node| node.op.is_none());
        let values = outside.flat_map(|node| &node.operands).chain(&self.old.results);
        let mut pending: Vec<Id> = values.map(|value| self.class(*value)).collect();
        let mut needed = BTreeSet::new();
        while let Some(class) = pending.pop() {
            if needed.insert(class) {
                let children = self.best.term(class).children().iter();
                pending.extend(children.map(|child| self.egraph.find(*child)));
            }
        }
        needed
    }

    fn class(&self, value: ValueId) -> Id {
        self.egraph.find(self.classes[value])
    }

    fn values(
        &self,
        new: &mut Graph,
        made: &mut BTreeMap<Id, ValueId>,
        values: &[ValueId],
    ) -> Vec<ValueId> {
        values.iter().map(|value| self.make(new, made, self.class(*value))).collect()
    }

    /// Adds the dependencies of a class, without recursion, as programs may be deep.
    fn make(&self, new: &mut Graph, made: &mut BTreeMap<Id, ValueId>, class: Id) -> ValueId {
        let mut pending = vec![(class, Vec::new())];
        while let Some((class, users)) = pending.last().cloned() {
            if made.contains_key(&class) {
                pending.pop();
                continue;
            }
            let (op, operands) = applied_op(self.egraph, self.best.term(class));
            let operands: Vec<_> = operands.iter().map(|id| self.egraph.find(*id)).collect();
            let origins = self.origins.get(&class).unwrap_or(&users).clone();
            if let Some(missing) = operands.iter().find(|operand| !made.contains_key(operand)) {
                pending.push((*missing, origins));
                continue;
            }
            let origins = origins.iter().flat_map(|node| self.old.nodes[*node].origins.clone());
            let origins = origins.collect();
            let operands = operands.iter().map(|operand| made[operand]).collect();
            let ty = super::algebra::type_of(self.egraph, class).clone();
            made.insert(class, new.add_op(op, operands, ty, origins));
            pending.pop();
        }
        made[&class]
    }
}

/// Replaces the body by a graph that was built from it.
pub(super) fn rewrite_body<'c: 'a, 'a>(
    func: OperationRef<'c, 'a>,
    function: &Function<'c, 'a>,
    graph: &Graph,
) -> Result<(), String> {
    let context = context_of(&func);
    let block = function.terminator.block().ok_or("expected the function to have a body")?;
    let arguments = function.graph.makers.iter().take_while(|maker| maker.is_none()).count();
    let mut values: Vec<Value> = function.values[..arguments].to_vec();
    for node in &graph.nodes {
        let operands: Vec<_> = node.operands.iter().map(|value| values[*value]).collect();
        let old = function.ops[node.origins[0]];
        if let Some(op) = &node.op {
            let built = tl::build(context, op, &operands, location(function, node))?;
            let built = block.insert_operation_before(function.terminator, built);
            let result = built.result(0).map_err(|error| error.to_string())?;
            values.push(rebind(result.into()));
        } else {
            operands.iter().enumerate().for_each(|(at, value)| set_operand(old, at, *value));
            move_before_terminator(old, &block);
            values.extend(old.results().map(|result| -> Value { result.into() }));
        }
    }
    for (index, value) in graph.results.iter().enumerate() {
        set_operand(function.terminator, index, values[*value]);
    }
    for node in function.graph.nodes.iter().rev().filter(|node| node.op.is_some()) {
        function.ops[node.origins[0]].erase();
    }
    Ok(())
}

/// The locations of all ops that a node represents.
fn location<'c>(function: &Function<'c, '_>, node: &Node) -> Location<'c> {
    let mut locations: Vec<Location> = Vec::new();
    for origin in &node.origins {
        let location = function.ops[*origin].location();
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
    match locations.as_slice() {
        [one] => *one,
        several => {
            let context = context_of(&function.terminator);
            Location::fused(context, several, Attribute::unit(context))
        }
    }
}
