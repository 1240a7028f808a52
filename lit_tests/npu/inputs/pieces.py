"""Writes quantised networks whose layers fit the buffers of small cores only in pieces to a folder: wide.onnx, with a product of
many channels after a convolution; slices.onnx, of whose layers pieces read some channels of the inputs."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = numpy.random.default_rng(0)
constants, nodes = {}, []


def constant(name, values):
    constants[name] = numpy_helper.from_array(values, name)
    return name


def node(kind, inputs, output, **attributes):
    nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
    return output


def quantised(x, scale):
    """A value as bytes and back."""
    parameters = [constant(x + "_scale", numpy.float32(scale)), constant(x + "_zero", numpy.int8(5))]
    return node("DequantizeLinear", [node("QuantizeLinear", [x, *parameters], x + "_q"), *parameters], x + "_dq")


def weights(name, *shape):
    values = random.integers(-127, 128, shape).astype("i1")
    parameters = [constant(name + "_scale", numpy.float32(0.01)), constant(name + "_zero", numpy.int8(0))]
    return node("DequantizeLinear", [constant(name, values), *parameters], name + "_dq")


def save(name, inputs, **results):
    value = helper.make_tensor_value_info
    own = [constants[key] for key in constants if any(key in node.input for node in nodes)]
    outputs = [value(end, TensorProto.FLOAT, shape) for end, shape in results.items()]
    read = [value(start, TensorProto.FLOAT, shape) for start, shape in inputs.items()]
    graph = helper.make_graph(nodes, "net", read, outputs, own)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, f"{folder}/{name}.onnx")
    nodes.clear()


conv = node("Conv", [quantised("x", 0.02), weights("conv_w", 48, 8, 3, 3)], "conv", pads=[1] * 4)
flat = node("Flatten", [quantised(conv, 0.1)], "flat")
scores = node("MatMul", [flat, weights("scores_w", 48 * 16, 300)], "scores")
quantised(scores, 2.0)
save("wide", {"x": [1, 8, 4, 4]}, scores_dq=[1, 300])

a, b = quantised("a", 0.02), quantised("b", 0.03)
pooled = quantised(node("MaxPool", [a], "pooled", kernel_shape=[2, 2], strides=[2, 2]), 0.02)
both = quantised(node("Add", [pooled, b], "both"), 0.04)
depthwise = node("Conv", [both, weights("depthwise_w", 96, 1, 3, 3)], "depthwise", pads=[1] * 4, group=96)
after = quantised(node("Relu", [quantised(depthwise, 0.05)], "after"), 0.04)
total = quantised(node("Add", [after, b], "total"), 0.05)
node("Concat", [total, both], "y", axis=1)
save("slices", {"a": [1, 96, 32, 32], "b": [1, 96, 16, 16]}, y=[1, 192, 16, 16])
