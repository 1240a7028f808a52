; softmax of rows of 64 bfloat16, a warp each; and the same with half precision intrinsics of vectors.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare float @llvm.maxnum.f32(float, float)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)

define ptx_kernel void @softmax(ptr addrspace(1) align 16 %x, ptr addrspace(1) align 16 %y) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %row = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %base = mul i32 %row, 32
  %i = add i32 %base, %lane
  %wide = zext i32 %i to i64
  %p = getelementptr <2 x bfloat>, ptr addrspace(1) %x, i64 %wide
  %v = load <2 x bfloat>, ptr addrspace(1) %p
  %f = fpext <2 x bfloat> %v to <2 x float>
  %a = extractelement <2 x float> %f, i32 0
  %b = extractelement <2 x float> %f, i32 1
  %m0 = call float @llvm.maxnum.f32(float %a, float %b)
  br label %max
max:
  %d = phi i32 [ 16, %0 ], [ %half, %max ]
  %m = phi float [ %m0, %0 ], [ %larger, %max ]
  %other = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %m, i32 %d, i32 31)
  %larger = call float @llvm.maxnum.f32(float %m, float %other)
  %half = lshr i32 %d, 1
  %more = icmp ne i32 %half, 0
  br i1 %more, label %max, label %exp
exp:
  %da = fsub float %a, %larger
  %db = fsub float %b, %larger
  %sa = fmul float %da, 0x3FF7154760000000
  %sb = fmul float %db, 0x3FF7154760000000
  %ea = call float @llvm.nvvm.ex2.approx.ftz.f(float %sa)
  %eb = call float @llvm.nvvm.ex2.approx.ftz.f(float %sb)
  %s0 = fadd float %ea, %eb
  br label %sum
sum:
  %d2 = phi i32 [ 16, %exp ], [ %half2, %sum ]
  %s = phi float [ %s0, %exp ], [ %total, %sum ]
  %other2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 -1, float %s, i32 %d2, i32 31)
  %total = fadd float %s, %other2
  %half2 = lshr i32 %d2, 1
  %more2 = icmp ne i32 %half2, 0
  br i1 %more2, label %sum, label %write
write:
  %ya = fdiv float %ea, %total
  %yb = fdiv float %eb, %total
  %r0 = insertelement <2 x float> undef, float %ya, i32 0
  %r1 = insertelement <2 x float> %r0, float %yb, i32 1
  %r = fptrunc <2 x float> %r1 to <2 x bfloat>
  %q = getelementptr <2 x bfloat>, ptr addrspace(1) %y, i64 %wide
  store <2 x bfloat> %r, ptr addrspace(1) %q
  ret void
}

define ptx_kernel void @halves(ptr addrspace(1) align 16 %x, ptr addrspace(1) align 16 %y) {
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %lane to i64
  %p = getelementptr <8 x half>, ptr addrspace(1) %x, i64 %wide
  %v = load <8 x half>, ptr addrspace(1) %p, align 16
  %w = fmul <8 x half> %v, %v
  %u = fadd <8 x half> %w, %v
  %c = fcmp ogt <8 x half> %u, zeroinitializer
  %z = select <8 x i1> %c, <8 x half> %u, <8 x half> zeroinitializer
  %q = getelementptr <8 x half>, ptr addrspace(1) %y, i64 %wide
  store <8 x half> %z, ptr addrspace(1) %q, align 16
  ret void
}
