//! Sums of products of unsigned and signed bytes, four to each 32-bit lane.
use crate::kernel::emit::{Emit, Lanes};
use irc_mlir::ops::{arith, llvm, vector};
use irc_mlir::{Type, Value, ValueLike, attr};

/// The instructions for such sums. All of them are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// `vpdpbusd`, which multiplies and adds the four bytes of each lane (AVX-VNNI, AVX512-VNNI).
    Vnni,
    /// `vpmaddwd`, which multiplies and adds two 16-bit integers of each lane, for even and odd bytes (AVX2). Unlike
    /// `vpmaddubsw` it does not saturate.
    Pairs,
    /// Multiplications of 32-bit integers, for any processor.
    Plain,
}

impl Dots {
    const ALL: [(&str, Self); 3] =
        [("vnni", Self::Vnni), ("pairs", Self::Pairs), ("plain", Self::Plain)];

    /// The instructions of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, dots)| dots)
    }

    /// Their name in the options of the pass.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vnni => "vnni",
            Self::Pairs => "pairs",
            Self::Plain => "plain",
        }
    }

    /// `sum` plus the products of the bytes in each lane, which are unsigned in one vector and signed in the other.
    pub fn add<'c: 'a, 'a>(
        self,
        e: Emit<'c, 'a>,
        [unsigned, signed]: [Value<'c, 'a>; 2],
        sum: Value<'c, 'a>,
        lanes: Lanes,
    ) -> Value<'c, 'a> {
        let bits = 32 * lanes.count();
        match self {
            Self::Vnni if bits >= 128 => {
                let bytes = [unsigned, signed].map(|quads| cast(e, quads, 8, 4 * lanes.count()));
                let name = format!("x86.avx512.vpdpbusd.{bits}");
                intrinsic(e, &name, &[sum, bytes[0], bytes[1]], sum.r#type())
            }
            Self::Pairs if bits >= 256 => {
                let name = match bits {
                    256 => "x86.avx2.pmadd.wd",
                    _ => "x86.avx512.pmaddw.d.512",
                };
                let of_unsigned = halves(e, unsigned, lanes, false);
                let of_signed = halves(e, signed, lanes, true);
                of_unsigned.into_iter().zip(of_signed).fold(sum, |sum, (a, b)| {
                    let products = intrinsic(e, name, &[a, b], sum.r#type());
                    e.binary(arith::ADDI, sum, products)
                })
            }
            _ => (0..4).fold(sum, |sum, byte| {
                let constant = |value: i64| e.integer(value, 32, lanes);
                let a = e.binary(arith::SHRUI, unsigned, constant(8 * byte));
                let a = e.binary(arith::ANDI, a, constant(255));
                let b = e.binary(arith::SHLI, signed, constant(24 - 8 * byte));
                let b = e.binary(arith::SHRSI, b, constant(24));
                e.binary(arith::ADDI, sum, e.binary(arith::MULI, a, b))
            }),
        }
    }
}

/// The even and the odd bytes of each lane as 16-bit integers.
fn halves<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    quads: Value<'c, 'a>,
    lanes: Lanes,
    is_signed: bool,
) -> [Value<'c, 'a>; 2] {
    let wide = Lanes::Vector(2 * lanes.count());
    let halves = cast(e, quads, 16, wide.count());
    let by = e.integer(8, 16, wide);
    if is_signed {
        let even = e.binary(arith::SHRSI, e.binary(arith::SHLI, halves, by), by);
        return [even, e.binary(arith::SHRSI, halves, by)];
    }
    let even = e.binary(arith::ANDI, halves, e.integer(255, 16, wide));
    [even, e.binary(arith::SHRUI, halves, by)]
}

/// The bits of a vector as integers of so many bits.
fn cast<'c: 'a, 'a>(e: Emit<'c, 'a>, value: Value<'c, 'a>, bits: u32, count: i64) -> Value<'c, 'a> {
    e.op(vector::BITCAST, &[value], Type::vector(&[count as u64], e.int(bits)))
}

/// A call of an intrinsic function of LLVM.
pub fn intrinsic<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    name: &str,
    operands: &[Value<'c, 'a>],
    result: Type<'c>,
) -> Value<'c, 'a> {
    let segments = format!("array<i32: {}, 0>", operands.len());
    let spec = e.spec(llvm::CALL_INTRINSIC).operands(operands).results(&[result]);
    let spec = spec.attr("intrin", attr::string(e.context, &format!("{}{name}", llvm::PREFIX)));
    let spec = spec.attr("operandSegmentSizes", attr::parse(e.context, &segments));
    e.value(spec.attr("op_bundle_sizes", attr::parse(e.context, "array<i32>")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_instructions() {
        for (name, dots) in Dots::ALL {
            assert_eq!((Dots::named(name), dots.name()), (Some(dots), name));
        }
        assert_eq!(Dots::named("abacus"), None);
    }
}
