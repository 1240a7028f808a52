"""Writes numpy.npz beside this file: operands and results of every op, computed by numpy.

Keys are `CASE.0`, `CASE.1` for the operands and `CASE.out`; a case is an op and an element type,
`add_f32`. bfloat16 is its bits in uint16, by the rules of tests/oracle.
"""
import pathlib
import sys

import numpy as np

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(here.parents[5] / "tests" / "oracle"))
import ark_ops as ark

TYPES = {"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i32": "INT32"}
rng = np.random.default_rng(0)
arrays = {}


def case(name, dtype, function, *operands, to=None):
    """Operands are rounded to the type first; the function sees them widened."""
    stored = [x if x.dtype == np.int32 else ark.narrow(x, TYPES[dtype]) for x in operands]
    wide = [ark.widen(x, "INT32" if x.dtype == np.int32 else TYPES[dtype]) for x in stored]
    for place, operand in enumerate(stored):
        arrays[f"{name}_{dtype}.{place}"] = operand
    arrays[f"{name}_{dtype}.out"] = ark.narrow(function(*wide), TYPES[to or dtype])


def draw(*shape):
    return rng.standard_normal(shape).astype(np.float32)


for dtype in ("f32", "f16", "bf16"):
    for op in ("Exp", "Relu", "Gelu", "Sigmoid"):
        case(op.lower(), dtype, ark.UNARY[op], draw(3, 5) * 3)
    for op in ("Sqrt", "Rsqrt"):
        case(op.lower(), dtype, ark.UNARY[op], np.abs(draw(3, 5)) + 0.1)
    for op, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply),
                         ("div", np.divide), ("max", np.maximum)):
        case(op, dtype, function, draw(2, 1, 4), draw(3, 1))
    case("matmul", dtype, np.matmul, draw(2, 3, 7), draw(7, 4))
    case("matmul_tt", dtype, lambda a, b: a.T @ b.T, draw(7, 3), draw(4, 7))
    case("reduce_sum", dtype, lambda x: x.sum(1, keepdims=True), draw(3, 9, 2))
    case("reduce_mean", dtype, lambda x: x.mean((0, 2)), draw(3, 9, 2))
    case("rope", dtype, ark.rope, draw(2, 3, 4), draw(3, 4))
    case("to_i32", dtype, lambda x: ark.to_integer(x, TYPES[dtype], "INT32"), draw(20) * 4, to="i32")
    case("to_f16", dtype, lambda x: x, draw(20) * 1e3, to="f16")
    case("to_bf16", dtype, lambda x: x, draw(20) * 1e3, to="bf16")
    index = np.array([[0, -1], [2, -5]], np.int32)
    case("gather", dtype, lambda table, rows: table[rows], draw(5, 3), index)
    case("log1p", dtype, np.log1p, np.abs(draw(3, 5)) * 1e-3)

np.savez_compressed(here.with_name("numpy.npz"), **arrays)
