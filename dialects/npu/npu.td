// Programs of the NPU: per core, a stream of instructions with tokens.
#ifndef IRC_NPU
#define IRC_NPU

include "Base.td"

def Npu_Dialect : Dialect {
  let name = "npu";
  let cppNamespace = "::irc::npu";
  let summary = "Programs of the NPU: per core, a stream of instructions with tokens";
  let description = [{
    An `npu.program` holds one `npu.core` for each core, by ascending number, and a core its
    instructions in the order in which they are issued. Every instruction of the machine is an op with
    its name, and its fields are attributes under the keys of listings ([the NPU](../npu.md)).

    * Instructions named `cfg` write registers of their engine. The others take a token of each engine
      in `prev` before they start and give one to each in `next` when they have ended; an absent list
      is empty.
    * `origin` is the origin of an instruction in the schedule, which the machine does not see: `slyr`,
      `clyr`, `s_flyr`, `c_flyr`, `wkl`, `tile`. An absent entry is -1, or the empty list.
    * Named values are strings: `DF = "INT8"`. Constants are integers or floats as
      in listings.
    * Addresses are in bytes; those of WL0 in units of 64 bytes.

    Instructions access registers and memory of the machine, so no op has operands or results, and none
    is pure. The pass `npu-verify` proves that a program is correct for any duration of its instructions.
  }];
}

// A constant: an integer, or a float.
def Npu_Number : AnyAttrOf<[I64Attr, F64Attr], "an integer or a float of 64 bits">;

class Npu_Op<string mnemonic, list<Trait> traits = []>
    : Op<Npu_Dialect, mnemonic, !listconcat(traits, [RustVerified])>;

class Npu_Instruction<string mnemonic, dag fields>
    : Npu_Op<mnemonic, [HasParent<"::irc::npu::CoreOp">]> {
  let arguments = fields;
  let assemblyFormat = "attr-dict";
}

// Writes registers of its engine.
class Npu_Config<string mnemonic, dag fields>
    : Npu_Instruction<mnemonic, !con(fields, (ins OptionalAttr<DictionaryAttr>:$origin))>;

// Waits for tokens, runs, gives tokens.
class Npu_Run<string mnemonic, dag fields>
    : Npu_Instruction<mnemonic, !con(fields, (ins OptionalAttr<DictionaryAttr>:$origin,
                                              OptionalAttr<StrArrayAttr>:$prev,
                                              OptionalAttr<StrArrayAttr>:$next))>;

def Npu_ProgramOp : Npu_Op<"program", [IsolatedFromAbove, NoTerminator, SingleBlock]> {
  let summary = "the program of every core";
  let description = [{
    `model` is the fingerprint of the model whose numbers the instructions have: `images=1 layers=… numbers=…`.
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$model);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Npu_CoreOp
    : Npu_Op<"core", [HasParent<"::irc::npu::ProgramOp">, NoTerminator, SingleBlock]> {
  let summary = "the instructions of a core";
  let description = "`id` is its number, used by instructions that send and receive.";
  let arguments = (ins I64Attr:$id);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Npu_CtSt : Npu_Run<"ct_st", (ins)> {
  let summary = "begin of the task";
}

def Npu_CtBc : Npu_Run<"ct_bc", (ins I64Attr:$BCS, DenseI64ArrayAttr:$BufCut)> {
  let summary = "ring regions of L2, one bank of four";
  let description = [{
    * `BCS`: bank written: regions `4 BCS` to `4 BCS + 3`
    * `BufCut`: four times size and last KiB; size 0 with a last KiB is a region of
      all that precedes
  }];
}

def Npu_CtEd : Npu_Run<"ct_ed", (ins)> {
  let summary = "end of the task";
}

def Npu_LdaCfg : Npu_Config<"lda_cfg", (ins I64Attr:$SME, I64Attr:$RS, I64Attr:$BAS, StrAttr:$DF,
    DenseI64ArrayAttr:$STile, DenseI64ArrayAttr:$DTile)> {
  let summary = "layout of activations loaded from DRAM";
  let description = [{
    * `SME`: 1: channels lie densely in DRAM
    * `RS`: register set written
    * `BAS`: base of DRAM: 0 activations, 1 weights
    * `DF`: element format
    * `STile`: channels, height, width of the tensor in DRAM
    * `DTile`: channels, height, width of the tensor in L2
  }];
}

def Npu_LdaMov : Npu_Run<"lda_mov", (ins I64Attr:$RS, I64Attr:$DBSG, I64Attr:$STaddr,
    I64Attr:$DTaddr, DenseI64ArrayAttr:$Tile)> {
  let summary = "activations from DRAM to L2";
  let description = [{
    * `RS`: register set used
    * `DBSG`: ring region of the destination
    * `STaddr`: place in DRAM, from its base
    * `DTaddr`: place in L2
    * `Tile`: batch, channels, height, width moved
  }];
}

def Npu_LdwCfg : Npu_Config<"ldw_cfg", (ins I64Attr:$RS, I64Attr:$BAS, StrAttr:$DF, I64Attr:$MKC,
    I64Attr:$MKEN, DenseI64ArrayAttr:$SWsize, DenseI64ArrayAttr:$DWsize)> {
  let summary = "layout of weights loaded from DRAM to L2";
  let description = [{
    * `RS`: register set written
    * `BAS`: base of DRAM
    * `DF`: element format
    * `MKC`: masked channels
    * `MKEN`: 1: channels are masked
    * `SWsize`: input channels, kernel height, kernel width in DRAM
    * `DWsize`: the same in L2
  }];
}

def Npu_LdwMov : Npu_Run<"ldw_mov", (ins I64Attr:$RS, I64Attr:$DBSG, I64Attr:$STaddr,
    I64Attr:$DTaddr, DenseI64ArrayAttr:$Wsize)> {
  let summary = "weights from DRAM to L2";
  let description = [{
    * `RS`: register set used
    * `DBSG`: ring region of the destination
    * `STaddr`: place in DRAM, from its base
    * `DTaddr`: place in L2
    * `Wsize`: output channels, input channels, kernel height, kernel width
  }];
}

def Npu_LwCfg : Npu_Config<"lw_cfg", (ins I64Attr:$BAS, StrAttr:$DF, I64Attr:$MKC, I64Attr:$MKEN,
    DenseI64ArrayAttr:$SWsize, DenseI64ArrayAttr:$DWsize)> {
  let summary = "layout of weights loaded to WL0";
  let description = [{
    * `BAS`: base of DRAM
    * `DF`: element format
    * `MKC`: masked channels
    * `MKEN`: 1: channels are masked
    * `SWsize`: input channels, kernel height, kernel width at the source
    * `DWsize`: the same in WL0
  }];
}

def Npu_LwMov : Npu_Run<"lw_mov", (ins I64Attr:$SS, StrArrayAttr:$XYmode, I64Attr:$SBSG,
    I64Attr:$STaddr, I64Attr:$DTaddr, DenseI64ArrayAttr:$Wsize)> {
  let summary = "weights from DRAM or L2 to WL0";
  let description = [{
    * `SS`: 1: from DRAM; 0: from L2
    * `XYmode`: how the array will share the work
    * `SBSG`: ring region of the source
    * `STaddr`: place in DRAM or L2, in bytes
    * `DTaddr`: place in WL0, in units of 64 bytes
    * `Wsize`: output channels, input channels, kernel height, kernel width
  }];
}

def Npu_PeCfgFm : Npu_Config<"pe_cfg_fm", (ins StrAttr:$IF, StrAttr:$OF, StrAttr:$SF, StrAttr:$WF,
    StrAttr:$DF, Npu_Number:$PADV, DenseI64ArrayAttr:$STile, DenseI64ArrayAttr:$DTile)> {
  let summary = "formats and shapes of a convolution";
  let description = [{
    * `IF`: sign of the input
    * `OF`: sign of the output
    * `SF`: format of the input
    * `WF`: format of the weights
    * `DF`: format of the output
    * `PADV`: value outside the input
    * `STile`: channels, height, width of the input in L2
    * `DTile`: channels, height, width of the output in L2
  }];
}

def Npu_PeCfgPm : Npu_Config<"pe_cfg_pm", (ins StrAttr:$ACTMD, Npu_Number:$ACTPM, StrAttr:$QC,
    Npu_Number:$QB, Npu_Number:$QK, I64Attr:$ADDEN, DenseI64ArrayAttr:$STRIDE,
    StrArrayAttr:$XYmode)> {
  let summary = "activation, quantisation, stride of a convolution";
  let description = [{
    * `ACTMD`: activation
    * `ACTPM`: parameter of the activation
    * `QC`: how results become integers
    * `QB`: zero point of the output
    * `QK`: one over the scale of the output
    * `ADDEN`: 1: adds to what is there
    * `STRIDE`: along height and width
    * `XYmode`: how the array shares the work
  }];
}

def Npu_PeCfgDq : Npu_Config<"pe_cfg_dq", (ins I64Attr:$DQC, Npu_Number:$DQB, Npu_Number:$DQK)> {
  let summary = "dequantisation of a convolution's sums";
  let description = [{
    * `DQC`: conversion
    * `DQB`: zero point
    * `DQK`: scale; 0: those beside the weights
  }];
}

def Npu_PeCfgTp : Npu_Config<"pe_cfg_tp", (ins DenseI64ArrayAttr:$KERNEL, DenseI64ArrayAttr:$Tile,
    I64Attr:$MTK0, I64Attr:$MTC0, DenseI64ArrayAttr:$MTI)> {
  let summary = "tile of a convolution";
  let description = [{
    * `KERNEL`: height and width of the kernel
    * `Tile`: batch, output channels, input channels, output height, output width
    * `MTK0`: output channels of an inner tile
    * `MTC0`: input channels of an inner tile
    * `MTI`: height and width of an inner tile
  }];
}

def Npu_PeConv : Npu_Run<"pe_conv", (ins I64Attr:$PS, I64Attr:$SPHI, I64Attr:$SPWI, I64Attr:$SBSG,
    I64Attr:$DBSG, I64Attr:$STaddr, I64Attr:$SWaddr, I64Attr:$DTaddr)> {
  let summary = "convolution";
  let description = [{
    * `PS`: phase of channels, against conflicts of banks
    * `SPHI`: first input row; negative in padding
    * `SPWI`: first input column; negative in padding
    * `SBSG`: ring region of the input
    * `DBSG`: ring region of the output
    * `STaddr`: place in L2 of the pixel (SPHI, SPWI), which may be outside the input
    * `SWaddr`: place of the weights in WL0, in units of 64 bytes
    * `DTaddr`: place of the output in L2
  }];
}

def Npu_VpCfgGcs : Npu_Config<"vp_cfg_gcs", (ins StrAttr:$CMPS, StrAttr:$SG0M, I64Attr:$CMPVS,
    I64Attr:$SG0VS, Npu_Number:$SG0V, Npu_Number:$CMPV)> {
  let summary = "comparison and sum group 0 of a vector operation";
  let description = [{
    * `CMPS`: what a comparison keeps
    * `SG0M`: mode of sum group 0
    * `CMPVS`: where the comparison's scalar comes from
    * `SG0VS`: where the sum's scalar comes from
    * `SG0V`: the sum's scalar
    * `CMPV`: the comparison's scalar
  }];
}

def Npu_VpCfgGms : Npu_Config<"vp_cfg_gms", (ins BoolAttr:$USED, I64Attr:$SEGE, I64Attr:$SEGN,
    StrAttr:$MG0S, StrAttr:$SG1M, I64Attr:$MG0VS, I64Attr:$SG1VS, Npu_Number:$SG1V,
    Npu_Number:$MG0V)> {
  let summary = "product group 0 and sum group 1 of a vector operation";
  let description = [{
    * `USED`: as published
    * `SEGE`: as published
    * `SEGN`: as published
    * `MG0S`: mode of the product
    * `SG1M`: mode of the sum
    * `MG0VS`: where the product's scalar comes from
    * `SG1VS`: where the sum's scalar comes from
    * `SG1V`: the sum's scalar
    * `MG0V`: the product's scalar; one over the window for an average
  }];
}

def Npu_VpCfgSms : Npu_Config<"vp_cfg_sms", (ins StrAttr:$SUMM, I64Attr:$MULVS, I64Attr:$SUMVS,
    Npu_Number:$SUMV, Npu_Number:$MULV)> {
  let summary = "scalar product and sum of a vector operation";
  let description = [{
    * `SUMM`: mode of the sum
    * `MULVS`: where the product's scalar comes from
    * `SUMVS`: where the sum's scalar comes from
    * `SUMV`: the sum's scalar
    * `MULV`: the product's scalar
  }];
}

def Npu_VpCfgQp : Npu_Config<"vp_cfg_qp", (ins StrAttr:$QCS, StrAttr:$QSMD, Npu_Number:$QB,
    Npu_Number:$QK)> {
  let summary = "quantisation of a vector operation's result";
  let description = [{
    * `QCS`: how results become integers
    * `QSMD`: mode
    * `QB`: zero point
    * `QK`: one over the scale
  }];
}

def Npu_VpCfgIq : Npu_Config<"vp_cfg_iq", (ins I64Attr:$IQCS, Npu_Number:$IQB0, Npu_Number:$IQK0)> {
  let summary = "dequantisation `IQK0 x + IQB0`: of the only operand, or of that at `STaddr1`";
  let description = [{
    * `IQCS`: conversion
    * `IQB0`: added
    * `IQK0`: factor
  }];
}

def Npu_VpCfgIq1 : Npu_Config<"vp_cfg_iq1", (ins Npu_Number:$IQB1, Npu_Number:$IQK1)> {
  let summary = "dequantisation of the operand at `STaddr` when there are two";
  let description = [{
    * `IQB1`: added
    * `IQK1`: factor
  }];
}

def Npu_VpCfgTb : Npu_Config<"vp_cfg_tb", (ins DenseI64ArrayAttr:$TABLE)> {
  let summary = "table of a function of bytes";
  let description = [{
    * `TABLE`: the byte of the result for each byte of the operand, 256 in all
  }];
}

def Npu_VpCfgFm : Npu_Config<"vp_cfg_fm", (ins StrAttr:$IF, StrAttr:$OF, StrAttr:$IDF,
    StrAttr:$ODF, I64Attr:$VF32, DenseI64ArrayAttr:$STile, DenseI64ArrayAttr:$DTile)> {
  let summary = "formats and shapes of a vector operation";
  let description = [{
    * `IF`: sign of the input
    * `OF`: sign of the output
    * `IDF`: format of the input
    * `ODF`: format of the output
    * `VF32`: 1: single precision inside
    * `STile`: channels, height, width of the input in L2
    * `DTile`: channels, height, width of the output in L2
  }];
}

def Npu_VpCfgTp : Npu_Config<"vp_cfg_tp", (ins DenseI64ArrayAttr:$STRIDE,
    DenseI64ArrayAttr:$KERNEL, DenseI64ArrayAttr:$Tile, I64Attr:$T1F, I64Attr:$T0F,
    I64Attr:$PADV_AREA)> {
  let summary = "window and tile of a vector operation";
  let description = [{
    * `STRIDE`: along height and width
    * `KERNEL`: height and width of the window
    * `Tile`: channels, height, width of the output
    * `T1F`: dimensions of the second operand: 7 all, 0 there is none, 1 channels
    * `T0F`: dimensions of the first operand
    * `PADV_AREA`: value outside the input; -32768 takes no part
  }];
}

def Npu_VpSelf : Npu_Run<"vp_self", (ins I64Attr:$IQEN, I64Attr:$QEN, I64Attr:$SHMD,
    I64Attr:$GPMD, StrAttr:$CMPD, StrAttr:$TREED, StrAttr:$ACCD, I64Attr:$TM, StrAttr:$SWRS,
    I64Attr:$LUT, I64Attr:$SBSG, I64Attr:$SBSG1, I64Attr:$DBSG, I64Attr:$STaddr, I64Attr:$STaddr1,
    I64Attr:$DTaddr)> {
  let summary = "element by element, of one or two operands";
  let description = [{
    * `IQEN`: 1: the input is dequantised
    * `QEN`: 3: the result is quantised
    * `SHMD`: shift
    * `GPMD`: path through the groups: 4 one operand, 5 two, 69 two with ReLU
    * `CMPD`: dimensions of the comparison
    * `TREED`: dimensions of the tree
    * `ACCD`: dimensions of accumulation
    * `TM`: as published
    * `SWRS`: register for scalar results
    * `LUT`: function: 16 the operand, 18 the sum of two, 19 their product, 20 the table of the operand
    * `SBSG`: ring region of the first operand
    * `SBSG1`: ring region of the second operand
    * `DBSG`: ring region of the result
    * `STaddr`: the only operand in L2; the second of the frontend's when there are two
    * `STaddr1`: the first of two operands of the frontend in L2; else as `STaddr`
    * `DTaddr`: result in L2
  }];
}

def Npu_VpPool : Npu_Run<"vp_pool", (ins I64Attr:$IQEN, I64Attr:$QEN, I64Attr:$SHMD,
    I64Attr:$GPMD, StrAttr:$CMPD, StrAttr:$TREED, StrAttr:$ACCD, StrAttr:$SWRS, I64Attr:$LUT,
    I64Attr:$IPH, I64Attr:$IPW, I64Attr:$SBSG, I64Attr:$DBSG, I64Attr:$STaddr, I64Attr:$DTaddr)> {
  let summary = "pooling";
  let description = [{
    * `IQEN`: 1: the input is dequantised
    * `QEN`: 3: the result is quantised
    * `SHMD`: shift
    * `GPMD`: path through the groups
    * `CMPD`: dimensions of the comparison
    * `TREED`: dimensions of the tree
    * `ACCD`: dimensions of accumulation
    * `SWRS`: register for scalar results
    * `LUT`: function: 17 the maximum, 56 the average
    * `IPH`: first input row; negative in padding
    * `IPW`: first input column; negative in padding
    * `SBSG`: ring region of the input
    * `DBSG`: ring region of the result
    * `STaddr`: place in L2 of the pixel (IPH, IPW), which may be outside the input
    * `DTaddr`: result in L2
  }];
}

def Npu_DtCfg : Npu_Config<"dt_cfg", (ins StrAttr:$DF, DenseI64ArrayAttr:$STile,
    DenseI64ArrayAttr:$DTile)> {
  let summary = "layouts of a copy";
  let description = [{
    * `DF`: element format
    * `STile`: channels, height, width of the source
    * `DTile`: channels, height, width of the destination
  }];
}

def Npu_DtCal : Npu_Run<"dt_cal", (ins I64Attr:$Order, I64Attr:$SBSG, I64Attr:$DBSG,
    I64Attr:$STaddr, I64Attr:$DTaddr, DenseI64ArrayAttr:$Tile)> {
  let summary = "copy within L2";
  let description = [{
    * `Order`: order of dimensions: 0 stays as it is
    * `SBSG`: ring region of the source
    * `DBSG`: ring region of the destination
    * `STaddr`: source in L2
    * `DTaddr`: destination in L2
    * `Tile`: batch, channels, height, width moved
  }];
}

def Npu_StaCfg : Npu_Config<"sta_cfg", (ins I64Attr:$SME, I64Attr:$RS, I64Attr:$BAS, StrAttr:$DF,
    DenseI64ArrayAttr:$STile, DenseI64ArrayAttr:$DTile)> {
  let summary = "layout of activations stored to DRAM";
  let description = [{
    * `SME`: 1: channels lie densely in DRAM
    * `RS`: register set written
    * `BAS`: base of DRAM
    * `DF`: element format
    * `STile`: channels, height, width of the tensor in L2
    * `DTile`: channels, height, width of the tensor in DRAM
  }];
}

def Npu_StaMov : Npu_Run<"sta_mov", (ins I64Attr:$RS, I64Attr:$SBSG, I64Attr:$STaddr,
    I64Attr:$DTaddr, DenseI64ArrayAttr:$Tile)> {
  let summary = "activations from L2 to DRAM";
  let description = [{
    * `RS`: register set used
    * `SBSG`: ring region of the source
    * `STaddr`: place in L2
    * `DTaddr`: place in DRAM, from its base
    * `Tile`: batch, channels, height, width moved
  }];
}

def Npu_SiCfg : Npu_Config<"si_cfg", (ins StrAttr:$DF, DenseI64ArrayAttr:$DTile)> {
  let summary = "layout of activations received; this project's definition";
  let description = [{
    * `DF`: element format
    * `DTile`: channels, height, width of the tensor in this core's L2
  }];
}

def Npu_SiMov : Npu_Run<"si_mov", (ins I64Attr:$Core, I64Attr:$Xfer, I64Attr:$DBSG,
    I64Attr:$DTaddr, DenseI64ArrayAttr:$Tile)> {
  let summary = "activations from another core; this project's definition";
  let description = [{
    * `Core`: the core that sends
    * `Xfer`: transfer of the schedule
    * `DBSG`: ring region of the destination
    * `DTaddr`: place in this core's L2
    * `Tile`: batch, channels, height, width moved; all 0 only waits for the other core
  }];
}

def Npu_SoCfg : Npu_Config<"so_cfg", (ins StrAttr:$DF, DenseI64ArrayAttr:$STile)> {
  let summary = "layout of activations sent; this project's definition";
  let description = [{
    * `DF`: element format
    * `STile`: channels, height, width of the tensor in this core's L2
  }];
}

def Npu_SoMov : Npu_Run<"so_mov", (ins I64Attr:$Core, I64Attr:$Xfer, I64Attr:$SBSG,
    I64Attr:$STaddr, DenseI64ArrayAttr:$Tile)> {
  let summary = "activations to another core; this project's definition";
  let description = [{
    * `Core`: the core that receives
    * `Xfer`: transfer of the schedule
    * `SBSG`: ring region of the source
    * `STaddr`: place in this core's L2
    * `Tile`: batch, channels, height, width moved; all 0 only waits for the other core
  }];
}

#endif
