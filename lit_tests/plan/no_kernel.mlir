// RUN: not %irc-opt %s --plan-ark=arch=ROCM_90A 2>&1 | FileCheck %s --check-prefix=ROCM
// RUN: not %irc-opt %s --plan-ark=arch=CUDA_86 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not %irc-opt %s --plan-ark=processors=200 2>&1 | FileCheck %s --check-prefix=MANY
//
// What an architecture has no kernel for is said at the node; so is a wrong option.
//
// ROCM: m.json:5:7
// ROCM-SAME: error: 'ark.matmul' op Matmul of FP16 has no known kernel on ROCM_90A;
// NAME: error: {{.*}}option of plan-ark: expected one of ANY, CUDA, {{.*}}, found 'CUDA_86'
// MANY: error: {{.*}}option of plan-ark: expected 1 to 108 processors on CUDA_80, found 200

!t0 = !ark.tensor<f16, [128, 64], strides [128, 64], offsets [0, 0], padded [128, 64]>
!t1 = !ark.tensor<f16, [64, 256], strides [64, 256], offsets [0, 0], padded [64, 256]>
!t2 = !ark.tensor<f16, [128, 256], strides [128, 256], offsets [0, 0], padded [128, 256]>
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !t0
  %b1 = ark.buffer {id = 1 : i64} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !t1
  %b2 = ark.buffer {id = 2 : i64} : !ark.buffer
  %t2 = ark.tensor %b2 {id = 2 : i64} : !t2
  %t3 = ark.matmul (%t0, %t1) into (%t2) on (%b2) {transpose_input = false, transpose_other = false, node = 0 : i64, op_name = "matmul", result_ids = array<i64: 3>}
    : (!t0, !t1, !t2, !ark.buffer) -> !t2 loc("$.Nodes[0].Op"("m.json":5:7))
}
