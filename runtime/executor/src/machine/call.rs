//! Calls kernels for consecutive task indices.
//!
//! Task indices come in ascending order at one of two distances, so their digits are incremented instead of
//! computed by division, and the address of each operand follows from the digits.

use std::ffi::c_void;

use super::bound::BoundKernel;
use super::shared_values::{Lookup, SharedSlots};
use crate::code;
use crate::memory::Block;

/// The digits of consecutive tasks.
pub(crate) struct Walk {
    task: i64,
    digits: [i64; 4],
    jump: i64,
    jump_digits: [i64; 4],
}

impl Walk {
    /// Starts at a task; later tasks are at distance 1 or `jump`.
    pub(crate) fn new(kernel: &BoundKernel, task: i64, jump: i64) -> Self {
        let total: i64 = kernel.counts.iter().product();
        // A jump out of the grid never happens.
        let jump_digits = kernel.digits(jump.min(total - 1));
        Self { task, digits: kernel.digits(task), jump, jump_digits }
    }

    #[inline]
    fn go_to(&mut self, kernel: &BoundKernel, task: i64) {
        let distance = task - self.task;
        if distance == 0 {
            return;
        }
        self.task = task;
        match distance {
            1 => self.add(&kernel.counts, &[0, 0, 0, 1]),
            distance if distance == self.jump => {
                let digits = self.jump_digits;
                self.add(&kernel.counts, &digits);
            }
            _ => self.digits = kernel.digits(task),
        }
    }

    #[inline]
    fn add(&mut self, counts: &[i64; 4], digits: &[i64; 4]) {
        let mut carry = 0;
        for dim in (0..4).rev() {
            let sum = self.digits[dim] + digits[dim] + carry;
            carry = i64::from(sum >= counts[dim]);
            self.digits[dim] = sum - carry * counts[dim];
        }
    }
}

/// The state of a thread that calls kernels.
pub(crate) struct Caller {
    pointers: Vec<*mut c_void>,
    scratch: Block,
    /// Memory for values that a kernel could share but does not.
    unshared: Block,
}

impl Caller {
    /// A caller with scratch memory, and memory for the shared value of a kernel, of these sizes.
    pub(crate) fn new(scratch_bytes: u64, shared_bytes: u64) -> Result<Self, String> {
        let block = |bytes| {
            Block::new(bytes)
                .ok_or_else(|| format!("cannot allocate {bytes} bytes of scratch memory"))
        };
        let (scratch, unshared) = (block(scratch_bytes)?, block(shared_bytes)?);
        Ok(Self { pointers: vec![], scratch, unshared })
    }

    /// Runs a kernel for one task, with the shared values of the step's functions.
    ///
    /// # Errors
    /// The status that the kernel returned, if it is not 0.
    #[inline]
    pub(crate) fn call(
        &mut self,
        kernel: &BoundKernel,
        walk: &mut Walk,
        task: i64,
        shared: Option<&[SharedSlots]>,
    ) -> Result<(), i32> {
        walk.go_to(kernel, task);
        let digits = walk.digits;
        let mut mask = 0;
        for (dim, (digit, count)) in digits.into_iter().zip(kernel.counts).enumerate() {
            mask |= usize::from(digit + 1 == count) << dim;
        }
        let Some(function) = kernel.functions[mask & 15] else { return Err(i32::MIN) };
        let count = kernel.operands.len();
        if self.pointers.len() <= count {
            self.pointers.resize(count + 1, std::ptr::null_mut());
        }
        for (pointer, operand) in self.pointers.iter_mut().zip(&kernel.operands) {
            let [a, b, c, d] = operand.steps;
            let [i, j, k, l] = digits.map(|digit| digit as usize);
            // Each sum is below the size of a buffer.
            let bytes = a.wrapping_mul(i).wrapping_add(b.wrapping_mul(j));
            let bytes = bytes.wrapping_add(c.wrapping_mul(k)).wrapping_add(d.wrapping_mul(l));
            *pointer = operand.base.wrapping_add(bytes).cast();
        }
        let Some(value) = function.shared_value else { return self.enter(function.entry) };
        let window = kernel.shared_values[value].window(kernel.counts, digits);
        match shared.map_or(Lookup::Busy, |shared| shared[value].find(window)) {
            Lookup::Filled(address) => {
                self.pointers[count] = address;
                self.enter(function.entry)
            }
            Lookup::Empty(slot, address) => {
                self.pointers[count] = address;
                self.enter(function.entry)?;
                slot.put(address);
                Ok(())
            }
            Lookup::Busy => {
                self.pointers[count] = self.unshared.address();
                self.enter(function.entry)
            }
        }
    }

    /// Calls a function on the current addresses.
    #[inline]
    fn enter(&mut self, entry: code::Entry) -> Result<(), i32> {
        // Safety: every address was checked to be in its buffer when the plan was prepared, and the
        // code accesses memory from there as its description states; scratch belongs to this thread,
        // and so does a shared value until it is filled.
        let code = unsafe { entry(self.pointers.as_ptr(), self.scratch.address()) };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn walks_give_the_digits_of_division(
            counts in prop::array::uniform4(1i64..6), start in 0i64..50, jump in 1i64..20,
            steps in prop::collection::vec(any::<bool>(), 0..30),
        ) {
            let kernel = BoundKernel { counts, functions: [None; 16], shared_values: vec![], operands: vec![] };
            let total: i64 = counts.iter().product();
            let mut task = start % total;
            let mut walk = Walk::new(&kernel, task, jump);
            for far in steps {
                task += if far { jump } else { 1 };
                if task >= total {
                    break;
                }
                walk.go_to(&kernel, task);
                prop_assert_eq!(walk.digits, kernel.digits(task));
            }
        }
    }
}
