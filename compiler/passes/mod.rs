//! Every pass of irc, registered by name.
use crate::lowering::ark_to_tl::ArkToTl;
use irc_mlir::register_pass;

/// Registers all passes, once per process; later calls do nothing.
pub fn register_all() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        register_pass(ArkToTl);
    });
}
