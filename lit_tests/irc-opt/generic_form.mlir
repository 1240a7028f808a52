// Every level, in generic form, parses and verifies under upstream's mlir-opt, which knows none of
// our dialects.
// RUN: sh -ec 'for stage in $(%irc-opt --list-stages | sed -n "/^host-cpu/,/^  llvm/s/^  \([a-z]*\) .*/\1/p"); do \
// RUN:   %irc-opt --irc-pipeline=host-cpu --compile-to=$stage --mlir-print-op-generic --mlir-print-debuginfo \
// RUN:     %S/inputs/scaled_exp.ark.mlir -o %t.$stage; \
// RUN:   mlir-opt --allow-unregistered-dialect --mlir-print-op-generic --mlir-print-debuginfo %t.$stage \
// RUN:     | diff %t.$stage -; done'
// RUN: %irc-opt --plan-ark --mlir-print-op-generic %S/inputs/scaled_exp.ark.mlir -o %t.plan
// RUN: grep plan.task_group %t.plan
// RUN: mlir-opt --allow-unregistered-dialect --mlir-print-op-generic %t.plan | diff %t.plan -
