// A schedule of Gemini or SET as written, and the layers of its frontend file.
#ifndef IRC_GEMINI
#define IRC_GEMINI

include "Base.td"

def Gemini_Dialect : Dialect {
  let name = "gemini";
  let cppNamespace = "::irc::gemini";
  let summary = "A schedule of Gemini or SET as written, and the layers of its frontend file";
  let description = [{
    Represents a file without loss: importing and exporting give the same file. Objects in lists
    are ops, in the order of the file, and their other keys are attributes of the same
    name: integers, floats, strings, booleans, `array<i64: ...>` for lists of integers, arrays,
    dictionaries, `unit` for `null`. An absent key is an absent attribute. The
    three dialects of schedules ([the NPU](../npu.md)) differ in their keys.

    The ops in a region are the elements of several lists, distinguished by their names: a
    `gemini.workload` has residents of its `buffer`, `ifmap`s, `ofmap`s, `weight`, `tile`s and rows of
    WL0. If such a key is an empty list or `null`, it is an attribute of the parent op.

    Further attributes preserve the text of a file:

    * `gemini.keys` lists the keys of an object that are not sorted;
    * `gemini.others` has keys that cannot be attributes, with their values;
    * dictionaries whose keys are not sorted are `{gemini.pairs = [["key", value], ...]}`;
    * numbers that would be printed differently are `{gemini.number = "1.50"}`;
    * `gemini.single` marks an op that is a single object where others are in a list, and
      `gemini.as` is its key, if several keys hold the same op.

    There are no SSA values: transfers are matched by number, as in the file. The pass `gemini-check`
    checks a schedule, `gemini-to-npu` compiles it to a program.
  }];
}

// A corner of a box, or ids: one integer, or several.
def Gemini_Ints : AnyAttrOf<[I64Attr, DenseI64ArrayAttr], "an integer or integers">;
// Ids; SET writes those of weights as nested lists.
def Gemini_Ids : AnyAttrOf<[I64Attr, DenseI64ArrayAttr, ArrayAttr], "an integer or lists of them">;
// A number: an integer, a float, or one with another spelling.
def Gemini_Number : AnyAttrOf<[I64Attr, F64Attr, DictionaryAttr], "a number">;
// A list of lists of integers.
def Gemini_Lists : AnyAttrOf<[DenseI64ArrayAttr, ArrayAttr], "lists of integers">;

class Gemini_Op<string mnemonic, list<Trait> traits = []>
    : Op<Gemini_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

// An object without nested ops.
class Gemini_Leaf<string mnemonic, list<Trait> traits> : Gemini_Op<mnemonic, traits> {
  let assemblyFormat = "attr-dict";
}

// An object with nested ops.
class Gemini_Whole<string mnemonic, list<Trait> traits>
    : Gemini_Op<mnemonic, !listconcat(traits, [NoTerminator, SingleBlock])> {
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Gemini_ScheduleOp : Gemini_Whole<"schedule", [IsolatedFromAbove]> {
  let summary = "a schedule";
  let description = [{
    Holds the `gemini.dram`s and the `gemini.core`s. In the dialect with groups of DRAM, `metadata`
    has the sizes of the mesh.
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$buffersize, OptionalAttr<I64Attr>:$top_batch_cut,
                       OptionalAttr<I64Attr>:$xlen, OptionalAttr<I64Attr>:$ylen,
                       OptionalAttr<DictionaryAttr>:$metadata);
}

def Gemini_DramOp : Gemini_Whole<"dram", [HasParent<"::irc::gemini::ScheduleOp">]> {
  let summary = "the blocks that are stored to and loaded from DRAM";
  let description = "`id` names the group of DRAM ports, in the dialect that has groups.";
  let arguments = (ins OptionalAttr<StrAttr>:$id);
}

def Gemini_DramInOp : Gemini_Leaf<"dram_in", [HasParent<"::irc::gemini::DramOp">]> {
  let summary = "a block that is stored to DRAM: a result";
  let arguments = (ins I64Attr:$core_id, OptionalAttr<StrAttr>:$layer_name,
                       OptionalAttr<Gemini_Ints>:$lower, OptionalAttr<DenseI64ArrayAttr>:$related_ofmap,
                       I64Attr:$transfer_id, OptionalAttr<StrAttr>:$type,
                       OptionalAttr<Gemini_Ints>:$upper, I64Attr:$workload_id);
}

def Gemini_DramOutOp : Gemini_Leaf<"dram_out", [HasParent<"::irc::gemini::DramOp">]> {
  let summary = "a block that is loaded from DRAM: a weight, or an operand";
  let arguments = (ins Gemini_Lists:$destination, OptionalAttr<StrAttr>:$layer_name,
                       Gemini_Ints:$lower, OptionalAttr<I64Attr>:$priority,
                       OptionalAttr<DenseI64ArrayAttr>:$related_ifmap, I64Attr:$size,
                       I64Attr:$transfer_id, StrAttr:$type, Gemini_Ints:$upper);
}

def Gemini_CoreOp : Gemini_Whole<"core", [HasParent<"::irc::gemini::ScheduleOp">]> {
  let summary = "the workloads of a core, in order";
  let arguments = (ins I64Attr:$id);
}

def Gemini_WorkloadOp : Gemini_Whole<"workload", [HasParent<"::irc::gemini::CoreOp">]> {
  let summary = "a part of a layer, run by one core";
  let description = [{
    `workload` is its part of the layer's result, `[lower, upper]`; `time` is in cycles; `ofmap_size`
    counts bytes in the dialect with addresses and bits in the others; `ring_buffer_info` lists the
    ring regions `[start, end]` of L2.
  }];
  let arguments = (ins StrAttr:$layer_name, OptionalAttr<StrAttr>:$layer_type, I64Attr:$ofmap_size,
                       OptionalAttr<Gemini_Lists>:$ring_buffer_info,
                       OptionalAttr<DenseI64ArrayAttr>:$tile_padding_tblr, I64Attr:$time,
                       Gemini_Lists:$workload, I64Attr:$workload_id);
}

def Gemini_ResidentOp : Gemini_Leaf<"resident", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "a tensor in L2 before the workload starts: an entry of its `buffer`";
  let arguments = (ins OptionalAttr<I64Attr>:$address, OptionalAttr<I64Attr>:$align,
                       OptionalAttr<I64Attr>:$bitwidth, OptionalAttr<I64Attr>:$block,
                       OptionalAttr<BoolAttr>:$cur_wl_ifmap, OptionalAttr<Gemini_Lists>:$destinations,
                       OptionalAttr<BoolAttr>:$end_loading, OptionalAttr<BoolAttr>:$end_sending,
                       OptionalAttr<StrAttr>:$layer, OptionalAttr<StrAttr>:$layer_name,
                       OptionalAttr<Gemini_Ints>:$lower, OptionalAttr<BoolAttr>:$newly_added,
                       OptionalAttr<DictionaryAttr>:$ofmap_range, OptionalAttr<I64Attr>:$priority,
                       OptionalAttr<I64Attr>:$size, OptionalAttr<AnyAttr>:$source,
                       OptionalAttr<BoolAttr>:$start_ending, OptionalAttr<BoolAttr>:$start_loading,
                       OptionalAttr<BoolAttr>:$start_send, OptionalAttr<BoolAttr>:$start_sending,
                       OptionalAttr<I64Attr>:$tensor_id, OptionalAttr<I64Attr>:$tensor_order,
                       OptionalAttr<Gemini_Ids>:$transfer_id, StrAttr:$type,
                       OptionalAttr<Gemini_Ints>:$upper, OptionalAttr<I64Attr>:$workload_id);
}

def Gemini_IfmapOp : Gemini_Leaf<"ifmap", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "an operand of a workload, read as activations";
  let arguments = (ins OptionalAttr<I64Attr>:$align, OptionalAttr<I64Attr>:$bitwidth,
                       Gemini_Ints:$lower, OptionalAttr<I64Attr>:$max_workload_id,
                       OptionalAttr<I64Attr>:$size, Gemini_Ids:$transfer_id, Gemini_Ints:$upper);
}

def Gemini_OfmapOp : Gemini_Leaf<"ofmap", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "a part of a workload's result, and its users";
  let arguments = (ins Gemini_Lists:$destination, Gemini_Ints:$lower, I64Attr:$size,
                       I64Attr:$transfer_id, Gemini_Ints:$upper);
}

def Gemini_WeightOp : Gemini_Leaf<"weight", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "an operand of a workload, read as weights";
  let arguments = (ins OptionalAttr<BoolAttr>:$from_ofmap, Gemini_Ints:$lower,
                       OptionalAttr<I64Attr>:$max_workload_id, OptionalAttr<I64Attr>:$size,
                       OptionalAttr<Gemini_Ids>:$transfer_id, Gemini_Ints:$upper);
}

def Gemini_TileOp : Gemini_Leaf<"tile", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "a tile: one instruction of the PE array or the vector processor";
  let description = "`id` is its key in `tile_info`. Ranges are absolute in the layer's tensors.";
  let arguments = (ins StrAttr:$id, OptionalAttr<DenseI64ArrayAttr>:$act_mini_tile,
                       OptionalAttr<I64Attr>:$ci_cut_num, OptionalAttr<StrAttr>:$cut_mode,
                       Gemini_Ints:$ifmap_lower, OptionalAttr<Gemini_Ints>:$ifmap_lower2,
                       Gemini_Ints:$ifmap_upper, OptionalAttr<Gemini_Ints>:$ifmap_upper2,
                       OptionalAttr<StrAttr>:$layer_name, OptionalAttr<StrAttr>:$loop_order,
                       OptionalAttr<DenseI64ArrayAttr>:$mtc0_mtk0, Gemini_Ints:$ofmap_lower,
                       Gemini_Ints:$ofmap_upper, OptionalAttr<DenseI64ArrayAttr>:$out_mini_tile,
                       OptionalAttr<Gemini_Number>:$single_tile_time_pred,
                       DenseI64ArrayAttr:$tile_padding_tblr);
}

def Gemini_Wl0RowOp : Gemini_Leaf<"wl0_row", [HasParent<"::irc::gemini::WorkloadOp">]> {
  let summary = "weights in WL0 before the workload starts; addresses and sizes are in units of 64 bytes";
  let arguments = (ins I64Attr:$address, I64Attr:$align, I64Attr:$bitwidth, StrAttr:$layer_name,
                       OptionalAttr<Gemini_Ints>:$lower, I64Attr:$size, StrAttr:$source,
                       OptionalAttr<AnyAttrOf<[I64Attr, UnitAttr]>>:$tensor_order,
                       Gemini_Ids:$transfer_id, OptionalAttr<Gemini_Ints>:$upper);
}

def Gemini_FrontendOp : Gemini_Whole<"frontend", [IsolatedFromAbove]> {
  let summary = "the layers of a network, in the order of the frontend file";
}

def Gemini_LayerOp : Gemini_Leaf<"layer", [HasParent<"::irc::gemini::FrontendOp">]> {
  let summary = "a layer";
  let description = [{
    `id` is its key in the file, `operation` its operation. Shapes are `[N, C, H, W]`, of weights
    `[K, C, R, S]`.
  }];
  // `operation` is left to the reader: its accessor would hide that of every op.
  let arguments = (ins StrAttr:$id, StrAttr:$device, I64Attr:$layer_index, StrAttr:$name,
                       Gemini_Lists:$input_dtype, Gemini_Lists:$input_shape,
                       Gemini_Lists:$next_layer, Gemini_Lists:$output_dtype,
                       Gemini_Lists:$output_shape, Gemini_Lists:$previous_layer,
                       OptionalAttr<DenseI64ArrayAttr>:$kernel_size,
                       OptionalAttr<DictionaryAttr>:$module_list,
                       OptionalAttr<DenseI64ArrayAttr>:$padding,
                       OptionalAttr<DenseI64ArrayAttr>:$pool_size,
                       OptionalAttr<DictionaryAttr>:$quant_info,
                       OptionalAttr<DenseI64ArrayAttr>:$stride);
}

#endif
