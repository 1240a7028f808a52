// A team of a plan computes attention on tensor cores as well. Operands that do not start at a multiple of 16 bytes are
// computed element by element, which the kernel finds out.
// RUN: %irc-opt --compute-to-simt=threads=64 %s | FileCheck %s
// RUN: %irc-opt --compute-to-simt=threads=96 %s | FileCheck %s --check-prefix=OTHER

// CHECK-LABEL: func.func private @attention_team
// CHECK:         arith.remui
// CHECK:         scf.if
// CHECK:           call @irc_gpu_copy(
// CHECK:         } else {
// CHECK:           memref.store {{.*}}xf16, 3>
// CHECK:         call @irc_gpu_mma_f16
// CHECK:         call @irc_gpu_exp2
// CHECK:         call @irc_gpu_mma_f16

// Tiles are not for three warps.
// OTHER-LABEL: func.func private @attention_team
// OTHER-NOT:     call @irc_gpu_mma_f16
func.func private @attention(%q: tensor<2x40x64xf16>, %k: tensor<2x72x64xf16>, %v: tensor<2x72x64xf16>) -> tensor<2x40x64xf16> attributes {tl.kernel = #tl.kernel<kind = "task">} {
  %q1 = tl.cast %q {rounding = "toward_zero"} : (tensor<2x40x64xf16>) -> tensor<2x40x64xf32>
  %k1 = tl.cast %k {rounding = "toward_zero"} : (tensor<2x72x64xf16>) -> tensor<2x72x64xf32>
  %s = tl.matmul %q1, %k1 {transpose_rhs = true} : (tensor<2x40x64xf32>, tensor<2x72x64xf32>) -> tensor<2x40x72xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<2x40x72xf32>) -> tensor<2x40x1xf32>
  %d = tl.sub %s, %max : (tensor<2x40x72xf32>, tensor<2x40x1xf32>) -> tensor<2x40x72xf32>
  %e = tl.exp %d : tensor<2x40x72xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<2x40x72xf32>) -> tensor<2x40x1xf32>
  %v1 = tl.cast %v {rounding = "toward_zero"} : (tensor<2x72x64xf16>) -> tensor<2x72x64xf32>
  %y = tl.matmul %e, %v1 : (tensor<2x40x72xf32>, tensor<2x72x64xf32>) -> tensor<2x40x64xf32>
  %z = tl.div %y, %sum : (tensor<2x40x64xf32>, tensor<2x40x1xf32>) -> tensor<2x40x64xf32>
  %r = tl.cast %z {rounding = "toward_zero"} : (tensor<2x40x64xf32>) -> tensor<2x40x64xf16>
  return %r : tensor<2x40x64xf16>
}
