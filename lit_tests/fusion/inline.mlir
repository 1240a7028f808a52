// RUN: %irc-opt %s --pass-pipeline="builtin.module(func.func(fuse))" | FileCheck %s

// A chain of elementwise ops on a symbolic size is one expression; a value that two ops read is not
// computed twice, and one that is broadcast not for every reader.
// CHECK-LABEL: func.func @chain
func.func @chain(%x: tensor<?x4xf32, #tl.dims<"N", "4">>)
    -> (tensor<?xf32, #tl.dims<"N">>, tensor<?x4xf32, #tl.dims<"N", "4">>) {
  // CHECK: tl.compute(%{{.*}}) "exp(%0[i0, i1] - 1.0 : f32)" :
  %a = tl.compute(%x) "%0[i0, i1] - 1.0 : f32" : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x4xf32, #tl.dims<"N", "4">>
  %b = tl.compute(%a) "exp(%0[i0, i1])" : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x4xf32, #tl.dims<"N", "4">>
  // CHECK: tl.compute(%{{.*}}) "%0[i0, i1] * %0[i0, i1]" combine "sum" over ["4"]
  %c = tl.compute(%b) "%0[i0, i1] * %0[i0, i1]" : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x4xf32, #tl.dims<"N", "4">>
  %s = tl.compute(%c) "%0[i0, i1]" combine "sum" over ["4"] : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"N">>
  // CHECK: tl.compute(%{{.*}}) "sqrt(%0[i0])"
  %r = tl.compute(%s) "sqrt(%0[i0])" : (tensor<?xf32, #tl.dims<"N">>) -> tensor<?xf32, #tl.dims<"N">>
  // CHECK: tl.compute(%{{.*}}, %{{.*}}) "%0[i0, i1] / %1[i0]"
  %y = tl.compute(%b, %r) "%0[i0, i1] / %1[i0]" : (tensor<?x4xf32, #tl.dims<"N", "4">>, tensor<?xf32, #tl.dims<"N">>) -> tensor<?x4xf32, #tl.dims<"N", "4">>
  return %s, %y : tensor<?xf32, #tl.dims<"N">>, tensor<?x4xf32, #tl.dims<"N", "4">>
}

// The same elements in the same order are the same memory.
// CHECK-LABEL: func.func @view
// CHECK-NEXT: %[[V:.*]] = tl.reshape %{{.*}} : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x2xf32, #tl.dims<"2*N", "2">>
// CHECK-NEXT: tl.group "elementwise"(%[[V]])
func.func @view(%x: tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x2xf32, #tl.dims<"2*N", "2">> {
  %y = tl.compute(%x) "%0[((0 + i0) * size(2) + i1) / size(4), rem((0 + i0) * size(2) + i1, size(4))]" : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?x2xf32, #tl.dims<"2*N", "2">>
  %z = tl.exp %y : tensor<?x2xf32, #tl.dims<"2*N", "2">>
  return %z : tensor<?x2xf32, #tl.dims<"2*N", "2">>
}

// A scalar that is repeated is no view of it: it has fewer elements.
// CHECK-LABEL: func.func @repeated
// CHECK-NOT: tl.reshape
// CHECK: return
func.func @repeated(%x: tensor<f32>) -> tensor<?x2xf32, #tl.dims<"N", "2">> {
  %y = tl.compute(%x) "%0[]" : (tensor<f32>) -> tensor<?x2xf32, #tl.dims<"N", "2">>
  %z = tl.exp %y : tensor<?x2xf32, #tl.dims<"N", "2">>
  return %z : tensor<?x2xf32, #tl.dims<"N", "2">>
}
