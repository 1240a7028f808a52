// Names and values agree, and every op says an item of the format.
// RUN: %irc-opt --split-input-file --verify-diagnostics %s

common_ir.module attributes {schema = "onnx"} {
  // expected-error @below {{defines the name 'y' twice}}
  common_ir.graph attributes {inputs = []} {
    %0:2 = common_ir.node "Split"() outputs ["y", "y"] : () -> (!common_ir.undeclared, !common_ir.undeclared)
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{expected 1 'outputs', one for each result, found 2}}
    %0 = common_ir.node "Split"() outputs ["y", "z"] : () -> !common_ir.undeclared
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  // expected-error @below {{expected 1 'inputs', one for each argument, found 0}}
  common_ir.graph attributes {inputs = []} {
  ^bb0(%x: tensor<2xf32>):
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = ["x"]} {
  ^bb0(%x: tensor<2xf32>):
    // expected-error @below {{expected the name 'x' of output 0, found 'y'}}
    common_ir.output(%x) {outputs = ["y"]} : tensor<2xf32>
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = ["x"]} {
  ^bb0(%x: tensor<2xf32>):
    // expected-error @below {{expected 1 'outputs', one for each operand, found 0}}
    common_ir.output(%x) {outputs = []} : tensor<2xf32>
  }
}

// -----

// A constant named like an input is its default; what uses the name uses the input.
common_ir.module attributes {schema = "onnx"} {
  // expected-error @below {{expected uses of its own 'x', found one of another}}
  common_ir.graph attributes {inputs = ["x"]} {
  ^bb0(%x: tensor<1xf32>):
    %d = common_ir.initializer {value_name = "x", value = dense<1.0> : tensor<1xf32>} : tensor<1xf32>
    common_ir.output(%d) {outputs = ["x"]} : tensor<1xf32>
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = ["x"]} {
  ^bb0(%x: tensor<1xf32>):
    %y = common_ir.node "If"(%x) outputs ["y"] {attrs = [{name = "then_branch", g = 0 : i64}]} : (tensor<1xf32>) -> !common_ir.undeclared graphs {
      // expected-error @below {{expected uses of its own 'x', found one of another}}
      common_ir.graph attributes {inputs = ["x"]} {
      ^bb0(%inner: tensor<1xf32>):
        common_ir.output(%x) {outputs = ["x"]} : tensor<1xf32>
      }
    }
    common_ir.output(%y) {outputs = ["y"]} : !common_ir.undeclared
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{expected an unused index of the node's 0 graphs, found 0}}
    common_ir.node "If"() outputs [] {attrs = [{name = "then_branch", g = 0 : i64}]} : () -> ()
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{attribute 'axis': expected one value}}
    common_ir.node "Softmax"() outputs [] {attrs = [{name = "axis", i = 1 : i64, f = 1.0 : f32}]} : () -> ()
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{an attribute has no entry 'axis'}}
    common_ir.node "Softmax"() outputs [] {attrs = [{axis = 1 : i64}]} : () -> ()
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{expected elements of tensor<2xf32>, found tensor<1xf32>}}
    %w = common_ir.initializer {value_name = "w", value = dense<1.0> : tensor<1xf32>} : tensor<2xf32>
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{expected a type of a Common IR value, found index}}
    %w = common_ir.node "Shape"() outputs ["s"] : () -> index
    common_ir.output() {outputs = []}
  }
}

// -----

common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    // expected-error @below {{expected distinct indices below 2 in 'absent'}}
    common_ir.node "Clip"() outputs [] {absent = array<i64: 0, 5>} : () -> ()
    common_ir.output() {outputs = []}
  }
}

// -----

// expected-error @below {{expected the schema common_ir or onnx, found caffe}}
common_ir.module attributes {schema = "caffe"} {
}

// -----

// expected-error @below {{expected one graph at most, found 2}}
common_ir.module attributes {schema = "onnx"} {
  common_ir.graph attributes {inputs = []} {
    common_ir.output() {outputs = []}
  }
  common_ir.graph attributes {inputs = []} {
    common_ir.output() {outputs = []}
  }
}
