//! Writes loops.
//!
//! A carried value of fixed size is double-buffered, so that no iteration copies it. One whose size
//! changes is in memory that each iteration returns. Sequences are written in place if their length is
//! known before the loop, and otherwise in memory that grows.
use super::control::Call;
use super::emit::{Memory, Predicate, arguments_of, results_of};
use super::function::{Writer, define, whole};
use super::homes::{Convention, Home, Purpose};
use super::program::{Function, Value as Id};
use super::sizes::Environment;
use crate::lowering::emit_entry::host;
use irc_mlir::ops::{arith, memref, scf};
use irc_mlir::{Type, Value, ValueLike};

/// The offset in bytes of the flag to continue, from the iteration number.
const FLAG: i64 = 64;

/// The state of one result of a loop between iterations.
enum ResultState<'c, 'a> {
    /// A value in two buffers, used in turn.
    DoubleBuffered { result: Id, first: Memory<'c, 'a>, spare: Memory<'c, 'a> },
    /// A value in memory that the body returns.
    Returned { result: Id, first: Memory<'c, 'a>, extents: Vec<Value<'c, 'a>> },
    /// A sequence in memory that is large enough, with the size of its elements in bytes.
    Preallocated { result: Id, bytes: Value<'c, 'a> },
    /// A sequence in memory that grows, with the size of its elements in bytes if they are not returned.
    Growing { result: Id, bytes: Option<Value<'c, 'a>>, extents: Vec<Value<'c, 'a>> },
}

impl ResultState<'_, '_> {
    /// The number of values in the loop's state.
    fn width(&self) -> usize {
        match self {
            // Current, next and spare buffer.
            Self::DoubleBuffered { .. } => 3,
            // The block, whether it must be released, the extents.
            Self::Returned { extents, .. } => 2 + extents.len(),
            Self::Preallocated { .. } => 0,
            // The block, its size in bytes, the extents of an element.
            Self::Growing { extents, .. } => 2 + extents.len(),
        }
    }
}

/// A loop that is being written.
struct Loop<'l, 'c, 'a> {
    position: usize,
    body: &'l Function<'c, 'a>,
    results: Vec<ResultState<'c, 'a>>,
    captured: Vec<Memory<'c, 'a>>,
    captured_extents: Vec<Vec<Value<'c, 'a>>>,
}

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// A loop that calls a function.
    pub fn repeat(
        &mut self,
        position: usize,
        callee: &str,
        carried: usize,
        operands: &[Id],
        results: &[Id],
    ) {
        let program = self.program;
        let trips = self.emit.load_index(self.memory(operands[0]), "i64");
        let start = self.emit.load_bool(self.memory(operands[1]));
        let captures = &operands[2 + carried..];
        let mut this = Loop {
            position,
            body: program.function(callee),
            results: vec![],
            captured: captures.iter().map(|value| self.memory(*value)).collect(),
            captured_extents: captures.iter().map(|value| self.extents(*value)).collect(),
        };
        this.results = self.result_states(&this, carried, operands, results);
        let mut state = vec![self.emit.index(0), start, self.emit.i32(0)];
        this.results.iter().for_each(|result_state| self.start(result_state, &mut state));

        let op = self.emit.repeat(&state);
        let outside = self.emit.enter(op, 0);
        let state = arguments_of(self.emit.block);
        let more = self.emit.compare(Predicate::Lt, state[0], trips);
        let done = self.emit.compare(Predicate::Eq, state[2], self.emit.i32(0));
        let go_on = self.emit.binary(arith::ANDI, more, state[1]);
        let go_on = self.emit.binary(arith::ANDI, go_on, done);
        let passed: Vec<_> = [go_on].into_iter().chain(state).collect();
        self.emit.op(self.emit.spec(scf::CONDITION).operands(&passed));
        self.emit.enter(op, 1);
        let state = arguments_of(self.emit.block);
        let next = self.iteration(&this, &state);
        self.emit.give(&next);
        self.emit.block = outside;

        let last = results_of(op);
        if self.homes.convention != Convention::Static {
            self.require_done(last[2]);
        }
        let mut rest = &last[3..];
        for result_state in &this.results {
            let (own, after) = rest.split_at(result_state.width());
            rest = after;
            self.bind_result(result_state, last[0], own);
        }
    }

    fn result_states(
        &mut self,
        this: &Loop<'_, 'c, 'a>,
        carried: usize,
        operands: &[Id],
        results: &[Id],
    ) -> Vec<ResultState<'c, 'a>> {
        let mut states = vec![];
        for (index, result) in results.iter().copied().enumerate() {
            let returned = self.program.is_returned(&this.body.name, index + 1);
            if index < carried {
                let value = operands[2 + index];
                let first = self.memory(value);
                if returned {
                    let extents = self.extents(value);
                    states.push(ResultState::Returned { result, first, extents });
                } else {
                    self.ready(result);
                    let spare = self.planned(Purpose::Spare(this.position, index));
                    states.push(ResultState::DoubleBuffered { result, first, spare });
                }
                continue;
            }
            let element = &this.body.types[this.body.results[1 + index]];
            let mut extents = vec![];
            let mut bytes = None;
            if !returned {
                let around = self.around_body(this, carried, &[]);
                extents.extend(element.dims.iter().map(|dim| self.emit.extent(dim, &around)));
                bytes = Some(self.emit.bytes_of(&extents, element.dtype.size() as i64));
            }
            states.push(match bytes {
                Some(bytes) if self.homes.homes[result] != Home::Own => {
                    self.ready(result);
                    ResultState::Preallocated { result, bytes }
                }
                bytes => {
                    extents.resize_with(element.rank(), || self.emit.index(0));
                    ResultState::Growing { result, bytes, extents }
                }
            });
        }
        states
    }

    /// The symbols that the body takes, given the extents of what it carries.
    fn around_body(
        &self,
        this: &Loop<'_, 'c, 'a>,
        carried: usize,
        extents: &[Vec<Value<'c, 'a>>],
    ) -> Environment<'c, 'a> {
        let mut sizes = vec![vec![]];
        sizes.extend((0..carried).map(|index| extents.get(index).cloned().unwrap_or_default()));
        sizes.extend(this.captured_extents.iter().cloned());
        self.around(this.body, &sizes)
    }

    /// Adds the state before the first iteration.
    fn start(&self, result_state: &ResultState<'c, 'a>, state: &mut Vec<Value<'c, 'a>>) {
        match result_state {
            ResultState::DoubleBuffered { result, first, spare } => {
                let next = self.memory(*result);
                state.extend([*first, next, *spare].map(|memory| self.emit.opaque(memory)));
            }
            ResultState::Returned { first, extents, .. } => {
                state.extend([self.emit.opaque(*first), self.emit.flag(false)]);
                state.extend(extents);
            }
            ResultState::Preallocated { .. } => {}
            ResultState::Growing { extents, .. } => {
                state.extend([self.host(), self.emit.index(0)]);
                state.extend(extents);
            }
        }
    }

    /// One iteration, from the state before it to the state after it.
    fn iteration(
        &mut self,
        this: &Loop<'_, 'c, 'a>,
        state: &[Value<'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let counter = self.planned(Purpose::Counter(this.position));
        let i64_type = self.emit.ty("i64");
        let number = self.emit.value(arith::INDEX_CAST, &[state[0]], i64_type, &[]);
        let place = self.emit.view(counter, self.emit.ty("memref<i64>"));
        self.emit.op(self.emit.spec(memref::STORE).operands(&[number, place]));
        if self.homes.convention == Convention::Static {
            return self.call_body(this, counter, state.to_vec());
        }
        let (state, enough) = self.grow_sequences(this, state);
        let types: Vec<Type<'c>> = state.iter().map(ValueLike::r#type).collect();
        let choice = self.emit.choose(enough, &types);
        let outside = self.emit.enter(choice, 0);
        let next = self.call_body(this, counter, state.clone());
        self.emit.give(&next);
        self.emit.enter(choice, 1);
        let mut failed = state;
        failed[2] = self.emit.i32(1);
        self.emit.give(&failed);
        self.emit.block = outside;
        results_of(choice)
    }

    /// Grows sequences by one element of known size; returns whether the allocations succeeded.
    fn grow_sequences(
        &mut self,
        this: &Loop<'_, 'c, 'a>,
        state: &[Value<'c, 'a>],
    ) -> (Vec<Value<'c, 'a>>, Value<'c, 'a>) {
        let (mut state, mut enough) = (state.to_vec(), self.emit.flag(true));
        let mut at = 3;
        for result_state in &this.results {
            if let ResultState::Growing { result, bytes: Some(bytes), .. } = result_state {
                let sequence = [state[at], state[at + 1]];
                let (block, size, done) = self.grow(*result, sequence, state[0], *bytes);
                (state[at], state[at + 1]) = (block, size);
                enough = self.emit.binary(arith::ANDI, enough, done);
            }
            at += result_state.width();
        }
        (state, enough)
    }

    /// Reserves memory for one more than `count` elements; twice as much as needed if it must grow.
    fn grow(
        &mut self,
        result: Id,
        [block, size]: [Value<'c, 'a>; 2],
        count: Value<'c, 'a>,
        bytes: Value<'c, 'a>,
    ) -> (Value<'c, 'a>, Value<'c, 'a>, Value<'c, 'a>) {
        let used = self.emit.binary(arith::MULI, count, bytes);
        let needed = self.emit.sum_of_bytes(used, bytes);
        // At least one byte, so that an allocated block is distinguishable from none.
        let needed = self.emit.binary(arith::MAXSI, needed, self.emit.index(1));
        let full = self.emit.compare(Predicate::Gt, needed, size);
        let types = [block, size].map(|value| value.r#type());
        let choice = self.emit.choose(full, &types);
        let outside = self.emit.enter(choice, 0);
        let twice = self.emit.sum_of_bytes(needed, needed);
        let larger = self.try_allocate(twice);
        let got = self.emit.compare(Predicate::Ne, self.address(larger), self.emit.index(0));
        let had = self.emit.compare(Predicate::Gt, size, self.emit.index(0));
        let both = self.emit.binary(arith::ANDI, got, had);
        let copying = self.emit.choose(both, &[]);
        let inside = self.emit.enter(copying, 0);
        self.emit.copy(whole(block), whole(larger), used);
        self.release(block);
        self.emit.give(&[]);
        self.emit.enter(copying, 1);
        self.emit.give(&[]);
        self.emit.block = inside;
        let reporting = self.emit.choose(got, &[]);
        self.emit.enter(reporting, 0);
        self.emit.give(&[]);
        self.emit.enter(reporting, 1);
        self.report_unallocated(twice, &[(Purpose::Value(result), twice)]);
        self.emit.give(&[]);
        self.emit.block = inside;
        self.emit.give(&[larger, twice]);
        self.emit.enter(choice, 1);
        self.emit.give(&[block, size]);
        self.emit.block = outside;
        let grown = results_of(choice);
        let done = self.emit.compare(Predicate::Ne, self.address(grown[0]), self.emit.index(0));
        (grown[0], grown[1], done)
    }

    fn call_body(
        &mut self,
        this: &Loop<'_, 'c, 'a>,
        counter: Memory<'c, 'a>,
        mut state: Vec<Value<'c, 'a>>,
    ) -> Vec<Value<'c, 'a>> {
        let flag = self.emit.shifted(counter, self.emit.index(FLAG));
        let (mut memories, mut given) = (vec![counter], vec![flag]);
        let mut extents = vec![];
        let mut at = 3;
        for result_state in &this.results {
            match result_state {
                ResultState::DoubleBuffered { result, .. } => {
                    memories.push(whole(state[at]));
                    given.push(whole(state[at + 1]));
                    extents.push(self.extents(*result));
                }
                ResultState::Returned { .. } => {
                    memories.push(whole(state[at]));
                    extents.push(state[at + 2..at + result_state.width()].to_vec());
                }
                ResultState::Preallocated { result, bytes } => {
                    let by = self.emit.binary(arith::MULI, state[0], *bytes);
                    given.push(self.emit.shifted(self.memory(*result), by));
                }
                ResultState::Growing { bytes: Some(bytes), .. } => {
                    let by = self.emit.binary(arith::MULI, state[0], *bytes);
                    given.push(self.emit.shifted(whole(state[at]), by));
                }
                ResultState::Growing { bytes: None, .. } => {}
            }
            at += result_state.width();
        }
        memories.extend(&this.captured);
        memories.extend(given);
        let call = Call {
            callee: &this.body.name,
            memories,
            scratch: self.scratch(this.position),
            around: self.around_body(this, extents.len(), &extents),
            host: self.host(),
        };
        let returned = call.write(self.program, &self.emit);
        state[1] = self.emit.load_bool(flag);
        if let Some(status) = returned.first() {
            state[2] = *status;
        }
        self.next_state(this, &mut state, returned.get(1..).unwrap_or_default());
        state[0] = self.emit.binary(arith::ADDI, state[0], self.emit.index(1));
        state
    }

    /// The state after an iteration, given the memory that the body returned.
    fn next_state(
        &mut self,
        this: &Loop<'_, 'c, 'a>,
        state: &mut [Value<'c, 'a>],
        mut returned: &[Value<'c, 'a>],
    ) {
        let mut at = 3;
        for result_state in &this.results {
            let width = result_state.width();
            match result_state {
                ResultState::DoubleBuffered { .. } => {
                    state.copy_within(at + 1..at + 3, at);
                    state[at + 2] = state[at];
                }
                ResultState::Returned { extents, .. } => {
                    self.release_if(state[at + 1], state[at]);
                    let (own, rest) = returned.split_at(1 + extents.len());
                    returned = rest;
                    state[at] = own[0];
                    state[at + 1] = self.emit.flag(true);
                    state[at + 2..at + width].copy_from_slice(&own[1..]);
                }
                ResultState::Growing { bytes: None, extents, result } => {
                    let (own, rest) = returned.split_at(1 + extents.len());
                    returned = rest;
                    self.append(*result, state, at, own);
                }
                ResultState::Preallocated { .. } | ResultState::Growing { .. } => {}
            }
            at += width;
        }
    }

    fn release_if(&mut self, condition: Value<'c, 'a>, block: Value<'c, 'a>) {
        let choice = self.emit.choose(condition, &[]);
        let outside = self.emit.enter(choice, 0);
        self.release(block);
        self.emit.give(&[]);
        self.emit.enter(choice, 1);
        self.emit.give(&[]);
        self.emit.block = outside;
    }

    /// Copies an element that the body returned to the end of its sequence. All elements have the extents of
    /// the first.
    fn append(
        &mut self,
        result: Id,
        state: &mut [Value<'c, 'a>],
        at: usize,
        own: &[Value<'c, 'a>],
    ) {
        let (element, extents) = (own[0], &own[1..]);
        let is_first = self.emit.compare(Predicate::Eq, state[0], self.emit.index(0));
        let mut holds = self.emit.compare(Predicate::Eq, state[2], self.emit.i32(0));
        let mut differing = [self.emit.index(0); 2];
        for (axis, extent) in extents.iter().enumerate() {
            let before = self.emit.select(is_first, *extent, state[at + 2 + axis]);
            let equal = self.emit.compare(Predicate::Eq, before, *extent);
            holds = self.emit.binary(arith::ANDI, holds, equal);
            differing[0] = self.emit.select(equal, differing[0], before);
            differing[1] = self.emit.select(equal, differing[1], *extent);
        }
        let bytes = self.emit.bytes_of(extents, self.width(result));
        let types = [state[at], state[at + 1], state[2]].map(|value| value.r#type());
        let choice = self.emit.choose(holds, &types);
        let outside = self.emit.enter(choice, 0);
        let (block, size, done) = self.grow(result, [state[at], state[at + 1]], state[0], bytes);
        let status = self.emit.select(done, self.emit.i32(0), self.emit.i32(1));
        let copying = self.emit.choose(done, &[]);
        let inside = self.emit.enter(copying, 0);
        let by = self.emit.binary(arith::MULI, state[0], bytes);
        let to = self.emit.shifted(whole(block), by);
        self.emit.copy(whole(element), to, bytes);
        self.release(element);
        self.emit.give(&[]);
        self.emit.enter(copying, 1);
        self.emit.give(&[]);
        self.emit.block = inside;
        self.emit.give(&[block, size, status]);
        self.emit.enter(choice, 1);
        // A failure of the body was reported before; the host records the first.
        let check = self.program.messages.number(host::ELEMENTS);
        let check = self.emit.index(check as i64);
        self.emit.call(host::FAIL, &[self.host(), check, differing[0], differing[1]], &[]);
        self.emit.give(&[state[at], state[at + 1], self.emit.i32(1)]);
        self.emit.block = outside;
        let next = results_of(choice);
        (state[at], state[at + 1], state[2]) = (next[0], next[1], next[2]);
        state[at + 2..at + 2 + extents.len()].copy_from_slice(extents);
    }

    /// Binds the result after the last iteration.
    fn bind_result(
        &mut self,
        result_state: &ResultState<'c, 'a>,
        count: Value<'c, 'a>,
        state: &[Value<'c, 'a>],
    ) {
        match result_state {
            ResultState::DoubleBuffered { result, .. } => {
                let to = self.memory(*result);
                let addresses = [state[0], self.emit.opaque(to)].map(|buffer| self.address(buffer));
                let differ = self.emit.compare(Predicate::Ne, addresses[0], addresses[1]);
                let bytes = self.emit.bytes_of(&self.extents(*result), self.width(*result));
                let choice = self.emit.choose(differ, &[]);
                let outside = self.emit.enter(choice, 0);
                self.emit.copy(whole(state[0]), to, bytes);
                self.emit.give(&[]);
                self.emit.enter(choice, 1);
                self.emit.give(&[]);
                self.emit.block = outside;
            }
            ResultState::Returned { result, .. } => {
                let bytes = self.emit.bytes_of(&state[2..], self.width(*result));
                // After zero iterations this is the memory of another value.
                let choice = self.emit.choose(state[1], &[state[0].r#type()]);
                let outside = self.emit.enter(choice, 0);
                self.emit.give(&[state[0]]);
                self.emit.enter(choice, 1);
                let copy = self.try_allocate(bytes);
                let got = self.emit.compare(Predicate::Ne, self.address(copy), self.emit.index(0));
                let copying = self.emit.choose(got, &[]);
                let inside = self.emit.enter(copying, 0);
                self.emit.copy(whole(state[0]), whole(copy), bytes);
                self.emit.give(&[]);
                self.emit.enter(copying, 1);
                self.emit.give(&[]);
                self.emit.block = inside;
                self.emit.give(&[copy]);
                self.emit.block = outside;
                self.take_block(*result, results_of(choice)[0], bytes);
                define(&mut self.symbols, &self.function.types[*result], &state[2..]);
            }
            ResultState::Preallocated { result, .. } => {
                if self.homes.convention != Convention::Static {
                    let expected = self.extents(*result)[0];
                    let holds = self.emit.compare(Predicate::Eq, count, expected);
                    self.require(holds, host::ITERATIONS, [expected, count]);
                }
            }
            ResultState::Growing { result, .. } => {
                let none = self.emit.compare(Predicate::Eq, state[1], self.emit.index(0));
                let choice = self.emit.choose(none, &[state[0].r#type()]);
                let outside = self.emit.enter(choice, 0);
                let empty = self.try_allocate(self.emit.index(1));
                self.emit.give(&[empty]);
                self.emit.enter(choice, 1);
                self.emit.give(&[state[0]]);
                self.emit.block = outside;
                self.take_block(*result, results_of(choice)[0], self.emit.index(1));
                let extents: Vec<_> =
                    [count].into_iter().chain(state[2..].iter().copied()).collect();
                define(&mut self.symbols, &self.function.types[*result], &extents);
            }
        }
    }

    fn take_block(&mut self, value: Id, block: Value<'c, 'a>, bytes: Value<'c, 'a>) {
        self.require_allocated(block, bytes, &[(Purpose::Value(value), bytes)]);
        self.set_own(value, block);
    }
}
