//! Writes a planned function; `requests` has its calls of the host.

mod requests;

use super::Program;
use super::emit::{Emit, Memory, Offset, Predicate, arguments_of, block_of};
use super::homes::{Convention, Home, Homes, Place, Purpose};
use super::program::{Function, Step, Value as Id, bytes_of, call_message};
use super::sizes::{Environment, MAX_BYTES};
use super::symbols::{Schedule, alone, extents};
use crate::{
    attributes::{CONSTANTS, LINKAGE, PROGRAM, ProgramInfo, VALUE, dictionaries, launcher},
    lowering::{emit_entry::host, outline_kernels::Sizes},
};
use irc_mlir::ops::{arith, func, memref};
use irc_mlir::{
    Block, OperationLike, OperationRef, PassError, PassResult, Type, Value, attr, elements,
    melior::ir::attribute::DictionaryAttribute, ty,
};
use irc_runtime::Port;
use irc_tensor::append_aligned;
use irc_tl::{Dim, Relation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Writes functions of one program.
pub struct Writer<'p, 'c, 'a> {
    /// The program.
    pub program: &'p Program<'c, 'a>,
    /// The function.
    pub function: &'p Function<'c, 'a>,
    /// The order of its steps.
    pub schedule: &'p Schedule,
    /// The memory of its values.
    pub homes: &'p Homes,
    /// Emits the ops.
    pub emit: Emit<'c, 'a>,
    /// The values of symbols.
    pub symbols: Environment<'c, 'a>,
    /// The memrefs of arguments and results.
    given: Vec<Value<'c, 'a>>,
    /// The workspace.
    workspace: Option<Memory<'c, 'a>>,
    /// The memory of slots.
    slots: BTreeMap<usize, Memory<'c, 'a>>,
    /// The memory of values with memory of their own.
    own: BTreeMap<Id, Memory<'c, 'a>>,
    /// The blocks to release at the end.
    blocks: Vec<Value<'c, 'a>>,
    /// The host if sizes depend on symbols, and otherwise the threads.
    host: Option<Value<'c, 'a>>,
    /// The threads, if a kernel is divided among them.
    threads: Option<Value<'c, 'a>>,
}

/// The name under which a function is planned.
pub fn planned_name(name: &str) -> String {
    format!("irc_{name}")
}

/// The constants that a program has beside its arguments: the offset of each argument, or -1, and the bytes. `None`
/// if none has elements.
fn constants_of(function: &OperationRef<'_, '_>) -> Option<(Vec<i64>, Vec<u8>)> {
    let mut bytes = vec![];
    let values = dictionaries(function, "arg_attrs").into_iter();
    let offset = |argument: Option<DictionaryAttribute<'_>>| {
        let value = argument.and_then(|argument| argument.element_by_name(VALUE));
        match value.and_then(elements::bytes_of) {
            Some(elements) => append_aligned(&mut bytes, &elements) as i64,
            None => -1,
        }
    };
    let offsets: Vec<i64> = values.map(offset).collect();
    offsets.iter().any(|offset| *offset >= 0).then_some((offsets, bytes))
}

impl<'p, 'c: 'a, 'a> Writer<'p, 'c, 'a> {
    /// Writes the planned function before the original one.
    ///
    /// # Errors
    /// A step that cannot be written.
    pub fn write(program: &'p Program<'c, 'a>, number: usize) -> PassResult {
        let (function, schedule, homes) =
            (&program.functions[number], &program.schedules[number], &program.homes[number]);
        let (inputs, results) = signature(program, number);
        let context = irc_mlir::context_of(&function.op);
        let location = function.op.location();
        let arguments: Vec<_> = inputs.iter().map(|ty| (*ty, location)).collect();
        let name = planned_name(&function.name);
        let body = Block::new(&arguments);
        let mut spec = irc_mlir::function(context, &name, &inputs, &results, body, location);
        if function.name == program.main {
            let mut info = ProgramInfo::of(&function.op);
            let mut interface = program.interface.clone();
            if let Some((offsets, bytes)) = constants_of(&function.op) {
                interface.inputs.retain(|port| port.weight.is_none());
                info.weight_offsets = offsets;
                let ty = ty::parse(context, &format!("tensor<{}xi8>", bytes.len()));
                spec = spec.attr(CONSTANTS, elements::resource(ty, "constants", bytes));
            }
            info.metadata = Some(interface.to_json());
            spec = spec.with(PROGRAM, &info);
        } else {
            // Linked with programs that contain the same function.
            spec = spec
                .attr("sym_visibility", attr::string(context, "private"))
                .attr(LINKAGE, attr::parse(context, "#llvm.linkage<internal>"));
        }
        let Some(parent) = function.op.block() else {
            return Err(PassError::at(&function.op, "is not in a module"));
        };
        let planned = spec.before(&parent, function.op);
        let (block, region) = (block_of(planned, 0), planned.region(0));
        let Ok(region) = region else {
            return Err(PassError::at(&function.op, "has no body"));
        };
        let writer = Writer {
            program,
            function,
            schedule,
            homes,
            emit: Emit { context, region, block, location },
            symbols: Environment::new(),
            given: arguments_of(block),
            workspace: None,
            slots: BTreeMap::new(),
            own: BTreeMap::new(),
            blocks: vec![],
            host: None,
            threads: None,
        };
        writer.body()
    }

    fn body(mut self) -> PassResult {
        match self.homes.convention {
            Convention::Static | Convention::Inner => self.take_symbols(),
            Convention::Main => self.read_extents(),
        }
        if self.function.steps.iter().any(|(step, _)| self.program.divides(step)) {
            self.threads = Some(match self.homes.convention {
                Convention::Static => self.host(),
                _ => self.emit.call(host::THREADS, &[self.host()], &[self.emit.bytes(1)])[0],
            });
        }
        // Memory is requested after the checks that become ready with its size.
        let mut known = vec![None];
        for position in 0..self.schedule.order.len() {
            let (step, op) = &self.function.steps[self.schedule.order[position]];
            self.emit.location = op.location();
            if !step.is_check() {
                known.drain(..).for_each(|known| self.ask_for(known));
            }
            self.step(position, step, *op)?;
            known.push(Some(position));
        }
        known.drain(..).for_each(|known| self.ask_for(known));
        self.finish();
        Ok(())
    }

    /// Takes the arguments of a function that a caller provides with memory: memory, symbols, the host or the threads.
    fn take_symbols(&mut self) {
        self.host = self.given.pop();
        let taken = self.program.scope.taken.get(&self.function.name);
        for symbol in taken.into_iter().flatten().rev() {
            if let Some(value) = self.given.pop() {
                self.symbols.insert(symbol.clone(), value);
            }
        }
        self.workspace = self.given.pop().map(whole);
    }

    /// Reads the arguments of the main function: inputs, the extents of those that are not constants, the
    /// host. Every extent is checked.
    fn read_extents(&mut self) {
        self.host = self.given.pop();
        let (Some(all), function) = (self.given.pop(), self.function) else { return };
        let first = extents(&function.types[..function.inputs]);
        let mut found = vec![];
        let is_constant = |input: &usize| self.program.interface.inputs[*input].weight.is_some();
        for input in (0..function.inputs).filter(|input| !is_constant(input)) {
            for axis in 0..function.types[input].rank() {
                let at = self.emit.index(found.len() as i64);
                let i64_type = self.emit.ty("i64");
                let loaded = self.emit.value(memref::LOAD, &[all, at], i64_type, &[]);
                let index = Type::index(self.emit.context);
                let extent = self.emit.value(arith::INDEX_CAST, &[loaded], index, &[]);
                found.push((input, axis, extent));
            }
        }
        let named: BTreeMap<(usize, usize), Arc<str>> =
            first.iter().map(|(symbol, place)| (*place, symbol.clone())).collect();
        for (input, axis, extent) in &found {
            if let Some(symbol) = named.get(&(*input, *axis)) {
                self.symbols.insert(symbol.clone(), *extent);
            }
        }
        for (input, axis, extent) in found {
            let dim = &function.types[input].dims[axis];
            let is_known = dim.symbols().iter().all(|symbol| self.symbols.contains_key(symbol));
            if is_known && !named.contains_key(&(input, axis)) {
                let names = &self.program.interface.inputs;
                let message = extent_message(names, &first, (input, axis), dim);
                let expected = self.emit.size(dim, &self.symbols);
                let holds = self.emit.compare(Predicate::Eq, extent, expected);
                self.require(holds, &message, [expected, extent]);
            }
        }
    }

    fn is_returned(&self, result: usize) -> bool {
        let returned = self.program.returned.get(&self.function.name);
        returned.is_some_and(|returned| returned[result])
    }

    fn step(&mut self, position: usize, step: &'p Step, op: OperationRef<'c, 'a>) -> PassResult {
        match step {
            Step::Launch { callee, operands, results, sizes } => {
                for result in results {
                    self.ready(*result);
                }
                let values = operands.iter().chain(results).copied().collect();
                self.launch(position, (callee, sizes), values, op)
            }
            Step::View { .. } | Step::Constant { .. } => Ok(()),
            Step::Host { function, operands, to } => {
                self.call_host(function, operands, *to, &call_message(function, op));
                Ok(())
            }
            Step::Size { from, index, symbol } => {
                let size = self.element(*from, *index);
                self.symbols.insert(symbol.clone(), size);
                Ok(())
            }
            Step::Check { left, relation, right, message } => {
                self.check(left, *relation, right, message);
                Ok(())
            }
            Step::Call { condition, callees, operands, results } => {
                self.call(position, *condition, callees, operands, results);
                Ok(())
            }
            Step::Loop { callee, carried, operands, results } => {
                self.repeat(position, callee, *carried, operands, results);
                Ok(())
            }
        }
    }

    /// Provides memory for a value that is not planned, before it is computed.
    pub fn ready(&mut self, value: Id) {
        match self.homes.homes[value] {
            Home::Output(index) => {
                // The result may be a view of the value.
                let extents = self.extents(self.function.results[index]);
                let memory = self.output(index, &extents);
                self.own.insert(value, memory);
            }
            Home::Own => {
                let bytes = self.bytes(value);
                let block = self.allocate(bytes, &[(Purpose::Value(value), bytes)]);
                self.own.insert(value, whole(block));
                self.keep(value, block);
            }
            _ => {}
        }
    }

    /// Sets the memory of a value with memory of its own.
    pub fn set_own(&mut self, value: Id, block: Value<'c, 'a>) {
        self.own.insert(value, whole(block));
        self.keep(value, block);
    }

    /// Memory is released at the end, unless it is returned.
    fn keep(&mut self, value: Id, block: Value<'c, 'a>) {
        if self.handed_over(value).is_none() {
            self.blocks.push(block);
        }
    }

    /// The result that takes over a value's own memory.
    fn handed_over(&self, value: Id) -> Option<usize> {
        let results = self.function.results.iter().enumerate();
        let mut handed = results
            .filter(|(index, result)| self.is_returned(*index) && self.root(**result) == value);
        handed.next().map(|(index, _)| index)
    }

    fn root(&self, value: Id) -> Id {
        self.homes.roots[value]
    }

    /// The extents of a value.
    pub fn extents(&self, value: Id) -> Vec<Value<'c, 'a>> {
        let dims = &self.function.types[value].dims;
        dims.iter().map(|dim| self.emit.extent(dim, &self.symbols)).collect()
    }

    /// The bytes of a value.
    fn bytes(&self, value: Id) -> Value<'c, 'a> {
        self.emit.bytes_of(&self.extents(value), self.width(value))
    }

    /// Requests the memory of a result from the host; the program ends on failure.
    fn output(&mut self, index: usize, extents: &[Value<'c, 'a>]) -> Memory<'c, 'a> {
        let result = self.function.results[index];
        let message = output_message(
            &self.program.interface.outputs[index].name,
            &self.function.types[result],
        );
        let bytes = self.emit.bytes_of(extents, self.width(result));
        let holds = self.emit.compare(Predicate::Lt, bytes, self.emit.index(MAX_BYTES));
        self.require(holds, &message, [bytes, bytes]);
        let rank = extents.len().max(1);
        let list = self.emit.ty(&format!("memref<{rank}xi64>"));
        let segments = attr::parse(self.emit.context, "array<i32: 0, 0>");
        let list = self.emit.value(memref::ALLOCA, &[], list, &[("operandSegmentSizes", segments)]);
        for (axis, extent) in extents.iter().enumerate() {
            let i64_type = self.emit.ty("i64");
            let extent = self.emit.value(arith::INDEX_CAST, &[*extent], i64_type, &[]);
            let at = self.emit.index(axis as i64);
            self.emit.op(self.emit.spec(memref::STORE).operands(&[extent, list, at]));
        }
        let list = self.address(list);
        let operands = [self.host(), self.emit.index(index as i64), list];
        let block = self.emit.call(host::OUTPUT, &operands, &[self.emit.bytes(1)])[0];
        let address = self.address(block);
        let holds = self.emit.compare(Predicate::Ne, address, self.emit.index(0));
        self.require(holds, &message, [bytes, bytes]);
        whole(block)
    }

    fn launch(
        &mut self,
        position: usize,
        (callee, passed): (&str, &[Dim]),
        values: Vec<Id>,
        op: OperationRef<'c, 'a>,
    ) -> PassResult {
        let Some(info) = self.program.kernels.get(callee) else {
            return Err(PassError::at(&op, format!("calls '{callee}', which is not a kernel")));
        };
        let symbols = &info.symbols;
        let sizes = info.is_size().filter(|is_size| *is_size).count();
        let expected = values.len() + 1;
        let memrefs = info.parameters.iter().filter(|ty| ty.starts_with("memref<")).count();
        if memrefs != expected || sizes != symbols.len() || memrefs + sizes != info.parameters.len()
        {
            let message = format!(
                "expects '{callee}' to take {expected} memrefs and {} sizes; run \
                 'linalg-to-vector' first",
                symbols.len()
            );
            return Err(PassError::at(&op, message));
        }
        let mut symbols = symbols.iter();
        let mut memories: Vec<Memory<'c, 'a>> =
            values.iter().map(|value| self.memory(*value)).collect();
        memories.push(self.scratch(position));
        let mut memories = memories.into_iter();
        let mut operands = vec![];
        for (parameter, is_size) in info.parameters.iter().zip(info.is_size()) {
            let operand = if is_size {
                let symbol = symbols.next().map(|symbol| Dim::symbol(symbol));
                let size = symbol.map(|symbol| Sizes::outside(&symbol, passed));
                size.map(|size| self.emit.size(&size, &self.symbols))
            } else {
                memories.next().map(|memory| self.emit.view(memory, self.emit.ty(parameter)))
            };
            operands.extend(operand);
        }
        match (&info.phases, self.threads) {
            (Some(_), Some(threads)) => {
                operands.push(threads);
                self.emit.call(&launcher(callee), &operands, &[]);
            }
            _ => {
                self.emit.call(callee, &operands, &[]);
            }
        }
        Ok(())
    }

    fn check(&mut self, left: &Dim, relation: Relation, right: &Dim, message: &str) {
        let sizes = [left, right].map(|size| self.emit.exact(size, &self.symbols));
        let [a, b] = sizes.map(|(size, _)| size);
        let equal = |emit: &Emit<'c, 'a>| emit.compare(Predicate::Eq, a, b);
        let holds = match relation {
            Relation::Equal => equal(&self.emit),
            Relation::AtMost => self.emit.compare(Predicate::Le, a, b),
            Relation::EqualOrOne => {
                let one = self.emit.compare(Predicate::Eq, a, self.emit.index(1));
                self.emit.binary(arith::ORI, equal(&self.emit), one)
            }
        };
        // A size that overflows fails every check and is reported as the largest.
        let most = self.emit.index(i64::MAX);
        let (mut holds, mut found) = (holds, [a, b]);
        for (found, (size, exact)) in found.iter_mut().zip(sizes) {
            let Some(exact) = exact else { continue };
            holds = self.emit.binary(arith::ANDI, holds, exact);
            *found = self.emit.select(exact, size, most);
        }
        self.require(holds, message, found);
    }

    /// Fails unless the extents that are known after a step can be computed without overflow.
    fn require_exact(&mut self, known: Option<usize>) {
        let dims: Vec<&Dim> = self.schedule.inexact.get(&known).into_iter().flatten().collect();
        for dim in dims {
            if let (_, Some(exact)) = self.emit.exact(dim, &self.symbols) {
                let most = self.emit.index(i64::MAX);
                self.require(exact, &overflow_message(dim), [most, most]);
            }
        }
    }

    /// An element of an integer value.
    fn element(&self, value: Id, index: i64) -> Value<'c, 'a> {
        let dtype = self.function.types[value].dtype;
        let by = self.emit.index(index * dtype.size() as i64);
        let memory = self.emit.shifted(self.memory(value), by);
        let element = format!("i{}", 8 * dtype.size());
        let loaded = self.emit.load(memory, &element);
        let signed = dtype.is_signed_integer();
        let cast = if signed { arith::INDEX_CAST } else { arith::INDEX_CASTUI };
        self.emit.value(cast, &[loaded], Type::index(self.emit.context), &[])
    }

    /// The memory of a value.
    pub fn memory(&self, value: Id) -> Memory<'c, 'a> {
        match self.homes.homes[value] {
            Home::Input(index) => whole(self.given[index]),
            Home::Result(index) => {
                let before = (0..index).filter(|before| !self.is_returned(*before)).count();
                whole(self.given[self.function.inputs + before])
            }
            Home::Planned(place) => self.at(place),
            Home::Constant(index) => {
                let (name, bytes) =
                    (self.program.constant(self.function, index), &self.homes.constants[index]);
                let name = attr::symbol(self.emit.context, &name);
                let to = self.emit.bytes(bytes.len() as u64);
                whole(self.emit.value(memref::GET_GLOBAL, &[], to, &[("name", name)]))
            }
            Home::Output(_) | Home::Own => match self.own.get(&self.root(value)) {
                Some(memory) => *memory,
                None => unreachable!("a value is given memory before it is computed"),
            },
        }
    }

    fn at(&self, place: Place) -> Memory<'c, 'a> {
        match (place, self.workspace) {
            (Place::Slot(slot), _) => self.slots[&slot],
            (Place::Offset(offset), Some(Memory { buffer, .. })) => {
                Memory { buffer, offset: Offset::Fixed(offset) }
            }
            (Place::Offset(_), None) => unreachable!("what has a workspace was given one"),
        }
    }

    /// The memory planned for a purpose; if there is none, the memory passed to callees that need none.
    pub fn planned(&self, purpose: Purpose) -> Memory<'c, 'a> {
        match (self.homes.place(purpose), self.workspace) {
            (Some(place), _) => self.at(place),
            (None, Some(workspace)) => workspace,
            (None, None) => whole(self.host()),
        }
    }

    /// The scratch of the callee of a step.
    pub fn scratch(&self, position: usize) -> Memory<'c, 'a> {
        self.planned(Purpose::Scratch(position))
    }

    /// Copies results that could not be written in place, releases memory and returns.
    fn finish(&mut self) {
        self.emit.location = self.function.op.location();
        let mut returned = vec![];
        if self.homes.convention != Convention::Static {
            returned.push(self.emit.i32(0));
        }
        for (index, value) in self.function.results.iter().enumerate() {
            let own = self.is_returned(index);
            if own {
                let buffer = if self.handed_over(self.root(*value)) == Some(index)
                    && self.homes.homes[*value] == Home::Own
                {
                    self.emit.opaque(self.memory(*value))
                } else {
                    let bytes = self.emit.bytes_of(&self.extents(*value), self.width(*value));
                    let block = self.allocate(bytes, &[(Purpose::Value(*value), bytes)]);
                    self.emit.copy(self.memory(*value), whole(block), bytes);
                    block
                };
                returned.push(buffer);
                returned.extend(self.extents(*value));
                continue;
            }
            let there = match self.homes.convention {
                Convention::Main => self.homes.homes[*value] == Home::Output(index),
                _ => self.homes.homes[*value] == Home::Result(index),
            };
            if there {
                continue;
            }
            let extents = self.extents(*value);
            let bytes = self.emit.bytes_of(&extents, self.width(*value));
            let target = match self.homes.convention {
                Convention::Main => self.output(index, &extents),
                _ => {
                    let before = (0..index).filter(|before| !self.is_returned(*before)).count();
                    whole(self.given[self.function.inputs + before])
                }
            };
            self.emit.copy(self.memory(*value), target, bytes);
        }
        // The status was defined before the last blocks; a constant may be anywhere before its use.
        for block in self.blocks.clone() {
            self.release(block);
        }
        self.emit.op(self.emit.spec(func::RETURN).operands(&returned));
    }

    /// The size of an element in bytes.
    pub fn width(&self, value: Id) -> i64 {
        self.function.types[value].dtype.size() as i64
    }
}

/// The error message for an input with a wrong extent along an axis. `first` is the input and the axis that define each symbol.
pub fn extent_message(
    inputs: &[Port],
    first: &BTreeMap<Arc<str>, (usize, usize)>,
    (input, axis): (usize, usize),
    dim: &Dim,
) -> String {
    let name = &inputs[input].name;
    let symbols = dim.symbols();
    let definition = symbols.first().and_then(|symbol| Some((symbol, first.get(symbol)?)));
    match definition {
        Some((symbol, (other, at))) if (*other, *at) != (input, axis) => {
            let other = &inputs[*other].name;
            format!(
                "input '{name}': expected {dim} = {{left}} along dimension {axis}, as dimension {at} of input '{other}' is {symbol}; found {{right}}"
            )
        }
        Some(_) => format!(
            "input '{name}': expected {dim} = {{left}} along dimension {axis}, found {{right}}"
        ),
        None => format!("input '{name}': expected {dim} along dimension {axis}, found {{right}}"),
    }
}

/// The error message for a size that overflows.
pub fn overflow_message(dim: &Dim) -> String {
    format!("the size {dim} cannot be computed")
}

/// The error message for an output without memory from the host.
pub fn output_message(name: &str, ty: &irc_tl::Type) -> String {
    format!("output '{name}': expected memory for the bytes of {ty}")
}

/// A whole buffer.
pub fn whole<'c, 'a>(buffer: Value<'c, 'a>) -> Memory<'c, 'a> {
    Memory { buffer, offset: Offset::Fixed(0) }
}

/// The types of arguments and results of a planned function.
pub fn signature<'c>(program: &Program<'c, '_>, number: usize) -> (Vec<Type<'c>>, Vec<Type<'c>>) {
    let (function, homes) = (&program.functions[number], &program.homes[number]);
    let context = irc_mlir::context_of(&function.op);
    let parse = |text: &str| irc_mlir::ty::parse(context, text);
    let buffer = |value: Id| {
        let bytes = bytes_of(&function.types[value]).known();
        parse(&format!("memref<{}xi8>", bytes.unwrap_or(1)))
    };
    let mut inputs: Vec<Type> = (0..function.inputs).map(buffer).collect();
    let host = parse("memref<1xi8>");
    if homes.convention == Convention::Main {
        let ports = program.interface.inputs.iter().zip(&function.types);
        let given = ports.filter(|(port, _)| port.weight.is_none());
        let extents: usize = given.map(|(_, ty)| ty.rank()).sum();
        inputs.extend([parse(&format!("memref<{extents}xi64>")), host]);
        return (inputs, vec![parse("i32")]);
    }
    let returned = program.returned.get(&function.name);
    let is_returned = |index: usize| returned.is_some_and(|returned| returned[index]);
    let mut results = vec![];
    if homes.convention == Convention::Inner {
        results.push(parse("i32"));
    }
    for (index, value) in function.results.iter().enumerate() {
        if is_returned(index) {
            results.push(host);
            results.extend((0..function.types[*value].rank()).map(|_| parse("index")));
        } else {
            inputs.push(buffer(*value));
        }
    }
    inputs.push(parse(&format!("memref<{}xi8>", homes.workspace)));
    let taken = program.scope.taken.get(&function.name).into_iter().flatten();
    inputs.extend(taken.map(|_| parse("index")));
    inputs.push(host);
    (inputs, results)
}

/// Defines the symbols of a step's results, given their extents.
pub fn define<'c, 'a>(
    symbols: &mut Environment<'c, 'a>,
    ty: &irc_tl::Type,
    extents: &[Value<'c, 'a>],
) {
    for (axis, symbol) in alone(ty) {
        symbols.entry(symbol).or_insert(extents[axis]);
    }
}
