// Written by `cargo xtask docs` from the rows of the crate `irc-ark-format`; edit those instead.

def Ark_AddOp
    : Ark_Node<"add", "Add: elementwise sum with NumPy broadcasting">;

def Ark_CastOp
    : Ark_Node<"cast", "Cast: conversion of the element type">;

def Ark_CopyOp
    : Ark_Node<"copy", "Copy: copy, possibly broadcasting">;

def Ark_DeviceSyncOp
    : Ark_Node<"device_sync", "DeviceSync: waits for every rank", (ins I64Attr:$peer_num, I64Attr:$rank)>;

def Ark_DivOp
    : Ark_Node<"div", "Div: elementwise quotient with NumPy broadcasting">;

def Ark_EmbeddingOp
    : Ark_Node<"embedding", "Embedding: rows of a table by `INT32` index, where negative ones count from the end">;

def Ark_ExpOp
    : Ark_Node<"exp", "Exp: elementwise exponential">;

def Ark_GeluOp
    : Ark_Node<"gelu", "Gelu: elementwise GELU, tanh approximation">;

def Ark_MatmulOp
    : Ark_Node<"matmul", "Matmul: matrix product, batched over leading dimensions", (ins BoolAttr:$transpose_input, BoolAttr:$transpose_other)>;

def Ark_MulOp
    : Ark_Node<"mul", "Mul: elementwise product with NumPy broadcasting">;

def Ark_NoopOp
    : Ark_Node<"noop", "Noop: keeps the buffer of its operand allocated">;

def Ark_RecvOp
    : Ark_Node<"recv", "Recv: waits for what a peer sends into a local tensor">;

def Ark_RecvPacketOp
    : Ark_Node<"recv_packet", "RecvPacket: receives packets into a local tensor", (ins I64Attr:$flag)>;

def Ark_RecvReduceSendOp
    : Ark_Node<"recv_reduce_send", "RecvReduceSend: reduces what peers wrote, and sends the sum to them", (ins I64Attr:$n_peers, I64Attr:$rank)>;

def Ark_RecvReduceSendPacketOp
    : Ark_Node<"recv_reduce_send_packet", "RecvReduceSendPacket: as `RecvReduceSend`, with packets", (ins I64Attr:$flag, I64Attr:$n_peers, I64Attr:$rank)>;

def Ark_ReduceMaxOp
    : Ark_Node<"reduce_max", "ReduceMax: maximum along one axis", (ins I64Attr:$axis, BoolAttr:$keep_dim)>;

def Ark_ReduceMeanOp
    : Ark_Node<"reduce_mean", "ReduceMean: mean along one axis", (ins I64Attr:$axis, BoolAttr:$keep_dim)>;

def Ark_ReduceSumOp
    : Ark_Node<"reduce_sum", "ReduceSum: sum along one axis", (ins I64Attr:$axis, BoolAttr:$keep_dim)>;

def Ark_ReluOp
    : Ark_Node<"relu", "Relu: elementwise max(x, 0)">;

def Ark_ReshapeOp
    : Ark_Node<"reshape", "Reshape (virtual): registered by ARK, and never written by it">;

def Ark_RopeOp
    : Ark_Node<"rope", "Rope: rotary embedding: adjacent pairs, by interleaved (cos, sin)">;

def Ark_RsqrtOp
    : Ark_Node<"rsqrt", "Rsqrt: elementwise 1 / sqrt(x)">;

def Ark_ScalarAddOp
    : Ark_Node<"scalar_add", "ScalarAdd: adds a constant", (ins F32Attr:$factor)>;

def Ark_ScalarAssignOp
    : Ark_Node<"scalar_assign", "ScalarAssign: fills with a constant", (ins F32Attr:$value)>;

def Ark_ScalarMulOp
    : Ark_Node<"scalar_mul", "ScalarMul: multiplies by a constant", (ins F32Attr:$factor)>;

def Ark_SendOp
    : Ark_Node<"send", "Send: sends a tensor to a buffer of a peer">;

def Ark_SendDoneOp
    : Ark_Node<"send_done", "SendDone: waits until a `Send` has left">;

def Ark_SendPacketOp
    : Ark_Node<"send_packet", "SendPacket: sends a tensor as packets", (ins I64Attr:$flag)>;

def Ark_SigmoidOp
    : Ark_Node<"sigmoid", "Sigmoid: elementwise logistic function">;

def Ark_SqrtOp
    : Ark_Node<"sqrt", "Sqrt: elementwise square root">;

def Ark_SubOp
    : Ark_Node<"sub", "Sub: elementwise difference with NumPy broadcasting">;

def Ark_ViewOp
    : Ark_Node<"view", "Tensor (virtual): a tensor, or a view of one">;

def Ark_TransposeOp
    : Ark_Node<"transpose", "Transpose: permutation of dimensions: dimension `i` is `Permutation[i]` of the operand", (ins DenseI64ArrayAttr:$permutation)>;
