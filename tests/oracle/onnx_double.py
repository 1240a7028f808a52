"""Evaluates ONNX models in 64 bits: a judge of rounding errors, independent of both irc and ONNX Runtime.

The floats of 16 and 32 bits of a model become `double`, and ONNX's reference implementation evaluates it, with
some operators of ONNX Runtime that it lacks.
"""
import numpy as np
import onnx
from onnx import TensorProto as T, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

NARROW = (T.FLOAT, T.FLOAT16, T.BFLOAT16)


def evaluate(proto, inputs):
    """The outputs by name, with all floats in 64 bits."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    for opset in wide.opset_import:
        opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    sort(wide.graph)
    widen_graph(wide.graph)
    for function in wide.functions:
        widen_nodes(function.node)
    feeds = {name: value.astype("f8") if getattr(value, "dtype", np.dtype("?")).kind == "f" else value
             for name, value in inputs.items()}
    names = [port.name for port in wide.graph.output]
    with np.errstate(all="ignore"):
        return dict(zip(names, ReferenceEvaluator(wide, new_ops=OPERATORS).run(None, feeds)))


def sort(graph):
    """Orders nodes after those that compute their inputs, as the reference implementation expects."""
    makers = {name: node for node in graph.node for name in node.output}
    done, order = set(), []

    def place(node):
        pending = [node]
        while pending:
            last = pending[-1]
            missing = [makers[name] for name in last.input if name in makers and makers[name].output[0] not in done]
            if not missing:
                pending.pop()
                if last.output[0] not in done:
                    done.add(last.output[0])
                    order.append(last)
            pending += missing

    for node in graph.node:
        place(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in order]
    del graph.node[:]
    graph.node.extend(copies)


def widen_graph(graph):
    for port in (*graph.input, *graph.output, *graph.value_info):
        if port.type.tensor_type.elem_type in NARROW:
            port.type.tensor_type.elem_type = T.DOUBLE
    for tensor in graph.initializer:
        widen_tensor(tensor)
    widen_nodes(graph.node)


def widen_nodes(nodes):
    for node in nodes:
        for item in node.attribute:
            if item.HasField("g"):
                widen_graph(item.g)
            if item.HasField("t"):
                widen_tensor(item.t)
            if item.name in ("to", "dtype") and item.i in NARROW:
                item.i = T.DOUBLE
            if node.op_type == "Constant" and item.name in ("value_float", "value_floats"):
                values = item.f if item.name == "value_float" else list(item.floats)
                item.Clear()
                item.name, item.type = "value", onnx.AttributeProto.TENSOR
                item.t.CopyFrom(numpy_helper.from_array(np.array(values, "f8")))


def widen_tensor(tensor):
    if tensor.data_type in NARROW:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype("f8"), tensor.name))


def normalised(x, epsilon, scale, shift):
    """`x` with mean 0 and variance 1 along the last axis, scaled and shifted."""
    centred = x - x.mean(-1, keepdims=True)
    normal = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + np.float32(epsilon)) * scale
    return normal if shift is None else normal + shift


class SkipLayerNormalization(OpRun):
    op_domain = "com.microsoft"

    def _run(self, x, skip, scale, shift=None, bias=None, epsilon=1e-12):
        total = x + skip + (0 if bias is None else bias)
        none = np.zeros(1)
        return (normalised(total, epsilon, scale, shift), none, none, total)[:len(self.onnx_node.output)]


class EmbedLayerNormalization(OpRun):
    op_domain = "com.microsoft"

    def _run(self, ids, segments, words, places, kinds, scale, shift, mask=None, positions=None, epsilon=1e-12,
             mask_index_type=0):
        positions = np.arange(ids.shape[1]) if positions is None else positions
        total = words[ids] + places[positions] + (0 if segments is None else kinds[segments])
        count = np.zeros(len(ids), np.int32) if mask is None else mask.sum(1)
        return (normalised(total, epsilon, scale, shift), count, total)[:len(self.onnx_node.output)]


class Attention(OpRun):
    """Without a mask, or with one of batch and keys."""
    op_domain = "com.microsoft"

    def _run(self, x, weight, bias, mask=None, past=None, num_heads=1, unidirectional=0, **others):
        batch, length, _ = x.shape
        heads = (x @ weight + bias).reshape(batch, length, 3, num_heads, -1).transpose(2, 0, 3, 1, 4)
        q, k, v = heads
        if past is not None:
            k, v = np.concatenate([past[0], k], 2), np.concatenate([past[1], v], 2)
        scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
        if mask is not None:
            if mask.ndim != 2:
                raise NotImplementedError("masks")
            scores = scores + np.where(mask == 0, -10000, 0)[:, None, None]
        if unidirectional:
            late = np.arange(k.shape[2]) > np.arange(length)[:, None] + k.shape[2] - length
            scores = np.where(late, -np.inf, scores)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        result = powers / powers.sum(-1, keepdims=True) @ v
        result = result.transpose(0, 2, 1, 3).reshape(batch, length, -1)
        return (result, np.stack([k, v]))[:len(self.onnx_node.output)]


class ImageScaler(OpRun):
    op_domain = ""

    def _run(self, x, bias=None, scale=1.0):
        return (x * np.float32(scale) + np.array(bias).reshape(-1, 1, 1),)


class Affine(OpRun):
    op_domain = ""

    def _run(self, x, alpha=1.0, beta=0.0):
        return (x * np.float32(alpha) + np.float32(beta),)


class Crop(OpRun):
    op_domain = ""

    def _run(self, x, border=None, scale=None):
        left, top, right, bottom = border
        height, width = scale if scale else (x.shape[2] - top - bottom, x.shape[3] - left - right)
        return (x[:, :, top:top + height, left:left + width],)


OPERATORS = [SkipLayerNormalization, EmbedLayerNormalization, Attention, ImageScaler, Affine, Crop]
