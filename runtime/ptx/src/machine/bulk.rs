//! Asynchronous copies: `cp.async`, `cp.async.bulk` and tiles of tensors.

use super::access::{Place, mark, misaligned};
use super::atomic::combine;
use super::error::Error;
use super::{Copy, Fragment, Machine, Warp, lanes};
use crate::addresses::Addresses;
use crate::code::{Address, AtomicOp, Bulk, MapField, Src};
use crate::launch::Schedule;
use crate::race::{Accessor, Async, Races};
use crate::tensor_map::TensorMap;
use crate::types::{Space, Type};

type Result<T> = std::result::Result<T, Error>;

/// The most turns of warps that a copy takes.
const MAX_TURNS: u32 = 512;

/// Bytes of a tensor map.
const MAP_BYTES: u64 = 128;

/// What a bulk copy does.
#[derive(Debug, Clone)]
enum Kind {
    Load { to: u64, from: u64, size: u64, barrier: u64 },
    Store { to: u64, from: u64, size: u64, op: Option<(AtomicOp, Type)> },
    LoadTile { to: u64, map: TensorMap, at: Vec<i32>, barrier: u64 },
    StoreTile { map: TensorMap, at: Vec<i32>, from: u64, op: Option<AtomicOp> },
}

/// A bulk copy that is not complete.
#[derive(Debug)]
pub(super) struct Pending {
    slot: usize,
    /// The warp: its number in the launch and in the CTA.
    warp: (u32, u32),
    lane: usize,
    /// The number of its group; copies to shared memory have none.
    group: Option<u32>,
    kind: Kind,
    accessor: Option<Accessor>,
    at: u32,
}

impl Machine<'_> {
    pub(super) fn copy_async(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        copy: &(Address, Address, u32, Option<Src>),
    ) -> Result<()> {
        let (to, from, size, source_size) = copy;
        let (to, from) = (self.addresses(warp, fragment, to), self.addresses(warp, fragment, from));
        let source_sizes = source_size.map(|src| *self.row(warp, fragment, src));
        let now = match self.launch.schedule {
            Schedule::RoundRobin => false,
            Schedule::Random(_) | Schedule::Adversarial(_) => self.random.below(4) == 0,
        };
        self.statistics.global(&Addresses::new(&from, mask, u64::from(*size)), false);
        self.statistics.shared(&Addresses::new(&to, mask, u64::from(*size)));
        for lane in lanes(mask) {
            let source_size = source_sizes.map_or(*size, |sizes| (sizes[lane] as u32).min(*size));
            self.place(warp, lane, Space::Shared, to[lane], u64::from(*size))?;
            if from[lane] % u64::from(*size) != 0 {
                return Err(misaligned(from[lane], u64::from(*size)).at_lane(lane));
            }
            if source_size > 0 {
                let place = self.place_unaligned(
                    warp,
                    lane,
                    Space::Global,
                    from[lane],
                    u64::from(source_size),
                );
                place.map_err(|fault| fault.at_lane(lane))?;
            }
            let agent = Races::agent(warp.number, lane as u32);
            let accessor = self
                .races
                .as_mut()
                .map(|races| races.asynchronous(agent, Async::Copy, fragment.at));
            warp.copies.push(Copy {
                lane: lane as u32,
                group: warp.committed[lane],
                to: to[lane],
                from: from[lane],
                size: *size,
                source_size,
                at: fragment.at,
                accessor,
                done: false,
            });
        }
        if now {
            for index in 0..warp.copies.len() {
                self.perform_copy(warp, index)?;
            }
        }
        Ok(())
    }

    fn perform_copy(&mut self, warp: &mut Warp, index: usize) -> Result<()> {
        let copy = &mut warp.copies[index];
        if std::mem::replace(&mut copy.done, true) {
            return Ok(());
        }
        let (lane, to, from, size, filled, at) = (
            copy.lane as usize,
            copy.to,
            copy.from,
            u64::from(copy.size),
            u64::from(copy.source_size),
            copy.at,
        );
        let accessor = copy.accessor.clone();
        let target = self.place(warp, lane, Space::Shared, to, size)?;
        let mut bytes = [0; 16];
        if filled > 0 {
            let source = self.place_unaligned(warp, lane, Space::Global, from, filled)?;
            self.check_written(warp, lane, at, source, filled as usize);
            let (memory, start) = self.bytes_of(warp, source);
            bytes[..filled as usize].copy_from_slice(&memory[start..start + filled as usize]);
            self.check_race(
                warp,
                (lane, at),
                source,
                filled as usize,
                accessor.as_ref(),
                (false, false),
            );
        }
        self.check_race(warp, (lane, at), target, size as usize, accessor.as_ref(), (true, false));
        self.write_bytes(warp.slot, target, &bytes[..size as usize])
    }

    /// Waits for the copies of threads, but for some groups.
    pub(super) fn copy_wait(
        &mut self,
        warp: &mut Warp,
        mask: u32,
        remaining: Option<u32>,
    ) -> Result<()> {
        let committed = warp.committed;
        let waits = |copy: &Copy| {
            let lane = copy.lane as usize;
            let complete = remaining
                .is_none_or(|remaining| copy.group < committed[lane].saturating_sub(remaining));
            mask >> lane & 1 == 1 && complete
        };
        for index in 0..warp.copies.len() {
            if waits(&warp.copies[index]) {
                let at = warp.copies[index].at;
                self.perform_copy(warp, index).map_err(|fault| fault.located(at, warp))?;
                let copy = &warp.copies[index];
                if let (Some(races), Some(accessor)) = (&mut self.races, &copy.accessor) {
                    races.waited(Races::agent(warp.number, copy.lane), Async::Copy, accessor);
                }
            }
        }
        warp.copies.retain(|copy| !waits(copy));
        Ok(())
    }

    fn write_bytes(&mut self, slot: usize, place: Place, bytes: &[u8]) -> Result<()> {
        match place {
            Place::Shared(at) => {
                if let Some(cta) = &mut self.slots[slot] {
                    cta.shared[at..at + bytes.len()].copy_from_slice(bytes);
                    mark(&mut cta.written, at, bytes.len());
                }
            }
            Place::Global(buffer, at) => {
                let buffer = &mut self.memory.buffers[buffer];
                if !buffer.writable {
                    let message = format!("a write to `{}`, which is constant", buffer.name);
                    return Err(Error::new("ptx-constant", message));
                }
                if let Some(written) = &mut buffer.written {
                    mark(written, at, bytes.len());
                }
                buffer.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            }
            _ => return Err(Error::new("ptx-bounds", "a copy to memory of a thread")),
        }
        self.version += 1;
        self.written(slot, place, bytes.len());
        Ok(())
    }

    pub(super) fn start_bulk(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        bulk: &Bulk,
    ) -> Result<()> {
        for lane in lanes(mask) {
            let address = |machine: &Self, address: &Address| {
                machine.addresses(warp, fragment, address)[lane]
            };
            let value = |machine: &Self, src: &Src| machine.row(warp, fragment, *src)[lane];
            let coordinates = |machine: &Self, at: &[Src]| {
                at.iter().map(|src| value(machine, src) as i32).collect()
            };
            let kind = match bulk {
                Bulk::Load(to, from, size, barrier) => Kind::Load {
                    to: address(self, to),
                    from: address(self, from),
                    size: value(self, size),
                    barrier: address(self, barrier),
                },
                Bulk::Store(to, from, size) => Kind::Store {
                    to: address(self, to),
                    from: address(self, from),
                    size: value(self, size),
                    op: None,
                },
                Bulk::Reduce(to, from, size, op, ty) => Kind::Store {
                    to: address(self, to),
                    from: address(self, from),
                    size: value(self, size),
                    op: Some((*op, *ty)),
                },
                Bulk::LoadTile(to, map, at, barrier) => Kind::LoadTile {
                    to: address(self, to),
                    map: self.tensor_map(warp, lane, map.space, address(self, map))?,
                    at: coordinates(self, at),
                    barrier: address(self, barrier),
                },
                Bulk::StoreTile(map, at, from) | Bulk::ReduceTile(map, at, from, _) => {
                    Kind::StoreTile {
                        map: self.tensor_map(warp, lane, map.space, address(self, map))?,
                        at: coordinates(self, at),
                        from: address(self, from),
                        op: match bulk {
                            Bulk::ReduceTile(.., op) => Some(*op),
                            _ => None,
                        },
                    }
                }
            };
            self.check_bulk(&kind).map_err(|fault| fault.at_lane(lane))?;
            let group = match kind {
                Kind::Load { .. } | Kind::LoadTile { .. } => None,
                _ => Some(warp.bulk_committed[lane]),
            };
            let agent = Races::agent(warp.number, lane as u32);
            let accessor = self
                .races
                .as_mut()
                .map(|races| races.asynchronous(agent, Async::Bulk, fragment.at));
            let at = fragment.at;
            self.bulk.push(Pending {
                slot: warp.slot,
                warp: (warp.number, warp.index),
                lane,
                group,
                kind,
                accessor,
                at,
            });
        }
        Ok(())
    }

    fn tensor_map(
        &self,
        warp: &Warp,
        lane: usize,
        space: Space,
        address: u64,
    ) -> Result<TensorMap> {
        if !address.is_multiple_of(64) {
            return Err(Error::new(
                "ptx-alignment",
                format!("a tensor map at {address:#x}, which is not a multiple of 64"),
            )
            .at_lane(lane));
        }
        let place = self
            .place_unaligned(warp, lane, space, address, 128)
            .map_err(|fault| fault.at_lane(lane))?;
        let (bytes, at) = self.bytes_of(warp, place);
        TensorMap::from_bytes(&bytes[at..at + 128]).ok_or_else(|| {
            Error::new("ptx-tensor-map", format!("no tensor map is at {address:#x}")).at_lane(lane)
        })
    }

    /// Replaces a field of a tensor map.
    pub(super) fn replace_in_map(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        (address, field, value): &(Address, MapField, Src),
    ) -> Result<()> {
        let addresses = self.addresses(warp, fragment, address);
        let values = *self.row(warp, fragment, *value);
        for lane in lanes(mask) {
            let place = self.place(warp, lane, address.space, addresses[lane], MAP_BYTES)?;
            self.check_written(warp, lane, fragment.at, place, MAP_BYTES as usize);
            let (memory, at) = self.bytes_of(warp, place);
            let mut bytes = memory[at..at + MAP_BYTES as usize].to_vec();
            TensorMap::replace(&mut bytes, *field, values[lane])
                .map_err(|message| Error::new("ptx-tensor-map", message).at_lane(lane))?;
            self.write_map(warp, (lane, fragment.at), place, &bytes)?;
        }
        Ok(())
    }

    /// Copies a tensor map, once for all threads of a warp.
    pub(super) fn copy_map(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        (to, from): &(Address, Address),
    ) -> Result<()> {
        let (targets, sources) =
            (self.addresses(warp, fragment, to), self.addresses(warp, fragment, from));
        let Some(lane) = lanes(mask).next() else { return Ok(()) };
        let at = (lane, fragment.at);
        let source = self.place(warp, lane, from.space, sources[lane], MAP_BYTES)?;
        let target = self.place(warp, lane, to.space, targets[lane], MAP_BYTES)?;
        self.check_written(warp, lane, fragment.at, source, MAP_BYTES as usize);
        self.check_race(warp, at, source, MAP_BYTES as usize, None, (false, false));
        let (memory, start) = self.bytes_of(warp, source);
        let bytes = memory[start..start + MAP_BYTES as usize].to_vec();
        self.write_map(warp, at, target, &bytes)
    }

    fn write_map(
        &mut self,
        warp: &Warp,
        at: (usize, u32),
        place: Place,
        bytes: &[u8],
    ) -> Result<()> {
        self.check_race(warp, at, place, bytes.len(), None, (true, false));
        self.write_bytes(warp.slot, place, bytes).map_err(|fault| fault.at_lane(at.0))
    }

    fn check_bulk(&self, kind: &Kind) -> Result<()> {
        let aligned = |address: u64, align: u64| match address % align {
            0 => Ok(()),
            _ => Err(Error::new(
                "ptx-alignment",
                format!("the address {address:#x} is not a multiple of {align}"),
            )),
        };
        match kind {
            Kind::Load { to, from, size, .. } | Kind::Store { to, from, size, .. } => {
                if size % 16 != 0 {
                    return Err(Error::new(
                        "ptx-alignment",
                        format!("{size} bytes to copy are not a multiple of 16"),
                    ));
                }
                aligned(*to, 16)?;
                aligned(*from, 16)
            }
            Kind::LoadTile { to: shared, map, at, .. }
            | Kind::StoreTile { from: shared, map, at, .. } => {
                if map.extents.len() != at.len() {
                    let message = format!(
                        "{} coordinates in a tensor of {} dimensions",
                        at.len(),
                        map.extents.len()
                    );
                    return Err(Error::new("ptx-tensor-map", message));
                }
                aligned(*shared, 128)
            }
        }
    }

    /// Completes a copy now and then: at random times, or the first one after many turns, since what waits for it may wait
    /// beside threads that poll memory and never stop.
    pub(super) fn maybe_complete_bulk(&mut self) -> Result<()> {
        if self.bulk.is_empty() {
            return Ok(());
        }
        if self.launch.schedule == Schedule::RoundRobin {
            self.bulk_turns += 1;
            return if self.bulk_turns < MAX_TURNS { Ok(()) } else { self.complete_one(0) };
        }
        if self.random.below(24) != 0 {
            return Ok(());
        }
        let index = self.random.below(self.bulk.len() as u64) as usize;
        self.complete_one(index)
    }

    /// Completes a copy, if there is one.
    pub(super) fn complete_bulk(&mut self) -> Result<bool> {
        if self.bulk.is_empty() {
            return Ok(false);
        }
        self.complete_one(0)?;
        Ok(true)
    }

    fn complete_one(&mut self, index: usize) -> Result<()> {
        self.bulk_turns = 0;
        let pending = self.bulk.remove(index);
        let warp = Warp {
            slot: pending.slot,
            index: pending.warp.1,
            number: pending.warp.0,
            ..Warp::default()
        };
        let lane = pending.lane;
        self.perform_bulk(&warp, &pending)
            .map_err(|fault| fault.at_lane(lane).located(pending.at, &warp))
    }

    /// Waits for the bulk copies from shared memory of threads, but for some groups.
    pub(super) fn bulk_wait(&mut self, warp: &mut Warp, mask: u32, remaining: u32) -> Result<()> {
        let mut index = 0;
        while index < self.bulk.len() {
            let pending = &self.bulk[index];
            let own = pending.warp.0 == warp.number && mask >> pending.lane & 1 == 1;
            let last = warp.bulk_committed[pending.lane].saturating_sub(remaining);
            if own && pending.group.is_some_and(|group| group < last) {
                self.complete_one(index)?;
            } else {
                index += 1;
            }
        }
        // All that are not pending have completed; the thread is ordered after them.
        if let Some(races) = &mut self.races {
            for lane in lanes(mask) {
                let agent = Races::agent(warp.number, lane as u32);
                let pending = self
                    .bulk
                    .iter()
                    .filter(|pending| pending.warp.0 == warp.number && pending.lane == lane);
                if pending.count() == 0 {
                    let last = races.asynchronous(agent, Async::Bulk, 0);
                    races.waited(agent, Async::Bulk, &last);
                }
            }
        }
        Ok(())
    }

    /// A CTA has ended: its shared memory is no longer there for copies.
    pub(super) fn finish_bulk(&mut self, slot: usize) {
        let mut left = vec![];
        self.bulk.retain_mut(|pending| {
            if pending.slot == slot {
                left.push((pending.at, pending.warp, pending.lane));
            }
            pending.slot != slot
        });
        for (at, warp, lane) in left {
            let warp = Warp { slot, index: warp.1, number: warp.0, ..Warp::default() };
            let message = "a CTA ends while a copy of its shared memory is not complete";
            self.report_once(&warp, at, Error::new("ptx-copy", message).at_lane(lane));
        }
    }

    fn perform_bulk(&mut self, warp: &Warp, pending: &Pending) -> Result<()> {
        match &pending.kind {
            Kind::Load { to, from, size, barrier } => {
                self.transfer(
                    warp,
                    pending,
                    (Space::Shared, *to),
                    Some((Space::Global, *from)),
                    *size,
                    None,
                )?;
                self.arrived(warp, pending, *barrier, *size)
            }
            Kind::Store { to, from, size, op } => self.transfer(
                warp,
                pending,
                (Space::Global, *to),
                Some((Space::Shared, *from)),
                *size,
                *op,
            ),
            Kind::LoadTile { to, map, at, barrier } => {
                let mut bytes = 0;
                self.rows(map, at, |machine, global, first, last, row, inner| {
                    bytes += inner;
                    machine.load_row(warp, pending, map, global, (first, last), *to, row, inner)
                })?;
                self.arrived(warp, pending, *barrier, bytes)
            }
            Kind::StoreTile { map, at, from, op } => {
                self.rows(map, at, |machine, global, first, last, row, inner| {
                    let op = op.map(|op| (op, map.ty));
                    machine.store_row(
                        warp,
                        pending,
                        map,
                        global,
                        (first, last),
                        *from,
                        row,
                        inner,
                        op,
                    )
                })
            }
        }
    }

    fn arrived(&mut self, warp: &Warp, pending: &Pending, barrier: u64, bytes: u64) -> Result<()> {
        let Place::Shared(at) = self.place(warp, pending.lane, Space::Shared, barrier, 8)? else {
            return Ok(());
        };
        let clock = match (&mut self.races, &pending.accessor) {
            (Some(races), Some(accessor)) => Some(races.release_async(accessor)),
            _ => None,
        };
        self.arrive_at(warp.slot, at as u64, 0, bytes, clock)
    }

    /// Calls a function for each row of a tile: the address of its first element, the bytes of the row that are
    /// in the tensor, the number of the row, and its bytes.
    fn rows(
        &mut self,
        map: &TensorMap,
        at: &[i32],
        mut each: impl FnMut(&mut Self, u64, u64, u64, u64, u64) -> Result<()>,
    ) -> Result<()> {
        let element = u64::from(map.ty.bytes());
        let inner = u64::from(map.tile[0]) * element;
        let count: u64 = map.tile[1..].iter().map(|extent| u64::from(*extent)).product();
        for row in 0..count {
            let mut rest = row;
            let mut inside = true;
            let mut global = map.address as i64 + i64::from(at[0]) * element as i64;
            for (axis, start) in at.iter().enumerate().skip(1) {
                let coordinate = i64::from(*start) + (rest % u64::from(map.tile[axis])) as i64;
                rest /= u64::from(map.tile[axis]);
                inside &= (0..i64::from(map.extents[axis])).contains(&coordinate);
                global = global.wrapping_add(coordinate.wrapping_mul(map.strides[axis - 1] as i64));
            }
            let limit = |index: i64| (index.clamp(0, i64::from(map.tile[0])) as u64) * element;
            let first = limit(-i64::from(at[0]));
            let last = limit(i64::from(map.extents[0]) - i64::from(at[0]));
            let (first, last) = if inside && first < last { (first, last) } else { (0, 0) };
            each(self, global as u64, first, last, row, inner)?;
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn load_row(
        &mut self,
        warp: &Warp,
        pending: &Pending,
        map: &TensorMap,
        global: u64,
        (first, last): (u64, u64),
        to: u64,
        row: u64,
        inner: u64,
    ) -> Result<()> {
        for chunk in (0..inner).step_by(16) {
            let target = map.swizzle.apply(to + row * inner + chunk);
            // Elements outside of the tensor are zero.
            let (start, end) = (first.max(chunk), last.min(chunk + 16));
            self.transfer(warp, pending, (Space::Shared, target), None, 16, None)?;
            if start < end {
                let source = Some((Space::Global, global.wrapping_add(start)));
                self.transfer(
                    warp,
                    pending,
                    (Space::Shared, target + start - chunk),
                    source,
                    end - start,
                    None,
                )?;
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn store_row(
        &mut self,
        warp: &Warp,
        pending: &Pending,
        map: &TensorMap,
        global: u64,
        (first, last): (u64, u64),
        from: u64,
        row: u64,
        inner: u64,
        op: Option<(AtomicOp, Type)>,
    ) -> Result<()> {
        for chunk in (0..inner).step_by(16) {
            let source = map.swizzle.apply(from + row * inner + chunk);
            let (start, end) = (first.max(chunk), last.min(chunk + 16));
            if start < end {
                let source = Some((Space::Shared, source + start - chunk));
                self.transfer(
                    warp,
                    pending,
                    (Space::Global, global.wrapping_add(start)),
                    source,
                    end - start,
                    op,
                )?;
            }
        }
        Ok(())
    }

    /// Copies bytes, combines them, or writes zeros if there is no source.
    fn transfer(
        &mut self,
        warp: &Warp,
        pending: &Pending,
        to: (Space, u64),
        from: Option<(Space, u64)>,
        size: u64,
        op: Option<(AtomicOp, Type)>,
    ) -> Result<()> {
        let target = self.place_unaligned(warp, pending.lane, to.0, to.1, size)?;
        let mut bytes = vec![0; size as usize];
        if let Some((space, address)) = from {
            let source = self.place_unaligned(warp, pending.lane, space, address, size)?;
            self.check_written(warp, pending.lane, pending.at, source, size as usize);
            let (memory, at) = self.bytes_of(warp, source);
            bytes.copy_from_slice(&memory[at..at + size as usize]);
            let accessor = pending.accessor.as_ref();
            self.check_race(
                warp,
                (pending.lane, pending.at),
                source,
                size as usize,
                accessor,
                (false, false),
            );
            match space {
                Space::Global => self.statistics.global_read += size,
                _ => self.statistics.global_written += size,
            }
        }
        if let Some((op, ty)) = op {
            let width = u64::from(ty.bytes());
            let (memory, start) = self.bytes_of(warp, target);
            for at in (0..size).step_by(width as usize) {
                let old = super::access::read(memory, start + at as usize, width);
                let value = super::access::read(&bytes, at as usize, width);
                super::access::write(&mut bytes, at as usize, width, combine(op, ty, old, value));
            }
        }
        let accessor = pending.accessor.as_ref();
        self.check_race(
            warp,
            (pending.lane, pending.at),
            target,
            size as usize,
            accessor,
            (true, op.is_some()),
        );
        self.write_bytes(warp.slot, target, &bytes)
    }
}
