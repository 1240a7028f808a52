//! ARK model and plan files: read, validate, write.
