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
  // expected-error @below {{kind: expected one of elementwise, rows, contraction, reduction, copy, found 'warp'}}
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
