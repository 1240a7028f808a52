// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The kernel computes on padded shapes, so padding is read and written.
//
// CHECK: tl.matmul %{{.*}} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>

!t0 = !ark.tensor<f32, [2, 3], strides [4, 4], offsets [0, 0], padded [4, 4]>
!t1 = !ark.tensor<f32, [3, 4], strides [4, 4], offsets [0, 0], padded [4, 4]>
!t2 = !ark.tensor<f32, [2, 4], strides [4, 4], offsets [0, 0], padded [4, 4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t2
  %t3 = ark.matmul (%t0, %t1) into (%t2) on (%b2) {transpose_input = false, transpose_other = false, node = 0 : i64, op_name = "matmul", result_ids = array<i64: 3>}
    : (!t0, !t1, !t2, !ark.buffer) -> !t2
}
