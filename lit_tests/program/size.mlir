// A size that is an element of a value: what depends on it waits for it, and asks for memory then.
// RUN: %irc-opt --plan-memory %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main
// CHECK: call @count(
// CHECK: memref.load %{{.*}}[] : memref<i64>
// CHECK: arith.cmpi sle
// CHECK: cf.cond_br
// CHECK: call @irc_host_allocate(
// CHECK: call @wide(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {tl.graph} {
  %n = tl.launch @count(%x) : (tensor<4xf32>) -> tensor<i64>
  %w = tl.launch @wide(%x) : (tensor<4xf32>) -> tensor<?xf32, #tl.dims<"s0">>
  tl.check {left = "s0", relation = "at_most", right = "100", message = "expected few"}
  tl.size %n {index = 0 : i64, symbol = "s0"} : tensor<i64>
  %y = tl.launch @narrow(%w) : (tensor<?xf32, #tl.dims<"s0">>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @count(memref<4xf32>, memref<i64>, memref<0xi8>) attributes {tl.kernel = #tl.kernel}
func.func private @wide(memref<4xf32>, index, memref<1xf32>, memref<0xi8>)
    attributes {tl.kernel = #tl.kernel<symbols = ["s0"]>}
func.func private @narrow(memref<1xf32>, index, memref<4xf32>, memref<0xi8>)
    attributes {tl.kernel = #tl.kernel<symbols = ["s0"]>}
