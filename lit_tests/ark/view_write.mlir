// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A partial write updates the buffer, whose first contents are then an argument; a read of
// exactly what was written takes the value.
//
// CHECK: func.func @main(%{{.*}}: tensor<6xf32> {tl.name = "buffer_0"}, %[[B:.*]]: tensor<12xf32> {tl.name = "buffer_1", tl.preserved})
// CHECK: %[[X:.*]] = tl.relu
// CHECK: %[[V:.*]] = tl.reshape %[[B]]
// CHECK: %[[U:.*]] = tl.update %[[X]] into %[[V]] {offsets = array<i64: 0, 3>}
// CHECK: tl.exp %[[X]]
// CHECK: tl.sqrt %[[U]]

!t0 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
!t1 = !ark.tensor<f32, [2, 3], strides [2, 6], offsets [0, 3], padded [2, 3]>
!t2 = !ark.tensor<f32, [2, 6], strides [2, 6], offsets [0, 0], padded [2, 6]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.relu (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.exp (%t1) into (%t3) on (%b2) {node = 1 : i64, op_name = "exp", result_ids = array<i64: 4>}
    : (!t1, !t0, !ark.buffer) -> !t0
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t5 = ark.tensor %b3 {id = 5 : i64} : !t2
  %t6 = ark.tensor %b1 {id = 6 : i64} : !t2
  %t7 = ark.sqrt (%t6) into (%t5) on (%b3) {node = 2 : i64, op_name = "sqrt", result_ids = array<i64: 7>}
    : (!t2, !t2, !ark.buffer) -> !t2
}
