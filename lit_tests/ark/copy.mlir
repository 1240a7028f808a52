// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A copy to a larger shape is a broadcast; a plain copy is another name for the value.
//
// CHECK: %[[A:.*]] = tl.reshape
// CHECK-NEXT: %[[B:.*]] = tl.broadcast %[[A]] : (tensor<1x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: %[[R:.*]] = tl.reshape %[[B]]
// CHECK-NEXT: %[[S:.*]] = tl.reshape %[[B]]
// CHECK-NEXT: return %[[R]], %[[S]]

!t0 = !ark.tensor<f32, [1, 4], strides [1, 4], offsets [0, 0], padded [1, 4]>
!t1 = !ark.tensor<f32, [3, 4], strides [3, 4], offsets [0, 0], padded [3, 4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.copy (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "copy", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t1
  %t4 = ark.copy (%t1) into (%t3) on (%b2) {node = 1 : i64, op_name = "copy", result_ids = array<i64: 4>}
    : (!t1, !t1, !ark.buffer) -> !t1
}
