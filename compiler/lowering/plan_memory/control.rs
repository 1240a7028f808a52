//! Writes branches and calls of functions.
use super::Program;
use super::emit::{Emit, Memory, results_of};
use super::function::{Writer, define, planned_name};
use super::homes::{Convention, Home, Purpose};
use super::program::{Function, Value as Id};
use super::sizes::Environment;
use super::symbols::extents;
use irc_mlir::Value;
use std::sync::Arc;

impl<'c: 'a, 'a> Writer<'_, 'c, 'a> {
    /// A call of a function, or a choice between two.
    pub fn call(
        &mut self,
        position: usize,
        condition: Option<Id>,
        callees: &[String],
        operands: &[Id],
        results: &[Id],
    ) {
        let program = self.program;
        let condition = condition.map(|condition| self.emit.load_bool(self.memory(condition)));
        let arguments: Vec<_> = operands.iter().map(|value| self.memory(*value)).collect();
        let sizes: Vec<_> = operands.iter().map(|value| self.extents(*value)).collect();
        let around: Vec<_> =
            callees.iter().map(|callee| self.around(program.function(callee), &sizes)).collect();
        // The sizes of the results follow from the first function.
        let first = program.function(&callees[0]);
        for (index, result) in results.iter().enumerate() {
            if !program.is_returned(&first.name, index) {
                self.ready_sized(*result, first, index, &around[0]);
            }
        }
        let given: Vec<Memory<'c, 'a>> = (0..results.len())
            .filter(|index| !program.is_returned(&first.name, *index))
            .map(|index| self.memory(results[index]))
            .collect();
        let memories: Vec<_> = arguments.into_iter().chain(given).collect();
        let (scratch, host) = (self.scratch(position), self.host());
        let mut calls: Vec<_> = callees
            .iter()
            .zip(around.clone())
            .map(|(callee, around)| Call {
                callee,
                memories: memories.clone(),
                scratch,
                around,
                host,
            })
            .collect();
        let returned = match condition {
            Some(condition) => self.choose(condition, &calls),
            None => calls.remove(0).write(program, &self.emit),
        };
        self.take_returned(first, &returned, results, 0);
        for (index, result) in results.iter().enumerate() {
            if !program.is_returned(&first.name, index) {
                self.define_from(*result, &first.types[first.results[index]], &around[0]);
            }
        }
    }

    /// Calls one function or the other.
    fn choose(
        &mut self,
        condition: Value<'c, 'a>,
        calls: &[Call<'_, 'c, 'a>],
    ) -> Vec<Value<'c, 'a>> {
        let types = self.program.signatures[calls[0].callee].1.clone();
        let choice = self.emit.choose(condition, &types);
        for (side, call) in calls.iter().enumerate() {
            let outside = self.emit.enter(choice, side);
            let returned = call.write(self.program, &self.emit);
            self.emit.give(&returned);
            self.emit.block = outside;
        }
        results_of(choice)
    }

    /// Binds the values that a callee returns; the first is its status.
    pub(super) fn take_returned(
        &mut self,
        callee: &Function<'c, 'a>,
        returned: &[Value<'c, 'a>],
        results: &[Id],
        skipped: usize,
    ) {
        if self.homes.convention == Convention::Static {
            return;
        }
        self.require_done(returned[0]);
        let mut rest = &returned[1..];
        for (index, result) in results.iter().enumerate() {
            if !self.program.is_returned(&callee.name, index + skipped) {
                continue;
            }
            let rank = self.function.types[*result].rank();
            let (own, after) = rest.split_at(1 + rank);
            rest = after;
            self.set_own(*result, own[0]);
            define(&mut self.symbols, &self.function.types[*result], &own[1..]);
        }
    }

    /// Provides memory for a result that its callee writes, even if it is not planned.
    pub(super) fn ready_sized(
        &mut self,
        value: Id,
        callee: &Function<'c, 'a>,
        result: usize,
        around: &Environment<'c, 'a>,
    ) {
        if self.homes.homes[value] != Home::Own {
            self.ready(value);
            return;
        }
        let inner = &callee.types[callee.results[result]];
        let sizes: Vec<_> = inner.dims.iter().map(|dim| self.emit.extent(dim, around)).collect();
        let bytes = self.emit.bytes_of(&sizes, self.width(value));
        let block = self.allocate(bytes, &[(Purpose::Value(value), bytes)]);
        self.set_own(value, block);
    }

    /// Defines the symbols that are whole extents of a result's type as the callee's extents.
    pub(super) fn define_from(
        &mut self,
        value: Id,
        inner: &irc_tl::Type,
        around: &Environment<'c, 'a>,
    ) {
        let sizes: Vec<_> = inner.dims.iter().map(|dim| self.emit.extent(dim, around)).collect();
        define(&mut self.symbols, &self.function.types[value], &sizes);
    }

    /// The symbols that a callee takes: those known here, or the extents of its arguments.
    pub(super) fn around(
        &self,
        callee: &Function<'c, 'a>,
        sizes: &[Vec<Value<'c, 'a>>],
    ) -> Environment<'c, 'a> {
        let first = extents(&callee.types[..callee.inputs]);
        let value = |symbol: &Arc<str>| {
            let known = self.symbols.get(symbol).copied();
            known.or_else(|| {
                let (argument, axis) = first.get(symbol)?;
                sizes.get(*argument)?.get(*axis).copied()
            })
        };
        let taken = self.program.scope.taken.get(&callee.name).into_iter().flatten();
        taken.filter_map(|symbol| Some((symbol.clone(), value(symbol)?))).collect()
    }
}

/// A call of a planned function.
pub(super) struct Call<'n, 'c, 'a> {
    pub callee: &'n str,
    /// Arguments, then the results that the callee does not return.
    pub memories: Vec<Memory<'c, 'a>>,
    pub scratch: Memory<'c, 'a>,
    pub around: Environment<'c, 'a>,
    /// The host, or if every size is known the threads.
    pub host: Value<'c, 'a>,
}

impl<'c: 'a, 'a> Call<'_, 'c, 'a> {
    pub fn write(&self, program: &Program<'c, 'a>, emit: &Emit<'c, 'a>) -> Vec<Value<'c, 'a>> {
        let (inputs, results) = &program.signatures[self.callee];
        let memories = self.memories.iter().chain([&self.scratch]);
        let mut operands: Vec<Value<'c, 'a>> =
            memories.zip(inputs).map(|(memory, ty)| emit.view(*memory, *ty)).collect();
        let taken = program.scope.taken.get(self.callee).into_iter().flatten();
        operands.extend(taken.map(|symbol| self.around[symbol]));
        operands.push(self.host);
        emit.call(&planned_name(self.callee), &operands, results)
    }
}
