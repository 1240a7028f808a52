//! The buffers of a rank while it runs.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::AtomicU64;

use irc_tensor::{DType, Tensor, TensorType};

use crate::Error;
use crate::layout::{Layout, buffer_name, host_type};

/// A range of bytes: start and length.
pub(crate) type Run = (u64, u64);

/// The contents of every buffer of a rank.
pub struct Memory {
    pub(crate) tensors: Vec<Tensor>,
    /// Memory for values that tasks share; allocated by the first run that needs it.
    shared: Option<(Block, u64)>,
}

/// Uninitialised memory, except for its first cache line; aligned for any vector unit.
pub(crate) struct Block(Vec<Line>);

/// A cache line.
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Block {
    /// Memory of at least `bytes` bytes, the first line zero; `None` if the allocation fails.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let mut lines = Vec::new();
        let count = usize::try_from(bytes).ok()?.div_ceil(64).max(1);
        lines.try_reserve_exact(count).ok()?;
        lines.push(Line([0; 64]));
        Some(Self(lines))
    }

    /// Its address.
    pub(crate) fn address(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }
}

impl Memory {
    /// Buffers with the given contents; the others are zero.
    pub(crate) fn new(
        layout: &Layout,
        mut inputs: BTreeMap<String, Tensor>,
    ) -> Result<Self, Error> {
        let known = |name: &String| layout.buffers.iter().any(|b| buffer_name(b.id) == *name);
        if let Some(name) = inputs.keys().find(|name| !known(name)) {
            let names: Vec<_> =
                layout.interface.inputs.iter().map(|port| port.name.as_str()).collect();
            return Err(Error::UnknownInput { name: name.clone(), known: names.join(", ") });
        }
        let bind = |buffer: &crate::layout::Buffer| {
            let count = (buffer.bytes / buffer.dtype.bytes()).cast_signed();
            let name = buffer_name(buffer.id);
            let ty = TensorType::new(host_type(buffer.dtype), [count]);
            let given = inputs.remove(&name);
            bind(name, ty, given)
        };
        let tensors = layout.buffers.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { tensors, shared: None })
    }

    /// Memory for values that tasks share: `wanted` bytes, but at most the size of the buffers. `None`
    /// if `wanted` is zero or the allocation fails. Later runs reuse it.
    pub(crate) fn shared(&mut self, wanted: u64) -> Option<(&mut Block, u64)> {
        let total = self.tensors.iter().map(|tensor| tensor.bytes().len() as u64).sum();
        let bytes = wanted.min(total);
        if bytes == 0 {
            return None;
        }
        if self.shared.as_ref().is_none_or(|(_, found)| *found < bytes) {
            self.shared = Block::new(bytes).map(|block| (block, bytes));
        }
        self.shared.as_mut().map(|(block, bytes)| (block, *bytes))
    }
}

fn bind(name: String, expected: TensorType, given: Option<Tensor>) -> Result<Tensor, Error> {
    let Some(given) = given else {
        let reason = |error: irc_tensor::TensorError| error.to_string();
        return Tensor::zeros(expected)
            .map_err(|error| Error::Allocate { name, reason: reason(error) });
    };
    let found = given.ty().clone();
    let mismatch = || Error::InputType {
        name: name.clone(),
        expected: expected.clone(),
        found: found.clone(),
    };
    // `.npz` files store bfloat16 as the bits of uint16.
    let is_bits = expected.dtype == DType::BF16 && found.dtype == DType::U16;
    let given = match is_bits {
        true => given.reinterpret(DType::BF16).map_err(|_| mismatch())?,
        false => given,
    };
    if *given.ty() == expected { Ok(given) } else { Err(mismatch()) }
}

/// The addresses of the buffers of a rank, for as long as they are borrowed.
pub(crate) struct Addresses {
    bases: Vec<*mut u8>,
    sizes: Vec<u64>,
}

// Safety: these are addresses of memory that outlives the run. The plan orders the accesses
// of threads to bytes; the executor's own copies follow the plan.
unsafe impl Send for Addresses {}
// Safety: as above.
unsafe impl Sync for Addresses {}

impl Addresses {
    /// The addresses of all buffers of a rank.
    pub(crate) fn of(memory: &mut Memory) -> Self {
        let sizes = memory.tensors.iter().map(|tensor| tensor.bytes().len() as u64).collect();
        let base = |tensor: &mut Tensor| tensor.bytes_mut().as_mut_ptr();
        Self { bases: memory.tensors.iter_mut().map(base).collect(), sizes }
    }

    /// Number of bytes of a buffer.
    pub(crate) fn size(&self, slot: usize) -> Option<u64> {
        self.sizes.get(slot).copied()
    }

    /// The address of a byte of a buffer, or of its end.
    ///
    /// # Panics
    /// If the byte is beyond the end of the buffer.
    pub(crate) fn at(&self, slot: usize, byte: u64) -> *mut u8 {
        assert!(byte <= self.sizes[slot], "addresses are checked when a plan is prepared");
        self.bases[slot].wrapping_add(byte as usize)
    }

    /// Concatenates the bytes of some ranges of a buffer.
    ///
    /// # Panics
    /// If a range is beyond the end of the buffer.
    pub(crate) fn gather(&self, slot: usize, runs: &[Run]) -> Vec<u8> {
        let total: u64 = runs.iter().map(|(_, len)| len).sum();
        let mut bytes = Vec::with_capacity(total as usize);
        for &(begin, len) in runs {
            self.at(slot, begin.saturating_add(len));
            // Safety: the range is in the buffer, which outlives the run of the plan. The
            // plan guarantees that no other task writes there concurrently.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(self.at(slot, begin), len as usize)
            });
        }
        bytes
    }

    /// Writes bytes to some ranges of a buffer, in order.
    ///
    /// # Panics
    /// If a range is beyond the end of the buffer, or there are too few bytes.
    pub(crate) fn scatter(&self, slot: usize, runs: &[Run], mut bytes: &[u8]) {
        for &(begin, len) in runs {
            self.at(slot, begin.saturating_add(len));
            let (part, rest) = bytes.split_at(len as usize);
            // Safety: as in `gather`.
            unsafe { self.at(slot, begin).copy_from(part.as_ptr(), part.len()) };
            bytes = rest;
        }
    }

    /// Eight bytes of a buffer as one atomic word.
    ///
    /// # Panics
    /// If they are not aligned, or beyond the end of the buffer.
    pub(crate) fn word(&self, slot: usize, byte: u64) -> &AtomicU64 {
        assert!(byte.is_multiple_of(8), "packets are aligned");
        self.at(slot, byte.saturating_add(8));
        // Safety: the word is in the buffer and aligned, because buffers are aligned to 64 bytes; it
        // lives as long as `self`, and packets are accessed only as words.
        unsafe { AtomicU64::from_ptr(self.at(slot, byte).cast()) }
    }
}
