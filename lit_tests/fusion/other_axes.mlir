// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// A reduction along the first axis takes its producer and ends its kernel.
// CHECK-LABEL: func.func @columns
// CHECK:         %[[S:.*]] = tl.group "reduction"(%arg0)
// CHECK:           tl.exp
// CHECK:           tl.reduce_sum
// CHECK:         tl.group "elementwise"(%[[S]])
func.func @columns(%x: tensor<4x8xf32>) -> tensor<1x8xf32> {
  %e = tl.exp %x : tensor<4x8xf32>
  %s = tl.reduce_sum %e {axes = array<i64: 0>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %r = tl.relu %s : tensor<1x8xf32>
  return %r : tensor<1x8xf32>
}
