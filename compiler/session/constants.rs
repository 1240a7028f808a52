//! The large constants of programs: packed for kernels, and their place in the library or outside.
use super::{
    error::{CompileError, QueryError},
    kernel::{self, KernelObject},
};
use crate::{
    attributes::{KernelInfo, PROGRAM, ProgramInfo},
    codegen::{SymbolScope, data_object},
    interface::{Interface, Port, interface_of},
    lowering::emit_entry::WEIGHTS,
    machine::in_context,
};
use irc_dialects::tl::{self, tensor_type_to_mlir};
use irc_mlir::{BlockLike, Context, OperationLike, OperationRef, RegionLike, read};
use irc_packing::Packing;
use irc_tensor::{ALIGNMENT, TensorType, append_aligned};
use irc_tl::{Constant, DType};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// The place of the large constants of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The caller provides them.
    Given,
    /// They are in the library.
    Linked,
}

/// Marks, for each kernel, the arguments that are constants without other uses: the kernel may choose
/// another order of their elements. Marks those that are small, too, and whether all constants fit in a cache.
pub fn mark<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    main: OperationRef<'c, 'a>,
    weights: &[Constant],
) {
    let Ok(interface) = interface_of(&main) else { return };
    let mut constants: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut large: BTreeSet<Use> = BTreeSet::new();
    for (index, path) in arguments(&read::body_ops(module), main, &interface) {
        let Some(Path { use_: (callee, operand), .. }) = path else { continue };
        let number = interface.inputs[index].weight.and_then(|it| usize::try_from(it).ok());
        if !number.and_then(|number| weights.get(number)).is_some_and(is_small) {
            large.insert((callee.clone(), operand));
        }
        constants.entry(callee).or_default().push(operand);
    }
    let bytes: usize = weights.iter().map(|constant| constant.bytes.len()).sum();
    let functions = kernel::functions(module);
    for (callee, mut arguments) in constants {
        arguments.sort_unstable();
        let is_small = |operand: &usize| !large.contains(&(callee.clone(), *operand));
        let small = arguments.iter().copied().filter(is_small).collect();
        if let Some(kernel) = functions.get(&callee) {
            KernelInfo::update(*kernel, |info| {
                info.constants = arguments;
                info.small = small;
                info.cached = bytes <= MAX_CACHED;
            });
        }
    }
}

/// The maximum number of bytes of constants that are taken to be in a cache when a program runs again.
const MAX_CACHED: usize = 16 << 20;

/// The maximum magnitude of signed bytes whose products with two unsigned bytes fit in 16 bits when they are added.
const MAX_SMALL: u8 = 64;

/// Whether a constant has signed bytes that are small.
fn is_small(constant: &Constant) -> bool {
    let is_small = |byte: &u8| byte.cast_signed().unsigned_abs() <= MAX_SMALL;
    constant.ty.dtype == DType::I8 && constant.bytes.iter().all(is_small)
}

/// A kernel and an operand of it.
type Use = (String, usize);

/// Where a constant is used, if it has a single use.
struct Path<'c, 'a> {
    /// The functions that it is passed to, as parameters of these numbers.
    through: Vec<(OperationRef<'c, 'a>, usize)>,
    /// The launch that reads it.
    use_: Use,
}

/// For each argument of a program its position, and its only launch if it is a constant with a single use.
fn arguments<'c: 'a, 'a>(
    functions: &[OperationRef<'c, 'a>],
    main: OperationRef<'c, 'a>,
    interface: &Interface,
) -> Vec<(usize, Option<Path<'c, 'a>>)> {
    let callees = callees(functions);
    let ports = interface.inputs.iter().enumerate();
    ports
        .map(|(index, port)| (index, port.weight.and_then(|_| path_of(&callees, main, index))))
        .collect()
}

/// The functions that are called from one place only, by name.
fn callees<'c: 'a, 'a>(
    functions: &[OperationRef<'c, 'a>],
) -> BTreeMap<String, OperationRef<'c, 'a>> {
    let mut calls: BTreeMap<String, usize> = BTreeMap::new();
    for op in functions.iter().flat_map(|function| read::body_ops(*function)) {
        for name in ["callee", "body", "then", "otherwise"] {
            if let Some(callee) = read::symbol(&op, name) {
                *calls.entry(callee).or_default() += 1;
            }
        }
    }
    let called_once = functions.iter().filter_map(|function| {
        let name = read::string(function, "sym_name")?;
        (calls.get(&name) == Some(&1)).then_some((name, *function))
    });
    called_once.collect()
}

/// Where an argument of a function is used, as itself, as a value that a loop does not change, or in one of two branches.
fn path_of<'c: 'a, 'a>(
    callees: &BTreeMap<String, OperationRef<'c, 'a>>,
    function: OperationRef<'c, 'a>,
    index: usize,
) -> Option<Path<'c, 'a>> {
    let block = function.region(0).ok()?.first_block()?;
    let uses = irc_mlir::uses(block.argument(index).ok()?.into());
    let [(op, operand)] = uses[..] else { return None };
    let (names, parameter): (&[&str], _) = match read::op_name(&op).as_str() {
        tl::LAUNCH => {
            let use_ = (read::symbol(&op, "callee")?, operand);
            return Some(Path { through: vec![], use_ });
        }
        tl::CALL => (&["callee"], operand),
        // Its condition is before what both branches get.
        tl::IF => (&["then", "otherwise"], operand.checked_sub(1)?),
        tl::LOOP => {
            // After the number of iterations and a condition, values that it carries; the body gets a number and all values.
            let carried = usize::try_from(read::integer(&op, "carried")?).ok()?;
            (&["body"], operand.checked_sub(1).filter(|at| *at > carried)?)
        }
        _ => return None,
    };
    let callee = |name: &&str| callees.get(&read::symbol(&op, name)?).copied();
    let functions: Vec<_> = names.iter().map(callee).collect::<Option<_>>()?;
    let mut paths = vec![];
    for function in &functions {
        let block = function.region(0).ok()?.first_block()?;
        if !irc_mlir::uses(block.argument(parameter).ok()?.into()).is_empty() {
            paths.push(path_of(callees, *function, parameter));
        }
    }
    let [path] = <[_; 1]>::try_from(paths).ok()?;
    let mut path = path?;
    path.through.extend(functions.into_iter().map(|function| (function, parameter)));
    Some(path)
}

/// A program whose constants are packed for its kernels and, if they are in the library, have offsets; and
/// the constants in the order of the program's arguments.
pub fn settle(
    program: &str,
    constants: Vec<Constant>,
    kernels: &BTreeMap<String, Arc<KernelObject>>,
    place: Place,
) -> Result<(String, Vec<Constant>), QueryError> {
    let settled = in_context(|context| settle_in(context, program, constants, kernels, place));
    settled.map_err(|captured| CompileError::Passes(captured).into())
}

/// As [`settle`]; returns `None` after a diagnostic.
pub fn settle_in(
    context: &Context,
    program: &str,
    mut constants: Vec<Constant>,
    kernels: &BTreeMap<String, Arc<KernelObject>>,
    place: Place,
) -> Option<(String, Vec<Constant>)> {
    let has_packed = kernels.values().any(|kernel| !kernel.info.packed.is_empty());
    if constants.is_empty() || place == Place::Given && !has_packed {
        return Some((program.to_owned(), constants));
    }
    let module = irc_mlir::parse_module(context, program)?;
    let functions = read::body_ops(module.as_operation());
    // All other functions are private.
    let is_main = |op: &&OperationRef| !op.has_attribute("sym_visibility");
    let main = *functions.iter().find(is_main)?;
    let mut interface = interface_of(&main).ok()?;
    pack(context, (&functions, main), &mut interface, &mut constants, kernels)?;
    if place == Place::Linked {
        let weight_offsets = offsets(&interface, &constants)?;
        PROGRAM.write(main, &ProgramInfo { weight_offsets, ..ProgramInfo::of(&main) });
    }
    let text = |op| irc_mlir::to_text(&op, false) + "\n";
    Some((functions.into_iter().map(text).collect(), constants))
}

/// Packs constants, and updates the types of their arguments.
fn pack<'c: 'a, 'a>(
    context: &'c Context,
    (functions, main): (&[OperationRef<'c, 'a>], OperationRef<'c, 'a>),
    interface: &mut Interface,
    constants: &mut [Constant],
    kernels: &BTreeMap<String, Arc<KernelObject>>,
) -> Option<()> {
    let mut changed: BTreeMap<usize, OperationRef<'_, '_>> = BTreeMap::new();
    for (index, path) in arguments(functions, main, interface) {
        let Some(Path { through, use_: (callee, operand) }) = path else { continue };
        let packed = &kernels.get(&callee)?.info.packed;
        let Some(packing) = packed.iter().find(|packing| packing.argument() == operand) else {
            continue;
        };
        let number = usize::try_from(interface.inputs[index].weight?).ok()?;
        let constant = constants.get_mut(number)?;
        *constant = packed_constant(constant, packing)?;
        let ty = tensor_type_to_mlir(context, &constant.ty);
        for (function, parameter) in through.into_iter().chain([(main, index)]) {
            let block = function.region(0).ok()?.first_block()?;
            irc_mlir::set_type(block.argument(parameter).ok()?.into(), ty);
            changed.insert(function.to_raw().ptr as usize, function);
        }
        let input = &mut interface.inputs[index];
        input.shape = constant.ty.shape.clone();
        input.dtype = constant.ty.dtype.name().to_owned();
    }
    changed.into_values().try_for_each(irc_mlir::update_function_type)
}

fn packed_constant(constant: &Constant, packing: &Packing) -> Option<Constant> {
    let dtype = constant.ty.dtype;
    let bytes = packing.pack(&constant.bytes, dtype)?;
    Some(Constant::new(
        TensorType::new(packing.dtype().unwrap_or(dtype), [packing.elements()]),
        bytes,
    ))
}

/// The offsets of consecutive, aligned constants: for each argument of a program its offset, or -1.
fn offsets(interface: &Interface, constants: &[Constant]) -> Option<Vec<i64>> {
    let mut end = 0;
    let mut place = |constant: &Constant| {
        let start = usize::next_multiple_of(end, ALIGNMENT);
        end = start + constant.bytes.len();
        start as i64
    };
    let starts: Vec<i64> = constants.iter().map(&mut place).collect();
    let offset = |port: &Port| match port.weight {
        None => Some(-1),
        Some(number) => starts.get(usize::try_from(number).ok()?).copied(),
    };
    interface.inputs.iter().map(offset).collect()
}

/// The bytes of consecutive, aligned constants.
pub fn bytes(constants: &[Constant]) -> Vec<u8> {
    let mut bytes = vec![];
    for constant in constants {
        append_aligned(&mut bytes, &constant.bytes);
    }
    bytes
}

/// An object of the constants; `None` if there are none.
pub fn linked(constants: &[Constant]) -> Result<Option<Vec<u8>>, QueryError> {
    if constants.is_empty() {
        return Ok(None);
    }
    let bytes = bytes(constants);
    Ok(Some(data_object(WEIGHTS, &bytes, ALIGNMENT as u64, SymbolScope::Linkage)?))
}
