"""Writes transposed convolutions, transposed.onnx with windows that overlap and doubled.onnx without, and a product whose rows are open, rows.onnx, with samples of its
input, rows_samples.npz, and an input, rows.npz, to a folder; of doubled.onnx as well."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = numpy.random.default_rng(0)


def save(name, node, shape, result, weights):
    value = helper.make_tensor_value_info
    own = [numpy_helper.from_array(random.normal(0, 0.3, weights).astype("f4"), "w")]
    inputs, outputs = [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, result)]
    graph = helper.make_graph([node], "net", inputs, outputs, own)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{folder}/{name}.onnx")


up = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "up", strides=[2, 2])
save("transposed", up, [1, 4, 8, 8], [1, 4, 17, 17], (4, 4, 3, 3))
save("doubled", up, [1, 4, 8, 8], [1, 4, 16, 16], (4, 4, 2, 2))
save("rows", helper.make_node("MatMul", ["x", "w"], ["y"], "product"), ["N", 8], ["N", 4], (8, 4))
numpy.savez(f"{folder}/rows_samples.npz", x=random.normal(0, 1, (12, 8)).astype("f4"))
numpy.savez(f"{folder}/rows.npz", x=random.normal(0, 1, (3, 8)).astype("f4"))
numpy.savez(f"{folder}/doubled_samples.npz", x=random.normal(0, 1, (5, 4, 8, 8)).astype("f4"))
numpy.savez(f"{folder}/doubled.npz", x=random.normal(0, 1, (1, 4, 8, 8)).astype("f4"))
