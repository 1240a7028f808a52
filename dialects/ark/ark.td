// An ARK model file as written: nodes, ops, tensors on buffers, tags.
#ifndef IRC_ARK
#define IRC_ARK

include "Base.td"

def Ark_Dialect : Dialect {
  let name = "ark";
  let cppNamespace = "::irc::ark";
  let useDefaultTypePrinterParser = 1;
  let summary = "An ARK model file as written: nodes, ops, tensors on buffers, tags";
  let description = [{
    Faithful to the file: importing and exporting give the same JSON. `ark.model` holds the buffers,
    the tensors (views on buffers) and one op per node, in file order, which is execution order. An
    op reads its `reads` and `writes` tensors and returns its result tensors, which name the regions
    of `writes` after the op has run, `on` their buffers. Ops touch memory, so upstream CSE and DCE
    leave them alone.
  }];
}

class Ark_Type<string name, string mnem> : TypeDef<Ark_Dialect, name> { let mnemonic = mnem; }

def Ark_Byte : Ark_Type<"Byte", "byte"> { let summary = "ARK's BYTE: eight uninterpreted bits"; }

def Ark_Buffer : Ark_Type<"Buffer", "buffer"> { let summary = "an exclusive range of memory"; }

def Ark_Tensor : Ark_Type<"Tensor", "tensor"> {
  let summary = "a box of elements within a buffer";
  let description = [{
    `strides` is the shape of the enclosing buffer view (not element strides): element `i` lies at
    `sum_k (offsets[k] + i[k]) * prod_{j>k} strides[j]` elements from the buffer's start.
  }];
  let parameters = (ins "::mlir::Type":$element, ArrayRefParameter<"int64_t">:$shape,
                        ArrayRefParameter<"int64_t">:$strides,
                        ArrayRefParameter<"int64_t">:$offsets,
                        ArrayRefParameter<"int64_t">:$padded);
  let assemblyFormat = [{
    `<` $element `,` `[` $shape `]` `,` `strides` `[` $strides `]` `,` `offsets` `[` $offsets `]`
    `,` `padded` `[` $padded `]` `>`
  }];
}

class Ark_Op<string mnemonic, list<Trait> traits = []>
    : Op<Ark_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

def Ark_ModelOp : Ark_Op<"model", [IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "one rank's model";
  let arguments = (ins I64Attr:$rank, I64Attr:$world_size);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Ark_BufferOp : Ark_Op<"buffer"> {
  let summary = "declares a buffer";
  let description = [{
    `rank` is the rank that allocates it; without it that is this rank (-1 in a file). `send_tags`
    and `recv_tags` are pairs, flattened: remote rank, tag; absent when there are none.
  }];
  let arguments = (ins I64Attr:$id, OptionalAttr<I64Attr>:$rank,
                       OptionalAttr<DenseI64ArrayAttr>:$send_tags,
                       OptionalAttr<DenseI64ArrayAttr>:$recv_tags);
  let results = (outs Ark_Buffer:$buffer);
  let assemblyFormat = "attr-dict `:` type($buffer)";
}

def Ark_TensorOp : Ark_Op<"tensor"> {
  let summary = "a view on a buffer that no op of the file produced";
  let arguments = (ins Ark_Buffer:$buffer, I64Attr:$id);
  let results = (outs Ark_Tensor:$tensor);
  let assemblyFormat = "$buffer attr-dict `:` type($tensor)";
}

// One op of a node. `node` is the node's Id; `op_name` the op's Name; `result_buffers` are the
// buffers of the results, which for communication ops can differ from those of the writes.
// `producers` and `consumers` are the node's edges, absent when there are none.
// `is_virtual` stands only where the file says other than what the kind implies; `extra_args` holds
// arguments the kind does not declare, each a dictionary of `kind` and `value`; `config` is a plan's.
class Ark_Node<string mnemonic, string what, dag args = (ins)>
    : Ark_Op<mnemonic, [AttrSizedOperandSegments]> {
  let summary = what;
  let arguments = !con((ins Variadic<Ark_Tensor>:$reads, Variadic<Ark_Tensor>:$writes,
                            Variadic<Ark_Buffer>:$result_buffers, I64Attr:$node, StrAttr:$op_name,
                            OptionalAttr<DenseI64ArrayAttr>:$producers,
                            OptionalAttr<DenseI64ArrayAttr>:$consumers,
                            DenseI64ArrayAttr:$result_ids, OptionalAttr<BoolAttr>:$is_virtual,
                            OptionalAttr<DictionaryAttr>:$extra_args,
                            OptionalAttr<DictionaryAttr>:$config),
                       args);
  let results = (outs Variadic<Ark_Tensor>:$results);
  let assemblyFormat = [{
    `(` $reads `)` `into` `(` $writes `)` `on` `(` $result_buffers `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

// One op for each row of the crate `irc-ark-format`.
include "ark/ops.td"

#endif
