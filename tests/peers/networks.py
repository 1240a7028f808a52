#!/usr/bin/env python3
"""Makes the ONNX models that irc is measured on: random weights, opset 17, deterministic.

    networks.py FOLDER [NAME ...]      (no names: all of them)

Beside each NAME.onnx is a NAME.json: its inputs (name, shape, type, upper bound of integers), the floating-point
operations of its MatMul, Gemm and Conv (two for a multiplication and an addition), and the bytes of its weights, and of
inputs and outputs. Weights are scaled by 1/sqrt(fan-in), so that values stay finite. A name that ends in `_n` has an open
batch, in `_ns` an open batch and sequence, in `_hw` an open height and width; in `_qdq` it is quantised to 8 bits statically, in `_dq` dynamically, and in
`_int4` its weights have 4 bits. Models that are there already are kept.
"""
import argparse
import json
import pathlib
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


class Network:
    """A graph under construction. Values are named by their producers."""

    def __init__(self, seed):
        self.nodes, self.weights, self.inputs, self.outputs = [], [], [], []
        self.random = np.random.default_rng(zlib.crc32(seed.encode()))
        self.operations = self.weight_bytes = self.names = 0
        self.small = {}

    def name(self, prefix):
        self.names += 1
        return f"{prefix}_{self.names}"

    def input(self, name, shape, dtype=TensorProto.FLOAT, bound=None):
        self.inputs.append((name, list(shape), dtype, bound))
        return name

    def output(self, name, shape):
        self.outputs.append((name, list(shape)))

    def constant(self, values):
        """An initialiser; equal small ones are shared."""
        values = np.asarray(values)
        if values.dtype == np.float64:
            values = values.astype(np.float32)
        key = (values.dtype.str, values.shape, values.tobytes()) if values.size <= 16 else None
        if key in self.small:
            return self.small[key]
        name = self.name("w")
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values).reshape(values.shape), name))
        self.weight_bytes += values.nbytes
        if key:
            self.small[key] = name
        return name

    def weight(self, *shape, scale=None):
        values = self.random.standard_normal(shape, dtype=np.float32)
        return self.constant(values * np.float32(scale or 1 / np.sqrt(shape[0])))

    def vector(self, size, mean=0.0):
        return self.constant(self.random.standard_normal(size, dtype=np.float32) * np.float32(0.05) + np.float32(mean))

    def op(self, op_type, inputs, results=1, **attributes):
        names = [self.name(op_type.lower()) for _ in range(results)]
        self.nodes.append(helper.make_node(op_type, inputs, names, name=self.name("n"), **attributes))
        return names[0] if results == 1 else names

    def matmul(self, a, b, m, k, n, batch=1):
        self.operations += 2 * m * k * n * batch
        return self.op("MatMul", [a, b])

    def linear(self, x, m, k, n, bias=True):
        y = self.matmul(x, self.weight(k, n), m, k, n)
        return self.op("Add", [y, self.vector(n)]) if bias else y

    def reshape(self, x, *shape):
        return self.op("Reshape", [x, self.constant(np.array(shape, np.int64))])

    def transpose(self, x, *order):
        return self.op("Transpose", [x], perm=order)

    def layer_norm(self, x, size):
        return self.op("LayerNormalization", [x, self.vector(size, 1.0), self.vector(size)], axis=-1, epsilon=1e-5)

    def rms_norm(self, x, size):
        square = self.op("ReduceMean", [self.op("Mul", [x, x])], axes=[-1], keepdims=1)
        root = self.op("Sqrt", [self.op("Add", [square, self.constant(1e-5)])])
        return self.op("Mul", [self.op("Mul", [x, self.op("Div", [self.constant(1.0), root])]), self.vector(size, 1.0)])

    def silu(self, x):
        return self.op("Mul", [x, self.op("Sigmoid", [x])])

    def gelu(self, x):
        erf = self.op("Erf", [self.op("Div", [x, self.constant(np.sqrt(2.0))])])
        return self.op("Mul", [self.op("Mul", [x, self.op("Add", [erf, self.constant(1.0)])]), self.constant(0.5)])

    def gelu_tanh(self, x):
        cube = self.op("Mul", [self.op("Mul", [x, self.op("Mul", [x, x])]), self.constant(0.044715)])
        inner = self.op("Mul", [self.op("Add", [x, cube]), self.constant(np.sqrt(2 / np.pi))])
        factor = self.op("Add", [self.op("Tanh", [inner]), self.constant(1.0)])
        return self.op("Mul", [self.op("Mul", [x, self.constant(0.5)]), factor])

    def split_heads(self, x, sequence, heads, size):
        return self.transpose(self.reshape(x, 1, sequence, heads, size), 0, 2, 1, 3)

    def join_heads(self, x, sequence, width):
        return self.reshape(self.transpose(x, 0, 2, 1, 3), 1, sequence, width)

    def conv(self, x, inputs, filters, kernel, stride, image, activation=None, groups=1):
        """A convolution of a square image that keeps its size but for the stride."""
        fan_in = inputs // groups * kernel * kernel
        self.operations += 2 * filters * fan_in * (image // stride) ** 2
        weight = self.weight(filters, inputs // groups, kernel, kernel, scale=np.sqrt(1.6 / fan_in))
        x = self.op("Conv", [x, weight, self.vector(filters)], kernel_shape=[kernel] * 2, strides=[stride] * 2,
                    pads=[kernel // 2] * 4, group=groups)
        if activation == "relu6":
            return self.op("Clip", [x, self.constant(0.0), self.constant(6.0)])
        return self.op("Relu", [x]) if activation else x

    def classifier(self, x, channels):
        x = self.op("Flatten", [self.op("GlobalAveragePool", [x])], axis=1)
        self.operations += 2 * channels * 1000
        weight = self.weight(1000, channels, scale=1 / np.sqrt(channels))
        self.output(self.op("Gemm", [x, weight, self.vector(1000)], transB=1), [1, 1000])

    def save(self, path):
        infos = [helper.make_tensor_value_info(name, dtype, shape) for name, shape, dtype, _ in self.inputs]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.outputs]
        graph = helper.make_graph(self.nodes, path.stem, infos, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="networks")
        model.ir_version = IR_VERSION
        onnx.save(model, path)
        size = {TensorProto.INT64: 8}
        ports = [(shape, size.get(dtype, 4)) for _, shape, dtype, _ in self.inputs]
        ports += [(shape, 4) for _, shape in self.outputs]
        described = {
            "inputs": [{"name": name, "shape": shape, "type": TensorProto.DataType.Name(dtype), "hi": bound}
                       for name, shape, dtype, bound in self.inputs],
            "flops": self.operations,
            "weight_bytes": self.weight_bytes,
            "io_bytes": sum(int(np.prod(shape)) * width for shape, width in ports),
        }
        path.with_suffix(".json").write_text(json.dumps(described, indent=1))


def gemm(m, k, n):
    net = Network(f"gemm_{m}x{k}x{n}")
    net.output(net.matmul(net.input("x", [m, k]), net.weight(k, n), m, k, n), [m, n])
    return net


def mlp(batch):
    net = Network("mlp")
    x = net.input("x", [batch, 784])
    for k, n in ((784, 512), (512, 512), (512, 10)):
        net.operations += 2 * batch * k * n
        x = net.op("Gemm", [x, net.weight(k, n), net.vector(n)])
        if n != 10:
            x = net.op("Relu", [x])
    net.output(net.op("Softmax", [x], axis=-1), [batch, 10])
    return net


def softmax(*shape):
    net = Network("softmax")
    net.output(net.op("Softmax", [net.input("x", shape)], axis=-1), shape)
    return net


def elementwise(size):
    """Ten cheap ops on two tensors."""
    net = Network("elementwise")
    a, b = net.input("a", [size]), net.input("b", [size])
    x = net.op("Mul", [net.op("Add", [a, b]), net.constant(0.5)])
    x = net.op("Relu", [net.op("Sub", [x, b])])
    x = net.op("Add", [net.op("Mul", [x, a]), net.constant(0.1)])
    x = net.op("Mul", [net.op("Abs", [x]), b])
    x = net.op("Max", [net.op("Add", [x, a]), b])
    net.output(net.op("Neg", [x]), [size])
    return net


def swiglu(rows, width):
    net = Network("swiglu")
    a, b = net.input("a", [rows, width]), net.input("b", [rows, width])
    net.output(net.op("Mul", [net.silu(a), b]), [rows, width])
    return net


def chain(rows, width):
    """Bias, residual, layer norm, GELU, residual: one pass over memory when it is fused."""
    net = Network(f"chain_{rows}x{width}")
    x, residual = net.input("x", [rows, width]), net.input("res", [rows, width])
    y = net.op("Add", [net.op("Add", [x, net.vector(width)]), residual])
    y = net.gelu(net.layer_norm(y, width))
    net.output(net.op("Add", [y, residual]), [rows, width])
    return net


def single_conv(inputs, filters, kernel, image, groups=1):
    net = Network(f"conv_{inputs}_{filters}_{kernel}_{image}")
    x = net.input("x", [1, inputs, image, image])
    net.output(net.conv(x, inputs, filters, kernel, 1, image, "relu", groups), [1, filters, image, image])
    return net


def resnet50():
    net = Network("resnet50")
    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, 64, 7, 2, 224, "relu")
    x = net.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels, image = 64, 56
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            y = net.conv(x, channels, width, 1, 1, image, "relu")
            y = net.conv(y, width, width, 3, stride, image, "relu")
            y = net.conv(y, width, width * 4, 1, 1, image // stride)
            shortcut = net.conv(x, channels, width * 4, 1, stride, image) if block == 0 else x
            x = net.op("Relu", [net.op("Add", [y, shortcut])])
            channels, image = width * 4, image // stride
    net.classifier(x, 2048)
    return net


def mobilenetv2():
    net = Network("mobilenetv2")
    x = net.conv(net.input("x", [1, 3, 224, 224]), 3, 32, 3, 2, 224, "relu6")
    channels, image = 32, 112
    for expand, width, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                         (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            y, inner = x, channels * expand
            if expand != 1:
                y = net.conv(y, channels, inner, 1, 1, image, "relu6")
            y = net.conv(y, inner, inner, 3, stride, image, "relu6", groups=inner)
            y = net.conv(y, inner, width, 1, 1, image // stride)
            x = net.op("Add", [x, y]) if stride == 1 and channels == width else y
            channels, image = width, image // stride
    net.classifier(net.conv(x, 320, 1280, 1, 1, 7, "relu6"), 1280)
    return net


def bert_block(net, x, mask, sequence=128, width=768, heads=12, hidden=3072):
    size = width // heads
    q = net.split_heads(net.linear(x, sequence, width, width), sequence, heads, size)
    k = net.reshape(net.linear(x, sequence, width, width), 1, sequence, heads, size)
    k = net.transpose(k, 0, 2, 3, 1)
    v = net.split_heads(net.linear(x, sequence, width, width), sequence, heads, size)
    scores = net.matmul(q, k, sequence, size, sequence, heads)
    scores = net.op("Div", [scores, net.constant(np.sqrt(float(size)))])
    scores = net.op("Softmax", [net.op("Add", [scores, mask])], axis=-1)
    y = net.join_heads(net.matmul(scores, v, sequence, sequence, size, heads), sequence, width)
    x = net.layer_norm(net.op("Add", [net.linear(y, sequence, width, width), x]), width)
    y = net.gelu(net.linear(x, sequence, width, hidden))
    return net.layer_norm(net.op("Add", [net.linear(y, sequence, hidden, width), x]), width)


def bert_layer():
    net = Network("bert_layer")
    x, mask = net.input("x", [1, 128, 768]), net.input("mask", [1, 1, 1, 128])
    net.output(bert_block(net, x, mask), [1, 128, 768])
    return net


def bert_base():
    net = Network("bert_base")
    words = net.input("input_ids", [1, 128], TensorProto.INT64, 30522)
    mask = net.input("attention_mask", [1, 128], TensorProto.INT64, 2)
    types = net.input("token_type_ids", [1, 128], TensorProto.INT64, 2)
    mask = net.op("Unsqueeze", [mask, net.constant(np.array([1, 2], np.int64))])
    mask = net.op("Cast", [mask], to=TensorProto.FLOAT)
    mask = net.op("Mul", [net.op("Sub", [net.constant(1.0), mask]), net.constant(-10000.0)])
    x = net.op("Gather", [net.weight(30522, 768, scale=0.02), words])
    x = net.op("Add", [x, net.op("Gather", [net.weight(2, 768, scale=0.02), types])])
    x = net.layer_norm(net.op("Add", [x, net.weight(1, 128, 768, scale=0.02)]), 768)
    for _ in range(12):
        x = bert_block(net, x, mask)
    pooled = net.op("Gather", [x, net.constant(np.array(0, np.int64))], axis=1)
    pooled = net.op("Tanh", [net.linear(pooled, 1, 768, 768)])
    net.output(x, [1, 128, 768])
    net.output(pooled, [1, 768])
    return net


def causal(sequence, past):
    mask = np.zeros((1, 1, sequence, past + sequence), np.float32)
    mask[0, 0][np.triu(np.ones((sequence, past + sequence), bool), past + 1)] = -10000
    return mask


def decoder_attention(net, q, k, v, sequence, past, heads, size):
    """Attention over cached keys and values, which are outputs too; the results of all heads joined."""
    total = past + sequence
    if past:
        number = len(net.inputs)
        k = net.op("Concat", [net.input(f"past_k{number}", [1, heads, past, size]), k], axis=2)
        v = net.op("Concat", [net.input(f"past_v{number}", [1, heads, past, size]), v], axis=2)
    scores = net.matmul(q, net.transpose(k, 0, 1, 3, 2), sequence, size, total, heads)
    scores = net.op("Mul", [scores, net.constant(1 / np.sqrt(float(size)))])
    if sequence > 1:
        scores = net.op("Add", [scores, net.constant(causal(sequence, past))])
    y = net.matmul(net.op("Softmax", [scores], axis=-1), v, sequence, total, size, heads)
    return net.join_heads(y, sequence, heads * size), [k, v]


def llama_layer(sequence, past):
    """A decoder layer of the size of Llama 2 7B."""
    width, heads, hidden = 4096, 32, 11008
    size, total = width // heads, sequence + past
    net = Network("llama_layer")
    x = net.input("x", [1, sequence, width])
    angles = np.arange(past, total)[:, None] / 10000 ** (np.arange(0, size, 2) / size)
    angles = np.concatenate([angles, angles], 1)[None, None]
    cosine, sine = net.constant(np.cos(angles)), net.constant(np.sin(angles))

    def rotate(x):
        first, second = net.op("Split", [x, net.constant(np.array([size // 2] * 2, np.int64))], 2, axis=-1)
        turned = net.op("Concat", [net.op("Neg", [second]), first], axis=-1)
        return net.op("Add", [net.op("Mul", [x, cosine]), net.op("Mul", [turned, sine])])

    def projected(x):
        return net.split_heads(net.linear(x, sequence, width, width, False), sequence, heads, size)

    y = net.rms_norm(x, width)
    q, k, v = rotate(projected(y)), rotate(projected(y)), projected(y)
    y, caches = decoder_attention(net, q, k, v, sequence, past, heads, size)
    x = net.op("Add", [x, net.linear(y, sequence, width, width, False)])
    y = net.rms_norm(x, width)
    gate = net.silu(net.linear(y, sequence, width, hidden, False))
    y = net.op("Mul", [gate, net.linear(y, sequence, width, hidden, False)])
    net.output(net.op("Add", [x, net.linear(y, sequence, hidden, width, False)]), [1, sequence, width])
    for cache in caches:
        net.output(cache, [1, heads, total, size])
    return net


def gpt2(sequence, past):
    width, heads, layers, words = 768, 12, 12, 50257
    size, total = width // heads, sequence + past
    net = Network("gpt2")
    embedding = net.weight(words, width, scale=0.02)
    x = net.op("Gather", [embedding, net.input("input_ids", [1, sequence], TensorProto.INT64, words)])
    x = net.op("Add", [x, net.weight(1, sequence, width, scale=0.02)])
    caches = []
    for _ in range(layers):
        y = net.linear(net.layer_norm(x, width), sequence, width, 3 * width)
        parts = net.op("Split", [y, net.constant(np.array([width] * 3, np.int64))], 3, axis=-1)
        q, k, v = (net.split_heads(part, sequence, heads, size) for part in parts)
        y, kept = decoder_attention(net, q, k, v, sequence, past, heads, size)
        caches += kept if past else []
        x = net.op("Add", [x, net.linear(y, sequence, width, width)])
        y = net.linear(net.layer_norm(x, width), sequence, width, 4 * width)
        x = net.op("Add", [x, net.linear(net.gelu_tanh(y), sequence, 4 * width, width)])
    x = net.layer_norm(x, width)
    net.output(net.matmul(x, net.transpose(embedding, 1, 0), sequence, width, words), [1, sequence, words])
    for cache in caches:
        net.output(cache, [1, heads, total, size])
    return net


NETWORKS = {
    "gemm_256": lambda: gemm(256, 256, 256), "gemm_1024": lambda: gemm(1024, 1024, 1024),
    "gemm_128x768x3072": lambda: gemm(128, 768, 3072),
    "gemv_1x768x3072": lambda: gemm(1, 768, 3072), "gemv_1x4096x4096": lambda: gemm(1, 4096, 4096),
    "mlp_b1": lambda: mlp(1), "mlp_b32": lambda: mlp(32),
    "softmax_12x128x128": lambda: softmax(12, 128, 128), "softmax_4096x2048": lambda: softmax(4096, 2048),
    "elementwise_64k": lambda: elementwise(1 << 16), "elementwise_8m": lambda: elementwise(1 << 23),
    "swiglu_128x11008": lambda: swiglu(128, 11008),
    "chain_128x768": lambda: chain(128, 768), "chain_8192x1024": lambda: chain(8192, 1024),
    "conv3x3_64_56": lambda: single_conv(64, 64, 3, 56), "conv3x3_512_7": lambda: single_conv(512, 512, 3, 7),
    "conv1x1_1024_256_14": lambda: single_conv(1024, 256, 1, 14),
    "dwconv3x3_144_56": lambda: single_conv(144, 144, 3, 56, 144),
    "resnet50": resnet50, "mobilenetv2": mobilenetv2, "bert_layer": bert_layer, "bert_base": bert_base,
    "gpt2_decode512": lambda: gpt2(1, 512), "gpt2_prefill128": lambda: gpt2(128, 0),
    "llama_decode512": lambda: llama_layer(1, 512), "llama_prefill128": lambda: llama_layer(128, 0),
}


def open_sizes(base, path, symbols):
    """A copy in which some dimensions of inputs are symbols: by input and dimension, or by dimension alone."""
    model = onnx.load(base)
    for port in model.graph.input:
        for number, size in enumerate(port.type.tensor_type.shape.dim):
            symbol = symbols.get((port.name, number), symbols.get(number))
            if symbol:
                size.ClearField("dim_value")
                size.dim_param = symbol
    for port in model.graph.output:
        for size in port.type.tensor_type.shape.dim:
            size.ClearField("dim_value")
    # Shapes of reshapes have the leading dimensions of what is reshaped.
    leading = 2 if "S" in symbols.values() else 1
    shapes = {node.input[1] for node in model.graph.node if node.op_type == "Reshape"}
    for constant in model.graph.initializer:
        if constant.name in shapes:
            shape = numpy_helper.to_array(constant).copy()
            shape[:leading] = 0
            constant.CopyFrom(numpy_helper.from_array(shape, constant.name))
    del model.graph.value_info[:]
    onnx.save(model, path)


def random_inputs(described):
    """Random inputs, the same for every program."""
    random = np.random.default_rng(7)
    made = {}
    for port in described["inputs"]:
        if port["type"] == "INT64":
            made[port["name"]] = random.integers(0, port["hi"], port["shape"], dtype=np.int64)
        else:
            made[port["name"]] = random.standard_normal(port["shape"], dtype=np.float32)
    return made


def quantised(base, path):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter([random_inputs(json.loads(base.with_suffix(".json").read_text()))])

        def get_next(self):
            return next(self.left, None)

    quantize_static(base, path, Reader(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                    weight_type=QuantType.QInt8, per_channel=True)


def dynamically_quantised(base, path):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(base, path, weight_type=QuantType.QInt8)


def four_bits(base, path):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(onnx.load(base), block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(path), False)


# The network that each is made from, and how.
VARIANTS = {
    **{f"{base}_n": (base, lambda base, path: open_sizes(base, path, {0: "N"}))
       for base in ("resnet50", "mobilenetv2", "mlp_b32", "bert_layer")},
    **{f"{base}_hw": (base, lambda base, path: open_sizes(base, path, {2: "H", 3: "W"}))
       for base in ("resnet50", "mobilenetv2", "resnet50_qdq", "mobilenetv2_qdq")},
    "bert_layer_ns": ("bert_layer", lambda base, path: open_sizes(base, path, {0: "N", ("x", 1): "S", ("mask", 3): "S"})),
    "resnet50_qdq": ("resnet50", quantised), "mobilenetv2_qdq": ("mobilenetv2", quantised),
    "bert_layer_dq": ("bert_layer", dynamically_quantised),
    "llama_decode512_int4": ("llama_decode512", four_bits),
}


def make(folder, name):
    """Makes a model unless it is there; returns its path."""
    path = folder / f"{name}.onnx"
    if path.exists() and path.with_suffix(".json").exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    if name in NETWORKS:
        NETWORKS[name]().save(path)
    else:
        base, change = VARIANTS[name]
        base = make(folder, base)
        change(base, path)
        path.with_suffix(".json").write_text(base.with_suffix(".json").read_text())
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in NETWORKS and name not in VARIANTS]
    if unknown:
        parser.error(f"unknown network {unknown[0]!r}: expected one of {', '.join([*NETWORKS, *VARIANTS])}")
    for name in args.names or [*NETWORKS, *VARIANTS]:
        print(make(args.folder, name), flush=True)


if __name__ == "__main__":
    main()
