//! Loads, stores, atomic operations, fences, and asynchronous copies.

use super::{Compiler, Result};
use crate::ast::Operand;
use crate::code::{
    Access, Address, Atomic, AtomicOp, Bulk, Class, MapField, MbarrierOp, NONE, Op, Order, Src,
};
use crate::opcode::Opcode;
use crate::types::{Space, Type};

/// Modifiers of accesses that say how memory is cached, which has no effect here.
fn is_hint(modifier: &str) -> bool {
    matches!(
        modifier,
        "ca" | "cg" | "cs" | "cv" | "lu" | "wb" | "wt" | "nc" | "unified" | "aligned" | "noftz"
    ) || modifier.starts_with("L1::")
        || modifier.starts_with("L2::")
}

fn is_order(modifier: &str) -> bool {
    matches!(
        modifier,
        "weak"
            | "volatile"
            | "relaxed"
            | "acquire"
            | "release"
            | "acq_rel"
            | "mmio"
            | "cta"
            | "cluster"
            | "gpu"
            | "sys"
    )
}

fn order(op: &Opcode<'_>) -> Order {
    let any = op.any(&["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]);
    Order {
        strong: any,
        release: op.any(&["release", "acq_rel"]),
        acquire: op.any(&["acquire", "acq_rel"]),
        cta: op.has("cta"),
    }
}

fn space(op: &Opcode<'_>) -> Space {
    op.modifiers.iter().find_map(|modifier| Space::parse(modifier)).unwrap_or(Space::Generic)
}

fn atomic_op(op: &Opcode<'_>) -> Option<AtomicOp> {
    op.modifiers.iter().find_map(|modifier| {
        Some(match *modifier {
            "add" => AtomicOp::Add,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "inc" => AtomicOp::Inc,
            "dec" => AtomicOp::Dec,
            "exch" => AtomicOp::Exchange,
            "cas" => AtomicOp::CompareExchange,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            "xor" => AtomicOp::Xor,
            _ => return None,
        })
    })
}

/// Whether an atomic operation exists for a type.
fn is_atomic(op: AtomicOp, ty: Type) -> bool {
    use AtomicOp::*;
    match op {
        Add => {
            !matches!(ty, Type::Pred | Type::B8 | Type::U8 | Type::S8 | Type::B128)
                && ty.bits() >= 16
        }
        Min | Max => {
            matches!(
                ty,
                Type::U32
                    | Type::S32
                    | Type::U64
                    | Type::S64
                    | Type::F16
                    | Type::F16x2
                    | Type::Bf16
                    | Type::Bf16x2
            )
        }
        Inc | Dec => ty == Type::U32,
        And | Or | Xor => matches!(ty, Type::B32 | Type::B64),
        Exchange => matches!(ty, Type::B32 | Type::B64),
        CompareExchange => matches!(ty, Type::B16 | Type::B32 | Type::B64),
    }
}

impl<'s> Compiler<'_, 's, '_> {
    pub(super) fn memory(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        match op.name {
            "ld" | "ldu" => self.load(op, operands),
            "st" => self.store(op, operands),
            "atom" | "red" if !op.has("async") => self.atomic(op, operands),
            "membar" => {
                self.class = Class::Barrier;
                self.emit(Op::Fence);
                Ok(())
            }
            "fence" => self.fence(op),
            "prefetch" | "prefetchu" | "applypriority" | "discard" | "griddepcontrol"
            | "setmaxnreg" | "pmevent" => {
                self.class = Class::Move;
                self.emit(Op::Nop);
                Ok(())
            }
            "createpolicy" => {
                let (d, _) = self.target(operands.first().unwrap_or(&Operand::Sink))?;
                let zero = self.value(0);
                self.emit(Op::Move(d, zero));
                Ok(())
            }
            // The only CTA of the cluster.
            "mapa" => {
                self.operands::<3>(operands)?;
                let Some(ty) = op.ty() else { return self.unsupported() };
                let (d, _) = self.target(&operands[0])?;
                let a = self.source(&operands[1], ty)?;
                self.emit(Op::Move(d, a));
                Ok(())
            }
            "isspacep" => {
                self.operands::<2>(operands)?;
                let d = self.predicate_target(&operands[0])?;
                let a = self.source(&operands[1], Type::B64)?;
                self.emit(Op::IsSpace(d, a, space(op)));
                Ok(())
            }
            "mbarrier" => self.mbarrier(op, operands),
            "cp" => self.copy(op, operands),
            "tensormap" => self.tensor_map(op, operands),
            _ => self.warp(op, operands),
        }
    }

    /// Whether all modifiers are types, spaces, orders, hints or some others.
    fn has_only(&self, op: &Opcode<'_>, others: &[&str]) -> bool {
        op.modifiers.iter().all(|modifier| {
            Type::parse(modifier).is_some()
                || Space::parse(modifier).is_some()
                || is_order(modifier)
                || is_hint(modifier)
                || others.contains(modifier)
        })
    }

    fn load(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Load;
        let Some(ty) = op.ty().filter(|ty| ty.bits() >= 8 && *ty != Type::B128) else {
            return self.unsupported();
        };
        if !self.has_only(op, &["v2", "v4", "v8"]) {
            return self.unsupported();
        }
        let [target, address, ..] = operands else {
            return self.invalid("2 operands are expected");
        };
        let count = self.vector_length(op);
        let mut registers = vec![];
        let mut bits = 0;
        for part in self.parts(target, count)? {
            let (register, own) = self.target(part)?;
            if register != NONE {
                bits = own.bits();
                if bits < ty.bits() {
                    return self.invalid(format!(
                        "a register of {bits} bits cannot hold {} bits",
                        ty.bits()
                    ));
                }
            }
            registers.push(register);
        }
        let address = self.address(address, space(op))?;
        let order = order(op);
        self.emit(Op::Load(Box::new(Access {
            address,
            ty,
            registers,
            bits,
            values: vec![],
            order,
        })));
        Ok(())
    }

    fn store(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Store;
        let Some(ty) = op.ty().filter(|ty| ty.bits() >= 8 && *ty != Type::B128) else {
            return self.unsupported();
        };
        if !self.has_only(op, &["v2", "v4", "v8"]) || op.has("async") {
            return self.unsupported();
        }
        let [address, source, ..] = operands else {
            return self.invalid("2 operands are expected");
        };
        let count = self.vector_length(op);
        let mut values = vec![];
        for part in self.parts(source, count)? {
            // The low bits of wider registers are stored.
            values.push(self.source(part, if ty.bits() == 8 { Type::B8 } else { ty })?);
        }
        let address = self.address(address, space(op))?;
        let order = order(op);
        self.emit(Op::Store(Box::new(Access {
            address,
            ty,
            registers: vec![],
            bits: 0,
            values,
            order,
        })));
        Ok(())
    }

    fn vector_length(&self, op: &Opcode<'_>) -> usize {
        let lengths = [("v2", 2), ("v4", 4), ("v8", 8)];
        lengths.iter().find(|(name, _)| op.has(name)).map_or(1, |(_, length)| *length)
    }

    fn parts<'o>(&self, operand: &'o Operand<'s>, count: usize) -> Result<&'o [Operand<'s>]> {
        match operand {
            Operand::Vector(parts) if parts.len() == count => Ok(parts),
            _ if count == 1 => Ok(std::slice::from_ref(operand)),
            _ => self.invalid(format!("expected a vector of {count} operands")),
        }
    }

    fn atomic(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Atomic;
        let Some(ty) = op.ty() else { return self.unsupported() };
        let names = [
            "add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor", "v2", "v4", "v8",
        ];
        let Some(kind) =
            atomic_op(op).filter(|kind| self.has_only(op, &names) && is_atomic(*kind, ty))
        else {
            return self.unsupported();
        };
        let mut rest = operands;
        let mut d = NONE;
        if op.name == "atom" {
            let [target, following @ ..] = rest else {
                return self.invalid("operands are missing");
            };
            if matches!(target, Operand::Vector(_)) {
                return self.unsupported();
            }
            d = self.target(target)?.0;
            rest = following;
        }
        let [address, value, rest @ ..] = rest else { return self.invalid("operands are missing") };
        let address = self.address(address, space(op))?;
        let count = self.vector_length(op);
        let mut values = vec![];
        for part in self.parts(value, count)? {
            values.push(self.source(part, ty)?);
        }
        let swap = match (kind, rest) {
            (AtomicOp::CompareExchange, [swap, ..]) => Some(self.source(swap, ty)?),
            (AtomicOp::CompareExchange, []) => return self.invalid("operands are missing"),
            _ => None,
        };
        let order = Order { strong: true, ..order(op) };
        self.emit(Op::Atomic(Box::new(Atomic { address, op: kind, ty, d, values, swap, order })));
        Ok(())
    }

    fn fence(&mut self, op: &Opcode<'s>) -> Result<()> {
        self.class = Class::Barrier;
        let known = op.modifiers.iter().all(|modifier| {
            is_order(modifier)
                || modifier.starts_with("proxy")
                || Space::parse(modifier).is_some()
                || matches!(
                    *modifier,
                    "sc" | "async" | "async::generic" | "alias" | "tensormap" | "mbarrier_init"
                )
                || matches!(
                    *modifier,
                    "sync_restrict::shared::cta" | "sync_restrict::shared::cluster"
                )
                || modifier.starts_with("tensormap::")
                || modifier.starts_with("async")
        });
        match () {
            () if !known => return self.unsupported(),
            // Proxies are not modelled: their accesses are ordered as those of the thread.
            () if op.modifiers.iter().any(|modifier| modifier.starts_with("proxy")) => {
                self.emit(Op::Nop)
            }
            () => self.emit(Op::Fence),
        }
        Ok(())
    }

    fn mbarrier(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Barrier;
        let Some(kind) = op.modifiers.first() else { return self.unsupported() };
        if op.any(&["shared::cluster", "cluster"]) && op.any(&["noComplete"]) {
            return self.unsupported();
        }
        let at = usize::from(
            matches!(*kind, "arrive" | "arrive_drop" | "test_wait" | "try_wait")
                && !matches!(operands.first(), Some(Operand::Address { .. })),
        );
        if *kind == "pending_count" {
            self.operands::<2>(operands)?;
            let (d, _) = self.target(&operands[0])?;
            let state = self.source(&operands[1], Type::B64)?;
            let base = self.value(0);
            let address = Address { space: Space::Shared, base, offset: 0, frame: false };
            self.emit(Op::Mbarrier(Box::new((address, MbarrierOp::Pending(d, state)))));
            return Ok(());
        }
        let Some(address) = operands.get(at) else { return self.invalid("operands are missing") };
        let address = self.address(address, space(op))?;
        let argument = operands.get(at + 1);
        let release = !op.has("relaxed");
        let operation = match *kind {
            "init" | "expect_tx" | "complete_tx" => {
                let Some(argument) = argument else { return self.invalid("operands are missing") };
                let argument = self.source(argument, Type::U32)?;
                match *kind {
                    "init" => MbarrierOp::Init(argument),
                    "expect_tx" => MbarrierOp::Expect(argument),
                    _ => MbarrierOp::Complete(argument),
                }
            }
            "inval" => MbarrierOp::Invalidate,
            "arrive" | "arrive_drop" => {
                let state = match at {
                    0 => NONE,
                    _ => self.target(&operands[0])?.0,
                };
                let argument = match argument {
                    Some(argument) => Some(self.source(argument, Type::U32)?),
                    None => None,
                };
                let expects = op.has("expect_tx");
                if expects && argument.is_none() {
                    return self.invalid("operands are missing");
                }
                let (count, expect) = if expects { (None, argument) } else { (argument, None) };
                MbarrierOp::Arrive { state, count, expect, drop: *kind == "arrive_drop", release }
            }
            "test_wait" | "try_wait" => {
                let Some(phase) = argument else { return self.invalid("operands are missing") };
                let d = self.predicate_target(&operands[0])?;
                let parity = op.has("parity");
                let phase = self.source(phase, if parity { Type::U32 } else { Type::B64 })?;
                let suspend = *kind == "try_wait";
                MbarrierOp::Wait { d, phase, parity, suspend, acquire: release }
            }
            _ => return self.unsupported(),
        };
        self.emit(Op::Mbarrier(Box::new((address, operation))));
        Ok(())
    }

    fn copy(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Copy;
        if !op.modifiers.starts_with(&["async"]) && !op.modifiers.starts_with(&["reduce"]) {
            return self.unsupported();
        }
        let modifiers = &op.modifiers[..];
        match modifiers {
            ["async", "commit_group"] => self.emit(Op::CopyCommit),
            ["async", "wait_all"] => self.emit(Op::CopyWait(None)),
            ["async", "wait_group"] => {
                let groups = self.groups(operands)?;
                self.emit(Op::CopyWait(Some(groups)));
            }
            ["async", "mbarrier", "arrive", ..] => {
                let Some(address) = operands.first() else {
                    return self.invalid("operands are missing");
                };
                let address = self.address(address, space(op))?;
                self.emit(Op::Mbarrier(Box::new((
                    address,
                    MbarrierOp::AfterCopies(op.has("noinc")),
                ))));
            }
            ["async", "bulk", "commit_group"] => self.emit(Op::BulkCommit),
            ["async", "bulk", "wait_group", ..] => {
                let groups = self.groups(operands)?;
                self.emit(Op::BulkWait(groups));
            }
            ["async", "bulk", "prefetch", ..] => self.emit(Op::Nop),
            ["async", "bulk", "tensor", ..] => return self.tile(op, operands, None),
            ["reduce", "async", "bulk", "tensor", ..] => {
                let Some(kind) = atomic_op(op) else { return self.unsupported() };
                return self.tile(op, operands, Some(kind));
            }
            ["async", "bulk", ..] | ["reduce", "async", "bulk", ..] => {
                return self.bulk(op, operands);
            }
            ["async", "ca" | "cg", ..] => return self.copy_async(op, operands),
            _ => return self.unsupported(),
        }
        Ok(())
    }

    fn groups(&self, operands: &[Operand<'s>]) -> Result<u32> {
        match operands {
            [Operand::Integer(groups)] => Ok((*groups).min(u64::from(u32::MAX)) as u32),
            _ => self.invalid("expected a number of groups"),
        }
    }

    fn copy_async(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let [to, from, Operand::Integer(size @ (4 | 8 | 16)), rest @ ..] = operands else {
            return self.invalid("expected a destination, a source and 4, 8 or 16 bytes");
        };
        if op.has("cg") && *size != 16 {
            return self.invalid("`.cg` copies 16 bytes");
        }
        let to = self.address(to, Space::Shared)?;
        let from = self.address(from, Space::Global)?;
        let hint = op.has("L2::cache_hint");
        let source_size = match rest.first() {
            Some(Operand::Name(name, 0)) if self.predicate_index(*name).is_ok() => {
                return self.unsupported();
            }
            Some(operand) if rest.len() > usize::from(hint) => {
                Some(self.source(operand, Type::U32)?)
            }
            _ => None,
        };
        self.emit(Op::CopyAsync(Box::new((to, from, *size as u32, source_size))));
        Ok(())
    }

    fn bulk(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let spaces: Vec<Space> =
            op.modifiers.iter().filter_map(|modifier| Space::parse(modifier)).collect();
        let [to, from, size, rest @ ..] = operands else {
            return self.invalid("operands are missing");
        };
        let size = self.source(size, Type::U32)?;
        let bulk = match (&spaces[..], op.modifiers[0]) {
            ([Space::Shared, Space::Global], "async") => {
                let Some(barrier) = rest.first() else {
                    return self.invalid("operands are missing");
                };
                let barrier = self.address(barrier, Space::Shared)?;
                Bulk::Load(
                    self.address(to, Space::Shared)?,
                    self.address(from, Space::Global)?,
                    size,
                    barrier,
                )
            }
            ([Space::Global, Space::Shared], "async") => Bulk::Store(
                self.address(to, Space::Global)?,
                self.address(from, Space::Shared)?,
                size,
            ),
            ([Space::Global, Space::Shared], "reduce") => {
                let (Some(kind), Some(ty)) = (atomic_op(op), op.ty()) else {
                    return self.unsupported();
                };
                let (to, from) =
                    (self.address(to, Space::Global)?, self.address(from, Space::Shared)?);
                Bulk::Reduce(to, from, size, kind, ty)
            }
            _ => return self.unsupported(),
        };
        self.emit(Op::Bulk(Box::new(bulk)));
        Ok(())
    }

    fn tile(
        &mut self,
        op: &Opcode<'s>,
        operands: &[Operand<'s>],
        kind: Option<AtomicOp>,
    ) -> Result<()> {
        if op
            .modifiers
            .iter()
            .any(|modifier| modifier.starts_with("im2col") || modifier.starts_with("tile::"))
        {
            return self.unsupported();
        }
        let dimensions = op.modifiers.iter().find_map(|modifier| match *modifier {
            "1d" => Some(1),
            "2d" => Some(2),
            "3d" => Some(3),
            "4d" => Some(4),
            "5d" => Some(5),
            _ => None,
        });
        let Some(dimensions) = dimensions else { return self.unsupported() };
        if op.has("prefetch") {
            self.emit(Op::Nop);
            return Ok(());
        }
        let load = op.has("mbarrier::complete_tx::bytes");
        let (to, map, rest) = match (load, operands) {
            (true, [to, map, rest @ ..]) => (Some(to), map, rest),
            (false, [map, rest @ ..]) => (None, map, rest),
            _ => return self.invalid("operands are missing"),
        };
        let Operand::Address { base, offset, coordinates } = map else {
            return self.invalid("expected a tensor map and coordinates in brackets");
        };
        if coordinates.len() != dimensions {
            return self.invalid(format!(
                "{} coordinates where {dimensions} are expected",
                coordinates.len()
            ));
        }
        let map = self.address_of(*base, *offset, Space::Generic)?;
        let mut at: Vec<Src> = vec![];
        for coordinate in coordinates {
            at.push(self.source(coordinate, Type::S32)?);
        }
        let Some(other) = rest.first() else { return self.invalid("operands are missing") };
        let other = self.address(other, Space::Shared)?;
        let bulk = match (to, kind) {
            (Some(to), _) => Bulk::LoadTile(self.address(to, Space::Shared)?, map, at, other),
            (None, Some(kind)) => Bulk::ReduceTile(map, at, other, kind),
            (None, None) => Bulk::StoreTile(map, at, other),
        };
        self.emit(Op::Bulk(Box::new(bulk)));
        Ok(())
    }

    fn tensor_map(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Copy;
        let name = match op.modifiers[..] {
            ["replace", "tile", name, ..] => name,
            ["cp_fenceproxy", "global", "shared::cta", ..] => {
                let [to, from, Operand::Integer(128)] = operands else {
                    return self.invalid("expected two addresses and 128 bytes");
                };
                let to = self.address(to, Space::Global)?;
                let from = self.address(from, Space::Shared)?;
                self.emit(Op::CopyMap(Box::new((to, from))));
                return Ok(());
            }
            _ => return self.unsupported(),
        };
        let (address, dimension, value) = match operands {
            [address, value] => (address, None, value),
            [address, Operand::Integer(dimension @ 0..=4), value] => {
                (address, Some(*dimension as usize), value)
            }
            _ => {
                return self
                    .invalid("expected a tensor map, a dimension if it has several, and a value");
            }
        };
        let field = match (name, dimension) {
            ("global_address", None) => MapField::Address,
            ("rank", None) => MapField::Rank,
            ("global_dim", Some(dimension)) => MapField::Extent(dimension),
            ("global_stride", Some(dimension @ 0..=3)) => MapField::Stride(dimension),
            ("box_dim", Some(dimension)) => MapField::Tile(dimension),
            ("element_stride", Some(dimension)) => MapField::ElementStride(dimension),
            ("elemtype", None) => MapField::Type,
            ("interleave_layout", None) => MapField::Interleave,
            ("swizzle_mode", None) => MapField::Swizzle,
            ("fill_mode", None) => MapField::Fill,
            _ => return self.unsupported(),
        };
        let Some(ty) = op.ty() else { return self.unsupported() };
        let address = self.address(address, space(op))?;
        let value = self.source(value, ty)?;
        self.emit(Op::ReplaceMap(Box::new((address, field, value))));
        Ok(())
    }
}
