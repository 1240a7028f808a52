//! Recognises a matmul among stages and names its loops.
use super::codegen::Codegen;
use super::codes::{Codes, bytes::Quantised};
use super::dots::Dots;
use super::kernel::{Kernel, Operand, Stage, argument, defining_op, name_of};
use crate::attributes::DOTS;
use crate::kernel::emit::{Emit, Lanes};
use irc_mlir::ops::{arith, math};
use irc_mlir::{BlockLike, OperationLike, OperationRef, Value, ValueLike};
use irc_packing::Extension;

/// One operand of the product: the tensor read, and its conversions before the multiplication.
#[derive(Debug, Clone)]
pub struct Side<'c, 'a> {
    /// The tensor read.
    pub operand: Operand,
    /// Conversions to the accumulator's type, in order.
    pub casts: Vec<OperationRef<'c, 'a>>,
}

/// The factors of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Factors {
    /// Floats.
    Floats,
    /// Integers.
    Integers,
    /// Four bytes to an element, unsigned ones of one side and signed ones of the other; their products are added.
    Quads {
        /// Whether those of `a` are unsigned.
        is_unsigned_a: bool,
    },
}

/// `C[batch, m, n] += A[batch, m, k] * B[batch, k, n]` with `n` contiguous in `C`, or `m` if it is transposed.
#[derive(Debug, Clone)]
pub struct Contraction<'c, 'a> {
    /// The stage.
    pub stage: usize,
    /// The operand with the rows of `C`.
    pub a: Side<'c, 'a>,
    /// The operand with the columns of `C`.
    pub b: Side<'c, 'a>,
    /// The loop over rows, if there is more than one.
    pub m: Option<usize>,
    /// The loop over columns.
    pub n: usize,
    /// The reduction loop.
    pub k: usize,
    /// What is multiplied.
    pub factors: Factors,
    /// Whether rows of `C` are contiguous instead of columns.
    pub is_transposed: bool,
}

impl<'c: 'a, 'a> Contraction<'c, 'a> {
    /// The contraction of a stage, if the schedule for contractions applies.
    pub fn of(kernel: &Kernel<'c, 'a>, number: usize) -> Option<Self> {
        let stage = &kernel.stages[number];
        let ([first, second], [output]) = (&stage.inputs[..], &stage.outputs[..]) else {
            return None;
        };
        if stage.sizes.len() != stage.parallel + 1 || stage.parallel == 0 {
            return None;
        }
        let (chains, mut factors) = product(stage)?;
        let side = |operand: &Operand, index: usize| Side {
            operand: operand.clone(),
            casts: chains[index].clone(),
        };
        let (mut a, mut b) = (side(first, 0), side(second, 1));
        let (n, k) = (stage.parallel - 1, stage.parallel);
        if output.access.coefs[n] != 1 {
            return None;
        }
        let moves = |side: &Side, dim: usize| side.operand.access.coefs[dim] != 0;
        if moves(&a, n) {
            std::mem::swap(&mut a, &mut b);
            factors = factors.exchanged();
        }
        if moves(&a, n) || !moves(&b, n) || !moves(&a, k) || !moves(&b, k) {
            return None;
        }
        let m = (0..n).rev().find(|dim| moves(&a, *dim) && !moves(&b, *dim));
        let rows = m.map_or(1, |dim| stage.sizes[dim]);
        // Few rows against contiguous columns of B are dot products: the row schedule reads B once.
        let is_in_quads = matches!(factors, Factors::Quads { .. });
        // Unless it is computed in registers, from panels of columns.
        let is_coded = Codes::of(kernel, b.operand.tensor).is_some();
        let dots = !is_in_quads
            && !is_coded
            && rows <= 2
            && b.operand.access.coefs[k] == 1
            && b.operand.access.coefs[n] != 1;
        let is_transposed = false;
        (!dots).then_some(Self { stage: number, a, b, m, n, k, factors, is_transposed })
    }

    /// The product of the transposed operands, whose result is transposed. `None` if there is one row.
    pub fn transposed(&self) -> Option<Self> {
        let (a, b) = (self.b.clone(), self.a.clone());
        let factors = self.factors.exchanged();
        Some(Self { a, b, m: Some(self.n), n: self.m?, factors, is_transposed: true, ..*self })
    }

    /// Whether an operand is read without a conversion.
    pub fn is_plain(side: &Side<'c, 'a>) -> bool {
        side.casts.is_empty()
    }

    /// The integers that the right operand is computed from, if the product alone reads it.
    pub fn right_codes(&self, cg: &Codegen<'c, 'a>) -> Option<Codes> {
        let operand = &self.b.operand;
        let found = Codes::of(&cg.kernel, operand.tensor)?;
        let access = &operand.access;
        let is_matrix = access.offset == 0
            && access.coefs[self.k] == 1
            && access.coefs[self.n] == found.depth
            && (0..access.coefs.len())
                .all(|dim| dim == self.n || dim == self.k || access.coefs[dim] == 0);
        let is_own =
            !cg.is_result(operand.tensor) && !cg.read_by_other(operand.tensor, &[self.stage]);
        let is_whole = cg.kernel.stages[self.stage].sizes[self.k] == found.depth;
        (is_matrix && is_own && is_whole && Self::is_plain(&self.b)).then_some(found)
    }

    /// The quantised rows that the left operand is computed from, if the product alone reads it and multiplies integers.
    pub fn left_bytes(&self, cg: &Codegen<'c, 'a>) -> Option<Quantised> {
        let (codes, operand) = (self.right_codes(cg)?, &self.a.operand);
        let is_matrix = operand.access.offset == 0
            && operand.access.coefs.iter().enumerate().all(|(dim, coef)| {
                let expected = match dim {
                    _ if dim == self.k => 1,
                    _ if Some(dim) == self.m => codes.depth,
                    _ => 0,
                };
                *coef == expected
            });
        let is_own =
            !cg.is_result(operand.tensor) && !cg.read_by_other(operand.tensor, &[self.stage]);
        let rows = self.m.map(|m| cg.kernel.stages[self.stage].sizes[m]);
        let applies = is_matrix && is_own && Self::is_plain(&self.a);
        applies.then(|| Quantised::of(cg, operand.tensor, rows, &codes)).flatten()
    }

    /// How the bytes of both operands become 16-bit integers, if they do before they are multiplied.
    pub fn extensions(&self, dots: Dots, lanes: Lanes) -> Option<[Extension; 2]> {
        match self.factors {
            Factors::Quads { is_unsigned_a } if dots.are_of_halves(lanes) => {
                let both = [Extension::Zero, Extension::Sign];
                Some(if is_unsigned_a { both } else { [both[1], both[0]] })
            }
            _ => None,
        }
    }

    /// `accumulator + a * b` on vectors.
    pub fn multiply_add(
        &self,
        e: Emit<'c, 'a>,
        dots: Dots,
        [a, b, accumulator]: [Value<'c, 'a>; 3],
        lanes: Lanes,
    ) -> Value<'c, 'a> {
        match self.factors {
            Factors::Floats => e.op(math::FMA, &[a, b, accumulator], accumulator.r#type()),
            Factors::Integers => e.binary(arith::ADDI, accumulator, e.binary(arith::MULI, a, b)),
            Factors::Quads { is_unsigned_a } => {
                let bytes = if is_unsigned_a { [a, b] } else { [b, a] };
                dots.add(e, bytes, accumulator, lanes)
            }
        }
    }
}

impl Factors {
    /// With the sides exchanged.
    fn exchanged(self) -> Self {
        match self {
            Self::Quads { is_unsigned_a } => Self::Quads { is_unsigned_a: !is_unsigned_a },
            other => other,
        }
    }
}

/// Whether a stage adds products of its two operands, which are not converted before.
pub fn adds_products(stage: &Stage<'_, '_>) -> bool {
    let has_operands = stage.inputs.len() == 2 && stage.outputs.len() == 1;
    has_operands && product(stage).is_some_and(|(casts, _)| casts.iter().all(Vec::is_empty))
}

/// Which of the two operands of a stage are unsigned, if it adds products of integers that are converted before.
pub fn adds_products_of_bytes(stage: &Stage<'_, '_>) -> Option<[bool; 2]> {
    if stage.inputs.len() != 2 || stage.outputs.len() != 1 {
        return None;
    }
    let (casts, factors) = product(stage)?;
    let is_unsigned = |casts: &Vec<OperationRef<'_, '_>>| match &casts[..] {
        [cast] => Some(name_of(*cast) == arith::EXTUI),
        _ => None,
    };
    let [first, second] = casts.each_ref().map(is_unsigned);
    (factors == Factors::Integers).then_some([first?, second?])
}

/// The conversions of both factors if the region is `acc + a * b`, and what they are.
fn product<'c: 'a, 'a>(stage: &Stage<'c, 'a>) -> Option<([Vec<OperationRef<'c, 'a>>; 2], Factors)> {
    if let Some(unsigned) = DOTS.read(&stage.op) {
        return Some(([vec![], vec![]], Factors::Quads { is_unsigned_a: unsigned == 0 }));
    }
    let sum = defining_op(stage.body.terminator()?.operand(0).ok()?)?;
    let (factors, expected) = match name_of(sum).as_str() {
        arith::ADDF => (Factors::Floats, arith::MULF),
        arith::ADDI => (Factors::Integers, arith::MULI),
        _ => return None,
    };
    let accumulator = argument(stage.op, stage.body, 2).ok()?;
    let wide = !crate::kernel::emit::is_half(accumulator.r#type());
    let (left, right) = (sum.operand(0).ok()?, sum.operand(1).ok()?);
    let factor = if left == accumulator {
        right
    } else if right == accumulator {
        left
    } else {
        return None;
    };
    let product = defining_op(factor)?;
    if name_of(product) != expected || !wide {
        return None;
    }
    let mut chains = [None, None];
    for index in 0..2 {
        let (input, casts) = chain(stage, product.operand(index).ok()?)?;
        chains[input] = Some(casts);
    }
    let [Some(first), Some(second)] = chains else { return None };
    Some(([first, second], factors))
}

/// The region argument before a chain of conversions.
fn chain<'c: 'a, 'a>(
    stage: &Stage<'c, 'a>,
    mut value: Value<'c, 'a>,
) -> Option<(usize, Vec<OperationRef<'c, 'a>>)> {
    let mut casts = vec![];
    loop {
        let input =
            (0..2).find(|i| argument(stage.op, stage.body, *i).is_ok_and(|arg| arg == value));
        if let Some(input) = input {
            casts.reverse();
            return Some((input, casts));
        }
        let op = defining_op(value)?;
        let converts = matches!(
            name_of(op).as_str(),
            arith::EXTF | arith::EXTSI | arith::EXTUI | arith::SITOFP | arith::UITOFP
        );
        if !converts {
            return None;
        }
        casts.push(op);
        value = op.operand(0).ok()?;
    }
}
