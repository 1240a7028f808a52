//! `wgmma`: descriptors of matrices in shared memory, and which thread has which elements.

use crate::tensor_map::Swizzle;
use crate::types::Type;

/// Whether there is an instruction of 64 rows, of some columns, extent of the sum, and types.
pub fn is_supported(n: usize, k: usize, to: Type, a: Type, b: Type) -> bool {
    use Type::*;
    let types = match (a, b) {
        (F16, F16) => matches!(to, F16 | F32) && k == 16,
        (Bf16, Bf16) => to == F32 && k == 16,
        (Tf32, Tf32) => to == F32 && k == 8,
        (E4m3 | E5m2, E4m3 | E5m2) => matches!(to, F16 | F32) && k == 32,
        (S8 | U8, S8 | U8) => to == S32 && k == 32,
        _ => false,
    };
    types && n.is_multiple_of(8) && (8..=256).contains(&n)
}

/// Registers of the result in each thread.
pub fn result_registers(n: usize, to: Type) -> usize {
    if to == Type::F16 { n / 4 } else { n / 2 }
}

/// The row within the warp's 16, and the column, of an element of the result.
pub fn result_position(lane: usize, element: usize) -> (usize, usize) {
    (lane / 4 + 8 * (element / 2 % 2), lane % 4 * 2 + element % 2 + 8 * (element / 4))
}

/// A matrix in shared memory.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
    swizzle: Swizzle,
}

impl Descriptor {
    /// Reads the 64 bits of a descriptor.
    ///
    /// # Errors
    /// What is not supported: a base offset.
    pub fn new(bits: u64) -> Result<Self, String> {
        let field = |shift: u32| (bits >> shift & 0x3fff) << 4;
        if bits >> 49 & 7 != 0 {
            return Err(format!(
                "the descriptor {bits:#018x} has a base offset, which is not supported"
            ));
        }
        let swizzle = match bits >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::Bytes128,
            2 => Swizzle::Bytes64,
            _ => Swizzle::Bytes32,
        };
        Ok(Self { start: field(0), leading: field(16), stride: field(32), swizzle })
    }

    /// The offset in shared memory of an element, by its index along M or N and along K, and its bytes;
    /// `transposed` if the matrix is contiguous along M or N.
    pub fn offset(&self, mn: u64, k: u64, bytes: u64, transposed: bool) -> u64 {
        let span = self.swizzle.span();
        let (wide, other) = (span / bytes, 16 / bytes);
        let offset = match (transposed, self.swizzle) {
            (false, Swizzle::None) => {
                mn % 8 * 16 + mn / 8 * self.stride + k / other * self.leading + k % other * bytes
            }
            (false, _) => mn % 8 * span + mn / 8 * self.stride + k * bytes,
            (true, Swizzle::None) => {
                mn % other * bytes + mn / other * self.stride + k % 8 * 16 + k / 8 * self.leading
            }
            (true, _) => {
                mn % wide * bytes + mn / wide * self.leading + k % 8 * span + k / 8 * self.stride
            }
        };
        self.swizzle.apply(self.start + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a copy of a tile puts elements is where `wgmma` finds them.
    #[test]
    fn descriptors_agree_with_tiles() {
        let swizzles = [(Swizzle::Bytes128, 1), (Swizzle::Bytes64, 2), (Swizzle::Bytes32, 3)];
        for (swizzle, code) in swizzles {
            let span = swizzle.span();
            // Groups of 8 rows follow one another; the start is at 4096.
            let bits = (4096 >> 4) | ((span * 8) >> 4) << 32 | code << 62;
            let descriptor = Descriptor::new(bits).expect("a descriptor");
            for row in 0..64 {
                for column in 0..span / 2 {
                    let expected = swizzle.apply(4096 + row * span + column * 2);
                    assert_eq!(descriptor.offset(row, column, 2, false), expected);
                    assert_eq!(descriptor.offset(column, row, 2, true), expected);
                }
            }
        }
        // Without a swizzle, matrices of 8 rows of 16 bytes, here 128 bytes apart along K and 256 along M or N.
        let descriptor = Descriptor::new(128 >> 4 << 16 | 256 >> 4 << 32).expect("a descriptor");
        assert_eq!(descriptor.offset(9, 11, 2, false), 256 + 16 + 128 + 6);
        assert_eq!(descriptor.offset(9, 11, 2, true), 256 + 2 + 128 + 48);
        assert!(Descriptor::new(1 << 49).is_err());
    }
}
