// A result in memory that the kernel reads elsewhere is computed in scratch, and copied once all threads have read.
// RUN: %irc-opt --compute-to-simt %s | FileCheck %s

// CHECK-LABEL: func.func private @transposed_team
// CHECK: memref.store {{.*}} : memref<16xf32>
// CHECK: call @irc_gpu_barrier
// CHECK: memref.store {{.*}} : memref<16xf32>
func.func private @transposed(%x: tensor<4x4xf32>) -> (tensor<4x4xf32> {tl.overwrites}) attributes {tl.kernel = #tl.kernel<kind = "task">} {
  %y = tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
