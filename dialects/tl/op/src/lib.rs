//! The tensor level.
