// A depthwise convolution adds shifted vectors of one channel. Vectors of 64 bytes read it where it is, with masks at its edges.
// Others read a padded copy; with steps of 2, the even elements of its rows are before the odd ones, so that every tap is
// contiguous.
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector)' | FileCheck %s
// RUN: %irc-opt %s --pass-pipeline='builtin.module(tl-to-linalg,linalg-to-vector{vector-bytes=32})' | FileCheck %s --check-prefix=COPY

// CHECK-LABEL: func.func @steps_of_one(
// CHECK-SAME: workspace_bytes = 0
// CHECK: scf.for
// CHECK-COUNT-9: vector.broadcast {{.*}} : f32 to vector<16xf32>
// The rows of tiles between those at the edges. A tile of 7 rows reads 9 rows, each at 3 places, once; the one in the middle is
// inside of the image.
// CHECK: scf.for %{{.*}} step %c7
// CHECK: scf.for
// CHECK-COUNT-2: vector.create_mask
// CHECK-NOT: vector.create_mask
// CHECK-COUNT-7: vector.store
// CHECK: scf.for
// CHECK-NOT: vector.gather
// COPY-LABEL: func.func @steps_of_one(
// COPY-SAME: workspace_bytes = 4672
// A tile of 4 rows reads 6 rows, each at 3 places, once.
// COPY-COUNT-18: vector.load {{.*}} memref<1164xf32>
// COPY-NOT: vector.load
// COPY: vector.store
// COPY-NOT: vector.gather
func.func @steps_of_one(%x: tensor<1x8x32x32xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x32x32xf32> attributes {tl.kernel = #tl.kernel} {
  %0 = tl.conv %x, %w {strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 8 : i64} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x32x32xf32>
  return %0 : tensor<1x8x32x32xf32>
}

// CHECK-LABEL: func.func @steps_of_two(
// CHECK-SAME: workspace_bytes = 0
// CHECK: vector.maskedload
// CHECK: vector.shuffle
// CHECK: math.fma
// CHECK-NOT: vector.gather
// COPY-LABEL: func.func @steps_of_two(
// COPY-SAME: workspace_bytes = 4672
// COPY: vector.shuffle
// COPY: math.fma
// COPY-NOT: vector.gather
func.func @steps_of_two(%x: tensor<1x8x32x32xf32>, %w: tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32> attributes {tl.kernel = #tl.kernel} {
  %0 = tl.conv %x, %w {strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, groups = 8 : i64} : (tensor<1x8x32x32xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}
