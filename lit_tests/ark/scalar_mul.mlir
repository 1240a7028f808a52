// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// An integer tensor takes the factor truncated.
//
// CHECK: %[[F:.*]] = tl.fill {value = 2.000000e+00 : f64} : tensor<i32>
// CHECK: tl.mul %{{.*}}, %[[F]]

!t0 = !ark.tensor<i32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.scalar_mul (%t0) into (%t1) on (%b1) {factor = 2.500000e+00 : f32, node = 0 : i64, op_name = "scalar_mul", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
