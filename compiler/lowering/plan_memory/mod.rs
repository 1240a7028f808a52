//! Assigns memory to every value of a program.
//!
//! Before: `@main`, and functions inside it, on tensors, whose bodies are `tl.launch`, views,
//! constants, branches, loops, symbols and checks; the kernels take memrefs (operands, results, then
//! scratch of `workspace_bytes` bytes) and the sizes that `symbols` names, as indices.
//!
//! After, if every size is known: `@irc_main` on raw bytes: one `memref<?xi8>` of fixed size per
//! input, per result, and one for the workspace, in this order. Intermediates and scratch share the
//! workspace by live range; its size and the interface are in `#tl.program`.
//!
//! After, if sizes depend on symbols: `@irc_main` takes the inputs, their extents, and the host, from
//! which it requests memory for values and results (see [`super::emit_entry`]). Sizes are computed at
//! run time; values share slots by live range, each as large as the largest of its values. Slots whose
//! sizes are known at the same time are requested together. A failed check or allocation ends the
//! program.
//!
//! The functions of branches and loops remain functions. Their callers provide memory for results
//! whose size they can compute; other results are returned in memory of their own.

mod control;
mod emit;
mod function;
mod homes;
mod messages;
pub(crate) mod program;
mod repeat;
mod sizes;
mod symbols;

use crate::{
    attributes::{GRAPH, KernelInfo},
    interface::interface_of,
    lowering::emit_entry::host,
};
use function::{Writer, signature};
use homes::{Callees, Convention, Homes, returned};
use irc_mlir::ops::{func, memref};
use irc_mlir::{
    Context, Erase, Location, OpSpec, OperationLike, OperationRef, Options, Pass, PassError,
    PassResult, Type, attr, read, ty, walk_collect,
};
use irc_runtime::{HostCall, Interface};
use messages::{Messages, workspace_message};
use program::{Function, Step};
use std::collections::{BTreeMap, BTreeSet};
use symbols::{Schedule, Scope, schedule};

/// Workspaces of at least this many bytes are described in the interface, in case they cannot be allocated.
const LARGE_WORKSPACE: u64 = 1 << 28;

/// The pass `plan-memory`.
pub struct PlanMemory;

impl Pass for PlanMemory {
    fn name(&self) -> &'static str {
        "plan-memory"
    }
    fn description(&self) -> &'static str {
        "give every value of @main a place in its inputs, its results or one shared workspace"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["arith", "cf", "func", "memref", "scf"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        let functions = walk_collect(module, |op| read::op_name(&op) == func::FUNC);
        let kernels: BTreeMap<String, KernelInfo> = functions
            .iter()
            .filter_map(|op| Some((read::string(op, "sym_name")?, KernelInfo::read(op)?)))
            .collect();
        let mut mains: Vec<OperationRef<'_, '_>> =
            functions.iter().copied().filter(|op| GRAPH.is_on(op)).collect();
        if mains.is_empty() {
            let named =
                |op: &&OperationRef| read::string(*op, "sym_name").as_deref() == Some("main");
            mains.extend(functions.iter().find(named));
        }
        let mut read = vec![];
        for op in mains {
            let function = Function::read(op);
            read.push(function.map_err(|(op, message)| PassError::at(&op, message))?);
        }
        for program in programs(read) {
            plan(program, &kernels)?;
        }
        Ok(())
    }
}

/// The main functions, each with the functions inside it, callees before callers.
fn programs<'c, 'a>(functions: Vec<Function<'c, 'a>>) -> Vec<Vec<Function<'c, 'a>>> {
    let called: BTreeSet<String> = functions.iter().flat_map(Function::callees).collect();
    let (mut inner, mains): (BTreeMap<String, Function>, Vec<Function>) = {
        let (inner, mains): (Vec<_>, Vec<_>) =
            functions.into_iter().partition(|function| called.contains(&function.name));
        (inner.into_iter().map(|function| (function.name.clone(), function)).collect(), mains)
    };
    let mut programs = vec![];
    for main in mains {
        let mut program = vec![];
        take(main, &mut inner, &mut program);
        programs.push(program);
    }
    programs
}

fn take<'c, 'a>(
    function: Function<'c, 'a>,
    inner: &mut BTreeMap<String, Function<'c, 'a>>,
    program: &mut Vec<Function<'c, 'a>>,
) {
    for callee in function.callees() {
        if let Some(callee) = inner.remove(&callee) {
            take(callee, inner, program);
        }
    }
    program.push(function);
}

/// A program that is being written.
pub struct Program<'c, 'a> {
    functions: Vec<Function<'c, 'a>>,
    schedules: Vec<Schedule>,
    homes: Vec<Homes>,
    kernels: BTreeMap<String, KernelInfo>,
    scope: Scope,
    returned: BTreeMap<String, Vec<bool>>,
    signatures: BTreeMap<String, (Vec<Type<'c>>, Vec<Type<'c>>)>,
    messages: Messages,
    /// The functions of the host of the interface, by number.
    calls: BTreeMap<HostCall, usize>,
    interface: Interface,
    main: String,
    /// The functions by name.
    numbers: BTreeMap<String, usize>,
}

impl<'c, 'a> Program<'c, 'a> {
    fn function(&self, name: &str) -> &Function<'c, 'a> {
        match self.numbers.get(name) {
            Some(number) => &self.functions[*number],
            None => unreachable!("'{name}' was read with its caller"),
        }
    }

    fn is_returned(&self, function: &str, result: usize) -> bool {
        self.returned.get(function).is_some_and(|returned| returned[result])
    }

    /// Whether a step launches a kernel whose work is divided among threads.
    fn divides(&self, step: &Step) -> bool {
        let Step::Launch { callee, .. } = step else { return false };
        self.kernels.get(callee).is_some_and(|kernel| kernel.phases.is_some())
    }

    /// The number of a function of the host.
    fn call(&self, function: &HostCall) -> usize {
        match self.calls.get(function) {
            Some(number) => *number,
            None => unreachable!("every function of the host is collected before"),
        }
    }

    /// The name of the global that holds a constant.
    fn constant(&self, function: &Function<'_, '_>, index: usize) -> String {
        format!("irc_{}_constant_{index}", function.name)
    }
}

fn plan(functions: Vec<Function<'_, '_>>, kernels: &BTreeMap<String, KernelInfo>) -> PassResult {
    let Some(main) = functions.last() else { return Ok(()) };
    let mut interface =
        interface_of(&main.op).map_err(|message| PassError::at(&main.op, message))?;
    let dynamic = functions.iter().any(Function::is_dynamic);
    let name = main.name.clone();
    let mut scope = Scope {
        kernels: kernels
            .iter()
            .map(|(name, kernel)| (name.clone(), kernel.symbols.clone()))
            .collect(),
        taken: BTreeMap::new(),
        free: BTreeMap::new(),
    };
    functions.iter().for_each(|function| scope.add(function));
    if let Some(missing) = scope.free[&name].first() {
        let message = format!("needs the size '{missing}', which no input gives");
        return Err(PassError::at(&main.op, message));
    }
    let returned = if dynamic { returned(&functions, &scope) } else { BTreeMap::new() };
    let (mut schedules, mut homes) = (vec![], vec![]);
    let mut scratch: BTreeMap<String, u64> =
        kernels.iter().map(|(name, kernel)| (name.clone(), kernel.scratch())).collect();
    for function in &functions {
        let schedule = schedule(function, &scope)
            .map_err(|(step, message)| PassError::at(&function.steps[step].1, message))?;
        let convention = match (dynamic, function.name == name) {
            (false, _) => Convention::Static,
            (true, true) => Convention::Main,
            (true, false) => Convention::Inner,
        };
        let callees = Callees { scratch: &scratch, returned: &returned };
        let planned = Homes::plan(function, &schedule, &callees, convention);
        if i64::try_from(planned.workspace).is_err() {
            let op = largest(function).map_or(function.op, |step| function.steps[step].1);
            let found = planned.workspace;
            let message =
                format!("expected values that fit in memory together: found {found} bytes");
            return Err(PassError::at(&op, message));
        }
        scratch.insert(function.name.clone(), planned.workspace);
        schedules.push(schedule);
        homes.push(planned);
    }
    interface.workspace_bytes = if dynamic { 0 } else { scratch[&name] };
    let launched = |(step, _): &(Step, _)| match step {
        Step::Launch { callee, .. } => kernels.get(callee)?.phases.as_ref(),
        _ => None,
    };
    let divided = functions.iter().flat_map(|function| &function.steps).filter_map(launched);
    interface.thread_bytes = divided.map(|phases| phases.part_bytes).max().unwrap_or_default();
    interface.calls = host_calls(&functions);
    let messages = match dynamic {
        true => Messages::new(&functions, (&schedules, &homes), &interface),
        false => Messages::default(),
    };
    interface.checks = messages.texts.clone();
    if interface.workspace_bytes >= LARGE_WORKSPACE {
        let last = functions.len() - 1;
        interface.workspace_message =
            workspace_message(&functions[last], &schedules[last], &homes[last]);
    }
    interface.convention = match (dynamic, interface.calls.is_empty()) {
        (false, _) => 0,
        (true, true) => Interface::SIZED,
        (true, false) => Interface::CALLS,
    };
    let calls = interface.calls.iter().cloned().zip(0..).collect();
    let names = functions.iter().map(|function| function.name.clone());
    let numbers = names.zip(0..).collect();
    let kernels = kernels.clone();
    let signatures = BTreeMap::new();
    let mut program = Program {
        functions,
        schedules,
        homes,
        kernels,
        scope,
        returned,
        signatures,
        messages,
        calls,
        interface,
        main: name,
        numbers,
    };
    for number in 0..program.functions.len() {
        let signature = signature(&program, number);
        program.signatures.insert(program.functions[number].name.clone(), signature);
    }
    write(&program)
}

/// The step with the largest result.
fn largest(function: &Function<'_, '_>) -> Option<usize> {
    let bytes = |value: &program::Value| program::bytes_of(&function.types[*value]).known();
    let largest = |(step, _): &(Step, _)| step.results().iter().filter_map(bytes).max();
    (0..function.steps.len()).max_by_key(|step| largest(&function.steps[*step]))
}

fn write(program: &Program<'_, '_>) -> PassResult {
    for number in 0..program.functions.len() {
        let function = &program.functions[number];
        let (context, location) = (irc_mlir::context_of(&function.op), function.op.location());
        let Some(parent) = function.op.block() else {
            return Err(PassError::at(&function.op, "is not in a module"));
        };
        for (index, bytes) in program.homes[number].constants.iter().enumerate() {
            let name = program.constant(function, index);
            constant(context, &name, bytes, location).before(&parent, function.op);
        }
        Writer::write(program, number)?;
    }
    let main = &program.functions[program.functions.len() - 1];
    if program.interface.is_sized() {
        let steps = program.functions.iter().flat_map(|function| &function.steps);
        let divides = steps.into_iter().any(|(step, _)| program.divides(step));
        host::declare(main.op, !program.interface.calls.is_empty(), divides)?;
    }
    for function in &program.functions {
        function.op.erase();
    }
    Ok(())
}

fn constant<'c>(
    context: &'c Context,
    name: &str,
    bytes: &[u8],
    location: Location<'c>,
) -> OpSpec<'c> {
    let count = bytes.len();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    let value = if bytes.is_empty() {
        "dense<> : tensor<0xi8>".to_owned()
    } else {
        format!("dense<\"0x{hex}\"> : tensor<{count}xi8>")
    };
    OpSpec::new(context, memref::GLOBAL, location)
        .attr("sym_name", attr::string(context, name))
        .attr("sym_visibility", attr::string(context, "private"))
        .attr("type", attr::ty(ty::parse(context, &format!("memref<{count}xi8>"))))
        .attr("initial_value", attr::parse(context, &value))
        .attr("constant", attr::unit(context))
        .attr("alignment", attr::i64(context, 64))
}

/// Every function of the host that a program applies, in the order of its first use.
fn host_calls(functions: &[Function<'_, '_>]) -> Vec<HostCall> {
    let (mut found, mut known) = (vec![], BTreeSet::new());
    for (step, _) in functions.iter().flat_map(|function| &function.steps) {
        if let Step::Host { function, .. } = step
            && known.insert(function.clone())
        {
            found.push(function.clone());
        }
    }
    found
}
