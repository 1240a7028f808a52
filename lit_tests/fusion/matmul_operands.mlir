// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// A reduction and an elementwise op feed a matmul through memory.
// CHECK-LABEL: func.func @producers
// CHECK-DAG:     %[[A:.*]] = tl.group "elementwise"(%arg0)
// CHECK-DAG:     %[[B:.*]] = tl.group "rows"(%arg1)
// CHECK:         tl.group "contraction"(%[[A]], %[[B]])
func.func @producers(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<4x1xf32> {
  %a = tl.relu %x : tensor<4x8xf32>
  %b = tl.reduce_sum %y {axes = array<i64: 1>, keep_dims = true} : (tensor<8x4xf32>) -> tensor<8x1xf32>
  %m = tl.matmul %a, %b : (tensor<4x8xf32>, tensor<8x1xf32>) -> tensor<4x1xf32>
  return %m : tensor<4x1xf32>
}
