; The sum of each CTA's part of x, by shared memory and shuffles; then one CTA at a time adds its sum to out.
target triple = "nvptx64-nvidia-cuda"

@partial = internal addrspace(3) global [32 x float] undef, align 4

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)

define ptx_kernel void @reduce(ptr addrspace(1) %x, ptr addrspace(1) %out, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %cta = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %base = mul i32 %cta, %threads
  %i = add i32 %base, %tid
  %inside = icmp slt i32 %i, %n
  br i1 %inside, label %load, label %sum
load:
  %wide = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(1) %x, i64 %wide
  %v = load float, ptr addrspace(1) %p
  br label %sum
sum:
  %s0 = phi float [ 0.0, %entry ], [ %v, %load ]
  %o16 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s0, i32 16, i32 31)
  %s1 = fadd float %s0, %o16
  %o8 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s1, i32 8, i32 31)
  %s2 = fadd float %s1, %o8
  %o4 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s2, i32 4, i32 31)
  %s3 = fadd float %s2, %o4
  %o2 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s3, i32 2, i32 31)
  %s4 = fadd float %s3, %o2
  %o1 = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %s4, i32 1, i32 31)
  %s5 = fadd float %s4, %o1
  %lane = and i32 %tid, 31
  %warp = lshr i32 %tid, 5
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %write, label %wait
write:
  %slot = getelementptr [32 x float], ptr addrspace(3) @partial, i32 0, i32 %warp
  store float %s5, ptr addrspace(3) %slot
  br label %wait
wait:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %leader = icmp eq i32 %tid, 0
  br i1 %leader, label %head, label %done
head:
  %warps = lshr i32 %threads, 5
  br label %loop
loop:
  %k = phi i32 [ 0, %head ], [ %next, %loop ]
  %total = phi float [ 0.0, %head ], [ %more, %loop ]
  %q = getelementptr [32 x float], ptr addrspace(3) @partial, i32 0, i32 %k
  %part = load float, ptr addrspace(3) %q
  %more = fadd float %total, %part
  %next = add i32 %k, 1
  %again = icmp ult i32 %next, %warps
  br i1 %again, label %loop, label %end
end:
  %old = atomicrmw fadd ptr addrspace(1) %out, float %more monotonic
  br label %done
done:
  ret void
}
