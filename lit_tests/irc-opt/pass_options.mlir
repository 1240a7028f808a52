// Options of a pass reach it; what is not given has its default.
// RUN: %irc-opt --pass-pipeline='builtin.module(outline-kernels)' %S/inputs/group.tl.mlir | FileCheck %s
// RUN: %irc-opt --pass-pipeline='builtin.module(outline-kernels{prefix=ffn_})' %S/inputs/group.tl.mlir \
// RUN:   | FileCheck %s --check-prefix=PREFIX

// CHECK: func.func private @kernel_0
// PREFIX: func.func private @ffn_kernel_0
