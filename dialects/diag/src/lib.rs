//! Diagnostics as values, pointing into the user's file.
