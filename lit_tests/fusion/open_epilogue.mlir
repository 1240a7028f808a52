// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse))" | FileCheck %s

// Maps that follow a convolution of open height and width join its kernel: a bias, a residual, and a comparison with 0.
// CHECK-LABEL: func.func @follow
// CHECK: %[[Y:.*]] = tl.group "loops"
// CHECK: tl.compute({{.*}}combine "sum"
// CHECK-NEXT: tl.compute
// CHECK-NEXT: tl.add
// CHECK-NEXT: tl.relu
// CHECK-NEXT: tl.yield
// CHECK: return %[[Y]]
func.func @follow(%x: tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, %w: tensor<4x4xf32>, %b: tensor<1x4x1x1xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">> {
  %0 = tl.compute(%x, %w) "%0[i0, i4, i2, i3] * %1[i1, i4]" combine "sum" over ["4"] : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<4x4xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %1 = tl.compute(%0, %b) "%0[0, i1, i2, i3] + %1[0, i1, 0, 0]" : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x1x1xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %2 = tl.add %1, %x : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %3 = tl.relu %2 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  return %3 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
}

// Not a function that takes many instructions, and not a value that two ops read.
// CHECK-LABEL: func.func @apart
// CHECK: tl.compute({{.*}}combine "sum"
// CHECK-NEXT: tl.relu
// CHECK-NEXT: tl.yield
// CHECK: tl.group "elementwise"
// CHECK: tl.exp
// CHECK: tl.compute({{.*}}combine "sum"
// CHECK-NEXT: tl.yield
// CHECK: tl.relu
func.func @apart(%x: tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, %w: tensor<4x4xf32>) -> (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>) {
  %0 = tl.compute(%x, %w) "%0[i0, i4, i2, i3] * %1[i1, i4]" combine "sum" over ["4"] : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<4x4xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %1 = tl.relu %0 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %2 = tl.exp %1 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %3 = tl.compute(%x, %w) "%0[i0, i4, i2, i3] * %1[i4, i1]" combine "sum" over ["4"] : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<4x4xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %4 = tl.relu %3 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  return %2, %3, %4 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
}

// Numbers that operands are filled with are parts of the expressions.
// CHECK-LABEL: func.func @bounds
// CHECK-NOT: tl.fill
// CHECK: tl.compute({{.*}}combine "sum"
// CHECK-NEXT: tl.compute({{.*}}) "max(%0[0, i1, i2, i3], 0.0 : f32)"
// CHECK-NEXT: tl.compute({{.*}}) "min(%0[0, i1, i2, i3], 6.0 : f32)"
// CHECK-NEXT: tl.yield
// CHECK-NOT: tl.fill
func.func @bounds(%x: tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, %w: tensor<4x4xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">> {
  %low = tl.fill {value = 0.0 : f64} : tensor<f32>
  %high = tl.fill {value = 6.0 : f64} : tensor<f32>
  %0 = tl.compute(%x, %w) "%0[i0, i4, i2, i3] * %1[i1, i4]" combine "sum" over ["4"] : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<4x4xf32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %1 = tl.max %0, %low : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<f32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  %2 = tl.min %1, %high : (tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>, tensor<f32>) -> tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
  return %2 : tensor<1x4x?x?xf32, #tl.dims<"1", "4", "H", "W">>
}
