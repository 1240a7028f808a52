// Each part of a file is a module of its own.
// RUN: %irc-opt --split-input-file --outline-kernels %s | FileCheck %s

// CHECK: func.func @first
// CHECK: tl.launch @kernel_0
// CHECK: // -----
// CHECK: func.func @second
// CHECK: tl.launch @kernel_0
func.func @first(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tl.group "elementwise"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    %e = tl.exp %x : tensor<4xf32>
    tl.yield %e : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @second(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tl.group "elementwise"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    %e = tl.relu %x : tensor<4xf32>
    tl.yield %e : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
