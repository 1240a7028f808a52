// A choice of known sizes writes where its result belongs, in the workspace of its caller.
// RUN: %irc-opt --plan-memory %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main(%arg0: memref<1xi8>, %arg1: memref<16xi8>, %arg2: memref<16xi8>, %arg3: memref<64xi8>, %arg4: memref<1xi8>)
// CHECK: scf.if
// CHECK: func.call @irc_main_0
// CHECK: } else {
// CHECK: func.call @irc_main_1
// CHECK-LABEL: func.func private @irc_main_0(%arg0: memref<16xi8>, %arg1: memref<16xi8>, %arg2: memref<64xi8>, %arg3: memref<1xi8>)
// CHECK: call @kernel
// CHECK: call @kernel
func.func @main(%c: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> attributes {tl.graph} {
  %y = tl.if (%c, %x) {then = @main_0, otherwise = @main_1}
      : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @main_0(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tl.graph} {
  %a = tl.launch @kernel(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = tl.launch @kernel(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %b : tensor<4xf32>
}
func.func private @main_1(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tl.graph} {
  return %x : tensor<4xf32>
}
func.func private @kernel(memref<4xf32>, memref<4xf32>, memref<0xi8>) attributes {tl.kernel = #tl.kernel}
