//! The stage table.
