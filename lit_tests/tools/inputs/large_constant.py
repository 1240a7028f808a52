"""Writes an ONNX model with a constant of 16 KiB to the path given."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = numpy.random.default_rng(1).random((64, 64), numpy.float32)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 64])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 64])],
    [numpy_helper.from_array(weight, "w")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, sys.argv[1])
