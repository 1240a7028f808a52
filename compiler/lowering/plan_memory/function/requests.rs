//! The calls of the host by a planned function: memory requests and error reports.
use super::{Writer, whole};
use crate::lowering::{
    emit_entry::host,
    plan_memory::{
        emit::{Memory, Offset, Predicate},
        homes::Convention,
    },
};
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{Type, Value};

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// Requests from the host the memory whose size is known after a step.
    pub(super) fn ask_for(&mut self, known: Option<usize>) {
        self.require_exact(known);
        let own = match (self.homes.convention, known) {
            (Convention::Main, None) => self.homes.workspace,
            _ => 0,
        };
        let slots = self.homes.slots_known.get(&known).cloned().unwrap_or_default();
        if own == 0 && slots.is_empty() {
            return;
        }
        let mut end = self.emit.index(own.next_multiple_of(64).cast_signed());
        let mut offsets = vec![];
        for slot in &slots {
            offsets.push(end);
            let sizes = self.homes.slots[*slot].bytes.values().map(|value| self.bytes(*value));
            let zero = self.emit.index(0);
            let largest = sizes.fold(zero, |a, b| self.emit.binary(arith::MAXSI, a, b));
            let padded = self.emit.binary(arith::ADDI, largest, self.emit.index(63));
            let mask = self.emit.index(-64);
            let bytes = self.emit.binary(arith::ANDI, padded, mask);
            end = self.emit.sum_of_bytes(end, bytes);
        }
        let block = self.allocate(end);
        self.blocks.push(block);
        if own > 0 {
            self.workspace = Some(whole(block));
        }
        for (slot, offset) in slots.into_iter().zip(offsets) {
            let memory = Memory { buffer: block, offset: Offset::Computed(offset) };
            self.slots.insert(slot, memory);
        }
    }

    /// Allocates memory from the host; the program ends on failure.
    pub fn allocate(&mut self, bytes: Value<'c, 'a>) -> Value<'c, 'a> {
        let block = self.try_allocate(bytes);
        let address = self.address(block);
        let holds = self.emit.compare(Predicate::Ne, address, self.emit.index(0));
        self.require(holds, host::OUT_OF_MEMORY, [bytes, bytes]);
        block
    }

    /// Allocates memory from the host; returns null on failure.
    pub fn try_allocate(&self, bytes: Value<'c, 'a>) -> Value<'c, 'a> {
        let operands = [self.host(), bytes];
        self.emit.call(host::ALLOCATE, &operands, &[self.emit.bytes(1)])[0]
    }

    /// Releases memory to the host.
    pub fn release(&self, block: Value<'c, 'a>) {
        self.emit.call(host::RELEASE, &[self.host(), block], &[]);
    }

    /// The address of a buffer.
    pub fn address(&self, buffer: Value<'c, 'a>) -> Value<'c, 'a> {
        let index = Type::index(self.emit.context);
        self.emit.value(memref::EXTRACT_ALIGNED_POINTER_AS_INDEX, &[buffer], index, &[])
    }

    /// The host argument.
    pub fn host(&self) -> Value<'c, 'a> {
        match self.host {
            Some(host) => host,
            None => unreachable!("what calls the host is in a program that has one"),
        }
    }

    /// Continues only if the condition holds; otherwise reports both sizes to the host.
    pub fn require(&mut self, holds: Value<'c, 'a>, message: &str, sizes: [Value<'c, 'a>; 2]) {
        let failed = self.emit.branch(holds);
        let next = std::mem::replace(&mut self.emit.block, failed);
        let check = self.emit.index(self.program.check(message) as i64);
        self.emit.call(host::FAIL, &[self.host(), check, sizes[0], sizes[1]], &[]);
        self.fail();
        self.emit.block = next;
    }

    /// Continues only if a callee has succeeded.
    pub fn require_done(&mut self, status: Value<'c, 'a>) {
        let holds = self.emit.compare(Predicate::Eq, status, self.emit.i32(0));
        let failed = self.emit.branch(holds);
        let next = std::mem::replace(&mut self.emit.block, failed);
        self.fail();
        self.emit.block = next;
    }

    /// Returns the failure status.
    fn fail(&self) {
        let mut returned = vec![self.emit.i32(1)];
        for (index, value) in self.function.results.iter().enumerate() {
            if self.is_returned(index) {
                returned.push(self.host());
                let rank = self.function.types[*value].rank();
                returned.extend((0..rank).map(|_| self.emit.index(0)));
            }
        }
        self.emit.op(self.emit.spec(func::RETURN).operands(&returned));
    }
}
