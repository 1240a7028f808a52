// The functions of the device that kernels call, in the dialects llvm and nvvm.

// Places of threads are read by instructions that LLVM does not move: what it computes from them before the loop over steps
// would take registers in all kernels.

llvm.func internal @irc_gpu_team() -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %ctaid.x;", "=r" : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

llvm.func internal @irc_gpu_teams() -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %nctaid.x;", "=r" : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

// The number of the team in a step that is moved by so many teams, so that other teams have the first parts of its work.
llvm.func internal @irc_gpu_turn(%shift: i32) -> i64 attributes {always_inline} {
  %0 = llvm.call @irc_gpu_team() : () -> i64
  %1 = llvm.call @irc_gpu_teams() : () -> i64
  %team = llvm.trunc %0 : i64 to i32
  %teams = llvm.trunc %1 : i64 to i32
  %by = llvm.urem %shift, %teams : i32
  %moved = llvm.sub %teams, %by : i32
  %sum = llvm.add %team, %moved : i32
  %turn = llvm.urem %sum, %teams : i32
  %2 = llvm.zext %turn : i32 to i64
  llvm.return %2 : i64
}

llvm.func internal @irc_gpu_thread() -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %tid.x;", "=r" : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

llvm.func internal @irc_gpu_threads() -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %ntid.x;", "=r" : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

// The value of the lane whose number differs in the bits of the mask.
llvm.func internal @irc_gpu_shuffle(%value: i32, %mask: i32) -> i32 attributes {always_inline} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %clamp = llvm.mlir.constant(31 : i32) : i32
  %0 = nvvm.shfl.sync bfly %all, %value, %mask, %clamp : i32 -> i32
  llvm.return %0 : i32
}

// The value of a lane of the four neighbours, by its number.
llvm.func internal @irc_gpu_of_four(%value: i32, %lane: i32) -> i32 attributes {always_inline} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %clamp = llvm.mlir.constant(7199 : i32) : i32
  %0 = nvvm.shfl.sync idx %all, %value, %lane, %clamp : i32 -> i32
  llvm.return %0 : i32
}

// Whether a condition holds for all lanes of a warp.
llvm.func internal @irc_gpu_all(%condition: i1) -> i1 attributes {always_inline} {
  %all = llvm.mlir.constant(-1 : i32) : i32
  %0 = nvvm.vote.sync all %all, %condition -> i1
  llvm.return %0 : i1
}

// The number itself, of which the compiler does not know that: what is computed from it is computed where it is.
llvm.func internal @irc_gpu_again(%x: i64) -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.b64 $0, $1;", "=l,l" %x : (i64) -> i64
  llvm.return %0 : i64
}

// 0, of which no compiler knows that: the number of the thread's block in a dimension in which there is one block.
llvm.func internal @irc_gpu_zero() -> i64 attributes {always_inline} {
  %0 = llvm.inline_asm has_side_effects asm_dialect = att "mov.u32 $0, %ctaid.y;", "=r" : () -> i32
  %1 = llvm.zext %0 : i32 to i64
  llvm.return %1 : i64
}

// 2 to the power of a number, with an error of two units in the last place.
llvm.func internal @irc_gpu_exp2(%x: f32) -> f32 attributes {always_inline} {
  %0 = llvm.inline_asm asm_dialect = att "ex2.approx.ftz.f32 $0, $1;", "=f,f" %x : (f32) -> f32
  llvm.return %0 : f32
}

// Two numbers as halves in a word, the first in the low half.
llvm.func internal @irc_gpu_pair_f16(%low: f32, %high: f32) -> i32 attributes {always_inline} {
  %0 = llvm.inline_asm asm_dialect = att "cvt.rn.f16x2.f32 $0, $2, $1;", "=r,f,f" %low, %high : (f32, f32) -> i32
  llvm.return %0 : i32
}

llvm.func internal @irc_gpu_pair_bf16(%low: f32, %high: f32) -> i32 attributes {always_inline} {
  %0 = llvm.inline_asm asm_dialect = att "cvt.rn.bf16x2.f32 $0, $2, $1;", "=r,f,f" %low, %high : (f32, f32) -> i32
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
  nvvm.bar.warp.sync %lanes : i32
  llvm.return
^several:
  %count = llvm.trunc %threads : i64 to i32
  // The location of `nvvm.barrier` would be read as one of its attributes.
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.count"(%barrier, %count) : (i32, i32) -> ()
  llvm.return
}

// The threads of a team that are in one block wait for each other.
llvm.func internal @irc_gpu_block_barrier(%barrier: i32, %threads: i64) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %all = llvm.icmp "slt" %barrier, %zero : i32
  llvm.cond_br %all, ^whole, ^team
^whole:
  nvvm.barrier0
  llvm.return
^team:
  llvm.call @irc_gpu_barrier(%barrier, %threads) : (i32, i64) -> ()
  llvm.return
}

// Shared memory of the block, as much as the launch provides.
llvm.mlir.global external @irc_gpu_shared_memory() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

llvm.func internal @irc_gpu_shared() -> !llvm.ptr<3> attributes {always_inline} {
  %0 = llvm.mlir.addressof @irc_gpu_shared_memory : !llvm.ptr<3>
  llvm.return %0 : !llvm.ptr<3>
}

// The product of 16x16 and 16x8 elements, added to 16x8 sums, by a warp.
llvm.func internal @irc_gpu_mma_bf16(%a0: i32, %a1: i32, %a2: i32, %a3: i32, %b0: i32, %b1: i32, %c0: f32, %c1: f32, %c2: f32, %c3: f32) -> !llvm.struct<(f32, f32, f32, f32)> attributes {always_inline} {
  %0 = nvvm.mma.sync A[%a0, %a1, %a2, %a3] B[%b0, %b1] C[%c0, %c1, %c2, %c3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<bf16>, multiplicandBPtxType = #nvvm.mma_type<bf16>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (i32, i32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %0 : !llvm.struct<(f32, f32, f32, f32)>
}

llvm.func internal @irc_gpu_mma_f16(%a0: i32, %a1: i32, %a2: i32, %a3: i32, %b0: i32, %b1: i32, %c0: f32, %c1: f32, %c2: f32, %c3: f32) -> !llvm.struct<(f32, f32, f32, f32)> attributes {always_inline} {
  %x0 = llvm.bitcast %a0 : i32 to vector<2xf16>
  %x1 = llvm.bitcast %a1 : i32 to vector<2xf16>
  %x2 = llvm.bitcast %a2 : i32 to vector<2xf16>
  %x3 = llvm.bitcast %a3 : i32 to vector<2xf16>
  %y0 = llvm.bitcast %b0 : i32 to vector<2xf16>
  %y1 = llvm.bitcast %b1 : i32 to vector<2xf16>
  %0 = nvvm.mma.sync A[%x0, %x1, %x2, %x3] B[%y0, %y1] C[%c0, %c1, %c2, %c3] {layoutA = #nvvm.mma_layout<row>, layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, n = 8, k = 16>} : (vector<2xf16>, vector<2xf16>, f32) -> !llvm.struct<(f32, f32, f32, f32)>
  llvm.return %0 : !llvm.struct<(f32, f32, f32, f32)>
}

// Starts to copy 16 bytes from global to shared memory: so many of them; the others become zero.
llvm.func internal @irc_gpu_copy(%to: i64, %from: i64, %bytes: i32) attributes {always_inline} {
  %shared = llvm.inttoptr %to : i64 to !llvm.ptr<3>
  %global = llvm.inttoptr %from : i64 to !llvm.ptr<1>
  nvvm.cp.async.shared.global %shared, %global, 16, cache = cg, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
  llvm.return
}

// The copies that a thread has started since the last time are a group.
llvm.func internal @irc_gpu_copies_commit() attributes {always_inline} {
  nvvm.cp.async.commit.group
  llvm.return
}

// Waits for the thread's copies, but for those of the last groups.
llvm.func internal @irc_gpu_copies_wait_0() attributes {always_inline} {
  nvvm.cp.async.wait.group 0
  llvm.return
}

llvm.func internal @irc_gpu_copies_wait_1() attributes {always_inline} {
  nvvm.cp.async.wait.group 1
  llvm.return
}

llvm.func internal @irc_gpu_copies_wait_2() attributes {always_inline} {
  nvvm.cp.async.wait.group 2
  llvm.return
}

// Four matrices of eight rows of 16 bytes in shared memory, each lane giving the address of a row.
llvm.func internal @irc_gpu_matrices(%address: i64) -> !llvm.struct<(i32, i32, i32, i32)> attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  %0 = nvvm.ldmatrix %shared {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<row>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  llvm.return %0 : !llvm.struct<(i32, i32, i32, i32)>
}

llvm.func internal @irc_gpu_matrices_transposed(%address: i64) -> !llvm.struct<(i32, i32, i32, i32)> attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  %0 = nvvm.ldmatrix %shared {eltType = #nvvm.ld_st_matrix_elt_type<b16>, layout = #nvvm.mma_layout<col>, num = 4 : i32, shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>} : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
  llvm.return %0 : !llvm.struct<(i32, i32, i32, i32)>
}

// A barrier in shared memory of which each phase ends once so many threads have arrived.
llvm.func internal @irc_gpu_phases_init(%address: i64, %count: i32) attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  nvvm.mbarrier.init %shared, %count : !llvm.ptr<3>, i32
  llvm.return
}

// Makes what the thread has done so far visible to asynchronous copies.
llvm.func internal @irc_gpu_phases_ready() attributes {always_inline} {
  llvm.inline_asm has_side_effects asm_dialect = att "fence.proxy.async;", "" : () -> ()
  llvm.return
}

// The memory of a barrier may be used for something else.
llvm.func internal @irc_gpu_phases_end(%address: i64) attributes {always_inline} {
  %shared = llvm.inttoptr %address : i64 to !llvm.ptr<3>
  nvvm.mbarrier.inval %shared : !llvm.ptr<3>
  llvm.return
}

// Waits until a phase has ended: an even or an odd one.
llvm.func internal @irc_gpu_phase_wait(%address: i64, %parity: i32) attributes {always_inline} {
  %shared = llvm.trunc %address : i64 to i32
  llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred done; WAIT${:uid}: mbarrier.try_wait.parity.shared::cta.b64 done, [$0], $1; @!done bra WAIT${:uid}; }", "r,r,~{memory}" %shared, %parity : (i32, i32) -> ()
  llvm.return
}

// Arrives at a barrier, of which the phase ends no sooner than so many bytes are copied.
llvm.func internal @irc_gpu_phase_expect(%address: i64, %bytes: i32) attributes {always_inline} {
  %shared = llvm.trunc %address : i64 to i32
  llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}" %shared, %bytes : (i32, i32) -> ()
  llvm.return
}

llvm.func internal @irc_gpu_phase_arrive(%address: i64) attributes {always_inline} {
  %shared = llvm.trunc %address : i64 to i32
  llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}" %shared : (i32) -> ()
  llvm.return
}

// Tensor maps of each block: two of 128 bytes. A block that uses them takes most of the shared memory of a processor, so
// that there are no more blocks than processors.
llvm.mlir.global internal @irc_gpu_map_memory(dense<0> : tensor<65536xi32>) {addr_space = 1 : i32, alignment = 128 : i64} : !llvm.array<65536 x i32>

llvm.func internal @irc_gpu_maps() -> i64 attributes {always_inline} {
  %all = llvm.mlir.addressof @irc_gpu_map_memory : !llvm.ptr<1>
  %block = llvm.call @irc_gpu_team() : () -> i64
  %words = llvm.mlir.constant(64 : i64) : i64
  %place = llvm.mul %block, %words : i64
  %own = llvm.getelementptr %all[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
  %0 = llvm.ptrtoint %own : !llvm.ptr<1> to i64
  llvm.return %0 : i64
}

// A warp writes the tensor map of a tensor of halves of five dimensions, in shared memory, and copies it to global memory.
// Tiles are 64 elements by so many rows; types have the numbers of PTX: 6 is f16, 10 is bf16.
llvm.func internal @irc_gpu_map(%shared: i64, %global: i64, %tensor: i64, %type: i32, %e0: i32, %e1: i32, %e2: i32, %e3: i32, %e4: i32, %s0: i64, %s1: i64, %s2: i64, %s3: i64, %rows: i32) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %last = llvm.mlir.constant(31 : i32) : i32
  %f16 = llvm.mlir.constant(6 : i32) : i32
  %number = llvm.call @irc_gpu_thread() : () -> i64
  %thread = llvm.trunc %number : i64 to i32
  %lane = llvm.and %thread, %last : i32
  %map = llvm.inttoptr %shared : i64 to !llvm.ptr<3>
  %word = llvm.getelementptr %map[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  llvm.store volatile %zero, %word {alignment = 4 : i64} : i32, !llvm.ptr<3>
  nvvm.bar.warp.sync %all : i32
  %address = llvm.trunc %shared : i64 to i32
  %first = llvm.icmp "eq" %lane, %zero : i32
  llvm.cond_br %first, ^write, ^copy
^write:
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [$0], $1; tensormap.replace.tile.rank.shared::cta.b1024.b32 [$0], 4; tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [$0], 0; tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [$0], 3; tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [$0], 0;", "r,l,~{memory}" %address, %tensor : (i32, i64) -> ()
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 0, $1; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 1, $2; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 2, $3; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 3, $4; tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [$0], 4, $5;", "r,r,r,r,r,r,~{memory}" %address, %e0, %e1, %e2, %e3, %e4 : (i32, i32, i32, i32, i32, i32) -> ()
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [$0], 0, $1; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [$0], 1, $2; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [$0], 2, $3; tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [$0], 3, $4;", "r,l,l,l,l,~{memory}" %address, %s0, %s1, %s2, %s3 : (i32, i64, i64, i64, i64) -> ()
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 0, 64; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 1, $1; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 2, 1; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 3, 1; tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [$0], 4, 1;", "r,r,~{memory}" %address, %rows : (i32, i32) -> ()
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$0], 0, 1; tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$0], 1, 1; tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$0], 2, 1; tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$0], 3, 1; tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [$0], 4, 1;", "r,~{memory}" %address : (i32) -> ()
  %is_f16 = llvm.icmp "eq" %type, %f16 : i32
  llvm.cond_br %is_f16, ^narrow, ^wide
^narrow:
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [$0], 6;", "r,~{memory}" %address : (i32) -> ()
  llvm.br ^copy
^wide:
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [$0], 10;", "r,~{memory}" %address : (i32) -> ()
  llvm.br ^copy
^copy:
  nvvm.bar.warp.sync %all : i32
  llvm.inline_asm has_side_effects asm_dialect = att "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$1], [$0], 128; fence.proxy.tensormap::generic.acquire.gpu [$1], 128; fence.proxy.async;", "r,l,~{memory}" %address, %global : (i32, i64) -> ()
  llvm.return
}

// Starts to copy a tile to shared memory, as a tensor map says, and counts its bytes at a barrier.
llvm.func internal @irc_gpu_copy_tile(%to: i64, %map: i64, %barrier: i64, %c0: i32, %c1: i32, %c2: i32, %c3: i32, %c4: i32) attributes {always_inline} {
  %shared = llvm.trunc %to : i64 to i32
  %phases = llvm.trunc %barrier : i64 to i32
  llvm.inline_asm has_side_effects asm_dialect = att "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6, $7}], [$2];", "r,l,r,r,r,r,r,r,~{memory}" %shared, %map, %phases, %c0, %c1, %c2, %c3, %c4 : (i32, i64, i32, i32, i32, i32, i32, i32) -> ()
  llvm.return
}

// The record of a launch (irc_runtime::gpu::record), in memory of the host: the time in nanoseconds after which a block
// that waits traps, or 0; one more than the number of the warp that has done so; the number of the first block among those
// of all launches of the program; and for each warp where it is.
llvm.mlir.global internal @irc_gpu_record() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.ptr<1>

// Before anything else: the first thread of a block gives the others the record.
llvm.func internal @irc_gpu_start(%record: !llvm.ptr) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %first = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %first, ^store, ^wait
^store:
  %place = llvm.mlir.addressof @irc_gpu_record : !llvm.ptr<3>
  %global = llvm.addrspacecast %record : !llvm.ptr to !llvm.ptr<1>
  llvm.store %global, %place {alignment = 8 : i64} : !llvm.ptr<1>, !llvm.ptr<3>
  llvm.br ^wait
^wait:
  nvvm.barrier0
  llvm.return
}

// The number of the first block of the launch among those of all launches of the program.
llvm.func internal @irc_gpu_first() -> i64 attributes {always_inline} {
  %shared = llvm.mlir.addressof @irc_gpu_record : !llvm.ptr<3>
  %record = llvm.load %shared {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
  %word = llvm.getelementptr %record[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
  %0 = llvm.load %word {alignment = 8 : i64} : !llvm.ptr<1> -> i64
  llvm.return %0 : i64
}

// A warp is at a place: the step, counted from 1, in the upper 24 bits, and the task in the others.
llvm.func internal @irc_gpu_at(%place: i64) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %five = llvm.mlir.constant(5 : i32) : i32
  %mask = llvm.mlir.constant(31 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %lane = llvm.and %thread, %mask : i32
  %first = llvm.icmp "eq" %lane, %zero : i32
  llvm.cond_br %first, ^store, ^end
^store:
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %threads = nvvm.read.ptx.sreg.ntid.x : i32
  %warps = llvm.lshr %threads, %five : i32
  %own = llvm.lshr %thread, %five : i32
  %before = llvm.mul %block, %warps : i32
  %warp = llvm.add %before, %own : i32
  %shared = llvm.mlir.addressof @irc_gpu_record : !llvm.ptr<3>
  %record = llvm.load %shared {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
  %words = llvm.getelementptr %record[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
  %word = llvm.getelementptr %words[%warp] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
  llvm.store %place, %word atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.br ^end
^end:
  llvm.return
}

// Nanoseconds since some time in the past.
llvm.func internal @irc_gpu_time() -> i64 attributes {always_inline} {
  %0 = nvvm.read.ptx.sreg.globaltimer : i64
  llvm.return %0 : i64
}

// The events of a launch, if times are recorded: when each began and ended, and the number of its warp in the grid.
llvm.mlir.global internal @irc_gpu_trace() {addr_space = 3 : i32, alignment = 8 : i64} : !llvm.ptr<1>

// Before irc_gpu_start, after which all threads of the block know the events.
llvm.func internal @irc_gpu_start_trace(%trace: !llvm.ptr) attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %first = llvm.icmp "eq" %thread, %zero : i32
  llvm.cond_br %first, ^store, ^end
^store:
  %place = llvm.mlir.addressof @irc_gpu_trace : !llvm.ptr<3>
  %global = llvm.addrspacecast %trace : !llvm.ptr to !llvm.ptr<1>
  llvm.store %global, %place {alignment = 8 : i64} : !llvm.ptr<1>, !llvm.ptr<3>
  llvm.br ^end
^end:
  llvm.return
}

// The first thread of those that take part records an event, which ends now.
llvm.func internal @irc_gpu_event(%index: i64, %begin: i64, %thread: i64) attributes {no_inline} {
  %none = llvm.mlir.constant(0 : i64) : i64
  %three = llvm.mlir.constant(3 : i64) : i64
  %five = llvm.mlir.constant(5 : i32) : i32
  %first = llvm.icmp "eq" %thread, %none : i64
  llvm.cond_br %first, ^store, ^end
^store:
  %end = nvvm.read.ptx.sreg.globaltimer : i64
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %threads = nvvm.read.ptx.sreg.ntid.x : i32
  %own = nvvm.read.ptx.sreg.tid.x : i32
  %before = llvm.mul %block, %threads : i32
  %number = llvm.add %before, %own : i32
  %short = llvm.lshr %number, %five : i32
  %warp = llvm.zext %short : i32 to i64
  %shared = llvm.mlir.addressof @irc_gpu_trace : !llvm.ptr<3>
  %events = llvm.load %shared {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
  %word = llvm.mul %index, %three : i64
  %from = llvm.getelementptr %events[%word] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
  %to = llvm.getelementptr %from[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
  %by = llvm.getelementptr %from[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
  llvm.store %begin, %from {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.store %end, %to {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.store %warp, %by {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.br ^end
^end:
  llvm.return
}

// Records the event of a block in a step of a program.
llvm.func internal @irc_gpu_block_event(%step: i64, %begin: i64) attributes {always_inline} {
  %blocks = llvm.call @irc_gpu_teams() : () -> i64
  %block = llvm.call @irc_gpu_team() : () -> i64
  %thread = llvm.call @irc_gpu_thread() : () -> i64
  %before = llvm.mul %step, %blocks : i64
  %index = llvm.add %before, %block : i64
  llvm.call @irc_gpu_event(%index, %begin, %thread) : (i64, i64, i64) -> ()
  llvm.return
}

// All threads of the grid wait for each other.
llvm.func internal @irc_gpu_grid_barrier() attributes {always_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %teams = llvm.call @irc_gpu_teams() : () -> i64
  %blocks = llvm.trunc %teams : i64 to i32
  llvm.call @irc_gpu_processors_barrier(%zero, %blocks) : (i32, i32) -> ()
  llvm.return
}

// Ends the launch if a condition does not hold.
llvm.func internal @irc_gpu_check(%holds: i1) attributes {no_inline} {
  llvm.cond_br %holds, ^end, ^fail
^fail:
  "llvm.intr.trap"() : () -> ()
  llvm.unreachable
^end:
  llvm.return
}

// For each barrier between blocks: how many have arrived, and the number of times that all have.
llvm.mlir.global internal @irc_gpu_states(dense<0> : tensor<2048xi32>) {addr_space = 1 : i32} : !llvm.array<2048 x i32>

// The time in nanoseconds after which a thread that waits traps, or 0.
llvm.func internal @irc_gpu_patience() -> i64 attributes {always_inline} {
  %shared = llvm.mlir.addressof @irc_gpu_record : !llvm.ptr<3>
  %record = llvm.load %shared {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
  %0 = llvm.load %record {alignment = 8 : i64} : !llvm.ptr<1> -> i64
  llvm.return %0 : i64
}

// A thread that has waited since a time traps after its patience, which is not 0: the record says so first.
llvm.func internal @irc_gpu_watch(%start: i64, %patience: i64) attributes {always_inline} {
  %time = nvvm.read.ptx.sreg.globaltimer : i64
  %waited = llvm.sub %time, %start : i64
  %stuck = llvm.icmp "ugt" %waited, %patience : i64
  llvm.cond_br %stuck, ^fail, ^end
^fail:
  %one = llvm.mlir.constant(1 : i32) : i32
  %five = llvm.mlir.constant(5 : i32) : i32
  %thread = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %threads = nvvm.read.ptx.sreg.ntid.x : i32
  %warps = llvm.lshr %threads, %five : i32
  %own = llvm.lshr %thread, %five : i32
  %before = llvm.mul %block, %warps : i32
  %warp = llvm.add %before, %own : i32
  %above = llvm.add %warp, %one : i32
  %number = llvm.zext %above : i32 to i64
  %shared = llvm.mlir.addressof @irc_gpu_record : !llvm.ptr<3>
  %record = llvm.load %shared {alignment = 8 : i64} : !llvm.ptr<3> -> !llvm.ptr<1>
  %word = llvm.getelementptr %record[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i64
  llvm.store %number, %word atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.fence acq_rel
  "llvm.intr.trap"() : () -> ()
  llvm.unreachable
^end:
  llvm.return
}

// What a thread has seen so far is visible to those that see what it writes next, on other GPUs too.
llvm.func internal @irc_gpu_fence() attributes {always_inline} {
  llvm.fence acq_rel
  llvm.return
}

// A peer has been sent something: one more signal has arrived at a link, whose words are in the peer's memory.
llvm.func internal @irc_gpu_signal(%link: i64) attributes {always_inline} {
  %one = llvm.mlir.constant(1 : i32) : i32
  llvm.inline_asm has_side_effects asm_dialect = att "red.release.sys.global.add.u32 [$0], $1;", "l,r,~{memory}" %link, %one : (i64, i32) -> ()
  llvm.return
}

// Waits for so many signals of a link that nothing else has waited for.
llvm.func internal @irc_gpu_wait(%link: i64, %count: i32) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %never = llvm.mlir.constant(0 : i64) : i64
  %arrived = llvm.inttoptr %link : i64 to !llvm.ptr<1>
  %taken = llvm.getelementptr %arrived[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  %before = llvm.atomicrmw add %taken, %count syncscope("device") monotonic : !llvm.ptr<1>, i32
  %least = llvm.add %before, %count : i32
  %patience = llvm.call @irc_gpu_patience() : () -> i64
  %watched = llvm.icmp "ne" %patience, %never : i64
  %start = nvvm.read.ptx.sreg.globaltimer : i64
  llvm.br ^poll
^poll:
  %found = llvm.load %arrived atomic acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %more = llvm.sub %found, %least : i32
  %done = llvm.icmp "sge" %more, %zero : i32
  llvm.cond_br %done, ^end, ^again
^again:
  llvm.cond_br %watched, ^watch, ^poll
^watch:
  llvm.call @irc_gpu_watch(%start, %patience) : (i64, i64) -> ()
  llvm.br ^poll
^end:
  llvm.return
}

// Sends a packet: 32 bits, and a flag that says that they have arrived.
llvm.func internal @irc_gpu_send_packet(%address: i64, %payload: i32, %flag: i32) attributes {always_inline} {
  %half = llvm.mlir.constant(32 : i64) : i64
  %low = llvm.zext %payload : i32 to i64
  %high = llvm.zext %flag : i32 to i64
  %above = llvm.shl %high, %half : i64
  %packet = llvm.or %above, %low : i64
  %to = llvm.inttoptr %address : i64 to !llvm.ptr<1>
  llvm.store %packet, %to atomic monotonic {alignment = 8 : i64} : i64, !llvm.ptr<1>
  llvm.return
}

// Waits for a packet with a flag; a fence has to follow before what was sent before the packet is read.
llvm.func internal @irc_gpu_receive_packet(%address: i64, %flag: i32) -> i32 attributes {no_inline} {
  %half = llvm.mlir.constant(32 : i64) : i64
  %never = llvm.mlir.constant(0 : i64) : i64
  %from = llvm.inttoptr %address : i64 to !llvm.ptr<1>
  %patience = llvm.call @irc_gpu_patience() : () -> i64
  %watched = llvm.icmp "ne" %patience, %never : i64
  %start = nvvm.read.ptx.sreg.globaltimer : i64
  llvm.br ^poll
^poll:
  %packet = llvm.load %from atomic monotonic {alignment = 8 : i64} : !llvm.ptr<1> -> i64
  %above = llvm.lshr %packet, %half : i64
  %high = llvm.trunc %above : i64 to i32
  %done = llvm.icmp "eq" %high, %flag : i32
  llvm.cond_br %done, ^end, ^again
^again:
  llvm.cond_br %watched, ^watch, ^poll
^watch:
  llvm.call @irc_gpu_watch(%start, %patience) : (i64, i64) -> ()
  llvm.br ^poll
^end:
  %payload = llvm.trunc %packet : i64 to i32
  llvm.return %payload : i32
}

// All threads of a number of blocks wait for each other. The last block to arrive starts the next generation.
llvm.func internal @irc_gpu_processors_barrier(%state: i32, %blocks: i32) attributes {no_inline} {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %one = llvm.mlir.constant(1 : i32) : i32
  %never = llvm.mlir.constant(0 : i64) : i64
  %states = llvm.mlir.addressof @irc_gpu_states : !llvm.ptr<1>
  %twice = llvm.add %state, %state : i32
  %arrived = llvm.getelementptr %states[%twice] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %generation = llvm.getelementptr %arrived[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
  nvvm.barrier0
  %thread = nvvm.read.ptx.sreg.tid.x : i32
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
  %patience = llvm.call @irc_gpu_patience() : () -> i64
  %watched = llvm.icmp "ne" %patience, %never : i64
  %start = nvvm.read.ptx.sreg.globaltimer : i64
  llvm.br ^poll
^poll:
  %found = llvm.load %generation atomic syncscope("device") acquire {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  %same = llvm.icmp "eq" %found, %now : i32
  llvm.cond_br %same, ^again, ^end
^again:
  llvm.cond_br %watched, ^watch, ^poll
^watch:
  llvm.call @irc_gpu_watch(%start, %patience) : (i64, i64) -> ()
  llvm.br ^poll
^end:
  nvvm.barrier0
  llvm.return
}
