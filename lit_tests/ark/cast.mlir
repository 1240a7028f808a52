// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// ARK rounds 16-bit floats to 32-bit integers and truncates everywhere else.
//
// CHECK: tl.cast %{{.*}} {rounding = "toward_zero"} : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: tl.cast %{{.*}} {rounding = "nearest_even"} : (tensor<4xf16>) -> tensor<4xi32>
// CHECK: tl.cast %{{.*}} {rounding = "toward_zero"} : (tensor<4xf16>) -> tensor<4xi8>
// CHECK: tl.cast %{{.*}} {rounding = "toward_zero"} : (tensor<4xi32>) -> tensor<4xbf16>

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
!t1 = !ark.tensor<i32, [4], strides [4], offsets [0], padded [4]>
!t2 = !ark.tensor<f16, [4], strides [4], offsets [0], padded [4]>
!t3 = !ark.tensor<i8, [4], strides [4], offsets [0], padded [4]>
!t4 = !ark.tensor<bf16, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.cast (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "cast", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t2
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t4 = ark.tensor %b3 {id = 4 : i64} : !t1
  %t5 = ark.cast (%t3) into (%t4) on (%b3) {node = 1 : i64, op_name = "cast", result_ids = array<i64: 5>}
    : (!t2, !t1, !ark.buffer) -> !t1
  %b4 = ark.buffer {id = 4 : i64} : !ark.buffer
  %t6 = ark.tensor %b4 {id = 6 : i64} : !t2
  %b5 = ark.buffer {id = 5 : i64} : !ark.buffer
  %t7 = ark.tensor %b5 {id = 7 : i64} : !t3
  %t8 = ark.cast (%t6) into (%t7) on (%b5) {node = 2 : i64, op_name = "cast", result_ids = array<i64: 8>}
    : (!t2, !t3, !ark.buffer) -> !t3
  %b6 = ark.buffer {id = 6 : i64} : !ark.buffer
  %t9 = ark.tensor %b6 {id = 9 : i64} : !t1
  %b7 = ark.buffer {id = 7 : i64} : !ark.buffer
  %t10 = ark.tensor %b7 {id = 10 : i64} : !t4
  %t11 = ark.cast (%t9) into (%t10) on (%b7) {node = 3 : i64, op_name = "cast", result_ids = array<i64: 11>}
    : (!t1, !t4, !ark.buffer) -> !t4
}
