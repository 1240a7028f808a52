//! Sums of products in tiles: matrix products, convolutions, and what else is a product of two factors of which each
//! depends on loops that the other does not.
//!
//! The loops over the result that only the left factor depends on are rows, those of the right one columns, and all others
//! number the products. A team computes one tile of rows and columns after another. How it does so depends on the factors
//! ([`Method`]). If the tiles do not divide evenly among the processors of a GPU, the summands of some are divided
//! ([`Division`]): each share of a tile is computed by itself and written to the workspace, and once all are, threads add
//! the shares, always in the same order.

pub(super) mod attention;
mod copied;
mod division;
mod fragments;
pub mod groups;
mod shares;
mod staged;
mod window;

use super::{
    super::{
        expression::depends_on,
        nest::{Nest, Writer},
    },
    Device, Emit, Infallible, Lanes, arith, func,
    team::{Team, extent, indices, is_in_shared_memory, product, shared_memory, when},
};
use crate::kernel::emit::{Buffer, first_result};
use copied::{Copied, Shape};
use division::{Division, Size};
use groups::Grouped;
use irc_mlir::{
    OperationLike, OperationRef, Type as MlirType, Value, ValueLike, attr, ops::memref,
};
use irc_tl::{Binary, Combine, Compute, DType, Dim, Scalar, Type};
use shares::either;
use staged::{Staged, TILE};
use window::{Window, count};

/// The numbers of threads that tiles are for.
pub(super) const WORKERS: [i64; 5] = [512, 256, 128, 64, 32];

/// The minimum number of rows, columns and summands.
const MIN_EXTENT: i64 = 16;

/// Bytes of shared memory for each warp of a team.
pub const SHARED_BYTES: i64 = 10 << 10;

/// What instructions begin with of products that need the shared memory of all warps of their team.
pub const COPIES: &str = "cp.async.";

/// Sums that a lane holds of a part of the result of 16 rows and 32 columns, a fragment, and the bytes of all of them.
const FRAGMENT: usize = 16;
const FRAGMENT_ROWS: i64 = 16;
const FRAGMENT_COLUMNS: i64 = 32;
const FRAGMENT_BYTES: i64 = FRAGMENT_ROWS * FRAGMENT_COLUMNS * 4;

/// The minimum number of summands of a share of a tile.
const MIN_PART: i64 = 256;

/// The most blocks of summands whose loop may be unrolled.
const MAX_UNROLLED: i64 = 4;

/// The maximum number of equal parts of a tile.
const MAX_PARTS: i64 = 16;

/// In how many summands the sums of a tile are estimated to be written to memory and read: on tensor cores, and in
/// registers.
const TENSOR_EXCHANGE: i64 = 512;
const EXCHANGE: i64 = 64;

/// The most rows that do not fill the tiles of groups of warps.
const MAX_FEW_ROWS: i64 = 64;

/// How much longer a tile takes for each row and column, which are copied, compared with each of its sums.
const LINE_COST: i64 = 64;

/// A sum of products.
pub(super) struct Product<'n> {
    /// The factors.
    factors: [&'n Scalar; 2],
    /// The loops over the result that number products, rows and columns, each in their order.
    groups: [Vec<usize>; 3],
    /// The type of both factors in memory, if it is one of halves.
    half: Option<DType>,
}

/// How tiles are computed.
#[derive(Clone, Debug)]
enum Method {
    /// Threads compute the elements of the factors: any factors.
    Staged,
    /// Threads copy the factors, which are halves at regular places.
    Copied(Shape, DType, Box<[Window; 2]>),
    /// A warp copies them, and groups of warps multiply.
    Grouped(groups::Shape, DType, Box<[Window; 2]>),
}

/// How a product is computed by a team.
#[derive(Clone, Debug)]
struct Schedule {
    method: Method,
    /// The number of threads that compute tiles: a part of those of a block.
    workers: i64,
    /// The rows and columns of a tile, and the summands of a block.
    tile: [i64; 2],
    depth: i64,
    /// How summands are divided, if they are.
    division: Option<Division>,
}

impl<'n> Product<'n> {
    /// The product that a nest computes, if it is large enough for tiles.
    pub(super) fn of(nest: &'n Nest, types: &[&Type]) -> Option<Self> {
        let found = Self::any(nest, types)?;
        let (compute, reduction) = (&nest.compute, nest.compute.reduction.as_ref()?);
        let extents = [found.count(compute, 1), found.count(compute, 2), product(&reduction.dims)];
        extents.iter().all(|extent| *extent >= MIN_EXTENT).then_some(found)
    }

    /// The product that a nest computes, of any size. The last loop over the result is one of the right factor.
    fn any(nest: &'n Nest, types: &[&Type]) -> Option<Self> {
        let compute = &nest.compute;
        let reduction = compute.reduction.as_ref()?;
        let Scalar::Binary(Binary::Mul, left, right) = &compute.body else { return None };
        let owned: Vec<Type> = types.iter().map(|ty| (*ty).clone()).collect();
        let dtype = compute.body.dtype(&owned, compute.loops());
        if reduction.combine != Combine::Sum || dtype != Ok(DType::F32) {
            return None;
        }
        let mut factors = [&**left, &**right];
        let last = (0..compute.dims.len()).rfind(|it| !compute.dims[*it].is(1))?;
        if depends_on(factors[0], last) && !depends_on(factors[1], last) {
            factors.swap(0, 1);
        }
        Some(Self::between(compute, factors, types))
    }

    /// The product of two factors, the left one first.
    fn between(compute: &Compute, factors: [&'n Scalar; 2], types: &[&Type]) -> Self {
        let long = (0..compute.dims.len()).filter(|it| !compute.dims[*it].is(1));
        let mut groups = [vec![], vec![], vec![]];
        for it in long {
            let by = [depends_on(factors[0], it), depends_on(factors[1], it)];
            groups[match by {
                [true, false] => 1,
                [false, true] => 2,
                _ => 0,
            }]
            .push(it);
        }
        let half = [DType::F16, DType::BF16]
            .into_iter()
            .find(|half| factors.iter().all(|factor| is_of(factor, *half, types)));
        Self { factors, groups, half }
    }

    /// The number of iterations of the loops of a group.
    fn count(&self, compute: &Compute, group: usize) -> i64 {
        count(self.groups[group].iter().map(|it| &compute.dims[*it]))
    }

    /// The most rows and columns of a tile that are in the result.
    fn extents(&self, compute: &Compute, tile: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|side| tile[side].min(self.count(compute, 1 + side)))
    }

    /// How a team of a device computes it; `None` if the team has a number of threads that tiles are not for.
    fn schedule(&self, compute: &Compute, types: &[&Type], device: &Device) -> Option<Schedule> {
        let workers = workers_of(device)?;
        let [outer, rows, columns] = [0, 1, 2].map(|group| self.count(compute, group));
        let tiles = |[down, across]: [i64; 2]| {
            outer.saturating_mul(ceil_div(rows, down)).saturating_mul(ceil_div(columns, across))
        };
        let mut found = Schedule {
            method: Method::Staged,
            workers,
            tile: [TILE; 2],
            depth: staged::depth(self.half),
            division: None,
        };
        let processors = if device.is_grid { device.processors() } else { 1 };
        let summands = count(compute.reduction.iter().flat_map(|it| &it.dims));
        let exchange = if self.half.is_some() { TENSOR_EXCHANGE } else { EXCHANGE };
        let divide = |tile: [i64; 2], depth: i64| {
            let size = Size { tiles: tiles(tile), summands, depth, exchange };
            Division::of(size, processors)
        };
        let cost = |tile: [i64; 2], depth: i64| {
            let own = tile[0] * tile[1] + LINE_COST * (tile[0] + tile[1]);
            divide(tile, depth).1.saturating_mul(own)
        };
        let windows = [0, 1].map(|side| Window::of(self, side, compute, types));
        if let ([Some(left), Some(right)], Some(half)) = (windows, self.half) {
            let windows = Box::new([left, right]);
            let grouped = groups::Shape::all(device, &windows).into_iter();
            let grouped = grouped.min_by_key(|shape| cost(shape.tile(), groups::DEPTH));
            let shapes = [[128, 128], [128, 64], [64, 64]].into_iter();
            let shapes = shapes.filter_map(|[down, across]| Shape::of(down, across, workers / 32));
            if let Some(shape) = grouped.filter(|_| rows > MAX_FEW_ROWS) {
                found.tile = shape.tile();
                found.depth = groups::DEPTH;
                found.method = Method::Grouped(shape, half, windows);
            } else if let Some(shape) = shapes.min_by_key(|shape| cost(shape.tile(), copied::DEPTH))
            {
                found.tile = shape.tile();
                found.depth = copied::DEPTH;
                found.method = Method::Copied(shape, half, windows);
            }
        }
        found.division = divide(found.tile, found.depth).0;
        Some(found)
    }
}

/// The number of threads of a team that compute tiles; `None` if tiles are for none.
fn workers_of(device: &Device) -> Option<i64> {
    let fits = |threads: &i64| match device.is_grid {
        true => *threads <= device.threads,
        false => *threads == device.threads,
    };
    WORKERS.into_iter().find(fits)
}

fn ceil_div(count: i64, by: i64) -> i64 {
    count / by + i64::from(count % by != 0)
}

/// Bytes of the workspace for the sums of shares of a product, if a step is one that is divided.
pub(super) fn partial_bytes(nest: &Nest, types: &[&Type], device: &Device) -> Option<i64> {
    let product = Product::of(nest, types)?;
    let schedule = product.schedule(&nest.compute, types, device)?;
    let division = schedule.division?;
    let [rows, columns] = product.extents(&nest.compute, schedule.tile);
    Some(division.workers * division.places() * rows * columns * 4)
}

/// The number of teams that have a part of a product, if a step is one in tiles.
pub(super) fn workers(nest: &Nest, types: &[&Type], device: &Device) -> Option<i64> {
    let product = Product::of(nest, types)?;
    let schedule = product.schedule(&nest.compute, types, device)?;
    let [outer, rows, columns] = [0, 1, 2].map(|group| product.count(&nest.compute, group));
    let [down, across] = schedule.tile;
    let tiles =
        outer.saturating_mul(ceil_div(rows, down)).saturating_mul(ceil_div(columns, across));
    Some(schedule.division.map_or(tiles, |division| division.workers))
}

/// Whether an expression only selects and widens elements of a type, or zero.
fn is_of(factor: &Scalar, half: DType, types: &[&Type]) -> bool {
    match factor {
        Scalar::Cast(DType::F32, _, x) => is_of(x, half, types),
        Scalar::Load(operand, _) => types.get(*operand).is_some_and(|ty| ty.dtype == half),
        Scalar::Select(parts) => is_of(&parts[1], half, types) && is_of(&parts[2], half, types),
        Scalar::Float(bits, _) => f64::from_bits(*bits) == 0.0,
        _ => false,
    }
}

/// Where a tile is: the first row and column, and the number of the product.
#[derive(Clone, Copy)]
struct Place<'c, 'a> {
    outer: Value<'c, 'a>,
    row: Value<'c, 'a>,
    column: Value<'c, 'a>,
}

/// The summands of a share of a tile.
#[derive(Clone, Copy)]
struct Range<'c, 'a> {
    first: Value<'c, 'a>,
    end: Value<'c, 'a>,
    /// The place of the sums among those of all shares, if tiles are divided.
    place: Option<Value<'c, 'a>>,
    /// Whether these are all summands of the tile, if that depends.
    is_whole: Option<Value<'c, 'a>>,
}

/// A product that is being emitted.
pub(super) struct Tiles<'w, 'n, 'c, 'a> {
    product: Product<'n>,
    writer: &'w Writer<'n, 'c, 'a>,
    /// The threads that compute tiles.
    team: Team<'c, 'a>,
    threads: i64,
    /// Whether these are threads of all blocks of a grid.
    is_grid: bool,
    /// The first byte of shared memory for fragments.
    fragments: i64,
    /// Rows and columns of a tile.
    tile: [i64; 2],
    /// How summands are divided, and memory for the sums of shares.
    division: Option<(Division, Buffer<'c, 'a>)>,
}

/// Emits the loops of a product; `false` if the nest is none, or if a team has a number of threads that tiles are not
/// for. `partial` is memory of as many bytes as
/// [`partial_bytes`] says.
pub(super) fn emit<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    writer: &Writer<'_, 'c, 'a>,
    team: &Team<'c, 'a>,
    device: &Device,
    partial: Option<Value<'c, 'a>>,
) -> bool {
    let compute = &writer.nest.compute;
    let types: Vec<&Type> = writer.operands.iter().map(|(ty, _)| *ty).collect();
    let Some(product) = Product::of(writer.nest, &types) else { return false };
    let Some(mut schedule) = product.schedule(compute, &types, device) else { return false };
    // Copies are asynchronous from global memory only.
    if let Method::Copied(_, _, windows) = &schedule.method
        && windows.iter().any(|window| is_operand_shared(writer, window))
    {
        schedule.method = Method::Staged;
        (schedule.tile, schedule.depth) = ([TILE; 2], staged::depth(product.half));
    }
    let is_grouped = matches!(schedule.method, Method::Grouped(..));
    let works = if is_grouped { device.threads } else { schedule.workers };
    let workers = part_of(e, team, works, device);
    let partial = partial.map(|memref| Buffer { memref, element: e.f32() });
    let division = schedule.division.zip(partial);
    let fragments = match is_grouped {
        true => groups::FRAGMENTS_START,
        false => schedule.workers / 32 * (SHARED_BYTES - FRAGMENT_BYTES),
    };
    let (threads, tile) = (schedule.workers, schedule.tile);
    let is_grid = device.is_grid;
    let tiles =
        Tiles { product, writer, team: workers, threads, is_grid, fragments, tile, division };
    on_part(e, team, works, device, |e| tiles.emit(e, &schedule, device));
    if let Some((division, partial)) = division {
        team.wait(e);
        tiles.add_shares(e, team, (&division, partial));
    }
    true
}

/// Whether the operand of a factor is in shared memory: the scratch of a task.
fn is_operand_shared(writer: &Writer<'_, '_, '_>, window: &Window) -> bool {
    is_in_shared_memory(writer.operands[window.operand].1.memref.r#type())
}

/// The first threads of a team, so many.
fn part_of<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    team: &Team<'c, 'a>,
    threads: i64,
    device: &Device,
) -> Team<'c, 'a> {
    if threads == device.threads {
        return *team;
    }
    // The barrier of some warps; that of a block of the grid has no number.
    let barrier = e.integer(WORKERS_BARRIER, 32, Lanes::Scalar);
    Team { threads: e.index(threads), barrier, ..*team }
}

/// Runs something on the first threads of a team.
fn on_part<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    team: &Team<'c, 'a>,
    threads: i64,
    device: &Device,
    body: impl FnOnce(Emit<'c, 'a>),
) {
    match threads == device.threads {
        true => body(e),
        false => when(e, e.compare(ULT, team.thread, e.index(threads)), body),
    }
}

/// The number of the barrier of the threads of a block that compute tiles.
const WORKERS_BARRIER: i64 = 1;

impl<'c: 'a, 'a> Tiles<'_, '_, 'c, 'a> {
    fn emit(&self, e: Emit<'c, 'a>, schedule: &Schedule, device: &Device) {
        let staged = |e: Emit<'c, 'a>, schedule: &Schedule| {
            let staged = Staged { tiles: self };
            self.each(e, schedule, &[], |e, item, _| {
                staged.tile(e, &item.place, &item.range);
                vec![]
            });
        };
        let (shape, half, windows) = match &schedule.method {
            Method::Staged => return staged(e, schedule),
            Method::Grouped(shape, half, windows) => {
                let grouped = Grouped { tiles: self, shape: *shape, half: *half, windows };
                return grouped.emit(e, schedule);
            }
            Method::Copied(shape, half, windows) => (shape, half, windows),
        };
        let copied = Copied { tiles: self, shape: *shape, half: *half, windows };
        let fast = |e: Emit<'c, 'a>| {
            self.each(e, schedule, &[], |e, item, _| {
                copied.tile(e, item);
                vec![]
            });
            Ok::<_, Infallible>(vec![])
        };
        if device.is_grid {
            let Ok(_) = fast(e);
            return;
        }
        // Operands of tasks are anywhere in larger memory, and 16 bytes are copied at once.
        let start = |window: &Window| self.operand_address(e, window.operand);
        let all = e.binary(arith::ORI, start(&windows[0]), start(&windows[1]));
        let rest = e.binary(arith::REMUI, all, e.index(2 * window::CHUNK));
        let aligned = e.compare(0, rest, e.index(0));
        let slow = |e: Emit<'c, 'a>| {
            staged(e, &Schedule { tile: [TILE; 2], ..schedule.clone() });
            Ok(vec![])
        };
        let Ok(_) = e.if_else(aligned, &[], fast, slow);
    }

    fn count(&self, group: usize) -> i64 {
        self.product.count(&self.writer.nest.compute, group)
    }

    fn summands(&self) -> i64 {
        count(self.writer.nest.compute.reduction.iter().flat_map(|it| &it.dims))
    }

    /// Uses the sum at a row and column of a tile: of all summands, or of a share of them.
    fn sink(
        &self,
        e: Emit<'c, 'a>,
        (place, range): (&Place<'c, 'a>, &Range<'c, 'a>),
        at: (Value<'c, 'a>, Value<'c, 'a>),
        sum: Value<'c, 'a>,
    ) {
        self.when_inside(e, place, at, |e| self.use_sum(e, (place, range), at, sum));
    }

    /// Runs something if a row and column of a tile are in the result.
    fn when_inside(
        &self,
        e: Emit<'c, 'a>,
        place: &Place<'c, 'a>,
        (row, column): (Value<'c, 'a>, Value<'c, 'a>),
        body: impl FnOnce(Emit<'c, 'a>),
    ) {
        let starts = [e.add(place.row, row), e.add(place.column, column)];
        let checks = starts.into_iter().enumerate().filter_map(|(side, at)| {
            let count = self.count(1 + side);
            (count % self.tile[side] != 0).then(|| e.compare(ULT, at, e.index(count)))
        });
        match checks.reduce(|both, check| e.binary(arith::ANDI, both, check)) {
            Some(inside) => when(e, inside, body),
            None => body(e),
        }
    }

    /// Uses the sum at a row and column of a tile that are in the result.
    fn use_sum(
        &self,
        e: Emit<'c, 'a>,
        (place, range): (&Place<'c, 'a>, &Range<'c, 'a>),
        at: (Value<'c, 'a>, Value<'c, 'a>),
        sum: Value<'c, 'a>,
    ) {
        let (row, column) = (e.add(place.row, at.0), e.add(place.column, at.1));
        let store = |e| self.store(e, [place.outer, row, column], sum);
        match (range.place, &self.division) {
            (Some(number), Some((_, partial))) => {
                let keep = |e| self.keep(e, *partial, (number, at), sum);
                match range.is_whole {
                    None => keep(e),
                    Some(is_whole) => either(e, is_whole, store, keep),
                }
            }
            _ => store(e),
        }
    }

    /// Computes and stores the element of the result of a sum.
    fn store(&self, e: Emit<'c, 'a>, numbers: [Value<'c, 'a>; 3], sum: Value<'c, 'a>) {
        let at = self.result_index(e, numbers);
        let value = self.writer.finished(e, &at, sum);
        self.writer.store(e, &at, value);
    }

    /// The number of the thread in its team, of which LLVM does not know that.
    fn thread_again(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        if !self.is_grid {
            return self.again(e, self.team.thread);
        }
        first_result(self.call(e, "irc_gpu_thread", &[], &[MlirType::index(e.context)]))
    }

    /// A number, of which LLVM does not know that: what is computed from it is computed where it is, and not before.
    fn again(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> Value<'c, 'a> {
        let index = MlirType::index(e.context);
        first_result(self.call(e, "irc_gpu_again", &[number], &[index]))
    }

    /// A number that is known only when the kernel runs. NVIDIA's assembler otherwise unrolls loops, those of 32 iterations
    /// completely, so that they need more registers than there are.
    fn unknown(&self, e: Emit<'c, 'a>, number: Value<'c, 'a>) -> Value<'c, 'a> {
        let index = MlirType::index(e.context);
        e.add(number, first_result(self.call(e, "irc_gpu_zero", &[], &[index])))
    }

    /// The lanes of a warp wait for each other.
    fn wait_in_warp(&self, e: Emit<'c, 'a>) {
        let operands = [e.integer(WARP_BARRIER, 32, Lanes::Scalar), e.index(32)];
        self.call(e, "irc_gpu_barrier", &operands, &[]);
    }

    /// Calls a function of the device.
    fn call(
        &self,
        e: Emit<'c, 'a>,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[MlirType<'c>],
    ) -> OperationRef<'c, 'a> {
        let callee = attr::symbol(e.context, name);
        let call = e.spec(func::CALL).attr("callee", callee).operands(operands);
        call.results(results).append(&e.block)
    }

    /// The address of the block's shared memory.
    fn shared_address(&self, e: Emit<'c, 'a>) -> Value<'c, 'a> {
        address(e, shared_memory(e))
    }

    /// The address of an operand.
    fn operand_address(&self, e: Emit<'c, 'a>, operand: usize) -> Value<'c, 'a> {
        address(e, self.writer.operands[operand].1.memref)
    }

    /// The address of the first element of a factor of a product.
    fn address(&self, e: Emit<'c, 'a>, place: &Place<'c, 'a>, window: &Window) -> Value<'c, 'a> {
        let zero = e.index(0);
        let at = self.result_index(e, [place.outer, zero, zero]);
        let terms = window.outer.iter().map(|(it, distance)| e.scale(at[*it], *distance));
        let element = terms.fold(e.index(window.start), |sum, term| e.add(sum, term));
        e.add(self.operand_address(e, window.operand), e.scale(element, 2))
    }

    /// Adds the product of 16 rows and 8 columns of 16 halves each, on tensor cores, to sums of a warp.
    fn multiply_and_add(
        &self,
        e: Emit<'c, 'a>,
        half: DType,
        (left, right): (&[Value<'c, 'a>], &[Value<'c, 'a>]),
        sums: &mut [Value<'c, 'a>],
    ) {
        let name = if half == DType::F16 { "irc_gpu_mma_f16" } else { "irc_gpu_mma_bf16" };
        let call = self.call(e, name, &[left, right, sums].concat(), &[e.f32(); 4]);
        for (sum, result) in sums.iter_mut().zip(call.results()) {
            *sum = result.into();
        }
    }

    /// The indices of the result, from the numbers of the product, the row and the column.
    fn result_index(&self, e: Emit<'c, 'a>, numbers: [Value<'c, 'a>; 3]) -> Vec<Value<'c, 'a>> {
        let dims = &self.writer.nest.compute.dims;
        let mut found = vec![None; dims.len()];
        for (group, number) in self.product.groups.iter().zip(numbers) {
            let own: Vec<Dim> = group.iter().map(|it| dims[*it].clone()).collect();
            for (it, index) in group.iter().zip(indices(e, &own, number)) {
                found[*it] = Some(index);
            }
        }
        found.into_iter().map(|index| index.unwrap_or_else(|| e.index(0))).collect()
    }
}

/// The address of memory.
fn address<'c: 'a, 'a>(e: Emit<'c, 'a>, memref: Value<'c, 'a>) -> Value<'c, 'a> {
    e.op(memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, &[memref], MlirType::index(e.context))
}

/// The barrier of the lanes of a warp (`device.mlir`).
const WARP_BARRIER: i64 = 16;

/// `arith.cmpi` predicate.
const ULT: i64 = 6;
