// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Each sum could make its exp as one more result, but not both: each would wait for the other.
// CHECK-LABEL: func.func @crossing
// CHECK:         %[[A:.*]] = tl.group "elementwise"(%arg0)
// CHECK:         %[[B:.*]]:2 = tl.group "contraction"(%arg1, %[[A]], %arg2)
// CHECK:         %[[C:.*]] = tl.group "contraction"(%arg0, %[[B]]#0, %arg2)
// CHECK:         return %[[C]], %[[B]]#1
func.func @crossing(%p: tensor<8x8xf32>, %q: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = tl.exp %p : tensor<8x8xf32>
  %b = tl.exp %q : tensor<8x8xf32>
  %x = tl.matmul %b, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = tl.matmul %a, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = tl.add %a, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = tl.add %b, %y : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %c, %d : tensor<8x8xf32>, tensor<8x8xf32>
}
