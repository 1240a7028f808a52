// RUN: %irc-opt %s --split-input-file --verify-diagnostics

func.func @result(%x: tensor<4x8xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{result: expected f32[4,1], found f32[4,2]}}
  %s = tl.reduce_sum %x {axes = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x2xf32>
  return %s : tensor<4x2xf32>
}

// -----

func.func @rounding(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @below {{rounding: expected "toward_zero" or "nearest_even", found "up"}}
  %c = tl.cast %x {rounding = "up"} : (tensor<4xf32>) -> tensor<4xi32>
  return %c : tensor<4xi32>
}

// -----

func.func @kind(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{kind: expected one of elementwise, rows, contraction, reduction, copy, loops, attention, found 'warp'}}
  %y = tl.group "warp"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    tl.yield %a : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @argument(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{region argument 0: expected tensor<4xf32>, found tensor<8xf32>}}
  %y = tl.group "elementwise"(%x) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    tl.yield %a : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}

// -----

func.func @yield(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y, %z = tl.group "elementwise"(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @below {{expected 2 yielded values, found 1}}
    tl.yield %a : tensor<4xf32>
  }
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @foreign(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expected compute ops of tl in a group, found 'arith.negf'}}
  %y = tl.group "elementwise"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %n = arith.negf %a : tensor<4xf32>
    tl.yield %n : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}

// -----

func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{expected a ranked tensor of static shape, found tensor<?xf32>}}
  %y = tl.exp %x : tensor<?xf32>
  return %y : tensor<?xf32>
}

// -----

func.func @body(%x: tensor<3xf32>) -> tensor<5xf32> {
  // expected-error @below {{body: column 4: expected an expression, found ')'}}
  %y = tl.compute(%x) "%0[)" : (tensor<3xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @body_type(%x: tensor<3xf32>) -> tensor<5xi32> {
  // expected-error @below {{result: expected f32[5], found i32[5]}}
  %y = tl.compute(%x) "%0[i0]" : (tensor<3xf32>) -> tensor<5xi32>
  return %y : tensor<5xi32>
}

// -----

func.func @sizes(%x: tensor<?x4xf32, #tl.dims<"N">>) -> tensor<?x4xf32, #tl.dims<"N">> {
  // expected-error @below {{expected 2 sizes in #tl.dims, found 1}}
  %y = tl.exp %x : tensor<?x4xf32, #tl.dims<"N">>
  return %y : tensor<?x4xf32, #tl.dims<"N">>
}

// -----

func.func @too_many(%x: tensor<3xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  // expected-error @below {{expected k from 0 to 3, found 4}}
  %y, %z = tl.top_k %x {axis = 0 : i64, largest = true} : (tensor<3xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  return %y, %z : tensor<4xf32>, tensor<4xi64>
}

// -----

func.func @order(%x: tensor<4xsi64>) -> tensor<4xi1> {
  // expected-error @below {{expected numbers, found string}}
  %y = tl.lt %x, %x : (tensor<4xsi64>, tensor<4xsi64>) -> tensor<4xi1>
  return %y : tensor<4xi1>
}

// -----

func.func @text(%x: tensor<4xsi64>) -> tensor<4xi1> {
  // expected-error @below {{invalid regular expression}}
  %y = tl.host "matches" (%x) {arguments = ["(a"]} : (tensor<4xsi64>) -> tensor<4xi1>
  return %y : tensor<4xi1>
}

// -----

func.func @separators(%x: tensor<4xsi64>) -> tensor<4xi64> {
  // expected-error @below {{expected a number of parts or characters}}
  %y = tl.host "count_parts" (%x) {arguments = ["separators", "0", ","]} : (tensor<4xsi64>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// -----

func.func @text_type(%x: tensor<4xsi64>) -> tensor<4xi64> {
  // expected-error @below {{result: expected string[4], found i64[4]}}
  %y = tl.host "lower" (%x) : (tensor<4xsi64>) -> tensor<4xi64>
  return %y : tensor<4xi64>
}

// -----

func.func @pixels(%x: tensor<4xui8>) -> tensor<4xui8> {
  // expected-error @below {{expected a result of 3 dimensions, found u8[4]}}
  %y = tl.host "pixels" (%x) {arguments = ["RGB"]} : (tensor<4xui8>) -> tensor<4xui8>
  return %y : tensor<4xui8>
}

// -----

func.func @text_operands(%x: tensor<4xsi64>, %z: tensor<1xsi64>) -> tensor<4xsi64> {
  // expected-error @below {{expected operands of one shape, found string[4] and string[1]}}
  %y = tl.host "concat" (%x, %z) : (tensor<4xsi64>, tensor<1xsi64>) -> tensor<4xsi64>
  return %y : tensor<4xsi64>
}
