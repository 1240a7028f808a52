// Rows of bytes times packed integers with scales: integers are multiplied, and the sums of a block become floats.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg)' | FileCheck %s --check-prefix=LINALG
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector{vector-bytes=32 dots=pairs})' | FileCheck %s
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector{dots=vnni})' | FileCheck %s --check-prefix=VNNI
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector)' | FileCheck %s --check-prefix=PLAIN

// LINALG: linalg.generic {{.*}}tl.quantised = 32

// CHECK-LABEL: func.func @quantised(
// CHECK-COUNT-8: llvm.x86.avx2.pmadd.ub.sw
// CHECK: llvm.x86.avx2.pmadd.wd
// CHECK: arith.sitofp {{.*}} vector<8xi32> to vector<8xf32>
// CHECK-NOT: arith.sitofp {{.*}}i8
// VNNI-LABEL: func.func @quantised(
// VNNI: llvm.x86.avx512.vpdpbusd.512
// VNNI: arith.sitofp {{.*}} vector<16xi32> to vector<16xf32>
// PLAIN-LABEL: func.func @quantised(
// PLAIN: arith.sitofp {{.*}}xi8>
func.func @quantised(%x: tensor<1x128xi8>, %codes: tensor<64x64xi8>, %scales: tensor<64x4xf32>, %x_scales: tensor<1x4xf32>)
    -> tensor<1x64xf32> attributes {tl.kernel = #tl.kernel<kind = "contraction", constants = [1, 2]>} {
  %y = tl.block_scaled_matmul %x, %codes, %scales, %x_scales {bits = 4 : i64, block = 32 : i64}
    : (tensor<1x128xi8>, tensor<64x64xi8>, tensor<64x4xf32>, tensor<1x4xf32>) -> tensor<1x64xf32>
  return %y : tensor<1x64xf32>
}
