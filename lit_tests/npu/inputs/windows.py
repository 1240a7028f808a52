"""Writes networks of f32 and their samples to a folder: sparse.onnx, whose pools have larger strides than windows;
outside.onnx, whose first windows read padding only; gate.onnx, which multiplies one channel by one result; maxima.onnx, with
maxima over columns and over all; and open.onnx, with an open number of rows. wrong_name.npz, wrong_shape.npz, wrong_type.npz and nothing.npz have no samples of them."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = numpy.random.default_rng(0)


def conv(x, name, channels, width, kernel=3, padding=None):
    weights = random.normal(size=(channels, width, kernel, kernel)).astype("f4") * 0.2
    constants.append(numpy_helper.from_array(weights, name + "_w"))
    nodes.append(helper.make_node("Conv", [x, name + "_w"], [name], name, pads=[kernel // 2 if padding is None else padding] * 4))
    return name


def node(kind, inputs, name, **attributes):
    nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
    return name


def save(name, rows=14):
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, [1, 4, rows, 14])]
    outputs = [value(nodes[-1].output[0], TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "net", inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/{name}.onnx")
    nodes.clear()
    constants.clear()


nodes, constants = [], []
largest = node("MaxPool", [conv("x", "first", 8, 4)], "largest", kernel_shape=[1, 2], strides=[2, 3])
node("AveragePool", [conv(largest, "second", 8, 8)], "mean", kernel_shape=[2, 1], strides=[3, 2])
save("sparse")

conv(conv("x", "around", 8, 4, 1, 1), "after", 8, 8)
save("outside")

factor = node("Sigmoid", [conv(node("GlobalAveragePool", ["x"], "average"), "small", 1, 4, 1)], "factor")
node("Mul", [conv("x", "one", 1, 4), factor], "product")
save("gate")

columns = node("ReduceMax", [conv("x", "before", 8, 4)], "columns", axes=[-1])
node("GlobalMaxPool", [conv(columns, "between", 8, 8, 1)], "largest")
save("maxima")

conv("x", "rows", 8, 4)
save("open", "H")

samples = random.normal(size=(2, 4, 14, 14)).astype("f4")
numpy.savez(f"{folder}/samples.npz", x=samples)
numpy.savez(f"{folder}/x.npz", x=samples[:1])
numpy.savez(f"{folder}/wrong_name.npz", z=samples)
numpy.savez(f"{folder}/wrong_shape.npz", x=samples[:, 1:])
numpy.savez(f"{folder}/wrong_type.npz", x=samples.astype("f8"))
numpy.savez(f"{folder}/nothing.npz")
