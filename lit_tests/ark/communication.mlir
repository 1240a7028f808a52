// RUN: not %irc-opt %s --ark-to-tl 2>&1 | FileCheck %s
//
// Communication has no meaning at the tensor level yet; the message stands in the user's file.
//
// CHECK: two.json:3:5
// CHECK-SAME: error: 'ark.send' op Send 'send' of node 0: communication between ranks is not compiled

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 2 : i64} {
  %b0 = ark.buffer {id = 0 : i64, send_tags = array<i64: 1, 7>} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64, rank = 1 : i64, recv_tags = array<i64: -1, 7>} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.send (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "send", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0 loc("$.Nodes[0].Op"("two.json":3:5))
}
