"""Sequences and optional values."""
import numpy as np
from onnx import TensorProto as T
from onnx import helper

from graph import Rejected
from operators import operator, some_axis

KINDS = (T.FLOAT, T.DOUBLE, T.INT64, T.INT32, T.BOOL)


def sequence(g, least=0):
    found = [value for value in g.values if value.is_sequence and len(value.array) >= least]
    if found and g.chance(0.8):
        return g.choice(found)
    return construct(g)


@operator("SequenceConstruct", 11)
def construct(g):
    x = g.pick(KINDS)
    return g.node("SequenceConstruct", [x] + [g.pick(x.element, x.rank) for _ in range(g.int(0, 3))], exact=True)


@operator("SequenceAt", 11, weight=2)
def at(g):
    items = sequence(g, 1)
    count = len(items.array)
    g.node("SequenceAt", [items, g.ints(g.int(-count, count - 1), g.choice((T.INT64, T.INT32)))], exact=items.exact)


@operator("SequenceLength", 11)
def length(g):
    g.node("SequenceLength", [sequence(g)])


@operator("SequenceInsert", 11)
def insert(g):
    items = sequence(g)
    x = g.pick(items.element)
    place = [g.ints(g.int(-len(items.array), len(items.array)))] if g.chance(0.6) else []
    g.node("SequenceInsert", [items, x, *place], exact=True)


@operator("SequenceErase", 11)
def erase(g):
    items = sequence(g, 1)
    place = [g.ints(g.int(-len(items.array), len(items.array) - 1))] if g.chance(0.6) else []
    g.node("SequenceErase", [items, *place], exact=True)


@operator("SplitToSequence", 11)
def split_to_sequence(g):
    x = g.pick((T.FLOAT, T.DOUBLE, T.INT32, T.INT64), range(1, 4), where=lambda value: value.array.size > 0)
    axis = some_axis(g, x.rank)
    size = x.shape[axis]
    kind = g.int(0, 2)
    if kind == 0:
        g.node("SplitToSequence", [x], exact=True, axis=axis, keepdims=g.choice((None, 0, 1)))
    elif kind == 1:
        g.node("SplitToSequence", [x, g.ints(g.int(1, size))], exact=True, axis=axis)
    else:
        first = g.int(0, size)
        g.node("SplitToSequence", [x, g.ints([first, size - first])], exact=True, axis=axis)


@operator("ConcatFromSequence", 11)
def concat_from_sequence(g):
    if g.chance(0.5):
        x = g.pick((T.FLOAT, T.INT64), range(1, 4))
        others = [g.pick(x.element, shape=x.shape) for _ in range(g.int(0, 2))]
        items = g.node("SequenceConstruct", [x, *others], exact=True)
    else:
        items = sequence(g, 1)
    rank = items.array[0].ndim
    if rank == 0:
        raise Rejected
    stack = g.chance(0.3)
    g.node("ConcatFromSequence", [items], exact=True, axis=g.int(0, rank - 1), new_axis=int(stack) or None)


@operator("Optional", 15, weight=0.5)
def optional(g):
    x = g.pick(KINDS)
    wrapped = helper.make_node("Optional", [x.name], [g.name("o")])
    g.nodes.append(wrapped)
    g.root.used.append("Optional")
    if g.chance(0.4):
        forced(g, "OptionalHasElement", wrapped.output[0], np.array(True), True)
    else:
        forced(g, "OptionalGetElement", wrapped.output[0], x.array, x.exact)


def forced(g, op, name, array, exact):
    """Adds a node whose result is known: an optional is no input of a model for ONNX Runtime."""
    result = g.value(g.name("v"), array, exact, True)
    g.nodes.append(helper.make_node(op, [name], [result.name]))
    g.values.append(result)
    g.root.used.append(op)
