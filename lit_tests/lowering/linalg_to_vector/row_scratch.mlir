// One loop over rows; the exponentials live in a workspace row, the sum in SSA.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector)' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: func.func @normalise(
// CHECK-SAME: workspace_bytes = 1024
// CHECK: %[[ROW:.*]] = memref.view {{.*}} to memref<256xf32>
// CHECK: scf.for
// CHECK: vector.store {{.*}}, %[[ROW]][
// CHECK-NOT: memref.store
// CHECK: memref.prefetch
// CHECK: vector.load %[[ROW]][
// CHECK: return
func.func @normalise(%x: tensor<64x256xf32>) -> tensor<64x256xf32> attributes {tl.kernel = #tl.kernel} {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x256xf32>
  %r = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%z : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<64x256xf32>) outs(%e : tensor<64x256xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = math.exp %a : f32
    linalg.yield %s : f32 } -> tensor<64x256xf32>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
    ins(%0 : tensor<64x256xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %o, %a : f32
    linalg.yield %s : f32 } -> tensor<64xf32>
  %2 = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
    ins(%0, %1 : tensor<64x256xf32>, tensor<64xf32>) outs(%e : tensor<64x256xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.divf %a, %b : f32
    linalg.yield %s : f32 } -> tensor<64x256xf32>
  return %2 : tensor<64x256xf32>
}
