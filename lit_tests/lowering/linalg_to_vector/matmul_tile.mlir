// The tile is 8 rows by 2 vectors of sums carried through the loop over k, fused multiply-adds only. One panel is packed at a time
// if rows are a multiple of a page apart, and read where it is otherwise.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector)' | FileCheck %s
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector{vector-bytes=32})' | FileCheck %s --check-prefix=NARROW

// CHECK-LABEL: func.func @matmul(
// CHECK-SAME: memref<64x128xf32>, %{{.*}}: memref<128x1024xf32>, %{{.*}}: memref<64x1024xf32>, %[[WS:.*]]: memref<16384xi8>
// CHECK-SAME: workspace_bytes = 16384
// CHECK: memref.view %[[WS]]
// CHECK-COUNT-16: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: math.fma
// NARROW-COUNT-20: math.fma {{.*}} : vector<8xf32>
func.func @matmul(%A: tensor<64x128xf32>, %B: tensor<128x1024xf32>) -> tensor<64x1024xf32> attributes {tl.kernel = #tl.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x1024xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<64x128xf32>, tensor<128x1024xf32>) outs(%f : tensor<64x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: workspace_bytes = 0
// CHECK-COUNT-16: math.fma {{.*}} : vector<16xf32>
// CHECK-NOT: math.fma
func.func @in_place(%A: tensor<64x128xf32>, %B: tensor<128x96xf32>) -> tensor<64x96xf32> attributes {tl.kernel = #tl.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}
    ins(%A, %B : tensor<64x128xf32>, tensor<128x96xf32>) outs(%f : tensor<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32 } -> tensor<64x96xf32>
  return %0 : tensor<64x96xf32>
}
