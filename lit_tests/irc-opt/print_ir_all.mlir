// --mlir-print-ir-before-all prints before each pass, -after-all after each.
// RUN: %irc-opt --ark-to-tl --check-stage=stage=tensor --mlir-print-ir-before-all --mlir-print-ir-after-all \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s

// CHECK: IR Dump Before ark-to-tl
// CHECK: IR Dump After ark-to-tl
// CHECK: IR Dump Before check-stage
// CHECK: IR Dump After check-stage
