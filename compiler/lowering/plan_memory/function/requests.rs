//! The calls of the host by a planned function: memory requests and error reports.
use super::{Id, Writer, whole};
use crate::lowering::{
    emit_entry::host,
    plan_memory::{
        emit::{Memory, Offset, Predicate},
        homes::{Convention, Purpose},
    },
};
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{Type, Value};
use irc_runtime::HostCall;

/// What memory is for, and the bytes that it takes.
pub type Part<'c, 'a> = (Purpose, Value<'c, 'a>);

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
        let mut parts = vec![];
        if let Some((purpose, bytes)) = self.homes.largest.filter(|_| own > 0) {
            parts.push((purpose, self.emit.index(bytes.cast_signed())));
        }
        for slot in &slots {
            offsets.push(end);
            let values = self.homes.slots[*slot].bytes.values();
            let sizes: Vec<_> =
                values.map(|value| (Purpose::Value(*value), self.bytes(*value))).collect();
            let zero = self.emit.index(0);
            let largest =
                sizes.iter().fold(zero, |a, (_, b)| self.emit.binary(arith::MAXSI, a, *b));
            parts.extend(sizes);
            let padded = self.emit.binary(arith::ADDI, largest, self.emit.index(63));
            let mask = self.emit.index(-64);
            let bytes = self.emit.binary(arith::ANDI, padded, mask);
            end = self.emit.sum_of_bytes(end, bytes);
        }
        let block = self.allocate(end, &parts);
        self.blocks.push(block);
        if own > 0 {
            self.workspace = Some(whole(block));
        }
        for (slot, offset) in slots.into_iter().zip(offsets) {
            let memory = Memory { buffer: block, offset: Offset::Computed(offset) };
            self.slots.insert(slot, memory);
        }
    }

    /// Allocates memory from the host for some purposes, each with its size; the program ends on failure.
    pub fn allocate(&mut self, bytes: Value<'c, 'a>, parts: &[Part<'c, 'a>]) -> Value<'c, 'a> {
        let block = self.try_allocate(bytes);
        self.require_allocated(block, bytes, parts);
        block
    }

    /// Continues only if memory was allocated; otherwise reports the largest part to the host.
    pub fn require_allocated(
        &mut self,
        block: Value<'c, 'a>,
        bytes: Value<'c, 'a>,
        parts: &[Part<'c, 'a>],
    ) {
        let holds = self.emit.compare(Predicate::Ne, self.address(block), self.emit.index(0));
        let failed = self.emit.branch(holds);
        let next = std::mem::replace(&mut self.emit.block, failed);
        self.report_unallocated(bytes, parts);
        self.fail();
        self.emit.block = next;
    }

    /// Reports the largest part of memory that cannot be allocated to the host.
    pub fn report_unallocated(&self, bytes: Value<'c, 'a>, parts: &[Part<'c, 'a>]) {
        let messages = &self.program.messages;
        let number = |purpose| messages.memory(&self.function.name, purpose) as i64;
        let mut parts =
            parts.iter().map(|(purpose, size)| (self.emit.index(number(*purpose)), *size));
        let first = parts.next().unwrap_or_else(|| {
            (self.emit.index(messages.number(host::OUT_OF_MEMORY) as i64), bytes)
        });
        let (check, largest) = parts.fold(first, |(check, largest), (other, size)| {
            let is_larger = self.emit.compare(Predicate::Gt, size, largest);
            let select = |yes, no| self.emit.select(is_larger, yes, no);
            (select(other, check), select(size, largest))
        });
        self.emit.call(host::FAIL, &[self.host(), check, largest, bytes], &[]);
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

    /// Lets the host apply a function; the program ends on failure, with a message.
    pub(super) fn call_host(
        &mut self,
        function: &HostCall,
        operands: &[Id],
        to: Id,
        message: &str,
    ) {
        self.ready(to);
        let [count, results] = [operands[0], to].map(|value| {
            let extents = self.extents(value).into_iter();
            let count = extents.reduce(|a, b| self.emit.binary(arith::MULI, a, b));
            count.unwrap_or_else(|| self.emit.index(1))
        });
        let number = self.emit.index(self.program.call(function) as i64);
        let first = self.address(self.emit.opaque(self.memory(operands[0])));
        let second = match operands.get(1) {
            Some(second) => self.address(self.emit.opaque(self.memory(*second))),
            None => self.emit.index(0),
        };
        let result = self.address(self.emit.opaque(self.memory(to)));
        let operands = [self.host(), number, count, first, second, results, result];
        let done = self.emit.call(host::CALL, &operands, &[self.emit.bytes(1)])[0];
        let done = self.address(done);
        let holds = self.emit.compare(Predicate::Ne, done, self.emit.index(0));
        self.require(holds, message, [count, results]);
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
        let check = self.emit.index(self.program.messages.number(message) as i64);
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
