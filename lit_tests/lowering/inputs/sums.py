"""Writes sums of rows of f32 to a folder, for rows of several lengths: sums.onnx, of given values; values.onnx, functions of
bytes; and fused.onnx, the sums of these functions, which are fused with them."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
LENGTHS = [7, 24, 100, 1000]
value = helper.make_tensor_value_info
constants = [numpy_helper.from_array(numpy.float32(0.03), "scale"), numpy_helper.from_array(numpy.uint8(121), "zero")]


def save(name, nodes, inputs, outputs):
    graph = helper.make_graph(nodes, name, inputs, outputs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), f"{folder}/{name}.onnx")


def functions(n):
    """Of few operations and of many."""
    return [
        helper.make_node("DequantizeLinear", [f"q{n}", "scale", "zero"], [f"few{n}"]),
        helper.make_node("Sigmoid", [f"few{n}"], [f"half{n}"]),
        helper.make_node("Tanh", [f"half{n}"], [f"many{n}"]),
    ]


def sums(n):
    kinds = [("few", "ReduceMean"), ("few", "ReduceSumSquare"), ("many", "ReduceSum"), ("many", "Softmax")]
    nodes = []
    for of, kind in kinds:
        result = f"{kind}_{of}{n}"
        if kind == "Softmax":
            nodes.append(helper.make_node(kind, [f"{of}{n}"], [result], axis=-1))
            continue
        axes = numpy_helper.from_array(numpy.array([1]), f"axes_{result}")
        constants.append(axes)
        nodes.append(helper.make_node(kind, [f"{of}{n}", axes.name], [result], keepdims=1))
    return nodes


def ports(names, kind, n=None):
    return [value(name, kind, n and [3, n]) for name in names]


makes, adds, bytes_in, floats_in, made, found = [], [], [], [], [], []
random = numpy.random.default_rng(0)
q = {}
for n in LENGTHS:
    makes += functions(n)
    adds += sums(n)
    bytes_in += ports([f"q{n}"], TensorProto.UINT8, n)
    floats_in += ports([f"few{n}", f"many{n}"], TensorProto.FLOAT, n)
    q[f"q{n}"] = random.integers(0, 256, (3, n)).astype("u1")
found = ports([node.output[0] for node in adds], TensorProto.FLOAT)
every = constants.copy()
constants[:] = every[:2]
save("values", makes, bytes_in, floats_in)
constants[:] = every[2:]
save("sums", adds, floats_in, found)
constants[:] = every
save("fused", makes + adds, bytes_in, found)
numpy.savez(f"{folder}/q.npz", **q)
