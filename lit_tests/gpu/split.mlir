// A program becomes a function for each kernel; what computes addresses is in each of them.
// RUN: %irc-opt --split-program %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main_0
// CHECK: memref.view
// CHECK: call @irc_gpu_at
// CHECK: call @first(
// CHECK-NOT: call @second(
// CHECK-LABEL: func.func @irc_main_1
// CHECK: memref.view
// CHECK: call @irc_gpu_at
// CHECK: call @second(
func.func @irc_main(%x: memref<16xi8>, %y: memref<16xi8>) attributes {tl.program = #tl.program<metadata = "{}">} {
  %zero = arith.constant 0 : index
  %from = memref.view %x[%zero][] : memref<16xi8> to memref<4xf32>
  %to = memref.view %y[%zero][] : memref<16xi8> to memref<4xf32>
  %0 = arith.constant 1099511627776 : i64
  call @irc_gpu_at(%0) : (i64) -> ()
  call @first(%from, %to) : (memref<4xf32>, memref<4xf32>) -> ()
  %1 = arith.constant 2199023255552 : i64
  call @irc_gpu_at(%1) : (i64) -> ()
  call @second(%from, %to) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
func.func private @irc_gpu_at(i64)
func.func private @first(memref<4xf32>, memref<4xf32>) attributes {tl.kernel = #tl.kernel<kind = "rows">}
func.func private @second(memref<4xf32>, memref<4xf32>) attributes {tl.kernel = #tl.kernel<kind = "rows">}
