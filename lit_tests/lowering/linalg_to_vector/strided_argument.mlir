// An argument with strides becomes a strided memref.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector)' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @negate(
// CHECK-SAME: memref<4x18xf32, strided<[40, 1]>>
// CHECK: memref.reinterpret_cast {{.*}} sizes: [138], strides: [1]
func.func @negate(%x: tensor<4x18xf32> {tl.strides = array<i64: 40, 1>}) -> tensor<4x18xf32> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<4x18xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x18xf32>) outs(%e : tensor<4x18xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32 } -> tensor<4x18xf32>
  return %0 : tensor<4x18xf32>
}
