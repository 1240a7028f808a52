// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// A constant is copied into every kernel that uses it.
// CHECK-LABEL: func.func @copied
// CHECK:         tl.group "elementwise"(%arg0)
// CHECK:           tl.fill
// CHECK:         tl.group "rows"(%arg1)
// CHECK:           tl.fill
// CHECK-NOT:     tl.group
func.func @copied(%x: tensor<8xf32>, %y: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x1xf32>) {
  %c = tl.fill {value = 2.0} : tensor<1xf32>
  %a = tl.mul %x, %c : (tensor<8xf32>, tensor<1xf32>) -> tensor<8xf32>
  %b = tl.mul %y, %c : (tensor<4x8xf32>, tensor<1xf32>) -> tensor<4x8xf32>
  %s = tl.reduce_sum %b {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %a, %s : tensor<8xf32>, tensor<4x1xf32>
}

// A constant that a matmul reads is written to memory once.
// CHECK-LABEL: func.func @stored
// CHECK:         %[[C:.*]] = tl.group "elementwise"()
// CHECK:         tl.group "contraction"(%arg0, %[[C]])
func.func @stored(%x: tensor<4x8xf32>) -> tensor<4x4xf32> {
  %c = tl.fill {value = 2.0} : tensor<8x4xf32>
  %m = tl.matmul %x, %c : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %m : tensor<4x4xf32>
}
