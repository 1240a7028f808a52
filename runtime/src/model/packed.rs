//! The types of TVM's packed calls, as in C.
use irc_mlf::DataType;
use std::ffi::c_void;

/// An argument of eight bytes, whose type is given by the type code.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Value {
    pub integer: i64,
    pub pointer: *mut c_void,
}

/// Type code of a pointer to a [`Tensor`].
pub const TENSOR: i32 = 7;

/// Type code of a null value.
pub const NULL: i32 = 4;

/// Device type of the host.
pub const CPU: i32 = 1;

/// A tensor that does not own its memory: `DLTensor`.
#[repr(C)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub rank: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *mut i64,
    /// Null for dense, row-major tensors.
    pub strides: *mut i64,
    pub byte_offset: u64,
}

impl Tensor {
    /// A dense tensor on the host, without memory.
    pub fn new(dtype: DataType, shape: &[i64]) -> Self {
        Tensor {
            data: std::ptr::null_mut(),
            device_type: CPU,
            device_id: 0,
            rank: shape.len() as i32,
            code: dtype.code as u8,
            bits: dtype.bits,
            lanes: dtype.lanes,
            // Functions only read shapes.
            shape: shape.as_ptr().cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }
}

/// A function of a library: arguments, their type codes and count; pointers to its result and the type
/// code of the result; a resource handle, which is null. It returns zero on success.
pub type Function =
    unsafe extern "C" fn(*mut Value, *mut i32, i32, *mut Value, *mut i32, *mut c_void) -> i32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_c() {
        assert_eq!(size_of::<Value>(), 8);
        assert_eq!(size_of::<Tensor>(), 48);
        assert_eq!(std::mem::offset_of!(Tensor, shape), 24);
        assert_eq!(std::mem::offset_of!(Tensor, byte_offset), 40);
    }
}
