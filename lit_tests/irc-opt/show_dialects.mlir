// --show-dialects names our dialects beside upstream's.
// RUN: %irc-opt --show-dialects | FileCheck %s

// CHECK: Available Dialects: {{.*}},ark,{{.*}},linalg,llvm,{{.*}},plan,{{.*}},tensor,tl,
