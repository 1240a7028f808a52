"""An ONNX model as a torch module, for torch.compile: the operators of networks.py, with static sizes."""
import numpy as np
import onnx
import torch
import torch.nn.functional as functional
from onnx import numpy_helper

CASTS = {onnx.TensorProto.FLOAT: torch.float32, onnx.TensorProto.INT64: torch.int64, onnx.TensorProto.BOOL: torch.bool}


def conv(x, w, bias=None, *, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0), group=1, dilations=(1, 1)):
    top, left, bottom, right = pads
    if (top, left) != (bottom, right):
        x, top, left = functional.pad(x, (left, right, top, bottom)), 0, 0
    return functional.conv2d(x, w, bias, tuple(strides), (top, left), tuple(dilations), group)


def max_pool(x, *, kernel_shape, strides=(1, 1), pads=(0, 0, 0, 0)):
    return functional.max_pool2d(x, tuple(kernel_shape), tuple(strides), tuple(pads[:2]))


def gemm(a, b, c=None, *, transA=0, transB=0, alpha=1.0, beta=1.0):
    product = (a.t() if transA else a) @ (b.t() if transB else b) * alpha
    return product if c is None else product + beta * c


def clip(x, low=None, high=None):
    return torch.clamp(x, low, high)


def mean(x, *, axes, keepdims=1):
    return x.mean(tuple(axes), keepdim=bool(keepdims))


def layer_norm(x, scale, bias=None, *, axis=-1, epsilon=1e-5):
    return functional.layer_norm(x, scale.shape, scale, bias, epsilon)


# Operators whose operands are all tensors, with attributes as keywords.
TENSORS = {
    "Abs": torch.abs, "Add": torch.add, "Clip": clip, "Conv": conv, "Div": torch.div, "Erf": torch.erf, "Gemm": gemm,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True), "LayerNormalization": layer_norm, "MatMul": torch.matmul,
    "Max": torch.maximum, "MaxPool": max_pool, "Mul": torch.mul, "Neg": torch.neg, "ReduceMean": mean, "Relu": torch.relu,
    "Sigmoid": torch.sigmoid, "Softmax": lambda x, *, axis=-1: torch.softmax(x, axis), "Sqrt": torch.sqrt,
    "Sub": torch.sub, "Tanh": torch.tanh, "Cast": lambda x, *, to: x.to(CASTS[to]),
    "Concat": lambda *parts, axis: torch.cat(parts, axis), "Transpose": lambda x, *, perm: x.permute(perm),
    "Flatten": lambda x, *, axis=1: x.flatten(axis),
    "Gather": lambda x, at, *, axis=0: functional.embedding(at, x) if axis == 0 else x.select(axis, int(at)),
}
# Operators whose second operand is a constant list of integers.
LISTS = {
    "Reshape": lambda x, sizes: x.reshape(sizes),
    "Split": lambda x, sizes, *, axis=0: torch.split(x, sizes, axis),
    "Unsqueeze": lambda x, axes: unsqueeze(x, axes),
}


def unsqueeze(x, axes):
    for axis in sorted(axes):
        x = x.unsqueeze(axis)
    return x


class Graph(torch.nn.Module):
    """Takes and returns tensors by name and in order."""

    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        self.constants, steps = {}, []
        for weight in graph.initializer:
            values = np.array(numpy_helper.to_array(weight))
            self.constants[weight.name] = torch.from_numpy(values)
        for node in graph.node:
            if node.op_type not in TENSORS and node.op_type not in LISTS:
                raise NotImplementedError(f"no operator {node.op_type}")
            attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
            steps.append((node.op_type, list(node.input), list(node.output), attributes))
        self.steps, self.results = steps, [port.name for port in graph.output]
        self.lists = {name: values.tolist() for name, values in self.constants.items()
                      if values.dtype == torch.int64 and values.numel() < 16}
        self.scalars = {name: values.item() for name, values in self.constants.items() if values.numel() == 1}
        for name, values in self.constants.items():
            if name not in self.lists:
                self.register_buffer(f"weight_{name}", values)

    def forward(self, inputs):
        known = {name: getattr(self, f"weight_{name}") for name in self.constants if name not in self.lists}
        known.update(inputs)
        for op, operands, results, attributes in self.steps:
            if op in LISTS:
                found = LISTS[op](known[operands[0]], self.lists[operands[1]], **attributes)
            elif op == "Clip":
                found = clip(known[operands[0]], *(self.scalars[name] for name in operands[1:]))
            elif op == "Gather" and operands[1] in self.lists:
                found = known[operands[0]].select(attributes["axis"], self.lists[operands[1]])
            else:
                found = TENSORS[op](*(known[name] for name in operands if name), **attributes)
            if len(results) == 1 and not isinstance(found, torch.Tensor):
                found = found[0]
            known.update(zip(results, found if len(results) > 1 else [found]))
        return [known[name] for name in self.results]
