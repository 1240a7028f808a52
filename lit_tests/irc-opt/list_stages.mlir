// --list-stages prints the stage table in order.
// RUN: %irc-opt --list-stages | FileCheck %s

// CHECK: host-cpu:
// CHECK-NEXT: import {{.*}}leaves ark, common_ir, func, gemini, tl
// CHECK-NEXT: tensor {{.*}}leaves func, tl
// CHECK-NEXT: fuse {{.*}}leaves
// CHECK-NEXT: kernels {{.*}}leaves
// CHECK-NEXT: linalg {{.*}}leaves
// CHECK-NEXT: vector {{.*}}leaves
// CHECK-NEXT: memory {{.*}}leaves
// CHECK-NEXT: llvm {{.*}}leaves llvm {{.*}}what LLVM translates
// CHECK-NEXT: nvptx:
// CHECK-NEXT: import {{.*}}leaves
// CHECK-NEXT: tensor {{.*}}leaves
// CHECK-NEXT: fuse {{.*}}leaves
// CHECK-NEXT: kernels {{.*}}leaves
// CHECK-NEXT: simt {{.*}}leaves
// CHECK-NEXT: memory {{.*}}leaves
// CHECK-NEXT: llvm {{.*}}leaves llvm, nvvm {{.*}}what LLVM translates
// CHECK-NOT: {{.}}
