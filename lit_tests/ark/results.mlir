// RUN: %irc-opt %s --ark-to-tl | FileCheck %s --check-prefix=ALL
// RUN: %irc-opt %s --ark-to-tl=results=outputs | FileCheck %s --check-prefix=OUTPUTS
// RUN: %irc-opt %s --ark-to-tl=results=buffer_2,buffer_1 | FileCheck %s --check-prefix=NAMED
// RUN: not %irc-opt %s --ark-to-tl=results=some 2>&1 | FileCheck %s --check-prefix=WRONG
//
// Buffers that are read after their last write are not outputs. Named ones stand in the order of the
// names.
//
// ALL: func.func @main(%arg0: tensor<4xf32> {tl.name = "buffer_0"}) -> (tensor<4xf32> {tl.name = "buffer_1"}, tensor<4xf32> {tl.name = "buffer_2"})
// OUTPUTS: func.func @main(%arg0: tensor<4xf32> {tl.name = "buffer_0"}) -> (tensor<4xf32> {tl.name = "buffer_2"})
// NAMED: func.func @main(%arg0: tensor<4xf32> {tl.name = "buffer_0"}) -> (tensor<4xf32> {tl.name = "buffer_2"}, tensor<4xf32> {tl.name = "buffer_1"})
// WRONG: 'ark.model' op no node writes 'some'; the model writes buffer_1, buffer_2

!t0 = !ark.tensor<f32, [4], strides [4], offsets [0], padded [4]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t0
  %t2 = ark.relu (%t0) into (%t1) on (%b1) {node = 0 : i64, op_name = "relu", result_ids = array<i64: 2>}
    : (!t0, !t0, !ark.buffer) -> !t0
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !t0
  %t4 = ark.exp (%t1) into (%t3) on (%b2) {node = 1 : i64, op_name = "exp", result_ids = array<i64: 4>}
    : (!t0, !t0, !ark.buffer) -> !t0
}
