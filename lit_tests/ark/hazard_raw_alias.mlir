// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A read of the whole sees writes through views of its parts, which no edge shows.
//
// CHECK: %[[U:.*]] = tl.update %{{.*}} into %{{.*}} {offsets = array<i64: 0>}
// CHECK: %[[W:.*]] = tl.update %{{.*}} into %[[U]] {offsets = array<i64: 2>}
// CHECK: tl.relu %[[W]]

!t0 = !ark.tensor<f32, [2], strides [2], offsets [0], padded [2]>
!t1 = !ark.tensor<f32, [2], strides [4], offsets [0], padded [2]>
!t2 = !ark.tensor<f32, [2], strides [4], offsets [2], padded [2]>
!t3 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t0 = ark.tensor %b1 {id = 0 : i64} : !t0
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t1 = ark.tensor %b0 {id = 1 : i64} : !t1
  %t2 = ark.tensor %b0 {id = 2 : i64} : !t2
  %t3 = ark.copy (%t0) into (%t1) on (%b0) {node = 0 : i64, op_name = "copy", result_ids = array<i64: 3>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %t4 = ark.exp (%t0) into (%t2) on (%b0) {node = 1 : i64, op_name = "exp", result_ids = array<i64: 4>}
    : (!t0, !t2, !ark.buffer) -> !t2
  %t5 = ark.tensor %b0 {id = 5 : i64} : !t3
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t6 = ark.tensor %b2 {id = 6 : i64} : !t3
  %t7 = ark.relu (%t5) into (%t6) on (%b2) {node = 2 : i64, op_name = "relu", result_ids = array<i64: 7>}
    : (!t3, !t3, !ark.buffer) -> !t3
}
