; Functions with structures, recursion, pointers to functions, arrays of a thread, tables, branches by index, and
; integers of 128 bits.
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, i64 }

@table = internal addrspace(4) constant [4 x i32] [i32 10, i32 20, i32 30, i32 40]
@functions = internal addrspace(1) global [2 x ptr] [ptr @twice, ptr @square]
@text = private addrspace(4) constant [17 x i8] c"thread %d: %lld\0A\00"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @vprintf(ptr, ptr)

define internal i64 @twice(i64 %x) noinline {
  %y = add i64 %x, %x
  ret i64 %y
}

define internal i64 @square(i64 %x) noinline {
  %y = mul i64 %x, %x
  ret i64 %y
}

define internal i32 @fibonacci(i32 %n) noinline {
  %small = icmp ult i32 %n, 2
  br i1 %small, label %base, label %more
base:
  ret i32 %n
more:
  %n1 = sub i32 %n, 1
  %n2 = sub i32 %n, 2
  %a = call i32 @fibonacci(i32 %n1)
  %b = call i32 @fibonacci(i32 %n2)
  %c = add i32 %a, %b
  ret i32 %c
}

define internal %pair @swap(%pair %p, ptr byval(%pair) %q) noinline {
  %a = extractvalue %pair %p, 0
  %field = getelementptr %pair, ptr %q, i32 0, i32 1
  %b = load i64, ptr %field
  %r0 = insertvalue %pair undef, i32 %a, 0
  %r1 = insertvalue %pair %r0, i64 %b, 1
  ret %pair %r1
}

define internal i32 @select(i32 %k, i32 %x) noinline {
  switch i32 %k, label %other [ i32 0, label %zero
                                i32 1, label %one
                                i32 2, label %two
                                i32 3, label %three
                                i32 4, label %four
                                i32 5, label %five ]
zero:
  %a = add i32 %x, 100
  ret i32 %a
one:
  %b = mul i32 %x, 3
  ret i32 %b
two:
  %c = sub i32 %x, 7
  ret i32 %c
three:
  %d = xor i32 %x, 255
  ret i32 %d
four:
  %e = shl i32 %x, 4
  ret i32 %e
five:
  %f = udiv i32 1000, %x
  ret i32 %f
other:
  ret i32 -1
}

define ptx_kernel void @calls(ptr addrspace(1) %out) {
entry:
  %local = alloca [8 x i32], align 16
  %args = alloca { i32, i64 }, align 8
  %structure = alloca %pair, align 8
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %tid to i64
  br label %fill
fill:
  %i = phi i32 [ 0, %entry ], [ %i1, %fill ]
  %product = mul i32 %i, %tid
  %lp = getelementptr [8 x i32], ptr %local, i32 0, i32 %i
  store i32 %product, ptr %lp
  %i1 = add i32 %i, 1
  %again = icmp ult i32 %i1, 8
  br i1 %again, label %fill, label %use
use:
  %index = and i32 %tid, 7
  %rp = getelementptr [8 x i32], ptr %local, i32 0, i32 %index
  %array = load i32, ptr %rp
  %fib = call i32 @fibonacci(i32 %index)
  %odd = and i64 %wide, 1
  %fp = getelementptr [2 x ptr], ptr addrspace(1) @functions, i64 0, i64 %odd
  %f = load ptr, ptr addrspace(1) %fp
  %called = call i64 %f(i64 %wide)
  %quarter = and i32 %tid, 3
  %tp = getelementptr [4 x i32], ptr addrspace(4) @table, i32 0, i32 %quarter
  %entry4 = load i32, ptr addrspace(4) %tp
  %switched = call i32 @select(i32 %index, i32 %entry4)
  %field = getelementptr %pair, ptr %structure, i32 0, i32 1
  store i64 %called, ptr %field
  %p0 = insertvalue %pair undef, i32 %switched, 0
  %p1 = insertvalue %pair %p0, i64 7, 1
  %swapped = call %pair @swap(%pair %p1, ptr byval(%pair) %structure)
  %sa = extractvalue %pair %swapped, 0
  %sb = extractvalue %pair %swapped, 1
  %la = zext i32 %array to i64
  %lf = zext i32 %fib to i64
  %ls = sext i32 %sa to i64
  %x1 = add i64 %la, %lf
  %x2 = add i64 %x1, %ls
  %x3 = add i64 %x2, %sb
  %big = zext i64 %x3 to i128
  %shifted = shl i128 %big, 70
  %sum = add i128 %shifted, %big
  %cube = mul i128 %sum, %big
  %high = lshr i128 %cube, 64
  %result = trunc i128 %high to i64
  %op = getelementptr i64, ptr addrspace(1) %out, i64 %wide
  %both = xor i64 %result, %x3
  store i64 %both, ptr addrspace(1) %op
  %print = icmp eq i32 %tid, 5
  br i1 %print, label %say, label %done
say:
  store i32 %tid, ptr %args
  %second = getelementptr { i32, i64 }, ptr %args, i32 0, i32 1
  store i64 %x3, ptr %second
  %generic = addrspacecast ptr addrspace(4) @text to ptr
  %printed = call i32 @vprintf(ptr %generic, ptr %args)
  br label %done
done:
  ret void
}
