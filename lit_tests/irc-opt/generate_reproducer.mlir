// --mlir-generate-reproducer writes one without a failure; running it gives the same result.
// RUN: %irc-opt --outline-kernels=prefix=ffn_ --mlir-generate-reproducer=%t %S/inputs/group.tl.mlir > %t.direct
// RUN: %irc-opt --run-reproducer %t > %t.again
// RUN: diff %t.direct %t.again
// RUN: FileCheck %s --input-file=%t.again

// CHECK: func.func private @ffn_kernel_0
