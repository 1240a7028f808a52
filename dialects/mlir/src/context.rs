//! Contexts and registries with every upstream dialect and ours.
use crate::bridge;
use std::{cell::RefCell, collections::BTreeMap};

use melior::{
    Context, ContextRef,
    dialect::DialectRegistry,
    ir::operation::OperationLike,
    utility::{register_all_dialects, register_all_llvm_translations, register_all_passes},
};

/// Adds dialects to a registry.
pub type DialectHook = fn(&DialectRegistry);

/// A registry of every upstream dialect plus what the hooks add.
pub fn new_registry(hooks: &[DialectHook]) -> DialectRegistry {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    for hook in hooks {
        hook(&registry);
    }
    register_all_passes();
    // Safety: the registry is live; its entries are copied.
    unsafe { bridge::ircKnowDialects(registry.to_raw()) }
    registry
}

/// A context with [`new_registry`]. Dialects are loaded when parsers and passes need them.
///
/// Single-threaded: irc parallelises over contexts, one per thread.
pub fn new_context(hooks: &[DialectHook]) -> Context {
    let context = Context::new_with_registry(&new_registry(hooks), false);
    register_all_llvm_translations(&context);
    context
}

/// The context of an op, with its full lifetime.
///
/// melior's own reference points at a temporary; here each context has one permanent cell.
pub fn context_of<'c: 'a, 'a>(op: &impl OperationLike<'c, 'a>) -> &'c Context {
    thread_local! {
        static CELLS: RefCell<BTreeMap<usize, &'static ContextRef<'static>>> = const { RefCell::new(BTreeMap::new()) };
    }
    // Safety: the op is live.
    let raw = unsafe { mlir_sys::mlirOperationGetContext(op.to_raw()) };
    let cell = CELLS.with_borrow_mut(|cells| {
        // Safety: a cell only holds the pointer; a context that reuses the address reuses the cell.
        *cells
            .entry(raw.ptr as usize)
            .or_insert_with(|| Box::leak(Box::new(unsafe { ContextRef::from_raw(raw) })))
    });
    // Safety: `Context` and `ContextRef` have the same layout, the cell is never freed, and the
    // context lives for 'c because the op does.
    unsafe { std::mem::transmute::<&'static ContextRef<'static>, &'c Context>(cell) }
}
