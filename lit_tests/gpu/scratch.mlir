// Scratch of a task is in shared memory if it has no more bytes than the option says; that of others, and of kernels that the
// whole grid runs, is in global memory.
// RUN: %irc-opt --compute-to-simt="threads=32 scratch=64" %s | FileCheck %s
// RUN: %irc-opt --compute-to-simt="threads=32 scratch=63" %s | FileCheck %s --check-prefix=GLOBAL

// CHECK-LABEL: func.func private @transposed_team
// CHECK-SAME: memref<64xi8, 3>
// CHECK: memref.store {{.*}} : memref<16xf32, 3>
// CHECK: call @irc_gpu_barrier
// CHECK: memref.load {{.*}} : memref<16xf32, 3>
// CHECK: memref.store {{.*}} : memref<16xf32>
// GLOBAL-LABEL: func.func private @transposed_team
// GLOBAL-NOT: , 3>
func.func private @transposed(%x: tensor<4x4xf32>) -> (tensor<4x4xf32> {tl.overwrites}) attributes {tl.kernel = #tl.kernel<kind = "task">} {
  %y = tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// CHECK-LABEL: func.func private @whole_team
// CHECK-NOT: , 3>
func.func private @whole(%x: tensor<4x4xf32>) -> (tensor<4x4xf32> {tl.overwrites}) attributes {tl.kernel = #tl.kernel} {
  %y = tl.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
