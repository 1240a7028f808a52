//! Lowerings between levels, one folder or file each, named by both ends.

pub mod outline_kernels;
pub mod tl_to_linalg;
