//! Adds the C entry points to a module in the `llvm` dialect.
//!
//! Before: `@irc_main` takes one pointer per buffer, and one for the workspace. After: also
//! `int32_t irc_run(void **buffers, void *workspace)`, which unpacks them, and the string
//! `irc_metadata`: the interface as JSON. A function with the attribute `irc.entry` gets an entry
//! point of that name, without metadata, and is itself hidden; where it takes a size instead of a
//! pointer, the slot of `buffers` holds the size.
use irc_mlir::{
    Block, BlockLike, OpSpec, OperationLike, OperationRef, Options, Pass, PassError, PassResult,
    Region, RegionLike, Value, ValueLike, attr, read, ty, walk_collect,
};

/// The pass `emit-entry`.
pub struct EmitEntry;

impl Pass for EmitEntry {
    fn name(&self) -> &'static str {
        "emit-entry"
    }
    fn description(&self) -> &'static str {
        "add the C entry point irc_run and the interface irc_metadata"
    }
    fn dialects(&self) -> &'static [&'static str] {
        &["llvm"]
    }
    fn run(&self, module: OperationRef<'_, '_>, _: &Options) -> PassResult {
        for function in walk_collect(module, |op| read::op_name(&op) == "llvm.func") {
            if function.has_attribute("irc.metadata") {
                emit(function, "irc_run")?;
                let Some(block) = function.block() else { continue };
                block.append_operation(metadata(&function).build());
            } else if let Some(name) = read::string(&function, "irc.entry") {
                emit(function, &name)?;
                let context = irc_mlir::context_of(&function);
                let hidden = attr::parse(context, "#llvm.linkage<internal>");
                irc_mlir::set_attribute(function, "linkage", hidden);
            }
        }
        Ok(())
    }
}

/// Adds the function `name` that calls `main`.
fn emit<'c: 'a, 'a>(main: OperationRef<'c, 'a>, name: &str) -> PassResult {
    let callee = read::string(&main, "sym_name").unwrap_or_default();
    let context = irc_mlir::context_of(&main);
    let location = main.location();
    let body = main.region(0).ok().and_then(|region| region.first_block());
    let (Some(module), Some(body)) = (main.block(), body) else {
        return Err(PassError::at(&main, "has no body"));
    };
    let count = body.argument_count();
    let pointer = ty::parse(context, "!llvm.ptr");
    let i32_type = ty::parse(context, "i32");
    let block = Block::new(&[(pointer, location), (pointer, location)]);
    let one = |spec: OpSpec<'c>| -> Value<'c, '_> {
        match spec.append(&block).result(0) {
            Ok(result) => irc_mlir::rebind(result.into()),
            Err(_) => unreachable!("the op was built with one result"),
        }
    };
    let spec = |name: &str| OpSpec::new(context, name, location);
    let (Ok(buffers), Ok(workspace)) = (block.argument(0), block.argument(1)) else {
        unreachable!("the block was built with two arguments");
    };
    let mut operands: Vec<Value> = (0..count - 1)
        .map(|index| {
            let taken = body.argument(index).map_or(pointer, |argument| argument.r#type());
            let slot = one(spec("llvm.getelementptr")
                .operands(&[buffers.into()])
                .results(&[pointer])
                .attr("rawConstantIndices", attr::parse(context, &format!("array<i32: {index}>")))
                .attr("elem_type", attr::ty(pointer)));
            one(spec("llvm.load").operands(&[slot]).results(&[taken]))
        })
        .collect();
    operands.push(workspace.into());
    let segments = attr::parse(context, &format!("array<i32: {count}, 0>"));
    spec("llvm.call")
        .attr("callee", attr::symbol(context, &callee))
        .attr("operandSegmentSizes", segments)
        .attr("op_bundle_sizes", attr::parse(context, "array<i32>"))
        .operands(&operands)
        .append(&block);
    let zero = spec("llvm.mlir.constant").attr("value", attr::i32(context, 0)).results(&[i32_type]);
    let zero = one(zero);
    spec("llvm.return").operands(&[zero]).append(&block);

    let region = Region::new();
    region.append_block(block);
    let entry = spec("llvm.func")
        .attr("sym_name", attr::string(context, name))
        .attr("function_type", attr::ty(ty::parse(context, "!llvm.func<i32 (ptr, ptr)>")))
        .attr("linkage", attr::parse(context, "#llvm.linkage<external>"))
        .attr("CConv", attr::parse(context, "#llvm.cconv<ccc>"))
        .region(region);
    module.append_operation(entry.build());
    Ok(())
}

fn metadata<'c: 'a, 'a>(main: &OperationRef<'c, 'a>) -> OpSpec<'c> {
    let context = irc_mlir::context_of(main);
    let text = read::string(main, "irc.metadata").unwrap_or_default() + "\0";
    let array = ty::parse(context, &format!("!llvm.array<{} x i8>", text.len()));
    OpSpec::new(context, "llvm.mlir.global", main.location())
        .attr("sym_name", attr::string(context, "irc_metadata"))
        .attr("global_type", attr::ty(array))
        .attr("constant", attr::unit(context))
        .attr("linkage", attr::parse(context, "#llvm.linkage<external>"))
        .attr("addr_space", attr::i32(context, 0))
        .attr("value", attr::string(context, &text))
        .region(Region::new())
}
