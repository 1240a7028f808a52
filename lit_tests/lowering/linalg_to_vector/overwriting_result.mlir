// A result whose memory the kernel may read is computed in scratch and copied at the end.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(linalg-to-vector)' | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @negate(
// CHECK-SAME: workspace_bytes = 512
// CHECK: %[[OUT:.*]] = memref.reinterpret_cast %arg1
// CHECK: %[[SCRATCH:.*]] = memref.view
// CHECK: vector.store {{.*}}, %[[SCRATCH]]
// CHECK: vector.load %[[SCRATCH]]
// CHECK: vector.store {{.*}}, %[[OUT]]
func.func @negate(%x: tensor<4x32xf32>) -> (tensor<4x32xf32> {tl.overwrites, tl.strides = array<i64: 40, 1>}) attributes {tl.kernel = #tl.kernel} {
  %e = tensor.empty() : tensor<4x32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x32xf32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32 } -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}
