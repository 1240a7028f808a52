// A tile of 448 summands on 108 processors: two workers have shares of 256 and 192. Each writes its sums to a place of its
// own, and once both have, threads add the places of the tile's workers in their order.
// RUN: %irc-opt --compute-to-simt %s | FileCheck %s

// CHECK-LABEL: func.func private @product_team
// CHECK-SAME: memref<61440xi8>
// CHECK: scf.while
// CHECK: memref.store {{.*}} : memref<15360xf32>
// CHECK: call @irc_gpu_again
// CHECK: call @irc_gpu_teams
// CHECK: scf.condition
// CHECK: call @irc_gpu_barrier
// CHECK: memref.load {{.*}} : memref<15360xf32>
// CHECK: scf.for
// CHECK: memref.load {{.*}} : memref<15360xf32>
// CHECK-NEXT: arith.addf
func.func private @product(%x: tensor<60x448xf32>, %y: tensor<448x64xf32>) -> tensor<60x64xf32> attributes {tl.kernel = #tl.kernel} {
  %z = tl.matmul %x, %y {transpose_lhs = false, transpose_rhs = false} : (tensor<60x448xf32>, tensor<448x64xf32>) -> tensor<60x64xf32>
  return %z : tensor<60x64xf32>
}
