// --mlir-print-ir-after and -before name one pass.
// RUN: %irc-opt --ark-to-tl --canonicalize --mlir-print-ir-after=ark-to-tl -o /dev/null \
// RUN:   %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: %irc-opt --ark-to-tl --canonicalize --mlir-print-ir-before=ark-to-tl -o /dev/null \
// RUN:   %S/inputs/scaled_exp.ark.mlir 2>&1 | FileCheck %s --check-prefix=BEFORE

// AFTER: // -----// IR Dump After ark-to-tl (ark-to-tl) //----- //
// AFTER: tl.exp
// AFTER-NOT: IR Dump
// BEFORE: // -----// IR Dump Before ark-to-tl (ark-to-tl) //----- //
// BEFORE: ark.exp
// BEFORE-NOT: IR Dump
