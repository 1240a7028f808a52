// A pipeline prints with the value of every option.
// RUN: %irc-opt --pass-pipeline='builtin.module(outline-kernels{prefix=ffn_},check-stage{stage=kernels})' \
// RUN:   --dump-pass-pipeline -o /dev/null %S/inputs/group.tl.mlir 2>&1 | FileCheck %s

// CHECK: outline-kernels{prefix=ffn_},
// CHECK-NEXT: check-stage{pipeline=host-cpu stage=kernels}
