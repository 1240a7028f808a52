"""Normalisations, losses, attention."""
import numpy as np
from onnx import TensorProto as T

from operators import operator, some_axis

REALS = (T.FLOAT, T.FLOAT, T.DOUBLE, T.FLOAT16)


def varied(value):
    """Whether a tensor has enough different elements for its variance not to be a rounding error."""
    return value.array.size > 1 and float(np.asarray(value.array, np.float64).std()) > 0.3


def image(g, channels=None):
    return g.pick(REALS, shape=(None, channels, None, None)[:g.int(3, 4)], where=varied)


@operator("BatchNormalization", 9)
def batch_normalization(g):
    x = image(g)
    row = lambda **limits: g.pick(x.element, shape=(x.shape[1],), **limits)
    g.node("BatchNormalization", [x, row(), row(), row(), row(low=0.2, high=3)], epsilon=g.choice((None, 1e-3)))


@operator("InstanceNormalization", 6)
def instance_normalization(g):
    x = image(g)
    row = lambda: g.pick(x.element, shape=(x.shape[1],))
    g.node("InstanceNormalization", [x, row(), row()], epsilon=1e-2)


@operator("LayerNormalization", 17, weight=2)
def layer_normalization(g):
    x = g.pick(REALS, range(1, 5), where=varied)
    axis = some_axis(g, x.rank)
    row = lambda: g.pick(x.element, shape=x.shape[axis:])
    bias = [row()] if g.chance(0.5) else []
    g.node("LayerNormalization", [x, row(), *bias], g.choice((1, 1, 3)), axis=axis, epsilon=1e-2)


@operator("RMSNormalization", 23)
def rms_normalization(g):
    x = g.pick(REALS, range(1, 5), where=varied)
    axis = some_axis(g, x.rank)
    g.node("RMSNormalization", [x, g.pick(x.element, shape=x.shape[axis:])], axis=axis, epsilon=1e-2)


@operator("GroupNormalization", 18)
def group_normalization(g):
    groups = g.int(1, 2)
    x = image(g, groups * g.int(1, 3))
    count = groups if g.opset < 21 else x.shape[1]
    row = lambda: g.pick(x.element, shape=(count,))
    g.node("GroupNormalization", [x, row(), row()], num_groups=groups, epsilon=1e-2)


@operator("MeanVarianceNormalization", 13)
def mean_variance_normalization(g):
    x = g.pick(T.FLOAT, shape=(None,) * 4, where=spread)
    g.node("MeanVarianceNormalization", [x], axes=g.choice((None, [0, 2, 3])))


def spread(value):
    """Whether each channel varies."""
    return value.array.size > 0 and float(value.array.std(axis=(0, 2, 3)).min()) > 0.3


@operator("LRN", 1)
def lrn(g):
    x = g.pick(T.FLOAT, shape=(None,) * 4)
    g.node("LRN", [x], size=g.choice((1, 3, 5)), alpha=g.choice((None, 0.1)), bias=1.0)


def finite(value):
    """Whether there are elements, and all are finite."""
    return value.array.size > 0 and bool(np.isfinite(value.array).all())


def register_losses():
    for name in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        def loss(g, name=name):
            classes = g.int(2, 5)
            x = g.pick((T.FLOAT, T.DOUBLE), shape=(None, classes, None)[:g.int(2, 3)], where=finite)
            target = g.given(g.rng.integers(0, classes, (x.shape[0], *x.shape[2:])))
            weight = [g.pick(x.element, shape=(classes,), low=0.5, high=2)] if g.chance(0.5) else []
            g.node(name, [x, target, *weight], reduction=g.choice((None, "none", "sum", "mean")),
                   ignore_index=g.choice((None, 0, -1)))
        operator(name, 13)(loss)


register_losses()


@operator("Attention", 23, weight=2)
def attention(g):
    batch, heads, groups, depth = g.int(1, 2), g.int(1, 2), g.int(1, 2), g.int(1, 4)
    queries, keys = g.int(1, 4), g.int(1, 5)
    part = lambda count, length: g.pick(T.FLOAT, shape=(batch, count, length, depth))
    inputs = [part(heads * groups, queries), part(heads, keys), part(heads, keys)]
    if g.chance(0.4):
        kind = g.choice((T.FLOAT, T.BOOL))
        mask = g.pick(kind, shape=(queries, keys), where=lambda v: kind == T.FLOAT or bool(v.array.any(1).all()))
        inputs.append(mask)
    g.node("Attention", inputs, is_causal=g.choice((None, 1)), scale=g.choice((None, 0.5)),
           softcap=g.choice((None, None, 2.0)))


@operator("RotaryEmbedding", 23)
def rotary_embedding(g):
    batch, heads, length, half = g.int(1, 2), g.int(1, 3), g.int(1, 4), g.int(1, 3)
    x = g.pick(T.FLOAT, shape=(batch, heads, length, 2 * half))
    table = lambda: g.pick(T.FLOAT, shape=(7, half), low=-1, high=1)
    places = g.given(g.rng.integers(0, 7, (batch, length)))
    g.node("RotaryEmbedding", [x, table(), table(), places], interleaved=g.choice((None, 1)))
