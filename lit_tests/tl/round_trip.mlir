// RUN: %irc-opt %s | %irc-opt | FileCheck %s
// RUN: %irc-opt %s --mlir-print-op-generic | mlir-opt --allow-unregistered-dialect --mlir-print-op-generic | %irc-opt | FileCheck %s

// Every op prints and parses, and upstream's mlir-opt reads the generic form.
// CHECK-LABEL: func.func @ops
func.func @ops(%x: tensor<4x8xf32>, %i: tensor<2xi32>, %u: tensor<4xui32>) -> tensor<4x8xf32> {
  // CHECK: tl.exp %{{.*}} : tensor<4x8xf32>
  %a = tl.exp %x : tensor<4x8xf32>
  // CHECK: tl.add %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = tl.add %a, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tl.cast %{{.*}} {rounding = "toward_zero"} : (tensor<4xui32>) -> tensor<4xf16>
  %c = tl.cast %u {rounding = "toward_zero"} : (tensor<4xui32>) -> tensor<4xf16>
  // CHECK: tl.broadcast %{{.*}} : (tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %d = tl.broadcast %b : (tensor<4x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: tl.reshape %{{.*}} : (tensor<4x8xf32>) -> tensor<32xf32>
  %e = tl.reshape %b : (tensor<4x8xf32>) -> tensor<32xf32>
  // CHECK: tl.bitcast %{{.*}} : (tensor<32xf32>) -> tensor<32xi32>
  %f = tl.bitcast %e : (tensor<32xf32>) -> tensor<32xi32>
  // CHECK: tl.transpose %{{.*}} {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %g = tl.transpose %b {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: tl.slice %{{.*}} {offsets = array<i64: 0, 4>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  %h = tl.slice %b {offsets = array<i64: 0, 4>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK: tl.fill {value = 1.500000e+00 : f64} : tensor<3xf32>
  %j = tl.fill {value = 1.5} : tensor<3xf32>
  // CHECK: tl.update %{{.*}} into %{{.*}} {offsets = array<i64: 0, 4>}
  %k = tl.update %h into %b {offsets = array<i64: 0, 4>} : (tensor<4x8xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
  // CHECK: tl.reduce_mean %{{.*}} {axes = array<i64: 1>, keep_dims = true}
  %l = tl.reduce_mean %k {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK: tl.matmul %{{.*}}, %{{.*}} {transpose_rhs = true}
  %m = tl.matmul %k, %b {transpose_rhs = true} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK: tl.gather %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  %n = tl.gather %k, %i : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<2x8xf32>
  // CHECK: tl.rope %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %o = tl.rope %k, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tl.sequential_sum %{{.*}} {axis = 0 : i64} : (tensor<4x8xf32>) -> tensor<8xf32>
  %s = tl.sequential_sum %o {axis = 0 : i64} : (tensor<4x8xf32>) -> tensor<8xf32>
  // CHECK: tl.round_tf32 %{{.*}} : tensor<8xf32>
  %t = tl.round_tf32 %s : tensor<8xf32>
  %v = tl.fill {value = 2.0} : tensor<3x3xf16>
  // CHECK: tl.stepped_matmul %{{.*}}, %{{.*}} : (tensor<3x3xf16>, tensor<3x3xf16>) -> tensor<3x3xf16>
  %w = tl.stepped_matmul %v, %v : (tensor<3x3xf16>, tensor<3x3xf16>) -> tensor<3x3xf16>
  // CHECK:      tl.group "elementwise"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xf32>):
  // CHECK-NEXT:   %[[R:.*]] = tl.relu %[[A]]
  // CHECK-NEXT:   tl.yield %[[R]] : tensor<4x8xf32>
  %p = tl.group "elementwise"(%o) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%q: tensor<4x8xf32>):
    %r = tl.relu %q : tensor<4x8xf32>
    tl.yield %r : tensor<4x8xf32>
  }
  return %p : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @general
func.func @general(%x: tensor<3xf32>, %n: tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<5xf32> {
  // CHECK: tl.compute(%{{.*}}) "select(i0 >= 1 and i0 < 4, %0[i0 - 1], -1.0 : f32)" : (tensor<3xf32>) -> tensor<5xf32>
  %a = tl.compute(%x) "select(i0 >= 1 and i0 < 4, %0[i0 - 1], -1.0 : f32)" : (tensor<3xf32>) -> tensor<5xf32>
  // CHECK: tl.compute(%{{.*}}) "%0[i0, i1]" combine "max" over ["4"] : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"N">>
  %b = tl.compute(%n) "%0[i0, i1]" combine "max" over ["4"] : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"N">>
  // CHECK: tl.top_k %{{.*}} {axis = 0 : i64, largest = true} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %c, %d = tl.top_k %x {axis = 0 : i64, largest = true} : (tensor<3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  // CHECK: tl.scan %{{.*}} {axis = 0 : i64, combine = "sum", exclusive = true, reverse = false} : (tensor<3xf32>) -> tensor<3xf32>
  %scanned = tl.scan %x {axis = 0 : i64, combine = "sum", exclusive = true, reverse = false} : (tensor<3xf32>) -> tensor<3xf32>
  // CHECK: tl.non_zero %{{.*}} : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> (tensor<2x?xi64, #tl.dims<"2", "4*N">>, tensor<i64>)
  %e, %f = tl.non_zero %n : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> (tensor<2x?xi64, #tl.dims<"2", "4*N">>, tensor<i64>)
  // CHECK: tl.exp %{{.*}} : tensor<?x4xf32, #tl.dims<"N", "4">>
  %g = tl.exp %n : tensor<?x4xf32, #tl.dims<"N", "4">>
  // CHECK: tl.reshape %{{.*}} : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"4*N">>
  %h = tl.reshape %n : (tensor<?x4xf32, #tl.dims<"N", "4">>) -> tensor<?xf32, #tl.dims<"4*N">>
  return %a : tensor<5xf32>
}

// Strings are `si64`, and those of constants are listed.
// CHECK-LABEL: func.func @strings
// CHECK-SAME: tl.strings = ["a", "\\xff"]
func.func @strings(%x: tensor<4xsi64>) -> (tensor<4xi1>, tensor<4xi1>) attributes {tl.strings = ["a", "\\xff"]} {
  %a = tl.constant {bytes = array<i8: 0, 0, 0, 0, 0, 0, 0, 0>} : tensor<1xsi64>
  // CHECK: tl.eq %{{.*}}, %{{.*}} : (tensor<4xsi64>, tensor<1xsi64>) -> tensor<4xi1>
  %b = tl.eq %x, %a : (tensor<4xsi64>, tensor<1xsi64>) -> tensor<4xi1>
  // CHECK: tl.host "upper" (%{{.*}}) : (tensor<4xsi64>) -> tensor<4xsi64>
  %c = tl.host "upper" (%x) : (tensor<4xsi64>) -> tensor<4xsi64>
  // CHECK: tl.host "matches" (%{{.*}}) {arguments = ["[a-z]+"]} : (tensor<4xsi64>) -> tensor<4xi1>
  %d = tl.host "matches" (%c) {arguments = ["[a-z]+"]} : (tensor<4xsi64>) -> tensor<4xi1>
  // CHECK: tl.host "count_parts" (%{{.*}}) {arguments = ["separators", "2", "\\s+", "[,;]"]} : (tensor<4xsi64>) -> tensor<4xi64>
  %f = tl.host "count_parts" (%x) {arguments = ["separators", "2", "\\s+", "[,;]"]} : (tensor<4xsi64>) -> tensor<4xi64>
  // CHECK: tl.host "part" (%{{.*}}, %{{.*}}) {arguments = ["delimiter", ","]} : (tensor<4xsi64>, tensor<4xi64>) -> tensor<4xsi64>
  %g = tl.host "part" (%x, %f) {arguments = ["delimiter", ","]} : (tensor<4xsi64>, tensor<4xi64>) -> tensor<4xsi64>
  %file = tl.fill {value = 0.0} : tensor<9xui8>
  // CHECK: tl.host "pixels" (%{{.*}}) {arguments = ["BGR"]} : (tensor<9xui8>) -> tensor<2x1x3xui8>
  %e = tl.host "pixels" (%file) {arguments = ["BGR"]} : (tensor<9xui8>) -> tensor<2x1x3xui8>
  return %b, %d : tensor<4xi1>, tensor<4xi1>
}
