// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' | FileCheck %s

// Both products, the softmax between them and the transpositions around them are one group. The result is scaled instead of
// the probabilities.
// CHECK-LABEL: func.func @attention
// CHECK:         tl.group "attention"
// CHECK:           tl.transpose
// CHECK:           tl.matmul
// CHECK:           tl.add
// CHECK:           tl.reduce_sum
// CHECK:           [[BY:%.*]] = tl.div %{{.*}} : (tensor<f32>, tensor<2x4x8x1xf32>)
// CHECK:           [[PRODUCT:%.*]] = tl.matmul
// CHECK:           [[RESULT:%.*]] = tl.mul [[PRODUCT]], [[BY]]
// CHECK:           tl.transpose [[RESULT]]
// CHECK-NOT:     tl.group
func.func @attention(%q: tensor<2x4x8x16xf32>, %k: tensor<2x9x4x16xf32>, %v: tensor<2x4x9x16xf32>, %mask: tensor<2x1x1x9xf32>) -> tensor<2x8x4x16xf32> {
  %t = tl.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x9x4x16xf32>) -> tensor<2x4x16x9xf32>
  %m = tl.matmul %q, %t : (tensor<2x4x8x16xf32>, tensor<2x4x16x9xf32>) -> tensor<2x4x8x9xf32>
  %s = tl.add %m, %mask : (tensor<2x4x8x9xf32>, tensor<2x1x1x9xf32>) -> tensor<2x4x8x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 3>, keep_dims = true} : (tensor<2x4x8x9xf32>) -> tensor<2x4x8x1xf32>
  %d = tl.sub %s, %max : (tensor<2x4x8x9xf32>, tensor<2x4x8x1xf32>) -> tensor<2x4x8x9xf32>
  %e = tl.exp %d : tensor<2x4x8x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 3>, keep_dims = true} : (tensor<2x4x8x9xf32>) -> tensor<2x4x8x1xf32>
  %p = tl.div %e, %sum : (tensor<2x4x8x9xf32>, tensor<2x4x8x1xf32>) -> tensor<2x4x8x9xf32>
  %y = tl.matmul %p, %v : (tensor<2x4x8x9xf32>, tensor<2x4x9x16xf32>) -> tensor<2x4x8x16xf32>
  %r = tl.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x8x16xf32>) -> tensor<2x8x4x16xf32>
  return %r : tensor<2x8x4x16xf32>
}

// Probabilities that are a result must be in memory.
// CHECK-LABEL: func.func @returned
// CHECK-NOT:     tl.group "attention"
func.func @returned(%q: tensor<4x8x16xf32>, %k: tensor<4x16x9xf32>, %v: tensor<4x9x16xf32>) -> (tensor<4x8x9xf32>, tensor<4x8x16xf32>) {
  %s = tl.matmul %q, %k : (tensor<4x8x16xf32>, tensor<4x16x9xf32>) -> tensor<4x8x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %d = tl.sub %s, %max : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %e = tl.exp %d : tensor<4x8x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %p = tl.div %e, %sum : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %y = tl.matmul %p, %v : (tensor<4x8x9xf32>, tensor<4x9x16xf32>) -> tensor<4x8x16xf32>
  return %p, %y : tensor<4x8x9xf32>, tensor<4x8x16xf32>
}

// Halves are converted before the products, and the result is rounded once.
// CHECK-LABEL: func.func @halves
// CHECK:         tl.group "attention"
// CHECK-COUNT-2:   tl.cast {{.*}} -> tensor<{{.*}}xf32>
// CHECK:           tl.matmul {{.*}} -> tensor<4x8x9xf32>
// CHECK:           [[EXP:%.*]] = tl.exp
// CHECK:           [[V:%.*]] = tl.cast {{.*}} -> tensor<4x9x16xf32>
// CHECK:           tl.matmul [[EXP]], [[V]]
// CHECK:           tl.mul
// CHECK:           tl.cast {{.*}} -> tensor<4x8x16xf16>
func.func @halves(%q: tensor<4x8x16xf16>, %k: tensor<4x16x9xf16>, %v: tensor<4x9x16xf16>) -> tensor<4x8x16xf16> {
  %h = tl.matmul %q, %k : (tensor<4x8x16xf16>, tensor<4x16x9xf16>) -> tensor<4x8x9xf16>
  %s = tl.cast %h {rounding = "toward_zero"} : (tensor<4x8x9xf16>) -> tensor<4x8x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %d = tl.sub %s, %max : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %e = tl.exp %d : tensor<4x8x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %w = tl.div %e, %sum : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %p = tl.cast %w {rounding = "toward_zero"} : (tensor<4x8x9xf32>) -> tensor<4x8x9xf16>
  %y = tl.matmul %p, %v : (tensor<4x8x9xf16>, tensor<4x9x16xf16>) -> tensor<4x8x16xf16>
  return %y : tensor<4x8x16xf16>
}

// Operands that are converted before, and a result that is converted, are read and written as halves; the same with a causal
// mask.
// CHECK-LABEL: func.func @widened
// CHECK:         tl.group "attention"(%arg0, %arg1, %arg2) {{.*}} -> tensor<8x4x16xf16>
// CHECK-COUNT-2:   tl.cast {{.*}} -> tensor<{{.*}}xf32>
// CHECK:           tl.matmul
// CHECK:           tl.cast {{.*}} -> tensor<4x9x16xf32>
// CHECK:           tl.matmul
// CHECK:           tl.cast {{.*}} -> tensor<4x8x16xf16>
// CHECK-NOT:     tl.group
func.func @widened(%q: tensor<4x8x16xf16>, %k: tensor<4x9x16xf16>, %v: tensor<4x9x16xf16>) -> tensor<8x4x16xf16> {
  %q32 = tl.cast %q {rounding = "toward_zero"} : (tensor<4x8x16xf16>) -> tensor<4x8x16xf32>
  %k32 = tl.cast %k {rounding = "toward_zero"} : (tensor<4x9x16xf16>) -> tensor<4x9x16xf32>
  %v32 = tl.cast %v {rounding = "toward_zero"} : (tensor<4x9x16xf16>) -> tensor<4x9x16xf32>
  %s = tl.matmul %q32, %k32 {transpose_rhs = true} : (tensor<4x8x16xf32>, tensor<4x9x16xf32>) -> tensor<4x8x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %d = tl.sub %s, %max : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %e = tl.exp %d : tensor<4x8x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %p = tl.div %e, %sum : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %y = tl.matmul %p, %v32 : (tensor<4x8x9xf32>, tensor<4x9x16xf32>) -> tensor<4x8x16xf32>
  %h = tl.cast %y {rounding = "toward_zero"} : (tensor<4x8x16xf32>) -> tensor<4x8x16xf16>
  %r = tl.transpose %h {permutation = array<i64: 1, 0, 2>} : (tensor<4x8x16xf16>) -> tensor<8x4x16xf16>
  return %r : tensor<8x4x16xf16>
}

// CHECK-LABEL: func.func @widened_causal
// CHECK:         tl.group "attention"(%arg0, %arg1, %arg2) {{.*}} -> tensor<9x4x16xf16>
// CHECK-NOT:     tl.group
func.func @widened_causal(%q: tensor<4x9x16xf16>, %k: tensor<4x9x16xf16>, %v: tensor<4x9x16xf16>) -> tensor<9x4x16xf16> {
  %q32 = tl.cast %q {rounding = "toward_zero"} : (tensor<4x9x16xf16>) -> tensor<4x9x16xf32>
  %k32 = tl.cast %k {rounding = "toward_zero"} : (tensor<4x9x16xf16>) -> tensor<4x9x16xf32>
  %v32 = tl.cast %v {rounding = "toward_zero"} : (tensor<4x9x16xf16>) -> tensor<4x9x16xf32>
  %m = tl.matmul %q32, %k32 {transpose_rhs = true} : (tensor<4x9x16xf32>, tensor<4x9x16xf32>) -> tensor<4x9x9xf32>
  %s = tl.compute(%m) "select(i2 <= i1 + 0, %0[i0, i1, i2], -inf : f32)" : (tensor<4x9x9xf32>) -> tensor<4x9x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<4x9x9xf32>) -> tensor<4x9x1xf32>
  %d = tl.sub %s, %max : (tensor<4x9x9xf32>, tensor<4x9x1xf32>) -> tensor<4x9x9xf32>
  %e = tl.exp %d : tensor<4x9x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<4x9x9xf32>) -> tensor<4x9x1xf32>
  %p = tl.div %e, %sum : (tensor<4x9x9xf32>, tensor<4x9x1xf32>) -> tensor<4x9x9xf32>
  %y = tl.matmul %p, %v32 : (tensor<4x9x9xf32>, tensor<4x9x16xf32>) -> tensor<4x9x16xf32>
  %h = tl.cast %y {rounding = "toward_zero"} : (tensor<4x9x16xf32>) -> tensor<4x9x16xf16>
  %r = tl.transpose %h {permutation = array<i64: 1, 0, 2>} : (tensor<4x9x16xf16>) -> tensor<9x4x16xf16>
  return %r : tensor<9x4x16xf16>
}

// Sizes of queries and keys may be open: general ops become named ones again.
// CHECK-LABEL: func.func @open
// CHECK:         tl.group "attention"
// CHECK:           tl.transpose {{.*}} -> tensor<?x16x?xf32
// CHECK:           tl.matmul
// CHECK:           tl.select
// CHECK:           tl.reduce_max
// CHECK:           tl.matmul
// CHECK:           tl.mul
// CHECK-NOT:     tl.group
func.func @open(%q: tensor<?x?x16xf32, #tl.dims<"N", "S", "16">>, %k: tensor<?x?x16xf32, #tl.dims<"N", "T", "16">>, %v: tensor<?x?x16xf32, #tl.dims<"N", "T", "16">>, %shown: tensor<?x?xi1, #tl.dims<"S", "T">>) -> tensor<?x?x16xf32, #tl.dims<"N", "S", "16">> {
  %t = tl.compute(%k) "%0[i0, i2, i1]" : (tensor<?x?x16xf32, #tl.dims<"N", "T", "16">>) -> tensor<?x16x?xf32, #tl.dims<"N", "16", "T">>
  %m = tl.matmul %q, %t : (tensor<?x?x16xf32, #tl.dims<"N", "S", "16">>, tensor<?x16x?xf32, #tl.dims<"N", "16", "T">>) -> tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>
  %low = tl.fill {value = -1.0e4 : f64} : tensor<f32>
  %s = tl.compute(%shown, %m, %low) "select(%0[i1, i2], %1[i0, i1, i2], %2[])" : (tensor<?x?xi1, #tl.dims<"S", "T">>, tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>, tensor<f32>) -> tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>
  %max = tl.compute(%s) "%0[i0, i1, i3]" combine "max" over ["T"] : (tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>) -> tensor<?x?x1xf32, #tl.dims<"N", "S", "1">>
  %d = tl.compute(%s, %max) "%0[i0, i1, i2] - %1[i0, i1, 0]" : (tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>, tensor<?x?x1xf32, #tl.dims<"N", "S", "1">>) -> tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>
  %e = tl.exp %d : tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>
  %sum = tl.compute(%e) "%0[i0, i1, i3]" combine "sum" over ["T"] : (tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>) -> tensor<?x?x1xf32, #tl.dims<"N", "S", "1">>
  %p = tl.compute(%e, %sum) "%0[i0, i1, i2] / %1[i0, i1, 0]" : (tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>, tensor<?x?x1xf32, #tl.dims<"N", "S", "1">>) -> tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>
  %y = tl.matmul %p, %v : (tensor<?x?x?xf32, #tl.dims<"N", "S", "T">>, tensor<?x?x16xf32, #tl.dims<"N", "T", "16">>) -> tensor<?x?x16xf32, #tl.dims<"N", "S", "16">>
  return %y : tensor<?x?x16xf32, #tl.dims<"N", "S", "16">>
}

// A causal mask that is composed of ops is one, and the first keys and values of buffers are read where they are.
// CHECK-LABEL: func.func @cached
// CHECK:         tl.group "attention"({{.*}}) : (tensor<4x8x16xf32>, tensor<4x32x16xf32>, tensor<4x32x16xf32>)
// CHECK-DAG:       tl.slice {{.*}} -> tensor<4x9x16xf32>
// CHECK-DAG:       tl.compute({{.*}}) "select(i2 <= i1 + 1, %0[i0, i1, i2], -inf : f32)"
// CHECK:           tl.reduce_max
// CHECK:           tl.slice {{.*}} -> tensor<4x9x16xf32>
// CHECK-NOT:     tl.group
func.func @cached(%q: tensor<4x8x16xf32>, %k: tensor<4x32x16xf32>, %v: tensor<4x32x16xf32>) -> tensor<4x8x16xf32> {
  %ones = tl.compute() "select(i0 - i1 > -2, 1.0 : f32, 0.0 : f32)" : () -> tensor<8x9xf32>
  %one = tl.fill {value = 1.0 : f64} : tensor<f32>
  %others = tl.sub %one, %ones : (tensor<f32>, tensor<8x9xf32>) -> tensor<8x9xf32>
  %low = tl.fill {value = -1.0e9 : f64} : tensor<f32>
  %term = tl.mul %others, %low : (tensor<8x9xf32>, tensor<f32>) -> tensor<8x9xf32>
  %mask = tl.reshape %term : (tensor<8x9xf32>) -> tensor<1x8x9xf32>
  %first = tl.slice %k {offsets = array<i64: 0, 0, 0>} : (tensor<4x32x16xf32>) -> tensor<4x9x16xf32>
  %values = tl.slice %v {offsets = array<i64: 0, 0, 0>} : (tensor<4x32x16xf32>) -> tensor<4x9x16xf32>
  %m = tl.matmul %q, %first {transpose_rhs = true} : (tensor<4x8x16xf32>, tensor<4x9x16xf32>) -> tensor<4x8x9xf32>
  %s = tl.add %m, %mask : (tensor<4x8x9xf32>, tensor<1x8x9xf32>) -> tensor<4x8x9xf32>
  %max = tl.reduce_max %s {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %d = tl.sub %s, %max : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %e = tl.exp %d : tensor<4x8x9xf32>
  %sum = tl.reduce_sum %e {axes = array<i64: 2>, keep_dims = true} : (tensor<4x8x9xf32>) -> tensor<4x8x1xf32>
  %p = tl.div %e, %sum : (tensor<4x8x9xf32>, tensor<4x8x1xf32>) -> tensor<4x8x9xf32>
  %y = tl.matmul %p, %values : (tensor<4x8x9xf32>, tensor<4x9x16xf32>) -> tensor<4x8x16xf32>
  return %y : tensor<4x8x16xf32>
}
