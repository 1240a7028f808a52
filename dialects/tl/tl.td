// The tensor level: what is computed, on values, with no memory.
#ifndef IRC_TL
#define IRC_TL

include "Base.td"

def Tl_Dialect : Dialect {
  let name = "tl";
  let cppNamespace = "::irc::tl";
  let summary = "The tensor level: what is computed, on values, with no memory";
  let description = [{
    Every source format lowers to `tl`; fusion, planning and code generation start from it. Values
    are builtin ranked tensors. Binary ops broadcast as NumPy does: shapes are right-aligned and a
    dimension of 1 stretches. `f16` and `bf16` arithmetic is done in `f32` and rounded once to the
    result type; `matmul` and the reductions accumulate in `f32`. Integers wrap; `i32` is signed and
    `ui32` unsigned.

    `sequential_sum`, `stepped_matmul` and `round_tf32` say the accumulation of other machines (see
    `ark-to-tl{accumulate=ark}`). They are ops of their own, so that no rule about sums and products
    applies to them, and each is a kernel that reads memory, so that what it adds up is rounded.

    The meaning of each op is its reference evaluator in the crate `irc-tl`.
  }];
  let useDefaultAttributePrinterParser = 1;
}

def Tl_Dims : AttrDef<Tl_Dialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "the extents of a tensor that depend on symbols";
  let description = [{
    The encoding of a tensor type whose sizes are not all known: an extent per dimension, as text,
    with the grammar of the module `text` of the crate `irc-tl`.

    ```mlir
    tensor<?x4xf32, #tl.dims<"N", "4">>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$sizes);
  let assemblyFormat = "`<` $sizes `>`";
}

class Tl_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tl_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

class Tl_Pure<string mnemonic, list<Trait> traits = []>
    : Tl_Op<mnemonic, !listconcat([Pure], traits)>;

class Tl_Unary<string mnemonic, string what> : Tl_Pure<mnemonic, [SameOperandsAndResultType]> {
  let summary = what;
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

class Tl_Binary<string mnemonic, string what, list<Trait> traits = []> : Tl_Pure<mnemonic, traits> {
  let summary = what;
  let description = "Operands broadcast to the result's shape as in NumPy; element types are equal.";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

class Tl_Reduce<string mnemonic, string what> : Tl_Pure<mnemonic> {
  let summary = what;
  let description = "`axes` are reduced; they stay as extent 1 when `keep_dims` is true.";
  let arguments = (ins AnyRankedTensor:$operand, DenseI64ArrayAttr:$axes, BoolAttr:$keep_dims);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

class Tl_Shaped<string mnemonic, string what, dag attributes> : Tl_Pure<mnemonic> {
  let summary = what;
  let arguments = !con((ins AnyRankedTensor:$operand), attributes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, $result)";
}

def Tl_NegOp : Tl_Unary<"neg", "-x">;
def Tl_AbsOp : Tl_Unary<"abs", "|x|">;
def Tl_SignOp : Tl_Unary<"sign", "-1, 0 or 1; NaN of NaN">;
def Tl_ExpOp : Tl_Unary<"exp", "e to the power of each element">;
def Tl_LogOp : Tl_Unary<"log", "natural logarithm">;
def Tl_SqrtOp : Tl_Unary<"sqrt", "square root">;
def Tl_RsqrtOp : Tl_Unary<"rsqrt", "1 / sqrt(x)">;
def Tl_SinOp : Tl_Unary<"sin", "sine, of radians">;
def Tl_CosOp : Tl_Unary<"cos", "cosine, of radians">;
def Tl_TanOp : Tl_Unary<"tan", "tangent, of radians">;
def Tl_AsinOp : Tl_Unary<"asin", "inverse sine">;
def Tl_AcosOp : Tl_Unary<"acos", "inverse cosine">;
def Tl_AtanOp : Tl_Unary<"atan", "inverse tangent">;
def Tl_SinhOp : Tl_Unary<"sinh", "hyperbolic sine">;
def Tl_CoshOp : Tl_Unary<"cosh", "hyperbolic cosine">;
def Tl_TanhOp : Tl_Unary<"tanh", "hyperbolic tangent">;
def Tl_AsinhOp : Tl_Unary<"asinh", "inverse hyperbolic sine">;
def Tl_AcoshOp : Tl_Unary<"acosh", "inverse hyperbolic cosine">;
def Tl_AtanhOp : Tl_Unary<"atanh", "inverse hyperbolic tangent">;
def Tl_ErfOp : Tl_Unary<"erf", "error function">;
def Tl_FloorOp : Tl_Unary<"floor", "largest integer that is not larger">;
def Tl_CeilOp : Tl_Unary<"ceil", "smallest integer that is not smaller">;
def Tl_RoundOp : Tl_Unary<"round", "nearest integer, ties to the even one">;
def Tl_NotOp : Tl_Unary<"not", "every bit inverted; the opposite of a bool">;
def Tl_ReluOp : Tl_Unary<"relu", "max(x, 0)">;
def Tl_GeluOp : Tl_Unary<"gelu", "GELU by its tanh approximation">;
def Tl_SigmoidOp : Tl_Unary<"sigmoid", "1 / (1 + exp(-x))">;
def Tl_RoundTf32Op : Tl_Unary<"round_tf32", "the nearest number of 10 bits of mantissa, ties away from zero">;

def Tl_AddOp : Tl_Binary<"add", "sum">;
def Tl_SubOp : Tl_Binary<"sub", "difference">;
def Tl_MulOp : Tl_Binary<"mul", "product">;
def Tl_DivOp : Tl_Binary<"div", "quotient">;
def Tl_RemOp : Tl_Binary<"rem", "what truncating division leaves, of the sign of the left">;
def Tl_ModOp : Tl_Binary<"mod", "what flooring division leaves, of the sign of the right">;
def Tl_MaxOp : Tl_Binary<"max", "larger of two; NaN if either is">;
def Tl_MinOp : Tl_Binary<"min", "smaller of two; NaN if either is">;
def Tl_PowOp : Tl_Binary<"pow", "left to the power of right">;
def Tl_AndOp : Tl_Binary<"and", "bitwise and">;
def Tl_OrOp : Tl_Binary<"or", "bitwise or">;
def Tl_XorOp : Tl_Binary<"xor", "bitwise exclusive or">;
def Tl_ShlOp : Tl_Binary<"shl", "left times 2 to the power of right">;
def Tl_ShrOp : Tl_Binary<"shr", "left divided by 2 to the power of right, rounded down">;

class Tl_Compare<string mnemonic, string what> : Tl_Binary<mnemonic, what> {
  let description = [{
    The result is `i1`. Operands broadcast as in NumPy; element types are equal. With NaN only `ne`
    holds.
  }];
}
def Tl_EqOp : Tl_Compare<"eq", "whether two are equal">;
def Tl_NeOp : Tl_Compare<"ne", "whether two differ">;
def Tl_LtOp : Tl_Compare<"lt", "whether the left is less">;
def Tl_LeOp : Tl_Compare<"le", "whether the left is less or equal">;
def Tl_GtOp : Tl_Compare<"gt", "whether the left is greater">;
def Tl_GeOp : Tl_Compare<"ge", "whether the left is greater or equal">;

def Tl_SelectOp : Tl_Pure<"select"> {
  let summary = "`yes` where the condition holds, else `no`";
  let description = "The condition is `i1`. Operands broadcast to the result's shape as in NumPy.";
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$yes, AnyRankedTensor:$no);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$condition `,` $yes `,` $no attr-dict `:` functional-type(operands, $result)";
}

def Tl_CastOp : Tl_Shaped<"cast", "conversion to another element type", (ins StrAttr:$rounding)> {
  let description = [{
    `rounding` says what a float becomes as an integer: `toward_zero` or `nearest_even`; out of
    range saturates and NaN is 0. To a float it is always nearest-even.
  }];
}
def Tl_BroadcastOp : Tl_Shaped<"broadcast", "explicit NumPy broadcast", (ins)>;
def Tl_ReshapeOp : Tl_Shaped<"reshape", "the same elements in row-major order, another shape", (ins)>;
def Tl_BitcastOp : Tl_Shaped<"bitcast", "the same bytes as another element type", (ins)>;
def Tl_TransposeOp : Tl_Shaped<"transpose", "dimension i of the result is permutation[i] of the operand",
                               (ins DenseI64ArrayAttr:$permutation)>;
def Tl_SliceOp : Tl_Shaped<"slice", "the box at `offsets` of the result's shape",
                           (ins DenseI64ArrayAttr:$offsets)>;

def Tl_FillOp : Tl_Pure<"fill"> {
  let summary = "a constant tensor of one value";
  let arguments = (ins F64Attr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tl_UpdateOp : Tl_Pure<"update"> {
  let summary = "`dest` with the box at `offsets` replaced by `source`";
  let arguments = (ins AnyRankedTensor:$dest, AnyRankedTensor:$source, DenseI64ArrayAttr:$offsets);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `into` $dest attr-dict `:` functional-type(operands, $result)";
}

def Tl_ReduceSumOp : Tl_Reduce<"reduce_sum", "sum over axes">;
def Tl_ReduceMaxOp : Tl_Reduce<"reduce_max", "maximum over axes">;
def Tl_ReduceMinOp : Tl_Reduce<"reduce_min", "minimum over axes">;
def Tl_ReduceMeanOp : Tl_Reduce<"reduce_mean", "mean over axes">;
def Tl_ReduceProductOp : Tl_Reduce<"reduce_product", "product over axes">;

def Tl_MatmulOp : Tl_Pure<"matmul"> {
  let summary = "matrix product of the last two dimensions; leading dimensions broadcast";
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs,
                       DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, $result)";
}

def Tl_ConvOp : Tl_Pure<"conv"> {
  let summary = "correlation of `x[batch, channels, ...]` with filters `w[filters, channels / groups, ...]`";
  let description = [{
    `strides` and `dilations` have an entry per spatial dimension, `pads` two: zeros before and after
    `x`, of either sign. The channels and filters are in `groups` independent parts.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$w, DenseI64ArrayAttr:$strides,
                       DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$pads, I64Attr:$groups);
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
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$body,
                       OptionalAttr<StrAttr>:$combine, OptionalAttr<StrArrayAttr>:$over);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    `(` $inputs `)` $body (`combine` $combine^)? (`over` $over^)? attr-dict
    `:` functional-type(operands, $result)
  }];
}

def Tl_TopKOp : Tl_Pure<"top_k"> {
  let summary = "the k largest or smallest elements along an axis, and their positions";
  let description = [{
    Sorted, the most extreme first; of equal elements the one at the lower position comes first, and
    NaN is larger than every number. Positions are `i64`. The results' extent along `axis` is k.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis, BoolAttr:$largest);
  let results = (outs AnyRankedTensor:$values, AnyRankedTensor:$positions);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, results)";
}

def Tl_NonZeroOp : Tl_Pure<"non_zero"> {
  let summary = "the indices of elements that are not zero, and their number";
  let description = [{
    `indices` is `[rank, elements]` of `i64`, in row-major order of the elements; the columns from
    the number on are 0.
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$indices, AnyRankedTensor:$number);
  let assemblyFormat = "$operand attr-dict `:` functional-type(operands, results)";
}

def Tl_NonMaxSuppressionOp : Tl_Pure<"non_max_suppression"> {
  let summary = "boxes of high score that do not overlap much, and their number";
  let description = [{
    Operands: `boxes[batch, box, 4]`, `scores[batch, class, box]`, and as scalars the most boxes per
    class, the most overlap (intersection over union) and the least score. `kept` holds rows of batch,
    class and box as `i64`; the rows from the number on are 0. Boxes are `x, y` of the centre, width and
    height where `by_center`, else `y, x` of two opposite corners.
  }];
  let arguments = (ins AnyRankedTensor:$boxes, AnyRankedTensor:$scores, AnyRankedTensor:$most,
                       AnyRankedTensor:$overlap, AnyRankedTensor:$least, BoolAttr:$by_center);
  let results = (outs AnyRankedTensor:$kept, AnyRankedTensor:$number);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def Tl_SequentialSumOp : Tl_Shaped<"sequential_sum", "sum along an axis, in order, each addition rounded",
                                   (ins I64Attr:$axis)> {
  let description = [{
    Starts from zero and goes along `axis`, which the result lacks. Each addition is rounded to the
    element type.
  }];
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

def Tl_GatherOp : Tl_Pure<"gather"> {
  let summary = "rows of a 2-D table by integer index; negative indices count from the end";
  let arguments = (ins AnyRankedTensor:$table, AnyRankedTensor:$index);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$table `,` $index attr-dict `:` functional-type(operands, $result)";
}

def Tl_RopeOp : Tl_Binary<"rope", "rotary embedding of adjacent pairs by interleaved (cos, sin)">;

def Tl_GroupOp : Tl_Op<"group", [IsolatedFromAbove, RecursiveMemoryEffects,
                                 SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "a fused group: one region, one kernel";
  let description = [{
    The region's arguments are the operands, in order; `tl.yield` returns the results. `kind` names
    what bounds the kernel: `elementwise`, `rows` (reductions along the last axis with their
    producers and consumers), `contraction` (a matmul with its epilogue), `reduction` (a reduction
    along other axes with its producers), `copy` (an update with its producer) or `loops` (ops that
    are written as scalar loops).

    ```mlir
    %y = tl.group "elementwise"(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>):
      %e = tl.exp %a : tensor<4xf32>
      tl.yield %e : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, StrAttr:$kind);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat =
      "$kind `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
}

def Tl_YieldOp : Tl_Pure<"yield", [Terminator]> {
  let summary = "the results of a fused group";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ /* yields nothing */ }]>];
}

def Tl_LaunchOp : Tl_Pure<"launch"> {
  let summary = "runs a kernel function";
  let description = [{
    Values in, values out. `callee` is a function with `irc.kernel`, whose own signature moves from
    tensors to memory while it is lowered; the launch stays on values until memory is planned.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Tl_ConstantOp : Tl_Pure<"constant"> {
  let summary = "a tensor of known elements";
  let description = [{
    `bytes` are the elements in row-major order, little-endian. Large constants are arguments of
    `@main` with the attribute `irc.weight` instead, so that they stay out of the IR.
  }];
  let arguments = (ins DenseI8ArrayAttr:$bytes);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Tl_SizeOp : Tl_Op<"size"> {
  let summary = "gives a symbol the value of an element of an integer tensor";
  let description = [{
    `index` is the element's position in row-major order. From here on sizes may depend on `symbol`.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$index, StrAttr:$symbol);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}

def Tl_CheckOp : Tl_Op<"check"> {
  let summary = "requires two sizes to relate";
  let description = [{
    `relation` is `equal`, `equal_or_one` (they are equal, or the left is 1) or `at_most`. Where it
    does not hold the program ends with the message and both sizes.
  }];
  let arguments = (ins StrAttr:$left, StrAttr:$relation, StrAttr:$right, StrAttr:$message);
  let assemblyFormat = "attr-dict";
}

def Tl_AfterOp : Tl_Op<"after"> {
  let summary = "a value, once others have been computed";
  let description = [{
    Orders what reads the result behind what makes `others`: for edges of control in the source. No
    kernel holds both.
  }];
  let arguments = (ins AnyRankedTensor:$operand, Variadic<AnyRankedTensor>:$others);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand `of` ` ` `(` $others `)` attr-dict `:` functional-type(operands, results)";
}

def Tl_IfOp : Tl_Op<"if"> {
  let summary = "one of two functions, by a condition";
  let description = [{
    Operands: an `i1` scalar, then the arguments of both functions. The results are those of the
    function that ran.

    ```mlir
    %y = tl.if (%condition, %x) {then = @main_then, otherwise = @main_else}
        : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, FlatSymbolRefAttr:$then,
                       FlatSymbolRefAttr:$otherwise);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Tl_CallOp : Tl_Op<"call"> {
  let summary = "runs a function";
  let description = [{
    The results are those of the function. Sizes of the types may be called otherwise in it, which is
    why this is not `func.call`.

    ```mlir
    %y = tl.call (%x, %w) {callee = @main_layer_0} : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, FlatSymbolRefAttr:$callee);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Tl_LoopOp : Tl_Op<"loop"> {
  let summary = "runs a function as often as its condition holds, up to a number of times";
  let description = [{
    Operands: the number of iterations, an `i64` scalar; an `i1` scalar that says whether to start;
    `carried` values; what the body captures. The body takes the iteration from 0, the carried values
    and the captures, and returns whether to go on, the carried values, and elements of sequences.
    Results: the carried values at last, then each sequence along a new first dimension.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, FlatSymbolRefAttr:$body,
                       I64Attr:$carried);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

#endif
