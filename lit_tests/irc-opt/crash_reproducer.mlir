// A failing pass leaves a reproducer that holds the IR and the pipeline with its options, and
// --run-reproducer fails in the same way.
// RUN: not %irc-opt --pass-pipeline='builtin.module(ark-to-tl{results=outputs},check-stage{stage=llvm})' \
// RUN:   --mlir-pass-pipeline-crash-reproducer=%t -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t
// RUN: not %irc-opt --run-reproducer %t 2>&1 | FileCheck %s --check-prefix=AGAIN

// CHECK: op remains after stage 'llvm', which leaves only llvm
// CHECK: error: Failures have been detected while processing an MLIR pass pipeline
// CHECK: note: Pipeline failed while executing
// FILE: ark.exp
// FILE: mlir_reproducer: {
// FILE: pipeline: "builtin.module(ark-to-tl{accumulate=wide results=outputs}, check-stage{pipeline=host-cpu stage=llvm})"
// AGAIN: op remains after stage 'llvm', which leaves only llvm
