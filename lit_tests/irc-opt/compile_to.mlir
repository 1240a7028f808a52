// --compile-to stops after a stage, and checks what it leaves.
// RUN: %irc-opt --irc-pipeline=host-cpu --compile-to=tensor %S/inputs/scaled_exp.ark.mlir | FileCheck %s
// RUN: %irc-opt --compile-to=import %S/inputs/scaled_exp.ark.mlir | FileCheck %s --check-prefix=IMPORT

// CHECK: func.func @main
// CHECK-NOT: tl.group
// IMPORT: ark.model
