// On GPUs of compute capability 9.0, a warp copies factors by tensor maps, and groups of warps multiply.
// RUN: %irc compile %s -o %t.ptx --arch CUDA_90
// RUN: FileCheck %s < %t.ptx
// RUN: %irc compile %s -o %t.80.ptx
// RUN: FileCheck %s --check-prefix=OLD < %t.80.ptx

// CHECK-DAG: tensormap.replace.tile.global_address
// CHECK-DAG: cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK-DAG: mbarrier.arrive.expect_tx
// CHECK-DAG: mbarrier.try_wait.parity
// CHECK-DAG: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK-NOT: .func irc_{{.*}}_team
// OLD-NOT: wgmma
// OLD: cp.async.cg.shared.global
func.func @main(%x: tensor<256x128xbf16>, %w: tensor<128x384xbf16>) -> tensor<256x384xbf16> {
  %0 = tl.matmul %x, %w : (tensor<256x128xbf16>, tensor<128x384xbf16>) -> tensor<256x384xbf16>
  return %0 : tensor<256x384xbf16>
}
