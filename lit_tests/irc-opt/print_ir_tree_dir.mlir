// --mlir-print-ir-tree-dir writes one file per pass, in a folder per op.
// RUN: rm -rf %t
// RUN: %irc-opt --ark-to-tl --outline-kernels --mlir-print-ir-after-all --mlir-print-ir-tree-dir=%t \
// RUN:   -o /dev/null %S/inputs/scaled_exp.ark.mlir
// RUN: find %t -name '*.mlir' | sort | FileCheck %s
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t/builtin_module_no-symbol-name/0_ark-to-tl.mlir

// CHECK: builtin_module_no-symbol-name/0_ark-to-tl.mlir
// CHECK-NEXT: builtin_module_no-symbol-name/1_outline-kernels.mlir
// FILE: tl.exp
