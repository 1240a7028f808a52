// RUN: not %irc-opt %s 2>&1 | FileCheck %s
//
// Edges lead to nodes that exist.
//
// CHECK: error: 'ark.model' op Nodes[0].ProducerNodeIds[0]: no node has the id 9

!t0 = !ark.tensor<f32, [2, 3], strides [2, 3], offsets [0, 0], padded [2, 3]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t1 = ark.tensor %b2 {id = 1 : i64} : !t0
  %t2 = ark.relu (%t0) into (%t1) on (%b2) {producers = array<i64: 9>, node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
