// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// A chain on one grid is one task; an op that uses nothing of it runs beside it, without a barrier.
//
// CHECK: plan.task attributes {id = 0
// CHECK: ark.relu
// CHECK: ark.exp
// CHECK: plan.task attributes {id = 1
// CHECK: ark.sqrt
// CHECK: plan.processor_group attributes {processor_range = array<i64: 0, 64>}
// CHECK: plan.resource_group attributes {processor_range = array<i64: 0, 32>
// CHECK: plan.resource_group attributes {processor_range = array<i64: 32, 64>
// CHECK-NOT: plan.processor_group

!t0 = !ark.tensor<f32, [64, 1024], strides [64, 1024], offsets [0, 0], padded [64, 1024]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.relu (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.exp (%t2) into (%t3) on (%b2) {node = 1 : i64, op_name = "exp", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t5 = ark.tensor %b3 {id = 5 : i64} : !t0
  %b4 = ark.buffer {id = 4 : i64} : !ark.buffer
  %t6 = ark.tensor %b4 {id = 6 : i64} : !t0
  %t7 = ark.sqrt (%t5) into (%t6) on (%b4) {node = 2 : i64, op_name = "sqrt", result_ids = array<i64: 7>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
