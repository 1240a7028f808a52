// A pipeline nested on an op that an earlier pass makes runs, though the input has no such op.
// RUN: %irc-opt --pass-pipeline='builtin.module(ark-to-tl,func.func(fuse))' %S/inputs/scaled_exp.ark.mlir \
// RUN:   | FileCheck %s

// CHECK: tl.group "elementwise"
