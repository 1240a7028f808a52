// RUN: %irc-opt %s --split-blocks | FileCheck %s

// Rows of a product are computed together, up to as many as the extent that stands for their number.
// CHECK-LABEL: func.func private @product_rows(%{{.*}}: tensor<251x8xf32>, %{{.*}}: tensor<8x5xf32>) -> tensor<251x5xf32>
// CHECK-SAME: rows = 251
// CHECK: tl.relu %{{.*}} : tensor<251x5xf32>
// CHECK-LABEL: func.func private @product(
// CHECK-SAME: tl.blocks = #tl.blocks<callee = "product_rows", items = 251, counts = ["d0"], bytes = ["32", "0", "20"], cycles = 0>
func.func private @product(%x: tensor<?x8xf32, #tl.dims<"d0", "8">>, %w: tensor<8x5xf32>) -> tensor<?x5xf32, #tl.dims<"d0", "5">>
    attributes {tl.kernel = #tl.kernel<kind = "contraction">} {
  %y = tl.matmul %x, %w : (tensor<?x8xf32, #tl.dims<"d0", "8">>, tensor<8x5xf32>) -> tensor<?x5xf32, #tl.dims<"d0", "5">>
  %z = tl.relu %y : tensor<?x5xf32, #tl.dims<"d0", "5">>
  return %z : tensor<?x5xf32, #tl.dims<"d0", "5">>
}

// Each matrix is an item of its own.
// CHECK-LABEL: func.func private @moved_rows(%{{.*}}: tensor<1x3x4xf32>) -> tensor<1x4x3xf32>
// CHECK-LABEL: func.func private @moved(
// CHECK-SAME: tl.blocks = #tl.blocks<callee = "moved_rows", items = 1, counts = ["2*d0"], bytes = ["48", "48"], cycles = 0>
func.func private @moved(%x: tensor<?x3x4xf32, #tl.dims<"2*d0", "3", "4">>) -> tensor<?x4x3xf32, #tl.dims<"2*d0", "4", "3">>
    attributes {tl.kernel = #tl.kernel<kind = "elementwise">} {
  %y = tl.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<?x3x4xf32, #tl.dims<"2*d0", "3", "4">>) -> tensor<?x4x3xf32, #tl.dims<"2*d0", "4", "3">>
  return %y : tensor<?x4x3xf32, #tl.dims<"2*d0", "4", "3">>
}
