// The functions of the device that kernels call, in the llvm dialect for NVPTX.

llvm.func internal @irc_gpu_team() -> i64 attributes {always_inline} {
  %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"() : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

llvm.func internal @irc_gpu_teams() -> i64 attributes {always_inline} {
  %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.nctaid.x"() : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

llvm.func internal @irc_gpu_thread() -> i64 attributes {always_inline} {
  %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

llvm.func internal @irc_gpu_threads() -> i64 attributes {always_inline} {
  %0 = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ntid.x"() : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

// The value of the lane whose number differs in the bits of the mask.
llvm.func internal @irc_gpu_shuffle(%value: i32, %mask: i32) -> i32 attributes {always_inline} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %clamp = llvm.mlir.constant(31 : i32) : i32
  %0 = llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.i32"(%all, %value, %mask, %clamp) : (i32, i32, i32, i32) -> i32
  llvm.return %0 : i32
}

// The threads of a team wait for each other: by a barrier of their block, as those of a warp if it is 16, or as all
// threads of the grid if it is -1.
llvm.func internal @irc_gpu_barrier(%barrier: i32, %threads: i64) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %sixteen = llvm.mlir.constant(16 : i32) : i32
  %all = llvm.icmp "slt" %barrier, %zero : i32
  llvm.cond_br %all, ^grid, ^block
^grid:
  llvm.call @irc_gpu_grid_barrier() : () -> ()
  llvm.return
^block:
  %is_warp = llvm.icmp "eq" %barrier, %sixteen : i32
  llvm.cond_br %is_warp, ^warp, ^several
^warp:
  %lanes = llvm.mlir.constant(-1 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.bar.warp.sync"(%lanes) : (i32) -> ()
  llvm.return
^several:
  %count = llvm.trunc %threads : i64 to i32
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"(%barrier, %count) : (i32, i32) -> ()
  llvm.return
}

// The threads of a team that are in one block wait for each other.
llvm.func internal @irc_gpu_block_barrier(%barrier: i32, %threads: i64) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %all = llvm.icmp "slt" %barrier, %zero : i32
  llvm.cond_br %all, ^whole, ^team
^whole:
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%zero) : (i32) -> ()
  llvm.return
^team:
  llvm.call @irc_gpu_barrier(%barrier, %threads) : (i32, i64) -> ()
  llvm.return
}

// Shared memory of the block, as much as the launch provides.
llvm.mlir.global external @irc_gpu_shared_memory() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>

llvm.func internal @irc_gpu_shared() -> !llvm.ptr<3> attributes {always_inline} {
  %0 = llvm.mlir.addressof @irc_gpu_shared_memory : !llvm.ptr<3>
  llvm.return %0 : !llvm.ptr<3>
}

// The product of 16x16 and 16x8 elements, added to 16x8 sums, by a warp.
llvm.func internal @irc_gpu_mma_bf16(%a0: i32, %a1: i32, %a2: i32, %a3: i32, %b0: i32, %b1: i32, %c0: f32, %c1: f32, %c2: f32, %c3: f32) -> !llvm.struct<(f32, f32, f32, f32)> attributes {always_inline} {
  %0 = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"(%a0, %a1, %a2, %a3, %b0, %b1, %c0, %c1, %c2, %c3) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %0 : !llvm.struct<(f32, f32, f32, f32)>
}

llvm.func internal @irc_gpu_mma_f16(%a0: i32, %a1: i32, %a2: i32, %a3: i32, %b0: i32, %b1: i32, %c0: f32, %c1: f32, %c2: f32, %c3: f32) -> !llvm.struct<(f32, f32, f32, f32)> attributes {always_inline} {
  %x0 = llvm.bitcast %a0 : i32 to vector<2xf16>
  %x1 = llvm.bitcast %a1 : i32 to vector<2xf16>
  %x2 = llvm.bitcast %a2 : i32 to vector<2xf16>
  %x3 = llvm.bitcast %a3 : i32 to vector<2xf16>
  %y0 = llvm.bitcast %b0 : i32 to vector<2xf16>
  %y1 = llvm.bitcast %b1 : i32 to vector<2xf16>
  %0 = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"(%x0, %x1, %x2, %x3, %y0, %y1, %c0, %c1, %c2, %c3) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %0 : !llvm.struct<(f32, f32, f32, f32)>
}

// Starts to copy 16 bytes from global to shared memory: so many of them; the others become zero.
llvm.func internal @irc_gpu_copy(%to: i64, %from: i64, %bytes: i32) attributes {always_inline} {
  %shared = llvm.inttoptr %to : i64 to !llvm.ptr<3>
  %global = llvm.inttoptr %from : i64 to !llvm.ptr<1>
  llvm.call_intrinsic "llvm.nvvm.cp.async.cg.shared.global.16.s"(%shared, %global, %bytes) : (!llvm.ptr<3>, !llvm.ptr<1>, i32) -> ()
  llvm.return
}

// The copies that a thread has started since the last time are a group.
llvm.func internal @irc_gpu_copies_commit() attributes {always_inline} {
  llvm.call_intrinsic "llvm.nvvm.cp.async.commit.group"() : () -> ()
  llvm.return
}

// Waits for the thread's copies, but for those of the last groups.
llvm.func internal @irc_gpu_copies_wait_0() attributes {always_inline} {
  %groups = llvm.mlir.constant(0 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%groups) : (i32) -> ()
  llvm.return
}

llvm.func internal @irc_gpu_copies_wait_1() attributes {always_inline} {
  %groups = llvm.mlir.constant(1 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%groups) : (i32) -> ()
  llvm.return
}

llvm.func internal @irc_gpu_copies_wait_2() attributes {always_inline} {
  %groups = llvm.mlir.constant(2 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%groups) : (i32) -> ()
  llvm.return
}

// Four matrices of eight rows of 16 bytes in shared memory, each lane giving the address of a row.
llvm.func internal @irc_gpu_matrices(%address: i64) -> !llvm.struct<(i32, i32, i32, i32)> attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  %0 = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"(%shared) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  llvm.return %0 : !llvm.struct<(i32, i32, i32, i32)>
}

llvm.func internal @irc_gpu_matrices_transposed(%address: i64) -> !llvm.struct<(i32, i32, i32, i32)> attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  %0 = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"(%shared) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  llvm.return %0 : !llvm.struct<(i32, i32, i32, i32)>
}

// All threads of the grid wait for each other.
llvm.func internal @irc_gpu_grid_barrier() attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %blocks = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.nctaid.x"() : () -> i32
  llvm.call @irc_gpu_processors_barrier(%zero, %blocks) : (i32, i32) -> ()
  llvm.return
}

// For each barrier between blocks: how many have arrived, and the number of times that all have.
llvm.mlir.global internal @irc_gpu_states(dense<0> : tensor<2048xi32>) {addr_space = 1 : i32} : !llvm.array<2048 x i32>

// All threads of a number of blocks wait for each other. The last block to arrive starts the next generation.
llvm.func internal @irc_gpu_processors_barrier(%state: i32, %blocks: i32) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %limit = llvm.mlir.constant(10000000000 : i64) : i64
  %states = llvm.mlir.addressof @irc_gpu_states : !llvm.ptr<1>
  %twice = llvm.add %state, %state : i32
  %arrived = llvm.getelementptr %states[%twice] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %generation = llvm.getelementptr %arrived[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%zero) : (i32) -> ()
  %thread = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"() : () -> i32
  %first = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %first, ^arrive, ^end
^arrive:
  %now = llvm.load %generation atomic syncscope("device") monotonic {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // LLVM 22 drops the order of atomicrmw, so that fences are needed.
  llvm.fence syncscope("device") acq_rel
  %before = llvm.atomicrmw add %arrived, %one syncscope("device") acq_rel : !llvm.ptr<1>, i32
  llvm.fence syncscope("device") acq_rel
  %last = llvm.sub %blocks, %one : i32
  %is_last = llvm.icmp "eq" %before, %last : i32
  llvm.cond_br %is_last, ^release, ^wait
^release:
  llvm.store %zero, %arrived atomic syncscope("device") monotonic {alignment = 4 : i64} : i32, !llvm.ptr<1>
  %next = llvm.add %now, %one : i32
  llvm.store %next, %generation atomic syncscope("device") release {alignment = 4 : i64} : i32, !llvm.ptr<1>
  llvm.br ^end
^wait:
  %start = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.globaltimer"() : () -> i64
  llvm.br ^poll
^poll:
  %found = llvm.load %generation atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %same = llvm.icmp "eq" %found, %now : i32
  llvm.cond_br %same, ^watch, ^end
^watch:
  %time = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.globaltimer"() : () -> i64
  %waited = llvm.sub %time, %start : i64
  %stuck = llvm.icmp "ugt" %waited, %limit : i64
  llvm.cond_br %stuck, ^fail, ^poll
^fail:
  "llvm.intr.trap"() : () -> ()
  llvm.unreachable
^end:
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%zero) : (i32) -> ()
  llvm.return
}
