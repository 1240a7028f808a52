"""Writes quantised networks of which the NPU computes only parts to a folder: partly.onnx, whose middle is a softmax over
rows and whose end is one over classes, and host.onnx, of which it computes nothing; inner.onnx, an output of which another
layer reads; strided.onnx, which pads only the first column and leaves out the last one; groups.onnx, whose groups are not whole words
of channels; tall.onnx, whose windows have one column; turned.onnx, which exchanges rows and columns; many.onnx, of
more images than a batch has; margin.onnx, with more padding than a part of a core; depth.onnx, a product whose depth is no
multiple of 4; attention.onnx, whose softmax is between two products of results; a network of f32, floats.onnx, with samples; unnamed.onnx, whose nodes have no names, with an output that is
its input."""

import sys

import numpy
import qdq
from onnx import helper
from qdq import constant, node, nodes, random, weights

folder = sys.argv[1]


def quantised(x, scale, zero=128):
    return qdq.quantised(x, scale, numpy.uint8(zero))


def conv(x, name, channels, width, groups=1):
    kernel = weights(name + "_w", channels, width, 3, 3)
    return node("Conv", [x, kernel], name, pads=[1] * 4, group=groups)


def save(name, images=1, **results):
    qdq.save(f"{folder}/{name}.onnx", {"x": [images, 3, 8, 8]}, results)


first = quantised(node("Relu", [conv(quantised("x", 0.02), "first", 8, 3)], "a"), 0.03, 0)
# The host computes the first, and its result and an input of it are read again on the NPU.
soft = quantised(node("Softmax", [first], "soft", axis=2), 0.004, 0)
second = quantised(conv(soft, "second", 8, 8), 0.05)
total = quantised(node("Add", [second, first], "total"), 0.05)
running = node("CumSum", [total, constant("axis", numpy.int64(3))], "running")
third = quantised(conv(quantised(running, 0.2), "third", 8, 8), 0.3)
flat = node("Flatten", [third], "flat")
scores = quantised(node("MatMul", [flat, weights("last_w", 512, 10)], "scores"), 2.0)
small = node("Mul", [scores, constant("factor", numpy.float32(0.02))], "small")
node("Softmax", [small], "y", axis=1)
save("partly", y=[1, 10])
node("CumSum", ["x", "axis"], "y")
save("host", y=[1, 3, 8, 8])
inner = quantised(node("Relu", [conv(quantised("x", 0.02), "outer", 8, 3)], "a"), 0.03, 0)
quantised(conv(inner, "inner", 8, 8), 0.05)
nodes[-1].output[0] = "b_dq"
save("inner", a_dq=[1, 8, 8, 8], b_dq=[1, 8, 8, 8])

strided = node(
    "Conv",
    [quantised("x", 0.02), weights("strided_w", 8, 3, 1, 2)],
    "strided",
    pads=[0, 1, 0, 0],
    strides=[1, 3],
)
quantised(strided, 0.05)
save("strided", strided_dq=[1, 8, 8, 3])

# Groups of 5 channels to 2, 5 to 3, and 2 to 9, which share words only after 72 channels.
value, width = quantised(conv(quantised("x", 0.02), "wide", 25, 3), 0.05), 25
for groups, outputs in [(5, 2), (2, 3), (3, 9)]:
    name, inputs = f"by_{groups}", width // groups
    width = groups * outputs
    value = quantised(conv(value, name, width, inputs, groups), 0.1)
save("groups", by_3_dq=[1, 27, 8, 8])

# A window of one column, and an exchange of rows and columns.
value = quantised(conv(quantised("x", 0.02), "tall", 8, 3), 0.05)
quantised(node("MaxPool", [value], "pooled", kernel_shape=[5, 1]), 0.05)
save("tall", pooled_dq=[1, 8, 4, 8])
value = quantised(conv(quantised("x", 0.02), "straight", 8, 3), 0.05)
value = quantised(node("Transpose", [value], "turn", perm=[0, 1, 3, 2]), 0.05)
quantised(conv(value, "turned", 8, 8), 0.05)
save("turned", turned_dq=[1, 8, 8, 8])
# Cores of which some read padding only.
value = quantised(conv(quantised("x", 0.02), "before", 8, 3), 0.05)
pads = constant("pads", numpy.int64([0, 0, 0, 0, 0, 0, 5, 5]))
value = quantised(node("Pad", [value, pads], "pad"), 0.05)
value = node("Conv", [value, weights("after_w", 8, 8, 3, 3)], "after")
quantised(value, 0.05)
save("margin", after_dq=[1, 8, 11, 11])
quantised(conv(quantised("x", 0.02), "each", 8, 3), 0.05)
save("many", 1025, each_dq=[1025, 8, 8, 8])
# A product of 10 elements, which processors multiply in fours.
quantised(node("MatMul", [quantised("x", 0.02), weights("depth_w", 10, 7)], "depth"), 0.2)
qdq.save(f"{folder}/depth.onnx", {"x": [1, 10]}, {"depth_dq": [1, 7]})

# The second product of two heads has as its weights what the NPU computes before the softmax.
heads = {}
rows = qdq.quantised("x", 0.02, numpy.int8(0))
for name, perm in {"q": [0, 2, 1, 3], "k": [0, 2, 3, 1], "v": [0, 2, 1, 3]}.items():
    own = qdq.quantised(node("MatMul", [rows, weights(name + "_w", 12, 12)], name), 0.05, numpy.int8(0))
    own = node("Reshape", [own, constant("by_head", numpy.int64([1, 10, 2, 6]))], name + "_heads")
    heads[name] = node("Transpose", [own], name + "_moved", perm=perm)
scores = qdq.quantised(node("MatMul", [heads["q"], heads["k"]], "product"), 0.2, numpy.int8(0))
soft = qdq.quantised(node("Softmax", [scores], "shares", axis=-1), 0.008, numpy.int8(0))
qdq.quantised(node("MatMul", [soft, heads["v"]], "mixed"), 0.05, numpy.int8(0))
qdq.save(f"{folder}/attention.onnx", {"x": [1, 10, 12]}, {"mixed_dq": [1, 2, 10, 6]})


def floats(name, *shape):
    return constant(name, random.normal(0, 0.2, shape).astype("f4"))


node("Conv", ["x", floats("f_w", 8, 3, 3, 3)], "f", pads=[1] * 4)
node("Softmax", ["f"], "s", axis=2)
node("Conv", ["s", floats("g_w", 8, 8, 3, 3)], "y", pads=[1] * 4)
save("floats", y=[1, 8, 8, 8])
for kind, reads, end, attributes in [
    ("Conv", ["x", floats("f_w", 8, 3, 3, 3)], "f", {"pads": [1] * 4}),
    ("Softmax", ["f"], "s", {"axis": 2}),
    ("Softmax", ["s"], "t", {"axis": 2}),
    ("Conv", ["t", floats("g_w", 8, 8, 3, 3)], "y", {"pads": [1] * 4}),
    ("Identity", ["x"], "same", {}),
]:
    nodes.append(helper.make_node(kind, reads, [end], **attributes))
save("unnamed", y=[1, 8, 8, 8], same=[1, 3, 8, 8])
numpy.savez(f"{folder}/samples.npz", x=random.normal(0, 1, (8, 3, 8, 8)).astype("f4"))
