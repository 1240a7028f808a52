// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// An update takes the producer of what it writes.
// CHECK-LABEL: func.func @update
// CHECK:         tl.group "copy"({{%arg., %arg.}})
// CHECK:           tl.exp
// CHECK:           tl.update
// CHECK-NOT:     tl.group
func.func @update(%d: tensor<4x8xf32>, %x: tensor<2x8xf32>) -> tensor<4x8xf32> {
  %e = tl.exp %x : tensor<2x8xf32>
  %u = tl.update %e into %d {offsets = array<i64: 2, 0>} : (tensor<4x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  return %u : tensor<4x8xf32>
}
