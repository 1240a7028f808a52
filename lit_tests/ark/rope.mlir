// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The second operand holds (cos, sin) pairs and broadcasts.
//
// CHECK: tl.rope %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>

!t0 = !ark.tensor<f32, [2, 4], strides [2, 4], offsets [0, 0], padded [2, 4]>
!t1 = !ark.tensor<f32, [1, 4], strides [1, 4], offsets [0, 0], padded [1, 4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t0
  %t3 = ark.rope (%t0, %t1) into (%t2) on (%b2) {node = 0 : i64, op_name = "rope", result_ids = array<i64: 3>}
    : (!t0, !t1, !t0, !ark.buffer) -> !t0
}
