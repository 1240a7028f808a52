// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// A task may not read what other task indices write.
//
// CHECK: plan.task attributes {id = 0
// CHECK: ark.exp
// CHECK: plan.task attributes {id = 1
// CHECK: ark.transpose{{.*}}Tile = array<i64: 8, 8>

!t0 = !ark.tensor<f32, [8, 64], strides [8, 64], offsets [0, 0], padded [8, 64]>
!t1 = !ark.tensor<f32, [64, 8], strides [64, 8], offsets [0, 0], padded [64, 8]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.exp (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "exp", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t1
  %t4 = ark.transpose (%t2) into (%t3) on (%b2) {permutation = array<i64: 1, 0>, node = 1 : i64, op_name = "transpose", result_ids = array<i64: 4>}
    : (!t0, !t1, !ark.buffer) -> !t1
}
