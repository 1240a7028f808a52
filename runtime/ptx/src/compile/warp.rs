//! Barriers, exchanges within a warp, and products of matrices.

use super::{Compiler, Result};
use crate::ast::Operand;
use crate::code::{
    AtomicOp, Barrier, CLUSTER_BARRIER, Class, GroupMatrix, Left, Matrix, NONE, Op, Reduction,
    Shuffle, Src, Vote, WarpOp,
};
use crate::opcode::Opcode;
use crate::types::{Space, Type};

impl<'s> Compiler<'_, 's, '_> {
    pub(super) fn warp(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        match op.name {
            "bar" | "barrier" => {
                self.class = Class::Barrier;
                self.barrier(op, operands)
            }
            "wgmma" => self.group(op, operands),
            "mma" => {
                self.class = Class::Matrix;
                self.matrix(op, operands)
            }
            "ldmatrix" | "stmatrix" | "movmatrix" => {
                self.class = Class::Matrix;
                self.move_matrix(op, operands)
            }
            _ => {
                self.class = Class::Warp;
                self.exchange(op, operands)
            }
        }
    }

    /// Adds an operation of all threads of the warp.
    fn emit_full(&mut self, op: WarpOp) {
        let mask = self.value(0xffff_ffff);
        self.emit(Op::Warp(mask, Box::new(op)));
    }

    fn barrier(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let parts: Vec<&str> = op.modifiers.iter().copied().filter(|part| *part != "cta").collect();
        if parts == ["warp", "sync"] {
            self.operands::<1>(operands)?;
            let mask = self.source(&operands[0], Type::B32)?;
            self.emit(Op::Warp(mask, Box::new(WarpOp::Barrier)));
            return Ok(());
        }
        let aligned = op.name == "bar" || op.has("aligned");
        if parts.first() == Some(&"cluster") {
            // Every cluster has one CTA: arriving needs nothing, and waiting is a barrier of the CTA.
            let id = self.value(CLUSTER_BARRIER);
            match parts.get(1) {
                Some(&"arrive") => self.emit(Op::Nop),
                Some(&"wait") => {
                    let barrier = Barrier { wait: true, aligned, id, count: None, reduction: None };
                    self.emit(Op::Barrier(Box::new(barrier)));
                }
                _ => return self.unsupported(),
            }
            return Ok(());
        }
        let count_at = |index: usize| operands.get(index);
        let mut barrier =
            Barrier { wait: true, aligned, id: self.value(0), count: None, reduction: None };
        match parts.first() {
            Some(&"sync") => {
                let Some(id) = operands.first() else {
                    return self.invalid("expected the number of a barrier");
                };
                barrier.id = self.source(id, Type::B32)?;
                if let Some(count) = count_at(1) {
                    barrier.count = Some(self.source(count, Type::B32)?);
                }
            }
            Some(&"arrive") => {
                self.operands::<2>(operands)?;
                barrier.wait = false;
                barrier.id = self.source(&operands[0], Type::B32)?;
                barrier.count = Some(self.source(&operands[1], Type::B32)?);
            }
            Some(&"red") => {
                let (kind, predicate) = match op
                    .modifiers
                    .iter()
                    .find(|part| matches!(**part, "popc" | "and" | "or"))
                {
                    Some(&"popc") => (Reduction::Count, false),
                    Some(&"and") => (Reduction::And, true),
                    Some(_) => (Reduction::Or, true),
                    None => return self.unsupported(),
                };
                let [target, id, rest @ .., input] = operands else {
                    return self.invalid("operands are missing");
                };
                let d =
                    if predicate { self.predicate_target(target)? } else { self.target(target)?.0 };
                barrier.id = self.source(id, Type::B32)?;
                if let [count] = rest {
                    barrier.count = Some(self.source(count, Type::B32)?);
                }
                barrier.reduction = Some((kind, self.predicate(input)?, d));
            }
            _ => return self.unsupported(),
        }
        self.emit(Op::Barrier(Box::new(barrier)));
        Ok(())
    }

    fn exchange(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let is = |parts: &[&str]| op.modifiers.starts_with(parts);
        match op.name {
            "activemask" => {
                self.operands::<1>(operands)?;
                let (d, _) = self.target(&operands[0])?;
                self.emit(Op::ActiveMask(d));
            }
            "shfl" if is(&["sync"]) => {
                self.operands::<5>(operands)?;
                let kind = match op.modifiers.get(1) {
                    Some(&"up") => Shuffle::Up,
                    Some(&"down") => Shuffle::Down,
                    Some(&"bfly") => Shuffle::Butterfly,
                    Some(&"idx") => Shuffle::Index,
                    _ => return self.unsupported(),
                };
                let (d, p) = match &operands[0] {
                    Operand::Pair(d, p) => (self.target(d)?.0, self.predicate_target(p)?),
                    single => (self.target(single)?.0, NONE),
                };
                let a = self.source(&operands[1], Type::B32)?;
                let b = self.source(&operands[2], Type::B32)?;
                let c = self.source(&operands[3], Type::B32)?;
                let mask = self.source(&operands[4], Type::B32)?;
                self.emit(Op::Warp(mask, Box::new(WarpOp::Shuffle(kind, d, p, a, b, c))));
            }
            "vote" if is(&["sync"]) => {
                self.operands::<3>(operands)?;
                let kind = match op.modifiers.get(1) {
                    Some(&"all") => Vote::All,
                    Some(&"any") => Vote::Any,
                    Some(&"uni") => Vote::Uniform,
                    Some(&"ballot") => Vote::Ballot,
                    _ => return self.unsupported(),
                };
                let d = match kind {
                    Vote::Ballot => self.target(&operands[0])?.0,
                    _ => self.predicate_target(&operands[0])?,
                };
                let predicate = self.predicate(&operands[1])?;
                let mask = self.source(&operands[2], Type::B32)?;
                self.emit(Op::Warp(mask, Box::new(WarpOp::Vote(kind, d, predicate))));
            }
            "match" => {
                self.operands::<3>(operands)?;
                let Some(ty @ (Type::B32 | Type::B64)) = op.ty() else { return self.unsupported() };
                let a = self.source(&operands[1], ty)?;
                let mask = self.source(&operands[2], Type::B32)?;
                let kind = match (&operands[0], op.has("any")) {
                    (target, true) => WarpOp::MatchAny(self.target(target)?.0, a, ty.bits()),
                    (Operand::Pair(d, p), false) => {
                        WarpOp::MatchAll(self.target(d)?.0, self.predicate_target(p)?, a, ty.bits())
                    }
                    (target, false) => WarpOp::MatchAll(self.target(target)?.0, NONE, a, ty.bits()),
                };
                self.emit(Op::Warp(mask, Box::new(kind)));
            }
            "redux" => {
                self.operands::<3>(operands)?;
                let kind = match op.modifiers.get(1) {
                    Some(&"add") => AtomicOp::Add,
                    Some(&"min") => AtomicOp::Min,
                    Some(&"max") => AtomicOp::Max,
                    Some(&"and") => AtomicOp::And,
                    Some(&"or") => AtomicOp::Or,
                    Some(&"xor") => AtomicOp::Xor,
                    _ => return self.unsupported(),
                };
                let Some(ty @ (Type::U32 | Type::S32 | Type::B32)) = op.ty() else {
                    return self.unsupported();
                };
                let (d, _) = self.target(&operands[0])?;
                let a = self.source(&operands[1], ty)?;
                let mask = self.source(&operands[2], Type::B32)?;
                self.emit(Op::Warp(mask, Box::new(WarpOp::Reduce(kind, ty, d, a))));
            }
            "elect" => {
                self.operands::<2>(operands)?;
                let (d, p) = match &operands[0] {
                    Operand::Pair(d, p) => (self.target(d)?.0, self.predicate_target(p)?),
                    _ => return self.invalid("expected a register and a predicate"),
                };
                let mask = self.source(&operands[1], Type::B32)?;
                self.emit(Op::Warp(mask, Box::new(WarpOp::Elect(d, p))));
            }
            _ => return self.unsupported(),
        }
        Ok(())
    }

    fn registers_of(&mut self, operand: &Operand<'s>) -> Result<Vec<u32>> {
        let parts = match operand {
            Operand::Vector(parts) => &parts[..],
            single => std::slice::from_ref(single),
        };
        let mut registers = vec![];
        for part in parts {
            registers.push(self.target(part)?.0);
        }
        Ok(registers)
    }

    fn sources_of(&mut self, operand: &Operand<'s>, ty: Type) -> Result<Vec<Src>> {
        let parts = match operand {
            Operand::Vector(parts) => &parts[..],
            single => std::slice::from_ref(single),
        };
        let mut sources = vec![];
        for part in parts {
            sources.push(self.source(part, ty)?);
        }
        Ok(sources)
    }

    fn matrix(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        if op.any(&["sp", "xor", "and", "block_scale", "kind::f8f6f4"])
            || op.any(&["sp::ordered_metadata"])
        {
            return self.unsupported();
        }
        let Some(shape) = op.modifiers.iter().find_map(|modifier| shape(modifier)) else {
            return self.unsupported();
        };
        let types = op.types();
        let [d, a, b, c] = types[..] else { return self.unsupported() };
        if !op.has("row") || !op.has("col") || !crate::matrix::is_supported(shape, [d, a, b, c]) {
            return self.unsupported();
        }
        self.operands::<4>(operands)?;
        let element = |ty: Type| if ty == Type::F64 { Type::B64 } else { Type::B32 };
        let matrix = Matrix {
            shape,
            types: [d, a, b, c],
            saturate: op.has("satfinite"),
            d: self.registers_of(&operands[0])?,
            a: self.sources_of(&operands[1], element(a))?,
            b: self.sources_of(&operands[2], element(b))?,
            c: self.sources_of(&operands[3], element(c))?,
        };
        let counts = [matrix.d.len(), matrix.a.len(), matrix.b.len(), matrix.c.len()];
        let expected = crate::matrix::register_counts(shape, [d, a, b, c]);
        if counts != expected {
            return self.invalid(format!("{counts:?} registers where {expected:?} are expected"));
        }
        self.emit_full(WarpOp::Matrix(matrix));
        Ok(())
    }

    fn move_matrix(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.operands::<2>(operands)?;
        if !op.has("m8n8") || !op.has("b16") {
            return self.unsupported();
        }
        let transposed = op.has("trans");
        let count = match () {
            () if op.has("x1") => 1,
            () if op.has("x2") => 2,
            () if op.has("x4") => 4,
            () => 0,
        };
        match op.name {
            "movmatrix" => {
                let (d, _) = self.target(&operands[0])?;
                let a = self.source(&operands[1], Type::B32)?;
                self.emit_full(WarpOp::MoveMatrix(d, a));
            }
            "ldmatrix" => {
                let registers = self.registers_of(&operands[0])?;
                if registers.len() != count {
                    return self.invalid("the number of registers is not that of the matrices");
                }
                let address = self.address(&operands[1], Space::Shared)?;
                self.emit_full(WarpOp::LoadMatrix(registers, address, transposed));
            }
            _ => {
                let values = self.sources_of(&operands[1], Type::B32)?;
                if values.len() != count {
                    return self.invalid("the number of registers is not that of the matrices");
                }
                let address = self.address(&operands[0], Space::Shared)?;
                self.emit_full(WarpOp::StoreMatrix(values, address, transposed));
            }
        }
        Ok(())
    }

    fn group(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Matrix;
        match op.modifiers.first() {
            Some(&"fence") => self.emit_full(WarpOp::GroupFence),
            Some(&"commit_group") => self.emit_full(WarpOp::GroupCommit),
            Some(&"wait_group") => match operands {
                [Operand::Integer(groups)] => {
                    self.emit_full(WarpOp::GroupWait((*groups).min(1 << 20) as u32))
                }
                _ => return self.invalid("expected a number of groups"),
            },
            Some(&"mma_async") => self.group_matrix(op, operands)?,
            _ => return self.unsupported(),
        }
        Ok(())
    }

    fn group_matrix(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.program.uses_group = true;
        let Some((64, n, k)) = op.modifiers.iter().find_map(|modifier| shape(modifier)) else {
            return self.unsupported();
        };
        let [to, a_type, b_type] = op.types()[..] else { return self.unsupported() };
        if op.has("sp") || !crate::group_matrix::is_supported(n, k, to, a_type, b_type) {
            return self.unsupported();
        }
        let [d, a, b, rest @ ..] = operands else { return self.invalid("operands are missing") };
        let d = self.registers_of(d)?;
        let expected = crate::group_matrix::result_registers(n, to);
        if d.len() != expected {
            return self.invalid(format!(
                "{} registers of the result where {expected} are expected",
                d.len()
            ));
        }
        let a = match a {
            Operand::Vector(_) => Left::Registers(self.sources_of(a, Type::B32)?),
            _ => Left::Descriptor(self.source(a, Type::B64)?),
        };
        if let Left::Registers(registers) = &a
            && registers.len() != 4
        {
            return self.invalid("4 registers of the left operand are expected");
        }
        let b = self.source(b, Type::B64)?;
        let mut numbers = rest.iter();
        let scale_d = match numbers.next() {
            None => Ok(true),
            Some(Operand::Integer(value)) => Ok(*value != 0),
            Some(operand) => Err(self.predicate(operand)?),
        };
        let mut values = vec![];
        for operand in numbers {
            let Operand::Integer(value) = operand else {
                return self.invalid("expected a constant");
            };
            values.push(*value as i64);
        }
        let float = to.is_float();
        let (scales, layouts) =
            if float { values.split_at(values.len().min(2)) } else { (&[][..], &values[..]) };
        let negated = |index: usize| scales.get(index).is_some_and(|scale| *scale == -1);
        let layout = |index: usize| layouts.get(index).is_some_and(|layout| *layout == 1);
        let transposed = match &a {
            Left::Registers(_) => (false, layout(0)),
            Left::Descriptor(_) => (layout(0), layout(1)),
        };
        if (transposed.0 && a_type.bits() != 16) || (transposed.1 && b_type.bits() != 16) {
            return self.invalid("only elements of 16 bits can be transposed");
        }
        let matrix = GroupMatrix {
            n,
            k,
            to,
            a_type,
            b_type,
            d,
            a,
            b,
            scale_d,
            negated: (negated(0), negated(1)),
            transposed,
            saturate: op.has("satfinite"),
        };
        self.emit_full(WarpOp::GroupMatrix(matrix));
        Ok(())
    }
}

/// `m16n8k16`.
fn shape(modifier: &str) -> Option<(usize, usize, usize)> {
    let (m, rest) = modifier.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}
