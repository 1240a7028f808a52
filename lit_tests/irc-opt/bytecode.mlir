// Our dialects go through bytecode unchanged, locations too.
// RUN: %irc-opt --mlir-print-debuginfo %S/inputs/scaled_exp.ark.mlir -o %t.ark
// RUN: %irc-opt --emit-bytecode %S/inputs/scaled_exp.ark.mlir -o %t.ark.bc
// RUN: %irc-opt --mlir-print-debuginfo %t.ark.bc | diff %t.ark -
// RUN: %irc-opt --mlir-print-debuginfo %S/inputs/group.tl.mlir -o %t.tl
// RUN: %irc-opt --emit-bytecode %S/inputs/group.tl.mlir -o %t.tl.bc
// RUN: %irc-opt --mlir-print-debuginfo %t.tl.bc | diff %t.tl -
