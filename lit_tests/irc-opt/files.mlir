// A file that cannot be read or written is named, with the reason.
// RUN: not %irc-opt %t/no.mlir 2>&1 | FileCheck %s --check-prefix=IN
// RUN: not %irc-opt %s -o %t/no/out.mlir 2>&1 | FileCheck %s --check-prefix=OUT

// IN: cannot open input file '{{.*}}no.mlir': No such file or directory
// OUT: cannot open output file '{{.*}}out.mlir': No such file or directory
module {}
