// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// A residual that the norm and the caller both need is the matmul's epilogue; the norm reads it.
// CHECK-LABEL: func.func @block
// CHECK:         %[[H:.*]] = tl.group "contraction"(%arg0, %arg1)
// CHECK:         %[[N:.*]] = tl.group "rows"(%[[H]])
// CHECK-NOT:     tl.group
// CHECK:         return %[[H]], %[[N]]
func.func @block(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %m = tl.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = tl.add %m, %x : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = tl.mul %h, %h : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %v = tl.reduce_mean %q {axes = array<i64: 1>, keep_dims = true} : (tensor<64x64xf32>) -> tensor<64x1xf32>
  %r = tl.rsqrt %v : tensor<64x1xf32>
  %n = tl.mul %h, %r : (tensor<64x64xf32>, tensor<64x1xf32>) -> tensor<64x64xf32>
  return %h, %n : tensor<64x64xf32>, tensor<64x64xf32>
}
