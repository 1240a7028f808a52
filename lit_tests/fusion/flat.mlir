// RUN: %irc-opt %s --pass-pipeline='builtin.module(func.func(fuse))' --verify-diagnostics -o /dev/null

// expected-error @below {{expected a flat body of tensor-level ops, found 'scf.execute_region'}}
func.func @regions(%x: tensor<8xf32>) -> tensor<8xf32> {
  %e = tl.exp %x : tensor<8xf32>
  %y = scf.execute_region -> tensor<8xf32> {
    scf.yield %e : tensor<8xf32>
  }
  return %y : tensor<8xf32>
}
