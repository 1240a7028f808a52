// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse))" | FileCheck %s

// The steps of a softmax over rows of an open length are one kernel.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[Y:.*]] = tl.group "loops"
// CHECK: tl.reduce_max
// CHECK-NEXT: tl.sub
// CHECK-NEXT: tl.exp
// CHECK: tl.reduce_sum
// CHECK-NEXT: tl.div
// CHECK-NEXT: tl.yield
// CHECK: return %[[Y]]
func.func @softmax(%x: tensor<4x?xf32, #tl.dims<"4", "M">>) -> tensor<4x?xf32, #tl.dims<"4", "M">> {
  %0 = tl.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x?xf32, #tl.dims<"4", "M">>) -> tensor<4x1xf32>
  %1 = tl.sub %x, %0 : (tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x1xf32>) -> tensor<4x?xf32, #tl.dims<"4", "M">>
  %2 = tl.exp %1 : tensor<4x?xf32, #tl.dims<"4", "M">>
  %3 = tl.reduce_sum %2 {axes = array<i64: 1>, keep_dims = true} : (tensor<4x?xf32, #tl.dims<"4", "M">>) -> tensor<4x1xf32>
  %4 = tl.div %2, %3 : (tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x1xf32>) -> tensor<4x?xf32, #tl.dims<"4", "M">>
  return %4 : tensor<4x?xf32, #tl.dims<"4", "M">>
}

// What is read from outside is stored, and what it is made of too.
// CHECK-LABEL: func.func @returned
// CHECK: tl.group "loops"
// CHECK: tl.reduce_max
// CHECK-NEXT: tl.sub
// CHECK-NEXT: tl.exp
// CHECK-NEXT: tl.yield
// CHECK: tl.group "loops"
// CHECK: tl.reduce_sum
// CHECK-NEXT: tl.div
// CHECK-NEXT: tl.yield
func.func @returned(%x: tensor<4x?xf32, #tl.dims<"4", "M">>) -> (tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x?xf32, #tl.dims<"4", "M">>) {
  %0 = tl.reduce_max %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x?xf32, #tl.dims<"4", "M">>) -> tensor<4x1xf32>
  %1 = tl.sub %x, %0 : (tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x1xf32>) -> tensor<4x?xf32, #tl.dims<"4", "M">>
  %2 = tl.exp %1 : tensor<4x?xf32, #tl.dims<"4", "M">>
  %3 = tl.reduce_sum %2 {axes = array<i64: 1>, keep_dims = true} : (tensor<4x?xf32, #tl.dims<"4", "M">>) -> tensor<4x1xf32>
  %4 = tl.div %2, %3 : (tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x1xf32>) -> tensor<4x?xf32, #tl.dims<"4", "M">>
  return %2, %4 : tensor<4x?xf32, #tl.dims<"4", "M">>, tensor<4x?xf32, #tl.dims<"4", "M">>
}

// Steps along the other axis are no steps of rows.
// CHECK-LABEL: func.func @columns
// CHECK: tl.reduce_max
// CHECK-NEXT: tl.yield
// CHECK: tl.sub
func.func @columns(%x: tensor<?x?xf32, #tl.dims<"N", "M">>) -> tensor<?x?xf32, #tl.dims<"N", "M">> {
  %0 = tl.reduce_max %x {axes = array<i64: 0>, keep_dims = true} : (tensor<?x?xf32, #tl.dims<"N", "M">>) -> tensor<1x?xf32, #tl.dims<"1", "M">>
  %1 = tl.sub %x, %0 : (tensor<?x?xf32, #tl.dims<"N", "M">>, tensor<1x?xf32, #tl.dims<"1", "M">>) -> tensor<?x?xf32, #tl.dims<"N", "M">>
  return %1 : tensor<?x?xf32, #tl.dims<"N", "M">>
}
