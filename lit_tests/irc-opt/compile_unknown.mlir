// An unknown stage or pipeline is a usage error that names those there are.
// RUN: not %irc-opt --compile-to=nowhere %s 2>&1 | FileCheck %s --check-prefix=TO
// RUN: not %irc-opt --compile-from=nowhere %s 2>&1 | FileCheck %s --check-prefix=TO
// RUN: not %irc-opt --irc-pipeline=nothing %s 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: sh -c '%irc-opt --compile-to=nowhere %s 2> /dev/null; test $? -eq 2'
// RUN: not %irc-opt --compile-to 2>&1 | FileCheck %s --check-prefix=VALUE
// RUN: not %irc-opt --compile-to=fuse --pass-pipeline=any %s 2>&1 | FileCheck %s --check-prefix=BOTH

// TO: irc-opt: error: no stage 'nowhere' in pipeline 'host-cpu'; stages: import, tensor, fuse, kernels, linalg, vector, memory, llvm
// PIPELINE: irc-opt: error: no pipeline 'nothing'; pipelines: host-cpu
// VALUE: irc-opt: error: --compile-to expects a value
// BOTH: irc-opt: error: the stage table and --pass-pipeline exclude each other
