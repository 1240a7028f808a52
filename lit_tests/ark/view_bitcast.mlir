// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The same bytes under another type and shape.
//
// CHECK: %[[X:.*]] = tl.relu
// CHECK: %[[B:.*]] = tl.bitcast %[[X]] : (tensor<4xf32>) -> tensor<2x2xi32>
// CHECK: tl.relu %[[B]]

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
!t1 = !ark.tensor<i32, [2, 2], strides [2, 2], offsets [0, 0], padded [2, 2]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.relu (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %t3 = ark.tensor %b1 {id = 3 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t4 = ark.tensor %b2 {id = 4 : i64} : !t1
  %t5 = ark.relu (%t3) into (%t4) on (%b2) {node = 1 : i64, op_name = "relu", result_ids = array<i64: 5>}
    : (!t1, !t1, !ark.buffer) -> !t1
}
