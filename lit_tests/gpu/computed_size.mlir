// A size that a value determines is not known when a kernel for a GPU is compiled.
// RUN: not %irc compile %s -o %t.ptx 2>&1 | FileCheck %s
// CHECK: error[gpu-program]: output 'places' has a size that is computed at run time, and kernels for GPUs need known sizes: i64[2,
// CHECK: help: sizes are known that follow from shapes and from constants of the model
module {
  common_ir.module attributes {ir_version = 9 : i64, module_name = "g", opsets = [{version = 18 : i64}], schema = "onnx"} {
    common_ir.graph attributes {inputs = ["x"]} {
    ^bb0(%x: tensor<4x8xf32>):
      %y = common_ir.node "NonZero"(%x) outputs ["places"] : (tensor<4x8xf32>) -> tensor<2x?xi64>
      common_ir.output(%y) {outputs = ["places"]} : tensor<2x?xi64>
    }
  }
}
