// A graph or library of Common IR or ONNX as written.
#ifndef IRC_COMMON_IR
#define IRC_COMMON_IR

include "Base.td"

def CommonIr_Dialect : Dialect {
  let name = "common_ir";
  let cppNamespace = "::irc::common_ir";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let summary = "A graph or library of Common IR or ONNX as written";
  let description = [{
    Represents a file without loss: importing and exporting give the same module of the format.
    `common_ir.module` holds the declared operators, the functions and the graph; a library has no
    graph. A value is an SSA value with its name; nodes are in the order of the file, which
    may be any, and use SSA values of their graph or an enclosing one.

    An absent item of the file is an absent attribute. Lists whose order matters and whose
    names may repeat are arrays:

    * entries of keys and values: `[["key", "value"], ...]`;
    * values (inputs, outputs, types of intermediate values): the name, if it is the only entry,
      or a dictionary of `name`, `type`, `shape`, `denotation`, `doc`, `metadata`. The default of
      `type` is the type of the SSA value; `!common_ir.undeclared` means that there is none. In a list
      of types without names, `unit` is the type of the SSA value;
    * attributes of nodes: dictionaries of `name`, `doc` and the value under the name of its field in
      a file (`f`, `i`, `s`, `t`, `g`, `ints`, ...), or `ref` for one of the enclosing function's;
    * tensors: elements only, or a dictionary of `name`, `type`, `data`, `field`, `segment`, `doc`,
      `metadata`, or with `external` in place of `data`.

    Elements stored as bytes are `dense` if they are few and MLIR has their type,
    otherwise `dense_resource`, which is not copied; for elements in another field, `field` is the
    name of that field. External data are not read: `external` has their location.

    Ops are not pure, so that unused parts of a file are not removed.
  }];
}

class CommonIr_Type<string name, string mnem, string what> : TypeDef<CommonIr_Dialect, name> {
  let mnemonic = mnem;
  let summary = what;
}

def CommonIr_Undeclared
    : CommonIr_Type<"Undeclared", "undeclared", "a value without a declared type">;

def CommonIr_String : CommonIr_Type<"String", "string", "an element of arbitrary bytes">;

def CommonIr_Element
    : CommonIr_Type<"Element", "element", "an element type that no format defines"> {
  let description = "The number in the file; 0 if there is none.";
  let parameters = (ins "int32_t":$number);
  let assemblyFormat = "`<` $number `>`";
}

def CommonIr_Tensor
    : CommonIr_Type<"Tensor", "tensor", "a tensor with wildcards in its shape"> {
  let description = [{
    A wildcard matches any number of dimensions, so the rank is unknown, but more is known than for
    `tensor<*xf32>`. Shapes with negative sizes, which files may have, are represented in this way too.

    ```mlir
    !common_ir.tensor<f32, #common_ir.dims<["n", "m*"]>>
    ```
  }];
  let parameters = (ins "::mlir::Type":$element, "::mlir::Attribute":$dims);
  let assemblyFormat = "`<` $element `,` $dims `>`";
}

def CommonIr_Sparse : CommonIr_Type<"Sparse", "sparse", "a sparse tensor"> {
  let description = "`tensor` is the type of the corresponding dense tensor.";
  let parameters = (ins "::mlir::Type":$tensor);
  let assemblyFormat = "`<` $tensor `>`";
}

def CommonIr_Sequence : CommonIr_Type<"Sequence", "sequence", "any number of values of one type"> {
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def CommonIr_Optional : CommonIr_Type<"Optional", "optional", "a value that may be absent"> {
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def CommonIr_Map : CommonIr_Type<"Map", "map", "values by keys, which are integers or strings"> {
  let parameters = (ins "::mlir::Type":$key, "::mlir::Type":$element);
  let assemblyFormat = "`<` $key `,` $element `>`";
}

def CommonIr_Handle
    : CommonIr_Type<"Handle", "handle", "a number that refers to an external object">;

def CommonIr_Opaque : CommonIr_Type<"Opaque", "opaque", "a type defined by its domain"> {
  let parameters = (ins "::mlir::StringAttr":$domain, "::mlir::StringAttr":$type_name);
  let assemblyFormat = "`<` $domain `,` $type_name `>`";
}

def CommonIr_Dims : AttrDef<CommonIr_Dialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "the sizes of a shape as written";
  let description = [{
    A size is a number, a variable (`"n"`), a wildcard (`"*"`, `"m*"`), or `unit` if it is
    unspecified. `denotations` is the meaning of each dimension, in ONNX's terms. It is the encoding of
    tensor types with variables or denotations:

    ```mlir
    tensor<?x4xf32, #common_ir.dims<["n", 4]>>
    ```
  }];
  let parameters = (ins "::mlir::ArrayAttr":$dims,
                        OptionalParameter<"::mlir::ArrayAttr">:$denotations);
  let assemblyFormat = "`<` $dims (`,` $denotations^)? `>`";
}

class CommonIr_Op<string mnemonic, list<Trait> traits = []>
    : Op<CommonIr_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

def CommonIr_ModuleOp
    : CommonIr_Op<"module", [IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "a file: a graph with its declarations, or a library";
  let description = [{
    `schema` is the format, `common_ir` or `onnx`, which determines the applicable rules and
    operators. `producer_version` is a number in Common IR and a text in ONNX. `opsets`
    are dictionaries of `domain` and `version`; `imports` are URIs or relative paths of libraries.
  }];
  let arguments = (ins StrAttr:$schema, OptionalAttr<StrAttr>:$module_name,
                       OptionalAttr<StrAttr>:$domain, OptionalAttr<I64Attr>:$ir_version,
                       OptionalAttr<I64Attr>:$model_version, OptionalAttr<StrAttr>:$author,
                       OptionalAttr<StrAttr>:$license, OptionalAttr<StrAttr>:$producer,
                       OptionalAttr<AnyAttr>:$producer_version, OptionalAttr<StrAttr>:$doc,
                       OptionalAttr<ArrayAttr>:$metadata, OptionalAttr<ArrayAttr>:$imports,
                       OptionalAttr<ArrayAttr>:$opsets);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def CommonIr_DeclareOp : CommonIr_Op<"declare", [HasParent<"ModuleOp">]> {
  let summary = "declares an operator";
  let description = [{
    `signatures` are its overloads: dictionaries of `inputs`, `outputs`, `attributes` (values of
    their type) and `doc`.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$operator_name, OptionalAttr<StrAttr>:$domain,
                       OptionalAttr<ArrayAttr>:$signatures, OptionalAttr<StrAttr>:$doc);
  let assemblyFormat = "attr-dict";
}

class CommonIr_Body<string mnemonic, list<Trait> traits>
    : CommonIr_Op<mnemonic, !listconcat(traits, [SingleBlock, RegionKindInterface,
                                                  HasOnlyGraphRegion])> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def CommonIr_FunctionOp
    : CommonIr_Body<"function", [IsolatedFromAbove, HasParent<"ModuleOp">]> {
  let summary = "a function";
  let description = [{
    `inputs` are the block arguments; `values` are types of intermediate values; `attrs` are
    parameters, with their defaults.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$function_name, OptionalAttr<StrAttr>:$domain,
                       OptionalAttr<StrAttr>:$overload, ArrayAttr:$inputs,
                       OptionalAttr<ArrayAttr>:$attrs, OptionalAttr<ArrayAttr>:$values,
                       OptionalAttr<ArrayAttr>:$opsets, OptionalAttr<StrAttr>:$doc,
                       OptionalAttr<ArrayAttr>:$metadata);
}

def CommonIr_GraphOp
    : CommonIr_Body<"graph", [ParentOneOf<["ModuleOp", "NodeOp"]>]> {
  let summary = "a graph: that of the file, or one in an attribute of a node";
  let description = [{
    `inputs` are the block arguments; `values` are types of intermediate values. A graph in a node may
    use the values of the enclosing graphs. `quantizations` are
    dictionaries of `tensor` and `parameters`, which are entries.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$graph_name, OptionalAttr<StrAttr>:$doc,
                       ArrayAttr:$inputs, OptionalAttr<ArrayAttr>:$values,
                       OptionalAttr<ArrayAttr>:$quantizations,
                       OptionalAttr<ArrayAttr>:$metadata);
}

def CommonIr_InitializerOp : CommonIr_Op<"initializer", [HasParent<"GraphOp">]> {
  let summary = "a constant";
  let description = [{
    One with the name of an input of its graph is the input's default: uses of the name use the input.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$value_name, AnyAttr:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def CommonIr_SparseInitializerOp : CommonIr_Op<"sparse_initializer", [HasParent<"GraphOp">]> {
  let summary = "a sparse constant";
  let description = [{
    `value` is a dictionary of `dims`, and of the tensors `indices` and `values`, whose name is that
    of the sparse tensor.
  }];
  let arguments = (ins DictionaryAttr:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def CommonIr_UndefinedOp
    : CommonIr_Op<"undefined", [ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "an undefined name";
  let description = "Files may use undefined names, although no rule allows it. Without a name it is an output without a name.";
  let arguments = (ins OptionalAttr<StrAttr>:$value_name);
  let results = (outs CommonIr_Undeclared:$result);
  let assemblyFormat = "attr-dict";
}

def CommonIr_NodeOp
    : CommonIr_Op<"node", [NoTerminator, SingleBlock, NoRegionArguments,
                           ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "a call of an operator or a function";
  let description = [{
    `outputs` are the names of the results; an empty one is unused. `absent` are the positions of
    omitted inputs, which are not operands. `arg_counts` are the numbers of inputs of the formal
    parameters, `control_inputs` the names of nodes that must have run. `input_types` and
    `output_types` are the types stated by this node. The region holds the graphs that
    `attrs` number under `g` and `graphs`.

    ```mlir
    %0 = common_ir.node "Relu"(%arg0) outputs ["y"] : (tensor<2xf32>) -> tensor<2xf32>
    ```
  }];
  let arguments = (ins StrAttr:$op_type, Variadic<AnyType>:$inputs, ArrayAttr:$outputs,
                       OptionalAttr<StrAttr>:$node_name, OptionalAttr<StrAttr>:$domain,
                       OptionalAttr<StrAttr>:$overload, OptionalAttr<DenseI64ArrayAttr>:$absent,
                       OptionalAttr<ArrayAttr>:$attrs,
                       OptionalAttr<DenseI64ArrayAttr>:$arg_counts,
                       OptionalAttr<ArrayAttr>:$control_inputs,
                       OptionalAttr<ArrayAttr>:$input_types,
                       OptionalAttr<ArrayAttr>:$output_types, OptionalAttr<StrAttr>:$doc,
                       OptionalAttr<ArrayAttr>:$metadata);
  let results = (outs Variadic<AnyType>:$results);
  let regions = (region AnyRegion:$graphs);
  let assemblyFormat = [{
    $op_type `(` $inputs `)` `outputs` $outputs attr-dict `:` functional-type(operands, results)
    (`graphs` $graphs^)?
  }];
}

def CommonIr_OutputOp
    : CommonIr_Op<"output", [Terminator, ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "the outputs of a graph or function";
  let description = "`outputs` are the names and types of the operands, if they differ from those of the values.";
  let arguments = (ins Variadic<AnyType>:$values, ArrayAttr:$outputs);
  let assemblyFormat = "`(` $values `)` attr-dict (`:` type($values)^)?";
}

#endif
