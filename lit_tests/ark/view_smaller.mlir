// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A view of the start of a larger buffer.
//
// CHECK: func.func @main(%[[A:.*]]: tensor<4xf32> {tl.name = "buffer_0", tl.preserved}, %[[B:.*]]: tensor<2xf32>
// CHECK: %[[U:.*]] = tl.update %[[B]] into %[[V:.*]] {offsets = array<i64: 0>} : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[W:.*]] = tl.update %[[U]] into %[[A]] {offsets = array<i64: 0>} : (tensor<4xf32>, tensor<2xf32>) -> tensor<4xf32>
// CHECK: tl.relu %[[W]]

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
!t1 = !ark.tensor<f32, [2], strides [2], offsets [0], padded [2]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.tensor %b0 {id = 2 : i64} : !t1
  %t3 = ark.copy (%t1) into (%t2) on (%b0) {node = 0 : i64, op_name = "copy", result_ids = array<i64: 3>}
    : (!t1, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t4 = ark.tensor %b2 {id = 4 : i64} : !t0
  %t5 = ark.relu (%t0) into (%t4) on (%b2) {node = 1 : i64, op_name = "relu", result_ids = array<i64: 5>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
