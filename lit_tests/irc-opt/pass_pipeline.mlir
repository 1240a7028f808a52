// Our passes stand beside upstream's in a textual pipeline, each on the op it is written for.
// RUN: %irc-opt --pass-pipeline='builtin.module(ark-to-tl,func.func(canonicalize,cse),check-stage{stage=tensor})' \
// RUN:   %S/inputs/scaled_exp.ark.mlir | FileCheck %s

// CHECK-NOT: ark.model
// CHECK: func.func @main
// CHECK: %[[E:.*]] = tl.exp
// CHECK: tl.mul %[[E]]
