// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Sums that round on their way read memory, and end their kernel: what they add is rounded first.
// CHECK-LABEL: func.func @sum
// CHECK:         tl.group "elementwise"(%arg0)
// CHECK:         tl.group "reduction"
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      tl.sequential_sum
// CHECK-NEXT:      tl.yield
// CHECK:         tl.group "elementwise"
func.func @sum(%x: tensor<4x8xf16>) -> tensor<4xf16> {
  %e = tl.exp %x : tensor<4x8xf16>
  %s = tl.sequential_sum %e {axis = 1 : i64} : (tensor<4x8xf16>) -> tensor<4xf16>
  %r = tl.relu %s : tensor<4xf16>
  return %r : tensor<4xf16>
}

// No rule moves a transpose into a product that steps, as one does into tl.matmul.
// CHECK-LABEL: func.func @product
// CHECK:         tl.transpose
// CHECK:         tl.group "reduction"
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      tl.stepped_matmul
// CHECK-NEXT:      tl.yield
func.func @product(%a: tensor<4x32xf16>, %b: tensor<8x32xf16>) -> tensor<4x8xf16> {
  %t = tl.transpose %b {permutation = array<i64: 1, 0>} : (tensor<8x32xf16>) -> tensor<32x8xf16>
  %p = tl.stepped_matmul %a, %t : (tensor<4x32xf16>, tensor<32x8xf16>) -> tensor<4x8xf16>
  %r = tl.relu %p : tensor<4x8xf16>
  return %r : tensor<4x8xf16>
}
