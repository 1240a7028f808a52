"""Writes quantised networks whose layers fit the buffers of small cores only in pieces to a folder: wide.onnx, with a product of
many channels after a convolution; slices.onnx, of whose layers pieces read some channels of the inputs."""

import sys

import numpy
import qdq
from qdq import node, weights

folder = sys.argv[1]


def quantised(x, scale):
    return qdq.quantised(x, scale, numpy.int8(5))


def save(name, inputs, **results):
    qdq.save(f"{folder}/{name}.onnx", inputs, results)


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
