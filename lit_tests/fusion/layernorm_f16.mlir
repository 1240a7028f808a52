// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Layer normalisation in f32 of an f16 tensor, with scale and bias, is one kernel that reads f16.
// CHECK-LABEL: func.func @layernorm
// CHECK:         tl.group "rows"(%arg0, %arg1, %arg2) : (tensor<16x64xf16>, tensor<64xf16>, tensor<64xf16>) -> tensor<16x64xf16>
// CHECK-NOT:     tl.group
func.func @layernorm(%x: tensor<16x64xf16>, %w: tensor<64xf16>, %b: tensor<64xf16>) -> tensor<16x64xf16> {
  %eps = tl.fill {value = 1.0e-5} : tensor<1xf32>
  %c = tl.cast %x {rounding = "nearest_even"} : (tensor<16x64xf16>) -> tensor<16x64xf32>
  %m = tl.reduce_mean %c {axes = array<i64: 1>, keep_dims = true} : (tensor<16x64xf32>) -> tensor<16x1xf32>
  %s = tl.sub %c, %m : (tensor<16x64xf32>, tensor<16x1xf32>) -> tensor<16x64xf32>
  %q = tl.mul %s, %s : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %v = tl.reduce_mean %q {axes = array<i64: 1>, keep_dims = true} : (tensor<16x64xf32>) -> tensor<16x1xf32>
  %e = tl.add %v, %eps : (tensor<16x1xf32>, tensor<1xf32>) -> tensor<16x1xf32>
  %r = tl.rsqrt %e : tensor<16x1xf32>
  %n = tl.mul %s, %r : (tensor<16x64xf32>, tensor<16x1xf32>) -> tensor<16x64xf32>
  %h = tl.cast %n {rounding = "nearest_even"} : (tensor<16x64xf32>) -> tensor<16x64xf16>
  %k = tl.mul %h, %w : (tensor<16x64xf16>, tensor<64xf16>) -> tensor<16x64xf16>
  %o = tl.add %k, %b : (tensor<16x64xf16>, tensor<64xf16>) -> tensor<16x64xf16>
  return %o : tensor<16x64xf16>
}
