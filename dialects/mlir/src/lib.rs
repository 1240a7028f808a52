//! The bindings' edge: safe wrappers over MLIR 22 and the C++ bridge.
