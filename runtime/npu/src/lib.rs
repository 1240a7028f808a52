//! Runs programs of the NPU: cycles, and what they compute.
