"""Reductions, scans along an axis, and choices of elements by their order."""
import numpy as np
from onnx import TensorProto as T

from operators import operator, some_axes, some_axis, with_axes
from values import FLOATS, NUMBERS, as_double

# Name, types, whether without rounding, least element, since when axes are an input.
REDUCTIONS = [
    ("ReduceL1", FLOATS + (T.INT32, T.INT64), None, 18), ("ReduceL2", FLOATS, None, 18),
    ("ReduceLogSum", FLOATS, 0.1, 18), ("ReduceLogSumExp", FLOATS, None, 18),
    ("ReduceMax", NUMBERS, None, 18), ("ReduceMean", FLOATS + (T.INT32,), None, 18),
    ("ReduceMin", NUMBERS, None, 18), ("ReduceProd", FLOATS + (T.INT32, T.INT64), None, 18),
    ("ReduceSum", FLOATS + (T.INT32, T.INT64), None, 13),
    ("ReduceSumSquare", FLOATS + (T.INT32, T.INT64), None, 18),
]


def register_reductions():
    for name, types, low, since in REDUCTIONS:
        def reduce(g, name=name, types=types, low=low, since=since):
            x = g.pick(types, low=low)
            if name in ("ReduceMax", "ReduceMin", "ReduceLogSumExp", "ReduceMean", "ReduceLogSum") and not x.array.size:
                x = g.fresh(T.FLOAT, (2, 3), low or -1, 3)
            inputs, attributes = with_axes(g, some_axes(g, x.rank), since)
            if g.opset >= since and g.chance(0.15):
                attributes["noop_with_empty_axes"] = 1
            g.node(name, [x, *inputs], exact=name in ("ReduceMax", "ReduceMin"), keepdims=g.choice((None, 0, 1)),
                   **attributes)
        operator(name, 11)(reduce)


register_reductions()


def ranked(g, types, exact=False, **limits):
    """A tensor of one dimension or more, of which none is empty."""
    return g.pick(types, range(1, 5), exact=exact, where=lambda value: value.array.size > 0, **limits)


def register_arguments():
    for name in ("ArgMax", "ArgMin"):
        def arg(g, name=name):
            x = ranked(g, NUMBERS, exact=True)
            last = g.choice((None, 0, 1)) if g.opset >= 12 else None
            g.node(name, [x], axis=some_axis(g, x.rank), keepdims=g.choice((None, 0, 1)), select_last_index=last)
        operator(name, 11)(arg)
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        def softmax(g, name=name):
            x = ranked(g, FLOATS, exact=name == "Hardmax")
            g.node(name, [x], axis=some_axis(g, x.rank) if g.chance(0.8) else None)
        operator(name, 11)(softmax)


register_arguments()


@operator("CumSum", 11)
def cum_sum(g):
    x = ranked(g, FLOATS + (T.INT32, T.INT64))
    axis = g.ints(some_axis(g, x.rank), g.choice((T.INT32, T.INT64)))
    g.node("CumSum", [x, axis], exclusive=g.choice((None, 1)), reverse=g.choice((None, 1)))


@operator("CumProd", 26)
def cum_prod(g):
    x = ranked(g, FLOATS + (T.INT32, T.INT64), low=-2, high=2)
    axis = g.ints(some_axis(g, x.rank), g.choice((T.INT32, T.INT64)))
    g.node("CumProd", [x, axis], exclusive=g.choice((None, 1)), reverse=g.choice((None, 1)))


@operator("TopK", 11)
def top_k(g):
    x = ranked(g, NUMBERS, exact=True)
    axis = some_axis(g, x.rank)
    g.node("TopK", [x, g.ints([g.int(1, x.shape[axis])])], 2, exact=True, axis=axis, largest=g.choice((None, 0, 1)),
           sorted=1)


@operator("LpNormalization", 1)
def lp_normalization(g):
    x = g.pick(FLOATS, range(1, 5), where=nonzero)
    g.node("LpNormalization", [x], axis=some_axis(g, x.rank), p=g.choice((1, 2, None)))


def nonzero(value):
    return value.array.size > 0 and bool((np.abs(as_double(value.array)) > 0.05).all())
