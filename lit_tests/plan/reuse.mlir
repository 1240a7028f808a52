// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// An operand that nobody reads later is overwritten; what the user gives and gets has its buffer.
//
// CHECK: ark.buffer {id = 0 : i64}
// CHECK: ark.buffer {id = 6 : i64}
// CHECK: ark.buffer {id = 2 : i64}
// CHECK-NOT: ark.buffer

!t0 = !ark.tensor<f32, [8, 64], strides [8, 64], offsets [0, 0], padded [8, 64]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.exp (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "exp", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b5 = ark.buffer {id = 5 : i64} : !ark.buffer
  %t5 = ark.tensor %b5 {id = 5 : i64} : !t0
  %t6 = ark.sqrt (%t2) into (%t5) on (%b5) {node = 1 : i64, op_name = "sqrt", result_ids = array<i64: 6>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.relu (%t6) into (%t3) on (%b2) {node = 2 : i64, op_name = "relu", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
