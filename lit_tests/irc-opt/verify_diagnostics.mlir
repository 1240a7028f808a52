// Expected errors of our verifiers are matched, and a missing one is a failure.
// RUN: %irc-opt --split-input-file --verify-diagnostics %s
// RUN: echo '// expected-error@below {{no such thing}}' > %t && echo 'module {}' >> %t
// RUN: not %irc-opt --verify-diagnostics %t 2>&1 | FileCheck %s

// CHECK: expected error "no such thing" was not produced
func.func @shapes(%a: tensor<4x8xf32>, %b: tensor<7xf32>) {
  // expected-error@below {{'tl.add' op}}
  %0 = tl.add %a, %b : (tensor<4x8xf32>, tensor<7xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @result(%a: tensor<4x8xf32>) {
  // expected-error@below {{'tl.transpose' op result: expected}}
  %0 = tl.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @kind(%a: tensor<4xf32>) {
  // expected-error@below {{'tl.group' op kind: expected one of elementwise, rows, contraction, reduction, copy, loops, attention, found 'mystery'}}
  %0 = tl.group "mystery"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    tl.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @yield(%a: tensor<4xf32>) {
  %0 = tl.group "elementwise"(%a) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>):
    // expected-error@below {{'tl.yield' op expected 1 yielded values, found 0}}
    tl.yield
  }
  return
}

// -----

ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  // expected-error@below {{'ark.buffer' op}}
  %b = ark.buffer {id = 0 : i64, rank = -1 : i64, send_tags = array<i64: 1>, recv_tags = array<i64>} : !ark.buffer
}
