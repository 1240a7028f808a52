//! Operators of the domain `com.microsoft`, which tools of ONNX Runtime write.

pub(super) mod fused;
pub(super) mod quantized;

/// The domain.
pub(super) const DOMAIN: &str = "com.microsoft";
