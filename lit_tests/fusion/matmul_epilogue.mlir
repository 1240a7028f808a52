// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Bias, activation and gate run in the matmul's kernel.
// CHECK-LABEL: func.func @epilogue
// CHECK:         tl.group "contraction"
// CHECK:           tl.matmul
// CHECK:           tl.add
// CHECK:           tl.gelu
// CHECK:           tl.mul
// CHECK-NOT:     tl.group
func.func @epilogue(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>, %b: tensor<64xf32>, %g: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %m = tl.matmul %x, %w : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %a = tl.add %m, %b : (tensor<16x64xf32>, tensor<64xf32>) -> tensor<16x64xf32>
  %c = tl.gelu %a : tensor<16x64xf32>
  %d = tl.mul %c, %g : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %d : tensor<16x64xf32>
}

// SiLU uses the matmul twice, in one kernel.
// CHECK-LABEL: func.func @silu
// CHECK:         tl.group "contraction"
// CHECK-NOT:     tl.group
func.func @silu(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %m = tl.matmul %x, %w : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %s = tl.sigmoid %m : tensor<16x64xf32>
  %y = tl.mul %m, %s : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}

// One kernel holds one matmul: the other one is read back.
// CHECK-LABEL: func.func @two_matmuls
// CHECK:         %[[A:.*]] = tl.group "contraction"(%arg0, {{%arg.}})
// CHECK:         tl.group "contraction"({{.*}}%[[A]]
// CHECK-NOT:     tl.group
func.func @two_matmuls(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>, %v: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %a = tl.matmul %x, %w : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %b = tl.matmul %x, %v : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %y = tl.mul %a, %b : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  return %y : tensor<16x64xf32>
}
