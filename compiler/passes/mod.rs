//! Every pass of irc, registered by name.

/// Registers all passes, once per process; later calls do nothing.
pub fn register_all() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {});
}
