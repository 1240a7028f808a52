#!/usr/bin/env python3
"""Writes this repository's models as ARK model files, byte for byte as ARK prints them.

    make_models.py OUTDIR [name ...]            (no names: every model below)
    make_models.py OUTDIR chain --nodes 200     matmul and elementwise ops in turn, `chain_200`

Ops are spelled as ARK's Python front end emits them: layernorm is ReduceMean, Sub, Mul, ReduceMean,
ScalarAdd, Rsqrt, Mul; softmax is ReduceMax, Sub, Exp, ReduceSum, Div; RMSNorm computes in FP32
between two casts, scales in place and adds no epsilon, as ARK's Llama does. No dependencies.
"""
import argparse
import json
import pathlib
import struct
import sys


# The file format


class Model:
    """A model under construction: tensors are dictionaries in the file's own layout."""

    def __init__(self, rank=0, world_size=1):
        self.rank, self.world_size = rank, world_size
        self.nodes, self.producers, self.names = [], {}, {}
        self.tensors = self.buffers = 0

    def buffer(self, rank=-1, send=(), receive=()):
        """A new buffer; on another rank, or with tags, for communication."""
        self.buffers += 1
        tags = {"SendTags": [list(tag) for tag in send], "RecvTags": [list(tag) for tag in receive]}
        return {"Id": self.buffers - 1, "Rank": rank, **tags}

    def tensor(self, shape, dtype="FP32", buffer=None, view=None, offsets=None, padded=None):
        """A new tensor: a whole new buffer by default, or a box of a given one."""
        padded = list(padded or shape)
        tensor = {
            "Id": self.tensors, "DataType": dtype, "Shape": list(shape),
            "Strides": list(view or padded), "Offsets": list(offsets or [0] * len(shape)),
            "PaddedShape": padded, "Buffer": buffer or self.buffer(),
        }
        self.tensors += 1
        return tensor

    def again(self, tensor):
        """A new tensor that aliases another."""
        self.tensors += 1
        return {**tensor, "Id": self.tensors - 1}

    def op(self, kind, reads, shape=None, dtype=None, name=None, output=None, peers=(), after=(),
           **args):
        """Appends an op, and returns its result; on a new buffer unless an output is given.

        `peers` are further tensors written; `after` are results of ops that must come before.
        """
        write = output or self.tensor(shape, dtype or reads[0]["DataType"])
        result = self.again(write)
        node = len(self.nodes)
        used = [*reads, *after]
        producers = {self.producers[t["Id"]] for t in used if t["Id"] in self.producers}
        for producer in producers:
            self.nodes[producer]["ConsumerNodeIds"].append(node)
        self.producers[result["Id"]] = node
        self.nodes.append({
            "Id": node, "ProducerNodeIds": sorted(producers), "ConsumerNodeIds": [],
            "Op": {
                "Type": kind, "Name": self.unique(name or snake(kind)), "IsVirtual": False,
                "ReadTensors": reads, "WriteTensors": [write, *peers],
                "ResultTensors": [result],
                "Args": {key: args[key] for key in sorted(args)},
            },
        })
        return result

    def unique(self, name):
        count = self.names.get(name, 0)
        self.names[name] = count + 1
        return f"{name}_{count}" if count else name

    def document(self):
        return {"Rank": self.rank, "WorldSize": self.world_size, "Nodes": self.nodes}


def snake(kind):
    return "".join("_" + c.lower() if c.isupper() else c for c in kind).lstrip("_")


def pretty(value, depth=0):
    """ARK's printer: two spaces per level, but numbers in one line, and all below level four."""
    compact = json.dumps(value, separators=(",", ":"))
    numbers = isinstance(value, list) and all(isinstance(x, (int, float)) for x in value)
    if not isinstance(value, (dict, list)) or numbers or not value or depth > 4:
        return compact
    pad, end = "  " * (depth + 1), "  " * depth
    if isinstance(value, list):
        rows = [pad + pretty(item, depth + 1) for item in value]
        return "[\n" + ",\n".join(rows) + f"\n{end}]"
    rows = [f"{pad}{json.dumps(key)}: {pretty(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{end}}}"


# Arguments


def boolean(value):
    return {"BOOL": value}


def real(value):
    """A float32, printed as the double it is."""
    return {"FLOAT": struct.unpack("f", struct.pack("f", value))[0]}


# What ARK's front end offers


def binary(m, kind, a, b, output=None):
    rank = max(len(a["Shape"]), len(b["Shape"]))
    pad = lambda t: [1] * (rank - len(t["Shape"])) + t["Shape"]
    return m.op(kind, [a, b], [max(pair) for pair in zip(pad(a), pad(b))], output=output)


def unary(m, kind, x):
    return m.op(kind, [x], x["Shape"])


def cast(m, x, dtype):
    return m.op("Cast", [x], x["Shape"], dtype)


def reduce(m, kind, x):
    """A reduction of the last axis, which is kept with extent 1."""
    axis = {"INT": len(x["Shape"]) - 1}
    return m.op(kind, [x], x["Shape"][:-1] + [1], Axis=axis, KeepDim=boolean(True))


def scalar_add(m, x, value):
    return m.op("ScalarAdd", [x], x["Shape"], name="add", Factor=real(value))


def matmul(m, a, b, transpose_other=False):
    columns = b["Shape"][-2 if transpose_other else -1]
    flags = {"TransposeInput": boolean(False), "TransposeOther": boolean(transpose_other)}
    return m.op("Matmul", [a, b], a["Shape"][:-1] + [columns], **flags)


def softmax(m, x):
    e = unary(m, "Exp", binary(m, "Sub", x, reduce(m, "ReduceMax", x)))
    return binary(m, "Div", e, reduce(m, "ReduceSum", e))


def layernorm(m, x, epsilon=1e-6):
    centred = binary(m, "Sub", x, reduce(m, "ReduceMean", x))
    variance = reduce(m, "ReduceMean", binary(m, "Mul", centred, centred))
    return binary(m, "Mul", centred, unary(m, "Rsqrt", scalar_add(m, variance, epsilon)))


def rmsnorm(m, x, weight):
    wide = cast(m, x, "FP32")
    mean = reduce(m, "ReduceMean", binary(m, "Mul", wide, wide))
    scaled = binary(m, "Mul", wide, unary(m, "Rsqrt", mean))
    return cast(m, binary(m, "Mul", scaled, weight, output=scaled), x["DataType"])


# The models


def ffn(m, rows=64, width=128, hidden=512):
    """A transformer feed-forward block: LayerNorm, Matmul, bias, Gelu, Matmul, bias, residual."""
    x, gain, shift = m.tensor([rows, width]), m.tensor([1, width]), m.tensor([1, width])
    up, up_bias = m.tensor([width, hidden]), m.tensor([1, hidden])
    down, down_bias = m.tensor([hidden, width]), m.tensor([1, width])
    normal = binary(m, "Add", binary(m, "Mul", layernorm(m, x), gain), shift)
    inner = unary(m, "Gelu", binary(m, "Add", matmul(m, normal, up), up_bias))
    outer = binary(m, "Add", matmul(m, inner, down), down_bias)
    binary(m, "Add", outer, x)


def softmax_model(m, rows=64, width=256):
    softmax(m, m.tensor([rows, width]))


def layernorm_model(m, rows=64, width=256):
    layernorm(m, m.tensor([rows, width]))


def rmsnorm_model(m, rows=64, width=256):
    rmsnorm(m, m.tensor([1, rows, width], "FP16"), m.tensor([1, 1, width]))


def rmsnorm_f32_model(m, rows=4096, width=2048):
    x, weight = m.tensor([rows, width]), m.tensor([1, width])
    mean = reduce(m, "ReduceMean", binary(m, "Mul", x, x))
    binary(m, "Mul", binary(m, "Mul", x, unary(m, "Rsqrt", mean)), weight)


def swiglu_ffn_f16(m, rows=64, width=128, hidden=256):
    """Llama's feed-forward block: w2(silu(w1 x) * w3 x), weights stored transposed."""
    x = m.tensor([1, rows, width], "FP16")
    w1, w2 = m.tensor([hidden, width], "FP16"), m.tensor([width, hidden], "FP16")
    w3 = m.tensor([hidden, width], "FP16")
    gate = matmul(m, x, w1, transpose_other=True)
    gate = binary(m, "Mul", gate, unary(m, "Sigmoid", gate))
    inner = binary(m, "Mul", gate, matmul(m, x, w3, transpose_other=True))
    matmul(m, inner, w2, transpose_other=True)


def matmul_model(m, size=1024):
    matmul(m, m.tensor([size, size]), m.tensor([size, size]))


def chain(m, nodes, size=32):
    """Matmul and Relu, Add or Sigmoid in turn, each on a weight or bias of its own."""
    x = m.tensor([size, size])
    for node in range(nodes):
        if node % 2 == 0:
            x = matmul(m, x, m.tensor([size, size]))
        elif node % 6 == 3:
            x = binary(m, "Add", x, m.tensor([1, size]))
        else:
            x = unary(m, "Relu" if node % 6 == 1 else "Sigmoid", x)


LARGE = {"rows": 4096, "width": 2048}
MODELS = {
    "ffn": ffn,
    "softmax": softmax_model,
    "layernorm": layernorm_model,
    "rmsnorm": rmsnorm_model,
    "swiglu_ffn_f16": swiglu_ffn_f16,
    "matmul_1024_f32": matmul_model,
    "softmax_4096x2048_f32": lambda m: softmax_model(m, **LARGE),
    "layernorm_4096x2048_f32": lambda m: layernorm_model(m, **LARGE),
    "rmsnorm_4096x2048_f32": lambda m: rmsnorm_f32_model(m, **LARGE),
}


def write(folder, name, build, check=False):
    model = Model()
    build(model)
    write_model(folder, name, model, check)


def write_model(folder, name, model, check):
    path = pathlib.Path(folder) / f"{name}.model.json"
    text = pretty(model.document()) + "\n"
    if check and path.read_text() != text:
        sys.exit(f"{path} is not what make_models.py writes")
    if not check:
        path.write_text(text)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("outdir")
    parser.add_argument("names", nargs="*", metavar="name", choices=[[], "chain", "wide_ffn", *MODELS])
    parser.add_argument("--nodes", type=int, default=200, help="length of the chain")
    parser.add_argument("--check", action="store_true", help="compare with OUTDIR, write nothing")
    args = parser.parse_args()
    for name in args.names or MODELS:
        if name == "chain":
            write(args.outdir, f"chain_{args.nodes}", lambda m: chain(m, args.nodes), args.check)
        elif name == "wide_ffn":
            write(args.outdir, name, lambda m: ffn(m, 512, 1024, 4096), args.check)
        else:
            write(args.outdir, name, MODELS[name], args.check)


if __name__ == "__main__":
    main()
