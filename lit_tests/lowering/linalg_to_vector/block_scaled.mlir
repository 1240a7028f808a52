// Packed integers with scales become floats in registers: words are read from panels, and no matrix of floats is stored.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg)' | FileCheck %s --check-prefix=LINALG
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector{dots=vnni})' | FileCheck %s
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector{vector-bytes=32})' | FileCheck %s --check-prefix=NARROW

// LINALG: linalg.generic {{.*}}tl.codes = array<i64: 4, 32>

// CHECK-LABEL: func.func @product(
// CHECK-SAME: workspace_bytes = 0
// CHECK-SAME: packed = [#tl.packing<argument = 1, {{[^>]*}}quads = 1, bytes = 4>, #tl.packing<argument = 2
// CHECK-NOT: vector.gather
// CHECK: vector.load {{.*}} vector<16xi32>
// CHECK: llvm.x86.avx512.permvar.sf.512
// CHECK: arith.subf {{.*}} vector<16xf32>
// CHECK-NOT: arith.sitofp
// NARROW-LABEL: func.func @product(
// NARROW-NOT: permvar
// NARROW: vector.load {{.*}} vector<8xi32>
func.func @product(%x: tensor<1x128xf32>, %codes: tensor<64x64xi8>, %scales: tensor<64x4xf32>) -> tensor<1x64xf32>
    attributes {tl.kernel = #tl.kernel<kind = "contraction", constants = [1, 2]>} {
  %y = tl.block_scaled_matmul %x, %codes, %scales {bits = 4 : i64, block = 32 : i64}
    : (tensor<1x128xf32>, tensor<64x64xi8>, tensor<64x4xf32>) -> tensor<1x64xf32>
  return %y : tensor<1x64xf32>
}
