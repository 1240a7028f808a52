// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Both sides of a diamond share a kernel, and its top is computed once.
// CHECK-LABEL: func.func @inside
// CHECK:         tl.group "elementwise"(%arg0)
// CHECK-COUNT-1: tl.exp
// CHECK-NOT:     tl.exp
// CHECK-NOT:     tl.group
func.func @inside(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tl.exp %x : tensor<8xf32>
  %l = tl.relu %e : tensor<8xf32>
  %r = tl.sqrt %e : tensor<8xf32>
  %y = tl.add %l, %r : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// One side goes through a matmul: the top cannot be a result of the kernel that needs it.
// CHECK-LABEL: func.func @through_matmul
// CHECK:         %[[E:.*]] = tl.group "elementwise"(%arg0)
// CHECK:         tl.group "contraction"(%[[E]], %arg1)
// CHECK-NOT:     tl.group
func.func @through_matmul(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tl.exp %x : tensor<8x8xf32>
  %m = tl.matmul %e, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = tl.add %m, %e : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
