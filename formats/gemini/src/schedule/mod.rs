//! Schedules: the workloads of each core of a mesh, the contents of its buffers, and transfers.
//!
//! Three dialects are represented by one model:
//!
//! * [`Dialect::A`], that of the format document and of the published single-core tool chain: sizes
//!   in bytes, tensors with L2 addresses, ring regions, tiles;
//! * [`Dialect::B`], that of SET's main branch and Gemini: several cores, sizes in bits, blocks
//!   of KiB without addresses;
//! * [`Dialect::C`], of SET's branches with address allocation: as B, with DRAM in interleaved
//!   groups, results in the buffer, and addresses in blocks.
//!
//! Fields that not every dialect has are options. [`parse`] reads text, [`check()`] runs all checks,
//! [`write()`] reproduces the text.

mod check;
mod coords;
mod dram;
mod parse;
mod resident;
mod segments;
mod tile;
mod transfers;
mod workload;
mod write;

pub use check::{Limits, check, ring_spans};
pub use coords::{Coords, Extent, Ids, OneOrMany};
pub use dram::{DramGroup, DramIn, DramOut, PlaceKind, Target};
pub(crate) use parse::is_schedule_key;
pub use parse::parse;
pub use resident::{Buffer, Resident, ResidentKind, SentTo, Source, Wl0Row, Wl0Source};
pub use segments::Segments;
pub use tile::{CutMode, Tile, Tiles};
pub use transfers::{Place, Transfers};
pub use workload::{Ifmap, LayerKind, Ofmap, Weight, Workload};
pub use write::{write, write_to};

use irc_json::Json;

use crate::record::{Extra, record};

/// The dialects of schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// The format document: bytes, addresses, tiles.
    A,
    /// SET and Gemini: bits and blocks, several cores.
    B,
    /// As B, with interleaved DRAM and room for allocated addresses.
    C,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The dialect it is written in.
    pub dialect: Dialect,
    /// Columns of the mesh.
    pub xlen: i64,
    /// Rows of the mesh.
    pub ylen: i64,
    /// Number of batch groups at the root of the schedule tree.
    pub top_batch_cut: i64,
    /// Bytes of the L2 buffer of a core, in dialect A.
    pub buffersize: Option<i64>,
    /// Blocks of DRAM: one group, or in dialect C one for each interleaving.
    pub dram: Vec<DramGroup>,
    /// The cores that have work, by id, whatever the order of the file: programs depend on it.
    pub cores: Vec<Core>,
    /// The NPU that it is for, as irc writes it; other tools do not state it.
    pub target: Option<String>,
    /// The resource allocation tree that it follows, in SET's text form, as irc writes it.
    pub tree: Option<String>,
    /// The objective that selects its mappings of layers to cores, as irc writes it, if that is not energy times delay.
    pub objective: Option<String>,
    /// The windows of its layers, as irc writes them.
    pub windows: Option<Vec<LayerWindow>>,
    /// Positions of the DRAM ports, in dialect C.
    pub ports: Option<Json>,
    /// Unknown keys and the order of keys of dialect C's `metadata`.
    pub metadata_extra: Extra,
    /// Unknown keys and the order of keys of the outermost object.
    pub extra: Extra,
}

record! {
    /// The window of a layer.
    pub struct LayerWindow {
        /// Groups of channels with filters of their own.
        groups: i64,
        /// Rows and columns.
        kernel: [i64; 2],
        /// The layer.
        layer_name: String,
        /// Rows and columns that the first window begins before the input.
        padding: [i64; 2],
        /// Rows and columns from one window to the next.
        stride: [i64; 2],
    }
}

/// A core and its workloads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    /// Id of the core in the file.
    pub id: i64,
    /// Its workloads, in order.
    pub workloads: Vec<Workload>,
}

impl Schedule {
    /// Whether an id is that of a core of the mesh: in dialect A counted from 0, else with a column of DRAM
    /// ports at either side.
    pub fn is_core(&self, id: i64) -> bool {
        let columns = match self.dialect {
            Dialect::A => return (0..self.xlen.saturating_mul(self.ylen)).contains(&id),
            Dialect::B | Dialect::C => self.xlen.max(0).saturating_add(2),
        };
        let (y, x) = (id.div_euclid(columns), id.rem_euclid(columns));
        (0..self.ylen).contains(&y) && (1..=self.xlen).contains(&x)
    }

    /// The id of DRAM.
    pub fn dram_id(&self) -> i64 {
        match self.dialect {
            Dialect::A => -1,
            Dialect::B | Dialect::C => 0,
        }
    }

    /// The path of a core in its file.
    pub fn core_path(&self, core: usize) -> String {
        format!("$[\"{}\"]", self.cores[core].id)
    }

    /// The path of a workload in its file.
    pub fn workload_path(&self, (core, index): Place) -> String {
        format!("{}[{index}]", self.core_path(core))
    }

    /// The number of images of all workloads, at least 1.
    pub fn images(&self) -> i64 {
        let last = self.workloads().map(|(_, _, workload)| workload.extent.axis(0).1);
        last.max().map_or(1, |last| last.saturating_add(1).max(1))
    }

    /// All workloads, each with the index of its core and its index there.
    pub fn workloads(&self) -> impl Iterator<Item = (usize, usize, &Workload)> {
        self.cores.iter().enumerate().flat_map(|(core, Core { workloads, .. })| {
            workloads.iter().enumerate().map(move |(index, workload)| (core, index, workload))
        })
    }
}
