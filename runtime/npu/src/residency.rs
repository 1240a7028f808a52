//! The contents of a core's memories over time.

use std::collections::BTreeSet;

use irc_npu::access::{Access, Space, accesses};
use irc_npu::area::Area;
use irc_npu::layout::WL0_UNIT;
use irc_npu::registers::Registers;
use irc_npu::{Core, Engine, Time};

/// The data that one workload writes to one location with one engine, until it is overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// L2 or WL0.
    pub space: Space,
    /// The engine that writes it.
    pub engine: Engine,
    /// Start and end address; other tensors may be between its pixels.
    pub bytes: (i64, i64),
    /// Number of its own bytes.
    pub size: i64,
    /// From the first write to the last read.
    pub time: Time,
    /// Layer during which it is written, as numbered in instructions.
    pub layer: i32,
    /// Workload during which it is written.
    pub workload: i32,
    /// Layers during which it is read.
    pub readers: BTreeSet<i32>,
}

/// All contents of L2 and WL0 over time, in the order of their first write.
pub fn residents(core: &Core, times: &[Time]) -> Vec<Resident> {
    let mut all = Accesses::default();
    for touch in touches(core, times) {
        match touch.write {
            true => all.write(touch),
            false => all.read(&touch),
        }
    }
    all.list
}

/// An access at the time at which it counts: the start of a write, the end of a read.
struct BufferAccess {
    at: u64,
    write: bool,
    time: Time,
    space: Space,
    area: Area,
    engine: Engine,
    layer: i32,
    workload: i32,
}

fn touches(core: &Core, times: &[Time]) -> Vec<BufferAccess> {
    let mut registers = Registers::default();
    let mut all = vec![];
    for (instruction, time) in core.code.iter().zip(times) {
        // The verifier reports errors of programs.
        let _ = registers.write(instruction);
        for access in accesses(&registers, &instruction.op).unwrap_or_default() {
            let Access { space, write, area } = access;
            if matches!(space, Space::L2 | Space::Wl0) {
                all.push(BufferAccess {
                    at: if write { time.start } else { time.end },
                    write,
                    time: *time,
                    space,
                    area,
                    engine: instruction.op.engine(),
                    layer: instruction.origin.slyr,
                    workload: instruction.origin.wkl,
                });
            }
        }
    }
    // Reads come before writes that begin when they end.
    all.sort_by_key(|touch| (touch.at, touch.write));
    all
}

#[derive(Default)]
struct Accesses {
    list: Vec<Resident>,
    /// Indices of the residents that have not been overwritten, with their areas.
    live: Vec<(usize, Vec<Area>)>,
}

impl Accesses {
    fn write(&mut self, touch: BufferAccess) {
        let list = &self.list;
        let is_own = |one: &Resident| {
            let source = (one.space, one.engine, one.layer, one.workload);
            source == (touch.space, touch.engine, touch.layer, touch.workload)
        };
        let own = self.live.iter().position(|(place, _)| {
            is_own(&list[*place]) && meets(list[*place].bytes, bytes(touch.space, &touch.area))
        });
        let hit = |areas: &[Area]| areas.iter().any(|area| area.overlaps(&touch.area));
        let grows = own.filter(|own| !hit(&self.live[*own].1)).map(|own| self.live[own].0);
        self.live.retain(|(place, areas)| list[*place].space != touch.space || !hit(areas));
        if let Some(grown) = grows {
            return self.grow(grown, &touch);
        }
        self.live.push((self.list.len(), vec![touch.area]));
        self.list.push(Resident {
            space: touch.space,
            engine: touch.engine,
            bytes: bytes(touch.space, &touch.area),
            size: size(touch.space, &touch.area),
            time: touch.time,
            layer: touch.layer,
            workload: touch.workload,
            readers: BTreeSet::new(),
        });
    }

    /// Adds an area to a live resident.
    fn grow(&mut self, place: usize, touch: &BufferAccess) {
        if let Some((_, areas)) = self.live.iter_mut().find(|(other, _)| *other == place) {
            areas.push(touch.area);
        }
        let resident = &mut self.list[place];
        let (from, to) = bytes(touch.space, &touch.area);
        resident.bytes = (resident.bytes.0.min(from), resident.bytes.1.max(to));
        resident.size += size(touch.space, &touch.area);
        resident.time.end = resident.time.end.max(touch.time.end);
    }

    fn read(&mut self, touch: &BufferAccess) {
        for (place, areas) in &self.live {
            let resident = &mut self.list[*place];
            let is_read = resident.space == touch.space
                && areas.iter().any(|area| area.overlaps(&touch.area));
            if is_read {
                resident.time.end = resident.time.end.max(touch.time.end);
                resident.readers.insert(touch.layer);
            }
        }
    }
}

/// Bytes of a unit of a memory's addresses.
fn unit(space: Space) -> i64 {
    if space == Space::Wl0 { WL0_UNIT } else { 1 }
}

fn bytes(space: Space, area: &Area) -> (i64, i64) {
    (area.start * unit(space), area.end() * unit(space))
}

fn size(space: Space, area: &Area) -> i64 {
    area.bytes() * unit(space)
}

/// Whether the areas overlap, or one ends where the other begins.
fn meets(a: (i64, i64), b: (i64, i64)) -> bool {
    a.0 <= b.1 && b.0 <= a.1
}
