//! Tensors whose elements are four bytes of an argument each, as products of bytes read them.
//!
//! They are not computed where the bytes of an argument are in that order already, or can be when the caller is compiled,
//! because the argument is a constant.
use super::{
    codegen::{Codegen, Place},
    contraction::{Contraction, Factors, Side},
    dots::Dots,
    kernel::{Origin, TensorId},
    layout::row_major,
};
use crate::attributes::QUADS;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::Value;
use irc_packing::{Extension, Packing, Panels, Quad};

/// A stage whose elements are four bytes of a tensor each, or fewer.
#[derive(Debug, Clone)]
pub struct Quads {
    /// The stage.
    pub stage: usize,
    /// The tensor of bytes.
    pub source: TensorId,
    /// Its first byte, the distance between the four bytes of an element, and the distance that each loop moves.
    first: i64,
    step: i64,
    /// The number of bytes of an element: four, or fewer if all of them are one element.
    bytes: i64,
    coefs: Vec<i64>,
    /// The extent of each loop. The elements are dense in their order.
    sizes: Vec<i64>,
}

impl Quads {
    /// The stage that makes a tensor, if it is one.
    pub fn of(cg: &Codegen<'_, '_>, tensor: TensorId) -> Option<Self> {
        let Origin::Stage(number) = cg.kernel.tensors[tensor].origin else { return None };
        let stage = &cg.kernel.stages[number];
        QUADS.read(&stage.op)?;
        let ([first, others @ ..], [output]) = (&stage.inputs[..], &stage.outputs[..]) else {
            return None;
        };
        let step = others.first().map_or(1, |next| next.access.offset - first.access.offset);
        let are_one = stage.inputs.iter().enumerate().all(|(byte, input)| {
            input.tensor == first.tensor
                && input.access.coefs == first.access.coefs
                && input.access.offset == first.access.offset + byte as i64 * step
        });
        let is_dense = output.access.offset == 0 && output.access.coefs == row_major(&stage.sizes);
        (are_one && is_dense).then(|| Self {
            stage: number,
            source: first.tensor,
            first: first.access.offset,
            step,
            bytes: stage.inputs.len() as i64,
            coefs: first.access.coefs.clone(),
            sizes: stage.sizes.clone(),
        })
    }

    /// Whether only one product reads the elements.
    fn is_read_by(&self, cg: &Codegen<'_, '_>, tensor: TensorId, product: usize) -> bool {
        !cg.is_result(tensor) && !cg.read_by_other(tensor, &[product])
    }

    /// The memory of an argument whose bytes are in the order of the elements.
    fn in_place<'c: 'a, 'a>(
        &self,
        cg: &Codegen<'c, 'a>,
        e: Emit<'c, 'a>,
    ) -> Option<Buffer<'c, 'a>> {
        let Origin::Argument(_) = cg.kernel.tensors[self.source].origin else { return None };
        let expected = row_major(&self.sizes).into_iter().map(|stride| 4 * stride);
        let is_dense = self.step == 1
            && self.bytes == 4
            && self.first % 4 == 0
            && expected.eq(self.coefs.iter().copied());
        let buffer = cg.places[self.source].buffer().filter(|_| is_dense)?;
        let count = self.sizes.iter().product();
        Some(e.workspace_view(buffer.memref, self.first, count, e.int(32)))
    }

    /// The argument, if it is a constant that nothing else reads, and its memory.
    fn constant<'c, 'a>(&self, cg: &Codegen<'c, 'a>) -> Option<(usize, Value<'c, 'a>)> {
        let Origin::Argument(argument) = cg.kernel.tensors[self.source].origin else { return None };
        let found = cg.constants.iter().find(|(index, _)| *index == argument)?;
        (!cg.read_by_other(self.source, &[self.stage])).then_some(*found)
    }

    /// The elements as a matrix of which `across` is the stride between columns: its columns, and its rows, without
    /// panels.
    fn matrix(&self, across: i64) -> Option<Panels> {
        let strides = row_major(&self.sizes);
        let column = strides.iter().position(|stride| *stride == across)?;
        let rows: Vec<usize> = (0..self.sizes.len()).filter(|dim| *dim != column).collect();
        // Loops within the distance between bytes are the taps of filters; one at most is outside of it.
        let (outer, taps): (Vec<usize>, Vec<usize>) =
            rows.iter().partition(|dim| self.coefs[**dim] == self.bytes * self.step);
        let sizes: Vec<i64> = taps.iter().map(|dim| self.sizes[*dim]).collect();
        let own: Vec<i64> = taps.iter().map(|dim| self.coefs[*dim]).collect();
        let count: i64 = sizes.iter().product();
        let is_matrix = outer.len() <= 1
            && outer.iter().all(|dim| taps.iter().all(|tap| tap > dim))
            && own == row_major(&sizes)
            && (taps.is_empty() || count == self.step);
        let (along, quads) = if taps.is_empty() { (self.step, 1) } else { (1, count) };
        is_matrix.then(|| Panels {
            argument: 0,
            offset: self.first,
            along,
            across: self.coefs[column],
            rows: rows.iter().map(|dim| self.sizes[*dim]).product(),
            columns: self.sizes[column],
            depth: 0,
            panel: 0,
            lanes: 0,
            quads: Some(Quad { rows: quads, bytes: self.bytes, extension: None }),
        })
    }
}

/// The instructions for a product: those of the target, or for constants whose bytes are small enough.
pub fn dots(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Dots {
    let dots = cg.target.dots;
    let Factors::Quads { is_unsigned_a } = product.factors else { return dots };
    let signed = if is_unsigned_a { &product.b } else { &product.a };
    let is_small = Quads::of(cg, signed.operand.tensor).is_some_and(|quads| {
        let origin = &cg.kernel.tensors[quads.source].origin;
        matches!(origin, Origin::Argument(argument) if cg.small.contains(argument))
    });
    let applies = is_small && dots.are_of_halves(Lanes::Vector(cg.target.lanes()));
    if applies { Dots::Small } else { dots }
}

/// Whether the right operand of a product is packed in panels when the caller is compiled.
pub fn is_packed(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> bool {
    packed_stage(cg, product).is_some()
}

/// The stage that makes such an operand.
pub fn packed_stage(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Option<usize> {
    panels(cg, product, &product.b, product.n).map(|(quads, _)| quads.stage)
}

/// As [`packed_stage`], for the left operand.
pub fn packed_left_stage(cg: &Codegen<'_, '_>, product: &Contraction<'_, '_>) -> Option<usize> {
    panels(cg, product, &product.a, product.m?).map(|(quads, _)| quads.stage)
}

fn panels(
    cg: &Codegen<'_, '_>,
    product: &Contraction<'_, '_>,
    side: &Side<'_, '_>,
    across: usize,
) -> Option<(Quads, Panels)> {
    let operand = &side.operand;
    let quads = Quads::of(cg, operand.tensor)?;
    quads.constant(cg)?;
    let access = &operand.access;
    let is_shared = |dim: usize| dim == across || access.coefs[dim] == 0;
    let is_one_matrix = access.offset == 0 && (0..product.k).all(is_shared);
    let matrix = quads.matrix(access.coefs[across])?;
    let stage = &cg.kernel.stages[product.stage];
    let is_whole = matrix.columns == stage.sizes[across] && matrix.rows == stage.sizes[product.k];
    let is_own = quads.is_read_by(cg, operand.tensor, product.stage);
    (is_one_matrix && is_whole && is_own).then_some((quads, matrix))
}

/// The panels of an operand of a product, packed when the caller is compiled: of its depth, so many columns (rows of a left
/// operand) and lanes, of bytes that are extended if they are to be.
pub fn take<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    product: &Contraction<'c, 'a>,
    (side, across): (&Side<'c, 'a>, usize),
    (depth, panel, lanes): (i64, i64, i64),
    extension: Option<Extension>,
) -> Option<Buffer<'c, 'a>> {
    let (quads, matrix) = panels(cg, product, side, across)?;
    let (argument, memref) = quads.constant(cg)?;
    let quads = matrix.quads.map(|quads| Quad { extension, ..quads });
    let packing = Panels { argument, depth, panel, lanes, quads, ..matrix };
    Some(packed(cg, e, memref, packing))
}

/// The memory of an argument that is packed.
fn packed<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    memref: Value<'c, 'a>,
    packing: Panels,
) -> Buffer<'c, 'a> {
    let packing = Packing::Panels(packing);
    let count = packing.elements() / 4;
    cg.packed.push(packing);
    let bytes = super::flat_view(e, memref, packing.elements(), e.int(8));
    e.workspace_view(bytes.memref, 0, count, e.int(32))
}

/// Places an operand of a product in the argument that its bytes are from, if the argument is in that order or, as a
/// constant, can be; returns the stage, which is not computed then.
pub fn place<'c: 'a, 'a>(
    cg: &mut Codegen<'c, 'a>,
    e: Emit<'c, 'a>,
    product: &Contraction<'c, 'a>,
    side: &Side<'c, 'a>,
    across: Option<usize>,
) -> Option<usize> {
    let tensor = side.operand.tensor;
    let quads = Quads::of(cg, tensor).filter(|it| it.is_read_by(cg, tensor, product.stage))?;
    if let Some(buffer) = quads.in_place(cg, e) {
        cg.places[tensor] = Place::Memory(buffer);
        return Some(quads.stage);
    }
    let (argument, memref) = quads.constant(cg)?;
    let matrix = quads.matrix(side.operand.access.coefs[across?])?;
    // Column after column: one to a panel.
    let is_in_order = side.operand.access.coefs[product.k] == 1;
    let packing = Panels { argument, depth: matrix.rows, panel: 1, lanes: 1, ..matrix };
    let buffer = is_in_order.then(|| packed(cg, e, memref, packing))?;
    cg.places[tensor] = Place::Memory(buffer);
    Some(quads.stage)
}
