"""The ops of ARK models in numpy: how numbers are stored, and what each op computes.

16-bit floats compute in float32 and round once per op, to nearest even; sums accumulate in float32;
integers wrap, and divide toward zero, by zero to zero; floats become integers toward zero, but
float16 and bfloat16 to nearest even in 32-bit ones, all saturating.
"""
import numpy as np

# How each type is stored; bfloat16 as its bits.
STORAGE = {
    "FP32": np.float32, "FP16": np.float16, "BF16": np.uint16, "INT32": np.int32,
    "UINT32": np.uint32, "INT8": np.int8, "UINT8": np.uint8, "BYTE": np.uint8,
}
FLOATS = ("FP32", "FP16", "BF16")


class ModelError(Exception):
    """An error in the model or its inputs."""


# Numbers


def widen(stored, dtype):
    """Stored elements converted to the type of the computation."""
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
        return np.mean(x, axis=axis, keepdims=True, dtype=x.dtype)
    total = np.sum(x, axis=axis, keepdims=True, dtype=np.int64)
    return divide(total, np.full_like(total, x.shape[axis])).astype(x.dtype)


def rope(x, other):
    other = np.broadcast_to(other, x.shape)
    even, odd, cos, sin = x[..., 0::2], x[..., 1::2], other[..., 0::2], other[..., 1::2]
    result = np.empty_like(x)
    result[..., 0::2] = even * cos - odd * sin
    result[..., 1::2] = even * sin + odd * cos
    return result


def matrices(a, b, transpose_a, transpose_b):
    """The operands as np.matmul takes them: a 1-D first one is a row, a 1-D second one a column."""
    if a.ndim == 1:
        a = a[None, :]
    if b.ndim == 1:
        b = b[:, None]
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return a, b


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


def compute(op, inputs, output, accumulate):
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
        return reduced(kind, inputs[0], argument(op, "Axis"), dtype, accumulate)
    if kind == "Cast":
        source = op["ReadTensors"][0]["DataType"]
        return inputs[0] if dtype in FLOATS else to_integer(inputs[0], source, dtype)
    if kind == "Matmul":
        flags = argument(op, "TransposeInput"), argument(op, "TransposeOther")
        operands = matrices(*inputs, *flags)
        return accumulate.matmul(*operands, dtype) if accumulate else np.matmul(*operands)
    if kind == "Transpose":
        return np.transpose(inputs[0], argument(op, "Permutation"))
    if kind == "Embedding":
        return rows(op, *inputs)
    raise ModelError(f"{op['Name']}: {kind} is not supported")


def rows(op, index, table):
    """Rows of the table; an index below zero counts from the end, once."""
    index, count = index.astype(np.int64), table.shape[0]
    if np.any((index < -count) | (index >= count)):
        raise ModelError(f"{op['Name']}: an index is beyond the {count} rows of the table")
    return table[index]


def reduced(kind, values, axis, dtype, accumulate):
    if accumulate and dtype in ("FP16", "BF16") and kind != "ReduceMax":
        ark = accumulate.mean if kind == "ReduceMean" else accumulate.total
        return ark(values, axis, dtype)
    return REDUCE[kind](values, axis)


def fit(values, op, shape):
    """The result under the shape of the output: dropped unit dimensions, or a broadcast."""
    reshaped = op["Type"] in REDUCE or op["Type"] in ("Matmul", "Embedding")
    if reshaped and values.size == np.prod(shape):
        return values.reshape(shape)
    return np.broadcast_to(values, shape)


def evaluate(op, memory, accumulate=None):
    """Runs one op that stays on its rank; `accumulate` is the module with ARK's order of accumulation."""
    if op["Type"] == "Noop":
        return
    if len(op["WriteTensors"]) != 1:
        raise ModelError(f"{op['Name']}: expected one write tensor")
    reads, (output,) = op["ReadTensors"], op["WriteTensors"]
    if op["Type"] == "Matmul":
        # Rows, columns and depth of a product are those of the padding.
        reads, output = [padded(tensor) for tensor in reads], padded(output)
    result = compute(op, [memory.load(tensor) for tensor in reads], output, accumulate)
    memory.store(output, fit(result, op, output["Shape"]))


def padded(tensor):
    return {**tensor, "Shape": tensor.get("PaddedShape", tensor["Shape"])}
