// RUN: %irc-opt %s --plan-ark | FileCheck %s
//
// An epilogue takes the tile and the warps of its matmul.
//
// CHECK: plan.task attributes {id = 0 : i64, sram_bytes = [[BYTES:[0-9]+]] : i64, warps = [[WARPS:[0-9]+]] : i64}
// CHECK: ark.matmul{{.*}}NumTasks = [[N:[0-9]+]] : i64, NumWarps = [[WARPS]] : i64, SramBytes = [[BYTES]] : i64, TileShapeMNK = array<i64: [[TM:[0-9]+]], [[TN:[0-9]+]], {{[0-9]+}}>
// CHECK: ark.add{{.*}}NumTasks = [[N]] : i64, NumWarps = [[WARPS]] : i64{{.*}}Tile = array<i64: [[TM]], [[TN]]>
// CHECK: ark.relu{{.*}}NumTasks = [[N]] : i64, NumWarps = [[WARPS]] : i64{{.*}}Tile = array<i64: [[TM]], [[TN]]>
// CHECK-NOT: plan.task attributes

!t0 = !ark.tensor<f16, [256, 128], strides [256, 128], offsets [0, 0], padded [256, 128]>
!t1 = !ark.tensor<f16, [128, 256], strides [128, 256], offsets [0, 0], padded [128, 256]>
!t2 = !ark.tensor<f16, [256, 256], strides [256, 256], offsets [0, 0], padded [256, 256]>
!t3 = !ark.tensor<f16, [256], strides [256], offsets [0], padded [256]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t2
  %t3 = ark.matmul (%t0, %t1) into (%t2) on (%b2) {transpose_input = false, transpose_other = false, node = 0 : i64, op_name = "matmul", result_ids = array<i64: 3>}
    : (!t0, !t1, !t2, !ark.buffer) -> !t2
  %b3 = ark.buffer {id = 3 : i64} : !ark.buffer
  %t4 = ark.tensor %b3 {id = 4 : i64} : !t3
  %b4 = ark.buffer {id = 4 : i64} : !ark.buffer
  %t5 = ark.tensor %b4 {id = 5 : i64} : !t2
  %t6 = ark.add (%t3, %t4) into (%t5) on (%b4) {node = 1 : i64, op_name = "add", result_ids = array<i64: 6>}
    : (!t2, !t3, !t2, !ark.buffer) -> !t2
  %b5 = ark.buffer {id = 5 : i64} : !ark.buffer
  %t7 = ark.tensor %b5 {id = 7 : i64} : !t2
  %t8 = ark.relu (%t6) into (%t7) on (%b5) {node = 2 : i64, op_name = "relu", result_ids = array<i64: 8>}
    : (!t2, !t2, !ark.buffer) -> !t2
}
