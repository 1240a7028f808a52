; Conversions between float formats, under the names that LLVM calls where a processor has no instructions
; for them. They are weak and hidden: each object that needs them has a copy, and no library exports them.

; Rounds a double to odd: if it is not a float, the result is the adjacent float with an odd last bit.
; Rounding that to fewer than 23 bits equals rounding the double once.
define internal i32 @irc_round_to_odd(double %x) nounwind {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %bits = bitcast float %near to i32
  %inexact = fcmp one double %back, %x
  %long = bitcast double %back to i64
  %wide = bitcast double %x to i64
  %a = and i64 %long, 9223372036854775807
  %b = and i64 %wide, 9223372036854775807
  %above = icmp ugt i64 %a, %b
  %step = zext i1 %above to i32
  %below = sub i32 %bits, %step
  %odd = or i32 %below, 1
  %result = select i1 %inexact, i32 %odd, i32 %bits
  ret i32 %result
}

define internal i16 @irc_bits_to_bf16(i32 %bits) nounwind {
  %magnitude = and i32 %bits, 2147483647
  %nan = icmp ugt i32 %magnitude, 2139095040
  %high = lshr i32 %bits, 16
  %quiet = or i32 %high, 64
  %even = and i32 %high, 1
  %half = add i32 %even, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %wide = select i1 %nan, i32 %quiet, i32 %rounded
  %result = trunc i32 %wide to i16
  ret i16 %result
}

define internal i16 @irc_bits_to_f16(i32 %bits) nounwind {
  %magnitude = and i32 %bits, 2147483647
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  ; A quiet NaN.
  %nan = icmp ugt i32 %magnitude, 2139095040
  %payload = lshr i32 %magnitude, 13
  %short = and i32 %payload, 1023
  %quiet = or i32 %short, 32256
  ; At least 2^16: infinity.
  %large = icmp uge i32 %magnitude, 1199570944
  ; Below 2^-14: the sum with 1/2 is rounded to multiples of 2^-24.
  %small = icmp ult i32 %magnitude, 947912704
  %float = bitcast i32 %magnitude to float
  %shifted = fadd float %float, 5.000000e-01
  %aligned = bitcast float %shifted to i32
  %denormal = sub i32 %aligned, 1056964608
  ; Otherwise the exponent decreases by 112, and the last thirteen bits are rounded.
  %even = and i32 %payload, 1
  %moved = sub i32 %magnitude, 939520001
  %sum = add i32 %moved, %even
  %normal = lshr i32 %sum, 13
  %a = select i1 %small, i32 %denormal, i32 %normal
  %b = select i1 %large, i32 31744, i32 %a
  %c = select i1 %nan, i32 %quiet, i32 %b
  %d = or i32 %c, %sign
  %result = trunc i32 %d to i16
  ret i16 %result
}

define weak hidden bfloat @__truncsfbf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %short = call i16 @irc_bits_to_bf16(i32 %bits)
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

define weak hidden bfloat @__truncdfbf2(double %x) nounwind {
  %bits = call i32 @irc_round_to_odd(double %x)
  %short = call i16 @irc_bits_to_bf16(i32 %bits)
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

define weak hidden half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %short = call i16 @irc_bits_to_f16(i32 %bits)
  %result = bitcast i16 %short to half
  ret half %result
}

define weak hidden half @__truncdfhf2(double %x) nounwind {
  %bits = call i32 @irc_round_to_odd(double %x)
  %short = call i16 @irc_bits_to_f16(i32 %bits)
  %result = bitcast i16 %short to half
  ret half %result
}

define weak hidden float @__extendhfsf2(half %x) nounwind {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %high = and i32 %bits, 32768
  %sign = shl i32 %high, 16
  %magnitude = and i32 %bits, 32767
  %long = shl i32 %magnitude, 13
  ; The exponent increases by 112, so the value is multiplied by 2^112.
  %small = bitcast i32 %long to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %special = icmp uge i32 %magnitude, 31744
  %open = or i32 %long, 2139095040
  %nan = icmp ugt i32 %magnitude, 31744
  %quiet = select i1 %nan, i32 4194304, i32 0
  %infinite = or i32 %open, %quiet
  %unsigned = select i1 %special, i32 %infinite, i32 %finite
  %all = or i32 %unsigned, %sign
  %result = bitcast i32 %all to float
  ret float %result
}
