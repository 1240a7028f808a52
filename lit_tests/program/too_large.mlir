// Values that live together and do not fit in memory together are an error at the largest.
// RUN: not %irc-opt --plan-memory %s 2>&1 | FileCheck %s

// CHECK: too_large.mlir:[[@LINE+3]]:8: error: {{.*}}expected values that fit in memory together: found 9223372036854775872 bytes
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> attributes {irc.graph} {
  %a = tl.launch @one(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = tl.launch @wide(%a) : (tensor<4xf32>) -> tensor<2305843009213693951xf32>
  %y = tl.launch @narrow(%a, %b)
      : (tensor<4xf32>, tensor<2305843009213693951xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @one(memref<4xf32>, memref<4xf32>, memref<0xi8>) attributes {irc.kernel}
func.func private @wide(memref<4xf32>, memref<2305843009213693951xf32>, memref<0xi8>)
    attributes {irc.kernel}
func.func private @narrow(memref<4xf32>, memref<2305843009213693951xf32>, memref<4xf32>, memref<0xi8>)
    attributes {irc.kernel}
