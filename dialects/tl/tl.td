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
    are builtin ranked tensors. Binary ops are on one element type and broadcast as NumPy does: shapes
    are right-aligned and a dimension of 1 stretches. `f16` and `bf16` arithmetic is done in `f32` and rounded once to the
    result type; `matmul` and the reductions accumulate in `f32`. Integers wrap; `i32` is signed and
    `ui32` unsigned. `si64` is a string: its handle in a table of distinct strings, so that equal strings have
    equal handles. `tl.strings` of the program lists the strings of its constants; those of inputs get further
    handles when the program runs.

    `sequential_sum`, `stepped_matmul` and `round_tf32` say the accumulation of other machines (see
    `ark-to-tl{accumulate=ark}`). They are ops of their own, so that no rule about sums and products
    applies to them, and each is a kernel that reads memory, so that what it adds up is rounded.

    The meaning of each op is its reference evaluator in the crate `irc-tl`.

    Passes leave for each other what they know of functions, in attributes that stay until code is generated.

    | attribute | on | value |
    |---|---|---|
    | `tl.kernel` | a kernel | `#tl.kernel` |
    | `tl.blocks` | a kernel that runs in blocks of items | `#tl.blocks` |
    | `tl.strides` | an argument or result of a kernel | element strides; row-major without |
    | `tl.overwrites` | a result of a kernel | a unit: its memory may hold values that the kernel reads |
    | `tl.graph` | a function at the tensor level | a unit: a program, or a function that one calls |
    | `tl.program` | a program | `#tl.program` |
    | `tl.strings` | a program | its strings by handle; bytes that are not UTF-8 are `\\xHH`, and a backslash is doubled |
    | `tl.name` | an argument or result of a program | its name |
    | `tl.preserved` | an argument of a program | a unit: the caller preserves it from one call to the next |
    | `tl.updates` | a result of a program | the name of an argument that it may be in the memory of: its elements with some replaced |
    | `tl.weight` | an argument | the number of the constant that it stands for |
    | `tl.value` | an argument | the elements of that constant |
    | `tl.constants` | a program whose memory is planned | the bytes of its constants, at the offsets in `#tl.program` |
    | `tl.description` | the program of an ARK plan for a GPU | the first line of its PTX |
    | `tl.accesses` | a kernel of a model for a GPU | the number of operands that it only reads, and the bytes of each operand |
    | `tl.workers` | a kernel of a model for a GPU | the number of blocks that have a part of its work, if it is known |
    | `tl.capability` | a module whose kernels are written for a GPU | its compute capability, such as 90 |
    | `tl.origin` | a launch or call; a kernel that only checks | the node that it computes, as text, where locations are omitted; what it requires |
    | `tl.ordered` | a `linalg.generic` | a unit: its reduction must not be reordered |
    | `tl.pads` | a `linalg.generic` | the offsets in its result of the tensor that it extracts from; all other elements are those of its operand |
    | `tl.quads` | a `linalg.generic` | a unit: its elements are four bytes of its operand each, the first in the lowest bits |
    | `tl.dots` | a `linalg.generic` | the number of the operand whose elements are four unsigned bytes each; it sums their products with the signed bytes of the other |
    | `tl.codes` | a `linalg.generic` | the bits of the integers that its floats are computed from, and the number of them that share a scale |
    | `tl.quantised` | a `linalg.generic` | the number of integers that share a scale, of rows of `i8` that its floats are computed from |
    | `tl.nonpositive` | an op of `math` | a unit: its operand is at most zero |
    | `tl.at_least_one` | an `arith.divf` | a unit: its divisor is at least 1 |
    | `tl.ignores_nan` | an `arith.maximumf` | a unit: NaN may be ignored |
  }];
  let useDefaultAttributePrinterParser = 1;
  let discardableAttrs = (ins
    "::irc::tl::KernelAttr":$kernel,
    "::irc::tl::BlocksAttr":$blocks,
    "::mlir::DenseI64ArrayAttr":$strides,
    "::mlir::UnitAttr":$overwrites,
    "::mlir::UnitAttr":$graph,
    "::irc::tl::ProgramAttr":$program,
    "::mlir::ArrayAttr":$strings,
    "::mlir::StringAttr":$name,
    "::mlir::UnitAttr":$preserved,
    "::mlir::StringAttr":$updates,
    "::mlir::IntegerAttr":$weight,
    "::mlir::ElementsAttr":$value,
    "::mlir::StringAttr":$origin,
    "::mlir::UnitAttr":$nonpositive,
    "::mlir::UnitAttr":$at_least_one,
    "::mlir::UnitAttr":$ignores_nan,
    "::mlir::UnitAttr":$ordered,
    "::mlir::DenseI64ArrayAttr":$pads,
    "::mlir::UnitAttr":$quads,
    "::mlir::IntegerAttr":$dots,
    "::mlir::DenseI64ArrayAttr":$codes,
    "::mlir::IntegerAttr":$quantised,
    "::mlir::ElementsAttr":$constants,
    "::mlir::StringAttr":$description,
    "::mlir::DenseI64ArrayAttr":$accesses,
    "::mlir::IntegerAttr":$workers,
    "::mlir::IntegerAttr":$capability
  );
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
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

def Tl_Kernel : AttrDef<Tl_Dialect, "Kernel"> {
  let mnemonic = "kernel";
  let summary = "what is known of a kernel from outside";
  let description = [{
    A kernel on tensors has a `kind`: that of its group, or `task`. `constants` are its arguments that are
    constants which nothing else reads, so that it may want them `packed`; those that are `small` have signed bytes from -64
    to 64; with `cached`, all constants of the program fit in a cache, where they are from run to run; with `keeps` it is given
    memory for what it keeps between calls; `entry` is the symbol of the entry point that it gets. The extent `rows`
    stands for a number of rows that is passed to it, from 0 to `rows`; so does the extent `columns` for a number of columns.

    A kernel on memory also has `symbols`, the sizes that it takes in the order of its parameters of type
    `index`; why it adds products in `scalar` loops, if it does; the bytes of its workspace; how it takes arguments `packed`, as an array of `#tl.packing` and `#tl.winograd`;
    and the bytes of what it keeps, with the arguments that this follows from. If its work is divided among threads, it
    has phases: `parts` is the maximum number of parts of each, `cycles` is how long each takes where that depends on
    `symbols`, and `part_bytes` is the memory that a part needs for
    itself; `@k_parallel` runs it on the threads of a pool, and `@k` on one.

    Choices of its schedule replace those of the cost model: the `algorithm` of a convolution (`direct`, `product` or
    `winograd`), and the rows and the depth of the tiles of a product.

    ```mlir
    func.func private @k(memref<8xf32>, index, memref<64xi8>) attributes {
      tl.kernel = #tl.kernel<kind = "loops", symbols = ["N"], workspace_bytes = 64>
    }
    ```
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$kind,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$constants,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$small,
                        OptionalParameter<"::mlir::UnitAttr">:$cached,
                        OptionalParameter<"::mlir::UnitAttr">:$keeps,
                        OptionalParameter<"::mlir::StringAttr">:$scalar,
                        OptionalParameter<"::mlir::StringAttr">:$entry,
                        OptionalParameter<"::std::optional<int64_t>">:$rows,
                        OptionalParameter<"::std::optional<int64_t>">:$columns,
                        OptionalParameter<"::mlir::ArrayAttr">:$symbols,
                        OptionalParameter<"::std::optional<int64_t>">:$workspace_bytes,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$parts,
                        OptionalParameter<"::mlir::ArrayAttr">:$cycles,
                        OptionalParameter<"::std::optional<int64_t>">:$part_bytes,
                        OptionalParameter<"::mlir::StringAttr">:$algorithm,
                        OptionalParameter<"::std::optional<int64_t>">:$tile_rows,
                        OptionalParameter<"::std::optional<int64_t>">:$tile_depth,
                        OptionalParameter<"::mlir::ArrayAttr">:$packed,
                        OptionalParameter<"::std::optional<int64_t>">:$kept_bytes,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$kept_arguments);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

def Tl_Packing : AttrDef<Tl_Dialect, "Packing"> {
  let mnemonic = "packing";
  let summary = "the order in which a kernel reads the matrix in one of its arguments";
  let description = [{
    Blocks of `depth` rows, each of panels of `panel` columns, each of rows without gaps, in vectors of
    `lanes` elements. The element in row `k` and column `n` lies, in elements, at
    `offset + k * along + n * across` of the constant.

    With `quads`, an element is `bytes` bytes of the constant, followed by zeros: byte `j` of row `k` is in row
    `k / quads * bytes * quads + j * quads + k % quads`. If they are `extended`, by `"zero"` or `"sign"`, bytes become
    integers of 16 bits, and each vector is two: bytes 0 and 2 of its elements, then bytes 1 and 3.
  }];
  let parameters = (ins "int64_t":$argument, "int64_t":$offset, "int64_t":$along, "int64_t":$across,
                        "int64_t":$rows, "int64_t":$columns, "int64_t":$depth, "int64_t":$panel,
                        "int64_t":$lanes, OptionalParameter<"::std::optional<int64_t>">:$quads,
                        OptionalParameter<"::std::optional<int64_t>">:$bytes,
                        OptionalParameter<"::mlir::StringAttr">:$extended);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tl_Winograd : AttrDef<Tl_Dialect, "Winograd"> {
  let mnemonic = "winograd";
  let summary = "filters of 3 by 3 as a kernel multiplies them with transformed tiles, in one of its arguments";
  let description = [{
    Filters `[filters, channels, 3, 3]`, transformed by Winograd's algorithm for tiles of `tile` (4 or 2) rows and columns
    of the result to `tile + 2` by `tile + 2` elements: panels of `panel` filters, each of the elements, each of
    `channels` rows of a panel's filters. The last panel is padded with zeros. With `small_panel`, the same
    filters follow, transformed for tiles of 2, in panels of that many. Transformed filters are `f32`, whatever the
    type of the filters.
  }];
  let parameters = (ins "int64_t":$argument, "int64_t":$filters, "int64_t":$channels, "int64_t":$panel,
                        "int64_t":$tile, OptionalParameter<"::std::optional<int64_t>">:$small_panel);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tl_Blocks : AttrDef<Tl_Dialect, "Blocks"> {
  let mnemonic = "blocks";
  let summary = "how a kernel of a grid of items runs in blocks of items";
  let description = [{
    `callee` is the kernel of a block of `items` items along the last dimension of a grid; `counts` are the sizes of the
    grid; `bytes` are the bytes from one item to the next, as sizes, per dimension of the grid, and operand and result, 0
    for what items share. A callee with `rows` takes the number of items as an argument, and is called for up to `items` of them;
    otherwise the last block ends with the last item. `cycles` are those of a block, if blocks are divided among threads,
    or 0. With `columns`, a block is computed some of its columns at a time.
  }];
  let parameters = (ins "::mlir::StringAttr":$callee, "int64_t":$items, "::mlir::ArrayAttr":$counts,
                        "::mlir::ArrayAttr":$bytes, "int64_t":$cycles,
                        OptionalParameter<"::mlir::Attribute">:$columns);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tl_Columns : AttrDef<Tl_Dialect, "Columns"> {
  let mnemonic = "columns";
  let summary = "how a block of attention is computed some columns of its scores at a time";
  let description = [{
    The kernel of a block takes up to `items` columns, and, after its operands, the highest score of each row so far, the
    sum of the powers of the scores, and the sums of values that these weigh. `callee` is the kernel of all columns but
    the last ones, and returns these three; `count` is the number of columns. `bytes` are those from one column to the
    next, per operand, 0 for what columns share; operands whose rows are a symbolic number of bytes apart are `copied`
    first: the sizes of these distances, and 0 for other operands. With `causal`, only columns up to the number of a row
    plus this size are computed; the kernels take two more operands: the numbers of columns, and of those of each row.
  }];
  let parameters = (ins "::mlir::StringAttr":$callee, "int64_t":$items, "::mlir::StringAttr":$count,
                        "::mlir::DenseI64ArrayAttr":$bytes, "::mlir::ArrayAttr":$copied,
                        OptionalParameter<"::mlir::StringAttr">:$causal);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Tl_Program : AttrDef<Tl_Dialect, "Program"> {
  let mnemonic = "program";
  let summary = "how a program is linked, and its interface";
  let description = [{
    `suffix` stands behind the names of its entry point and metadata. A `shared` program is a part of
    others: equal ones are linked as one. `weight_offsets` is for each argument its offset in the constants
    of the library, or -1. `metadata` is the interface of a program whose memory is planned, as JSON.
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$suffix,
                        OptionalParameter<"::mlir::UnitAttr">:$shared,
                        OptionalParameter<"::mlir::DenseI64ArrayAttr">:$weight_offsets,
                        OptionalParameter<"::mlir::StringAttr">:$metadata);
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
}

class Tl_Op<string mnemonic, list<Trait> traits = []>
    : Op<Tl_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

class Tl_Pure<string mnemonic, list<Trait> traits = []>
    : Tl_Op<mnemonic, !listconcat([Pure], traits)>;

include "tl/ops.td"

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

def Tl_ScanOp : Tl_Pure<"scan"> {
  let summary = "cumulative sums, products or extremes along an axis";
  let description = [{
    Each element is combined by `combine` (`sum`, `product`, `max` or `min`) with those before it along `axis`, one by
    one, or with those after it where `reverse`. Where `exclusive`, the element itself is left out. Floats of fewer than
    32 bits are combined in `f32`.
  }];
  let arguments = (ins AnyRankedTensor:$operand, I64Attr:$axis, StrAttr:$combine, BoolAttr:$reverse,
                       BoolAttr:$exclusive);
  let results = (outs AnyRankedTensor:$scanned);
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

def Tl_TreeEnsembleOp : Tl_Pure<"tree_ensemble"> {
  let summary = "scores of rows of features by an ensemble of decision trees";
  let description = [{
    A node is consecutive elements of `nodes`: the bits of its threshold (low half first if `x` is `f64`), a
    feature, and the positions in `nodes` of its first and second child. From each of the `roots`, a row moves
    to the second child where its feature and the threshold satisfy `comparison` (`gt` or `le`, which do
    not hold for NaN), otherwise to the first. A node that is its own first child is a leaf: its threshold is
    NaN, and its second number is the number of the leaf.

    The weights of leaves are combined by `combine` (`sum`, `min` or `max`) in the order of `roots`. Without
    `starts`, every leaf has one weight per target; otherwise leaf i has those from `starts[i]` to
    `starts[i + 1]`, each of a target in `targets`.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$nodes, AnyRankedTensor:$roots,
                       AnyRankedTensor:$starts, AnyRankedTensor:$targets, AnyRankedTensor:$weights,
                       StrAttr:$combine, StrAttr:$comparison);
  let results = (outs AnyRankedTensor:$scores);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

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
    Values in, values out. `callee` is a function with `tl.kernel`, whose own signature moves from
    tensors to memory while it is lowered; the launch stays on values until memory is planned. `sizes` are
    what the symbols of the kernel stand for.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<StrArrayAttr>:$sizes);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def Tl_ConstantOp : Tl_Pure<"constant"> {
  let summary = "a tensor of known elements";
  let description = [{
    `bytes` are the elements in row-major order, little-endian. Large constants are arguments of
    `@main` with the attribute `tl.weight` instead, so that they stay out of the IR.
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

def Tl_HostOp : Tl_Pure<"host"> {
  let summary = "a function that the host of the program applies";
  let description = [{
    What programs contain no code for: functions of the characters of strings, and decoders of images. The
    function is named by `function`, and `arguments` are what it needs besides: the delimiter of a string to
    split, a regular expression, a type of numbers, a pixel format. Operands are of one shape. A function of
    strings is applied to each element; the result of another has the shape that it or the program states. The
    crate `irc-host` defines the functions; compiled programs call them through their [host](../c-abi.md#strings-and-images).

    ```mlir
    %y = tl.host "matches" (%x) {arguments = ["[a-z]+"]} : (tensor<4xsi64>) -> tensor<4xi1>
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<StrArrayAttr>:$arguments);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$function `` ` ` `(` $inputs `)` attr-dict `:` functional-type($inputs, $result)";
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
