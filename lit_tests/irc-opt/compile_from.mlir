// A pipeline stopped after any stage and restarted there ends where a whole run ends.
// RUN: %irc-opt --irc-pipeline=host-cpu %S/inputs/scaled_exp.ark.mlir -o %t.whole
// RUN: FileCheck %s --input-file=%t.whole
// RUN: sh -ec 'for stage in $(%irc-opt --list-stages | sed -n "/^host-cpu/,/^  llvm/s/^  \([a-z]*\) .*/\1/p"); do \
// RUN:   %irc-opt --irc-pipeline=host-cpu --compile-to=$stage %S/inputs/scaled_exp.ark.mlir -o %t.$stage; \
// RUN:   %irc-opt --irc-pipeline=host-cpu --compile-from=$stage %t.$stage -o %t.rest; \
// RUN:   diff %t.whole %t.rest; done'
// RUN: %irc-opt --irc-pipeline=nvptx %S/inputs/scaled_exp.ark.mlir -o %t.gpu
// RUN: sh -ec 'for stage in tensor fuse kernels simt memory llvm; do \
// RUN:   %irc-opt --irc-pipeline=nvptx --compile-to=$stage %S/inputs/scaled_exp.ark.mlir -o %t.$stage; \
// RUN:   %irc-opt --irc-pipeline=nvptx --compile-from=$stage %t.$stage -o %t.rest; \
// RUN:   diff %t.gpu %t.rest; done'

// CHECK-DAG: llvm.func @{{.*}}kernel_0
// CHECK-NOT: func.func
