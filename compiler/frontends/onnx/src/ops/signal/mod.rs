//! Fourier transforms and windows.

pub(super) mod fourier;
pub(super) mod window;
