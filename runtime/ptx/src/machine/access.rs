//! Accesses to memory, with their checks.

use super::error::Error;
use super::{Fragment, LOCAL_WINDOW, Machine, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Warp};
use crate::code::{Address, Order};
use crate::compile::KERNEL_PARAMS;
use crate::race::{Accessor, Bytes, Races, Shadowed};
use crate::row::Row;
use crate::types::Space;

type Result<T> = std::result::Result<T, Error>;

/// Where bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A buffer and an offset.
    Global(usize, usize),
    Shared(usize),
    /// A thread and an offset.
    Local(usize, usize),
    Param(usize),
}

impl Place {
    pub(super) fn after(self, bytes: usize) -> Self {
        match self {
            Place::Global(buffer, at) => Place::Global(buffer, at + bytes),
            Place::Shared(at) => Place::Shared(at + bytes),
            Place::Local(lane, at) => Place::Local(lane, at + bytes),
            Place::Param(at) => Place::Param(at + bytes),
        }
    }
}

/// Reads up to 8 bytes.
#[inline(always)]
pub(super) fn read(bytes: &[u8], at: usize, size: u64) -> u64 {
    match size {
        4 => u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default()).into(),
        8 => u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default()),
        2 => u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap_or_default()).into(),
        _ => bytes[at].into(),
    }
}

/// Writes up to 8 bytes; whether they changed.
#[inline(always)]
pub(super) fn write(bytes: &mut [u8], at: usize, size: u64, value: u64) -> bool {
    let changed = read(bytes, at, size) != value & (u64::MAX >> (64 - 8 * size));
    match size {
        4 => bytes[at..at + 4].copy_from_slice(&(value as u32).to_le_bytes()),
        8 => bytes[at..at + 8].copy_from_slice(&value.to_le_bytes()),
        2 => bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes()),
        _ => bytes[at] = value as u8,
    }
    changed
}

impl Machine<'_> {
    /// The addresses of an operand, for each thread.
    #[inline(always)]
    pub(super) fn addresses(&self, warp: &Warp, fragment: &Fragment, address: &Address) -> Row {
        let mut addresses = *self.row(warp, fragment, address.base);
        let add =
            (address.offset as u64).wrapping_add(if address.frame { fragment.local } else { 0 });
        addresses.iter_mut().for_each(|address| *address = address.wrapping_add(add));
        addresses
    }

    /// Where the bytes of an address are; they are checked to exist and to be aligned.
    #[inline(always)]
    pub(super) fn place(
        &self,
        warp: &Warp,
        lane: usize,
        space: Space,
        address: u64,
        size: u64,
    ) -> Result<Place> {
        if address & (size.next_power_of_two() - 1) != 0 {
            return Err(misaligned(address, size).at_lane(lane));
        }
        let place = self.place_unaligned(warp, lane, space, address, size);
        place.map_err(|fault| fault.at_lane(lane))
    }

    pub(super) fn place_unaligned(
        &self,
        warp: &Warp,
        lane: usize,
        space: Space,
        address: u64,
        size: u64,
    ) -> Result<Place> {
        match space {
            Space::Shared => self.shared_place(
                warp,
                if address >= SHARED_WINDOW { address - SHARED_WINDOW } else { address },
                size,
            ),
            Space::Local => self.local_place(warp, lane, address, size),
            Space::Param if address < KERNEL_PARAMS => self.local_place(warp, lane, address, size),
            Space::Param => self.param_place(warp, address, size),
            Space::Global | Space::Const => self.global_place(address, size),
            Space::Generic => match address {
                SHARED_WINDOW.. if address < SHARED_WINDOW + WINDOW => {
                    self.shared_place(warp, address - SHARED_WINDOW, size)
                }
                LOCAL_WINDOW.. if address < LOCAL_WINDOW + WINDOW => {
                    self.local_place(warp, lane, address - LOCAL_WINDOW, size)
                }
                PARAM_WINDOW.. if address < PARAM_WINDOW + WINDOW => {
                    self.param_place(warp, address - PARAM_WINDOW, size)
                }
                _ => self.global_place(address, size),
            },
        }
    }

    fn shared_place(&self, warp: &Warp, offset: u64, size: u64) -> Result<Place> {
        match offset.checked_add(size) {
            Some(end) if end <= self.shared_bytes && self.slots[warp.slot].is_some() => {
                Ok(Place::Shared(offset as usize))
            }
            _ => {
                let message = format!(
                    "{size} bytes at {offset:#x} of shared memory, which has {} bytes",
                    self.shared_bytes
                );
                Err(Error::new("ptx-bounds", message))
            }
        }
    }

    fn local_place(&self, warp: &Warp, lane: usize, offset: u64, size: u64) -> Result<Place> {
        let length = warp.local[lane].len() as u64;
        match offset.checked_add(size) {
            Some(end) if end <= length => Ok(Place::Local(lane, offset as usize)),
            _ => {
                let message = format!(
                    "{size} bytes at {offset:#x} of local memory, which has {length} bytes"
                );
                Err(Error::new("ptx-bounds", message))
            }
        }
    }

    /// The parameters of the launch of the warps of a slot.
    pub(super) fn params(&self, slot: usize) -> &[u8] {
        self.slots[slot].as_ref().map_or(&[], |cta| &self.grids[cta.grid].1)
    }

    fn param_place(&self, warp: &Warp, address: u64, size: u64) -> Result<Place> {
        let offset = address.wrapping_sub(KERNEL_PARAMS);
        match offset.checked_add(size) {
            Some(end) if end <= self.params(warp.slot).len() as u64 => {
                Ok(Place::Param(offset as usize))
            }
            _ => {
                let length = self.params(warp.slot).len();
                let message = format!(
                    "{size} bytes at {offset:#x} of the parameters, which have {length} bytes"
                );
                Err(Error::new("ptx-bounds", message))
            }
        }
    }

    #[inline(always)]
    fn global_place(&self, address: u64, size: u64) -> Result<Place> {
        match self.memory.find(address, size) {
            Ok((buffer, offset)) => Ok(Place::Global(buffer, offset)),
            Err(near) => Err(self.outside(address, size, near)),
        }
    }

    #[cold]
    fn outside(&self, address: u64, size: u64, near: Option<usize>) -> Error {
        let fault =
            Error::new("ptx-bounds", format!("{size} bytes at {address:#x} are in no buffer"));
        let describe = |index: usize| {
            let buffer = &self.memory.buffers[index];
            let (end, length) = (buffer.base + buffer.bytes.len() as u64, buffer.bytes.len());
            match address {
                _ if address < buffer.base => {
                    format!(
                        "`{}`, of {length} bytes, starts {} bytes after",
                        buffer.name,
                        buffer.base - address
                    )
                }
                _ if address < end => {
                    format!("`{}`, of {length} bytes, ends within them", buffer.name)
                }
                _ => format!(
                    "`{}`, of {length} bytes, ends {} bytes before",
                    buffer.name,
                    address - end
                ),
            }
        };
        let next = near.map_or(0, |near| near + 1);
        let after = self
            .memory
            .buffers
            .get(next)
            .filter(|buffer| buffer.base - address < 1 << 15)
            .map(|_| next);
        match after.or(near) {
            Some(index) => fault.note(describe(index)),
            None => fault,
        }
    }

    #[inline(always)]
    pub(super) fn bytes_of<'a>(&'a self, warp: &'a Warp, place: Place) -> (&'a [u8], usize) {
        match place {
            Place::Global(buffer, at) => (&self.memory.buffers[buffer].bytes, at),
            Place::Shared(at) => match &self.slots[warp.slot] {
                Some(cta) => (&cta.shared, at),
                None => (&[], at),
            },
            Place::Local(lane, at) => (&warp.local[lane], at),
            Place::Param(at) => (self.params(warp.slot), at),
        }
    }

    #[inline(always)]
    pub(super) fn read_place(&self, warp: &Warp, place: Place, size: u64) -> u64 {
        let (bytes, at) = self.bytes_of(warp, place);
        read(bytes, at, size)
    }

    /// Writes a value of up to 8 bytes.
    #[inline(always)]
    pub(super) fn write_place(
        &mut self,
        warp: &mut Warp,
        place: Place,
        size: u64,
        value: u64,
    ) -> Result<()> {
        let changed = match place {
            Place::Global(buffer, at) => {
                let buffer = &mut self.memory.buffers[buffer];
                if !buffer.writable {
                    let message = format!("a write to `{}`, which is constant", buffer.name);
                    return Err(Error::new("ptx-constant", message));
                }
                if let Some(written) = &mut buffer.written {
                    mark(written, at, size as usize);
                }
                write(&mut buffer.bytes, at, size, value)
            }
            Place::Shared(at) => match &mut self.slots[warp.slot] {
                Some(cta) => {
                    mark(&mut cta.written, at, size as usize);
                    write(&mut cta.shared, at, size, value)
                }
                None => false,
            },
            Place::Local(lane, at) => write(&mut warp.local[lane], at, size, value),
            Place::Param(_) => {
                return Err(Error::new("ptx-constant", "a write to the parameters of a kernel"));
            }
        };
        if changed {
            self.version += 1;
            self.written(warp.slot, place, size as usize);
        }
        Ok(())
    }

    /// Checks that bytes of shared memory, and of buffers that start unwritten, were written.
    #[inline(always)]
    pub(super) fn check_written(
        &mut self,
        warp: &Warp,
        lane: usize,
        at: u32,
        place: Place,
        size: usize,
    ) {
        if !self.launch.checks.uninitialised {
            return;
        }
        let (written, offset) = match (place, &self.slots[warp.slot]) {
            (Place::Shared(offset), Some(cta)) => (Some(&cta.written), offset),
            (Place::Global(buffer, offset), _) => {
                (self.memory.buffers[buffer].written.as_ref(), offset)
            }
            _ => return,
        };
        if written.is_some_and(|written| !is_marked(written, offset, size)) {
            let name = self.place_name(place);
            let message = format!("{size} bytes of {name} are read, not all of which were written");
            self.report_once(warp, at, Error::new("ptx-uninitialised", message).at_lane(lane));
        }
    }

    fn shared_name(&self, offset: usize) -> String {
        let names = &self.program.shared_names;
        let own =
            names.iter().find(|(_, start, size)| (*start..start + size).contains(&(offset as u64)));
        match own {
            Some((name, start, _)) => format!("`{name}` at {:#x}", offset as u64 - start),
            None => format!("shared memory at {offset:#x}"),
        }
    }

    pub(super) fn place_name(&self, place: Place) -> String {
        match place {
            Place::Global(buffer, at) => {
                format!("`{}` at {at:#x}", self.memory.buffers[buffer].name)
            }
            Place::Shared(at) => self.shared_name(at),
            _ => "memory of a thread".into(),
        }
    }

    /// Checks an access of a thread, or of an asynchronous operation of it, for races.
    #[inline(always)]
    pub(super) fn check_race(
        &mut self,
        warp: &Warp,
        (lane, at): (usize, u32),
        place: Place,
        size: usize,
        accessor: Option<&Accessor>,
        (write, strong): (bool, bool),
    ) {
        let Some(races) = &mut self.races else { return };
        let (shadowed, start) = match (place, &mut self.slots[warp.slot]) {
            (Place::Global(buffer, _), _) if !self.memory.buffers[buffer].writable => return,
            (Place::Global(buffer, at), _) => (Shadowed::Buffer(buffer), at),
            (Place::Shared(at), Some(cta)) => (Shadowed::Own(&mut cta.shadow), at),
            _ => return,
        };
        let bytes = Bytes { start, size, write, strong };
        let race = match accessor {
            Some(accessor) => races.access_async(shadowed, accessor, &bytes),
            None => races.access(shadowed, Races::agent(warp.number, lane as u32), at, &bytes),
        };
        if let Some(race) = race {
            let name = self.place_name(place);
            self.report_race(warp, lane, at, write, &name, race);
        }
    }

    /// The accesses of a thread with an order: checked for races, and ordered with others.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn track(
        &mut self,
        warp: &Warp,
        lane: usize,
        at: u32,
        place: Place,
        address: u64,
        size: u64,
        is_write: bool,
        order: Order,
    ) {
        if self.races.is_none() || !matches!(place, Place::Global(..) | Place::Shared(_)) {
            return;
        }
        if !order.strong {
            return self.check_race(
                warp,
                (lane, at),
                place,
                size as usize,
                None,
                (is_write, false),
            );
        }
        let agent = self.agent(warp, lane);
        let cta = warp.number / self.warps_per_cta as u32;
        let key = location(place, address, cta);
        if let Some(races) = &mut self.races
            && !is_write
        {
            races.strong_read(agent, cta, key, order.acquire, order.cta);
        }
        self.check_race(warp, (lane, at), place, size as usize, None, (is_write, true));
        if let Some(races) = &mut self.races
            && is_write
        {
            races.strong_write(agent, cta, key, order.release, order.cta, false);
        }
    }
}

/// The name of a location for releases and acquires: shared memory differs by CTA.
pub(super) fn location(place: Place, address: u64, cta: u32) -> u64 {
    match place {
        Place::Shared(at) => 1 << 63 | u64::from(cta) << 24 | at as u64,
        _ => address,
    }
}

pub(super) fn misaligned(address: u64, size: u64) -> Error {
    Error::new(
        "ptx-alignment",
        format!(
            "the address {address:#x} of {size} bytes is not a multiple of {}",
            size.next_power_of_two()
        ),
    )
}

/// The words of a row of bits that hold some of them, with a mask of these in each.
#[inline(always)]
fn words_of(at: usize, bits: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = at + bits;
    let words = if bits == 0 { 0..0 } else { at / 64..end.div_ceil(64) };
    words.map(move |word| {
        let (from, to) = (at.max(word * 64), end.min(word * 64 + 64));
        (word, u64::MAX >> (64 - (to - from)) << (from % 64))
    })
}

/// Marks bytes as written.
#[inline(always)]
pub(super) fn mark(written: &mut [u64], at: usize, size: usize) {
    for (word, mask) in words_of(at, size) {
        written[word] |= mask;
    }
}

/// Whether all bytes are marked as written.
#[inline(always)]
pub(super) fn is_marked(written: &[u64], at: usize, size: usize) -> bool {
    words_of(at, size).all(|(word, mask)| written[word] & mask == mask)
}
