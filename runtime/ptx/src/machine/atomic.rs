//! Atomic operations.

use super::access::location;
use super::error::Error;
use super::{Fragment, Machine, Warp, lanes, put};
use crate::addresses::Addresses;
use crate::code::{Atomic, AtomicOp};
use crate::float::{self, BF16, F16, Rounding};
use crate::row::WARP;
use crate::types::Type;

/// The new value of an operation on an old value and an operand.
pub(super) fn combine(op: AtomicOp, ty: Type, old: u64, value: u64) -> u64 {
    use AtomicOp::*;
    match (op, ty) {
        (Exchange | CompareExchange, _) => value,
        (And, _) => old & value,
        (Or, _) => old | value,
        (Xor, _) => old ^ value,
        (Inc, _) => {
            if old >= value {
                0
            } else {
                old + 1
            }
        }
        (Dec, _) => {
            if old == 0 || old > value {
                value
            } else {
                old - 1
            }
        }
        (Add, Type::F32) => {
            let sum = f32::from_bits(old as u32) + f32::from_bits(value as u32);
            u64::from(sum.to_bits())
        }
        (Add, Type::F64) => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
        (_, Type::F16 | Type::Bf16) => half(op, ty == Type::Bf16, old, value),
        (_, Type::F16x2 | Type::Bf16x2) => {
            let bf = ty == Type::Bf16x2;
            half(op, bf, old & 0xffff, value & 0xffff)
                | half(op, bf, old >> 16 & 0xffff, value >> 16 & 0xffff) << 16
        }
        (Add, Type::U64 | Type::S64 | Type::B64) => old.wrapping_add(value),
        (Add, _) => u64::from((old as u32).wrapping_add(value as u32)),
        (Min, Type::S32) => u64::from((old as i32).min(value as i32) as u32),
        (Max, Type::S32) => u64::from((old as i32).max(value as i32) as u32),
        (Min, Type::S64) => (old as i64).min(value as i64) as u64,
        (Max, Type::S64) => (old as i64).max(value as i64) as u64,
        (Min, _) => old.min(value),
        (Max, _) => old.max(value),
    }
}

fn half(op: AtomicOp, bf: bool, old: u64, value: u64) -> u64 {
    let read = |bits: u64| {
        f64::from(if bf { float::from_bf16(bits as u16) } else { float::from_f16(bits as u16) })
    };
    let (a, b) = (read(old), read(value));
    let result = match op {
        AtomicOp::Min => a.min(b),
        AtomicOp::Max => a.max(b),
        _ => float::add(a, b),
    };
    u64::from(float::round(result, if bf { BF16 } else { F16 }, Rounding::Nearest))
}

impl Machine<'_> {
    pub(super) fn atomic(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        atomic: &Atomic,
    ) -> Result<(), Error> {
        let addresses = self.addresses(warp, fragment, &atomic.address);
        let size = u64::from(atomic.ty.bytes());
        let total = size * atomic.values.len() as u64;
        let cta = warp.number / self.warps_per_cta as u32;
        let mut out = [0; WARP];
        let mut global = 0_u32;
        for lane in lanes(mask) {
            let address = addresses[lane];
            let place = self.place(warp, lane, atomic.address.space, address, total)?;
            self.check_written(warp, lane, fragment.at, place, total as usize);
            self.read_words(warp, fragment, 1 << lane, |_| place, total);
            let agent = self.agent(warp, lane);
            let key = location(place, address, cta);
            global |= u32::from(matches!(place, super::access::Place::Global(..))) << lane;
            if let Some(races) = &mut self.races {
                races.strong_read(agent, cta, key, atomic.order.acquire, atomic.order.cta);
            }
            self.check_race(warp, (lane, fragment.at), place, total as usize, None, (true, true));
            if let Some(races) = &mut self.races {
                races.strong_write(agent, cta, key, atomic.order.release, atomic.order.cta, true);
            }
            for (index, value) in atomic.values.iter().enumerate() {
                let place = place.after(index * size as usize);
                let old = self.read_place(warp, place, size);
                let value = self.row(warp, fragment, *value)[lane];
                let new = match atomic.swap {
                    Some(swap) if old == value => self.row(warp, fragment, swap)[lane],
                    Some(_) => old,
                    None => combine(atomic.op, atomic.ty, old, value),
                };
                out[lane] = old;
                self.write_place(warp, place, size, new).map_err(|fault| fault.at_lane(lane))?;
            }
        }
        if global != 0 {
            self.statistics.global(&Addresses::new(&addresses, global, total), true);
        }
        put(&mut warp.registers, fragment.registers, atomic.d, mask, &out);
        Ok(())
    }
}
