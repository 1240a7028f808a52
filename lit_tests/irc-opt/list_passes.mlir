// --list-passes names our passes and their options.
// RUN: %irc-opt --list-passes | FileCheck %s

// CHECK: --ark-to-tl {{.*}} lower an ARK model
// CHECK-NEXT: --accumulate=<string>
// CHECK-NEXT: --results=<string>
// CHECK: --check-stage
// CHECK: --common-ir-to-tl {{.*}} lower a Common IR or ONNX graph
// CHECK: --emit-entry
// CHECK: --linalg-to-vector
// CHECK-NEXT: --dots=<string>
// CHECK-NEXT: --l2-bytes=<long>
// CHECK: --outline-kernels
// CHECK: --plan-memory
// CHECK: --tl-to-linalg
