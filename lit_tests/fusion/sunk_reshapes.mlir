// Reshapes of products move behind the elementwise ops that follow, which then join the kernel of the product.
// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse))" | FileCheck %s

// The bias has only dimensions that stay; the residual is reshaped like the product.
// CHECK-LABEL: func.func @bias_and_residual
// CHECK: %[[R:.*]] = tl.reshape %arg3 : (tensor<2x64x32xf32>) -> tensor<128x32xf32>
// CHECK: %[[G:.*]] = tl.group "contraction"
// CHECK: tl.matmul
// CHECK: tl.add
// CHECK: tl.add
// CHECK: tl.relu
// CHECK-NOT: tl.group
// CHECK: %[[Y:.*]] = tl.reshape %[[G]] : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
// CHECK: return %[[Y]]
func.func @bias_and_residual(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>, %r: tensor<2x64x32xf32>) -> tensor<2x64x32xf32> {
  %0 = tl.matmul %x, %w : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = tl.reshape %0 : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
  %2 = tl.add %1, %b : (tensor<2x64x32xf32>, tensor<32xf32>) -> tensor<2x64x32xf32>
  %3 = tl.add %r, %2 : (tensor<2x64x32xf32>, tensor<2x64x32xf32>) -> tensor<2x64x32xf32>
  %4 = tl.relu %3 : tensor<2x64x32xf32>
  return %4 : tensor<2x64x32xf32>
}

// A factor for each of 2 is none of the 128 rows.
// CHECK-LABEL: func.func @other_rows
// CHECK: tl.group "contraction"
// CHECK: tl.reshape
// CHECK: tl.group "elementwise"
func.func @other_rows(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>, %f: tensor<2x1x1xf32>) -> tensor<2x64x32xf32> {
  %0 = tl.matmul %x, %w : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = tl.reshape %0 : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
  %2 = tl.mul %1, %f : (tensor<2x64x32xf32>, tensor<2x1x1xf32>) -> tensor<2x64x32xf32>
  return %2 : tensor<2x64x32xf32>
}

// Two elementwise ops read the sum.
// CHECK-LABEL: func.func @read_twice
// CHECK: tl.group "contraction"
// CHECK: tl.matmul
// CHECK: tl.sigmoid
// CHECK: tl.mul
// CHECK-NOT: tl.group
// CHECK: tl.reshape
func.func @read_twice(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>) -> tensor<2x64x32xf32> {
  %0 = tl.matmul %x, %w : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = tl.reshape %0 : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
  %2 = tl.add %1, %b : (tensor<2x64x32xf32>, tensor<32xf32>) -> tensor<2x64x32xf32>
  %3 = tl.sigmoid %2 : tensor<2x64x32xf32>
  %4 = tl.mul %2, %3 : (tensor<2x64x32xf32>, tensor<2x64x32xf32>) -> tensor<2x64x32xf32>
  return %4 : tensor<2x64x32xf32>
}

// What another op reads, or the function returns, keeps its shape.
// CHECK-LABEL: func.func @other_readers
// CHECK: tl.group "contraction"
// CHECK: tl.reshape
// CHECK: tl.group
func.func @other_readers(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>) -> tensor<2x64x32xf32> {
  %0 = tl.matmul %x, %w : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = tl.reshape %0 : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
  %2 = tl.reduce_max %1 {axes = array<i64: 1>, keep_dims = true} : (tensor<2x64x32xf32>) -> tensor<2x1x32xf32>
  %3 = tl.sub %1, %2 : (tensor<2x64x32xf32>, tensor<2x1x32xf32>) -> tensor<2x64x32xf32>
  return %3 : tensor<2x64x32xf32>
}
// CHECK-LABEL: func.func @two_readers
// CHECK: tl.group "contraction"
// CHECK: tl.reshape
// CHECK: tl.group "elementwise"
func.func @two_readers(%x: tensor<128x16xf32>, %w: tensor<16x32xf32>, %b: tensor<32xf32>) -> (tensor<2x64x32xf32>, tensor<2x64x32xf32>) {
  %0 = tl.matmul %x, %w : (tensor<128x16xf32>, tensor<16x32xf32>) -> tensor<128x32xf32>
  %1 = tl.reshape %0 : (tensor<128x32xf32>) -> tensor<2x64x32xf32>
  %2 = tl.add %1, %b : (tensor<2x64x32xf32>, tensor<32xf32>) -> tensor<2x64x32xf32>
  return %1, %2 : tensor<2x64x32xf32>, tensor<2x64x32xf32>
}
