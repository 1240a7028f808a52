// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// A constant needs no argument.
//
// CHECK: func.func @main() -> (tensor<6xf32> {tl.name = "buffer_0"})
// CHECK: tl.fill {value = 3.000000e+00 : f64} : tensor<2x3xf32>

!t0 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %t1 = ark.scalar_assign () into (%t0) on (%b0) {value = 3.000000e+00 : f32, node = 0 : i64, op_name = "scalar_assign", result_ids = array<i64: 1>}
    : (!t0, !ark.buffer) -> !t0
}
