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
// CHECK-SAME:  bytes = ["33536", "2304", "2304", "33536", "64", "576", "576", "64", "256", "0", "0", "256"]
func.func private @attention(%q: tensor<2x131x4x16xf32>, %k: tensor<2x4x16x9xf32>, %v: tensor<2x4x9x16xf32>) -> tensor<2x131x4x16xf32>
    attributes {tl.kernel = #tl.kernel<kind = "attention">} {
  %t = tl.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x131x4x16xf32>) -> tensor<2x4x131x16xf32>
  %s = tl.matmul %t, %k : (tensor<2x4x131x16xf32>, tensor<2x4x16x9xf32>) -> tensor<2x4x131x9xf32>
  %e = tl.exp %s : tensor<2x4x131x9xf32>
  %y = tl.matmul %e, %v : (tensor<2x4x131x9xf32>, tensor<2x4x9x16xf32>) -> tensor<2x4x131x16xf32>
  %r = tl.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x131x16xf32>) -> tensor<2x131x4x16xf32>
  return %r : tensor<2x131x4x16xf32>
}

// Of an open number of queries and keys, a call gets up to 64 rows and 1008 columns. The highest scores, the sums of powers
// and those of values pass from one call to the next. A mask with rows an open size apart is copied.
// CHECK-LABEL: func.func private @open_block(
// CHECK-SAME:  tensor<1x64x16xf32>{{.*}} tensor<1x16x1008xf32>{{.*}} tensor<1x64x1008xf32>{{.*}} tensor<1x1008x16xf32>
// CHECK-SAME:  tensor<1x64x1xf32>, %{{.*}}: tensor<1x64x1xf32>, %{{.*}}: tensor<1x64x16xf32>) -> (tensor<1x64x16xf32>
// CHECK-SAME:  rows = 64, columns = 1008
// CHECK:       tl.max
// CHECK-LABEL: func.func private @open_columns(
// CHECK-SAME:  -> (tensor<1x64x1xf32>, tensor<1x64x1xf32>, tensor<1x64x16xf32>)
// CHECK-LABEL: func.func private @open(
// CHECK-SAME:  callee = "open_block", items = 64, counts = ["d0", "d1"]
// CHECK-SAME:  bytes = ["64*d1", "64*d2", "4*d1*d2", "64*d2", "64*d1", "64", "0", "4*d2", "0", "64"]
// CHECK-SAME:  columns = #tl.columns<callee = "open_columns", items = 1008, count = "d2", bytes = [0, 4, 4, 64], copied = ["0", "4*d2", "4*d2", "0"]>
func.func private @open(%q: tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>, %k: tensor<?x16x?xf32, #tl.dims<"d0", "16", "d2">>, %mask: tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>, %v: tensor<?x?x16xf32, #tl.dims<"d0", "d2", "16">>) -> tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>
    attributes {tl.kernel = #tl.kernel<kind = "attention">} {
  %m = tl.matmul %q, %k : (tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>, tensor<?x16x?xf32, #tl.dims<"d0", "16", "d2">>) -> tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>
  %s = tl.add %m, %mask : (tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>, tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>) -> tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>) -> tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>
  %d = tl.sub %s, %max : (tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>, tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>) -> tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>
  %e = tl.exp %d : tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>) -> tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>
  %one = tl.fill {value = 1.0 : f64} : tensor<f32>
  %by = tl.div %one, %sum : (tensor<f32>, tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>) -> tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>
  %y = tl.matmul %e, %v : (tensor<?x?x?xf32, #tl.dims<"d0", "d1", "d2">>, tensor<?x?x16xf32, #tl.dims<"d0", "d2", "16">>) -> tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>
  %r = tl.mul %y, %by : (tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>, tensor<?x?x1xf32, #tl.dims<"d0", "d1", "1">>) -> tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>
  return %r : tensor<?x?x16xf32, #tl.dims<"d0", "d1", "16">>
}
