//! Factors in shared memory: lines of queries, keys or values.
use super::{
    super::{
        super::{
            super::expression::{Body, Known, reads_along},
            team::indices,
        },
        Emit, Infallible, Tiles, Window, arith, is_operand_shared,
    },
    DType,
};
use crate::kernel::emit::{Buffer, Lanes};
use irc_mlir::{Type as MlirType, Value};
use irc_tl::Dim;

/// The loop of a product that numbers lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    Rows,
    Columns,
    /// That over summands; the elements of a line are columns.
    Summands,
}

/// A factor whose lines are copied to shared memory.
pub(super) struct Factor<'t, 'w, 'n, 'c, 'a> {
    pub(super) tiles: &'t Tiles<'w, 'n, 'c, 'a>,
    pub(super) axis: Axis,
    /// Where it is, if its elements lie at regular distances.
    pub(super) window: Option<&'t Window>,
    /// The type of its elements in shared memory.
    pub(super) half: Option<DType>,
    /// The number of lines and of elements of each.
    pub(super) lines: i64,
    pub(super) elements: i64,
    /// Elements of a line in shared memory, and bytes from one line to the next.
    pub(super) padded: i64,
    pub(super) pitch: i64,
    /// Whether it may start at any multiple of an element.
    pub(super) is_anywhere: bool,
}

/// Lines of shared memory that are filled.
#[derive(Clone, Copy)]
pub(super) struct Lines<'c, 'a> {
    /// The number of the product, the first line, and the first element of each.
    pub(super) outer: Value<'c, 'a>,
    pub(super) first: Value<'c, 'a>,
    pub(super) element: Value<'c, 'a>,
    pub(super) count: i64,
    /// The first byte in the team's shared memory.
    pub(super) to: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Factor<'_, '_, '_, 'c, 'a> {
    /// The bytes of an element.
    fn bytes(&self) -> i64 {
        if self.half.is_some() { 2 } else { 4 }
    }

    /// The type of elements in shared memory.
    pub(super) fn element(&self, e: Emit<'c, 'a>) -> MlirType<'c> {
        match self.half {
            Some(DType::F16) => irc_mlir::ty::parse(e.context, "f16"),
            Some(_) => irc_mlir::ty::parse(e.context, "bf16"),
            None => e.f32(),
        }
    }

    /// Fills lines of shared memory; copies may be under way afterwards. Beyond the factor there are zeros.
    pub(super) fn fill(&self, e: Emit<'c, 'a>, lines: &Lines<'c, 'a>, shared: Buffer<'c, 'a>) {
        // Copies are asynchronous from global memory only.
        let window = self.window.filter(|window| !is_operand_shared(self.tiles.writer, window));
        let Some(window) = window else { return self.compute(e, lines, shared) };
        if !self.is_anywhere {
            return self.copy(e, lines, window);
        }
        // 16 bytes are copied at once.
        let address = self.tiles.operand_address(e, window.operand);
        let rest = e.binary(arith::REMUI, address, e.index(16));
        let copied = |e| {
            self.copy(e, lines, window);
            Ok::<_, Infallible>(vec![])
        };
        let computed = |e| {
            self.compute(e, lines, shared);
            Ok(vec![])
        };
        let Ok(_) = e.if_else(e.compare(EQ, rest, e.index(0)), &[], copied, computed);
    }

    /// The numbers of the product, row and column of a line, or of one of its elements.
    fn numbers(
        &self,
        e: Emit<'c, 'a>,
        (outer, line, element): (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>),
    ) -> [Value<'c, 'a>; 3] {
        match self.axis {
            Axis::Rows => [outer, line, e.index(0)],
            Axis::Columns => [outer, e.index(0), line],
            Axis::Summands => [outer, e.index(0), element],
        }
    }

    /// Copies 16 bytes at once, asynchronously.
    fn copy(&self, e: Emit<'c, 'a>, lines: &Lines<'c, 'a>, window: &Window) {
        let tiles = self.tiles;
        let chunk = 16 / self.bytes();
        let zero = e.index(0);
        let at = tiles.result_index(e, [lines.outer, zero, zero]);
        let terms = window.outer.iter().map(|(it, distance)| e.scale(at[*it], *distance));
        let start = terms.fold(e.index(window.start), |sum, term| e.add(sum, term));
        let address = tiles.operand_address(e, window.operand);
        let address = e.add(address, e.scale(start, self.bytes()));
        let shared = e.add(e.add(tiles.shared_address(e), tiles.team.shared), lines.to);
        let distance = if self.axis == Axis::Summands { window.summand } else { window.line };
        let row = self.padded / chunk;
        self.each(e, lines.count * row, |e, number| {
            let (line, own) = (
                e.binary(arith::DIVUI, number, e.index(row)),
                e.binary(arith::REMUI, number, e.index(row)),
            );
            let at = e.add(lines.first, line);
            let element = e.add(lines.element, e.scale(own, chunk));
            let inside = self.is_inside(e, at, element);
            let index = MlirType::index(e.context);
            let place = e.add(e.scale(at, distance), element);
            // Nothing is read at an address of no bytes, which may be anywhere.
            let place = e.op(arith::SELECT, &[inside, place, e.index(0)], index);
            let bytes = [16, 0].map(|bytes| e.integer(bytes, 32, Lanes::Scalar));
            let bytes = e.op(arith::SELECT, &[inside, bytes[0], bytes[1]], e.int(32));
            let from = e.add(address, e.scale(place, self.bytes()));
            let to = e.add(e.scale(line, self.pitch), e.scale(own, 16));
            tiles.call(e, "irc_gpu_copy", &[e.add(shared, to), from, bytes], &[]);
        });
    }

    /// Computes and stores each element.
    fn compute(&self, e: Emit<'c, 'a>, lines: &Lines<'c, 'a>, shared: Buffer<'c, 'a>) {
        let tiles = self.tiles;
        let side = usize::from(self.axis != Axis::Rows);
        let factor = tiles.product.factors[side];
        let compute = &tiles.writer.nest.compute;
        let reduced = compute.reduction.iter().flat_map(|it| it.dims.iter().cloned());
        let reduced: Vec<Dim> = reduced.collect();
        // Neighbouring threads read neighbouring elements.
        let group = if self.axis == Axis::Summands { 2 } else { 1 + side };
        let along_sums = reads_along(factor, compute.dims.len() + reduced.len() - 1);
        let last = tiles.product.groups[group].last();
        let along = match self.axis {
            Axis::Summands => last.is_none_or(|last| reads_along(factor, *last)),
            _ => along_sums || last.is_none_or(|last| !reads_along(factor, *last)),
        };
        let start = e.binary(arith::DIVUI, lines.to, e.index(self.bytes()));
        self.each(e, lines.count * self.padded, |e, number| {
            let by = e.index(if along { self.padded } else { lines.count });
            let (inner, outer) =
                (e.binary(arith::REMUI, number, by), e.binary(arith::DIVUI, number, by));
            let (line, element) = if along { (outer, inner) } else { (inner, outer) };
            let (at, own) = (e.add(lines.first, line), element);
            let element = e.add(lines.element, element);
            let ty = self.element(e);
            let value = |e: Emit<'c, 'a>| {
                let numbers = self.numbers(e, (lines.outer, at, element));
                let summand = if self.axis == Axis::Summands { at } else { element };
                let mut index = tiles.result_index(e, numbers);
                index.extend(indices(e, &reduced, summand));
                let mut body: Body<'_, 'c, 'a> = tiles.writer.body(e, &index, &Known::new());
                let (value, _) = body.emit(e, factor);
                let value = match self.half {
                    Some(_) => e.op(arith::TRUNCF, &[value], ty),
                    None => value,
                };
                Ok::<_, Infallible>(vec![value])
            };
            let inside = self.is_inside(e, at, element);
            let zero = e.zero(ty, Lanes::Scalar);
            let Ok(value) = e.if_else(inside, &[ty], value, |_| Ok(vec![zero]));
            let place = e.add(e.scale(line, self.pitch / self.bytes()), own);
            e.store(value[0], shared, e.add(start, place), Lanes::Scalar, None);
        });
    }

    /// Whether an element is one of the factor.
    fn is_inside(
        &self,
        e: Emit<'c, 'a>,
        line: Value<'c, 'a>,
        element: Value<'c, 'a>,
    ) -> Value<'c, 'a> {
        let there = e.compare(ULT, line, e.index(self.lines));
        match self.elements % self.padded == 0 {
            true => there,
            false => {
                let own = e.compare(ULT, element, e.index(self.elements));
                e.binary(arith::ANDI, there, own)
            }
        }
    }

    /// A loop over numbers below `count`, which the threads of the team share.
    fn each(&self, e: Emit<'c, 'a>, count: i64, body: impl FnOnce(Emit<'c, 'a>, Value<'c, 'a>)) {
        let team = &self.tiles.team;
        let bounds = (team.thread, e.index(count), e.index(self.tiles.threads));
        let Ok(_) = e.for_each_step::<Infallible>(bounds, &[], |e, number, _| {
            body(e, number);
            Ok(vec![])
        });
    }
}

/// `arith.cmpi` predicates.
const EQ: i64 = 0;
const ULT: i64 = 6;
