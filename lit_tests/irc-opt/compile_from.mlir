// A pipeline stopped after any stage and restarted there ends where a whole run ends.
// RUN: %irc-opt --irc-pipeline=host-cpu %S/inputs/scaled_exp.ark.mlir -o %t.whole
// RUN: FileCheck %s --input-file=%t.whole
// RUN: sh -ec 'for stage in $(%irc-opt --list-stages | sed -n "s/^  \([a-z]*\) .*/\1/p"); do \
// RUN:   %irc-opt --irc-pipeline=host-cpu --compile-to=$stage %S/inputs/scaled_exp.ark.mlir -o %t.$stage; \
// RUN:   %irc-opt --irc-pipeline=host-cpu --compile-from=$stage %t.$stage -o %t.rest; \
// RUN:   diff %t.whole %t.rest; done'

// CHECK-DAG: llvm.func @{{.*}}kernel_0
// CHECK-NOT: func.func
