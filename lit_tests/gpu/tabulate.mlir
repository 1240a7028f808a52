// Steps that follow each other become rows of a table, and a loop over it calls each kernel at one place. What other ops
// separate is another run of the loop; a single step stays a call.
// RUN: %irc-opt --tabulate-steps %s | FileCheck %s

llvm.mlir.global internal constant @scale(dense<1> : tensor<8xi8>) {alignment = 64 : i64} : !llvm.array<8 x i8>

// CHECK-LABEL: llvm.func @irc_main(
// CHECK: llvm.call @irc_gpu_steps_0(%arg0, %arg1, %arg2)
// CHECK-NEXT: llvm.call @irc_gpu_grid_barrier()
// CHECK-NEXT: llvm.call @irc_gpu_grid_barrier()
// CHECK-NEXT: llvm.call @irc_gpu_steps_1(%arg2, %arg3)
// CHECK: llvm.call @irc_gpu_grid_barrier()
// CHECK: llvm.call @irc_gpu_at
// CHECK-NEXT: llvm.call @second(
// CHECK-NEXT: llvm.call @irc_gpu_grid_barrier()
llvm.func @irc_main(%x: !llvm.ptr, %w: !llvm.ptr, %work: !llvm.ptr, %y: !llvm.ptr) attributes {tl.program = #tl.program<weight_offsets = [-1, 64, -1, -1], metadata = "{}">} {
  %0 = llvm.mlir.constant(1099511627776 : i64) : i64
  %1 = llvm.mlir.constant(2199023255552 : i64) : i64
  %2 = llvm.mlir.constant(3298534883328 : i64) : i64
  %scale = llvm.mlir.addressof @scale : !llvm.ptr
  %first = llvm.getelementptr %scale[0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.array<8 x i8>
  %inner = llvm.getelementptr %work[256] : (!llvm.ptr) -> !llvm.ptr, i8
  llvm.call @irc_gpu_at(%0) : (i64) -> ()
  llvm.call @first(%x, %w, %work) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.call @irc_gpu_at(%1) : (i64) -> ()
  llvm.call @second(%work, %inner) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @irc_gpu_grid_barrier() : () -> ()
  llvm.call @irc_gpu_at(%0) : (i64) -> ()
  llvm.call @second(%inner, %work) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @irc_gpu_at(%2) : (i64) -> ()
  llvm.call @first(%inner, %first, %y) : (!llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()
  llvm.call @irc_gpu_grid_barrier() : () -> ()
  llvm.call @irc_gpu_at(%0) : (i64) -> ()
  llvm.call @second(%x, %y) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.return
}
llvm.func @irc_gpu_at(i64)
llvm.func @irc_gpu_grid_barrier()
llvm.func @first(!llvm.ptr, !llvm.ptr, !llvm.ptr) attributes {tl.kernel = #tl.kernel<kind = "rows">}
llvm.func @second(!llvm.ptr, !llvm.ptr) attributes {tl.kernel = #tl.kernel<kind = "rows">}

// A row is the step, whether blocks wait (bit 31), and the kernel, then a base and an offset for each operand: here base 1, the constants, at 64, and
// base 2 at 256. The number of no kernel ends a run.
// CHECK: @irc_gpu_table(dense<[0, 0, 281474976710720, 562949953421312, 6442450945, 562949953421312, 562949953421568, 1048575, 1, 256, 0, 10737418240,
// CHECK-SAME: 256, 281474976710656, 562949953421312, 1048575]>
// CHECK: @irc_gpu_bases() {{.*}}addr_space = 3
// CHECK: @irc_gpu_constants(dense<1> : tensor<8xi8>) {{.*}}addr_space = 1
// CHECK-LABEL: llvm.func internal @irc_gpu_steps(
// CHECK: llvm.call @irc_gpu_at
// CHECK: llvm.switch
// CHECK: llvm.call @first(
// CHECK: llvm.call @second(
// CHECK-NOT: llvm.call @first(
// CHECK-LABEL: llvm.func internal @irc_gpu_steps_0(
// The constants begin 64 bytes before the parameter.
// CHECK: llvm.mlir.constant(-64 : i64)
// CHECK: llvm.call @irc_gpu_steps(
