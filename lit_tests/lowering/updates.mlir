// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse),outline-kernels)' | FileCheck %s

// The result has the rows of the cache but for new ones. Nothing else reads the cache, so it may be in its memory.
// CHECK-LABEL: func.func @rows
// CHECK-SAME:    -> (tensor<2x9x4xf32> {tl.name = "present", tl.updates = "past"}, tensor<2x9x4xf32> {tl.name = "negative"})
func.func @rows(%past: tensor<2x9x4xf32> {tl.name = "past"}, %new: tensor<2x1x4xf32> {tl.name = "new"}) -> (tensor<2x9x4xf32> {tl.name = "present"}, tensor<2x9x4xf32> {tl.name = "negative"}) {
  %present = tl.compute(%new, %past) "select(i1 >= 5 and i1 < 6, %0[i0, i1 - 5, i2], %1[i0, i1, i2])" : (tensor<2x1x4xf32>, tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
  %negative = tl.neg %present : tensor<2x9x4xf32>
  return %present, %negative : tensor<2x9x4xf32>, tensor<2x9x4xf32>
}

// What is behind the new rows may be zero, and the first one differ from sequence to sequence.
// CHECK-LABEL: func.func @zeros
// CHECK-SAME:    tl.updates = "past"
func.func @zeros(%past: tensor<2x9x4xf32> {tl.name = "past"}, %new: tensor<2x1x4xf32> {tl.name = "new"}, %start: tensor<2xi64> {tl.name = "start"}) -> (tensor<2x9x4xf32> {tl.name = "present"}) {
  %present = tl.compute(%new, %past, %start) "select(i1 >= %2[i0] and i1 < %2[i0] + 1, %0[i0, i1 - %2[i0], i2], select(i1 < min(%2[i0], 9), %1[i0, i1, i2], 0.0 : f32))" : (tensor<2x1x4xf32>, tensor<2x9x4xf32>, tensor<2xi64>) -> tensor<2x9x4xf32>
  return %present : tensor<2x9x4xf32>
}

// Another kernel reads the rows that would be gone.
// CHECK-LABEL: func.func @read
// CHECK-NOT:     tl.updates
func.func @read(%past: tensor<2x9x4xf32> {tl.name = "past"}, %new: tensor<2x1x4xf32> {tl.name = "new"}) -> (tensor<2x9x4xf32> {tl.name = "present"}, tensor<2x9x4xf32> {tl.name = "negative"}) {
  %present = tl.compute(%new, %past) "select(i1 >= 5 and i1 < 6, %0[i0, i1 - 5, i2], %1[i0, i1, i2])" : (tensor<2x1x4xf32>, tensor<2x9x4xf32>) -> tensor<2x9x4xf32>
  %negative = tl.neg %past : tensor<2x9x4xf32>
  return %present, %negative : tensor<2x9x4xf32>, tensor<2x9x4xf32>
}
