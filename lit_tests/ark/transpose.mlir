// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The permutation is NumPy's.
//
// CHECK: tl.transpose %{{.*}} {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>

!t0 = !ark.tensor<f32, [2, 3, 4], strides [2, 3, 4], offsets [0, 0, 0], padded [2, 3, 4]>
!t1 = !ark.tensor<f32, [3, 4, 2], strides [3, 4, 2], offsets [0, 0, 0], padded [3, 4, 2]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.transpose (%t0) into (%t1) on (%b1) {permutation = array<i64: 1, 2, 0>, node = 0 : i64, op_name = "transpose", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
}
