// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The output is 4-D whatever the rank of the index.
//
// CHECK: %[[W:.*]] = tl.reshape %arg1
// CHECK: %[[R:.*]] = tl.gather %[[W]], %arg0 : (tensor<7x4xf32>, tensor<5xi32>) -> tensor<5x4xf32>
// CHECK: tl.reshape %[[R]] : (tensor<5x4xf32>) -> tensor<1x1x5x4xf32>

!t0 = !ark.tensor<i32, [5], strides [5], offsets [0], padded [5]>
!t1 = !ark.tensor<f32, [7, 4], strides [7, 4], offsets [0, 0], padded [7, 4]>
!t2 = !ark.tensor<f32, [1, 1, 5, 4], strides [1, 1, 5, 4], offsets [0, 0, 0, 0], padded [1, 1, 5, 4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t2
  %t3 = ark.embedding (%t0, %t1) into (%t2) on (%b2) {node = 0 : i64, op_name = "embedding", result_ids = array<i64: 3>}
    : (!t0, !t1, !t2, !ark.buffer) -> !t2
}
