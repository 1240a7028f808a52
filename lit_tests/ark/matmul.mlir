// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// Leading dimensions broadcast; a 1-D second operand is a column.
//
// CHECK: %[[C:.*]] = tl.matmul %{{.*}}, %{{.*}} {transpose_rhs = true} : (tensor<2x3x4xf16>, tensor<5x4xf16>) -> tensor<2x3x5xf16>
// CHECK: %[[V:.*]] = tl.reshape %{{.*}} : (tensor<5xf16>) -> tensor<5x1xf16>
// CHECK: tl.matmul %[[C]], %[[V]] : (tensor<2x3x5xf16>, tensor<5x1xf16>) -> tensor<2x3x1xf16>

!t0 = !ark.tensor<f16, [2, 3, 4], strides [2, 3, 4], offsets [0, 0, 0], padded [2, 3, 4]>
!t1 = !ark.tensor<f16, [5, 4], strides [5, 4], offsets [0, 0], padded [5, 4]>
!t2 = !ark.tensor<f16, [2, 3, 5], strides [2, 3, 5], offsets [0, 0, 0], padded [2, 3, 5]>
!t3 = !ark.tensor<f16, [5], strides [5], offsets [0], padded [5]>
!t4 = !ark.tensor<f16, [2, 3, 1], strides [2, 3, 1], offsets [0, 0, 0], padded [2, 3, 1]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t2
  %t3 = ark.matmul (%t0, %t1) into (%t2) on (%b2) {transpose_input = false, transpose_other = true, node = 0 : i64, op_name = "matmul", result_ids = array<i64: 3>}
    : (!t0, !t1, !t2, !ark.buffer) -> !t2
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t4 = ark.tensor %b3 {id = 4 : i64} : !t3
  %b4 = ark.buffer {id = 4 : i64} : !ark.buffer
  %t5 = ark.tensor %b4 {id = 5 : i64} : !t4
  %t6 = ark.matmul (%t2, %t4) into (%t5) on (%b4) {transpose_input = false, transpose_other = false, node = 1 : i64, op_name = "matmul", result_ids = array<i64: 6>}
    : (!t2, !t3, !t4, !ark.buffer) -> !t4
}
