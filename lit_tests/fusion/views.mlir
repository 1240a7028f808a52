// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Views stay outside groups.
// CHECK-LABEL: func.func @views
// CHECK:         %[[E:.*]] = tl.group "elementwise"(%arg0)
// CHECK:         %[[R:.*]] = tl.reshape %[[E]]
// CHECK:         %[[B:.*]] = tl.bitcast %[[R]]
// CHECK:         return %[[B]]
func.func @views(%x: tensor<4x8xf32>) -> tensor<32xi32> {
  %e = tl.exp %x : tensor<4x8xf32>
  %r = tl.reshape %e : (tensor<4x8xf32>) -> tensor<32xf32>
  %b = tl.bitcast %r : (tensor<32xf32>) -> tensor<32xi32>
  return %b : tensor<32xi32>
}

// Views of views are one, and none where nothing changes.
// CHECK-LABEL: func.func @folded
// CHECK-NEXT:    return %arg0
func.func @folded(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %r = tl.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>
  %s = tl.reshape %r : (tensor<32xf32>) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}
