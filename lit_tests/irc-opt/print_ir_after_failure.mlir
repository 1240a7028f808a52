// --mlir-print-ir-after-failure prints only after the pass that failed.
// RUN: not %irc-opt --ark-to-tl --check-stage=stage=linalg --check-stage=stage=llvm --mlir-print-ir-after-failure \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s

// CHECK-NOT: IR Dump After ark-to-tl
// CHECK: // -----// IR Dump After check-stage Failed (check-stage) //----- //
// CHECK: tl.exp
