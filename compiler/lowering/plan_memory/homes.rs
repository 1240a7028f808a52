//! Assigns memory to the values of a function, by live range.
use super::program::{Function, Step, Value, bytes_of};
use super::symbols::{Schedule, Scope, Symbols, alone, symbols_of};
use irc_planner::memory::{self, Block, Runs};
use irc_tl::{Dim, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The alignment of blocks in the workspace: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

/// How a function receives memory and returns results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Every size is known at compile time: the caller provides all memory.
    Static,
    /// The main function of a program whose sizes depend on symbols: it requests all memory from the host,
    /// including that of results.
    Main,
    /// A function inside such a program: its caller provides the memory of results whose sizes it can
    /// compute; others are returned.
    Inner,
}

/// The memory of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// An argument's memory.
    Input(usize),
    /// The memory that the caller provides for a result.
    Result(usize),
    /// The memory that the host provides for a result.
    Output(usize),
    /// A constant of the program.
    Constant(usize),
    /// A place planned by live range.
    Planned(Place),
    /// Memory of its own, from the host.
    Own,
}

/// Memory that values share by live range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An offset in the workspace.
    Offset(u64),
    /// A slot, whose size is computed at run time.
    Slot(usize),
}

/// What memory is requested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A value.
    Value(Value),
    /// The scratch of the callee of a step, by position.
    Scratch(usize),
    /// The iteration of a loop, and whether it continues.
    Counter(usize),
    /// The second buffer of a carried value: the position of the loop, and the number of the value.
    Spare(usize, usize),
}

/// Values that share memory whose size depends on symbols.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// The step after which its size is known; `None` if it is known from the start.
    pub known: Option<usize>,
    /// Its size in bytes is the maximum of these, each with a value of that size.
    pub bytes: BTreeMap<Dim, Value>,
    /// The positions at which it is in use.
    used: Runs,
}

/// What a step needs to know about its callees.
pub struct Callees<'p> {
    /// Bytes of scratch of kernels and of workspace of functions.
    pub scratch: &'p BTreeMap<String, u64>,
    /// Which results each function returns instead of writing them to memory of the caller.
    pub returned: &'p BTreeMap<String, Vec<bool>>,
}

/// The memory of one function.
pub struct Homes {
    /// How it receives memory.
    pub convention: Convention,
    /// The memory of each value.
    pub homes: Vec<Home>,
    /// The value whose memory each value uses.
    pub roots: Vec<Value>,
    /// The size of its workspace in bytes.
    pub workspace: u64,
    /// The slots.
    pub slots: Vec<Slot>,
    /// The largest part of the workspace, with its size in bytes.
    pub largest: Option<(Purpose, u64)>,
    /// Slots by the step after which their size is known.
    pub slots_known: BTreeMap<Option<usize>, Vec<usize>>,
    /// The constants.
    pub constants: Vec<Vec<u8>>,
    places: BTreeMap<Purpose, Place>,
}

impl Homes {
    /// Plans a function.
    pub fn plan(
        function: &Function<'_, '_>,
        schedule: &Schedule,
        callees: &Callees<'_>,
        convention: Convention,
    ) -> Self {
        let count = function.types.len();
        let planner = Planner {
            function,
            schedule,
            callees,
            convention,
            roots: (0..count).collect(),
            homes: vec![None; count],
            requests: BTreeMap::new(),
            constants: vec![],
        };
        planner.plan()
    }

    /// The place planned for a purpose.
    pub fn place(&self, purpose: Purpose) -> Option<Place> {
        self.places.get(&purpose).copied()
    }
}

struct Request {
    bytes: Dim,
    /// The value whose size this is, if it depends on symbols.
    value: Value,
    range: (usize, usize),
}

struct Planner<'p, 'c, 'a> {
    function: &'p Function<'c, 'a>,
    schedule: &'p Schedule,
    callees: &'p Callees<'p>,
    convention: Convention,
    /// The value whose memory each value uses.
    roots: Vec<Value>,
    homes: Vec<Option<Home>>,
    requests: BTreeMap<Purpose, Request>,
    constants: Vec<Vec<u8>>,
}

impl Planner<'_, '_, '_> {
    fn plan(mut self) -> Homes {
        for input in 0..self.function.inputs {
            self.homes[input] = Some(Home::Input(input));
        }
        self.find_roots();
        self.find_results();
        for position in 0..self.schedule.order.len() {
            self.step(position);
        }
        let last = self.schedule.order.len();
        for value in &self.function.results {
            self.extend(*value, last);
        }
        self.place()
    }

    fn find_roots(&mut self) {
        for number in &self.schedule.order {
            if let Step::View { from, to, .. } = &self.function.steps[*number].0 {
                self.roots[*to] = self.roots[*from];
            }
        }
    }

    /// Finds results computed here that can be written in place, each once.
    fn find_results(&mut self) {
        let returned = self.callees.returned.get(&self.function.name);
        for (index, value) in self.function.results.iter().enumerate() {
            let root = self.roots[*value];
            if self.homes[root].is_some() || root < self.function.inputs {
                continue;
            }
            let own = returned.is_some_and(|returned| returned[index]);
            self.homes[root] = Some(match self.convention {
                Convention::Main => Home::Output(index),
                Convention::Inner if own => Home::Own,
                Convention::Static | Convention::Inner => Home::Result(index),
            });
        }
    }

    fn step(&mut self, position: usize) {
        let function = self.function;
        let (step, _) = &function.steps[self.schedule.order[position]];
        for operand in step.operands() {
            self.extend(operand, position);
        }
        match step {
            Step::Constant { bytes, to } => {
                // Constants are copied to their destination at the end.
                self.homes[*to] = Some(Home::Constant(self.constants.len()));
                self.constants.push(bytes.clone());
            }
            Step::Host { to, .. } => self.define(*to, position),
            Step::Launch { callee, results, .. } => {
                self.scratch(position, self.callees.scratch.get(callee).copied());
                results.iter().for_each(|result| self.define(*result, position));
            }
            Step::Call { callees, results, .. } => {
                let scratch = callees.iter().filter_map(|callee| self.callees.scratch.get(callee));
                self.scratch(position, scratch.max().copied());
                for (index, result) in results.iter().enumerate() {
                    self.define_controlled(*result, position, self.returns(&callees[0], index));
                }
            }
            Step::Loop { callee, carried, results, .. } => {
                self.scratch(position, self.callees.scratch.get(callee).copied());
                let counter = Request { bytes: 128.into(), value: 0, range: (position, position) };
                self.requests.insert(Purpose::Counter(position), counter);
                for (index, result) in results.iter().enumerate() {
                    let returned = self.returns(callee, index + 1);
                    self.define_controlled(*result, position, returned);
                    if index < *carried && !returned {
                        let bytes = bytes_of(&function.types[*result]);
                        let spare = Request { bytes, value: *result, range: (position, position) };
                        self.requests.insert(Purpose::Spare(position, index), spare);
                    }
                }
            }
            Step::View { .. } | Step::Size { .. } | Step::Check { .. } => {}
        }
    }

    fn returns(&self, callee: &str, result: usize) -> bool {
        self.callees.returned.get(callee).is_some_and(|returned| returned[result])
    }

    /// A result of a called function: it has memory of its own if its size is not known before the call.
    fn define_controlled(&mut self, value: Value, position: usize, returned: bool) {
        if returned || !self.is_sized(value, position) {
            self.homes[value] = Some(Home::Own);
            return;
        }
        self.define(value, position);
    }

    /// Whether the size of a value is known before a step.
    fn is_sized(&self, value: Value, position: usize) -> bool {
        let known = |symbol: &Arc<str>| match self.schedule.known.get(symbol) {
            Some(at) => at.is_none_or(|at| at < position),
            None => false,
        };
        symbols_of(&self.function.types[value]).iter().all(known)
    }

    fn define(&mut self, value: Value, position: usize) {
        match self.homes[value] {
            // The result is a view whose extents are known later: it is copied at the end.
            Some(Home::Output(index)) if !self.is_sized(self.function.results[index], position) => {
            }
            Some(_) => return,
            None => {}
        }
        self.homes[value] = None;
        let bytes = bytes_of(&self.function.types[value]);
        let request = Request { bytes, value, range: (position, position) };
        self.requests.insert(Purpose::Value(value), request);
    }

    fn scratch(&mut self, position: usize, bytes: Option<u64>) {
        let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else { return };
        let bytes = Dim::Known(i64::try_from(bytes).unwrap_or(i64::MAX));
        let request = Request { bytes, value: 0, range: (position, position) };
        self.requests.insert(Purpose::Scratch(position), request);
    }

    fn extend(&mut self, value: Value, position: usize) {
        if let Some(request) = self.requests.get_mut(&Purpose::Value(self.roots[value])) {
            request.range.1 = position;
        }
    }

    fn place(self) -> Homes {
        let mut places = BTreeMap::new();
        let (mut fixed, mut slots) = (vec![], Vec::<Slot>::new());
        for (purpose, request) in &self.requests {
            match request.bytes.known() {
                Some(bytes) => {
                    let (first, last) = request.range;
                    fixed.push((
                        *purpose,
                        Block { bytes: bytes.max(0).unsigned_abs(), first, last },
                    ));
                }
                None => {
                    let slot = slot_for(&mut slots, request, &self.schedule.known);
                    places.insert(*purpose, Place::Slot(slot));
                }
            }
        }
        // In order of first use: blocks of equal size are placed in this order.
        fixed.sort_by_key(|(purpose, block)| {
            (matches!(purpose, Purpose::Scratch(_)), block.first, *purpose)
        });
        let largest = fixed.iter().max_by_key(|(_, block)| block.bytes);
        let largest = largest.map(|(purpose, block)| (*purpose, block.bytes));
        let (purposes, blocks): (Vec<Purpose>, Vec<Block>) = fixed.into_iter().unzip();
        let arena = memory::arena(&blocks, ALIGNMENT);
        // Values of no bytes are in the workspace too, so that there must be one.
        let workspace = arena.bytes.max(u64::from(!blocks.is_empty()));
        let offsets = arena.offsets.into_iter().map(Place::Offset);
        places.extend(purposes.into_iter().zip(offsets));
        let home = |value: Value| {
            let root = self.roots[value];
            let planned = places.get(&Purpose::Value(root));
            self.homes[root].or(planned.map(|place| Home::Planned(*place))).unwrap_or(Home::Own)
        };
        let homes = (0..self.function.types.len()).map(home).collect();
        let mut slots_known: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
        for (index, slot) in slots.iter().enumerate() {
            slots_known.entry(slot.known).or_default().push(index);
        }
        let Self { convention, constants, roots, .. } = self;
        Homes {
            convention,
            homes,
            roots,
            workspace,
            slots,
            largest,
            slots_known,
            constants,
            places,
        }
    }
}

/// A slot that is free over the range, among those whose size is known at the same time; preferably one that
/// already has this size.
fn slot_for(
    slots: &mut Vec<Slot>,
    request: &Request,
    known: &BTreeMap<Arc<str>, Option<usize>>,
) -> usize {
    let known = request.bytes.symbols().iter().filter_map(|name| known[name]).max();
    let (first, end) = (request.range.0 as u64, request.range.1 as u64 + 1);
    let free = |slot: &Slot| slot.known == known && !slot.used.meets(first, end);
    let equal = slots.iter().position(|slot| free(slot) && slot.bytes.contains_key(&request.bytes));
    let at = equal.or_else(|| slots.iter().position(free)).unwrap_or_else(|| {
        slots.push(Slot { known, ..Slot::default() });
        slots.len() - 1
    });
    slots[at].bytes.entry(request.bytes.clone()).or_insert(request.value);
    slots[at].used.insert(first, end);
    at
}

/// The results that each function returns: those whose size its caller cannot compute, and those that
/// another function of the same call returns.
pub fn returned(functions: &[Function<'_, '_>], scope: &Scope) -> BTreeMap<String, Vec<bool>> {
    let named: BTreeMap<&str, &Function<'_, '_>> =
        functions.iter().map(|function| (function.name.as_str(), function)).collect();
    let mut found = BTreeMap::new();
    for function in functions {
        for (step, _) in &function.steps {
            match step {
                Step::Call { callees, results, .. } => {
                    let callees: Vec<_> =
                        callees.iter().map(|callee| named[callee.as_str()]).collect();
                    let tell = |index: usize, result: &Value| {
                        let outer = &function.types[*result];
                        callees.iter().any(|callee| {
                            let inner = &callee.types[callee.results[index]];
                            inner.dims != outer.dims || !told(scope, callee, inner)
                        })
                    };
                    let returned: Vec<bool> = results
                        .iter()
                        .enumerate()
                        .map(|(index, result)| tell(index, result))
                        .collect();
                    for callee in &callees {
                        // A result that one caller cannot compute the size of is returned to all of them.
                        let known = found.entry(callee.name.clone()).or_insert(returned.clone());
                        known.iter_mut().zip(&returned).for_each(|(known, more)| *known |= more);
                    }
                }
                Step::Loop { callee, carried, operands, results } => {
                    let body = named[callee.as_str()];
                    let returned =
                        returned_by_body(function, body, *carried, operands, results, scope);
                    found.insert(callee.clone(), returned);
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether a function's caller can compute the size of one of its results before the call.
fn told(scope: &Scope, callee: &Function<'_, '_>, ty: &Type) -> bool {
    let taken = &scope.taken[&callee.name];
    symbols_of(ty).iter().all(|symbol| taken.contains(symbol))
}

fn returned_by_body(
    function: &Function<'_, '_>,
    body: &Function<'_, '_>,
    carried: usize,
    operands: &[Value],
    results: &[Value],
    scope: &Scope,
) -> Vec<bool> {
    // Sizes that change between iterations: extents of carried values that are one symbol.
    let mut changing = Symbols::new();
    for (index, input) in (1..=carried).enumerate() {
        let (first, next) =
            (&function.types[operands[2 + index]], &body.types[body.results[1 + index]]);
        let here = &body.types[input];
        for (axis, symbol) in alone(here) {
            if first.dims[axis] != here.dims[axis] || next.dims[axis] != here.dims[axis] {
                changing.insert(symbol);
            }
        }
    }
    let fixed = |ty: &Type| {
        told(scope, body, ty) && symbols_of(ty).iter().all(|symbol| !changing.contains(symbol))
    };
    let mut returned = vec![false];
    for index in 0..carried {
        let next = &body.types[body.results[1 + index]];
        let same = [
            &function.types[operands[2 + index]],
            &body.types[1 + index],
            &function.types[results[index]],
        ];
        returned.push(!(fixed(next) && same.iter().all(|ty| ty.dims == next.dims)));
    }
    for value in &body.results[1 + carried..] {
        returned.push(!fixed(&body.types[*value]));
    }
    returned
}
