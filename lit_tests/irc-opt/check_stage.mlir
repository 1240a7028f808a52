// A dialect that should be gone is an error at its first op, once per dialect.
// RUN: %irc-opt --verify-diagnostics --check-stage='stage=llvm' %s

module {
  // expected-error@below {{'func.func' op remains after stage 'llvm', which leaves only llvm}}
  func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error@below {{'tl.exp' op remains after stage 'llvm', which leaves only llvm}}
    %0 = tl.exp %a : tensor<4xf32>
    %1 = tl.exp %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
