//! The kind of kernel that a fused body becomes, and which bodies can share a kernel.
//!
//! This is the only place that decides what can share a kernel; rules, extraction and explanations all call
//! [`combine`].
use irc_tl::{Family, Op, TensorType};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The structure of a kernel; the `kind` of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One pass over the elements.
    Elementwise,
    /// Reductions along the last axis with their producers and consumers, row by row.
    Rows,
    /// A matmul with its epilogue.
    Contraction,
    /// A reduction along other axes with its producers.
    Reduction,
    /// An update of a box with its producer.
    Copy,
    /// One op as scalar loops, which vector schedules do not support.
    Loops,
}

impl Kind {
    /// The name in the IR.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elementwise => "elementwise",
            Self::Rows => "rows",
            Self::Contraction => "contraction",
            Self::Reduction => "reduction",
            Self::Copy => "copy",
            Self::Loops => "loops",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The form of a kernel body: its kind and its iteration space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    /// The kind of kernel.
    pub kind: Kind,
    /// The iteration space: of `rows`, all rows at full length; of reductions, that of the operand.
    pub space: Vec<i64>,
    /// Whether elements are read at other indices than those of the space (transpose, slice, ...).
    pub moves: bool,
    /// The node of the matmul in a contraction: a kernel contains at most one.
    pub matmul: Option<usize>,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {:?}", self.kind, self.space)
    }
}

impl Form {
    fn new(kind: Kind, space: &[i64]) -> Self {
        Self { kind, space: space.to_vec(), moves: false, matmul: None }
    }

    /// Whether a kernel of this form can return a value of this shape.
    pub fn can_return(&self, shape: &[i64]) -> bool {
        match self.kind {
            Kind::Elementwise | Kind::Contraction => shape == self.space,
            Kind::Rows => shape == self.space || is_statistic(shape, &self.space),
            Kind::Reduction | Kind::Copy | Kind::Loops => false,
        }
    }
}

/// Whether a shape has one element per row of `space`, with the last dimension 1 or removed.
pub fn is_statistic(shape: &[i64], space: &[i64]) -> bool {
    let Some((_, rows)) = space.split_last() else { return false };
    shape == rows || shape.split_last() == Some((&1, rows))
}

/// An op applied in a kernel body.
#[derive(Clone, Copy)]
pub struct Application<'a> {
    /// Its index in the segment.
    pub node: usize,
    /// The op.
    pub op: &'a Op,
    /// The types of its operands.
    pub operands: &'a [&'a TensorType],
    /// The type of its result.
    pub result: &'a TensorType,
}

/// The form of a body that applies an op to operands. For each operand: its form if it is computed in the
/// same kernel, `None` if it is read from memory.
///
/// # Errors
/// Why they cannot share a kernel.
pub fn combine(apply: Application<'_>, operands: &[Option<&Form>]) -> Result<Form, String> {
    let fused = operands.iter().any(|operand| operand.is_some());
    if needs_loops(apply) {
        if fused {
            return Err(format!("{} reads its operands from memory", apply.op.name()));
        }
        return Ok(Form::new(Kind::Loops, &apply.result.shape));
    }
    let from_memory = || Err(format!("{} reads its operands from memory", apply.op.name()));
    match apply.op.family() {
        Family::Contraction if fused => {
            Err(format!("a {} reads its operands from memory", apply.op.name()))
        }
        Family::Contraction => {
            let form = Form::new(Kind::Contraction, &apply.result.shape);
            Ok(Form { matmul: Some(apply.node), ..form })
        }
        // Their operand must be rounded before it is accumulated.
        Family::Accumulation | Family::Pick if fused => from_memory(),
        Family::Accumulation => match apply.operands {
            [operand] => Ok(Form::new(Kind::Reduction, &operand.shape)),
            _ => Ok(Form::new(Kind::Reduction, &apply.result.shape)),
        },
        Family::Pick => {
            Ok(Form { moves: true, ..Form::new(Kind::Elementwise, &apply.result.shape) })
        }
        Family::Transpose => {
            only_elementwise(operands[0])?;
            Ok(Form { moves: true, ..Form::new(Kind::Elementwise, &apply.result.shape) })
        }
        Family::Update => update(operands),
        Family::Reduction => {
            let operand = &apply.operands[0].shape;
            if reduces_rows(apply.op, operand.len()) {
                return reduce_rows(operand, operands[0]);
            }
            in_place_elementwise(operands[0])?;
            Ok(Form::new(Kind::Reduction, operand))
        }
        Family::View => Err(format!("{} is a view and stays outside kernels", apply.op.name())),
        Family::Loops => Ok(Form::new(Kind::Loops, &apply.result.shape)),
        Family::Elementwise => elementwise(apply, operands),
    }
}

/// Whether an op reduces only the last axis.
fn reduces_rows(op: &Op, rank: usize) -> bool {
    op.reduced_axes().is_some_and(|axes| axes.len() == 1 && axes[0] + 1 == rank)
}

/// Whether no vector schedule supports an op, so that it becomes a kernel of loops. This is the only place
/// that decides it.
fn needs_loops(apply: Application<'_>) -> bool {
    let scalar = |ty: &TensorType| ty.shape.contains(&0) || ty.dtype.is_small();
    !apply.op.has_schedule(apply.operands)
        || scalar(apply.result)
        || apply.operands.iter().any(|ty| scalar(ty))
}

/// The maximum number of elements that take no time, however they are computed.
const FEW_ELEMENTS: i64 = 16;

/// Why a kernel with an op is slow, if it is: it is loops of scalars, or multiplies bytes one by one.
pub fn why_slow(apply: Application<'_>) -> Option<String> {
    if apply.op.family() == Family::View {
        return None;
    }
    let types = || apply.operands.iter().copied().chain([apply.result]);
    let is_few = |ty: &TensorType| (1..=FEW_ELEMENTS).contains(&ty.shape.iter().product::<i64>());
    if types().all(is_few) {
        return None;
    }
    let small = types().find(|ty| ty.dtype.is_small());
    if let Some(ty) = small {
        return Some(format!(
            "loops of scalars, as no vector schedule reads elements of {}",
            ty.dtype
        ));
    }
    if needs_loops(apply) {
        return Some("loops of scalars, as no vector schedule covers it".into());
    }
    let depth = apply.op.depth(apply.operands)?;
    let are_bytes = apply.operands.iter().all(|ty| ty.dtype.size() == 1);
    let message =
        format!("bytes are multiplied one by one, as their depth of {depth} is no multiple of 4");
    (are_bytes && depth % 4 != 0).then_some(message)
}

fn only_elementwise(operand: Option<&Form>) -> Result<(), String> {
    match operand {
        Some(form) if form.kind != Kind::Elementwise => {
            Err(format!("expected an elementwise producer, found {form}"))
        }
        _ => Ok(()),
    }
}

fn in_place_elementwise(operand: Option<&Form>) -> Result<(), String> {
    only_elementwise(operand)?;
    match operand {
        Some(form) if form.moves => Err("the producer reads elements at other places".into()),
        _ => Ok(()),
    }
}

fn update(operands: &[Option<&Form>]) -> Result<Form, String> {
    if operands[0].is_some() {
        return Err("update reads its destination from memory".into());
    }
    in_place_elementwise(operands[1])?;
    let space = operands[1].map_or(vec![], |source| source.space.clone());
    Ok(Form::new(Kind::Copy, &space))
}

fn reduce_rows(operand: &[i64], producer: Option<&Form>) -> Result<Form, String> {
    match producer {
        Some(form) if form.kind == Kind::Rows && form.space == operand => {}
        Some(form) if form.kind == Kind::Rows => {
            return Err(format!("rows of {operand:?} differ from the producer's {:?}", form.space));
        }
        _ => in_place_elementwise(producer)?,
    }
    Ok(Form::new(Kind::Rows, operand))
}

fn elementwise(apply: Application<'_>, operands: &[Option<&Form>]) -> Result<Form, String> {
    let anchor = operands.iter().flatten().find(|form| form.kind != Kind::Elementwise);
    let Some(anchor) = anchor else {
        let moves = operands.iter().flatten().any(|form| form.moves);
        return Ok(Form { moves, ..Form::new(Kind::Elementwise, &apply.result.shape) });
    };
    for (form, ty) in operands.iter().zip(apply.operands) {
        let Some(form) = form else { continue };
        match form.kind {
            Kind::Reduction | Kind::Copy | Kind::Loops => {
                return Err(format!("a {} kernel ends with its {0}", form.kind));
            }
            Kind::Elementwise if form.moves => {
                return Err(format!(
                    "an operand moves elements inside a kernel of {}",
                    anchor.kind
                ));
            }
            Kind::Elementwise => {}
            _ if form.kind != anchor.kind => {
                return Err(format!("one kernel cannot be {} and {}", anchor.kind, form.kind));
            }
            Kind::Contraction => on_contraction(apply, form, anchor, ty)?,
            Kind::Rows => on_rows(apply, form, anchor, ty)?,
        }
    }
    Ok((*anchor).clone())
}

fn on_contraction(
    apply: Application<'_>,
    form: &Form,
    anchor: &Form,
    operand: &TensorType,
) -> Result<(), String> {
    if form.matmul != anchor.matmul {
        return Err("one kernel holds one matmul".into());
    }
    if operand.shape != form.space || apply.result.shape != form.space {
        let found = &apply.result.shape;
        return Err(format!("the matmul covers {:?}, its consumer {found:?}", form.space));
    }
    Ok(())
}

fn on_rows(
    apply: Application<'_>,
    form: &Form,
    anchor: &Form,
    operand: &TensorType,
) -> Result<(), String> {
    if form.space != anchor.space {
        return Err(format!("rows of {:?} differ from rows of {:?}", form.space, anchor.space));
    }
    let result = &apply.result.shape;
    // A statistic without its last dimension would broadcast along the wrong axis of a full row.
    let kept = operand.shape == form.space || operand.shape.len() == form.space.len();
    let row_space = *result == form.space && kept;
    let statistic = is_statistic(result, &form.space) && operand.shape == *result;
    if row_space || statistic {
        return Ok(());
    }
    Err(format!("the consumer covers {result:?}, not the rows of {:?}", form.space))
}
