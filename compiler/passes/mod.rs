//! Every pass of irc, registered by name.
use crate::fusion::{Fuse, SimplifyTl};
use crate::lowering::{outline_kernels::OutlineKernels, tl_to_linalg::TlToLinalg};
use irc_mlir::register_pass;

/// Registers all passes, once per process; later calls do nothing.
pub fn register_all() {
    register_pass(SimplifyTl);
    register_pass(Fuse);
    register_pass(OutlineKernels);
    register_pass(TlToLinalg);
}
