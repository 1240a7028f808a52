//! Lowerings: passes that name both ends.
pub mod ark_to_tl;
