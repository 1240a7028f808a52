// A program becomes a function for each kernel; what computes addresses is in each of them.
// RUN: %irc-opt --split-program %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main_launch_0
// CHECK: memref.view
// CHECK: call @irc_gpu_at
// CHECK: call @first(
// CHECK-NOT: call @second(
// CHECK-LABEL: func.func @irc_main_launch_1
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

// Constants of the program are in each function that uses them. A condition that is loaded, and the kernels of its branch,
// are in one function; the kernels before and after them are not.
// CHECK-LABEL: func.func @irc_branch_launch_0
// CHECK: memref.get_global @weights
// CHECK: call @irc_gpu_at
// CHECK: call @first(
// CHECK-LABEL: func.func @irc_branch_launch_1
// CHECK-NOT: call @first(
// CHECK: memref.load
// CHECK: scf.if
// CHECK: call @second(
// CHECK-LABEL: func.func @irc_branch_launch_2
// CHECK-NOT: memref.load
// CHECK: memref.get_global @weights
// CHECK: call @first(
memref.global "private" constant @weights : memref<16xi8> = dense<1>
func.func @irc_branch(%x: memref<16xi8>, %y: memref<16xi8>) attributes {tl.program = #tl.program<metadata = "{}">} {
  %zero = arith.constant 0 : index
  %weights = memref.get_global @weights : memref<16xi8>
  %from = memref.view %weights[%zero][] : memref<16xi8> to memref<4xf32>
  %to = memref.view %y[%zero][] : memref<16xi8> to memref<4xf32>
  %0 = arith.constant 1099511627776 : i64
  call @irc_gpu_at(%0) : (i64) -> ()
  call @first(%from, %to) : (memref<4xf32>, memref<4xf32>) -> ()
  %flag = memref.load %y[%zero] : memref<16xi8>
  %none = arith.constant 0 : i8
  %condition = arith.cmpi ne, %flag, %none : i8
  scf.if %condition {
    %1 = arith.constant 2199023255552 : i64
    func.call @irc_gpu_at(%1) : (i64) -> ()
    func.call @second(%from, %to) : (memref<4xf32>, memref<4xf32>) -> ()
  }
  %2 = arith.constant 3298534883328 : i64
  call @irc_gpu_at(%2) : (i64) -> ()
  call @first(%from, %to) : (memref<4xf32>, memref<4xf32>) -> ()
  return
}
func.func private @irc_gpu_at(i64)
func.func private @first(memref<4xf32>, memref<4xf32>) attributes {tl.kernel = #tl.kernel<kind = "rows">}
func.func private @second(memref<4xf32>, memref<4xf32>) attributes {tl.kernel = #tl.kernel<kind = "rows">}
