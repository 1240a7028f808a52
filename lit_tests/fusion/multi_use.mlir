// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// An intermediate that is returned becomes one more result of the kernel.
// CHECK-LABEL: func.func @returned
// CHECK:         %[[G:.*]]:2 = tl.group "elementwise"(%arg0)
// CHECK:           tl.yield %[[E:.*]], %[[R:.*]] :
// CHECK:         return %[[G]]#0, %[[G]]#1
func.func @returned(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tl.exp %x : tensor<8xf32>
  %r = tl.relu %e : tensor<8xf32>
  return %e, %r : tensor<8xf32>, tensor<8xf32>
}

// A cheap producer of two kernels is computed in both.
// CHECK-LABEL: func.func @recomputed
// CHECK:         tl.group "elementwise"(%arg0)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      tl.relu
// CHECK:         tl.group "elementwise"(%arg0)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      tl.relu
// CHECK-NOT:     tl.group
func.func @recomputed(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %r = tl.relu %x : tensor<1024xf32>
  %a = tl.exp %r : tensor<1024xf32>
  %b = tl.sqrt %r : tensor<1024xf32>
  return %a, %b : tensor<1024xf32>, tensor<1024xf32>
}

// A matmul is computed once, for all who use it.
// CHECK-LABEL: func.func @once
// CHECK-COUNT-1: tl.matmul
// CHECK-NOT:     tl.matmul
func.func @once(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %m = tl.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = tl.exp %m : tensor<8x8xf32>
  %b = tl.sqrt %m : tensor<8x8xf32>
  return %a, %b : tensor<8x8xf32>, tensor<8x8xf32>
}
