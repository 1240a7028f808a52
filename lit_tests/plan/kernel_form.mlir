// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// A reduction keeps its dimension, on a view of the output; a transposition that moves nothing is a copy.
//
// CHECK: ark.reduce_sum{{.*}}axis = 0 : i64{{.*}}ImplType = "ElementWise"{{.*}}keep_dim = true{{.*}}-> !ark.tensor<f32, [1, 64], strides
// CHECK: ark.copy

!t0 = !ark.tensor<f32, [8, 64], strides [8, 64], offsets [0, 0], padded [8, 64]>
!t1 = !ark.tensor<f32, [64], strides [64], offsets [0], padded [64]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.reduce_sum (%t0) into (%t1) on (%b1) {axis = 0 : i64, keep_dim = false, node = 0 : i64, op_name = "reduce_sum", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.transpose (%t0) into (%t3) on (%b2) {permutation = array<i64: 0, 1>, node = 1 : i64, op_name = "transpose", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
