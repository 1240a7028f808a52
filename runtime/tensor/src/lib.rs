//! Host tensors: element types, values, npz files.
