//! Sums of products of unsigned and signed bytes, four to each 32-bit lane.
use crate::kernel::emit::{Buffer, Emit, Lanes};
use irc_mlir::ops::{arith, llvm, vector};
use irc_mlir::{Type, Value, ValueLike, attr};
use irc_packing::Extension;

/// The instructions for such sums. All of them are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// `vpdpbusd`, which multiplies and adds the four bytes of each lane (AVX-VNNI, AVX512-VNNI).
    Vnni,
    /// `vpmaddwd`, which multiplies and adds two 16-bit integers of each lane, for even and odd bytes (AVX2). Unlike
    /// `vpmaddubsw` it does not saturate.
    Pairs,
    /// `vpmaddubsw`, which adds pairs of products in 16 bits, and `vpmaddwd`, which adds pairs of these sums (AVX2): for signed
    /// bytes from -64 to 64, with which the former does not saturate.
    Small,
    /// Multiplications of 32-bit integers, for any processor.
    Plain,
}

impl Dots {
    /// Those that a target may have; operands decide about the others.
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
            Self::Small => "small",
            Self::Plain => "plain",
        }
    }

    /// Whether operands are extended to 16-bit integers, the even bytes of each lane and the odd ones one after the other.
    pub fn are_of_halves(self, lanes: Lanes) -> bool {
        self == Self::Pairs && 32 * lanes.count() >= 256
    }

    /// `sum` plus the products of the bytes in each lane, which are unsigned in one vector and signed in the other, or of
    /// halves of both.
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
            Self::Pairs if self.are_of_halves(lanes) => {
                let halves = [unsigned, signed].map(|half| cast(e, half, 16, 2 * lanes.count()));
                e.binary(arith::ADDI, sum, pairs(e, halves, lanes))
            }
            Self::Small => add_halves(e, small_products(e, [unsigned, signed], lanes), sum, lanes),
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

/// The products of the bytes in each lane, which are unsigned in one vector and signed in the other, added in pairs in 16
/// bits, which the sums must fit in.
pub fn small_products<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    factors: [Value<'c, 'a>; 2],
    lanes: Lanes,
) -> Value<'c, 'a> {
    let name = match 32 * lanes.count() {
        256 => "x86.avx2.pmadd.ub.sw",
        _ => "x86.avx512.pmaddubs.w.512",
    };
    let bytes = factors.map(|quads| cast(e, quads, 8, 4 * lanes.count()));
    intrinsic(e, name, &bytes, Lanes::Vector(2 * lanes.count()).of(e.int(16)))
}

/// `sum` plus the two 16-bit integers of each lane.
pub fn add_halves<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    halves: Value<'c, 'a>,
    sum: Value<'c, 'a>,
    lanes: Lanes,
) -> Value<'c, 'a> {
    let ones = e.integer(1, 16, Lanes::Vector(2 * lanes.count()));
    e.binary(arith::ADDI, sum, pairs(e, [halves, ones], lanes))
}

/// The sum of the products of two 16-bit integers in each lane.
fn pairs<'c: 'a, 'a>(e: Emit<'c, 'a>, halves: [Value<'c, 'a>; 2], lanes: Lanes) -> Value<'c, 'a> {
    let name = match lanes.count() {
        8 => "x86.avx2.pmadd.wd",
        _ => "x86.avx512.pmaddw.d.512",
    };
    intrinsic(e, name, &halves, lanes.of(e.int(32)))
}

/// The even and the odd bytes of each lane as 16-bit integers, two to a lane.
pub fn halves<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    quads: Value<'c, 'a>,
    lanes: Lanes,
    extension: Extension,
) -> [Value<'c, 'a>; 2] {
    let wide = Lanes::Vector(2 * lanes.count());
    let halves = cast(e, quads, 16, wide.count());
    let by = e.integer(8, 16, wide);
    let [even, odd] = match extension {
        Extension::Sign => {
            let even = e.binary(arith::SHRSI, e.binary(arith::SHLI, halves, by), by);
            [even, e.binary(arith::SHRSI, halves, by)]
        }
        Extension::Zero => {
            let even = e.binary(arith::ANDI, halves, e.integer(255, 16, wide));
            [even, e.binary(arith::SHRUI, halves, by)]
        }
    };
    [even, odd].map(|half| cast(e, half, 32, lanes.count()))
}

/// 256 times the even and the odd bytes of each lane, which are signed, as 16-bit integers, two to a lane.
pub fn high_halves<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    quads: Value<'c, 'a>,
    lanes: Lanes,
) -> [Value<'c, 'a>; 2] {
    let wide = Lanes::Vector(2 * lanes.count());
    let halves = cast(e, quads, 16, wide.count());
    let even = e.binary(arith::SHLI, halves, e.integer(8, 16, wide));
    let odd = e.binary(arith::ANDI, halves, e.integer(-256, 16, wide));
    [even, odd].map(|half| cast(e, half, 32, lanes.count()))
}

/// Integers of four bytes, of up to four bytes each.
pub fn joined<'c: 'a, 'a>(e: Emit<'c, 'a>, bytes: &[Value<'c, 'a>], lanes: Lanes) -> Value<'c, 'a> {
    let wide = |(byte, number): (&Value<'c, 'a>, i64)| {
        let wide = e.op(arith::EXTUI, &[*byte], lanes.of(e.int(32)));
        let by = e.integer(8 * number, 32, lanes);
        if number == 0 { wide } else { e.binary(arith::SHLI, wide, by) }
    };
    let joined = bytes.iter().zip(0..).map(wide).reduce(|x, y| e.binary(arith::ORI, x, y));
    joined.unwrap_or_else(|| e.integer(0, 32, lanes))
}

/// Four neighbouring bytes of a line for each of so many columns, which are `step` bytes apart, from the byte four times `group` on;
/// the line is given as words, of so many bytes.
pub fn neighbours<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    (words, loaded): (Value<'c, 'a>, Lanes),
    (step, group): (i64, i64),
    columns: Lanes,
) -> Value<'c, 'a> {
    let count = columns.count();
    // Four columns read neighbouring words, from which their bytes are then taken.
    let most = loaded.count() / 4 - 1;
    let word = |lane: i64| (lane / 4 * step + group + lane % 4).min(most);
    let words_of = (0..count).map(word).collect::<Vec<_>>();
    let words = e.shuffle_to(words, words, &words_of, columns.of(e.int(32)));
    let bytes = cast(e, words, 8, 4 * count);
    let byte = |lane: i64| lane / 16 * 16 + lane % 16 / 4 * step + lane % 4;
    let bytes_of = (0..4 * count).map(byte).collect::<Vec<_>>();
    cast(e, e.shuffle(bytes, bytes, &bytes_of), 32, count)
}

/// How the halves of elements are stored: the even bytes of so many elements, then their odd ones.
#[derive(Debug, Clone, Copy)]
pub struct Halves {
    /// How bytes are extended.
    pub extension: Extension,
    /// The number of elements: those of a vector, or 1.
    pub group: i64,
}

/// Stores elements of four bytes from one on, or their halves in a buffer of halves.
pub fn store<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    quads: Value<'c, 'a>,
    (buffer, at): (Buffer<'c, 'a>, Value<'c, 'a>),
    lanes: Lanes,
    stored: Option<Halves>,
) {
    let Some(Halves { extension, group }) = stored else {
        return e.store(quads, buffer, at, lanes, None);
    };
    let [even, odd] = halves(e, quads, lanes, extension);
    let (count, at) = (lanes.count(), e.scale(at, 2));
    // Of each group, the even half, then the odd one.
    let lane = |at: i64| at / (2 * group) * group + at % group + at / group % 2 * count;
    for first in [0, count] {
        let picks: Vec<i64> = (first..first + count).map(lane).collect();
        e.store(e.shuffle(even, odd, &picks), buffer, e.offset(at, first), lanes, None);
    }
}

/// The bits of a vector as integers of so many bits.
pub fn cast<'c: 'a, 'a>(
    e: Emit<'c, 'a>,
    value: Value<'c, 'a>,
    bits: u32,
    count: i64,
) -> Value<'c, 'a> {
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
