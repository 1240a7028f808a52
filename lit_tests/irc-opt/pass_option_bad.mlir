// An option that a pass lacks, or whose value it rejects, is named.
// RUN: not %irc-opt --pass-pipeline='builtin.module(outline-kernels{name=x})' %S/inputs/group.tl.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNKNOWN
// RUN: not %irc-opt --pass-pipeline='builtin.module(ark-to-tl{accumulate=narrow})' %S/inputs/scaled_exp.ark.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=VALUE
// RUN: not %irc-opt --pass-pipeline='builtin.module(linalg-to-vector{l2-bytes=much})' %S/inputs/group.tl.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TYPE

// UNKNOWN: no such option name
// UNKNOWN: failed to add `outline-kernels` with options `name=x`
// VALUE: option 'accumulate' of ark-to-tl: expected 'wide' or 'ark', found 'narrow'
// TYPE: 'much' value invalid for
// TYPE: failed to add `linalg-to-vector` with options `l2-bytes=much`
