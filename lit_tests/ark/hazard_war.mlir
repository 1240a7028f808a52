// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The read before the write sees the old contents, the read after it the new.
//
// CHECK: func.func @main(%[[A:.*]]: tensor<4xf32> {tl.name = "buffer_0"}, %[[N:.*]]: tensor<4xf32> {tl.name = "buffer_2"})
// CHECK: tl.relu %[[A]]
// CHECK: tl.exp %[[N]]

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.relu (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.copy (%t3) into (%t0) on (%b0) {node = 1 : i64, op_name = "copy", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t5 = ark.tensor %b3 {id = 5 : i64} : !t0
  %t6 = ark.exp (%t0) into (%t5) on (%b3) {node = 2 : i64, op_name = "exp", result_ids = array<i64: 6>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
