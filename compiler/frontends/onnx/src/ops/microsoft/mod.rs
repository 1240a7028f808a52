//! Operators of the domain `com.microsoft`, written by tools of ONNX Runtime.

pub(super) mod fused;
pub(super) mod quantized;

/// The domain.
pub(super) const DOMAIN: &str = "com.microsoft";
