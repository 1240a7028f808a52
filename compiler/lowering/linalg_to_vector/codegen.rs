//! The function being written: the places of tensors, and their memory.
use super::{
    Target,
    error::Result,
    kernel::{Kernel, Origin, Output, TensorId},
    pack_cache::PackCache,
    split::{Extent, MAX_PARTS, MIN_PART, Split, Units, cycles},
};
use crate::attributes::Schedule;
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::arith;
use irc_mlir::{Attribute, BlockRef, Type, Value};
use irc_packing::Packing;

/// The location of a tensor's elements.
#[derive(Debug, Clone, Copy)]
pub enum Place<'c, 'a> {
    /// Not assigned yet, or not in memory: a constant, a register, or one SSA scalar per row.
    Register,
    /// A whole tensor.
    Memory(Buffer<'c, 'a>),
    /// One row, reused by every row.
    Row(Buffer<'c, 'a>),
}

impl<'c, 'a> Place<'c, 'a> {
    /// The buffer, if the tensor is in memory.
    pub fn buffer(&self) -> Option<Buffer<'c, 'a>> {
        match self {
            Self::Register => None,
            Self::Memory(buffer) | Self::Row(buffer) => Some(*buffer),
        }
    }
}

/// The state of the lowering of one kernel.
pub struct Codegen<'c, 'a> {
    /// The kernel.
    pub kernel: Kernel<'c, 'a>,
    /// The target.
    pub target: Target,
    /// The place of each tensor.
    pub places: Vec<Place<'c, 'a>>,
    /// The values of tensors with one element per row, valid in the current row.
    pub scalars: Vec<(TensorId, Value<'c, 'a>)>,
    /// The cache of packed blocks, if any.
    pub pack_cache: Option<PackCache<'c, 'a>>,
    /// Arguments whose elements may be reordered, with their memory.
    pub constants: Vec<(usize, Value<'c, 'a>)>,
    /// Arguments that are constants of bytes from -64 to 64.
    pub small: Vec<usize>,
    /// Whether constants are in a cache.
    pub cached: bool,
    /// The packing of those that are reordered.
    pub packed: Vec<Packing>,
    /// The workspace argument.
    pub workspace: Value<'c, 'a>,
    /// Bytes of workspace allocated.
    pub workspace_bytes: i64,
    /// The block of the function, where views of the workspace are taken.
    pub top: BlockRef<'c, 'a>,
    /// Choices that replace those of the cost model.
    pub schedule: Schedule,
    /// How the work is divided among threads, if it is.
    pub split: Option<Split<'c, 'a>>,
    /// The results that the code being written stores past the caches.
    pub streamed: Vec<TensorId>,
    /// The extents that stand for numbers of rows and columns that the kernel is passed, and those numbers.
    pub passed: Vec<(i64, Value<'c, 'a>)>,
}

impl<'c: 'a, 'a> Codegen<'c, 'a> {
    /// Whether an extent stands for a number that the kernel is passed.
    pub fn is_passed(&self, extent: i64) -> bool {
        self.passed.iter().any(|(known, _)| *known == extent)
    }

    /// The number of iterations of a loop of this extent.
    pub fn extent(&self, extent: i64) -> Extent<'c, 'a> {
        let passed = self.passed.iter().find(|(known, _)| *known == extent);
        passed.map_or(Extent::Known(extent), |(_, number)| Extent::Passed(*number))
    }

    /// The stage among `stages` that computes a tensor, and the output.
    pub fn producer(&self, tensor: TensorId, stages: &[usize]) -> Option<(usize, &Output)> {
        stages.iter().find_map(|s| {
            let outputs = &self.kernel.stages[*s].outputs;
            outputs.iter().find(|output| output.tensor == tensor).map(|output| (*s, output))
        })
    }

    /// Whether a stage outside `stages` reads a tensor, or a result is a copy of part of it.
    pub fn read_by_other(&self, tensor: TensorId, stages: &[usize]) -> bool {
        let readers = self.kernel.stages.iter().enumerate().filter(|(s, _)| !stages.contains(s));
        let mut reads = readers.flat_map(|(_, stage)| {
            let inits = stage.outputs.iter().map(|output| output.init.tensor);
            stage
                .inputs
                .iter()
                .map(|input| input.tensor)
                .chain(inits)
                .chain(stage.gathered.iter().copied())
        });
        reads.any(|read| read == tensor)
            || self.kernel.results.iter().any(|result| result.tensor == tensor)
    }

    /// The scalar that all elements of a tensor are equal to, if known.
    pub fn splat_of(&self, tensor: TensorId) -> Option<Attribute<'c>> {
        match self.kernel.tensors[tensor].origin {
            Origin::Splat(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The width of a vector value on the target.
    pub fn full_lanes(&self) -> Lanes {
        Lanes::Vector(self.target.lanes())
    }

    /// Whether the function returns the tensor.
    pub fn is_result(&self, tensor: TensorId) -> bool {
        matches!(self.places[tensor], Place::Memory(_))
    }

    /// Forgets the values that were valid in one row.
    pub fn forget_scalars(&mut self) {
        self.scalars.clear();
    }

    /// Whether the kernel keeps what it packs for later calls.
    pub fn keeps(&self) -> bool {
        self.pack_cache.is_some()
    }

    /// Allocates cached memory for `size` elements of the type of `like` that depend only on the tensor `from`;
    /// returns the buffer and whether they must be computed. `None` if the kernel has no cache, or
    /// computes `from` itself.
    pub fn keep(
        &mut self,
        e: Emit<'c, 'a>,
        size: i64,
        (from, like): (TensorId, TensorId),
    ) -> Option<(Buffer<'c, 'a>, Value<'c, 'a>)> {
        let Origin::Argument(argument) = self.kernel.tensors[from].origin else { return None };
        let element = self.kernel.tensors[like].element;
        Some(self.pack_cache.as_mut()?.keep(e, size, element, argument))
    }

    /// A new buffer for `size` elements of the type of a tensor, for one part of a phase alone.
    pub fn scratch(&mut self, e: Emit<'c, 'a>, size: i64, tensor: TensorId) -> Buffer<'c, 'a> {
        self.scratch_of(e, size, self.kernel.tensors[tensor].element)
    }

    /// As [`Self::scratch`], of elements of a type.
    pub fn scratch_of(&mut self, e: Emit<'c, 'a>, size: i64, element: Type<'c>) -> Buffer<'c, 'a> {
        match &mut self.split {
            None => self.shared_of(e, size, element),
            Some(split) => {
                let offset = reserve(&mut split.bytes, size * super::byte_width(element));
                let memory = split.memory;
                self.view(e, memory, (offset, size), element)
            }
        }
    }

    /// A new buffer that all parts of all phases share, for `size` elements of the type of a tensor.
    pub fn shared(&mut self, e: Emit<'c, 'a>, size: i64, tensor: TensorId) -> Buffer<'c, 'a> {
        self.shared_of(e, size, self.kernel.tensors[tensor].element)
    }

    fn shared_of(&mut self, e: Emit<'c, 'a>, size: i64, element: Type<'c>) -> Buffer<'c, 'a> {
        let offset = reserve(&mut self.workspace_bytes, size * super::byte_width(element));
        self.view(e, self.workspace, (offset, size), element)
    }

    /// A view of memory, taken where every phase can use it.
    fn view(
        &self,
        e: Emit<'c, 'a>,
        memory: Value<'c, 'a>,
        (offset, size): (i64, i64),
        element: Type<'c>,
    ) -> Buffer<'c, 'a> {
        match self.split {
            None => e.workspace_view(memory, offset, size, element),
            Some(_) => e.view_at_start(self.top, memory, (offset, size), element),
        }
    }

    /// Writes a phase that computes some stages. In a kernel that is divided, it only runs if it is one of those requested.
    ///
    /// # Errors
    /// Those of `body`.
    pub fn phase(
        &mut self,
        e: Emit<'c, 'a>,
        stages: &[usize],
        body: impl FnOnce(&mut Self, Emit<'c, 'a>) -> Result<()>,
    ) -> Result<()> {
        let cost: i64 = stages.iter().map(|s| cycles(&self.kernel, &self.target, *s)).sum();
        let Some(split) = &mut self.split else { return body(self, e) };
        split.limit = (cost / MIN_PART).clamp(1, MAX_PARTS);
        let number = e.index(split.found.len() as i64);
        split.found.push(1);
        split.cycles.push(cost);
        let [first, last] = split.phases;
        let runs = e.binary(arith::ANDI, e.compare(7, first, number), e.compare(6, number, last));
        e.if_else(runs, &[], |e| body(self, e).map(|()| vec![]), |_| Ok(vec![])).map(|_| ())
    }

    /// The units that this part of the phase computes, of so many in all; `None` for all of them. Once per phase.
    pub fn units(
        &mut self,
        e: Emit<'c, 'a>,
        count: impl Into<Extent<'c, 'a>>,
    ) -> Option<Units<'c, 'a>> {
        let count = count.into();
        let split = self.split.as_mut()?;
        let parts = match count {
            Extent::Known(count) => split.limit.min(count),
            Extent::Passed(_) => split.limit,
        };
        *split.found.last_mut()? = parts;
        if parts < 2 {
            return None;
        }
        Some(Units::of_part(e, count, split.part, split.parts))
    }
}

/// Allocates bytes, aligned to a cache line; returns their offset.
fn reserve(allocated: &mut i64, bytes: i64) -> i64 {
    let offset = *allocated;
    *allocated += (bytes + 63) / 64 * 64;
    offset
}
