//! Ops of the `llvm` dialect as instructions with their attributes, shared by all code generators.
use super::{
    constant::{Constant, bits},
    intrinsic::called,
    layout,
};
use irc_mlir::{
    OperationLike, OperationRef,
    llvm::{self, Data, Type},
    ops, read,
};
use std::ops::Range;

/// An instruction. Names are those of the dialect, without its prefix.
pub enum Inst<'n> {
    /// A constant.
    Constant(Constant),
    /// A branch to the only successor with all operands.
    Branch,
    /// A branch to the first successor, with the `yes` operands that follow the condition, or to the
    /// second.
    CondBranch { yes: usize, no: usize },
    /// A branch by an integer.
    Switch(Switch),
    /// The end of a function.
    Return,
    /// The end of an unreachable block.
    Unreachable,
    /// A call of a function by name, or by the address that is the first operand.
    Call(Option<String>),
    /// The address of a function or global.
    AddressOf(String),
    /// A load.
    Load,
    /// A store.
    Store,
    /// An address inside an object.
    ElementPointer(ElementPointer),
    /// Stack memory for elements of a type, at an alignment.
    Alloca(Type, u64),
    /// An atomic read-modify-write of an integer.
    Atomic(Atomic),
    /// One lane of a vector.
    ExtractElement,
    /// A vector with one lane replaced.
    InsertElement,
    /// Lanes of two concatenated vectors.
    Shuffle(Vec<Option<u32>>),
    /// Consecutive lanes of a vector, from this one on.
    ExtractVector(u32),
    /// A vector with consecutive lanes replaced, from this one on.
    InsertVector(u32),
    /// A field of an aggregate.
    ExtractValue(Vec<i64>),
    /// An aggregate with one field replaced.
    InsertValue(Vec<i64>),
    /// A conversion.
    Cast(&'n str),
    /// `add`, `sub`, `mul`, `and`, `or` or `xor` of integers.
    Integers(&'n str),
    /// `shl`, `lshr` or `ashr`.
    Shift(&'n str),
    /// `sdiv`, `udiv`, `srem` or `urem`.
    Divide(&'n str),
    /// `fadd`, `fsub`, `fmul` or `fdiv`.
    Floats(&'n str),
    /// The negation of a float.
    Negate,
    /// A comparison of integers or pointers.
    CompareIntegers(IntPredicate),
    /// A comparison of floats.
    CompareFloats(FloatPredicate),
    /// One of two values.
    Select,
    /// A hint to the optimiser or the processor.
    Hint,
    /// The state of the stack.
    StackSave,
    /// The first operand, which is expected to equal the second.
    Expect,
    /// The function of the C library of that name, for doubles.
    Library(&'n str),
    /// A reduction of a vector to a scalar; `any_order` allows reassociation.
    Reduce { kind: &'n str, any_order: bool },
    /// `sadd`, `smul`, ... with an overflow flag.
    Overflowing(&'n str),
    /// `memcpy`, `memmove` or `memset`, of a constant length or of the third operand.
    CopyMemory(&'n str, Option<i64>),
    /// A masked load.
    MaskedLoad,
    /// A masked store.
    MaskedStore,
    /// A fused multiply-add.
    Fma,
    /// A float with the sign of another.
    CopySign,
    /// The absolute value of a float.
    Magnitude,
    /// `sqrt`, or a rounding to an integer.
    Rounding(&'n str),
    /// `maximum`, `minnum`, ... of floats.
    FloatExtreme(&'n str),
    /// `smax`, `smin`, `umax` or `umin`.
    IntegerExtreme(&'n str),
    /// `abs`, `ctpop`, ... of the bits of an integer.
    Bits(&'n str),
    /// `fshl` or `fshr`.
    Funnel(&'n str),
    /// `sadd`, `uadd`, `ssub` or `usub`, saturated.
    Saturating(&'n str),
    /// The integer nearest to a float, saturated.
    SaturatingCast { signed: bool },
    /// Whether floats belong to any of the classes of a mask, whose bits are in LLVM's order.
    FloatClass(i64),
}

/// Why an op is not an instruction: it is unknown, or this part of it is unsupported.
pub type Unknown = Option<String>;

impl<'n> Inst<'n> {
    /// Reads an op by its name.
    ///
    /// # Errors
    /// If the op or part of it is unknown.
    pub fn of(op: &OperationRef<'_, '_>, name: &'n str) -> Result<Self, Unknown> {
        let name = name.strip_prefix(ops::llvm::PREFIX).ok_or(None)?;
        if let Some(name) = name.strip_prefix("intr.") {
            return Self::intrinsic(op, name);
        }
        Ok(match name {
            "mlir.constant" | "mlir.zero" | "mlir.undef" | "mlir.poison" => {
                Inst::Constant(Constant::of(*op).ok_or(None)?)
            }
            "br" => Inst::Branch,
            "cond_br" => match segments(op, "operandSegmentSizes")?[..] {
                [1, yes, no] => Inst::CondBranch { yes, no },
                _ => return Err(None),
            },
            "switch" => Inst::Switch(Switch::of(op)?),
            "return" => Inst::Return,
            "unreachable" => Inst::Unreachable,
            "call" => Inst::Call(read::symbol(op, "callee")),
            "call_intrinsic" => match called(op) {
                Ok(known) => return Self::intrinsic(op, known),
                Err(name) => return Err(Some(format!("the intrinsic '{name}'"))),
            },
            "mlir.addressof" => Inst::AddressOf(read::symbol(op, "global_name").ok_or(None)?),
            "load" => Inst::Load,
            "store" => Inst::Store,
            "getelementptr" => Inst::ElementPointer(ElementPointer::of(op)?),
            "alloca" => alloca(op)?,
            "atomicrmw" => Inst::Atomic(one_of(op, "bin_op", &Atomic::ALL, "atomic change")?),
            "extractelement" => Inst::ExtractElement,
            "insertelement" => Inst::InsertElement,
            "shufflevector" => {
                let mask = llvm::numbers(op, "mask").ok_or(None)?;
                Inst::Shuffle(mask.iter().map(|lane| u32::try_from(*lane).ok()).collect())
            }
            "extractvalue" => Inst::ExtractValue(llvm::numbers(op, "position").ok_or(None)?),
            "insertvalue" => Inst::InsertValue(llvm::numbers(op, "position").ok_or(None)?),
            "freeze" | "ptrtoint" | "inttoptr" | "addrspacecast" | "bitcast" | "sext" | "zext"
            | "trunc" | "fpext" | "fptrunc" | "sitofp" | "uitofp" | "fptosi" | "fptoui" => {
                Inst::Cast(name)
            }
            "add" | "sub" | "mul" | "and" | "or" | "xor" => Inst::Integers(name),
            "shl" | "lshr" | "ashr" => Inst::Shift(name),
            "sdiv" | "udiv" | "srem" | "urem" => Inst::Divide(name),
            "fadd" | "fsub" | "fmul" | "fdiv" => Inst::Floats(name),
            "frem" => Inst::Library("fmod"),
            "fneg" => Inst::Negate,
            "icmp" => {
                Inst::CompareIntegers(one_of(op, "predicate", &IntPredicate::ALL, "predicate")?)
            }
            "fcmp" => {
                Inst::CompareFloats(one_of(op, "predicate", &FloatPredicate::ALL, "predicate")?)
            }
            "select" => Inst::Select,
            _ => return Err(None),
        })
    }

    /// Translates an intrinsic.
    fn intrinsic(op: &OperationRef<'_, '_>, name: &'n str) -> Result<Self, Unknown> {
        if let Some(kind) = name.strip_prefix("vector.reduce.") {
            return reduction(op, kind);
        }
        if let Some(kind) = name.strip_suffix(".with.overflow") {
            return Ok(Inst::Overflowing(kind));
        }
        Ok(match name {
            "prefetch"
            | "assume"
            | "lifetime.start"
            | "lifetime.end"
            | "stackrestore"
            | "experimental.noalias.scope.decl"
            | "dbg.declare"
            | "dbg.value"
            | "dbg.label" => Inst::Hint,
            "stacksave" => Inst::StackSave,
            "expect" => Inst::Expect,
            // LLVM calls the C library for these functions.
            "acos" | "asin" | "atan" | "atan2" | "cos" | "cosh" | "exp" | "exp10" | "exp2"
            | "log" | "log10" | "log2" | "pow" | "sin" | "sinh" | "tan" | "tanh" => {
                Inst::Library(name)
            }
            "memcpy" | "memcpy.inline" | "memmove" | "memset" | "memset.inline" => {
                let function = name.trim_end_matches(".inline");
                Inst::CopyMemory(function, read::integer(op, "len"))
            }
            "masked.load" | "masked.gather" => Inst::MaskedLoad,
            "masked.store" | "masked.scatter" => Inst::MaskedStore,
            "vector.extract" => Inst::ExtractVector(lane(op)?),
            "vector.insert" => Inst::InsertVector(lane(op)?),
            "fma" | "fmuladd" => Inst::Fma,
            "copysign" => Inst::CopySign,
            "fabs" => Inst::Magnitude,
            "sqrt" | "floor" | "ceil" | "trunc" | "rint" | "nearbyint" | "roundeven" | "round" => {
                Inst::Rounding(name)
            }
            "maximum" | "minimum" | "maxnum" | "minnum" | "maximumnum" | "minimumnum" => {
                Inst::FloatExtreme(name)
            }
            "smax" | "smin" | "umax" | "umin" => Inst::IntegerExtreme(name),
            "abs" | "ctpop" | "ctlz" | "cttz" | "bswap" | "bitreverse" => Inst::Bits(name),
            "fshl" | "fshr" => Inst::Funnel(name),
            "sadd.sat" | "uadd.sat" | "ssub.sat" | "usub.sat" => Inst::Saturating(&name[..4]),
            "fptosi.sat" | "fptoui.sat" => Inst::SaturatingCast { signed: name == "fptosi.sat" },
            "is.fpclass" => Inst::FloatClass(read::integer(op, "bit").ok_or(None)?),
            _ => return Err(None),
        })
    }
}

fn reduction<'n>(op: &OperationRef<'_, '_>, kind: &'n str) -> Result<Inst<'n>, Unknown> {
    let any_order = match kind {
        "fadd" | "fmul" => {
            let flags = read::attribute(op, "fastmathFlags").map(|flags| flags.to_string());
            flags.is_some_and(|flags| flags.contains("reassoc") || flags.contains("fast>"))
        }
        "add" | "mul" | "and" | "or" | "xor" | "smax" | "smin" | "umax" | "umin" | "fmax"
        | "fmin" | "fmaximum" | "fminimum" => true,
        _ => return Err(None),
    };
    Ok(Inst::Reduce { kind, any_order })
}

fn alloca<'n>(op: &OperationRef<'_, '_>) -> Result<Inst<'n>, Unknown> {
    let ty = element_type(op)?;
    let natural = layout::align(&ty).ok_or_else(|| unknown("this element type"))?;
    let wanted = read::integer(op, "alignment").and_then(|bytes| u64::try_from(bytes).ok());
    Ok(Inst::Alloca(ty, wanted.unwrap_or(0).max(natural)))
}

fn element_type(op: &OperationRef<'_, '_>) -> Result<Type, Unknown> {
    llvm::type_attribute(op, "elem_type").ok_or_else(|| unknown("this element type"))
}

/// The first lane of a part of a vector.
fn lane(op: &OperationRef<'_, '_>) -> Result<u32, Unknown> {
    let lane = read::integer(op, "pos").and_then(|lane| u32::try_from(lane).ok());
    lane.ok_or_else(|| unknown("this position"))
}

/// The value that an attribute encodes as a number.
fn one_of<T: Copy>(
    op: &OperationRef<'_, '_>,
    name: &str,
    all: &[T],
    what: &str,
) -> Result<T, Unknown> {
    let number = read::integer(op, name).and_then(|number| usize::try_from(number).ok());
    let found = number.and_then(|number| all.get(number).copied());
    found.ok_or_else(|| Some(format!("this {what}")))
}

fn segments(op: &OperationRef<'_, '_>, name: &str) -> Result<Vec<usize>, Unknown> {
    let numbers = llvm::numbers(op, name).ok_or(None)?;
    Ok(numbers.into_iter().map(|number| usize::try_from(number).unwrap_or(0)).collect())
}

fn unknown(what: &str) -> Unknown {
    Some(what.to_owned())
}

/// The successors of a switch.
pub struct Switch {
    /// The operands of the first successor, the default.
    pub default: Range<usize>,
    /// The operands of the successor of each case.
    pub cases: Vec<Range<usize>>,
    numbers: Data,
}

impl Switch {
    fn of(op: &OperationRef<'_, '_>) -> Result<Self, Unknown> {
        let sizes = segments(op, "operandSegmentSizes")?;
        let numbers = match read::attribute(op, "case_values") {
            Some(cases) => llvm::data(cases).ok_or_else(|| unknown("these cases"))?,
            None => Data::Elements(Vec::new()),
        };
        let per_case = segments(op, "case_operand_segments").unwrap_or_default();
        let mut next = 1 + sizes.get(1).copied().unwrap_or(0);
        let default = 1..next;
        let cases = (0..op.successor_count().saturating_sub(1)).map(|case| {
            let first = next;
            next += per_case.get(case).copied().unwrap_or(0);
            first..next
        });
        Ok(Self { cases: cases.collect(), default, numbers })
    }

    /// The number of a case, of `bytes` bytes.
    pub fn number(&self, case: usize, bytes: usize) -> Option<u128> {
        Some(bits(match &self.numbers {
            Data::Splat(number) => number.as_slice(),
            Data::Elements(all) => all.get(case * bytes..(case + 1) * bytes)?,
        }))
    }
}

/// The marker, among constant indices, of an index that is a value.
const DYNAMIC: i64 = i32::MIN as i64;

/// The computation of an address from another.
pub struct ElementPointer {
    /// The constant offset in bytes.
    pub offset: i64,
    /// The stride in bytes of each operand after the address.
    pub strides: Vec<u64>,
    /// Whether the address is known to stay in the object.
    pub inbounds: bool,
}

impl ElementPointer {
    /// Reads an op that computes an address.
    ///
    /// # Errors
    /// If part of the op is unknown.
    pub fn of(op: &OperationRef<'_, '_>) -> Result<Self, Unknown> {
        let indices = llvm::numbers(op, "rawConstantIndices").ok_or(None)?;
        let flags = read::attribute(op, "noWrapFlags");
        let mut pointer = Self {
            offset: 0,
            strides: Vec::new(),
            inbounds: flags.is_some_and(|flags| flags.to_string().contains("inbounds")),
        };
        pointer.walk(&element_type(op)?, &indices).ok_or_else(|| unknown("this type"))?;
        Ok(pointer)
    }

    fn walk(&mut self, ty: &Type, indices: &[i64]) -> Option<()> {
        let mut inner = ty;
        for (depth, index) in indices.iter().enumerate() {
            let stride = match inner {
                _ if depth == 0 => layout::size(inner)?,
                Type::Array(element, _) | Type::Vector(element, _) => {
                    inner = element;
                    layout::size(element)?
                }
                Type::Struct { fields, .. } => {
                    let field = usize::try_from(*index).ok()?;
                    let offset = layout::field_offset(inner, field)?;
                    self.offset = self.offset.checked_add(i64::try_from(offset).ok()?)?;
                    inner = fields.get(field)?;
                    continue;
                }
                _ => return None,
            };
            if *index == DYNAMIC {
                self.strides.push(stride);
            } else {
                let distance = index.checked_mul(i64::try_from(stride).ok()?)?;
                self.offset = self.offset.checked_add(distance)?;
            }
        }
        Some(())
    }
}

/// A relation of integers: equal, or signed or unsigned.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IntPredicate {
    Eq,
    Ne,
    Slt,
    Sle,
    Sgt,
    Sge,
    Ult,
    Ule,
    Ugt,
    Uge,
}

impl IntPredicate {
    /// By their attribute values.
    const ALL: [Self; 10] = {
        use IntPredicate::*;
        [Eq, Ne, Slt, Sle, Sgt, Sge, Ult, Ule, Ugt, Uge]
    };
}

/// A relation of floats: `O` relations are false for NaN, `U` relations true.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FloatPredicate {
    False,
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    Uno,
    True,
}

impl FloatPredicate {
    /// By their attribute values.
    const ALL: [Self; 16] = {
        use FloatPredicate::*;
        [False, Oeq, Ogt, Oge, Olt, Ole, One, Ord, Ueq, Ugt, Uge, Ult, Ule, Une, Uno, True]
    };
}

/// How an atomic op combines the integer in memory with its operand.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Atomic {
    Exchange,
    Add,
    Sub,
    And,
    Nand,
    Or,
    Xor,
    Smax,
    Smin,
    Umax,
    Umin,
}

impl Atomic {
    /// By their attribute values.
    const ALL: [Self; 11] = {
        use Atomic::*;
        [Exchange, Add, Sub, And, Nand, Or, Xor, Smax, Smin, Umax, Umin]
    };
}
