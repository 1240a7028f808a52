//! Memory of the device: named buffers with addresses.

use crate::code::{Constant, Program};
use std::collections::{HashMap, TryReserveError};

/// The first address of a buffer.
const FIRST: u64 = 0x7f00_0000_0000;
/// Bytes between buffers, none of which can be accessed.
const GAP: u64 = 1 << 16;

/// A buffer of a [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer(pub(crate) usize);

#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) name: String,
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) writable: bool,
    /// The bytes that were written, a bit each, where only these may be read.
    pub(crate) written: Option<Vec<u64>>,
}

impl Contents {
    /// The offset of an address, if all of some bytes from there are in the buffer.
    #[inline(always)]
    pub(crate) fn offset_of(&self, address: u64, size: u64) -> Option<usize> {
        let offset = address.checked_sub(self.base)?;
        let end = offset.checked_add(size)?;
        (end <= self.bytes.len() as u64).then_some(offset as usize)
    }
}

/// Memory of the device: buffers that kernels access by address, each with a name for diagnostics. Variables
/// of modules become buffers when a kernel that uses them is first launched, and stay.
#[derive(Debug, Default)]
pub struct Memory {
    pub(crate) buffers: Vec<Contents>,
    /// Buffers that are variables: those of every module share a memory.
    variables: HashMap<String, usize>,
}

impl Memory {
    /// An empty memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer with contents; its address is a multiple of 1024.
    pub fn add(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> Buffer {
        self.push(name.into(), bytes, 1024, true)
    }

    /// Adds a buffer that kernels only read: a write is a diagnostic.
    pub fn add_constant(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> Buffer {
        self.push(name.into(), bytes, 1024, false)
    }

    /// Adds a buffer of some bytes that kernels write before they read it: a read of a byte that no launch has
    /// written is a diagnostic.
    ///
    /// # Errors
    /// If the bytes cannot be allocated.
    pub fn add_unwritten(
        &mut self,
        name: impl Into<String>,
        size: usize,
    ) -> Result<Buffer, TryReserveError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size)?;
        // The contents are arbitrary.
        bytes.resize(size, 0xcd);
        let buffer = self.push(name.into(), bytes, 1024, true);
        self.buffers[buffer.0].written = Some(vec![0; size.div_ceil(64)]);
        Ok(buffer)
    }

    fn push(&mut self, name: String, bytes: Vec<u8>, align: u64, writable: bool) -> Buffer {
        let end =
            self.buffers.last().map_or(FIRST, |last| last.base + last.bytes.len() as u64 + GAP);
        let base = end.next_multiple_of(align.max(1024));
        self.buffers.push(Contents { name, base, bytes, writable, written: None });
        Buffer(self.buffers.len() - 1)
    }

    /// The address of a buffer.
    pub fn address(&self, buffer: Buffer) -> u64 {
        self.buffers[buffer.0].base
    }

    /// The contents of a buffer.
    pub fn bytes(&self, buffer: Buffer) -> &[u8] {
        &self.buffers[buffer.0].bytes
    }

    /// The contents of a buffer, to change between launches.
    pub fn bytes_mut(&mut self, buffer: Buffer) -> &mut [u8] {
        &mut self.buffers[buffer.0].bytes
    }

    /// Writes bytes to a buffer, of which kernels may then read them.
    ///
    /// # Panics
    /// If they are not in the buffer.
    pub fn write(&mut self, buffer: Buffer, offset: usize, bytes: &[u8]) {
        let contents = &mut self.buffers[buffer.0];
        let range = offset..offset + bytes.len();
        contents.bytes[range.clone()].copy_from_slice(bytes);
        if let Some(written) = &mut contents.written {
            range.for_each(|at| written[at / 64] |= 1 << (at % 64));
        }
    }

    /// The buffer of an address, and the offset in it; `None` if some bytes from there are not in one buffer.
    pub fn at(&self, address: u64, bytes: usize) -> Option<(Buffer, usize)> {
        let found = self.find(address, bytes as u64).ok();
        found.map(|(buffer, offset)| (Buffer(buffer), offset))
    }

    /// The buffer of a variable of a module that was launched.
    pub fn variable(&self, name: &str) -> Option<Buffer> {
        self.variables.get(name).map(|index| Buffer(*index))
    }

    /// The addresses of the variables of a program, which are added where they are missing.
    pub(crate) fn load(
        &mut self,
        program: &Program,
        resolve: impl Fn(&Constant, &[u64]) -> u64,
    ) -> Vec<u64> {
        let mut added = vec![];
        let mut bases = vec![];
        for global in &program.globals {
            let known = self.variable(&global.name);
            let known = known.filter(|known| self.bytes(*known).len() == global.bytes.len());
            let buffer = known.unwrap_or_else(|| {
                let buffer = self.push(
                    global.name.clone(),
                    global.bytes.clone(),
                    global.align,
                    global.writable,
                );
                self.variables.insert(global.name.clone(), buffer.0);
                added.push((buffer, global));
                buffer
            });
            bases.push(self.address(buffer));
        }
        for (buffer, global) in added {
            for (at, constant) in &global.addresses {
                let value = resolve(constant, &bases).to_le_bytes();
                let end = *at as usize + 8;
                if let Some(bytes) = self.bytes_mut(buffer).get_mut(*at as usize..end) {
                    bytes.copy_from_slice(&value);
                }
            }
        }
        bases
    }

    /// The buffer of an address and the offset in it, if all of some bytes are in it; else the nearest buffer
    /// below, if there is one.
    pub(crate) fn find(&self, address: u64, size: u64) -> Result<(usize, usize), Option<usize>> {
        let index = self.buffers.partition_point(|buffer| buffer.base <= address);
        let Some(index) = index.checked_sub(1) else { return Err(None) };
        match self.buffers[index].offset_of(address, size) {
            Some(offset) => Ok((index, offset)),
            None => Err(Some(index)),
        }
    }
}
