// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse),outline-kernels,tl-to-linalg,compute-to-loops)" | FileCheck %s

// A kernel on unsigned elements is called with signless ones, and its launch says what its sizes are.
// CHECK-LABEL: func.func @main
// CHECK:   %[[X:.*]] = tl.bitcast %{{.*}} : (tensor<?xui8, #tl.dims<"N">>) -> tensor<?xi8, #tl.dims<"N">>
// CHECK:   tl.launch @kernel_0(%[[X]]) {sizes = ["N"]} : (tensor<?xi8, #tl.dims<"N">>) -> tensor<?xi8, #tl.dims<"2*N">>
// CHECK-LABEL: func.func private @kernel_0(
// CHECK-SAME: memref<1xi8>, {{.*}}: index, {{.*}}: memref<1xi8>, {{.*}}: memref<0xi8>
// CHECK-LABEL: func.func private @kernel_0_part(
// CHECK-SAME: memref<1xi8>, {{.*}}: index, {{.*}}: memref<1xi8> {llvm.noalias}, {{.*}}: memref<0xi8>
// CHECK:   arith.divui
func.func @main(%x: tensor<?xui8, #tl.dims<"N">>) -> tensor<?xui8, #tl.dims<"2*N">> {
  %y = tl.compute(%x) "%0[i0 / 2] / 3 : u8" : (tensor<?xui8, #tl.dims<"N">>) -> tensor<?xui8, #tl.dims<"2*N">>
  return %y : tensor<?xui8, #tl.dims<"2*N">>
}
