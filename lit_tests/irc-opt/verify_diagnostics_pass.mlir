// Expected errors of our passes are matched as those of verifiers are.
// RUN: %irc-opt --verify-diagnostics --check-stage='stage=linalg' %s

// expected-error@below {{'memref.global' op remains after stage 'linalg', which leaves only}}
memref.global "private" @x : memref<2xf32>
