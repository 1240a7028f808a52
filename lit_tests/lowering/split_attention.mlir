// RUN: %irc-opt %s --split-blocks | FileCheck %s

// A block is rows of one head: a transposed operand and result have strides. 131 rows are two blocks of 66.
// CHECK-LABEL: func.func private @attention_block(
// CHECK-SAME:  tensor<1x1x66x16xf32> {tl.strides = array<i64: 8384, 16, 64, 1>}
// CHECK-SAME:  tensor<1x1x16x9xf32> {tl.strides = array<i64: 576, 144, 9, 1>}
// CHECK-SAME:  tensor<1x1x9x16xf32> {tl.strides = array<i64: 576, 144, 16, 1>}
// CHECK-SAME:  -> (tensor<1x1x66x16xf32> {tl.strides = array<i64: 8384, 16, 64, 1>})
// CHECK-SAME:  kind = "block", keeps
// CHECK-NOT:   tl.transpose
// CHECK-LABEL: func.func private @attention(
// CHECK-SAME:  callee = "attention_block", items = 66, counts = ["2", "4", "131"]
// CHECK-SAME:  bytes = [33536, 2304, 2304, 33536, 64, 576, 576, 64, 256, 0, 0, 256]
func.func private @attention(%q: tensor<2x131x4x16xf32>, %k: tensor<2x4x16x9xf32>, %v: tensor<2x4x9x16xf32>) -> tensor<2x131x4x16xf32>
    attributes {tl.kernel = #tl.kernel<kind = "attention">} {
  %t = tl.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x131x4x16xf32>) -> tensor<2x4x131x16xf32>
  %s = tl.matmul %t, %k : (tensor<2x4x131x16xf32>, tensor<2x4x16x9xf32>) -> tensor<2x4x131x9xf32>
  %e = tl.exp %s : tensor<2x4x131x9xf32>
  %y = tl.matmul %e, %v : (tensor<2x4x131x9xf32>, tensor<2x4x9x16xf32>) -> tensor<2x4x131x16xf32>
  %r = tl.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x131x16xf32>) -> tensor<2x131x4x16xf32>
  return %r : tensor<2x131x4x16xf32>
}
