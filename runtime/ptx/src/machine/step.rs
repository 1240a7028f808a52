//! Runs one instruction for the threads of a fragment.

use super::error::Error;
use super::{
    Flow, Fragment, LOCAL_WINDOW, Machine, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Warp, get, lanes,
    put, put_predicate,
};
use crate::arith;
use crate::code::{Logic, NONE, Op, Predicate, Special};
use crate::row::{Row, WARP};
use crate::types::Space;

type Result<T> = std::result::Result<T, Error>;

/// The value of a predicate operand, as bits of threads.
#[inline(always)]
pub(super) fn test(warp: &Warp, fragment: &Fragment, predicate: Predicate) -> u32 {
    let value = warp.predicates[(fragment.predicates + predicate.index) as usize];
    if predicate.negated { !value } else { value }
}

impl Machine<'_> {
    /// The value of an operand.
    #[inline(always)]
    pub(super) fn row<'a>(
        &'a self,
        warp: &'a Warp,
        fragment: &Fragment,
        src: crate::code::Src,
    ) -> &'a Row {
        get(&self.constants, &warp.registers, fragment.registers, src)
    }

    pub(super) fn step(&mut self, warp: &mut Warp, fragment: &mut Fragment) -> Result<Flow> {
        let program = self.program;
        let inst = &program.code[fragment.at as usize];
        let mut mask = fragment.mask;
        if let Some(guard) = inst.guard {
            mask &= test(warp, fragment, guard);
            if mask == 0 {
                self.executed += 1;
                return Ok(Flow::Next);
            }
        }
        let count = mask.count_ones();
        self.executed += u64::from(count);
        self.statistics.count(inst.class, count);
        self.statistics.warp_instructions += 1;
        if inst.group_registers {
            self.check_group_registers(warp, fragment, &inst.op)?;
        }
        fragment.spin.run(&inst.op);
        let base = fragment.registers;
        let mut out = [0; WARP];
        macro_rules! row {
            ($src:expr) => {
                get(&self.constants, &warp.registers, base, $src)
            };
        }
        let d = match &inst.op {
            Op::Nop => return Ok(Flow::Next),
            Op::Unary(function, d, a) => {
                function(row!(*a), &mut out);
                *d
            }
            Op::Binary(function, d, a, b) => {
                function(row!(*a), row!(*b), &mut out);
                *d
            }
            Op::Ternary(function, d, a, b, c) => {
                function(row!(*a), row!(*b), row!(*c), &mut out);
                *d
            }
            Op::Insert(bits, d, sources) => {
                let [a, b, c, e] = sources.map(|src| *row!(src));
                for lane in 0..WARP {
                    out[lane] = arith::insert(a[lane], b[lane], c[lane], e[lane], *bits);
                }
                *d
            }
            Op::Table(d, sources) => {
                let [a, b, c, table] = sources.map(|src| *row!(src));
                for lane in 0..WARP {
                    out[lane] = arith::logic(a[lane], b[lane], c[lane], table[lane]);
                }
                *d
            }
            Op::Convert(conversion, d, a) => {
                let a = row!(*a);
                for lane in 0..WARP {
                    out[lane] = conversion.apply(a[lane]);
                }
                *d
            }
            Op::Pack(conversion, d, a, b) => {
                let (a, b) = (row!(*a), row!(*b));
                for lane in 0..WARP {
                    out[lane] = conversion.pack(a[lane], b[lane]);
                }
                *d
            }
            Op::Move(d, a) => {
                out = *row!(*a);
                *d
            }
            Op::Split(parts, bits, a) => {
                let a = *row!(*a);
                for (index, part) in parts.iter().enumerate() {
                    for lane in 0..WARP {
                        out[lane] = a[lane] >> (*bits as usize * index) & (u64::MAX >> (64 - bits));
                    }
                    put(&mut warp.registers, base, *part, mask, &out);
                }
                return Ok(Flow::Next);
            }
            Op::Join(d, bits, parts) => {
                for (index, part) in parts.iter().enumerate() {
                    let part = row!(*part);
                    for lane in 0..WARP {
                        out[lane] |= part[lane] << (*bits as usize * index);
                    }
                }
                *d
            }
            Op::Compare(function, p, q, a, b, combined) => {
                let result = function(row!(*a), row!(*b));
                let combine = |result: u32| match combined {
                    Some((Logic::And, predicate)) => result & test(warp, fragment, *predicate),
                    Some((Logic::Or, predicate)) => result | test(warp, fragment, *predicate),
                    Some((Logic::Xor, predicate)) => result ^ test(warp, fragment, *predicate),
                    None => result,
                };
                let (result, complement) =
                    (combine(result), if *q == NONE { 0 } else { combine(!result) });
                put_predicate(&mut warp.predicates, fragment.predicates, *p, mask, result);
                put_predicate(&mut warp.predicates, fragment.predicates, *q, mask, complement);
                return Ok(Flow::Next);
            }
            Op::Select(d, a, b, predicate) => {
                let (a, b) = (row!(*a), row!(*b));
                let selected = test(warp, fragment, *predicate);
                for lane in 0..WARP {
                    out[lane] = if selected >> lane & 1 == 1 { a[lane] } else { b[lane] };
                }
                *d
            }
            Op::PredicateLogic(logic, d, a, b) => {
                let (a, b) = (test(warp, fragment, *a), test(warp, fragment, *b));
                let value = match logic {
                    Logic::And => a & b,
                    Logic::Or => a | b,
                    Logic::Xor => a ^ b,
                };
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, value);
                return Ok(Flow::Next);
            }
            Op::PredicateMove(d, a) => {
                let value = test(warp, fragment, *a);
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, value);
                return Ok(Flow::Next);
            }
            Op::PredicateConstant(d, value) => {
                let value = if *value { u32::MAX } else { 0 };
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, value);
                return Ok(Flow::Next);
            }
            Op::Carry(bits, d, a, b, [subtract, reads, writes]) => {
                let (a, b) = (row!(*a), row!(*b));
                let all = u64::MAX >> (64 - bits);
                let mut carries = 0;
                for lane in 0..WARP {
                    // A difference is a sum with the complement; its carry is the absence of a borrow.
                    let b = if *subtract { !b[lane] & all } else { b[lane] };
                    let carry = if *reads {
                        u64::from(warp.carry >> lane & 1)
                    } else {
                        u64::from(*subtract)
                    };
                    let sum = u128::from(a[lane]) + u128::from(b) + u128::from(carry);
                    out[lane] = sum as u64 & all;
                    carries |= u32::from(sum >> bits != 0) << lane;
                }
                if *writes {
                    warp.carry = (warp.carry & !mask) | (carries & mask);
                }
                *d
            }
            Op::Special(d, special) => {
                self.special(warp, *special, &mut out);
                *d
            }
            Op::ActiveMask(d) => {
                out = [u64::from(mask); WARP];
                *d
            }
            Op::FrameAddress(d, offset) => {
                out = [fragment.local + offset; WARP];
                *d
            }
            Op::IsSpace(d, a, space) => {
                let a = row!(*a);
                let within = |address: u64, window: u64| address.wrapping_sub(window) < WINDOW;
                let mut result = 0;
                for (lane, address) in a.iter().copied().enumerate() {
                    let is = match space {
                        Space::Shared => within(address, SHARED_WINDOW),
                        Space::Local => within(address, LOCAL_WINDOW),
                        Space::Param => within(address, PARAM_WINDOW),
                        _ => ![SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW]
                            .iter()
                            .any(|window| within(address, *window)),
                    };
                    result |= u32::from(is) << lane;
                }
                put_predicate(&mut warp.predicates, fragment.predicates, *d, mask, result);
                return Ok(Flow::Next);
            }
            Op::ToGeneric(d, a, space) => {
                let add = match space {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    Space::Param => PARAM_WINDOW,
                    _ => 0,
                };
                let a = row!(*a);
                for lane in 0..WARP {
                    out[lane] = a[lane].wrapping_add(add);
                }
                *d
            }
            Op::FromGeneric(d, a, space) => {
                let subtract = match space {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    Space::Param => PARAM_WINDOW,
                    _ => 0,
                };
                let a = row!(*a);
                for lane in 0..WARP {
                    out[lane] = a[lane].wrapping_sub(subtract);
                }
                *d
            }
            Op::Branch(target) => return Ok(self.branch(warp, fragment, mask, *target)),
            Op::BranchIndexed(index, targets) => {
                let index = *row!(*index);
                return self.branch_indexed(warp, fragment, mask, &index, targets);
            }
            Op::Call(call) => return self.call(warp, fragment, mask, call),
            Op::Return => return self.return_from(warp, fragment, mask),
            Op::Exit => return self.exit(warp, fragment, mask),
            Op::Trap => {
                let lane = lanes(mask).next().unwrap_or(0);
                return Err(Error::new("ptx-trap", "the kernel stopped itself").at_lane(lane));
            }
            Op::Sleep => return Ok(Flow::Yield),
            Op::Load(access) => {
                self.load(warp, fragment, mask, access)?;
                return Ok(Flow::Next);
            }
            Op::Store(access) => {
                self.store(warp, fragment, mask, access)?;
                return Ok(Flow::Next);
            }
            Op::Atomic(atomic) => {
                self.atomic(warp, fragment, mask, atomic)?;
                return Ok(Flow::Next);
            }
            Op::Fence => {
                if let Some(races) = &mut self.races {
                    for lane in lanes(mask) {
                        races.fence(crate::race::Races::agent(warp.number, lane as u32));
                    }
                }
                return Ok(Flow::Next);
            }
            Op::Barrier(barrier) => return self.barrier(warp, fragment, mask, barrier),
            Op::Warp(members, op) => {
                let members = *row!(*members);
                return self.warp_op(warp, fragment, mask, &members, op);
            }
            Op::CopyAsync(copy) => {
                self.copy_async(warp, fragment, mask, copy)?;
                return Ok(Flow::Next);
            }
            Op::CopyCommit => {
                for lane in lanes(mask) {
                    warp.committed[lane] += 1;
                }
                return Ok(Flow::Next);
            }
            Op::CopyWait(remaining) => {
                self.copy_wait(warp, mask, *remaining)?;
                return Ok(Flow::Next);
            }
            Op::Mbarrier(operation) => return self.mbarrier(warp, fragment, mask, operation),
            Op::Bulk(bulk) => {
                self.start_bulk(warp, fragment, mask, bulk)?;
                return Ok(Flow::Next);
            }
            Op::ReplaceMap(operation) => {
                self.replace_in_map(warp, fragment, mask, operation)?;
                return Ok(Flow::Next);
            }
            Op::CopyMap(operation) => {
                self.copy_map(warp, fragment, mask, operation)?;
                return Ok(Flow::Next);
            }
            Op::BulkCommit => {
                for lane in lanes(mask) {
                    warp.bulk_committed[lane] += 1;
                }
                return Ok(Flow::Next);
            }
            Op::BulkWait(remaining) => {
                self.bulk_wait(warp, mask, *remaining)?;
                return Ok(Flow::Next);
            }
        };
        put(&mut warp.registers, base, d, mask, &out);
        Ok(Flow::Next)
    }

    fn special(&mut self, warp: &Warp, special: Special, out: &mut Row) {
        let [x, y, _] = self.launch.block;
        let cta = self.slots[warp.slot].as_ref();
        let uniform = match special {
            Special::Tid(axis) => {
                for (lane, out) in out.iter_mut().enumerate() {
                    let linear = warp.index * WARP as u32 + lane as u32;
                    let value = match axis {
                        0 => linear % x,
                        1 => linear / x % y,
                        _ => linear / x / y,
                    };
                    *out = value.into();
                }
                return;
            }
            Special::LaneId
            | Special::LaneMaskEq
            | Special::LaneMaskLe
            | Special::LaneMaskLt
            | Special::LaneMaskGe
            | Special::LaneMaskGt => {
                for (lane, out) in out.iter_mut().enumerate() {
                    let bit = 1_u32 << lane;
                    let value = match special {
                        Special::LaneId => lane as u32,
                        Special::LaneMaskEq => bit,
                        Special::LaneMaskLt => bit - 1,
                        Special::LaneMaskLe => bit | (bit - 1),
                        Special::LaneMaskGe => !(bit - 1),
                        _ => !(bit | (bit - 1)),
                    };
                    *out = value.into();
                }
                return;
            }
            Special::Ntid(axis) => self.launch.block[axis as usize].into(),
            Special::Ctaid(axis) => cta.map_or(0, |cta| cta.id[axis as usize]).into(),
            Special::Nctaid(axis) => {
                let grid = cta.map_or(self.launch.grid, |cta| self.grids[cta.grid].0);
                grid[axis as usize].into()
            }
            Special::WarpId => warp.index.into(),
            Special::WarpCount => 64,
            Special::SmId => warp.slot as u64,
            Special::SmCount => self.slots.len() as u64,
            Special::GridId | Special::Zero => 0,
            Special::One => 1,
            Special::Clock => self.clock() & 0xffff_ffff,
            Special::Clock64 => self.clock(),
            Special::GlobalTimer => self.clock(),
            Special::GlobalTimerHigh => self.clock() >> 32,
            Special::DynamicShared => self.launch.shared_bytes,
            Special::TotalShared => self.shared_bytes,
        };
        *out = [uniform; WARP];
    }

    /// Splits a fragment: threads of a mask go elsewhere.
    pub(super) fn split(&self, warp: &mut Warp, fragment: &mut Fragment, mask: u32, to: u32) {
        let mut other = fragment.clone();
        other.mask = mask;
        other.at = to;
        other.resumed = false;
        fragment.mask &= !mask;
        warp.fragments.push(other);
    }

    fn branch(&mut self, warp: &mut Warp, fragment: &mut Fragment, mask: u32, target: u32) -> Flow {
        // All threads that branch, and those that do not, would do the same again.
        if target <= fragment.at && self.spins(warp, fragment) && mask == fragment.mask {
            return Flow::Wait(self.wait_of_loop(warp, fragment));
        }
        if mask == fragment.mask {
            return Flow::Jump(target);
        }
        self.split(warp, fragment, mask, target);
        Flow::Next
    }

    fn branch_indexed(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        index: &Row,
        targets: &[u32],
    ) -> Result<Flow> {
        let mut rest = mask;
        while let Some(lane) = lanes(rest).next() {
            let Some(target) = targets.get(index[lane] as usize) else {
                let message = format!("index {} of {} branch targets", index[lane], targets.len());
                return Err(Error::new("ptx-branch", message).at_lane(lane));
            };
            let same = lanes(rest)
                .filter(|other| index[*other] == index[lane])
                .fold(0, |mask, lane| mask | 1 << lane);
            if same == fragment.mask {
                return Ok(Flow::Jump(*target));
            }
            self.split(warp, fragment, same, *target);
            rest &= !same;
        }
        Ok(if fragment.mask == 0 { Flow::End } else { Flow::Next })
    }

    fn exit(&mut self, warp: &mut Warp, fragment: &mut Fragment, mask: u32) -> Result<Flow> {
        warp.live &= !mask;
        self.version += 1;
        if let Some(group) = warp.groups.first().filter(|_| warp.live == 0) {
            let line =
                self.program.source.line_column(self.program.starts[group.at as usize] as usize).0;
            let message = format!("a warp exits while the `wgmma` of line {line} is not complete");
            self.report_once(warp, fragment.at, Error::new("ptx-wgmma", message));
        }
        fragment.mask &= !mask;
        self.exited(warp);
        Ok(if fragment.mask == 0 { Flow::End } else { Flow::Next })
    }
}
