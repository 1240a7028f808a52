//! The algebra rules and their language.
//!
//! Only rules that preserve every bit of every result (a NaN may change its payload).
use super::term::InputName;
use egg::{Analysis, DidMerge, EGraph, FromOp, Id, Language};
use irc_tl::{DType, Law, Op, Reduction, Row, TensorType};
use std::{
    borrow::Cow,
    cmp::Ordering,
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
    sync::LazyLock,
};

/// The name of an op's parameters: `p3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters(pub usize);

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

/// The name of an op in terms: its row.
#[derive(Clone, Copy, Debug)]
pub struct Name(pub &'static Row);

impl Name {
    const fn key(self) -> &'static str {
        self.0.name
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// A term of the language of the rules, in which every op has its own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expr {
    /// A tensor-level op: its parameters if it has any, then its operands.
    Op(Name, Box<[Id]>),
    /// The parameters of an op.
    Parameters(Parameters),
    /// An input.
    Input(InputName),
}

/// What terms with different children have in common, for matching.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Head {
    /// An op of this name.
    Op(Name),
    /// Parameters.
    Parameters,
    /// An input.
    Input,
}

impl Language for Expr {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        match self {
            Self::Op(name, _) => Head::Op(*name),
            Self::Parameters(_) => Head::Parameters,
            Self::Input(_) => Head::Input,
        }
    }

    fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Op(name, children), Self::Op(other, others)) => {
                name == other && children.len() == others.len()
            }
            _ => self == other,
        }
    }

    fn children(&self) -> &[Id] {
        match self {
            Self::Op(_, children) => children,
            Self::Parameters(_) | Self::Input(_) => &[],
        }
    }

    fn children_mut(&mut self) -> &mut [Id] {
        match self {
            Self::Op(_, children) => children,
            Self::Parameters(_) | Self::Input(_) => &mut [],
        }
    }
}

impl FromOp for Expr {
    type Error = String;

    fn from_op(name: &str, children: Vec<Id>) -> Result<Self, String> {
        let row = Row::named(name).ok_or_else(|| format!("there is no op {name}"))?;
        let parameters = usize::from(row.plain().is_none());
        match row.arity() {
            Some(operands) if operands + parameters != children.len() => {
                Err(format!("{name} has {parameters} name of parameters and {operands} operands"))
            }
            _ => Ok(Self::Op(Name(row), children.into())),
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Op(name, _) => f.write_str(name.key()),
            Self::Parameters(parameters) => parameters.fmt(f),
            Self::Input(input) => input.fmt(f),
        }
    }
}

/// The analysis data of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// Parameters of this op.
    Parameters(Op),
    /// A tensor of this type.
    Tensor(TensorType),
}

/// The analysis: types, and the tables that terms refer to.
#[derive(Default)]
pub struct Types {
    /// The ops of parameters.
    pub ops: Vec<Op>,
    /// The types of the inputs.
    pub inputs: Vec<TensorType>,
    /// Which rules were applied to which classes.
    pub applied: BTreeSet<(&'static str, Id)>,
}

impl Analysis<Expr> for Types {
    type Data = Facts;

    fn make(egraph: &mut EGraph<Expr, Self>, expr: &Expr, _: Id) -> Facts {
        match expr {
            Expr::Parameters(name) => Facts::Parameters(egraph.analysis.ops[name.0].clone()),
            Expr::Input(name) => Facts::Tensor(egraph.analysis.inputs[name.0].clone()),
            _ => {
                let (op, operands) = applied_op(egraph, expr);
                let types: Vec<_> =
                    operands.iter().map(|operand| type_of(egraph, *operand).clone()).collect();
                Facts::Tensor(op.infer(&types).expect("rules make ops their operands allow"))
            }
        }
    }

    fn merge(&mut self, into: &mut Facts, from: Facts) -> DidMerge {
        assert_eq!(*into, from, "a rule changed the type of a tensor");
        DidMerge(false, false)
    }
}

/// The op that a term applies, and its operands.
pub fn applied_op(egraph: &EGraph<Expr, Types>, expr: &Expr) -> (Op, Vec<Id>) {
    let children = expr.children();
    if let Some(Facts::Parameters(op)) = children.first().map(|first| &egraph[*first].data) {
        return (op.clone(), children[1..].to_vec());
    }
    let op = match expr {
        Expr::Op(name, _) => name.0.plain(),
        Expr::Parameters(_) | Expr::Input(_) => None,
    };
    (op.expect("an op without parameters is all in its row"), children.to_vec())
}

/// The type of a tensor's class.
pub fn type_of(egraph: &EGraph<Expr, Types>, id: Id) -> &TensorType {
    match &egraph[id].data {
        Facts::Tensor(ty) => ty,
        Facts::Parameters(op) => unreachable!("{} stands where a tensor must", op.name()),
    }
}

/// Adds the class of an op's parameters.
pub fn add_parameters(egraph: &mut EGraph<Expr, Types>, op: Op) -> Id {
    let known = egraph.analysis.ops.iter().position(|known| *known == op);
    let at = known.unwrap_or_else(|| {
        egraph.analysis.ops.push(op);
        egraph.analysis.ops.len() - 1
    });
    egraph.add(Expr::Parameters(Parameters(at)))
}

/// Adds an op applied to tensors.
pub fn add_op(egraph: &mut EGraph<Expr, Types>, op: &Op, operands: &[Id]) -> Id {
    let parameters = op.row().plain().is_none().then(|| add_parameters(egraph, op.clone()));
    let children = parameters.into_iter().chain(operands.iter().copied()).collect();
    egraph.add(Expr::Op(Name(op.row()), children))
}

/// An algebra rule.
pub struct AlgebraRule {
    /// Its name in explanations.
    pub name: Cow<'static, str>,
    /// The left-hand side.
    pub from: Cow<'static, str>,
    /// The right-hand side; `?new` is the parameters that the condition computes.
    pub to: Cow<'static, str>,
    /// The side condition.
    pub when: When,
}

/// A side condition.
pub enum When {
    /// A predicate.
    If(fn(&Match<'_>) -> bool),
    /// True if it returns `Some`: the op whose parameters are `?new`.
    Let(fn(&Match<'_>) -> Option<Op>),
}

/// A match, for side conditions.
pub struct Match<'m> {
    /// The graph.
    pub egraph: &'m EGraph<Expr, Types>,
    /// The class that is matched.
    pub class: Id,
    /// The values of the variables.
    pub subst: &'m egg::Subst,
}

impl Match<'_> {
    fn id(&self, variable: &str) -> Id {
        self.subst[variable.parse().expect("a variable")]
    }
    fn ty(&self, variable: &str) -> &TensorType {
        type_of(self.egraph, self.id(variable))
    }
    fn result(&self) -> &TensorType {
        type_of(self.egraph, self.class)
    }
    fn op(&self, variable: &str) -> &Op {
        match &self.egraph[self.id(variable)].data {
            Facts::Parameters(op) => op,
            Facts::Tensor(ty) => unreachable!("a tensor of {ty} stands where parameters must"),
        }
    }
}

macro_rules! rule {
    ($name:literal; $from:literal => $to:literal; if $when:expr) => {
        rule($name, $from, $to, When::If($when))
    };
    ($name:literal; $from:literal => $to:literal; let $when:expr) => {
        rule($name, $from, $to, When::Let($when))
    };
}

const fn rule(name: &'static str, from: &'static str, to: &'static str, when: When) -> AlgebraRule {
    let (name, from, to) = (Cow::Borrowed(name), Cow::Borrowed(from), Cow::Borrowed(to));
    AlgebraRule { name, from, to, when }
}

/// All algebra rules: those of the table below, and those in the rows of the ops.
pub fn algebra() -> &'static [AlgebraRule] {
    static ALL: LazyLock<Vec<AlgebraRule>> =
        LazyLock::new(|| ALGEBRA.into_iter().chain(Op::rows().filter_map(law)).collect());
    &ALL
}

/// The rule for applying a row's op twice.
fn law(row: &Row) -> Option<AlgebraRule> {
    let name = row.name;
    let to = match row.law? {
        Law::Idempotent => format!("({name} ?x)"),
        Law::Involution => "?x".to_owned(),
    };
    let from = format!("({name} ({name} ?x))").into();
    let when = When::If(always);
    Some(AlgebraRule { name: format!("double-{name}").into(), from, to: to.into(), when })
}

#[rustfmt::skip]
const ALGEBRA: [AlgebraRule; 27] = [
    rule!("transpose-into-matmul-left";  "(matmul ?m (transpose ?t ?a) ?b)"     => "(matmul ?new ?a ?b)";   let flip_left),
    rule!("transpose-into-matmul-right"; "(matmul ?m ?a (transpose ?t ?b))"     => "(matmul ?new ?a ?b)";   let flip_right),
    rule!("double-transpose";            "(transpose ?t (transpose ?s ?x))"     => "(transpose ?new ?x)";   let compose_transposes),
    rule!("transpose-of-units";          "(transpose ?t ?x)"                    => "(reshape ?new ?x)";     let order_stays),
    rule!("double-reshape";              "(reshape ?r (reshape ?s ?x))"         => "(reshape ?r ?x)";       if always),
    rule!("identity-reshape";            "(reshape ?r ?x)"                      => "?x";                    if same_type),
    rule!("double-bitcast";              "(bitcast ?r (bitcast ?s ?x))"         => "(bitcast ?r ?x)";       if always),
    rule!("identity-bitcast";            "(bitcast ?r ?x)"                      => "?x";                    if same_type),
    rule!("identity-broadcast";          "(broadcast ?r ?x)"                    => "?x";                    if same_type),
    rule!("identity-slice";              "(slice ?r ?x)"                        => "?x";                    if same_type),
    rule!("double-slice";                "(slice ?r (slice ?s ?x))"             => "(slice ?new ?x)";       let compose_slices),
    rule!("identity-cast";               "(cast ?c ?x)"                         => "?x";                    if same_type),
    rule!("cast-of-widening";            "(cast ?c (cast ?d ?x))"               => "(cast ?c ?x)";          if inner_is_exact),
    rule!("cast-of-fill";                "(cast ?c (fill ?x))"                  => "(fill ?new)";           let cast_fill),
    rule!("reshape-of-fill";             "(reshape ?r (fill ?x))"               => "(fill ?new)";           let shape_fill),
    rule!("broadcast-of-fill";           "(broadcast ?r (fill ?x))"             => "(fill ?new)";           let shape_fill),
    rule!("transpose-of-fill";           "(transpose ?r (fill ?x))"             => "(fill ?new)";           let shape_fill),
    rule!("slice-of-fill";               "(slice ?r (fill ?x))"                 => "(fill ?new)";           let shape_fill),
    rule!("mul-one-left";                "(mul (fill ?c) ?x)"                   => "?x";                    if |m| same_type(m) && filled(m, 1.0)),
    rule!("mul-one-right";               "(mul ?x (fill ?c))"                   => "?x";                    if |m| same_type(m) && filled(m, 1.0)),
    rule!("div-one";                     "(div ?x (fill ?c))"                   => "?x";                    if |m| same_type(m) && filled(m, 1.0)),
    rule!("sub-zero";                    "(sub ?x (fill ?c))"                   => "?x";                    if |m| same_type(m) && filled(m, 0.0)),
    rule!("add-zero-left";               "(add (fill ?c) ?x)"                   => "?x";                    if |m| same_type(m) && neutral_of_add(m)),
    rule!("add-zero-right";              "(add ?x (fill ?c))"                   => "?x";                    if |m| same_type(m) && neutral_of_add(m)),
    rule!("keep-dims-of-sum";            "(reshape ?r (reduce_sum ?s ?x))"      => "(reduce_sum ?new ?x)";  let other_keep_dims),
    rule!("keep-dims-of-max";            "(reshape ?r (reduce_max ?s ?x))"      => "(reduce_max ?new ?x)";  let other_keep_dims),
    rule!("keep-dims-of-mean";           "(reshape ?r (reduce_mean ?s ?x))"     => "(reduce_mean ?new ?x)"; let other_keep_dims),
];

const fn always(_: &Match<'_>) -> bool {
    true
}

fn same_type(found: &Match<'_>) -> bool {
    found.ty("?x") == found.result()
}

fn fill_value(found: &Match<'_>, variable: &str) -> f64 {
    match found.op(variable) {
        Op::Fill { value, .. } => f64::from_bits(*value),
        op => unreachable!("{} stands where a fill must", op.name()),
    }
}

/// Whether the fill is exactly this value, including the sign of zero.
fn filled(found: &Match<'_>, value: f64) -> bool {
    fill_value(found, "?c").to_bits() == value.to_bits()
}

/// `x + 0.0` changes `-0.0` to `0.0`; `x + -0.0` is `x`.
fn neutral_of_add(found: &Match<'_>) -> bool {
    filled(found, if found.result().dtype.is_float() { -0.0 } else { 0.0 })
}

fn swaps_last_two(op: &Op) -> bool {
    let Op::Transpose { permutation } = op else { return false };
    let Some(outer) = permutation.len().checked_sub(2) else { return false };
    let batch_stays = (0..outer).all(|dim| permutation[dim] == dim);
    batch_stays && permutation[outer..] == [outer + 1, outer]
}

fn flip_left(found: &Match<'_>) -> Option<Op> {
    match found.op("?m") {
        Op::Matmul { transpose_lhs, transpose_rhs } if swaps_last_two(found.op("?t")) => {
            Some(Op::Matmul { transpose_lhs: !transpose_lhs, transpose_rhs: *transpose_rhs })
        }
        _ => None,
    }
}

fn flip_right(found: &Match<'_>) -> Option<Op> {
    match found.op("?m") {
        Op::Matmul { transpose_lhs, transpose_rhs } if swaps_last_two(found.op("?t")) => {
            Some(Op::Matmul { transpose_lhs: *transpose_lhs, transpose_rhs: !transpose_rhs })
        }
        _ => None,
    }
}

fn compose_transposes(found: &Match<'_>) -> Option<Op> {
    match (found.op("?t"), found.op("?s")) {
        (Op::Transpose { permutation: outer }, Op::Transpose { permutation: inner }) => {
            let permutation = outer.iter().map(|dim| inner[*dim]).collect();
            Some(Op::Transpose { permutation })
        }
        _ => None,
    }
}

/// A transpose that moves only dimensions of extent 1 preserves the order of the elements.
fn order_stays(found: &Match<'_>) -> Option<Op> {
    let Op::Transpose { permutation } = found.op("?t") else { return None };
    let shape = &found.ty("?x").shape;
    let wide: Vec<_> = permutation.iter().filter(|dim| shape[**dim] != 1).collect();
    wide.is_sorted().then(|| Op::Reshape { shape: found.result().shape.clone() })
}

fn compose_slices(found: &Match<'_>) -> Option<Op> {
    match (found.op("?r"), found.op("?s")) {
        (Op::Slice { offsets, sizes }, Op::Slice { offsets: inner, .. }) => {
            let offsets = offsets.iter().zip(inner).map(|(outer, inner)| outer + inner).collect();
            Some(Op::Slice { offsets, sizes: sizes.clone() })
        }
        _ => None,
    }
}

/// Whether the inner cast is exact, so that the outer one can be applied to its operand.
fn inner_is_exact(found: &Match<'_>) -> bool {
    let Op::Cast { to, .. } = found.op("?d") else { return false };
    matches!(
        (found.ty("?x").dtype, to),
        (DType::F16 | DType::BF16, DType::F32 | DType::F64) | (DType::F32, DType::F64)
    )
}

fn cast_fill(found: &Match<'_>) -> Option<Op> {
    let one = Op::fill(fill_value(found, "?x"), [], found_dtype(found)?);
    let value = found.op("?c").eval(&[&one.eval(&[]).ok()?]).ok()?;
    let TensorType { dtype, shape } = found.result().clone();
    Some(Op::fill(value.get_f64(0), shape, dtype))
}

fn found_dtype(found: &Match<'_>) -> Option<DType> {
    match found.op("?x") {
        Op::Fill { dtype, .. } if dtype.is_float() && found.result().dtype.is_float() => {
            Some(*dtype)
        }
        _ => None,
    }
}

fn shape_fill(found: &Match<'_>) -> Option<Op> {
    let TensorType { dtype, shape } = found.result().clone();
    Some(Op::fill(fill_value(found, "?x"), shape, dtype))
}

fn other_keep_dims(found: &Match<'_>) -> Option<Op> {
    let mut op = found.op("?s").clone();
    match &mut op {
        Op::Reduce { kind: Reduction::Sum, keep_dims, .. }
        | Op::Reduce { kind: Reduction::Max, keep_dims, .. }
        | Op::Reduce { kind: Reduction::Mean, keep_dims, .. } => *keep_dims = !*keep_dims,
        _ => return None,
    }
    let ty = op.infer(std::slice::from_ref(found.ty("?x"))).ok()?;
    (ty == *found.result()).then_some(op)
}
