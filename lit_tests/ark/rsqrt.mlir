// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// One op for one op; whole 1-D buffers need no reshape.
//
// CHECK: func.func @main(%[[A:.*]]: tensor<4xf32>
// CHECK-NEXT: %[[R:.*]] = tl.rsqrt %[[A]] : tensor<4xf32>
// CHECK-NEXT: return %[[R]]

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.rsqrt (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "rsqrt", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
