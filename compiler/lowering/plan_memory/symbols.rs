//! Determines when sizes are known: the order of a function's steps, and the symbols it takes.
use super::program::{Function, Step, Value};
use super::sizes::may_overflow;
use crate::lowering::outline_kernels::Sizes;
use irc_tl::{Dim, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names of symbols.
pub type Symbols = BTreeSet<Arc<str>>;

/// The symbols of the functions and kernels of a program.
pub struct Scope {
    /// Per kernel: the symbols it takes.
    pub kernels: BTreeMap<String, Vec<String>>,
    /// Per function: the symbols it takes, in order.
    pub taken: BTreeMap<String, Vec<Arc<str>>>,
    /// Per function: its free symbols, which are not extents of its arguments.
    pub free: BTreeMap<String, Symbols>,
}

impl Scope {
    /// The symbols that a step needs before it can run.
    pub fn needs(&self, function: &Function<'_, '_>, step: &Step) -> Symbols {
        let mut found = Symbols::new();
        let mut types = |values: &[Value]| {
            for value in values {
                found.extend(symbols_of(&function.types[*value]));
            }
        };
        match step {
            Step::Launch { callee, operands, results, sizes } => {
                types(operands);
                types(results);
                let symbols = self.kernels.get(callee).into_iter().flatten();
                let passed = |symbol: &String| Sizes::outside(&Dim::symbol(symbol), sizes);
                found.extend(symbols.flat_map(|symbol| passed(symbol).symbols()));
            }
            Step::Host { operands, to, .. } => {
                types(operands);
                types(&[*to]);
            }
            Step::Check { left, right, .. } => {
                found.extend(left.symbols());
                found.extend(right.symbols());
            }
            Step::Call { callees, .. } => {
                types(&step.operands());
                callees.iter().for_each(|callee| found.extend(self.free_symbols(callee)));
            }
            Step::Loop { callee, operands, .. } => {
                types(operands);
                found.extend(self.free_symbols(callee));
            }
            Step::View { .. } | Step::Constant { .. } | Step::Size { .. } => {}
        }
        found
    }

    fn free_symbols(&self, callee: &str) -> Symbols {
        self.free.get(callee).cloned().unwrap_or_default()
    }

    /// Adds a function; its callees must be added before.
    pub fn add(&mut self, function: &Function<'_, '_>) {
        let mut found = Symbols::new();
        let mut defined = Symbols::new();
        for ty in &function.types {
            found.extend(symbols_of(ty));
        }
        let from_inputs = extents(&function.types[..function.inputs]);
        let mut needed = Symbols::new();
        for (step, _) in &function.steps {
            needed.extend(self.needs(function, step));
            match step {
                Step::Size { symbol, .. } => drop(defined.insert(symbol.clone())),
                // Symbols that an earlier step needs are defined elsewhere.
                Step::Call { results, .. } | Step::Loop { results, .. } => {
                    let given = results.iter().flat_map(|value| alone(&function.types[*value]));
                    let given = given.map(|(_, symbol)| symbol);
                    defined.extend(given.filter(|symbol| {
                        !from_inputs.contains_key(symbol) && !needed.contains(symbol)
                    }));
                }
                _ => {}
            }
        }
        found.extend(needed);
        found.retain(|symbol| !defined.contains(symbol));
        let free = found.iter().filter(|symbol| !from_inputs.contains_key(*symbol)).cloned();
        self.free.insert(function.name.clone(), free.collect());
        self.taken.insert(function.name.clone(), found.into_iter().collect());
    }
}

/// All symbols of a type.
pub fn symbols_of(ty: &Type) -> Symbols {
    ty.dims.iter().flat_map(Dim::symbols).collect()
}

/// The dimensions that are exactly one symbol.
pub fn alone(ty: &Type) -> impl Iterator<Item = (usize, Arc<str>)> + '_ {
    ty.dims.iter().enumerate().filter_map(|(axis, dim)| {
        let symbol = dim.symbols().into_iter().next()?;
        (*dim == Dim::symbol(&symbol)).then_some((axis, symbol))
    })
}

/// Symbols that are exactly an extent of an argument, each with the first such place.
pub fn extents(arguments: &[Type]) -> BTreeMap<Arc<str>, (usize, usize)> {
    let mut found = BTreeMap::new();
    for (argument, ty) in arguments.iter().enumerate() {
        for (axis, symbol) in alone(ty) {
            found.entry(symbol).or_insert((argument, axis));
        }
    }
    found
}

/// An order in which the steps can run, and when each symbol is known.
pub struct Schedule {
    /// Steps by number.
    pub order: Vec<usize>,
    /// Position in the order after which a symbol is known; `None` for those known from the start.
    pub known: BTreeMap<Arc<str>, Option<usize>>,
    /// Extents that may overflow, by the position after which they are known.
    pub inexact: BTreeMap<Option<usize>, Vec<Dim>>,
}

/// Orders steps after those that define their symbols, and otherwise keeps the order.
///
/// # Errors
/// A step that cannot run, and the symbol it waits for.
pub fn schedule(function: &Function<'_, '_>, scope: &Scope) -> Result<Schedule, (usize, String)> {
    let taken = scope.taken.get(&function.name).into_iter().flatten();
    let mut schedule = Schedule {
        order: vec![],
        known: taken.map(|symbol| (symbol.clone(), None)).collect(),
        inexact: BTreeMap::new(),
    };
    let mut waiting =
        Waiting { needed: BTreeMap::new(), missing: BTreeMap::new(), ready: BTreeSet::new() };
    let mut computed = vec![false; function.types.len()];
    computed[..function.inputs].fill(true);
    for (number, (step, _)) in function.steps.iter().enumerate() {
        let operands = step.operands().into_iter().filter(|value| !computed[*value]);
        let symbols = scope.needs(function, step).into_iter();
        let symbols = symbols.filter(|symbol| !schedule.known.contains_key(symbol));
        let needs = operands.map(Need::Value).chain(symbols.map(Need::Symbol)).collect();
        waiting.add(function, number, needs);
        // Earlier steps may wait for this one, and for those that it makes ready.
        while let Some((_, number)) = waiting.ready.pop_first() {
            let step = &function.steps[number].0;
            let position = schedule.order.len();
            for value in step.results() {
                computed[value] = true;
                waiting.meet(function, &Need::Value(value));
            }
            for symbol in news(function, step, &schedule.known) {
                waiting.meet(function, &Need::Symbol(symbol.clone()));
                schedule.known.insert(symbol, Some(position));
            }
            schedule.order.push(number);
        }
    }
    if let Some((number, needs)) = waiting.missing.first_key_value() {
        let symbol = needs.iter().find_map(|need| match need {
            Need::Symbol(symbol) => Some(symbol.to_string()),
            Need::Value(_) => None,
        });
        let missing = symbol.unwrap_or_default();
        return Err((*number, format!("needs the size '{missing}', which nothing gives a value")));
    }
    schedule.find_inexact(function);
    Ok(schedule)
}

/// What a step waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Value(Value),
    Symbol(Arc<str>),
}

/// Steps that cannot run yet.
struct Waiting {
    /// The steps that wait for each need.
    needed: BTreeMap<Need, Vec<usize>>,
    /// The needs of each waiting step.
    missing: BTreeMap<usize, BTreeSet<Need>>,
    /// The steps that are ready, checks before the steps that rely on them.
    ready: BTreeSet<(bool, usize)>,
}

impl Waiting {
    fn add(&mut self, function: &Function<'_, '_>, number: usize, needs: BTreeSet<Need>) {
        if needs.is_empty() {
            self.ready.insert((!function.steps[number].0.is_check(), number));
            return;
        }
        for need in &needs {
            self.needed.entry(need.clone()).or_default().push(number);
        }
        self.missing.insert(number, needs);
    }

    fn meet(&mut self, function: &Function<'_, '_>, need: &Need) {
        for number in self.needed.remove(need).unwrap_or_default() {
            let Some(missing) = self.missing.get_mut(&number) else { continue };
            missing.remove(need);
            if missing.is_empty() {
                self.missing.remove(&number);
                self.ready.insert((!function.steps[number].0.is_check(), number));
            }
        }
    }
}

impl Schedule {
    /// Records the extents that may overflow, by when they are known.
    fn find_inexact(&mut self, function: &Function<'_, '_>) {
        let dims = function.types.iter().flat_map(|ty| &ty.dims);
        let dims: BTreeSet<&Dim> = dims.filter(|dim| may_overflow(dim)).collect();
        for dim in dims {
            let symbols = dim.symbols();
            let known: Option<Vec<Option<usize>>> =
                symbols.iter().map(|symbol| self.known.get(symbol).copied()).collect();
            if let Some(known) = known {
                let last = known.into_iter().max().flatten();
                self.inexact.entry(last).or_default().push(dim.clone());
            }
        }
    }
}

/// The symbols that a step defines.
fn news(
    function: &Function<'_, '_>,
    step: &Step,
    known: &BTreeMap<Arc<str>, Option<usize>>,
) -> Vec<Arc<str>> {
    let found: Symbols = match step {
        Step::Size { symbol, .. } => [symbol.clone()].into(),
        Step::Call { results, .. } | Step::Loop { results, .. } => {
            let of = |value: &Value| alone(&function.types[*value]).map(|(_, symbol)| symbol);
            results.iter().flat_map(of).collect()
        }
        _ => Symbols::new(),
    };
    found.into_iter().filter(|symbol| !known.contains_key(symbol)).collect()
}
