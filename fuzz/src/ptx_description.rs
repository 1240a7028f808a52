//! Any bytes: the description of a kernel in the first line of PTX, and its constants, are read without a panic; what is
//! read is the same after it is written and read again, and explains every record.

use irc_runtime::{GpuKernel, GpuProgram};

/// Checks the properties of the description for these bytes.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(program) = GpuProgram::from_ptx(&text) else { return };
    let kernel = &program.kernel;
    let written = kernel.describe(b".version 8.0\n", &program.constants);
    let again = GpuProgram::from_ptx(&String::from_utf8_lossy(&written)).expect("was accepted");
    assert_eq!(again.kernel, *kernel, "written and read");
    assert_eq!(again.constants, program.constants, "written and read");
    assert_eq!(GpuKernel::from_ptx(&text).as_ref(), Ok(kernel));
    // The file stands for what a launch may have written.
    kernel.places(bytes);
    for warp in 0..4 {
        kernel.place(bytes, 1, warp);
    }
    if kernel.trace_bytes(2).is_ok() {
        kernel.events(bytes, 2);
    }
}
