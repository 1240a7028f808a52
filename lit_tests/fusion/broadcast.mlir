// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Repeating an exp a few times is cheaper than a kernel of its own.
// CHECK-LABEL: func.func @small
// CHECK:         tl.group "elementwise"({{%arg., %arg.}})
// CHECK-NOT:     tl.group
func.func @small(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = tl.exp %b : tensor<8xf32>
  %y = tl.add %x, %e : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Repeating it for four thousand rows is not.
// CHECK-LABEL: func.func @large
// CHECK:         %[[E:.*]] = tl.group "elementwise"(%arg1)
// CHECK:         tl.group "elementwise"({{.*}}%[[E]]
func.func @large(%x: tensor<4096x64xf32>, %b: tensor<64xf32>) -> tensor<4096x64xf32> {
  %e = tl.exp %b : tensor<64xf32>
  %y = tl.add %x, %e : (tensor<4096x64xf32>, tensor<64xf32>) -> tensor<4096x64xf32>
  return %y : tensor<4096x64xf32>
}
