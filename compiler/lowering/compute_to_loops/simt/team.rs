//! The threads that run a kernel together, and their places in loops.
use super::{Emit, Infallible, Lanes, access::element_bytes, arith, func};
use crate::kernel::emit::{Buffer, first_result, is_float};
use irc_mlir::{Context, Type as MlirType, Value, ValueLike, attr, ops::memref};
use irc_tl::Dim;
use melior::ir::r#type::MemRefType;
use std::fmt::Display;

/// The type of all of shared memory.
pub const SHARED: &str = "memref<1048576xi8, 3>";

/// The type of some elements in shared memory.
pub(super) fn shared_type<'c>(
    context: &'c Context,
    elements: i64,
    element: impl Display,
) -> MlirType<'c> {
    irc_mlir::ty::parse(context, &format!("memref<{elements}x{element}, 3>"))
}

/// Whether memory of a type is shared.
pub fn is_in_shared_memory(ty: MlirType<'_>) -> bool {
    MemRefType::try_from(ty).is_ok_and(|ty| ty.memory_space().is_some())
}

/// Threads that run a kernel together. They are in blocks of threads that the hardware starts together; the barrier is
/// that of all of them.
#[derive(Clone, Copy)]
pub(super) struct Team<'c, 'a> {
    /// The number of the thread's block, and the number of blocks.
    pub(super) team: Value<'c, 'a>,
    pub(super) teams: Value<'c, 'a>,
    /// The number of the thread in its block, and the number of threads of a block.
    pub(super) thread: Value<'c, 'a>,
    pub(super) threads: Value<'c, 'a>,
    /// The number of a barrier of the block, if it is the only one; otherwise -1.
    pub(super) barrier: Value<'c, 'a>,
    /// The first byte of the shared memory of the block that is theirs.
    pub(super) shared: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Team<'c, 'a> {
    /// All threads wait for each other.
    pub(super) fn wait(&self, e: Emit<'c, 'a>) {
        let callee = attr::symbol(e.context, "irc_gpu_barrier");
        let operands = [self.barrier, self.threads];
        e.spec(func::CALL).attr("callee", callee).operands(&operands).append(&e.block);
    }

    /// The threads of a block wait for each other.
    pub(super) fn wait_in_block(&self, e: Emit<'c, 'a>) {
        let callee = attr::symbol(e.context, "irc_gpu_block_barrier");
        let operands = [self.barrier, self.threads];
        e.spec(func::CALL).attr("callee", callee).operands(&operands).append(&e.block);
    }

    /// The first elements of the team's shared memory.
    pub(super) fn shared_view(
        &self,
        e: Emit<'c, 'a>,
        element: MlirType<'c>,
        elements: i64,
    ) -> Buffer<'c, 'a> {
        let all = shared_memory(e);
        let ty = shared_type(e.context, elements, element);
        let memref = e.op(memref::VIEW, &[all, self.shared], ty);
        Buffer { memref, element }
    }

    /// Runs something on the first thread.
    pub(super) fn alone(&self, e: Emit<'c, 'a>, body: impl FnOnce(Emit<'c, 'a>)) {
        let first = self.first(e);
        when(e, e.compare(0, first, e.index(0)), body);
    }

    /// The number of the thread among all.
    pub(super) fn first(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        e.add(e.binary(arith::MULI, self.team, self.threads), self.thread)
    }

    /// The number of threads.
    pub(super) fn all(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        e.binary(arith::MULI, self.teams, self.threads)
    }
}

/// Runs something if a condition holds.
pub(super) fn when<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    condition: Value<'c, 'a>,
    body: impl FnOnce(Emit<'c, 'a>),
) {
    let then = |e| {
        body(e);
        Ok::<_, Infallible>(vec![])
    };
    let Ok(_) = e.if_else(condition, &[], then, |_| Ok(vec![]));
}

/// All of the block's shared memory.
pub(super) fn shared_memory<'c: 'a, 'a>(e: Emit<'c, 'a>) -> Value<'c, 'a> {
    let all = irc_mlir::ty::parse(e.context, SHARED);
    let callee = attr::symbol(e.context, "irc_gpu_shared");
    e.value(e.spec(func::CALL).attr("callee", callee).results(&[all]))
}

/// The dimensions of more than one element.
pub(super) fn long(dims: &[Dim]) -> impl Iterator<Item = &Dim> {
    dims.iter().filter(|dim| !dim.is(1))
}

/// A known size.
pub(super) fn extent(dim: &Dim) -> i64 {
    dim.known().unwrap_or(1)
}

pub(super) fn product(dims: &[Dim]) -> i64 {
    dims.iter().map(extent).fold(1, i64::saturating_mul)
}

/// The indices of an element of extents, from its position.
pub(super) fn indices<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    dims: &[Dim],
    linear: Value<'c, 'a>,
) -> Vec<Value<'c, 'a>> {
    let extents: Vec<i64> = dims.iter().map(extent).collect();
    let long = extents.iter().filter(|extent| **extent != 1).count();
    if long <= 1 {
        return extents.iter().map(|it| if *it == 1 { e.index(0) } else { linear }).collect();
    }
    // Divisions of 32 bits are faster, if they suffice.
    let narrow = product(dims) <= i64::from(i32::MAX);
    let (ty, bits) = (e.int(if narrow { 32 } else { 64 }), if narrow { 32 } else { 64 });
    let mut rest = e.op(arith::INDEX_CAST, &[linear], ty);
    let mut found = vec![];
    let mut remaining = long;
    for extent in extents.iter().rev() {
        if *extent == 1 {
            found.push(e.index(0));
            continue;
        }
        remaining -= 1;
        let by = e.integer(*extent, bits, Lanes::Scalar);
        let own = match remaining {
            0 => rest,
            _ => e.binary(arith::REMUI, rest, by),
        };
        if remaining > 0 {
            rest = e.binary(arith::DIVUI, rest, by);
        }
        found.push(e.op(arith::INDEX_CASTUI, &[own], MlirType::index(e.context)));
    }
    found.reverse();
    found
}

/// The value of the lane whose number differs in one bit.
pub(super) fn shuffle<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    distance: i64,
) -> Value<'c, 'a> {
    let ty = value.r#type();
    let bits = element_bytes(ty) * 8;
    let bits = if bits == 0 { 1 } else { bits };
    let whole = |bits: i64| e.int(bits as u32);
    let as_int = match is_float(ty) {
        true => e.op(arith::BITCAST, &[value], whole(bits)),
        false => value,
    };
    let callee = attr::symbol(e.context, "irc_gpu_shuffle");
    let mask = e.integer(distance, 32, Lanes::Scalar);
    let word = |word: Value<'c, 'a>| {
        let spec = e.spec(func::CALL).attr("callee", callee).operands(&[word, mask]);
        first_result(spec.results(&[whole(32)]).append(&e.block))
    };
    let moved = match bits {
        64 => {
            let half = e.integer(32, 64, Lanes::Scalar);
            let high = e.binary(arith::SHRUI, as_int, half);
            let words = [as_int, high].map(|part| {
                let moved = word(e.op(arith::TRUNCI, &[part], whole(32)));
                e.op(arith::EXTUI, &[moved], whole(64))
            });
            e.binary(arith::ORI, words[0], e.binary(arith::SHLI, words[1], half))
        }
        32 => word(as_int),
        _ => {
            let wide = e.op(arith::EXTUI, &[as_int], whole(32));
            e.op(arith::TRUNCI, &[word(wide)], whole(bits))
        }
    };
    match is_float(ty) {
        true => e.op(arith::BITCAST, &[moved], ty),
        false => moved,
    }
}
