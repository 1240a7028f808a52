// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// The factor is a constant of the tensor's type.
//
// CHECK: %[[F:.*]] = tl.fill {value = 5.000000e-01 : f64} : tensor<f16>
// CHECK: tl.add %{{.*}}, %[[F]] : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>

!t0 = !ark.tensor<f16, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.scalar_add (%t0) into (%t1) on (%b1) {factor = 5.000000e-01 : f32, node = 0 : i64, op_name = "scalar_add", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
