//! Arithmetic, moves, predicates, conversions and control.

use super::{Compiler, Place, Result, Symbol, aligned};
use crate::arith;
use crate::ast::{Function, Operand};
use crate::code::{Call, Class, Logic, NONE, Op, Src, Target};
use crate::convert::Conversion;
use crate::opcode::Opcode;
use crate::row::{Unary, unary};
use crate::types::{Space, Type};

/// Operations with a function of one row.
const UNARY: [&str; 15] = [
    "not", "cnot", "popc", "clz", "brev", "bfind", "abs", "neg", "rcp", "sqrt", "rsqrt", "sin",
    "cos", "ex2", "lg2",
];
/// Operations with a function of two rows.
const BINARY: [&str; 13] =
    ["add", "sub", "mul", "mul24", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr"];
/// Operations with a function of three rows.
const TERNARY: [&str; 7] = ["fma", "mad", "sad", "bfe", "prmt", "shf", "dp4a"];

/// Modifiers of arithmetic that the functions of rows apply, or that permit less accurate results.
const ARITHMETIC: [&str; 31] = [
    "rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "lo", "hi", "wide", "relu", "NaN", "l",
    "r", "clamp", "wrap", "shiftamt", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16", "to", "uni", "cc",
    "finite", "infinite", "number", "normal",
];

impl<'s> Compiler<'_, 's, '_> {
    /// Checks the number of operands.
    pub(super) fn operands<const N: usize>(&self, operands: &'_ [Operand<'s>]) -> Result<()> {
        match operands.len() {
            count if count == N => Ok(()),
            count => self.invalid(format!("{count} operands where {N} are expected")),
        }
    }

    pub(super) fn basic(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let ty = op.ty();
        self.class = match ty {
            Some(Type::F32 | Type::F64) => Class::Float,
            Some(ty) if ty.is_float() => Class::Half,
            _ => Class::Integer,
        };
        match op.name {
            "add" | "sub" | "addc" | "subc" | "mad" | "madc"
                if op.has("cc") || op.name.ends_with('c') =>
            {
                self.carry(op, operands)
            }
            "and" | "or" | "xor" | "not" | "mov" if ty == Some(Type::Pred) => {
                self.predicates(op, operands)
            }
            "lop3" => {
                self.operands::<5>(operands)?;
                let (d, _) = self.target(&operands[0])?;
                let mut sources = [self.value(0); 4];
                for (source, operand) in sources.iter_mut().zip(&operands[1..]) {
                    *source = self.source(operand, Type::B32)?;
                }
                self.emit(Op::Table(d, Box::new(sources)));
                Ok(())
            }
            "bfi" => {
                self.operands::<5>(operands)?;
                let Some(ty @ (Type::B32 | Type::B64)) = ty else { return self.unsupported() };
                let (d, _) = self.target(&operands[0])?;
                let types = [ty, ty, Type::B32, Type::B32];
                let mut sources = [self.value(0); 4];
                for ((source, operand), ty) in sources.iter_mut().zip(&operands[1..]).zip(types) {
                    *source = self.source(operand, ty)?;
                }
                self.emit(Op::Insert(ty.bits().into(), d, Box::new(sources)));
                Ok(())
            }
            "tanh" => self.unary(op, operands),
            name if UNARY.contains(&name) => self.unary(op, operands),
            "copysign" => self.binary(op, operands),
            name if BINARY.contains(&name) => self.binary(op, operands),
            "slct" => self.ternary(op, operands),
            name if TERNARY.contains(&name) => self.ternary(op, operands),
            "cvt" => self.convert(op, operands),
            "cvta" => self.convert_address(op, operands),
            "mov" => self.move_value(op, operands),
            "setp" | "set" | "testp" => self.compare(op, operands),
            "selp" => {
                self.operands::<4>(operands)?;
                self.class = Class::Move;
                let Some(ty) = ty else { return self.unsupported() };
                let (d, _) = self.target(&operands[0])?;
                let (a, b) = (self.source(&operands[1], ty)?, self.source(&operands[2], ty)?);
                let predicate = self.predicate(&operands[3])?;
                self.emit(Op::Select(d, a, b, predicate));
                Ok(())
            }
            "bra" | "brx" | "call" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep" => {
                self.control(op, operands)
            }
            _ => self.memory(op, operands),
        }
    }

    fn unary(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let Some(function) = arith::unary_of(op).filter(|_| op.only(&ARITHMETIC)) else {
            return self.unsupported();
        };
        self.operands::<2>(operands)?;
        let (d, _) = self.target(&operands[0])?;
        let a = self.source(&operands[1], op.ty().unwrap_or(Type::B64))?;
        self.emit(Op::Unary(function, d, a));
        Ok(())
    }

    fn binary(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let Some(function) = arith::binary_of(op).filter(|_| op.only(&ARITHMETIC)) else {
            return self.unsupported();
        };
        self.operands::<3>(operands)?;
        let ty = op.ty().unwrap_or(Type::B64);
        let (d, _) = self.target(&operands[0])?;
        let shift = matches!(op.name, "shl" | "shr");
        let a = self.source(&operands[1], ty)?;
        let b = self.source(&operands[2], if shift { Type::B32 } else { ty })?;
        self.emit(Op::Binary(function, d, a, b));
        Ok(())
    }

    fn ternary(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let Some(function) = arith::ternary_of(op).filter(|_| op.only(&ARITHMETIC)) else {
            return self.unsupported();
        };
        self.operands::<4>(operands)?;
        let ty = op.ty().unwrap_or(Type::B64);
        let wide = if ty.is_signed() { Type::S64 } else { Type::U64 };
        let types = match op.name {
            "mad" if op.has("wide") && ty.bits() == 32 => [ty, ty, wide],
            "mad" if op.has("wide") => [ty, ty, Type::B32],
            "bfe" => [ty, Type::B32, Type::B32],
            "slct" => {
                let value = op.types()[0];
                [value, value, ty]
            }
            "dp4a" => [Type::B32; 3],
            _ => [ty; 3],
        };
        let (d, _) = self.target(&operands[0])?;
        let a = self.source(&operands[1], types[0])?;
        let b = self.source(&operands[2], types[1])?;
        let c = self.source(&operands[3], types[2])?;
        self.emit(Op::Ternary(function, d, a, b, c));
        Ok(())
    }

    fn carry(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        let Some(ty @ (Type::U32 | Type::S32 | Type::B32 | Type::U64 | Type::S64 | Type::B64)) =
            op.ty()
        else {
            return self.unsupported();
        };
        let subtract = op.name.starts_with("sub");
        let carries = [subtract, op.name.ends_with('c'), op.has("cc")];
        let (d, _) = self.target(operands.first().unwrap_or(&Operand::Sink))?;
        if op.name.starts_with("mad") {
            // The product, then the sum with the carry.
            self.operands::<4>(operands)?;
            let text = format!("mul.{}.{}", if op.has("hi") { "hi" } else { "lo" }, ty_name(ty));
            let Some(function) = arith::binary_of(&Opcode::new(&text)) else {
                return self.unsupported();
            };
            let (a, b) = (self.source(&operands[1], ty)?, self.source(&operands[2], ty)?);
            let product = self.temporary();
            self.emit(Op::Binary(function, product, a, b));
            let c = self.source(&operands[3], ty)?;
            self.emit(Op::Carry(ty.bits(), d, Src::register(product), c, carries));
            return Ok(());
        }
        self.operands::<3>(operands)?;
        let (a, b) = (self.source(&operands[1], ty)?, self.source(&operands[2], ty)?);
        self.emit(Op::Carry(ty.bits(), d, a, b, carries));
        Ok(())
    }

    fn predicates(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Move;
        let Some(first) = operands.first() else { return self.invalid("no operands") };
        let d = self.predicate_target(first)?;
        let logic = match op.name {
            "and" => Logic::And,
            "or" => Logic::Or,
            "xor" => Logic::Xor,
            _ => {
                self.operands::<2>(operands)?;
                let mut a = self.predicate(&operands[1])?;
                a.negated ^= op.name == "not";
                self.emit(Op::PredicateMove(d, a));
                return Ok(());
            }
        };
        self.operands::<3>(operands)?;
        let (a, b) = (self.predicate(&operands[1])?, self.predicate(&operands[2])?);
        self.emit(Op::PredicateLogic(logic, d, a, b));
        Ok(())
    }

    fn convert(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Convert;
        let Some(first) = operands.first() else { return self.invalid("no operands") };
        let (d, register) = self.target(first)?;
        let Some(conversion) = Conversion::new(op, register.bits()) else {
            return self.unsupported();
        };
        let from = op.ty().unwrap_or(Type::B64);
        if operands.len() == 3 {
            let pair =
                matches!(op.types()[0], Type::F16x2 | Type::Bf16x2 | Type::E4m3x2 | Type::E5m2x2);
            if !pair || from != Type::F32 {
                return self.unsupported();
            }
            let (a, b) = (self.source(&operands[1], from)?, self.source(&operands[2], from)?);
            self.emit(Op::Pack(Box::new(conversion), d, a, b));
            return Ok(());
        }
        self.operands::<2>(operands)?;
        // Conversions read the low bits of wider registers.
        let a = match &operands[1] {
            Operand::Name(name, 0) => match self.symbol(name.text) {
                Some(Symbol::Register { index, ty }) if ty.bits() >= from.bits() => {
                    Src::register(index)
                }
                _ => self.source(&operands[1], from)?,
            },
            other => self.source(other, from)?,
        };
        match conversion.fast() {
            Some(function) => self.emit(Op::Unary(function, d, a)),
            None => self.emit(Op::Convert(Box::new(conversion), d, a)),
        }
        Ok(())
    }

    fn convert_address(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.operands::<2>(operands)?;
        let Some(space) = op.modifiers.iter().find_map(|modifier| Space::parse(modifier)) else {
            return self.unsupported();
        };
        let Some(ty @ (Type::U64 | Type::S64 | Type::B64)) = op.ty() else {
            return self.unsupported();
        };
        let (d, _) = self.target(&operands[0])?;
        let a = self.source(&operands[1], ty)?;
        self.emit(match op.has("to") {
            true => Op::FromGeneric(d, a, space),
            false => Op::ToGeneric(d, a, space),
        });
        Ok(())
    }

    fn move_value(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Move;
        self.operands::<2>(operands)?;
        let Some(ty) = op.ty().filter(|_| op.only(&[])) else { return self.unsupported() };
        match (&operands[0], &operands[1]) {
            (Operand::Vector(parts), source) => {
                let bits = self.part_bits(ty, parts.len())?;
                let a = self.source(source, ty)?;
                let mut registers = vec![];
                for part in parts {
                    registers.push(self.target(part)?.0);
                }
                self.emit(Op::Split(registers.into(), bits, a));
            }
            (target, Operand::Vector(parts)) => {
                let bits = self.part_bits(ty, parts.len())?;
                let (d, _) = self.target(target)?;
                let part_type = match bits {
                    8 => Type::B8,
                    16 => Type::B16,
                    _ => Type::B32,
                };
                let mut sources = vec![];
                for part in parts {
                    sources.push(self.source(part, part_type)?);
                }
                self.emit(Op::Join(d, bits, sources.into()));
            }
            (target, source) => {
                let (d, _) = self.target(target)?;
                let a = self.source(source, ty)?;
                self.emit(Op::Move(d, a));
            }
        }
        Ok(())
    }

    fn part_bits(&self, ty: Type, parts: usize) -> Result<u32> {
        match (ty.bits(), parts) {
            (bits @ (16 | 32 | 64), 2 | 4) if bits / parts as u32 >= 8 => Ok(bits / parts as u32),
            (bits, parts) => self.invalid(format!("{parts} parts of {bits} bits")),
        }
    }

    fn compare(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Move;
        let Some(ty) = op.ty() else { return self.unsupported() };
        let Some(name) = op.modifiers.first() else { return self.unsupported() };
        if op.name == "testp" {
            self.operands::<2>(operands)?;
            let Some(function) = arith::property_of(name, ty) else { return self.unsupported() };
            let d = self.predicate_target(&operands[0])?;
            let a = self.source(&operands[1], ty)?;
            self.emit(Op::Compare(function, d, NONE, a, a, None));
            return Ok(());
        }
        let logic = op.modifiers.get(1).and_then(|modifier| match *modifier {
            "and" => Some(Logic::And),
            "or" => Some(Logic::Or),
            "xor" => Some(Logic::Xor),
            _ => None,
        });
        let known = op.modifiers[1..].iter().all(|modifier| {
            Type::parse(modifier).is_some() || matches!(*modifier, "and" | "or" | "xor" | "ftz")
        });
        let Some(function) = arith::compare_of(name, ty, op.has("ftz")).filter(|_| known) else {
            return self.unsupported();
        };
        if operands.len() != 3 + usize::from(logic.is_some()) {
            return self.invalid("the number of operands is wrong");
        }
        let (a, b) = (self.source(&operands[1], ty)?, self.source(&operands[2], ty)?);
        let combined = match logic {
            Some(logic) => Some((logic, self.predicate(&operands[3])?)),
            None => None,
        };
        if op.name == "set" {
            let to = op.types()[0];
            let (d, _) = self.target(&operands[0])?;
            let (yes, no) = match to {
                Type::F32 => (self.value(1_f32.to_bits().into()), self.value(0)),
                Type::U32 | Type::S32 => (self.value(0xffff_ffff), self.value(0)),
                _ => return self.unsupported(),
            };
            let index = self.temporary_predicate();
            self.emit(Op::Compare(function, index, NONE, a, b, combined));
            self.emit(Op::Select(d, yes, no, crate::code::Predicate { index, negated: false }));
            return Ok(());
        }
        let (p, q) = match &operands[0] {
            Operand::Pair(p, q) => (self.predicate_target(p)?, self.predicate_target(q)?),
            single => (self.predicate_target(single)?, NONE),
        };
        if matches!(ty, Type::F16x2 | Type::Bf16x2) {
            // The second predicate is the comparison of the upper halves.
            self.emit(Op::Compare(function, p, NONE, a, b, combined));
            if q != NONE {
                let shift: Unary = unary!(|a| a >> 16);
                let (high_a, high_b) = (self.temporary(), self.temporary());
                self.emit(Op::Unary(shift, high_a, a));
                self.emit(Op::Unary(shift, high_b, b));
                self.emit(Op::Compare(
                    function,
                    q,
                    NONE,
                    Src::register(high_a),
                    Src::register(high_b),
                    combined,
                ));
            }
            return Ok(());
        }
        self.emit(Op::Compare(function, p, q, a, b, combined));
        Ok(())
    }

    fn control(&mut self, op: &Opcode<'s>, operands: &[Operand<'s>]) -> Result<()> {
        self.class = Class::Control;
        match op.name {
            "bra" => {
                self.operands::<1>(operands)?;
                let Operand::Name(name, 0) = operands[0] else {
                    return self.invalid("expected a label");
                };
                let Some(Symbol::Label(label)) = self.symbol(name.text) else {
                    return Err(self.undefined(name));
                };
                self.branches.push(self.program.code.len() as u32);
                self.emit(Op::Branch(label));
            }
            "brx" if op.has("idx") => {
                self.operands::<2>(operands)?;
                let index = self.source(&operands[0], Type::U32)?;
                let Operand::Name(name, 0) = operands[1] else {
                    return self.invalid("expected branch targets");
                };
                let Some(Symbol::Table(table)) = self.symbol(name.text) else {
                    return Err(self.undefined(name));
                };
                let targets = self.tables[table as usize].clone().into();
                self.branches.push(self.program.code.len() as u32);
                self.emit(Op::BranchIndexed(index, targets));
            }
            "call" => self.call(operands)?,
            "ret" => {
                let kernel = self.program.functions.is_empty();
                self.emit(if kernel { Op::Exit } else { Op::Return });
            }
            "exit" => self.emit(Op::Exit),
            "trap" | "brkpt" => self.emit(Op::Trap),
            "nanosleep" => self.emit(Op::Sleep),
            _ => return self.unsupported(),
        }
        Ok(())
    }

    fn call(&mut self, operands: &[Operand<'s>]) -> Result<()> {
        // `call (results), function, (arguments), prototype`: results and arguments may be missing.
        let mut rest = operands;
        let mut results: &[Operand<'s>] = &[];
        if let [Operand::List(list), following @ ..] = rest {
            results = list;
            rest = following;
        }
        let [Operand::Name(name, 0), rest @ ..] = rest else {
            return self.invalid("expected a function");
        };
        let arguments: &[Operand<'s>] = match rest {
            [Operand::List(list), ..] => list,
            _ => &[],
        };
        if let Some(Symbol::Register { index, .. }) = self.symbol(name.text) {
            let target = Target::Indirect(Src::register(index));
            let arguments = self.slots(arguments)?;
            let results = self.slots(results)?;
            self.emit(Op::Call(Box::new(Call { target, arguments, results })));
            return Ok(());
        }
        let Some(index) = self.names.get(name.text).copied() else {
            return Err(self.undefined(*name));
        };
        let module = self.module;
        let function = &module.functions[index];
        let target = match (name.text, function.body.is_some()) {
            ("vprintf", false) => Target::Printf,
            ("__assertfail", false) => Target::Assert,
            _ => Target::Function(self.number(index)),
        };
        let (params, returned) = signature(function);
        let mut copies = [self.slots(arguments)?, self.slots(results)?];
        for (copies, declared) in copies.iter_mut().zip([params, returned]) {
            if copies.len() != declared.len() {
                return self.invalid(format!(
                    "{} where `{}` has {}",
                    copies.len(),
                    name.text,
                    declared.len()
                ));
            }
            for (copy, (offset, size)) in copies.iter_mut().zip(declared) {
                if copy.2 != size {
                    return self
                        .invalid(format!("{} bytes where `{}` has {size}", copy.2, name.text));
                }
                copy.1 = offset;
            }
        }
        let [arguments, results] = copies;
        self.emit(Op::Call(Box::new(Call { target, arguments, results })));
        Ok(())
    }

    /// The frame offsets of variables that are arguments or results; the sizes are those of the variables.
    fn slots(&mut self, operands: &[Operand<'s>]) -> Result<Vec<(u64, u64, u64)>> {
        let mut slots = vec![];
        for operand in operands {
            let Operand::Name(name, 0) = operand else {
                return self
                    .invalid("expected variables of the space `.param` as arguments and results");
            };
            match self.place(*name, 0)? {
                Place::Frame(offset) => {
                    let size = self.sizes.get(&offset).copied().unwrap_or(0);
                    slots.push((offset, 0, size));
                }
                Place::Constant(..) => {
                    return self.invalid(
                        "expected variables of the space `.param` as arguments and results",
                    );
                }
            }
        }
        Ok(slots)
    }
}

/// Frame offsets and sizes.
type Slots = Vec<(u64, u64)>;

/// The frame offsets and sizes of the parameters and results of a function.
fn signature(function: &Function<'_>) -> (Slots, Slots) {
    let mut at = 0;
    let mut place = |variable: &crate::ast::Variable<'_>| {
        let offset = aligned(at, u64::from(variable.align).max(8));
        at = offset + variable.size.max(1);
        (offset, variable.size)
    };
    (
        function.params.iter().map(&mut place).collect(),
        function.results.iter().map(&mut place).collect(),
    )
}

fn ty_name(ty: Type) -> &'static str {
    match ty {
        Type::S32 => "s32",
        Type::S64 => "s64",
        Type::U64 | Type::B64 => "u64",
        _ => "u32",
    }
}
