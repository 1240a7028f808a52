// RUN: %irc-opt %s "--plan-ark=planner=ark" | FileCheck %s
// RUN: not %irc-opt %s "--plan-ark=planner=best" 2>&1 | FileCheck %s --check-prefix=NAME
//
// ARK's own planner gives each op its processors and its narrow tiles.
//
// CHECK: ark.exp{{.*}}NumTasks = 8 : i64, NumWarps = 1 : i64, SramBytes = 0 : i64, Tile = array<i64: 1, 64>
// CHECK: ark.relu{{.*}}NumTasks = 8
// CHECK-COUNT-2: plan.processor_group attributes {processor_range = array<i64: 0, 8>}
// NAME: option of plan-ark: expected the planner irc or ark, found 'best'

!t0 = !ark.tensor<f32, [8, 64], strides [8, 64], offsets [0, 0], padded [8, 64]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.exp (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "exp", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.relu (%t2) into (%t3) on (%b2) {node = 1 : i64, op_name = "relu", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
