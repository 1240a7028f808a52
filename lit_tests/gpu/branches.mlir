// A branch in a loop, on a value that a kernel computes, and a loop that ends when another value says so: every thread of
// the GPU takes the same way.
// RUN: %irc run %s --seed 1 --outputs %t.npz
// RUN: %irc compile %s -o %t.ptx
// RUN: %irc run %t.ptx --seed 1 --backend emulate --race-check --expected %t.npz | FileCheck %s
// RUN: %irc compile %s -o %t.launches.ptx --no-persistent
// RUN: %irc run %t.launches.ptx --seed 1 --backend emulate --race-check --expected %t.npz | FileCheck %s
// CHECK: 2 of 2 expected buffers agree
module {
  common_ir.module attributes {ir_version = 9 : i64, module_name = "g", opsets = [{version = 18 : i64}], schema = "onnx"} {
    common_ir.graph attributes {inputs = ["x"]} {
    ^bb0(%x: tensor<4x8xf32>):
      %trips = common_ir.initializer {value = dense<40> : tensor<i64>, value_name = "trips"} : tensor<i64>
      %zero = common_ir.initializer {value = dense<0.0> : tensor<f32>, value_name = "zero"} : tensor<f32>
      %most = common_ir.initializer {value = dense<20.0> : tensor<f32>, value_name = "most"} : tensor<f32>
      %y, %all = common_ir.node "Loop"(%trips, %x, %x) outputs ["y", "sum"] {absent = array<i64: 1>, attrs = [{g = 0 : i64, name = "body"}]} : (tensor<i64>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) graphs {
        common_ir.graph attributes {graph_name = "b", inputs = ["i", "c", "v", "s"]} {
        ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<4x8xf32>, %s: tensor<4x8xf32>):
          %total = common_ir.node "ReduceSum"(%v) outputs ["total"] {attrs = [{i = 0 : i64, name = "keepdims"}]} : (tensor<4x8xf32>) -> tensor<f32>
          %up = common_ir.node "Greater"(%total, %zero) outputs ["up"] : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %next = common_ir.node "If"(%up) outputs ["next"] {attrs = [{g = 0 : i64, name = "else_branch"}, {g = 1 : i64, name = "then_branch"}]} : (tensor<i1>) -> tensor<4x8xf32> graphs {
            common_ir.graph attributes {graph_name = "e", inputs = []} {
              %r = common_ir.node "Exp"(%v) outputs ["e"] : (tensor<4x8xf32>) -> tensor<4x8xf32>
              common_ir.output(%r) {outputs = ["e"]} : tensor<4x8xf32>
            }
            common_ir.graph attributes {graph_name = "t", inputs = []} {
              %r = common_ir.node "Sub"(%x, %v) outputs ["t"] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
              common_ir.output(%r) {outputs = ["t"]} : tensor<4x8xf32>
            }
          }
          %sum = common_ir.node "Add"(%s, %next) outputs ["more"] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
          %top = common_ir.node "ReduceMax"(%sum) outputs ["top"] {attrs = [{i = 0 : i64, name = "keepdims"}]} : (tensor<4x8xf32>) -> tensor<f32>
          %go = common_ir.node "Less"(%top, %most) outputs ["go"] : (tensor<f32>, tensor<f32>) -> tensor<i1>
          common_ir.output(%go, %next, %sum) {outputs = ["go", "next", "more"]} : tensor<i1>, tensor<4x8xf32>, tensor<4x8xf32>
        }
      }
      common_ir.output(%y, %all) {outputs = ["y", "sum"]} : tensor<4x8xf32>, tensor<4x8xf32>
    }
  }
}
