//! Functions that forward the calls of many launches.
//!
//! LLVM asks at each call of a function whether its address is taken, and looks at all of its users for that, so that many
//! calls of one function take time in proportion to their square. With functions in between it is that of their number.
use irc_mlir::ops::llvm;
use irc_mlir::{
    BlockLike, OperationLike, OperationRef, PassError, PassResult, RegionLike, ValueLike, attr,
    read, walk_collect,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
};

/// The most calls of a function.
const MAX_CALLS: usize = 64;

/// Lets functions forward the calls of each function that has many and stays one.
pub(super) fn forward_calls(module: OperationRef<'_, '_>) -> PassResult {
    let context = irc_mlir::context_of(&module);
    let stays = |op: OperationRef<'_, '_>| {
        let body = op.region(0).ok().and_then(|region| region.first_block());
        body.is_some() && op.attribute("always_inline").is_err()
    };
    let functions = walk_collect(module, |op| read::op_name(&op) == llvm::FUNC && stays(op));
    let names: BTreeSet<String> =
        functions.iter().filter_map(|function| read::string(function, "sym_name")).collect();
    let mut calls: BTreeMap<String, Vec<OperationRef<'_, '_>>> = BTreeMap::new();
    for call in walk_collect(module, |op| read::op_name(&op) == llvm::CALL) {
        let callee = read::symbol(&call, "callee");
        let has_result = call.results().next().is_some();
        if let Some(callee) = callee.filter(|callee| !has_result && names.contains(callee)) {
            calls.entry(callee).or_default().push(call);
        }
    }
    calls.retain(|_, calls| calls.len() > MAX_CALLS);
    let mut text = String::new();
    let mut forwarding = BTreeSet::new();
    for (callee, calls) in &calls {
        let operands: Vec<String> =
            calls[0].operands().map(|operand| operand.r#type().to_string()).collect();
        let types = operands.join(", ");
        let parameters = operands.iter().enumerate().map(|(index, ty)| format!("%{index}: {ty}"));
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        let names: Vec<String> = (0..operands.len()).map(|index| format!("%{index}")).collect();
        let names = names.join(", ");
        let _ = writeln!(text, "llvm.func @{callee}({types})");
        for (number, calls) in calls.chunks(MAX_CALLS).enumerate() {
            let name = format!("{callee}_call_{number}");
            let _ = writeln!(
                text,
                "llvm.func internal @{name}({parameters}) attributes {{no_inline, passthrough = [\"convergent\"]}} {{
                 llvm.call @{callee}({names}) : ({types}) -> ()
                 llvm.return\n}}"
            );
            for call in calls {
                irc_mlir::set_attribute(*call, "callee", attr::symbol(context, &name));
            }
            forwarding.insert(name);
        }
    }
    let body = module.region(0).ok().and_then(|region| region.first_block());
    let (Some(body), Some(parsed)) = (body, irc_mlir::parse_module(context, &text)) else {
        return Err(PassError::at(&module, "cannot forward calls"));
    };
    for op in read::body_ops(parsed.as_operation()) {
        if read::string(&op, "sym_name").is_some_and(|name| forwarding.contains(&name)) {
            body.append_operation((*op).clone());
        }
    }
    Ok(())
}
