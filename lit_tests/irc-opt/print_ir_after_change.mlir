// --mlir-print-ir-after-change leaves out a pass that changed nothing.
// RUN: %irc-opt --ark-to-tl --check-stage=stage=tensor --outline-kernels \
// RUN:   --mlir-print-ir-after-all --mlir-print-ir-after-change \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s

// CHECK: IR Dump After ark-to-tl
// CHECK-NOT: IR Dump
