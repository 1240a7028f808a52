// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// Operands broadcast as in NumPy.
//
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[A:.*]]: tensor<6xf32> {tl.name = "buffer_0"}, %[[B:.*]]: tensor<3xf32> {tl.name = "buffer_1"}) -> (tensor<6xf32> {tl.name = "buffer_2"})
// CHECK: %[[X:.*]] = tl.reshape %[[A]]
// CHECK: %[[Y:.*]] = tl.add %[[X]], %[[B]] : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: %[[R:.*]] = tl.reshape %[[Y]]
// CHECK: return %[[R]] : tensor<6xf32>

!t0 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
!t1 = !ark.tensor<f32, [3], strides [3], offsets [0], padded [3]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t0
  %t3 = ark.add (%t0, %t1) into (%t2) on (%b2) {node = 0 : i64, op_name = "add", result_ids = array<i64: 3>}
    : (!t0, !t1, !t0, !ark.buffer) -> !t0
}
