//! Owned tensor values.

use crate::{DType, Element, Strings, TensorError, TensorType, memory};
use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use std::sync::Arc;

/// Alignment of a tensor's bytes: one cache line, and the widest vector register.
pub const ALIGNMENT: usize = 64;

/// Appends bytes at the next multiple of [`ALIGNMENT`]; returns their offset.
pub fn append_aligned(bytes: &mut Vec<u8>, more: &[u8]) -> usize {
    let start = bytes.len().next_multiple_of(ALIGNMENT);
    bytes.resize(start, 0);
    bytes.extend_from_slice(more);
    start
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// A dense, row-major tensor that owns its bytes.
#[derive(Debug, Clone)]
pub struct Tensor {
    ty: TensorType,
    size: usize,
    lines: Vec<Line>,
    /// For elements that are strings: the table of their handles, if it is known.
    strings: Option<Arc<Strings>>,
}

/// Runs `$body` with `$elem` naming the Rust type of the element type `$dtype`; bool is a `u8`,
/// and the handle of a string an `i64`.
macro_rules! with_element {
    ($dtype:expr, $elem:ident => $body:expr) => {
        match $dtype {
            DType::F64 => {
                type $elem = f64;
                $body
            }
            DType::F32 => {
                type $elem = f32;
                $body
            }
            DType::F16 => {
                type $elem = f16;
                $body
            }
            DType::BF16 => {
                type $elem = bf16;
                $body
            }
            DType::I64 | DType::String => {
                type $elem = i64;
                $body
            }
            DType::I32 => {
                type $elem = i32;
                $body
            }
            DType::I16 => {
                type $elem = i16;
                $body
            }
            DType::I8 => {
                type $elem = i8;
                $body
            }
            DType::U64 => {
                type $elem = u64;
                $body
            }
            DType::U32 => {
                type $elem = u32;
                $body
            }
            DType::U16 => {
                type $elem = u16;
                $body
            }
            DType::U8 | DType::Bool => {
                type $elem = u8;
                $body
            }
            DType::F8E4M3Fn => {
                type $elem = crate::small::F8E4M3Fn;
                $body
            }
            DType::F8E4M3Fnuz => {
                type $elem = crate::small::F8E4M3Fnuz;
                $body
            }
            DType::F8E5M2 => {
                type $elem = crate::small::F8E5M2;
                $body
            }
            DType::F8E5M2Fnuz => {
                type $elem = crate::small::F8E5M2Fnuz;
                $body
            }
            DType::F8E8M0 => {
                type $elem = crate::small::F8E8M0;
                $body
            }
            DType::F4E2M1 => {
                type $elem = crate::small::F4E2M1;
                $body
            }
            DType::I4 => {
                type $elem = crate::small::I4;
                $body
            }
            DType::U4 => {
                type $elem = crate::small::U4;
                $body
            }
            DType::I2 => {
                type $elem = crate::small::I2;
                $body
            }
            DType::U2 => {
                type $elem = crate::small::U2;
                $body
            }
        }
    };
}

impl Tensor {
    /// A tensor of zeros.
    ///
    /// # Errors
    /// If the type has no size (see [`TensorType::byte_size`]) or memory runs out.
    pub fn zeros(ty: TensorType) -> Result<Self, TensorError> {
        let size = ty.byte_size()?;
        let mut lines = Vec::new();
        let count = size.div_ceil(ALIGNMENT);
        if !memory::is_available(size) || lines.try_reserve_exact(count).is_err() {
            return Err(TensorError::OutOfMemory { ty, bytes: size });
        }
        lines.resize(count, Line::zeroed());
        Ok(Self { ty, size, lines, strings: None })
    }

    /// A tensor holding a copy of `bytes`: elements in row-major order, native byte order.
    ///
    /// # Errors
    /// As [`Tensor::zeros`]; [`TensorError::WrongLength`]; [`TensorError::InvalidBool`].
    pub fn from_bytes(ty: TensorType, bytes: &[u8]) -> Result<Self, TensorError> {
        let expected = ty.byte_size()?;
        if bytes.len() != expected {
            return Err(TensorError::WrongLength {
                ty,
                unit: "bytes",
                expected,
                found: bytes.len(),
            });
        }
        if ty.dtype == DType::Bool
            && let Some(index) = bytes.iter().position(|&byte| byte > 1)
        {
            return Err(TensorError::InvalidBool { ty, index, byte: bytes[index] });
        }
        let mut tensor = Self::zeros(ty)?;
        tensor.bytes_mut().copy_from_slice(bytes);
        Ok(tensor)
    }

    /// A tensor of Rust values, with the corresponding element type.
    ///
    /// # Errors
    /// As [`Tensor::zeros`]; [`TensorError::WrongLength`].
    pub fn from_values<T: Element>(
        shape: impl Into<Vec<i64>>,
        values: &[T],
    ) -> Result<Self, TensorError> {
        let ty = TensorType::new(T::DTYPE, shape);
        check_count(&ty, values.len())?;
        Self::from_bytes(ty, bytemuck::cast_slice(values))
    }

    /// A tensor of type `ty` from `f64` values, each converted by [`Element::from_f64`]
    /// (for bool: not equal to zero).
    ///
    /// # Errors
    /// As [`Tensor::zeros`]; [`TensorError::WrongLength`].
    pub fn from_f64(ty: TensorType, values: &[f64]) -> Result<Self, TensorError> {
        check_count(&ty, values.len())?;
        let mut tensor = Self::zeros(ty)?;
        if tensor.ty.dtype == DType::Bool {
            for (byte, &value) in tensor.bytes_mut().iter_mut().zip(values) {
                *byte = u8::from(value != 0.0);
            }
            return Ok(tensor);
        }
        with_element!(tensor.ty.dtype, E => {
            for (element, &value) in tensor.raw_mut::<E>().iter_mut().zip(values) {
                *element = <E as Element>::from_f64(value);
            }
        });
        Ok(tensor)
    }

    /// A tensor of type `ty` from `f32` values; conversions as in [`Tensor::from_f64`].
    ///
    /// # Errors
    /// As [`Tensor::from_f64`].
    pub fn from_f32(ty: TensorType, values: &[f32]) -> Result<Self, TensorError> {
        let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
        Self::from_f64(ty, &wide)
    }

    /// The type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The shape.
    pub fn shape(&self) -> &[i64] {
        &self.ty.shape
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.size / self.ty.dtype.size()
    }

    /// The bytes, aligned to [`ALIGNMENT`].
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.lines)[..self.size]
    }

    /// The mutable bytes. A bool element must stay 0 or 1.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.size]
    }

    /// The elements, if `T` is the element type.
    pub fn values<T: Element>(&self) -> Option<&[T]> {
        (T::DTYPE == self.ty.dtype).then(|| self.raw())
    }

    /// The mutable elements, if `T` is the element type.
    pub fn values_mut<T: Element>(&mut self) -> Option<&mut [T]> {
        (T::DTYPE == self.ty.dtype).then(|| self.raw_mut())
    }

    /// Every element as `f64` (see [`Element::to_f64`]), in row-major order.
    pub fn to_f64(&self) -> Vec<f64> {
        with_element!(self.ty.dtype, E => {
            self.raw::<E>().iter().map(|&element| element.to_f64()).collect()
        })
    }

    /// Every element as the nearest `f32`, in row-major order.
    pub fn to_f32(&self) -> Vec<f32> {
        with_element!(self.ty.dtype, E => {
            self.raw::<E>().iter().map(|&element| element.to_f64() as f32).collect()
        })
    }

    /// Every element of an integer or bool tensor, or every handle of a string tensor, exact, in row-major
    /// order; `None` for floats.
    pub fn to_i128(&self) -> Option<Vec<i128>> {
        macro_rules! widen {
            ($ty:ty) => {
                self.raw::<$ty>().iter().map(|&element| i128::from(element)).collect()
            };
        }
        Some(match self.ty.dtype {
            DType::I64 | DType::String => widen!(i64),
            DType::I32 => widen!(i32),
            DType::I16 => widen!(i16),
            DType::I8 => widen!(i8),
            DType::U64 => widen!(u64),
            DType::U32 => widen!(u32),
            DType::U16 => widen!(u16),
            DType::U8 | DType::Bool => widen!(u8),
            DType::I4 => widen!(crate::small::I4),
            DType::U4 => widen!(crate::small::U4),
            DType::I2 => widen!(crate::small::I2),
            DType::U2 => widen!(crate::small::U2),
            _ => return None,
        })
    }

    /// One element as `f64`, by linear index.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    pub fn get_f64(&self, index: usize) -> f64 {
        with_element!(self.ty.dtype, E => self.raw::<E>()[index].to_f64())
    }

    /// Sets one element by linear index; conversions as in [`Tensor::from_f64`].
    ///
    /// # Panics
    /// If `index` is out of bounds.
    pub fn set_f64(&mut self, index: usize, value: f64) {
        let value = if self.ty.dtype == DType::Bool { f64::from(value != 0.0) } else { value };
        with_element!(self.ty.dtype, E => self.raw_mut::<E>()[index] = <E as Element>::from_f64(value));
    }

    /// The same bits as another element type of the same width, as for `uint16` data of an `.npz`
    /// that represent `bf16`.
    ///
    /// # Errors
    /// [`TensorError::WidthMismatch`]; [`TensorError::InvalidBool`].
    pub fn reinterpret(self, dtype: DType) -> Result<Self, TensorError> {
        if dtype.size() != self.ty.dtype.size() {
            return Err(TensorError::WidthMismatch { from: self.ty.dtype, to: dtype });
        }
        let ty = TensorType::new(dtype, self.ty.shape.clone());
        if dtype == DType::Bool {
            return Self::from_bytes(ty, self.bytes());
        }
        Ok(Self { ty, strings: None, ..self })
    }

    /// The table of the handles of a tensor of strings, if it is known.
    pub fn strings(&self) -> Option<&Arc<Strings>> {
        self.strings.as_ref()
    }

    pub(crate) fn with_table(self, strings: Arc<Strings>) -> Self {
        Self { strings: Some(strings), ..self }
    }

    pub(crate) fn without_strings(self) -> Self {
        Self { strings: None, ..self }
    }

    /// The handles of a tensor of strings.
    pub(crate) fn handles(&self) -> &[i64] {
        debug_assert_eq!(self.dtype(), DType::String);
        self.raw()
    }

    pub(crate) fn handles_mut(&mut self) -> &mut [i64] {
        debug_assert_eq!(self.dtype(), DType::String);
        self.raw_mut()
    }

    fn raw<T: Pod>(&self) -> &[T] {
        bytemuck::cast_slice(self.bytes())
    }

    fn raw_mut<T: Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }
}

/// Equal type and bits: NaN equals itself, and `-0.0` differs from `0.0`. Strings are equal whatever their
/// handles.
impl PartialEq for Tensor {
    fn eq(&self, other: &Self) -> bool {
        if self.ty != other.ty {
            return false;
        }
        match self.strings.is_some() || other.strings.is_some() {
            true => self.to_strings() == other.to_strings(),
            false => self.bytes() == other.bytes(),
        }
    }
}

impl Eq for Tensor {}

/// A float after conversion to a float type and back.
pub(crate) fn rounded(dtype: DType, value: f64) -> f64 {
    with_element!(dtype, E => <E as Element>::from_f64(value).to_f64())
}

fn check_count(ty: &TensorType, found: usize) -> Result<(), TensorError> {
    let expected = ty.elements()?;
    if expected == found {
        return Ok(());
    }
    Err(TensorError::WrongLength { ty: ty.clone(), unit: "elements", expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_aligned_and_typed() {
        let tensor = Tensor::from_values([2, 2], &[1.0f32, 2.0, 3.0, 4.0]).expect("a tensor");
        assert_eq!(tensor.bytes().as_ptr() as usize % ALIGNMENT, 0);
        assert_eq!(tensor.values::<f32>(), Some(&[1.0, 2.0, 3.0, 4.0][..]));
        assert_eq!(tensor.values::<i32>(), None);
        assert_eq!(tensor.get_f64(3), 4.0);
    }

    #[test]
    fn f32_slices_convert_both_ways() {
        // A scale has no zero.
        for dtype in DType::ALL.into_iter().filter(|ty| *ty != DType::F8E8M0) {
            let tensor = Tensor::from_f32(TensorType::new(dtype, [2]), &[0.0, 1.0]);
            assert_eq!(tensor.expect("a tensor").to_f32(), [0.0, 1.0], "{dtype}");
        }
    }

    #[test]
    fn wrong_lengths_are_rejected() {
        let error = Tensor::from_values([3], &[1u8]).expect_err("too short");
        assert_eq!(error.to_string(), "u8[3] holds 3 elements, found 1");
        let error = Tensor::from_bytes(TensorType::new(DType::Bool, [2]), &[1, 7]);
        assert_eq!(
            error.expect_err("not a bool").to_string(),
            "element 1 of bool[2] is the byte 7: expected 0 or 1"
        );
        assert!(Tensor::zeros(TensorType::new(DType::F32, [1 << 60])).is_err());
    }

    #[test]
    fn uint16_bits_become_bf16() {
        let bits = Tensor::from_values([2], &[0x3f80u16, 0xc000]).expect("a tensor");
        let brain = bits.reinterpret(DType::BF16).expect("same width");
        assert_eq!(brain.to_f64(), [1.0, -2.0]);
        assert!(brain.reinterpret(DType::F32).is_err());
    }
}
