// A transposition loads vectors along the contiguous loop of its operand, and transposes tiles in registers; few channels are
// interleaved.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector{vector-bytes=64})' | FileCheck %s

#turned = affine_map<(d0, d1) -> (d1, d0)>
#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @tiles(
// CHECK-NOT: vector.gather
// CHECK-COUNT-16: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-64: vector.shuffle {{.*}} vector<16xf32>, vector<16xf32>
// CHECK-COUNT-16: vector.store {{.*}} vector<16xf32>
func.func @tiles(%x: tensor<100x200xf32>) -> tensor<200x100xf32> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<200x100xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<100x200xf32>) outs(%e : tensor<200x100xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32 } -> tensor<200x100xf32>
  return %0 : tensor<200x100xf32>
}

// CHECK-LABEL: func.func @interleaved(
// CHECK-NOT: vector.gather
// CHECK-COUNT-3: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-3: vector.shuffle {{.*}} vector<48xf32>, vector<48xf32>
// CHECK-COUNT-3: vector.store {{.*}} vector<16xf32>
func.func @interleaved(%x: tensor<3x200xf32>) -> tensor<200x3xf32> attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<200x3xf32>
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<3x200xf32>) outs(%e : tensor<200x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32 } -> tensor<200x3xf32>
  return %0 : tensor<200x3xf32>
}
