//! Fourier transforms, and what goes with them.

pub(super) mod fourier;
pub(super) mod window;
