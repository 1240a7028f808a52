"""Operators that select elements by indices or conditions, and scatter them."""
import numpy as np
from onnx import TensorProto as T

from operators import operator, some_axis
from values import FLOATS, PLAIN


def filled(value):
    return value.array.size > 0


def indices(g, shape, size, negative=True):
    """Indices of a dimension: computed ones that fit, or new ones."""
    low = -size if negative else 0
    return g.pick((T.INT64, T.INT32), shape=shape, low=low, high=size - 1)


@operator("Gather", 11, weight=2)
def gather(g):
    x = g.pick(PLAIN, range(1, 5), where=filled)
    axis = some_axis(g, x.rank)
    g.node("Gather", [x, indices(g, g.new_shape(g.int(0, 2)), x.shape[axis])], exact=True, axis=axis)


@operator("GatherElements", 11)
def gather_elements(g):
    x = g.pick(PLAIN, range(1, 4), where=filled)
    axis = some_axis(g, x.rank)
    shape = list(x.shape)
    shape[axis] = g.int(1, 5)
    g.node("GatherElements", [x, indices(g, tuple(shape), x.shape[axis])], exact=True, axis=axis)


@operator("GatherND", 12)
def gather_nd(g):
    x = g.pick(PLAIN, range(1, 4), where=filled)
    batch = g.int(0, x.rank - 1) if g.chance(0.3) else 0
    depth = g.int(1, x.rank - batch)
    outer = x.shape[:batch] + g.new_shape(g.int(1, 2) if batch == 0 else 1)
    array = np.stack([g.rng.integers(-size, size, outer) for size in x.shape[batch:batch + depth]], -1)
    g.node("GatherND", [x, g.given(array)], exact=True, batch_dims=batch or None)


def distinct(g, size):
    """Distinct indices, since the order of writes is not defined."""
    count = min(size, g.int(1, 4))
    return g.rng.permutation(size)[:count]


@operator("ScatterElements", 11)
def scatter_elements(g):
    x = g.pick(PLAIN, range(1, 4), where=filled)
    axis = g.int(0, x.rank - 1)
    shape = [g.int(1, size) for size in x.shape]
    chosen = distinct(g, x.shape[axis])
    shape[axis] = len(chosen)
    spread = chosen.reshape([-1 if place == axis else 1 for place in range(x.rank)])
    array = np.broadcast_to(spread, shape) - (x.shape[axis] if g.chance(0.2) else 0)
    updates = g.pick(x.element, shape=tuple(shape))
    kinds = (None, None) + (("add", "mul") if g.opset >= 16 and x.element != T.BOOL else ())
    kinds += ("max", "min") if g.opset >= 18 and x.element in FLOATS else ()
    g.node("ScatterElements", [x, g.given(array.copy()), updates], axis=axis, reduction=g.choice(kinds))


@operator("ScatterND", 11)
def scatter_nd(g):
    x = g.pick(PLAIN, range(1, 4), where=filled)
    depth = g.int(1, x.rank)
    chosen = distinct(g, int(np.prod(x.shape[:depth])))
    array = np.stack(np.unravel_index(chosen, x.shape[:depth]), -1).astype(np.int64)
    updates = g.pick(x.element, shape=(len(chosen), *x.shape[depth:]))
    kinds = (None, None) + (("add", "mul") if g.opset >= 16 and x.element != T.BOOL else ())
    kinds += ("max", "min") if g.opset >= 18 and x.element in FLOATS else ()
    g.node("ScatterND", [x, g.given(array), updates], reduction=g.choice(kinds))


@operator("OneHot", 11)
def one_hot(g):
    depth = g.int(1, 6)
    index = indices(g, g.new_shape(g.int(1, 3)), depth)
    values = g.pick((T.FLOAT, T.INT64, T.INT32), shape=(2,))
    g.node("OneHot", [index, g.ints(g.choice((depth, [depth]))), values], exact=True,
           axis=g.choice((None, 0, -1, index.rank)))


@operator("NonZero", 9, varies=True)
def non_zero(g):
    g.node("NonZero", [g.pick(PLAIN, range(1, 4), exact=True)])


@operator("Compress", 11, varies=True)
def compress(g):
    x = g.pick(PLAIN, range(1, 4), where=filled)
    axis = some_axis(g, x.rank) if g.chance(0.7) else None
    size = x.array.size if axis is None else x.shape[axis]
    g.node("Compress", [x, g.pick(T.BOOL, shape=(g.int(1, min(size, 9)),))], exact=True, axis=axis)


@operator("Unique", 11, varies=True)
def unique(g):
    x = g.pick((T.FLOAT, T.INT64, T.DOUBLE, T.INT8), range(1, 3), exact=True,
               where=lambda value: filled(value) and bool((value.array == value.array).all()))
    g.node("Unique", [x], g.choice((1, 4, [1, 0, 1])), exact=True, sorted=g.choice((None, 0, 1)),
           axis=some_axis(g, x.rank) if g.chance(0.4) else None)


@operator("NonMaxSuppression", 11, varies=True)
def non_max_suppression(g):
    count = g.int(1, 8)
    corners = np.round(g.rng.uniform(0, 8, (1, count, 2, 2)), 1)
    boxes = np.sort(corners, 2).reshape(1, count, 4).astype(np.float32)
    scores = g.rng.permutation(2 * count).reshape(1, 2, count).astype(np.float32) / (2 * count)
    floats = lambda number: g.constant(np.float32(number))
    g.node("NonMaxSuppression", [g.constant(boxes), g.constant(scores), g.ints([g.int(1, 4)]),
                                 floats(g.choice((0.3, 0.5))), floats(g.choice((0.0, 0.35)))])


@operator("TfIdfVectorizer", 9)
def tf_idf(g):
    x = g.pick((T.INT64, T.INT32), range(1, 3), low=0, high=5, where=filled)
    pool = [2, 3, 5, 4, 5, 4, 2, 3]
    g.node("TfIdfVectorizer", [x], mode=g.choice(("TF", "IDF", "TFIDF")), min_gram_length=1, max_gram_length=2,
           max_skip_count=g.int(0, 2), ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5], pool_int64s=pool,
           weights=[1.0, 2.0, 0.5, 1.5, 3.0, 0.25])


@operator("TensorScatter", 24)
def tensor_scatter(g):
    past = g.pick((T.FLOAT,), shape=(None, None, 6, None), where=filled)
    update = g.pick((T.FLOAT,), shape=(past.shape[0], past.shape[1], g.int(1, 3), past.shape[3]))
    starts = g.given(g.rng.integers(0, 3, past.shape[:1]))
    g.node("TensorScatter", [past, update, starts], exact=True, axis=2, mode=g.choice((None, "circular")))
