//! Contexts and registries with every upstream dialect and ours.
use melior::{
    Context,
    dialect::DialectRegistry,
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
    registry
}

/// A context over [`new_registry`]. Dialects load as parsers and passes ask for them.
///
/// Single-threaded: irc parallelises over contexts, one per thread.
pub fn new_context(hooks: &[DialectHook]) -> Context {
    let context = Context::new_with_registry(&new_registry(hooks), false);
    register_all_llvm_translations(&context);
    context
}
