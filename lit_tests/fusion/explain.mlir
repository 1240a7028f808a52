// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse{explain=true}))' --verify-diagnostics -o /dev/null

func.func @explain(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x1xf32> {
  %m = tl.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // expected-remark @below {{group contraction: tl.matmul, tl.relu; cost 17288 -> 8840}}
  // expected-remark-re @below {{fused by epilogue-unary: tl.matmul ({{.*}}) into tl.relu ({{.*}}); producer is contraction over [4, 8], together contraction over [4, 8]}}
  %r = tl.relu %m : tensor<4x8xf32>
  // expected-remark @below {{group rows: tl.reduce_sum; cost}}
  // expected-remark-re @below {{kept in memory: tl.relu ({{.*}}) not into tl.reduce_sum ({{.*}}): expected an elementwise producer, found contraction over [4, 8]}}
  %s = tl.reduce_sum %r {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %s : tensor<4x1xf32>
}
