//! When sizes are known: the order of a function's steps, and the symbols it takes.
use super::program::{Function, Step, Value};
use crate::lowering::outline_kernels::Sizes;
use irc_tl::{Dim, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names of symbols.
pub type Symbols = BTreeSet<Arc<str>>;

/// What a program says of the symbols of its functions and kernels.
pub struct Scope {
    /// Per kernel: the symbols it takes.
    pub kernels: BTreeMap<String, Vec<String>>,
    /// Per function: the symbols it takes, in order.
    pub taken: BTreeMap<String, Vec<Arc<str>>>,
    /// Per function: those of them that no extent of its arguments gives.
    pub asked: BTreeMap<String, Symbols>,
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
            Step::Check { left, right, .. } => {
                found.extend(left.symbols());
                found.extend(right.symbols());
            }
            Step::Call { callees, .. } => {
                types(&step.operands());
                callees.iter().for_each(|callee| found.extend(self.asked_by(callee)));
            }
            Step::Loop { callee, operands, .. } => {
                types(operands);
                found.extend(self.asked_by(callee));
            }
            Step::View { .. } | Step::Constant { .. } | Step::Size { .. } => {}
        }
        found
    }

    fn asked_by(&self, callee: &str) -> Symbols {
        self.asked.get(callee).cloned().unwrap_or_default()
    }

    /// Adds a function whose callees were added before.
    pub fn add(&mut self, function: &Function<'_, '_>) {
        let mut found = Symbols::new();
        let mut defined = Symbols::new();
        for ty in &function.types {
            found.extend(symbols_of(ty));
        }
        for (step, _) in &function.steps {
            found.extend(self.needs(function, step));
            if let Step::Size { symbol, .. } = step {
                defined.insert(symbol.clone());
            }
        }
        let from_inputs = extents(&function.types[..function.inputs]);
        for symbol in results_of_control(function) {
            if !from_inputs.contains_key(&symbol) && !found_before(self, function, &symbol) {
                defined.insert(symbol);
            }
        }
        found.retain(|symbol| !defined.contains(symbol));
        let asked = found.iter().filter(|symbol| !from_inputs.contains_key(*symbol)).cloned();
        self.asked.insert(function.name.clone(), asked.collect());
        self.taken.insert(function.name.clone(), found.into_iter().collect());
    }
}

/// Whether a symbol that stands in the result of control flow is needed by a step before it: then it
/// comes from elsewhere.
fn found_before(scope: &Scope, function: &Function<'_, '_>, symbol: &Arc<str>) -> bool {
    for (step, _) in &function.steps {
        if scope.needs(function, step).contains(symbol) {
            return true;
        }
        let control = matches!(step, Step::Call { .. } | Step::Loop { .. });
        let gives = |value: &Value| alone(&function.types[*value]).any(|(_, name)| name == *symbol);
        if control && step.results().iter().any(gives) {
            return false;
        }
    }
    false
}

fn results_of_control(function: &Function<'_, '_>) -> Symbols {
    let mut found = Symbols::new();
    for (step, _) in &function.steps {
        if matches!(step, Step::Call { .. } | Step::Loop { .. }) {
            for value in step.results() {
                found.extend(alone(&function.types[value]).map(|(_, symbol)| symbol));
            }
        }
    }
    found
}

/// All symbols of a type.
pub fn symbols_of(ty: &Type) -> Symbols {
    ty.dims.iter().flat_map(Dim::symbols).collect()
}

/// The dimensions that are one symbol each.
pub fn alone(ty: &Type) -> impl Iterator<Item = (usize, Arc<str>)> + '_ {
    ty.dims.iter().enumerate().filter_map(|(axis, dim)| {
        let symbol = dim.symbols().into_iter().next()?;
        (*dim == Dim::symbol(&symbol)).then_some((axis, symbol))
    })
}

/// Where symbols stand alone as the extent of an argument: the first such place of each.
pub fn extents(arguments: &[Type]) -> BTreeMap<Arc<str>, (usize, usize)> {
    let mut found = BTreeMap::new();
    for (argument, ty) in arguments.iter().enumerate() {
        for (axis, symbol) in alone(ty) {
            found.entry(symbol).or_insert((argument, axis));
        }
    }
    found
}

/// The steps in an order in which they can run, and when each symbol is known.
pub struct Schedule {
    /// Steps by number.
    pub order: Vec<usize>,
    /// Position in the order after which a symbol is known; `None` for those known from the start.
    pub known: BTreeMap<Arc<str>, Option<usize>>,
}

/// Puts steps behind those that give their symbols a value; the order stays otherwise.
///
/// # Errors
/// A step that waits forever, and the symbol it waits for.
pub fn schedule(function: &Function<'_, '_>, scope: &Scope) -> Result<Schedule, (usize, String)> {
    let taken = scope.taken.get(&function.name).into_iter().flatten();
    let mut schedule =
        Schedule { order: vec![], known: taken.map(|symbol| (symbol.clone(), None)).collect() };
    let mut computed = vec![false; function.types.len()];
    computed[..function.inputs].fill(true);
    let mut waiting: Vec<usize> = vec![];
    for number in 0..function.steps.len() {
        waiting.push(number);
        // What came before may wait for this, and for what it lets run.
        while let Some(at) = next(function, scope, &waiting, &schedule, &computed) {
            let number = waiting.remove(at);
            let step = &function.steps[number].0;
            let position = schedule.order.len();
            let news = news(function, step, &schedule.known);
            step.results().into_iter().for_each(|value| computed[value] = true);
            schedule.order.push(number);
            schedule.known.extend(news.into_iter().map(|symbol| (symbol, Some(position))));
        }
    }
    match waiting.first() {
        None => Ok(schedule),
        Some(number) => {
            let needs = scope.needs(function, &function.steps[*number].0);
            let missing = needs.into_iter().find(|symbol| !schedule.known.contains_key(symbol));
            let missing = missing.map_or_else(String::new, |symbol| symbol.to_string());
            Err((*number, format!("needs the size '{missing}', which nothing gives a value")))
        }
    }
}

/// The next of the waiting steps: checks before what relies on them, else the first that can run.
fn next(
    function: &Function<'_, '_>,
    scope: &Scope,
    waiting: &[usize],
    schedule: &Schedule,
    computed: &[bool],
) -> Option<usize> {
    let ready = |at: &usize| {
        let step = &function.steps[waiting[*at]].0;
        step.operands().iter().all(|value| computed[*value])
            && scope.needs(function, step).iter().all(|s| schedule.known.contains_key(s))
    };
    let is_check = |at: &usize| function.steps[waiting[*at]].0.is_check();
    let mut checks = (0..waiting.len()).filter(is_check);
    checks.find(ready).or_else(|| (0..waiting.len()).find(ready))
}

/// The symbols that a step gives a value.
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
