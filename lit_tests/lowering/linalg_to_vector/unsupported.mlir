// A kernel without a schedule is an error that names the op, and the function stays as it was.
// RUN: %irc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(linalg-to-vector)'

// expected-error @+1 {{no schedule for this op inside a kernel}}
func.func @named(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {tl.kernel = #tl.kernel} {
  %0 = linalg.add ins(%a, %b : tensor<4x4xf32>, tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{expected a tensor of static shape, found 'tensor<?xf32>'}}
func.func @dynamic(%a: tensor<?xf32>) -> tensor<?xf32> attributes {tl.kernel = #tl.kernel} {
  return %a : tensor<?xf32>
}
