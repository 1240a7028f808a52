//! Tensor maps: how `cp.async.bulk.tensor` finds the elements of a tile.

use crate::code::MapField;
use crate::types::Type;

/// How a tile is permuted in shared memory, so that columns lie in different banks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swizzle {
    /// Not at all.
    #[default]
    None,
    /// Chunks of 16 bytes within 32 bytes.
    Bytes32,
    /// Chunks of 16 bytes within 64 bytes.
    Bytes64,
    /// Chunks of 16 bytes within 128 bytes.
    Bytes128,
}

impl Swizzle {
    /// The address of a byte of an unswizzled tile.
    pub(crate) fn apply(self, address: u64) -> u64 {
        match self {
            Swizzle::None => address,
            Swizzle::Bytes32 => address ^ (address >> 3 & 0x10),
            Swizzle::Bytes64 => address ^ (address >> 3 & 0x30),
            Swizzle::Bytes128 => address ^ (address >> 3 & 0x70),
        }
    }

    /// Bytes of the innermost dimension of a tile that it permits.
    pub(crate) fn span(self) -> u64 {
        match self {
            Swizzle::None => 16,
            Swizzle::Bytes32 => 32,
            Swizzle::Bytes64 => 64,
            Swizzle::Bytes128 => 128,
        }
    }
}

/// A tensor in global memory and the tiles of it that are copied.
///
/// The object in memory, of 128 bytes, is not that of the CUDA driver: [`TensorMap::to_bytes`] makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The type of the elements.
    pub ty: Type,
    /// The address of the tensor.
    pub address: u64,
    /// Elements in each dimension, innermost first.
    pub extents: Vec<u32>,
    /// Bytes from one element to the next in each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements of a tile in each dimension.
    pub tile: Vec<u32>,
    /// The permutation of a tile in shared memory.
    pub swizzle: Swizzle,
}

/// The start of the object in memory.
const MAGIC: u32 = 0x6d_70_74_69;

/// Types of elements, in the order of their numbers in the object.
const TYPES: [Type; 11] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::F32,
    Type::F64,
    Type::Bf16,
    Type::Tf32,
];

/// The types of PTX's numbers; those that flush subnormal numbers are not distinguished.
const PTX_TYPES: [Type; 13] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::F32,
    Type::F32,
    Type::F64,
    Type::Bf16,
    Type::Tf32,
    Type::Tf32,
];

impl TensorMap {
    /// The object that a kernel gets.
    ///
    /// # Errors
    /// What the hardware does not support: ranks, alignments, sizes of tiles.
    pub fn to_bytes(&self) -> Result<[u8; 128], String> {
        let rank = self.extents.len();
        if !(1..=5).contains(&rank) || self.strides.len() != rank - 1 || self.tile.len() != rank {
            return Err(format!(
                "a tensor map of {rank} extents, {} strides and {} extents of the tile",
                self.strides.len(),
                self.tile.len()
            ));
        }
        let Some(number) = TYPES.iter().position(|ty| *ty == self.ty) else {
            return Err(format!("a tensor map of elements of type {:?}", self.ty));
        };
        if !self.address.is_multiple_of(16) {
            return Err(format!(
                "the address {:#x} of a tensor map is not a multiple of 16",
                self.address
            ));
        }
        if let Some(stride) =
            self.strides.iter().find(|stride| **stride % 16 != 0 || **stride >= 1 << 40)
        {
            return Err(format!(
                "the stride {stride} of a tensor map is not a multiple of 16 below 2^40"
            ));
        }
        if let Some(extent) = self.tile.iter().find(|extent| **extent == 0 || **extent > 256) {
            return Err(format!("the extent {extent} of a tile is not from 1 to 256"));
        }
        let inner = u64::from(self.tile[0]) * u64::from(self.ty.bytes());
        if inner % 16 != 0 {
            return Err(format!("rows of {inner} bytes of a tile are not a multiple of 16"));
        }
        if self.swizzle != Swizzle::None && inner > self.swizzle.span() {
            return Err(format!(
                "rows of {inner} bytes of a tile exceed the {} of its swizzle",
                self.swizzle.span()
            ));
        }
        let mut bytes = [0; 128];
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4] = rank as u8;
        bytes[5] = number as u8;
        bytes[6] = self.swizzle as u8;
        bytes[8..16].copy_from_slice(&self.address.to_le_bytes());
        for (index, extent) in self.extents.iter().enumerate() {
            bytes[16 + 4 * index..][..4].copy_from_slice(&extent.to_le_bytes());
        }
        for (index, stride) in self.strides.iter().enumerate() {
            bytes[40 + 8 * index..][..8].copy_from_slice(&stride.to_le_bytes());
        }
        for (index, extent) in self.tile.iter().enumerate() {
            bytes[72 + 4 * index..][..4].copy_from_slice(&extent.to_le_bytes());
        }
        Ok(bytes)
    }

    /// Replaces a field of an object, which may be all zero before, by a value as PTX defines it.
    ///
    /// # Errors
    /// A value that is not supported.
    pub(crate) fn replace(bytes: &mut [u8], field: MapField, value: u64) -> Result<(), String> {
        let unsupported = |what: &str| Err(format!("a tensor map with {what} {value}"));
        let short = (value as u32).to_le_bytes();
        bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
        match field {
            MapField::Address => bytes[8..16].copy_from_slice(&value.to_le_bytes()),
            MapField::Rank if value < 5 => bytes[4] = value as u8 + 1,
            MapField::Rank => return unsupported("the rank less one"),
            MapField::Extent(dimension) => bytes[16 + 4 * dimension..][..4].copy_from_slice(&short),
            MapField::Stride(dimension) => {
                bytes[40 + 8 * dimension..][..8].copy_from_slice(&value.to_le_bytes());
            }
            MapField::Tile(dimension) => bytes[72 + 4 * dimension..][..4].copy_from_slice(&short),
            MapField::ElementStride(_) if value == 1 => {}
            MapField::ElementStride(_) => return unsupported("the element stride"),
            MapField::Type => match PTX_TYPES.get(value as usize) {
                Some(ty) => {
                    let number = TYPES.iter().position(|known| known == ty);
                    bytes[5] = number.unwrap_or_default() as u8;
                }
                None => return unsupported("the type"),
            },
            MapField::Interleave if value == 0 => {}
            MapField::Interleave => return unsupported("the interleave layout"),
            MapField::Swizzle if value < 4 => bytes[6] = value as u8,
            MapField::Swizzle => return unsupported("the swizzle"),
            MapField::Fill if value == 0 => {}
            MapField::Fill => return unsupported("the fill mode"),
        }
        Ok(())
    }

    /// Reads an object; `None` if it is not one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let rank = usize::from(*bytes.get(4)?);
        if word(0)? != MAGIC || !(1..=5).contains(&rank) {
            return None;
        }
        let swizzle = match bytes.get(6)? {
            0 => Swizzle::None,
            1 => Swizzle::Bytes32,
            2 => Swizzle::Bytes64,
            3 => Swizzle::Bytes128,
            _ => return None,
        };
        let map = Self {
            ty: *TYPES.get(usize::from(*bytes.get(5)?))?,
            address: long(8)?,
            extents: (0..rank).map(|index| word(16 + 4 * index)).collect::<Option<_>>()?,
            strides: (0..rank - 1).map(|index| long(40 + 8 * index)).collect::<Option<_>>()?,
            tile: (0..rank).map(|index| word(72 + 4 * index)).collect::<Option<_>>()?,
            swizzle,
        };
        map.to_bytes().is_ok().then_some(map)
    }
}
