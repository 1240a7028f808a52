// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// Softmax is one task a row: task i of every op is row i.
//
// CHECK: plan.program attributes {architecture = "CUDA_80", processors = 8 : i64, rank = 0 : i64, warps_per_processor = 1 : i64, world_size = 1 : i64}
// CHECK: plan.task attributes {id = 0 : i64, sram_bytes = 0 : i64, warps = 1 : i64}
// CHECK: ark.reduce_max{{.*}}config = {ImplType = "WarpWise", NumTasks = 8 : i64
// CHECK: ark.sub{{.*}}NumTasks = 8 : i64{{.*}}Tile = array<i64: 1, 256>
// CHECK: ark.exp
// CHECK: ark.reduce_sum
// CHECK: ark.div
// CHECK-NOT: plan.task attributes
// CHECK: plan.task_group {granularity = 1 : i64, task = 0 : i64, task_range = array<i64: 0, 8>}

!t0 = !ark.tensor<f32, [8, 256], strides [8, 256], offsets [0, 0], padded [8, 256]>
!t1 = !ark.tensor<f32, [8, 1], strides [8, 1], offsets [0, 0], padded [8, 1]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.reduce_max (%t0) into (%t1) on (%b1) {axis = 1 : i64, keep_dim = true, node = 0 : i64, op_name = "reduce_max", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.sub (%t0, %t2) into (%t3) on (%b2) {node = 1 : i64, op_name = "sub", result_ids = array<i64: 4>}
    : (!t0, !t1, !t0, !ark.buffer) -> !t0
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t5 = ark.tensor %b3 {id = 5 : i64} : !t0
  %t6 = ark.exp (%t4) into (%t5) on (%b3) {node = 2 : i64, op_name = "exp", result_ids = array<i64: 6>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b4 = ark.buffer {id = 4 : i64} : !ark.buffer
  %t7 = ark.tensor %b4 {id = 7 : i64} : !t1
  %t8 = ark.reduce_sum (%t6) into (%t7) on (%b4) {axis = 1 : i64, keep_dim = true, node = 3 : i64, op_name = "reduce_sum", result_ids = array<i64: 8>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b5 = ark.buffer {id = 5 : i64} : !ark.buffer
  %t9 = ark.tensor %b5 {id = 9 : i64} : !t0
  %t10 = ark.div (%t6, %t8) into (%t9) on (%b5) {node = 4 : i64, op_name = "div", result_ids = array<i64: 10>}
    : (!t0, !t1, !t0, !ark.buffer) -> !t0
}
