// A reproducer whose options have empty defaults can be read back.
// RUN: %irc-opt --outline-kernels --mlir-generate-reproducer=%t %S/inputs/group.tl.mlir > %t.direct
// RUN: %irc-opt --run-reproducer %t | diff %t.direct -
// RUN: FileCheck %s --input-file=%t.direct

// CHECK: func.func private @kernel_0
