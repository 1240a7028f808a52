"""Writes a small network of f32 to a folder, net.onnx, and one whose windows leave rows unused, unused.onnx, with an input,
x.npz, and samples of it, right and wrong."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = numpy.random.default_rng(0)
constants = []


def constant(name, deviation, *shape):
    values = random.normal(0, deviation, shape).astype("f4")
    constants.append(numpy_helper.from_array(values, name))
    return name


def node(kind, inputs, output, **attributes):
    return helper.make_node(kind, inputs, [output], output, **attributes)


def conv(x, output, channels, width, **attributes):
    inputs = [x, constant(output + "_w", 0.2, channels, width, 3, 3), constant(output + "_b", 0.1, channels)]
    return node("Conv", inputs, output, pads=[1] * 4, **attributes)


norm = [constant("scale", 0.3, 8), constant("shift", 0.1, 8), constant("mean", 0.1, 8)]
constants.append(numpy_helper.from_array(random.uniform(0.5, 1.5, 8).astype("f4"), "variance"))
constants.append(numpy_helper.from_array(numpy.float32(0), "zero"))
constants.append(numpy_helper.from_array(numpy.float32(6), "six"))
nodes = [
    conv("x", "first", 8, 3),
    node("Relu", ["first"], "a"),
    node("MaxPool", ["a"], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    conv("pool", "second", 8, 8),
    node("BatchNormalization", ["second", *norm, "variance"], "normal"),
    node("Add", ["normal", "pool"], "sum"),
    node("Relu", ["sum"], "b"),
    conv("b", "each", 8, 1, group=8),
    node("Clip", ["each", "zero", "six"], "c"),
    node("GlobalAveragePool", ["c"], "means"),
    node("Flatten", ["means"], "flat"),
    node("Gemm", ["flat", constant("last_w", 0.3, 10, 8), constant("last_b", 0.1, 10)], "y", transB=1),
]


def save(name, nodes, shape):
    value = helper.make_tensor_value_info
    used = [own for own in constants if any(own.name in node.input for node in nodes)]
    inputs, outputs = [value("x", TensorProto.FLOAT, [1, 3, 16, 16])], [value("y", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "net", inputs, outputs, used)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{folder}/{name}.onnx")


save("net", nodes, [1, 10])
unused = [
    node("Conv", ["x", constant("wide_w", 0.2, 8, 3, 3, 3)], "wide", strides=[2, 2]),
    node("Relu", ["wide"], "r"),
    node("MaxPool", ["r"], "y", kernel_shape=[2, 2], strides=[2, 2]),
]
save("unused", unused, [1, 8, 3, 3])

samples = random.normal(0, 1, (16, 3, 16, 16)).astype("f4")
wrong = samples[:2].copy()
wrong[1, 0, 0, 0] = numpy.nan
numpy.savez(f"{folder}/samples.npz", x=samples)
numpy.savez(f"{folder}/x.npz", x=samples[:1])
numpy.savez(f"{folder}/nan.npz", x=wrong)
numpy.savez(f"{folder}/none.npz")
numpy.savez(f"{folder}/named.npz", picture=samples)
numpy.savez(f"{folder}/small.npz", x=samples[:4, :, :8])
numpy.savez(f"{folder}/empty.npz", x=samples[:0])
