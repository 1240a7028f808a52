//! What runs a compiled model.
