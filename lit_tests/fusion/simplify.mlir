// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(simplify-tl))' | FileCheck %s

// A transpose of the last two dimensions becomes the matmul's flag.
// CHECK-LABEL: func.func @transpose
// CHECK-NEXT:    tl.matmul %arg0, %arg1 {transpose_rhs = true}
func.func @transpose(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) -> tensor<4x16xf32> {
  %t = tl.transpose %w {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %m = tl.matmul %x, %t : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %m : tensor<4x16xf32>
}

// Adding 0.0 is kept, because it turns -0.0 into 0.0; adding -0.0 is not.
// CHECK-LABEL: func.func @zeros
// CHECK:         %[[Z:.*]] = tl.fill {value = 0.0
// CHECK:         %[[A:.*]] = tl.add %arg0, %[[Z]]
// CHECK:         return %[[A]], %arg0
func.func @zeros(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %z = tl.fill {value = 0.0} : tensor<1xf32>
  %n = tl.fill {value = -0.0} : tensor<1xf32>
  %a = tl.add %x, %z : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
  %b = tl.add %x, %n : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Equal ops are one.
// CHECK-LABEL: func.func @equal
// CHECK-COUNT-1: tl.exp
// CHECK-NOT:     tl.exp
func.func @equal(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = tl.exp %x : tensor<8xf32>
  %b = tl.exp %x : tensor<8xf32>
  %y = tl.add %a, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
