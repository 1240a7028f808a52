// Written by `cargo xtask docs` from the rows of the crate `irc-tl`; edit those instead.

def Tl_NegOp : Tl_Pure<"neg", [SameOperandsAndResultType]> {
  let summary = "-x";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AbsOp : Tl_Pure<"abs", [SameOperandsAndResultType]> {
  let summary = "|x|";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_SignOp : Tl_Pure<"sign", [SameOperandsAndResultType]> {
  let summary = "-1, 0 or 1; NaN of NaN";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_ExpOp : Tl_Pure<"exp", [SameOperandsAndResultType]> {
  let summary = "e to the power of each element";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_LogOp : Tl_Pure<"log", [SameOperandsAndResultType]> {
  let summary = "natural logarithm";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_Log1pOp : Tl_Pure<"log1p", [SameOperandsAndResultType]> {
  let summary = "natural logarithm of 1 + x";
  let description = [{
    Keeps its digits where `x` is near 0: `log(1 + exp(x))` (softplus) is `log1p(exp(x))`.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_SqrtOp : Tl_Pure<"sqrt", [SameOperandsAndResultType]> {
  let summary = "square root";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_RsqrtOp : Tl_Pure<"rsqrt", [SameOperandsAndResultType]> {
  let summary = "1 / sqrt(x)";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_SinOp : Tl_Pure<"sin", [SameOperandsAndResultType]> {
  let summary = "sine, of radians";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_CosOp : Tl_Pure<"cos", [SameOperandsAndResultType]> {
  let summary = "cosine, of radians";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_TanOp : Tl_Pure<"tan", [SameOperandsAndResultType]> {
  let summary = "tangent, of radians";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AsinOp : Tl_Pure<"asin", [SameOperandsAndResultType]> {
  let summary = "inverse sine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AcosOp : Tl_Pure<"acos", [SameOperandsAndResultType]> {
  let summary = "inverse cosine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AtanOp : Tl_Pure<"atan", [SameOperandsAndResultType]> {
  let summary = "inverse tangent";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_SinhOp : Tl_Pure<"sinh", [SameOperandsAndResultType]> {
  let summary = "hyperbolic sine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_CoshOp : Tl_Pure<"cosh", [SameOperandsAndResultType]> {
  let summary = "hyperbolic cosine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_TanhOp : Tl_Pure<"tanh", [SameOperandsAndResultType]> {
  let summary = "hyperbolic tangent";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AsinhOp : Tl_Pure<"asinh", [SameOperandsAndResultType]> {
  let summary = "inverse hyperbolic sine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AcoshOp : Tl_Pure<"acosh", [SameOperandsAndResultType]> {
  let summary = "inverse hyperbolic cosine";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AtanhOp : Tl_Pure<"atanh", [SameOperandsAndResultType]> {
  let summary = "inverse hyperbolic tangent";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_ErfOp : Tl_Pure<"erf", [SameOperandsAndResultType]> {
  let summary = "error function";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_FloorOp : Tl_Pure<"floor", [SameOperandsAndResultType]> {
  let summary = "largest integer that is not larger";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_CeilOp : Tl_Pure<"ceil", [SameOperandsAndResultType]> {
  let summary = "smallest integer that is not smaller";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_RoundOp : Tl_Pure<"round", [SameOperandsAndResultType]> {
  let summary = "nearest integer, ties to the even one";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_NotOp : Tl_Pure<"not", [SameOperandsAndResultType]> {
  let summary = "every bit inverted; the opposite of a bool";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_ReluOp : Tl_Pure<"relu", [SameOperandsAndResultType]> {
  let summary = "max(x, 0)";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_GeluOp : Tl_Pure<"gelu", [SameOperandsAndResultType]> {
  let summary = "GELU by its tanh approximation";
  let description = [{
    `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`: Hendrycks and Gimpel, "Gaussian error linear
    units" (2016).
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_SigmoidOp : Tl_Pure<"sigmoid", [SameOperandsAndResultType]> {
  let summary = "1 / (1 + exp(-x))";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_RoundTf32Op : Tl_Pure<"round_tf32", [SameOperandsAndResultType]> {
  let summary = "the nearest number of 10 bits of mantissa, ties away from zero";
  let description = [{
    As `cvt.rna.tf32.f32` of PTX.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Tl_AddOp : Tl_Pure<"add"> {
  let summary = "sum";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_SubOp : Tl_Pure<"sub"> {
  let summary = "difference";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_MulOp : Tl_Pure<"mul"> {
  let summary = "product";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_DivOp : Tl_Pure<"div"> {
  let summary = "quotient";
  let description = [{
    Integers truncate toward zero, and give 0 for a divisor of 0.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_RemOp : Tl_Pure<"rem"> {
  let summary = "what truncating division leaves, of the sign of the left";
  let description = [{
    `x - y * trunc(x / y)`, as `fmod` of C; integers give 0 for a divisor of 0.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_ModOp : Tl_Pure<"mod"> {
  let summary = "what flooring division leaves, of the sign of the right";
  let description = [{
    `x - y * floor(x / y)`; integers give 0 for a divisor of 0.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_MaxOp : Tl_Pure<"max"> {
  let summary = "larger of two; NaN if either is";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_MinOp : Tl_Pure<"min"> {
  let summary = "smaller of two; NaN if either is";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_PowOp : Tl_Pure<"pow"> {
  let summary = "left to the power of right";
  let description = [{
    Of integers, 0 for a negative exponent, but where the left is 1 or -1.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_AndOp : Tl_Pure<"and"> {
  let summary = "bitwise and";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_OrOp : Tl_Pure<"or"> {
  let summary = "bitwise or";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_XorOp : Tl_Pure<"xor"> {
  let summary = "bitwise exclusive or";
  let description = [{
    Operands broadcast to the result's shape as in NumPy; element types are equal.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_ShlOp : Tl_Pure<"shl"> {
  let summary = "left times 2 to the power of right";
  let description = [{
    0 from the type's width on.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_ShrOp : Tl_Pure<"shr"> {
  let summary = "left divided by 2 to the power of right, rounded down";
  let description = [{
    Of the sign of the left for signed types.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_EqOp : Tl_Pure<"eq"> {
  let summary = "whether two are equal";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_NeOp : Tl_Pure<"ne"> {
  let summary = "whether two differ";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_LtOp : Tl_Pure<"lt"> {
  let summary = "whether the left is less";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_LeOp : Tl_Pure<"le"> {
  let summary = "whether the left is less or equal";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_GtOp : Tl_Pure<"gt"> {
  let summary = "whether the left is greater";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_GeOp : Tl_Pure<"ge"> {
  let summary = "whether the left is greater or equal";
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_SelectOp : Tl_Pure<"select"> {
  let summary = "`yes` where the condition holds, else `no`";
  let description = [{
    The condition is `i1`. Operands broadcast to the result's shape as in NumPy.
  }];
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$yes, AnyRankedTensor:$no);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$condition `,` $yes `,` $no attr-dict `:` functional-type(operands, $result)";
}

def Tl_CastOp : Tl_Pure<"cast"> {
  let summary = "conversion to another element type";
  let description = [{
    `rounding` says what a float becomes as an integer: `toward_zero` or `nearest_even`; out of
    range saturates and NaN is 0. To a float it is always nearest-even.
  }];
  let arguments = (ins AnyRankedTensor:$operand, StrAttr:$rounding);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_FillOp : Tl_Pure<"fill"> {
  let summary = "a constant tensor of one value";
  let arguments = (ins F64Attr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tl_BroadcastOp : Tl_Pure<"broadcast"> {
  let summary = "explicit NumPy broadcast";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceSumOp : Tl_Pure<"reduce_sum"> {
  let summary = "sum over axes";
  let description = [{
    `axes` are reduced; they stay as extent 1 when `keep_dims` is true.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceMaxOp : Tl_Pure<"reduce_max"> {
  let summary = "maximum over axes";
  let description = [{
    `axes` are reduced; they stay as extent 1 when `keep_dims` is true.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceMinOp : Tl_Pure<"reduce_min"> {
  let summary = "minimum over axes";
  let description = [{
    `axes` are reduced; they stay as extent 1 when `keep_dims` is true.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceMeanOp : Tl_Pure<"reduce_mean"> {
  let summary = "mean over axes";
  let description = [{
    `axes` are reduced; they stay as extent 1 when `keep_dims` is true.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceProductOp : Tl_Pure<"reduce_product"> {
  let summary = "product over axes";
  let description = [{
    `axes` are reduced; they stay as extent 1 when `keep_dims` is true.
  }];
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_SequentialSumOp : Tl_Pure<"sequential_sum"> {
  let summary = "sum along an axis, in order, each addition rounded";
  let description = [{
    Starts from zero and goes along `axis`, which the result lacks. Each addition is rounded to the
    element type.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_SteppedMatmulOp : Tl_Pure<"stepped_matmul"> {
  let summary = "matrix product of f16 with an f16 accumulator, rounded every 16 terms";
  let description = [{
    The products of 16 terms are summed in `f32`, from zero and in order; that sum and the
    accumulator are added in `f32` and rounded to `f16`. Batch dimensions broadcast as in `matmul`.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_MatmulOp : Tl_Pure<"matmul"> {
  let summary = "matrix product of the last two dimensions, `i32` of `u8` and `i8`, `f32` of it and `f16` or `bf16`; leading dimensions broadcast";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs, DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs, DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_BlockScaledMatmulOp : Tl_Pure<"block_scaled_matmul"> {
  let summary = "matrix product of `f32` or scaled `i8` with a matrix of integers of 2, 4 or 8 bits, scaled in blocks along the depth";
  let description = [{
    Operands `lhs[..., m, k]`, `codes[n, bytes]`, `scales[n, blocks]` and, if they differ from
    `2^(bits - 1)`, `zeros[n, blocks]`. The right matrix is `[k, n]`: its element `(i, j)` is
    `(code(j, i) - zeros[j, i / block]) * scales[j, i / block]`, and `code(j, i)` consists of the `bits` bits (2, 4 or 8) from
    bit `i * bits` on of row `j` of `codes`, whose type is `i8`; bit 0 is the lowest of the first byte. All others are
    `f32`. There are as many blocks as `k` needs, each of `block` codes in whole groups of 32 bits.

    A left operand of `i8` is quantised: a last operand `lhs_scales[..., m, blocks]` has the scale of each block of each row.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$factors, I64Attr:$bits, I64Attr:$block);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$factors attr-dict `:` functional-type(operands, $result)";
}

def Tl_TransposeOp : Tl_Pure<"transpose"> {
  let summary = "dimension i of the result is permutation[i] of the operand";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReshapeOp : Tl_Pure<"reshape"> {
  let summary = "the same elements in row-major order, another shape";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_SliceOp : Tl_Pure<"slice"> {
  let summary = "the box at `offsets` of the result's shape";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_UpdateOp : Tl_Pure<"update"> {
  let summary = "`dest` with the box at `offsets` replaced by `source`";
  let arguments = (ins AnyRankedTensor:$dest, AnyRankedTensor:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `into` $dest attr-dict `:` functional-type(operands, $result)";
}

def Tl_GatherOp : Tl_Pure<"gather"> {
  let summary = "rows of a 2-D table by integer index; negative indices count from the end";
  let arguments = (ins AnyRankedTensor:$table, AnyRankedTensor:$index);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$table `,` $index attr-dict `:` functional-type(operands, $result)";
}

def Tl_RopeOp : Tl_Pure<"rope"> {
  let summary = "rotary embedding of adjacent pairs by interleaved (cos, sin)";
  let description = [{
    `rhs` holds `(cos, sin)` pairs in its last dimension and broadcasts to `lhs`:
    `out[2i] = x[2i] c - x[2i+1] s`, `out[2i+1] = x[2i] s + x[2i+1] c`; floats.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_BitcastOp : Tl_Pure<"bitcast"> {
  let summary = "the same bytes as another element type";
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_ConvOp : Tl_Pure<"conv"> {
  let summary = "correlation of `x[batch, channels, ...]` with filters `w[filters, channels / groups, ...]`";
  let description = [{
    `strides` and `dilations` have an entry per spatial dimension, `pads` two: elements before and after
    `x`, of either sign, which are `outside`, an integer, by default 0. The channels and filters are in `groups` independent parts. The result of `u8` and `i8` is `i32`.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads, I64Attr:$groups, OptionalAttr<I64Attr>:$outside);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `,` $w attr-dict `:` functional-type(operands, $result)";
}

def Tl_ComputeOp : Tl_Pure<"compute"> {
  let summary = "loops around an expression: everything without an op of its own";
  let description = [{
    `result[i0, i1, ...]` is the value of `body`, or with `combine` (`sum`, `product`, `max` or
    `min`) what joins its values over more loops, of the extents `over`. The result's type gives the
    extents of the first loops. Sizes and the body are text, with the grammar of the module `text`
    of the crate `irc-tl`; its `Compute` is the meaning.

    ```mlir
    %y = tl.compute(%x) "select(i0 >= 1 and i0 < 4, %0[i0 - 1], -1.0 : f32)"
        : (tensor<3xf32>) -> tensor<5xf32>
    %z = tl.compute(%x) "%0[i0]" combine "max" over ["3"] : (tensor<3xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$body, OptionalAttr<StrAttr>:$combine, OptionalAttr<StrArrayAttr>:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "`(` $inputs `)` $body (`combine` $combine^)? (`over` $over^)? attr-dict `:` functional-type(operands, $result)";
}
