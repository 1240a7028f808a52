// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// Virtual ops only name memory.
//
// CHECK: func.func @main(%[[A:.*]]: tensor<4xf32>
// CHECK-NEXT: tl.relu %[[A]]
// CHECK-NEXT: return

!t0 = !ark.tensor<f32, [2, 2], strides [2, 2], offsets [0, 0], padded [2, 2]>
!t1 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %a = ark.view () into () on (%b0) {node = 0 : i64, op_name = "", result_ids = array<i64: 0>, consumers = array<i64: 1>}
    : (!ark.buffer) -> !t0
  %v = ark.view (%a) into () on (%b0) {node = 1 : i64, op_name = "reshape", result_ids = array<i64: 1>, producers = array<i64: 0>, consumers = array<i64: 2>}
    : (!t0, !ark.buffer) -> !t1
  %o = ark.tensor %b1 {id = 2 : i64} : !t1
  %r = ark.relu (%v) into (%o) on (%b1) {node = 2 : i64, op_name = "relu", result_ids = array<i64: 3>, producers = array<i64: 1>}
    : (!t1, !t1, !ark.buffer) -> !t1
}
