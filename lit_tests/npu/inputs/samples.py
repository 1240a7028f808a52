"""Writes a small network of f32 to a folder, net.onnx, one whose windows leave rows unused, unused.onnx, and one with
concatenations, padded means, functions and factors of channels, blocks.onnx; with an input, x.npz, and samples of it, right
and wrong."""

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



def point(x, output, channels, width):
    return node("Conv", [x, constant(output + "_w", 0.5, channels, width, 1, 1)], output)


def ints(name, *values):
    constants.append(numpy_helper.from_array(numpy.array(values), name))
    return name


blocks = [
    conv("x", "b1", 8, 3, strides=[2, 2]),
    node("Sigmoid", ["b1"], "b2"),
    node("Mul", ["b1", "b2"], "b3"),
    node("AveragePool", ["b3"], "b4", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=0),
    node("AveragePool", ["b3"], "b5", kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1),
    point("b3", "b6", 8, 8),
    node("Concat", ["b6", "b4", "b5"], "b7", axis=1),
    node("BatchNormalization", ["b7", constant("n1", 0.5, 24), constant("n2", 0.2, 24), constant("n3", 0.2, 24), "n4"], "b8"),
    node("Relu", ["b8"], "b9"),
    node("Reshape", ["b9", ints("five", 1, 4, 6, 8, 8)], "b10"),
    node("Transpose", ["b10"], "b11", perm=[0, 2, 1, 3, 4]),
    node("Reshape", ["b11", ints("four", 1, 24, 8, 8)], "b12"),
    conv("b12", "b13", 24, 1, group=24),
    node("GlobalAveragePool", ["b13"], "b14"),
    point("b14", "b15", 24, 24),
    node("HardSigmoid", ["b15"], "b16"),
    node("Mul", ["b13", "b16"], "b17"),
    node("Add", ["b17", "b7"], "b18"),
    node("Pad", ["b18", ints("pads", 0, 0, 1, 0, 0, 0, 1, 2)], "b19"),
    node("LeakyRelu", ["b19"], "b20"),
    node("MaxPool", ["b20"], "b21", kernel_shape=[2, 2], strides=[2, 2]),
    node("GlobalAveragePool", ["b21"], "b22"),
    node("Flatten", ["b22"], "b23"),
    node("Gemm", ["b23", constant("end_w", 0.3, 10, 24)], "y", transB=1),
]
constants.append(numpy_helper.from_array(random.uniform(0.5, 1.5, 24).astype("f4"), "n4"))
save("blocks", blocks, [1, 10])

samples = random.normal(0, 1, (16, 3, 16, 16)).astype("f4")
wrong = samples[:2].copy()
wrong[1, 0, 0, 0] = numpy.nan
numpy.savez(f"{folder}/samples.npz", x=samples)
numpy.savez(f"{folder}/x.npz", x=samples[:1])
numpy.savez(f"{folder}/nan.npz", x=wrong)
numpy.savez(f"{folder}/zeros.npz", x=0 * samples[:2])
numpy.savez(f"{folder}/nan_input.npz", x=wrong[1:])
numpy.savez(f"{folder}/none.npz")
numpy.savez(f"{folder}/named.npz", picture=samples)
numpy.savez(f"{folder}/small.npz", x=samples[:4, :, :8])
numpy.savez(f"{folder}/empty.npz", x=samples[:0])
