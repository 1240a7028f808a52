// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse))" | FileCheck %s

// Algorithms, general ops, and ops that have no rows of sizes that depend on symbols are kernels of loops; a convolution
// with enough filters is a contraction, which its bias and relu join.
// CHECK-LABEL: func.func @kinds
func.func @kinds(%x: tensor<1x4x8x8xf32>, %w: tensor<8x4x3x3xf32>, %b: tensor<8x1x1xf32>,
                 %n: tensor<?x4xf32, #tl.dims<"N", "4">>)
    -> (tensor<1x8x6x6xf32>, tensor<4x?xf32, #tl.dims<"4", "N">>, tensor<1x4x8x2xf32>, tensor<4xf32>) {
  // CHECK: tl.group "loops"{{.*}} -> tensor<4x?xf32, #tl.dims<"4", "N">>
  // CHECK: tl.transpose
  %e = tl.transpose %n {permutation = array<i64: 1, 0>} : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<4x?xf32, #tl.dims<"4", "N">>
  // CHECK: tl.group "loops"{{.*}} -> (tensor<1x4x8x2xf32>, tensor<1x4x8x2xi64>)
  // CHECK: tl.top_k
  %t, %p = tl.top_k %x {axis = 3 : i64, largest = true} : (tensor<1x4x8x8xf32>) -> (tensor<1x4x8x2xf32>, tensor<1x4x8x2xi64>)
  // CHECK: tl.group "contraction"
  // CHECK: tl.conv
  // CHECK: tl.add
  // CHECK: tl.relu
  %c = tl.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x6x6xf32>
  %d = tl.add %c, %b : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32>
  %r = tl.relu %d : tensor<1x8x6x6xf32>
  // CHECK: tl.group "loops"{{.*}} -> tensor<4xf32>
  // CHECK: tl.compute
  %g = tl.compute(%x) "%0[0, i0, 1, 2]" : (tensor<1x4x8x8xf32>) -> tensor<4xf32>
  return %r, %e, %t, %g : tensor<1x8x6x6xf32>, tensor<4x?xf32, #tl.dims<"4", "N">>, tensor<1x4x8x2xf32>, tensor<4xf32>
}
