//! Moves each fusion group into a kernel function.
//!
//! Before: `tl.group` ops in functions. After: each group is a `tl.launch` of a private `func.func`
//! `@<prefix>kernel_<n>` with the attribute `tl.kernel`, numbered in walk order. Kernels keep the
//! group's location. Their signatures are signless, like generated code: `tl.bitcast`s at the call and
//! inside the kernel restore the sign. Sizes that depend on symbols are symbols of the kernel, and
//! `sizes` of the launch gives the value of each. So are the offsets of a value's slices, if it has many. Results that may be
//! in the memory of an input are marked (`updates`).

mod sizes;
mod slices;
mod updates;

pub(crate) use sizes::Sizes;

use crate::{
    attributes::{KERNEL, KernelInfo, LOOPS, SIZES},
    kernel::element,
};
use irc_dialects::ods::tl::LaunchOperation;
use irc_mlir::melior::ir::attribute::FlatSymbolRefAttribute;
use irc_mlir::ops::func;
use irc_mlir::{
    Block, BlockLike, BlockRef, Context, Erase, OpSpec, OperationLike, OperationRef, OptionKind,
    Options, Pass, PassError, PassOption, PassResult, RegionLike, Type, Value, ValueLike, attr,
    function, read,
};
use irc_tl::Dim;

/// The pass `outline-kernels`.
pub struct OutlineKernels;

impl Pass for OutlineKernels {
    fn name(&self) -> &'static str {
        "outline-kernels"
    }
    fn description(&self) -> &'static str {
        "move each fused group into a kernel function"
    }
    fn options(&self) -> &'static [PassOption] {
        &[PassOption {
            name: "prefix",
            help: "put before every kernel's name",
            default: "",
            kind: OptionKind::String,
        }]
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["func"]
    }
    fn run(&self, module: OperationRef<'_, '_>, options: &Options) -> PassResult {
        for function in irc_mlir::walk_collect(module, |op| read::op_name(&op) == func::FUNC) {
            updates::mark_updates(function).map_err(|message| PassError::at(&function, message))?;
        }
        let groups = irc_mlir::walk_collect(module, |op| read::op_name(&op) == "tl.group");
        let shared = slices::frequent(&groups);
        for (index, (group, is_shared)) in groups.into_iter().zip(shared).enumerate() {
            let name = format!("{}kernel_{index}", options.text("prefix"));
            outline(module, group, &name, is_shared)?;
        }
        Ok(())
    }
}

fn outline<'c: 'a, 'a>(
    module: OperationRef<'c, 'a>,
    group: OperationRef<'c, 'a>,
    name: &str,
    is_shared_slice: bool,
) -> PassResult {
    let context = irc_mlir::context_of(&group);
    let (Some(module_body), Some(block)) = (first_block(&module), group.block()) else {
        return Err(PassError::at(&group, "is not in a module"));
    };
    let mut kind = read::string(&group, "kind").unwrap_or_default();
    let inputs: Vec<Value> = group
        .operands()
        .map(|input| {
            let to = signless(context, input.r#type());
            bitcast(context, input, to, |spec| spec.before(&block, group))
        })
        .collect();
    let result_types: Vec<Type> =
        group.results().map(|result| signless(context, result.r#type())).collect();
    let sizes = if is_shared_slice {
        kind = LOOPS.to_owned();
        slices::with_symbols(group).map_err(|message| PassError::at(&group, message))?
    } else {
        rename_sizes(context, &group)?
    };
    let (input_types, output_types) = own_types(context, &group);

    let body = Block::new(&[]);
    let kernel = function(context, name, &input_types, &output_types, body, group.location())
        .attr("sym_visibility", attr::string(context, "private"))
        .with(KERNEL, &KernelInfo { kind, ..KernelInfo::default() })
        .build();
    let kernel = module_body.append_operation(kernel);
    move_body(context, &group, &kernel, &input_types)?;

    let launch = LaunchOperation::builder(context, group.location())
        .callee(FlatSymbolRefAttribute::new(context, name))
        .inputs(&inputs)
        .outputs(&result_types)
        .build();
    let call = block.insert_operation_before(group, launch.into());
    if !sizes.is_empty() {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        SIZES.write(call, &sizes);
    }
    for (old, new) in group.results().zip(call.results()) {
        let new = bitcast(context, new.into(), old.r#type(), |spec| spec.before(&block, group));
        irc_mlir::replace_all_uses(old.into(), new);
    }
    group.erase();
    Ok(())
}

/// Replaces the sizes of a group that depend on symbols by symbols of the kernel; returns the sizes they stand for.
fn rename_sizes<'c: 'a, 'a>(
    context: &'c Context,
    group: &OperationRef<'c, 'a>,
) -> Result<Vec<Dim>, PassError> {
    let mut ops = read::body_ops(*group);
    ops.pop();
    let (Some(sizes), Some(block)) = (Sizes::of(&ops), first_block(group)) else {
        return Ok(vec![]);
    };
    let renamed = sizes.rename(context, block, &ops);
    renamed.map_err(|message| PassError::at(group, message))?;
    Ok(sizes.passed())
}

/// The signless types of the operands and results of a group's block.
fn own_types<'c: 'a, 'a>(
    context: &'c Context,
    group: &OperationRef<'c, 'a>,
) -> (Vec<Type<'c>>, Vec<Type<'c>>) {
    let Some(block) = first_block(group) else { return (vec![], vec![]) };
    let arguments = (0..block.argument_count()).filter_map(|index| block.argument(index).ok());
    let inputs = arguments.map(|argument| signless(context, argument.r#type())).collect();
    let yielded = block.terminator().map(|end| end.operands().collect::<Vec<_>>());
    let outputs = yielded.unwrap_or_default();
    (inputs, outputs.into_iter().map(|value| signless(context, value.r#type())).collect())
}

/// Moves the group's block into the kernel and returns what it yields.
fn move_body<'c: 'a, 'a>(
    context: &'c Context,
    group: &OperationRef<'c, 'a>,
    kernel: &OperationRef<'c, 'a>,
    input_types: &[Type<'c>],
) -> PassResult {
    let (Ok(source), Ok(target)) = (group.region(0), kernel.region(0)) else {
        return Err(PassError::at(group, "has no region"));
    };
    read::take_body(&target, &source);
    let block = target.first_block();
    let Some((block, yielded)) = block.and_then(|block| Some((block, block.terminator()?))) else {
        return Err(PassError::at(kernel, "has no terminator"));
    };
    for (index, ty) in input_types.iter().enumerate() {
        restore_sign(context, &block, index, *ty);
    }
    let values: Vec<Value> = yielded
        .operands()
        .map(|value| {
            let to = signless(context, value.r#type());
            bitcast(context, value, to, |spec| spec.before(&block, yielded))
        })
        .collect();
    OpSpec::new(context, func::RETURN, yielded.location())
        .operands(&values)
        .before(&block, yielded);
    yielded.erase();
    Ok(())
}

/// Makes an argument signless and replaces its uses by a bitcast of it.
fn restore_sign<'c: 'a, 'a>(
    context: &'c Context,
    block: &BlockRef<'c, 'a>,
    index: usize,
    ty: Type<'c>,
) {
    let (Ok(argument), Some(first)) = (block.argument(index), block.first_operation()) else {
        return;
    };
    let signed = argument.r#type();
    if signed == ty {
        return;
    }
    irc_mlir::set_type(argument.into(), ty);
    let users = irc_mlir::uses(argument.into());
    let cast = bitcast(context, argument.into(), signed, |spec| spec.before(block, first));
    for (user, operand) in users {
        irc_mlir::set_operand(user, operand, cast);
    }
}

/// A `tl.bitcast` unless the types are equal already.
fn bitcast<'c: 'a, 'a>(
    context: &'c Context,
    value: Value<'c, 'a>,
    to: Type<'c>,
    place: impl FnOnce(OpSpec<'c>) -> OperationRef<'c, 'a>,
) -> Value<'c, 'a> {
    if value.r#type() == to {
        return value;
    }
    let location = irc_mlir::location_of(value);
    let spec = OpSpec::new(context, "tl.bitcast", location).operands(&[value]).results(&[to]);
    match place(spec).result(0) {
        Ok(result) => result.into(),
        Err(_) => value,
    }
}

/// A tensor type with signless integers.
fn signless<'c>(context: &'c Context, tensor: Type<'c>) -> Type<'c> {
    element::signless_tensor(context, tensor).unwrap_or(tensor)
}

fn first_block<'c: 'a, 'a>(op: &OperationRef<'c, 'a>) -> Option<BlockRef<'c, 'a>> {
    op.region(0).ok()?.first_block()
}
