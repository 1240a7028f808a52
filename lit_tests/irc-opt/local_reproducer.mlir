// A local reproducer starts right before the pass that failed.
// RUN: not %irc-opt --pass-pipeline='builtin.module(ark-to-tl,check-stage{stage=llvm})' \
// RUN:   --mlir-pass-pipeline-crash-reproducer=%t --mlir-pass-pipeline-local-reproducer --mlir-disable-threading \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir
// RUN: FileCheck %s --input-file=%t
// RUN: not %irc-opt --run-reproducer %t 2>&1 | FileCheck %s --check-prefix=AGAIN

// CHECK: tl.exp
// CHECK: pipeline: "builtin.module(check-stage{pipeline=host-cpu stage=llvm})"
// AGAIN: op remains after stage 'llvm', which leaves only llvm
