// --mlir-timing counts each of our passes under its name.
// RUN: %irc-opt --pass-pipeline='builtin.module(ark-to-tl,check-stage{stage=tensor})' --mlir-timing \
// RUN:   --mlir-timing-display=tree -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s
// RUN: %irc-opt --ark-to-tl --mlir-timing --mlir-timing-display=list --mlir-output-format=json \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s --check-prefix=JSON

// CHECK: Execution time report
// CHECK: ark-to-tl
// CHECK-NEXT: check-stage
// JSON: "name": "ark-to-tl"
