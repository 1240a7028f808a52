//! Where every value of a function lives, and for how long.
use super::program::{Function, Step, Value, bytes_of};
use super::symbols::{Schedule, Scope, Symbols, alone, symbols_of};
use irc_planner::memory::{self, Block, Runs};
use irc_tl::{Dim, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Every block of the workspace starts at a multiple of this: a cache line, and the widest vector.
const ALIGNMENT: u64 = 64;

/// How a function gets and gives memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// Every size is known now: the caller gives all memory.
    Static,
    /// The program's first function where sizes depend on symbols: it asks the host for all memory,
    /// results too.
    Main,
    /// A function inside such a program: results whose sizes its caller can tell are given by it,
    /// others are returned.
    Inner,
}

/// Where a value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// An argument's memory.
    Input(usize),
    /// The memory that the caller gives for a result.
    Result(usize),
    /// Memory that the host gives for a result.
    Output(usize),
    /// A constant of the program.
    Constant(usize),
    /// A place planned by live range.
    Planned(Place),
    /// Memory of its own, from the host.
    Own,
}

/// A place that values share by live range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An offset in the workspace.
    Offset(u64),
    /// A slot, whose size is computed when the program runs.
    Slot(usize),
}

/// What asks for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A value.
    Value(Value),
    /// What the callee of a step asks for: a step by position.
    Scratch(usize),
    /// The iteration of a loop, and whether it goes on.
    Counter(usize),
    /// The second memory of a carried value: a loop by position, and the value's number.
    Spare(usize, usize),
}

/// Values that share memory whose size depends on symbols.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    /// The step after which its size is known; `None` when it is from the start.
    pub known: Option<usize>,
    /// It holds as many bytes as the largest of these, each with a value of that size.
    pub bytes: BTreeMap<Dim, Value>,
    /// The positions at which it is used.
    used: Runs,
}

/// What a step asks of its callees.
pub struct Callees<'p> {
    /// Bytes of scratch of kernels and of workspace of functions.
    pub scratch: &'p BTreeMap<String, u64>,
    /// Which results functions return themselves, instead of writing where the caller says.
    pub returned: &'p BTreeMap<String, Vec<bool>>,
}

/// The memory of one function.
pub struct Homes {
    /// How it gets memory.
    pub convention: Convention,
    /// Where each value lives.
    pub homes: Vec<Home>,
    /// The value whose memory each value is.
    pub roots: Vec<Value>,
    /// Bytes of its workspace.
    pub workspace: u64,
    /// The slots.
    pub slots: Vec<Slot>,
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

    /// The place of something planned.
    pub fn place(&self, purpose: Purpose) -> Option<Place> {
        self.places.get(&purpose).copied()
    }
}

struct Request {
    bytes: Dim,
    /// The value whose bytes these are, where they depend on symbols.
    value: Value,
    range: (usize, usize),
}

struct Planner<'p, 'c, 'a> {
    function: &'p Function<'c, 'a>,
    schedule: &'p Schedule,
    callees: &'p Callees<'p>,
    convention: Convention,
    /// The value whose memory a value is.
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

    /// Results that are computed here can be written where they belong, each once.
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
                // Constants are copied to where they must be in the end.
                self.homes[*to] = Some(Home::Constant(self.constants.len()));
                self.constants.push(bytes.clone());
            }
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

    /// The result of a function called: it has memory of its own when its size is not known before.
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
            // The result is a view whose extents are known later: it is copied in the end.
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
        // In the order in which they are needed, as their place among equals depends on it.
        fixed.sort_by_key(|(purpose, block)| {
            (matches!(purpose, Purpose::Scratch(_)), block.first, *purpose)
        });
        let (purposes, blocks): (Vec<Purpose>, Vec<Block>) = fixed.into_iter().unzip();
        let arena = memory::arena(&blocks, ALIGNMENT);
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
        let workspace = arena.bytes;
        Homes { convention, homes, roots, workspace, slots, slots_known, constants, places }
    }
}

/// A slot that is free over the range, of those whose size is known at the same time: one that holds
/// as much already, or any.
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

/// Which results of every function are returned by it: those whose size its caller cannot tell, and
/// those that another function in the same place returns.
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
                        // What one of its callers cannot tell is returned to all of them.
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

/// Whether a function's caller can tell the size of one of its results before it runs.
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
    // Sizes that differ from one iteration to the next: of carried values that stand alone.
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
