// RUN: %irc-opt %s --ark-to-tl | FileCheck %s
//
// It only keeps a buffer allocated, which is nothing to values.
//
// CHECK: func.func @main() attributes {tl.graph} {
// CHECK-NEXT: return

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  ark.noop (%t0) into () on () {node = 0 : i64, op_name = "noop", result_ids = array<i64>}
    : (!t0) -> ()
}
