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
    Faithful to what a file says: importing and exporting give the same module of the format.
    `common_ir.module` holds the declared operators, the functions and the graph; a library has no
    graph. A value is an SSA value and keeps its name; nodes stand in the order of the file, which
    may be any, and use values by what defines them, from whatever graph around.

    What the file leaves out is an attribute that is absent. Lists whose order matters and whose
    names may repeat are arrays:

    * entries of keys and values: `[["key", "value"], ...]`;
    * values (inputs, outputs, types within): the name alone, when all else is as the SSA value
      says, or a dictionary of `name`, `type`, `shape`, `denotation`, `doc`, `metadata`. A `type`
      that is absent is that of the SSA value; `!common_ir.undeclared` says there is none. In a list
      of types without names, `unit` is the type of the SSA value, and a type is itself;
    * attributes of nodes: dictionaries of `name`, `doc` and the value under the name of its field in
      a file (`f`, `i`, `s`, `t`, `g`, `ints`, ...), or `ref` for one of the enclosing function's;
    * tensors: elements alone, or a dictionary of `name`, `type`, `data`, `field`, `segment`, `doc`,
      `metadata`, or with `external` in place of `data`.

    Elements that the file holds as bytes are `dense` when they are few and of a type that MLIR has,
    and else `dense_resource`, which is not copied; elements in another field of the file keep its
    name in `field`. Elements in other files stay there: `external` says where.

    Ops are not pure: nothing that a file says is removed because nobody uses it.
  }];
}

class CommonIr_Type<string name, string mnem, string what> : TypeDef<CommonIr_Dialect, name> {
  let mnemonic = mnem;
  let summary = what;
}

def CommonIr_Undeclared
    : CommonIr_Type<"Undeclared", "undeclared", "the file does not say of which type a value is">;

def CommonIr_String : CommonIr_Type<"String", "string", "an element that is any bytes">;

def CommonIr_Element
    : CommonIr_Type<"Element", "element", "an element type that no format gives a meaning"> {
  let description = "The number stands in the file; 0 says that there is none.";
  let parameters = (ins "int32_t":$number);
  let assemblyFormat = "`<` $number `>`";
}

def CommonIr_Tensor
    : CommonIr_Type<"Tensor", "tensor", "a tensor that no builtin type says: wildcards in its shape"> {
  let description = [{
    A wildcard stands for any number of sizes, so that the rank is not known, yet more is than of
    `tensor<*xf32>`. So are shapes with negative sizes, which files may have.

    ```mlir
    !common_ir.tensor<f32, #common_ir.dims<["n", "m*"]>>
    ```
  }];
  let parameters = (ins "::mlir::Type":$element, "::mlir::Attribute":$dims);
  let assemblyFormat = "`<` $element `,` $dims `>`";
}

def CommonIr_Sparse : CommonIr_Type<"Sparse", "sparse", "a sparse tensor"> {
  let description = "`tensor` is the type of the dense tensor of the same elements.";
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
    : CommonIr_Type<"Handle", "handle", "a number that stands for something outside">;

def CommonIr_Opaque : CommonIr_Type<"Opaque", "opaque", "a type that only its domain knows"> {
  let parameters = (ins "::mlir::StringAttr":$domain, "::mlir::StringAttr":$type_name);
  let assemblyFormat = "`<` $domain `,` $type_name `>`";
}

def CommonIr_Dims : AttrDef<CommonIr_Dialect, "Dims"> {
  let mnemonic = "dims";
  let summary = "the sizes of a shape as written";
  let description = [{
    A size is a number, a variable (`"n"`), a wildcard (`"*"`, `"m*"`), or `unit` where nothing is
    said. `denotations` is what each size means, in ONNX's words. It is the encoding of tensor types
    with variables or denotations:

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
    `schema` is the format whose words it speaks, `common_ir` or `onnx`: it decides which rules and
    operators are meant. `producer_version` is a number in Common IR and a text in ONNX. `opsets`
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
    `inputs` says of each block argument what its type does not; `values` are types of values
    within; `attrs` are parameters, with their defaults.
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
    `inputs` says of each block argument what its type does not; `values` are types of values
    within. A graph in a node may use the values of the graphs around it. `quantizations` are
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
    One that is named like an input of its graph is the input's default: what uses the name uses the
    input.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$value_name, AnyAttr:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def CommonIr_SparseInitializerOp : CommonIr_Op<"sparse_initializer", [HasParent<"GraphOp">]> {
  let summary = "a sparse constant";
  let description = [{
    `value` is a dictionary of `dims`, and of the tensors `indices` and `values`, whose name is that
    of the whole.
  }];
  let arguments = (ins DictionaryAttr:$value);
  let results = (outs AnyType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def CommonIr_UndefinedOp
    : CommonIr_Op<"undefined", [ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "a name that nothing defines";
  let description = "A file can use one, though no rule allows it. Without a name it is an output without one.";
  let arguments = (ins OptionalAttr<StrAttr>:$value_name);
  let results = (outs CommonIr_Undeclared:$result);
  let assemblyFormat = "attr-dict";
}

def CommonIr_NodeOp
    : CommonIr_Op<"node", [NoTerminator, SingleBlock, NoRegionArguments,
                           ParentOneOf<["GraphOp", "FunctionOp"]>]> {
  let summary = "a call of an operator or a function";
  let description = [{
    `outputs` are the names of the results; an empty one is not wanted. `absent` are the places of
    inputs that are left out, which are no operands. `arg_counts` say how many inputs each formal
    parameter takes, `control_inputs` name nodes that must have run. `input_types` and
    `output_types` are the types as this node sees them. The region holds the graphs that
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
  let description = "`outputs` says of each operand what its name and type do not.";
  let arguments = (ins Variadic<AnyType>:$values, ArrayAttr:$outputs);
  let assemblyFormat = "`(` $values `)` attr-dict (`:` type($values)^)?";
}

#endif
