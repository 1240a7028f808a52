// What is printed parses to the same, in own and in generic form, which upstream's mlir-opt reads too.
// RUN: %irc-opt %s -o %t.own && %irc-opt %t.own | diff %t.own -
// RUN: %irc-opt --mlir-print-op-generic %s -o %t.generic && %irc-opt %t.generic | diff %t.own -
// RUN: mlir-opt --allow-unregistered-dialect --mlir-print-op-generic %t.generic | diff %t.generic -
// RUN: FileCheck %s --input-file=%t.own

// CHECK: common_ir.function
common_ir.module attributes {module_name = "m", schema = "onnx", opsets = [{version = 21 : i64}]} {
  common_ir.declare {operator_name = "Op", signatures = [{inputs = [{name = "x", type = !common_ir.map<i64, !common_ir.sequence<tensor<*xf32>>>}]}]}
  common_ir.function attributes {function_name = "F", inputs = ["a"], attrs = [{name = "k", i = 2 : i64}]} {
  ^bb0(%a: !common_ir.undeclared):
    %b = common_ir.node "Neg"(%a) outputs ["b"] : (!common_ir.undeclared) -> !common_ir.undeclared
    common_ir.output(%b) {outputs = ["b"]} : !common_ir.undeclared
  }
  common_ir.graph attributes {inputs = ["x", {doc = "which", name = "c"}], values = ["w"]} {
  ^bb0(%x: tensor<?x4xf32, #common_ir.dims<["n", 4]>>, %c: tensor<i1>):
    // CHECK: %[[W:.*]] = common_ir.initializer {{.*}}dense_resource<w>
    %w = common_ir.initializer {value_name = "w", value = dense_resource<w> : tensor<1x4xf32>} : tensor<1x4xf32>
    %t = common_ir.initializer {value_name = "t", value = {data = dense<[1.0, 2.0]> : tensor<2xf32>, field = "float_data"}} : tensor<2xbf16>
    // A node may stand before those that it needs.
    // CHECK: common_ir.node "Add"(%[[H:.*]], %[[W]])
    %y = common_ir.node "Add"(%h, %w) outputs ["y"] {absent = array<i64: 2>} : (!common_ir.undeclared, tensor<1x4xf32>) -> !common_ir.tensor<f32, #common_ir.dims<["m*"]>>
    // CHECK: %[[H]] = common_ir.node "If"
    %h = common_ir.node "If"(%c) outputs ["h"] {attrs = [{g = 0 : i64, name = "then_branch"}, {g = 1 : i64, name = "else_branch"}]} : (tensor<i1>) -> !common_ir.undeclared graphs {
      common_ir.graph attributes {inputs = []} {
        common_ir.output(%x) {outputs = ["x"]} : tensor<?x4xf32, #common_ir.dims<["n", 4]>>
      }
      common_ir.graph attributes {inputs = []} {
        %f = common_ir.node "F"(%x) outputs ["f"] : (tensor<?x4xf32, #common_ir.dims<["n", 4]>>) -> !common_ir.undeclared
        common_ir.output(%f) {outputs = ["f"]} : !common_ir.undeclared
      }
    }
    common_ir.output(%y) {outputs = [{name = "y", type = tensor<?x4xf32>}]} : !common_ir.tensor<f32, #common_ir.dims<["m*"]>>
  }
}

{-#
  dialect_resources: {
    builtin: {
      w: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
