// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// Rows that no vector access may touch are read element by element.
//
// CHECK: ark.reduce_sum{{.*}}ImplType = "ElementWise"
// CHECK: ark.relu{{.*}}Tile = array<i64: 4, 7>

!t0 = !ark.tensor<f16, [4, 8], strides [4, 9], offsets [0, 1], padded [4, 8]>
!t1 = !ark.tensor<f16, [4, 1], strides [4, 1], offsets [0, 0], padded [4, 1]>
!t2 = !ark.tensor<f16, [4, 8], strides [4, 8], offsets [0, 0], padded [4, 8]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.reduce_sum (%t0) into (%t1) on (%b1) {axis = 1 : i64, keep_dim = true, node = 0 : i64, op_name = "reduce_sum", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t2
  %t4 = ark.relu (%t0) into (%t3) on (%b2) {node = 1 : i64, op_name = "relu", result_ids = array<i64: 4>}
    : (!t0, !t2, !ark.buffer) -> !t2
}
