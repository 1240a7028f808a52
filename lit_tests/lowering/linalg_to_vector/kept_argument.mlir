// A kernel that keeps packs B unless the word before what it kept says that this is done.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector)' | FileCheck %s

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[KEPT:[a-z0-9]+]]: memref<4160xi8>, %{{[a-z0-9]+}}: memref<0xi8>)
// CHECK-SAME: kept_bytes = 4160, kept_arguments = [1]
// CHECK: %[[WORD:.*]] = memref.load {{.*}} : memref<1xi64>
// CHECK: %[[EMPTY:.*]] = arith.cmpi eq, %[[WORD]], {{.*}} : i64
// CHECK: scf.if %[[EMPTY]]
// CHECK: vector.store
// CHECK: math.fma
func.func @product(%a: tensor<8x32xf32>, %b: tensor<32x32xf32>) -> tensor<8x32xf32> attributes {tl.kernel = #tl.kernel<keeps = unit>} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%a, %b : tensor<8x32xf32>, tensor<32x32xf32>) outs(%f : tensor<8x32xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
