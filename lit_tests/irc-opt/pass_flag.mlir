// A pass is also a flag, with its options as the value.
// RUN: %irc-opt --ark-to-tl --check-stage='pipeline=host-cpu stage=tensor' %S/inputs/scaled_exp.ark.mlir \
// RUN:   | FileCheck %s

// CHECK: tl.exp
