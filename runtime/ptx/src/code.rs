//! The form of kernels that runs: instructions on rows of registers, with names resolved.

use crate::convert::Conversion;
use crate::row::{Binary, Compare, Ternary, Unary};
use crate::types::{Space, Type};

/// The destination of an operation whose result is not used.
pub const NONE: u32 = u32::MAX;

/// The number of the barrier that stands for that of a cluster: no operand of 32 bits has it.
pub const CLUSTER_BARRIER: u64 = 1 << 32;

/// A source operand: a register of the frame, or a constant of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Src(u32);

const CONSTANT: u32 = 1 << 31;

impl Src {
    /// A register.
    pub fn register(index: u32) -> Self {
        Self(index)
    }

    /// An entry of [`Program::constants`].
    pub fn constant(index: u32) -> Self {
        Self(index | CONSTANT)
    }

    /// The constant's index, or the register's as an error.
    #[inline(always)]
    pub fn index(self) -> Result<usize, usize> {
        if self.0 & CONSTANT != 0 {
            Ok((self.0 & !CONSTANT) as usize)
        } else {
            Err(self.0 as usize)
        }
    }
}

/// A predicate register and whether it is negated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Predicate {
    /// The register.
    pub index: u32,
    /// Whether it is negated.
    pub negated: bool,
}

/// A constant operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Constant {
    /// A value.
    Value(u64),
    /// The address of a variable in global memory, plus an offset.
    Global(u32, i64),
    /// The address of the dynamic shared memory, plus an offset.
    DynamicShared(i64),
}

/// How a comparison is combined with a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// The classes of instructions that statistics count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Integer arithmetic and logic.
    Integer,
    /// Arithmetic on binary32 and binary64.
    Float,
    /// Arithmetic on halves.
    Half,
    /// Conversions.
    Convert,
    /// Moves, selections, comparisons and predicates.
    Move,
    /// Branches, calls and exits.
    Control,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomic operations.
    Atomic,
    /// Barriers and fences.
    Barrier,
    /// Exchanges within a warp.
    Warp,
    /// Products of matrices.
    Matrix,
    /// Asynchronous copies.
    Copy,
}

/// The classes with their names.
pub const CLASSES: [(Class, &str); 13] = [
    (Class::Integer, "integer"),
    (Class::Float, "float"),
    (Class::Half, "half"),
    (Class::Convert, "convert"),
    (Class::Move, "move"),
    (Class::Control, "control"),
    (Class::Load, "load"),
    (Class::Store, "store"),
    (Class::Atomic, "atomic"),
    (Class::Barrier, "barrier"),
    (Class::Warp, "warp"),
    (Class::Matrix, "matrix"),
    (Class::Copy, "copy"),
];

/// The memory order of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Whether it may be concurrent with other such accesses: volatile, relaxed or stronger, atomic.
    pub strong: bool,
    /// Whether what precedes a write is visible to readers of it.
    pub release: bool,
    /// Whether what preceded the write that is read is visible.
    pub acquire: bool,
    /// Whether it orders threads of one CTA only.
    pub cta: bool,
}

impl Order {
    /// The order of ordinary accesses.
    pub const WEAK: Order = Order { strong: false, release: false, acquire: false, cta: false };
}

/// An address: a base plus bytes.
#[derive(Debug, Clone, Copy)]
pub struct Address {
    /// The space that the base is an address of.
    pub space: Space,
    /// The base.
    pub base: Src,
    /// Bytes after it.
    pub offset: i64,
    /// Whether the base is relative to the local memory of the frame.
    pub frame: bool,
}

/// A load or store.
#[derive(Debug)]
pub struct Access {
    /// Where.
    pub address: Address,
    /// The type of an element.
    pub ty: Type,
    /// Registers of the elements of a load; [`NONE`] for those not used.
    pub registers: Vec<u32>,
    /// Bits of those registers, to which signed elements are extended.
    pub bits: u32,
    /// Elements of a store.
    pub values: Vec<Src>,
    /// The memory order.
    pub order: Order,
}

/// What an atomic operation computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AtomicOp {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    Exchange,
    CompareExchange,
    And,
    Or,
    Xor,
}

/// An atomic operation.
#[derive(Debug)]
pub struct Atomic {
    /// Where.
    pub address: Address,
    /// What it computes.
    pub op: AtomicOp,
    /// The type.
    pub ty: Type,
    /// The register of the old value.
    pub d: u32,
    /// Operands of each element; one element unless it is a vector.
    pub values: Vec<Src>,
    /// The new value of a compare and exchange.
    pub swap: Option<Src>,
    /// The memory order.
    pub order: Order,
}

/// A special register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    WarpCount,
    SmId,
    SmCount,
    GridId,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    Clock64,
    GlobalTimer,
    GlobalTimerHigh,
    DynamicShared,
    TotalShared,
    Zero,
    One,
}

/// What `bar.red` computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Reduction {
    Count,
    And,
    Or,
}

/// A barrier of the CTA.
#[derive(Debug)]
pub struct Barrier {
    /// Whether threads wait.
    pub wait: bool,
    /// Whether all threads of a warp run it together.
    pub aligned: bool,
    /// The number of the barrier.
    pub id: Src,
    /// The number of threads; all of the CTA without it.
    pub count: Option<Src>,
    /// A reduction of a predicate, with the register of the result: a predicate, unless it is a count.
    pub reduction: Option<(Reduction, Predicate, u32)>,
}

/// How `shfl.sync` selects the thread that a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// What `vote.sync` computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// An operation of the threads of a warp together.
#[derive(Debug)]
pub enum WarpOp {
    /// `bar.warp.sync`.
    Barrier,
    /// `shfl.sync`: the result, whether the source is in range, the value, the selector, the limits.
    Shuffle(Shuffle, u32, u32, Src, Src, Src),
    /// `vote.sync`: the result, a predicate or, for a ballot, a register.
    Vote(Vote, u32, Predicate),
    /// `match.any.sync`: the result, the value, its bits.
    MatchAny(u32, Src, u32),
    /// `match.all.sync`: the result, the predicate, the value, its bits.
    MatchAll(u32, u32, Src, u32),
    /// `redux.sync`: what it computes, the type, the result, the value.
    Reduce(AtomicOp, Type, u32, Src),
    /// `elect.sync`: the elected thread, and whether it is this one.
    Elect(u32, u32),
    /// `mma.sync`.
    Matrix(Matrix),
    /// `ldmatrix`: registers, where, whether transposed.
    LoadMatrix(Vec<u32>, Address, bool),
    /// `stmatrix`.
    StoreMatrix(Vec<Src>, Address, bool),
    /// `movmatrix`.
    MoveMatrix(u32, Src),
    /// `wgmma.mma_async`.
    GroupMatrix(GroupMatrix),
    /// `wgmma.fence`.
    GroupFence,
    /// `wgmma.commit_group`.
    GroupCommit,
    /// `wgmma.wait_group`.
    GroupWait(u32),
}

/// `mma.sync`: D = A * B + C.
#[derive(Debug)]
pub struct Matrix {
    /// Rows, columns, and the extent of the sum.
    pub shape: (usize, usize, usize),
    /// Types of D, A, B and C.
    pub types: [Type; 4],
    /// Whether integer results saturate.
    pub saturate: bool,
    /// Registers of D.
    pub d: Vec<u32>,
    /// Registers of A.
    pub a: Vec<Src>,
    /// Registers of B.
    pub b: Vec<Src>,
    /// Registers of C.
    pub c: Vec<Src>,
}

/// The left operand of `wgmma`.
#[derive(Debug)]
pub enum Left {
    /// A descriptor of shared memory.
    Descriptor(Src),
    /// Registers.
    Registers(Vec<Src>),
}

/// `wgmma.mma_async`: D = A * B + D, or A * B.
#[derive(Debug)]
pub struct GroupMatrix {
    /// Columns.
    pub n: usize,
    /// The extent of the sum.
    pub k: usize,
    /// The type of D.
    pub to: Type,
    /// The type of the elements of A.
    pub a_type: Type,
    /// The type of the elements of B.
    pub b_type: Type,
    /// Registers of D.
    pub d: Vec<u32>,
    /// A.
    pub a: Left,
    /// The descriptor of B.
    pub b: Src,
    /// Whether D is added: a predicate, or known.
    pub scale_d: Result<bool, Predicate>,
    /// Whether A and B are negated.
    pub negated: (bool, bool),
    /// Whether A and B are transposed: contiguous along M and N.
    pub transposed: (bool, bool),
    /// Whether integer results saturate.
    pub saturate: bool,
}

/// An operation on an mbarrier object.
#[derive(Debug)]
pub enum MbarrierOp {
    /// `mbarrier.init`: the number of arrivals.
    Init(Src),
    /// `mbarrier.inval`.
    Invalidate,
    /// `mbarrier.arrive` and `arrive_drop`.
    Arrive {
        /// The register of the state.
        state: u32,
        /// The number of arrivals.
        count: Option<Src>,
        /// Bytes to expect before arriving.
        expect: Option<Src>,
        /// Whether later phases expect one arrival less.
        drop: bool,
        /// Whether it releases what precedes.
        release: bool,
    },
    /// `mbarrier.expect_tx`.
    Expect(Src),
    /// `mbarrier.complete_tx`.
    Complete(Src),
    /// `mbarrier.test_wait` and `try_wait`.
    Wait {
        /// The predicate: whether the phase is complete.
        d: u32,
        /// The state, or the parity, of the phase.
        phase: Src,
        /// Whether it is the parity.
        parity: bool,
        /// Whether the thread may wait.
        suspend: bool,
        /// Whether it acquires what precedes the arrivals.
        acquire: bool,
    },
    /// `mbarrier.pending_count`: the result, the state.
    Pending(u32, Src),
    /// `cp.async.mbarrier.arrive`: arrives once the copies of the thread are complete; whether the arrival is
    /// among those expected.
    AfterCopies(bool),
}

/// A copy of many bytes by one thread.
#[derive(Debug)]
pub enum Bulk {
    /// Global to shared memory: destination, source, bytes, mbarrier.
    Load(Address, Address, Src, Address),
    /// Shared to global memory: destination, source, bytes.
    Store(Address, Address, Src),
    /// As `Store`, adding: destination, source, bytes, operation, type.
    Reduce(Address, Address, Src, AtomicOp, Type),
    /// A tile to shared memory: destination, map, coordinates, mbarrier.
    LoadTile(Address, Address, Vec<Src>, Address),
    /// A tile from shared memory: map, coordinates, source.
    StoreTile(Address, Vec<Src>, Address),
    /// As `StoreTile`, with an operation.
    ReduceTile(Address, Vec<Src>, Address, AtomicOp),
}

/// A field of a tensor map; those of dimensions have the number of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MapField {
    Address,
    Rank,
    Extent(usize),
    Stride(usize),
    Tile(usize),
    ElementStride(usize),
    Type,
    Interleave,
    Swizzle,
    Fill,
}

/// What an instruction does.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Op {
    Nop,
    Unary(Unary, u32, Src),
    Binary(Binary, u32, Src, Src),
    Ternary(Ternary, u32, Src, Src, Src),
    /// `bfi`, of 32 or 64 bits.
    Insert(u64, u32, Box<[Src; 4]>),
    /// `lop3`.
    Table(u32, Box<[Src; 4]>),
    Convert(Box<Conversion>, u32, Src),
    /// A conversion of two values, the upper one first.
    Pack(Box<Conversion>, u32, Src, Src),
    Move(u32, Src),
    /// Parts of a value, of some bits each, lowest first.
    Split(Box<[u32]>, u32, Src),
    /// A value of parts.
    Join(u32, u32, Box<[Src]>),
    /// The result and its complement; the combination with a predicate.
    Compare(Compare, u32, u32, Src, Src, Option<(Logic, Predicate)>),
    Select(u32, Src, Src, Predicate),
    /// `p = a op b`.
    PredicateLogic(Logic, u32, Predicate, Predicate),
    PredicateMove(u32, Predicate),
    PredicateConstant(u32, bool),
    /// An addition with carries: bits, result, operands, whether it subtracts, reads and writes the carry.
    Carry(u32, u32, Src, Src, [bool; 3]),
    Special(u32, Special),
    ActiveMask(u32),
    /// The address of a variable of the frame.
    FrameAddress(u32, u64),
    /// Whether an address is in a space.
    IsSpace(u32, Src, Space),
    /// A generic address of a space's address, or the opposite.
    ToGeneric(u32, Src, Space),
    FromGeneric(u32, Src, Space),
    Branch(u32),
    BranchIndexed(Src, Box<[u32]>),
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
    Sleep,
    Load(Box<Access>),
    Store(Box<Access>),
    Atomic(Box<Atomic>),
    Fence,
    Barrier(Box<Barrier>),
    Warp(Src, Box<WarpOp>),
    /// Shared destination, source, bytes, bytes of the source.
    CopyAsync(Box<(Address, Address, u32, Option<Src>)>),
    CopyCommit,
    /// The number of groups that may remain; all copies are waited for if there is none.
    CopyWait(Option<u32>),
    Mbarrier(Box<(Address, MbarrierOp)>),
    Bulk(Box<Bulk>),
    BulkCommit,
    BulkWait(u32),
    /// A tensor map, a field of it, and its value.
    ReplaceMap(Box<(Address, MapField, Src)>),
    /// Copies a tensor map: to global memory, from shared memory.
    CopyMap(Box<(Address, Address)>),
}

/// A call.
#[derive(Debug)]
pub struct Call {
    /// What is called.
    pub target: Target,
    /// Bytes of arguments: frame offset here, frame offset there, size.
    pub arguments: Vec<(u64, u64, u64)>,
    /// Bytes of results: frame offset here, frame offset there, size.
    pub results: Vec<(u64, u64, u64)>,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A function of the program.
    Function(u32),
    /// A function by its address.
    Indirect(Src),
    /// `vprintf`.
    Printf,
    /// `__assertfail`.
    Assert,
}

/// An instruction.
#[derive(Debug)]
pub struct Inst {
    /// The predicate under which it runs.
    pub guard: Option<Predicate>,
    /// Its class.
    pub class: Class,
    /// Whether it reads or writes registers of a `wgmma`.
    pub group_registers: bool,
    /// What it does.
    pub op: Op,
}

/// A function that runs.
#[derive(Debug, Default)]
pub struct Code {
    /// Its name.
    pub name: String,
    /// The first instruction.
    pub entry: u32,
    /// Registers of a frame.
    pub registers: u32,
    /// Predicates of a frame.
    pub predicates: u32,
    /// Bytes of local memory of a frame, arguments included.
    pub local: u64,
    /// Frame offsets and sizes of the parameters.
    pub params: Vec<(u64, u64)>,
    /// Frame offsets and sizes of the results.
    pub results: Vec<(u64, u64)>,
}

/// A parameter of a kernel.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its first byte in the block of parameters.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// A variable of the module in global or constant memory.
#[derive(Debug)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Alignment in bytes.
    pub align: u64,
    /// Its contents, without addresses.
    pub bytes: Vec<u8>,
    /// Addresses in its contents: where, of what.
    pub addresses: Vec<(u64, Constant)>,
    /// Whether it can be written.
    pub writable: bool,
}

/// A kernel that is ready to run.
#[derive(Debug)]
pub struct Program {
    pub(crate) source: irc_diag::Source,
    pub(crate) code: Vec<Inst>,
    /// The first byte of each instruction in the text.
    pub(crate) starts: Vec<u32>,
    /// The lines of the source program: first instruction, file, line, column.
    pub(crate) lines: Vec<(u32, u32, u32, u32)>,
    pub(crate) files: Vec<(u32, String)>,
    pub(crate) constants: Vec<Constant>,
    /// The kernel, and the functions that it may call.
    pub(crate) functions: Vec<Code>,
    pub(crate) params: Vec<Parameter>,
    pub(crate) param_bytes: u64,
    pub(crate) globals: Vec<Global>,
    /// Bytes of static shared memory; dynamic memory follows.
    pub(crate) shared: u64,
    /// Static variables in shared memory: name, offset, size.
    pub(crate) shared_names: Vec<(String, u64, u64)>,
    pub(crate) max_threads: Option<u64>,
    pub(crate) required_block: Option<[u32; 3]>,
    pub(crate) uses_group: bool,
}
