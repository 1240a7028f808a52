#!/usr/bin/env python3
"""Evaluates an ARK model file with numpy: an independent oracle, sharing no code with irc.

    ark_numpy.py MODEL.json --outputs Y.npz [--inputs X.npz] [--seed N] [--save-inputs X.npz]

Keys are `buffer_<Id>`: the whole buffer, 1-D, in the type of the first tensor on it in file order
(node by node: read, write, result tensors), BF16 as its bits in uint16. Buffers not given start as
zero; with --seed, buffers that are read before they are written are filled with the values
`Tensor::random` documents. Every buffer that is written comes back.

Meaning follows ARK's op table: nodes run in list order; 16-bit floats compute in float32 and round
once per op, to nearest even; sums accumulate in float32; integers wrap, and divide toward zero, by
zero to zero; floats become integers toward zero, but float16 and bfloat16 to nearest even in 32-bit ones, all
saturating.
Communication is refused. Needs numpy alone (see requirements.txt).
"""
import argparse
import json
import sys

import numpy as np

# How each type is stored; bfloat16 as its bits.
STORAGE = {
    "FP32": np.float32, "FP16": np.float16, "BF16": np.uint16, "INT32": np.int32,
    "UINT32": np.uint32, "INT8": np.int8, "UINT8": np.uint8, "BYTE": np.uint8,
}
FLOATS = ("FP32", "FP16", "BF16")


class ModelError(Exception):
    """What is wrong with the model or its inputs."""


# Numbers


def widen(stored, dtype):
    """Stored elements as the type they are computed in."""
    if dtype == "BF16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return stored.astype(np.float32) if dtype == "FP16" else stored.copy()


def narrow(values, dtype):
    """Computed elements as they are stored: floats round to nearest even."""
    if dtype == "BF16":
        return bf16_bits(np.asarray(values, np.float32))
    return np.asarray(values).astype(STORAGE[dtype])


def bf16_bits(values):
    bits = np.ascontiguousarray(values).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    quiet = ((bits >> np.uint32(16)) | np.uint32(0x40)).astype(np.uint16)
    return np.where(np.isnan(values), quiet, rounded).reshape(values.shape)


def round_to(value, dtype):
    """A scalar argument as an element of the tensor's type, widened again."""
    array = np.float32([value])
    stored = narrow(array, dtype) if dtype in FLOATS else to_integer(array, "FP32", dtype)
    return widen(stored, dtype)[0]


def to_integer(values, source, dtype):
    if source not in FLOATS:
        return values.astype(STORAGE[dtype])
    wide = values.astype(np.float64)
    # ARK has rounding intrinsics from 16-bit floats to 32-bit integers; the rest are C++ casts.
    rounds = source != "FP32" and dtype in ("INT32", "UINT32")
    wide = np.rint(wide) if rounds else np.trunc(wide)
    limits = np.iinfo(STORAGE[dtype])
    wide = np.where(np.isnan(wide), 0, np.clip(wide, limits.min, limits.max))
    return wide.astype(np.int64).astype(STORAGE[dtype])


def divide(a, b):
    if np.issubdtype(a.dtype, np.floating):
        return a / b
    a, b, kind = a.astype(np.int64), b.astype(np.int64), a.dtype
    quotient = np.abs(a) // np.where(b == 0, 1, np.abs(b))
    return np.where(b == 0, 0, np.sign(a) * np.sign(b) * quotient).astype(kind)


def gelu(x):
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))


def mean(x, axis):
    if np.issubdtype(x.dtype, np.floating):
        return np.mean(x, axis=axis, keepdims=True, dtype=np.float32)
    total = np.sum(x, axis=axis, keepdims=True, dtype=np.int64)
    return divide(total, np.full_like(total, x.shape[axis])).astype(x.dtype)


def rope(x, other):
    other = np.broadcast_to(other, x.shape)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], other[..., 0::2], other[..., 1::2]
    result = np.empty_like(x)
    result[..., 0::2] = even * cos - odd * sin
    result[..., 1::2] = even * sin + odd * cos
    return result


def matmul(a, b, transpose_a, transpose_b):
    if a.ndim == 1:
        a = a[None, :]
    if b.ndim == 1:
        b = b[:, None]
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return np.matmul(a, b)


UNARY = {
    "Exp": np.exp, "Gelu": gelu, "Relu": lambda x: np.maximum(x, 0), "Copy": lambda x: x,
    "Rsqrt": lambda x: np.float32(1) / np.sqrt(x), "Sqrt": np.sqrt,
    "Sigmoid": lambda x: np.float32(1) / (np.float32(1) + np.exp(-x)),
}
BINARY = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": divide, "Rope": rope}
SCALAR = {"ScalarAdd": np.add, "ScalarMul": np.multiply}
REDUCE = {
    "ReduceSum": lambda x, axis: np.sum(x, axis=axis, keepdims=True, dtype=x.dtype),
    "ReduceMax": lambda x, axis: np.max(x, axis=axis, keepdims=True),
    "ReduceMean": mean,
}


# Ops


def argument(op, *names):
    for name in names:
        if name in op["Args"]:
            (value,) = op["Args"][name].values()
            return value
    raise ModelError(f"{op['Name']}: no argument {names[0]}")


def compute(op, inputs, output):
    """The result of one op, widened; `inputs` are widened too."""
    kind, dtype = op["Type"], output["DataType"]
    if kind in UNARY:
        return UNARY[kind](*inputs)
    if kind in BINARY:
        return BINARY[kind](*inputs)
    if kind in SCALAR:
        return SCALAR[kind](inputs[0], round_to(argument(op, "Factor", "Value"), dtype))
    if kind == "ScalarAssign":
        return np.full(output["Shape"], round_to(argument(op, "Value", "Factor"), dtype))
    if kind in REDUCE:
        return REDUCE[kind](inputs[0], argument(op, "Axis"))
    if kind == "Cast":
        source = op["ReadTensors"][0]["DataType"]
        return inputs[0] if dtype in FLOATS else to_integer(inputs[0], source, dtype)
    if kind == "Matmul":
        return matmul(*inputs, argument(op, "TransposeInput"), argument(op, "TransposeOther"))
    if kind == "Transpose":
        return np.transpose(inputs[0], argument(op, "Permutation"))
    if kind == "Embedding":
        return inputs[1][inputs[0].astype(np.int64)]
    raise ModelError(f"{op['Name']}: {kind} is not evaluated (communication, or unknown)")


def fit(values, op, shape):
    """The result under the shape of the output: dropped unit dimensions, or a broadcast."""
    reshaped = op["Type"] in REDUCE or op["Type"] in ("Matmul", "Embedding")
    if reshaped and values.size == np.prod(shape):
        return values.reshape(shape)
    return np.broadcast_to(values, shape)


# Buffers


def ops_of(model):
    """The ops in the order they run. Older files keep several in one node."""
    for node in model["Nodes"]:
        for op in node.get("Ops") or [node["Op"]]:
            if not op.get("IsVirtual"):
                yield op


def tensors_of(op):
    return op["ReadTensors"] + op["WriteTensors"] + op["ResultTensors"]


class Memory:
    """Every buffer of a model, as bytes."""

    def __init__(self, model):
        self.types, sizes = {}, {}
        for op in ops_of(model):
            for tensor in tensors_of(op):
                key, dtype = tensor["Buffer"]["Id"], tensor["DataType"]
                size = int(np.prod(tensor["Strides"])) * np.dtype(STORAGE[dtype]).itemsize
                self.types.setdefault(key, dtype)
                sizes[key] = max(size, sizes.get(key, 0))
        self.bytes = {key: np.zeros(size, np.uint8) for key, size in sizes.items()}

    def whole(self, key):
        return self.bytes[key].view(STORAGE[self.types[key]])

    def view(self, tensor):
        dtype, shape = np.dtype(STORAGE[tensor["DataType"]]), tensor["Strides"]
        count = int(np.prod(shape))
        flat = self.bytes[tensor["Buffer"]["Id"]][: count * dtype.itemsize].view(dtype)
        box = zip(tensor["Offsets"], tensor["Shape"])
        return flat.reshape(shape)[tuple(slice(low, low + size) for low, size in box)]

    def load(self, tensor):
        return widen(self.view(tensor), tensor["DataType"])

    def fill(self, key, values):
        whole = self.whole(key)
        if values.dtype != whole.dtype or values.shape != whole.shape:
            found = f"{values.dtype}{list(values.shape)}"
            raise ModelError(f"buffer_{key}: expected {whole.dtype}{list(whole.shape)}, found {found}")
        whole[:] = values


def inputs_and_outputs(model):
    """Buffers read before they are written, and buffers written, in file order."""
    inputs, outputs = {}, {}
    for op in ops_of(model):
        for tensor in op["ReadTensors"]:
            if tensor["Buffer"]["Id"] not in outputs:
                inputs[tensor["Buffer"]["Id"]] = True
        for tensor in op["WriteTensors"]:
            outputs[tensor["Buffer"]["Id"]] = True
    return list(inputs), list(outputs)


def run(model, memory):
    for op in ops_of(model):
        if op["Type"] == "Noop":
            continue
        if len(op["WriteTensors"]) != 1:
            raise ModelError(f"{op['Name']}: expected one write tensor")
        (output,) = op["WriteTensors"]
        inputs = [memory.load(tensor) for tensor in op["ReadTensors"]]
        result = fit(compute(op, inputs, output), op, output["Shape"])
        memory.view(output)[...] = narrow(result, output["DataType"])


# Random inputs: `Tensor::random` and `seed_for` of irc-tensor, from their documentation


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return value


def splitmix(seed, index):
    with np.errstate(over="ignore"):
        state = np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15) * (index + np.uint64(1))
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return state ^ (state >> np.uint64(31))


def random(count, dtype, seed):
    first = np.arange(count, dtype=np.uint64) * np.uint64(3)
    if dtype not in FLOATS:
        signed = dtype.startswith("INT")
        draw = splitmix(seed, first) % np.uint64(16 if signed else 8)
        return (draw.astype(np.int64) - (8 if signed else 0)).astype(STORAGE[dtype])
    total = np.zeros(count, np.uint64)
    for word in range(3):
        drawn = splitmix(seed, first + np.uint64(word))
        for shift in (0, 16, 32, 48):
            total += (drawn >> np.uint64(shift)) & np.uint64(0xFFFF)
    return narrow(((total.astype(np.float64) - 393210) / 65536).astype(np.float32), dtype)


def prepare(model, memory, given, seed):
    """Fills the buffers before the run, and returns those that were filled."""
    for name in given:
        if not name.startswith("buffer_") or not name[7:].isdigit():
            raise ModelError(f"expected keys buffer_<Id>, found {name}")
        if int(name[7:]) not in memory.bytes:
            raise ModelError(f"{name}: the model has no such buffer")
        memory.fill(int(name[7:]), given[name])
    filled = {name: given[name] for name in given}
    for key in inputs_and_outputs(model)[0] if seed is not None else []:
        name = f"buffer_{key}"
        if name not in given:
            count = memory.whole(key).size
            filled[name] = random(count, memory.types[key], seed ^ fnv1a(name))
            memory.fill(key, filled[name])
    return filled


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--inputs", help="npz of whole buffers")
    parser.add_argument("--outputs", required=True, help="npz to write: every buffer written")
    parser.add_argument("--seed", type=int, help="fill inputs not given with random values")
    parser.add_argument("--save-inputs", help="npz to write: the inputs used")
    args = parser.parse_args()
    with open(args.model) as file:
        model = json.load(file)
    memory = Memory(model)
    given = dict(np.load(args.inputs)) if args.inputs else {}
    filled = prepare(model, memory, given, args.seed)
    if args.save_inputs:
        np.savez(args.save_inputs, **filled)
    with np.errstate(all="ignore"):
        run(model, memory)
    written = inputs_and_outputs(model)[1]
    np.savez(args.outputs, **{f"buffer_{key}": memory.whole(key) for key in written})


if __name__ == "__main__":
    try:
        main()
    except ModelError as error:
        sys.exit(f"ark_numpy: {error}")
