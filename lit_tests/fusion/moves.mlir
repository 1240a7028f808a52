// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Slice and transpose are read in place by an elementwise consumer.
// CHECK-LABEL: func.func @producers
// CHECK:         tl.group "elementwise"(%arg0, %arg1)
// CHECK:           tl.slice
// CHECK:           tl.transpose
// CHECK:           tl.mul
// CHECK-NOT:     tl.group
func.func @producers(%x: tensor<4x16xf32>, %y: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %s = tl.slice %x {offsets = array<i64: 0, 8>} : (tensor<4x16xf32>) -> tensor<4x8xf32>
  %t = tl.transpose %y {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %m = tl.mul %s, %t : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %m : tensor<4x8xf32>
}

// Rows read elements where they are: a transpose before a reduction is a kernel of its own.
// CHECK-LABEL: func.func @rows
// CHECK:         %[[T:.*]] = tl.group "elementwise"(%arg0)
// CHECK:         tl.group "rows"(%[[T]])
func.func @rows(%x: tensor<8x4xf32>) -> tensor<4x1xf32> {
  %t = tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %s = tl.reduce_sum %t {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %s : tensor<4x1xf32>
}
