#!/usr/bin/env python3
"""Writes nine small models with inputs and what comes of them, to compile to archives and check.

    models.py FOLDER [NAME ...]

Of each, FOLDER gets NAME.onnx, or NAME.model.json of the one for ARK, NAME.inputs.npz and
NAME.outputs.npz, which check_archive.py takes:

    mlp         three layers of Gemm, Softmax
    cnn         convolutions, BatchNormalization, pooling, and a classifier; two outputs
    lstm        LSTM along 12 steps, all its outputs
    attention   self-attention of four heads
    resnet18    ResNet-18 of 8 to 64 channels on 32x32 pixels, BatchNormalization and all
    mobilenet   inverted residuals of MobileNetV2 on 32x32 pixels, depthwise convolutions
    bert_layer  an encoder layer: attention with a mask, LayerNormalization, GELU by Erf
    open_sizes  dimensions N and S without a size: a layer, Tanh, Softmax along S; two outputs
    ffn         examples/ffn.model.json

Weights and inputs are drawn with the name as a seed, weights scaled by what they sum over, so that
values stay near one. Outputs are ONNX Runtime's, without rewriting the graph; of ffn numpy's
(tests/oracle/ark_numpy.py), every buffer that is written.
"""
import pathlib
import shutil
import subprocess
import sys
import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

F = np.float32
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Model:
    """A graph that grows node by node. Values are named by the op that makes them."""

    def __init__(self, name):
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def input(self, name, *shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def output(self, value, *shape):
        self.outputs.append(helper.make_tensor_value_info(value, TensorProto.FLOAT, shape))

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape, terms):
        return self.constant((self.random.standard_normal(shape) / np.sqrt(terms)).astype(F))

    def vector(self, size, around=0.0):
        return self.constant((self.random.standard_normal(size) / 8 + around).astype(F))

    def op(self, kind, *operands, results=1, **attributes):
        made = [f"{kind.lower()}{len(self.nodes)}{'abc'[index] if results > 1 else ''}" for index in range(results)]
        self.nodes.append(helper.make_node(kind, operands, made, **attributes))
        return made[0] if results == 1 else made

    def linear(self, x, terms, size):
        return self.op("Add", self.op("MatMul", x, self.weight(terms, size, terms=terms)), self.vector(size))

    def conv(self, x, before, after, kernel=3, stride=1, groups=1):
        terms = before // groups * kernel * kernel
        shape = after, before // groups, kernel, kernel
        return self.op("Conv", x, self.weight(*shape, terms=terms / 2), kernel_shape=[kernel] * 2,
                       strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups)

    def norm(self, x, size):
        """BatchNormalization by statistics that are known."""
        spread = self.constant(self.random.uniform(0.5, 1.5, size).astype(F))
        return self.op("BatchNormalization", x, self.vector(size, 1.0), self.vector(size), self.vector(size), spread)

    def classifier(self, x, before, after):
        flat = self.op("Flatten", self.op("GlobalAveragePool", x), axis=1)
        return self.op("Gemm", flat, self.weight(after, before, terms=before), self.vector(after), transB=1)

    def proto(self, name):
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model, full_check=True)
        return model


def mlp(model):
    x = model.input("x", 2, 24)
    for before, after in ((24, 48), (48, 32), (32, 10)):
        x = model.op("Gemm", x, model.weight(before, after, terms=before), model.vector(after))
        x = model.op("Relu", x) if after != 10 else model.op("Softmax", x, axis=-1)
    model.output(x, 2, 10)


def cnn(model):
    x = model.op("Relu", model.norm(model.conv(model.input("image", 1, 3, 16, 16), 3, 8), 8))
    x = model.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = model.op("Relu", model.op("Add", model.conv(x, 8, 16), model.vector((1, 16, 1, 1))))
    pooled = model.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])
    flat = model.op("Flatten", pooled, axis=1)
    model.output(model.op("Gemm", flat, model.weight(256, 10, terms=256), model.vector(10)), 1, 10)
    model.output(x, 1, 16, 8, 8)


def lstm(model):
    steps, batch, size, hidden = 12, 2, 16, 24
    x = model.input("x", steps, batch, size)
    weights = [model.weight(1, 4 * hidden, terms, terms=terms) for terms in (size, hidden)]
    y, last, cell = model.op("LSTM", x, *weights, model.vector((1, 8 * hidden)), results=3, hidden_size=hidden)
    model.output(y, steps, 1, batch, hidden)
    model.output(last, 1, batch, hidden)
    model.output(cell, 1, batch, hidden)


def attend(model, x, rows, size, heads, mask=None):
    """Self-attention of [1, rows, size]; the mask is added to what Softmax takes."""
    each = size // heads
    split = lambda value: model.op("Reshape", value, model.constant(np.array([1, rows, heads, each])))
    query, value = (model.op("Transpose", split(model.linear(x, size, size)), perm=[0, 2, 1, 3]) for _ in "qv")
    key = model.op("Transpose", split(model.linear(x, size, size)), perm=[0, 2, 3, 1])
    score = model.op("Div", model.op("MatMul", query, key), model.constant(F(np.sqrt(each))))
    score = model.op("Add", score, mask) if mask else score
    mixed = model.op("MatMul", model.op("Softmax", score, axis=-1), value)
    mixed = model.op("Transpose", mixed, perm=[0, 2, 1, 3])
    joined = model.op("Reshape", mixed, model.constant(np.array([1, rows, size])))
    return model.linear(joined, size, size)


def attention(model):
    model.output(attend(model, model.input("x", 1, 16, 32), 16, 32, 4), 1, 16, 32)


def resnet18(model):
    x = model.input("image", 1, 3, 32, 32)
    x = model.op("Relu", model.norm(model.conv(x, 3, 8, kernel=7, stride=2), 8))
    x = model.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    before = 8
    for after, stride in ((8, 1), (8, 1), (16, 2), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        y = model.op("Relu", model.norm(model.conv(x, before, after, stride=stride), after))
        y = model.norm(model.conv(y, after, after), after)
        if stride != 1:
            x = model.norm(model.conv(x, before, after, kernel=1, stride=stride), after)
        x, before = model.op("Relu", model.op("Add", x, y)), after
    model.output(model.classifier(x, 64, 10), 1, 10)


def mobilenet(model):
    clip = lambda x: model.op("Clip", x, model.constant(F(0)), model.constant(F(6)))
    x = clip(model.norm(model.conv(model.input("image", 1, 3, 32, 32), 3, 8, stride=2), 8))
    before = 8
    for wider, after, stride in ((1, 8, 1), (4, 12, 2), (4, 12, 1), (4, 16, 2), (4, 16, 1), (4, 24, 1)):
        inner, y = before * wider, x
        if wider != 1:
            y = clip(model.norm(model.conv(y, before, inner, kernel=1), inner))
        y = clip(model.norm(model.conv(y, inner, inner, stride=stride, groups=inner), inner))
        y = model.norm(model.conv(y, inner, after, kernel=1), after)
        x, before = model.op("Add", x, y) if (stride, before) == (1, after) else y, after
    x = clip(model.norm(model.conv(x, before, 64, kernel=1), 64))
    model.output(model.classifier(x, 64, 10), 1, 10)


def bert_layer(model):
    rows, size = 16, 64
    x, mask = model.input("x", 1, rows, size), model.input("mask", 1, 1, 1, rows)
    norm = lambda value: model.op("LayerNormalization", value, model.vector(size, 1.0), model.vector(size), axis=-1)
    x = norm(model.op("Add", attend(model, x, rows, size, 4, mask), x))
    y = model.linear(x, size, 4 * size)
    erf = model.op("Erf", model.op("Div", y, model.constant(F(np.sqrt(2)))))
    half = model.op("Mul", y, model.constant(F(0.5)))
    y = model.op("Mul", half, model.op("Add", erf, model.constant(F(1))))
    model.output(norm(model.op("Add", model.linear(y, 4 * size, size), x)), 1, rows, size)


def write_onnx(make, folder):
    name = make.__name__
    model = Model(name)
    make(model)
    proto = model.proto(name)
    inputs = {}
    for port in proto.graph.input:
        shape = [SIZES.get(each.dim_param, each.dim_value) for each in port.type.tensor_type.shape.dim]
        inputs[port.name] = model.random.standard_normal(shape).astype(F)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    outputs = dict(zip(names, session.run(names, inputs)))
    (folder / f"{name}.onnx").write_bytes(data)
    np.savez(folder / f"{name}.inputs.npz", **inputs)
    np.savez(folder / f"{name}.outputs.npz", **outputs)
    return len(data), outputs


# The sizes of the inputs of `open_sizes`.
SIZES = {"N": 3, "S": 8}


def open_sizes(model):
    x = model.op("Tanh", model.linear(model.input("x", "N", "S", 24), 24, 40))
    x = model.op("Add", x, model.op("Mul", x, model.op("Softmax", x, axis=1)))
    model.output(model.linear(x, 40, 10), "N", "S", 10)
    model.output(model.op("ReduceMean", x, axes=[1], keepdims=0), "N", 40)


def ffn(folder):
    model = folder / "ffn.model.json"
    inputs, outputs = folder / "ffn.inputs.npz", folder / "ffn.outputs.npz"
    shutil.copy(ROOT / "examples/ffn.model.json", model)
    script = ROOT / "tests/oracle/ark_numpy.py"
    subprocess.run([sys.executable, script, model, "--seed", "1", "--save-inputs", inputs,
                    "--outputs", outputs], check=True)
    with np.load(outputs) as arrays:
        return model.stat().st_size, dict(arrays)


MODELS = {make.__name__: make for make in (mlp, cnn, lstm, attention, resnet18, mobilenet, bert_layer, open_sizes, ffn)}


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(MODELS):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        make = MODELS[name]
        size, outputs = make(folder) if make is ffn else write_onnx(make, folder)
        shapes = ", ".join(f"{key} {list(value.shape)}" for key, value in outputs.items())
        largest = max(float(np.abs(value.astype(np.float64)).max()) for value in outputs.values())
        print(f"{name}: {size} bytes, {shapes}, largest {largest:.3g}")


if __name__ == "__main__":
    main()
