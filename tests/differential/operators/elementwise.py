"""Operators on elements: of one operand, of two that broadcast, of any number."""
import numpy as np
from onnx import TensorProto as T

from operators import operator
from values import FLOATS, INTS, NUMBERS, PLAIN, SIGNED, SMALL_FLOATS, SMALL_INTS, UNSIGNED, as_double, is_float

# Functions of floats: name, first set, lowest and highest operand.
FUNCTIONS = [
    ("Acos", 7, -0.95, 0.95), ("Acosh", 9, 1.1, 9), ("Asin", 7, -0.95, 0.95), ("Asinh", 9, None, None),
    ("Atan", 7, None, None), ("Atanh", 9, -0.95, 0.95), ("Cos", 7, -20, 20), ("Cosh", 9, -4, 4),
    ("Erf", 9, None, None), ("Exp", 6, -20, 5), ("HardSwish", 14, None, None), ("Log", 6, 0.1, None),
    ("Mish", 18, None, None), ("Sigmoid", 6, None, None), ("Sin", 7, -20, 20), ("Sinh", 9, -4, 4),
    ("Softplus", 1, -30, 30), ("Softsign", 1, None, None), ("Sqrt", 6, 0.01, None), ("Tan", 7, -1.3, 1.3),
    ("Tanh", 6, None, None), ("Gelu", 20, None, None), ("Swish", 24, None, None), ("Selu", 6, None, None),
    ("Elu", 6, None, None), ("Celu", 12, None, None), ("LeakyRelu", 6, None, None),
    ("HardSigmoid", 6, None, None),
]
# Their attributes, with the lowest and highest value.
ATTRIBUTES = {
    "Elu": {"alpha": (0.5, 2)}, "Celu": {"alpha": (0.5, 2)}, "LeakyRelu": {"alpha": (-0.5, 0.5)},
    "HardSigmoid": {"alpha": (0.1, 0.5), "beta": (0.2, 0.8)}, "Selu": {"alpha": (1, 2), "gamma": (1, 2)},
    "Swish": {"alpha": (0.5, 2)},
}
# Without rounding: name, first set, types.
EXACT = [
    ("Abs", 6, NUMBERS), ("Neg", 6, FLOATS + SIGNED), ("Relu", 6, FLOATS + SIGNED), ("Not", 1, (T.BOOL,)),
    ("BitwiseNot", 18, INTS), ("Identity", 1, PLAIN),
]
# Where a rounding error of the operand would show.
JUMPING = [
    ("Floor", 6, FLOATS), ("Ceil", 6, FLOATS), ("Round", 11, FLOATS), ("Sign", 9, NUMBERS),
    ("IsNaN", 9, FLOATS), ("IsInf", 10, (T.FLOAT, T.DOUBLE)),
]
COMPARISONS = [("Equal", 7, PLAIN), ("Greater", 9, NUMBERS), ("Less", 9, NUMBERS),
               ("GreaterOrEqual", 12, NUMBERS), ("LessOrEqual", 12, NUMBERS)]
LOGICAL = [("And", 7, (T.BOOL,)), ("Or", 7, (T.BOOL,)), ("Xor", 7, (T.BOOL,)), ("BitwiseAnd", 18, INTS),
           ("BitwiseOr", 18, INTS), ("BitwiseXor", 18, INTS)]
VARIADIC = [("Max", 8, NUMBERS, True), ("Min", 8, NUMBERS, True), ("Sum", 8, FLOATS, False), ("Mean", 8, FLOATS, False)]


def partner(g, value, types=None, **limits):
    """A value that broadcasts with another."""
    shape = list(value.shape)
    if g.chance(0.3):
        shape = shape[g.int(0, len(shape)):]
    if g.chance(0.3):
        shape = [1 if g.chance(0.4) else size for size in shape]
    return g.pick(types or value.element, shape=tuple(shape), **limits)


def apart(value):
    """Whether no element is near 0."""
    return bool((np.abs(as_double(value.array)) > 0.2).all())


def swapped(g, pair):
    return pair[::-1] if g.chance(0.5) else pair


def register_rows():
    for name, since, low, high in FUNCTIONS:
        def function(g, name=name, low=low, high=high):
            drawn = {key: float(np.float32(g.rng.uniform(*ends))) for key, ends in ATTRIBUTES.get(name, {}).items()
                     if g.chance(0.6)}
            if name == "Gelu":
                drawn["approximate"] = g.choice(("none", "tanh", None))
            g.node(name, [g.pick(FLOATS, low=low, high=high)], **drawn)
        operator(name, since)(function)
    for name, since, types in EXACT:
        operator(name, since)(lambda g, name=name, types=types: g.node(name, [g.pick(types)], exact=True))
    for name, since, types in JUMPING:
        def jumping(g, name=name, types=types):
            g.node(name, [g.pick(types, exact=True)], exact=True)
        operator(name, since)(jumping)
    for name, since, types in COMPARISONS:
        def compare(g, name=name, types=types):
            x = g.pick(types, exact=True)
            g.node(name, swapped(g, [x, partner(g, x, exact=True)]), exact=True)
        operator(name, since)(compare)
    for name, since, types in LOGICAL:
        def logical(g, name=name, types=types):
            x = g.pick(types)
            g.node(name, swapped(g, [x, partner(g, x)]), exact=True)
        operator(name, since)(logical)
    for name, since, types, exact in VARIADIC:
        def variadic(g, name=name, types=types, exact=exact):
            x = g.pick(types)
            g.node(name, [x] + [partner(g, x) for _ in range(g.int(0, 3))], exact=exact)
        operator(name, since)(variadic)
    for name in ("Add", "Sub", "Mul"):
        def arithmetic(g, name=name):
            x = g.pick(NUMBERS)
            g.node(name, swapped(g, [x, partner(g, x)]))
        operator(name, 7, weight=3)(arithmetic)


register_rows()


@operator("Div", 7)
def div(g):
    x = g.pick(NUMBERS)
    g.node("Div", [x, partner(g, x, where=apart)])


@operator("Reciprocal", 6)
def reciprocal(g):
    g.node("Reciprocal", [g.pick(FLOATS, where=apart)])


@operator("Mod", 10)
def mod(g):
    x = g.pick(NUMBERS, exact=True)
    g.node("Mod", [x, partner(g, x, where=apart, exact=True)], fmod=1 if is_float(x.element) or g.chance(0.5) else None)


@operator("Pow", 12)
def power(g):
    if g.chance(0.5):
        g.node("Pow", [g.pick(FLOATS, low=0.1, high=9), g.pick(FLOATS + (T.INT32, T.INT64), shape=(), low=-2, high=3)])
    else:
        x = g.pick(FLOATS + (T.INT32, T.INT64))
        g.node("Pow", [x, partner(g, x, low=0, high=3, types=(T.INT32, T.INT64))])


@operator("PRelu", 9)
def prelu(g):
    x = g.pick(FLOATS + (T.INT32, T.INT64))
    g.node("PRelu", [x, partner(g, x)])


@operator("BitShift", 11)
def shift(g):
    x = g.pick(UNSIGNED)
    g.node("BitShift", [x, partner(g, x, low=0, high=7)], direction=g.choice(("LEFT", "RIGHT")))


@operator("Where", 9, weight=2)
def where(g):
    x = g.pick(PLAIN)
    g.node("Where", [partner(g, x, types=(T.BOOL,)), *swapped(g, [x, partner(g, x)])], exact=True)


@operator("Clip", 11)
def clip(g):
    x = g.pick(NUMBERS)
    bound = lambda low, high: g.pick(x.element, shape=(), low=low, high=high) if g.chance(0.8) else None
    g.node("Clip", [x, bound(-9, 0), bound(1, 9)], exact=True)


@operator("ThresholdedRelu", 10)
def thresholded_relu(g):
    g.node("ThresholdedRelu", [g.pick(FLOATS, exact=True)], exact=True, alpha=g.choice((None, 0.5, 0.0)))


@operator("Shrink", 9)
def shrink(g):
    g.node("Shrink", [g.pick(NUMBERS, exact=True)], bias=g.choice((0.0, 0.5)), lambd=g.choice((0.5, 1.0)))


CASTS = PLAIN + SMALL_FLOATS + SMALL_INTS


@operator("Cast", 13, weight=3)
def cast(g):
    types = tuple(kind for kind in CASTS if g.opset >= 21 or kind not in SMALL_FLOATS + SMALL_INTS)
    to = types[g.int(0, len(types) - 1)]
    g.node("Cast", [castable(g, types, to)], exact=to in (T.DOUBLE,), to=to)


@operator("CastLike", 15)
def cast_like(g):
    like = g.pick(PLAIN)
    g.node("CastLike", [castable(g, PLAIN, like.element), like], exact=like.element == T.DOUBLE)


def castable(g, types, to):
    """A value that a type can hold; floats become integers where they do not round."""
    low, high = {True: (-7, 7), False: (0, 7)}[to in SIGNED + FLOATS + (T.INT4,) + SMALL_FLOATS + (T.BOOL,)]
    return g.pick(types, exact=not is_float(to) or to in SMALL_FLOATS, low=low, high=high)


@operator("Dropout", 12)
def dropout(g):
    g.node("Dropout", [g.pick(FLOATS)], g.choice((1, 2)), exact=True)
