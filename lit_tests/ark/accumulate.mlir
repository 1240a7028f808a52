// RUN: %irc-opt %s --ark-to-tl=accumulate=ark | FileCheck %s
// RUN: not %irc-opt %s --ark-to-tl=accumulate=narrow 2>&1 | FileCheck %s --check-prefix=BAD
//
// A row of 48 halves: 32 threads with 8 each in one step, filled up with zeros; then halves.
//
// CHECK: %[[A:.*]] = tl.reshape %arg0 {{.*}} -> tensor<2x48xf16>
// CHECK: %[[Z:.*]] = tl.fill {{.*}}value = 0.000000e+00{{.*}} : tensor<2x256xf16>
// CHECK: %[[P:.*]] = tl.update %[[A]] into %[[Z]]
// CHECK: %[[L:.*]] = tl.reshape %[[P]] {{.*}} -> tensor<2x1x256xf16>
// CHECK: tl.sequential_sum %[[L]] {{.*}}axis = 1
// CHECK: tl.reshape {{.*}} -> tensor<64x2x4xf16>
// CHECK: tl.reshape {{.*}} -> tensor<64x2x2xf16>
// CHECK: tl.reshape {{.*}} -> tensor<64x2x1xf16>
// CHECK: tl.reshape {{.*}} -> tensor<2x2x16xf16>
// CHECK: tl.reshape {{.*}} -> tensor<2x2x1xf16>
// CHECK: %[[S:.*]] = tl.sequential_sum
// CHECK: tl.reshape {{.*}} -> tensor<2x1xf16>
//
// Single precision goes as ever.
//
// CHECK: tl.reduce_sum {{.*}} -> tensor<2x1xf32>
//
// BAD: option 'accumulate' of ark-to-tl: expected 'wide' or 'ark', found 'narrow'

!t0 = !ark.tensor<f16, [2, 48], strides [2, 48], offsets [0, 0], padded [2, 48]>
!t1 = !ark.tensor<f16, [2, 1], strides [2, 1], offsets [0, 0], padded [2, 1]>
!t2 = !ark.tensor<f32, [2, 48], strides [2, 48], offsets [0, 0], padded [2, 48]>
!t3 = !ark.tensor<f32, [2, 1], strides [2, 1], offsets [0, 0], padded [2, 1]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %t2 = ark.reduce_sum (%t0) into (%t1) on (%b1) {axis = 1 : i64, keep_dim = true, node = 0 : i64, op_name = "reduce_sum", result_ids = array<i64: 2>}
    : (!t0, !t1, !ark.buffer) -> !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t2
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t4 = ark.tensor %b3 {id = 4 : i64} : !t3
  %t5 = ark.reduce_sum (%t3) into (%t4) on (%b3) {axis = 1 : i64, keep_dim = true, node = 1 : i64, op_name = "reduce_sum_1", result_ids = array<i64: 5>}
    : (!t2, !t3, !ark.buffer) -> !t3
}
