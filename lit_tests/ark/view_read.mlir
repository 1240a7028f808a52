// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A box of a buffer is sliced from the enclosing view, once.
//
// CHECK: %[[V:.*]] = tl.reshape %arg0 : (tensor<12xf32>) -> tensor<2x6xf32>
// CHECK: %[[S:.*]] = tl.slice %[[V]] {offsets = array<i64: 0, 3>} : (tensor<2x6xf32>) -> tensor<2x3xf32>
// CHECK: tl.relu %[[S]]
// CHECK-NEXT: tl.exp %[[S]]

!t0 = !ark.tensor<f32, [2, 6], strides [2, 6], offsets [0, 0], padded [2, 6]>
!t1 = !ark.tensor<f32, [2, 3], strides [2, 6], offsets [0, 3], padded [2, 3]>
!t2 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %t1 = ark.tensor %b0 {id = 1 : i64} : !t1
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t2 = ark.tensor %b1 {id = 2 : i64} : !t2
  %t3 = ark.relu (%t1) into (%t2) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 3>}
    : (!t1, !t2, !ark.buffer) -> !t2
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t4 = ark.tensor %b2 {id = 4 : i64} : !t2
  %t5 = ark.exp (%t1) into (%t4) on (%b2) {node = 1 : i64, op_name = "exp", result_ids = array<i64: 5>}
    : (!t1, !t2, !ark.buffer) -> !t2
}
