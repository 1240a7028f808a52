"""Quantised operators."""
import numpy as np
from onnx import TensorProto as T

from operators import operator, some_axis
from operators.spatial import image, window
from values import SMALL_FLOATS, SMALL_INTS

BYTES = (T.UINT8, T.INT8)


def scale(g, shape=(), element=T.FLOAT):
    """Scales, powers of two at times, so that quotients end halfway between integers."""
    if g.chance(0.5):
        return g.given(np.full(shape, g.choice((0.125, 0.25, 0.5, 1.0)), np.float32), element)
    return g.pick(element, shape=shape, low=0.05, high=1)


def zero(g, element, shape=()):
    return g.pick(element, shape=shape, low=0 if element in (T.UINT8, T.UINT16, T.UINT4) else -4, high=6)


def quantised_types(g):
    return BYTES + ((T.UINT16, T.INT16, *SMALL_INTS) if g.opset >= 21 else ())


@operator("QuantizeLinear", 13, weight=2)
def quantize_linear(g):
    x = g.pick((T.FLOAT,), range(0, 5), exact=True, where=lambda value: value.array.size > 0)
    element = g.choice(quantised_types(g))
    axis = some_axis(g, x.rank) if x.rank and g.chance(0.4) else None
    shape = () if axis is None else (x.shape[axis],)
    zeros = [zero(g, element, shape)] if element != T.UINT8 or g.chance(0.7) else []
    g.node("QuantizeLinear", [x, scale(g, shape), *zeros], axis=axis)


@operator("DequantizeLinear", 13, weight=2)
def dequantize_linear(g):
    x = g.pick(quantised_types(g) + (T.INT32,), range(0, 5), where=lambda value: value.array.size > 0)
    blocks = g.opset >= 21 and x.rank and g.chance(0.2)
    if blocks:
        axis = g.int(0, x.rank - 1)
        block = g.int(1, 4)
        shape = tuple(-(-size // block) if place == axis else size for place, size in enumerate(x.shape))
        zeros = [zero(g, x.element, shape)] if x.element != T.INT32 and g.chance(0.6) else []
        g.node("DequantizeLinear", [x, scale(g, shape), *zeros], axis=axis, block_size=block)
        return
    axis = some_axis(g, x.rank) if x.rank and g.chance(0.4) else None
    shape = () if axis is None else (x.shape[axis],)
    zeros = [zero(g, x.element, shape)] if x.element != T.INT32 and g.chance(0.7) else []
    g.node("DequantizeLinear", [x, scale(g, shape), *zeros], axis=axis)


@operator("QuantizeLinear", 19, weight=0.5)
def quantize_small_floats(g):
    x = g.pick((T.FLOAT,), range(0, 4), exact=True)
    element = g.choice(SMALL_FLOATS)
    g.node("QuantizeLinear", [x, scale(g), g.constant(np.zeros(()), element)], saturate=g.choice((None, 1)))


def filled(value):
    """Whether there are elements, and all are finite."""
    return value.array.size > 0 and bool(np.isfinite(value.array).all())


@operator("DynamicQuantizeLinear", 11)
def dynamic_quantize_linear(g):
    g.node("DynamicQuantizeLinear", [g.pick(T.FLOAT, range(1, 4), exact=True, where=filled)], 3)


@operator("QLinearMatMul", 10)
def qlinear_matmul(g):
    a = g.pick(BYTES, 2)
    b = g.pick(BYTES, shape=(a.shape[1], None))
    out = g.choice(BYTES) if a.element == b.element else a.element
    operand = lambda value: [value, scale(g), zero(g, value.element)]
    g.node("QLinearMatMul", [*operand(a), *operand(b), scale(g), zero(g, out if a.element == T.INT8 else T.UINT8)])


@operator("QLinearConv", 10)
def qlinear_conv(g):
    x = image(g, (T.UINT8,), dims=2)
    attributes = window(g, x)
    filters = g.int(1, 3)
    weight = g.pick(BYTES, shape=(filters, x.shape[1], *attributes["kernel_shape"]))
    bias = [g.pick(T.INT32, shape=(filters,))] if g.chance(0.5) else []
    shape = (filters,) if g.chance(0.4) else ()
    none = g.constant(np.zeros(shape), weight.element)
    inputs = [x, scale(g), zero(g, x.element), weight, scale(g, shape), none, scale(g), zero(g, T.UINT8), *bias]
    g.node("QLinearConv", inputs, **attributes)
