// An unknown pass is an error at its place in the pipeline; as a flag it comes with a guess.
// RUN: not %irc-opt --pass-pipeline='builtin.module(ark-to-tl,outline-kernel)' %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PIPELINE
// RUN: not %irc-opt --ark-to-rl %s 2>&1 | FileCheck %s --check-prefix=FLAG

// PIPELINE: error: 'outline-kernel' does not refer to a registered pass or pass pipeline
// PIPELINE-NEXT: {{^ark-to-tl,outline-kernel$}}
// PIPELINE-NEXT: {{^          \^$}}
// FLAG: Unknown command line argument '--ark-to-rl'
// FLAG: Did you mean '--ark-to-tl'?
