// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// With and without the reduced dimension.
//
// CHECK: %[[A:.*]] = tl.reshape
// CHECK: tl.reduce_max %[[A]] {axes = array<i64: 1>, keep_dims = true} : (tensor<2x3xf32>) -> tensor<2x1xf32>
// CHECK: tl.reduce_max %[[A]] {axes = array<i64: 0>, keep_dims = false} : (tensor<2x3xf32>) -> tensor<3xf32>

!t0 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
!t1 = !ark.tensor<f32, [2, 1], strides [2, 1], offsets [0, 0], padded [2, 1]>
!t2 = !ark.tensor<f32, [3], strides [3], offsets [0], padded [3]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.reduce_max (%t0) into (%t1) on (%b1) {axis = 1 : i64, keep_dim = true, node = 0 : i64, op_name = "reduce_max", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t2
  %t4 = ark.reduce_max (%t0) into (%t3) on (%b2) {axis = 0 : i64, keep_dim = false, node = 1 : i64, op_name = "reduce_max", result_ids = array<i64: 4>}
    : (!t0, !t2, !ark.buffer) -> !t2
}
