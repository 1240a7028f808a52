"""Evaluates ONNX models in 64 bits: a judge of rounding errors, independent of both irc and ONNX Runtime.

The floats of 16 and 32 bits of a model become `double`, and ONNX's reference implementation evaluates it.
"""
import numpy as np
import onnx
from onnx import TensorProto as T, numpy_helper
from onnx.reference import ReferenceEvaluator

NARROW = (T.FLOAT, T.FLOAT16, T.BFLOAT16)


def evaluate(proto, inputs):
    """The outputs by name, with all floats in 64 bits."""
    wide = onnx.ModelProto()
    wide.CopyFrom(proto)
    widen_graph(wide.graph)
    for function in wide.functions:
        widen_nodes(function.node)
    feeds = {name: value.astype("f8") if getattr(value, "dtype", np.dtype("?")).kind == "f" else value
             for name, value in inputs.items()}
    names = [port.name for port in wide.graph.output]
    with np.errstate(all="ignore"):
        return dict(zip(names, ReferenceEvaluator(wide).run(None, feeds)))


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
