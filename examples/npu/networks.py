#!/usr/bin/env python3
"""Writes the networks of SET's and Gemini's experiments as ONNX models, beside this script.

Layers have the names, shapes and order of the published lists (compiler/npu-cost/src/networks). Weights are
`ConstantOfShape`: a schedule needs their shapes only, and the files stay small. Activation functions after
convolutions are ReLU; they belong to the layer before, and do not change the lists.

    python examples/npu/networks.py [NAME ...]
"""

import sys
from pathlib import Path

import numpy
from onnx import TensorProto, checker, helper, numpy_helper, save

SEQUENCE = 512
WORDS = 1000


class Model:
    """A model under construction. Maps are pairs of the name and the shape of a tensor."""

    def __init__(self, name):
        self.name = name
        self.nodes, self.inputs, self.initialisers = [], [], []
        self.weights = {}

    def input(self, name, shape):
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name, shape

    def node(self, kind, operands, name, shape, **attributes):
        names = [operand if isinstance(operand, str) else operand[0] for operand in operands]
        self.nodes.append(helper.make_node(kind, names, [name], name=name, **attributes))
        return name, list(shape)

    def integers(self, values):
        name = "i_" + "_".join(map(str, values))
        if all(known.name != name for known in self.initialisers):
            self.initialisers.append(numpy_helper.from_array(numpy.array(values, numpy.int64), name))
        return name

    def zeros(self, shape):
        """Weights; those of one shape are one tensor."""
        name = "w_" + "_".join(map(str, shape))
        if name not in self.weights:
            self.weights[name] = self.node("ConstantOfShape", [self.integers(shape)], name, shape)
        return self.weights[name]

    def save(self, outputs):
        infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, infos, self.initialisers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        checker.check_model(model, full_check=True)
        save(model, Path(__file__).parent / f"{self.name}.onnx")

    # Layers of images.

    def window(self, shape, kernel, stride, extent):
        """Attributes of a window for which the result has `extent` rows and columns."""
        before, after = [], []
        for given, size, step, count in zip(shape[2:], kernel, stride, extent):
            beyond = max((count - 1) * step + size - given, 0)
            before.append(beyond // 2)
            after.append(beyond - beyond // 2)
        return {"kernel_shape": kernel, "strides": stride, "pads": before + after}

    def conv(self, name, x, channels, extent, kernel=1, stride=1, groups=1, relu=True):
        kernel = [kernel] * 2 if isinstance(kernel, int) else kernel
        weights = self.zeros([channels, x[1][1] // groups, *kernel])
        attributes = self.window(x[1], kernel, [stride] * 2, [extent] * 2)
        y = self.node("Conv", [x, weights], name, [1, channels, extent, extent], group=groups, **attributes)
        return self.node("Relu", [y], f"{name}_relu", y[1]) if relu else y

    def pool(self, name, x, extent, kernel, stride, kind="MaxPool"):
        attributes = self.window(x[1], [kernel] * 2, [stride] * 2, [extent] * 2)
        return self.node(kind, [x], name, [1, x[1][1], extent, extent], **attributes)

    def average(self, name, x):
        return self.node("GlobalAveragePool", [x], name, [1, x[1][1], 1, 1])

    def join(self, name, parts):
        if len(parts) == 1:
            return parts[0]
        channels = sum(shape[1] for _, shape in parts)
        return self.node("Concat", parts, name, [1, channels, *parts[0][1][2:]], axis=1)

    def add(self, name, x, y):
        return self.node("Add", [x, y], name, x[1])

    def fc(self, name, x, features):
        count = int(numpy.prod(x[1]))
        flat = self.node("Reshape", [x, self.integers([1, count])], f"{name}_flat", [1, count])
        return self.node("MatMul", [flat, self.zeros([count, features])], name, [1, features])

    # Layers of sequences.

    def dense(self, name, x, features):
        shape = [*x[1][:-1], features]
        return self.node("MatMul", [x, self.zeros([x[1][-1], features])], name, shape)

    def reshape(self, name, x, shape):
        return self.node("Reshape", [x, self.integers(shape)], name, shape)

    def transpose(self, name, x, order):
        return self.node("Transpose", [x], name, [x[1][axis] for axis in order], perm=order)


def resnet(name, blocks, groups=1):
    m = Model(name)
    x = m.conv("conv1", m.input("input", [1, 3, 224, 224]), 64, 112, 7, 2)
    x = m.pool("pool1", x, 56, 3, 2)
    extent, inner = 56, 64
    for segment, count in enumerate(blocks, 2):
        for block in range(count):
            stride = 2 if block == 0 and segment > 2 else 1
            a = m.conv(f"conv_{segment}_{block}_a", x, inner, extent, 1, stride)
            b = m.conv(f"conv_{segment}_{block}_b", a, inner, extent, 3, 1, groups)
            c = m.conv(f"conv_{segment}_{block}_c", b, 4 * inner, extent, relu=False)
            if block == 0:
                x = m.conv(f"conv_{segment}_br", x, 4 * inner, extent, 1, stride, relu=False)
            x = m.add(f"conv_{segment}_{block}_res", x, c)
            x = m.node("Relu", [x], f"conv_{segment}_{block}_relu", x[1])
        extent, inner = extent // 2, 2 * inner
    m.save([m.fc("fc", m.average("pool5", x), WORDS)])


def googlenet(name):
    stages = [
        (28, [("3a", 64, (96, 128), (16, 32), 32), ("3b", 128, (128, 192), (32, 96), 64)]),
        (14, [("4a", 192, (96, 208), (16, 48), 64), ("4b", 160, (112, 224), (24, 64), 64),
              ("4c", 128, (128, 256), (24, 64), 64), ("4d", 112, (144, 288), (32, 64), 64),
              ("4e", 256, (160, 320), (32, 128), 128)]),
        (7, [("5a", 256, (160, 320), (32, 128), 128), ("5b", 384, (192, 384), (48, 128), 128)]),
    ]
    m = Model(name)
    x = m.conv("conv1", m.input("input", [1, 3, 224, 224]), 64, 112, 7, 2)
    x = m.pool("pool1", x, 56, 3, 2)
    x = m.conv("conv2_3x3", m.conv("conv2_3x3_reduce", x, 64, 56), 192, 56, 3)
    for number, (extent, modules) in enumerate(stages, 2):
        x = m.pool(f"pool{number}", x, extent, 3, 2)
        for key, point, three, five, pooled in modules:
            key = f"inception_{key}_"
            a = m.conv(key + "1x1", x, point, extent)
            b = m.conv(key + "3x3", m.conv(key + "3x3_reduce", x, three[0], extent), three[1], extent, 3)
            c = m.conv(key + "5x5", m.conv(key + "5x5_reduce", x, five[0], extent), five[1], extent, 5)
            d = m.conv(key + "pool_proj", m.pool(key + "pool", x, extent, 3, 1), pooled, extent)
            x = m.join(key + "join", [a, b, c, d])
    m.save([m.fc("fc", m.average("pool5", x), WORDS)])


def vgg19(name):
    m = Model(name)
    x, number = m.input("input", [1, 3, 224, 224]), 0
    stages = [(64, 224, 2), (128, 112, 2), (256, 56, 4), (512, 28, 4), (512, 14, 4)]
    for stage, (channels, extent, count) in enumerate(stages, 1):
        for _ in range(count):
            number += 1
            x = m.conv(f"conv{number}", x, channels, extent, 3)
        x = m.pool(f"pool{stage}", x, extent // 2, 2, 2)
    m.save([x])


def densenet(name):
    m = Model(name)
    x = m.conv("conv0", m.input("input", [1, 3, 224, 224]), 64, 112, 7, 2)
    parts, extent = [m.pool("pool0", x, 56, 3, 2)], 56
    for block, count in enumerate([6, 12, 24, 16], 1):
        for layer in range(count):
            key = f"block_{block}_{layer}_"
            x = m.conv(key + "1x1", m.join(key + "join", parts), 128, extent)
            parts.append(m.conv(key + "3x3", x, 32, extent, 3))
        x = m.join(f"block_{block}_join", parts)
        if block < 4:
            x = m.conv(f"trans_{block}_1x1", x, x[1][1] // 2, extent)
            extent //= 2
            parts = [m.pool(f"trans_{block}_pool", x, extent, 2, 2, "AveragePool")]
    m.save([m.fc("fc", m.average("pool_avg", x), WORDS)])


def darknet19(name):
    m = Model(name)
    x, number, pool, extent = m.input("input", [1, 3, 224, 224]), 0, 0, 224
    stages = [[(32, 3)], [(64, 3)], [(128, 3), (64, 1), (128, 3)], [(256, 3), (128, 1), (256, 3)],
              [(512, 3), (256, 1), (512, 3), (256, 1), (512, 3)],
              [(1024, 3), (512, 1), (1024, 3), (512, 1), (1024, 3), (WORDS, 1)]]
    for stage in stages:
        for channels, kernel in stage:
            number += 1
            x = m.conv(f"conv{number}", x, channels, extent, kernel)
        if extent > 7:
            pool, extent = pool + 1, extent // 2
            x = m.pool(f"pool{pool}", x, extent, 2, 2)
    m.save([m.average("pool_avg", x)])


def zfnet(name):
    m = Model(name)
    x = m.conv("conv1", m.input("input", [1, 3, 224, 224]), 96, 110, 7, 2)
    x = m.conv("conv2", m.pool("pool1", x, 55, 3, 2), 256, 26, 5, 2)
    x = m.pool("pool2", x, 13, 3, 2)
    for number, channels in [(3, 512), (4, 1024), (5, 512)]:
        x = m.conv(f"conv{number}", x, channels, 13, 3)
    x = m.fc("fc1", m.pool("pool3", x, 6, 3, 2), 4096)
    m.save([m.fc("fc3", m.fc("fc2", x, 4096), WORDS)])


def inception_resnet(name):
    m = Model(name)
    x = m.conv("Conv_1a_3x3", m.input("input", [1, 3, 299, 299]), 32, 149, 3, 2)
    x = m.conv("Conv_2b_3x3", m.conv("Conv_2a_3x3", x, 32, 147, 3), 64, 147, 3)
    x = m.conv("Conv_3b_1x1", m.pool("MaxPool_3a_3x3", x, 73, 3, 2), 80, 73)
    x = m.conv("Conv_4b_3x3", m.conv("Conv_4a_3x3", x, 192, 71, 3), 256, 35, 3, 2)
    for block in range(1, 6):
        key = f"A{block}_"
        a = m.conv(key + "Conv_1a_1x1", x, 32, 35)
        b = m.conv(key + "Conv_2b_3x3", m.conv(key + "Conv_2a_1x1", x, 32, 35), 32, 35, 3)
        c = m.conv(key + "Conv_3b_3x3", m.conv(key + "Conv_3a_1x1", x, 32, 35), 32, 35, 3)
        c = m.conv(key + "Conv_3c_3x3", c, 32, 35, 3)
        d = m.conv(key + "Conv_4_1x1", m.join(key + "join", [a, b, c]), 256, 35, relu=False)
        x = m.add(key + "Eltwise", x, d)
    a = m.conv("RA_Conv_1a_3x3", x, 384, 17, 3, 2)
    b = m.conv("RA_Conv_2b_3x3", m.conv("RA_Conv_2a_1x1", x, 192, 35), 192, 35, 3)
    b = m.conv("RA_Conv_2c_3x3", b, 256, 17, 3, 2)
    x = m.join("RA_join", [a, b, m.pool("RA_MaxPool_3a_3x3", x, 17, 3, 2)])
    for block in range(1, 11):
        key = f"B{block}_"
        a = m.conv(key + "Conv_1a_1x1", x, 128, 17)
        b = m.conv(key + "Conv_2b_1x7", m.conv(key + "Conv_2a_1x1", x, 128, 17), 128, 17, [1, 7])
        b = m.conv(key + "Conv_2c_7x1", b, 128, 17, [7, 1])
        c = m.conv(key + "Conv_3_1x1", m.join(key + "join", [a, b]), 896, 17, relu=False)
        x = m.add(key + "Eltwise", x, c)
    a = m.pool("RB_MaxPool_1a_3x3", x, 8, 3, 2)
    b = m.conv("RB_Conv_2b_3x3", m.conv("RB_Conv_2a_1x1", x, 256, 17), 384, 8, 3, 2)
    c = m.conv("RB_Conv_3b_3x3", m.conv("RB_Conv_3a_1x1", x, 256, 17), 256, 8, 3, 2)
    d = m.conv("RB_Conv_4b_3x3", m.conv("RB_Conv_4a_1x1", x, 256, 17), 256, 17, 3)
    d = m.conv("RB_Conv_4c_3x3", d, 256, 8, 3, 2)
    x = m.join("RB_join", [a, b, c, d])
    for block in range(1, 6):
        key = f"C{block}_"
        a = m.conv(key + "Conv_1a_1x1", x, 192, 8)
        b = m.conv(key + "Conv_2b_1x3", m.conv(key + "Conv_2a_1x1", x, 192, 8), 192, 8, [1, 3])
        b = m.conv(key + "Conv_2c_3x1", b, 192, 8, [3, 1])
        c = m.conv(key + "Conv_3_1x1", m.join(key + "join", [a, b]), 1792, 8, relu=False)
        x = m.add(key + "Eltwise", x, c)
    x = m.fc("Dropout", m.average("AvgPool", x), 1792)
    m.save([m.fc("FC", x, WORDS)])


class Transformer(Model):
    """A transformer of `heads` heads of 64 features on `tokens` tokens, after `earlier` known ones."""

    def __init__(self, name, heads, tokens=SEQUENCE, earlier=0):
        super().__init__(name)
        self.heads, self.tokens, self.earlier = heads, tokens, earlier
        self.features = 64 * heads

    def embedding(self, name):
        x = self.input(f"{name}_input", [1, self.tokens, self.features])
        return self.node("Relu", [x], name, x[1])

    def keys(self, name, x, gathers):
        """The keys of each head, turned: a row for every feature."""
        parts = []
        for head in range(self.heads):
            key = self.dense(f"{name}_K{head}", x, 64)
            key = self.transpose(f"{name}_Kt{head}", key, [0, 2, 1])
            parts.append(self.reshape(f"{name}_Kr{head}", key, [1, 1, 64, self.tokens]))
        keys = self.join(f"{name}_Kj" if gathers or self.earlier else f"{name}_K", parts)
        if self.earlier:
            known = self.input(f"{name}_Kext", [1, self.heads, 64, self.earlier])
            shape = [1, self.heads, 64, self.earlier + self.tokens]
            return self.node("Concat", [known, keys], f"{name}_K", shape, axis=3)
        if gathers:
            return self.node("Relu", [keys], f"{name}_K", keys[1])
        return keys

    def values(self, name, x):
        value = self.dense(f"{name}_V", x, self.features)
        seen = self.earlier + self.tokens
        if self.earlier:
            value = self.transpose(f"{name}_Vt1", value, [0, 2, 1])
            known = self.input(f"{name}_Vext", [1, self.features, self.earlier])
            value = self.node("Concat", [known, value], f"{name}_Vj", [1, self.features, seen], axis=2)
            value = self.transpose(f"{name}_Vt2", value, [0, 2, 1])
        return self.by_head(f"{name}_V", value, seen)

    def by_head(self, name, x, tokens):
        x = self.reshape(f"{name}_split", x, [1, tokens, self.heads, 64])
        return self.transpose(f"{name}_heads", x, [0, 2, 1, 3])

    def attention(self, name, x, of, gathers):
        query = self.dense(f"{name}_Q", x, self.features)
        keys = self.keys(name, of, gathers)
        value = self.values(name, of)
        query = self.by_head(f"{name}_Q", query, self.tokens)
        seen = self.earlier + self.tokens
        shape = [1, self.heads, self.tokens, seen]
        scores = self.node("MatMul", [query, keys], f"{name}_QK", shape)
        scores = self.node("Softmax", [scores], f"{name}_QK_elt", shape, axis=-1)
        y = self.node("MatMul", [scores, value], f"{name}_QKV", [1, self.heads, self.tokens, 64])
        y = self.transpose(f"{name}_QKV_joined", y, [0, 2, 1, 3])
        y = self.reshape(f"{name}_QKV_flat", y, [1, self.tokens, self.features])
        return self.dense(f"{name}_FC", y, self.features)

    def feed_forward(self, name, x):
        y = self.dense(f"{name}_feedfwd1", x, 2048)
        y = self.node("Relu", [y], f"{name}_relu", y[1])
        return self.dense(f"{name}_feedfwd2", y, self.features)

    def encoder(self, name, x, gathers=False):
        x = self.add(f"{name}_elt1", x, self.attention(name, x, x, gathers))
        return self.add(f"{name}_elt2", x, self.feed_forward(name, x))

    def decoder(self, name, x, encoded):
        x = self.add(f"{name}_elt1", x, self.attention(f"{name}_1", x, x, True))
        x = self.add(f"{name}_elt2", x, self.attention(f"{name}_2", x, encoded, True))
        return self.add(f"{name}_elt3", x, self.feed_forward(name, x))


def language_model(name, heads, tokens=SEQUENCE, earlier=0):
    m = Transformer(name, heads, tokens, earlier)
    x = m.encoder("block1", m.embedding("word_embed"))
    m.save([m.dense("proj", x, WORDS)])


def transformer_cell(name):
    m = Transformer(name, 8)
    encoded = m.encoder("encoder", m.embedding("word_embed_enc"), True)
    x = m.decoder("decoder", m.embedding("word_embed_dec"), encoded)
    m.save([m.dense("proj", x, WORDS)])


NETWORKS = {
    "bert": lambda name: language_model(name, 16),
    "darknet19": darknet19,
    "densenet": densenet,
    "googlenet": googlenet,
    "gpt_decode": lambda name: language_model(name, 25, 1, SEQUENCE),
    "gpt_prefill": lambda name: language_model(name, 25),
    "inception_resnet": inception_resnet,
    "resnet50": lambda name: resnet(name, [3, 4, 6, 3]),
    "resnet101": lambda name: resnet(name, [3, 4, 23, 3]),
    "resnext50": lambda name: resnet(name, [3, 4, 6, 3], 32),
    "transformer_cell": transformer_cell,
    "vgg19": vgg19,
    "zfnet": zfnet,
}

if __name__ == "__main__":
    for network in sys.argv[1:] or NETWORKS:
        NETWORKS[network](network)
