// A depthwise convolution adds shifted vectors of one padded channel; with steps of 2, the even elements of its rows
// are before the odd ones, so that every tap is contiguous.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector)' | FileCheck %s

// CHECK-LABEL: func.func @steps_of_one(
// CHECK-SAME: workspace_bytes = 4736
// CHECK: scf.for
// CHECK-COUNT-9: vector.broadcast {{.*}} : f32 to vector<16xf32>
// A tile of 7 rows reads 9 rows, each at 3 places, once.
// CHECK-COUNT-27: vector.load {{.*}} memref<1172xf32>
// CHECK-NOT: vector.load
// CHECK: vector.store
// CHECK-NOT: vector.gather
func.func @steps_of_one(%x: tensor<1x8x32x32xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x32x32xf32> attributes {tl.kernel = #tl.kernel} {
  %0 = tl.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 8 : i64} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x32x32xf32>
  return %0 : tensor<1x8x32x32xf32>
}

// CHECK-LABEL: func.func @steps_of_two(
// CHECK: vector.shuffle
// CHECK: math.fma
// CHECK-NOT: vector.gather
func.func @steps_of_two(%x: tensor<1x8x32x32xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32> attributes {tl.kernel = #tl.kernel} {
  %0 = tl.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 8 : i64} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}
