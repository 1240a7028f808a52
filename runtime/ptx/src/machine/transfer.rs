//! Loads and stores of a warp.
//!
//! The threads of a warp mostly access one memory. Their addresses are then checked at once, as the range from the first
//! byte to the last; else each is checked by itself, so that what is reported is that of the first thread.

use super::access::{Place, is_marked, mark, read, write};
use super::error::Error;
use super::{Fragment, Machine, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Warp, lanes};
use crate::addresses::{Addresses, Layout};
use crate::code::{Access, NONE, Order};
use crate::compile::KERNEL_PARAMS;
use crate::race::{Bytes, Race, Shadowed};
use crate::row::{Row, WARP, each_lane};
use crate::types::Space;

type Result<T> = std::result::Result<T, Error>;

/// A memory that all threads of a warp access together.
#[derive(Debug, Clone, Copy)]
enum Whole {
    /// A buffer.
    Global(usize),
    Shared,
    Param,
}

/// Where the bytes are that the threads of a warp access.
struct Places<'r> {
    addresses: Addresses<'r>,
    /// The memory that has all of them, and the address of its first byte.
    memory: Option<(Whole, u64)>,
    /// Without it, where those of each thread are.
    each: Vec<Place>,
}

impl Places<'_> {
    /// The first byte of a thread in the memory at an address.
    #[inline(always)]
    fn start(&self, base: u64, lane: usize) -> usize {
        self.addresses.of[lane].wrapping_sub(base) as usize
    }

    #[inline(always)]
    fn of(&self, lane: usize) -> Place {
        let Some((memory, base)) = self.memory else { return self.each[lane] };
        let start = self.start(base, lane);
        match memory {
            Whole::Global(buffer) => Place::Global(buffer, start),
            Whole::Shared => Place::Shared(start),
            Whole::Param => Place::Param(start),
        }
    }
}

impl Machine<'_> {
    /// The memory that has all of some bytes, with the address of its first byte.
    #[inline(always)]
    fn memory_of(&self, warp: &Warp, space: Space, first: u64, bytes: u64) -> Option<(Whole, u64)> {
        let within = |window: u64| first >= window && first - window < WINDOW;
        let space = match space {
            Space::Generic if within(SHARED_WINDOW) => Space::Shared,
            Space::Generic if within(PARAM_WINDOW) => Space::Param,
            Space::Generic => Space::Global,
            space => space,
        };
        match space {
            Space::Shared => {
                let base = if first >= SHARED_WINDOW { SHARED_WINDOW } else { 0 };
                let end = (first - base).checked_add(bytes)?;
                let has = end <= self.shared_bytes && self.slots[warp.slot].is_some();
                has.then_some((Whole::Shared, base))
            }
            Space::Global | Space::Const => {
                let near = self.recent.get().into_iter().find_map(|index| {
                    let buffer = self.memory.buffers.get(index)?;
                    Some((index, buffer.offset_of(first, bytes)?))
                });
                let (buffer, offset) = match near {
                    Some(found) => found,
                    None => self.memory.find(first, bytes).ok()?,
                };
                if near.is_none() {
                    self.recent.set([buffer, self.recent.get()[0]]);
                }
                Some((Whole::Global(buffer), first - offset as u64))
            }
            Space::Param => {
                let window = if first >= PARAM_WINDOW { PARAM_WINDOW } else { 0 };
                let base = window + KERNEL_PARAMS;
                let end = first.checked_sub(base)?.checked_add(bytes)?;
                let has = end <= self.params(warp.slot).len() as u64;
                has.then_some((Whole::Param, base))
            }
            Space::Local | Space::Generic => None,
        }
    }

    /// Where the bytes of threads are; they are checked to exist and to be aligned.
    #[inline(always)]
    fn places<'r>(
        &self,
        warp: &Warp,
        space: Space,
        addresses: Addresses<'r>,
    ) -> Result<Places<'r>> {
        let Addresses { of, mask, size, first, aligned, .. } = addresses;
        let bytes = addresses.bytes().filter(|_| aligned);
        let memory = bytes.and_then(|bytes| self.memory_of(warp, space, first, bytes));
        let mut each = vec![];
        if memory.is_none() {
            each = vec![Place::Param(0); WARP];
            for lane in lanes(mask) {
                each[lane] = self.place(warp, lane, space, of[lane], size)?;
            }
        }
        Ok(Places { addresses, memory, each })
    }

    #[inline(always)]
    fn count_access(&mut self, places: &Places<'_>, is_write: bool) {
        match places.memory {
            Some((Whole::Global(_), _)) => self.statistics.global(&places.addresses, is_write),
            Some((Whole::Shared, _)) => self.statistics.shared(&places.addresses),
            Some((Whole::Param, _)) => {}
            None => self.count_separate(places, is_write),
        }
    }

    #[cold]
    fn count_separate(&mut self, places: &Places<'_>, is_write: bool) {
        let Addresses { of, mask, size, .. } = places.addresses;
        let (mut global, mut shared) = (0, 0);
        for lane in lanes(mask) {
            match places.each[lane] {
                Place::Global(..) => global |= 1 << lane,
                Place::Shared(_) => shared |= 1 << lane,
                _ => {}
            }
        }
        if global != 0 {
            self.statistics.global(&Addresses::new(of, global, size), is_write);
        }
        if shared != 0 {
            self.statistics.shared(&Addresses::new(of, shared, size));
        }
    }

    /// The bytes of a memory.
    #[inline(always)]
    fn bytes(&self, slot: usize, memory: Whole) -> &[u8] {
        match memory {
            Whole::Global(buffer) => &self.memory.buffers[buffer].bytes,
            Whole::Shared => self.slots[slot].as_ref().map_or(&[], |cta| &cta.shared),
            Whole::Param => self.params(slot),
        }
    }

    /// Whether all bytes that threads read from one memory were written.
    #[inline(always)]
    fn are_written(&self, slot: usize, places: &Places<'_>) -> bool {
        let Some((memory, base)) = places.memory else { return false };
        let written = match memory {
            Whole::Global(buffer) => self.memory.buffers[buffer].written.as_ref(),
            Whole::Shared => self.slots[slot].as_ref().map(|cta| &cta.written),
            Whole::Param => None,
        };
        let Some(written) = written else { return true };
        let Addresses { mask, size, first, last, layout, .. } = places.addresses;
        // Bytes between those of threads have often been written too.
        let bytes = (last - first + size) as usize;
        let all = layout != Layout::Other || bytes <= 4 * WARP * size as usize;
        if all && is_marked(written, (first - base) as usize, bytes) {
            return true;
        }
        layout == Layout::Other
            && lanes(mask).all(|lane| is_marked(written, places.start(base, lane), size as usize))
    }

    /// Checks accesses without an order that threads make in one memory, for races.
    fn check_races(&mut self, warp: &Warp, at: u32, places: &Places<'_>, is_write: bool) {
        let (Some(races), Some((memory, base))) = (&mut self.races, places.memory) else { return };
        let shadowed = match (memory, &mut self.slots[warp.slot]) {
            (Whole::Global(buffer), _) if self.memory.buffers[buffer].writable => {
                Shadowed::Buffer(buffer)
            }
            (Whole::Shared, Some(cta)) => Shadowed::Own(&mut cta.shadow),
            _ => return,
        };
        let size = places.addresses.size as usize;
        let accesses = lanes(places.addresses.mask).map(|lane| {
            let start = places.start(base, lane);
            (lane, Bytes { start, size, write: is_write, strong: false })
        });
        let mut found: Vec<(usize, Race)> = vec![];
        races.access_together(shadowed, warp.number, at, accesses, &mut found);
        for (lane, race) in found {
            let name = self.place_name(places.of(lane));
            self.report_race(warp, lane, at, is_write, &name, race);
        }
    }

    /// Checks what threads read: that it was written, and for races.
    #[inline(always)]
    fn check_reads(&mut self, warp: &Warp, at: u32, places: &Places<'_>, order: Order) {
        let checks_written = self.launch.checks.uninitialised;
        let checks_races = self.races.is_some();
        let is_written = !checks_written || self.are_written(warp.slot, places);
        if is_written && !checks_races {
            return;
        }
        if is_written && places.memory.is_some() && !order.strong {
            return self.check_races(warp, at, places, false);
        }
        let Addresses { of, mask, size, .. } = places.addresses;
        for lane in lanes(mask) {
            let place = places.of(lane);
            self.check_written(warp, lane, at, place, size as usize);
            self.track(warp, lane, at, place, of[lane], size, false, order);
        }
    }

    pub(super) fn load(
        &mut self,
        warp: &mut Warp,
        fragment: &mut Fragment,
        mask: u32,
        access: &Access,
    ) -> Result<()> {
        let addresses = self.addresses(warp, fragment, &access.address);
        let size = u64::from(access.ty.bytes());
        let total = size * access.registers.len() as u64;
        let addresses = Addresses::new(&addresses, mask, total);
        let places = self.places(warp, access.address.space, addresses)?;
        self.count_access(&places, false);
        self.read_words(warp, fragment, mask, |lane| places.of(lane), total);
        self.check_reads(warp, fragment.at, &places, access.order);
        let extends = access.ty.is_signed() && access.bits > access.ty.bits();
        for (index, register) in access.registers.iter().enumerate() {
            if *register == NONE {
                continue;
            }
            let offset = index * size as usize;
            let mut other = [0; WARP];
            let register = (fragment.registers + register) as usize;
            let whole = mask == u32::MAX && places.memory.is_some();
            if let Some((memory, base)) = places.memory {
                let bytes = self.bytes(warp.slot, memory);
                let out = if whole { &mut warp.registers[register] } else { &mut other };
                gather(bytes, &places, (base, offset), size, out);
            } else {
                for lane in lanes(mask) {
                    other[lane] = self.read_place(warp, places.each[lane].after(offset), size);
                }
            }
            let row = &mut warp.registers[register];
            if !whole {
                each_lane(mask, |lane| row[lane] = other[lane]);
            }
            if extends {
                let unused = 64 - access.ty.bits();
                each_lane(mask, |lane| {
                    let value = (row[lane] << unused) as i64 >> unused;
                    row[lane] = value as u64 & (u64::MAX >> (64 - access.bits));
                });
            }
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        warp: &mut Warp,
        fragment: &Fragment,
        mask: u32,
        access: &Access,
    ) -> Result<()> {
        let addresses = self.addresses(warp, fragment, &access.address);
        let size = u64::from(access.ty.bytes());
        let total = size * access.values.len() as u64;
        let addresses = Addresses::new(&addresses, mask, total);
        let places = self.places(warp, access.address.space, addresses)?;
        self.count_access(&places, true);
        if self.races.is_some() {
            if places.memory.is_some() && !access.order.strong {
                self.check_races(warp, fragment.at, &places, true);
            } else {
                for lane in lanes(mask) {
                    let (place, address) = (places.of(lane), addresses.of[lane]);
                    self.track(warp, lane, fragment.at, place, address, total, true, access.order);
                }
            }
        }
        let wakes_none = !self.has_sleepers()
            || lanes(mask)
                .all(|lane| !self.is_slept_on(warp.slot, places.of(lane), total as usize));
        for (index, value) in access.values.iter().enumerate() {
            let values = *self.row(warp, fragment, *value);
            let offset = index * size as usize;
            if wakes_none && self.scatter(warp.slot, &places, offset, size, &values) {
                continue;
            }
            for lane in lanes(mask) {
                let place = places.of(lane).after(offset);
                self.write_place(warp, place, size, values[lane])
                    .map_err(|fault| fault.at_lane(lane))?;
            }
        }
        Ok(())
    }

    /// Writes a value of each thread to bytes of one memory on which no thread sleeps; `false`, and nothing is written,
    /// if they cannot be written together.
    #[inline(always)]
    fn scatter(
        &mut self,
        slot: usize,
        places: &Places<'_>,
        offset: usize,
        size: u64,
        values: &Row,
    ) -> bool {
        let Some((memory, base)) = places.memory else { return false };
        let (bytes, written) = match (memory, &mut self.slots[slot]) {
            (Whole::Global(buffer), _) if self.memory.buffers[buffer].writable => {
                let buffer = &mut self.memory.buffers[buffer];
                (&mut buffer.bytes, buffer.written.as_mut())
            }
            (Whole::Shared, Some(cta)) => (&mut cta.shared, Some(&mut cta.written)),
            _ => return false,
        };
        let mask = places.addresses.mask;
        let mut changed = false;
        each_lane(mask, |lane| {
            changed |= write(bytes, places.start(base, lane) + offset, size, values[lane]);
        });
        if let Some(written) = written {
            if places.addresses.layout == Layout::Consecutive && size == places.addresses.size {
                mark(written, places.start(base, 0), size as usize * WARP);
            } else {
                lanes(mask).for_each(|lane| {
                    mark(written, places.start(base, lane) + offset, size as usize);
                });
            }
        }
        self.version += u64::from(changed);
        true
    }
}

/// Reads a value for each thread, from an offset after the bytes of the thread in the memory at an address.
#[inline(always)]
fn gather(
    bytes: &[u8],
    places: &Places<'_>,
    (base, offset): (u64, usize),
    size: u64,
    out: &mut Row,
) {
    let Addresses { mask, size: step, layout, .. } = places.addresses;
    let start = |lane: usize| places.start(base, lane) + offset;
    match (layout, size) {
        (Layout::Same, _) => {
            let lane = mask.trailing_zeros() as usize % WARP;
            *out = [read(bytes, start(lane), size); WARP];
        }
        (Layout::Consecutive, 4) if step == 4 => {
            let bytes = &bytes[start(0)..][..4 * WARP];
            for (out, bytes) in out.iter_mut().zip(bytes.chunks_exact(4)) {
                *out = read(bytes, 0, 4);
            }
        }
        (_, 4) => each_lane(mask, |lane| out[lane] = read(bytes, start(lane), 4)),
        _ => each_lane(mask, |lane| out[lane] = read(bytes, start(lane), size)),
    }
}
