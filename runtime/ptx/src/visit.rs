//! The registers of an operation.

use crate::code::{Address, Bulk, Left, MbarrierOp, NONE, Op, Src, Target, WarpOp};

/// Calls a function for each register of an operation, with whether it is written.
pub fn registers(op: &Op, each: &mut impl FnMut(u32, bool)) {
    let mut visitor = Visitor { each };
    visitor.op(op);
}

struct Visitor<'e, F> {
    each: &'e mut F,
}

impl<F: FnMut(u32, bool)> Visitor<'_, F> {
    fn read(&mut self, src: Src) {
        if let Err(register) = src.index() {
            (self.each)(register as u32, false);
        }
    }

    fn reads<'s>(&mut self, sources: impl IntoIterator<Item = &'s Src>) {
        sources.into_iter().for_each(|src| self.read(*src));
    }

    fn write(&mut self, register: u32) {
        if register != NONE {
            (self.each)(register, true);
        }
    }

    fn writes<'s>(&mut self, registers: impl IntoIterator<Item = &'s u32>) {
        registers.into_iter().for_each(|register| self.write(*register));
    }

    fn address(&mut self, address: &Address) {
        self.read(address.base);
    }

    fn op(&mut self, op: &Op) {
        match op {
            Op::Unary(_, d, a) | Op::Convert(_, d, a) | Op::Move(d, a) => {
                self.read(*a);
                self.write(*d);
            }
            Op::ToGeneric(d, a, _) | Op::FromGeneric(d, a, _) => {
                self.read(*a);
                self.write(*d);
            }
            Op::Binary(_, d, a, b)
            | Op::Pack(_, d, a, b)
            | Op::Carry(_, d, a, b, _)
            | Op::Select(d, a, b, _) => {
                self.reads([a, b]);
                self.write(*d);
            }
            Op::Ternary(_, d, a, b, c) => {
                self.reads([a, b, c]);
                self.write(*d);
            }
            Op::Insert(_, d, sources) | Op::Table(d, sources) => {
                self.reads(sources.iter());
                self.write(*d);
            }
            Op::Split(parts, _, a) => {
                self.read(*a);
                self.writes(parts.iter());
            }
            Op::Join(d, _, parts) => {
                self.reads(parts.iter());
                self.write(*d);
            }
            Op::Compare(_, _, _, a, b, _) => self.reads([a, b]),
            Op::Special(d, _) | Op::ActiveMask(d) | Op::FrameAddress(d, _) => self.write(*d),
            Op::IsSpace(_, a, _) | Op::BranchIndexed(a, _) => self.read(*a),
            Op::Call(call) => {
                if let Target::Indirect(target) = call.target {
                    self.read(target);
                }
            }
            Op::Load(access) | Op::Store(access) => {
                self.address(&access.address);
                self.reads(&access.values);
                self.writes(&access.registers);
            }
            Op::Atomic(atomic) => {
                self.address(&atomic.address);
                self.reads(&atomic.values);
                self.reads(&atomic.swap);
                self.write(atomic.d);
            }
            Op::Barrier(barrier) => {
                self.read(barrier.id);
                self.reads(&barrier.count);
                if let Some((crate::code::Reduction::Count, _, d)) = barrier.reduction {
                    self.write(d);
                }
            }
            Op::Warp(mask, op) => {
                self.read(*mask);
                self.warp(op);
            }
            Op::CopyAsync(copy) => {
                self.address(&copy.0);
                self.address(&copy.1);
                self.reads(&copy.3);
            }
            Op::Mbarrier(operation) => {
                self.address(&operation.0);
                self.mbarrier(&operation.1);
            }
            Op::Bulk(bulk) => self.bulk(bulk),
            Op::ReplaceMap(operation) => {
                self.address(&operation.0);
                self.read(operation.2);
            }
            Op::CopyMap(operation) => {
                self.address(&operation.0);
                self.address(&operation.1);
            }
            Op::Nop
            | Op::PredicateLogic(..)
            | Op::PredicateMove(..)
            | Op::PredicateConstant(..)
            | Op::Branch(_)
            | Op::Return
            | Op::Exit
            | Op::Trap
            | Op::Sleep
            | Op::Fence
            | Op::CopyCommit
            | Op::CopyWait(_)
            | Op::BulkCommit
            | Op::BulkWait(_) => {}
        }
    }

    fn warp(&mut self, op: &WarpOp) {
        match op {
            WarpOp::Shuffle(_, d, _, a, b, c) => {
                self.reads([a, b, c]);
                self.write(*d);
            }
            WarpOp::Vote(vote, d, _) => {
                if *vote == crate::code::Vote::Ballot {
                    self.write(*d);
                }
            }
            WarpOp::MatchAny(d, a, _)
            | WarpOp::MatchAll(d, _, a, _)
            | WarpOp::Reduce(_, _, d, a)
            | WarpOp::MoveMatrix(d, a) => {
                self.read(*a);
                self.write(*d);
            }
            WarpOp::Elect(d, _) => self.write(*d),
            WarpOp::Matrix(matrix) => {
                self.reads(matrix.a.iter().chain(&matrix.b).chain(&matrix.c));
                self.writes(&matrix.d);
            }
            WarpOp::LoadMatrix(registers, address, _) => {
                self.address(address);
                self.writes(registers);
            }
            WarpOp::StoreMatrix(values, address, _) => {
                self.address(address);
                self.reads(values);
            }
            WarpOp::GroupMatrix(matrix) => {
                if let Left::Registers(a) = &matrix.a {
                    self.reads(a);
                }
                self.writes(&matrix.d);
            }
            WarpOp::Barrier | WarpOp::GroupFence | WarpOp::GroupCommit | WarpOp::GroupWait(_) => {}
        }
    }

    fn mbarrier(&mut self, op: &MbarrierOp) {
        match op {
            MbarrierOp::Init(a) | MbarrierOp::Expect(a) | MbarrierOp::Complete(a) => self.read(*a),
            MbarrierOp::Arrive { state, count, expect, .. } => {
                self.reads(count);
                self.reads(expect);
                self.write(*state);
            }
            MbarrierOp::Wait { phase, .. } => self.read(*phase),
            MbarrierOp::Pending(d, a) => {
                self.read(*a);
                self.write(*d);
            }
            MbarrierOp::Invalidate | MbarrierOp::AfterCopies(_) => {}
        }
    }

    fn bulk(&mut self, bulk: &Bulk) {
        match bulk {
            Bulk::Load(to, from, bytes, barrier) => {
                [to, from, barrier].into_iter().for_each(|address| self.address(address));
                self.read(*bytes);
            }
            Bulk::Store(to, from, bytes) | Bulk::Reduce(to, from, bytes, ..) => {
                [to, from].into_iter().for_each(|address| self.address(address));
                self.read(*bytes);
            }
            Bulk::LoadTile(to, map, coordinates, barrier) => {
                [to, map, barrier].into_iter().for_each(|address| self.address(address));
                self.reads(coordinates);
            }
            Bulk::StoreTile(map, coordinates, from)
            | Bulk::ReduceTile(map, coordinates, from, _) => {
                [map, from].into_iter().for_each(|address| self.address(address));
                self.reads(coordinates);
            }
        }
    }
}
